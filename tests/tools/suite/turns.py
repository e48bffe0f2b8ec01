# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which tests size small leaves to other seeds.

Tests that cost seconds each, often because they start Ansible, are marked ``in_turn(3)``, mostly by the file: one of
three runs, and with another seed another. ``in_turn(1)`` is for a test that always runs. With ``together=True`` the
tests of a file have their turn at once, since what costs most is what they share.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from random import Random

import pytest
from tools.suite import sizes


def left_to_other_seeds(items: Iterable[pytest.Item], named: Collection[str]) -> Iterator[pytest.Item]:
    """Yield the tests that another seed runs. ``named`` are pytest's arguments: a test named by its id always runs."""
    # Not the seed itself: sizes.in_turn counts cases from it, and a test would meet the same ones whenever it runs.
    turn = Random(sizes.SEED).getrandbits(32)
    places: Counter[Path] = Counter()
    for item in items:
        marker = item.get_closest_marker("in_turn")
        if sizes.NAME != "small" or marker is None or marker.args[0] == 1:
            continue
        # Of another file, another place begins.
        place = zlib.crc32(item.path.name.encode()) + places[item.path]
        if not marker.kwargs.get("together"):
            places[item.path] += 1
        if (turn + place) % marker.args[0] and not _is_named(item.nodeid, named):
            yield item


def _is_named(nodeid: str, named: Collection[str]) -> bool:
    """Return whether pytest was asked for this test by its id, with its parameters or without."""
    function = nodeid.partition("[")[0]
    return any("::" in name and name in (nodeid, function) for name in named)
