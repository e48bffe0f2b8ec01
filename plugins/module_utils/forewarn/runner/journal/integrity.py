# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Detects lost records: the database and a file beside it both have the number of commits and the open records.

The row in the database shows whether an open event has gone missing from it. The file, written after each commit,
shows whether the database is the one that was last written: one that lost its WAL, or an older copy, lags behind it.
"""

from __future__ import annotations

import json
import os
from binascii import crc32
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ...system.files import open_to_write, sync_data
from .schema import DamagedRow, EventRow

FILE_NAME = "journal.mark"
SIZE = 4096  # one page, allocated once: it can be written again on a full disk, and is never half of two
UNCOUNTED = -1  # as ``number``: no commit since the file was made or converted


class Mark(NamedTuple):
    """After ``commits``: the ``number`` of open records and a ``digest`` over all of them. ``records``, by id, are the
    checksum and ``Event.key`` of those that fit into the file. A row of the database has none.
    """

    commits: int
    number: int
    digest: int
    records: Mapping[int, tuple[int, str]] = {}


class JournalContents(NamedTuple):
    """The contents of a database: intact open records with their checksums, damaged rows, and its own mark."""

    intact: Mapping[int, tuple[EventRow, int]]
    damaged: tuple[DamagedRow, ...]
    mark: Mark | None


class Loss(NamedTuple):
    """A lost record of an open event: its ``Event.key``, None if that is unknown, and what is left of it, as text."""

    key: str | None
    record_id: int | None
    reason: str
    record: str


class IntegrityReport(NamedTuple):
    """The intact records, the losses, and the number of commits by which the database lags behind."""

    records: tuple[EventRow, ...]
    losses: tuple[Loss, ...]
    behind: int


def digest_of(sums: Iterable[tuple[int, int]]) -> int:
    """Return a number over the ids and checksums of records, whatever their order."""
    digest = 0
    for identifier, checksum in sums:
        digest ^= crc32(f"{identifier}:{checksum}".encode())
    return digest


class MarkFile:
    """The file beside the database in ``directory``. Nothing here raises: without the file fewer losses are noticed."""

    def __init__(self, directory: str) -> None:
        self._path = Path(directory, FILE_NAME)

    def read(self) -> Mark | None:
        """Return the file's mark, or None if the file is missing or damaged."""
        try:
            with self._path.open("rb") as file:
                checksum, _space, text = file.read(SIZE).partition(b" ")
            if len(text) != SIZE - 9 or int(checksum, 16) != crc32(text):
                return None
            data = json.loads(text)
            records = {int(record): (int(found), str(key)) for record, found, key in data["lives"]}
            return Mark(int(data["commits"]), int(data["number"]), int(data["digest"]), records)
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            return None

    def write(self, mark: Mark, durable: bool) -> None:
        """Replace the file's mark. ``durable`` waits for the disk."""
        entries = []
        room = SIZE - 200
        for record, (checksum, key) in mark.records.items():
            entry = json.dumps([record, checksum, key])
            room -= len(entry) + 1
            if room < 0:
                break
            entries.append(entry)
        head = f'"commits": {mark.commits}, "number": {mark.number}, "digest": {mark.digest}'
        text = f'{{{head}, "lives": [{",".join(entries)}]}}'
        content = (text.ljust(SIZE - 10) + "\n").encode("ascii")
        with suppress(OSError):
            file = open_to_write(self._path)
            try:
                os.write(file, b"%08x " % crc32(content) + content)
                if durable:
                    sync_data(file)
            finally:
                os.close(file)


def check_integrity(stock: JournalContents, beside: Mark | None, replaced: bool) -> IntegrityReport:
    """Return which open records are intact.

    ``beside`` is the mark in the file. ``replaced``: the database was too damaged to be read, and this is a new one.
    """
    count = 0 if stock.mark is None else stock.mark.commits
    if beside is not None and (stock.mark is None or beside.commits >= count):
        return _compare_with_file(stock, beside, max(0, beside.commits - count))
    if replaced:
        return IntegrityReport((), (Loss(None, None, "the journal was damaged, and what it held is not known", ""),), 0)
    return _check_alone(stock)


def _compare_with_file(stock: JournalContents, beside: Mark, behind: int) -> IntegrityReport:
    """The file is at least as new as the database: each record that it names must be there."""
    records = dict(stock.intact)
    damaged = {row.id: row for row in stock.damaged}
    losses = []
    for identifier, (checksum, key) in beside.records.items():
        row, found = records.get(identifier, (None, None))
        if found == checksum:
            continue
        records.pop(identifier, None)
        if identifier in damaged:
            why, record = "its record in the journal is damaged", damaged[identifier].text
        elif row is not None:
            why, record = "its record in the journal is an older one", json.dumps(row._asdict())
        else:
            why, record = "its record has gone missing from the journal", ""
        losses.append(Loss(key, identifier, why, record))
    others = [identifier for identifier in records if identifier not in beside.records]
    if len(beside.records) == beside.number:
        for identifier in others:  # they were closed by then
            del records[identifier]
    elif losses or beside.number != len(records) or beside.digest != _digest(records, stock):
        for identifier in others:
            row = records.pop(identifier)[0]
            losses.append(Loss(row.key, identifier, "its record may be an older one", json.dumps(row._asdict())))
        losses.append(Loss(None, None, "records of events have gone missing from the journal, or are older ones", ""))
    return IntegrityReport(tuple(row for row, _sum in records.values()), tuple(losses), behind)


def _check_alone(stock: JournalContents) -> IntegrityReport:
    """There is no file, or it lags behind: the database must agree with itself."""
    records = tuple(row for row, _sum in stock.intact.values())
    losses = [
        Loss(row.key, row.id, "its record in the journal is damaged", row.text)
        for row in stock.damaged  # a damaged record does not show whether it is closed
    ]
    mark = stock.mark
    if mark is not None and mark.number == UNCOUNTED:
        return IntegrityReport(records, tuple(losses), 0)
    if mark is None:
        losses.append(Loss(None, None, "the journal does not show how many events are open: it is damaged", ""))
    elif mark.number != len(records) + len(losses) or (not losses and mark.digest != _digest(stock.intact, stock)):
        losses.append(Loss(None, None, f"the journal has {len(records)} of {mark.number} events that are open", ""))
    return IntegrityReport(records, tuple(losses), 0)


def _digest(records: Mapping[int, object], stock: JournalContents) -> int:
    return digest_of((identifier, stock.intact[identifier][1]) for identifier in records)
