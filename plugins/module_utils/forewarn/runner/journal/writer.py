# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The journal: the records of events, to resume after a crash, and entries, for the history.

A SQLite file in the state directory. Nothing here raises: if the disk is full, read-only or damaged, ``trouble`` says
so, unsaved rows wait in memory, and a later commit tries again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, NamedTuple, TypeVar

from ...errors import InputError
from ..clocks import Clocks
from . import schema
from .integrity import IntegrityReport, JournalContents, Loss, Mark, MarkFile, check_integrity, digest_of
from .lost_records import LostRecords
from .retention import prune
from .schema import DamageError, EventRow

if TYPE_CHECKING:  # imported where it is used: it takes a fifth of the runner's start
    import sqlite3

__all__ = ["EventRow", "Journal"]

MAX_BYTES = 64 * 1024 * 1024
RETRY_SECONDS = 10.0  # between attempts to heal
PRUNE_SECONDS = 3600.0
# What may wait in memory while nothing can be written: characters of entries, and records that have ended meanwhile.
MOST_WAITING_CHARACTERS = 1024 * 1024
MOST_WAITING_RECORDS = 1000
_UPSERT = (
    "INSERT INTO lives (id, key, state, open, saved, data, sum, seq) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
    " ON CONFLICT (id) DO UPDATE SET key = excluded.key, state = excluded.state, open = excluded.open,"
    " saved = excluded.saved, data = excluded.data, sum = excluded.sum, seq = excluded.seq"
)
_INSERT = "INSERT INTO entries (life_id, kind, wall, boot, boot_id, fields, sum) VALUES (?, ?, ?, ?, ?, ?, ?)"
_SELECT_MARK = "SELECT count, number, digest, sum FROM mark WHERE id = 1"
_T = TypeVar("_T")


class _EncodedRow(NamedTuple):
    """A record, encoded for the file."""

    id: int
    key: str
    state: str
    open: bool
    saved: float
    data: str
    sum: int
    entries_before: int  # how many were added before it


class _Entry(NamedTuple):
    record_id: int | None
    kind: str
    wall: float
    boot: float
    boot_id: str
    fields: str
    sum: int


class Journal:
    """The journal of the runner that has locked ``directory``; for one thread. ``open`` opens it.

    ``trouble`` is why nothing can be saved now, None while all is well. ``moved_aside`` is the new path of a damaged
    file. ``late_records`` are the open records of an earlier run that only a later commit could read. ``losses`` are
    sentences on lost records, ``cleared_files`` the files that a person has removed: who logs them clears both lists.
    ``lost_records`` are the records that are damaged or lost, and that nobody has dealt with.
    """

    def __init__(self, directory: str, clocks: Clocks, *, max_bytes: int = MAX_BYTES) -> None:
        self.trouble: str | None = None
        self.moved_aside: str | None = None
        self.late_records: list[EventRow] = []
        self.losses: list[str] = []
        self.cleared_files: list[str] = []
        self.lost_records = LostRecords(directory)
        self._mark_file = MarkFile(directory)
        self._earlier_keys: frozenset[str] = frozenset()  # of the intact records of an earlier run
        self._path = str(Path(directory, schema.FILE_NAME))
        self._clocks = clocks
        self._max_bytes = max_bytes
        self._connection: sqlite3.Connection | None = None
        self._files: object = None
        self._entries: deque[_Entry] = deque()
        self._waiting_characters = 0  # in the entries
        self._unsaved: dict[int, _EncodedRow] = {}
        self._open: dict[int, _EncodedRow] = {}  # written or not: a new file must have them too
        self._unread = True
        self._replaced = False  # the file, before it could be read
        self._commits = 0  # of earlier runs too
        self._marked_ids: frozenset[int] = frozenset()  # the open records in the latest durable mark
        self._entries_added = 0
        self._entries_lost = 0
        self._gap_reason: str | None = None  # until an entry records the gap
        self._gap_began_at = 0.0
        self._retry_at = 0.0
        self._prune_at = 0.0
        self._characters_since_prune = 0

    def open(self) -> list[EventRow]:
        """Open or create the file; return the open records, oldest first, even if the file can only be read."""
        self.lost_records.load()
        if self._try(lambda _connection: True) is None:
            self._read_only()
        records, self.late_records = self.late_records, []
        return records

    @property
    def has_unread_records(self) -> bool:
        """Whether ``late_records`` has records, or an earlier run may have left open records that are not read yet."""
        if self.late_records:
            return True
        if not self._unread or self.trouble is None:
            return False
        mark = self._mark_file.read()
        return mark is None or mark.number != 0

    @property
    def unsaved_ids(self) -> frozenset[int]:
        """The ids of open records whose current state the file does not have, because of ``trouble``."""
        if self.trouble is None:
            return frozenset()
        return frozenset(identifier for identifier, record in self._unsaved.items() if record.open)

    def doubt(self, key: str) -> str | None:
        """Return why an event is in doubt, or None. Its record is damaged or lost, and nobody has dealt with it."""
        reason = self.lost_records.reason(key)
        if self.lost_records.directory_unread:  # it may be named there
            return reason
        return None if reason is None or (key in self._earlier_keys and key not in self.lost_records.keys) else reason

    def settle_doubts(self, keys: Iterable[str]) -> None:
        """Limit lost records of unknown events to those of the first whole document since the loss."""
        self.lost_records.assign_keys(frozenset(keys) - self._earlier_keys)

    def doubt_listed(self, keys: Iterable[str]) -> None:
        """Put the events of an incomplete document in doubt: after a restart, their own records look like old ones."""
        if self.lost_records.directory_unread:  # every event is held until it is known whether anything was lost
            return
        new = frozenset(keys) - self._earlier_keys - self.lost_records.keys
        reason = "something was lost before, and it is not known of which events"
        self._record_losses(Loss(key, None, reason, "") for key in sorted(new))

    def mark_damaged(self, row: EventRow, why: str) -> None:
        """Set an unusable record aside: its event is in doubt until a person has dealt with it."""
        self._open.pop(row.id, None)
        self._record_losses(
            [Loss(row.key, row.id, f"its record in the journal is damaged: {why}", schema.dump(row._asdict()))]
        )
        self.save(row._replace(open=False))

    @property
    def entries_written(self) -> int:
        """How many entries this runner has written."""
        return self._entries_added - len(self._entries)

    def note(self, kind: str, record_id: int | None = None, /, **fields: Any) -> None:
        """Add an entry with the current time, for the next commit. Fields that are None are left out."""
        entry = self._entry(record_id, kind, {name: value for name, value in fields.items() if value is not None})
        self._entries.append(entry)
        self._entries_added += 1
        self._waiting_characters += len(entry.fields)
        self._trim()

    def save(self, row: EventRow) -> None:
        """Add a record as it is now, for the next commit."""
        stored = self._encode(row)
        self._unsaved[row.id] = stored
        if row.open:
            self._open[row.id] = stored
        else:
            self._open.pop(row.id, None)
        self._trim()

    def commit(self) -> bool:
        """Write all records and entries that were added; return whether they are on the disk.

        While there is ``trouble``, it is tried again every 10 s, even if nothing was added.
        """
        if self.trouble is not None:
            if self._clocks.monotonic() < self._retry_at:
                return False
        elif not self._entries and not self._unsaved and self._gap_reason is None:
            return True
        return self._try(self._write) is not None

    def fields_of(self, kind: str, record_id: int) -> list[dict[str, Any]]:
        """Return the fields of each committed entry of a kind of one record: none if these cannot be read now."""

        def fields(connection: sqlite3.Connection) -> list[dict[str, Any]]:
            query = "SELECT fields FROM entries WHERE life_id = ? AND kind = ? ORDER BY id"
            return [schema.load(text) for (text,) in connection.execute(query, (record_id, kind))]

        return [] if self.trouble is not None else self._try(fields) or []

    def prune(self) -> None:
        """Remove the oldest rows if the file is too large; never an open record or an entry of one.

        At most once an hour, or after an eighth of ``max_bytes`` was written.
        """
        for record in self.lost_records.refresh():
            self.cleared_files.append(record.file)
            self.note("damage-cleared", None, file=record.file, event_keys=record.keys, reason=record.reason)
        now = self._clocks.monotonic()
        due = now >= self._prune_at or self._characters_since_prune > self._max_bytes // 8
        if self.trouble is None and self._connection is not None and due:
            self._prune_at = now + PRUNE_SECONDS
            self._characters_since_prune = 0
            self._try(lambda connection: prune(connection, self._max_bytes))

    def close(self) -> None:
        """Commit, and close the file."""
        self._retry_at = 0.0  # there is no later
        self.commit()
        self._disconnect()

    # The file

    def _try(self, work: Callable[[sqlite3.Connection], _T]) -> _T | None:
        """Call ``work`` with the open file. A failure sets ``trouble`` and returns None."""
        try:
            import sqlite3
        except ImportError as error:
            self._fail(f"this Python has no SQLite ({error}): install the package that has its module sqlite3")
            return None
        for attempt in (1, 2):
            try:
                return work(self._connect())
            except InputError as error:
                problem: str | None = str(error)
            except (OSError, sqlite3.Error, DamageError, UnicodeDecodeError) as error:
                why = schema.explain(error, self._path)
                if attempt == 1 and schema.is_damage(error):
                    problem = self._move_aside(f"{self._path} is damaged ({why})")
                else:
                    problem = f"{self._path} cannot be used: {why}"
            if problem is not None:
                self._fail(problem)
                break
        return None

    def _connect(self) -> sqlite3.Connection:
        if self._connection is not None:
            if self._files == schema.which_files(self._path):
                return self._connection
            # A file without a name would keep nothing.
            self._disconnect()
            self._begin_gap(f"{self._path} was removed or replaced while it was in use")
        self._connection = schema.connect(self._path)
        self._files = schema.which_files(self._path)
        if self._unread:
            self._load(_read_contents(self._connection.execute))
        # It may be another file than before: an empty one, or one of yesterday.
        self._unsaved = {**self._open, **self._unsaved}
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            import sqlite3

            # What was committed is in the WAL: the next to open the file has it.
            with suppress(sqlite3.Error, UnicodeDecodeError):
                self._connection.close()
            self._connection = None

    def _read_only(self) -> None:
        """Read the open records from a file that cannot be written, if it can be read."""
        try:
            import sqlite3
        except ImportError:
            return
        with suppress(OSError, InputError, sqlite3.Error, DamageError, UnicodeDecodeError):
            self._load(_read_contents(lambda query: schema.read(self._path, query)))

    def _load(self, stock: JournalContents) -> None:
        """Load the records that are intact. Raises DamageError if the file has to be moved aside."""
        beside = self._mark_file.read()
        found = check_integrity(stock, beside, self._replaced)
        self._unread = False
        self._commits = max(mark.commits for mark in (stock.mark, beside, Mark(0, 0, 0)) if mark is not None)
        self.late_records = [row for row in found.records if row.id not in self._open]
        self._earlier_keys |= {row.key for row in self.late_records}
        stored = {row.id: self._encode(row) for row in self.late_records}
        self._open.update(stored)
        self._report_integrity(found)
        if stock.damaged:
            raise DamageError("; ".join(loss.reason for loss in found.losses) or "a record is not what was written")
        intact = {row.id for row in found.records}
        for row, _sum in stock.intact.values():  # a record that is closed or in doubt must not be found again
            if row.id not in intact:
                self._unsaved[row.id] = self._encode(row._replace(open=False))

    def _report_integrity(self, found: IntegrityReport) -> None:
        if found.behind:
            text = f"{self._path} is older than it was: {found.behind} commits have gone missing"
            self._begin_gap(text)
            if not found.losses:
                self.losses.append(f"{text}. No event was open that it does not have")
        self._record_losses(found.losses)

    def _record_losses(self, losses: Iterable[Loss]) -> None:
        for record in self.lost_records.add(losses, self._clocks.wall()):
            self.losses.append(record.in_words())
            self.note("record-damaged", None, file=record.file, event_keys=record.keys, reason=record.reason)

    def _move_aside(self, why: str) -> str | None:
        """Move a damaged file out of the way; return why that failed, or None."""
        self._disconnect()
        self._replaced = True
        try:
            self.moved_aside = schema.move_aside(self._path, self._clocks.wall())
        except (OSError, InputError) as error:
            return f"{why} and cannot be moved aside: {schema.explain(error, self._path)}"
        self._begin_gap(f"{why}; it was moved to {self.moved_aside}")
        return None

    # Trouble

    def _fail(self, why: str) -> None:
        self._disconnect()
        self.trouble = why
        self._begin_gap(why)
        self._retry_at = self._clocks.monotonic() + RETRY_SECONDS
        self._trim()

    def _begin_gap(self, why: str) -> None:
        if self._gap_reason is None:
            self._gap_began_at = self._clocks.monotonic()
            self._gap_reason = why

    def _trim(self) -> None:
        """Limit the memory of unsaved rows while nothing can be written."""
        if self.trouble is None:
            return
        while self._waiting_characters > MOST_WAITING_CHARACTERS:
            self._waiting_characters -= len(self._entries.popleft().fields)
            self._entries_lost += 1
        ended = [identifier for identifier, record in self._unsaved.items() if not record.open]
        for identifier in ended[: max(0, len(ended) - MOST_WAITING_RECORDS)]:
            del self._unsaved[identifier]
            self._entries_lost += 1

    # Writing

    def _encode(self, row: EventRow) -> _EncodedRow:
        key, state, data = schema.clean(row.key), schema.clean(row.state), schema.dump(row.data)
        values = (row.id, key, state, int(row.open), self._clocks.wall(), data)
        return _EncodedRow(*values, schema.checksum(*values), self._entries_added)  # type: ignore[arg-type]  # 1 for True, as it is read

    def _entry(self, record_id: int | None, kind: str, fields: Mapping[str, Any]) -> _Entry:
        values = (record_id, schema.clean(kind), *self._clocks.stamp(), schema.dump(fields))
        return _Entry(*values, schema.checksum(*values))

    def _write(self, connection: sqlite3.Connection) -> bool:
        sums = {record.id: (record.sum, record.key) for record in self._open.values()}
        digest = digest_of((identifier, found) for identifier, (found, _key) in sums.items())
        mark = Mark(self._commits + 1, len(sums), digest, sums)
        connection.execute("BEGIN IMMEDIATE")
        ((newest,),) = connection.execute("SELECT coalesce(max(id), 0) FROM entries")
        written = self._entries_added - len(self._entries)
        for record in self._unsaved.values():
            connection.execute(_UPSERT, (*record[:7], newest + max(0, record.entries_before - written)))
        connection.executemany(_INSERT, self._entries)
        if self._gap_reason is not None:
            gap = round(self._clocks.monotonic() - self._gap_began_at, 3)
            fields = {"reason": self._gap_reason, "seconds": gap, "lost": self._entries_lost}
            connection.execute(_INSERT, self._entry(None, "journal-recovered", fields))
        values = (mark.commits, mark.number, mark.digest)
        connection.execute("INSERT OR REPLACE INTO mark VALUES (1, ?, ?, ?, ?)", (*values, schema.checksum(*values)))
        connection.execute("COMMIT")
        self._commits = mark.commits
        if self.lost_records.all_written:  # otherwise only the mark has the losses
            # A killed process loses nothing that it has written. Only a change of the open records is worth a wait.
            durable = self._marked_ids != frozenset(sums)
            self._marked_ids = frozenset(sums)
            self._mark_file.write(mark, durable)
        self._characters_since_prune += self._waiting_characters + sum(
            len(record.data) for record in self._unsaved.values()
        )
        self._unsaved.clear()
        self._entries.clear()
        self._waiting_characters = 0
        if self._gap_reason is not None:
            self._entries_added += 1
        self.trouble = self._gap_reason = None
        self._entries_lost = 0
        return True


def _read_contents(ask: Callable[[str], Iterable[tuple[Any, ...]]]) -> JournalContents:
    """Return the contents of the file that ``ask`` queries."""
    intact: dict[int, tuple[EventRow, int]] = {}
    damaged: list[schema.DamagedRow] = []
    for row in ask(schema.SELECT_OPEN_RECORDS):
        try:
            record = schema.decode_row(row)
        except DamageError:  # noqa: PERF203 - a few rows, once
            damaged.append(schema.decode_damaged_row(row))
        else:
            if record.open:
                intact[record.id] = record, row[-1]
    mark = None
    for count, number, digest, found in ask(_SELECT_MARK):
        if schema.checksum(count, number, digest) == found:
            mark = Mark(count, number, digest)
    return JournalContents(intact, tuple(damaged), mark)
