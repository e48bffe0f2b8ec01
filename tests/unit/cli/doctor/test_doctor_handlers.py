# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn doctor`` finds other handlers of scheduled events, and accuses nobody of what it cannot tell."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from forewarn.cli.doctor.check import NOT_CHECKED, OK, TROUBLE, WARNING, Check
from forewarn.cli.doctor.linux.handlers import handlers
from tools.worlds.fake_machines import UNIT, FakeMachine

URL = "http://169.254.169.254/metadata/scheduledevents?api-version=2020-07-01"
# Only read, never run: a handler that polls once a minute.
POLLS = f"#!/bin/sh\nwhile sleep 60; do curl -H Metadata:true '{URL}'; done\n"
HARMLESS = "#!/bin/sh\ncurl -H Metadata:true http://169.254.169.254/metadata/identity/oauth2/token\n"
OWN = {500, 900}  # the doctor, and the runner


@pytest.fixture
def machine(tmp_path: Path) -> FakeMachine:
    """Return a machine with a runner, its hook, a shell that has started the doctor, and Azure's agents."""
    built = FakeMachine(tmp_path)
    built.process(400, "sudo", "forewarn", "doctor", "--config", f"/etc/{URL}")
    built.process(500, "python3", "/opt/forewarn/forewarn.pyz", "doctor", parent=400)
    built.process(900, "python3", "/opt/forewarn/forewarn.pyz", "run", sockets=[77])
    built.process(901, "/bin/sh", "-c", f"curl {URL}", parent=900)
    built.process(902, "curl", URL, parent=901, sockets=[78])
    built.process(910, "/usr/bin/python3", "-u", "/usr/sbin/waagent", "-daemon", sockets=[79])
    built.process(911, "/var/lib/waagent/Microsoft.Azure.Monitor-1.0/agent", "169.254.169.254", sockets=[80])
    built.process(912, "/usr/sbin/sshd", "-D", sockets=[81])
    built.write("/usr/sbin/waagent", HARMLESS)
    built.connect("169.254.169.254", 77, 78, 79, 80)
    return built


def found(machine: FakeMachine) -> list[Check]:
    return handlers(machine, OWN, UNIT)


def only(machine: FakeMachine) -> Check:
    (check,) = found(machine)
    return check


def test_ours_and_azures_agents_are_not_accused(machine: FakeMachine) -> None:
    assert only(machine) == Check("handlers", OK, "no other program was found that asks for scheduled events")


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (["/usr/local/bin/azure-scheduledevents-manager", "--drain.enable"], "webdevops' manager"),
        (["/azure-scheduledevents-manager"], "webdevops' manager"),
        (["/usr/bin/python3", "-tt", "/usr/lib/ocf/resource.d/heartbeat/azure-events-az", "monitor"], "Pacemaker"),
        (["python2.7", "/usr/lib/ocf/resource.d/heartbeat/azure-events", "monitor"], "Pacemaker"),
    ],
)
def test_a_known_handler_that_runs_is_trouble(machine: FakeMachine, argv: list[str], text: str) -> None:
    machine.process(950, *argv)
    check = only(machine)
    assert (check.state, check.name) == (TROUBLE, "handlers")
    assert "process 950" in check.text
    assert text in check.text
    assert check.hint


@pytest.mark.parametrize(
    "argv", [["vim", "/usr/lib/ocf/resource.d/heartbeat/azure-events-az"], ["less", "azure-scheduledevents-manager"]]
)
def test_whoever_reads_about_a_handler_is_none(machine: FakeMachine, argv: list[str]) -> None:
    machine.process(950, *argv)
    assert only(machine).state == OK


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (["curl", "-s", URL], "its command line names scheduled events"),
        (["sh", "-c", f"while :; do wget {URL.replace('scheduledevents', 'ScheduledEvents')}; done"], "command line"),
        (["/usr/bin/python3.11", "-u", "/opt/poll.py"], "its script asks for scheduled events"),
        (["/bin/bash", "/opt/poll.py", "now"], "its script asks for scheduled events"),
        (["/usr/bin/watcher", "--metadata=169.254.169.254"], "its command line names 169.254.169.254"),
        (["waagent-like", "--x", URL], "its command line names scheduled events"),
    ],
)
def test_what_asks_for_events_may_answer_them(machine: FakeMachine, argv: list[str], why: str) -> None:
    machine.write("/opt/poll.py", POLLS)
    machine.process(950, *argv)
    check = only(machine)
    assert check.state == WARNING
    assert check.text.startswith("process 950 (")
    assert " may answer events: " in check.text
    assert why in check.text


@pytest.mark.parametrize(
    "argv", [["/bin/bash", "/opt/token.sh"], ["tail", "-f", "/opt/poll.py"], ["python3", "gone.py"]]
)
def test_other_scripts_are_not_accused(machine: FakeMachine, argv: list[str]) -> None:
    machine.write("/opt/token.sh", HARMLESS)
    machine.write("/opt/poll.py", POLLS)
    machine.process(950, *argv)
    assert only(machine).state == OK


def test_script_is_found_relative_to_its_process(machine: FakeMachine) -> None:
    machine.process(950, "python3", "poll.py")
    machine.write("/proc/950/cwd/poll.py", POLLS)
    machine.process(951, "python3", "/app/poll.py")
    machine.write("/proc/951/root/app/poll.py", POLLS)
    assert [check.text.split()[1] for check in sorted(found(machine))] == ["950", "951"]


def test_inaccessible_process_may_answer_events(machine: FakeMachine, monkeypatch: pytest.MonkeyPatch) -> None:
    original = Path.stat

    def refused(path: Path, *, follow_symlinks: bool = True) -> os.stat_result:
        if "951" in path.parts and "root" in path.parts:
            raise PermissionError(13, "Permission denied")
        return original(path, follow_symlinks=follow_symlinks)

    machine.process(951, "python3", "/opt/poll.py")
    machine.write("/opt/poll.py", POLLS)
    monkeypatch.setattr(Path, "stat", refused)
    assert only(machine).text.startswith("process 951 (python3 /opt/poll.py) may answer events")


@pytest.mark.skipif(sys.byteorder != "little", reason="the kernel writes addresses in its own byte order")
def test_a_connection_to_the_address_is_a_may(machine: FakeMachine) -> None:
    machine.process(950, "/usr/bin/watcher", sockets=[90])
    machine.process(951, "/usr/bin/browser", sockets=[91])
    machine.connect("169.254.169.254", 77, 78, 79, 80, 90)
    check = only(machine)
    assert (check.state, check.text.partition(": ")[2]) == (WARNING, "it is connected to 169.254.169.254")
    assert "process 950" in check.text
    machine.connect("10.0.0.4", 77, 90)
    assert only(machine).state == OK


def test_arguments_are_not_shown(machine: FakeMachine) -> None:
    machine.process(950, "/usr/bin/python3", "-u", "/opt/poll.py", "--password=s3cret")
    machine.process(951, "curl", "-H", "Authorization: s3cret", URL)
    machine.write("/opt/poll.py", POLLS)
    texts = [check.text for check in sorted(found(machine))]
    assert [text.partition(" may ")[0] for text in texts] == [
        "process 950 (/usr/bin/python3 /opt/poll.py)",
        "process 951 (curl)",
    ]


def test_check_without_root_is_incomplete(machine: FakeMachine, monkeypatch: pytest.MonkeyPatch) -> None:
    original = Path.iterdir

    def refused(path: Path) -> Iterator[Path]:
        if path.name == "fd" and path.parent.name == "1":
            raise PermissionError(13, "Permission denied")
        return iter(original(path))

    monkeypatch.setattr(Path, "iterdir", refused)
    check = only(machine)
    assert (check.state, check.hint) == (NOT_CHECKED, "Run this as root.")
    machine.process(950, "/usr/bin/azure-scheduledevents-manager")
    assert only(machine).state == TROUBLE, "what is seen counts"


def test_a_process_that_has_ended_meanwhile(machine: FakeMachine) -> None:
    machine.path("/proc/960").mkdir()
    machine.path("/proc/961").mkdir()
    machine.write("/proc/961/cmdline", f"curl\0{URL}\0")
    machine.write("/proc/961/stat", "")
    assert only(machine).state == OK


@pytest.mark.parametrize(
    ("agent", "state"), [("azure-events-az", TROUBLE), ("azure-events", TROUBLE), ("azure-lb", OK)]
)
def test_the_agent_of_a_cluster(machine: FakeMachine, agent: str, state: str) -> None:
    cib = f'<cib><primitive id="x" class="ocf" provider="heartbeat" type="{agent}"/></cib>'
    machine.write("/var/lib/pacemaker/cib/cib.xml", cib)
    check = only(machine)
    assert check.state == state
    assert state == OK or f"has a resource {agent}:" in check.text


SERVICE = "[Service]\nExecStart=-/opt/poll.sh --every \\\n  60\n"
MANAGER = "[Service]\nExecStart=/usr/bin/azure-scheduledevents-manager\n"


@pytest.mark.parametrize(
    ("text", "properties", "state", "said"),
    [
        (SERVICE, {"ActiveState": "active", "MainPID": "970"}, WARNING, "poller.service runs, and may answer events"),
        (SERVICE, {"UnitFileState": "enabled"}, WARNING, "poller.service is started at boot, and may"),
        (SERVICE, {"TriggeredBy": "poller.timer"}, WARNING, "poller.service is started by poller.timer, and may"),
        (SERVICE, {"TriggeredBy": "poller.socket"}, OK, ""),
        (SERVICE, {}, OK, ""),
        (SERVICE.replace("ExecStart=", "# ExecStart="), {"ActiveState": "active"}, OK, ""),
        (SERVICE.replace("/opt/poll.sh", "/opt/token.sh"), {"ActiveState": "active"}, OK, ""),
        (MANAGER, {"ActiveState": "active"}, TROUBLE, "poller.service runs: webdevops' manager"),
        (MANAGER, {"ActiveState": "failed"}, OK, ""),
    ],
)
def test_units(machine: FakeMachine, text: str, properties: dict[str, str], state: str, said: str) -> None:
    machine.write("/opt/poll.sh", POLLS)
    machine.write("/opt/token.sh", HARMLESS)
    machine.unit("poller.service", text, **properties)
    machine.unit(UNIT, f"[Service]\nExecStart=/opt/poll.sh {URL}\n", ActiveState="active")  # ours, whatever it is
    check = only(machine)
    assert check.state == state
    assert check.text.startswith(said)


def test_unit_with_a_known_process_is_named_once(machine: FakeMachine) -> None:
    machine.process(970, "/usr/bin/azure-scheduledevents-manager")
    machine.unit("manager.service", MANAGER, ActiveState="active", MainPID="970")
    assert "process 970" in only(machine).text


@pytest.mark.parametrize(
    ("path", "content", "state"),
    [
        ("/etc/crontab", "* * * * * root /opt/poll.sh\n", WARNING),
        ("/etc/cron.d/poll", f"PATH=/bin\n* * * * * root curl {URL}\n", WARNING),
        ("/var/spool/cron/root", "*/5 * * * * sh /opt/poll.sh >/dev/null\n", WARNING),
        ("/var/spool/cron/crontabs/app", "* * * * * azure-scheduledevents-manager\n", TROUBLE),
        ("/etc/cron.hourly/poll", POLLS, WARNING),
        ("/etc/cron.d/poll", f"# * * * * * root curl {URL}\n", OK),
        ("/etc/cron.d/token", "* * * * * root /opt/token.sh\n", OK),
        ("/etc/cron.daily/token", HARMLESS, OK),
    ],
)
def test_cron(machine: FakeMachine, path: str, content: str, state: str) -> None:
    machine.write("/opt/poll.sh", POLLS)
    machine.write("/opt/token.sh", HARMLESS)
    machine.write(path, content)
    check = only(machine)
    assert check.state == state
    assert state == OK or path in check.text


def test_a_program_in_binary_form_is_not_searched(machine: FakeMachine) -> None:
    machine.write("/opt/poll.sh", "\x7fELF\0\0" + POLLS)
    machine.write("/etc/crontab", "* * * * * root /opt/poll.sh\n")
    assert only(machine).state == OK


def test_only_regular_files_are_opened(machine: FakeMachine) -> None:
    os.mkfifo(machine.path("/opt-pipe"))
    machine.write("/etc/crontab", "* * * * * root /opt-pipe /etc /dev/watchdog\n")
    machine.process(950, "bash", "/opt-pipe")
    assert only(machine).state == OK


def test_without_processes_nothing_was_checked(tmp_path: Path) -> None:
    machine = FakeMachine(tmp_path)
    for name in ("cmdline", "stat"):
        machine.path(f"/proc/1/{name}").unlink()
    assert only(machine).state == NOT_CHECKED
