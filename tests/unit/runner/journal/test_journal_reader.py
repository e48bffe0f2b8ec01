# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest
from forewarn.errors import InputError
from forewarn.runner.journal.reader import JournalReader
from forewarn.runner.journal.writer import EventRow
from hypothesis import given, settings
from hypothesis import strategies as st
from tools.fixtures.clocks import ManualClocks
from tools.fixtures.journals import alter, commit, entries, opened, record
from tools.suite.sizes import examples

BASE = 1_780_001_000.0  # the wall clock at the beginning
MANY = 450  # more than are read at once


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return that of a journal: an entry a second, by turns of record 1, of record 2 and of none; record 2 ends."""
    path = tmp_path_factory.mktemp("state")
    clocks = ManualClocks()
    journal = opened(path, clocks)
    journal.save(EventRow(1, "c7061bac-afdc", "seen", True, {"n": 1}))
    journal.save(EventRow(2, "c7061bbb-afdc", "seen", True, {"n": 2}))
    journal.save(EventRow(3, "aaaa", "done", False, {"n": 3}))
    for number in range(MANY):
        journal.note("state" if number % 2 else "decision", (1, 2, None)[number % 3], number=number)
        clocks.now += 1
    journal.save(EventRow(2, "c7061bbb-afdc", "done", False, {"n": 2}))
    commit(journal)
    journal.close()
    return path


@pytest.fixture
def reader(directory: Path) -> JournalReader:
    return JournalReader(str(directory))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [1, 2, 3]),
        ({"open_only": True}, [1]),
        ({"since_wall": BASE + MANY - 1}, [1, 2]),
        ({"since_wall": BASE + MANY}, [1, 2]),
        ({"since_wall": BASE + MANY + 0.1}, [1]),
        ({"since_wall": 0.0}, [1, 2, 3]),
        ({"since_wall": 0.0, "open_only": True}, [1]),
        ({"event": "C7061B"}, [1, 2]),
        ({"event": "c7061bAC-afdc"}, [1]),
        ({"event": ""}, [1, 2, 3]),
        ({"event": "7061"}, []),
        ({"event": "c7061bac-afdc0"}, []),
        ({"event": "%"}, []),
        ({"event": "\ud800"}, []),
        ({"limit": 2}, [2, 3]),
        ({"limit": 0}, []),
        ({"event": "c", "limit": 1}, [2]),
        ({"event": "c", "open_only": True, "since_wall": BASE}, [1]),
    ],
)
def test_records(reader: JournalReader, options: dict[str, Any], expected: list[int]) -> None:
    assert [row.id for row in reader.records(**options)] == expected


def test_a_record_is_as_it_was_written(reader: JournalReader) -> None:
    assert reader.records(event="aaaa") == [EventRow(3, "aaaa", "done", False, {"n": 3})]


@settings(max_examples=examples(80))
@given(
    record_id=st.sampled_from([None, 1, 2, 3]),
    kinds=st.none() | st.lists(st.sampled_from(["state", "decision", "impact", "'"]), max_size=3),
    since=st.none() | st.integers(-5, MANY + 5),
    until=st.none() | st.integers(-5, MANY + 5),
    limit=st.none() | st.integers(0, MANY + 10),
    newest_first=st.booleans(),
)
def test_entries_are_those_that_are_asked_for(
    directory: Path,
    record_id: int | None,
    kinds: list[str] | None,
    since: int | None,
    until: int | None,
    limit: int | None,
    newest_first: bool,
) -> None:
    expected = [
        number
        for number in range(MANY)
        if (record_id is None or record_id == (1, 2, None)[number % 3])
        and (kinds is None or ("state" if number % 2 else "decision") in kinds)
        and (since is None or number >= since)
        and (until is None or number <= until)
    ]
    if newest_first:
        expected.reverse()
    found = JournalReader(str(directory)).entries(
        record_id=record_id,
        kinds=kinds,
        since_wall=None if since is None else BASE + since,
        until_wall=None if until is None else BASE + until,
        limit=limit,
        newest_first=newest_first,
    )
    assert [entry.fields["number"] for entry in found] == expected[:limit]


def test_times_are_right_though_the_clock_was_set(tmp_path: Path) -> None:
    clocks = ManualClocks()
    journal = opened(tmp_path, clocks)
    for offset in (0, 3600, -3600, 10, -50, 20):
        clocks.wall_offset = 1_780_000_000.0 + offset
        journal.note("state", None, offset=offset)
    commit(journal)
    journal.close()
    reader = JournalReader(str(tmp_path))
    found = [entry.fields["offset"] for entry in reader.entries(since_wall=BASE - 60, until_wall=BASE + 15)]
    assert found == [0, 10, -50]


def test_nothing_is_created_or_changed(directory: Path) -> None:
    before = {path.name: (path.stat().st_mtime_ns, path.stat().st_ino) for path in directory.iterdir()}
    reader = JournalReader(str(directory))
    reader.records()
    list(reader.entries())
    after = {path.name: (path.stat().st_mtime_ns, path.stat().st_ino) for path in directory.iterdir()}
    assert after == before
    assert set(before) == {"journal.db", "journal.mark"}


def test_a_directory_may_be_called_anything(tmp_path: Path) -> None:
    path = tmp_path / "a b?mode=rw&c#d%41'é\udcff"
    path.mkdir()
    journal = opened(path)
    journal.save(record(1))
    commit(journal)
    assert JournalReader(str(path)).records() == [record(1)]
    journal.close()
    assert JournalReader(str(path)).records() == [record(1)]
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("missing", ["", "nowhere", "file/state"])
def test_without_a_journal_it_says_what_to_do(tmp_path: Path, missing: str) -> None:
    (tmp_path / "file").touch()
    directory = tmp_path / missing
    with pytest.raises(InputError, match="there is no journal in") as raised:
        JournalReader(str(directory))
    assert "--state" in raised.value.hint
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_file_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "journal.db").touch()
    with pytest.raises(InputError, match=r"journal\.db is empty") as raised:
        JournalReader(str(tmp_path))
    assert "the runner's log" in raised.value.hint
    (tmp_path / "journal.db").unlink()
    (tmp_path / "journal.db").mkdir()
    with pytest.raises(InputError, match=r"journal\.db cannot be read: Is a directory"):
        JournalReader(str(tmp_path))
    (tmp_path / "journal.db").rmdir()
    alter(tmp_path / "journal.db", "CREATE TABLE cats (name)")
    with pytest.raises(InputError, match="not a journal of Forewarn"):
        JournalReader(str(tmp_path))


@pytest.mark.root(reason="only root can become somebody else")
@pytest.mark.parametrize("mode", [0o700, 0o755])
def test_reader_without_permission_gets_an_error(directory: Path, mode: int) -> None:
    for parent in [directory.parent, *directory.parent.parents][:2]:
        parent.chmod(0o755)
    directory.chmod(mode)
    os.seteuid(65534)
    try:
        with pytest.raises(InputError, match=r"journal\.db cannot be read: Permission denied") as raised:
            JournalReader(str(directory))
    finally:
        os.seteuid(0)
    assert "Run this as root" in raised.value.hint


def test_without_sqlite(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sqlite3", None)
    with pytest.raises(InputError, match="this Python has no SQLite"):
        JournalReader(str(directory))


@pytest.mark.parametrize(
    "options", [{"record_id": 1}, {"since_wall": BASE + MANY - 3}, {"newest_first": True, "limit": 3}]
)
def test_few_entries_are_found_without_looking_at_all(
    directory: Path, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = sqlite3.connect
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    def counting(*arguments: Any, **keywords: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*arguments, **keywords)
        connection.set_progress_handler(count, 1)
        return connection

    reader = JournalReader(str(directory))
    monkeypatch.setattr(sqlite3, "connect", counting)
    assert list(reader.entries(**options))
    few, steps = steps, 0
    assert len(list(reader.entries())) == MANY
    assert few < steps * 0.6


@pytest.mark.parametrize("mode", [0o700, 0o500], ids=["writable", "readable"])
def test_runner_that_stops_meanwhile_is_no_error(tmp_path: Path, mode: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its last connection removes the WAL, as soon as the reader has looked at it.

    SQLite makes the WAL anew, unless the reader may not write there; root always may.
    """
    journal = opened(tmp_path)
    journal.note("state", None, number=1)
    commit(journal)
    stat = os.stat

    def stat_then_stop(path: Any, **options: Any) -> os.stat_result:
        found = stat(path, **options)
        if str(path).endswith("-wal"):
            monkeypatch.setattr(os, "stat", stat)
            journal.close()
            tmp_path.chmod(mode)
        return found

    monkeypatch.setattr(os, "stat", stat_then_stop)
    assert [entry.fields["number"] for entry in entries(tmp_path, kinds=["state"])] == [1]
    assert os.stat is stat, "the WAL was looked at"
