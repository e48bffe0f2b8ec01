# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Failing recoveries: their hooks, why they fail, when they are retried, and the commands to act on them."""

from __future__ import annotations

import math
from typing import Any

from ..runner.clocks import Clocks
from ..runner.event_record import RECOVERING
from ..runner.hooks.plan import Plan
from ..runner.hooks.recovery_requests import ANSWERS, unfinished
from ..runner.hooks.run import FAILED, RECOVER, RUNNING, Run
from ..runner.journal.reader import JournalEntry, JournalReader
from ..runner.journal.schema import EventRow
from ..texts import duration_text
from .output.page import Page, iso
from .runner_state import event_id_of, hook_text, number_of, object_of, of_event, text_of

_ENTRIES = 100  # the newest, which include the latest end of a hook


class FailingRecoveries:
    """Reads them from a journal. ``works``: a runner is running. ``which``: the options that select the state."""

    def __init__(self, journal: JournalReader, clocks: Clocks, *, works: bool, which: str = "") -> None:
        self._journal = journal
        self._clocks = clocks
        self._works = works
        self._which = which

    def failing(self, record: EventRow) -> list[dict[str, Any]]:
        """Return the recover hooks of an event that need a person's attention, as ``status --json`` shows them."""
        runs = [run for run in tried(record) if run.status == FAILED or run.failing]
        return [self._as_json(record, run) for run in runs]

    def tried(self, record: EventRow) -> list[dict[str, Any]]:
        """Return the recover hooks of an event that have run but not succeeded, as ``recover --json`` shows them."""
        return [self._as_json(record, run) for run in tried(record)]

    def next_attempt(self, record: EventRow, run: Run) -> tuple[str, float | None]:
        """Return when a recover hook is tried next, as text and in seconds (None if unknown)."""
        if run.status == RUNNING:
            return "it runs now", None
        if run.exhausted:
            return "none: it is not retried automatically", None
        if not self._works:
            return "as soon as a runner is at work", None
        left = self._seconds_left(record, run)
        if left is None:
            return "within an hour", None
        return (f"in {duration_text(math.ceil(left))}" if left > 0 else "now"), left

    def _seconds_left(self, record: EventRow, run: Run) -> float | None:
        if not run.failures:  # requested by a person, or interrupted
            return 0.0
        hook = hook_text({"hook": run.hook})
        failed = self._failed(record.id, hook) or self._failed(None, hook)  # the run may have been another event's
        if failed is None:
            return None
        for kind, record_id in (("runner-started", None), (ANSWERS["again"], record.id)):
            since = next(self._journal.entries(kinds=(kind,), record_id=record_id, limit=1, newest_first=True), None)
            if since is not None and since.id > failed.id:
                return 0.0
        pause = number_of(failed.fields, "retry_seconds") if failed.record_id == record.id else None
        return max(0.0, (run.pause() if pause is None else pause) - self._clocks.since(failed.stamp))

    def _failed(self, record_id: int | None, hook: str) -> JournalEntry | None:
        """Return the latest failure of a recover hook, for one event or for any."""
        entries = self._journal.entries(record_id=record_id, kinds=("hook-ended",), limit=_ENTRIES, newest_first=True)
        found = (entry for entry in entries if entry.fields.get("phase") == RECOVER)
        return next((entry for entry in found if text_of(entry.fields, "hook") == hook), None)

    def _as_json(self, record: EventRow, run: Run) -> dict[str, Any]:
        event = object_of(record.data, "event")
        event_id = event_id_of(record)
        text, seconds = self.next_attempt(record, run)
        return {
            "life_id": record.id,
            "event_id": event_id,
            "event_type": text_of(event, "EventType") or None,
            "drill": record.data.get("drill") is True,
            "hook": hook_text({"hook": run.hook}),
            "policy": run.policy,
            "rule": run.rule,
            "state": run.status,
            "attempts": run.attempts,
            "failures": run.failures,
            "reason": run.reason,
            "next_attempt": text,
            "next_attempt_at": None if seconds is None else iso(self._clocks.wall() + seconds, "milliseconds"),
            "commands": [
                of_event("recover", event_id, f"--again{self._which}"),
                of_event("recover", event_id, f"--dealt-with 'what was done'{self._which}"),
            ],
        }


def tried(record: EventRow) -> list[Run]:
    """Return the recover hooks of an event that have run but not succeeded; none if its plan is unreadable."""
    if record.state != RECOVERING:
        return []
    try:
        return unfinished(Plan.of(record.data))
    except (KeyError, TypeError, IndexError, ValueError, AttributeError):  # written by a newer version, or damaged
        return []


def sentence(recovery: dict[str, Any]) -> str:
    """Return a sentence on a failing recovery."""
    failures = recovery["failures"]
    times = "" if failures < 2 else " twice" if failures == 2 else f" {failures} times"
    why = recovery["reason"] or "no reason given"
    return f"{name(recovery)}: recover hook {recovery['hook']} failed{times}: {why}"


def name(recovery: dict[str, Any]) -> str:
    """Return the name of a recovery's event: its type and id."""
    return f"{recovery['event_type'] or 'event'} {recovery['event_id']}"


def show(page: Page, recoveries: list[dict[str, Any]]) -> None:
    """Write each recovery, and once per event the commands to type."""
    for number, recovery in enumerate(recoveries):
        following = recoveries[number + 1] if number + 1 < len(recoveries) else None
        failures = recovery["failures"]
        if number == 0 or recoveries[number - 1]["life_id"] != recovery["life_id"]:
            page.line(name(recovery) + (" (a drill)" if recovery["drill"] else ""), "bold")
        failed = f"{failures} {'time' if failures == 1 else 'times'}: " if failures else ""
        page.hanging("  hook          ", recovery["hook"])
        page.hanging("  failed        ", failed + (recovery["reason"] or "no reason given"), "red")
        page.hanging("  next attempt  ", recovery["next_attempt"])
        if following is None or following["life_id"] != recovery["life_id"]:
            for lead, command in zip(("run it now", "or end it"), recovery["commands"]):
                page.hanging(f"  {lead:<14}", command)
