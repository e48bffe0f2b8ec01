# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The runner as a service of real systemds, of three Debian releases: drains, crashes, reboots, freezes, reloads."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ..images import SUITES
from ..lab import Lab
from ..sizes import ONE_SUITE
from .service import ARTIFACT, POLICY, Service, compile_text


@pytest.fixture(scope="module")
def services(lab: Lab, pyz: Path) -> list[Service]:
    """Return a runner on each host: installed once, tested one after the other."""
    found = [Service(host) for host in lab.hosts]
    compile_text(POLICY)  # once, for all three
    with ThreadPoolExecutor(len(found)) as pool:
        list(pool.map(lambda service: service.install(pyz), found))
    return found


@pytest.fixture(params=ONE_SUITE)
def service(services: list[Service], lab: Lab, request: pytest.FixtureRequest) -> Service:
    """Return the runner of a host, with nothing scheduled, and what was before forgotten."""
    service = services[SUITES.index(request.param)]
    for event in lab.emulator.state()["events"]:
        if event["status"] == "Scheduled":
            lab.emulator.cancel(event["event_id"])
        elif event["status"] == "Started":
            lab.emulator.finish(event["event_id"])
    service.settle()
    return service


def approvals(lab: Lab, event_id: str) -> int:
    """Return how often that event was approved; no other may have been."""
    return [entry["event_ids"] for entry in lab.emulator.requests() if entry["method"] == "POST"].count([event_id])


def app_state(service: Service) -> str:
    return service.host.properties("app", "ActiveState")["ActiveState"]


@pytest.mark.parametrize("service", SUITES, indirect=True)
def test_a_reboot_is_drained_approved_and_survived(lab: Lab, service: Service) -> None:
    """The whole record of an event: program and unit, approval, the reboot itself, recovery, and the reports."""
    host, emulator = service.host, lab.emulator
    shown = host.properties("forewarn", "ActiveState", "SubState", "Type", "StatusText", "WatchdogUSec")
    assert (shown["ActiveState"], shown["SubState"], shown["WatchdogUSec"]) == ("active", "running", "4min")
    assert shown["Type"] == ("notify-reload" if host.suite == "trixie" else "notify")
    host.wait_for(lambda: host.properties("forewarn", "StatusText")["StatusText"] == "Nothing is scheduled")
    assert "Status: " in host.ssh("systemctl status forewarn").stdout

    service.busy()
    event_id = emulator.schedule("Reboot", [service.host.name])
    service.wait_for_state(event_id, "preparing")
    host.wait_for(lambda: service.calls())
    assert app_state(service) == "active", "its turn comes after the drain"
    assert approvals(lab, event_id) == 0
    service.idle()
    service.wait_for_state(event_id, "started")
    assert approvals(lab, event_id) == 1
    assert app_state(service) == "inactive"

    asked = time.monotonic()
    host.reboot()
    longest = time.monotonic() - asked
    assert app_state(service) == "active", "its unit is enabled"
    emulator.finish(event_id)
    entry = service.wait_for_state(event_id, "done")
    assert service.calls() == [("drain", "prepare", "1", event_id), ("undrain", "recover", "1", event_id)]
    assert approvals(lab, event_id) == 1
    assert entry["outcome"] == "finished"
    assert [(hook["phase"], hook["hook"], hook["status"]) for hook in entry["hooks"]] == [
        ("prepare", "run /usr/local/bin/drain", "succeeded"),
        ("prepare", "stop app.service", "succeeded"),
        ("recover", "start app.service", "succeeded"),
        ("recover", "run /usr/local/bin/undrain", "succeeded"),
    ]
    assert 0 < entry["impact"]["down_seconds"] < longest + 2
    assert entry["impact"]["paused_seconds"] == 0
    assert len({step["boot_id"] for step in entry["entries"]}) == 2
    assert "the machine was down for" in service.command("history")
    assert json.loads(service.command("status", "--json"))["problems"] == []


def test_journalctl_finds_an_event_by_its_id(lab: Lab, service: Service) -> None:
    wanted, other = (
        lab.emulator.schedule("Freeze", [service.host.name], duration_seconds=seconds) for seconds in (5, 60)
    )
    service.wait_for_state(wanted, "started")
    service.wait_for_state(other, "held")
    lines = service.host.ssh(f"journalctl --output=json --no-pager FOREWARN_EVENT_ID={wanted}").stdout.splitlines()
    entries = [json.loads(line) for line in lines]
    assert {"decision", "approved"} <= {entry["FOREWARN_LINE"] for entry in entries}
    decision = next(entry for entry in entries if entry["FOREWARN_LINE"] == "decision")
    assert (decision["FOREWARN_RULE"], decision["FOREWARN_OUTPUT"]) == ("brief-freeze", "approve")
    assert {(entry["_SYSTEMD_UNIT"], entry["SYSLOG_IDENTIFIER"]) for entry in entries} == {
        ("forewarn.service", "forewarn")
    }
    assert not [entry for entry in entries if other in entry["MESSAGE"] and wanted not in entry["MESSAGE"]]


def test_killed_runner_drains_again_before_approving(lab: Lab, service: Service) -> None:
    service.busy()
    event_id = lab.emulator.schedule("Reboot", [service.host.name])
    service.host.wait_for(lambda: service.calls())
    before = service.restarts()
    service.host.ssh("systemctl kill --kill-who=main --signal=KILL forewarn")
    service.host.wait_for(lambda: len(service.calls()) == 2)
    assert service.restarts() == before + 1
    assert approvals(lab, event_id) == 0
    service.idle()
    entry = service.wait_for_state(event_id, "started")
    assert service.calls() == [("drain", "prepare", str(attempt), event_id) for attempt in (1, 2)]
    assert entry["hooks"][0]["attempts"] == 2
    assert approvals(lab, event_id) == 1


def test_power_loss_during_a_drain_repeats_it(lab: Lab, service: Service) -> None:
    service.busy()
    event_id = lab.emulator.schedule("Reboot", [service.host.name])
    service.host.wait_for(lambda: service.calls())
    service.host.cut_power()
    assert approvals(lab, event_id) == 0
    service.host.start()
    service.wait_for_state(event_id, "started")
    assert service.calls() == [("drain", "prepare", str(attempt), event_id) for attempt in (1, 2)]
    assert approvals(lab, event_id) == 1


def test_event_that_ends_during_downtime_is_recovered(lab: Lab, service: Service) -> None:
    event_id = lab.emulator.schedule("Reboot", [service.host.name])
    service.wait_for_state(event_id, "started")
    asked = time.monotonic()
    service.host.stop()
    lab.emulator.finish(event_id)
    time.sleep(1)  # the downtime to be seen
    service.host.start()
    longest = time.monotonic() - asked
    entry = service.wait_for_state(event_id, "done")
    assert service.calls()[-1] == ("undrain", "recover", "1", event_id)
    assert 1 < entry["impact"]["down_seconds"] < longest + 2
    assert app_state(service) == "active"


def test_freeze_is_measured_as_paused_time(lab: Lab, service: Service) -> None:
    event_id = lab.emulator.schedule("Freeze", [service.host.name], duration_seconds=5)
    service.wait_for_state(event_id, "started")
    process = service.host.properties("forewarn", "MainPID")
    asked = time.monotonic()
    service.host.freeze(4)
    service.wait_for_line("impact")
    longest = time.monotonic() - asked
    lab.emulator.finish(event_id)
    entry = service.wait_for_state(event_id, "done")
    assert 3.4 < entry["impact"]["paused_seconds"] < longest + 2
    assert entry["impact"]["down_seconds"] == 0
    assert "the machine stood still for" in service.command("history")
    assert service.host.properties("forewarn", "MainPID") == process


def test_watchdog_restarts_only_a_hanging_runner(lab: Lab, service: Service) -> None:
    service.host.write("[Service]\nWatchdogSec=4s\n", "/run/systemd/system/forewarn.service.d/watchdog.conf")
    service.host.ssh("systemctl daemon-reload && systemctl restart forewarn")  # which counts anew
    time.sleep(6)  # more than a period of the watchdog
    assert service.restarts() == 0
    event_id = lab.emulator.schedule("Reboot", [service.host.name])
    service.wait_for_state(event_id, "started")
    service.host.ssh("systemctl kill --kill-who=main --signal=STOP forewarn")
    service.host.wait_for(lambda: service.restarts() == 1)
    assert "Watchdog timeout" in service.host.ssh("journalctl --unit=forewarn --no-pager").stdout
    lab.emulator.finish(event_id)
    service.wait_for_state(event_id, "done")
    assert [call[0] for call in service.calls()] == ["drain", "undrain"], "what was done is not done again"
    service.host.ssh("rm -r /run/systemd/system/forewarn.service.d && systemctl daemon-reload")


@pytest.mark.parametrize("service", SUITES, indirect=True)
def test_reload_loads_good_artifacts_and_keeps_last_good(lab: Lab, service: Service) -> None:
    host = service.host
    process = host.properties("forewarn", "MainPID", "NRestarts")
    host.write("{}", ARTIFACT)
    host.ssh("systemctl reload forewarn")
    assert ARTIFACT in service.wait_for_line("reload-failed")["MESSAGE"]
    brief = lab.emulator.schedule("Freeze", [service.host.name], duration_seconds=5)
    assert service.wait_for_state(brief, "started")["decision"]["rule"] == "brief-freeze"

    service.replace_policy(POLICY.replace("brief-freeze", "short-freeze"))
    host.ssh("systemctl reload forewarn")
    service.wait_for_line("reloaded")
    short = lab.emulator.schedule("Freeze", [service.host.name], duration_seconds=5)
    assert service.wait_for_state(short, "started")["decision"]["rule"] == "short-freeze"
    assert host.properties("forewarn", "MainPID", "NRestarts") == process
    service.replace_policy(POLICY)
    host.ssh("systemctl reload forewarn")
