# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A journal that cannot be kept says why, waits in memory, and is whole again once the cause is gone."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from forewarn.runner.journal import schema
from forewarn.runner.journal.reader import JournalReader
from forewarn.runner.journal.writer import MOST_WAITING_CHARACTERS, MOST_WAITING_RECORDS, RETRY_SECONDS, Journal
from tools.fixtures.clocks import ManualClocks
from tools.fixtures.journals import alter, commit, entries, kinds, opened, record, run_with_own_mounts


def _no_directory(directory: Path) -> Callable[[], object]:
    directory.rmdir()
    return directory.mkdir


def _a_file_in_its_place(directory: Path) -> Callable[[], object]:
    directory.rmdir()
    directory.write_text("not a directory")

    def heal() -> None:
        directory.unlink()
        directory.mkdir()

    return heal


def _a_directory_in_the_files_place(directory: Path) -> Callable[[], object]:
    (directory / "journal.db").mkdir()
    return (directory / "journal.db").rmdir


def _somebody_elses_database(directory: Path) -> Callable[[], object]:
    alter(directory / "journal.db", "CREATE TABLE cats (name)")
    return (directory / "journal.db").unlink


def _newer_format(directory: Path) -> Callable[[], object]:
    opened(directory).close()
    alter(directory / "journal.db", "PRAGMA journal_mode = DELETE", "PRAGMA user_version = 9")
    return (directory / "journal.db").unlink


@pytest.mark.parametrize(
    ("spoil", "text"),
    [
        (_no_directory, "/journal.db cannot be used: No such file or directory"),
        (_a_file_in_its_place, "/journal.db cannot be used: Not a directory"),
        (_a_directory_in_the_files_place, "/journal.db cannot be used: Is a directory"),
        (_somebody_elses_database, "/journal.db is a database, but not a journal of Forewarn. Move it elsewhere."),
        (
            _newer_format,
            "/journal.db has format 9; this version of Forewarn knows 2 at most. Run the version that wrote it, or "
            "move the file elsewhere.",
        ),
    ],
)
def test_trouble_is_reported_and_heals_itself(
    tmp_path: Path, clocks: ManualClocks, spoil: Callable[[Path], Callable[[], object]], text: str
) -> None:
    directory = tmp_path / "state"
    directory.mkdir()
    heal = spoil(directory)
    before = {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()} if directory.is_dir() else {}
    journal = Journal(str(directory), clocks)
    assert journal.open() == []
    assert journal.trouble == f"{directory}{text}"
    assert journal.moved_aside is None
    assert not journal.commit()
    journal.save(record(1))
    journal.note("decision", 1, output="hold")
    clocks.now += RETRY_SECONDS
    assert not journal.commit()
    assert before == {path: path.read_bytes() for path in before}, "what is not ours is left alone"

    heal()
    clocks.now += RETRY_SECONDS - 0.1
    assert not journal.commit(), "it is not tried all the time"
    clocks.now += 0.1
    commit(journal)
    assert journal.trouble is None
    assert JournalReader(str(directory)).records() == [record(1)]
    decision, recovered = entries(directory)
    assert (decision.kind, decision.stamp.wall) == ("decision", clocks.wall() - 2 * RETRY_SECONDS)
    assert recovered.kind == "journal-recovered"
    assert recovered.fields == {"reason": f"{directory}{text}", "seconds": 20.0, "lost": 0}
    journal.note("state", 1)
    commit(journal)
    assert kinds(directory) == ["decision", "journal-recovered", "state"]
    journal.close()


def test_trouble_heals_without_anything_to_write(tmp_path: Path, clocks: ManualClocks) -> None:
    heal = _a_directory_in_the_files_place(tmp_path)
    journal = Journal(str(tmp_path), clocks)
    journal.open()
    heal()
    clocks.now += RETRY_SECONDS
    commit(journal)
    assert journal.trouble is None
    assert kinds(tmp_path) == ["journal-recovered"]
    journal.close()


def test_close_makes_a_last_attempt(tmp_path: Path, clocks: ManualClocks) -> None:
    heal = _a_directory_in_the_files_place(tmp_path)
    journal = Journal(str(tmp_path), clocks)
    journal.open()
    journal.note("runner-stopped")
    heal()
    journal.close()
    assert kinds(tmp_path) == ["runner-stopped", "journal-recovered"]


def test_waiting_entries_are_limited_and_losses_reported(tmp_path: Path, clocks: ManualClocks) -> None:
    heal = _a_directory_in_the_files_place(tmp_path)
    journal = Journal(str(tmp_path), clocks)
    journal.open()
    text = "x" * 1000
    for number in range(3000):
        journal.note("document", None, number=number, text=text)
    journal.note("document", None, number=3000, text="x" * MOST_WAITING_CHARACTERS)
    for number in range(3001, 3011):
        journal.note("document", None, number=number)
    for number in range(1, MOST_WAITING_RECORDS + 6):
        journal.save(record(number))
        journal.save(record(number, is_open=False))
    journal.save(record(9_999_999))
    heal()
    clocks.now += RETRY_SECONDS
    commit(journal)
    *documents, recovered = entries(tmp_path)
    assert [entry.fields["number"] for entry in documents] == list(range(3001, 3011))
    assert recovered.fields["lost"] == 3001 + 5
    records = JournalReader(str(tmp_path)).records()
    assert [row.id for row in records] == [*range(6, MOST_WAITING_RECORDS + 6), 9_999_999]
    journal.note("state")
    commit(journal)
    assert len(entries(tmp_path)) == 12
    journal.close()


def test_nothing_is_dropped_while_all_is_well(tmp_path: Path, journal: Journal) -> None:
    for number in range(20):  # as with 200 events in one document of 1 MiB
        journal.note("document", None, number=number, text="x" * (MOST_WAITING_CHARACTERS // 10))
    commit(journal)
    assert len(entries(tmp_path)) == 20


def test_foreign_lock_is_awaited_briefly(tmp_path: Path, clocks: ManualClocks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "BUSY_SECONDS", 0.05)
    journal = opened(tmp_path, clocks)
    other = sqlite3.connect(tmp_path / "journal.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    journal.note("state")
    assert not journal.commit()
    assert journal.trouble == f"{tmp_path}/journal.db cannot be used: another program has locked it"
    other.execute("ROLLBACK")
    other.close()
    clocks.now += RETRY_SECONDS
    commit(journal)
    journal.close()


def test_without_sqlite_nothing_is_kept(tmp_path: Path, clocks: ManualClocks, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "sqlite3", None)
        journal = Journal(str(tmp_path), clocks)
        assert journal.open() == []
        assert journal.trouble is not None
        assert journal.trouble.startswith("this Python has no SQLite (")
        journal.note("state")
        assert not journal.commit()
        journal.prune()
        journal.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "removed", [("journal.db", "journal.db-wal", "journal.db-shm"), ("journal.db",), ("journal.db-wal",)]
)
def test_removed_file_is_recreated_with_open_records(
    tmp_path: Path, clocks: ManualClocks, removed: tuple[str, ...]
) -> None:
    journal = opened(tmp_path, clocks)
    journal.save(record(1))
    journal.save(record(2))
    journal.save(record(3, is_open=False))
    journal.note("state")
    commit(journal)
    for name in removed:
        (tmp_path / name).unlink()
    journal.save(record(2, state="held"))
    journal.note("decision", 2)
    commit(journal)
    assert JournalReader(str(tmp_path)).records(open_only=True) == [record(1), record(2, state="held")]
    assert kinds(tmp_path)[-2:] == ["decision", "journal-recovered"]
    assert "was removed or replaced while it was in use" in entries(tmp_path)[-1].fields["reason"]
    journal.close()
    again = opened(tmp_path, clocks)
    assert kinds(tmp_path)[-2:] == ["decision", "journal-recovered"]
    again.close()


def test_replaced_file_is_brought_up_to_date(tmp_path: Path, clocks: ManualClocks) -> None:
    journal = opened(tmp_path, clocks)
    journal.save(record(1))
    commit(journal)
    journal.close()
    yesterday = (tmp_path / "journal.db").read_bytes()
    journal = opened(tmp_path, clocks)
    journal.save(record(1, state="prepared"))
    journal.save(record(2))
    commit(journal)
    (tmp_path / "journal.db").rename(tmp_path / "away")
    (tmp_path / "journal.db").write_bytes(yesterday)
    journal.note("state")
    commit(journal)
    assert JournalReader(str(tmp_path)).records() == [record(1, state="prepared"), record(2)]
    journal.close()


def test_unreadable_records_are_found_later(tmp_path: Path, clocks: ManualClocks) -> None:
    before = opened(tmp_path, clocks)
    before.save(record(1, state="prepared"))
    before.save(record(2, is_open=False))
    commit(before)
    before.close()
    (tmp_path / "journal.db").rename(tmp_path / "away")
    heal = _a_directory_in_the_files_place(tmp_path)
    journal = Journal(str(tmp_path), clocks)
    assert journal.open() == []
    journal.save(record(3))
    heal()
    (tmp_path / "away").rename(tmp_path / "journal.db")
    clocks.now += RETRY_SECONDS
    assert journal.late_records == []
    commit(journal)
    assert journal.late_records == [record(1, state="prepared")]
    assert JournalReader(str(tmp_path)).records(open_only=True) == [record(1, state="prepared"), record(3)]
    (tmp_path / "journal.db").unlink()
    journal.note("state")
    commit(journal)
    assert JournalReader(str(tmp_path)).records() == [record(1, state="prepared"), record(3)]
    journal.close()


# Disks


def test_a_file_that_cannot_grow(tmp_path: Path, clocks: ManualClocks, monkeypatch: pytest.MonkeyPatch) -> None:
    most = 40

    real_connect = schema.connect

    def connect(path: str) -> sqlite3.Connection:
        connection = real_connect(path)
        connection.execute(f"PRAGMA max_page_count = {most}").fetchall()
        return connection

    monkeypatch.setattr(schema, "connect", connect)
    journal = opened(tmp_path, clocks)
    number = 0
    while journal.trouble is None:
        number += 1
        assert number < 1000
        journal.note("document", None, number=number, text="x" * 2000)
        journal.save(record(1, turn=number))
        written = journal.commit()
        assert written == (journal.trouble is None)
    assert journal.trouble == f"{tmp_path}/journal.db cannot be used: the disk is full"
    assert number > 10
    clocks.now += RETRY_SECONDS
    assert not journal.commit()
    assert [entry.fields["number"] for entry in entries(tmp_path)] == list(range(1, number))
    assert JournalReader(str(tmp_path)).records() == [record(1, turn=number - 1)]
    most = 1000
    clocks.now += RETRY_SECONDS
    commit(journal)
    assert [entry.fields.get("number") for entry in entries(tmp_path)] == [*range(1, number + 1), None]
    assert JournalReader(str(tmp_path)).records() == [record(1, turn=number)]
    journal.close()


_FULL_DISK = """
import json, os, pathlib, subprocess, sys
from tools.fixtures.clocks import ManualClocks
from tools.fixtures.journals import entries, record
from forewarn.runner.journal.writer import Journal
from forewarn.runner.journal.reader import JournalReader

directory = sys.argv[1]
clocks = ManualClocks()
found = {}

def fill():
    with open(directory + "/ballast", "ab", buffering=0) as ballast:
        try:
            while True:
                ballast.write(b"x" * 512)
        except OSError:
            pass

def look(name):
    found[name + "_records"] = [row.data["turn"] for row in JournalReader(directory).records()]
    found[name + "_numbers"] = [entry.fields.get("number") for entry in entries(pathlib.Path(directory))]

subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", directory], check=True)
journal = Journal(directory, clocks)
journal.open()
durable, number = 0, 0
while journal.trouble is None and number < 1000:
    number += 1
    journal.note("document", None, number=number, text="x" * 2000)
    journal.save(record(1, turn=number))
    if journal.commit():
        durable = number
found.update(durable=durable, tried=number, running=journal.trouble)
fill()
look("running")

os.unlink(directory + "/ballast")
subprocess.run(["mount", "--options-mode", "ignore", "-o", "remount,size=2m", directory], check=True)
clocks.now += 10
found["healed"] = journal.commit()
journal.close()
look("healed")

fill()
found["files"] = sorted(os.listdir(directory))
journal = Journal(directory, clocks)  # it needs a WAL, for which there is no room
found["resumed"] = [row.data["turn"] for row in journal.open()]
found["starting"] = journal.trouble
look("starting")
journal.save(record(2, turn=0))
clocks.now += 10
found["early"] = journal.commit()
os.unlink(directory + "/ballast")
clocks.now += 10
found["late"] = journal.commit()
look("end")
journal.close()
print(json.dumps(found))
"""


def test_a_full_disk(tmp_path: Path) -> None:
    found = run_with_own_mounts(_FULL_DISK, tmp_path)
    full = f"{tmp_path}/journal.db cannot be used: the disk is full"
    durable = found["durable"]
    assert durable > 10
    assert found["tried"] == durable + 1
    # What is on the disk is still read there, at a start too; what was not is there once there is room.
    assert found["running"] == full
    assert found["running_records"] == [durable]
    assert found["running_numbers"] == list(range(1, durable + 1))
    assert found["healed"]
    assert found["healed_records"] == [durable + 1]
    assert found["healed_numbers"] == [*range(1, durable + 2), None]
    assert found["files"] == ["ballast", "journal.db", "journal.mark"]
    assert found["starting"] == full
    assert found["resumed"] == found["starting_records"] == [durable + 1]
    assert found["starting_numbers"] == found["healed_numbers"]
    assert not found["early"]
    assert found["late"]
    assert found["end_records"] == [durable + 1, 0]


_READ_ONLY_DISK = """
import json, os, signal, subprocess, sys
from tools.fixtures.clocks import ManualClocks
from tools.fixtures.journals import record
from forewarn.runner.journal.writer import Journal
from forewarn.runner.journal.reader import JournalReader

directory, killed = sys.argv[1], KILLED
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", directory], check=True)
child = os.fork()
if not child:
    journal = Journal(directory, ManualClocks())
    journal.open()
    journal.save(record(1))
    journal.commit()
    if killed:
        os.kill(os.getpid(), signal.SIGKILL)
    journal.close()
    os._exit(0)
os.waitpid(child, 0)
subprocess.run(["mount", "--options-mode", "ignore", "-o", "remount,ro", directory], check=True)
files = sorted(os.listdir(directory))
clocks = ManualClocks()
journal = Journal(directory, clocks)
found = {"resumed": [row.id for row in journal.open()], "trouble": journal.trouble}
found["read"] = [row.id for row in JournalReader(directory).records()]
found["untouched"] = files == sorted(os.listdir(directory))
found["files"] = len(files)
journal.save(record(2))
clocks.now += 10
found["early"] = journal.commit()
subprocess.run(["mount", "--options-mode", "ignore", "-o", "remount,rw", directory], check=True)
clocks.now += 10
found["healed"] = journal.commit()
found["late"] = len(journal.late_records)
found["end"] = [row.id for row in JournalReader(directory).records()]
journal.close()
print(json.dumps(found))
"""


@pytest.mark.parametrize("killed", [False, True])
def test_a_disk_that_has_become_read_only(tmp_path: Path, killed: bool) -> None:
    found = run_with_own_mounts(_READ_ONLY_DISK.replace("KILLED", str(killed)), tmp_path)
    assert found.pop("trouble") == f"{tmp_path}/journal.db cannot be used: Read-only file system"
    assert found.pop("files") == (4 if killed else 2)
    assert found == {
        "resumed": [1],
        "read": [1],
        "untouched": True,
        "early": False,
        "healed": True,
        "late": 0,
        "end": [1, 2],
    }
