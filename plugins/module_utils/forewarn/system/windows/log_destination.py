# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The log as events of Windows' Application log and, for what reads files, as lines of JSON in a file."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from .event_log import EventLog
from .paths import LOG
from .service_manager import is_service

FILE = "forewarn.jsonl"
LIMIT_BYTES = 4 * 1024 * 1024
OLD_FILES = 4
# A program that has a file open can keep it from being renamed. Then the file grows, and this much later the next
# attempt is made.
_RETRY_BYTES = 64 * 1024


class LogDestination:
    """Writes each line to both. It is lost only if neither takes it."""

    FORM = "eventlog"  # its name as a format of the log
    STREAM_FORM = "json"  # of the line that comes with the entries
    IS_LAST = True  # nobody reads the stream

    def __init__(self, directory: str | None = None) -> None:
        self._events = EventLog()
        self._file = LogFile(Path(directory or LOG, FILE))

    @staticmethod
    def is_usual(_environ: Mapping[str, str], _stream: TextIO) -> bool:
        """Return whether the log goes there if nobody says where: that of a service does."""
        return is_service()

    def entries(self, level: str, name: str, text: str, _fields: Iterable[tuple[str, str]]) -> Sequence[bytes]:
        """Return the event of a line: its level, its kind and its text."""
        return [f"{level} {name} {text}".encode("utf-8", "backslashreplace")]

    def send(self, forms: Sequence[bytes], _seconds: float | None) -> None:
        """Write an event and, to the file, the last of ``forms``. Neither is ever waited for. Raises OSError."""
        level, name, text = forms[0].decode().split(" ", 2)
        failure = None
        try:
            self._events.write(level, name, text)
        except OSError as error:
            failure = error
        try:
            self._file.write(forms[-1])
        except OSError:
            if failure is not None:
                raise


class LogFile:
    """Appends lines to the file at ``path``. When it is full it becomes ``path.1``, and that ``path.2``, up to ``old``.

    If a reader does not allow this, the file grows to twice its limit; then it is emptied. Not ``logging.handlers``:
    importing it takes longer than a start may.
    """

    def __init__(self, path: Path, limit_bytes: int = LIMIT_BYTES, old: int = OLD_FILES) -> None:
        self._path = path
        self._limit = limit_bytes
        self._old = old
        self._next_try = limit_bytes
        self._descriptor: int | None = None
        self._size = 0
        self._line_unfinished = False  # for example on a full disk

    def write(self, line: bytes) -> None:
        """Append a line, which has its line end. Raises OSError if it could not be written, or not in full."""
        descriptor = self._opened()
        if self._size and self._size + len(line) > self._next_try:
            self._rotate()
            descriptor = self._opened()
        data = b"\n" * self._line_unfinished + line
        written = os.write(descriptor, data)
        self._size += written
        self._line_unfinished = written < len(data)
        if self._line_unfinished:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def close(self) -> None:
        """Close the file; the next line opens it again."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _opened(self) -> int:
        if self._descriptor is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            # Without O_BINARY each line end would become two bytes.
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
            self._descriptor = os.open(self._path, flags, 0o640)
            self._size = os.fstat(self._descriptor).st_size
        return self._descriptor

    def _rotate(self) -> None:
        self.close()
        try:
            for number in range(self._old - 1, 0, -1):
                with suppress(FileNotFoundError):
                    self._named(number).replace(self._named(number + 1))
            self._path.replace(self._named(1))
        except OSError:
            self._next_try = self._size + _RETRY_BYTES
            if self._size >= 2 * self._limit:
                os.truncate(self._path, 0)
                self._next_try = self._limit
        else:
            self._next_try = self._limit

    def _named(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")
