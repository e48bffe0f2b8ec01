# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether others can change a file: its owner and its access control list, and those of the way to it.

Trusted are SYSTEM, the administrators, the installer of Windows, and the user of this process.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path, PureWindowsPath

from ...errors import InputError
from ..common.untrusted import UntrustedError, subject
from . import security
from .security import Security

_MOST_LINKS = 40  # as on Linux
_SUFFIXES = (".exe", ".cmd", ".bat", ".ps1")
_TRUSTED = frozenset(
    {
        security.SYSTEM,
        security.ADMINISTRATORS,
        security.TRUSTED_INSTALLER,
        security.OWNER_RIGHTS,
        security.CREATOR_OWNER,
    }
)
# Access rights of the Windows API reference. To replace: delete, write the list or the owner, all, or change.
_GENERIC_ALL, _GENERIC_WRITE, _GENERIC_READ = 0x1000_0000, 0x4000_0000, 0x8000_0000
_READ_DATA, _WRITE_DATA, _APPEND_DATA, _DELETE_CHILD = 0x1, 0x2, 0x4, 0x40
_REPLACE = 0x1_0000 | 0x4_0000 | 0x8_0000 | _GENERIC_ALL | _GENERIC_WRITE | _DELETE_CHILD
_CHANGE = _REPLACE | _WRITE_DATA | _APPEND_DATA  # in a directory: create files and directories
_READ = _READ_DATA | _GENERIC_READ | _GENERIC_ALL


def check_file(path: str, what: str) -> None:
    """Raise InputError unless ``path`` is a file that only trusted users can change or replace.

    It is an UntrustedError if others can. This applies to the file, to every directory above it, and to each link on
    the way and what is above that. In a directory on the way others may create files, but not replace any. ``what``
    names what the file is for, such as "artifact".
    """
    if not stat.S_ISREG(_trusted(path, what).st_mode):
        raise InputError(f"{subject(what, path)} is not a regular file.")


def check_program(path: str) -> None:
    """Raise InputError unless ``path`` is absolute, passes ``check_file``, and is a program or a script."""
    what = "hook program"
    if not PureWindowsPath(path).is_absolute():
        raise InputError(
            f"{subject(what, path)} is not an absolute path.",
            r"Write the whole path, such as C:\Scripts\drain.cmd: PATH is not searched.",
        )
    check_file(path, what)
    if PureWindowsPath(path).suffix.lower() not in _SUFFIXES:
        raise InputError(f"{subject(what, path)} is no program.", f"Its name has to end in {', '.join(_SUFFIXES)}.")


def check_directory(path: str, what: str, *, shared: bool = False) -> None:
    """Raise InputError unless ``path`` is a directory in which only trusted users can change anything.

    With ``shared`` others may create files there: that is enough to make a directory of our own in it.
    """
    if not stat.S_ISDIR(_trusted(path, what, shared=shared).st_mode):
        raise InputError(f"{subject(what, path)} is not a directory.")


def check_secret(path: str) -> None:
    """Raise InputError unless ``path`` passes ``check_file``, and only trusted users can read it."""
    check_file(path, "the secret")
    try:
        found = _culprit(security.read(path), _READ)
    except OSError as error:
        raise InputError(f"the secret {path}: {error.strerror}.") from error
    if found is not None:
        raise InputError(f"the secret {path} is readable by {security.account_name(found)}.", _remedy(path, found))


def is_private_directory(directory: Path) -> bool:
    """Create a directory if needed. Return whether only trusted users can write to it."""
    try:
        if not directory.is_dir():
            directory.parent.mkdir(parents=True, exist_ok=True)
            security.create_directory(str(directory))
        found = security.read(str(directory))
    except OSError:
        return False
    return _is_trusted(found.owner) and _culprit(found, _CHANGE) is None


def _trusted(path: str, what: str, *, shared: bool = False) -> os.stat_result:
    """Return the status of what ``path`` leads to. Raises InputError if others can change it."""
    try:
        for step, _status in _steps(path):
            _check(path, what, step, security.read(step), _REPLACE)
        end = step
        if not shared:
            _check(path, what, end, security.read(end), _CHANGE)
        return os.lstat(end)
    except OSError as error:
        raise InputError(f"{subject(what, path)}: {error.strerror}.") from error
    except ValueError as error:  # a NUL in it, or half a character
        raise InputError(f"{subject(what, path)!r}: no path can look like this ({error}).") from error


def _steps(path: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yield every directory and link that ``path`` leads through, and last its end, with their status."""
    links = 0
    here, *names = PureWindowsPath(os.path.abspath(path)).parts
    yield here, os.lstat(here)
    left = names[::-1]
    while left:
        step = str(PureWindowsPath(here, left.pop()))
        status = os.lstat(step)
        yield step, status
        if not status.st_file_attributes & stat.FILE_ATTRIBUTE_REPARSE_POINT:
            here = step
            continue
        links += 1
        if links > _MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        target = os.readlink(step)
        if target.startswith("\\\\?\\"):
            target = target[4:]
        here, *names = PureWindowsPath(os.path.normpath(PureWindowsPath(here, target))).parts
        yield here, os.lstat(here)
        left.extend(names[::-1])


def _check(path: str, what: str, step: str, found: Security, rights: int) -> None:
    culprit = "it" if step == path else step
    beginning = f"{subject(what, path)} can be changed by others: {culprit}"
    if not _is_trusted(found.owner):
        owner = security.account_name(found.owner)
        hint = f'Run: icacls "{step}" /setowner *{security.ADMINISTRATORS}'
        raise UntrustedError(f"{beginning} belongs to {owner}.", hint)
    if found.entries is None:
        hint = f'Run: icacls "{step}" /inheritance:r /grant *{security.SYSTEM}:F *{security.ADMINISTRATORS}:F'
        raise UntrustedError(f"{beginning} has no access control list, so everybody may change it.", hint)
    sid = _culprit(found, rights)
    if sid is not None:
        raise UntrustedError(f"{beginning} may be changed by {security.account_name(sid)}.", _remedy(step, sid))


def _culprit(found: Security, rights: int) -> str | None:
    """Return the first who has one of the rights and is not trusted, or None."""
    if found.entries is None:
        return security.EVERYBODY
    return next((entry.sid for entry in found.entries if entry.mask & rights and not _is_trusted(entry.sid)), None)


def _is_trusted(sid: str) -> bool:
    return sid in _TRUSTED or sid == security.own_sid()


def _remedy(path: str, sid: str) -> str:
    # An inherited entry can be removed only when it has become the file's own.
    return f'Run: icacls "{path}" /inheritance:d /remove:g *{sid}'
