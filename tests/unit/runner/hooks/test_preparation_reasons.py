# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why this VM does not approve an event whose preparation is not done: what an operator reads of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tools.worlds.stories import NOTICE_SECONDS, ONCE, Story, hook, match


@pytest.mark.parametrize(
    ("wanted", "happens", "expected"),
    [
        pytest.param({}, {"slow": {"drain"}}, ("preparing", "waits for run /bin/true drain"), id="slow"),
        pytest.param(
            {"prepare": [hook("drain", **ONCE)]},
            {"fail": {"drain"}},
            ("preparation-failed", "a prepare hook failed: run /bin/true drain: failed: it is a test"),
            id="failed",
        ),
        pytest.param(
            {},
            {"fail": {"drain"}},
            (
                "preparation-failed",
                "a prepare hook failed, and is tried again: run /bin/true drain: failed: it is a test",
            ),
            id="failed-before",
        ),
        pytest.param(
            {"prepare": ["drain", "flush"]},
            {"fail": {"flush"}},
            (
                "preparation-failed",
                "a prepare hook failed, and is tried again: run /bin/true flush: failed: it is a test",
            ),
            id="second-failed-before",
        ),
        pytest.param(
            {"prepare_within_seconds": 100.0},
            {},
            ("preparing", "its preparation, run /bin/true drain, begins in 8 min 20 s"),
            id="later",
        ),
        pytest.param(
            {},
            {"notice": 0.9},
            ("preparation-failed", "there was no time left for run /bin/true drain"),
            id="no-time",
        ),
    ],
)
def test_reason_names_the_hook_and_its_result(
    wanted: dict[str, Any], happens: dict[str, Any], expected: tuple[str, str], tmp_path: Path
) -> None:
    story = Story(tmp_path, [("web", [match("both", **{"prepare": ["drain"], "recover": ["undrain"], **wanted})])])
    story.slow, story.fail = happens.get("slow", set()), happens.get("fail", set())
    story.schedule(notice=happens.get("notice", NOTICE_SECONDS))
    story.instance.runner.poll_and_process()
    if "notice" not in happens:
        story.go(5)
    (record,) = story.instance.runner.scheduler.records
    assert record.decision is not None
    assert (record.decision["eligibility"], record.decision["eligibility_reason"]) == expected
    assert not story.count("post")
