# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Credentials on Windows: files that DPAPI encrypts for this machine, and that only the runner's account can read.

A hook that names credentials gets copies that are not encrypted, in a directory of its own, until it ends.
"""

from __future__ import annotations

import ctypes
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from . import security
from .api import DWORD, crypt32, error, kernel32
from .files import open_to_read

PROVIDE = "run forewarn credential {} as an administrator, or list it in forewarn_credentials"  # for sentences

_HEADER = b"forewarn credential 1\n"  # what follows was encrypted by ``protect``
_OVERHEAD_BYTES = 64 * 1024  # of an encrypted file
_LOCAL_MACHINE, _NO_WINDOW = 4, 1  # CRYPTPROTECT_…
_PREFIX = "credentials-"


class _Blob(ctypes.Structure):
    """DATA_BLOB."""

    _fields_ = (("size", DWORD), ("data", ctypes.c_void_p))


def protect(secret: bytes) -> bytes:
    """Return the content of a file with a secret, which only this machine can decrypt. Raises OSError."""
    return _HEADER + _crypt(crypt32.CryptProtectData, secret)


def read(path: str, most_bytes: int) -> bytes:
    """Return the secret in a file, encrypted or not, at most so many bytes. Raises OSError."""
    with open(open_to_read(path), "rb") as file:  # noqa: PTH123 - a descriptor
        content = file.read(most_bytes + _OVERHEAD_BYTES)
    if content.startswith(_HEADER):
        content = _crypt(crypt32.CryptUnprotectData, content[len(_HEADER) :])
    return content[:most_bytes]


def _crypt(function: object, content: bytes) -> bytes:
    source = ctypes.create_string_buffer(content, len(content))
    given, taken = _Blob(len(content), ctypes.cast(source, ctypes.c_void_p)), _Blob()
    flags = _LOCAL_MACHINE | _NO_WINDOW
    if not function(ctypes.byref(given), None, None, None, None, flags, ctypes.byref(taken)):  # type: ignore[operator]  # a function of the API
        raise error()
    try:
        return ctypes.string_at(taken.data or 0, taken.size)
    finally:
        kernel32.LocalFree(taken.data)


def hand_over(paths: Mapping[str, str], below: str) -> str:
    """Return a new directory with copies of the secrets of ``paths``, by their names. Raises OSError."""
    Path(below).mkdir(parents=True, exist_ok=True)
    place = Path(below, f"{_PREFIX}{os.urandom(4).hex()}")
    security.create_directory(str(place))
    try:
        for name, where in paths.items():
            (place / name).write_bytes(read(where, Path(where).stat().st_size))
    except OSError:  # a full disk must not keep the copies
        take_back(str(place))
        raise
    return str(place)


def take_back(place: str) -> None:
    """Remove the copies. Raises nothing."""
    shutil.rmtree(place, ignore_errors=True)


def remove_leftovers(below: str) -> None:
    """Remove the copies of a runner that was killed, when its hooks have ended. Raises nothing."""
    for place in Path(below).glob(f"{_PREFIX}*"):
        take_back(str(place))
