# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A damaged file is moved aside unchanged, and a new one begun."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from unittest.mock import Mock

import pytest
from forewarn.errors import InputError
from forewarn.runner.journal import schema
from forewarn.runner.journal.reader import JournalReader
from forewarn.runner.journal.schema import MOST_MOVED_ASIDE, move_aside
from forewarn.runner.journal.writer import RETRY_SECONDS, Journal
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tools.fixtures.clocks import ManualClocks
from tools.fixtures.journals import alter, commit, entries, kinds, opened, record
from tools.suite.sizes import examples

PAGE = 4096


def fill(directory: Path, clocks: ManualClocks) -> Path:
    """Leave a closed journal of some 60 pages with two open records; return its file."""
    journal = opened(directory, clocks)
    for number in range(1, 101):
        journal.save(record(number, is_open=number in (40, 41), text="x" * 1000))
        journal.note("state", number, text="y" * 1000)
        journal.note("document", None, text="z" * 100)
    commit(journal)
    journal.close()
    return directory / "journal.db"


def pages_of(file: Path, table: str) -> list[int]:
    """Return the numbers of the pages, from 0, in which a table's rows lie."""
    connection = sqlite3.connect(file)
    ((root,),) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchall()
    connection.close()
    content = file.read_bytes()
    letter = {"lives": b"x", "entries": b"y"}[table] * 100
    leaves = [n for n in range(len(content) // PAGE) if letter in content[n * PAGE : (n + 1) * PAGE]]
    return [root - 1, *leaves]


def write(file: Path, offset: int, data: bytes) -> None:
    with file.open("r+b") as opened_file:
        opened_file.seek(offset)
        opened_file.write(data)


def replace(old: bytes, new: bytes) -> Callable[[Path], object]:
    return lambda file: file.write_bytes(file.read_bytes().replace(old, new))


def cut(size: int) -> Callable[[Path], None]:
    return lambda file: os.truncate(file, size)


def fill_pages_of_records(file: Path) -> None:
    for page in pages_of(file, "lives"):
        write(file, page * PAGE, b"\xa5" * PAGE)


# Damage, and the open records that can be read all the same.
DAMAGES: dict[str, tuple[Callable[[Path], object], list[int]]] = {
    "garbage in the header": (lambda file: write(file, 0, b"\xa5" * 100), []),
    "another header": (lambda file: write(file, 20, b"\xff" * 40), []),
    "zeros": (lambda file: file.write_bytes(bytes(file.stat().st_size)), []),
    "text": (lambda file: file.write_text("meow " * 1000), []),
    "truncated": (cut(10 * PAGE), []),
    "truncated within a page": (cut(5000), []),
    "short": (lambda file: file.write_bytes(b"SQLite"), []),
    "garbage in the records": (fill_pages_of_records, []),
    "garbage in every page but the first": (
        lambda file: write(file, PAGE, b"\xa5" * (file.stat().st_size - PAGE)),
        [],
    ),
    "other text in a row": (replace(b'{"id":40,', b'{"id"440,'), [41]),
    "no text in a row": (replace(b'{"id":40,', b'{"id":\xff\xfe,'), [41]),
    "another kind of row": (lambda file: alter(file, "UPDATE lives SET data = 7 WHERE id = 41"), [40]),
}


@pytest.mark.parametrize(("damage", "readable"), DAMAGES.values(), ids=DAMAGES)
def test_damaged_file_is_moved_aside_at_start(
    tmp_path: Path, clocks: ManualClocks, damage: Callable[[Path], object], readable: list[int]
) -> None:
    file = fill(tmp_path, clocks)
    damage(file)
    damaged = file.read_bytes()
    if readable:
        assert [row.state for row in JournalReader(str(tmp_path)).records(open_only=True)].count("damaged") == 1
    else:
        with pytest.raises(InputError, match="cannot be read") as raised:
            JournalReader(str(tmp_path)).records()
        assert "is damaged" in raised.value.hint

    journal = Journal(str(tmp_path), clocks)
    intact = [row.id for row in journal.open()]
    assert intact == readable
    assert journal.lost_records.keys == {record(number).key for number in (40, 41) if number not in intact}
    assert not journal.lost_records.unknown
    assert journal.trouble is None
    aside = tmp_path / "journal.db.corrupt-20260528T204320Z"
    assert journal.moved_aside == str(aside)
    assert aside.read_bytes() == damaged
    journal.save(record(1))
    journal.note("state", 1)
    commit(journal)
    assert [row.id for row in JournalReader(str(tmp_path)).records()] == [1, *intact]
    *lost, state, recovered = entries(tmp_path)
    assert {entry.kind for entry in lost} == {"record-damaged"}
    assert (state.kind, recovered.kind) == ("state", "journal-recovered")
    assert recovered.fields["reason"].startswith(f"{file} is damaged (")
    assert recovered.fields["reason"].endswith(f"; it was moved to {aside}")
    journal.close()


def test_damage_while_running_keeps_open_records(tmp_path: Path, clocks: ManualClocks) -> None:
    file = fill(tmp_path, clocks)
    for page in pages_of(file, "entries"):
        write(file, page * PAGE, b"\xa5" * PAGE)
    journal = Journal(str(tmp_path), clocks)
    assert [row.id for row in journal.open()] == [40, 41]
    assert journal.moved_aside is None
    journal.save(record(41, is_open=False))
    journal.save(record(200))
    journal.note("state", 41)
    commit(journal)
    assert journal.moved_aside is not None
    assert [row.id for row in JournalReader(str(tmp_path)).records(open_only=True)] == [40, 200]
    assert kinds(tmp_path) == ["state", "journal-recovered"]
    journal.close()


def test_damage_while_pruning_keeps_open_records(tmp_path: Path, clocks: ManualClocks) -> None:
    file = fill(tmp_path, clocks)
    for page in pages_of(file, "entries"):
        write(file, page * PAGE, b"\xa5" * PAGE)
    journal = Journal(str(tmp_path), clocks, max_bytes=PAGE)
    journal.open()
    journal.prune()
    assert journal.moved_aside is not None
    assert journal.trouble is None
    commit(journal)
    assert [row.id for row in JournalReader(str(tmp_path)).records()] == [40, 41]
    journal.close()


def test_what_belongs_to_the_file_goes_with_it(tmp_path: Path) -> None:
    for suffix in ("", "-wal", "-shm", "-journal"):
        (tmp_path / f"journal.db{suffix}").write_text(suffix)
    (tmp_path / "heartbeat").touch()
    target = move_aside(str(tmp_path / "journal.db"), 0.0)
    assert target == str(tmp_path / "journal.db.corrupt-19700101T000000Z")
    moved = {f"{target}{suffix}": suffix for suffix in ("", "-wal", "-shm", "-journal")}
    assert {str(path): path.read_text() for path in tmp_path.iterdir()} == {**moved, str(tmp_path / "heartbeat"): ""}


def test_wal_without_its_database_is_ignored(tmp_path: Path, clocks: ManualClocks) -> None:
    journal = opened(tmp_path, clocks)
    journal.save(record(1))
    commit(journal)
    wal = (tmp_path / "journal.db-wal").read_bytes()
    journal.close()
    (tmp_path / "journal.db").unlink()
    (tmp_path / "journal.db-wal").write_bytes(wal)
    again = Journal(str(tmp_path), clocks)
    assert again.open() == []
    assert again.trouble is None
    again.close()


def test_damaged_wal_costs_only_its_commits(tmp_path: Path, clocks: ManualClocks) -> None:
    fill(tmp_path, clocks)
    journal = opened(tmp_path, clocks)
    journal.save(record(300))
    commit(journal)
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("journal.db", "journal.db-wal"):
        shutil.copy(tmp_path / name, copy)
    journal.close()
    write(copy / "journal.db-wal", 100, b"\xa5" * 500)
    again = Journal(str(copy), clocks)
    assert [row.id for row in again.open()] == [40, 41]
    again.close()


def test_damaged_files_aside_are_limited(tmp_path: Path, clocks: ManualClocks) -> None:
    for number in range(MOST_MOVED_ASIDE):
        (tmp_path / "journal.db").write_text(f"meow {number} " * 1000)
        journal = opened(tmp_path, clocks)  # all within a second: none may replace another
        journal.close()
    (tmp_path / "journal.db").write_text("meow " * 1000)
    aside = sorted(path for path in tmp_path.iterdir() if ".corrupt-" in path.name)
    assert len({path.read_bytes() for path in aside}) == MOST_MOVED_ASIDE
    journal = Journal(str(tmp_path), clocks)
    assert journal.open() == []
    assert journal.trouble == (
        f"{tmp_path}/journal.db is damaged (file is not a database) and cannot be moved aside: {MOST_MOVED_ASIDE} "
        "damaged files lie beside it already. Check the disk, then remove what is not needed."
    )
    aside[0].unlink()
    clocks.now += RETRY_SECONDS
    commit(journal)
    journal.close()


def test_a_damaged_file_that_cannot_be_moved(
    tmp_path: Path, clocks: ManualClocks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "move_aside", Mock(side_effect=PermissionError(13, "Permission denied")))
    (tmp_path / "journal.db").write_text("meow " * 1000)
    journal = Journal(str(tmp_path), clocks)
    assert journal.open() == []
    assert journal.trouble == (
        f"{tmp_path}/journal.db is damaged (file is not a database) and cannot be moved aside: Permission denied"
    )
    assert not journal.commit()
    journal.close()


def test_repeatedly_damaged_file_is_trouble(
    tmp_path: Path, clocks: ManualClocks, monkeypatch: pytest.MonkeyPatch
) -> None:
    def connect(path: str) -> sqlite3.Connection:
        Path(path).touch()
        raise sqlite3.DatabaseError("database disk image is malformed")

    monkeypatch.setattr(schema, "connect", connect)
    (tmp_path / "journal.db").write_text("meow " * 1000)
    journal = Journal(str(tmp_path), clocks)
    assert journal.open() == []
    assert journal.trouble == f"{tmp_path}/journal.db cannot be used: database disk image is malformed"
    assert sum(".corrupt-" in path.name for path in tmp_path.iterdir()) == 1
    journal.close()


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return fill(tmp_path_factory.mktemp("sound"), ManualClocks()).read_bytes()


def test_undecodable_sqlite_message_is_handled(tmp_path: Path, clocks: ManualClocks) -> None:
    file = fill(tmp_path, clocks)
    file.write_bytes(file.read_bytes().replace(b"TABLE lives (id", b"TABLE lives \xed\xff\xfe"))
    with pytest.raises(InputError, match="cannot be read"):
        JournalReader(str(tmp_path)).records()
    journal = Journal(str(tmp_path), clocks)
    assert journal.open() == []
    assert journal.moved_aside is not None
    commit(journal)
    journal.close()


@settings(max_examples=examples(100))
@given(
    damage=st.lists(st.tuples(st.floats(0, 1), st.binary(min_size=1, max_size=64)), max_size=5),
    first_pages=st.lists(st.tuples(st.integers(0, 12 * PAGE), st.binary(min_size=1, max_size=8)), max_size=5),
    length=st.floats(0, 1) | st.just(1.0),
)
@example(damage=[], first_pages=[(3253, b"\t")], length=1.0)  # a row without an id
@example(damage=[], first_pages=[(8241, b"\0\0")], length=1.0)  # SQLite writes below a page that it cannot read
def test_whatever_the_damage_it_goes_on(
    sound: bytes, damage: list[tuple[float, bytes]], first_pages: list[tuple[int, bytes]], length: float
) -> None:
    content = bytearray(sound)
    for place, data in [*((int(at * (len(sound) - 64)), data) for at, data in damage), *first_pages]:
        content[place : place + len(data)] = data
    clocks = ManualClocks()
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        (directory / "journal.db").write_bytes(content[: int(length * len(content))])
        with suppress(InputError):
            assert all(isinstance(row.id, int) for row in JournalReader(name).records())
        journal = Journal(name, clocks)
        journal.open()
        for number in range(500, 520):
            journal.save(record(number, text="w" * 1000))
            journal.note("state", number)
            clocks.now += RETRY_SECONDS
            journal.commit()
        journal.prune()
        if journal.trouble is not None:  # one number in the header makes it somebody else's, or of a newer format
            assert journal.trouble.startswith(f"{name}/journal.db ")
            assert not (directory / "journal.db").stat().st_size < PAGE
            journal.close()
            return
        clocks.now += RETRY_SECONDS
        commit(journal)
        journal.close()
        again = opened(directory, clocks)
        again.close()
        found = {row.id for row in JournalReader(name).records(open_only=True)}
        for number in range(500, 520):
            assert number in found or again.doubt(record(number).key) is not None, "neither kept nor in doubt"
