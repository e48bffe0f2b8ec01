# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is too much is pruned, the oldest first; an open record and its entries stay."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from forewarn.runner.journal.reader import JournalReader
from forewarn.runner.journal.writer import PRUNE_SECONDS
from hypothesis import given, settings
from hypothesis import strategies as st
from tools.fixtures.clocks import ManualClocks
from tools.fixtures.journals import DAY, commit, entries, opened, record
from tools.suite.sizes import examples


def left(directory: Path) -> tuple[list[int], list[tuple[str, int | None]]]:
    """Return the ids of the records, and kind and record of each entry."""
    records = [row.id for row in JournalReader(str(directory)).records()]
    return records, [(entry.kind, entry.record_id) for entry in entries(directory)]


@pytest.mark.parametrize("days", [100, 40_000, -100, -20_000])
def test_a_clock_that_is_far_off_erases_nothing(tmp_path: Path, clocks: ManualClocks, days: int) -> None:
    """Neither at a start with such a clock, nor afterwards, when it is right again."""
    journal = opened(tmp_path, clocks)
    for number in range(1, 21):
        journal.note("document")
        journal.save(record(number, is_open=number > 18))
        journal.note("decision", number)
    commit(journal)
    journal.close()
    before = left(tmp_path)
    for offset in (days * DAY, -days * DAY):
        clocks.wall_offset += offset
        clocks.now += PRUNE_SECONDS
        journal = opened(tmp_path, clocks)
        journal.note("runner-started")
        commit(journal)
        journal.prune()
        assert journal.trouble is None
        journal.close()
    records, kept = left(tmp_path)
    assert (records, kept[:-2]) == before
    assert kept[-2:] == [("runner-started", None)] * 2


def test_oldest_record_is_pruned_first_by_insertion(tmp_path: Path, clocks: ManualClocks) -> None:
    journal = opened(tmp_path, clocks, max_bytes=300_000)
    for number in range(1, 101):
        clocks.wall_offset -= 3 * DAY if number % 2 else 2.9 * DAY
        journal.save(record(number, is_open=False, text="x" * 4000))
        journal.note("decision", number, text="y" * 1000)
        commit(journal)
    journal.prune()
    records, kept = left(tmp_path)
    assert 20 < len(records) < 80
    assert records == list(range(101 - len(records), 101))
    assert kept == [("decision", number) for number in records]
    journal.close()


def test_a_record_goes_with_all_of_it(tmp_path: Path, clocks: ManualClocks) -> None:
    journal = opened(tmp_path, clocks, max_bytes=100_000)
    journal.save(record(1))
    journal.note("decision", 1)
    for number in range(40):
        journal.note("document", None, number=number, text="x" * 5000)
    journal.save(record(1, is_open=False))
    journal.note("document", None, number=40)
    commit(journal)
    journal.prune()
    records, kept = left(tmp_path)  # it was written last but for one entry: what is older goes before it
    assert (records, kept[0]) == ([1], ("decision", 1))
    for number in range(41, 81):
        journal.note("document", None, number=number, text="x" * 5000)
    commit(journal)
    clocks.now += PRUNE_SECONDS
    journal.prune()
    records, kept = left(tmp_path)
    assert records == []
    assert {record_id for _kind, record_id in kept} == {None}
    journal.close()


def test_it_is_done_at_most_once_an_hour(tmp_path: Path, clocks: ManualClocks) -> None:
    journal = opened(tmp_path, clocks, max_bytes=1_000_000)
    journal.note("document", None, text="x" * 2_000_000)
    commit(journal)
    journal.prune()
    assert entries(tmp_path) == []
    for number in range(12):
        journal.note("document", None, number=number, text="x" * 10_000)
    commit(journal)
    journal.close()
    journal = opened(tmp_path, clocks, max_bytes=60_000)
    journal.prune()

    kept = len(entries(tmp_path))
    journal._max_bytes = 30_000
    clocks.now += PRUNE_SECONDS - 1
    journal.prune()
    assert len(entries(tmp_path)) == kept > 0
    clocks.now += 1
    journal.prune()
    assert len(entries(tmp_path)) < kept
    journal.close()


def test_or_when_much_was_written(tmp_path: Path, clocks: ManualClocks) -> None:
    journal = opened(tmp_path, clocks, max_bytes=1_000_000)
    journal.prune()
    for number in range(60):
        clocks.now += 1
        journal.note("document", None, number=number, text="x" * 100_000)
        commit(journal)
        journal.prune()
        assert (tmp_path / "journal.db").stat().st_size < 1_400_000
    kept = [entry.fields["number"] for entry in entries(tmp_path)]
    assert kept == list(range(60 - len(kept), 60))
    assert len(kept) >= 4
    journal.close()


@pytest.mark.parametrize("small", [200, 40_000])
def test_a_file_that_is_too_large_shrinks(tmp_path: Path, clocks: ManualClocks, small: int) -> None:
    limit = 600_000
    journal = opened(tmp_path, clocks, max_bytes=limit)
    journal.save(record(1))
    journal.note("decision", 1, text="kept")
    for number in range(2, 2 + 2_000_000 // small):
        clocks.now += 1
        journal.save(record(number, is_open=False, text="x" * (small // 2)))
        journal.note("state", number)
        journal.note("document", None, number=number, text="x" * (small // 2))
    commit(journal)
    journal.close()
    assert (tmp_path / "journal.db").stat().st_size > 2_000_000

    journal = opened(tmp_path, clocks, max_bytes=limit)
    journal.prune()
    assert journal.trouble is None
    size = (tmp_path / "journal.db").stat().st_size
    assert 0.5 * limit < size <= limit
    records, kept = left(tmp_path)
    assert records[0] == 1
    assert records[1:] == list(range(number - len(records) + 2, number + 1))
    assert kept[0] == ("decision", 1)
    assert [entry for entry in kept if entry[0] == "state"] == [("state", other) for other in records[1:]]
    # Records and entries of none go together by age, up to one.
    assert abs(sum(kind == "document" for kind, _ in kept) - len(records[1:])) <= 1
    again = len(kept)
    clocks.now += PRUNE_SECONDS
    journal.prune()
    assert len(left(tmp_path)[1]) == again
    journal.close()


def test_open_records_are_never_pruned(tmp_path: Path, clocks: ManualClocks) -> None:
    journal = opened(tmp_path, clocks, max_bytes=100_000)
    for number in range(1, 41):
        journal.save(record(number, text="x" * 5000))
        journal.note("state", number)
    journal.save(record(41, is_open=False))
    journal.note("document")
    commit(journal)
    journal.prune()
    assert journal.trouble is None
    assert left(tmp_path) == (list(range(1, 41)), [("state", number) for number in range(1, 41)])
    journal.close()


def test_closed_and_pruned_record_is_gone_after_restart(tmp_path: Path, clocks: ManualClocks) -> None:
    journal = opened(tmp_path, clocks, max_bytes=1)
    journal.save(record(1))
    commit(journal)
    journal.save(record(1, is_open=False))
    commit(journal)
    clocks.now += PRUNE_SECONDS
    journal.prune()
    (tmp_path / "journal.db").unlink()  # the new file must not have it either
    journal.note("state")
    commit(journal)
    journal.close()
    again = opened(tmp_path, clocks)
    assert left(tmp_path)[0] == []
    again.close()


_STEPS = st.lists(
    st.tuples(
        st.integers(0, 8),  # of which record; 0: of none
        st.booleans(),  # whether that is open from then on
        st.integers(0, 12_000),  # how much is written
        st.floats(-100_000, 200_000),  # what passes by the wall clock, which may be set
    ),
    min_size=1,
    max_size=60,
)


@settings(max_examples=examples(25))
@given(_STEPS, st.integers(50_000, 300_000))
def test_open_records_stay_and_the_rest_fits(steps: list[tuple[int, bool, int, float]], limit: int) -> None:
    clocks = ManualClocks()
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        journal = opened(directory, clocks, max_bytes=limit)
        state: dict[int, bool] = {}
        for number, is_open, size, passed in steps:
            clocks.wall_offset += passed
            if number:
                state[number] = is_open
                journal.save(record(number, is_open=is_open, text="x" * size))
            journal.note("state", number or None, text="y" * size)
            commit(journal)
        before = left(directory)
        journal.prune()
        assert journal.trouble is None
        records, kept = left(directory)
        alive = {number for number, is_open in state.items() if is_open}
        assert alive <= set(records) <= set(before[0])
        for number in records:  # all or nothing of a record
            assert kept.count(("state", number)) == before[1].count(("state", number))
        assert all(number is None or number in records for _, number in kept), "nor anything of one that is gone"
        if set(records) > alive or ("state", None) in kept:
            journal.close()
            assert (directory / "journal.db").stat().st_size <= limit
        journal.close()
