# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What somebody can do who has the login of a VM of the group: write whatever VMs write, in the name of any of them.

Other VMs believe it, and still approve only what their own policies approve and their own hooks have prepared.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import requests
from forewarn.emulator.client import EmulatorClient
from forewarn.emulator.server import EmulatorServer
from forewarn.events import Event, parse_document
from forewarn.runner.event_record import content_of
from forewarn.runner.groups import barrier, documents, semaphore
from forewarn.runner.groups.barrier import Barrier, Closure, Statement
from forewarn.runner.groups.semaphore import Semaphore
from tools.servers.etcd_server import EtcdCluster, etcd_cluster
from tools.sites.runner_process import Start, approvals, compiled, program
from tools.sites.waiting import wait_until

pytestmark = pytest.mark.emulated(gone_after=60)

BOTH = ["web_0", "web_1"]
POLICY = """
name: web
rule:
  match:
    - id: drain
      condition: event.EventType == "Reboot"
      output: approve
      group: ready
      limit: 2
      prepare: [{{run: [{hook}], timeout: 60s}}]
    - {{id: rest, condition: event.EventType == "Redeploy", output: hold}}
"""
HOOK = 'until [ -e "$(dirname "$0")/go" ]; do sleep 0.05; done'


@pytest.fixture(scope="module")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdCluster]:
    with etcd_cluster(tmp_path_factory.mktemp("etcd"), 1) as cluster:
        yield cluster


@pytest.fixture
def config(tmp_path: Path, etcd: EtcdCluster) -> Path:
    tmp_path.chmod(0o700)
    artifact = compiled(tmp_path, POLICY.format(hook=program(tmp_path / "hook", HOOK)))
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"artifact": str(artifact), "group": "web", "group_store": etcd.settings()}))
    write(etcd, documents.semaphore_key("web"), semaphore.encode(Semaphore()))
    return path


def write(etcd: EtcdCluster, key: str, content: bytes | None) -> None:
    """Replace a document, whatever is there."""
    with closing(etcd.store()) as store:
        wait_until(lambda: store.swap(key, content, store.read(key).version) is not None)


def events(server: EmulatorServer) -> dict[str, Event]:
    """Return what the service lists, by its ids."""
    url = f"{server.vm_endpoint('web_0')}/metadata/scheduledevents?api-version=2020-07-01"
    answer = requests.get(url, headers={"Metadata": "true"}, timeout=10)
    return {event.event_id: event for event in parse_document(answer.content).events}


def close(etcd: EtcdCluster, event: Event, vm: str) -> None:
    """Write that all VMs are ready, in their names, and that one of them approves."""
    content = content_of(event)
    forged = Barrier({name: Statement(content, barrier.READY) for name in BOTH}, Closure(content, vm))
    write(etcd, documents.barrier_key("web", event.key), barrier.encode(forged, event.event_id))


def decides_again(emulator: EmulatorClient) -> None:
    """Wait until a runner has polled so often that it has decided again by all that it knows."""
    polls = len(emulator.requests())
    wait_until(lambda: len(emulator.requests()) >= polls + 20, pause=0.05)


@pytest.mark.parametrize("closed_by", BOTH)
def test_forged_peer_state_cannot_replace_own_hooks(
    start: Start, config: Path, etcd: EtcdCluster, server: EmulatorServer, emulator: EmulatorClient, closed_by: str
) -> None:
    process = start("--config", str(config), vm="web_0")
    process.wait_for("document")
    event = emulator.schedule("Reboot", BOTH, notice_seconds=300)
    process.wait_for("hook-started")
    close(etcd, events(server)[event], closed_by)
    decides_again(emulator)
    assert approvals(emulator) == []
    (config.parent / "go").touch()
    process.wait_for("approved")  # it believes what was written of web_1, which runs nothing
    assert approvals(emulator) == [[event]]


def test_forged_store_content_cannot_override_policies(
    start: Start, config: Path, etcd: EtcdCluster, server: EmulatorServer, emulator: EmulatorClient
) -> None:
    (config.parent / "go").touch()
    process = start("--config", str(config), vm="web_0")
    process.wait_for("document")
    held = emulator.schedule("Redeploy", BOTH, notice_seconds=300)
    unknown = emulator.schedule("Freeze", BOTH, notice_seconds=300)
    for event in events(server).values():
        close(etcd, event, "web_0")
    approved = emulator.schedule("Reboot", ["web_0"], notice_seconds=300)
    process.wait_for("approved")
    decides_again(emulator)
    assert approvals(emulator) == [[approved]]
    assert {held, unknown} < events(server).keys()
