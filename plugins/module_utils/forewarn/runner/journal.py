# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the runner must not forget: the open lives, to go on with them after a crash, and what happened, for history.

A SQLite file in the state directory. Nothing here raises: where the disk is full, read-only or damaged, ``trouble``
says so, what is to be kept waits in memory, and a later commit tries again.
"""

from __future__ import annotations

import os
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Callable, NamedTuple, TypeVar

from ..errors import InputError
from .clocks import Clocks
from .journal_schema import (
    FILE_NAME,
    OPEN_LIVES,
    DamageError,
    LifeRow,
    clean,
    connect,
    dump,
    explain,
    is_damage,
    life_of,
    load,
    move_aside,
    read,
    which_files,
)

if TYPE_CHECKING:  # imported where it is used: it takes a fifth of the runner's start
    import sqlite3

__all__ = ["Journal", "LifeRow"]

MAX_AGE_SECONDS = 90 * 86400.0
MAX_BYTES = 64 * 1024 * 1024
RETRY_SECONDS = 10.0  # between attempts to heal
PRUNE_SECONDS = 3600.0
# Of what waits in memory while nothing can be written: characters of entries, and lives that have ended meanwhile.
MOST_WAITING_CHARACTERS = 1024 * 1024
MOST_WAITING_LIVES = 1000
_UPSERT = (
    "INSERT INTO lives (id, key, state, open, saved, data) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET"
    " key = excluded.key, state = excluded.state, open = excluded.open, saved = excluded.saved, data = excluded.data"
)
_INSERT = "INSERT INTO entries (life_id, kind, wall, boot, boot_id, fields) VALUES (?, ?, ?, ?, ?, ?)"
# When the n-th (from 0) of closed lives and entries of no life was written, from the oldest on.
_OLDEST = (
    "SELECT wall FROM (SELECT saved AS wall FROM lives WHERE open = 0 UNION ALL"
    " SELECT wall FROM entries WHERE +life_id IS NULL) ORDER BY wall LIMIT 1 OFFSET ?"  # +: by the index on wall
)
# A closed life goes with its entries. Those of open lives stay, whatever their age.
_REMOVE = (
    "DELETE FROM entries WHERE life_id IN (SELECT id FROM lives WHERE open = 0 AND saved <= ?)",
    "DELETE FROM lives WHERE open = 0 AND saved <= ?",
    "DELETE FROM entries WHERE wall <= ? AND (life_id IS NULL OR life_id NOT IN (SELECT id FROM lives))",
)

_T = TypeVar("_T")


class _Life(NamedTuple):
    """As it goes into the file."""

    id: int
    key: str
    state: str
    open: bool
    saved: float
    data: str


class _Entry(NamedTuple):
    life_id: int | None
    kind: str
    wall: float
    boot: float
    boot_id: str
    fields: str


class Journal:
    """The journal of the runner that has locked ``directory``; for one thread. Nothing is opened yet.

    ``trouble`` is a sentence on why nothing can be kept now, None while all is well. ``moved_aside`` is where a damaged
    file was moved to. ``late`` are open lives of an earlier run that ``open`` could not read and a later commit could.
    """

    def __init__(
        self,
        directory: str,
        clocks: Clocks,
        *,
        max_age_seconds: float = MAX_AGE_SECONDS,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self.trouble: str | None = None
        self.moved_aside: str | None = None
        self.late: list[LifeRow] = []
        self._path = os.path.join(directory, FILE_NAME)  # noqa: PTH118 - importing pathlib takes a tenth of the start
        self._clocks = clocks
        self._max_age_seconds = max_age_seconds
        self._max_bytes = max_bytes
        self._connection: sqlite3.Connection | None = None
        self._files: object = None
        self._entries: deque[_Entry] = deque()
        self._waiting = 0  # characters in them
        self._unsaved: dict[int, _Life] = {}
        self._open: dict[int, _Life] = {}  # all of them, written or not: a new file must have them too
        self._unread = False
        self._lost = 0
        self._interruption: str | None = None  # why what is kept has a gap, until an entry says so
        self._interrupted_at = 0.0
        self._retry_at = 0.0
        self._prune_at = 0.0
        self._written = 0  # characters since the last prune

    def open(self) -> list[LifeRow]:
        """Open or create the file; return the open lives, oldest first, even where they can only be read."""
        lives = self._try(_open_lives)
        if lives is None:
            lives = self._read_only()
            self._unread = lives is None
        lives = lives or []
        self._open.update((row.id, self._stored(row)) for row in lives)
        return lives

    def note(self, kind: str, life_id: int | None = None, /, **fields: Any) -> None:
        """Add an entry, stamped now, to what the next commit writes. Fields that are None are left out."""
        text = dump({name: value for name, value in fields.items() if value is not None})
        self._entries.append(_Entry(life_id, clean(kind), *self._clocks.stamp(), text))
        self._waiting += len(text)
        self._trim()

    def save(self, row: LifeRow) -> None:
        """Add a life as it is now to what the next commit writes."""
        stored = self._stored(row)
        self._unsaved[row.id] = stored
        if row.open:
            self._open[row.id] = stored
        else:
            self._open.pop(row.id, None)
        self._trim()

    def commit(self) -> bool:
        """Write what has been added since; return whether it is on the disk, all of it.

        In trouble it is tried again every 10 s, also if nothing was added.
        """
        if self.trouble is not None:
            if self._clocks.monotonic() < self._retry_at:
                return False
        elif not self._entries and not self._unsaved:
            return True
        return self._try(self._write) is not None

    def fields_of(self, kind: str, life_id: int) -> list[dict[str, Any]]:
        """Return the fields of each committed entry of a kind of one life, none where that cannot be read now."""

        def fields(connection: sqlite3.Connection) -> list[dict[str, Any]]:
            query = "SELECT fields FROM entries WHERE life_id = ? AND kind = ? ORDER BY id"
            return [load(text) for (text,) in connection.execute(query, (life_id, kind))]

        return [] if self.trouble is not None else self._try(fields) or []

    def prune(self) -> None:
        """Remove what is too old, then what is too much, the oldest first; never an open life or an entry of one.

        At most once an hour, or after an eighth of ``max_bytes`` was written.
        """
        now = self._clocks.monotonic()
        due = now >= self._prune_at or self._written > self._max_bytes // 8
        if self.trouble is None and self._connection is not None and due:
            self._prune_at = now + PRUNE_SECONDS
            self._written = 0
            self._try(self._prune)

    def close(self) -> None:
        """Write what is left, and close the file."""
        self._retry_at = 0.0  # there is no later
        self.commit()
        self._disconnect()

    # The file

    def _try(self, work: Callable[[sqlite3.Connection], _T]) -> _T | None:
        """Do something with the file, opened if need be. After a failure ``trouble`` is set, and None returned."""
        try:
            import sqlite3
        except ImportError as error:
            self._fail(f"this Python has no SQLite ({error}): install the package that has its module sqlite3")
            return None
        for attempt in (1, 2):
            try:
                return work(self._connected())
            except InputError as error:
                problem: str | None = str(error)
            except (OSError, sqlite3.Error, DamageError, UnicodeDecodeError) as error:
                why = explain(error, self._path)
                if attempt == 1 and is_damage(error):
                    problem = self._move_aside(f"{self._path} is damaged ({why})")
                else:
                    problem = f"{self._path} cannot be used: {why}"
            if problem is not None:
                self._fail(problem)
                break
        return None

    def _connected(self) -> sqlite3.Connection:
        if self._connection is not None:
            if self._files == which_files(self._path):
                return self._connection
            # Writing into a file that no longer has a name would keep nothing.
            self._disconnect()
            self._interrupt(f"{self._path} was removed or replaced while it was in use")
        self._connection = connect(self._path)
        self._files = which_files(self._path)
        if self._unread:
            self.late = [row for row in _open_lives(self._connection) if row.id not in self._open]
            self._open.update((row.id, self._stored(row)) for row in self.late)
            self._unread = False
        # It may be another file than before: an empty one, or one of yesterday.
        self._unsaved = {**self._open, **self._unsaved}
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            import sqlite3

            with suppress(
                sqlite3.Error, UnicodeDecodeError
            ):  # what was committed is in the WAL: whoever opens the file next has it
                self._connection.close()
            self._connection = None

    def _read_only(self) -> list[LifeRow] | None:
        """Return the open lives of a file that cannot be written, None if it cannot be read either."""
        try:
            import sqlite3
        except ImportError:
            return None
        try:
            return [life_of(row) for row in read(self._path, OPEN_LIVES)]
        except (OSError, InputError, sqlite3.Error, DamageError, UnicodeDecodeError):
            return None

    def _move_aside(self, why: str) -> str | None:
        """Put a damaged file out of the way; return why that cannot be done."""
        self._disconnect()
        try:
            self.moved_aside = move_aside(self._path, self._clocks.wall())
        except (OSError, InputError) as error:
            return f"{why} and cannot be moved aside: {explain(error, self._path)}"
        self._interrupt(f"{why}; it was moved to {self.moved_aside}")
        return None

    # Trouble

    def _fail(self, why: str) -> None:
        self._disconnect()
        self.trouble = why
        self._interrupt(why)
        self._retry_at = self._clocks.monotonic() + RETRY_SECONDS
        self._trim()

    def _interrupt(self, why: str) -> None:
        if self._interruption is None:
            self._interrupted_at = self._clocks.monotonic()
            self._interruption = why

    def _trim(self) -> None:
        """Bound what waits in memory while nothing can be written."""
        if self.trouble is None:
            return
        while self._waiting > MOST_WAITING_CHARACTERS:
            self._waiting -= len(self._entries.popleft().fields)
            self._lost += 1
        ended = [identifier for identifier, life in self._unsaved.items() if not life.open]
        for identifier in ended[: max(0, len(ended) - MOST_WAITING_LIVES)]:
            del self._unsaved[identifier]
            self._lost += 1

    # Writing

    def _stored(self, row: LifeRow) -> _Life:
        return _Life(row.id, clean(row.key), clean(row.state), row.open, self._clocks.wall(), dump(row.data))

    def _write(self, connection: sqlite3.Connection) -> bool:
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(_UPSERT, self._unsaved.values())
        connection.executemany(_INSERT, self._entries)
        if self._interruption is not None:
            gap = round(self._clocks.monotonic() - self._interrupted_at, 3)
            text = dump({"reason": self._interruption, "seconds": gap, "lost": self._lost})
            connection.execute(_INSERT, _Entry(None, "journal-recovered", *self._clocks.stamp(), text))
        connection.execute("COMMIT")
        self._written += self._waiting + sum(len(life.data) for life in self._unsaved.values())
        self._unsaved.clear()
        self._entries.clear()
        self._waiting = 0
        self.trouble = self._interruption = None
        self._lost = 0
        return True

    # Retention

    def _prune(self, connection: sqlite3.Connection) -> bool:
        connection.execute("BEGIN IMMEDIATE")
        removed = _remove(connection, self._clocks.wall() - self._max_age_seconds)
        used = _used_bytes(connection)
        if used > self._max_bytes:
            removed += _shrink(connection, used, int(self._max_bytes * 0.9))  # or the next entry is too much again
        connection.execute("COMMIT")
        if removed:
            connection.executescript("PRAGMA incremental_vacuum")  # execute() would step once: one page
        return True


def _open_lives(connection: sqlite3.Connection) -> list[LifeRow]:
    return [life_of(row) for row in connection.execute(OPEN_LIVES)]


def _remove(connection: sqlite3.Connection, until: float) -> int:
    """Remove what was written until a wall-clock time; return how many rows."""
    return sum(connection.execute(statement, (until,)).rowcount for statement in _REMOVE)


def _shrink(connection: sqlite3.Connection, used: int, wanted: int) -> int:
    """Remove the oldest until so many bytes are used, or nothing is left to remove; return how many rows."""
    removed = 0
    batch = 1
    while used > wanted:
        newest = connection.execute(_OLDEST, (batch - 1,)).fetchone()
        if newest is not None:
            gone = _remove(connection, newest[0])
            if not gone:  # a damaged index may name what is not there
                break
            removed += gone
            before, used = used, _used_bytes(connection)
            # One may have a hundred bytes, or a million: no more than it seems to take.
            batch = max(1, min(2 * batch, 256, (used - wanted) * batch // max(1, before - used)))
        elif batch > 1:
            batch = 1
        else:
            break
    return removed


def _used_bytes(connection: sqlite3.Connection) -> int:
    pages, free, size = (
        connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)
