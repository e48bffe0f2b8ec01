# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn doctor`` on a machine with Windows: the service, its log, the clock, and who else answers events."""

from __future__ import annotations

from pathlib import Path

import pytest
from forewarn.cli.doctor.check import NOT_CHECKED, OK, TROUBLE, WARNING, Check
from forewarn.cli.doctor.windows import checks
from forewarn.cli.doctor.windows.clock import clock
from forewarn.cli.doctor.windows.command_line import words
from forewarn.cli.doctor.windows.handlers import handlers
from forewarn.system.common.service_status import START_PENDING, STOPPED, ServiceStatus
from tools.worlds.windows.machine import (
    EVENT_SOURCE,
    HOST_CLOCK,
    PARAMETERS,
    PYZ,
    FakeWindowsMachine,
    failure_actions,
)


@pytest.fixture
def machine(tmp_path: Path) -> FakeWindowsMachine:
    return FakeWindowsMachine(tmp_path)


@pytest.mark.parametrize(
    ("settings", "state", "said", "hint"),
    [
        ({}, OK, "starts with Windows, and runs", ""),
        ({"ImagePath": PYZ}, TROUBLE, "does not run forewarn run --service", "role"),
        ({"Start": 3}, TROUBLE, "by hand alone: after a reboot", "sc.exe config forewarn start= auto"),
        ({"Start": 4}, TROUBLE, "is disabled", "sc.exe config forewarn start= auto"),
        ({"FailureActions": None}, WARNING, "not started again after a crash", "sc.exe failure forewarn"),
        ({"FailureActions": failure_actions(1, 1, 0)}, WARNING, "not started again", "sc.exe failure forewarn"),
        ({"FailureActions": failure_actions()}, WARNING, "not started again", "sc.exe failure forewarn"),
        ({"FailureActionsOnNonCrashFailures": 0}, WARNING, "by a fault", "sc.exe failureflag forewarn 1"),
        ({"DelayedAutostart": 1}, WARNING, "minutes after Windows", "sc.exe config forewarn start= auto"),
    ],
)
def test_settings_of_the_service(
    machine: FakeWindowsMachine, settings: dict[str, object], state: str, said: str, hint: str
) -> None:
    machine.own.update(settings)
    check = checks.installed(machine, "forewarn")
    assert (check.state, bool(check.hint)) == (state, state != OK)
    assert said in check.text
    assert hint in check.hint


@pytest.mark.parametrize(
    ("status", "state", "said"),
    [
        (ServiceStatus("forewarn", START_PENDING, 0, 900), WARNING, "is starting"),
        (ServiceStatus("forewarn", STOPPED), TROUBLE, "is stopped: nothing polls"),
        (ServiceStatus("forewarn", STOPPED, 2), TROUBLE, "ended with code 2: nothing polls"),
        (None, NOT_CHECKED, "cannot be asked more"),
    ],
)
def test_state_of_the_service(machine: FakeWindowsMachine, status: ServiceStatus, state: str, said: str) -> None:
    machine.states = {} if status is None else {"forewarn": status}
    check = checks.installed(machine, "forewarn")
    assert check.state == state
    assert said in check.text


def test_without_the_service_it_is_to_be_installed(machine: FakeWindowsMachine) -> None:
    assert checks.installed(machine, "other").state == TROUBLE
    assert [check.name for check in checks.of_service(machine, "other", None)] == ["installed", "eventlog"]
    assert checks.own_pids(machine, "other") == set()
    assert checks.own_pids(machine, "forewarn") == {900}


def test_what_the_service_starts_is_there(machine: FakeWindowsMachine) -> None:
    machine.path(PYZ).unlink()
    check = checks.files(machine, str(machine.own["ImagePath"]))
    assert check == Check("files", TROUBLE, f"there is no {PYZ}, which the service starts", check.hint)


def test_source_of_events_is_registered(machine: FakeWindowsMachine) -> None:
    assert checks.event_log(machine).state == OK
    del machine.registry[EVENT_SOURCE]
    assert checks.event_log(machine).state == WARNING


def test_full_disk_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert checks.disk(str(tmp_path / "none")).state == NOT_CHECKED
    assert checks.disk(str(tmp_path)).text.endswith(f" MiB are free for {tmp_path}")
    monkeypatch.setattr(checks, "_LEAST_BYTES", 1 << 80)
    assert checks.disk(str(tmp_path)).state == WARNING


def test_service_is_given_the_credentials_that_exist(
    machine: FakeWindowsMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "CREDENTIALS", (str(tmp_path / "credentials"), str(tmp_path / "none")))
    assert checks.credentials(machine, "forewarn", ["token"]) == (set(), [])
    (tmp_path / "credentials").mkdir()
    (tmp_path / "credentials" / "token").touch()
    assert checks.credentials(machine, "forewarn", ["token"]) == ({"token"}, [])


@pytest.mark.parametrize(
    ("kind", "host", "status", "state", "said"),
    [
        ("NTP", 0, "running", OK, "(NTP)"),
        ("NoSync", 1, "running", OK, "the clock of the host"),
        ("NoSync", 0, "running", TROUBLE, "asks nobody"),
        ("NTP", 1, "stopped", TROUBLE, "is stopped"),
        ("NTP", 1, None, NOT_CHECKED, "cannot be asked"),
    ],
)
def test_the_time_service(
    machine: FakeWindowsMachine, kind: str, host: int, status: str | None, state: str, said: str
) -> None:
    machine.registry[PARAMETERS]["Type"] = kind
    machine.registry[HOST_CLOCK]["Enabled"] = host
    machine.states = {} if status is None else {"W32Time": ServiceStatus("W32Time", status)}
    check = clock(machine)
    assert (check.state, bool(check.hint)) == (state, state != OK)
    assert said in check.text


# Who else answers events

ASKS = "Invoke-RestMethod -Uri http://169.254.169.254/metadata/scheduledevents?api-version=2020-07-01"


def found(machine: FakeWindowsMachine) -> list[tuple[str, str]]:
    return [(check.state, check.text) for check in handlers(machine, (), "forewarn")]


def test_nobody_else_is_found(machine: FakeWindowsMachine) -> None:
    machine.add_service("Spooler", r"%SystemRoot%\System32\spoolsv.exe")
    machine.add_service("driver", "azure-events.exe", kind=1)
    machine.add_service("off", r"C:\tools\azure-scheduledevents-manager.exe", start=4)
    machine.add_service("WindowsAzureGuestAgent", r"C:\WindowsAzure\GuestAgent\WaAppAgent.exe http://169.254.169.254")
    assert found(machine) == [(OK, "no other service or scheduled task was found that asks for scheduled events")]


@pytest.mark.parametrize(
    ("image", "state", "said"),
    [
        (r"C:\tools\azure-scheduledevents-manager.exe --drain", TROUBLE, "the service other: webdevops' manager"),
        (r'"C:\Program Files\m\azure-scheduledevents-manager.exe"', TROUBLE, "webdevops' manager"),
        (r"C:\t\x.exe http://169.254.169.254/metadata/ScheduledEvents", WARNING, "names scheduled events"),
        (r'powershell.exe -File "C:\my scripts\watch.ps1"', WARNING, r"C:\my scripts\watch.ps1 asks for"),
        (r"C:\t\x.exe --host 169.254.169.254", WARNING, "names 169.254.169.254"),
    ],
)
def test_another_service_is_found(machine: FakeWindowsMachine, image: str, state: str, said: str) -> None:
    machine.write(r"C:\my scripts\watch.ps1", ASKS)
    machine.add_service("other", image)
    ((found_state, text),) = found(machine)
    assert found_state == state
    assert said in text


def test_script_under_nssm_is_found(machine: FakeWindowsMachine) -> None:
    machine.write(r"C:\watch.ps1", ASKS)
    machine.add_service("watch", r"C:\nssm\nssm.exe")
    parameters = {"Application": "powershell.exe", "AppParameters": r"-Command \"& 'C:\watch.ps1'\""}
    machine.registry[r"SYSTEM\CurrentControlSet\Services\watch\Parameters"] = {**parameters}
    assert found(machine) == [(WARNING, r"the service watch may answer events: C:\watch.ps1 asks for scheduled events")]


TASK = """<Task><Triggers><BootTrigger><Enabled>true</Enabled></BootTrigger></Triggers>
<Settings><Enabled>{enabled}</Enabled></Settings>
<Actions><Exec><Command>C:\\Windows\\notepad.exe</Command></Exec>
<Exec><Command>"C:\\Program Files\\pwsh.exe"</Command><Arguments>-File &quot;C:\\watch.ps1&quot;</Arguments></Exec>
</Actions></Task>"""


def test_scheduled_task_is_found(machine: FakeWindowsMachine) -> None:
    machine.write(r"C:\watch.ps1", ASKS)
    machine.scheduled = {r"Ours\watch": TASK.format(enabled="true")}
    assert found(machine) == [
        (WARNING, r"the task Ours\watch may answer events: C:\watch.ps1 asks for scheduled events")
    ]
    machine.scheduled = {r"Ours\watch": TASK.format(enabled="false")}
    assert found(machine)[0][0] == OK


def test_hidden_tasks_are_said(machine: FakeWindowsMachine) -> None:
    machine.scheduled = None
    assert found(machine)[0][0] == NOT_CHECKED
    machine.add_service("other", r"C:\tools\azure-scheduledevents-manager.exe")
    assert found(machine)[0][0] == TROUBLE


@pytest.mark.parametrize(
    ("command", "split"),
    [
        (r'"C:\a b\c.exe" -x "d e"', [r"C:\a b\c.exe", "-x", "d e"]),
        (r"%systemroot%\x.exe %nothing%", [r"C:\Windows\x.exe", "%nothing%"]),
        ("", []),
    ],
)
def test_words_of_a_command_line(command: str, split: list[str]) -> None:
    assert words(command, {"SystemRoot": r"C:\Windows"}) == split
