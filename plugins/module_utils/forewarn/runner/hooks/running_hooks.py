# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The prepare and recover hooks that run: their start, their results, and the room for them.

The journal has each step before it is taken. If the journal cannot be written, nothing is prepared that
would have to be recovered; recoveries that are due run all the same, except those that may run once only.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from datetime import datetime
from typing import Any

from ...errors import InputError
from ...events import Event
from .. import event_record as states
from ..clocks import Clocks
from ..event_record import EventRecord
from ..journal.writer import Journal
from . import commands
from .executor import ENDED, NOT_STARTED, Executor, HookResult
from .open_records import OpenRecords
from .run import FAILED, PREPARE, RECOVER, RUNNING, SKIPPED, SUCCEEDED, WAITING, Run

# A prepare hook is ended this long before NotBefore, so that it is gone by then: after the request it has the grace.
MARGIN_SECONDS = 3.0
GRACE_SECONDS = 2.0
MIN_PAUSE_SECONDS = 0.1  # between two attempts to start a hook that is due: it may have to wait for room
# Hooks at once. Of prepare hooks only those count that are due no later: what is due first always finds room, and 200
# events in one document do not start 200 processes.
MOST_RUNNING = 16
# Of prepare and recover hooks together. Where it is reached, what is due last makes room.
CEILING = 64


class RunningHook:
    """A hook that runs. Times are monotonic seconds.

    ``sharing`` are the recover hooks of other events that it stands for. ``interrupted``: it is ended, to run again.
    ``end_at`` is when a prepare hook is ended because ``not_before`` is near, if that is before it times out.
    """

    def __init__(
        self,
        record: EventRecord,
        run: Run,
        times_out_at: float,
        sharing: Sequence[tuple[EventRecord, Run]],
        not_before: datetime | None,
    ) -> None:
        self.record = record
        self.run = run
        self.times_out_at = times_out_at
        self.sharing = sharing
        self.not_before = not_before
        self.interrupted = False
        self.end_at: float | None = None


class RunningHooks:
    """``hooks`` are by ``Run``, the executor's token. ``vm_name`` is what they learn, None while it is not known."""

    def __init__(
        self,
        executor: Executor,
        records: OpenRecords,
        journal: Journal,
        clocks: Clocks,
        settings: commands.HookSettings,
    ) -> None:
        self.hooks: dict[Hashable, RunningHook] = {}
        self.vm_name: str | None = None
        self._executor = executor
        self._records = records
        self._journal = journal
        self._clocks = clocks
        self._settings = settings

    def seconds_to_not_before(self, event: Event) -> float | None:
        """Return the seconds until NotBefore, negative once it has passed, None if the service has named none."""
        return None if event.not_before is None else (event.not_before - self._clocks.utc_now()).total_seconds()

    def seconds_left(self, event: Event) -> float | None:
        """Return how long a prepare hook may run before NotBefore, None if the service has named none."""
        left = self.seconds_to_not_before(event)
        return None if left is None else left - MARGIN_SECONDS

    def recovering(self, words: Collection[str]) -> RunningHook | None:
        """Return the recover hook with any of these ``Run.key`` that runs, for whatever event."""
        hooks = (hook for hook in self.hooks.values() if hook.run.phase == RECOVER)
        return next((hook for hook in hooks if hook.run.key in words), None)

    def start(
        self,
        record: EventRecord,
        run: Run,
        left_seconds: float | None = None,
        sharing: Sequence[tuple[EventRecord, Run]] = (),
    ) -> None:
        """Start a hook, which is ended in ``left_seconds`` unless it times out before."""
        timeout = commands.timeout(run.hook)
        seconds = timeout if left_seconds is None else min(timeout, left_seconds)
        before = run.status
        run.status = RUNNING
        run.attempts += 1
        text = commands.describe(run.hook)
        if run.phase == PREPARE:
            self._records.step(record, states.BEGIN, f"{text} is started")
        fields = {"phase": run.phase, "hook": text, "attempt": run.attempts, "timeout_seconds": round(seconds, 3)}
        self._records.write("hook-started", record, fields)
        if not self._journal.commit() and (run.phase == PREPARE or run.once_only):
            run.status = before  # not without the promise that it will be recovered, or runs once only
            run.attempts -= 1
            reason = "it was not started: the journal could not be written"
            self._records.write("hook-ended", record, {**fields, "result": NOT_STARTED, "reason": reason}, failed=True)
            return
        now = self._clocks.monotonic()
        hook = RunningHook(record, run, now + timeout, sharing, record.event.not_before)
        if seconds < timeout:
            hook.end_at = now + seconds
        self.hooks[run] = hook
        try:
            command = self.command(record, run.hook, run.phase, run.attempts, seconds)
        except InputError as error:
            self.handle_result(run, HookResult(NOT_STARTED, None, 0.0, "", error.message))
            return
        process = self._executor.start(run, command)
        if process is not None:
            run.pid, run.pid_started = process
            run.pid_boot = self._clocks.boot_id
            self._records.save(record)
            self._journal.commit()

    def command(
        self,
        record: EventRecord,
        hook: Mapping[str, Any],
        phase: str,
        attempt: int = 1,
        seconds: float | None = None,
        occasion: str | None = None,
    ) -> commands.Command:
        """Return the process to start, with what it learns of the event. Raises HookError, as commands.command does."""
        others = (other for other in self._records if other.identifier != record.identifier)
        why = commands.HookContext(
            phase=phase,
            occasion=occasion,
            attempt=attempt,
            drill=record.drill,
            event=record.event,
            vm_name=self.vm_name,
            decision=record.decision or {},
            outcome=record.outcome,
            seconds_left=self.seconds_to_not_before(record.event),
            other_events=sum(1 for other in others if other.listed and other.plan.has_begun()),
        )
        return commands.command(hook, why, self._settings, commands.timeout(hook), seconds)

    def handle_result(self, token: Hashable, outcome: HookResult) -> RunningHook:
        """Handle the result of a hook; return the hook."""
        hook = self.hooks.pop(token)
        record, run = hook.record, hook.run
        now = self._clocks.monotonic()
        run.seconds = round(outcome.seconds, 3)
        run.exit_code = outcome.exit_code
        if outcome.succeeded:
            run.end(SUCCEEDED)
        elif run.phase == PREPARE and not (record.may_prepare and run.revision == record.revision):
            # It is no longer wanted.
            run.end(SKIPPED if outcome.result == ENDED else FAILED, outcome.reason)
        elif hook.interrupted:
            run.requeue(outcome.reason)
        else:
            left = self.seconds_left(record.event) if run.phase == PREPARE else None
            run.fail(outcome.reason, now, None if left is None else max(left / 2.0, MIN_PAUSE_SECONDS))
        if not hook.interrupted:
            for other, theirs in hook.sharing:
                self._apply_shared_result(record, other, theirs, outcome)
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
        self._records.write("hook-ended", record, fields, failed=not outcome.succeeded)
        self._records.count_hook(record, run.phase, run.hook, outcome)
        self._journal.commit()
        return hook

    def _apply_shared_result(self, record: EventRecord, other: EventRecord, theirs: Run, outcome: HookResult) -> None:
        """Apply the result of a recover hook to another event that was due to run it too."""
        if theirs.status not in (WAITING, FAILED):
            return
        if outcome.succeeded:
            event_id = record.event.event_id
            self._records.leave_out(other, theirs, f"event {event_id} has run it, which is enough for both")
        else:
            theirs.fail(outcome.reason, self._clocks.monotonic())
            self._records.save(other)

    def interrupt(self, hook: RunningHook, reason: str) -> None:
        """End a hook, to run it again later."""
        if not hook.interrupted:
            hook.interrupted = True
            self._executor.end(hook.run, reason)

    def end_preparing(self, record: EventRecord, reason: str) -> None:
        """End the prepare hooks of an event."""
        for hook in self.hooks.values():
            if hook.record is record and hook.run.phase == PREPARE:
                self._executor.end(hook.run, reason)

    def make_room(self, record: EventRecord) -> bool:
        """Return whether a prepare hook of the event may start; if not, make room so that it soon may."""
        urgency = record.urgency[0]
        ahead = 0
        for hook in self.hooks.values():
            if hook.run.phase == PREPARE and (hook.record is record or hook.record.urgency[0] <= urgency):
                ahead += 1
        if ahead >= MOST_RUNNING:
            return False
        if len(self.hooks) < CEILING:
            return True
        if not any(hook.interrupted for hook in self.hooks.values()):
            latest = max(
                (hook for hook in self.hooks.values() if not hook.run.once_only),
                key=lambda hook: (hook.run.phase == RECOVER, *hook.record.urgency),
                default=None,
            )
            if latest is not None and (latest.run.phase == RECOVER or latest.record.urgency[0] > urgency):
                self.interrupt(latest, f"event {record.event.event_id} is due sooner, and too many hooks run")
        return False
