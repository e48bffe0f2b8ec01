# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Records of open events that the journal has lost: a file each in ``damaged/``, until a person removes it.

As long as a file is there, nothing is approved and no hook is started for the events that it names. Files, not rows,
because they survive the loss of the database.
"""

from __future__ import annotations

import json
import os
from binascii import crc32
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NamedTuple

from ...system.files import open_to_write, replace
from .integrity import Loss

DIRECTORY = "damaged"
_SUFFIX = ".json"
_SCHEMA = {"schema": "damaged-record", "version": 1}
_MOST_BYTES = 16 * 1024 * 1024


class LostRecord(NamedTuple):
    """One file. ``keys`` are ``Event.key`` of the events it is about, None if these are not known."""

    file: str
    keys: tuple[str, ...] | None
    reason: str
    record: str
    wall: float

    def in_words(self) -> str:
        """Return what is in doubt, and what to do about it."""
        about = "for an event" if self.keys is None else f"for event {', '.join(self.keys)}" if self.keys else ""
        lost = f"what the runner has done {about} is not known" if about else "what was prepared before is not known"
        return f"{lost}: {self.reason}. Is this VM still drained? When that is dealt with, remove {self.file}"


def read(directory: str) -> list[LostRecord]:
    """Return the lost records in a state directory. Never raises."""
    path = Path(directory, DIRECTORY)
    try:
        files = sorted(path.iterdir())
    except FileNotFoundError:
        return []
    except OSError as error:  # any event may be meant
        return [LostRecord(str(path), None, f"{path} cannot be read: {error.strerror}", "", 0.0)]
    return [_read(str(file)) for file in files if file.name.endswith(_SUFFIX)]


class LostRecords:
    """The lost records of the runner that works on ``directory``. Nothing here raises: what cannot be written waits."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._directory_file = str(Path(directory, DIRECTORY))  # stands for all records while it cannot be read
        self._records: dict[str, LostRecord] = {}
        self._unwritten: set[str] = set()
        self._reasons: dict[str, str] = {}
        self.unknown = False  # it is not known which events are meant

    @property
    def keys(self) -> frozenset[str]:
        """``Event.key`` of all events in doubt that are known."""
        return frozenset(self._reasons)

    def __len__(self) -> int:
        return len(self._records)

    def load(self) -> None:
        """Read the files."""
        self._records = {record.file: record for record in read(self._directory)}
        self._index()

    @property
    def directory_unread(self) -> bool:
        """Whether the directory could not be read yet, so that any event may be meant."""
        return self._directory_file in self._records

    def add(self, losses: Iterable[Loss], wall: float) -> list[LostRecord]:
        """Write a file for each loss that has none; return the new ones."""
        news = []
        for loss in losses:
            content = crc32(f"{loss.key}\n{loss.reason}\n{loss.record}".encode("utf-8", "backslashreplace"))
            name = f"{'unknown' if loss.record_id is None else loss.record_id}-{content:08x}{_SUFFIX}"
            file = str(Path(self._directory, DIRECTORY, name))
            if file in self._records:
                continue
            record = LostRecord(file, None if loss.key is None else (loss.key,), loss.reason, loss.record, wall)
            self._put(record)
            news.append(record)
        self._index()
        return news

    def assign_keys(self, keys: Collection[str]) -> None:
        """Limit lost records of unknown events to these."""
        for record in list(self._records.values()):
            if record.keys is None and record.file != self._directory_file:
                self._put(record._replace(keys=tuple(sorted(keys))))
        self._index()

    def reason(self, key: str) -> str | None:
        """Return why an event is in doubt, or None."""
        if self.unknown:
            return next(record.in_words() for record in self._records.values() if record.keys is None)
        return self._reasons.get(key)

    def refresh(self) -> list[LostRecord]:
        """Write what could not be written before; return the lost records whose files somebody has removed."""
        if not self._records:
            return []
        if self.directory_unread:
            del self._records[self._directory_file]
            self._records = {**{record.file: record for record in read(self._directory)}, **self._records}
            self._index()
        for file in sorted(self._unwritten):
            self._put(self._records[file])
        written = (record for record in self._records.values() if record.file not in self._unwritten)
        removed = [record for record in written if _is_gone(record.file)]
        for record in removed:
            del self._records[record.file]
        if removed:
            self._index()
        return removed

    @property
    def all_written(self) -> bool:
        """Whether all of them are on the disk."""
        return not self._unwritten

    def _put(self, record: LostRecord) -> None:
        self._records[record.file] = record
        try:
            _write(record)
        except OSError:
            self._unwritten.add(record.file)
        else:
            self._unwritten.discard(record.file)

    def _index(self) -> None:
        self._reasons = {key: record.in_words() for record in self._records.values() for key in record.keys or ()}
        self.unknown = any(record.keys is None for record in self._records.values())


def _is_gone(file: str) -> bool:
    """Return whether a file has been removed. One that cannot be examined counts as present."""
    try:
        os.lstat(file)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return False


def _write(record: LostRecord) -> None:
    Path(record.file).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = Path(record.file + ".new")
    fields = {"keys": record.keys, "reason": record.reason, "record": record.record, "wall": record.wall}
    with os.fdopen(open_to_write(draft, truncate=True), "w", encoding="ascii") as file:
        json.dump({"forewarn": _SCHEMA, **fields}, file, indent=1)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    replace(draft, record.file)


def _read(file: str) -> LostRecord:
    """Read a lost record from its file. One that cannot be read may mean any event."""
    try:
        with Path(file).open("rb") as opened:
            content = opened.read(_MOST_BYTES)
    except OSError as error:
        return LostRecord(file, None, f"{file} cannot be read: {error.strerror}", "", 0.0)
    try:
        data = json.loads(content)
        keys = data["keys"]
        event_keys = None if keys is None else tuple(str(key) for key in keys)
        return LostRecord(file, event_keys, str(data["reason"]), str(data["record"]), float(data["wall"]))
    except (ValueError, TypeError, KeyError, RecursionError):
        return LostRecord(file, None, f"{file} is damaged itself", content.decode("utf-8", "backslashreplace"), 0.0)
