# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sets of classes in words."""

from __future__ import annotations

from pathlib import Path

import pytest
from forewarn.analysis.event_space.policies import read
from forewarn.analysis.event_space.regions import cubes, words
from forewarn.analysis.report.decisions import SpaceDecisions
from tools.fixtures.policy_files import HEAD, loaded

KNOWN = "EventType is a known one and EventStatus is a known one"
WAITS = "EventType is a known one and EventStatus = Scheduled"


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("event.EventType == 'Freeze'", ["EventType = Freeze and EventStatus is a known one"]),
        ("event.EventType != 'Freeze' || event.EventType == 'Freeze'", [KNOWN]),
        ("event.EventSource == 'User'", [f"{KNOWN} and EventSource = User"]),
        ("event.EventSource in ['User', 'Platform']", [f"{KNOWN} and EventSource in Platform, User"]),
        ("event.EventSource != 'User'", [f"{KNOWN} and EventSource in Platform, any other"]),
        ("has(event.EventSource)", [f"{KNOWN} and EventSource is there"]),
        ("vm.tags.role != 'db'", [f"{KNOWN} and vm.tags.role = any other"]),
        ("'role' in vm.tags", [f"{KNOWN} and vm.tags.role is known"]),
        ("event.DurationInSeconds >= 9", [f"{KNOWN} and DurationInSeconds in 9.."]),
        ("event.DurationInSeconds < 9", [f"{KNOWN} and DurationInSeconds in -1 (unknown), 0..8"]),
        ("event.DurationInSeconds in [0, 1, 2]", [f"{KNOWN} and DurationInSeconds in 0..2"]),
        ("event.NotBefore - now < duration('10m')", [f"{WAITS} and notice in below 10m"]),
        ("now < event.NotBefore - duration('10m')", [f"{WAITS} and notice in above 10m"]),
        ("vm.tags['a b'] == 'x'", [f"{KNOWN} and vm.tags['a b'] = x"]),
        ("true", [KNOWN]),
    ],
)
def test_words(condition: str, expected: list[str], tmp_path: Path) -> None:
    reading = read(loaded(tmp_path, HEAD + f"    - {{id: a, condition: {condition!r}, output: approve}}\n"))
    (space,) = reading.spaces()
    approved = next(
        found for regions, found in SpaceDecisions(reading, space).regions() if regions[0].output == "approve"
    )
    found, rest = cubes(space, approved, 9, space.reachable)
    assert not rest
    assert [words(space, one, space.reachable) for one in found] == expected
