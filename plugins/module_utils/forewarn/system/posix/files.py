# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that are opened, written and replaced in ways that differ between systems.

All functions raise OSError.
"""

from __future__ import annotations

import errno
import os
import select
from contextlib import suppress
from pathlib import Path

_SAFELY = os.O_CLOEXEC | os.O_NOFOLLOW
_sync_data = getattr(os, "fdatasync", os.fsync)  # not every system has fdatasync


def open_to_read(path: str | Path, *, follow: bool = True) -> int:
    """Return a descriptor. A pipe does not block; without ``follow`` a link is refused."""
    return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW))


def open_to_write(
    path: str | Path, *, truncate: bool = False, exclusive: bool = False, follow: bool = False, mode: int = 0o600
) -> int:
    """Return a descriptor of a file. If it is missing, it is created with ``mode``; with ``exclusive`` it has to be."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
    flags |= os.O_TRUNC if truncate else 0
    flags |= os.O_EXCL if exclusive else 0
    return os.open(path, flags | (0 if follow else os.O_NOFOLLOW), mode)


def read_from_start(descriptor: int, size: int) -> bytes:
    """Return at most ``size`` bytes of the file's beginning."""
    return os.pread(descriptor, size, 0)


def write_from_start(descriptor: int, content: bytes) -> None:
    """Overwrite the file's beginning in one write."""
    os.pwrite(descriptor, content, 0)


def sync_data(descriptor: int) -> None:
    """Wait until the disk has the file's content."""
    _sync_data(descriptor)


def share_for_reading(descriptor: int) -> None:
    """Let every user read a file, whatever the umask is."""
    os.fchmod(descriptor, 0o644)


def replace(source: str | Path, target: str | Path) -> None:
    """Rename a file to a name that another may have, at once."""
    os.replace(source, target)  # noqa: PTH105 - the runner does without pathlib at each event


def wait_until_writable(descriptor: int) -> None:
    """Wait until a write to a pipe or terminal that does not block would write something."""
    select.select([], [descriptor], [])


def create_private_directory(path: Path) -> None:
    """Create a directory that only root and this user may enter."""
    path.mkdir(0o700)


def create_subdirectory(parent: str, name: str) -> None:
    """Create a directory durably if it is missing; root creates it for the owner of ``parent``."""
    opened = []
    try:
        opened.append(os.open(parent, os.O_RDONLY | os.O_DIRECTORY))
        with suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=opened[0])
            os.fsync(opened[0])  # or a boot could lose the directory, with the files in it
        opened.append(os.open(name, os.O_RDONLY | os.O_DIRECTORY | _SAFELY, dir_fd=opened[0]))
        if os.fstat(opened[1]).st_uid == os.geteuid():  # just made, now or by a command that was interrupted
            _chown_like(opened[1], opened[0])
    finally:
        for directory in opened:
            os.close(directory)


def write_in_directory(path: Path, name: str, content: bytes) -> None:
    """Write a file in a directory, atomically and durably. Root gives it to the owner of the directory."""
    directory: int | None = None
    temporary = f".{name}.{os.urandom(4).hex()}"
    try:
        # All below is relative to it, so that nobody can replace the directory by a link meanwhile.
        directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | _SAFELY)
        try:
            file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFELY, 0o600, dir_fd=directory)
            try:
                _chown_like(file, directory)
                if os.write(file, content) != len(content):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(file)
            finally:
                os.close(file)
            os.replace(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
        except OSError:
            with suppress(OSError):  # it was not even made
                os.unlink(temporary, dir_fd=directory)
            raise
        os.fsync(directory)
    finally:
        if directory is not None:
            os.close(directory)


def _chown_like(file: int, directory: int) -> None:
    owner = os.fstat(directory)
    if os.geteuid() == 0 and owner.st_uid != 0:
        os.fchown(file, owner.st_uid, owner.st_gid)
