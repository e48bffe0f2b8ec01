# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role on VMs with Windows that are not there: what it asks of ``ansible.windows``, and what comes of it.

Each option that a task gives is held against the documentation of its module. No PowerShell was run.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from tools.sites.windows_plays import PlaybookRun, WindowsPlays, embeddable
from tools.worlds.windows.host import ADMINISTRATORS, DATA, INSTALL, WindowsHost, opened

pytestmark = pytest.mark.in_turn(3)

ROLLOUT = "forewarn.azure.rollout"
CONFIG = f"{DATA}\\config.json"
SOURCE = r"HKLM:\SYSTEM\CurrentControlSet\Services\EventLog\Application\forewarn"


@pytest.fixture
def vm(plays: WindowsPlays, first: PlaybookRun, request: pytest.FixtureRequest) -> str:
    """Return the name of a VM on which the first rollout is done."""
    name = str(request.node.name).partition("[")[0].replace("_", "-")
    plays.copy("vm", name)
    return name


def config(host: WindowsHost) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(host.read(CONFIG) or b"{}")
    return content


def unchanged(host: WindowsHost) -> dict[str, Any]:
    """Return the state of a VM without what was asked, and without how often something was written."""
    return {name: value for name, value in host.state.items() if name not in ("calls", "time")}


def test_first_rollout_installs_and_starts_service(plays: WindowsPlays, first: PlaybookRun) -> None:
    host = plays.vm("vm")
    (program,) = (path for path in host.files if path.endswith(".pyz"))
    (python,) = (path for path in host.files if path.endswith(r"\python.exe"))
    service = host.state["service"]
    checksum = service["path"].partition("-X forewarn=")[2][:16]
    windowed = python.replace("python.exe", "pythonw.exe")
    assert service == {
        "path": f'"{windowed}" -I -S -X forewarn={checksum} "{program}" run --service --config "{CONFIG}"',
        "display_name": "Forewarn",
        "description": "Policy engine for Azure Scheduled Events",
        "username": "LocalSystem",
        "start_mode": "auto",
        "failure_actions": [{"type": "restart", "delay_ms": each} for each in (1000, 1000, 5000)],
        "failure_reset_period_sec": 60,
        "failure_actions_on_non_crash_failure": True,
        "pre_shutdown_timeout_ms": 30000,
    }
    assert host.state["process"]["command_line"] == service["path"]
    assert host.read(f"{INSTALL}\\forewarn.cmd") == f'@"{python}" -I -S -X utf8 "{program}" %*'.encode()
    assert config(host)["artifact"].startswith(rf"{DATA}\policies\policy-")
    assert host.read(rf"{INSTALL}\hooks\of web\wait.ps1") == b"exit 0\r\n"
    assert host.state["registry"] == {
        SOURCE: {
            "EventMessageFile": [r"%SystemRoot%\System32\EventCreate.exe", "expandstring"],
            "TypesSupported": [7, "dword"],
        }
    }


def test_only_administrators_own_and_change_files(plays: WindowsPlays, first: PlaybookRun) -> None:
    host = plays.vm("vm")
    below = [path for part in ("policies", "state", "credentials", "log") for path in host.below(f"{DATA}\\{part}")]
    owned = [*host.below(INSTALL), *below, DATA, CONFIG]
    assert {host.files[path]["owner"] for path in owned} == {ADMINISTRATORS}
    everything = [["S-1-5-18", "FullControl"], [ADMINISTRATORS, "FullControl"]]
    assert host.state["permissions"] == {INSTALL: [*everything, ["S-1-5-32-545", "ReadAndExecute"]], DATA: everything}
    assert host.state["protected"] == [INSTALL, DATA]


def test_a_secret_is_handed_over_by_stdin_alone(plays: WindowsPlays, first: PlaybookRun) -> None:
    asked = [call for call in plays.vm("vm").asked("win_command") if "credential" in call["argv"]]
    assert [(call["argv"][-2:], call["stdin"]) for call in asked] == [(["credential", "token"], "hunter2")]
    calls = json.dumps(
        [
            {**call, "options": {**call["options"], "stdin": ""}}
            for call in plays.vm("vm").state["calls"]
            if "options" in call
        ]
    )
    assert "hunter2" not in calls
    assert "hunter2" not in first.text


def test_second_rollout_changes_nothing(plays: WindowsPlays, given: dict[str, Any], vm: str) -> None:
    before = unchanged(plays.vm(vm))
    played = plays.play(ROLLOUT, limit=vm, **given)
    assert (played.code, played.changed(vm)) == (0, 0), played.text[-4000:]
    assert unchanged(plays.vm(vm)) == before


def test_another_policy_is_a_reload(plays: WindowsPlays, given: dict[str, Any], vm: str) -> None:
    service = plays.vm(vm).state["service"]
    played = plays.play(ROLLOUT, limit=vm, **{**given, "forewarn_policies": ["more.yml"]})
    assert played.code == 0, played.text[-4000:]
    host = plays.vm(vm)
    assert host.state["log"] == ["started", "reloaded"]
    assert host.state["service"] == service
    assert host.asked("win_command")[-2]["argv"] == [
        r"C:\Windows\System32\sc.exe",
        "control",
        "forewarn",
        "paramchange",
    ]
    assert json.loads(host.state["process"]["config"]) == config(host)
    going_back = plays.play(ROLLOUT, limit=vm, **{**given, "forewarn_policy_version": "previous"})
    assert going_back.code == 0, going_back.text[-4000:]
    assert config(plays.vm(vm)) == config(plays.vm("vm"))
    assert plays.vm(vm).state["log"] == ["started", "reloaded", "reloaded"]


def test_other_settings_and_secrets_are_a_restart(plays: WindowsPlays, given: dict[str, Any], vm: str) -> None:
    more = {"forewarn_vm_name": "web_0", "forewarn_credentials": {"other": "hunter3"}}
    played = plays.play(ROLLOUT, limit=vm, **{**given, **more})
    assert played.code == 0, played.text[-4000:]
    host = plays.vm(vm)
    assert host.state["log"] == ["started", "started"]
    assert config(host)["vm_name"] == "web_0"
    assert not host.exists(rf"{DATA}\credentials\token")
    again = plays.play(ROLLOUT, limit=vm, **{**given, **more, "forewarn_credentials": {"other": "hunter4"}})
    assert again.code == 0, again.text[-4000:]
    assert plays.vm(vm).state["log"] == ["started", "started", "started"]


def test_failing_health_restores_the_former_runner(plays: WindowsPlays, given: dict[str, Any], vm: str) -> None:
    before = plays.vm(vm)
    plays.change(vm, deaf_interval=7)
    python = embeddable(plays.directory / "other.zip", minor=12)
    changed = {"forewarn_interval": 7, "forewarn_hooks": ["hooks/drain.cmd"], "forewarn_windows_python": python}
    played = plays.play(ROLLOUT, limit=vm, **{**given, **changed})
    assert played.code == 2
    assert "The metadata service does not answer. It was given 0 s. The previous files are restored." in played.text
    host = plays.vm(vm)
    for name in ("service", "process", "links"):
        assert host.state[name] == before.state[name], name
    for path in (CONFIG, f"{INSTALL}\\forewarn.cmd"):
        assert host.read(path) == before.read(path)
        assert host.files[path]["owner"] == ADMINISTRATORS


def test_refused_configuration_is_never_in_use(plays: WindowsPlays, given: dict[str, Any], vm: str) -> None:
    before = plays.vm(vm)
    plays.change(vm, refusal="the state directory is on a full disk")
    played = plays.play(ROLLOUT, limit=vm, **{**given, "forewarn_interval": 7})
    assert played.code == 2
    assert "the state directory is on a full disk. The previous files were not replaced." in played.text
    host = plays.vm(vm)
    assert (config(host), host.state["process"]) == (config(before), before.state["process"])
    assert not host.exists(f"{DATA}\\new.json")


def test_failing_script_is_told_by_its_message(plays: WindowsPlays, given: dict[str, Any], vm: str) -> None:
    """win_powershell fails without a message of its own."""
    plays.change(vm, failing_scripts={"write": "There is not enough space on the disk."})
    played = plays.play(ROLLOUT, limit=vm, **{**given, "forewarn_interval": 7})
    assert played.code == 2
    assert '"There is not enough space on the disk. The previous files were not replaced."' in played.text


def test_policies_that_nobody_can_read_are_doubt(plays: WindowsPlays, given: dict[str, Any], vm: str) -> None:
    """A command that fails does not mean that nothing is in use."""
    plays.change(vm, shell_fails=True)
    unnamed = {name: value for name, value in given.items() if name != "forewarn_policies"}
    played = plays.play(ROLLOUT, limit=vm, **unnamed)
    assert played.code == 2
    assert "In use is policies that cannot be read. No policies are named" in played.text


def test_damaged_interpreter_is_brought_again(plays: WindowsPlays, given: dict[str, Any], vm: str) -> None:
    with opened(plays.vms / f"{vm}.json") as host:
        (path,) = (path for path in host.files if path.endswith(r"\pythonw.exe"))
        host.remove(path)
    played = plays.play(ROLLOUT, limit=vm, **given)
    assert played.code == 0, played.text[-4000:]
    assert plays.vm(vm).exists(path)


def test_a_failed_first_rollout_leaves_nothing_running(plays: WindowsPlays, given: dict[str, Any]) -> None:
    plays.host("fresh")
    plays.change("fresh", refusal="there is no right for it")
    played = plays.play(ROLLOUT, limit="fresh", **given)
    assert played.code == 2
    assert "there is no right for it. There is no previous version to restore." in played.text
    assert plays.vm("fresh").state["service"] is None


@pytest.mark.parametrize("fresh", [True, False], ids=["first", "second"])
def test_check_mode_touches_nothing(plays: WindowsPlays, given: dict[str, Any], vm: str, fresh: bool) -> None:
    if fresh:
        vm = "checked"
        plays.host(vm)
    before = unchanged(plays.vm(vm))
    played = plays.play(ROLLOUT, "--check", "--diff", limit=vm, **{**given, "forewarn_policies": ["more.yml"]})
    assert played.code == 0, played.text[-4000:]
    assert played.changed(vm) > 0
    assert unchanged(plays.vm(vm)) == before
    assert '+  match: [{id: freeze, condition: event.EventType == "Freeze" || event.EventType' in played.text


def test_old_versions_are_removed(plays: WindowsPlays, given: dict[str, Any], vm: str) -> None:
    for interval in (2, 3, 4):
        played = plays.play(ROLLOUT, limit=vm, **{**given, "forewarn_interval": interval, "forewarn_keep": 1})
        assert played.code == 0, played.text[-4000:]
    names = [path.rpartition("\\")[2] for path in plays.vm(vm).files]
    assert [name for name in names if name.startswith("config.json.")] == []
    assert len([name for name in names if name.startswith(("python-", "policy-", "hooks-"))]) == 3


@pytest.mark.parametrize("purge", [False, True])
def test_removal_leaves_the_journal_unless_told(plays: WindowsPlays, vm: str, purge: bool) -> None:
    played = plays.play("forewarn.azure.remove", limit=vm, forewarn_purge=purge)
    assert played.code == 0, played.text[-4000:]
    host = plays.vm(vm)
    assert (host.state["service"], host.state["process"], host.state["registry"], host.state["links"]) == (
        None,
        None,
        {},
        {},
    )
    kept = [] if purge else [DATA, f"{DATA}\\state", f"{DATA}\\log"]
    assert [path for path in host.files if "Forewarn" in path] == kept
