# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading a journal, also while the runner writes it: for ``forewarn status`` and ``forewarn history``."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from ...errors import InputError
from ...system.account import ADMINISTRATOR
from ..clocks import Stamp
from . import schema
from .schema import DamageError, EventRow

_AT_ONCE = 200  # entries; a page or two on a screen
_SELECT = "SELECT id, kind, life_id, wall, boot, boot_id, fields, sum FROM entries"
DAMAGED = "record-damaged"  # the kind of an entry that is not what was written,
DAMAGED_STATE = "damaged"  # and the state of such a record


class JournalEntry(NamedTuple):
    """What happened at a moment. ``id`` rises in the order of writing. ``record_id`` is None without an event."""

    id: int
    kind: str
    record_id: int | None
    stamp: Stamp
    fields: Mapping[str, Any]


class JournalReader:
    """Reads the journal in a state directory: never writes, never creates.

    Each method raises InputError, with what to do, if the journal is missing or cannot be read. A single damaged record
    is returned as DAMAGED, without its content.
    """

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._path = str(Path(directory, schema.FILE_NAME))
        self._rows("SELECT 1", [])

    def records(
        self,
        *,
        open_only: bool = False,
        since_wall: float | None = None,
        event: str | None = None,
        ids: Collection[int] | None = None,
        limit: int | None = None,
    ) -> list[EventRow]:
        """Return records, oldest first; with ``limit`` only the newest ``limit``, with ``ids`` some hundred at most.

        ``since_wall`` (seconds since 1970) selects those that are open or were written since. ``event`` is how an
        event's id begins, in either case.
        """
        conditions = ["1"]
        values: list[Any] = []
        if open_only:
            conditions.append("open = 1")
        elif since_wall is not None:
            conditions.append("(open = 1 OR open = 0 AND saved >= ?)")
            values.append(since_wall)
        if event is not None:
            prefix = schema.clean(event.lower())
            conditions.append("key >= ? AND key < ?")
            values += [prefix, prefix + "\U0010ffff"]
        if ids is not None:
            conditions.append(f"id IN ({', '.join('?' * len(ids))})")
            values += ids
        values.append(-1 if limit is None else limit)
        query = f"{schema.SELECT_RECORDS} WHERE {' AND '.join(conditions)} ORDER BY id DESC LIMIT ?"
        return [_record_of(row) for row in reversed(self._rows(query, values))]

    def entries(
        self,
        *,
        record_id: int | None = None,
        kinds: Collection[str] | None = None,
        since_wall: float | None = None,
        until_wall: float | None = None,
        after: int | None = None,
        limit: int | None = None,
        newest_first: bool = False,
    ) -> Iterator[JournalEntry]:
        """Yield entries in the order of writing, or the newest first; times are seconds since 1970, inclusive.

        ``after`` is the id of the last entry that is not wanted.
        """
        conditions = ["1"]
        values: list[Any] = []
        if record_id is not None:
            conditions.append("life_id = ?")
            values.append(record_id)
        if kinds is not None:
            conditions.append(f"kind IN ({', '.join('?' * len(kinds))})")
            values += map(schema.clean, kinds)
        if after is not None:
            conditions.append("id > ?")
            values.append(after)
        # Ids rise with time unless a clock was set, so times bound ids too. A + excludes an index.
        for sign, edge, moment in ((">=", "min", since_wall), ("<=", "max", until_wall)):
            if moment is not None:
                query = f"SELECT {edge}(+id) FROM entries WHERE wall {sign} ?"  # noqa: S608 - of the words above
                ((identifier,),) = self._rows(query, [moment])
                conditions.append(f"id {sign} ? AND +wall {sign} ?")
                values += [identifier, moment]  # NULL, where there is no entry, is neither less nor more than any
        order, beyond = ("DESC", "<") if newest_first else ("ASC", ">")
        left = limit
        last: list[int] = []
        while left is None or left > 0:
            wanted = _AT_ONCE if left is None else min(left, _AT_ONCE)
            further = f" AND id {beyond} ?" if last else ""
            query = f"{_SELECT} WHERE {' AND '.join(conditions)}{further} ORDER BY id {order} LIMIT ?"
            rows = self._rows(query, [*values, *last, wanted])
            for row in rows:
                yield _entry_of(row)
            if len(rows) < wanted:
                return
            last = [rows[-1][0]]
            left = None if left is None else left - wanted

    def _rows(self, query: str, values: list[Any]) -> list[tuple[Any, ...]]:
        try:
            import sqlite3  # here: a Python without it is not a defect
        except ImportError as error:
            raise InputError(
                f"this Python has no SQLite ({error}).", "Install the package that has its module sqlite3."
            ) from error
        try:
            Path(self._path).stat()
            try:
                return schema.read(self._path, query, values)
            except sqlite3.OperationalError:
                with Path(self._path).open("rb"):  # raises the reason, which SQLite does not give
                    raise
        except (FileNotFoundError, NotADirectoryError) as error:
            raise InputError(
                f"there is no journal in {self._directory}.",
                "A runner writes it: name that runner's state directory with --state.",
            ) from error
        except PermissionError as error:
            raise InputError(
                f"{self._path} cannot be read: {error.strerror}.",
                f"Run this as {ADMINISTRATOR}, or as the user of the runner.",
            ) from error
        except (OSError, sqlite3.Error, UnicodeDecodeError) as error:
            hint = "It is damaged: the runner moves it aside and begins a new one as soon as it notices."
            raise InputError(
                f"{self._path} cannot be read: {schema.explain(error, self._path)}.",
                hint if schema.is_damage(error) else "",
            ) from error


def _record_of(row: tuple[Any, ...]) -> EventRow:
    try:
        return schema.decode_row(row)
    except DamageError:
        damaged = schema.decode_damaged_row(row)
        return EventRow(damaged.id or 0, damaged.key or "?", DAMAGED_STATE, bool(row[3]), {})


def _entry_of(row: tuple[Any, ...]) -> JournalEntry:
    identifier, kind, record_id, wall, boot, boot_id, fields, found = row
    with suppress(DamageError):
        if schema.checksum(record_id, kind, wall, boot, boot_id, fields) == found:
            return JournalEntry(identifier, kind, record_id, Stamp(wall, boot, boot_id), schema.load(fields))
    fields = {"reason": f"entry {identifier} of the journal is not what was written"}
    return JournalEntry(identifier, DAMAGED, record_id, Stamp(_number(wall), _number(boot), str(boot_id)), fields)


def _number(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0
