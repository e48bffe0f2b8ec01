# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A wall clock that is set while an event is under way."""

from __future__ import annotations

import pytest
from tools.worlds.timed_runner import Story, TimedRunner, memory

HOUR = 3600.0


def once(world: TimedRunner, event_id: str) -> bool:
    """Return whether an event was drained and recovered, each once."""
    ran = {name: times for name, times in world.hooks().items() if event_id in name}
    return ran == {f"prepare {event_id} 1": 1, f"recover {event_id} 1": 1}


def drained(world: TimedRunner, event_id: str) -> Story:
    """Let time pass until the drain of an event has begun, and a little longer."""
    yield from world.long_hook(event_id)
    yield from world.wait(20.0)


@pytest.mark.parametrize("step", [HOUR, -HOUR])
@pytest.mark.parametrize("corrected", [True, False])
def test_the_clock_is_set_while_a_drain_runs(step: float, corrected: bool) -> None:
    """An hour ahead, NotBefore seems to have passed, so nothing is approved. The drain is not cut short."""

    def story() -> Story:
        event_id = world.emulator.schedule("Reboot", ["web_0"], description="long")
        yield from drained(world, event_id)
        world.wall_error = step
        yield from world.wait(20.0)
        assert world.lines("hook-ended") == []
        world.let_go()
        yield from world.until(lambda: world.lines("hook-ended", phase="prepare", result="succeeded"))
        yield from world.wait(20.0)
        assert world.posts() == (step < 0)
        if corrected:
            world.wall_error = 0.0
        approved = step < 0 or corrected
        yield from world.until(lambda: world.over(event_id), 900.0)
        assert world.posts() == approved
        assert world.emulator.event(event_id)["started_by"] == ("approval" if approved else "NotBefore")
        if not approved:
            assert world.lines("decision", eligibility="no-time-left")
        assert once(world, event_id)
        (gone,) = world.lines("event-gone")
        assert gone["outcome"] == "finished"
        assert gone["listed_seconds"] < 920.0
        assert world.lines("impact") == [], "nothing stood still"

    with memory() as directory, TimedRunner(directory) as world:
        world.play(story())


@pytest.mark.parametrize("step", [HOUR, -HOUR])
def test_the_clock_is_set_between_scheduled_and_started(step: float) -> None:
    def story() -> Story:
        event_id = world.emulator.schedule("Reboot", ["web_0"], start_delay_seconds=40.0)
        yield from world.until(lambda: world.lines("approved"))
        yield from world.wait(5.0)
        world.wall_error = step
        yield from world.until(lambda: world.over(event_id))
        assert world.posts() == 1
        assert once(world, event_id)
        (gone,) = world.lines("event-gone")
        assert (gone["outcome"], gone["listed_seconds"] < 60.0) == ("finished", True)
        assert world.lines("impact") == []

    with memory() as directory, TimedRunner(directory) as world:
        world.play(story())


@pytest.mark.parametrize("step", [HOUR, -HOUR])
def test_clock_step_during_a_restart_changes_nothing(step: float) -> None:
    """The machine was not booted meanwhile; a clock that nobody sets measures the time that passed."""

    def before() -> Story:
        yield from world.until(lambda: world.lines("approved"))

    def after() -> Story:
        yield from world.until(lambda: world.over(event_id), 200.0)

    with memory() as directory, TimedRunner(directory) as world:
        event_id = world.emulator.schedule("Reboot", ["web_0"], start_delay_seconds=30.0)
        world.play(before())
        world.wall_error = step
        world.play(after())
        assert world.posts() == 1
        assert once(world, event_id)
        (gone,) = world.lines("event-gone")
        assert gone["listed_seconds"] < 60.0
