# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A runner on Windows with others: in a group on a real etcd, and with a sink."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tools.servers.etcd_server import EtcdCluster, etcd_cluster
from tools.servers.sink_receiver import Receiver
from tools.sites.waiting import wait_until
from tools.worlds.windows.vm import CONFIG, DATA, WindowsVm

POLICY = r"""
name: windows
rule:
  match:
    - {id: started, condition: event.EventStatus == "Started", output: hold}
    - id: drain
      condition: event.EventType == "Reboot"
      output: approve
      group: ready
      limit: 1
      prepare: [{run: ['C:\hooks\drain.cmd']}]
      recover: [{run: ['C:\hooks\drain.cmd']}]
"""


@pytest.fixture(scope="module")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdCluster]:
    with etcd_cluster(tmp_path_factory.mktemp("etcd"), 1) as cluster:
        yield cluster


def credential(vm: WindowsVm, name: str, secret: bytes) -> None:
    """Encrypt a secret, in a file for the runner alone: Wine has it inherit nothing from the directory."""
    done = vm.forewarn("credential", name, stdin=secret)
    assert done.returncode == 0, done
    vm.wine.path(rf"{DATA}\credentials\{name}").chmod(0o600)


def settings_on(vm: WindowsVm, cluster: EtcdCluster) -> dict[str, Any]:
    """Return the cluster's settings, with its files on the VM."""

    def copied(path: str) -> str:
        name = rf"{DATA}\{Path(path).name}"
        target = vm.wine.path(name)
        target.write_bytes(Path(path).read_bytes())
        target.chmod(0o600)
        return name

    settings = cluster.settings()
    for name in ("ca_file", "certificate_file", "key_file"):
        settings[name] = copied(settings[name])
    credential(vm, "etcd", Path(settings["password"]["file"]).read_bytes())
    return {**settings, "password": {"credential": "etcd"}}


def test_slot_is_taken_and_everything_is_sent(vm: WindowsVm, etcd: EtcdCluster, tmp_path: Path) -> None:
    vm.hook("drain", r">>C:\hooks\said echo %FOREWARN_PHASE%")
    vm.policy(POLICY)
    with Receiver(tmp_path / "receiver") as receiver:
        receiver.start()
        credential(vm, "token", b"s3cret\r\n")
        options = {"sink_url": receiver.url, "sink_credential": "token"}
        vm.configure(group="web", group_store=settings_on(vm, etcd), **options)
        created = vm.forewarn("group", "create", "--config", CONFIG)
        assert created.returncode == 0, created
        runner = vm.start("--config", CONFIG)
        event = vm.emulator.schedule("Reboot", ["web_0"], notice_seconds=600, impact_seconds=0)
        runner.wait_for("slot-taken")
        runner.wait_for("approved", event_ids=[event])
        runner.wait_for("slot-free")
        vm.wait_until_over()
        assert vm.said() == ["prepare", "recover"]
        with closing(etcd.store()) as store:
            assert [key for key in store.list("forewarn/") if "web" in key]
        wait_until(lambda: "approved" in {line["kind"] for line in receiver.kept()})
        assert {request["headers"]["Authorization"] for request in receiver.requests()} == {"Bearer s3cret"}
