# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The clock that runs since the machine was booted, and which boot that was."""

from __future__ import annotations

import ctypes
import struct

from .api import kernel32, ntdll

_TIME_OF_DAY = 3  # SystemTimeOfDayInformation
# When the machine was booted, now, the time zone (three values), and by how much the clock was set since the boot.
# Times are in 100 ns.
_FIELDS = struct.Struct("<3q2Lq8x")


def boot_id() -> str:
    """Return what tells this boot from others, "" where Windows does not say: when it was, by the clock of then.

    Whoever sets the clock moves the time of the boot that Windows shows, and the sum of all such steps as well.
    """
    buffer = ctypes.create_string_buffer(_FIELDS.size)
    if ntdll.NtQuerySystemInformation(_TIME_OF_DAY, buffer, len(buffer), None) < 0:
        return ""
    booted, _now, _zone, _zone_id, _reserved, steps = _FIELDS.unpack(buffer.raw)
    return f"booted-{booted - steps}"


def boot_seconds() -> float:
    """Return the seconds since boot, sleep included."""
    return float(kernel32.GetTickCount64()) / 1000
