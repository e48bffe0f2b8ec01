# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The journal's file: its format, opening it, encoding and decoding its rows, and the meaning of SQLite's errors."""

from __future__ import annotations

import json
import math
import os
from binascii import crc32
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ...errors import InputError
from ...system.files import open_to_write

if TYPE_CHECKING:  # sqlite3 is imported where it is used: it takes a fifth of the runner's start
    import sqlite3

FILE_NAME = "journal.db"
APPLICATION_ID = 0x46574A4C  # by which we and file(1) know the file
# The statements that lead from each format version to the next; the first make a new file. Files of every version
# exist: append, never edit. The newest version is the number of these.
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        # A start reads only the open records, however large the file is: hence lives_open. ``saved`` and ``wall`` are
        # seconds since 1970; ``data`` and ``fields`` are JSON in ASCII.
        "CREATE TABLE lives (id INTEGER PRIMARY KEY, key TEXT NOT NULL, state TEXT NOT NULL, open INTEGER NOT NULL,"
        " saved REAL NOT NULL, data TEXT NOT NULL)",
        "CREATE INDEX lives_open ON lives (open, saved)",
        "CREATE INDEX lives_key ON lives (key)",
        "CREATE TABLE entries (id INTEGER PRIMARY KEY, life_id INTEGER, kind TEXT NOT NULL, wall REAL NOT NULL,"
        " boot REAL NOT NULL, boot_id TEXT NOT NULL, fields TEXT NOT NULL)",
        "CREATE INDEX entries_life ON entries (life_id)",
        "CREATE INDEX entries_wall ON entries (wall, life_id)",
    ),
    (
        # ``sum`` is ``checksum`` of the rest of the row, for an entry without its id; ``seq`` is the id of the newest
        # entry when the record was written: ``retention`` removes rows in this order.
        "ALTER TABLE lives ADD COLUMN seq INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE lives ADD COLUMN sum INTEGER",
        "ALTER TABLE entries ADD COLUMN sum INTEGER",
        "UPDATE lives SET sum = checksum(id, key, state, open, saved, data),"
        " seq = coalesce((SELECT max(id) FROM entries WHERE life_id = lives.id), 0)",
        "UPDATE entries SET sum = checksum(life_id, kind, wall, boot, boot_id, fields)",
        "CREATE INDEX lives_seq ON lives (seq) WHERE open = 0",
        "CREATE TABLE mark (id INTEGER PRIMARY KEY, count INTEGER, number INTEGER, digest INTEGER, sum INTEGER)",
        "INSERT INTO mark VALUES (1, 0, -1, 0, checksum(0, -1, 0))",
    ),
)
SELECT_RECORDS = "SELECT id, key, state, open, data, saved, sum FROM lives"
SELECT_OPEN_RECORDS = SELECT_RECORDS + " WHERE open = 1 ORDER BY id"

# There is no other writer, but a reader that repairs a WAL, or an operator who copies the file, may lock it briefly.
BUSY_SECONDS = 1.0
MOST_MOVED_ASIDE = 5  # damaged files must not fill the disk
_ASIDE = ".corrupt-"
_COMPANIONS = ("-wal", "-shm", "-journal")
_WAL_PAGES = 256  # 1 MiB: then a checkpoint moves the WAL into the file, to keep the next start short
_WAL_BYTES = 4 * 1024 * 1024  # a longer WAL is truncated to this
_DEEPEST = 50
_DAMAGE = (
    "Could not decode to UTF-8",
    "unsupported file format",
    "user-defined function raised exception",  # for bytes that are not text, while a file is converted
    "no such column: ",  # the file holds the names too
    *(f"no such table: {table}" for table in ("lives", "entries", "mark")),
    *(f"table {table} has no column" for table in ("lives", "entries", "mark")),
)
# By SQLite's message: Python before 3.11 gives no error codes.
_WORDS = {
    "database or disk is full": "the disk is full",
    "attempt to write a readonly database": "it is read-only",
    "database is locked": "another program has locked it",
    "disk I/O error": "the disk cannot be read or written (I/O error)",
}


class EventRow(NamedTuple):
    """The record of one event, in the table ``lives``. ``id`` rises with time, ``key`` is ``Event.key``."""

    id: int
    key: str
    state: str
    open: bool
    data: Mapping[str, Any]


class DamageError(Exception):
    """A row that is not as it was written: the file is damaged in a way that SQLite does not notice."""


class DamagedRow(NamedTuple):
    """A damaged row. ``id`` is None if it is no number, ``key`` unless two places agree on it. ``text`` is all."""

    id: int | None
    key: str | None
    text: str


def checksum(*values: object) -> int:
    """Return the checksum of a row: any changed bit changes it."""
    return crc32("\x1f".join(map(repr, values)).encode("utf-8", "backslashreplace"))


def connect(path: str) -> sqlite3.Connection:
    """Open the file for writing; create or convert it if necessary.

    Raises sqlite3.Error, OSError, and what ``check_format`` raises.
    """
    import sqlite3

    # SQLite would make it readable for everybody, and would not explain why it cannot be opened.
    os.close(open_to_write(path, follow=True))
    # Autocommit: every transaction has its own BEGIN and COMMIT.
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
    connection.text_factory = _lenient
    try:
        version = check_format(connection, path)
        connection.execute("PRAGMA cache_size = -256")  # KiB; the default of 2 MiB is much in a process of some 15 MiB
        if connection.execute("PRAGMA page_count").fetchone() == (0,):
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # otherwise the file would never shrink
        connection.execute("PRAGMA journal_mode = WAL").fetchall()
        connection.execute("PRAGMA synchronous = FULL")  # a commit is on the disk when it returns
        connection.execute(f"PRAGMA wal_autocheckpoint = {_WAL_PAGES}").fetchall()
        connection.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES}").fetchall()
        migrate(connection, version)
    except BaseException:  # the file may be moved aside next
        connection.close()
        raise
    return connection


def which_files(path: str) -> list[tuple[int, int] | None]:
    """Return device and inode of the database and its WAL, to notice if somebody removes or replaces them."""
    return [_which_file(path), _which_file(path + "-wal")]


def move_aside(path: str, wall: float) -> str:
    """Rename a damaged file that is not open, with what belongs to it; return its new path.

    Raises OSError, and InputError if several lie there already.
    """
    from time import gmtime, strftime

    start = Path(path).name + _ASIDE
    beside = [other.name for other in Path(path).parent.iterdir() if other.name.startswith(start)]
    earlier = sum(not name.endswith(_COMPANIONS) for name in beside)
    if earlier >= MOST_MOVED_ASIDE:
        raise InputError(
            f"{earlier} damaged files lie beside it already", "Check the disk, then remove what is not needed."
        )
    target = f"{path}{_ASIDE}{strftime('%Y%m%dT%H%M%SZ', gmtime(wall))}"
    if Path(target).name in beside:
        target += f"-{earlier}"
    for suffix in ("", *_COMPANIONS):  # in this order: SQLite deletes what lies beside an empty file
        source = Path(path + suffix)
        if source.exists():
            source.rename(target + suffix)
    return target


def check_format(connection: sqlite3.Connection, path: str) -> int:
    """Return the format version, 0 of an empty file.

    Raises InputError for a file that is not a journal, or has an unknown version.
    """
    ((application,),) = connection.execute("PRAGMA application_id")
    ((version,),) = connection.execute("PRAGMA user_version")
    if application != APPLICATION_ID:
        ((objects,),) = connection.execute("SELECT count(*) FROM sqlite_master")
        if application or version or objects:
            raise InputError(f"{path} is a database, but not a journal of Forewarn.", "Move it elsewhere.")
        return 0
    if version > len(MIGRATIONS):
        raise InputError(
            f"{path} has format {version}; this version of Forewarn knows {len(MIGRATIONS)} at most.",
            "Run the version that wrote it, or move the file elsewhere.",
        )
    return int(version)


def migrate(connection: sqlite3.Connection, version: int) -> None:
    """Convert a file of an older format version to the newest, in one transaction."""
    if version == len(MIGRATIONS):
        return
    connection.create_function("checksum", -1, checksum, deterministic=True)
    connection.execute("BEGIN IMMEDIATE")
    for statements in MIGRATIONS[version:]:
        for statement in statements:
            connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
    connection.execute("COMMIT")


def read(path: str, query: str, values: Iterable[Any] = ()) -> list[tuple[Any, ...]]:
    """Return the rows of one query, without writing or creating anything, even while the runner writes.

    Each query has its own connection, so that a slow reader does not keep the WAL from being emptied.
    Raises sqlite3.Error, OSError, and what ``check_format`` raises.
    """
    import sqlite3

    wal, size, parameters = Path(path + "-wal"), None, tuple(values)
    with suppress(FileNotFoundError):  # a runner that stops removes it
        size = wal.stat().st_size
    # SQLite would create a missing WAL, and cannot on a disk that is full or read-only. If the WAL is missing or empty,
    # the file itself holds everything.
    modes = ([] if size is None else ["mode=ro"]) + ([] if size else ["immutable=1"])
    for mode in modes:
        connection = sqlite3.connect(f"{Path(path).absolute().as_uri()}?{mode}", uri=True, timeout=5)
        connection.text_factory = _lenient
        try:
            version = check_format(connection, path)
            if version == 0:
                raise InputError(
                    f"{path} is empty.", "A runner that cannot write to its disk leaves it so: see the runner's log."
                )
            if version < len(MIGRATIONS):
                raise InputError(
                    f"{path} has an older format.", "Start the runner of this version once: it converts the file."
                )
            return connection.execute(query, parameters).fetchall()
        except sqlite3.OperationalError:
            if size and not wal.exists():  # the runner has stopped since: now the file holds everything
                return read(path, query, parameters)
            if mode is modes[-1]:
                raise
        finally:
            connection.close()
    return []


def decode_row(row: tuple[Any, ...]) -> EventRow:
    """Return a row of SELECT_RECORDS. Raises DamageError."""
    identifier, key, state, is_open, data, saved, found = row
    if checksum(identifier, key, state, is_open, saved, data) != found:
        raise DamageError("a row is not what was written: its checksum does not fit")
    return EventRow(identifier, key, state, bool(is_open), load(data))


def decode_damaged_row(row: tuple[Any, ...]) -> DamagedRow:
    """Return what can be read of a row that ``decode_row`` has refused."""
    identifier, key, _state, _is_open, data, *_rest = row
    event_id = None
    with suppress(DamageError):
        event = load(data).get("event")
        event_id = event.get("EventId") if isinstance(event, dict) else None
    agreed = isinstance(event_id, str) and isinstance(key, str) and clean(event_id.lower()) == key
    known = identifier if isinstance(identifier, int) else None
    return DamagedRow(known, key if agreed else None, json.dumps([str(value) for value in row]))


def dump(value: Mapping[str, Any]) -> str:
    """Write JSON in ASCII. What JSON cannot express becomes text, since nothing from the wire may break the journal."""
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError):
        return json.dumps(_plain(value, _DEEPEST), separators=(",", ":"))


def load(text: object) -> dict[str, Any]:
    """Read what ``dump`` wrote. Raises DamageError."""
    try:
        value = json.loads(text)  # type: ignore[arg-type]  # whatever lies in a damaged file
    except (TypeError, ValueError, RecursionError) as error:
        raise DamageError(f"a row is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise DamageError("a row is not a JSON object")
    return value


def clean(text: str) -> str:
    """Return the text without lone surrogates, which SQLite does not take."""
    return text.encode("utf-8", "backslashreplace").decode()


def is_damage(error: Exception) -> bool:
    """Return whether an error means that the file is damaged, rather than locked, read-only or on a full disk."""
    import sqlite3

    # DatabaseError itself: every other kind of error has its own subclass.
    if error.__class__ in (sqlite3.DatabaseError, DamageError, UnicodeDecodeError):
        return True
    return str(error).startswith(_DAMAGE)


def explain(error: Exception, path: str) -> str:
    """Return why the file cannot be read or written."""
    if isinstance(error, OSError):
        return error.strerror or str(error)
    text = str(error)
    if text in ("disk I/O error", "unable to open database file") and _is_full(path):
        return _WORDS["database or disk is full"]
    return _WORDS.get(text, text)


def _lenient(raw: bytes) -> str:
    """Decode a text. Invalid bytes become a text whose checksum does not match."""
    return raw.decode("utf-8", "backslashreplace")


def _which_file(path: str) -> tuple[int, int] | None:
    try:
        status = Path(path).stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _is_full(path: str) -> bool:
    import shutil  # here: hardly ever needed

    try:
        return shutil.disk_usage(Path(path).parent).free == 0
    except OSError:
        return False


def _plain(value: object, deepest: int) -> object:
    if value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, (Mapping, list, tuple)) and not deepest:
        return "(nested too deeply)"
    if isinstance(value, Mapping):
        return {str(key): _plain(inner, deepest - 1) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner, deepest - 1) for inner in value]
    return str(value)
