# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Locks that end with the process, however it ends: of a directory, and of a name on this machine."""

from __future__ import annotations

import ctypes
import os
from binascii import crc32

from ...errors import InputError
from ..common.lock_held import LockHeldError
from . import security
from .account import is_administrator
from .api import DWORD, ERROR_ACCESS_DENIED, ERROR_ALREADY_EXISTS, HANDLE, error, kernel32, last_error

_AT_ONCE, _EXCLUSIVE = 1, 2  # LockFileEx
_PLACE = 0x7FFF_0000  # far behind the end: what is locked can be neither read nor written
_LOCK_VIOLATION, _IO_PENDING = 33, 997
_NAMES = 3  # another user may hold one on purpose, so there are others
_READ_CONTROL = 0x2_0000
_TRUSTED = (security.SYSTEM, security.ADMINISTRATORS)
# Others may only ask whose it is. Unless an owner is named it is what the token says: in Wine, a group of all users.
_DESCRIPTOR = "O:{}D:(A;;GA;;;SY)(A;;GA;;;BA)(A;;GA;;;OW)(A;;0x120000;;;WD)"


class _FileRange(ctypes.Structure):
    _fields_ = (
        ("internal", ctypes.c_void_p),
        ("internal_high", ctypes.c_void_p),
        ("offset", DWORD),
        ("offset_high", DWORD),
        ("event", HANDLE),
    )


def open_lock(directory: str, name: str) -> int:
    """Open the file in the directory that ``lock`` locks. Raises OSError, with the file's name."""
    file = rf"{directory}\{name}"
    try:
        return os.open(file, os.O_RDWR | os.O_CREAT | os.O_BINARY | os.O_NOINHERIT)
    except OSError as problem:
        try:
            return os.open(file, os.O_RDONLY | os.O_BINARY | os.O_NOINHERIT)  # the file system is read-only now
        except OSError:
            raise problem from None


def lock(descriptor: int, *, wait: bool = False) -> bool:
    """Lock an open file. Return False if another process has the lock, unless ``wait``. Raises OSError."""
    return _lock(descriptor, _EXCLUSIVE | (0 if wait else _AT_ONCE))


def is_locked(path: str) -> bool:
    """Return whether a process has locked a file; a directory is never locked. Raises OSError."""
    if os.path.isdir(path):  # noqa: PTH112 - the runner does without pathlib
        return False
    descriptor = os.open(path, os.O_RDONLY | os.O_BINARY | os.O_NOINHERIT)
    try:
        return not _lock(descriptor, _AT_ONCE)
    finally:
        os.close(descriptor)  # which ends the lock


def _lock(descriptor: int, flags: int) -> bool:
    import msvcrt

    place = _FileRange(offset=_PLACE)
    if kernel32.LockFileEx(msvcrt.get_osfhandle(descriptor), flags, 0, 1, 0, ctypes.byref(place)):
        return True
    code = last_error()
    if code in (_LOCK_VIOLATION, _IO_PENDING):
        return False
    raise error(code)


class NamedLock:
    """A lock of a name on this machine: a mutex in the namespace that all sessions share.

    ``others`` describe processes of other users that have the name too, and do not keep this one from it.
    """

    def __init__(self, name: str) -> None:
        self.others: list[str] = []
        self._number = crc32(name.encode("utf-8", "surrogateescape"))
        self._handle: int | None = None

    def acquire(self) -> None:
        """Take it. Raises LockHeldError if a process of an administrator or of this user has it, and InputError."""
        try:
            for number in range(_NAMES):  # all, even after a free one: another process may have found that one taken
                self._acquire(f"Global\\forewarn-run-{self._number:08x}-{number}")
        except BaseException:  # KeyboardInterrupt too: another process must not find it taken
            self.release()
            raise

    def _acquire(self, name: str) -> None:
        owner = security.ADMINISTRATORS if is_administrator() else security.own_sid()
        with security.descriptor_of(_DESCRIPTOR.format(owner)) as attributes:
            handle = kernel32.CreateMutexW(attributes, False, name)
            code = last_error()
        if handle and code != ERROR_ALREADY_EXISTS:
            if self._handle is None:
                self._handle = handle
            else:
                kernel32.CloseHandle(handle)
            return
        if not handle and code != ERROR_ACCESS_DENIED:
            raise InputError(f"this runner cannot find out whether there is another: {error(code).strerror}.")
        holder = _owner(handle, name)
        if holder is not None and holder in (*_TRUSTED, security.own_sid()):
            raise LockHeldError(0)
        self.others.append("somebody" if holder is None else f"a process of {security.account_name(holder)}")

    def release(self) -> None:
        """Release the lock."""
        if self._handle is not None:
            kernel32.CloseHandle(self._handle)
            self._handle = None


def _owner(handle: int | None, name: str) -> str | None:
    """Return who has a mutex, or None if Windows does not say; closes the handle."""
    opened = handle or kernel32.OpenMutexW(_READ_CONTROL, False, name)
    if not opened:
        return None
    try:
        return security.of_handle(opened, security.KERNEL_OBJECT).owner
    except OSError:
        return None
    finally:
        kernel32.CloseHandle(opened)
