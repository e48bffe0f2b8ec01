# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The runner as a service of Windows, which the service control manager starts, reloads and stops."""

from __future__ import annotations

import os
import signal
import time

import pytest
from tools.sites.waiting import wait_until
from tools.worlds.windows.vm import DATA, WindowsVm

POLICY = r"""
name: {name}
rule:
  match:
    - id: reboot
      condition: event.EventType == "Reboot" && affects_me && event.EventStatus == "Scheduled"
      output: approve
      prepare: [{{run: ['C:\hooks\drain.cmd'], timeout: 1m}}]
      recover: [{{run: ['C:\hooks\drain.cmd'], timeout: 1m}}]
    - {{id: rest, output: hold}}
"""
PARAMCHANGE = 6  # SERVICE_CONTROL_PARAMCHANGE
STOP_SECONDS = 30.0  # for which the role lets Windows wait at a shutdown


@pytest.fixture(autouse=True)
def installed(vm: WindowsVm) -> None:
    vm.hook("drain", r">>C:\hooks\said echo %FOREWARN_PHASE%")
    vm.policy(POLICY.format(name="first"))
    vm.configure()


def test_the_bundle_is_a_service(vm: WindowsVm) -> None:
    vm.create_service(quick=False)
    assert vm.service_state() == "STOPPED"
    assert vm.net("start") == "RUNNING"
    (line,) = vm.log("started")
    assert line["state"].endswith(r"\Forewarn\state")
    event = vm.emulator.schedule("Reboot", ["web_0"], notice_seconds=600, impact_seconds=0)
    wait_until(vm.approvals)
    assert (vm.approvals(), vm.said()) == ([[event]], ["prepare"])
    assert vm.json("status")["runner"]["condition"] == "running"
    begun = time.monotonic()
    assert vm.net("stop") == "STOPPED"
    assert time.monotonic() - begun < STOP_SECONDS
    assert vm.exit_codes() == (0, 0)
    assert vm.log("stopped")[0]["signal"] == "SERVICE_CONTROL_STOP"


def test_start_is_pending_until_it_has_begun(vm: WindowsVm) -> None:
    vm.create_service()
    assert vm.sc("start").returncode == 0
    seen = [vm.service_state()]
    while seen[-1] != "RUNNING" and len(seen) < 100:
        seen.append(vm.service_state())
    assert {*seen} <= {"START_PENDING", "RUNNING"}
    assert vm.log("started"), "RUNNING means that the journal has been read"


def test_parameter_change_reloads_the_policies(vm: WindowsVm) -> None:
    vm.create_service()
    assert vm.net("start") == "RUNNING"
    before = vm.log("started")[0]["digest"]
    vm.policy(POLICY.format(name="second"))
    vm.control(PARAMCHANGE)
    wait_until(lambda: vm.log("reloaded"))
    (line,) = vm.log("reloaded")
    assert (line["before"], line["digest"]) == (before, vm.json("status")["on_disk"]["policy"])
    assert line["digest"] != before
    assert vm.service_state() == "RUNNING"


def test_stop_waits_for_a_running_hook(vm: WindowsVm) -> None:
    """As on Linux: the hook is asked to end, and the next runner prepares again."""
    vm.hook("drain", r">>C:\hooks\said echo %FOREWARN_PHASE%", "ping -n 100 127.0.0.1 >nul")
    vm.create_service()
    assert vm.net("start") == "RUNNING"
    vm.emulator.schedule("Reboot", ["web_0"], notice_seconds=600, impact_seconds=0)
    wait_until(vm.said)
    begun = time.monotonic()
    assert vm.net("stop") == "STOPPED"
    assert time.monotonic() - begun < STOP_SECONDS
    assert vm.processes("ping") == []
    vm.hook("drain", r">>C:\hooks\said echo %FOREWARN_PHASE%")
    assert vm.net("start") == "RUNNING"
    vm.wait_until_over()
    assert vm.said() == ["prepare", "prepare", "recover"]


@pytest.mark.parametrize("broken", ["configuration", "policy"])
def test_fault_at_the_start_is_an_exit_code(vm: WindowsVm, broken: str) -> None:
    vm.create_service()
    if broken == "policy":
        vm.wine.path(rf"{DATA}\policies\policy.json").write_text("{}")
    else:
        vm.configure(interval=-1)
    assert vm.net("start") == "STOPPED"
    assert vm.exit_codes()[0] == 1066, "ERROR_SERVICE_SPECIFIC_ERROR, for which the manager starts it again"
    assert vm.exit_codes()[1] != 0


def test_killed_service_forgets_nothing(vm: WindowsVm) -> None:
    vm.create_service()
    assert vm.net("start") == "RUNNING"
    event = vm.emulator.schedule("Reboot", ["web_0"], notice_seconds=600, start_delay_seconds=300, impact_seconds=0)
    wait_until(lambda: [record.state for record in vm.records()] == ["approved"])  # the log has it before the journal
    os.kill(vm.service_pid(), signal.SIGKILL)
    # Wine's manager does not notice it.
    vm.start().wait_for("resumed", event_id=event, state="approved")
    vm.emulator.start(event)
    vm.wait_until_over()
    assert (vm.said(), len(vm.approvals())) == (["prepare", "recover"], 1)


def test_option_service_is_for_the_manager(vm: WindowsVm) -> None:
    alone = vm.forewarn("run", "--service", "--config", rf"{DATA}\config.json")
    assert alone.returncode != 0
    assert "service control manager" in alone.stderr
