# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that are opened, written and replaced in ways that differ between systems.

All functions raise OSError. A file that is created inherits who may read and change it from its directory.
"""

from __future__ import annotations

import errno
import os
import time
from contextlib import suppress
from pathlib import Path

from . import security

_BINARY = os.O_BINARY | os.O_NOINHERIT if hasattr(os, "O_BINARY") else 0
# Somebody who reads a file keeps it from being replaced, for the moment that this takes.
_WRITE_PAUSE_SECONDS = 0.05
_REPLACE_ATTEMPTS, _REPLACE_PAUSE_SECONDS = 100, 0.01


def open_to_read(path: str | Path, *, follow: bool = True) -> int:
    """Return a descriptor. Without ``follow`` a link is refused."""
    if not follow:
        _refuse_link(path)
    return os.open(path, os.O_RDONLY | _BINARY)


def open_to_write(
    path: str | Path, *, truncate: bool = False, exclusive: bool = False, follow: bool = False, mode: int = 0o600
) -> int:
    """Return a descriptor of a file. If it is missing, it is created; with ``exclusive`` it has to be."""
    if not follow:
        _refuse_link(path)
    flags = os.O_WRONLY | os.O_CREAT | _BINARY
    flags |= os.O_TRUNC if truncate else 0
    flags |= os.O_EXCL if exclusive else 0
    return os.open(path, flags, mode)


def _refuse_link(path: str | Path) -> None:
    # In a directory that only the runner and administrators can change nobody else makes one afterwards.
    if Path(path).is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))


def read_from_start(descriptor: int, size: int) -> bytes:
    """Return at most ``size`` bytes of the file's beginning."""
    os.lseek(descriptor, 0, os.SEEK_SET)
    return os.read(descriptor, size)


def write_from_start(descriptor: int, content: bytes) -> None:
    """Overwrite the file's beginning in one write."""
    os.lseek(descriptor, 0, os.SEEK_SET)
    os.write(descriptor, content)


def sync_data(descriptor: int) -> None:
    """Wait until the disk has the file."""
    os.fsync(descriptor)


def share_for_reading(descriptor: int) -> None:
    """Leave it to the directory who may read the file, as it is usual on Windows."""


def replace(source: str | Path, target: str | Path) -> None:
    """Rename a file to a name that another may have, at once; a reader of that one is waited for, for a second."""
    for attempt in range(_REPLACE_ATTEMPTS):
        try:
            os.replace(source, target)  # noqa: PTH105 - as on POSIX
        except PermissionError:  # noqa: PERF203 - the point of the loop
            if attempt == _REPLACE_ATTEMPTS - 1:
                raise
            time.sleep(_REPLACE_PAUSE_SECONDS)  # Windows does not say when the reader has closed it
        else:
            return


def wait_until_writable(descriptor: int) -> None:  # noqa: ARG001 - POSIX can ask for it
    """Wait a moment: Windows does not say when a pipe can take more."""
    time.sleep(_WRITE_PAUSE_SECONDS)  # see above


def create_private_directory(path: Path) -> None:
    """Create a directory that only SYSTEM, administrators and this user may enter; so is what is created in it."""
    security.create_directory(str(path))


def create_subdirectory(parent: str, name: str) -> None:
    """Create a directory if it is missing; who may enter it is inherited."""
    with suppress(FileExistsError):
        os.mkdir(rf"{parent}\{name}")  # noqa: PTH102 - as on POSIX


def write_in_directory(path: Path, name: str, content: bytes) -> None:
    """Write a file in a directory, atomically and durably."""
    temporary = path / f".{name}.{os.urandom(4).hex()}"
    try:
        file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, 0o600)
        try:
            if os.write(file, content) != len(content):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(file)
        finally:
            os.close(file)
        replace(temporary, path / name)
    except OSError:
        with suppress(OSError):  # it was not even made
            temporary.unlink()
        raise
