# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state of each listed event beside its record: what a restart may forget."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from ..events import Document, Event
from ..imds.errors import CONNECTION, NOT_SENT, Fault, LastingFault
from ..imds.retry import RetryPolicy
from ..policy.approval import Eligibility
from ..policy.decision import APPROVE, Decision
from .clocks import Clocks, Stamp
from .event_record import CALLED_OFF, FINISHED, UNSEEN, EventRecord, with_known_fields
from .poller import is_due

# An approved event that is still Scheduled after this long was forgotten by the service, or its approval was lost;
# doubled each time, because a start may also just be late (SE-33).
REPEAT_SECONDS = 60.0
# Without an answer for longer than this, an event may have started and ended unseen: it is not called cancelled.
LONGEST_GAP_SECONDS = 10.0
# An answer without a body can mean that nothing is scheduled, or that something went wrong on the way. Listed events
# count as gone only when all answers for this long had no body: to recover before an event that is about to start would
# do harm. Of a longer gap between two answers only ``LONGEST_GAP_SECONDS`` count.
EMPTY_SECONDS = 60.0


class TrackedEvent:
    """One listed event. Times are monotonic seconds."""

    def __init__(self, record: EventRecord, first_seen: float, last_seen: float, retry: RetryPolicy) -> None:
        self.record = record
        self.first_seen = first_seen
        self.last_seen = last_seen
        self.retry = retry  # of the approval
        self.approvable_since: float | None = None
        self.approved_at: float | None = None
        self.simulated = False  # a dry run has reported its approval
        self.needs_own_request = False  # one with other events was refused
        self.refused = False  # the service refused the approval of this event as it is in this document
        self.unanswered_before = False  # whether an approval had no answer before the latest was sent
        self.last_logged: tuple[object, ...] = ()
        self.planned_decision: Decision | None = None  # whose hooks the plan has

    def forget_approval(self, retry: RetryPolicy) -> None:
        """Let the event be approved anew: the approval was of other content."""
        self.approvable_since = self.approved_at = None
        self.simulated = self.needs_own_request = self.refused = False
        self.retry = retry
        self.last_logged = ()

    def outcome(self, now: float, wall: float, boot_id: str) -> str:
        """Return the outcome of an event that is no longer listed (SE-20, SE-21).

        It may have started and ended unseen if it was approved or its NotBefore had passed, if the last answer is long
        ago (a frozen VM asks nobody), or if the machine has rebooted since (``boot_id`` differs).
        """
        if self.record.started_at is not None:
            return FINISHED
        not_before = self.record.event.not_before
        could_start = (
            self.record.approvals > 0
            or self.record.unanswered
            or (not_before is not None and wall >= not_before.timestamp())
            or self.record.event.event_status != "Scheduled"  # it cannot be read, or its meaning is unknown
        )
        watched = now - self.last_seen <= LONGEST_GAP_SECONDS and self.record.last_seen.boot_id == boot_id
        return CALLED_OFF if watched and not could_start else UNSEEN

    def approval_due(self, now: float) -> bool:
        """Return whether an approval may be sent now, as far as earlier ones are concerned."""
        if self.simulated:
            return False
        if self.approved_at is not None:
            return now - self.approved_at >= REPEAT_SECONDS * 2.0 ** max(0, self.record.content_approvals - 1)
        return not self.refused and is_due(self.retry, now)


class Tracker:
    """The listed events, by ``Event.key``. ``open_record`` opens the record of a new one."""

    def __init__(self, clocks: Clocks, open_record: Callable[[Event], EventRecord]) -> None:
        self._clocks = clocks
        self._clock = clocks.monotonic
        self._open_record = open_record
        self.changed_records: list[EventRecord] = []  # whose content the latest document has changed
        self.hidden_records: list[EventRecord] = []  # that it does not show, though it may still be listed
        self.visibility_changes: list[EventRecord] = []  # whose being hidden has changed
        self._tracked: dict[str, TrackedEvent] = {}
        self._empty_at: float | None = None  # the latest answer, if it had no body
        self._empty_seconds = 0.0  # how long answers have had none

    def __getitem__(self, event: Event) -> TrackedEvent:
        return self._tracked[event.key]

    @property
    def records(self) -> list[EventRecord]:
        """The records of the listed events."""
        return [tracked.record for tracked in self._tracked.values()]

    def records_of(self, events: Sequence[Event]) -> list[EventRecord]:
        """Return the records of these events, which are listed."""
        return [self[event].record for event in events]

    def restore(self, records: Sequence[EventRecord], last_poll: Stamp | None) -> None:
        """Resume records that were listed when the previous runner ended; ``last_poll`` is when it had an answer."""
        for record in records:
            self._tracked[record.event.key] = self._restore(record, last_poll)

    def end_unread(self, record: EventRecord) -> tuple[TrackedEvent, str]:
        """Return the outcome of an event that left the list while its record could not be read."""
        tracked = self._restore(record, None)
        return tracked, tracked.outcome(self._clock(), self._clocks.wall(), self._clocks.boot_id)

    def _restore(self, record: EventRecord, last_poll: Stamp | None) -> TrackedEvent:
        now = self._clock()
        seen = record.last_seen
        if last_poll is not None and not record.missing and self._clocks.since(last_poll) < self._clocks.since(seen):
            seen = last_poll
        tracked = TrackedEvent(
            record, now - self._clocks.since(record.first_seen), now - self._clocks.since(seen), self._retry()
        )
        if record.approved_at is not None:
            tracked.approved_at = now - self._clocks.since(record.approved_at)
        return tracked

    def record_of(self, key: str) -> EventRecord | None:
        """Return the record of a listed event by ``Event.key``, or None."""
        tracked = self._tracked.get(key)
        return None if tracked is None else tracked.record

    def replace(self, record: EventRecord) -> None:
        """Replace the record of a listed event. Nothing is done for it until the next document confirms it."""
        before = self._tracked[record.event.key]
        self.restore([record], None)
        self._tracked[record.event.key].last_seen = before.last_seen
        record.confirmed = False

    def _retry(self) -> RetryPolicy:
        return RetryPolicy(clock=self._clock)

    def update(self, document: Document, changed: bool, age_seconds: float = 0.0) -> list[tuple[TrackedEvent, str]]:
        """Apply a document of ``age_seconds`` ago; return the events that have left the list, with their outcome.

        No event counts as gone while the document has entries that cannot be read, or when answers have had no body for
        less than ``EMPTY_SECONDS``.
        """
        now = self._clock()
        seen = self._clocks.stamp(age_seconds)
        self.changed_records = []
        self.visibility_changes = []
        listed = {event.key: event for event in document.events}
        sure = not document.problems
        if document.incarnation is not None or listed:
            self._empty_at, self._empty_seconds = None, 0.0
        else:
            gap = 0.0 if self._empty_at is None else now - self._empty_at
            self._empty_at, self._empty_seconds = now, self._empty_seconds + min(gap, LONGEST_GAP_SECONDS)
            sure = sure and self._empty_seconds >= EMPTY_SECONDS
        departed = [tracked for key, tracked in self._tracked.items() if key not in listed and sure]
        for tracked in departed:
            del self._tracked[tracked.record.event.key]
        for key, event in listed.items():
            known = self._tracked.get(key)
            if known is None:
                known = TrackedEvent(self._open_record(event), now, now - age_seconds, self._retry())
                self._tracked[key] = known
            if known.record.update_content(event):
                known.forget_approval(self._retry())
                self.changed_records.append(known.record)
            known.record.event = with_known_fields(known.record.event, event)
            known.record.last_seen = seen
            known.record.confirmed = True
            known.last_seen = max(known.last_seen, now - age_seconds)
            if changed and known.refused:
                known.refused = False
                known.retry.record_success()
        for key, tracked in self._tracked.items():
            if tracked.record.missing != (key not in listed):
                tracked.record.missing = key not in listed
                self.visibility_changes.append(tracked.record)
        self.hidden_records = [tracked.record for tracked in self._tracked.values() if tracked.record.missing]
        wall = self._clocks.wall()
        return [(tracked, tracked.outcome(now, wall, self._clocks.boot_id)) for tracked in departed]

    def first_seen(self, wall: datetime) -> dict[str, datetime]:
        """Return, by key, since when each event has been listed: measured backwards from ``wall``.

        A wall clock that is set while events are listed thus makes none of them older than it is.
        """
        now = self._clock()
        return {key: wall - timedelta(seconds=now - tracked.first_seen) for key, tracked in self._tracked.items()}

    def update_approvable(self, decision: Decision, *, ready: bool) -> None:
        """Update since when the event is decided ``approve`` and this VM ``ready``."""
        tracked = self[decision.event]
        if decision.output != APPROVE or not ready:
            tracked.approvable_since = None
        elif tracked.approvable_since is None:
            tracked.approvable_since = self._clock()

    def approvable_seconds(self, event: Event) -> float:
        """Return for how many seconds the event has been ``approve`` and ready without a break."""
        since = self[event].approvable_since
        return 0.0 if since is None else self._clock() - since

    def requests_due(self, eligibilities: Sequence[tuple[Decision, Eligibility]]) -> list[list[Event]]:
        """Return the events to approve now, grouped by request."""
        now = self._clock()
        due = [
            decision.event
            for decision, eligibility in eligibilities
            if eligibility.send and self[decision.event].approval_due(now)
        ]
        together = [event for event in due if not self[event].needs_own_request]
        return ([together] if together else []) + [[event] for event in due if self[event].needs_own_request]

    def record_approvals(self, events: Sequence[Event]) -> None:
        """Record that the service took the approvals."""
        for event in events:
            tracked = self[event]
            tracked.approved_at = self._clock()
            tracked.record.approvals += 1
            tracked.record.content_approvals += 1
            tracked.record.approved_at = self._clocks.stamp()
            tracked.record.unanswered = False
            tracked.retry.record_success()

    def record_simulation(self, events: Sequence[Event]) -> None:
        """Record that a dry run would have sent the approvals."""
        for event in events:
            self[event].simulated = True

    def retry_in(self, keys: Sequence[str]) -> float:
        """Return the seconds until the first of these events, by ``Event.key``, may be approved again after a fault."""
        found = [self._tracked[key].retry.next_attempt_at for key in keys if key in self._tracked]
        return max(0.0, min((at for at in found if at is not None), default=0.0) - self._clock())

    def record_sending(self, events: Sequence[Event]) -> None:
        """Record that approvals are about to be sent: without an answer they may still have arrived."""
        for event in events:
            tracked = self[event]
            tracked.unanswered_before, tracked.record.unanswered = tracked.record.unanswered, True

    def record_not_sent(self, events: Sequence[Event]) -> None:
        """Record that the latest approvals have certainly not arrived."""
        for event in events:
            self[event].record.unanswered = self[event].unanswered_before

    def record_fault(self, events: Sequence[Event], fault: Fault) -> None:
        """Record that the service did not take the approvals."""
        if isinstance(fault, LastingFault) or fault.kind == NOT_SENT:
            self.record_not_sent(events)
        for event in events:
            tracked = self[event]
            tracked.approved_at = None
            tracked.refused = isinstance(fault, LastingFault) and fault.status == 400
            if fault.kind != NOT_SENT:
                tracked.retry.record_failure(fault)
            if fault.kind == CONNECTION and tracked.retry.failures == 1:
                tracked.retry.next_attempt_at = None  # it may just have been idle for too long

    def separate(self, events: Sequence[Event]) -> None:
        """Send each of these events in a request of its own from now on: one of them caused a refusal of all."""
        self.record_not_sent(events)
        for event in events:
            self[event].needs_own_request = True
