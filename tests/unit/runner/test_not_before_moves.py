# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A NotBefore that moves while hooks run, and recoveries in the way of what is to be prepared before it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from forewarn.runner.drills.store import new_id
from tools.worlds.stories import Story, hook, listed, match


def let_drain_take_forty_seconds(story: Story, seconds: int) -> None:
    for _ in range(seconds):
        story.go(1)
        for each in story.world.running():
            if each.name == "drain" and story.world.now - each.started_at >= 40:
                story.end("drain")


# A hook runs on where NotBefore is postponed


@pytest.mark.parametrize(
    "values",
    [{"on_failure": "approve"}, {"prepare": [hook("drain", 60.0, retry={"attempts": 1})]}, {}],
    ids=["approve", "never", "hold"],
)
def test_postponed_not_before_leaves_hooks_time(tmp_path: Path, values: dict[str, Any]) -> None:
    drain = {"prepare": [hook("drain", 60.0)], "recover": ["undrain"], **values}
    story, event = listed(tmp_path, [("web", [match("a", **drain)])], seconds=3, slow={"drain"}, notice=20.0)
    story.world.postpone(event, 900.0)
    let_drain_take_forty_seconds(story, 50)
    assert story.count("asked") == 0
    assert story.times("end", result="succeeded")[0] < story.times("post", result="taken")[0]


@pytest.mark.parametrize("once", [False, True])
def test_hook_ended_by_not_before_is_repeated(tmp_path: Path, once: bool) -> None:
    drain = hook("drain", 60.0, **({"retry": {"attempts": 1}} if once else {}))
    story, event = listed(
        tmp_path, [("web", [match("a", prepare=[drain], recover=["undrain"])])], seconds=18, slow={"drain"}, notice=20.0
    )
    assert story.times("asked") == [pytest.approx(17.0, abs=1.0)]
    assert story.count("post") == 0
    story.world.postpone(event, 900.0)
    let_drain_take_forty_seconds(story, 60)
    assert story.count("start", name="drain") == (1 if once else 2)
    assert story.count("post") == (0 if once else 1)


# Recoveries in the way


def test_recovery_yields_to_several_preparations(tmp_path: Path) -> None:
    drain = match("a", prepare=[hook("drain", 60.0)], recover=[hook("undrain", 600.0)])
    second = 'event.Description == "second"'
    flush = match("b", prepare=[hook("flush", 200.0)], recover=["reopen"], condition=second)
    nothing = match("none", condition='event.Description == "first"')
    story, first = listed(
        tmp_path, [("web", [drain]), ("db", [flush, nothing])], seconds=3, slow={"undrain"}, description="first"
    )
    story.cancel_event(first, 3)
    assert story.count("start", name="undrain") == 1
    story.slow = {"undrain", "flush"}
    story.schedule(description="second", notice=720.0)
    story.go(60)
    assert story.count("start", name="flush") == 1, "it has all of its time"


@pytest.mark.parametrize("once", [False, True])
def test_deferred_recovery_runs_eventually(tmp_path: Path, once: bool) -> None:
    undrain = hook("undrain", 600.0, **({"retry": {"attempts": 1}} if once else {}))
    story, first = listed(
        tmp_path, [("web", [match("a", prepare=[hook("drain", 60.0)], recover=[undrain])])], seconds=3
    )
    story.world.model.cancel(first)
    story.slow = {"undrain"}
    story.go(3)
    for each in story.world.running():
        each.patience = 2.0
    second = story.schedule(notice=300.0)
    story.go(1)
    assert story.count("asked") == (0 if once else 1), "what may run once only is not broken off"
    story.cancel_event(second, 3)
    story.slow = set()
    story.go(30)
    assert story.instance.runner.scheduler.records == []


def test_a_drill_ends_no_real_recovery(tmp_path: Path) -> None:
    story, event = listed(
        tmp_path, [("web", [match("a", prepare=[hook("drain", 60.0)], recover=[hook("undrain", 600.0)])])], seconds=3
    )
    story.slow = {"undrain"}
    story.cancel_event(event, 3)
    assert story.count("start", name="undrain", drill=False) == 1
    story.drill(new_id(), 120.0, 3000.0)
    story.go(10)
    assert story.count("asked") == 0
    assert story.count("start", drill=True) == 0


def test_earlier_not_before_shortens_the_retry_pause(tmp_path: Path) -> None:
    story = Story(tmp_path, [("web", [match("a", prepare=["drain"], recover=["undrain"])])])
    story.fail = {"drain"}
    event = story.schedule(notice=900.0)
    story.go(75)  # the next attempt is 60 s away
    before = story.count("start", name="drain")
    story.world.move_to(event, story.world.now + 30.0)
    story.fail = set()
    story.go(28)
    assert story.count("start", name="drain") == before + 1
    assert story.count("post", result="taken") == 1
