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
from pathlib import Path

from ...errors import InputError
from ...system import trust
from ...system.account import ADMINISTRATOR
from ...system.files import create_subdirectory, open_to_read, write_in_directory

_REFUSED = ".refused"
_MOST_BYTES = 64 * 1024
_PASSING = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO)  # not the file's fault


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
        try:
            create_subdirectory(self._state, self._name)
        except OSError as error:
            raise self._refused(error, self.path) from error

    def read(self, name: str) -> bytes:
        """Return what a file holds. Raises InputError if it is not safe from others, or too long; OSError if it cannot
        be read now.
        """
        path = self.path / name
        trust.check_file(str(path), self._what)
        try:
            file = open_to_read(path, follow=False)
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
        try:
            write_in_directory(self.path, name, content)
        except OSError as error:
            raise self._refused(error, self.path / name) from error

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
        who = f"Only {ADMINISTRATOR} and the runner's user may write to {self._state}: run this as one of them."
        return InputError(f"{path}: {error.strerror}.", who if isinstance(error, PermissionError) else "")
