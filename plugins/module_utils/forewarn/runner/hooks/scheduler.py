# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Drives the plans of all records: starts hooks when they are due, takes in their outcomes, keeps the journal.

The promises, in the order in which they are kept:

- What is about to be done is in the journal before it is done. If the journal cannot be written, nothing is prepared
  that would have to be recovered; recoveries that are due run all the same, but those that may run once only.
- Preparations of different events run side by side, the soonest NotBefore first. None waits for a later event's hooks,
  nor for a recovery if that leaves it no time: such a recovery is ended, and runs again afterwards.
- A recovery does not undo what another listed event has prepared: a recover hook that such an event has too is left to
  it. And what is being undone is not prepared at the same time: a preparation waits for a recover hook that it shares.
- A recover hook that several events are due to run runs once, for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ...errors import InputError
from ...events import Event
from ...policy.decision import Verdict
from .. import event_record as states
from ..clocks import Clocks, Stamp
from ..event_record import EventRecord
from ..journal.writer import EventRow
from ..telemetry.recorder import Recorder
from . import commands, notifications
from . import plan as plans
from .executor import Executor, Outcome, end_leftovers
from .notifications import Notification, Notifications
from .plan import Plan, Run

# A prepare hook is told to end this long before NotBefore, so that it has ended by then: the executor's grace fits in.
MARGIN_SECONDS = 3.0
GRACE_SECONDS = 2.0
# With less time than this no prepare hook is started.
SHORTEST_SECONDS = 1.0
# Hooks at once. Of prepare hooks only those count that are due no later: what is due first always finds room, and 200
# events in one document do not start 200 processes.
MOST_RUNNING = 16
# Of prepare and recover hooks together. Where it is reached, what is due last makes room.
CEILING = 64
SHORTEST_PAUSE_SECONDS = 0.1  # between two looks at what waits for the time: it may have to wait for room as well


@dataclass
class _Running:
    """A hook that runs, by the executor's token. Times are monotonic seconds.

    ``sharing`` are the recover hooks of other events that it stands for. ``interrupted``: it is ended, to run again.
    ``end_at`` is when a prepare hook is ended because ``not_before`` is near, if that is before its own time is over.
    """

    token: int
    record: EventRecord
    run: Run
    started_at: float
    timeout: float
    sharing: Sequence[tuple[EventRecord, Run]]
    not_before: datetime | None
    interrupted: bool = False
    end_at: float | None = None


class HookScheduler:
    """``records`` are the open ones: listed, or recovering. For the main thread alone."""

    def __init__(
        self,
        executor: Executor,
        recorder: Recorder,
        clocks: Clocks,
        settings: commands.HookSettings,
        now: Callable[[], datetime],
    ) -> None:
        self.records: list[EventRecord] = []
        self.vm_name: str | None = None
        self._executor = executor
        self._recorder = recorder
        self._journal, self._log, self._metrics = recorder
        self._clocks = clocks
        self._settings = settings
        self._now = now
        self._running: dict[Hashable, _Running] = {}  # by the executor's token
        self._next_token = 0
        self._notifications = Notifications(executor, self._notification_command, self._notified)

    # What the loop asks for

    def resume(self) -> None:
        """Take up the open records of the journal, as the runner before left them."""
        self.resume_records(self._journal.open())

    def close(self) -> None:
        """End all hooks that run. By the journal they were running, so that the next runner runs them again."""
        self._executor.close()

    def resume_late(self, grace_seconds: float = GRACE_SECONDS) -> list[EventRecord] | None:
        """Take up the records that the journal could not read at the start, and can now; None if there are none."""
        if not self._journal.late:
            return None
        rows, self._journal.late = self._journal.late, []
        return self.resume_records(rows, grace_seconds)

    def resume_records(self, rows: Sequence[EventRow], grace_seconds: float = GRACE_SECONDS) -> list[EventRecord]:
        """Take up records that an earlier runner left; return them. Its hooks that still run have this long to end."""
        taken = []
        found: list[tuple[EventRecord, list[Run]]] = []
        for row in rows:
            try:
                record = EventRecord.of(row)
            except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
                self._log.error("journal-trouble", event_key=row.key, reason=f"an event's record is damaged: {error}")
                self._journal.distrust(row, f"{error.__class__.__name__}: {error}")
                continue
            interrupted = record.plan.interrupted()
            for run in interrupted:
                if run.pid_boot not in (None, self._clocks.boot_id):
                    run.pid = None  # a number of another boot, which may be somebody else's now
            found.append((record, interrupted))
        processes = [(run.pid, run.pid_started) for _record, runs in found for run in runs if run.pid is not None]
        ended = end_leftovers(processes, grace_seconds)
        for record, interrupted in found:
            taken.append(record)
            for run in interrupted:
                if run.pid in ended:
                    fields = {
                        "hook": commands.describe(run.hook),
                        "pid": run.pid,
                        "reason": "it was still running, and was ended",
                    }
                    self._record("hook-left-over", record, fields, failed=True)
                run.pid = run.pid_started = None
            self.records.append(record)
            self._log.info("resumed", event_id=record.event.event_id, state=record.state, drill=record.drill or None)
            if record.state == states.PREPARING:  # killed between the end of its last hook and what follows from that
                self._look_at_preparation(record)
        return taken

    def supersede(self, record: EventRecord) -> None:
        """Close a record that was begun because an earlier one of the same event could not be read at the time."""
        record.outcome = states.UNSEEN
        self._close(record, "its earlier record was found")

    def ended_before(self, record: EventRecord, over: EventRecord) -> None:
        """End a record that could not be read when its event ended, as the record ``over`` of this runner has noted."""
        under_way = (plans.WAITING, plans.RUNNING, plans.FAILED) if over in self.records else ()
        for run in over.plan.of_phase(plans.RECOVER):
            by_a_person = run.reason.startswith(plans.BY_A_PERSON)
            if run.status in (plans.SUCCEEDED, plans.LEFT, *under_way) or by_a_person:
                for theirs in record.plan.of_phase(plans.RECOVER):
                    if theirs.words == run.words:
                        self._leave(record, theirs, "it was seen to when the event had ended")
        may_have_started = record.approvals > 0 or record.unanswered or over.outcome != states.CALLED_OFF
        outcome = states.UNSEEN if may_have_started else states.CALLED_OFF
        self._end_listing(record, states.FINISHED if record.started_at is not None else outcome)

    def open_record(self, event: Event, drill: bool) -> EventRecord:
        """Begin the record of an event that is listed for the first time."""
        stamp = self._clocks.stamp()
        newest = max((record.identifier for record in self.records), default=0)
        record = EventRecord(max(int(stamp.wall * 1e6), newest + 1), event, stamp, drill)
        self.records.append(record)
        self._journal.save(record.as_row())
        return record

    def step(self, record: EventRecord, what: str, why: str) -> None:
        """Move a record on, and write it down if its state has changed."""
        before = record.state
        if not record.step(what):
            return
        fields = {"from": before, "to": record.state, "why": why}
        if record.plan.runs:  # otherwise the other lines say it all
            self._log.info("state", event_id=record.event.event_id, drill=record.drill or None, **fields)
        self._journal.note("state", record.identifier, **fields)
        self._journal.save(record.as_row())

    def plan(self, record: EventRecord, verdicts: Sequence[Verdict]) -> None:
        """Let the event's plan hold what the verdicts ask for now. It starts with the next ``advance``."""
        if record.may_prepare:
            changed = record.plan.want(verdicts, record.revision)
        else:
            changed = record.plan.want_recovery(verdicts, record.revision)
        if changed:
            self._journal.save(record.as_row())
            self._look_at_preparation(record)

    def content_changed(self, record: EventRecord) -> None:
        """Note that the service lists the event with another content: what was prepared counts no longer."""
        why = "the event's type, resources, source or duration has changed"
        self._log.warning("event-changed", event_id=record.event.event_id, drill=record.drill or None, reason=why)
        self._journal.note("event-changed", record.identifier, event=record.event.as_dict(), reason=why)
        self._end_preparing(record, why)
        record.approved_at = None
        record.reminded = 0
        if record.may_prepare:
            record.plan.want((), record.revision)
        self.step(record, states.RESET, why)
        self._journal.save(record.as_row())

    def started(self, record: EventRecord, at: Stamp | None = None) -> bool:
        """Note that the service lists the event as Started, or did ``at`` a time; return whether that is news."""
        if record.state == states.STARTED:
            return False
        record.started_at = at or self._clocks.stamp()
        record.plan.stop_preparing("the event had started")
        self.step(record, states.START, "the service lists it as Started")
        return True

    def gone(self, record: EventRecord, outcome: str) -> None:
        """Note that the service no longer lists the event: end what prepares, recover what had begun."""
        self._end_listing(record, outcome)
        self.notify(record, notifications.CALLED_OFF if outcome == states.CALLED_OFF else notifications.ENDED)

    def recover_late(self, record: EventRecord, verdicts: Sequence[Verdict]) -> None:
        """Recover what the verdicts recover after an event that had ended before they could be asked for."""
        record.nameless = False
        for run in record.plan.of_phase(plans.RECOVER):
            if run.status == plans.SKIPPED and not run.reason.startswith(plans.BY_A_PERSON):
                run.wait()  # left out when the list was left: what is asked for now may need it
        record.plan.want_recovery(verdicts, record.revision)
        if record.plan.start_recovering(record.may_have_started) or record.plan.running():
            self._journal.save(record.as_row())
        else:
            self._close(record, f"no longer listed: {record.outcome}")

    def _end_listing(self, record: EventRecord, outcome: str) -> None:
        record.outcome = outcome
        record.gone_at = self._clocks.stamp()
        self._end_preparing(record, "the event is no longer listed")
        record.plan.stop_preparing("the event was no longer listed")
        if record.plan.start_recovering(record.may_have_started) or record.plan.running() or record.nameless:
            self.step(record, states.LEAVE, f"no longer listed: {outcome}")
        else:
            self._close(record, f"no longer listed: {outcome}")

    def notify(self, record: EventRecord, occasion: str) -> None:
        """Queue the event's notify hooks: they run when there is room, and nothing waits for them."""
        self._notifications.add(record, occasion)

    def collect(self) -> bool:
        """Take in the hooks that have ended; return whether an event is now prepared, or can no longer be."""
        news = False
        for token, outcome in self._executor.finished():
            if self._notifications.collect(token, outcome):
                continue
            ended = self._running.pop(token)
            self._hook_ended(ended, outcome)
            if ended.run.phase == plans.PREPARE and ended.record.listed:
                news = self._look_at_preparation(ended.record) or news
        return news

    def advance(self) -> None:
        """Start what is due, close what has recovered. Call it after ``collect`` and after each document."""
        self._keep_to_not_before()
        # Preparations first: what one of them has in common with a recovery need not be undone and done again.
        for record in sorted((record for record in self.records if record.listed), key=lambda record: record.urgency):
            self._prepare(record)
        for record in list(self.records):
            if record.state == states.RECOVERING:
                self._recover(record)
        self._notifications.advance()

    def next_in(self) -> float | None:
        """Return the seconds until a hook may be started, or has to end, by the time alone; None if none does."""
        now = self._clocks.monotonic()
        ends = (running.end_at for running in self._running.values() if not running.interrupted)
        waits = [None if end_at is None else end_at - now for end_at in ends]
        for record in self.records:
            if record.state == states.RECOVERING:
                waits.append(record.plan.retry_in(now, plans.RECOVER))
            elif record.confirmed and record.may_prepare and not record.undecided:
                left = self._seconds_to_not_before(record.event)
                begins = (Plan.begins_in(stage, left) for stage in record.plan.wanted())
                waits += [record.plan.retry_in(now, plans.PREPARE), *(wait for wait in begins if wait > 0.0)]
        return min((max(wait, SHORTEST_PAUSE_SECONDS) for wait in waits if wait is not None), default=None)

    def late(self, record: EventRecord) -> bool:
        """Return whether no time is left to start a prepare hook, as NotBefore and the clock are now."""
        left = self._seconds_left(record.event)
        return left is not None and left < SHORTEST_SECONDS

    def begins_in(self, record: EventRecord) -> float:
        """Return the seconds until the first preparation that waits for its time begins, 0 if none does."""
        left = self._seconds_to_not_before(record.event)
        return min((wait for stage in record.plan.wanted() if (wait := Plan.begins_in(stage, left)) > 0.0), default=0.0)

    def idle(self) -> bool:
        """Return whether no hook runs or waits."""
        return not self._running and self._notifications.idle()

    # Preparing

    def _prepare(self, record: EventRecord) -> None:
        record.obstacle = ""
        if not record.confirmed or not record.may_prepare:
            return
        if self._journal.doubt(record.event.key) is not None:
            return
        left = self._seconds_left(record.event)
        late = left is not None and left < SHORTEST_SECONDS
        if record.undecided:
            return
        before_not_before = None if left is None else left + MARGIN_SECONDS
        now = self._clocks.monotonic()
        if left is not None:  # NotBefore may have been brought forward since it failed
            record.plan.hasten(now + max(left / 2.0, SHORTEST_PAUSE_SECONDS))
        due = [] if late else record.plan.due_to_prepare(now, before_not_before)
        for run in due:
            record.obstacle = self._obstacle(record, run, left)
            if record.obstacle:
                return
            record.plan.begin(run, before_not_before)
            self._start(record, run, left)
        if late and record.plan.preparation(True)[0] == plans.WAITING:
            self._no_time(record)
        else:
            self._look_at_preparation(record)

    def _obstacle(self, record: EventRecord, run: Run, left_seconds: float | None) -> str:
        """Return why a prepare hook that is due cannot be started now, "" if it can; make sure that it can soon."""
        if self._journal.trouble is not None:
            return f"nobody could promise its recovery: {self._journal.trouble}"
        if self._journal.late:
            return "what an earlier runner has done is being taken up"
        undoing = self._being_undone(record, run)
        if undoing is not None:
            self._make_way(record, undoing, left_seconds)
            text = commands.describe(undoing.run.hook)
            return f"waits until {text}, the recovery of event {undoing.record.event.event_id}, has ended"
        if not self._has_room(record):
            return f"waits for one of the {MOST_RUNNING} hooks that run and are due as soon"
        return ""

    def _no_time(self, record: EventRecord) -> None:
        """Note that nothing more can be prepared, unless NotBefore is postponed or the clock put right."""
        record.obstacle = "there was no time left before NotBefore"
        asked = [run for stage in record.plan.wanted() for run in stage.prepare]
        tried = next((run for run in asked if run.attempts and run.reason), None)
        if tried is not None:
            what = "had failed" if tried.failures else "was ended"
            record.obstacle += f"; {commands.describe(tried.hook)} {what}: {tried.reason}"
        if record.state in (states.SEEN, states.HELD, states.PREPARED, states.APPROVED):
            self.step(record, states.BEGIN, "no time left to prepare")
        self.step(record, states.FAIL, record.obstacle)

    def _keep_to_not_before(self) -> None:
        """End the prepare hooks whose NotBefore is near. A clock that was set ends nothing."""
        now = self._clocks.monotonic()
        for running in self._running.values():
            event = running.record.event
            if running.run.phase != plans.PREPARE:
                continue
            if running.not_before != event.not_before and running.record.may_prepare and not event.problems:
                left = self._seconds_left(event)
                running.not_before = event.not_before
                running.end_at = None if left is None else now + left
            if running.end_at is not None and now >= running.end_at:
                self._interrupt(running, "NotBefore is near")

    def _end_preparing(self, record: EventRecord, reason: str) -> None:
        """End the prepare hooks of an event that run."""
        for token, running in self._running.items():
            if running.record is record and running.run.phase == plans.PREPARE:
                self._executor.end(token, reason)

    def _seconds_to_not_before(self, event: Event) -> float | None:
        return None if event.not_before is None else (event.not_before - self._now()).total_seconds()

    def _seconds_left(self, event: Event) -> float | None:
        left = self._seconds_to_not_before(event)
        return None if left is None else left - MARGIN_SECONDS

    def _look_at_preparation(self, record: EventRecord) -> bool:
        """Let the event's state follow from its hooks; return whether it is prepared, or can no longer be."""
        state, run = record.plan.preparation(self.late(record))
        if not record.plan.wanted():
            reset = state == plans.SUCCEEDED and record.state in (states.PREPARING, states.PREPARED, states.FAILED)
            if reset:
                self.step(record, states.RESET, "the policies no longer ask to prepare")
            return reset
        if state == plans.SUCCEEDED:
            self.step(record, states.READY, "every prepare hook succeeded")
        elif state == plans.FAILED:
            why = "" if run is None else f"{commands.describe(run.hook)}: {run.reason}"
            self.step(record, states.FAIL, f"a prepare hook failed: {why}")
        self._journal.commit()
        return state in (plans.SUCCEEDED, plans.FAILED)

    def _being_undone(self, record: EventRecord, run: Run) -> _Running | None:
        """Return the recovery under way that undoes what this hook's stages prepare, None if there is none."""
        stages = [stage for stage in record.plan.wanted() if run in stage.prepare]
        ours = {recover.words for stage in stages for recover in stage.recover}
        running = (running for running in self._running.values() if running.run.phase == plans.RECOVER)
        return next((running for running in running if running.run.words in ours), None)

    # Room

    def _make_way(self, record: EventRecord, undoing: _Running, left_seconds: float | None) -> None:
        """End a recovery if waiting for it could take the time that the preparation needs.

        That of a real event is waited for if what prepares is a drill, and so is one that may run once only, unless
        the drill's is in the way of a real event.
        """
        overtakes = undoing.record.drill and not record.drill
        if (
            left_seconds is None
            or (record.drill and not undoing.record.drill)
            or (undoing.run.once_only and not overtakes)
        ):
            return
        left = {id(other): other for stage in record.plan.wanted() for other in stage.prepare}
        needed = sum(commands.timeout(other.hook) for other in left.values() if other.status != plans.SUCCEEDED)
        longest = undoing.started_at + undoing.timeout - self._clocks.monotonic() + GRACE_SECONDS
        if left_seconds < needed + longest:
            self._interrupt(undoing, f"event {record.event.event_id} needs the time before its NotBefore")

    def _has_room(self, record: EventRecord) -> bool:
        """Return whether a prepare hook of the event may start; if not, make room so that it soon may."""
        urgency = record.urgency[0]
        ahead = 0
        for running in self._running.values():
            if running.run.phase == plans.PREPARE and (
                running.record is record or running.record.urgency[0] <= urgency
            ):
                ahead += 1
        if ahead >= MOST_RUNNING:
            return False
        if len(self._running) < CEILING:
            return True
        if not any(running.interrupted for running in self._running.values()):
            latest = max(
                (running for running in self._running.values() if not running.run.once_only),
                key=lambda running: (running.run.phase == plans.RECOVER, *running.record.urgency),
                default=None,
            )
            if latest is not None and (latest.run.phase == plans.RECOVER or latest.record.urgency[0] > urgency):
                self._interrupt(latest, f"event {record.event.event_id} is due sooner, and too many hooks run")
        return False

    def _interrupt(self, running: _Running, reason: str) -> None:
        """End a hook that is to run again later."""
        if not running.interrupted:
            running.interrupted = True
            self._executor.end(running.token, reason)

    # Recovering

    def _recover(self, record: EventRecord) -> None:
        if record.plan.running(plans.PREPARE):
            return  # it is being ended
        if self._journal.doubt(record.event.key) is not None and not record.plan.recovered():
            return  # until a person has seen to it
        while self._leave_what_others_need(record):
            pass  # what comes after it is due now
        for run in record.plan.due_to_recover(self._clocks.monotonic()):
            obstacle = self._recovery_obstacle(record, run)
            if obstacle and obstacle != run.waits_for:
                self._record("hook-waits", record, {"hook": commands.describe(run.hook), "reason": obstacle})
            run.waits_for = obstacle
            if not obstacle and not self._recovers_already(run) and len(self._running) < MOST_RUNNING:
                self._start(record, run)
        if record.plan.recovered() and not record.nameless:
            by_hand = any(run.reason.startswith(plans.BY_A_PERSON) for run in record.plan.of_phase(plans.RECOVER))
            self._close(record, plans.BY_A_PERSON if by_hand else "recovered")

    def _recovery_obstacle(self, record: EventRecord, run: Run) -> str:
        """Return why a recover hook that is due may not be started yet, "" if it may."""
        keeper = self._still_needed_by(record, run)
        if keeper is not None:  # what a drill runs may do less than what a real event needs
            return f"it would undo what the drill {keeper.event.event_id}, which is listed, has prepared"
        keeper = self._still_needed_by(record, run, unread=self._journal.unread)
        if keeper is not None:
            event_id = keeper.event.event_id
            return f"the journal cannot be read: event {event_id}, which is listed, may have been prepared"
        if run.once_only and self._journal.trouble is not None:
            return "the journal cannot be written, and the hook may run once only"
        return ""

    def _leave_what_others_need(self, record: EventRecord) -> bool:
        """Leave the recover hooks that come next to listed events that need them too; return whether there were any.

        Those as well that wait to be tried again, but not those that wait for a person.
        """
        left = False
        for run in record.plan.heads():
            if run.status not in (plans.WAITING, plans.FAILED) or run.exhausted:
                continue
            keeper = self._still_needed_by(record, run)
            if keeper is not None and (record.drill or not keeper.drill):
                self._leave(record, run, f"left to event {keeper.event.event_id}, which has prepared it too")
                left = True
        return left

    def _leave(self, record: EventRecord, run: Run, reason: str) -> None:
        run.end(plans.LEFT, reason)
        self._record("hook-left", record, {"hook": commands.describe(run.hook), "reason": run.reason})

    def _still_needed_by(self, record: EventRecord, run: Run, *, unread: bool = False) -> EventRecord | None:
        """Return a listed event whose preparation the recover hook would undo, None if there is none.

        With ``unread``, an event counts also when an earlier runner may have prepared it whose journal cannot be read.
        """
        for other in self.records:
            if other is record or not other.listed:
                continue
            for stage in other.plan.stages:
                if (stage.begun or unread) and any(theirs.words == run.words for theirs in stage.recover):
                    return other
        return None

    def _recovers_already(self, run: Run) -> bool:
        """Return whether another event's recovery runs the same hook now: this one waits for its result."""
        return any(
            running.run.phase == plans.RECOVER and running.run.words == run.words for running in self._running.values()
        )

    def _sharing(self, record: EventRecord, run: Run) -> list[tuple[EventRecord, Run]]:
        """Return the same recover hook of other events that are due to run it: one run is enough for all."""
        return [
            (other, theirs)
            for other in self.records
            if other is not record and other.drill == record.drill and other.state == states.RECOVERING
            if not other.plan.running(plans.PREPARE)
            for theirs in other.plan.heads()
            if theirs.words == run.words and theirs.status in (plans.WAITING, plans.FAILED)
        ]

    def _share(self, record: EventRecord, other: EventRecord, theirs: Run, outcome: Outcome) -> None:
        """Let what came of a recover hook count for another event that was due to run it too."""
        if theirs.status not in (plans.WAITING, plans.FAILED):
            return
        if outcome.result == "succeeded":
            self._leave(other, theirs, f"event {record.event.event_id} has run it, which is enough for both")
        else:
            theirs.failed(outcome.reason, self._clocks.monotonic())
            self._journal.save(other.as_row())

    def _close(self, record: EventRecord, why: str) -> None:
        self.step(record, record.closing(), why)
        self.records.remove(record)
        self._journal.commit()

    # Hooks

    def _start(self, record: EventRecord, run: Run, left_seconds: float | None = None) -> None:
        """Start a hook, which is ended in ``left_seconds`` if its own time is not over before."""
        timeout = commands.timeout(run.hook)
        seconds = timeout if left_seconds is None else min(timeout, left_seconds)
        before = run.status
        run.status = plans.RUNNING
        run.attempts += 1
        text = commands.describe(run.hook)
        if run.phase == plans.PREPARE:
            self.step(record, states.BEGIN, f"{text} is started")
        fields = {"phase": run.phase, "hook": text, "attempt": run.attempts, "timeout_seconds": round(seconds, 3)}
        self._record("hook-started", record, fields)
        if not self._journal.commit() and (run.phase == plans.PREPARE or run.once_only):
            run.status = before  # not without the promise that it will be recovered, or runs once only
            run.attempts -= 1
            reason = "it was not started: the journal could not be written"
            self._record("hook-ended", record, {**fields, "result": "not-started", "reason": reason}, failed=True)
            return
        self._next_token += 1
        token = self._next_token
        sharing = self._sharing(record, run) if run.phase == plans.RECOVER else []
        running = _Running(token, record, run, self._clocks.monotonic(), timeout, sharing, record.event.not_before)
        if seconds < timeout:
            running.end_at = running.started_at + seconds
        self._running[token] = running
        try:
            occasion = self._occasion(record, run.phase, run.attempts)
            command = commands.command(run.hook, occasion, self._settings, timeout, seconds)
        except InputError as error:
            del self._running[token]
            self._hook_ended(running, Outcome("not-started", None, 0.0, "", error.message))
            return
        begun = self._executor.start(token, command)
        if begun is not None:
            run.pid, run.pid_started = begun
            run.pid_boot = self._clocks.boot_id
            self._journal.save(record.as_row())
            self._journal.commit()

    def _hook_ended(self, running: _Running, outcome: Outcome) -> None:
        record, run = running.record, running.run
        now = self._clocks.monotonic()
        run.seconds = round(outcome.seconds, 3)
        run.exit_code = outcome.exit_code
        if outcome.result == "succeeded":
            run.end(plans.SUCCEEDED)
        elif run.phase == plans.PREPARE and not (record.may_prepare and run.revision == record.revision):
            # It is not asked for any more.
            run.end(plans.SKIPPED if outcome.result == "ended" else plans.FAILED, outcome.reason)
        elif running.interrupted:
            run.interrupted(outcome.reason)
        else:
            left = self._seconds_left(record.event) if run.phase == plans.PREPARE else None
            run.failed(outcome.reason, now, None if left is None else max(left / 2.0, SHORTEST_PAUSE_SECONDS))
        for other, theirs in running.sharing if not running.interrupted else ():
            self._share(record, other, theirs, outcome)
        fields = {
            "phase": run.phase,
            "hook": commands.describe(run.hook),
            "attempt": run.attempts,
            "result": outcome.result,
            "exit_code": outcome.exit_code,
            "seconds": run.seconds,
            "reason": outcome.reason or None,
            "output": outcome.output or None,
            "retry_seconds": None if run.retry_at is None else round(run.retry_at - now, 3),
        }
        self._record("hook-ended", record, fields, failed=outcome.result != "succeeded")
        self._count(run.phase, run.hook, outcome, record)
        self._journal.commit()

    def _notification_command(self, notification: Notification) -> commands.Command:
        occasion = self._occasion(notification.record, "notify", 1, notification.occasion)
        timeout = commands.timeout(notification.hook)
        return commands.command(notification.hook, occasion, self._settings, timeout)

    def _notified(self, notification: Notification, outcome: Outcome, dropped: int) -> None:
        fields = {
            "hook": commands.describe(notification.hook),
            "occasion": notification.occasion,
            "result": outcome.result,
            "seconds": round(outcome.seconds, 3),
            "reason": outcome.reason or None,
            "dropped": dropped or None,
        }
        self._record("notified", notification.record, fields, failed=outcome.result != "succeeded")
        self._count("notify", notification.hook, outcome, notification.record)

    def _count(self, phase: str, hook: Mapping[str, Any], outcome: Outcome, record: EventRecord) -> None:
        labels = {"phase": phase, "kind": commands.kind(hook)}
        self._metrics.count("forewarn_hooks_total", result=outcome.result, drill=record.drill, **labels)
        if outcome.result != "not-started":
            self._metrics.observe("forewarn_hook_duration_seconds", outcome.seconds, **labels)

    def _occasion(
        self, record: EventRecord, phase: str, attempt: int, occasion: str | None = None
    ) -> commands.Occasion:
        decision = record.decision or {}
        event = record.event
        left = None if event.not_before is None else (event.not_before - self._now()).total_seconds()
        others = sum(1 for other in self.records if other is not record and other.listed and other.plan.begun())
        return commands.Occasion(
            phase=phase,
            attempt=attempt,
            event=event,
            vm_name=self.vm_name,
            drill=record.drill,
            output=decision.get("output"),
            policy=decision.get("policy"),
            rule=decision.get("rule"),
            reason=decision.get("reason"),
            outcome=record.outcome,
            occasion=occasion,
            deadline_seconds=left,
            others=others,
        )

    def _record(self, line: str, record: EventRecord, fields: dict[str, Any], failed: bool = False) -> None:
        """Write a line to the log and an entry to the journal, and the record as it now is."""
        self._recorder.write(line, record, fields, failed=failed)
        self._journal.save(record.as_row())
