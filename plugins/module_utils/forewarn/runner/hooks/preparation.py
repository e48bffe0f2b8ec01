# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prepares for listed events: starts the prepare hooks that are due, while there is time before NotBefore.

Preparations of different events run side by side, the soonest NotBefore first. None waits for a later event's hooks.
A preparation waits for a running recovery that it shares a recover hook with. If that would leave it no time, the
recovery is ended, and runs again afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator

from .. import event_record as states
from ..clocks import Clocks
from ..event_record import EventRecord
from ..journal.writer import Journal
from . import commands
from .open_records import RESUMING, OpenRecords
from .run import FAILED, PREPARE, SUCCEEDED, WAITING, Run
from .running_hooks import GRACE_SECONDS, MARGIN_SECONDS, MIN_PAUSE_SECONDS, MOST_RUNNING, RunningHook, RunningHooks

# With less time than this no prepare hook is started.
SHORTEST_SECONDS = 1.0


class Preparation:
    """The prepare hooks of all listed events. For the main thread alone."""

    def __init__(self, records: OpenRecords, running: RunningHooks, journal: Journal, clocks: Clocks) -> None:
        self._records = records
        self._running = running
        self._journal = journal
        self._clocks = clocks

    def advance(self) -> None:
        """End what has to end before NotBefore, and start what is due."""
        self._enforce_not_before()
        for record in sorted((record for record in self._records if record.listed), key=lambda each: each.urgency):
            self._prepare(record)

    def waits(self) -> Iterator[float | None]:
        """Yield the seconds until a hook may be started, or has to end, by the time alone."""
        now = self._clocks.monotonic()
        for hook in self._running.hooks.values():
            if hook.end_at is not None and not hook.interrupted:
                yield hook.end_at - now
        for record in self._records:
            if record.confirmed and record.may_prepare and not record.undecided:
                yield record.plan.retry_in(now, PREPARE)
                yield self.begins_in(record) or None

    def begins_in(self, record: EventRecord) -> float:
        """Return the seconds until the first stage that waits for its time begins, 0 if none does."""
        left = self._running.seconds_to_not_before(record.event)
        waits = (stage.begins_in(left) for stage in record.plan.wanted_stages())
        return min((wait for wait in waits if wait > 0.0), default=0.0)

    def may_begin(self, record: EventRecord) -> bool:
        """Return whether the time has come for one of its stages."""
        left = self._running.seconds_to_not_before(record.event)
        return any(stage.begins_in(left) <= 0.0 for stage in record.plan.wanted_stages() if stage.prepare)

    def is_urgent(self, record: EventRecord) -> bool:
        """Return whether its hooks may need all the time that is left."""
        left, needed = self._running.seconds_left(record.event), self._needed_seconds(record)
        return left is not None and left < needed + MARGIN_SECONDS and needed > 0.0

    def _needed_seconds(self, record: EventRecord) -> float:
        left = {id(run): run for stage in record.plan.wanted_stages() for run in stage.prepare}
        return sum(commands.timeout(run.hook) for run in left.values() if run.status != SUCCEEDED)

    def is_late(self, record: EventRecord) -> bool:
        """Return whether no time is left to start a prepare hook, as NotBefore and the clock are now."""
        left = self._running.seconds_left(record.event)
        return left is not None and left < SHORTEST_SECONDS

    def update_state(self, record: EventRecord) -> bool:
        """Update the event's state from its hooks; return whether it is prepared, or can no longer be."""
        state, run = record.plan.preparation(self.is_late(record))
        if not record.plan.wanted_stages():
            reset = state == SUCCEEDED and record.state in (states.PREPARING, states.PREPARED, states.FAILED)
            if reset:
                self._records.step(record, states.RESET, "the policies no longer ask to prepare")
            return reset
        if state == SUCCEEDED:
            self._records.step(record, states.READY, "every prepare hook succeeded")
        elif state == FAILED:
            why = "" if run is None else f"{commands.describe(run.hook)}: {run.reason}"
            self._records.step(record, states.FAIL, f"a prepare hook failed: {why}")
        self._journal.commit()
        return state in (SUCCEEDED, FAILED)

    def _enforce_not_before(self) -> None:
        """End the prepare hooks whose NotBefore is near. A clock that was set ends nothing."""
        now = self._clocks.monotonic()
        for hook in self._running.hooks.values():
            event = hook.record.event
            if hook.run.phase != PREPARE:
                continue
            if hook.not_before != event.not_before and hook.record.may_prepare and not event.problems:
                left = self._running.seconds_left(event)
                hook.not_before = event.not_before
                hook.end_at = None if left is None else now + left
            if hook.end_at is not None and now >= hook.end_at:
                self._running.interrupt(hook, "NotBefore is near")

    def _prepare(self, record: EventRecord) -> None:
        record.obstacle = ""
        if not record.confirmed or not record.may_prepare or record.undecided:
            return
        if self._journal.doubt(record.event.key) is not None:
            return
        left = self._running.seconds_left(record.event)
        late = left is not None and left < SHORTEST_SECONDS
        before_not_before = None if left is None else left + MARGIN_SECONDS
        now = self._clocks.monotonic()
        if left is not None:  # NotBefore may have been brought forward since it failed
            record.plan.retry_by(now + max(left / 2.0, MIN_PAUSE_SECONDS))
        due = [] if late else record.plan.due_to_prepare(now, before_not_before)
        for run in due:
            record.obstacle = self._obstacle(record, run, left)
            if record.obstacle:
                return
            record.plan.enter_stages(run, before_not_before)
            self._running.start(record, run, left)
        if late and record.plan.preparation(True)[0] == WAITING:
            self._note_no_time(record)
        else:
            self.update_state(record)

    def _obstacle(self, record: EventRecord, run: Run, left_seconds: float | None) -> str:
        """Return why a prepare hook that is due cannot start now, "" if it can; make sure that it can soon."""
        if self._journal.trouble is not None:
            return f"nobody could promise its recovery: {self._journal.trouble}"
        if self._journal.late_records:
            return RESUMING
        if record.group_blocker is not None:
            return record.group_blocker.reason
        stages = [stage for stage in record.plan.wanted_stages() if run in stage.prepare]
        recovery = self._running.recovering({theirs.key for stage in stages for theirs in stage.recover})
        if recovery is not None:
            self._preempt(record, recovery, left_seconds)
            text = commands.describe(recovery.run.hook)
            return f"waits until {text}, the recovery of event {recovery.record.event.event_id}, has ended"
        if not self._running.make_room(record):
            return f"waits for one of the {MOST_RUNNING} hooks that run and are due as soon"
        return ""

    def _preempt(self, record: EventRecord, recovery: RunningHook, left_seconds: float | None) -> None:
        """End a recovery if waiting for it could take the time that the preparation needs.

        A drill's preparation waits for a real event's recovery. A recovery that may run once only is waited for too,
        unless it is a drill's and in the way of a real event.
        """
        overtakes = recovery.record.drill and not record.drill
        if (
            left_seconds is None
            or (record.drill and not recovery.record.drill)
            or (recovery.run.once_only and not overtakes)
        ):
            return
        longest = recovery.times_out_at - self._clocks.monotonic() + GRACE_SECONDS
        if left_seconds < self._needed_seconds(record) + longest:
            self._running.interrupt(recovery, f"event {record.event.event_id} needs the time before its NotBefore")

    def _note_no_time(self, record: EventRecord) -> None:
        """Mark the event as one without time to prepare, unless NotBefore is postponed or the clock put right."""
        record.obstacle = "there was no time left before NotBefore"
        runs = [run for stage in record.plan.wanted_stages() for run in stage.prepare]
        tried = next((run for run in runs if run.attempts and run.reason), None)
        if tried is not None:
            what = "had failed" if tried.failures else "was ended"
            record.obstacle += f"; {commands.describe(tried.hook)} {what}: {tried.reason}"
        if record.state in (states.SEEN, states.HELD, states.PREPARED, states.APPROVED):
            self._records.step(record, states.BEGIN, "no time left to prepare")
        self._records.step(record, states.FAIL, record.obstacle)
