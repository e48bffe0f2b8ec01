# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The machine's clocks, under the control of a test."""

from __future__ import annotations

from collections.abc import Callable

from forewarn.runner.clocks import Clocks


class ScriptedClocks(Clocks):
    """``elapsed`` returns the seconds that have passed, ``wall`` what the wall clock shows; a reboot: a new boot id."""

    def __init__(self, elapsed: Callable[[], float], wall: Callable[[], float], boot_id: str = "boot-1") -> None:
        self._elapsed = elapsed
        self._wall = wall
        self.boot_id = boot_id

    def monotonic(self) -> float:
        return self._elapsed()

    def boottime(self) -> float:
        return self._elapsed()

    def wall(self) -> float:
        return self._wall()


class ManualClocks(Clocks):
    """The clocks of a machine that move when a test says so: it changes ``now``, ``slept`` and ``wall_offset``."""

    def __init__(self, now: float = 1000.0, wall: float = 1_780_001_000.0) -> None:
        self.now = now  # seconds since boot
        self.slept = 0.5  # those that it was suspended, which only the boot clock counts
        self.wall_offset = wall - self.boottime()
        self.boot_id = "boot-1"
        self.pauses: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def boottime(self) -> float:
        return self.now + self.slept

    def wall(self) -> float:
        return self.boottime() + self.wall_offset

    def sleep(self, seconds: float) -> None:
        """Do what ``time.sleep`` does."""
        assert seconds >= 0
        self.pauses.append(seconds)
        self.now += seconds

    def reboot(self, down: float, up: float = 0.0) -> None:
        """Reboot: be down for some seconds, then up for some."""
        self.wall_offset += self.boottime() + down
        self.boot_id += "+"
        self.now, self.slept = up, 0.0
