# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Owners, access control lists and security identifiers of files and other objects."""

from __future__ import annotations

import ctypes
from contextlib import contextmanager
from typing import Iterator, NamedTuple

from .api import DWORD, HANDLE, advapi32, error, kernel32, last_error

SYSTEM, ADMINISTRATORS, EVERYBODY = "S-1-5-18", "S-1-5-32-544", "S-1-1-0"
# The service that installs Windows and its updates; and who owns an object, by an entry of its list.
TRUSTED_INSTALLER = "S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464"
OWNER_RIGHTS, CREATOR_OWNER = "S-1-3-4", "S-1-3-0"
FILE, KERNEL_OBJECT = 1, 6  # SE_OBJECT_TYPE

_READ_CONTROL, _SHARE_ALL, _OPEN_EXISTING = 0x2_0000, 7, 3
_BACKUP_SEMANTICS, _OPEN_REPARSE_POINT = 0x200_0000, 0x20_0000
_OWNER, _DACL = 1, 4  # SECURITY_INFORMATION
_ALLOWED = (0, 9)  # ACCESS_ALLOWED_ACE_TYPE, with a condition
_INHERIT_ONLY = 8
_TOKEN_QUERY, _TOKEN_USER = 8, 1
_LONGEST_NAME = 256
_ALREADY_EXISTS = 183
_INVALID_HANDLE = ctypes.c_void_p(-1).value
# Full control for SYSTEM, administrators and a user, inherited by all that is created in it, and nothing from above.
_PRIVATE = "D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;FA;;;{})"


class AccessEntry(NamedTuple):
    """One entry of a list: who (a security identifier as text) may do what (an access mask); an allowance."""

    sid: str
    mask: int


class Security(NamedTuple):
    """The owner of an object, and the entries of its list that apply to itself; None: no list, all may do all."""

    owner: str
    entries: tuple[AccessEntry, ...] | None


class Attributes(ctypes.Structure):
    """SECURITY_ATTRIBUTES."""

    _fields_ = (("length", DWORD), ("descriptor", ctypes.c_void_p), ("inherit", ctypes.c_int))


def read(path: str) -> Security:
    """Return who may do what with a file or directory, or with a link itself. Raises OSError."""
    handle = kernel32.CreateFileW(
        path, _READ_CONTROL, _SHARE_ALL, None, _OPEN_EXISTING, _BACKUP_SEMANTICS | _OPEN_REPARSE_POINT, None
    )
    if handle in (None, _INVALID_HANDLE):
        raise error()
    try:
        return of_handle(handle, FILE)
    finally:
        kernel32.CloseHandle(handle)


def of_handle(handle: int, kind: int) -> Security:
    """Return who may do what with an open object of a kind, such as ``KERNEL_OBJECT``. Raises OSError."""
    owner, dacl, descriptor = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    code = advapi32.GetSecurityInfo(
        handle,
        kind,
        _OWNER | _DACL,
        ctypes.byref(owner),
        None,
        ctypes.byref(dacl),
        None,
        ctypes.byref(descriptor),
    )
    if code:
        raise error(code)
    try:
        return Security(_text(owner.value), None if dacl.value is None else tuple(_entries(dacl)))
    finally:
        kernel32.LocalFree(descriptor)


def _entries(dacl: ctypes.c_void_p) -> Iterator[AccessEntry]:
    count = ctypes.cast(dacl, ctypes.POINTER(ctypes.c_uint16))[2]  # ACL.AceCount
    for number in range(count):
        entry = ctypes.c_void_p()
        if not advapi32.GetAce(dacl, number, ctypes.byref(entry)) or not entry.value:
            raise error()
        kind, flags = ctypes.cast(entry, ctypes.POINTER(ctypes.c_uint8))[:2]
        if kind in _ALLOWED and not flags & _INHERIT_ONLY:
            # ACCESS_ALLOWED_ACE: a header of four bytes, the mask, the identifier.
            yield AccessEntry(_text(entry.value + 8), ctypes.cast(entry, ctypes.POINTER(ctypes.c_uint32))[1])


def own_sid() -> str:
    """Return the user of this process. Raises OSError."""
    token, size = HANDLE(), DWORD()
    if not advapi32.OpenProcessToken(kernel32.GetCurrentProcess(), _TOKEN_QUERY, ctypes.byref(token)):
        raise error()
    try:
        buffer = ctypes.create_string_buffer(_LONGEST_NAME)
        if not advapi32.GetTokenInformation(token, _TOKEN_USER, buffer, len(buffer), ctypes.byref(size)):
            raise error()
        return _text(ctypes.cast(buffer, ctypes.POINTER(ctypes.c_void_p))[0])
    finally:
        kernel32.CloseHandle(token)


def account_name(sid: str) -> str:
    """Return the name of a security identifier, with its domain, or the identifier if nobody knows its name."""
    found = ctypes.c_void_p()
    if not advapi32.ConvertStringSidToSidW(sid, ctypes.byref(found)):
        return sid
    try:
        name, domain = (ctypes.create_unicode_buffer(_LONGEST_NAME) for _buffer in range(2))
        sizes, use = [DWORD(_LONGEST_NAME), DWORD(_LONGEST_NAME)], DWORD()
        known = advapi32.LookupAccountSidW(
            None, found, name, ctypes.byref(sizes[0]), domain, ctypes.byref(sizes[1]), ctypes.byref(use)
        )
    finally:
        kernel32.LocalFree(found)
    if not known or not name.value:
        return sid
    return rf"{domain.value}\{name.value}" if domain.value else name.value


def create_directory(path: str) -> None:
    """Create a directory for SYSTEM, administrators and this user alone. Raises OSError."""
    with descriptor_of(_PRIVATE.format(own_sid())) as attributes:
        created = kernel32.CreateDirectoryW(path, attributes)
        code = last_error()
    if not created:
        raise FileExistsError(17, "File exists", path) if code == _ALREADY_EXISTS else error(code)


@contextmanager
def descriptor_of(sddl: str) -> Iterator[object]:
    """Yield what creates an object with a security descriptor (SDDL). Raises OSError."""
    descriptor = ctypes.c_void_p()
    if not advapi32.ConvertStringSecurityDescriptorToSecurityDescriptorW(sddl, 1, ctypes.byref(descriptor), None):
        raise error()
    try:
        yield ctypes.byref(Attributes(ctypes.sizeof(Attributes), descriptor, 0))
    finally:
        kernel32.LocalFree(descriptor)


def _text(sid: int | None) -> str:
    """Return a security identifier as text. Raises OSError."""
    text = ctypes.c_wchar_p()
    if not sid or not advapi32.ConvertSidToStringSidW(sid, ctypes.byref(text)):
        raise error()
    try:
        return text.value or ""
    finally:
        kernel32.LocalFree(ctypes.cast(text, ctypes.c_void_p))
