# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a long journal costs the start of the runner: 10,000 events that are over, beside an empty journal."""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

from benchmarks.processes import RUNNER, artifact_of, bare_socket
from benchmarks.report import AT_MOST, Goal, Quantity, Report
from benchmarks.rules import POLICY
from benchmarks.startup import first_request
from forewarn.events import Event
from forewarn.runner.clocks import Clocks
from forewarn.runner.event_record import FINISH, FINISHED, START, EventRecord
from forewarn.runner.journal.writer import Journal

RUNS = 20
WARM_UP_RUNS = 2
EVENTS = 10_000


def run() -> Report:
    """Start runners on both in turn. A start includes reading the events to resume."""
    times: tuple[list[float], list[float]] = ([], [])
    with (
        artifact_of(POLICY) as artifact,
        bare_socket() as (server, endpoint),
        tempfile.TemporaryDirectory(prefix="forewarn-bench-") as directory,
    ):
        states = (Path(directory) / "long", Path(directory) / "empty")
        for state, events in zip(states, (EVENTS, 0)):
            state.mkdir(mode=0o700)
            fill(state, events)
        size = (states[0] / "journal.db").stat().st_size / 2**20
        for _ in range(WARM_UP_RUNS + RUNS):
            for state, found in zip(states, times):
                found.append(first_request([*RUNNER, str(artifact), "--endpoint", endpoint], server, state))
    long, empty = (statistics.median(found[WARM_UP_RUNS:]) for found in times)
    return Report(
        "Starting with a long journal",
        [Quantity(f"{EVENTS:,} events", long * 1e3, "ms"), Quantity("empty journal", empty * 1e3, "ms")],
        [Goal("start", long / empty, "start with an empty journal", AT_MOST, 2)],
        [f"Medians of {RUNS} starts each, in turn, to the first request. The long journal has {size:.0f} MiB."],
    )


def fill(state: Path, events: int) -> None:
    """Write a journal of events that are over."""
    clocks = Clocks()
    journal = Journal(str(state), clocks, max_bytes=2**40)
    journal.open()
    for number in range(events):
        record = EventRecord(number + 1, Event(f"{number:08X}", "Freeze", resources=("web_0",)), clocks.stamp())
        for line in ("decision", "approval-sending", "approved", "event-gone"):
            journal.note(line, record.identifier, event_id=record.event.event_id, reason="as the policy says")
        record.outcome = FINISHED
        record.step(START)
        record.step(FINISH)
        journal.save(record.as_row())
        if number % 1000 == 0:
            journal.commit()
    journal.note("runner-stopped")
    journal.commit()
    journal.close()
