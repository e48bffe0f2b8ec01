# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import sqlite3
import stat
from datetime import datetime, timezone
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from forewarn.runner.clocks import Stamp
from forewarn.runner.journal.reader import JournalEntry, JournalReader
from forewarn.runner.journal.schema import APPLICATION_ID, SELECT_OPEN_RECORDS, DamageError, dump, load
from forewarn.runner.journal.writer import EventRow, Journal
from hypothesis import given
from hypothesis import strategies as st
from tools.fixtures.clocks import ManualClocks
from tools.fixtures.journals import commit, entries, kinds, opened, record


def test_what_was_committed_is_there_after_a_restart(tmp_path: Path) -> None:
    clocks = ManualClocks()
    journal = opened(tmp_path, clocks)
    journal.save(record(7, state="held", event={"EventId": "C7061BAC"}))
    journal.note("decision", 7, output="hold", rule=None, values={"a": 1})
    clocks.now += 5
    journal.note("runner-started", version="1.0")
    commit(journal)
    journal.close()

    again = Journal(str(tmp_path), clocks)
    assert again.open() == [record(7, state="held", event={"EventId": "C7061BAC"})]
    assert entries(tmp_path) == [
        JournalEntry(
            1, "decision", 7, Stamp(1_780_001_000.0, 1000.5, "boot-1"), {"output": "hold", "values": {"a": 1}}
        ),
        JournalEntry(2, "runner-started", None, Stamp(1_780_001_005.0, 1005.5, "boot-1"), {"version": "1.0"}),
    ]
    again.close()


def test_nothing_is_in_the_file_before_the_commit(tmp_path: Path, journal: Journal) -> None:
    journal.save(record(1))
    journal.note("state", 1)
    assert JournalReader(str(tmp_path)).records() == []
    assert entries(tmp_path) == []
    commit(journal)
    assert JournalReader(str(tmp_path)).records() == [record(1)]


def test_latest_open_records_are_resumed(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    for row in (record(3), record(1), record(2), record(3, state="held")):
        journal.save(row)
    commit(journal)
    journal.save(record(2, is_open=False, state="done"))
    journal.save(record(1, state="preparing"))
    commit(journal)
    journal.close()
    again = Journal(str(tmp_path), ManualClocks())
    assert again.open() == [record(1, state="preparing"), record(3, state="held")]
    again.close()


def test_values_changed_after_saving_are_not_stored(tmp_path: Path, journal: Journal) -> None:
    plan: list[Any] = []
    journal.save(record(1, plan=plan))
    journal.note("document", None, events=plan)
    plan.append("later")
    commit(journal)
    assert JournalReader(str(tmp_path)).records()[0].data["plan"] == []
    assert entries(tmp_path)[0].fields == {"events": []}


def test_fields_may_be_called_as_the_parameters_are(tmp_path: Path, journal: Journal) -> None:
    journal.note("approval-failed", None, kind="timeout", record_id=3, self="x")
    commit(journal)
    assert entries(tmp_path)[0].fields == {"kind": "timeout", "record_id": 3, "self": "x"}


def test_a_commit_of_nothing_is_none(tmp_path: Path, journal: Journal) -> None:
    size = (tmp_path / "journal.db-wal").stat().st_size
    assert journal.commit()
    assert (tmp_path / "journal.db-wal").stat().st_size == size


def test_close_writes_the_rest(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    journal.note("runner-stopped", None, signal="SIGTERM")
    journal.close()
    assert kinds(tmp_path) == ["runner-stopped"]
    assert {path.name for path in tmp_path.iterdir()} == {"journal.db", "journal.mark"}


def test_files_are_private_and_have_their_pragmas(tmp_path: Path, journal: Journal) -> None:
    journal.note("state")
    commit(journal)
    assert {path.name for path in tmp_path.iterdir()} == {
        "journal.db",
        "journal.db-wal",
        "journal.db-shm",
        "journal.mark",
    }
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}
    connection = journal._connection
    assert connection is not None
    wanted = {"application_id": APPLICATION_ID, "user_version": 2, "journal_mode": "wal", "synchronous": 2}
    wanted.update(auto_vacuum=2, cache_size=-256)
    found = {name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in wanted}
    assert found == wanted


def test_a_start_looks_at_open_records_alone(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    for number in range(1, 3001):
        journal.save(record(number, is_open=False, text="x" * 100))
    journal.save(record(5000))
    commit(journal)
    journal.close()

    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    connection = sqlite3.connect(tmp_path / "journal.db")
    connection.set_progress_handler(count, 1)
    assert len(connection.execute(SELECT_OPEN_RECORDS).fetchall()) == 1
    connection.close()
    assert 0 < steps < 200  # instructions of SQLite's machine: some ten a row that is looked at


# What comes from the wire

_SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=()))
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def _refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is not JSON")


@given(st.dictionaries(st.text(st.characters(exclude_categories=())), _VALUES, max_size=4))
def test_any_value_becomes_json_and_returns(value: dict[str, Any]) -> None:
    text = dump(value)
    assert text.isascii()
    assert "\0" not in text
    json.loads(text, parse_constant=_refuse)
    expected = json.loads(json.dumps(value), parse_constant={"NaN": "nan", "Infinity": "inf", "-Infinity": "-inf"}.get)
    assert load(text) == expected


def test_what_json_has_no_word_for_becomes_text() -> None:
    moment = datetime(2026, 5, 4, tzinfo=timezone.utc)
    value = {"tags": MappingProxyType({"a": (1, 2)}), "at": moment, 3: {"b"}}
    assert load(dump(value)) == {"tags": {"a": [1, 2]}, "at": str(moment), "3": "{'b'}"}  # type: ignore[arg-type]  # no JSON


def test_a_value_without_a_bottom_is_cut() -> None:
    endless: dict[str, Any] = {}
    endless["self"] = endless
    text = dump(endless)
    assert text.count("self") == 50
    assert "nested too deeply" in text
    deep: Any = 0
    for _ in range(100_000):
        deep = [deep]
    assert "nested too deeply" in dump({"deep": deep})


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "nul", '{"a": 1', "[" * 100_000, None, 5])
def test_what_dump_did_not_write_is_damage(text: object) -> None:
    with pytest.raises(DamageError, match="a row is not"):
        load(text)


def test_nul_and_surrogates_do_not_break_the_journal(tmp_path: Path) -> None:
    nasty = "a\0b\ud800c\U0001f600"
    journal = opened(tmp_path)
    journal.save(EventRow(1, nasty, nasty, True, {nasty: [nasty, float("nan"), float("inf")]}))
    journal.note(nasty, 1, **{nasty: nasty})
    commit(journal)
    (row,) = JournalReader(str(tmp_path)).records(event="A\0B")
    assert row.key == row.state == "a\0b\\ud800c\U0001f600"
    assert row.data == {nasty: [nasty, "nan", "inf"]}
    (entry,) = entries(tmp_path, kinds=[nasty])
    assert entry.fields == {nasty: nasty}
    journal.close()
