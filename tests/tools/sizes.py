# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How much the tests try: the one place that reads FOREWARN_SIZE and FOREWARN_SEED.

FOREWARN_SIZE is ``small`` (the default: make test and CI), ``full`` (make test-all, each night) or ``soak`` (ten times
full). FOREWARN_SEED is the number from which random tests count: 0 unless it is set, another one in each run of CI. The
same seed gives the same tests. Tests marked ``full`` are skipped at size small.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from dataclasses import dataclass

NAMES = ("small", "full", "soak")
_SOAK = 10  # times as much as full


@dataclass(frozen=True)
class Sizes:
    """How many of each thing the tests of one run try; the names are also the words of the report."""

    cel_evaluations: int  # by our evaluator and by another, all random tests together
    hypothesis_percent: int  # of the examples that each property test asks for


SMALL = Sizes(
    cel_evaluations=6_000,
    hypothesis_percent=25,
)
FULL = Sizes(
    cel_evaluations=24_000,
    hypothesis_percent=100,
)


def _sizes(name: str) -> Sizes:
    if name not in NAMES:
        raise SystemExit(f"FOREWARN_SIZE is {name!r}: it must be one of {', '.join(NAMES)}")
    if name == "soak":
        return Sizes(**{field: value * _SOAK for field, value in dataclasses.asdict(FULL).items()})
    return SMALL if name == "small" else FULL


NAME = os.environ.get("FOREWARN_SIZE") or "small"
SIZE = _sizes(NAME)
SEED = int(os.environ.get("FOREWARN_SEED") or 0)


def seeds(count: int) -> range:
    """Return the seeds of this run: ``count`` numbers, from SEED on."""
    return range(SEED, SEED + count)


def examples(full: int) -> int:
    """Return how many examples a property test draws, of those that it draws at size full."""
    return max(1, full * SIZE.hypothesis_percent // 100)


def left_out() -> Iterator[str]:
    """Yield what this run tries less of than size full: "3 of 12 group stories"."""
    for field in dataclasses.fields(Sizes):
        here, full = getattr(SIZE, field.name), getattr(FULL, field.name)
        if here < full:
            yield f"{here:,} of {full:,} {field.name.replace('_', ' ')}"
