# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn status`` for programs and on a terminal, whatever a journal holds."""

from __future__ import annotations

import json
import os
import re
from typing import Any

import pytest
from forewarn.cli import main as cli
from forewarn.cli.output.console import Console
from forewarn.cli.output.page import Page, wrap
from forewarn.cli.runner_state import State
from forewarn.cli.status.page import show
from forewarn.cli.status.report import examine
from forewarn.events import Event, parse_time
from forewarn.runner.event_record import TRANSITIONS, EventRecord
from forewarn.runner.hooks import run as runs
from forewarn.runner.journal.writer import EventRow
from hypothesis import example, given
from hypothesis import strategies as st
from tools.fixtures.clocks import ManualClocks
from tools.fixtures.recorded_state import DRAIN, UNDRAIN, RecordedState, Run, Terminal, decided, planned

# For programs


def test_json(recorded: RecordedState, status: Run) -> None:
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


def test_what_the_runner_keeps_is_understood(recorded: RecordedState, status: Run) -> None:
    event = Event("A1", "Redeploy", "VirtualMachine", ("web_0",), "Scheduled", parse_time("2026-11-21T14:15:11Z"))
    record = EventRecord(7, event, recorded.clocks.stamp(), drill=True)
    run = runs.Run("prepare", "web-tier", "drain", DRAIN)
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
    """Return JSON with another value at the end of a path of numbers."""
    if not path or not data or not isinstance(data, (dict, list)):
        return value
    keys = list(data) if isinstance(data, dict) else list(range(len(data)))
    key = keys[path[0] % len(keys)]
    copy = data.copy()
    copy[key] = _replace(data[key], path[1:], value)
    return copy


class OneRecord:
    """Stands in for a JournalReader."""

    def __init__(self, record: EventRow) -> None:
        self.record = record

    def records(self, **_options: Any) -> list[EventRow]:
        return [self.record]

    def entries(self, **_options: Any) -> Any:
        return iter(())


@given(st.sampled_from([*TRANSITIONS, "?"]), st.booleans(), st.lists(st.integers(0, 20), max_size=4), JSON)
def test_damaged_record_does_not_hide_others(state: str, is_open: bool, path: list[int], value: Any) -> None:
    data = _replace(FULL, path, value)
    record = EventRow(1, "a", state, is_open, data if isinstance(data, dict) else {})
    report = examine(State("STATE", None, OneRecord(record)), ManualClocks())  # type: ignore[arg-type]  # stands in for it
    json.dumps(report)
    stream = Terminal()
    show(Page(Console(stream, {"NO_COLOR": "1"})), report)
    assert "Nothing is pending." not in stream.getvalue()


# On a terminal


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_no_line_is_longer_than_the_terminal(
    recorded: RecordedState, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
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
def test_wrapped_lines_fit_the_width_and_lose_nothing(text: str, width: int) -> None:
    lines = wrap(text, width)
    assert all(sum(2 if character == "日" else 1 for character in line) <= width for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    words = text.split()
    if all(len(word) * 2 <= width for word in words):
        assert " ".join(lines).split() == words, "no word is broken that has room"


def test_a_number_is_not_parted_from_its_unit() -> None:
    assert wrap("it ended after 10 s, of 5 min", 17) == ["it ended after", "10 s, of 5 min"]
    assert wrap("it ended after 10 seconds", 17) == ["it ended after 10", "seconds"]
