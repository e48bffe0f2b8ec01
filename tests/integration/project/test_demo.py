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
from datetime import datetime, timezone
from pathlib import Path
from shutil import which
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from tools.sites.bare_environment import bare_environment

# Title -> what follows it in the table, but for the time.
ROWS = {
    "freeze of 5 s": ("brief-freeze", "approve", "-", "web_0", "approval"),
    "reboot, drained": ("reboot", "approve", "yes", "web_0", "approval"),
    "freeze, no duration": ("unknown-duration", "hold", "-", "-", "NotBefore"),
    "reboot, drain fails": ("reboot", "approve", "failed", "-", "NotBefore"),
    "restart, ad hoc": ("administrator", "approve", "-", "db_0", "approval"),
    "restart by hand": ("administrator", "approve", "-", "web_0", "approval"),
    "freeze in an outage": ("brief-freeze", "approve", "-", "web_0", "approval"),
    "redeploy of two VMs": ("move", "approve", "-", "web_0", "approval"),
    "freeze, cancelled": ("otherwise", "hold", "-", "-", "-"),
    "reboot, kill -9": ("reboot", "approve", "2nd attempt", "web_0", "approval"),
}
# What the history of the last event says, in this order.
HISTORY = (
    "hooks/drain: started, at most",
    "the runner started",
    "hooks/drain: started, attempt 2",
    "hooks/drain: succeeded",
    "| drain of web_0, attempt 2",
    "prepared: every prepare hook succeeded",
    "approved: the service took it",
    "no longer listed",
    "hooks/undrain: succeeded",
    "done: recovered",
)


def table(output: str, header: str = "EVENT") -> dict[str, list[str]]:
    """Return the rows of a table at the end by their first cell; cells are two or more spaces apart."""
    lines = output[output.index(f"\n{header} ") + 1 :].split("\n\n")[0].splitlines()
    rows = [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in lines[1:]]
    return {row[0]: row[1:] for row in rows}


def test_demo_shows_every_event_as_expected(repository: Path, tmp_path: Path) -> None:
    """In an environment as the README makes it: without what only tests need."""
    process = subprocess.run(
        [bare_environment(tmp_path / "bare"), "demo/demo.py"],
        cwd=repository,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        umask=0o002,  # as many distributions have it
    )
    assert process.returncode == 0, process.stdout + process.stderr
    rows = table(process.stdout)
    assert list(rows) == list(ROWS)
    for title, expected in ROWS.items():
        *shown, _seconds, started_by, good = rows[title]
        assert (*shown, started_by) == expected
        assert good == "yes"
    history = process.stdout[process.stdout.index("$ forewarn history") :]
    places = [history.find(text) for text in HISTORY]
    assert -1 not in places
    assert places == sorted(places)
    assert "\x1b" not in process.stdout  # plain in a pipe
    if not which("haproxy", path=f"{os.environ['PATH']}:/usr/sbin"):
        assert "apt-get install haproxy" in process.stdout
        return
    outcomes = table(process.stdout, "REBOOT OF")
    announced, without = outcomes["announced, with Forewarn"], outcomes["without"]
    assert announced[1:] == ["0", "0", "yes"]
    assert int(announced[0]) > 100
    assert int(without[1]) > 0


def test_missing_haproxy_is_explained(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(repository / "demo"))
    import traffic
    from narration import Narrator

    monkeypatch.setattr(traffic, "program", lambda: None)
    assert traffic.play(Narrator()) == []
    assert "apt-get install haproxy" in capsys.readouterr().out


# A shell that starts a command in the background has it ignore SIGINT, and so does what that command starts.
BACKGROUND = ("sh", "-c", """trap '' INT; exec "$@" """, "sh")


@pytest.mark.parametrize(
    ("number", "shell"),
    [(signal.SIGINT, ()), (signal.SIGTERM, ()), (signal.SIGINT, BACKGROUND)],
    ids=["SIGINT", "SIGTERM", "SIGINT-in-the-background"],
)
@pytest.mark.in_turn(3)
def test_interrupted_demo_leaves_no_process_or_file(
    repository: Path, tmp_path: Path, number: signal.Signals, shell: tuple[str, ...]
) -> None:
    with subprocess.Popen(
        [*shell, sys.executable, "-u", "demo/demo.py"],
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
    assert psutil.wait_procs(started, timeout=30)[1] == []
    assert list(tmp_path.iterdir()) == []


def stamp(seconds: float) -> dict[str, float]:
    """Return a time as the emulator's control API writes it."""
    return {"wall": 1_800_000_000.0 + seconds, "monotonic": seconds}


class Records:
    """The records of one reboot of web_0, drained and approved, with an outage and a kill before it.

    It stands for the stage, the emulator and the pool.
    """

    def __init__(self) -> None:
        self.event: dict[str, Any] = {
            "event_id": "A",
            "status": "Finished",
            "approvals": [{"vm": "web_0", "at": stamp(20.5)}],
            "started_by": "approval",
            "started": stamp(21.0),
            "ended": stamp(24.0),
            "not_before": 1_800_000_035,
            "visible_since": {"web_0": stamp(20.0), "web_1": stamp(20.0)},
        }
        self.log: list[dict[str, Any]] = [self.poll(number, at, status) for number, (at, status) in enumerate(POLLS, 1)]
        self.log.append({**self.poll(99, 20.5, 200), "method": "POST", "event_ids": ["A"]})
        decision = {"output": "approve", "rule": "reboot", "status": "Scheduled", "reason": "a drain"}
        self.lines: dict[str, list[dict[str, Any]]] = {
            "decision": [
                {**decision, "eligibility": eligibility} for eligibility in ("preparing", "preparing", "approve")
            ],
            "event-gone": [{"outcome": "finished"}],
            "poll-failed": [{}],
            "poll-recovered": [{}],
            "hook-left-over": [{}],
        }
        self.entries: list[dict[str, Any]] = [
            self.entry("hook-started", 20.1, phase="prepare", hook="run /x/drain", attempt=1),
            self.entry("hook-started", 20.3, phase="prepare", hook="run /x/drain", attempt=2),
            self.entry("hook-ended", 20.4, phase="prepare", hook="run /x/drain", attempt=2, result="succeeded"),
            self.entry("approved", 20.5),
            self.entry("hook-started", 24.1, phase="recover", hook="run /x/undrain", attempt=1),
            self.entry("hook-ended", 24.2, phase="recover", hook="run /x/undrain", attempt=1, result="succeeded"),
        ]
        self.kept: list[dict[str, Any]] = [{"event_id": "A", "outcome": "finished", "entries": self.entries}]
        self.runner: list[dict[str, Any]] = [self.entry("runner-started", 0.0), self.entry("runner-started", 20.2)]
        self.in_pool: list[str] = ["web_0"]
        self.connected: list[Path] = []

    @staticmethod
    def entry(kind: str, at: float, **fields: object) -> dict[str, Any]:
        moment = datetime.fromtimestamp(stamp(at)["wall"], timezone.utc).isoformat(timespec="milliseconds")
        return {"kind": kind, "at": moment.replace("+00:00", "Z"), "fields": fields}

    def history(self, _vm: str) -> dict[str, Any]:
        return {"events": self.kept, "runner": self.runner}

    def members(self) -> list[str]:
        return self.in_pool

    def users(self) -> list[Path]:
        return self.connected

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
    "a late approval": lambda records: records.event["approvals"][0].update(at=stamp(41.0)),
    "an approval sent twice": lambda records: records.log.append(records.log[-1]),
    "an approval refused": lambda records: records.log[-1].update(status=400),
    "another rule": lambda records: records.lines["decision"][0].update(rule="otherwise"),
    "another decision": lambda records: records.lines["decision"][0].update(output="hold"),
    "another eligibility": lambda records: records.lines["decision"][0].update(eligibility="not-ours"),
    "no eligibility that waits": lambda records: records.lines["decision"].pop(0) and records.lines["decision"].pop(0),
    "no decision": lambda records: records.lines["decision"].clear(),
    "another end, for the runner": lambda records: records.lines["event-gone"][0].update(outcome="cancelled"),
    "a fault that was not meant": lambda records: records.log[0].update(status=500),
    "no backoff": lambda records: records.log[4].update(received=stamp(6.0)),
    "an outage without an end": lambda records: records.lines["poll-recovered"].clear(),
    "a drain that was not told its attempt": lambda records: records.entries[1]["fields"].update(attempt=1),
    "a drain that failed": lambda records: records.entries[2]["fields"].update(result="failed"),
    "no second drain": lambda records: records.entries.pop(2) and records.entries.pop(1),
    "no recovery": lambda records: records.entries.pop() and records.entries.pop(),
    "an approval before the drain": lambda records: records.entries[2].update(at=records.entry("", 20.7)["at"]),
    "a recovery before the end": lambda records: records.entries[4].update(at=records.entry("", 23.0)["at"]),
    "an approval that was not kept": lambda records: records.entries.pop(3),
    "an approval kept twice": lambda records: records.entries.append(records.entries[3]),
    "another end, in the journal": lambda records: records.kept[0].update(outcome="cancelled"),
    "no journal of it": lambda records: records.kept.clear(),
    "a journal that began anew": lambda records: records.kept.append(records.kept[0]),
    "a runner that was stopped": lambda records: records.runner.insert(1, records.entry("runner-stopped", 20.2)),
    "a runner that nobody started": lambda records: records.runner.append(records.entry("runner-started", 22.0)),
    "a VM that is not back in the pool": lambda records: records.in_pool.clear(),
    "a user who was not waited for": lambda records: records.connected.append(Path("web_0-1")),
    "a hook that nobody ended": lambda records: records.lines["hook-left-over"].clear(),
}


@pytest.fixture
def judge(repository: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Records], list[str]]:
    """Return a function that returns what the demo finds wrong with records."""
    monkeypatch.syspath_prepend(str(repository / "demo"))
    from acts import Expectation
    from verify import judge as judge_acts

    drains = [("drain", 1, None), ("drain", 2, "succeeded"), ("undrain", 1, "succeeded")]
    expected = Expectation(
        title="a reboot",
        event_id="A",
        resources=["web_0"],
        output="approve",
        rule="reboot",
        eligibilities={"web_0": ["preparing", "approve"]},
        approved_by="web_0",
        within=20.0,
        hooks={"web_0": drains},
    )

    def differences(records: Records) -> list[str]:
        acts: Any = SimpleNamespace(
            stage=records, pool=records, runners=["web_0"], kills={"web_0": 1}, expected=[expected], adhoc_decisions={}
        )
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
