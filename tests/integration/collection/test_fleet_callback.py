# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The callback ``fleet``: one table at the end of an ad-hoc run, with the ansible-core of this checkout and others."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from forewarn.emulator.client import EmulatorClient
from forewarn.emulator.server import EmulatorServer
from tools.sites.adhoc import MODULE, AdHoc, Outcome
from tools.sites.ansible_cores import SUPPORTED, ansible
from tools.sites.commands import run_program

pytestmark = pytest.mark.in_turn(3)

ENVIRON = {"ANSIBLE_LOAD_CALLBACK_PLUGINS": "1", "ANSIBLE_STDOUT_CALLBACK": "forewarn.azure.fleet"}
VMS = ("web_0", "web_2", "web_10", "db_0")
POLICY = """\
name: freezes
rule:
  match:
    - {id: not-mine, condition: "!affects_me", output: hold}
    - {id: freeze, condition: event.EventType == "Freeze", output: approve, explanation: "'it is brief'"}
    - {id: rest, output: hold}
"""


@pytest.fixture
def adhoc(tmp_path: Path, collections_path: Path) -> AdHoc:
    return AdHoc(tmp_path, collections_path)


@pytest.fixture
def emulator() -> Iterator[EmulatorClient]:
    with EmulatorServer(vms=VMS) as server, EmulatorClient(server.url) as client:
        yield client


def ask(adhoc: AdHoc, emulator: EmulatorClient, *options: str, module: str = MODULE, **args: Any) -> Outcome:
    """Run the module on all VMs, on one that refuses the connection and on one that SSH does not reach."""
    hosts: dict[str, dict[str, Any]] = {name: {"endpoint": emulator.vm_endpoint(name)} for name in VMS}
    hosts["web_8"] = {"endpoint": "http://127.0.0.1:9"}
    hosts["web_9"] = {"endpoint": "", "ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 9}
    given = {"endpoint": "{{ endpoint }}", "patience": 0, **args} if module == MODULE else args
    return adhoc.run(hosts, given, *options, module=module, environ=ENVIRON)


def approvals(emulator: EmulatorClient) -> int:
    return sum(request["method"] == "POST" for request in emulator.requests())


def test_adhoc_run_prints_one_table(adhoc: AdHoc, emulator: EmulatorClient) -> None:
    freeze = emulator.schedule("Freeze", ["web_10", "web_2"], duration_seconds=5, notice_seconds=900)
    reboot = emulator.schedule("Reboot", ["db_0"], notice_seconds=800)
    outcome = ask(adhoc, emulator)
    assert outcome.code == 4
    lines = outcome.stdout.rstrip().split("\n")
    assert lines[0] == "EVENTS"
    assert lines[1].startswith("  Reboot in 13 min ")
    assert lines[1].endswith(f", from Platform, {reboot}")
    assert lines[2:4] == ["    db_0  scheduled", "    3 other hosts not affected"]
    assert lines[5].endswith(f", from Platform, lasts 5 s, {freeze}")
    assert lines[6:9] == ["    web_2   scheduled", "    web_10  scheduled", "    2 other hosts not affected"]
    assert lines[10] == "TROUBLE on 2 hosts"
    assert lines[11].startswith("  web_8  ")
    assert "127.0.0.1 port 9 refused the connection" in lines[11]
    assert lines[12] == "  web_9  not reached: Connection refused (ssh, port 9)"
    assert lines[14:] == ["6 hosts, 2 with trouble; 2 events pending for 3 VMs"]


def test_decisions_and_approvals_are_in_it(adhoc: AdHoc, emulator: EmulatorClient) -> None:
    (adhoc.directory / "freezes.yml").write_text(POLICY)
    freeze = emulator.schedule("Freeze", ["web_10", "web_2"], duration_seconds=5, notice_seconds=900)
    options: dict[str, Any] = {"policies": str(adhoc.directory / "freezes.yml"), "apply": True}
    rehearsal = ask(adhoc, emulator, "--check", **options).stdout
    assert "    web_10  would be approved\n" in rehearsal, rehearsal
    assert approvals(emulator) == 0
    shown = ask(adhoc, emulator, **options).stdout
    assert "    approve by freezes, rule freeze" in shown
    assert "not-mine" not in shown
    assert "    web_10  approved\n" in shown
    assert "    web_2   not-the-leader  web_10 leads" in shown
    assert approvals(emulator) == 1
    assert freeze in shown


def test_mistakes_in_a_policy_are_shown_once(adhoc: AdHoc, emulator: EmulatorClient) -> None:
    (adhoc.directory / "bad.yml").write_text(POLICY.replace("!affects_me", "event.no_such_field"))
    outcome = ask(adhoc, emulator, policies=str(adhoc.directory / "bad.yml"))
    assert outcome.code == 2
    assert outcome.stdout.count("no_such_field") <= 2
    assert "no_such_field" in outcome.stdout
    assert "6 hosts, 6 with trouble" in outcome.stdout


def test_another_module_has_one_line_for_each_host(adhoc: AdHoc, emulator: EmulatorClient) -> None:
    outcome = ask(adhoc, emulator, module="ansible.builtin.ping", data="pong")
    assert sorted(outcome.stdout.rstrip().split("\n")) == [
        *(f"{name} | SUCCESS" for name in sorted([*VMS, "web_8"])),
        "web_9 | UNREACHABLE: not reached: Connection refused (ssh, port 9)",
    ]


@pytest.mark.versions
@pytest.mark.parametrize("version", SUPPORTED)
def test_each_ansible_core(adhoc: AdHoc, emulator: EmulatorClient, tmp_path: Path, version: str) -> None:
    command = ansible("ansible", version)
    event_id = emulator.schedule("Reboot", ["db_0"])
    variables = {
        "ansible_connection": "local",
        "ansible_python_interpreter": sys.executable,
        "endpoint": emulator.vm_endpoint("db_0"),
    }
    (tmp_path / "hosts.json").write_text(json.dumps({"all": {"hosts": {"db_0": variables}}}))
    process = run_program(
        *(command, "all", "-i", "hosts.json", "-m", MODULE, "-a", '{"endpoint": "{{ endpoint }}"}'),
        cwd=tmp_path,
        env={**adhoc.environ, **ENVIRON},
    )
    assert process.stderr == ""
    assert event_id in process.stdout
    assert process.stdout.endswith("\n1 host, 0 with trouble; 1 event pending for 1 VM\n")


def test_playbook_ends_with_the_table_without_a_recap(adhoc: AdHoc, emulator: EmulatorClient) -> None:
    event_id = emulator.schedule("Reboot", ["db_0"])
    tasks: list[dict[str, Any]] = [
        {MODULE: {"endpoint": emulator.vm_endpoint("db_0")}},
        {"name": "Fails", "ansible.builtin.fail": {"msg": "no\nway"}, "ignore_errors": True},
        {"ansible.builtin.debug": {"msg": "quiet"}},
    ]
    play = {"hosts": "all", "gather_facts": False, "connection": "local", "tasks": tasks}
    (adhoc.directory / "play.json").write_text(json.dumps([play]))
    process = run_program(
        *(
            ansible("ansible-playbook"),
            "-i",
            "db_0,",
            "-e",
            f"ansible_python_interpreter={sys.executable}",
            "play.json",
        ),
        cwd=adhoc.directory,
        env={**adhoc.environ, **ENVIRON},
    )
    assert process.returncode == 0, process.stdout + process.stderr
    assert process.stdout.split("\n")[0].startswith("db_0 | FAILED, ignored: ")
    assert event_id in process.stdout
    assert "RECAP" not in process.stdout
    assert "quiet" not in process.stdout
