# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What of a journal is sent next, and where a sink is known to be."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from forewarn.errors import InputError
from forewarn.runner.journal.schema import FILE_NAME
from forewarn.runner.journal.writer import Journal
from forewarn.runner.sink import position as positions
from forewarn.runner.sink.batch import MOST_BYTES, newest, next_batch
from forewarn.runner.sink.position import Position
from tools.fixtures.journals import alter, commit, opened, record

START = Position("s", begins=0)


@pytest.fixture
def noted(journal: Journal) -> Callable[..., None]:
    def note(*kinds: str, life: int | None = None, **fields: Any) -> None:
        for kind in kinds:
            journal.note(kind, life, **fields)
        commit(journal)

    return note


def remove(directory: Path, condition: str) -> None:
    alter(directory / FILE_NAME, f"DELETE FROM entries WHERE {condition}")


def test_rows_have_numbers_and_event_fields(tmp_path: Path, journal: Journal, noted: Callable[..., None]) -> None:
    event = {"EventId": "68DAE20B", "EventType": "Reboot"}
    journal.save(record(7, event=event, drill=True))
    noted("runner-started")
    noted("state", life=7, to="held")
    batch = next_batch(str(tmp_path), START)
    assert [(row.sequence, row.kind) for row in batch.rows] == [(1, "runner-started"), (2, "state")]
    assert batch.rows[0][6:] == (None, None, None)
    assert batch.rows[1][5:] == ({"to": "held"}, "68DAE20B", "Reboot", True)
    assert (batch.last, batch.lost, batch.behind, batch.replaced) == (2, 0, 0, False)


def test_the_next_batch_begins_after_the_last_one(tmp_path: Path, noted: Callable[..., None]) -> None:
    noted("a", "b", "c", "d", "e")
    first = next_batch(str(tmp_path), START, most_rows=2)
    assert ([row.kind for row in first.rows], first.behind) == (["a", "b"], 3)
    after = START._replace(acknowledged=first.last, checksum=first.checksum)
    second = next_batch(str(tmp_path), after)
    assert [row.kind for row in second.rows] == ["c", "d", "e"]
    after = START._replace(acknowledged=second.last, checksum=second.checksum)
    assert next_batch(str(tmp_path), after) == (((), 5, second.checksum, 0, 0, False))


def test_batch_is_limited_but_never_empty(tmp_path: Path, noted: Callable[..., None]) -> None:
    noted("large", output="x" * (MOST_BYTES + 1))
    noted("half", "half", "half", output="x" * (MOST_BYTES // 2 - 100))
    assert [row.kind for row in next_batch(str(tmp_path), START).rows] == ["large"]
    ((checksum,),) = sqlite3.connect(tmp_path / FILE_NAME).execute("SELECT sum FROM entries WHERE id = 1")
    after = START._replace(acknowledged=1, checksum=checksum)
    assert [row.kind for row in next_batch(str(tmp_path), after).rows] == ["half", "half"]


def test_entries_pruned_before_sending_are_counted(tmp_path: Path, noted: Callable[..., None]) -> None:
    noted("a", "b", "c", "d")
    sent = next_batch(str(tmp_path), START, most_rows=1)
    remove(tmp_path, "id IN (1, 2, 3)")
    after = START._replace(acknowledged=sent.last, checksum=sent.checksum)
    batch = next_batch(str(tmp_path), after)
    assert ([row.sequence for row in batch.rows], batch.lost, batch.replaced) == ([4], 2, False)


def test_entries_pruned_before_the_sink_are_not_lost(tmp_path: Path, noted: Callable[..., None]) -> None:
    noted("a", "b", "c", "d")
    remove(tmp_path, "id IN (1, 3)")
    begins = newest(str(tmp_path))
    assert begins == 4
    noted("e", "f")
    remove(tmp_path, "id = 5")
    batch = next_batch(str(tmp_path), Position("s", begins=begins))
    assert ([row.sequence for row in batch.rows], batch.lost) == ([2, 4, 6], 1)


@pytest.mark.parametrize("kinds", [["x"], ["x", "y", "z", "z"]], ids=["shorter", "longer"])
def test_another_journal_is_noticed(tmp_path: Path, kinds: list[str]) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    for directory, noted in ((old, ["a", "b"]), (new, kinds)):
        directory.mkdir()
        journal = opened(directory)
        for kind in noted:
            journal.note(kind)
        journal.close()
    sent = next_batch(str(old), START)
    after = START._replace(acknowledged=sent.last, checksum=sent.checksum)
    assert not next_batch(str(old), after).replaced
    assert next_batch(str(new), after).replaced


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
