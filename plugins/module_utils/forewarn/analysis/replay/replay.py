# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs recorded documents through a policy: what it would have decided, and when this VM would have approved.

It decides like a runner that asked at each moment at which something could have changed. Hooks take no time here, and
everybody else acts as recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from itertools import groupby
from typing import Any, Generic, NamedTuple, TypeVar

from ...events import Document, Event, Vm
from ...policy.approval import Eligibility, eligibility
from ...policy.decision import APPROVE, Decision, Facts
from ...policy.engine import PolicySet
from ...policy.view import DocumentView
from .breakpoints import Clockwork, MatchedRule, TimedAnswers, breakpoints, horizon
from .recordings import RecordedDecision, RecordedDocument

# The outcomes of an event, as far as this VM is concerned.
APPROVED, HELD, NOT_SENT, STARTED = "approved", "held", "not-sent", "started"
TOLERANCE = timedelta(seconds=60)  # the longest that a runner waits between two polls
_SECOND = timedelta(seconds=1)
_NO_TIME = datetime(1970, 1, 1, tzinfo=timezone.utc)


class TimedDecision(NamedTuple):
    """What is decided for an event from a moment on; ``at`` is None where the recording has no times."""

    at: datetime | None
    status: str
    output: str
    policy: str | None
    rule: str | None
    reason: str
    eligibility: str
    eligibility_reason: str
    hooks: int  # that would have to succeed before


D = TypeVar("D", RecordedDecision, TimedDecision)


@dataclass
class DecisionCourse(Generic[D]):
    """The decisions about an event in the order of time, and whether an approval was sent, and when, if known."""

    decisions: list[D] = field(default_factory=list)
    approved: bool = False
    approved_at: datetime | None = None

    @property
    def known(self) -> bool:
        """Whether anything is known of it."""
        return self.approved or bool(self.decisions)

    @property
    def outcome(self) -> str:
        """The outcome: one of this module's constants."""
        outputs = {one.output for one in self.decisions if one.status != "Started"}
        if self.approved or not outputs:
            return APPROVED if self.approved else STARTED
        return NOT_SENT if APPROVE in outputs else HELD

    def approve(self, at: datetime | None) -> None:
        """Note that an approval is sent, unless one was before."""
        if not self.approved:
            self.approved, self.approved_at = True, at

    def steps(self) -> list[D]:
        """Return the first of each run of the same output, from the time before the event started."""
        unstarted = (decision for decision in self.decisions if decision.status != "Started")
        return [next(run) for _output, run in groupby(unstarted, lambda decision: decision.output)]


@dataclass
class ReplayedEvent:
    """One event, from when it was first listed until it was last listed. ``vm`` is the name of the VM that asks.

    ``then`` is what a runner recorded: nothing without a journal. ``now`` has each change of the decision, and the
    approval that would have been sent. ``waits_until`` is when this VM takes over from others.
    """

    event: Event
    vm: str | None
    first_seen: datetime | None
    last_seen: datetime | None = None
    then: DecisionCourse[RecordedDecision] = field(default_factory=DecisionCourse)
    now: DecisionCourse[TimedDecision] = field(default_factory=DecisionCourse)
    not_before: datetime | None = None  # the last that was known
    approvable_since: datetime | None = None
    waits_until: datetime | None = None

    @property
    def changed(self) -> bool | None:
        """Whether it would have been decided otherwise before it started, or more than a minute earlier or later.

        None if no decisions were recorded.
        """
        if not self.then.decisions:
            return None
        then, now = self.then.steps(), self.now.steps()
        if [past.output for past in then] != [decided.output for decided in now]:
            return True
        return any(
            decided.at is not None and abs(decided.at - past.at) > TOLERANCE
            for past, decided in zip(then[1:], now[1:], strict=True)
        )

    def latency_seconds(self, course: DecisionCourse[D]) -> float | None:
        """Return the time from when it was first listed to the approval."""
        return _between(self.first_seen, course.approved_at)

    def ahead_seconds(self, course: DecisionCourse[D]) -> float | None:
        """Return the time from the approval to NotBefore."""
        return _between(course.approved_at, self.not_before)

    def difference(self) -> tuple[RecordedDecision, TimedDecision] | None:
        """Return the decisions, then and now, at which the outputs begin to differ; None if nothing has changed.

        Both have the same output if only the time differs.
        """
        if not self.changed:
            return None
        then, now = self.then.steps(), self.now.steps()
        if not then or not now:
            return None
        place = next(
            (place for place, (one, two) in enumerate(zip(then, now, strict=False)) if one.output != two.output),
            max(len(then), len(now)) - 1,
        )
        return then[min(place, len(then) - 1)], now[min(place, len(now) - 1)]


class Replay:
    """Feeds records to policies. ``vm`` decides where a record does not name one.

    ``documents`` counts the records with a document, ``backwards`` those older than the previous one.
    """

    def __init__(self, policies: PolicySet, params: Mapping[str, Any], vm: Vm) -> None:
        self.documents = 0
        self.backwards = 0
        self.first: datetime | None = None
        self.last: datetime | None = None
        self._policies = policies
        self._clockwork = Clockwork(policies.artifact, params)
        self._vm = vm
        self._streams: dict[str | None, _Stream] = {}

    @property
    def time_dependent(self) -> bool:
        """Whether the time must be known to decide."""
        return self._clockwork.time_dependent

    def feed(self, record: RecordedDocument) -> Iterator[ReplayedEvent]:
        """Process a record; yield the events that are no longer listed."""
        self.documents += record.document is not None
        if record.at is not None:
            self.first = min(record.at, self.first or record.at)
            self.last = max(record.at, self.last or record.at)
        vm = record.vm or self._vm
        name = None if vm.name is None else vm.name.lower()
        stream = self._streams.get(name)
        if stream is None:
            stream = self._streams[name] = _Stream(self._policies, self._clockwork)
        if record.at is not None and stream.at is not None and record.at < stream.at:
            self.backwards += 1
        yield from stream.feed(record, vm)

    def end(self, until: datetime | None = None) -> Iterator[ReplayedEvent]:
        """Let time pass until ``until``, and yield the events that are still listed."""
        for stream in self._streams.values():
            yield from stream.end(until)
        self._streams.clear()


class _Stream:
    """What one VM gets from the service."""

    def __init__(self, policies: PolicySet, clockwork: Clockwork) -> None:
        self.at: datetime | None = None
        self._policies = policies
        self._clockwork = clockwork
        self._vm = Vm()
        self._document = Document()
        self._view: DocumentView | None = None  # of the document, at the last decision
        self._listed: dict[str, ReplayedEvent] = {}
        self._scheduled: list[Event] = []  # the listed events that may still be approved
        self._first_seen: dict[str, datetime] = {}  # by Event.key
        # At which answers may change, by the times that policies name; None: not yet asked for.
        self._instants: list[datetime] | None = None
        self._answers = TimedAnswers((), True)

    def feed(self, record: RecordedDocument, vm: Vm) -> Iterator[ReplayedEvent]:
        if record.at is not None:
            self._pass_time(record.at)
        document = record.document
        moved, self._vm = vm != self._vm, vm
        if document is not None and (moved or document != self._document):
            yield from self._update(document, record.at)
            self._decide(record.at)
            self._instants = None
        for listed in self._listed.values():
            listed.last_seen = record.at or listed.last_seen
        self.at = record.at or self.at
        for past in record.decisions:
            if past.event in self._listed:
                self._listed[past.event].then.decisions.append(past)
        for key, at in record.approved:
            if key in self._listed:
                self._listed[key].then.approve(at)

    def end(self, until: datetime | None) -> Iterator[ReplayedEvent]:
        if until is not None:
            self._pass_time(until)
        yield from self._listed.values()
        self._listed.clear()

    def _update(self, document: Document, at: datetime | None) -> Iterator[ReplayedEvent]:
        self._document = document
        keys = {event.key for event in document.events}
        if not document.problems:  # an entry that cannot be read may be any event
            for key in [key for key in self._listed if key not in keys]:
                yield self._listed.pop(key)
        for event in document.events:
            listed = self._listed.get(event.key)
            if listed is None:
                listed = self._listed[event.key] = ReplayedEvent(event, self._vm.name, at)
            listed.event = event
            listed.not_before = event.not_before or listed.not_before
        self._scheduled = [event for event in document.events if event.event_status != "Started" and not event.problems]
        seen = ((key, listed.first_seen) for key, listed in self._listed.items())
        self._first_seen = {key: moment for key, moment in seen if moment is not None}

    # Time

    def _pass_time(self, until: datetime) -> None:
        """Decide again whenever, until then, the same document may be decided otherwise."""
        begin = self.at
        if begin is None or not self._scheduled or until <= begin:
            return
        if not self._clockwork.time_dependent:
            self._decide_after_waits(begin, until)
            return
        waits = [listed.waits_until for listed in self._listed.values() if listed.waits_until is not None]
        if not waits and self._answers.settled:
            return
        if self._instants is None:
            self._instants = self._clockwork.instants(self._scheduled, self._first_seen)
        end = horizon(begin, until, self._scheduled)
        before = begin
        for moment in breakpoints(begin, end, sorted([*self._instants, *waits])):
            self._decide_at_changes(before, moment)
            before = moment

    def _decide_at_changes(self, before: datetime, moment: datetime) -> None:
        """Decide at the second at which the answers change, and when a wait is over."""
        while self._answer(moment) != self._answers.rules:
            early, late = before, moment
            while late - early > _SECOND:
                middle = early + (late - early) / 2
                early, late = (middle, late) if self._answer(middle) == self._answers.rules else (early, middle)
            self._decide_after_waits(before, late)
            self._decide(late)
            before = late
            if late >= moment:
                return
        self._decide_after_waits(before, moment)

    def _decide_after_waits(self, before: datetime, until: datetime) -> None:
        ends = (listed.waits_until for listed in self._listed.values())
        for moment in sorted(end for end in ends if end is not None and before < end <= until):
            self._decide(moment)

    def _answer(self, moment: datetime) -> tuple[MatchedRule, ...]:
        return self._answers_at(self._facts(moment)).rules

    def _answers_at(self, facts: Facts) -> TimedAnswers:
        return self._clockwork.answers(DocumentView(self._document, facts, self._view), self._scheduled)

    # Decisions

    def _facts(self, now: datetime) -> Facts:
        return Facts(now, self._vm, self._first_seen)

    def _decide(self, at: datetime | None) -> None:
        if not self._document.events:
            return
        now = at or _NO_TIME
        facts = self._facts(now)
        for decision in self._policies.decide(self._document, facts):
            self._record(self._listed[decision.event.key], decision, now, at)
        self._view = self._policies.last_view
        if self._clockwork.time_dependent and self._scheduled:
            self._answers = self._answers_at(facts)

    def _record(self, listed: ReplayedEvent, decision: Decision, now: datetime, at: datetime | None) -> None:
        if decision.output == APPROVE:
            listed.approvable_since = listed.approvable_since or now
        else:
            listed.approvable_since = None
        since = listed.approvable_since or now
        where = eligibility(decision, self._vm.name, now, (now - since).total_seconds())
        waits = where.wait_seconds is not None and at is not None
        listed.waits_until = now + timedelta(seconds=where.wait_seconds or 0) if waits else None
        if where.send:
            listed.now.approve(at)
        decided, before = _decided(decision, where, at), listed.now.decisions
        if not before or _content(before[-1]) != _content(decided):
            before.append(decided)


def _decided(decision: Decision, where: Eligibility, at: datetime | None) -> TimedDecision:
    return TimedDecision(
        at,
        decision.event.event_status or "",
        decision.output,
        decision.policy,
        decision.rule,
        decision.reason,
        where.code,
        where.reason,
        len(decision.prepare),
    )


def _content(decided: TimedDecision) -> tuple[object, ...]:
    return decided.status, decided.output, decided.policy, decided.rule, decided.eligibility


def _between(first: datetime | None, second: datetime | None) -> float | None:
    return None if first is None or second is None else (second - first).total_seconds()
