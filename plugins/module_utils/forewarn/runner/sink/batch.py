# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the next entries for a sink from a journal."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from ..journal.reader import JournalEntry, JournalReader
from ..journal.schema import FILE_NAME, EventRow, read
from .formats import Row
from .position import Position
from .report import MOST_ROWS

MOST_BYTES = 256 * 1024  # of JSON in the journal; a single row may have more


class Batch(NamedTuple):
    """Rows for one request, and where they end: ``checksum`` is of the last of them.

    ``lost`` counts the entries before the last row that the journal no longer has, ``behind`` those after it.
    ``replaced``: the journal is not the one that the position is about, so nothing was read.
    """

    rows: tuple[Row, ...] = ()
    last: int = 0
    checksum: int | None = None
    lost: int = 0
    behind: int = 0
    replaced: bool = False


def newest(directory: str) -> int:
    """Return the number of the newest entry, 0 if there is none. Raises InputError if the journal cannot be read."""
    JournalReader(directory)
    return _newest(str(Path(directory, FILE_NAME)))


def next_batch(directory: str, position: Position, most_rows: int = MOST_ROWS) -> Batch:
    """Return the first rows after a position. Raises InputError if the journal cannot be read."""
    journal = JournalReader(directory)
    path = str(Path(directory, FILE_NAME))
    if _is_replaced(path, position):
        return Batch(replaced=True)
    entries: list[JournalEntry] = []
    size = 0
    for entry in journal.entries(after=position.acknowledged, limit=most_rows):
        size += len(str(entry.fields))
        if entries and size > MOST_BYTES:
            break
        entries.append(entry)
    if not entries:
        return Batch(last=position.acknowledged, checksum=position.checksum)
    last = entries[-1].id
    ((checksum,),) = read(path, "SELECT sum FROM entries WHERE id = ?", [last])
    ((behind,),) = read(path, "SELECT count(*) FROM entries WHERE id > ?", [last])
    records = _records(journal, entries)
    # What was removed before the sink was configured is not lost to it.
    start = max(position.acknowledged, position.begins or 0)
    lost = max(0, last - start) - sum(entry.id > start for entry in entries)
    return Batch(tuple(_row(entry, records) for entry in entries), last, checksum, lost, behind)


def _newest(path: str) -> int:
    ((found,),) = read(path, "SELECT coalesce(max(id), 0) FROM entries")
    return int(found)


def _is_replaced(path: str, position: Position) -> bool:
    """Return whether the file is another: empty since, or older, or moved aside."""
    if not position.acknowledged:
        return False
    if _newest(path) < position.acknowledged:
        return True
    found = read(path, "SELECT sum FROM entries WHERE id = ?", [position.acknowledged])
    return bool(found) and found[0][0] != position.checksum  # if it is missing, it was removed for its age


def _records(journal: JournalReader, entries: Iterable[JournalEntry]) -> dict[int, EventRow]:
    wanted = {entry.record_id for entry in entries if entry.record_id is not None}
    return {record.id: record for record in journal.records(ids=sorted(wanted))}


def _row(entry: JournalEntry, records: dict[int, EventRow]) -> Row:
    record = None if entry.record_id is None else records.get(entry.record_id)
    event_id: Any = entry.fields.get("event_id")
    event_type: Any = None
    drill: Any = None
    if record is not None:
        event = record.data.get("event")
        if isinstance(event, dict):
            event_id, event_type = event.get("EventId"), event.get("EventType")
        drill = record.data.get("drill") is True
    stamp = entry.stamp
    return Row(
        entry.id,
        entry.kind,
        stamp.wall,
        stamp.boot,
        stamp.boot_id,
        entry.fields,
        event_id if isinstance(event_id, str) else None,
        event_type if isinstance(event_type, str) else None,
        drill,
    )
