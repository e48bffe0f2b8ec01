# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A VM that does not know its name for a while, since the instance metadata service does not answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from forewarn.emulator.spec import EventSpec
from forewarn.events import Vm
from forewarn.runner.hooks.commands import Command
from tools.worlds import world_runner
from tools.worlds.runner_world import VMS
from tools.worlds.stories import AFTER, DRAIN, DRAINED, Story, listed, match
from tools.worlds.world_runner import WorldClient


def no_name(client: WorldClient, patience_seconds: float = 0.0) -> Any:
    client.carrier.paid = False
    return Vm()


def test_the_name_outlasts_two_restarts(tmp_path: Path) -> None:
    story, _event = listed(tmp_path, DRAINED, seconds=3, slow={"drain"}, notice=90.0)
    story.stop()
    story.world.nameless = True
    story.world.read_fault = 503
    story.start()
    story.go(3)
    story.restart()
    story.world.read_fault = None
    story.go(40)
    assert story.count("start", name="drain") >= 2


def test_nothing_waits_for_a_missing_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WorldClient, "read_instance", no_name)
    story, event = listed(tmp_path, AFTER, seconds=10, notice=5.0)
    story.finish_event(event, 300)
    assert story.instance.runner.scheduler.records == []


def test_unseen_start_is_evaluated_once_named(tmp_path: Path) -> None:
    story = Story(tmp_path, AFTER)
    story.world.nameless = True
    event = story.schedule(notice=10.0)
    story.go(5)
    story.finish_unseen(event, silent=10, seconds=5)
    story.world.nameless = False
    story.go(90)
    assert story.instance.runner.scheduler.vm_name
    assert story.outcomes() == ["unseen"]
    assert story.count("start", name="start-again") == 1


def test_a_witness_rule_makes_no_difference(tmp_path: Path) -> None:
    other = ("b", [match("w", "hold", approver="witness")])
    story = Story(tmp_path, [*AFTER, other])
    story.world.nameless = True
    event = story.schedule(notice=5.0)
    story.go(10)
    story.finish_event(event, 3)
    story.world.nameless = False
    story.go(90)
    assert story.instance.runner.scheduler.vm_name
    assert story.count("start", name="start-again") == 1


def test_the_same_id_may_be_listed_again_meanwhile(tmp_path: Path) -> None:
    story = Story(tmp_path, [("web", [match("a", **DRAIN)])])
    story.world.nameless = True
    event = story.schedule(notice=5.0)
    story.go(10)
    story.finish_event(event, 3)
    del story.world.model.events[event.lower()]
    story.schedule(event_id=event)
    story.go(3)
    story.world.nameless = False
    story.go(90)
    assert story.instance.runner.scheduler.vm_name
    assert story.count("post", result="taken") >= 1


def test_prepared_event_is_recovered_before_the_name(tmp_path: Path) -> None:
    a = ("a", [match("a", "hold", **DRAIN)])
    b = (
        "b",
        [
            match(
                "b", "hold", condition='event.EventStatus == "Started"', recover=["start-again"], recover_when="started"
            )
        ],
    )
    story, event = listed(tmp_path, [a, b], seconds=18, notice=20.0)
    story.world.nameless = True
    story.crash(40.0, reboot=True)
    story.go(3)
    assert story.instance.runner.controller.reconciler.tracker.records[0].state == "started"
    story.finish_event(event, 3)
    story.world.nameless = False
    story.go(90)
    assert story.count("start", name="undrain") == 1
    assert story.count("start", name="start-again") == 1


def test_nobody_is_a_witness_without_a_name(tmp_path: Path) -> None:
    story = Story(tmp_path, [("a", [match("w", "hold", approver="witness", **DRAIN)])])
    story.world.nameless = True
    story.schedule()
    story.go(10)
    assert story.count("start") == 0, "Without a name no hook is started"


def test_event_without_a_rule_ends_without_a_name(tmp_path: Path) -> None:
    story = Story(tmp_path, [("web", [match("a")])])
    story.go(3)
    story.world.kill()
    story.world.reboot(40.0)
    story.world.nameless = True
    event = story.schedule(notice=0.0)
    story.start()
    story.go(5)
    story.finish_event(event, 300)
    assert story.instance.runner.scheduler.vm_name is None
    assert story.ready(), "no policy has a hook, the event has left the list"


def test_recovery_after_a_restart_knows_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    story, event = listed(tmp_path, [("web", [match("a", "hold", **DRAIN)])], seconds=3)
    story.slow = {"undrain"}
    story.cancel_event(event, 3)
    story.stop()
    story.world.read_fault = 503
    seen: list[str | None] = []
    start = world_runner.WorldExecutor.start

    def watched(self: world_runner.WorldExecutor, token: int, command: Command) -> Any:
        seen.append(command.environment.get("FOREWARN_VM_NAME"))
        return start(self, token, command)

    monkeypatch.setattr(world_runner.WorldExecutor, "start", watched)
    story.start()
    story.go(3)
    assert seen == [VMS[0]]


def test_name_given_by_an_operator_is_not_remembered(tmp_path: Path) -> None:
    story = Story(tmp_path, [("web", [match("a")])])
    story.go(3)
    story.instance.runner.scheduler.vm_name = VMS[1]  # as with --vm-name web_1
    story.instance.runner.health.facts["vm_given"] = True
    story.instance.runner.health.report()
    story.stop()
    story.world.nameless = True
    story.start()
    assert story.instance.identity.vm.name is None
    story.world.model.schedule(
        EventSpec("Reboot", VMS[1:], notice=600.0, description="x", start_on="not_before", impact=0.0)
    )
    story.go(5)
    assert story.count("post") == 0


def test_ended_drill_is_closed_once_named(tmp_path: Path) -> None:
    story = Story(tmp_path, AFTER)
    story.go(2)
    story.drill("drill-0123456789ab", 5.0, 60.0)
    story.go(10)
    assert [record.state for record in story.instance.runner.scheduler.records] == ["started"]
    story.world.nameless = True
    story.crash(30.0, reboot=True)
    story.go(40)
    story.world.nameless = False
    story.go(600)
    assert story.instance.runner.scheduler.vm_name
    assert story.instance.runner.scheduler.records == []
    assert story.ready()


def test_unprepared_event_is_recovered_by_its_start_rule(tmp_path: Path) -> None:
    scheduled = match("a", "hold", condition='event.EventStatus == "Scheduled"', prepare_within_seconds=10.0, **DRAIN)
    begun = match("b", "hold", condition='event.EventStatus == "Started"', recover=["undrain"], recover_when="started")
    story, event = listed(tmp_path, [("a", [scheduled, begun])], seconds=10, notice=60.0)
    story.world.nameless = True
    story.crash(60.0, reboot=True)
    story.go(3)
    story.finish_event(event, 3)
    story.world.nameless = False
    story.go(90)
    assert story.instance.runner.scheduler.vm_name
    assert story.count("start", name="undrain") == 1


def test_event_of_another_vm_ends_no_drill(tmp_path: Path) -> None:
    story = Story(tmp_path, AFTER)
    story.world.nameless = True
    event = story.world.model.schedule(
        EventSpec("Reboot", VMS[1:], notice=3.0, description="x", start_on="not_before", impact=0.0)
    )
    story.go(6)
    story.finish_event(event, 3)
    story.drill("drill-0123456789ab", 5.0, 20.0)
    story.go(3)
    story.world.nameless = False
    story.go(60)
    assert story.instance.runner.scheduler.vm_name
    ended = story.instance.log.named("drill")
    assert [fields["result"] for fields in ended] == ["finished"], ended
