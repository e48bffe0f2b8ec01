# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state directory: its path, its permissions, and the lock by which only one runner uses it at a time."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from ...errors import InputError
from . import trust

LOCK = "lock"
_WHAT = "state directory"
_ELSEWHERE = "name another with --state."


def default(environ: Mapping[str, str], uid: int) -> str:
    """Return the state directory if none is named; ``uid`` is the runner's user.

    What systemd made for the unit comes first (StateDirectory=, its first if it has several), then
    /var/lib/forewarn for root, then the user's own by the XDG base directories. Raises InputError without any of these.
    """
    given = environ.get("STATE_DIRECTORY", "").partition(":")[0]
    if given:
        return given
    if uid == 0:
        return "/var/lib/forewarn"
    base = Path(environ.get("XDG_STATE_HOME", ""))
    if not base.is_absolute():
        home = environ.get("HOME")
        if not home:
            raise InputError("there is no HOME to keep a state directory in.", "Name one with --state.")
        base = Path(home, ".local", "state")
    return str(base / "forewarn")


def in_memory(environ: Mapping[str, str], uid: int) -> str | None:
    """Return a directory in memory, usable even when the disk is full, or None.

    What systemd made for the unit comes first (RuntimeDirectory=), then /run/forewarn for root, then the user's own.
    """
    given = environ.get("RUNTIME_DIRECTORY", "").partition(":")[0]
    if given:
        return given
    if uid == 0:
        return "/run/forewarn"
    base = Path(environ.get("XDG_RUNTIME_DIR", ""))
    return str(base / "forewarn") if base.is_absolute() else None


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
        """Make the directory, with mode 0700, if it is missing. Raises InputError if others can change it."""
        missing = self.check()
        for path in reversed(missing):
            self._create(path)
        if missing:
            trust.check_directory(self.path, _WHAT)

    def _create(self, path: Path) -> None:
        try:
            path.mkdir(0o700)
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
        descriptor = self._open()
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            try:
                by = _holder(descriptor)
            finally:
                os.close(descriptor)
            raise InputError(
                f"{_WHAT} {self.path} is in use by another runner{by}.",
                "Stop that one first, or give this one a directory of its own with --state.",
            ) from None
        except OSError as error:
            os.close(descriptor)
            raise InputError(
                f"{_WHAT} {self.path} cannot be locked: {error.strerror}.",
                f"If it lies on another machine, {_ELSEWHERE}",
            ) from error
        self._locked = descriptor
        self._write_pid(f"{os.getpid()}\n")

    def in_use(self) -> bool:
        """Return whether a runner has locked the directory. Raises InputError if this user cannot tell."""
        for path in (str(Path(self.path, LOCK)), self.path):
            try:
                descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            except FileNotFoundError:  # no runner could make it, or none has worked here
                continue
            except OSError as error:
                raise InputError(f"{path}: {error.strerror}.", f"Run as its owner, or {_ELSEWHERE}") from error
            try:
                fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            finally:
                os.close(descriptor)
        return False

    def release(self) -> None:
        """Release the lock."""
        if self._locked is not None:
            self._write_pid("")
            os.close(self._locked)
            self._locked = None

    def _open(self) -> int:
        """Open what is to be locked: a file in it, which others cannot open, or else the directory itself."""
        file = str(Path(self.path, LOCK))
        tries = (
            (file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW),
            (file, os.O_RDONLY | os.O_NOFOLLOW),  # the file system is read-only now,
            (self.path, os.O_RDONLY | os.O_DIRECTORY),  # or was so from the start, or is full
        )
        problem = ""
        for path, flags in tries:
            try:
                # A user who cannot read it cannot lock it, and so cannot keep the runner from starting.
                return os.open(path, flags | os.O_CLOEXEC, 0o600)
            except OSError as error:  # noqa: PERF203 - three at most
                problem = problem or f"{path}: {error.strerror}"
                if isinstance(error, PermissionError):
                    break  # it is another user's: the directory must not be locked instead
        raise InputError(f"{_WHAT} {self.path} cannot be used: {problem}.", f"Run as its owner, or {_ELSEWHERE}")

    def _write_pid(self, text: str) -> None:
        """Note who has the lock, for the message to the next one. On a full disk the lock holds without it."""
        if self._locked is None:
            return
        with suppress(OSError):
            os.ftruncate(self._locked, 0)
            os.pwrite(self._locked, text.encode(), 0)


def _holder(descriptor: int) -> str:
    """Return the process that the lock's file names, as the end of a sentence; "" if it does not run."""
    try:
        pid = int(os.pread(descriptor, 32, 0))
        os.kill(pid, 0)
    except PermissionError:  # it lives, but is not ours
        pass
    except (OSError, ValueError, OverflowError):
        return ""
    return f", process {pid}" if pid > 0 else ""
