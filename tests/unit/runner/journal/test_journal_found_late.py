# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A journal that cannot be read when a runner starts, and can be a while later."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tools.worlds.stories import AFTER, DRAINED, HELD, Policies, Story, hook, listed, match

MORE = [("web", [match("drain", prepare=["drain", "late"], recover=["undrain"])])]
PLAIN = [("web", [match("plain", "hold")])]
BOTH = [
    (
        "web",
        [
            match("plain", condition='event.Description == "plain"'),
            match("drain", prepare=["drain"], recover=["undrain"]),
        ],
    )
]


def hide(directory: Path) -> Callable[[], None]:
    """Put the journal out of reach; return a function that brings it back."""
    away = directory / "away"
    away.mkdir()
    for file in directory.glob("journal.db*"):
        file.rename(away / file.name)
    place = directory / "journal.db"
    place.mkdir()

    def heal() -> None:
        place.rmdir()
        for file in away.iterdir():
            file.rename(directory / file.name)

    return heal


def restarted(story: Story, generation: int = 0) -> Callable[[], None]:
    """Start another runner, which cannot read the journal; return a function that brings the journal back."""
    story.stop()
    heal = hide(story.directory)
    story.world.generation = generation
    story.start()
    story.go(4)
    assert story.instance.runner.recorder.journal.trouble
    return heal


def test_work_done_before_is_not_repeated(tmp_path: Path) -> None:
    story, _event = listed(tmp_path, DRAINED, seconds=4)
    heal = restarted(story)
    heal()
    story.go(20)
    assert not story.instance.runner.recorder.journal.trouble
    assert story.count("start", name="drain") == 1
    assert story.count("post") == 1, "the reminder is due 60 s after the first"


def test_work_begun_meanwhile_is_recovered(tmp_path: Path) -> None:
    story, event = listed(tmp_path, PLAIN, DRAINED, seconds=4)
    heal = restarted(story, 1)
    heal()
    story.go(20)
    story.cancel_event(event, 30)
    assert story.count("start", name="drain") == 1
    assert story.count("start", name="undrain") == 1


@pytest.mark.parametrize("slow", [False, True])
def test_nothing_is_approved_by_outdated_policies(tmp_path: Path, slow: bool) -> None:
    story = Story(tmp_path, DRAINED, MORE)
    story.world.post_fault = "failed"
    story.schedule()
    story.go(4)
    story.world.post_fault = None
    heal = restarted(story, 1)
    heal()
    if slow:
        story.slow = {"drain", "late"}
    story.go(20)
    late = story.times("start", name="late")
    posts = story.times("post", result="taken")
    assert late
    assert (not posts) if slow else late[0] < posts[0]


def test_event_changed_meanwhile_is_prepared_again(tmp_path: Path) -> None:
    story, event = listed(tmp_path, DRAINED, seconds=4)
    story.world.change(event, event_type="Redeploy")
    heal = restarted(story)
    heal()
    story.go(40)
    assert (story.count("start", name="drain"), story.count("post")) == (2, 2)
    story.cancel_event(event, 5)
    assert story.count("start", name="undrain") == 1


@pytest.mark.parametrize("late", [False, True])
def test_a_start_that_was_seen_meanwhile_counts(tmp_path: Path, late: bool) -> None:
    story, event = listed(tmp_path, AFTER, seconds=4, start_on="all_approvals")
    story.stop()
    heal = hide(tmp_path) if late else lambda: None
    story.start()
    story.go(2)
    story.start_event(event, 3)
    story.world.read_fault = 503
    heal()
    story.go(7)
    story.world.read_fault = None
    story.finish_event(event, 15)
    assert story.count("start", name="start-again") == 1


def test_second_event_does_not_repeat_the_first_preparation(tmp_path: Path) -> None:
    story, _event = listed(tmp_path, BOTH, seconds=4, notice=700.0)
    story.stop()
    heal = hide(tmp_path)
    story.start()
    story.go(12)
    heal()
    story.schedule(description="plain", notice=400.0)
    story.go(20)
    assert story.count("start", name="drain") == 1


def test_stop_when_the_journal_returns_loses_nothing(tmp_path: Path) -> None:
    story, event = listed(tmp_path, DRAINED, seconds=4)
    heal = restarted(story)
    heal()
    story.world.clock.advance(30.0)  # until the journal is tried again
    story.restart()
    story.go(4)
    assert len(story.instance.runner.scheduler.records) == 1
    assert (story.count("start", name="drain"), story.count("post")) == (1, 1)
    story.cancel_event(event, 4)
    assert story.count("start", name="undrain") == 1
    assert story.instance.runner.scheduler.records == []


@pytest.mark.parametrize("policies", [DRAINED, AFTER])
def test_finished_recovery_is_not_repeated_after_a_stop(tmp_path: Path, policies: Policies) -> None:
    story, event = listed(tmp_path, policies, seconds=4, start_on="all_approvals")
    if policies is AFTER:
        story.world.model.start(event)
    story.go(4)
    heal = restarted(story)
    story.finish_event(event, 4)
    heal()
    story.stop()
    assert not story.instance.runner.recorder.journal.trouble
    story.start()
    story.go(30)
    assert story.count("start", phase="recover") == 1
    assert story.instance.runner.scheduler.records == []


def test_event_ending_when_the_journal_returns_recovers_once(tmp_path: Path) -> None:
    plain = match("plain", "hold", condition='event.Description == "plain"')
    story = Story(tmp_path, [("web", [plain, match("a", "hold", recover=["start-again"], recover_when="started")])])
    first = story.schedule(description="plain", start_on="all_approvals")
    second = story.schedule(start_on="all_approvals")
    story.go(4)
    heal = restarted(story)
    for event in (first, second):
        story.world.model.start(event)
    story.go(2)
    heal()
    story.world.clock.advance(30.0)  # until the journal is tried again: the end of the first one does
    for event in (first, second):
        story.world.model.finish(event)
    story.go(40)
    assert not story.instance.runner.recorder.journal.trouble
    assert story.count("start", name="start-again") == 1
    assert len(story.outcomes()) == 2


def test_event_changed_and_approved_meanwhile_is_approved_once(tmp_path: Path) -> None:
    story = Story(tmp_path, DRAINED, [("web", [match("plain")])])
    event = story.schedule()
    story.world.post_fault = "failed"
    story.go(4)
    story.world.post_fault = None
    story.world.change(event, event_type="Redeploy")
    heal = restarted(story, 1)
    heal()
    story.go(40)
    assert story.count("post", result="taken") == 1


@pytest.mark.parametrize("what", ["clock-back", "unreadable"])
def test_nothing_is_done_twice_for_a_content(tmp_path: Path, what: str) -> None:
    story = Story(tmp_path, [("web", [match("a")])] if what == "clock-back" else HELD)
    story.world.wall_error = 300.0 if what == "clock-back" else 0.0
    event = story.schedule(notice=900.0)
    story.go(3)
    story.world.wall_error = 0.0
    story.world.change(
        event, **({"duration": 9} if what == "clock-back" else {"fields": {"DurationInSeconds": "soon"}})
    )
    restarted(story)()
    story.go(20)
    if what == "unreadable":
        story.world.change(event, fields={})
        story.go(5)
        assert story.count("start", name="drain") == 1
    else:
        assert story.count("post", result="taken") == 2, "once for each content"


@pytest.mark.parametrize("number", [1, 2], ids=["one-event", "shared-by-two"])
def test_what_was_recovered_meanwhile_is_not_recovered_again(tmp_path: Path, number: int) -> None:
    story = Story(tmp_path, AFTER)
    events = [story.schedule(start_on="all_approvals") for _ in range(number)]
    for event in events:
        story.world.model.start(event)
    story.go(3)
    heal = restarted(story)
    for event in events:
        story.world.model.finish(event)
    story.go(5)
    assert story.count("start", name="start-again") == 1
    heal()
    story.go(40)
    assert story.count("start", name="start-again") == 1
    assert story.instance.runner.scheduler.records == []


def test_event_approved_before_may_have_started(tmp_path: Path) -> None:
    ok = [("web", [match("after", recover=["start-again"], recover_when="started")])]
    story, event = listed(tmp_path, ok, seconds=3)
    assert story.count("post", result="taken") == 1
    heal = restarted(story)
    story.cancel_event(event, 5)
    heal()
    story.go(40)
    assert story.count("start", name="start-again") == 1


@pytest.mark.parametrize("found", [True, False])
def test_possible_preparation_of_another_event_delays_recovery(tmp_path: Path, found: bool) -> None:
    rule = match("a", "hold", prepare=["stop"], recover=["start-again"], recover_when="started")
    story = Story(tmp_path, [("web", [rule])])
    one = story.schedule(start_on="all_approvals")
    two = story.schedule()
    story.go(5)
    heal = restarted(story)
    story.start_event(one, 3)
    story.finish_event(one, 5)
    assert story.count("start", name="start-again") == 0
    (line,) = [fields for _level, line, fields in story.instance.log.lines if line == "hook-waits"]
    assert line["reason"] == f"the journal cannot be read: event {two}, which is listed, may have been prepared"
    if found:
        heal()
        story.go(15)
        assert story.count("start", name="start-again") == 0, "left to the other"
    story.cancel_event(two, 20)
    assert story.count("start", name="start-again") == 1


def test_running_recovery_is_not_repeated(tmp_path: Path) -> None:
    story = Story(tmp_path, AFTER)
    one = story.schedule(start_on="all_approvals")
    story.start_event(one, 3)
    heal = restarted(story)
    story.slow = {"start-again"}
    story.finish_event(one, 5)
    assert story.count("start", name="start-again") == 1
    heal()
    story.go(15)
    assert not story.instance.runner.recorder.journal.trouble
    story.slow = set()
    story.go(40)
    assert story.count("start", name="start-again") == 1


def test_current_policies_plan_while_the_service_is_silent(tmp_path: Path) -> None:
    now = [("web", [match("drain", prepare=["drain", "late"], recover=["unlate"])])]
    story = Story(tmp_path, DRAINED, now)
    story.world.post_fault = "failed"
    event = story.schedule()
    story.go(4)
    heal = restarted(story)
    story.reload()
    story.world.read_fault = 503
    heal()
    story.go(15)
    assert not story.instance.runner.recorder.journal.trouble
    story.world.model.start(event)
    story.world.read_fault = None
    story.go(10)
    story.finish_event(event, 10)
    assert story.count("start", name="undrain") == 1
    assert story.count("start", name="unlate") == 1


def test_start_seen_meanwhile_is_kept(tmp_path: Path) -> None:
    story = Story(tmp_path, DRAINED)
    story.world.post_fault = "failed"
    event = story.schedule()
    story.go(4)
    heal = restarted(story)
    story.start_event(event, 3)
    story.world.read_fault = 503
    heal()
    story.go(15)
    story.stop()
    story.start()
    assert [record.state for record in story.instance.runner.scheduler.records] == ["started"]


def test_real_event_ends_a_drill_before_it_prepares(tmp_path: Path) -> None:
    story = Story(tmp_path, DRAINED)
    story.world.post_fault = "failed"
    story.schedule()
    story.go(4)
    story.world.bodyless = True
    heal = restarted(story)
    story.drill("drill-0123456789ab")
    heal()
    story.go(15)
    assert story.count("start", drill=True) == 0


def test_nobody_hears_twice_of_an_end(tmp_path: Path) -> None:
    story, event = listed(tmp_path, [("web", [match("a", "hold", notify=[hook("tell")])])], seconds=3)
    heal = restarted(story)
    story.cancel_event(event, 5)
    n = story.count("start", name="tell")
    heal()
    story.go(40)
    assert story.count("start", name="tell") == n


def test_unreadable_event_is_not_approved_twice(tmp_path: Path) -> None:
    story = Story(tmp_path, [("web", [match("a")])])
    story.world.wall_error = 300.0
    event = story.schedule(notice=900.0)
    story.go(3)
    assert story.count("post", result="taken") == 1
    story.world.wall_error = 0.0
    story.world.change(event, fields={"DurationInSeconds": "soon"})
    restarted(story)()
    story.go(20)
    assert story.count("post", result="taken") == 1
    story.world.change(event, fields={})
    story.go(10)
    assert story.count("post", result="taken") == 1


def test_late_name_and_journal_decide_once(tmp_path: Path) -> None:
    story, event = listed(tmp_path, AFTER, seconds=5, notice=20.0)
    story.stop()
    heal = hide(story.directory)
    story.world.reboot(30.0)
    story.world.nameless = True
    story.start()
    story.go(4)
    story.finish_event(event, 4)
    heal()
    story.go(20)
    story.world.nameless = False
    story.go(90)
    assert story.count("start", name="start-again") == 1


@pytest.mark.parametrize("before", [True, False], ids=["before", "while-running"])
@pytest.mark.parametrize("early", [True, False], ids=["listed-early", "listed-late"])
def test_the_same_id_later_is_another_event(tmp_path: Path, before: bool, early: bool) -> None:
    story, event = listed(tmp_path, HELD, seconds=3)
    if before:
        story.stop()
        heal = hide(story.directory)
        story.world.model.cancel(event)
        story.start()
        story.go(4)
    else:
        heal = restarted(story)
        story.cancel_event(event, 4)
    heal()
    if not early:
        story.go(40)
    del story.world.model.events[event.lower()]
    story.schedule(event_id=event)
    story.go(40)
    assert story.count("start", name="undrain") == (not early), "what the next event has prepared too is left to it"
    assert story.count("start", name="drain") == 2
    assert [record.listed for record in story.instance.runner.scheduler.records] == [True]
