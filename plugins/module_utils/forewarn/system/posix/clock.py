# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The clock that runs since the machine was booted, and which boot that was."""

from __future__ import annotations

import time

_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", None)  # Linux


def boot_id() -> str:
    """Return what tells this boot from others, "" where the system does not say."""
    try:
        with open(_BOOT_ID, encoding="ascii") as file:  # noqa: PTH123 - the client alone does without pathlib
            return file.read().strip()
    except (OSError, ValueError):
        return ""


def boot_seconds() -> float:
    """Return the seconds since boot, sleep included where the system has such a clock."""
    return time.monotonic() if _BOOT_CLOCK is None else time.clock_gettime(_BOOT_CLOCK)
