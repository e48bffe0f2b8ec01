# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When to retry after a fault, and which faults to report."""

from __future__ import annotations

import time
from collections.abc import Callable

from .errors import Fault, LastingFault

FIRST_DELAY_SECONDS = 1.0
BACKOFF_FACTOR = 2.0
# Even if the service asks for more: a Preempt leaves 30 s in all, to be noticed and prepared for.
LONGEST_DELAY_SECONDS = 5.0
JITTER = 0.25  # a delay is shortened by a random share of itself, up to this one


class RetryPolicy:
    """Schedules the next attempt after each failure: exponential backoff with jitter, up to ``LONGEST_DELAY_SECONDS``.

    After a lasting fault the delay is the longest one at once. Retry-After is honoured up to the longest delay.

    All times are from ``clock`` (monotonic, seconds); ``chance`` returns random numbers in [0, 1). No attempt starts
    after ``deadline``; None means that retries never end.
    """

    def __init__(
        self,
        deadline: float | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] | None = None,
    ) -> None:
        self.deadline = deadline
        self.failures = 0  # in a row
        self.next_attempt_at: float | None = None  # None while nothing has failed
        self._clock = clock
        self._chance = chance or _chance

    def record_failure(self, fault: Fault) -> float:
        """Count a failed attempt; return the time at which the next one is due, also in ``next_attempt_at``."""
        self.failures += 1
        delay = LONGEST_DELAY_SECONDS
        if not isinstance(fault, LastingFault):
            # The exponent is bounded, or a day of failures would overflow a float.
            delay = min(delay, FIRST_DELAY_SECONDS * BACKOFF_FACTOR ** min(self.failures - 1, 32))
        delay *= 1 - JITTER * self._chance()
        if fault.retry_after is not None:
            delay = max(delay, min(fault.retry_after, LONGEST_DELAY_SECONDS))
        self.next_attempt_at = self._clock() + delay
        return self.next_attempt_at

    def record_success(self) -> None:
        """Reset the count of failures."""
        self.failures = 0
        self.next_attempt_at = None

    def is_exhausted(self, fault: Fault) -> bool:
        """Return, after ``record_failure(fault)``, whether no further attempt can help a caller that waits."""
        if isinstance(fault, LastingFault):
            return True
        return self.deadline is not None and self.next_attempt_at is not None and self.next_attempt_at > self.deadline


def _chance() -> float:
    import random  # here: most processes never wait, and all have to start fast

    return random.random()  # noqa: S311  # it spreads retries, it protects nothing


class FaultLog:
    """Reports a fault if its kind or status differs from the previous one, and the end of the faults.

    So a service that is away for minutes causes two lines, not hundreds. ``on_end`` gets the number of failed attempts
    and the seconds since the first one.
    """

    def __init__(
        self, on_fault: Callable[[Fault], None], on_end: Callable[[int, float], None], clock: Callable[[], float]
    ) -> None:
        self._on_fault = on_fault
        self._on_end = on_end
        self._clock = clock
        self._last: tuple[str, int | None] | None = None
        self._since = 0.0
        self._failures = 0

    def record_failure(self, fault: Fault) -> None:
        """Count a failure, and report it if it is new."""
        if self._last is None:
            self._since = self._clock()
        self._failures += 1
        kind = (fault.kind, fault.status)
        if kind != self._last:
            self._last = kind
            self._on_fault(fault)

    def record_success(self) -> None:
        """Report the end of the fault, if there was one."""
        if self._last is None:
            return
        self._last = None
        failures, self._failures = self._failures, 0
        self._on_end(failures, self._clock() - self._since)
