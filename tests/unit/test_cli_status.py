# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn status``: what it says of the runner and of what is pending, to people, programs and checks."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from forewarn.cli import main as cli
from forewarn.cli.console import Console
from forewarn.cli.state import Page, State, duration_text, exact_text, wrap
from forewarn.cli.status import examine, show
from forewarn.events import Event, parse_time
from forewarn.runner.event_record import TRANSITIONS, EventRecord
from forewarn.runner.hooks.plan import Run
from forewarn.runner.journal.writer import EventRow
from hypothesis import example, given
from hypothesis import strategies as st
from tools.clocks import ManualClocks
from tools.recorded_state import DRAIN, UNDRAIN, Recorded, Terminal, decided, planned

Status = Callable[..., "Shown"]


class Shown:
    """What a command wrote, and its exit code."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err
        self.lines = out.splitlines()


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorded]:
    directory = tmp_path / "state"
    directory.mkdir(mode=0o700)
    state = Recorded(directory)
    monkeypatch.setattr("forewarn.cli.status.Clocks", lambda: state.clocks)
    yield state
    state.journal.close()


@pytest.fixture
def status(recorded: Recorded, capsys: pytest.CaptureFixture[str]) -> Status:
    def run(*arguments: str) -> Shown:
        code = cli.main(["status", "--state", recorded.directory, *arguments])
        return Shown(code, *capsys.readouterr())

    return run


def dead_pid() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


# The runner


def test_all_is_well(recorded: Recorded, status: Status) -> None:
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


def test_a_dry_run_says_so(recorded: Recorded, status: Status) -> None:
    recorded.beat(dry_run=True)
    recorded.record(decision=decided("approve"))
    shown = status()
    assert shown.code == 0
    assert "         a dry run: it approves nothing and runs no hook" in shown.lines
    assert "waits for  NotBefore: a dry run approves nothing" in shown.out


def test_a_service_that_does_not_answer(recorded: Recorded, status: Status) -> None:
    good = recorded.clocks.stamp()
    recorded.clocks.now += 125
    recorded.beat(state="failing", fault="the service answered 410 Gone", last_good_poll=good)
    shown = status()
    assert shown.code == 1
    assert "service  does not answer: the service answered 410 Gone; last good poll 2 min 5 s ago" in shown.lines
    recorded.beat(state="failing", fault="timed out", last_good_poll=None)
    assert "service  does not answer: timed out; no poll was answered" in status().lines


def test_nothing_is_not_what_is_pending_where_the_document_cannot_be_read(recorded: Recorded, status: Status) -> None:
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


def test_a_runner_that_was_killed(recorded: Recorded, status: Status) -> None:
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


def test_a_runner_that_was_stopped(recorded: Recorded, status: Status) -> None:
    recorded.note("runner-started", version="0.1.0")
    recorded.beat(pid=dead_pid())
    recorded.note("runner-stopped", signal="SIGTERM")
    recorded.clocks.now += 7200
    shown = status()
    assert shown.code == 1
    assert shown.lines[0] == "runner   not running: stopped by SIGTERM; last alive 2026-11-21T14:05:11Z, 2 h ago"


def test_a_runner_from_before_a_reboot(recorded: Recorded, status: Status) -> None:
    recorded.beat()
    recorded.clocks.reboot(55, up=5)
    shown = status()
    assert shown.code == 1
    assert "not running: the machine was booted since" in shown.lines[0]


@pytest.mark.parametrize(("interval", "silent", "code"), [(1.0, 18, 0), (1.0, 19, 1), (60.0, 195, 0), (60.0, 196, 1)])
def test_a_runner_that_does_not_respond(
    recorded: Recorded, status: Status, interval: float, silent: float, code: int
) -> None:
    recorded.beat(interval_seconds=interval)
    recorded.clocks.now += silent
    shown = status()
    assert shown.code == code
    assert shown.lines[0].startswith(
        "runner   not responding: its process is there" if code else "runner   running since"
    )
    assert json.loads(status("--json").out)["runner"]["condition"] == ("not-responding" if code else "running")


def test_the_first_answer_may_take_its_time(recorded: Recorded, status: Status) -> None:
    recorded.beat(last_good_poll=None)
    recorded.clocks.now += 150
    shown = status()
    assert shown.code == 1
    assert shown.lines[0].startswith("runner   running")
    assert "service  is asked; no poll was answered yet, and the first may take 2 minutes" in shown.lines
    recorded.clocks.now += 31
    assert status().lines[0].startswith("runner   not responding")


def test_setting_the_clock_makes_no_runner_late(recorded: Recorded, status: Status) -> None:
    recorded.beat()
    recorded.clocks.wall_offset += 3600
    assert status().code == 0


def test_a_journal_without_a_sign_of_record(recorded: Recorded, status: Status) -> None:
    shown = status()
    assert shown.code == 1
    assert shown.lines[:2] == [
        "runner   not running; when it last was is not known",
        "service  not asked; no poll was answered",
    ]


def test_journal_trouble_is_told(recorded: Recorded, status: Status) -> None:
    recorded.beat(journal_trouble="STATE/journal.db cannot be used: the disk is full")
    shown = status()
    assert shown.code == 1
    assert "journal  nothing can be kept: STATE/journal.db cannot be used: the disk is full" in shown.lines


def test_a_refused_reload_is_told(recorded: Recorded, status: Status) -> None:
    recorded.beat(reload_problem="config.json:1: bad JSON")
    shown = status()
    assert shown.code == 1
    assert (
        "reload   the last reload was refused, and it goes on with what it had: config.json:1: bad JSON" in shown.lines
    )
    assert "the last reload was refused: config.json:1: bad JSON" in json.loads(status("--json").out)["problems"]


def test_without_a_journal_the_runner_is_shown_all_the_same(recorded: Recorded, status: Status) -> None:
    recorded.beat()
    recorded.journal.close()
    for path in Path(recorded.directory).glob("journal.db*"):
        path.unlink()
    shown = status()
    assert shown.code == 1
    assert shown.lines[0].startswith("runner   running since")
    assert "there is no journal" in shown.out


@pytest.mark.parametrize("damage", ["the file", "a row"])
def test_a_damaged_journal(recorded: Recorded, status: Status, damage: str) -> None:
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


# What is pending


WAITING: list[tuple[dict[str, Any], str]] = [
    ({}, "its decision"),
    ({"decision": decided("approve")}, "its approval to be sent"),
    ({"decision": decided("approve"), "drill": True}, "its approval, which is only pretended"),
    (
        {"state": "held", "decision": decided("refused-by-policy", "not at night")},
        "nothing: held by web-tier, rule drain: not at night",
    ),
    (
        {"state": "held", "decision": decided("refused-by-policy", "nobody approves", policy=None, rule=None)},
        "nothing: held: nobody approves",
    ),
    (
        {"state": "prepared", "decision": decided("refused-by-policy", "not at night")},
        "NotBefore: prepared, and held by web-tier, rule drain: not at night",
    ),
    ({"decision": decided("not-ours", standing_reason="web_9 is not affected")}, "nothing here: web_9 is not affected"),
    (
        {"decision": decided("group-not-ready", standing_reason="the other 1 have to prepare")},
        "NotBefore: the other 1 have to prepare",
    ),
    ({"decision": decided("no-time-left", standing_reason="it has passed")}, "NotBefore: it has passed"),
    (
        {"decision": decided("not-the-leader", standing_reason="web_0 leads")},
        "the leader web_0; this VM takes over should it be silent",
    ),
    (
        {"decision": decided("journal-trouble", standing_reason="the disk is full")},
        "journal-trouble: the disk is full",
    ),
    (
        {"decision": decided("preparing", standing_reason="waits for a hook"), "plan": [planned("prepare", DRAIN)]},
        "prepare hook run /usr/local/bin/drain --wait to be started",
    ),
    (
        {
            "state": "preparing",
            "plan": [planned("prepare", DRAIN, "succeeded"), planned("prepare", UNDRAIN), planned("recover", DRAIN)],
        },
        "prepare hook run /usr/local/bin/undrain to be started",
    ),
    (
        {"state": "preparing", "plan": [planned("prepare", DRAIN, attempts=1)]},
        "prepare hook run /usr/local/bin/drain --wait to be tried again; attempt 1 was interrupted",
    ),
    (  # between the end of its last hook and the next document
        {
            "state": "prepared",
            "plan": [planned("prepare", DRAIN, "succeeded")],
            "decision": decided("preparing", "waits for run /usr/local/bin/drain --wait"),
        },
        "its approval, with the next document",
    ),
    ({"state": "started"}, "the event to end"),
    (
        {"state": "recovering", "plan": [planned("prepare", DRAIN, "running"), planned("recover", UNDRAIN)]},
        "prepare hook run /usr/local/bin/drain --wait, at most 5 min",
    ),
    (
        {"state": "recovering", "plan": [planned("recover", UNDRAIN, "running", attempts=2)]},
        "recover hook run /usr/local/bin/undrain, at most 1 min, attempt 2",
    ),
    (
        {"state": "recovering", "plan": [planned("recover", UNDRAIN, attempts=1, reason="it ended with exit code 1")]},
        "recover hook run /usr/local/bin/undrain to be tried again; attempt 1 failed: it ended with exit code 1",
    ),
    ({"state": "haunted"}, "what state 'haunted' waits for, which this version does not know"),
]


@pytest.mark.parametrize(("fields", "text"), WAITING)
def test_what_an_event_waits_for(recorded: Recorded, status: Status, fields: dict[str, Any], text: str) -> None:
    recorded.beat()
    recorded.record(**fields)
    shown = status()
    assert shown.code == 0
    assert f"waits for  {text}" in [line.strip() for line in shown.lines]


def test_every_state_of_a_record_is_known(recorded: Recorded, status: Status) -> None:
    recorded.beat()
    for number, state in enumerate(TRANSITIONS):
        recorded.record(f"E{number}", state=state, plan=[planned("prepare", DRAIN), planned("recover", UNDRAIN)])
    assert "does not know" not in status().out


def test_a_hook_that_runs_tells_for_how_long(recorded: Recorded, status: Status) -> None:
    hook = "run /usr/local/bin/drain --wait"
    plan = [planned("prepare", DRAIN, "running", attempts=2), planned("prepare", UNDRAIN, "running", attempts=1)]
    record = recorded.record(state="preparing", plan=plan)
    recorded.note("hook-started", record, phase="prepare", hook=hook, attempt=1, timeout_seconds=300.0)
    recorded.clocks.now += 100
    recorded.note("hook-started", record, phase="prepare", hook=hook, attempt=2, timeout_seconds=200.0)
    recorded.clocks.now += 12
    recorded.clocks.wall_offset -= 3600
    recorded.beat()
    assert (
        "waits for  prepare hook run /usr/local/bin/drain --wait, for 12 s, at most 3 min 20 s, attempt 2 and "
        "prepare hook run /usr/local/bin/undrain, at most 1 min\n"
    ) in status().out


def test_the_leader_and_when_this_vm_takes_over(recorded: Recorded, status: Status) -> None:
    record = recorded.record(decision=decided("not-the-leader", wait_seconds=30.0))
    recorded.note("decision", record, **decided("not-the-leader"))
    recorded.clocks.now += 16.5
    recorded.beat()
    assert "waits for  the leader web_0; this VM takes over in 14 s\n" in status().out


def test_an_approval_that_fails(recorded: Recorded, status: Status) -> None:
    recorded.beat()
    record = recorded.record(decision=decided("approve"))
    recorded.note("approval-failed", record, event_ids=["x"], reason="the service answered 503")
    recorded.clocks.now += 3
    assert "waits for  its approval, which failed 3 s ago: the service answered 503\n" in status().out


def test_the_columns_of_an_event(recorded: Recorded, status: Status) -> None:
    approved = recorded.clocks.stamp()
    recorded.record("A1", state="approved", approved_at=approved, event={"EventType": "Freeze", "DurationInSeconds": 5})
    started = {"EventStatus": "Started", "NotBefore": None, "DurationInSeconds": -1, "Resources": list("abcde")}
    recorded.record("B2", state="started", started_at=approved, event=started)
    recorded.record(
        "C3", drill=True, event={"EventSource": None, "DurationInSeconds": None, "NotBefore": recorded.at(5)}
    )
    recorded.clocks.now += 12
    recorded.record("D4", state="recovering", started_at=approved, gone_at=recorded.clocks.stamp())
    recorded.beat()
    assert status().lines[5:] == [
        "TYPE    STATE       STARTS            LASTS    SOURCE",
        "Freeze  approved    in 14 min 37 s    5 s      Platform",
        "        waits for  its start, approved 12 s ago",
        "        affects    web_0, web_1",
        "        id         A1",
        "Reboot  started     started 12 s ago  unknown  Platform",
        "        waits for  the event to end",
        "        affects    a, b, c and 2 more",
        "        id         B2",
        "Reboot  seen        overdue 7 s       -        -",
        "        a drill: nothing is approved",
        "        waits for  its decision",
        "        affects    web_0, web_1",
        "        id         C3",
        "Reboot  recovering  gone 0 s ago      30 s     Platform",
        "        waits for  the runner",
        "        affects    web_0, web_1",
        "        id         D4",
    ]


# What has failed


def test_a_failed_preparation(recorded: Recorded, status: Status) -> None:
    recorded.beat()
    failed = planned("prepare", DRAIN, "failed", reason="it took longer than 300 s")
    record = recorded.record(state="failed", plan=[failed])
    shown = status()
    assert shown.code == 1
    text = "prepare hook run /usr/local/bin/drain --wait failed: it took longer than 300 s"
    assert f"waits for  nothing: it is not approved, as {text}\n" in shown.out
    recorded.save(record, state="seen", plan=[{**failed, "on_failure": "approve"}])
    assert status().code == 0, "the policy says that it does not matter"
    recorded.save(record, state="done", outcome="finished", plan=[failed])
    assert status().code == 0, "it is over"


def fails(**fields: Any) -> dict[str, Any]:
    reason = "it ended with exit code 1: connection refused"
    return {**planned("recover", UNDRAIN, "failed", attempts=5, failures=5, reason=reason), **fields}


def test_a_recovery_that_fails_stands_out_for_as_long_as_it_does(recorded: Recorded, status: Status) -> None:
    record = recorded.record("A1", state="recovering", plan=[planned("prepare", DRAIN, "succeeded"), fails()])
    recorded.clocks.now += 30 * 86400
    hook = "run /usr/local/bin/undrain"
    recorded.note("hook-ended", record, phase="recover", hook=hook, result="failed", retry_seconds=3600.0)
    recorded.clocks.now += 600
    recorded.beat()
    shown = status()
    assert shown.code == 1
    assert shown.lines[-7:] == [
        "Recoveries that fail:",
        "Reboot A1",
        "  hook          run /usr/local/bin/undrain",
        "  failed        5 times: it ended with exit code 1: connection refused",
        "  next attempt  in 50 min",
        f"  run it now    forewarn recover A1 --again --state {recorded.directory}",
        f"  or end it     forewarn recover A1 --dealt-with 'what was done' --state {recorded.directory}",
    ]
    text = f"recover hook {hook} to be tried again in 50 min; attempt 5 failed: it ended with exit code 1"
    assert f"waits for  {text}: connection refused\n" in shown.out
    data = json.loads(status("--json").out)
    (failing,) = data["failing_recoveries"]
    assert {key: failing[key] for key in ("life_id", "event_id", "hook", "state", "failures", "attempts", "drill")} == {
        "life_id": record.id,
        "event_id": "A1",
        "hook": hook,
        "state": "failed",
        "failures": 5,
        "attempts": 5,
        "drill": False,
    }
    assert failing["next_attempt_at"] == recorded.at(3000).replace("Z", ".000Z")
    (problem,) = data["problems"]
    assert problem == f"Reboot A1: recover hook {hook} failed 5 times: it ended with exit code 1: connection refused"


def test_it_is_red_on_a_terminal(
    recorded: Recorded, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded.record("A1", state="recovering", plan=[fails()])
    recorded.beat()
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert cli.main(["status", "--state", recorded.directory]) == 1
    assert "\x1b[1;31mRecoveries that fail:" in capsys.readouterr().out


def test_what_is_not_tried_again_waits_for_a_person(recorded: Recorded, status: Status) -> None:
    once = {**UNDRAIN, "retry": {"attempts": 1}}
    recorded.record("A1", state="recovering", plan=[fails(hook=once, attempts=1, failures=1, reason="it timed out")])
    recorded.beat()
    shown = status()
    assert shown.code == 1
    text = "a person: recover hook run /usr/local/bin/undrain failed, and is not tried again: it timed out"
    assert f"waits for  {text}\n" in shown.out
    assert "  next attempt  none: it is not tried again by itself" in shown.lines


def test_it_fails_also_while_it_is_tried_again(recorded: Recorded, status: Status) -> None:
    record = recorded.record("A1", state="recovering", plan=[fails(status="running", attempts=6)])
    recorded.beat()
    assert status().code == 1
    recorded.save(record, plan=[fails(status="waiting", failures=2)])
    assert status().code == 0, "it may yet succeed by itself"
    recorded.save(record, state="done", outcome="finished", plan=[fails(status="succeeded")])
    assert status().code == 0
    recorded.save(record, state="done", outcome="finished", plan=[fails(status="skipped", reason="dealt with")])
    assert status().code == 0


def test_a_recovery_that_failed_is_remembered(recorded: Recorded, status: Status) -> None:
    failed = planned("recover", UNDRAIN, "failed", reason="it ended with exit code 1")
    recorded.record("A1", state="done", outcome="finished", plan=[planned("prepare", DRAIN, "succeeded"), failed])
    recorded.clocks.now += 3600
    recorded.beat()
    shown = status()
    assert shown.code == 1
    text = "recover hook run /usr/local/bin/undrain failed: it ended with exit code 1"
    assert shown.lines[-2:] == ["Not recovered, in the last 24 hours:", f"  Reboot A1: {text}"]
    (problem,) = json.loads(status("--json").out)["problems"]
    assert problem == f"Reboot A1: {text}"
    other = recorded.record("B2", state="done", plan=[planned("recover", DRAIN, "succeeded")])
    assert status().code == 1, "that was another hook"
    recorded.save(other, plan=[planned("recover", UNDRAIN, "succeeded")])
    assert status().code == 0, "a later event has run the hook"


def test_a_recovery_that_failed_is_forgotten_after_a_day(recorded: Recorded, status: Status) -> None:
    recorded.record(state="done", plan=[planned("recover", UNDRAIN, "failed", reason="x")])
    recorded.clocks.now += 86390
    recorded.beat()
    assert status().code == 1
    recorded.clocks.now += 20
    recorded.beat()
    assert status().code == 0


# For programs


def test_json(recorded: Recorded, status: Status) -> None:
    secret = {"http": "https://user:pass@hooks.example.com/x?token=hunter2", "timeout_seconds": 10}
    recorded.record(
        "A1", state="preparing", plan=[planned("prepare", secret, "running")], decision=decided("preparing")
    )
    recorded.clocks.now += 2
    recorded.beat()
    shown = status("--json")
    assert (shown.code, shown.err) == (0, "")
    assert "hunter2" not in shown.out
    assert "user:pass" not in shown.out
    data = json.loads(shown.out)
    assert data["forewarn"] == {"schema": "status", "version": 1}
    assert data["at"] == "2026-11-21T14:05:13.000Z"
    assert (data["runner"]["condition"], data["runner"]["pid"], data["runner"]["vm"]) == (
        "running",
        os.getpid(),
        "web_1",
    )
    assert (data["service"]["state"], data["service"]["last_good_poll_age_seconds"]) == ("ok", 0.0)
    assert (data["journal"], data["problems"], data["failed_recoveries"]) == ({"trouble": None, "read": True}, [], [])
    (event,) = data["events"]
    assert (event["event_id"], event["state"], event["drill"]) == ("A1", "preparing", False)
    assert event["seconds_to_not_before"] == 887.0
    assert event["waits_for"] == "prepare hook http https://hooks.example.com/x?token=…, at most 10 s"
    assert event["event"]["EventType"] == "Reboot"
    assert event["hooks"][0]["hook"] == "http https://hooks.example.com/x?token=…"
    assert event["first_seen"] == "2026-11-21T14:05:11.000Z"


# What a runner really writes


def test_what_the_runner_keeps_is_understood(recorded: Recorded, status: Status) -> None:
    event = Event("A1", "Redeploy", "VirtualMachine", ("web_0",), "Scheduled", parse_time("2026-11-21T14:15:11Z"))
    record = EventRecord(7, event, recorded.clocks.stamp(), drill=True)
    run = Run("prepare", "web-tier", "drain", DRAIN)
    run.status, run.attempts = "running", 1
    record.plan.runs.append(run)
    record.step("begin")
    recorded.journal.save(record.as_row())
    assert recorded.journal.commit()
    recorded.beat()
    assert status().lines[5:] == [
        "TYPE      STATE      STARTS     LASTS  SOURCE",
        "Redeploy  preparing  in 10 min  -      -",
        "          a drill: nothing is approved",
        "          waits for  prepare hook run /usr/local/bin/drain --wait, at most 5 min",
        "          affects    web_0",
        "          id         A1",
    ]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
FULL = {
    "event": {"EventId": "A", "EventType": "Reboot", "Resources": ["a"], "NotBefore": "2026-11-21T14:15:11Z"},
    "plan": [planned("prepare", DRAIN, "failed"), planned("recover", UNDRAIN, "running")],
    "drill": True,
    "decision": decided("not-the-leader"),
    "first_seen": [1.0, 1.0, "b"],
    "gone_at": None,
    "impact": {},
}


def _replace(data: Any, path: list[int], value: Any) -> Any:
    """Return JSON in which what a path of numbers leads to is another value."""
    if not path or not data or not isinstance(data, (dict, list)):
        return value
    keys = list(data) if isinstance(data, dict) else list(range(len(data)))
    key = keys[path[0] % len(keys)]
    copy = data.copy()
    copy[key] = _replace(data[key], path[1:], value)
    return copy


class OneLife:
    """Stands in for a JournalReader."""

    def __init__(self, record: EventRow) -> None:
        self.record = record

    def records(self, **_options: Any) -> list[EventRow]:
        return [self.record]

    def entries(self, **_options: Any) -> Any:
        return iter(())


@given(st.sampled_from([*TRANSITIONS, "?"]), st.booleans(), st.lists(st.integers(0, 20), max_size=4), JSON)
def test_no_record_however_damaged_keeps_the_rest_from_being_shown(
    state: str, is_open: bool, path: list[int], value: Any
) -> None:
    data = _replace(FULL, path, value)
    record = EventRow(1, "a", state, is_open, data if isinstance(data, dict) else {})
    report = examine(State("STATE", None, OneLife(record)), ManualClocks())  # type: ignore[arg-type]  # stands in for it
    json.dumps(report)
    stream = Terminal()
    show(Page(Console(stream, {"NO_COLOR": "1"})), report)
    assert "Nothing is pending." not in stream.getvalue()


# On a terminal


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_no_line_is_longer_than_the_terminal(recorded: Recorded, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    recorded.beat(vm="web_1\x1b[2J")
    reason = "late\x1b[31m\nrunner   running " + "x" * 500 + "\u00a0runner\u202e " + "日本" * 40
    resources = ["web\t0", "y" * 100, "c", "d"]
    event = {"EventType": "Fr\neeze" * 9, "EventSource": "z" * 99, "Resources": resources, "DurationInSeconds": 2**62}
    recorded.record("E\x07" * 60, state="held", decision=decided("refused-by-policy", reason), event=event, drill=True)
    recorded.record("B", state="done", plan=[planned("recover", UNDRAIN, "failed", reason=reason)])
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert cli.main(["status", "--state", recorded.directory]) == 1
    assert "\033[1;31m" in terminal.getvalue(), "what failed is red"
    plain = re.sub("\033\\[[0-9;]*m", "", terminal.getvalue())
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", plain)
    for line in plain.splitlines():
        assert sum(2 if character in "日本" else 1 for character in line) <= max(columns, 100), line
    header = plain.splitlines().index(next(line for line in plain.splitlines() if line.startswith("TYPE")))
    assert [line for line in plain.splitlines()[header:] if line.startswith("runner")] == []


@example("   aa", 4)
@given(st.text(st.sampled_from("ab 日é"), max_size=60), st.integers(4, 30))
def test_lines_are_broken_within_the_width_and_nothing_is_lost(text: str, width: int) -> None:
    lines = wrap(text, width)
    assert all(sum(2 if character == "日" else 1 for character in line) <= width for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    words = text.split()
    if all(len(word) * 2 <= width for word in words):
        assert " ".join(lines).split() == words, "no word is broken that has room"


def test_a_number_is_not_parted_from_its_unit() -> None:
    assert wrap("it ended after 10 s, of 5 min", 17) == ["it ended after", "10 s, of 5 min"]
    assert wrap("it ended after 10 seconds", 17) == ["it ended after 10", "seconds"]


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


def test_a_directory_that_is_not_ours(recorded: Recorded, status: Status, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_path: str) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "scandir", refuse)
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    shown = status()
    assert (shown.code, shown.out) == (2, "")
    assert "permission denied" in shown.err
    assert "Run this as root" in shown.err


def test_the_default_directory(
    recorded: Recorded, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    recorded.beat()
    monkeypatch.setenv("STATE_DIRECTORY", recorded.directory)
    assert cli.main(["status"]) == 0
    monkeypatch.delenv("STATE_DIRECTORY")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    capsys.readouterr()
    assert cli.main(["status"]) == 2
    assert "/var/lib/forewarn: run this as root" in capsys.readouterr().err


def test_bad_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["status", "surplus"])
    assert ended.value.code == 2


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
