# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The machine's clocks, as a test wants them."""

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
