# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each row of the table in docs/operations.md: when /healthz and /readyz say no."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest
from forewarn.events import Event
from forewarn.runner import event_record as states
from forewarn.runner.event_record import EventRecord
from forewarn.runner.hooks.plan import Plan
from forewarn.runner.hooks.run import Run
from forewarn.runner.telemetry.readiness import Readiness
from tools.fixtures.clocks import ManualClocks

LEAD = 60.0
DRAIN = {"run": ["/usr/local/bin/drain"]}


def record(
    clocks: ManualClocks, state: str = states.SEEN, *, left: float = 720.0, drill: bool = False, **event: Any
) -> EventRecord:
    """Return an event of web_0 in 12 minutes, or some seconds."""
    at = datetime.fromtimestamp(clocks.wall() + left, timezone.utc)
    fields = {"event_type": "Reboot", "event_status": "Scheduled", "resources": ("WEB_0",), "not_before": at, **event}
    made = EventRecord(1, Event("A", **fields), clocks.stamp(), drill)
    made.state = state
    return made


def prepared(made: EventRecord, status: str) -> EventRecord:
    run = Run("prepare", "web-tier", "drain", DRAIN)
    run.status, run.attempts = status, 0 if status == "waiting" else 1
    made.plan = Plan([run])
    return made


def ready(clocks: ManualClocks, *records: EventRecord, vm_name: str | None = "web_0", **options: Any) -> bool:
    readiness = Readiness(clocks, LEAD, **options)
    readiness.report_alive(records, vm_name, 1.0)
    return readiness.ready()


OTHERS: dict[str, Any] = {"resources": ("web_1",)}


@pytest.mark.parametrize(
    ("state", "hook", "event", "expected"),
    [
        # An event that is far away changes nothing.
        (states.SEEN, None, {}, True),
        (states.HELD, None, {}, True),
        (states.SEEN, None, {"not_before": None}, True),
        (states.HELD, None, {"not_before": None}, True),
        # A preparation counts from its first hook on, until the recovery has ended.
        (states.SEEN, "waiting", {}, True),
        (states.PREPARING, "running", {}, False),
        (states.PREPARED, "succeeded", {}, False),
        (states.FAILED, "failed", {}, False),
        (states.RECOVERING, "succeeded", {}, False),
        # Without hooks the approval or the start counts, before any processing too; and what is soon, as a Preempt.
        (states.APPROVED, None, {}, False),
        (states.STARTED, None, {}, False),
        (states.SEEN, None, {"event_status": "Started", "not_before": None}, False),
        (states.SEEN, None, {"event_type": "Preempt", "left": 30.0}, False),
        # Events of other VMs do not count, nor what a witness has prepared.
        (states.APPROVED, None, {**OTHERS, "left": 5.0}, True),
        (states.STARTED, None, {**OTHERS, "left": 5.0}, True),
        (states.RECOVERING, "succeeded", OTHERS, True),
    ],
)
def test_event_disturbs_by_state_hook_and_time(
    clocks: ManualClocks, state: str, hook: str | None, event: dict[str, Any], expected: bool
) -> None:
    made = record(clocks, state, **event)
    assert ready(clocks, made if hook is None else prepared(made, hook)) is expected
    assert ready(clocks), "without an event"


@pytest.mark.parametrize("state", [states.SEEN, states.HELD])
def test_held_event_counts_within_the_lead(clocks: ManualClocks, state: str) -> None:
    """A policy without hooks or approvals drains by the probe alone."""
    held = record(clocks, state)
    readiness = Readiness(clocks, LEAD)
    readiness.report_alive([held], "web_0", 3600.0)
    clocks.now += 659
    assert readiness.ready(), "61 s before NotBefore"
    clocks.now += 2
    assert not readiness.ready(), "59 s before it; and nobody had to turn for that"
    clocks.now += 300
    assert not readiness.ready(), "NotBefore has passed, and it may start at any moment"


def test_held_event_without_a_lead_counts_from_notbefore(clocks: ManualClocks) -> None:
    readiness = Readiness(clocks, 0.0)
    readiness.report_alive([record(clocks)], "web_0", 3600.0)
    clocks.now += 719
    assert readiness.ready()
    clocks.now += 2
    assert not readiness.ready()


def test_the_one_event_that_counts_is_enough(clocks: ManualClocks) -> None:
    assert not ready(clocks, record(clocks, resources=("web_1",)), record(clocks, states.STARTED), record(clocks))


def test_restart_remembers_the_vm_name(clocks: ManualClocks) -> None:
    started = record(clocks, states.STARTED)
    readiness = Readiness(clocks, LEAD, "web_0")
    readiness.report_alive([started], None, 1.0)
    assert not readiness.ready()
    readiness.report_alive([started], "web_7", 1.0)
    assert readiness.ready(), "the metadata know better"
    readiness.report_alive([started], None, 1.0)
    assert readiness.ready()


def test_drill_counts_except_in_a_dry_run(clocks: ManualClocks) -> None:
    drill = prepared(record(clocks, states.PREPARING, drill=True), "running")
    assert not ready(clocks, drill)
    assert ready(clocks, drill, drills=False)


def test_before_the_first_turn_it_is_neither(clocks: ManualClocks) -> None:
    readiness = Readiness(clocks, LEAD)
    assert (readiness.alive(), readiness.ready()) == (False, False)


def test_stuck_loop_is_not_alive(clocks: ManualClocks) -> None:
    readiness = Readiness(clocks, LEAD)
    readiness.report_alive([], "web_0", 60.0)
    clocks.now += 60 + 14
    assert readiness.alive()
    clocks.now += 2
    assert not readiness.alive()
    assert readiness.ready(), "what is not known to be disturbed is not taken out"
    readiness.report_alive([], "web_0", 60.0)
    assert readiness.alive()
