# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an event really cost this VM: for how long it stood still, or was down.

A pause shows as a wait that took longer than intended, by clocks that nobody sets. A pause that stops these clocks too
leaves no trace here, and a machine too busy to wake the runner looks like one that stood still.
"""

from __future__ import annotations

from .clocks import Clocks
from .telemetry.heartbeat import Beat

# Wake-ups are this late on a machine that is merely busy.
THRESHOLD_SECONDS = 0.5


class Pauses:
    """Measures each wait of the runner's loop."""

    def __init__(self, clocks: Clocks) -> None:
        self._clocks = clocks
        self._waiting: tuple[float, float, float] | None = None  # seconds asked, and both clocks when it began

    def before_wait(self, seconds: float) -> None:
        """Note that a wait of at most ``seconds`` begins now."""
        self._waiting = (max(0.0, seconds), self._clocks.monotonic(), self._clocks.boottime())

    def after_wait(self) -> float | None:
        """Return for how many seconds the machine stood still during the wait, or None if it did not.

        A wait may end early. If the machine was suspended, the clocks differ even then.
        """
        if self._waiting is None:
            return None
        asked, monotonic, boottime = self._waiting
        self._waiting = None
        ran = self._clocks.monotonic() - monotonic
        passed = self._clocks.boottime() - boottime
        late = max(ran - asked, passed - asked, passed - ran)
        return late if late > THRESHOLD_SECONDS else None


def downtime(last: Beat | None, clocks: Clocks) -> float | None:
    """Return the seconds from the last beat before a reboot to now, or None if the machine has not rebooted.

    Only the wall clock runs through a reboot, and it may have been set: the time since boot is the minimum.
    """
    if last is None or not last.stamp.boot_id or not clocks.boot_id or last.stamp.boot_id == clocks.boot_id:
        return None
    return max(clocks.wall() - last.stamp.wall, clocks.boottime())
