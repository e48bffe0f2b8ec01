# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Job objects: a process and all that it starts, which can be counted and ended together (Windows API reference)."""

from __future__ import annotations

import ctypes
from ctypes import wintypes

from .. import api

CREATE_SUSPENDED = 0x4  # of processes that ``Job.begin`` lets begin
_SET_QUOTA, _SUSPEND_RESUME, _TERMINATE = 0x100, 0x800, 0x1  # PROCESS_SET_QUOTA …
_BASIC_ACCOUNTING, _EXTENDED_LIMIT = 1, 9  # JobObjectBasicAccountingInformation …
_KILL_ON_JOB_CLOSE = 0x2000


class _BasicLimits(ctypes.Structure):
    _fields_ = (
        ("times", ctypes.c_int64 * 2),
        ("flags", wintypes.DWORD),
        ("working_set", ctypes.c_size_t * 2),
        ("processes", wintypes.DWORD),
        ("affinity", ctypes.c_size_t),
        ("classes", wintypes.DWORD * 2),
    )


class _ExtendedLimits(ctypes.Structure):
    _fields_ = (("basic", _BasicLimits), ("io", ctypes.c_uint64 * 6), ("memory", ctypes.c_size_t * 4))


class _Accounting(ctypes.Structure):
    _fields_ = (
        ("times", ctypes.c_int64 * 4),
        ("faults", wintypes.DWORD),
        ("total", wintypes.DWORD),
        ("active", wintypes.DWORD),
        ("ended", wintypes.DWORD),
    )


class Job:
    """A job object, which ends with this process, however that ends. ``close`` leaves its processes alone instead."""

    def __init__(self) -> None:
        """Raises OSError."""
        self._handle = api.kernel32.CreateJobObjectW(None, None)
        if not self._handle:
            raise api.error()
        try:
            self._set_flags(_KILL_ON_JOB_CLOSE)
        except OSError:
            api.kernel32.CloseHandle(self._handle)
            raise

    def begin(self, pid: int) -> None:
        """Put a suspended child process, and all that it will start, into the job; let it begin. Raises OSError."""
        process = api.kernel32.OpenProcess(_SET_QUOTA | _SUSPEND_RESUME | _TERMINATE, False, pid)
        if not process:
            raise api.error()
        try:
            if not api.kernel32.AssignProcessToJobObject(self._handle, process):
                raise api.error()
            if api.ntdll.NtResumeProcess(process) < 0:
                raise OSError(f"Windows did not let process {pid} begin")
        finally:
            api.kernel32.CloseHandle(process)

    def has_processes(self) -> bool:
        """Return whether a process of the job runs."""
        found = _Accounting()
        size = ctypes.sizeof(found)
        api.kernel32.QueryInformationJobObject(self._handle, _BASIC_ACCOUNTING, ctypes.byref(found), size, None)
        return bool(found.active)

    def terminate(self, exit_code: int) -> None:
        """End all processes of the job."""
        api.kernel32.TerminateJobObject(self._handle, exit_code)

    def close(self) -> None:
        """Let go of the processes that still run."""
        try:
            self._set_flags(0)
        finally:
            api.kernel32.CloseHandle(self._handle)

    def _set_flags(self, flags: int) -> None:
        limits = _ExtendedLimits()
        limits.basic.flags = flags
        size = ctypes.sizeof(limits)
        if not api.kernel32.SetInformationJobObject(self._handle, _EXTENDED_LIMIT, ctypes.byref(limits), size):
            raise api.error()
