# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kind galera makes of nodes and units that a real cluster, as in tests/lab, seldom has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from forewarn.hook_kinds.common.process import PREPARE, RECOVER, perform
from forewarn.hook_kinds.common.work import HookFailedError

# Both write down their arguments. Each file of the directory is what one of them answers.
_SYSTEMCTL = """#!/bin/sh
echo "systemctl $*" >> {directory}/calls
case "$*" in
show*) cat {directory}/unit ;;
*start*) cp {directory}/after-start {directory}/unit ;;
*stop*) cp {directory}/after-stop {directory}/unit ;;
esac
"""
_MARIADB = """#!/bin/sh
echo "mariadb $*" >> {directory}/calls
case "$*" in
*wsrep_sync_wait*) name=read ;;
*--host=*) name=peer ;;
*) name=status ;;
esac
[ -e {directory}/$name ] && cat {directory}/$name && exit
echo "ERROR 1047 (08S01) WSREP has not yet prepared node for application use" >&2
exit 1
"""
_ACTIVE, _INACTIVE = "ActiveState=active\nJob=\nLoadState=loaded\n", "ActiveState=inactive\nJob=\nLoadState=loaded\n"


class Server:
    """A server whose answers are files."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        for name, text in (("systemctl", _SYSTEMCTL), ("mariadb", _MARIADB)):
            (directory / name).write_text(text.format(directory=directory))
            (directory / name).chmod(0o755)
        self.set("unit", _ACTIVE)
        self.set("after-start", _ACTIVE)
        self.set("after-stop", _INACTIVE)
        self.set("read", "1\n")
        self.status()

    def set(self, name: str, text: str) -> None:
        (self.directory / name).write_text(text)

    def status(self, name: str = "status", **changes: str) -> None:
        values = {
            "local_state_comment": "Synced",
            "cluster_status": "Primary",
            "cluster_size": "3",
            "ready": "ON",
            "incoming_addresses": "10.0.0.1:0,10.0.0.2:3307,[2001:db8::3]:3306,,AUTO",
            **changes,
        }
        self.set(name, "".join(f"wsrep_{key}\t{value}\n" for key, value in values.items()))

    def calls(self, program: str) -> list[str]:
        lines = (self.directory / "calls").read_text().splitlines()
        return [line for line in lines if line.startswith(program) and " show " not in line]

    def run(self, phase: str = PREPARE, **options: Any) -> None:
        perform("galera", phase, options, {}, 1.2, str(self.directory / "memory"))

    def refusal(self, phase: str = PREPARE, **options: Any) -> str:
        with pytest.raises(HookFailedError) as caught:
            self.run(phase, **options)
        return str(caught.value)


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Server:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return Server(tmp_path)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"cluster_status": "non-Primary"}, "this node is not in the primary component of a cluster"),
        ({"cluster_status": "Disconnected", "local_state_comment": "Initialized"}, "this node is not in the primary"),
        ({"local_state_comment": "Donor/Desynced"}, "this node is Donor/Desynced, after "),
        ({"local_state_comment": "Joined"}, "this node is Joined, after "),
        ({"cluster_size": "2"}, "1 other node is synced, and 2 must remain, after "),
        ({"cluster_size": "1"}, "0 other nodes are synced, and 2 must remain, after "),
    ],
)
def test_a_node_that_is_needed_is_not_stopped(server: Server, changes: dict[str, str], reason: str) -> None:
    server.status(**changes)
    assert server.refusal().startswith(reason)
    assert server.calls("systemctl") == []


def test_a_server_without_a_cluster_is_not_stopped(server: Server) -> None:
    server.set("status", "")
    assert server.refusal().startswith("this node is not in the primary component of a cluster")
    (server.directory / "status").unlink()
    assert server.refusal().startswith("MariaDB does not answer: ERROR 1047 (08S01)")
    server.set("unit", "ActiveState=inactive\nJob=\nLoadState=not-found\n")
    assert server.refusal() == "there is no unit mariadb.service: name MariaDB's by the option 'unit'"
    assert server.calls("systemctl") == []


def test_peers_are_queried_with_the_defaults_file(server: Server) -> None:
    server.status("peer")
    server.run(defaults_file="/etc/my.cnf")  # three answer, and one of them is this node
    asked = [call.split(" --batch")[0] for call in server.calls("mariadb")]
    assert asked == [
        "mariadb --defaults-extra-file=/etc/my.cnf",
        "mariadb --defaults-extra-file=/etc/my.cnf --host=10.0.0.1",
        "mariadb --defaults-extra-file=/etc/my.cnf --host=10.0.0.2 --port=3307",
        "mariadb --defaults-extra-file=/etc/my.cnf --host=2001:db8::3 --port=3306",
    ]
    assert server.calls("systemctl") == ["systemctl --no-ask-password stop -- mariadb.service"]


def test_others_that_do_not_answer_do_not_count(server: Server) -> None:
    assert server.refusal(defaults_file="/etc/my.cnf").startswith("0 other nodes are synced, and 2 must remain")


def test_ineffective_stop_is_a_failure(server: Server) -> None:
    server.set("after-stop", "ActiveState=deactivating\nJob=12\nLoadState=loaded\n")
    assert server.refusal().startswith("mariadb.service is deactivating, after ")


def test_node_is_recovered_after_its_cluster_answers(server: Server) -> None:
    server.run()
    (server.directory / "read").unlink()
    assert server.refusal(RECOVER).startswith("MariaDB does not answer: ERROR 1047 (08S01) WSREP has not yet prepared")
    assert server.calls("systemctl")[-1] == "systemctl --no-ask-password --no-block start -- mariadb.service"
    server.set("read", "1\n")
    server.status(local_state_comment="Joined", ready="OFF")
    assert server.refusal(RECOVER).startswith("this node is Joined")
    server.status(cluster_size="2")
    server.run(RECOVER)
    assert len([call for call in server.calls("systemctl") if "start" in call]) == 1


def test_a_server_that_does_not_start_is_told(server: Server) -> None:
    server.run()
    server.set("after-start", "ActiveState=failed\nJob=\nLoadState=loaded\n")
    reason = "mariadb.service does not run: 'journalctl --unit=mariadb.service' says why"
    assert server.refusal(RECOVER).startswith(reason)


def test_booting_server_is_awaited_when_not_stopped_here(server: Server) -> None:
    server.set("unit", "ActiveState=inactive\nJob=7\nLoadState=loaded\n")
    (server.directory / "read").unlink()
    assert server.refusal(RECOVER).startswith("MariaDB does not answer")
    server.set("unit", _INACTIVE)
    server.run(RECOVER)
    assert server.calls("systemctl") == []
