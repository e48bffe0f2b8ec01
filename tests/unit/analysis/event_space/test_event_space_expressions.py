# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What conditions tell apart: the dimensions of the space of a policy, and their values in words."""

from __future__ import annotations

import json
from pathlib import Path

from forewarn.analysis.event_space.policies import read
from tools.fixtures.policy_files import loaded

SQUARE = "event.DurationInSeconds * event.DurationInSeconds"  # which nobody understands
PARAMS = """\
params:
  - {name: a, type: int, default: 2}
  - {name: b, type: int, default: 2}
  - {name: c, type: int, default: 3}
  - {name: free, type: string}
  - {name: allowed, type: string, enum: [Freeze, x]}
"""
ALWAYS = {"event.EventType", "event.EventStatus"}


def dimensions(directory: Path, *conditions: str) -> dict[str, list[str]]:
    """Return the values of each dimension that conditions tell apart, beside those of every policy.

    After what the service does not send is a star.
    """
    matches = "".join(f"    - {{output: hold, condition: {json.dumps(one)}}}\n" for one in conditions)
    given = {name: "x" for name in ("free", "allowed") if f"params.{name}" not in matches}
    (space,) = read(loaded(directory, f"name: p\n{PARAMS}rule:\n  match:\n{matches}"), given).spaces()
    return {
        name: [value.label + "*" * (not value.normal) for value in one.values]
        for name, one in space.by_name.items()
        if name not in ALWAYS
    }


def test_opaque_condition_tells_apart_what_it_reads(tmp_path: Path) -> None:
    found = dimensions(tmp_path, f"{SQUARE} > 9")
    assert found.pop("event.DurationInSeconds") == ["-1 (unknown)", "0..", "missing*"]
    assert sorted(found) == ["opaque:1", "opaque:2"], "whether it holds, and whether it has a value"


def test_opaque_conditions_with_equal_parameters_are_one(tmp_path: Path) -> None:
    found = dimensions(tmp_path, *(f"{SQUARE} > params.{name}" for name in "abc"))
    assert sorted(found) == ["event.DurationInSeconds", "opaque:1", "opaque:2", "opaque:3"]


def test_sum_with_now_is_a_time(tmp_path: Path) -> None:
    found = dimensions(tmp_path, "now + duration('1h') > timestamp('2026-01-01T00:00:00Z')")
    assert list(found) == ["now"]
    assert found["now"][1] == "2025-12-31T23:00:00Z"


def test_parameter_is_compared_with_a_field(tmp_path: Path) -> None:
    found = dimensions(tmp_path, "params.allowed == event.EventType")
    assert found == {"params.allowed": ["Freeze", "x"]}


def test_free_text_parameter_is_one_of_those_compared(tmp_path: Path) -> None:
    """Which texts come before another nobody enumerates."""
    assert dimensions(tmp_path, "params.free == 'y'") == {"params.free": ["y", "any other"]}
    assert "opaque:1" in dimensions(tmp_path, "params.free < 'y'")


def test_unknown_source_is_never_sent(tmp_path: Path) -> None:
    found = dimensions(tmp_path, "event.EventSource == 'Platform' || event.EventSource == 'User'.lowerAscii()")
    assert found == {"event.EventSource": ["Platform", "User", "user*", "any other*", "missing*"]}
