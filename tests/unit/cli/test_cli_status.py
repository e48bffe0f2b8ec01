# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn status``: what it reports of the runner, and of the state directory that it reads."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from forewarn.cli import main as cli
from forewarn.texts import duration_text, exact_text
from tools.fixtures.recorded_state import RecordedState, Run, decided


def dead_pid() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


# The runner


def test_all_is_well(recorded: RecordedState, status: Run) -> None:
    recorded.clocks.now += 3700
    recorded.beat()
    recorded.clocks.now += 0.4
    shown = status()
    assert (shown.code, shown.err) == (0, "")
    assert shown.lines == [
        "runner   running since 2026-11-21T14:05:11Z (1 h 1 min)",
        f"         process {os.getpid()}, forewarn 0.1.0, on web_1",
        "service  ok, last good poll at most 0.4 s ago",
        "policy   sha256:" + "3f6a1c2b" * 8,
        "",
        "Nothing is pending.",
    ]


def test_a_dry_run_says_so(recorded: RecordedState, status: Run) -> None:
    recorded.beat(dry_run=True)
    recorded.record(decision=decided("approve"))
    shown = status()
    assert shown.code == 0
    assert "         a dry run: it approves nothing and runs no hooks" in shown.lines
    assert "waits for  NotBefore: a dry run approves nothing" in shown.out


def test_a_service_that_does_not_answer(recorded: RecordedState, status: Run) -> None:
    good = recorded.clocks.stamp()
    recorded.clocks.now += 125
    recorded.beat(state="failing", fault="the service answered 410 Gone", last_good_poll=good)
    shown = status()
    assert shown.code == 1
    assert "service  does not answer: the service answered 410 Gone; last good poll 2 min 5 s ago" in shown.lines
    recorded.beat(state="failing", fault="timed out", last_good_poll=None)
    assert "service  does not answer: timed out; no poll was answered" in status().lines


def test_unreadable_document_is_not_nothing_pending(recorded: RecordedState, status: Run) -> None:
    problem = "Events[0] has no usable EventId: skipped"
    recorded.beat(document_problems=1, document_problem=problem)
    shown = status()
    assert shown.code == 1
    assert f"There may be more than is shown: the service's document cannot be read in full: {problem}" in shown.lines
    assert "Nothing is pending." not in shown.lines
    report = json.loads(status("--json").out)
    assert report["document"] == {"problems": 1, "first": problem}
    assert report["problems"] == [f"the service's document cannot be read in full: {problem}"]
    for number, words in ((2, "the first of 2 problems"), (21, "the first of more than 20 problems")):
        recorded.beat(document_problems=number, document_problem=problem)
        assert any(line.endswith(f"{problem} ({words})") for line in status().lines)
    recorded.beat()
    assert status().code == 0
    assert json.loads(status("--json").out)["document"] == {"problems": 0, "first": None}


def test_a_runner_that_was_killed(recorded: RecordedState, status: Run) -> None:
    pid = dead_pid()
    recorded.note("runner-started", version="0.1.0")
    recorded.beat(pid=pid)
    recorded.record()
    recorded.clocks.now += 5
    shown = status()
    assert shown.code == 1
    assert shown.lines[0] == (
        f"runner   not running: the runner has ended (it was process {pid}); last alive 2026-11-21T14:05:11Z, 5 s ago"
    )
    assert "service  not asked; last good poll 5.0 s ago" in shown.lines
    assert "As the runner left it:" in shown.lines


def test_a_runner_that_was_stopped(recorded: RecordedState, status: Run) -> None:
    recorded.note("runner-started", version="0.1.0")
    recorded.beat(pid=dead_pid())
    recorded.note("runner-stopped", signal="SIGTERM")
    recorded.clocks.now += 7200
    shown = status()
    assert shown.code == 1
    assert shown.lines[0] == "runner   not running: stopped by SIGTERM; last alive 2026-11-21T14:05:11Z, 2 h ago"


def test_a_runner_from_before_a_reboot(recorded: RecordedState, status: Run) -> None:
    recorded.beat()
    recorded.clocks.reboot(55, up=5)
    shown = status()
    assert shown.code == 1
    assert "not running: the machine was booted since" in shown.lines[0]


@pytest.mark.parametrize(("interval", "silent", "code"), [(1.0, 18, 0), (1.0, 19, 1), (60.0, 195, 0), (60.0, 196, 1)])
def test_a_runner_that_does_not_respond(
    recorded: RecordedState, status: Run, interval: float, silent: float, code: int
) -> None:
    recorded.beat(interval_seconds=interval)
    recorded.clocks.now += silent
    shown = status()
    assert shown.code == code
    assert shown.lines[0].startswith(
        "runner   not responding: its process is there" if code else "runner   running since"
    )
    assert json.loads(status("--json").out)["runner"]["condition"] == ("not-responding" if code else "running")


def test_the_first_answer_may_take_its_time(recorded: RecordedState, status: Run) -> None:
    recorded.beat(last_good_poll=None)
    recorded.clocks.now += 150
    shown = status()
    assert shown.code == 1
    assert shown.lines[0].startswith("runner   running")
    assert "service  is asked; no poll was answered yet, and the first may take 2 minutes" in shown.lines
    recorded.clocks.now += 31
    assert status().lines[0].startswith("runner   not responding")


def test_setting_the_clock_makes_no_runner_late(recorded: RecordedState, status: Run) -> None:
    recorded.beat()
    recorded.clocks.wall_offset += 3600
    assert status().code == 0


def test_a_journal_without_a_sign_of_record(recorded: RecordedState, status: Run) -> None:
    shown = status()
    assert shown.code == 1
    assert shown.lines[:2] == [
        "runner   not running; it is not known when it last ran",
        "service  not asked; no poll was answered",
    ]


def test_journal_trouble_is_reported(recorded: RecordedState, status: Run) -> None:
    recorded.beat(journal_trouble="STATE/journal.db cannot be used: the disk is full")
    shown = status()
    assert shown.code == 1
    assert "journal  nothing can be kept: STATE/journal.db cannot be used: the disk is full" in shown.lines


def test_a_refused_reload_is_reported(recorded: RecordedState, status: Run) -> None:
    recorded.beat(reload_problem="config.json:1: bad JSON")
    shown = status()
    assert shown.code == 1
    assert (
        "reload   the last reload was refused, and the runner keeps its configuration: config.json:1: bad JSON"
        in shown.lines
    )
    assert "the last reload was refused: config.json:1: bad JSON" in json.loads(status("--json").out)["problems"]


def test_runner_is_shown_without_a_journal(recorded: RecordedState, status: Run) -> None:
    recorded.beat()
    recorded.journal.close()
    for path in Path(recorded.directory).glob("journal.db*"):
        path.unlink()
    shown = status()
    assert shown.code == 1
    assert shown.lines[0].startswith("runner   running since")
    assert "there is no journal" in shown.out


@pytest.mark.parametrize("damage", ["the file", "a row"])
def test_a_damaged_journal(recorded: RecordedState, status: Run, damage: str) -> None:
    recorded.record()
    path = Path(recorded.directory) / "journal.db"
    recorded.journal.close()
    if damage == "the file":
        path.write_bytes(b"SQLite format 3\0" + b"junk" * 2000)
    else:
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.execute("UPDATE lives SET data = '{'")
            connection.commit()
    if damage == "a row":
        assert "damaged" in status().out
        return
    assert status().code == 2, "nothing can be said"
    recorded.beat()
    shown = status()
    assert shown.code == 1
    assert shown.lines[0].startswith("runner   running since")
    assert f"journal  {path} cannot be read" in shown.out


# Finding the state


def test_no_such_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["status", "--state", str(tmp_path / "none")]) == 2
    error = capsys.readouterr().err
    assert "no runner has worked with it" in error
    assert "--state DIR" in error


def test_a_directory_in_which_no_runner_has_worked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["status", "--state", str(tmp_path)]) == 2
    assert "there is no journal in" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [], "looking creates nothing"


def test_a_file_is_no_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert cli.main(["status", "--state", str(tmp_path / "file")]) == 2
    assert "Not a directory" in capsys.readouterr().err


def test_a_directory_that_is_not_ours(recorded: RecordedState, status: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_path: str) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "scandir", refuse)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    shown = status()
    assert (shown.code, shown.out) == (2, "")
    assert "permission denied" in shown.err
    assert "Run this as root" in shown.err


def test_the_default_directory(
    recorded: RecordedState, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    recorded.beat()
    monkeypatch.setenv("STATE_DIRECTORY", recorded.directory)
    assert cli.main(["status"]) == 0
    monkeypatch.delenv("STATE_DIRECTORY")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    capsys.readouterr()
    assert cli.main(["status"]) == 2
    assert "/var/lib/forewarn: run this as root" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("seconds", "text", "exact"),
    [
        (0, "0 s", "0 s"),
        (4.83, "4 s", "4.8 s"),
        (12, "12 s", "12 s"),
        (59.97, "59 s", "1 min"),
        (92, "1 min 32 s", "1 min 32 s"),
    ],
)
def test_time_spans(seconds: float, text: str, exact: str) -> None:
    assert (duration_text(seconds), exact_text(seconds)) == (text, exact)
