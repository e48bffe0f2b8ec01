# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The request budget of a VM: at most 5 requests in any second, 1 a second on average."""

from __future__ import annotations

import time
from _thread import allocate_lock  # importing threading would delay the runner's first request
from collections.abc import Callable

CAPACITY = 5.0
REFILL_PER_SECOND = 1.0
# A read leaves one token, so that an approval need not wait for polls.
READ_RESERVE = 1.0

_ROUNDING = 1e-9  # seconds, or tokens: ``take`` must succeed for a caller that has waited exactly ``delay``


class Limiter:
    """A token bucket. The service answers 429 to more than 5 requests a second of all agents of a VM together.

    A request costs one token. ``reserve`` is what must be left in the bucket afterwards: READ_RESERVE for reads, 0 for
    approvals, so that approvals go first. ``clock`` is monotonic, in seconds. Thread-safe.
    """

    capacity = CAPACITY
    refill_per_second = REFILL_PER_SECOND

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._tokens = self.capacity
        self._counted_at = clock()
        self._lock = allocate_lock()

    @property
    def tokens(self) -> float:
        """The tokens in the bucket now."""
        with self._lock:
            return self._refilled()

    def _refilled(self) -> float:
        now = self._clock()
        if now > self._counted_at:
            self._tokens = min(self.capacity, self._tokens + (now - self._counted_at) * self.refill_per_second)
            self._counted_at = now
        return self._tokens

    def delay(self, reserve: float = 0.0) -> float:
        """Return the seconds until ``take(reserve)`` will succeed: 0 if it would now."""
        return _missing(self.tokens, reserve) / self.refill_per_second

    def take(self, reserve: float = 0.0) -> bool:
        """Take the token of a request. Return False, and take nothing, if there are too few."""
        with self._lock:
            if _missing(self._refilled(), reserve) > 0:
                return False
            self._tokens -= 1.0
            return True


def _missing(tokens: float, reserve: float) -> float:
    missing = 1.0 + reserve - tokens
    return missing if missing > _ROUNDING else 0.0
