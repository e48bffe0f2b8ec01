# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runners of a group as processes, with a real etcd, and the commands that show and mend what they share."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from forewarn.emulator.client import EmulatorClient
from forewarn.runner.groups import documents
from forewarn.runner.groups.obligations import FILE_NAME
from tools.servers.etcd_server import EtcdCluster, etcd_cluster
from tools.sites.commands import in_process
from tools.sites.runner_process import Process, Start, approvals, compiled, program
from tools.sites.waiting import wait_until

VMS = ("web_0", "web_1", "web_2")
pytestmark = pytest.mark.emulated(vms=VMS)

POLICY = """
name: web
rule:
  match:
    - id: drain
      condition: event.EventType == "Reboot"
      output: approve
      group: ready
      limit: 2
      prepare: [{{run: [{hook}, drain], timeout: 20s}}]
      recover: [{{run: [{hook}, undrain], timeout: 20s}}]
"""
# It waits until there is a file for its VM, so that a test decides when a VM is prepared.
HOOK = """
[ "$1" = drain ] || exit 0
for _ in $(seq 600); do  # it ends by itself, also where a killed runner has left it behind
  [ -e "$(dirname "$0")/go-$FOREWARN_VM_NAME" ] && exit 0
  sleep 0.05
done
exit 1
"""

Run = Callable[[str], Process]


@pytest.fixture(scope="module")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdCluster]:
    with etcd_cluster(tmp_path_factory.mktemp("etcd"), 1) as cluster:
        yield cluster


@pytest.fixture
def config(tmp_path: Path, etcd: EtcdCluster) -> Path:
    """Return a configuration; the store has nothing."""
    with closing(etcd.store()) as store:
        for key in store.list("forewarn/"):
            store.swap(key, None, store.read(key).version)
    tmp_path.chmod(0o700)
    hook = program(tmp_path / "hook", HOOK)
    artifact = compiled(tmp_path, POLICY.format(hook=hook))
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"artifact": str(artifact), "group": "web", "group_store": etcd.settings()}))
    return path


@pytest.fixture
def run(start: Start, config: Path) -> Run:
    return lambda vm: start("--config", str(config), vm=vm)


def group(config: Path, *arguments: str) -> tuple[int, str]:
    done = in_process("group", arguments[0], "--config", config, *arguments[1:])
    return done.returncode, done.stdout + done.stderr


def status(config: Path) -> dict[str, Any]:
    code, text = group(config, "status", "--json")
    assert code == 0, text
    return dict(json.loads(text))


def holders(config: Path) -> list[str]:
    found = status(config)["semaphore"]
    return [slot["vm"] for slot in found["slots"]] if found else []


def let(config: Path, *vms: str) -> None:
    for vm in vms:
        (config.parent / f"go-{vm}").touch()


def test_shared_event_is_approved_after_both_vms_prepare(
    run: Run, config: Path, emulator: EmulatorClient, tmp_path: Path
) -> None:
    """The third VM waits for a slot meanwhile."""
    assert group(config, "create") == (0, f"Group web has its semaphore now: {status(config)['store']}.\n")
    started = {vm: run(vm) for vm in VMS}
    for process in started.values():
        process.wait_for("document")
    both = emulator.schedule("Reboot", ["web_0", "web_1"], notice_seconds=300, impact_seconds=0.1)
    started["web_0"].wait_for("slot-taken")
    started["web_1"].wait_for("slot-taken")
    one = emulator.schedule("Reboot", ["web_2"], notice_seconds=600, impact_seconds=0.1)
    started["web_2"].wait_for("slot-waits")
    state = tmp_path / "state-web_2"
    wait_until(lambda: "; 1 waits for a slot" in in_process("status", "--state", state).stdout)
    shown = in_process("status", "--state", state)
    assert "group    web, etcd at " in shown.stdout
    assert "a slot of web, of which there are 2: web_0, web_1 have them" in " ".join(shown.stdout.split())
    let(config, "web_0", "web_2")
    started["web_0"].wait_for("hook-ended", phase="prepare", result="succeeded")
    found = wait_until(lambda: [event for event in status(config)["events"] if event["event"] == both])[0]
    wait_until(
        lambda: (
            {"vm": "web_0", "state": "ready", "reason": ""}
            in next(event for event in status(config)["events"] if event["event"] == both)["members"]
        )
    )
    assert found["closed_by"] is None
    assert approvals(emulator) == []
    assert sorted(holders(config)) == ["web_0", "web_1"]
    code, text = group(config, "status")
    assert code == 0
    assert f"waits  web_2 for Reboot {one}" in text
    assert "web_0  holds a slot for Reboot" in text

    let(config, "web_1")
    started["web_1"].wait_for("barrier-closed")
    started["web_1"].wait_for("approved")
    for vm in VMS:
        started[vm].wait_for("slot-free")
    assert sorted(map(tuple, approvals(emulator))) == sorted([(both,), (one,)])
    started["web_2"].wait_for("approved")
    wait_until(lambda: not (tmp_path / "state-web_0" / FILE_NAME).exists(), what="something is still owed")
    assert (holders(config), status(config)["events"]) == ([], [])


def test_killed_runner_keeps_and_releases_its_slot(run: Run, config: Path, emulator: EmulatorClient) -> None:
    group(config, "create")
    process = run("web_0")
    process.wait_for("document")
    event = emulator.schedule("Reboot", ["web_0"], notice_seconds=300, impact_seconds=0.1)
    process.wait_for("hook-started")
    assert holders(config) == ["web_0"]
    process.stop(signal.SIGKILL)
    emulator.cancel(event)
    assert holders(config) == ["web_0"]
    again = run("web_0")
    again.wait_for("hook-ended", phase="recover", result="succeeded")
    again.wait_for("slot-free")
    assert holders(config) == []


def test_unreachable_store_holds_events_until_it_recovers(
    run: Run, config: Path, emulator: EmulatorClient, etcd: EtcdCluster
) -> None:
    group(config, "create")
    process = run("web_0")
    process.wait_for("document")
    member = etcd.members[0]
    member.kill()
    try:
        event = emulator.schedule("Reboot", ["web_0"], notice_seconds=300, impact_seconds=0.1)
        fault = process.wait_for("group-store-failed")
        assert "refused the connection" in fault["reason"]
        assert group(config, "status")[0] == 3
        emulator.cancel(event)
        process.wait_for("event-gone")
    finally:
        etcd.start(member)
        etcd.settle()
    process.wait_for("group-store-recovered")


def test_a_person_frees_a_slot_and_says_why(run: Run, config: Path, emulator: EmulatorClient) -> None:
    group(config, "create")
    assert group(config, "release", "web_0", "--why", "x") == (
        2,
        "error: web_0 holds no slot of group web.\n  hint: See who does: forewarn group status.\n",
    )
    process = run("web_0")
    process.wait_for("document")
    event = emulator.schedule("Reboot", ["web_0"], notice_seconds=300, impact_seconds=0.1)
    process.wait_for("slot-taken")
    process.stop(signal.SIGKILL)
    code, text = group(config, "release", "WEB_0", "--why", "its VM is deleted", "--event", event[:8])
    assert (code, text.splitlines()[0]) == (0, f"WEB_0 no longer holds a slot of web for Reboot {event}.")
    (release,) = status(config)["semaphore"]["releases"]
    assert (release["vm"], release["why"]) == ("web_0", "its VM is deleted")
    assert "freed  web_0 by " in group(config, "status")[1]


def test_what_is_there_is_never_replaced(config: Path, etcd: EtcdCluster) -> None:
    group(config, "create")
    code, text = group(config, "create")
    assert (code, "had its semaphore already" in text) == (0, True)
    with closing(etcd.store()) as store:
        key = documents.semaphore_key("web")
        store.swap(key, b"somebody else's", store.read(key).version)
        for command in (("create",), ("status",), ("release", "web_0", "--why", "x")):
            code, text = group(config, *command)
            assert (code, "is not a semaphore of Forewarn" in text) == (3, True), text
        assert store.read(key).value == b"somebody else's"


def test_a_configuration_without_a_group_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text("{}")
    code, text = group(path, "status")
    assert (code, "names no group" in text) == (2, True), text
