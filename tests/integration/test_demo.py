# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The demo: it shows what it promises, finds what goes wrong, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

# Title -> what follows it in the table, but for the time.
ROWS = {
    "freeze of 5 s": ("approve", "brief-freeze", "web_0", "approval"),
    "freeze, unknown duration": ("hold", "unknown-duration", "-", "NotBefore"),
    "restart, no runner there": ("approve", "administrator", "db_0", "approval"),
    "administrator's restart": ("approve", "administrator", "web_0", "approval"),
    "freeze during an outage": ("approve", "brief-freeze", "web_0", "approval"),
    "redeploy of two VMs": ("approve", "move", "web_0", "approval"),
    "cancelled reboot": ("hold", "otherwise", "-", "-"),
}


def table(output: str) -> dict[str, list[str]]:
    """Return the rows of the table at the end by their first cell; cells are two or more spaces apart."""
    lines = output[output.index("\nEVENT ") + 1 :].split("\n\n")[0].splitlines()
    rows = [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in lines[1:]]
    return {row[0]: row[1:] for row in rows}


def test_the_demo_shows_every_event_and_finds_all_as_it_should_be(repository: Path) -> None:
    process = subprocess.run(
        [sys.executable, "demo/demo.py"], cwd=repository, capture_output=True, text=True, timeout=240, check=False
    )
    assert process.returncode == 0, process.stdout + process.stderr
    rows = table(process.stdout)
    assert list(rows) == list(ROWS)
    for title, (decision, rule, approved_by, started_by) in ROWS.items():
        shown_decision, shown_rule, _reason, shown_approver, _seconds, shown_start, good = rows[title]
        assert (shown_decision, shown_rule, shown_approver, shown_start, good) == (
            decision,
            rule,
            approved_by,
            started_by,
            "yes",
        )
    assert "\x1b" not in process.stdout  # plain in a pipe


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_demo_that_is_broken_off_leaves_no_process_and_no_file(
    repository: Path, tmp_path: Path, number: signal.Signals
) -> None:
    with subprocess.Popen(
        [sys.executable, "-u", "demo/demo.py"],
        cwd=repository,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if "schedules:" in line:  # by now the emulator and both runners are there
                    break
            started = psutil.Process(process.pid).children(recursive=True)
            assert len(started) == 3
            assert len(list(tmp_path.iterdir())) == 1
            process.send_signal(number)
            rest = process.stdout.read()
        finally:
            process.terminate()
    assert process.returncode == 130, rest
    assert psutil.wait_procs(started, timeout=5)[1] == []
    assert list(tmp_path.iterdir()) == []


def stamp(seconds: float) -> dict[str, float]:
    """Return a moment as the emulator's control API tells it."""
    return {"wall": 1_800_000_000.0 + seconds, "monotonic": seconds}


class Records:
    """What the emulator and a runner would have on record of one freeze of web_0, approved; and of an outage."""

    def __init__(self) -> None:
        self.event: dict[str, Any] = {
            "event_id": "A",
            "status": "Finished",
            "approvals": [{"vm": "web_0", "at": stamp(20.5)}],
            "started_by": "approval",
            "started": stamp(21.0),
            "not_before": 1_800_000_035,
            "visible_since": {"web_0": stamp(20.0), "web_1": stamp(20.0)},
        }
        self.log: list[dict[str, Any]] = [self.poll(number, at, status) for number, (at, status) in enumerate(POLLS, 1)]
        self.log.append({**self.poll(99, 20.5, 200), "method": "POST", "event_ids": ["A"]})
        self.lines: dict[str, list[dict[str, Any]]] = {
            "decision": [{"output": "approve", "rule": "brief-freeze", "standing": "approve", "reason": "short"}],
            "event-gone": [{"outcome": "finished"}],
            "poll-failed": [{}],
            "poll-recovered": [{}],
        }

    @staticmethod
    def poll(number: int, at: float, status: int) -> dict[str, Any]:
        values = {"number": number, "vm": "web_0", "method": "GET", "status": status}
        return {**values, "event_ids": [], "received": stamp(at)}

    @property
    def emulator(self) -> Records:
        return self

    def state(self) -> dict[str, Any]:
        return {"events": [self.event]}

    def requests(self) -> list[dict[str, Any]]:
        return self.log

    def said(self, _source: str, kind: str, _event_id: str | None = None) -> list[dict[str, Any]]:
        return self.lines[kind]


POLLS = [(1.0, 200), (2.0, 410), (3.0, 410), (5.0, 410), (9.0, 200)]
SPOILERS: dict[str, Callable[[Records], object]] = {
    "another status": lambda records: records.event.update(status="Cancelled"),
    "another start": lambda records: records.event.update(started_by="NotBefore"),
    "a late start": lambda records: records.event.update(started=stamp(35.0)),
    "another approver": lambda records: records.event["approvals"][0].update(vm="web_1"),
    "a late approval": lambda records: records.event["approvals"][0].update(at=stamp(26.0)),
    "an approval sent twice": lambda records: records.log.append(records.log[-1]),
    "an approval refused": lambda records: records.log[-1].update(status=400),
    "another rule": lambda records: records.lines["decision"][0].update(rule="otherwise"),
    "another decision": lambda records: records.lines["decision"][0].update(output="hold"),
    "another standing": lambda records: records.lines["decision"][0].update(standing="not-ours"),
    "no decision": lambda records: records.lines["decision"].clear(),
    "another end, for the runner": lambda records: records.lines["event-gone"][0].update(outcome="cancelled"),
    "a fault that was not meant": lambda records: records.log[0].update(status=500),
    "no backoff": lambda records: records.log[4].update(received=stamp(6.0)),
    "an outage without an end": lambda records: records.lines["poll-recovered"].clear(),
}


@pytest.fixture
def judge(repository: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Records], list[str]]:
    """Return what the demo finds wrong with such records."""
    monkeypatch.syspath_prepend(str(repository / "demo"))
    from acts import Expectation
    from verify import judge as judge_acts

    expected = Expectation("a freeze", "A", ["web_0"], "approve", "brief-freeze", {"web_0": "approve"}, "web_0")

    def differences(records: Records) -> list[str]:
        acts: Any = SimpleNamespace(stage=records, expected=[expected], adhoc_decisions={})
        return judge_acts(acts)[1]

    return differences


def test_the_demo_is_content_with_what_it_expects(judge: Callable[[Records], list[str]]) -> None:
    assert judge(Records()) == []


@pytest.mark.parametrize("spoil", SPOILERS.values(), ids=SPOILERS)
def test_the_demo_finds_what_goes_wrong(
    spoil: Callable[[Records], object], judge: Callable[[Records], list[str]]
) -> None:
    records = Records()
    spoil(records)
    assert judge(records)
