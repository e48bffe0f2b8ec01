# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When to poll: ticks on a grid that does not drift, so that an event is seen within one interval."""

from __future__ import annotations

from collections.abc import Callable

from ..imds.limiter import Limiter

# While the request budget is not full again after approvals, ticks come this much later: the average stays at one
# request a second, and an approval's latency within 25 ms of the interval.
STRETCH = 1.02
# Tokens; a poll is sent a moment after its tick, so the bucket is never brimful at the next one.
_SLACK = 0.05


class Ticks:
    """The times (of ``clock``: monotonic, seconds) at which polls are due. The first is now."""

    def __init__(self, interval_seconds: float, limiter: Limiter, clock: Callable[[], float]) -> None:
        self.next_at = clock()
        self.interval = interval_seconds
        self._limiter = limiter
        self._clock = clock

    def remaining(self) -> float:
        """Return the seconds until the next tick: 0 if it is due."""
        return max(0.0, self.next_at - self._clock())

    def every(self, interval_seconds: float) -> None:
        """Tick every ``interval_seconds`` from now on."""
        self.next_at = self._clock()
        self.interval = interval_seconds

    def advance(self) -> None:
        """Go on to the next tick of the grid. Ticks that were missed are skipped, not made up for."""
        now = self._clock()
        self.next_at += self.interval
        if self.next_at <= now:
            self.next_at += ((now - self.next_at) // self.interval + 1) * self.interval
        refilled = self._limiter.tokens + (self.next_at - now) * self._limiter.refill_per_second
        if refilled < self._limiter.capacity - _SLACK:
            self.next_at += self.interval * (STRETCH - 1)

    def hurry(self) -> None:
        """Make the next tick due as soon as the request budget allows."""
        self.next_at = min(self.next_at, self._clock() + self._limiter.delay())
