# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What was committed is there after a SIGKILL, and a reader never disturbs the writer."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from forewarn.runner.journal import schema
from forewarn.runner.journal.reader import JournalReader
from forewarn.runner.journal.writer import Journal
from tools.fixtures.clocks import ManualClocks
from tools.fixtures.journals import commit, entries, opened, record
from tools.sites.commands import SEARCH_PATH

# Counts up, and prints each number once it is committed.
_WRITER = """
import os, sys
from tools.fixtures.clocks import ManualClocks
from tools.fixtures.journals import record
from forewarn.runner.journal.writer import Journal

journal = Journal(sys.argv[1], ManualClocks())
records = journal.open()
number = records[0].data["turn"] if records else 0
while number < int(sys.argv[2]):
    number += 1
    journal.note("state", 1, number=number, text="x" * (number % 50) * 50)
    journal.save(record(1, turn=number, text="y" * (number % 70) * 70))
    if number % 10 == 0:
        journal.prune()
    if not journal.commit():
        os.write(2, str(journal.trouble).encode())
        sys.exit(1)
    os.write(1, b"%d\\n" % number)
"""


def start_writer(directory: Path, most: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(directory), str(most)],
        env={**os.environ, "PYTHONPATH": SEARCH_PATH},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def said(output: bytes) -> int:
    """Return the last number that was printed in full."""
    return int((b"0\n" + output).rpartition(b"\n")[0].rpartition(b"\n")[2])


def kill_after(wait_for: int, writer: subprocess.Popen[bytes]) -> int:
    """Kill the writer once it has printed a number; return the last one that it printed."""
    assert writer.stdout is not None
    output = b""
    while said(output) < wait_for:
        assert select.select([writer.stdout], [], [], 30.0)[0], "it has something to say"
        output += os.read(writer.stdout.fileno(), 65536)
        assert writer.poll() is None
    writer.kill()
    output += writer.communicate(timeout=30)[0]
    assert writer.returncode == -signal.SIGKILL
    return said(output)


@pytest.mark.parametrize("wait_for", [1, 37, 150, 290])  # the WAL goes into the file every 30 commits or so
def test_what_was_committed_survives_a_sigkill(tmp_path: Path, wait_for: int) -> None:
    promised = kill_after(wait_for, start_writer(tmp_path, 100_000))
    assert (tmp_path / "journal.db-wal").exists()

    journal = Journal(str(tmp_path), ManualClocks())
    (row,) = journal.open()
    assert journal.trouble is None
    assert journal.moved_aside is None
    # It may have been killed between a commit and the print.
    assert row.data["turn"] in (promised, promised + 1)
    assert [entry.fields["number"] for entry in entries(tmp_path)] == list(range(1, row.data["turn"] + 1))
    journal.close()


def test_writer_killed_while_starting_loses_no_commit(tmp_path: Path) -> None:
    count = 0
    for attempt in range(12):
        writer = start_writer(tmp_path, 100_000)
        # An interpreter needs some 50 ms to get there: from before the file is opened to after some commits.
        time.sleep(0.03 + attempt * 0.01)  # another moment each time
        writer.kill()
        output, errors = writer.communicate(timeout=30)
        assert errors == b""
        count = max(count, said(output))
        journal = Journal(str(tmp_path), ManualClocks())
        records = journal.open()
        assert (journal.trouble, journal.moved_aside) == (None, None)
        kept = records[0].data["turn"] if records else 0
        assert kept in (count, count + 1)
        count = kept
        assert len(entries(tmp_path)) == kept
        journal.close()


def test_reader_changes_no_file_after_a_kill(tmp_path: Path) -> None:
    promised = kill_after(12, start_writer(tmp_path, 100_000))

    def content() -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in tmp_path.iterdir() if not path.name.endswith("-shm")}

    before = content()
    assert before["journal.db-wal"]
    (row,) = JournalReader(str(tmp_path)).records()
    assert row.data["turn"] >= promised
    assert len(entries(tmp_path)) == row.data["turn"]
    assert content() == before


def test_reading_while_it_is_written(tmp_path: Path) -> None:
    most = 400
    writer = start_writer(tmp_path, most)
    assert writer.stdout is not None
    assert os.read(writer.stdout.fileno(), 16)  # there is a journal
    seen, looks = 0, 0
    while writer.poll() is None:
        looks += 1
        numbers = [entry.fields["number"] for entry in entries(tmp_path)]
        assert numbers == list(range(1, len(numbers) + 1)), "whole transactions, and no gap"
        (row,) = JournalReader(str(tmp_path)).records()
        assert row.data["turn"] >= len(numbers) >= seen
        seen = len(numbers)
        if select.select([writer.stdout], [], [], 0)[0]:
            os.read(writer.stdout.fileno(), 65536)
    assert writer.communicate(timeout=30)[1] == b""
    assert writer.returncode == 0
    assert looks > 1
    assert len(entries(tmp_path)) == most


def test_paused_reader_does_not_let_the_wal_grow(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    for number in range(1000):
        journal.note("state", None, number=number)
    commit(journal)
    reading = JournalReader(str(tmp_path)).entries()  # as into a pager
    assert next(reading).fields["number"] == 0
    for number in range(1000, 1600):
        journal.note("state", None, number=number, text="x" * 10_000)
        commit(journal)
    assert (tmp_path / "journal.db").stat().st_size > 6_000_000
    assert (tmp_path / "journal.db-wal").stat().st_size < 3_000_000
    assert [entry.fields["number"] for entry in reading] == list(range(1, 1600))
    journal.close()


def test_the_writer_waits_for_no_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A transaction of a reader, however long, stops neither a commit nor a clean-up."""
    import sqlite3

    monkeypatch.setattr(schema, "BUSY_SECONDS", 30.0)  # how long a connection waits for a lock
    clocks = ManualClocks()
    journal = opened(tmp_path, clocks, max_bytes=1)
    for number in range(300):
        journal.note("state", None, number=number, text="x" * 2000)
    commit(journal)
    reader = sqlite3.connect(f"file:{tmp_path}/journal.db?mode=ro", uri=True, isolation_level=None)
    reader.execute("BEGIN")
    assert reader.execute("SELECT count(*) FROM entries").fetchone() == (300,)
    clocks.now += 200
    begun = time.monotonic()
    journal.save(record(1))
    commit(journal)
    journal.prune()
    commit(journal)
    assert journal.trouble is None
    assert time.monotonic() - begun < 20  # it waited for no lock
    assert reader.execute("SELECT count(*) FROM entries").fetchone() == (300,)
    assert entries(tmp_path) == []
    reader.close()
    journal.close()
