# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn history``: the timeline of events, for people and programs."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from forewarn.cli import main as cli
from forewarn.cli.arguments import since
from forewarn.events import parse_time
from forewarn.runner.journal.writer import EventRow
from tools.fixtures.recorded_state import DRAIN, UNDRAIN, RecordedState, Run, Terminal, decided, planned

History = Callable[..., list[str]]

HOOK = "run /usr/local/bin/drain --wait"


@pytest.fixture
def history(run_command: Run) -> History:
    def succeeds(*arguments: str) -> list[str]:
        shown = run_command("history", *arguments)
        assert (shown.code, shown.err) == (0, "")
        return shown.lines

    return succeeds


def decide(recorded: RecordedState, record: EventRow, eligibility: str = "approve", **fields: Any) -> None:
    """Write the entry of a decision."""
    event = record.data["event"]
    about = {"event_id": event["EventId"], "type": event["EventType"], "status": event["EventStatus"]}
    values = {'event.EventType in ["Reboot"]': "true"}
    recorded.note(
        "decision",
        record,
        **about,
        **{"seconds_to_not_before": 889.0, "values": values, **decided(eligibility, **fields)},
    )


def move(recorded: RecordedState, record: EventRow, before: str, after: str, why: str) -> None:
    """Write the entry of a record's change of state."""
    recorded.note("state", record, **{"from": before, "to": after, "why": why})


def test_the_record_of_an_event(recorded: RecordedState, history: History) -> None:
    recorded.note("runner-started", version="0.1.0", policy="sha256:" + "3f6a1c2b" * 8, dry_run=False)
    recorded.clocks.now += 60
    record = recorded.record("A1", event={"Resources": ["web_0", "web_1", "web_2", "web_3"]})
    decide(recorded, record, "preparing", eligibility_reason=f"waits for {HOOK}")
    move(recorded, record, "seen", "preparing", f"{HOOK} is started")
    recorded.note("hook-started", record, phase="prepare", hook=HOOK, attempt=1, timeout_seconds=300.0)
    recorded.clocks.now += 4.2
    recorded.note("runner-started", version="0.1.0", policy="sha256:" + "3f6a1c2b" * 8)
    recorded.note("hook-started", record, phase="prepare", hook=HOOK, attempt=2, timeout_seconds=295.8)
    recorded.clocks.now += 12.34
    recorded.note(
        "hook-ended",
        record,
        phase="prepare",
        hook=HOOK,
        attempt=2,
        result="succeeded",
        exit_code=0,
        seconds=12.341,
        output="draining\n\n  3 left\x1b[2J\r\ndone\n",
    )
    move(recorded, record, "preparing", "prepared", "every prepare hook succeeded")
    decide(recorded, record, seconds_to_not_before=872.4)
    recorded.note("approval-sending", record, event_ids=["A1"])
    recorded.note("approval-failed", record, event_ids=["A1"], kind="status", status=503, lasting=False, reason="busy")
    recorded.note("approval-sending", record, event_ids=["A1"])
    recorded.clocks.now += 0.06
    recorded.note("approved", record, event_ids=["A1"])
    move(recorded, record, "prepared", "approved", "this VM approved it")
    recorded.clocks.now += 7
    move(recorded, record, "approved", "started", "the service lists it as Started")
    recorded.note("impact", record, kind="pause", seconds=4.812, announced_seconds=30)
    recorded.clocks.now += 700
    recorded.note("event-gone", record, outcome="finished", listed_seconds=723.6)
    move(recorded, record, "started", "recovering", "no longer listed: finished")
    recorded.note("hook-left", record, hook="run /usr/local/bin/undrain", reason="left to event B2")
    move(recorded, record, "recovering", "done", "recovered")
    recorded.note("notified", record, hook="http https://x", occasion="ended", result="succeeded", seconds=0.2)
    recorded.save(record, state="done", outcome="finished", impact={"paused_seconds": 4.812, "down_seconds": 0.0})
    margin = " " * 35
    assert history() == [
        "  2026-11-21T14:05:11Z             the runner started, forewarn 0.1.0, policy sha256:3f6a1c2b3f6a",
        "",
        "Reboot  A1  finished",
        "  affects web_0, web_1, web_2 and 1 more; source Platform; duration 30 s",
        '  "Host server is undergoing maintenance."',
        "  the machine stood still for 4.8 s",
        "  2026-11-21T14:06:11Z     +0.0 s  decided: approve, by web-tier, rule drain: a reboot waits for the drain "
        f"[starts in 14 min 49 s]. Not approved now: waits for {HOOK}",
        f"  2026-11-21T14:06:11Z     +0.0 s  prepare hook {HOOK}: started, at most 5 min",
        "  2026-11-21T14:06:15Z     +4.2 s  the runner started, forewarn 0.1.0, policy sha256:3f6a1c2b3f6a; the "
        "previous one had not been stopped",
        f"  2026-11-21T14:06:15Z     +4.2 s  prepare hook {HOOK}: started, attempt 2, at most 4 min 55 s",
        f"  2026-11-21T14:06:27Z    +16.5 s  prepare hook {HOOK}: succeeded after 12.3 s, attempt 2",
        f"{margin}| draining",
        f"{margin}|",
        f"{margin}|   3 left\\x1b[2J",
        f"{margin}| done",
        "  2026-11-21T14:06:27Z    +16.5 s  prepared: every prepare hook succeeded",
        "  2026-11-21T14:06:27Z    +16.5 s  decided as before: approve [starts in 14 min 32 s]",
        "  2026-11-21T14:06:27Z    +16.5 s  approval failed (status 503): busy; it is tried again",
        "  2026-11-21T14:06:27Z    +16.6 s  approved: the service took it",
        "  2026-11-21T14:06:34Z    +23.6 s  started: the service lists it as Started",
        "  2026-11-21T14:06:34Z    +23.6 s  the machine stood still for 4.8 s; 30 s were announced",
        "  2026-11-21T14:18:14Z   +723.6 s  no longer listed, after 12 min 3 s: finished",
        "  2026-11-21T14:18:14Z   +723.6 s  recover hook run /usr/local/bin/undrain: left to event B2",
        "  2026-11-21T14:18:14Z   +723.6 s  done: recovered",
        "  2026-11-21T14:18:14Z   +723.6 s  notify hook (ended) http https://x: succeeded after 0.2 s",
        "",
    ]


def test_one_event_is_shown_in_full(recorded: RecordedState, history: History) -> None:
    recorded.note("runner-started", version="0.1.0")
    recorded.clocks.now += 60
    recorded.record("B2")
    record = recorded.record("C7061BAC-1", event={"Resources": list("abcdef")})
    decide(recorded, record, reason="r" * 700, eligibility_reason="r" * 700)
    output = "".join(f"line {number}\n" for number in range(30))
    recorded.note("hook-ended", record, phase="prepare", hook=HOOK, result="failed", reason="it failed", output=output)
    recorded.note("runner-stopped", signal="SIGTERM")
    short, whole = history(), history("--event", "c7061bac")
    assert any("more characters)" in line for line in short)
    assert [line.strip() for line in short if "|" in line] == [
        *(f"| line {number}" for number in range(3)),
        "| ... 20 more lines: see --event",
        *(f"| line {number}" for number in range(23, 30)),
    ]
    assert [line.strip() for line in whole if "|" in line] == [f"| line {number}" for number in range(30)]
    assert any("r" * 700 in line for line in whole)
    assert [line.strip() for line in whole if " = " in line] == ['event.EventType in ["Reboot"] = true']
    assert whole[1] == "  affects a, b, c, d, e, f; source Platform; duration 30 s"
    assert "B2" not in "".join(whole)
    assert "the runner started" not in "".join(whole), "that was before"
    assert "the runner was stopped by SIGTERM" in "".join(whole), "that was during it"


def test_a_reboot_and_a_clock_that_was_set(recorded: RecordedState, history: History) -> None:
    record = recorded.record("A1")
    decide(recorded, record)
    recorded.clocks.now += 10
    recorded.clocks.wall_offset -= 3600
    recorded.note("approved", record, event_ids=["A1"], times=2)
    recorded.clocks.reboot(87, up=5)
    recorded.note("runner-started", version="0.1.0")
    recorded.note("impact", record, kind="reboot", seconds=92.4, announced_seconds=-1)
    recorded.save(record, impact={"paused_seconds": 0.5, "down_seconds": 92.4})
    assert history()[3:-1] == [
        "  the machine stood still for 0.5 s and was down for 1 min 32 s",
        "  2026-11-21T14:05:11Z     +0.0 s  decided: approve, by web-tier, rule drain: a reboot waits for the drain "
        "[starts in 14 min 49 s]",
        "  -- the wall clock was set back by 1 h --",
        "  2026-11-21T13:05:21Z    +10.0 s  approved: the service took it for the 2nd time",
        "  -- the machine was booted --",
        "  2026-11-21T13:06:53Z  -58 min 18 s  the runner started, forewarn 0.1.0",
        "  2026-11-21T13:06:53Z  -58 min 18 s  the machine was down for 1 min 32 s; how long was not announced",
    ]


def test_runner_entries_are_shown_between_events(recorded: RecordedState, history: History) -> None:
    recorded.note("runner-started", version="0.1.0")
    first = recorded.record("A1")
    decide(recorded, first)
    recorded.clocks.now += 5
    second = recorded.record("B2")
    decide(recorded, second)
    recorded.note("poll-failed", kind="status", status=410, reason="the service answered 410 Gone")
    recorded.note("event-gone", second, outcome="cancelled", listed_seconds=3)
    recorded.save(second, state="cancelled", outcome="cancelled")
    recorded.note("poll-recovered", failures=3, after_seconds=130.0)
    recorded.note("event-gone", first, outcome="unseen", listed_seconds=140)
    recorded.save(first, state="done", outcome="unseen")
    recorded.clocks.now += 50
    recorded.note("reloaded", policy="sha256:" + "b" * 64, before="sha256:" + "a" * 64)
    recorded.clocks.now += 50
    third = recorded.record("C3")
    decide(recorded, third)
    recorded.note("runner-stopped", signal="SIGTERM")
    outline = []
    for line in history():
        words = re.sub(r"^  \S+Z +(\S+ s  )?", "- ", line)
        if words and not line.startswith("  affects") and not line.startswith('  "'):
            outline.append(words[:40])
    assert outline == [
        "- the runner started, forewarn 0.1.0",
        "Reboot  A1  its outcome was not seen",
        "- decided: approve, by web-tier, rule dr",
        "- the service does not answer: the servi",
        "- the service answers again, after 2 min",
        "- no longer listed, after 2 min 20 s: it",
        "Reboot  B2  cancelled, it never started",
        "- decided: approve, by web-tier, rule dr",
        "- the service does not answer: the servi",
        "- no longer listed, after 3 s: cancelled",
        "- the configuration was read again: poli",
        "Reboot  C3  seen",
        "- decided: approve, by web-tier, rule dr",
        "- the runner was stopped by SIGTERM",
    ]


def test_approval_with_an_unknown_result_is_shown(recorded: RecordedState, history: History) -> None:
    record = recorded.record("A1")
    recorded.note("approval-sending", record, event_ids=["A1"])
    recorded.note("runner-started", version="0.1.0")
    recorded.note("approval-sending", record, event_ids=["A1"])
    recorded.note("approved", record, event_ids=["A1"])
    assert sum("the approval is sent" in line for line in history()) == 1


def test_marks(recorded: RecordedState, history: History) -> None:
    drill = recorded.record("drill-1", drill=True)
    recorded.note("would-approve", drill, event_ids=["drill-1"])
    plan = [planned("prepare", DRAIN, "succeeded"), planned("recover", UNDRAIN, "failed", reason="x")]
    recorded.record("A1", state="done", outcome="finished", plan=plan)
    recorded.record("B2", state="started", event={"Description": "", "EventSource": None, "DurationInSeconds": None})
    recorded.note("drill", event_id="drill-1", result="rehearsed", reason="")
    lines = history()
    assert "Reboot  drill-1  DRILL  seen" in lines
    assert "Reboot  A1  finished; not recovered" in lines
    place = lines.index("Reboot  B2  started")
    assert lines[place + 1 : place + 3] == ["  affects web_0, web_1", ""]
    assert any(line.endswith("would be approved, but nothing is sent: a dry run, or a drill") for line in lines)
    assert any(line.endswith("  drill-1 ended: rehearsed") for line in lines)


def test_drill_result_is_shown_with_its_drill(recorded: RecordedState, history: History) -> None:
    for drill in ("drill-1", "drill-2"):
        record = recorded.record(drill, drill=True)
        recorded.note("would-approve", record, event_ids=[drill])
    event = recorded.record("REAL")
    recorded.note("event-gone", event, outcome="cancelled", listed_seconds=3.0)
    for drill in ("drill-1", "drill-2", "drill-unseen"):
        recorded.note("drill", event_id=drill, result="overtaken", reason="")
    parts = "\n".join(history()).split("\n\n")
    assert [sorted(re.findall(r"(\S+) ended: overtaken", part)) for part in parts] == [
        ["drill-1", "drill-unseen"],
        ["drill-2", "drill-unseen"],
        ["drill-unseen"],
    ]


def test_documents_are_shown_if_asked_for(recorded: RecordedState, history: History) -> None:
    event = {"EventId": "A1", "EventType": "Freeze", "EventStatus": "Scheduled"}
    recorded.note("document", incarnation=3, document={"DocumentIncarnation": 3, "Events": [event]}, problems=["odd"])
    recorded.note("document", document={"DocumentIncarnation": None, "Events": []}, drill=True)
    assert history() == ["No events since 2026-11-14T14:05:11Z."]
    start = "  2026-11-21T14:05:11Z             "
    assert history("--documents") == [
        f"{start}document 3: Freeze A1 Scheduled. Not understood: odd",
        f"{start}document without a number, a drill: no events",
        "",
        "No events since 2026-11-14T14:05:11Z.",
    ]
    kept = json.loads("".join(history("--documents", "--json")))["runner"]
    assert [entry["fields"].get("incarnation") for entry in kept] == [3, None]


# Which events


def test_the_last_seven_days_unless_asked_otherwise(recorded: RecordedState, history: History) -> None:
    recorded.record("OLD", state="done")
    recorded.clocks.now += 8 * 86400
    recorded.record("NEW", state="done")

    def shown(*arguments: str) -> list[str]:
        return [line.split()[1] for line in history(*arguments) if line.startswith("Reboot")]

    assert shown() == ["NEW"]
    assert shown("--since", "9d") == ["OLD", "NEW"]
    assert shown("--since", "2026-11-21") == ["OLD", "NEW"]
    assert shown("--since", "2026-11-21T15:00Z") == ["NEW"]
    assert shown("--since", "9d", "--limit", "1") == ["NEW"]
    assert shown("--event", "old") == ["OLD"], "whenever it was"
    recorded.clocks.now += 1
    assert shown("--since", "0s") == []


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-11-01", "2026-11-01T00:00:00Z"),
        ("2026-11-01T10:00Z", "2026-11-01T10:00:00Z"),
        ("2026-11-01T10:00", "2026-11-01T10:00:00Z"),
        ("2026-11-01T10:00:30", "2026-11-01T10:00:30Z"),
        ("2026-11-01T10:00:30Z", "2026-11-01T10:00:30Z"),
        ("2026-11-01T10:00+01:00", "2026-11-01T09:00:00Z"),
    ],
)
def test_since_a_moment(text: str, moment: str) -> None:
    assert since(text).start(0.0) == parse_time(moment).timestamp()


@pytest.mark.parametrize(("text", "seconds"), [("30s", 30), ("90m", 5400), ("2h", 7200), ("7d", 604800)])
def test_since_a_span(text: str, seconds: int) -> None:
    assert since(text).start(1e9) == 1e9 - seconds


@pytest.mark.parametrize(
    "text", ["", "2", "2w", "-2h", "1.5h", "yesterday", "2026-13-01", "2026-11-01Z", "2026-11-01 10:00"]
)
def test_since_what(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="neither a span"):
        since(text)


@pytest.mark.parametrize("arguments", [("--since", "2w"), ("--limit", "0"), ("--limit", "x"), ("surplus",)])
def test_bad_usage(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["history", *arguments])
    assert ended.value.code == 2


def test_an_event_that_is_not_there(recorded: RecordedState, capsys: pytest.CaptureFixture[str]) -> None:
    recorded.record("A1")
    assert cli.main(["history", "--state", recorded.directory, "--event", "B\x1b"]) == 2
    assert capsys.readouterr().err.startswith(r"error: no event's id begins with 'B\x1b'")


# For programs


def test_json(recorded: RecordedState, history: History) -> None:
    recorded.note("runner-started", version="0.1.0")
    secret = {"http": "https://hooks.example.com/x?token=hunter2"}
    recorded.clocks.now += 1
    first = recorded.record("A1", plan=[planned("prepare", secret)], notify=[secret])
    recorded.clocks.now += 2.5
    recorded.note("quorum-asked", first, peers=["a", "b"])
    recorded.record("B2", state="done", outcome="finished")
    text = "\n".join(history("--json"))
    assert "hunter2" not in text
    data = json.loads(text)
    assert data["forewarn"] == {"schema": "history", "version": 1}
    assert data["since"] == "2026-11-14T14:05:14Z"
    assert [event["event_id"] for event in data["events"]] == ["A1", "B2"]
    (entry,) = data["events"][0]["entries"]
    assert entry == {
        "id": 2,
        "kind": "quorum-asked",
        "at": "2026-11-21T14:05:14.500Z",
        "boot_seconds": 1004.0,
        "boot_id": "boot-1",
        "seconds_since_first_seen": 2.5,
        "fields": {"peers": ["a", "b"]},
    }
    assert [entry["kind"] for entry in data["runner"]] == ["runner-started"]
    assert json.loads("".join(history("--json", "--since", "0s", "--limit", "1")))["events"][0]["event_id"] == "B2"


def test_json_of_nothing(recorded: RecordedState, history: History) -> None:
    data = json.loads("".join(history("--json")))
    assert (data["events"], data["runner"]) == ([], [])


# On a terminal


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_no_line_is_longer_than_the_terminal(
    recorded: RecordedState, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    evil = "a\x1b[31m\nReboot  FORGED  finished " + "x" * 300 + "\u00a0Reboot\u202e " + "日本" * 60
    event = {"EventType": "T\n" * 40, "Resources": [evil], "EventSource": evil, "Description": evil}
    record = recorded.record("E\x07" * 60, event=event, drill=True)
    decide(recorded, record, "not-ours", reason=evil, eligibility_reason=evil, error=evil)
    recorded.note("hook-ended", record, phase=evil, hook=evil, result="failed", reason=evil, output=f"{evil}\n{evil}")
    recorded.note("ev\x1bil\n", record, **{evil: evil})
    recorded.note("poll-failed", reason=evil)
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for arguments in ([], ["--event", "e"]):
        terminal = Terminal()
        monkeypatch.setattr("sys.stdout", terminal)
        assert cli.main(["history", "--state", recorded.directory, *arguments]) == 0
        assert "\033[31m" in terminal.getvalue()
        plain = re.sub("\033\\[[0-9;]*m", "", terminal.getvalue())
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", plain)
        for line in plain.splitlines():
            assert sum(2 if character in "日本" else 1 for character in line) <= columns, line
            assert not line.startswith("Reboot")


def test_a_narrow_terminal_has_output_at_the_left(
    recorded: RecordedState, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = recorded.record("A1")
    recorded.note("hook-ended", record, phase="prepare", hook="run x", result="succeeded", output="done")
    assert " " * 35 + "| done" in history()
    for columns, margin in ((80, 4), (120, 35)):
        monkeypatch.setenv("COLUMNS", str(columns))
        terminal = Terminal()
        monkeypatch.setattr("sys.stdout", terminal)
        monkeypatch.setenv("NO_COLOR", "1")
        cli.main(["history", "--state", recorded.directory])
        assert " " * margin + "| done" in terminal.getvalue().splitlines()
