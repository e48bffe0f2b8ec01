# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table "When an event changes" of docs/runner-states.md, row by row, on a runner in a simulated world."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tools.worlds.runner_world import VMS
from tools.worlds.stories import NOTICE_SECONDS, ProfileStory

# Profiles of tools.worlds.runner_profiles: one is approved once it is prepared, the other prepares and holds.
APPROVED, HELD = ("drain", "drain", "undrain"), ("sit", "sit-down", "stand-up")


class Story(ProfileStory):
    """web_0, an event that affects it, and what happens."""

    def __init__(self, directory: Path, profile: str) -> None:
        super().__init__(directory)
        self.event = self.schedule(profile, notice=NOTICE_SECONDS, start_on="not_before", impact=0.0)
        self.go(2)

    def leave(self) -> None:
        self.world.model.cancel(self.event)
        self.go(5)
        self.judge.over()


@pytest.fixture(params=[APPROVED, HELD], ids=lambda case: case[0])
def case(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def story(case: tuple[str, str, str], tmp_path: Path) -> Story:
    made = Story(tmp_path, case[0])
    assert made.count("start", name=case[1]) == 1
    made.go(2)
    assert made.count("post") == (case is APPROVED)
    return made


@pytest.mark.parametrize(
    "change",
    [
        {"event_type": "Redeploy"},
        {"resources": VMS},
        {"source": "User"},
        {"duration": 30},
        {"event_type": "Freeze", "duration": 5},
    ],
    ids=str,
)
def test_another_content_is_prepared_and_approved_anew(
    story: Story, case: tuple[str, str, str], change: dict[str, Any]
) -> None:
    _profile, prepare, recover = case
    story.world.change(story.event, **change)
    story.go(4)
    assert story.count("start", name=prepare) == 2
    assert story.count("post") == 2 * (case is APPROVED)
    assert story.count("start", name=recover) == 0, "it is still listed"
    story.leave()
    assert story.count("start", name=recover) == 1, "whatever it was prepared for"


def test_event_moved_to_other_vms_is_recovered_later(story: Story, case: tuple[str, str, str]) -> None:
    _profile, prepare, recover = case
    story.world.change(story.event, resources=VMS[1:])
    story.go(70)
    assert story.count("start", name=prepare) == 1
    assert story.count("post") == (case is APPROVED), "no reminder of what is not ours"
    assert story.count("start", name=recover) == 0
    story.leave()
    assert story.count("start", name=recover) == 1


@pytest.mark.parametrize("seconds", [-300.0, 86400.0])
def test_a_moved_not_before_leaves_what_is_prepared(story: Story, case: tuple[str, str, str], seconds: float) -> None:
    story.world.postpone(story.event, seconds)
    story.go(10)
    assert story.count("start", name=case[1]) == 1
    assert story.count("post") == (case is APPROVED)
    story.leave()


@pytest.mark.parametrize("change", [{"description": "early"}, {"fields": {"Resources": ["WEB_0"]}}], ids=str)
def test_description_and_spelling_are_no_content(tmp_path: Path, change: dict[str, Any]) -> None:
    """Even where the description makes another rule apply, which asks for the same hooks."""
    story = Story(tmp_path, "drain")
    story.go(2)
    story.world.change(story.event, **change)
    story.go(4)
    assert story.count("start", name="drain") == 1
    assert story.count("post") == 1


def test_postponement_gives_time_for_preparation(tmp_path: Path) -> None:
    story = Story(tmp_path, "refuse")
    story.world.postpone(story.event, 5.0 - NOTICE_SECONDS)
    story.world.change(story.event, description="drain")
    story.go(1)
    assert story.count("start", name="drain") == 0
    story.world.postpone(story.event, NOTICE_SECONDS)
    story.go(3)
    assert story.count("start", name="drain") == 1
    assert story.count("post") == 1


def test_postponement_requires_the_preparation_first(tmp_path: Path) -> None:
    """Even with ``on_failure: approve``: there is time now, so the hooks run first."""
    story = Story(tmp_path, "refuse")
    story.world.postpone(story.event, 5.0 - NOTICE_SECONDS)
    story.world.change(story.event, description="careless", resources=VMS[::-1])  # web_1 leads, so nothing is sent yet
    story.go(1)
    assert (story.count("start", name="try-1"), story.count("post")) == (0, 0)
    story.world.postpone(story.event, NOTICE_SECONDS)
    story.world.change(story.event, resources=VMS[:1])
    story.slow = {"try-1"}
    story.go(3)
    assert (story.count("start", name="try-1"), story.count("post")) == (1, 0)


def test_temporarily_unreadable_field_changes_nothing(story: Story, case: tuple[str, str, str]) -> None:
    story.world.change(story.event, fields={"DurationInSeconds": "soon"})
    story.go(5)
    story.world.change(story.event, fields={})
    story.go(5)
    assert story.count("start", name=case[1]) == 1
    assert story.count("post") == (case is APPROVED)


@pytest.mark.parametrize(("profile", "prepares"), [("plain", 1), ("drain", 1)])
def test_reload_runs_only_new_hooks(tmp_path: Path, profile: str, prepares: int) -> None:
    """After the reload plain prepares with drain, and drain with one hook more."""
    story = Story(tmp_path, profile)
    story.go(2)
    assert story.count("post") == 1
    story.reload()
    story.go(4)
    assert story.count("start", name="drain") == prepares
    assert story.count("start", name="late") == (profile == "drain")
    assert story.count("post") == 1, "what was approved needs a reminder only"
    story.go(60)
    assert story.count("post") == 2
    story.leave()
    assert story.count("start", name="undrain") == 1


def test_reload_without_hooks_recovers_the_prepared(tmp_path: Path) -> None:
    story = Story(tmp_path, "oneway")
    story.reload()
    story.go(4)
    assert story.count("post") == 1
    story.leave()


def test_changed_content_is_reminded_after_a_minute(tmp_path: Path) -> None:
    story = Story(tmp_path, "plain")
    story.world.change(story.event, duration=9)
    story.go(3)
    assert story.count("post", result="taken") == 2
    story.go(70)
    assert story.count("post", result="taken") == 3
