# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the next entries for a sink from a journal."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..journal.reader import JournalEntry, JournalReader
from ..journal.schema import FILE_NAME, EventRow, read
from .formats import Row
from .position import Position
from .report import MOST_ROWS, SendReport

MOST_BYTES = 256 * 1024  # of JSON in the journal; a single row may have more


def newest(journal: JournalReader) -> int:
    """Return the number of the newest entry, 0 if there is none. Raises InputError if the journal cannot be read."""
    return next((entry.id for entry in journal.entries(limit=1, newest_first=True)), 0)


def next_batch(directory: str, position: Position, most_rows: int = MOST_ROWS) -> tuple[list[Row], SendReport]:
    """Return the first rows after a position, and what to report when they are sent.

    Raises InputError if the journal cannot be read.
    """
    journal = JournalReader(directory)
    path = str(Path(directory, FILE_NAME))
    if _is_replaced(journal, path, position):
        return [], SendReport(replaced=True)
    entries: list[JournalEntry] = []
    size = 0
    for entry in journal.entries(after=position.acknowledged, limit=most_rows):
        size += len(str(entry.fields))
        if entries and size > MOST_BYTES:
            break
        entries.append(entry)
    if not entries:
        return [], SendReport(acknowledged=position.acknowledged, checksum=position.checksum)
    last = entries[-1].id
    ((checksum,),) = read(path, "SELECT sum FROM entries WHERE id = ?", [last])
    ((behind,),) = read(path, "SELECT count(*) FROM entries WHERE id > ?", [last])
    records = _records(journal, entries)
    # What was removed before the sink was configured is not lost to it.
    start = max(position.acknowledged, position.begins or 0)
    lost = max(0, last - start) - sum(entry.id > start for entry in entries)
    report = SendReport(rows=len(entries), acknowledged=last, checksum=checksum, lost=lost, behind=behind)
    return [_row(entry, records) for entry in entries], report


def _is_replaced(journal: JournalReader, path: str, position: Position) -> bool:
    """Return whether the file is another: empty since, or older, or moved aside."""
    if not position.acknowledged:
        return False
    if newest(journal) < position.acknowledged:
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
    return Row(
        entry,
        event_id if isinstance(event_id, str) else None,
        event_type if isinstance(event_type, str) else None,
        drill,
    )
