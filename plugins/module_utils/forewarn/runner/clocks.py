# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The clocks, and times that mean something after a restart, a reboot, or a wall clock that was set."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any, NamedTuple

from ..system.clock import boot_id, boot_seconds


class Stamp(NamedTuple):
    """A moment: wall-clock time (seconds since 1970), time since boot (seconds, sleep included), and which boot."""

    wall: float
    boot: float
    boot_id: str

    @classmethod
    def of(cls, value: Sequence[Any]) -> Stamp:
        """Return what was written as a JSON array. Raises ValueError or TypeError for anything else."""
        wall, boot, boot_id = value
        return cls(float(wall), float(boot), str(boot_id))


class Clocks:
    """The machine's clocks. Tests pass their own."""

    def __init__(self) -> None:
        self.boot_id = boot_id()

    def monotonic(self) -> float:
        """Return seconds that only pass while the machine runs."""
        return time.monotonic()

    def boottime(self) -> float:
        """Return the seconds since boot, where the system has such a clock."""
        return boot_seconds()

    def wall(self) -> float:
        """Return the seconds since 1970."""
        return time.time()

    def utc_now(self) -> datetime:
        """Return the wall-clock time as an aware UTC time."""
        return datetime.fromtimestamp(self.wall(), timezone.utc)

    def stamp(self, age_seconds: float = 0.0) -> Stamp:
        """Return this moment, or the one ``age_seconds`` ago."""
        return Stamp(self.wall() - age_seconds, self.boottime() - age_seconds, self.boot_id)

    def since(self, stamp: Stamp) -> float:
        """Return the seconds since a moment: by the boot clock, unless the machine was booted since."""
        if stamp.boot_id and stamp.boot_id == self.boot_id:
            return max(0.0, self.boottime() - stamp.boot)
        return max(0.0, self.wall() - stamp.wall)
