# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What of a journal is sent next, and where a sink is known to be."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from forewarn.errors import InputError
from forewarn.runner.journal.reader import JournalReader
from forewarn.runner.journal.schema import FILE_NAME
from forewarn.runner.journal.writer import Journal
from forewarn.runner.sink import position as positions
from forewarn.runner.sink.batch import MOST_BYTES, newest, next_batch
from forewarn.runner.sink.formats import Row
from forewarn.runner.sink.position import Position
from forewarn.runner.sink.report import SendReport
from tools.fixtures.journals import alter, commit, opened, record

START = Position("s", begins=0)


@pytest.fixture
def noted(journal: Journal) -> Callable[..., None]:
    def note(*kinds: str, life: int | None = None, **fields: Any) -> None:
        for kind in kinds:
            journal.note(kind, life, **fields)
        commit(journal)

    return note


def kinds(rows: Sequence[Row]) -> list[str]:
    return [row.entry.kind for row in rows]


def after(report: SendReport) -> Position:
    """Return the position once the batch is sent."""
    return START._replace(acknowledged=report.acknowledged, checksum=report.checksum)


def remove(directory: Path, condition: str) -> None:
    alter(directory / FILE_NAME, f"DELETE FROM entries WHERE {condition}")


def test_rows_have_numbers_and_event_fields(tmp_path: Path, journal: Journal, noted: Callable[..., None]) -> None:
    event = {"EventId": "68DAE20B", "EventType": "Reboot"}
    journal.save(record(7, event=event, drill=True))
    noted("runner-started")
    noted("state", life=7, to="held")
    rows, report = next_batch(str(tmp_path), START)
    assert [(row.entry.id, row.entry.kind) for row in rows] == [(1, "runner-started"), (2, "state")]
    assert rows[0][1:] == (None, None, None)
    assert (rows[1].entry.fields, *rows[1][1:]) == ({"to": "held"}, "68DAE20B", "Reboot", True)
    assert (report.rows, report.acknowledged, report.lost, report.behind, report.replaced) == (2, 2, 0, 0, False)


def test_the_next_batch_begins_after_the_last_one(tmp_path: Path, noted: Callable[..., None]) -> None:
    noted("a", "b", "c", "d", "e")
    rows, report = next_batch(str(tmp_path), START, most_rows=2)
    assert (kinds(rows), report.behind) == (["a", "b"], 3)
    rows, report = next_batch(str(tmp_path), after(report))
    assert kinds(rows) == ["c", "d", "e"]
    assert next_batch(str(tmp_path), after(report)) == ([], SendReport(acknowledged=5, checksum=report.checksum))


def test_batch_is_limited_but_never_empty(tmp_path: Path, noted: Callable[..., None]) -> None:
    noted("large", output="x" * (MOST_BYTES + 1))
    noted("half", "half", "half", output="x" * (MOST_BYTES // 2 - 100))
    rows, report = next_batch(str(tmp_path), START)
    assert kinds(rows) == ["large"]
    ((checksum,),) = sqlite3.connect(tmp_path / FILE_NAME).execute("SELECT sum FROM entries WHERE id = 1")
    assert report.checksum == checksum
    assert kinds(next_batch(str(tmp_path), after(report))[0]) == ["half", "half"]


def test_entries_pruned_before_sending_are_counted(tmp_path: Path, noted: Callable[..., None]) -> None:
    noted("a", "b", "c", "d")
    sent = next_batch(str(tmp_path), START, most_rows=1)[1]
    remove(tmp_path, "id IN (1, 2, 3)")
    rows, report = next_batch(str(tmp_path), after(sent))
    assert ([row.entry.id for row in rows], report.lost, report.replaced) == ([4], 2, False)


def test_entries_pruned_before_the_sink_are_not_lost(tmp_path: Path, noted: Callable[..., None]) -> None:
    noted("a", "b", "c", "d")
    remove(tmp_path, "id IN (1, 3)")
    begins = newest(JournalReader(str(tmp_path)))
    assert begins == 4
    noted("e", "f")
    remove(tmp_path, "id = 5")
    rows, report = next_batch(str(tmp_path), Position("s", begins=begins))
    assert ([row.entry.id for row in rows], report.lost) == ([2, 4, 6], 1)


@pytest.mark.parametrize("others", [["x"], ["x", "y", "z", "z"]], ids=["shorter", "longer"])
def test_another_journal_is_noticed(tmp_path: Path, others: list[str]) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    for directory, noted in ((old, ["a", "b"]), (new, others)):
        directory.mkdir()
        journal = opened(directory)
        for kind in noted:
            journal.note(kind)
        journal.close()
    sent = next_batch(str(old), START)[1]
    assert not next_batch(str(old), after(sent))[1].replaced
    assert next_batch(str(new), after(sent)) == ([], SendReport(replaced=True))


def test_without_a_journal_there_is_a_reason(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no journal"):
        next_batch(str(tmp_path), START)


def test_a_position_is_read_as_it_was_written(tmp_path: Path) -> None:
    written = positions.new_position()._replace(acknowledged=3, checksum=9, begins=1, lost=2, rejected=1)
    positions.write(str(tmp_path), written)
    assert positions.read(str(tmp_path)) == written
    assert (tmp_path / positions.FILE_NAME).stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == [positions.FILE_NAME]
    assert positions.new_position().stream != positions.new_position().stream


@pytest.mark.parametrize("content", ["", "{}", "[]", "{", '{"stream": 1}', "\xff"])
def test_a_position_that_cannot_be_read_is_none(tmp_path: Path, content: str) -> None:
    (tmp_path / positions.FILE_NAME).write_text(content)
    assert positions.read(str(tmp_path)) is None


@pytest.mark.parametrize("wrong", [{"acknowledged": "3"}, {"checksum": 1.5}, {"stream": ""}, {"lost": True}])
def test_a_position_with_a_wrong_value_is_none(tmp_path: Path, wrong: dict[str, Any]) -> None:
    positions.write(str(tmp_path), positions.new_position()._replace(**wrong))
    assert positions.read(str(tmp_path)) is None
