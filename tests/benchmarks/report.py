# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The result of a benchmark: quantities, and how they compare with a baseline measured in the same run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

AT_MOST, AT_LEAST = "at most", "at least"


@dataclass(frozen=True)
class Quantity:
    """Something measured; ``value`` is in ``unit``."""

    name: str
    value: float
    unit: str


@dataclass(frozen=True)
class Goal:
    """``value`` times ``baseline`` (a name) was measured; the goal is ``at most`` or ``at least`` ``limit`` times."""

    name: str
    value: float
    baseline: str
    relation: str
    limit: float

    @property
    def met(self) -> bool:
        """Whether the measurement is on the right side of the limit."""
        return self.value <= self.limit if self.relation == AT_MOST else self.value >= self.limit


@dataclass(frozen=True)
class Report:
    """The result of one benchmark. ``notes`` describe what was compared, and how."""

    title: str
    quantities: Sequence[Quantity]
    goals: Sequence[Goal]
    notes: Sequence[str] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the report for JSON."""
        return {
            "title": self.title,
            "quantities": [asdict(quantity) for quantity in self.quantities],
            "goals": [{**asdict(goal), "met": goal.met} for goal in self.goals],
            "notes": list(self.notes),
        }

    def write(self, line: Callable[[str], None]) -> None:
        """Write the report for people, a line at a time."""
        line(self.title)
        width = max((len(quantity.name) for quantity in self.quantities), default=0)  # no quantities if it was skipped
        for quantity in self.quantities:
            line(f"  {quantity.name:<{width}}  {_number(quantity.value):>9} {quantity.unit}")
        rows = [
            (goal.name, f"{_number(goal.value)} x {goal.baseline}", f"goal {goal.relation} {goal.limit:g} x", goal)
            for goal in self.goals
        ]
        widths = [max((len(str(row[column])) for row in rows), default=0) for column in range(3)]
        for name, measured, wanted, goal in rows:
            verdict = "PASS" if goal.met else "MISS"
            line(f"  {verdict}  {name:<{widths[0]}}  {measured:<{widths[1]}}  {wanted}")
        for note in self.notes:
            line(f"  - {note}")
        line("")


def _number(value: float) -> str:
    """Write three significant digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}" if value >= 1 else f"{value:.2g}"
