# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state directory: its permissions, and the lock by which only one runner uses it at a time."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ...errors import InputError
from ...system import processes, trust
from ...system.files import create_private_directory, read_from_start, write_from_start
from ...system.locks import is_locked, lock, open_lock

LOCK = "lock"
_LARGEST_PID = 0x7FFF_FFFF
_WHAT = "state directory"
_ELSEWHERE = "name another with --state."


class StateDirectory:
    """First ``prepare`` it, then ``lock`` it for as long as the runner records."""

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)
        self._locked: int | None = None

    def check(self) -> Sequence[Path]:
        """Return the directories that ``prepare`` would make, the last first, and touch nothing.

        Raises InputError if others can change what is there.
        """
        missing: list[Path] = []
        path = Path(self.path)
        while not os.path.lexists(path):
            missing.append(path)
            path = path.parent
        if missing:
            # Before anything is made where others could replace it.
            trust.check_directory(str(path), f"directory above the {_WHAT}", shared=True)
        else:
            trust.check_directory(self.path, _WHAT)
        return missing

    def prepare(self) -> None:
        """Make the directory, for this user alone, if it is missing. Raises InputError if others can change it."""
        missing = self.check()
        for path in reversed(missing):
            self._create(path)
        if missing:
            trust.check_directory(self.path, _WHAT)

    def _create(self, path: Path) -> None:
        try:
            create_private_directory(path)
        except FileExistsError:  # another runner was faster
            pass
        except OSError as error:
            raise InputError(
                f"{_WHAT} {self.path} cannot be made: {path}: {error.strerror}.", f"Make it, or {_ELSEWHERE}"
            ) from error

    def lock(self) -> None:
        """Lock the directory for this process; the kernel releases it when the process ends, however it ends.

        Raises InputError, naming the process, if another has it. A full or read-only disk does not prevent the lock: it
        is the journal that reports what cannot be written.
        """
        try:
            descriptor = open_lock(self.path, LOCK)
        except OSError as error:
            raise InputError(
                f"{_WHAT} {self.path} cannot be used: {error.filename}: {error.strerror}.",
                f"Run as its owner, or {_ELSEWHERE}",
            ) from error
        try:
            locked = lock(descriptor)
            by = "" if locked else _holder(descriptor)
        except OSError as error:
            os.close(descriptor)
            raise InputError(
                f"{_WHAT} {self.path} cannot be locked: {error.strerror}.",
                f"If it lies on another machine, {_ELSEWHERE}",
            ) from error
        if not locked:
            os.close(descriptor)
            raise InputError(
                f"{_WHAT} {self.path} is in use by another runner{by}.",
                "Stop that one first, or give this one a directory of its own with --state.",
            )
        self._locked = descriptor
        self._write_pid(f"{os.getpid()}\n")

    def in_use(self) -> bool:
        """Return whether a runner has locked the directory. Raises InputError if this user cannot tell."""
        for path in (str(Path(self.path, LOCK)), self.path):
            try:
                if is_locked(path):
                    return True
            except OSError as error:  # noqa: PERF203 - two at most
                if isinstance(error, FileNotFoundError):  # no runner could make it, or none has worked here
                    continue
                raise InputError(f"{path}: {error.strerror}.", f"Run as its owner, or {_ELSEWHERE}") from error
        return False

    def release(self) -> None:
        """Release the lock."""
        if self._locked is not None:
            self._write_pid("")
            os.close(self._locked)
            self._locked = None

    def _write_pid(self, text: str) -> None:
        """Note who has the lock, for the message to the next one. On a full disk the lock holds without it."""
        if self._locked is None:
            return
        with suppress(OSError):
            os.ftruncate(self._locked, 0)
            write_from_start(self._locked, text.encode())


def _holder(descriptor: int) -> str:
    """Return the process that the lock's file names, as the end of a sentence; "" if it does not run."""
    try:
        pid = int(read_from_start(descriptor, 32))
    except (OSError, ValueError):
        return ""
    return f", process {pid}" if 0 < pid <= _LARGEST_PID and processes.exists(pid) else ""
