# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When to poll: at ticks on a grid that does not drift, so that an event is seen within one interval."""

from __future__ import annotations

from collections.abc import Callable

from ..imds.limiter import Limiter

# While the request budget is not full again after approvals, ticks come this much later: the average stays at one
# request a second, and an approval's latency within 25 ms of the interval.
STRETCH = 1.02
# Tokens; a poll is sent a moment after its tick, so the bucket is never brimful at the next one.
_SLACK = 0.05


class PollSchedule:
    """When the next poll is due, by ``clock``: monotonic, seconds. The first poll is due now."""

    def __init__(self, interval_seconds: float, limiter: Limiter, clock: Callable[[], float]) -> None:
        self.interval = interval_seconds
        self._next_at = clock()
        self._request_done = False
        self._poll_soon = False
        self._limiter = limiter
        self._clock = clock

    def set_interval(self, seconds: float) -> None:
        """Poll now, and every ``seconds`` from now on."""
        self.interval = seconds
        self._next_at = self._clock()

    def request_done(self) -> None:
        """Note that no other request follows before the next poll."""
        self._request_done = True

    def poll_soon(self) -> None:
        """Let the next poll come as soon as no request is in flight and the request budget allows."""
        self._poll_soon = True

    def due_in(self) -> float:
        """Return the seconds until the next poll, 0 if it is due. Only for when no request is in flight."""
        now = self._clock()
        if self._request_done:
            self._advance(now)
        if self._poll_soon:
            self._next_at = min(self._next_at, now + self._limiter.delay())
        self._request_done = self._poll_soon = False
        return max(0.0, self._next_at - now)

    def _advance(self, now: float) -> None:
        """Go on to the next tick of the grid. Ticks that were missed are skipped, not made up for."""
        self._next_at += self.interval
        if self._next_at <= now:
            self._next_at += ((now - self._next_at) // self.interval + 1) * self.interval
        refilled = self._limiter.tokens + (self._next_at - now) * self._limiter.refill_per_second
        if refilled < self._limiter.capacity - _SLACK:
            self._next_at += self.interval * (STRETCH - 1)
