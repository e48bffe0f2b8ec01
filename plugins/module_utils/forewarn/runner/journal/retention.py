# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Deletes the oldest rows of a journal that has become too large."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # sqlite3 is imported where it is used: it takes a fifth of the runner's start
    import sqlite3

# The n-th oldest (from 0) of closed records and of entries without a record. By the order of writing, not by the wall
# clock, which may be months ahead for a while.
_OLDEST = (
    "SELECT seq FROM (SELECT * FROM (SELECT seq FROM lives WHERE open = 0 ORDER BY seq LIMIT :offset + 1) UNION ALL"
    " SELECT * FROM (SELECT id AS seq FROM entries WHERE life_id IS NULL ORDER BY id LIMIT :offset + 1))"
    " ORDER BY seq LIMIT 1 OFFSET :offset"
)
# A closed record goes with its entries. Entries of open records stay, whatever their age.
_REMOVE = (
    "DELETE FROM entries WHERE life_id IN (SELECT id FROM lives WHERE open = 0 AND seq <= ?)",
    "DELETE FROM lives WHERE open = 0 AND seq <= ?",
    "DELETE FROM entries WHERE id <= ? AND (life_id IS NULL OR life_id NOT IN (SELECT id FROM lives))",
)


def prune(connection: sqlite3.Connection, most_bytes: int) -> None:
    """Delete the oldest closed records and entries if the file has more than ``most_bytes``. Raises sqlite3.Error."""
    connection.execute("BEGIN IMMEDIATE")
    removed = 0
    used, size = _bytes(connection)
    if used > most_bytes:
        removed = _shrink(connection, used, int(most_bytes * 0.9))  # otherwise the next entry would be too much again
    connection.execute("COMMIT")
    if removed or size > most_bytes:
        connection.executescript("PRAGMA incremental_vacuum")  # execute() would step once: one page


def _shrink(connection: sqlite3.Connection, used: int, wanted: int) -> int:
    """Delete the oldest until only ``wanted`` bytes are used, or nothing is left to delete; return how many rows."""
    removed = 0
    batch = 1
    while used > wanted:
        newest = connection.execute(_OLDEST, {"offset": batch - 1}).fetchone()
        if newest is not None:
            deleted = sum(connection.execute(statement, newest).rowcount for statement in _REMOVE)
            if not deleted:  # a damaged index may name what is not there
                break
            removed += deleted
            before, (used, _size) = used, _bytes(connection)
            # A row may have a hundred bytes or a million: remove no more than seem to be necessary.
            batch = max(1, min(2 * batch, 256, (used - wanted) * batch // max(1, before - used)))
        elif batch > 1:
            batch = 1
        else:
            break
    return removed


def _bytes(connection: sqlite3.Connection) -> tuple[int, int]:
    """Return how many bytes are used, and how many the file has."""
    pages, free, size = (
        connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
    )
    return (pages - free) * size, pages * size
