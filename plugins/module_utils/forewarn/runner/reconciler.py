# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The events of one source: what is decided for each, how far it is, what to send.

There are two sources, the service's document and that of the drills. Both are treated alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Callable

from ..events import EVENT_STATUSES, Document, Event, Vm
from ..policy.approval import (
    GROUP,
    IN_DOUBT,
    NEEDS_RUNNER,
    NO_JOURNAL,
    NO_SLOT,
    NOT_LEADER,
    NOT_PREPARED,
    PREPARING,
    STARTED,
    Agreement,
    Eligibility,
    eligibility,
)
from ..policy.bodies import as_asked
from ..policy.decision import ABSTAIN, RECOVER_WHEN, Decision, Facts, Verdict
from ..texts import duration_text
from . import event_record as states
from .clocks import Clocks, Stamp
from .event_record import EventRecord, first
from .hooks import commands
from .hooks.dry_run import Pretence
from .hooks.notifications import BEGAN, DECIDED
from .hooks.records import RESUMING
from .hooks.run import FAILED, SUCCEEDED, WAITING
from .hooks.scheduler import HookScheduler
from .options import Mode
from .pausing import Pausing
from .policies import Policies
from .shadow import Shadow
from .telemetry.log import shortened
from .telemetry.recorder import Recorder
from .tracker import Tracked, Tracker

if TYPE_CHECKING:
    from .groups.member import Member

# In a drill nobody asks the other VMs: it rehearses this one, and approves nothing.
_REHEARSED = Agreement(None, None)


class Reconciler:
    """The events of one source. ``policies`` and ``shadow`` may be replaced between two documents."""

    def __init__(
        self,
        policies: Policies,
        scheduler: HookScheduler,
        recorder: Recorder,
        clocks: Clocks,
        now: Callable[[], datetime],
        mode: Mode,
        pausing: Pausing,
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
        self._journal, self._log, self._metrics = recorder
        self._clocks = clocks
        self._now = now
        self._mode = mode
        self._pausing = pausing
        self._paused: Eligibility | None = None
        self._pretence = Pretence(recorder) if mode.dry_run else None
        self.drill = drill
        self._facts: Facts | None = None
        self._decided_by: Policies | None = None
        self._decisions: Sequence[Decision] = ()
        self._hidden: tuple[Event, ...] = ()  # what the latest document cannot show, as it was
        self._known = Document()  # the latest document, and these
        # By Event.key, while the journal cannot be read: what the first whole document lists.
        self._listed_first: frozenset[str] | None = None
        self._over: dict[str, EventRecord] = {}  # by Event.key: what ended while the journal could not be read

    def restore(self, last_poll: Stamp | None) -> None:
        """Track the records that the scheduler has resumed."""
        found: dict[str, EventRecord] = {}
        for record in sorted(self._scheduler.records, key=first):
            if record.listed and record.drill == self.drill:
                stays = found.setdefault(record.event.key, record)
                if stays is not record:  # the previous runner ended just after it had found the other
                    shown = min((stays, record), key=lambda each: self._clocks.since(each.last_seen))
                    self._merge(stays, record, shown)
        self.tracker.restore(list(found.values()), last_poll)

    def adopt(self, record: EventRecord) -> None:
        """Go on with a record that could not be read at the start. Without the journal no hook was started since."""
        self._decided_by = None
        known = self.tracker.record_of(record.event.key)
        over = self._over.get(record.event.key)
        if over is not None:  # another event is listed under its id now
            record.take_over(over)
            waits = over.nameless and over in self._scheduler.records
            record.nameless = record.nameless or waits  # the policies are asked once, about the one that goes on
            self._scheduler.ended_before(record, over)
            if waits and not over.plan.runs:
                self._scheduler.supersede(over)
            return
        if self._listed_first is not None and record.event.key not in self._listed_first:
            self._gone(*self.tracker.ended_unread(record))
            return
        if known is None:
            self.tracker.restore([record], None)
            return
        stays, other = sorted((record, known), key=first)
        self._merge(stays, other, known)
        self.tracker.replace(stays)

    def _merge(self, stays: EventRecord, other: EventRecord, shown: EventRecord) -> None:
        """Go on with one of two records of the same event. ``shown`` is the one that a document showed last."""
        if shown is other and stays.follow(shown):
            self._scheduler.content_changed(stays)
        stays.take_over(other)
        if stays.started_at is not None:
            self._scheduler.started(stays, stays.started_at)
        stays.last_seen = shown.last_seen
        self._scheduler.supersede(other)

    def process(self, document: Document, vm: Vm, age_seconds: float = 0.0) -> list[list[Event]]:
        """Take in the document as it was ``age_seconds`` ago; return the events to approve now, grouped by request."""
        self._drop_notify_hooks()
        changed = document != self.document  # all of it: equal incarnations may hide a reset (SE-05, SE-10)
        if changed:
            self.document = document
            self._report_document(document)
        # An answer without a body, or one that can be read only in part, does not show all that is listed.
        whole = document.incarnation is not None and not document.problems
        if self._journal.damaged_unknown and not self.drill:
            listed = [event.key for event in document.events]
            (self._journal.listed if whole else self._journal.suspect)(listed)
        if self._journal.unread and whole and self._listed_first is None:
            self._listed_first = frozenset(event.key for event in document.events)
        if self.group is not None and whole:
            self.group.coordinator.listed([event.key for event in document.events])
        gone = self.tracker.update(document, changed, age_seconds)
        for record in self.tracker.news:
            self._journal.save(record.as_row())
        self.ended = [tracked.record for tracked, _outcome in gone]
        for tracked, outcome in gone:
            self._gone(tracked, outcome)
        for record in self.tracker.changed:
            self._scheduler.content_changed(record)
        records = [self.tracker[event].record for event in document.events]
        begun = [
            record for record in records if record.event.event_status == "Started" and self._scheduler.started(record)
        ]
        hidden = tuple(record.event for record in self.tracker.hidden if record.confirmed)
        now = self._now()
        self.ask_late(vm, now)
        if changed or hidden != self._hidden or self._outdated(vm):
            self._hidden = hidden
            self._known = replace(document, events=document.events + hidden) if hidden else document
            self._decide(Facts(now, vm, self.tracker.first_seen(now)))
        eligibilities = self._follow_decisions(vm.name, now)
        for record in begun:  # now that its notify hooks are known
            self._scheduler.notify(record, BEGAN)
        return self.tracker.to_send(eligibilities)

    def decide_again(self, vm: Vm) -> None:
        """Plan the hooks by the policies and the time as they are now, though the service has listed nothing since.

        Nothing is approved: that takes a fresh document.
        """
        now = self._now()
        self.ask_late(vm, now)
        if self._known.events and self._facts is not None and self._outdated(vm):
            self._decide(Facts(now, vm, self.tracker.first_seen(now)))
        elif self.group is None:
            return
        self._follow_decisions(vm.name, now)

    def _follow_decisions(self, vm_name: str | None, now: datetime) -> list[tuple[Decision, Eligibility]]:
        """Plan the hooks of all events; report, and return, the eligibility of those that the latest document shows."""
        shown = {event.key for event in self.document.events} if self.document else set()
        self._paused = self._pausing.obstacle()
        found = []
        for decision in self._decisions:
            self._plan(decision, vm_name)
            tracked = self.tracker[decision.event]
            if self.group is not None:
                self.group.hold_back(decision, tracked.record, vm_name)
            if decision.event.key not in shown:
                continue
            blocked = self._blocked(decision, tracked.record)
            self.tracker.note_approvable(decision, ready=blocked is None)
            answer = self._eligibility(decision, blocked, vm_name, now)
            self._report_decision(decision, answer, tracked, now)
            if self._pretence is not None and not tracked.record.undecided:
                self._pretence.act(tracked.record, _acting(decision, vm_name), decision.event.notice_seconds(now))
            found.append((decision, answer))
        if self.group is not None:
            self.group.tell(vm_name)
        return found

    def ask_late(self, vm: Vm, now: datetime | None = None) -> None:
        """Ask the policies what to recover after events that were over before this VM knew its name.

        If it will never know, there is nothing to ask.
        """
        if vm.name is None and not self.nameless:
            return
        now = self._now() if now is None else now
        for record in [record for record in self._scheduler.records if record.nameless and not record.listed]:
            if record.drill != self.drill:
                continue
            if self.nameless:
                self._scheduler.recover_late(record, ())
                continue
            first_seen = {record.event.key: now - timedelta(seconds=self._clocks.since(record.first_seen))}
            document = Document(events=(record.event,), api_version=self.policies.api_version)
            decision = self.policies.decide(document, Facts(now, vm, first_seen))[0]
            verdicts = _acting(decision, vm.name)
            if self._pretence is not None:
                late = [verdict._replace(prepare=()) for verdict in verdicts if verdict.recover_when == RECOVER_WHEN[1]]
                self._pretence.act(record, late, None)
                self._pretence.gone(record, record.outcome or states.UNSEEN)
            self._scheduler.recover_late(record, () if self._mode.dry_run else verdicts)

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
        self._decisions = self.policies.decide(self._known, facts)
        if self.shadow is not None and not self.drill:
            for found in self.shadow.compare(self._known, facts, self._decisions):
                fields = {"event_id": found.event.event_id, "live": found.live.output, "other": found.other.output}
                self._log.warning("shadow", **fields, reason=found.what)
                self._journal.note("shadow", self.tracker[found.event].record.identifier, **fields, what=found.what)
                self._metrics.count(
                    "forewarn_shadow_disagreements_total", live=found.live.output, other=found.other.output
                )

    def _plan(self, decision: Decision, vm_name: str | None) -> None:
        tracked = self.tracker[decision.event]
        record = tracked.record
        if not record.affected and decision.event.place_of(vm_name) is not None:
            record.affected = True
            self._journal.save(record.as_row())
        if record.state in (states.SEEN, states.HELD):
            self._scheduler.records.step(record, decision.output, decision.reason)
        if record.nameless != (vm_name is None):
            record.nameless = vm_name is None
            self._journal.save(record.as_row())
        record.undecided = record.nameless or _in_doubt(decision)
        if not self._mode.dry_run and record.notify_also(decision.notify):
            self._journal.save(record.as_row())
        if tracked.planned is not decision and not (self._mode.dry_run or self._mode.once):
            if not record.undecided:
                self._scheduler.plan(record, _acting(decision, vm_name))
            tracked.planned = decision

    def _eligibility(
        self, decision: Decision, blocked: Eligibility | None, vm_name: str | None, now: datetime
    ) -> Eligibility:
        agreement = _REHEARSED if self.drill else None
        if self.group is not None:
            record = self.tracker[decision.event].record
            agreement = self.group.agreement(decision, record, blocked, vm_name, now)
        found = eligibility(decision, vm_name, now, self.tracker.approvable_seconds(decision.event), agreement)
        return blocked if blocked is not None and (found.send or found.code in (NOT_LEADER, GROUP, NO_SLOT)) else found

    def _drop_notify_hooks(self) -> None:
        """Drop notify hooks that changed policies no longer name."""
        if self._decided_by is self.policies:
            return
        named = list(map(as_asked, self.policies.every_hook()))
        for record in self.tracker.records:
            kept = [hook for hook in record.notify if as_asked(hook) in named]
            if kept != record.notify:
                record.notify = kept
                self._journal.save(record.as_row())

    def _blocked(self, decision: Decision, record: EventRecord) -> Eligibility | None:
        """Return what keeps this VM from approving, whatever the policies decide, or None."""
        return self._unready(decision, record) or self._paused

    def _unready(self, decision: Decision, record: EventRecord) -> Eligibility | None:
        """Return what is still to be done, or known, before this VM may approve, or None."""
        if record.state == states.STARTED and decision.event.event_status != "Started":
            return Eligibility(STARTED, "it has started before, and an event starts only once")
        doubt = self._journal.doubt(record.event.key)
        if doubt is not None:
            return Eligibility(IN_DOUBT, doubt)
        if self._mode.dry_run:
            return self._early(decision)
        if not (decision.prepare or record.plan.runs):
            return None
        if self._mode.once:
            return Eligibility(NEEDS_RUNNER, "its hooks need a running service: --once has no time for them")
        if self._journal.trouble is not None:
            return Eligibility(NO_JOURNAL, f"nobody could promise its recovery: {self._journal.trouble}")
        if self._journal.late:
            return Eligibility(NO_JOURNAL, RESUMING)
        if decision.prepare and not record.plan.wanted():
            return Eligibility(PREPARING, "its hooks are not planned")
        late = self._scheduler.preparation.late(
            record
        )  # of the document as it is now: NotBefore may have been postponed
        state, run = record.plan.preparation(late)
        if state == SUCCEEDED:
            return None
        text = "" if run is None else commands.describe(run.hook)
        if state == FAILED:
            return Eligibility(NOT_PREPARED, f"a prepare hook failed: {text}: {'' if run is None else run.reason}")
        if late and state == WAITING:
            return Eligibility(NOT_PREPARED, record.obstacle or f"there was no time left for {text}")
        if record.held_back is not None and state == WAITING:
            return record.held_back
        pause = self._scheduler.preparation.begins_in(record)
        if pause and state == WAITING and not record.plan.begun():
            return Eligibility(PREPARING, f"its preparation, {text}, begins in {duration_text(round(pause))}")
        if run is not None and run.failures:
            return Eligibility(NOT_PREPARED, f"a prepare hook failed, and is tried again: {text}: {run.reason}")
        return Eligibility(PREPARING, f"waits for {text}" + (f": {record.obstacle}" if record.obstacle else ""))

    def _early(self, decision: Decision) -> Eligibility | None:
        """Return what keeps a dry run from approving: a preparation whose time has not come, or None."""
        notice = decision.event.notice_seconds(self._now())
        withins = [verdict.prepare_within_seconds for verdict in decision.verdicts if verdict.prepare]
        waits = [notice - within for within in withins if notice is not None and within is not None]
        wait = max(waits, default=0.0)
        return (
            Eligibility(PREPARING, f"its preparation would begin in {duration_text(round(wait))}")
            if wait > 0.0
            else None
        )

    def _gone(self, tracked: Tracked, outcome: str) -> None:
        record = tracked.record
        seconds = round(self._clocks.monotonic() - tracked.first_seen, 3)
        fields = {"outcome": outcome, "listed_seconds": seconds}
        event = record.event
        self._log.info("event-gone", event_id=event.event_id, type=event.event_type, **fields, drill=self.drill or None)
        self._journal.note("event-gone", record.identifier, **fields)
        if self.shadow is not None:
            self.shadow.forget(record.event.key)
        # Without a name, the policies are asked once there is one, if that may make a difference.
        may_have_started = record.started_at is not None or outcome != states.CALLED_OFF
        record.nameless = (
            record.nameless and may_have_started and self.policies.recovers_started and not self._mode.once
        )
        if self._pretence is not None and not record.nameless:
            self._pretence.gone(record, outcome)
        if self._journal.unread:
            self._over[record.event.key] = record
        self._scheduler.gone(record, outcome)

    def _report_document(self, document: Document) -> None:
        problems = list(document.problems) or None
        write = self._log.warning if problems else self._log.info
        drill = self.drill or None
        write("document", incarnation=document.incarnation, events=len(document.events), problems=problems, drill=drill)
        kept = {"DocumentIncarnation": document.incarnation, "Events": [event.as_dict() for event in document.events]}
        self._journal.note(
            "document", None, incarnation=document.incarnation, document=kept, problems=problems, drill=drill
        )
        if not self.drill:
            self._metrics.count("forewarn_documents_total")

    def _report_decision(self, decision: Decision, where: Eligibility, tracked: Tracked, now: datetime) -> None:
        """Log and keep the decision about an event if it has changed. Other numbers in the reason are no change."""
        event = decision.event
        record = tracked.record
        news = (where.code, decision.output, decision.policy, decision.rule, event.event_status, event.not_before)
        if tracked.logged == news:
            known = record.decision
            if where.code in (GROUP, NO_SLOT) and known is not None and known["eligibility_reason"] != where.reason:
                record.decision = {**known, "eligibility_reason": where.reason}  # whom it waits for now
                self._journal.save(record.as_row())
            return
        tracked.logged = news
        notice = event.notice_seconds(now)
        error = next((verdict.error for verdict in decision.verdicts if verdict.error), None)
        fields: dict[str, Any] = {
            "event_id": event.event_id,
            "type": event.event_type,
            "status": event.event_status,
            "source": event.event_source,
            "resources": list(event.resources),
            "seconds_to_not_before": None if notice is None else round(notice, 3),
            "output": decision.output,
            "policy": decision.policy,
            "rule": decision.rule,
            "values": {value.expression: value.value for value in decision.values} or None,
            "error": error,
            "drill": self.drill or None,
        }
        write = self._log.warning if error or event.problems else self._log.info
        policy_reason = decision.reason if decision.reason != where.reason else None
        description = shortened(event.description)  # the last field: of any length, and for people
        shown = {**fields, "description": description}
        write("decision", eligibility=where.code, reason=where.reason, policy_reason=policy_reason, **shown)
        details = {
            "reason": decision.reason,
            "eligibility": where.code,
            "eligibility_reason": where.reason,
            "wait_seconds": where.wait_seconds,  # until it may change by itself
        }
        self._journal.note("decision", record.identifier, **fields, **details)
        answer = {"output": decision.output, "policy": decision.policy, "rule": decision.rule}
        decided_anew = record.decision is None or any(record.decision[key] != value for key, value in answer.items())
        record.decision = {**details, **answer}
        self._journal.save(record.as_row())
        if decided_anew:
            self._metrics.count("forewarn_decisions_total", drill=self.drill, **answer)
            if event.event_status != "Started":
                self._scheduler.notify(record, DECIDED)


def _in_doubt(decision: Decision) -> bool:
    """Return whether the policies cannot be asked about the event as it is listed."""
    unknown = decision.event.event_status not in EVENT_STATUSES
    return bool(decision.event.problems) or (unknown and any(verdict.in_doubt for verdict in decision.verdicts))


def _acting(decision: Decision, vm_name: str | None) -> list[Verdict]:
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
