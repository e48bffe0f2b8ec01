# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A file of an older format is converted in one transaction; format 3, which adds a column, is these tests' own."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from forewarn.errors import InputError
from forewarn.runner.journal import schema
from forewarn.runner.journal.reader import JournalReader
from forewarn.runner.journal.writer import RETRY_SECONDS, Journal
from tools.fixtures.clocks import ManualClocks
from tools.fixtures.journals import commit, entries, kinds, opened, record

NEXT = (
    "ALTER TABLE lives ADD COLUMN vm TEXT",
    "UPDATE lives SET vm = 'web_0'",
    "CREATE INDEX lives_vm ON lives (vm)",
)
COLUMNS = {"id", "key", "state", "open", "saved", "data", "seq", "sum"}


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """Return the directory of a journal of format 2."""
    journal = opened(tmp_path)
    journal.save(record(1))
    journal.save(record(2, is_open=False))
    journal.note("state", 1)
    commit(journal)
    journal.close()
    return tmp_path


def add(monkeypatch: pytest.MonkeyPatch, *statements: str) -> None:
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, statements))


def version_and_columns(directory: Path) -> tuple[int, set[str]]:
    connection = sqlite3.connect(directory / "journal.db")
    ((version,),) = connection.execute("PRAGMA user_version").fetchall()
    columns = {row[1] for row in connection.execute("PRAGMA table_info(lives)")}
    connection.close()
    return version, columns


def test_the_format_is_the_number_of_migrations(older: Path) -> None:
    version, columns = version_and_columns(older)
    assert version == len(schema.MIGRATIONS) == 2
    assert columns == COLUMNS


def test_an_older_file_is_converted(older: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add(monkeypatch, *NEXT)
    journal = Journal(str(older), ManualClocks())
    assert journal.open() == [record(1)]
    journal.save(record(3))
    journal.note("decision", 3)
    commit(journal)
    journal.close()
    version, columns = version_and_columns(older)
    assert version == 3
    assert "vm" in columns
    assert JournalReader(str(older)).records() == [record(1), record(2, is_open=False), record(3)]
    assert kinds(older) == ["state", "decision"]
    opened(older).close()
    assert version_and_columns(older)[0] == 3, "once is enough"


def test_new_file_has_the_newest_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add(monkeypatch, *NEXT)
    opened(tmp_path).close()
    version, columns = version_and_columns(tmp_path)
    assert version == 3
    assert "vm" in columns


class _Killing(tuple[str, ...]):
    """Statements after the last of which the process is killed: before the transaction is committed."""

    __slots__ = ()

    def __iter__(self) -> Iterator[str]:
        yield from super().__iter__()
        os.kill(os.getpid(), signal.SIGKILL)


def test_crash_during_migration_keeps_the_older_file(older: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    child = os.fork()
    if not child:  # nothing of it returns: it ends by its own hand, or with a number that the test does not expect
        try:
            schema.MIGRATIONS = (*schema.MIGRATIONS, _Killing(NEXT))
            Journal(str(older), ManualClocks()).open()
        finally:
            os._exit(77)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    assert version_and_columns(older) == (2, COLUMNS)
    journal = Journal(str(older), ManualClocks())
    assert journal.open() == [record(1)]
    journal.close()
    add(monkeypatch, *NEXT)
    journal = Journal(str(older), ManualClocks())
    assert journal.open() == [record(1)]
    assert journal.trouble is None
    journal.close()
    assert version_and_columns(older)[0] == 3


def test_a_conversion_that_fails_leaves_the_older_file(older: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = ManualClocks()
    with monkeypatch.context() as broken:
        add(broken, *NEXT, "UPDATE cats SET name = 'x'")
        journal = Journal(str(older), clocks)
        assert journal.open() == []
        assert journal.trouble == f"{older}/journal.db cannot be used: no such table: cats"
        assert journal.moved_aside is None
        assert version_and_columns(older)[0] == 2
    clocks.now += RETRY_SECONDS
    commit(journal)
    assert journal.late_records == [record(1)]
    journal.close()


def test_a_reader_converts_nothing(older: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = (older / "journal.db").read_bytes()
    add(monkeypatch, *NEXT)
    with pytest.raises(InputError, match="has an older format") as raised:
        JournalReader(str(older))
    assert "Start the runner of this version once" in raised.value.hint
    assert (older / "journal.db").read_bytes() == before


def test_an_older_program_leaves_a_newer_file_alone(older: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as newer:
        add(newer, *NEXT)
        opened(older).close()
    before = (older / "journal.db").read_bytes()
    journal = Journal(str(older), ManualClocks())
    assert journal.open() == []
    assert "has format 3; this version of Forewarn knows 2 at most" in str(journal.trouble)
    journal.close()
    with pytest.raises(InputError, match="has format 3"):
        JournalReader(str(older))
    assert (older / "journal.db").read_bytes() == before
    add(monkeypatch, *NEXT)
    assert len(entries(older)) == 1
