# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Emulated time, and how it maps to the real time that clients read.

A *moment* is a number of emulated seconds since the creation of the clock. Notice, start, end, the first call and the
switch-off are all times of this clock; a client sees them only through ``wall``, translated to its own, real, clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from ..errors import InputError


class Clock:
    """Runs ``scale`` times as fast as real time; at scale 0 it stands still and only ``advance`` moves it."""

    def __init__(
        self, scale: float = 1.0, monotonic: Callable[[], float] = time.monotonic, wall: Callable[[], float] = time.time
    ) -> None:
        self._monotonic = monotonic
        self._real = monotonic()  # the real time, and
        self._base = 0.0  # the moment, of the last jump or change of scale
        self._wall_offset = wall() - self._real
        self.scale = _checked_scale(scale)

    @property
    def paused(self) -> bool:
        """Whether time moves by ``advance`` only, so that real and emulated seconds are unrelated."""
        return self.scale == 0

    def now(self) -> float:
        """Return the present moment. It never decreases."""
        return self._base + (self._monotonic() - self._real) * self.scale

    def monotonic(self, moment: float) -> float:
        """Return the real monotonic time of a moment, comparable with ``time.monotonic()`` on this machine."""
        real = self._monotonic()
        distance = (moment - self.now()) / (self.scale or 1.0)
        if distance >= 0:
            return real + distance
        # Whatever a jump skipped happened, in real time, at the jump.
        return max(self._real, real + distance)

    def wall(self, moment: float) -> float:
        """Return the real time of a moment, in seconds since 1970, as a client's own clock shows it."""
        return self._wall_offset + self.monotonic(moment)

    def moment(self, wall: float) -> float:
        """Return the moment of a real time: the inverse of ``wall``."""
        return self.now() + (wall - self._wall_offset - self._monotonic()) * (self.scale or 1.0)

    def advance(self, seconds: float) -> None:
        """Jump ahead by emulated seconds. Raises InputError for a span that is negative or too long."""
        if not 0 <= seconds <= 1e10:
            raise InputError(f"time cannot be advanced by {seconds} s.", "Give a number of seconds from 0 up.")
        self._base, self._real = self.now() + seconds, self._monotonic()

    def set_scale(self, scale: float) -> None:
        """Run emulated time ``scale`` times as fast as real time; 0 pauses it. Raises InputError."""
        scale = _checked_scale(scale)
        self._base, self._real = self.now(), self._monotonic()
        self.scale = scale


class ManualClock(Clock):
    """A clock that only ``advance`` moves, and real time with it: for tests and rehearsals."""

    def __init__(self, wall: float = 1_800_000_000.0) -> None:
        self._seconds = 0.0
        super().__init__(1.0, lambda: self._seconds, lambda: wall)

    def advance(self, seconds: float) -> None:
        """Let emulated and real seconds pass. Raises ValueError if they are negative."""
        if seconds < 0:
            raise ValueError("time does not run backwards")
        self._seconds += seconds


def _checked_scale(scale: float) -> float:
    if not 0 <= scale <= 100_000:
        raise InputError(
            f"the time scale {scale} is out of range.",
            "Give a number from 0 (time stands still until it is advanced) to 100000.",
        )
    return float(scale)
