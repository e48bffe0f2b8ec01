# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that a command hands to the runner, in a directory of their own below the state directory.

The directory is the runner's, with mode 0700: only root and the runner's user can ask. Files are written atomically and
durably, and never through a link.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

from ...errors import InputError
from . import trust

_REFUSED = ".refused"
_MOST_BYTES = 64 * 1024
_PASSING = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO)  # not the file's fault
_SAFELY = os.O_CLOEXEC | os.O_NOFOLLOW


class Inbox:
    """The directory ``name`` below the state directory ``state``. ``what`` names a file in it, such as "drill"."""

    def __init__(self, state: str, name: str, what: str) -> None:
        self.path = Path(state, name)
        self._state = state
        self._name = name
        self._what = what
        self._stuck: set[str] = set()  # names of files that are done with, but could not be removed

    def names(self) -> list[str] | None:
        """Return the names of the files, or None if the directory cannot be read. Never raises.

        Hidden files are left out, as they are being written, and so are files that are done with.
        """
        try:
            listing = [file.name for file in self.path.iterdir()]
        except FileNotFoundError:  # there has been no request yet
            return []
        except OSError:
            return None
        return [name for name in listing if not name.startswith(".") and name not in self._stuck]

    def create(self) -> None:
        """Create the directory if it is missing; root creates it for the runner's user. Raises InputError."""
        opened = []
        try:
            opened.append(os.open(self._state, os.O_RDONLY | os.O_DIRECTORY))
            with suppress(FileExistsError):
                os.mkdir(self._name, 0o700, dir_fd=opened[0])
                os.fsync(opened[0])  # or a boot could lose the directory, with the files in it
            opened.append(os.open(self._name, os.O_RDONLY | os.O_DIRECTORY | _SAFELY, dir_fd=opened[0]))
            if os.fstat(opened[1]).st_uid == os.geteuid():  # just made, now or by a command that was interrupted
                _chown_like(opened[1], opened[0])
        except OSError as error:
            raise self._refused(error, self.path) from error
        finally:
            for directory in opened:
                os.close(directory)

    def read(self, name: str) -> bytes:
        """Return what a file holds. Raises InputError if it is not safe from others, or too long; OSError if it cannot
        be read now.
        """
        path = self.path / name
        trust.check_file(str(path), self._what)
        try:
            file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | _SAFELY)
            try:
                content = os.read(file, _MOST_BYTES + 1)
            finally:
                os.close(file)
        except OSError as error:
            if error.errno in _PASSING:
                raise
            raise InputError(f"{path}: {error.strerror}") from error
        if len(content) > _MOST_BYTES:
            raise InputError(f"{path} is longer than {_MOST_BYTES} bytes")
        return content

    def write(self, name: str, content: bytes) -> None:
        """Write a file, atomically and durably. Root gives it to the runner's user. Raises InputError."""
        directory: int | None = None
        temporary = f".{name}.{os.urandom(4).hex()}"
        try:
            # All below is relative to it, so that nobody can replace the directory by a link meanwhile.
            directory = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | _SAFELY)
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
        except OSError as error:
            raise self._refused(error, self.path / name) from error
        finally:
            if directory is not None:
                os.close(directory)

    def remove(self, name: str) -> None:
        """Remove a file, if it is there. Never raises: a file that cannot be removed is ignored from now on."""
        try:
            (self.path / name).unlink(missing_ok=True)
        except OSError:
            self._stuck.add(name)

    def refuse(self, name: str) -> None:
        """Move a file aside, for people. Never raises: a file that cannot be moved is ignored from now on."""
        try:
            (self.path / name).replace(self.path / (name + _REFUSED))
        except OSError:
            self._stuck.add(name)

    def _refused(self, error: OSError, path: Path) -> InputError:
        denied = isinstance(error, PermissionError)
        hint = f"Only root and the runner's user may write to {self._state}: run this as one of them." if denied else ""
        return InputError(f"{path}: {error.strerror}.", hint)


def _chown_like(file: int, directory: int) -> None:
    owner = os.fstat(directory)
    if os.geteuid() == 0 and owner.st_uid != 0:
        os.fchown(file, owner.st_uid, owner.st_gid)
