# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Recovers after events that have left the list: starts the recover hooks that are due, until all have succeeded.

A recovery does not undo what another listed event has prepared: a recover hook that such an event has too is left to
it. A recover hook that several events are due to run runs once, for all of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from .. import event_record as states
from ..clocks import Clocks
from ..event_record import EventRecord
from ..journal.writer import Journal
from . import commands
from .open_records import OpenRecords
from .plan import BY_A_PERSON
from .run import FAILED, PREPARE, RECOVER, WAITING, Run
from .running_hooks import MOST_RUNNING, RunningHooks


class Recovery:
    """The recover hooks of all events that are being recovered. For the main thread alone."""

    def __init__(self, records: OpenRecords, running: RunningHooks, journal: Journal, clocks: Clocks) -> None:
        self._records = records
        self._running = running
        self._journal = journal
        self._clocks = clocks

    def advance(self) -> None:
        """Start what is due, and close the records of events that have recovered."""
        for record in [record for record in self._records if record.state == states.RECOVERING]:
            self._recover(record)

    def waits(self) -> Iterator[float | None]:
        """Yield the seconds until a hook may be started by the time alone."""
        now = self._clocks.monotonic()
        for record in self._records:
            if record.state == states.RECOVERING:
                yield record.plan.retry_in(now, RECOVER)

    def _recover(self, record: EventRecord) -> None:
        if record.plan.active_runs(PREPARE):
            return  # it is being ended
        if self._journal.doubt(record.event.key) is not None and not record.plan.is_recovered():
            return  # until a person has seen to it
        while self._leave_out_shared(record):
            pass  # what comes after it is due now
        for run in record.plan.due_to_recover(self._clocks.monotonic()):
            obstacle = self._obstacle(record, run)
            if obstacle and obstacle != run.waits_for:
                self._records.write("hook-waits", record, {"hook": commands.describe(run.hook), "reason": obstacle})
            run.waits_for = obstacle
            if obstacle or self._running.recovering({run.key}):
                continue  # if another event's recovery runs the same hook now, this one waits for its result
            if len(self._running.hooks) < MOST_RUNNING:
                self._running.start(record, run, sharing=self._sharing(record, run))
        if record.plan.is_recovered() and not record.nameless:
            by_hand = any(run.reason.startswith(BY_A_PERSON) for run in record.plan.of_phase(RECOVER))
            self._records.close(record, BY_A_PERSON if by_hand else "recovered")

    def _obstacle(self, record: EventRecord, run: Run) -> str:
        """Return why a recover hook that is due may not be started yet, "" if it may."""
        keeper = self._still_needed_by(record, run)
        if keeper is not None:  # what a drill runs may do less than what a real event needs
            return f"it would undo what the drill {keeper.event.event_id}, which is listed, has prepared"
        keeper = self._still_needed_by(record, run, unread=self._journal.has_unread_records)
        if keeper is not None:
            event_id = keeper.event.event_id
            return f"the journal cannot be read: event {event_id}, which is listed, may have been prepared"
        if run.once_only and self._journal.trouble is not None:
            return "the journal cannot be written, and the hook may run once only"
        return ""

    def _leave_out_shared(self, record: EventRecord) -> bool:
        """Leave the recover hooks that come next to listed events that need them too; return whether there were any.

        This includes hooks that wait to be tried again, but not those that wait for a person.
        """
        left = False
        for run in record.plan.heads():
            if run.status not in (WAITING, FAILED) or run.exhausted:
                continue
            keeper = self._still_needed_by(record, run)
            if keeper is not None and (record.drill or not keeper.drill):
                why = f"left to event {keeper.event.event_id}, which has prepared it too"
                self._records.leave_out(record, run, why)
                left = True
        return left

    def _still_needed_by(self, record: EventRecord, run: Run, *, unread: bool = False) -> EventRecord | None:
        """Return a listed event whose preparation the recover hook would undo, or None.

        With ``unread``, an event counts also when an earlier runner may have prepared it whose journal cannot be read.
        """
        for other in self._records:
            if other is record or not other.listed:
                continue
            for stage in other.plan.stages:
                if (stage.begun or unread) and any(theirs.key == run.key for theirs in stage.recover):
                    return other
        return None

    def _sharing(self, record: EventRecord, run: Run) -> list[tuple[EventRecord, Run]]:
        """Return the same recover hook of other events that are due to run it: one run is enough for all."""
        return [
            (other, theirs)
            for other in self._records
            if other is not record and other.drill == record.drill and other.state == states.RECOVERING
            if not other.plan.active_runs(PREPARE)
            for theirs in other.plan.heads()
            if theirs.key == run.key and theirs.status in (WAITING, FAILED)
        ]
