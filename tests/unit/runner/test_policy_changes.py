# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Policies that are reloaded, or cannot decide, in the middle of an event."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tools.worlds.stories import AFTER, DRAIN, Story, hook, listed, match

ONE = [("web", [match("a", prepare=["one"], recover=["back"])])]


# The current policies decide how a failed hook counts


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"on_failure": "approve"}, {"on_failure": "hold"}),
        ({"prepare": [hook("drain", retry={"attempts": 1})]}, {}),
        (
            {"prepare": [hook("drain", retry={"attempts": 2, "delay_seconds": 1})]},
            {"prepare": [hook("drain", retry={"attempts": 9, "delay_seconds": 1})]},
        ),
    ],
    ids=["on_failure", "never", "attempts"],
)
def test_reload_can_allow_another_attempt(tmp_path: Path, before: dict[str, Any], after: dict[str, Any]) -> None:
    story = Story(
        tmp_path, [("web", [match("x", **{**DRAIN, **before})])], [("web", [match("x", **{**DRAIN, **after})])]
    )
    story.world.post_fault = "failed"
    story.fail = {"drain"}
    story.schedule()
    story.go(8)
    attempts = story.count("start", name="drain")
    story.fail = set()
    story.reload()
    story.world.post_fault = None
    story.go(70)
    assert story.count("start", name="drain") == attempts + 1
    assert story.count("post", result="taken") >= 1


def test_single_attempt_after_a_reload_was_used(tmp_path: Path) -> None:
    never = [("web", [match("a", prepare=[hook("one", retry={"attempts": 1})], recover=["back"])])]
    story, _event = listed(tmp_path, ONE, never, seconds=5, fail={"one"})
    attempts = story.count("start", name="one")
    story.reload()
    story.go(30)
    assert story.count("start", name="one") == attempts


@pytest.mark.parametrize("left_out", [False, True])
def test_interrupted_attempt_counts_for_a_single_one(tmp_path: Path, left_out: bool) -> None:
    never = [("web", [match("a", prepare=[hook("one", retry={"attempts": 1})], recover=["back"])])]
    story, _event = listed(tmp_path, ONE, [("web", [match("a", "hold")])], never, seconds=3, slow={"one"})
    story.restart()
    if left_out:
        story.reload(1)
    story.reload(2)
    story.go(30)
    assert story.count("start", name="one") == 1
    assert story.count("post") == 0


def test_failure_accepted_by_a_reload_counts_at_once(tmp_path: Path) -> None:
    story, _event = listed(
        tmp_path,
        ONE,
        [("web", [match("a", prepare=["one"], recover=["back"], on_failure="approve")])],
        seconds=80,
        fail={"one"},
    )
    assert story.count("post") == 0
    story.reload()
    story.go(4)
    assert story.count("post") == 1


# What is not asked for any more


def test_unrequested_hook_is_not_awaited(tmp_path: Path) -> None:
    story = Story(tmp_path, ONE, [("web", [match("a", "hold")])])
    story.slow = story.fail = {"one"}
    story.schedule()
    story.go(3)
    story.reload()
    story.go(3)
    story.slow = set()
    story.go(10)
    assert story.count("end", result="failed") == 1
    assert story.instance.runner.scheduler.next_in() is None
    assert story.turns(60.0) < 200


# Their order, and their time


def test_stages_follow_the_reloaded_policy_order(tmp_path: Path) -> None:
    stop_db = match("b", prepare=["stop-db"], recover=["start-db"], prepare_within_seconds=590.0)
    drain = match("a", **DRAIN, prepare_within_seconds=590.0)
    story, _event = listed(tmp_path, [("db", [stop_db])], [("web", [drain]), ("db", [stop_db])], seconds=3)
    story.reload()
    story.go(20)
    assert story.times("start", name="drain")[0] < story.times("start", name="stop-db")[0]


def test_stage_with_a_shared_hook_waits_its_time(tmp_path: Path) -> None:
    announce = match("a", prepare=["announce"], recover=["unannounce"])
    stop_db = match("b", prepare=["announce", "stop-db"], recover=["start-db"], prepare_within_seconds=60.0)
    story, _event = listed(tmp_path, [("web", [announce]), ("db", [stop_db])], seconds=20)
    assert story.count("start", name="announce") == 1
    assert story.count("start", name="stop-db") == 0, "NotBefore is 580 s away"
    assert story.count("post") == 0
    story.restart()
    story.go(500)
    assert story.count("start", name="stop-db") == 0, "nor does a restart make it due"
    story.go(30)
    assert story.count("start", name="stop-db") == 1


# Policies that cannot decide


@pytest.mark.parametrize("what", ["nothing", "unreadable", "restarted", "nameless"])
def test_policies_that_cannot_decide_forget_no_recovery(tmp_path: Path, what: str) -> None:
    story, event = listed(tmp_path, AFTER, seconds=3, start_on="all_approvals")
    if what == "unreadable":
        story.world.change(event, fields={"DurationInSeconds": "soon"})
    elif what != "nothing":
        story.stop()
        story.world.nameless = what == "nameless"
        story.start()
    story.go(3)
    story.start_event(event, 3)
    story.finish_event(event, 5)
    assert story.count("start", name="start-again") == 1


@pytest.mark.parametrize("unknown", [False, True])
def test_reboot_has_its_event_despite_a_late_name(tmp_path: Path, unknown: bool) -> None:
    story, event = listed(tmp_path, AFTER, seconds=3, start_on="all_approvals")
    story.start_event(event, 3)
    story.world.kill()
    story.world.reboot(40.0)
    story.world.model.finish(event)
    story.world.nameless = unknown
    story.start()
    story.go(1)
    story.world.nameless = False
    later = story.schedule(start_on="any_approval")
    story.go(70)
    assert story.instance.runner.scheduler.vm_name
    kinds = {line["event_id"]: line["kind"] for line in story.instance.log.named("impact")}
    assert kinds == {event: "reboot"}, later


def test_notify_hook_from_a_reload_hears_the_end(tmp_path: Path) -> None:
    old, new = ([("web", [match("a", "hold", notify=[hook(name)])])] for name in ("old", "new"))
    story, event = listed(tmp_path, old, new, seconds=3)
    story.reload()
    story.go(3)
    before = len(story.world.hooks)
    story.cancel_event(event, 3)
    assert [each.name for each in story.world.hooks][before:] == ["new"]


def test_reloads_keep_the_reason_of_a_failure(tmp_path: Path) -> None:
    once = match("a", "hold", prepare=[hook("drain", retry={"attempts": 1})], recover=["undrain"])
    story, _event = listed(tmp_path, [("web", [once])], [("web", [match("a", "hold")])], seconds=3, fail={"drain"})
    story.reload(1)
    story.go(3)
    story.reload(0)
    story.go(3)
    (record,) = story.instance.runner.scheduler.records
    assert "no longer ask" not in record.plan.runs[0].reason


def test_unrequested_hook_is_no_reason_of_a_failure(tmp_path: Path) -> None:
    once = match("a", "hold", prepare=[hook("drain", retry={"attempts": 1})], recover=["undrain"])
    story, _event = listed(
        tmp_path,
        [("web", [once])],
        [("web", [match("a", "hold", prepare=["other"], recover=["undrain"])])],
        seconds=3,
        fail={"drain", "other"},
        notice=40.0,
    )
    story.reload(1)
    story.go(40)
    said = story.instance.log.named("state", to="failed")
    assert "no longer ask" not in str(said)


def test_removed_notify_hook_hears_nothing_after_a_restart(tmp_path: Path) -> None:
    story, event = listed(
        tmp_path, [("web", [match("a", "hold", notify=[hook("tell")])])], [("web", [match("a", "hold")])], seconds=3
    )
    before = story.count("start", name="tell")
    story.stop()
    story.world.generation = 1
    story.world.model.cancel(event)
    story.start()
    story.go(5)
    assert story.count("start", name="tell") == before


def test_notify_hook_added_while_hidden_hears_the_end(tmp_path: Path) -> None:
    story, _event = listed(
        tmp_path, [("web", [match("a", "hold")])], [("web", [match("a", "hold", notify=[hook("tell")])])], seconds=3
    )
    story.world.bodyless = True
    story.go(3)
    story.reload()
    story.go(70)
    assert story.instance.runner.controller.reconciler.tracker.records == []
    assert story.count("start", name="tell") > 0
