# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The interface of the hooks to the rest of the runner: resume, plan, start and end them, as events come and go.

``records`` keeps the open records, ``running`` the hooks that run, ``preparation`` and ``recovery`` say which are due.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...policy.decision import Verdict
from ...system import credentials
from .. import event_record as states
from ..clocks import Clocks, Stamp
from ..event_record import EventRecord
from ..journal.writer import EventRow
from ..telemetry.recorder import Recorder
from . import commands, notifications
from .executor import Executor, end_leftovers
from .notifications import Notifications
from .open_records import OpenRecords
from .plan import BY_A_PERSON
from .preparation import Preparation
from .recovery import Recovery
from .run import FAILED, LEFT, PREPARE, RECOVER, RUNNING, SKIPPED, SUCCEEDED, WAITING
from .running_hooks import GRACE_SECONDS, MIN_PAUSE_SECONDS, RunningHooks


class HookScheduler:
    """The hooks of all events. ``preparation`` knows what time they have left. For the main thread alone."""

    def __init__(self, executor: Executor, recorder: Recorder, clocks: Clocks, settings: commands.HookSettings) -> None:
        self._executor = executor
        self._journal, self._log, _metrics = recorder
        self._clocks = clocks
        self._settings = settings
        self.records = records = OpenRecords(recorder, clocks, settings)
        self._running = RunningHooks(executor, records, self._journal, clocks, settings)
        self.preparation = Preparation(records, self._running, self._journal, clocks)
        self._recovery = Recovery(records, self._running, self._journal, clocks)
        self._notifications = Notifications(executor, records, self._running, clocks)

    @property
    def vm_name(self) -> str | None:
        """The name of this VM, None while it is not known."""
        return self._running.vm_name

    @vm_name.setter
    def vm_name(self, name: str | None) -> None:
        self._running.vm_name = name

    def resume(self) -> None:
        """Resume the open records of the journal, as the previous runner left them."""
        self.resume_records(self._journal.open())
        if self._settings.memory_directory is not None:
            credentials.remove_leftovers(self._settings.memory_directory)

    def close(self) -> None:
        """End all hooks that run. The journal still has them as running, so the next runner runs them again."""
        self._executor.close()

    def resume_late_records(self, grace_seconds: float = GRACE_SECONDS) -> list[EventRecord] | None:
        """Resume the records that the journal could not read at the start, and can now; None if there are none."""
        if not self._journal.late_records:
            return None
        rows, self._journal.late_records = self._journal.late_records, []
        return self.resume_records(rows, grace_seconds)

    def resume_records(self, rows: Sequence[EventRow], grace_seconds: float = GRACE_SECONDS) -> list[EventRecord]:
        """Resume records that an earlier runner left; return them. Its hooks that still run have this long to end."""
        found = [(record, record.plan.requeue_running()) for record in self.records.resume(rows)]
        runs = [run for _record, interrupted in found for run in interrupted]
        for run in runs:
            if run.pid_boot not in (None, self._clocks.boot_id):
                run.pid = None  # of another boot: another process may have it now
        ended = end_leftovers([(run.pid, run.pid_started) for run in runs if run.pid is not None], grace_seconds)
        for record, interrupted in found:
            for run in interrupted:
                if run.pid in ended:
                    fields = {
                        "hook": commands.describe(run.hook),
                        "pid": run.pid,
                        "reason": "it was still running, and was ended",
                    }
                    self.records.write("hook-left-over", record, fields, failed=True)
                run.pid = run.pid_started = None
            self._log.info("resumed", event_id=record.event.event_id, state=record.state, drill=record.drill or None)
            if record.state == states.PREPARING:  # killed between the end of its last hook and what follows from that
                self.preparation.update_state(record)
        return [record for record, _interrupted in found]

    def supersede(self, record: EventRecord) -> None:
        """Close a record that was begun because an earlier one of the same event could not be read at the time."""
        record.outcome = states.UNSEEN
        self.records.close(record, "its earlier record was found")

    def end_unread(self, record: EventRecord, ended: EventRecord) -> None:
        """End a record that could not be read when its event ended; ``ended`` is this runner's own record of it."""
        open_statuses = (WAITING, RUNNING, FAILED) if ended in self.records else ()
        for run in ended.plan.of_phase(RECOVER):
            by_a_person = run.reason.startswith(BY_A_PERSON)
            if run.status in (SUCCEEDED, LEFT, *open_statuses) or by_a_person:
                for theirs in record.plan.of_phase(RECOVER):
                    if theirs.key == run.key:
                        self.records.leave_out(record, theirs, "it was seen to when the event had ended")
        may_have_started = record.approvals > 0 or record.unanswered or ended.outcome != states.CALLED_OFF
        outcome = states.UNSEEN if may_have_started else states.CALLED_OFF
        self._end_listing(record, states.FINISHED if record.started_at is not None else outcome)

    def plan(self, record: EventRecord, verdicts: Sequence[Verdict]) -> None:
        """Update the event's plan to these verdicts. It starts with the next ``advance``."""
        if record.may_prepare:
            changed = record.plan.update(verdicts, record.revision)
        else:
            changed = record.plan.add_recovery(verdicts, record.revision)
        if changed:
            self.records.save(record)
            self.preparation.update_state(record)

    def reset_preparation(self, record: EventRecord) -> None:
        """Reset the preparation of an event that is listed with another content now."""
        why = "the event's type, resources, source or duration has changed"
        self._log.warning("event-changed", event_id=record.event.event_id, drill=record.drill or None, reason=why)
        self._journal.note("event-changed", record.identifier, event=record.event.as_dict(), reason=why)
        self._running.end_preparing(record, why)
        record.approved_at = None
        record.content_approvals = 0
        if record.may_prepare:
            record.plan.update((), record.revision)
        self.records.step(record, states.RESET, why)
        self.records.save(record)

    def note_started(self, record: EventRecord, at: Stamp | None = None) -> bool:
        """Note that the service lists the event as Started, or did ``at`` a time; return whether that is new."""
        if record.state == states.STARTED:
            return False
        record.started_at = at or self._clocks.stamp()
        record.plan.stop_preparing("the event had started")
        self.records.step(record, states.START, "the service lists it as Started")
        return True

    def end_event(self, record: EventRecord, outcome: str) -> None:
        """End an event that is no longer listed: end its prepare hooks, recover the stages that had begun."""
        self._end_listing(record, outcome)
        self.notify(record, notifications.CALLED_OFF if outcome == states.CALLED_OFF else notifications.ENDED)

    def recover_nameless(self, record: EventRecord, verdicts: Sequence[Verdict]) -> None:
        """Recover by verdicts that could be decided only after the event had ended."""
        record.nameless = False
        for run in record.plan.of_phase(RECOVER):
            if run.status == SKIPPED and not run.reason.startswith(BY_A_PERSON):
                run.wait()  # skipped when the event left the list: the verdicts may need it
        record.plan.add_recovery(verdicts, record.revision)
        if record.plan.start_recovering(record.may_have_started) or record.plan.active_runs():
            self.records.save(record)
        else:
            self.records.close(record, f"no longer listed: {record.outcome}")

    def _end_listing(self, record: EventRecord, outcome: str) -> None:
        record.outcome = outcome
        record.gone_at = self._clocks.stamp()
        self._running.end_preparing(record, "the event is no longer listed")
        record.plan.stop_preparing("the event was no longer listed")
        if record.plan.start_recovering(record.may_have_started) or record.plan.active_runs() or record.nameless:
            self.records.step(record, states.LEAVE, f"no longer listed: {outcome}")
        else:
            self.records.close(record, f"no longer listed: {outcome}")

    def notify(self, record: EventRecord, occasion: str) -> None:
        """Queue the event's notify hooks."""
        self._notifications.add(record, occasion)

    def collect_results(self) -> bool:
        """Process the hooks that have ended; return whether an event is now prepared, or can no longer be."""
        news = False
        for token, outcome in self._executor.take_results():
            if self._notifications.handle_result(token, outcome):
                continue
            hook = self._running.handle_result(token, outcome)
            if hook.run.phase == PREPARE and hook.record.listed:
                news = self.preparation.update_state(hook.record) or news
        return news

    def advance(self) -> None:
        """Start what is due, close what has recovered. Call it after ``collect_results`` and after each document."""
        # Preparations first: what one of them has in common with a recovery need not be undone and done again.
        self.preparation.advance()
        self._recovery.advance()
        self._notifications.advance()

    def next_in(self) -> float | None:
        """Return the seconds until a hook may be started, or has to end, by the time alone; None if none does."""
        waits = (*self.preparation.waits(), *self._recovery.waits(), self._notifications.next_in())
        return min((max(wait, MIN_PAUSE_SECONDS) for wait in waits if wait is not None), default=None)

    def idle(self) -> bool:
        """Return whether no hook runs or waits."""
        return not self._running.hooks and self._notifications.idle()
