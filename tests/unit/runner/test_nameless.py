# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A VM that does not know its name for a while, since the instance metadata do not answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from forewarn.emulator.spec import EventSpec
from forewarn.events import Vm
from forewarn.runner.hooks.commands import Command
from forewarn.runner.telemetry import heartbeat
from tools import world_runner
from tools.runner_world import VMS
from tools.stories import AFTER, DRAIN, DRAINED, Story, match
from tools.world_runner import WorldClient


def no_name(client: WorldClient, patience_seconds: float = 0.0) -> Any:
    client.paid = False
    return Vm()


def test_the_name_outlasts_two_restarts(tmp_path: Path) -> None:
    told = Story(tmp_path, DRAINED)
    told.slow = {"drain"}
    told.schedule(notice=90.0)
    told.go(3)
    told.stop()
    told.world.nameless = True
    told.world.read_fault = 503
    told.start()
    told.go(3)
    told.restart()
    told.world.read_fault = None
    told.go(40)
    assert told.count("start", name="drain") >= 2


def test_nothing_waits_for_a_name_that_there_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WorldClient, "instance", no_name)
    told = Story(tmp_path, AFTER)
    event = told.schedule(notice=5.0)
    told.go(10)
    told.world.model.finish(event)
    told.go(300)
    assert told.instance.runner.scheduler.records == []


def test_what_may_have_started_unseen_is_asked_about_later(tmp_path: Path) -> None:
    told = Story(tmp_path, AFTER)
    told.world.nameless = True
    event = told.schedule(notice=10.0)
    told.go(5)
    told.world.read_fault = 503
    told.go(10)
    told.world.model.finish(event)
    told.world.read_fault = None
    told.go(5)
    told.world.nameless = False
    told.go(90)
    assert told.instance.runner.scheduler.vm_name
    assert told.outcomes() == ["unseen"]
    assert told.count("start", name="start-again") == 1


def test_a_witness_rule_makes_no_difference(tmp_path: Path) -> None:
    other = ("b", [match("w", "hold", approver="witness")])
    told = Story(tmp_path, [*AFTER, other])
    told.world.nameless = True
    event = told.schedule(notice=5.0)
    told.go(10)
    told.world.model.finish(event)
    told.go(3)
    told.world.nameless = False
    told.go(90)
    assert told.instance.runner.scheduler.vm_name
    assert told.count("start", name="start-again") == 1


def test_the_same_id_may_be_listed_again_meanwhile(tmp_path: Path) -> None:
    told = Story(tmp_path, [("web", [match("a", **DRAIN)])])
    told.world.nameless = True
    event = told.schedule(notice=5.0)
    told.go(10)
    told.world.model.finish(event)
    told.go(3)
    del told.world.model.events[event.lower()]
    told.schedule(event_id=event)
    told.go(3)
    told.world.nameless = False
    told.go(90)
    assert told.instance.runner.scheduler.vm_name
    assert told.count("post", result="taken") >= 1


def test_what_was_prepared_is_recovered_before_the_name_is_known(tmp_path: Path) -> None:
    a = ("a", [match("a", "hold", **DRAIN)])
    b = (
        "b",
        [
            match(
                "b", "hold", condition='event.EventStatus == "Started"', recover=["start-again"], recover_when="started"
            )
        ],
    )
    told = Story(tmp_path, [a, b])
    event = told.schedule(notice=20.0)
    told.go(18)
    told.world.kill()
    told.world.reboot(40.0)
    told.world.nameless = True
    told.start()
    told.go(3)
    assert told.instance.runner.controller.reconciler.tracker.records[0].state == "started"
    told.world.model.finish(event)
    told.go(3)
    told.world.nameless = False
    told.go(90)
    assert told.count("start", name="undrain") == 1
    assert told.count("start", name="start-again") == 1


def test_nobody_is_a_witness_without_a_name(tmp_path: Path) -> None:
    told = Story(tmp_path, [("a", [match("w", "hold", approver="witness", **DRAIN)])])
    told.world.nameless = True
    told.schedule()
    told.go(10)
    assert told.count("start") == 0, "Without a name no hook is started"


def test_without_a_rule_for_it_nothing_waits_for_the_name(tmp_path: Path) -> None:
    told = Story(tmp_path, [("web", [match("a")])])
    told.go(3)
    told.world.kill()
    told.world.reboot(40.0)
    told.world.nameless = True
    event = told.schedule(notice=0.0)
    told.start()
    told.go(5)
    told.world.model.finish(event)
    told.go(300)
    assert told.instance.runner.scheduler.vm_name is None
    assert told.ready(), "no policy has a hook, the event has left the list"


def test_a_recovery_after_a_restart_is_told_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = Story(tmp_path, [("web", [match("a", "hold", **DRAIN)])])
    event = told.schedule()
    told.go(3)
    told.slow = {"undrain"}
    told.world.model.cancel(event)
    told.go(3)
    told.stop()
    told.world.read_fault = 503
    seen: list[str | None] = []
    start = world_runner.WorldExecutor.start

    def watched(self: world_runner.WorldExecutor, token: int, command: Command) -> Any:
        seen.append(command.environment.get("FOREWARN_VM_NAME"))
        return start(self, token, command)

    monkeypatch.setattr(world_runner.WorldExecutor, "start", watched)
    told.start()
    told.go(3)
    assert seen == [VMS[0]]


def test_a_name_that_an_operator_gave_is_not_remembered(tmp_path: Path) -> None:
    told = Story(tmp_path, [("web", [match("a")])])
    told.go(3)
    told.instance.runner.scheduler.vm_name = VMS[1]  # as with --vm-name web_1
    told.instance.runner.health.facts["vm_given"] = True
    told.instance.runner.health.keep()
    told.stop()
    told.world.nameless = True
    told.start()
    assert told.instance.identity.vm.name is None
    told.world.model.schedule(
        EventSpec("Reboot", VMS[1:], notice=600.0, description="x", start_on="not_before", impact=0.0)
    )
    told.go(5)
    assert told.count("post") == 0


def test_a_heartbeat_cuts_no_name(tmp_path: Path) -> None:
    told = Story(tmp_path, AFTER)
    clocks = told.instance.clocks
    beat = heartbeat.Heartbeat(str(tmp_path), clocks)
    name = "n" * 62 + "_1"
    long = "x" * 300
    beat.beat(
        {
            "vm": name,
            "policy": "0" * 64,
            "fault": long,
            "journal_trouble": long,
            "reload_problem": long,
            "unkept_events": long,
            "state": "failing",
            "version": "1.0",
        },
        True,
    )
    assert heartbeat.vm_name(heartbeat.read(str(tmp_path)), clocks) == name


def test_a_drill_that_is_over_before_the_name_is_known_is_closed(tmp_path: Path) -> None:
    told = Story(tmp_path, AFTER)
    told.go(2)
    told.drill("drill-0123456789ab", 5.0, 60.0)
    told.go(10)
    assert [record.state for record in told.instance.runner.scheduler.records] == ["started"]
    told.world.kill()
    told.world.reboot(30.0)
    told.world.nameless = True
    told.start()
    told.go(40)
    told.world.nameless = False
    told.go(600)
    assert told.instance.runner.scheduler.vm_name
    assert told.instance.runner.scheduler.records == []
    assert told.ready()


def test_what_nobody_prepared_is_recovered_as_a_rule_for_its_start_says(tmp_path: Path) -> None:
    scheduled = match("a", "hold", condition='event.EventStatus == "Scheduled"', prepare_within_seconds=10.0, **DRAIN)
    begun = match("b", "hold", condition='event.EventStatus == "Started"', recover=["undrain"], recover_when="started")
    told = Story(tmp_path, [("a", [scheduled, begun])])
    event = told.schedule(notice=60.0)
    told.go(10)
    told.world.kill()
    told.world.reboot(60.0)
    told.world.nameless = True
    told.start()
    told.go(3)
    told.world.model.finish(event)
    told.go(3)
    told.world.nameless = False
    told.go(90)
    assert told.instance.runner.scheduler.vm_name
    assert told.count("start", name="undrain") == 1


def test_a_drill_is_not_ended_by_the_event_of_another_vm(tmp_path: Path) -> None:
    told = Story(tmp_path, AFTER)
    told.world.nameless = True
    event = told.world.model.schedule(
        EventSpec("Reboot", VMS[1:], notice=3.0, description="x", start_on="not_before", impact=0.0)
    )
    told.go(6)
    told.world.model.finish(event)
    told.go(3)
    told.drill("drill-0123456789ab", 5.0, 20.0)
    told.go(3)
    told.world.nameless = False
    told.go(60)
    assert told.instance.runner.scheduler.vm_name
    ended = told.instance.log.named("drill")
    assert [fields["result"] for fields in ended] == ["finished"], ended
