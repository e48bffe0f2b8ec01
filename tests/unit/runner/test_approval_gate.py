# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a dry run would approve what has hooks: once a runner would have begun to prepare it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from forewarn.runner.state import dry_runs
from tools.worlds.stories import DRAIN, Story, match


def dry(directory: Path, **values: Any) -> Story:
    dry_runs.claim(str(directory), dry_run=True)
    return Story(directory, [("web", [match("both", **DRAIN, **values)])], dry_run=True)


def test_dry_run_would_approve_although_no_hook_runs(tmp_path: Path) -> None:
    story = dry(tmp_path)
    event = story.schedule(notice=100.0)
    story.go(3)
    (line,) = story.instance.log.named("would-approve")
    assert line["event_ids"] == [event]
    assert story.count("start") == 0


def test_dry_run_waits_until_preparation_would_begin(tmp_path: Path) -> None:
    story = dry(tmp_path, prepare_within_seconds=60.0)
    story.schedule(notice=100.0)
    story.go(30)
    (decided,) = story.instance.log.named("decision")
    assert (decided["eligibility"], decided["reason"]) == ("preparing", "its preparation would begin in 40 s")
    assert story.instance.log.named("would-approve") == []
    story.go(15)
    assert len(story.instance.log.named("would-approve")) == 1
