# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What has gone missing from a journal is noticed at the next start, and in doubt until somebody deals with it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from forewarn.runner.journal.lost_records import DIRECTORY, read
from forewarn.runner.journal.reader import JournalReader
from forewarn.runner.journal.writer import RETRY_SECONDS, Journal
from tools.fixtures.clocks import ManualClocks
from tools.fixtures.journals import alter, commit, entries, kinds, opened, record

FILES = ("journal.db", "journal.db-wal", "journal.mark")


def killed(directory: Path, target: Path, *left_out: str) -> Path:
    """Copy what a runner that is killed now would leave, without some files."""
    target.mkdir()
    for name in FILES:
        if (directory / name).exists() and name not in left_out:
            shutil.copy(directory / name, target)
    return target


def reopened(directory: Path, clocks: ManualClocks) -> tuple[Journal, list[int]]:
    journal = Journal(str(directory), clocks)
    found = [row.id for row in journal.open()]
    assert journal.trouble is None
    return journal, found


def working(directory: Path, clocks: ManualClocks) -> Journal:
    """Return a journal that was once closed with record 1 open and record 2 over, and has had commits since."""
    directory.mkdir()
    journal = opened(directory, clocks)
    journal.save(record(1))
    journal.save(record(2))
    commit(journal)
    journal.save(record(2, is_open=False))
    commit(journal)
    journal.close()
    return opened(directory, clocks)


def test_nothing_is_in_doubt_after_a_kill(tmp_path: Path, clocks: ManualClocks) -> None:
    journal = working(tmp_path / "a", clocks)
    for number in range(3, 200):
        journal.save(record(number))
        commit(journal)
        if number % 40 == 0:
            again, found = reopened(killed(tmp_path / "a", tmp_path / f"b{number}"), clocks)
            assert found == [1, *range(3, number + 1)]
            assert (len(again.lost_records), again.losses) == (0, [])
            again.close()
    journal.close()


def test_missing_wal_leaves_changed_records_in_doubt(tmp_path: Path, clocks: ManualClocks) -> None:
    journal = working(tmp_path / "a", clocks)
    journal.save(record(3))
    journal.note("decision", 3)
    commit(journal)
    left = killed(tmp_path / "a", tmp_path / "b", "journal.db-wal")
    journal.close()
    again, found = reopened(left, clocks)
    assert found == [1]
    assert again.lost_records.keys == {record(3).key}
    assert not again.lost_records.unknown
    assert again.doubt(record(1).key) is None
    reason = str(again.doubt(record(3).key))
    assert record(3).key in reason
    (doubt,) = read(str(left))
    assert doubt.file in reason
    commit(again)
    assert "record-damaged" in kinds(left)
    again.close()
    again, found = reopened(left, clocks)  # it is still in doubt
    assert found == [1]
    assert again.lost_records.keys == {record(3).key}
    Path(doubt.file).unlink()
    again.prune()
    assert again.cleared_files == [doubt.file]
    assert again.doubt(record(3).key) is None
    commit(again)
    assert kinds(left)[-1] == "damage-cleared"
    again.close()


def test_outdated_record_is_neither_resumed_nor_reopened(tmp_path: Path, clocks: ManualClocks) -> None:
    journal = working(tmp_path / "a", clocks)
    journal.save(record(3))
    journal.save(record(4))
    commit(journal)
    older = killed(tmp_path / "a", tmp_path / "b")
    journal.save(record(1, is_open=False))
    journal.save(record(3, state="prepared"))
    commit(journal)
    journal.close()
    shutil.copy(tmp_path / "a" / "journal.mark", older)
    again, found = reopened(older, clocks)
    assert found == [4]
    assert again.lost_records.keys == {record(3).key}
    (doubt,) = read(str(older))
    assert json.loads(doubt.record)["id"] == 3  # what is left is kept aside
    commit(again)
    again.close()
    assert [row.id for row in JournalReader(str(older)).records(open_only=True)] == [4]


def test_mark_with_too_many_open_records(tmp_path: Path, clocks: ManualClocks) -> None:
    journal = working(tmp_path / "a", clocks)
    for number in range(3, 300):
        journal.save(record(number))
    commit(journal)
    intact = killed(tmp_path / "a", tmp_path / "b")
    again, found = reopened(intact, clocks)
    assert len(found) == 298
    assert not len(again.lost_records)
    again.close()
    left = killed(tmp_path / "a", tmp_path / "c", "journal.db-wal")
    journal.close()
    again, found = reopened(left, clocks)
    assert again.lost_records.unknown
    assert again.doubt("any") is not None
    again.settle_doubts([record(number).key for number in range(200, 250)])
    assert not again.lost_records.unknown
    assert again.doubt("any") is None, "it is listed for the first time"
    assert again.doubt(record(210).key) is not None
    again.close()


@pytest.mark.parametrize("column", ["key", "state", "open", "saved", "data"])
@pytest.mark.parametrize("marked", [True, False])
def test_a_changed_record_is_kept_aside_and_held(
    tmp_path: Path, clocks: ManualClocks, column: str, marked: bool
) -> None:
    journal = opened(tmp_path, clocks)
    for number in (1, 2):
        journal.save(record(number, event={"EventId": record(number).key.upper()}))
    commit(journal)
    journal.close()
    change = {"key": "'x'", "state": "'prepared'", "open": "0", "saved": "saved + 1", "data": "'{}'"}[column]
    alter(tmp_path / "journal.db", f"UPDATE lives SET {column} = {change} WHERE id = 2")
    if not marked:
        (tmp_path / "journal.mark").unlink()
    journal, found = reopened(tmp_path, clocks)
    assert found == [1]
    assert journal.doubt(record(1).key) is None
    assert journal.doubt(record(2).key) is not None
    if marked or column in ("state", "saved"):
        assert journal.lost_records.keys == {record(2).key}
        assert journal.doubt("another") is None
    else:
        assert journal.lost_records.unknown
    commit(journal)
    journal.close()
    assert [row.id for row in JournalReader(str(tmp_path)).records(open_only=True)] == [1]


def test_a_changed_entry_is_reported_among_the_others(tmp_path: Path, clocks: ManualClocks) -> None:
    journal = opened(tmp_path, clocks)
    for number in range(3):
        journal.note("state", 1, number=number)
    commit(journal)
    journal.close()
    alter(tmp_path / "journal.db", "UPDATE entries SET fields = replace(fields, '1', '7')")
    assert [(entry.kind, entry.fields.get("number")) for entry in entries(tmp_path)] == [
        ("state", 0),
        ("record-damaged", None),
        ("state", 2),
    ]


def test_damaged_doubt_file_means_any_event(tmp_path: Path, clocks: ManualClocks) -> None:
    (tmp_path / DIRECTORY).mkdir()
    file = tmp_path / DIRECTORY / "7-0.json"
    file.write_text("no json")
    journal, _found = reopened(tmp_path, clocks)
    assert journal.lost_records.unknown
    assert str(file) in str(journal.doubt("a"))
    journal.settle_doubts(["a"])
    assert journal.lost_records.keys == {"a"}
    assert "no json" in file.read_text()
    journal.close()


def test_doubt_that_cannot_be_stored_holds(tmp_path: Path, clocks: ManualClocks) -> None:
    journal = working(tmp_path / "a", clocks)
    journal.save(record(3))
    commit(journal)
    left = killed(tmp_path / "a", tmp_path / "b", "journal.db-wal")
    journal.close()
    (left / DIRECTORY).write_text("in the way")
    mark = (left / "journal.mark").read_bytes()
    again, _found = reopened(left, clocks)
    assert again.doubt(record(3).key) is not None
    again.note("state")
    commit(again)
    assert (left / "journal.mark").read_bytes() == mark, "what it tells is written down nowhere else"
    (left / DIRECTORY).unlink()
    clocks.now += RETRY_SECONDS
    again.prune()
    assert len(read(str(left))) == 1
    again.close()
