# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Many replayed events in a few numbers, in memory that does not grow with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from .recordings import RecordedDecision
from .replay import APPROVED, HELD, NOT_SENT, STARTED, D, DecisionCourse, ReplayedEvent, TimedDecision

OUTCOMES = (APPROVED, NOT_SENT, HELD, STARTED)
_MOST_CHANGES = 1000  # distinct kinds that are counted: more than anybody reads


class DecisionChange(NamedTuple):
    """The first decisions, then and now, that differ: each output with the rule, None where none decided.

    Both are the same if only the time differs.
    """

    then_output: str
    then_by: str | None
    now_output: str
    now_by: str | None


class Spans:
    """Spans of time, in seconds; kept to a tenth."""

    def __init__(self) -> None:
        self._tenths: Counter[int] = Counter()

    def add(self, seconds: float | None) -> None:
        """Count a span, if there is one."""
        if seconds is not None:
            self._tenths[round(seconds * 10)] += 1

    def quantile(self, share: float) -> float | None:
        """Return the span that a share of all does not exceed: 0 gives the shortest, 1 the longest; or None."""
        wanted = share * self._tenths.total()
        counted = 0
        for tenths in sorted(self._tenths):
            counted += self._tenths[tenths]
            if counted >= wanted:
                return tenths / 10
        return None

    def as_dict(self) -> dict[str, float | None]:
        """Return some quantiles."""
        names = {"shortest": 0.0, "median": 0.5, "longest": 1.0}
        return {name: self.quantile(share) for name, share in names.items()}


class Side:
    """The outcomes of events. ``latency`` is from first sight to the approval, ``ahead`` from there to NotBefore."""

    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()
        self.latency = Spans()
        self.ahead = Spans()

    def add(self, event: ReplayedEvent, course: DecisionCourse[D]) -> None:
        """Count what was decided about an event."""
        self.outcomes[course.outcome] += 1
        self.latency.add(event.latency_seconds(course))
        self.ahead.add(event.ahead_seconds(course))

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {
            "events": {outcome: self.outcomes[outcome] for outcome in OUTCOMES},
            "latency_seconds": self.latency.as_dict(),
            "ahead_seconds": self.ahead.as_dict(),
        }


class Statistics:
    """Counts replayed events. ``compared`` are those with recorded decisions, ``changed`` are among them."""

    def __init__(self) -> None:
        self.events = 0
        self.compared = 0
        self.changed = 0
        self.nameless = 0  # not sent, since the VM is not known
        self.then = Side()
        self.now = Side()
        self.changes: Counter[DecisionChange] = Counter()

    def add(self, event: ReplayedEvent) -> None:
        """Count an event."""
        self.events += 1
        self.now.add(event, event.now)
        self.nameless += event.vm is None and event.now.outcome == NOT_SENT
        if not event.then.known:
            return
        self.compared += 1
        self.then.add(event, event.then)
        self.changed += bool(event.changed)
        difference = event.difference()
        if difference is not None:
            then, now = difference
            change = DecisionChange(then.output, by(then), now.output, by(now))
            if change in self.changes or len(self.changes) < _MOST_CHANGES:
                self.changes[change] += 1

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {
            "events": self.events,
            "compared": self.compared,
            "changed": self.changed,
            "then": self.then.as_dict() if self.compared else None,
            "now": self.now.as_dict(),
            "changes": [{**change._asdict(), "events": count} for change, count in self.changes.most_common()],
        }


def by(decision: RecordedDecision | TimedDecision) -> str | None:
    """Return which rule decided, with its policy."""
    names: Sequence[str] = [name for name in (decision.policy, decision.rule) if name is not None]
    return "/".join(names) or None
