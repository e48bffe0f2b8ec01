# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Follows the events of one source, the service or the drills: decides, plans their hooks, says what to approve."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from ..events import EVENT_STATUSES, Document, Event, Vm
from ..policy.approval import Agreement, Eligibility
from ..policy.decision import ABSTAIN, RECOVER_WHEN, Decision, Facts, Verdict
from ..policy.engine import PolicySet
from ..policy.hook_body import with_body_source
from . import event_record as states
from .approval_gate import ApprovalGate
from .clocks import Clocks, Stamp
from .decision_reporter import DecisionReporter
from .event_record import EventRecord, merge_order
from .hooks.dry_run_reporter import DryRunReporter
from .hooks.notifications import BEGAN, DECIDED
from .hooks.scheduler import HookScheduler
from .operator_pause import OperatorPause
from .options import Mode
from .shadow import Shadow
from .telemetry.recorder import Recorder
from .tracker import TrackedEvent, Tracker

if TYPE_CHECKING:
    from .groups.member import Member

# A drill involves no other VM.
_DRILL_AGREEMENT = Agreement(None, None)


class Reconciler:
    """The events of one source. ``policies`` and ``shadow`` may be replaced between two documents."""

    def __init__(
        self,
        policies: PolicySet,
        scheduler: HookScheduler,
        recorder: Recorder,
        clocks: Clocks,
        mode: Mode,
        operator_pause: OperatorPause,
        *,
        drill: bool = False,
    ) -> None:
        self.policies = policies
        self.shadow: Shadow | None = None
        self.group: Member | None = None
        self.nameless = False  # the metadata have no name for this VM
        self.document: Document | None = None
        self.ended: list[EventRecord] = []  # with the latest document
        self.tracker = Tracker(clocks, lambda event: scheduler.records.open(event, drill))
        self._scheduler = scheduler
        self._records = scheduler.records
        self._journal = recorder.journal
        self._clocks = clocks
        self._mode = mode
        self._gate = ApprovalGate(scheduler, recorder.journal, mode, operator_pause)
        self._reporter = DecisionReporter(recorder, drill)
        self._dry_run = DryRunReporter(recorder) if mode.dry_run else None
        self.drill = drill
        self._facts: Facts | None = None
        self._decided_by: PolicySet | None = None
        self._decisions: Sequence[Decision] = ()
        self._hidden: tuple[Event, ...] = ()  # events that the latest document cannot show, as they were before
        self._document_with_hidden = Document()  # the latest document, and these
        # While the journal cannot be read, by Event.key: the first whole document's events, and those that have ended.
        self._listed_first: frozenset[str] | None = None
        self._ended_while_unreadable: dict[str, EventRecord] = {}

    def restore(self, last_poll: Stamp | None) -> None:
        """Track the records that the scheduler has resumed."""
        found: dict[str, EventRecord] = {}
        for record in sorted(self._records, key=merge_order):
            if record.listed and record.drill == self.drill:
                remaining = found.setdefault(record.event.key, record)
                if remaining is not record:  # the previous runner ended just after it had found the other
                    shown = min((remaining, record), key=lambda each: self._clocks.since(each.last_seen))
                    self._merge(remaining, record, shown)
        self.tracker.restore(list(found.values()), last_poll)

    def restore_late(self, record: EventRecord) -> None:
        """Track a record that could not be read at the start. Without the journal no hook was started since."""
        self._decided_by = None
        known = self.tracker.record_of(record.event.key)
        ended = self._ended_while_unreadable.get(record.event.key)
        if ended is not None:  # another event is listed under its id now
            record.merge(ended)
            pending = ended.nameless and ended in self._records
            record.nameless = record.nameless or pending  # the policies decide once, about this one
            self._scheduler.end_unread(record, ended)
            if pending and not ended.plan.runs:
                self._scheduler.supersede(ended)
            return
        if self._listed_first is not None and record.event.key not in self._listed_first:
            self._end_event(*self.tracker.end_unread(record))
            return
        if known is None:
            self.tracker.restore([record], None)
            return
        remaining, other = sorted((record, known), key=merge_order)
        self._merge(remaining, other, known)
        self.tracker.replace(remaining)

    def _merge(self, remaining: EventRecord, other: EventRecord, shown: EventRecord) -> None:
        """Merge two records of the same event. ``shown`` is the one that a document showed last."""
        if shown is other and remaining.copy_event(shown):
            self._scheduler.reset_preparation(remaining)
        remaining.merge(other)
        if remaining.started_at is not None:
            self._scheduler.note_started(remaining, remaining.started_at)
        remaining.last_seen = shown.last_seen
        self._scheduler.supersede(other)

    def process(self, document: Document, vm: Vm, age_seconds: float = 0.0) -> list[list[Event]]:
        """Process a document of ``age_seconds`` ago; return the events to approve now, grouped by request."""
        self._drop_notify_hooks()
        changed = document != self.document  # all of it: equal incarnations may hide a reset (SE-05, SE-10)
        if changed:
            self.document = document
            self._reporter.report_document(document)
        # An answer without a body, or one that can be read only in part, does not show all that is listed.
        whole = document.incarnation is not None and not document.problems
        if self._journal.lost_records.unknown and not self.drill:
            listed = [event.key for event in document.events]
            (self._journal.settle_doubts if whole else self._journal.doubt_listed)(listed)
        if self._journal.has_unread_records and whole and self._listed_first is None:
            self._listed_first = frozenset(event.key for event in document.events)
        if self.group is not None and whole:
            self.group.coordinator.update_listed([event.key for event in document.events])
        departed = self.tracker.update(document, changed, age_seconds)
        for record in self.tracker.visibility_changes:
            self._records.save(record)
        self.ended = [tracked.record for tracked, _outcome in departed]
        for tracked, outcome in departed:
            self._end_event(tracked, outcome)
        for record in self.tracker.changed_records:
            self._scheduler.reset_preparation(record)
        records = self.tracker.records_of(document.events)
        started = [
            record
            for record in records
            if record.event.event_status == "Started" and self._scheduler.note_started(record)
        ]
        hidden = tuple(record.event for record in self.tracker.hidden_records if record.confirmed)
        now = self._clocks.utc_now()
        self.recover_nameless(vm, now)
        if changed or hidden != self._hidden or self._outdated(vm):
            self._hidden = hidden
            self._document_with_hidden = document._replace(events=document.events + hidden) if hidden else document
            self._decide(Facts(now, vm, self.tracker.first_seen(now)))
        eligibilities = self._apply_decisions(vm.name, now)
        for record in started:  # now that its notify hooks are known
            self._scheduler.notify(record, BEGAN)
        return self.tracker.requests_due(eligibilities)

    def decide_again(self, vm: Vm) -> None:
        """Decide about the latest document by the policies and the time as they are now; approve nothing."""
        now = self._clocks.utc_now()
        self.recover_nameless(vm, now)
        if self._document_with_hidden.events and self._facts is not None and self._outdated(vm):
            self._decide(Facts(now, vm, self.tracker.first_seen(now)))
        elif self.group is None:
            return
        self._apply_decisions(vm.name, now)

    def _apply_decisions(self, vm_name: str | None, now: datetime) -> list[tuple[Decision, Eligibility]]:
        """Plan the hooks of all events; report, and return, the eligibility of those that the latest document shows."""
        shown = {event.key for event in self.document.events} if self.document else set()
        self._gate.read_pause()
        found = []
        for decision in self._decisions:
            self._plan(decision, vm_name)
            tracked = self.tracker[decision.event]
            record = tracked.record
            if self.group is not None:
                self.group.update_group_blocker(decision, record, vm_name)
            if decision.event.key not in shown:
                continue
            blocker = self._gate.blocker(decision, record, now)
            self.tracker.update_approvable(decision, ready=blocker is None)
            agreement = _DRILL_AGREEMENT if self.drill else None
            if self.group is not None:
                agreement = self.group.agreement(decision, record, blocker, vm_name, now)
            seconds = self.tracker.approvable_seconds(decision.event)
            answer = self._gate.eligibility(decision, blocker, vm_name, now, seconds, agreement)
            anew = self._reporter.report_decision(decision, answer, tracked, now)
            if anew and decision.event.event_status != "Started":
                self._scheduler.notify(record, DECIDED)
            if self._dry_run is not None and not record.undecided:
                self._dry_run.report_prepare(
                    record, _verdicts_to_run(decision, vm_name), decision.event.notice_seconds(now)
                )
            found.append((decision, answer))
        if self.group is not None:
            self.group.publish(vm_name)
        return found

    def recover_nameless(self, vm: Vm, now: datetime | None = None) -> None:
        """Recover after events that ended before this VM knew its name, once it does, or is known to have none."""
        if vm.name is None and not self.nameless:
            return
        now = self._clocks.utc_now() if now is None else now
        for record in [record for record in self._records if record.nameless and not record.listed]:
            if record.drill != self.drill:
                continue
            if self.nameless:
                self._scheduler.recover_nameless(record, ())
                continue
            first_seen = {record.event.key: now - timedelta(seconds=self._clocks.since(record.first_seen))}
            document = Document(events=(record.event,), api_version=self.policies.api_version)
            decision = self.policies.decide(document, Facts(now, vm, first_seen))[0]
            verdicts = _verdicts_to_run(decision, vm.name)
            if self._dry_run is not None:
                late = [verdict._replace(prepare=()) for verdict in verdicts if verdict.recover_when == RECOVER_WHEN[1]]
                self._dry_run.report_prepare(record, late, None)
                self._dry_run.report_recover(record, record.outcome or states.UNSEEN)
            self._scheduler.recover_nameless(record, () if self._mode.dry_run else verdicts)

    def _outdated(self, vm: Vm) -> bool:
        """Return whether the decisions about the same document may be different now."""
        return (
            self._facts is None
            or vm != self._facts.vm
            or self.policies is not self._decided_by
            or self.policies.time_dependent
            or (self.shadow is not None and self.shadow.time_dependent)
        )

    def _decide(self, facts: Facts) -> None:
        self._facts = facts
        self._drop_notify_hooks()
        self._decided_by = self.policies
        self._decisions = self.policies.decide(self._document_with_hidden, facts)
        if self.shadow is not None and not self.drill:
            for found in self.shadow.compare(self._document_with_hidden, facts, self._decisions):
                self._reporter.report_disagreement(found, self.tracker[found.event].record)

    def _plan(self, decision: Decision, vm_name: str | None) -> None:
        tracked = self.tracker[decision.event]
        record = tracked.record
        before = record.affected, record.nameless
        record.affected = record.affected or decision.event.place_of(vm_name) is not None
        record.nameless = vm_name is None
        record.undecided = record.nameless or _in_doubt(decision)
        notifies_anew = not self._mode.dry_run and record.add_notify_hooks(decision.notify)
        if notifies_anew or before != (record.affected, record.nameless):
            self._records.save(record)
        if record.state in (states.SEEN, states.HELD):
            self._records.step(record, decision.output, decision.reason)
        if tracked.planned_decision is not decision and not (self._mode.dry_run or self._mode.once):
            if not record.undecided:
                self._scheduler.plan(record, _verdicts_to_run(decision, vm_name))
            tracked.planned_decision = decision

    def _drop_notify_hooks(self) -> None:
        """Drop notify hooks that changed policies no longer name."""
        if self._decided_by is self.policies:
            return
        hooks = list(map(with_body_source, self.policies.every_hook()))
        for record in self.tracker.records:
            notify = [hook for hook in record.notify if with_body_source(hook) in hooks]
            if notify != record.notify:
                record.notify = notify
                self._records.save(record)

    def _end_event(self, tracked: TrackedEvent, outcome: str) -> None:
        record = tracked.record
        self._reporter.report_gone(record, outcome, self._clocks.monotonic() - tracked.first_seen)
        if self.shadow is not None:
            self.shadow.forget(record.event.key)
        # Without a name, the policies decide once there is one, if that may make a difference.
        may_have_started = record.started_at is not None or outcome != states.CALLED_OFF
        record.nameless = (
            record.nameless and may_have_started and self.policies.recovers_started and not self._mode.once
        )
        if self._dry_run is not None and not record.nameless:
            self._dry_run.report_recover(record, outcome)
        if self._journal.has_unread_records:
            self._ended_while_unreadable[record.event.key] = record
        self._scheduler.end_event(record, outcome)


def _in_doubt(decision: Decision) -> bool:
    """Return whether the policies cannot decide about the event as it is listed."""
    unknown = decision.event.event_status not in EVENT_STATUSES
    return bool(decision.event.problems) or (unknown and any(verdict.in_doubt for verdict in decision.verdicts))


def _verdicts_to_run(decision: Decision, vm_name: str | None) -> list[Verdict]:
    """Return the verdicts whose hooks this VM is to run: for its own events, or as a witness."""
    event = decision.event
    if event.problems:
        return []
    affected = event.place_of(vm_name) is not None
    return [
        verdict
        for verdict in decision.verdicts
        if verdict.output != ABSTAIN and (affected or verdict.approver == "witness")
    ]
