# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes as Windows shows them: an id and the time of creation, in units of 100 ns since 1601, identify one."""

from __future__ import annotations

import ctypes
from ctypes import wintypes

from .. import api

QUERY, SYNCHRONIZE = 0x1000, 0x0010_0000  # PROCESS_QUERY_LIMITED_INFORMATION …
_LARGEST_ID = 0xFFFF_FFFF
_ERROR_INVALID_PARAMETER = 87  # there is no such process
_WAIT_TIMEOUT = 258


def exists(pid: int) -> bool:
    """Return whether a process runs; True if that is unknown."""
    if not 0 < pid <= _LARGEST_ID:
        return pid > 0
    handle = api.kernel32.OpenProcess(SYNCHRONIZE, False, pid)
    if not handle:
        return api.last_error() != _ERROR_INVALID_PARAMETER
    try:
        return is_running(handle)
    finally:
        api.kernel32.CloseHandle(handle)


def is_running(handle: int) -> bool:
    """Return whether the process of a handle has not ended."""
    return bool(api.kernel32.WaitForSingleObject(handle, 0) == _WAIT_TIMEOUT)


def created(handle: int) -> int:
    """Return when the process of a handle was created. Raises OSError."""
    times = [wintypes.FILETIME() for _time in range(4)]
    if not api.kernel32.GetProcessTimes(handle, *map(ctypes.byref, times)):
        raise api.error()
    return int(times[0].dwHighDateTime) << 32 | int(times[0].dwLowDateTime)
