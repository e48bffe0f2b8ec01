# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What follows from decisions: who is notified of them, and whether the hooks of the latest ones are planned."""

from __future__ import annotations

from pathlib import Path

import pytest
from forewarn.policy.engine import PolicySet
from tools.fixtures.policy_data import policy, policy_set
from tools.worlds.stories import DRAIN, Story, hook, listed, match

TELL = {"notify": [hook("tell")]}
TELLING = [
    (
        "web",
        [match("under-way", "hold", condition="event.EventStatus == 'Started'", **TELL), match("all", "hold", **TELL)],
    )
]


def occasions(story: Story) -> list[str]:
    return [line["occasion"] for line in story.instance.log.named("notified")]


def test_each_occasion_is_notified_once(tmp_path: Path) -> None:
    story, event = listed(tmp_path, TELLING, seconds=3, start_on="any_approval")
    assert occasions(story) == ["decided"]
    story.start_event(event, 3)
    assert occasions(story) == ["decided", "started"], "the policies decide again, and nobody has a say any more"
    story.finish_event(event, 3)
    assert occasions(story) == ["decided", "started", "ended"]


@pytest.mark.parametrize("declared", [True, False])
def test_unknown_status_is_a_doubt_unless_declared(tmp_path: Path, declared: bool) -> None:
    """In doubt nothing is prepared, and what a policy declares is none."""
    extra = {"EventStatus": ["InProgress"]} if declared else {}
    policies: PolicySet = policy_set(policy(match("both", **DRAIN), name="web", extra_values=extra))
    story = Story(tmp_path)
    story.world.policies = lambda _generation: policies
    story.restart()
    event = story.schedule(start_on="all_approvals")
    story.world.change(event, fields={"EventStatus": "InProgress"})
    story.go(5)
    assert story.count("start", name="drain") == declared
