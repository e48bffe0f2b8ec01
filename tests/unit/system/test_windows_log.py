# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The log of a service of Windows: each line is an event, and a line of a file."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from forewarn.runner.telemetry.system_log import SystemLog
from forewarn.system.windows import log_destination
from forewarn.system.windows.log_destination import FILE, LogDestination


class EventLog:
    """Keeps events instead of Windows."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str, str]] = []
        self.full = False

    def write(self, level: str, name: str, text: str) -> None:
        if self.full:
            raise OSError(1502, "The event log file is full.")
        self.events.append((level, name, text))


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> EventLog:
    events = EventLog()
    monkeypatch.setattr(log_destination, "EventLog", lambda: events)
    return events


def log(directory: Path) -> SystemLog:
    destination = LogDestination(str(directory))
    return SystemLog(io.StringIO(), destination)  # type: ignore[arg-type]  # on Linux the log has another destination


def test_line_is_an_event_and_a_line(events: EventLog, tmp_path: Path) -> None:
    ours = log(tmp_path)
    ours.warning("hook-ended", hook="run drain", output='a "b" ä\n\ud800', exit_code=None, seconds=1.5)
    text = 'hook-ended hook="run drain" output="a \\"b\\" \\u00e4\\n\\ud800" seconds=1.5'
    assert events.events == [("warning", "hook-ended", text)]
    (line,) = (tmp_path / FILE).read_text().splitlines()
    found = json.loads(line)
    assert (found["level"], found["line"], found["output"]) == ("warning", "hook-ended", 'a "b" ä\n\ud800')
    assert ours.lost == 0


def test_full_event_log_costs_no_line(events: EventLog, tmp_path: Path) -> None:
    events.full = True
    ours = log(tmp_path)
    ours.info("started")
    assert '"line": "started"' in (tmp_path / FILE).read_text()
    assert ours.lost == 0


def test_line_is_lost_if_neither_takes_it(events: EventLog, tmp_path: Path) -> None:
    (tmp_path / "log").touch()
    ours = log(tmp_path / "log")
    ours.info("started")
    assert ([event[1] for event in events.events], ours.lost) == (["started"], 0)
    events.full = True
    ours.info("document")
    assert ours.lost == 1
