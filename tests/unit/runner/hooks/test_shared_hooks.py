# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The same hook of two policies with different `retry` or `timeout`: the most careful values count."""

from __future__ import annotations

from pathlib import Path

from tools.worlds.stories import DRAIN, ONCE, hook, listed, match


def test_single_attempt_of_one_policy_counts(tmp_path: Path) -> None:
    once = ("a", [match("a", prepare=[hook("drain", **ONCE)], recover=["undrain"])])
    story, _event = listed(tmp_path, [once, ("b", [match("b", **DRAIN)])], seconds=20, fail={"drain"})
    assert story.count("start", name="drain") == 1


def test_failure_must_be_accepted_by_each_policy(tmp_path: Path) -> None:
    patient = hook("drain", retry={"attempts": 4, "delay_seconds": 5})
    patiently = ("b", [match("b", on_failure="approve", prepare=[patient], recover=["undrain"])])
    story, _event = listed(
        tmp_path, [patiently, ("a", [match("a", on_failure="approve", **DRAIN)])], seconds=4, fail={"drain"}
    )
    assert story.count("start", name="drain") == 1
    assert story.count("post") == 0, "policy b accepts it after 4 failures"


def test_longest_timeout_counts(tmp_path: Path) -> None:
    long, short = hook("drain", 120.0), hook("drain", 5.0)
    story, _event = listed(
        tmp_path, [("a", [match("a", prepare=[long])]), ("b", [match("b", prepare=[short])])], seconds=8, slow={"drain"}
    )
    assert story.count("start", name="drain") == 1


def test_start_of_an_event_keeps_single_attempts(tmp_path: Path) -> None:
    a = ("a", [match("a", "hold", prepare=["drain"], recover=[hook("undrain", 120.0, **ONCE)])])
    b = ("b", [match("b", "hold", recover=[hook("undrain", 5.0)], recover_when="started")])
    story, event = listed(tmp_path, [a, b], seconds=5, notice=20.0)
    story.fail = {"undrain"}
    story.go(30)
    story.finish_event(event, 60)
    assert story.count("start", name="undrain") == 1
