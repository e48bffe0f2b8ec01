# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The runner's sign of life: one small file that each tick overwrites, for other commands and the next start.

It is not a record. The only promise is that a beat, once read, is one that was written.
"""

from __future__ import annotations

import json
import os
from binascii import crc32
from collections.abc import Mapping
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Any, NamedTuple

from ...system import processes
from ...system.files import open_to_write, sync_data, write_from_start
from ...texts import duration_text
from ..clocks import Clocks, Stamp

FILE_NAME = "heartbeat"
# One write within one page of the file: a reader sees the old beat or the new one.
SIZE = 4096
# The first answer of the service can take 2 minutes (SE-05), and the runner waits for it.
LONGEST_SILENCE_SECONDS = 180.0

_SCHEMA = {"schema": "heartbeat", "version": 1}
_TEXT_LENGTHS = (200, 60, 15)  # texts are cut to these, in turn, until a beat fits; lists to a fifth as many items
# Never cut.
_UNCUT = ("vm", "options", "program")
# Left out first, if the beat is still too long.
_LEAST_NEEDED = ("options", "program", "source", "policies")
_READ_ATTEMPTS = 3
_encode = json.JSONEncoder(separators=(",", ":"), default=str).encode


class Beat(NamedTuple):
    """What a runner reported of itself at a moment; any of ``fields`` may be missing."""

    stamp: Stamp
    fields: Mapping[str, Any]


class Heartbeat:
    """Writes the beats of this process. ``trouble`` is why the latest could not be written, None if it was.

    Until the first beat nothing is opened, and an old beat stays readable. If the disk of the state directory is full
    or read-only, the beat goes to ``fallback_directory``: one in memory, or None.
    """

    def __init__(self, directory: str, clocks: Clocks, fallback_directory: str | None = None) -> None:
        self.trouble: str | None = None
        self._path = Path(directory, FILE_NAME)
        self._fallback_file = None if fallback_directory is None else _substitute(directory, fallback_directory)
        self._substituted = False
        self._clocks = clocks
        self._file: FileIO | None = None

    def beat(self, fields: Mapping[str, Any], durable: bool) -> None:
        """Write that the runner is alive, now. ``durable`` waits for the disk. Never raises: see ``trouble``."""
        content = _content(self._clocks.stamp(), fields)
        try:
            self._write(content, durable)
        except OSError as error:
            self.trouble = f"{self._path}: {error.strerror}"
            self.close()
            if self._fallback_file is not None:
                self._substituted = True
                _write_substitute(self._fallback_file, content)
        else:
            self.trouble = None
            if self._substituted and self._fallback_file is not None:
                self._substituted = False
                with suppress(OSError):
                    self._fallback_file.unlink()

    def close(self) -> None:
        """Close the file and leave it as it is."""
        if self._file is not None:
            file, self._file = self._file, None
            with suppress(OSError):  # a write that failed; there will be another
                file.close()

    def _write(self, content: bytes, durable: bool) -> None:
        if self._file is not None and os.fstat(self._file.fileno()).st_nlink == 0:  # somebody has removed it
            self.close()
        if self._file is None:
            self._file = os.fdopen(open_to_write(self._path), "wb", buffering=0)
        write_from_start(self._file.fileno(), content)
        if durable:
            sync_data(self._file.fileno())


def read(directory: str, fallback_directory: str | None = None) -> Beat | None:
    """Return the latest beat of a state directory, or None if none can be read. Never raises."""
    beat = _read(Path(directory, FILE_NAME))
    other = None if fallback_directory is None else _read(_substitute(directory, fallback_directory))
    if beat is None or other is None:
        return beat or other
    # A boot empties the directory in memory, so the beat there is of this boot.
    return beat if beat.stamp.boot_id == other.stamp.boot_id and beat.stamp.boot >= other.stamp.boot else other


def _substitute(directory: str, fallback_directory: str) -> Path:
    name = f"{FILE_NAME}-{crc32(os.path.abspath(directory).encode('utf-8', 'surrogateescape')):08x}"
    return Path(fallback_directory, name)


def _write_substitute(path: Path, content: bytes) -> None:
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.fdopen(open_to_write(path), "wb", buffering=0) as file:
            file.write(content)


def _read(path: Path) -> Beat | None:
    for _attempt in range(_READ_ATTEMPTS):  # it may be half-written
        try:
            with path.open("rb") as file:
                content = file.read(SIZE)
        except (OSError, ValueError):  # ValueError: a NUL in the path
            return None
        beat = _parse(content)
        if beat is not None:
            return beat
    return None


def vm_name(beat: Beat | None, clocks: Clocks) -> str | None:
    """Return the name of this VM that a runner has known since the machine was booted, or None.

    After a boot the disk may be another VM's, and a name that an operator gave may have been wrong.
    """
    if beat is None or beat.stamp.boot_id != clocks.boot_id or beat.fields.get("vm_given"):
        return None
    name = beat.fields.get("vm")
    return name if isinstance(name, str) and name else None


def silence(beat: Beat | None, clocks: Clocks) -> str | None:
    """Return why no runner works on the state directory whose latest beat this is, or None if one does."""
    if beat is None:
        return "no runner has ever worked there, or its sign of life cannot be read"
    pid = beat.fields.get("pid")
    if beat.stamp.boot_id != clocks.boot_id:
        return "the machine was booted since the runner's last sign of life"
    if isinstance(pid, int) and not processes.exists(pid):
        return f"the runner has ended (it was process {pid})"
    interval = beat.fields.get("interval_seconds")
    longest = LONGEST_SILENCE_SECONDS + (2 * interval if isinstance(interval, (int, float)) else 0.0)
    seconds = clocks.since(beat.stamp)
    if seconds > longest:
        return f"the runner's last sign of life is {duration_text(seconds)} old"
    return None


def _content(stamp: Stamp, fields: Mapping[str, Any]) -> bytes:
    text = _line(stamp, fields)
    shorter = fields
    for length in _TEXT_LENGTHS:
        if len(text) < SIZE:
            break
        # Most likely the text of a fault is too long.
        shorter = {name: value if name in _UNCUT else _cut(value, length) for name, value in fields.items()}
        text = _line(stamp, shorter)
    if len(text) >= SIZE:
        text = _line(stamp, {name: value for name, value in shorter.items() if name not in _LEAST_NEEDED})
    if len(text) >= SIZE:
        text = _line(stamp, {"pid": os.getpid()})
    return (text.ljust(SIZE - 1) + "\n").encode("ascii")


def _line(stamp: Stamp, fields: Mapping[str, Any]) -> str:
    return _encode({"forewarn": _SCHEMA, "stamp": stamp, "fields": fields})


def _cut(value: object, length: int) -> object:
    if isinstance(value, str):
        return value[: length - 1] + "…" if len(value) > length else value
    if isinstance(value, dict):
        return {name: _cut(item, length) for name, item in value.items()}
    if isinstance(value, list):
        items = [_cut(item, length) for item in value[: length // 5]]
        return items if len(value) <= length // 5 else [*items, "…"]
    return value


def _parse(content: bytes) -> Beat | None:
    if len(content) != SIZE:
        return None
    try:
        data = json.loads(content)
        stamp, fields = Stamp.of(data["stamp"]), data["fields"]
    except (ValueError, TypeError, KeyError, RecursionError, OverflowError):
        return None
    return Beat(stamp, fields) if isinstance(fields, dict) else None
