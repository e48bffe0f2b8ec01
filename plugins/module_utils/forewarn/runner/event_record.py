# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record of an event on this VM: its states, their transitions, and its form in the journal.

The table below is the whole machine. docs/runner-states.md draws it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

from ..events import Event, parse_time
from ..policy.approval import Eligibility
from ..policy.hook_body import with_body_source
from .clocks import Stamp
from .hooks.plan import Plan
from .journal.writer import EventRow

SEEN, HELD, PREPARING, PREPARED, FAILED = "seen", "held", "preparing", "prepared", "failed"
APPROVED, STARTED, RECOVERING, DONE, CANCELLED = "approved", "started", "recovering", "done", "cancelled"

# Inputs.
HOLD, APPROVE = "hold", "approve"  # the decision
BEGIN, READY, FAIL = "begin", "ready", "fail"  # the prepare hooks: the first is started, all succeeded, one failed
SENT = "sent"  # the service took the approval
RESET = "reset"  # the preparation no longer counts: the content has changed, or no hook is wanted any more
START = "start"  # the service lists it as Started
LEAVE = "leave"  # it is no longer listed, and something is to be recovered
FINISH, CANCEL = "finish", "cancel"  # it is no longer listed, and nothing is left to do

FINISHED, CALLED_OFF, UNSEEN = "finished", "cancelled", "unseen"  # EventRecord.outcome

_LEAVING = {LEAVE: RECOVERING, FINISH: DONE, CANCEL: CANCELLED}
TRANSITIONS: Mapping[str, Mapping[str, str]] = {
    SEEN: {HOLD: HELD, BEGIN: PREPARING, SENT: APPROVED, START: STARTED, **_LEAVING},
    HELD: {APPROVE: SEEN, BEGIN: PREPARING, RESET: SEEN, START: STARTED, **_LEAVING},
    PREPARING: {READY: PREPARED, FAIL: FAILED, RESET: SEEN, START: STARTED, **_LEAVING},
    PREPARED: {BEGIN: PREPARING, SENT: APPROVED, RESET: SEEN, START: STARTED, **_LEAVING},
    FAILED: {BEGIN: PREPARING, READY: PREPARED, RESET: SEEN, START: STARTED, **_LEAVING},
    APPROVED: {BEGIN: PREPARING, RESET: SEEN, START: STARTED, **_LEAVING},
    STARTED: dict(_LEAVING),
    RECOVERING: {FINISH: DONE, CANCEL: CANCELLED},
    DONE: {},
    CANCELLED: {},
}
LISTED = (SEEN, HELD, PREPARING, PREPARED, FAILED, APPROVED, STARTED)
OPEN = (*LISTED, RECOVERING)


class EventRecord:
    """An event from when it is first listed until everything is undone. ``identifier`` is unique, and rises."""

    def __init__(self, identifier: int, event: Event, seen: Stamp, drill: bool = False) -> None:
        self.identifier = identifier
        self.event = event
        self.drill = drill
        self.state = SEEN
        self.outcome: str | None = None
        self.first_seen = seen
        self.last_seen = seen
        self.started_at: Stamp | None = None
        self.gone_at: Stamp | None = None
        self.approvals = 0
        self.content_approvals = 0  # how many of these are of the current content
        self.approved_at: Stamp | None = None
        self.unanswered = False  # an approval was sent, or was about to be, and has no answer
        self.content = "" if event.problems else content_of(event)  # "": it could not be read yet
        self.revision = 0  # how often the content has changed
        self.affected = False  # it has named this VM
        # This VM did not know its name when the policies decided. If the event has ended, they decide again.
        self.nameless = False
        self.missing = False  # the latest answers could not tell whether it is still listed
        self.plan = Plan()
        self.notify: list[Mapping[str, Any]] = []
        self.decision: Mapping[str, Any] | None = None
        self.simulation: Mapping[str, Sequence[Sequence[Any]]] = {}  # what a dry run has reported of it
        self.paused_seconds = 0.0
        self.down_seconds = 0.0
        self.confirmed = False  # seen since the runner started; not saved
        self.undecided = False  # the policies cannot decide, or this VM has no name; not saved
        self.obstacle = ""  # why its preparation does not go on by itself; not saved
        self.group_blocker: Eligibility | None = None  # why its group delays its prepare hooks; not saved

    @property
    def listed(self) -> bool:
        """Whether the latest document lists it, as far as is known."""
        return self.state in LISTED

    @property
    def may_prepare(self) -> bool:
        """Whether it is listed, and is not known to have started."""
        return self.listed and self.state != STARTED and self.event.event_status != "Started"

    @property
    def urgency(self) -> tuple[float, int]:
        """The sort key of records, the most urgent first: NotBefore in seconds since 1970, then the identifier."""
        not_before = self.event.not_before
        return (inf if not_before is None else not_before.timestamp(), self.identifier)

    @property
    def may_have_started(self) -> bool:
        """Whether it has started, or ended in a way that does not exclude it (SE-20, SE-21)."""
        return self.started_at is not None or self.outcome in (FINISHED, UNSEEN)

    def update_content(self, event: Event) -> bool:
        """Update the content to that of the event as listed now; return whether it has changed.

        An event in doubt changes nothing: what cannot be read may be the same as before.
        """
        return self._set_content(self.content if event.problems else content_of(event))

    def _set_content(self, content: str) -> bool:
        changed = content != self.content and self.content != ""
        self.content = content
        self.revision += changed
        return changed

    def add_notify_hooks(self, hooks: Sequence[Mapping[str, Any]]) -> bool:
        """Add the notify hooks of a decision; return whether anything is new.

        Earlier hooks stay: a later decision may name none. The latest value of a hook's body replaces the earlier one.
        """
        before, renewed = self.notify, [with_body_source(hook) for hook in hooks if "content" in hook]
        self.notify = [
            hook for hook in before if "content" not in hook or hook in hooks or with_body_source(hook) not in renewed
        ]
        for hook in hooks:
            if hook not in self.notify:
                self.notify.append(hook)
        return self.notify != before

    def copy_event(self, shown: EventRecord) -> bool:
        """Copy the event from a record that a document showed later; return whether the content has changed."""
        if shown.content == "":  # it could not be read then
            return False
        self.event = shown.event
        return self._set_content(shown.content)

    def merge(self, other: EventRecord) -> None:
        """Merge another record of the same event into this one: one of the two could not be read for a while.

        An approval of other content counts only for how the event may have ended.
        """
        self.approvals += other.approvals
        self.unanswered = self.unanswered or other.unanswered
        self.started_at = self.started_at or other.started_at
        self.affected = self.affected or other.affected
        if self.content == "":  # it could not be read so far
            self.content, self.event = other.content, with_known_fields(other.event, self.event)
        if other.content == self.content:
            self.approved_at = other.approved_at or self.approved_at
            self.content_approvals += other.content_approvals

    def step(self, transition: str) -> bool:
        """Apply an input; one that the table does not name changes nothing. Return whether the state has changed."""
        after = TRANSITIONS[self.state].get(transition, self.state)
        changed = after != self.state
        self.state = after
        return changed

    def closing_input(self) -> str:
        """Return the input that closes the record, by its outcome."""
        return CANCEL if self.outcome == CALLED_OFF else FINISH

    def as_row(self) -> EventRow:
        """Return the row of the journal."""
        data = {
            "id": self.identifier,
            "event": self.event.as_dict(),
            "drill": self.drill,
            "state": self.state,
            "outcome": self.outcome,
            "first_seen": self.first_seen,
            "last_seen": self.last_seen,
            "started_at": self.started_at,
            "gone_at": self.gone_at,
            "approvals": self.approvals,
            "reminded": self.content_approvals,
            "approved_at": self.approved_at,
            "unanswered": self.unanswered,
            "content": self.content,
            "revision": self.revision,
            "affected": self.affected,
            "nameless": self.nameless,
            "missing": self.missing,
            **self.plan.as_json(),
            "notify": self.notify,
            "decision": self.decision,
            "pretended": self.simulation,
            "impact": {"paused_seconds": self.paused_seconds, "down_seconds": self.down_seconds},
        }
        return EventRow(self.identifier, self.event.key, self.state, self.state in OPEN, data)

    @classmethod
    def of(cls, row: EventRow) -> EventRecord:
        """Return what ``as_row`` wrote. Raises KeyError, TypeError or ValueError for anything else."""
        data = row.data
        record = cls(row.id, _event(data["event"]), Stamp.of(data["first_seen"]), bool(data["drill"]))
        if data["state"] not in TRANSITIONS:
            raise ValueError(f"no state is called {data['state']}")
        record.state = data["state"]
        record.outcome = data["outcome"]
        record.last_seen = Stamp.of(data["last_seen"])
        record.started_at = _stamp(data["started_at"])
        record.gone_at = _stamp(data["gone_at"])
        record.approvals = int(data["approvals"])
        record.approved_at = _stamp(data["approved_at"])
        # Earlier versions did not keep all of these.
        record.content = str(data.get("content", record.content))
        record.revision = int(data.get("revision", 0))
        record.content_approvals = int(data.get("reminded", record.approvals))
        for flag in ("unanswered", "affected", "nameless", "missing"):
            setattr(record, flag, bool(data.get(flag, False)))
        record.plan = Plan.of(data)
        record.notify = list(data["notify"])
        record.decision = data["decision"]
        record.simulation = dict(data.get("pretended") or {})
        record.paused_seconds = float(data["impact"]["paused_seconds"])
        record.down_seconds = float(data["impact"]["down_seconds"])
        return record


def merge_order(record: EventRecord) -> tuple[bool, int]:
    """Return the sort key of records of one event. The first stays: nothing was begun for the others.

    Their numbers alone do not decide: they come from a clock that may be set.
    """
    return not record.plan.has_begun(), record.identifier


def content_of(event: Event) -> str:
    """Return a digest of what a preparation and an approval depend on: type, Resources, source and duration.

    If one of these changes under one EventId, neither counts any longer. The order and case of Resources do not matter,
    nor do NotBefore, Description and EventStatus.
    """
    names = sorted({name.lower() for name in event.resources})
    content = [event.event_type, names, event.event_source, event.duration_in_seconds]
    return hashlib.sha256(json.dumps(content).encode("ascii")).hexdigest()[:32]


def with_known_fields(before: Event, event: Event) -> Event:
    """Return the event as listed now. One in doubt keeps what could be read before, but has its current status."""
    if not event.problems:
        return event
    names = ["event_type", "resource_type", "description", "event_source", "duration_in_seconds"]
    if event.event_status != "Started":  # NotBefore is blank then
        names.append("not_before")
    values = {name: getattr(before, name) for name in names if getattr(before, name) is not None}
    return event._replace(**values, resources=before.resources or event.resources)


def _stamp(value: Sequence[Any] | None) -> Stamp | None:
    return None if value is None else Stamp.of(value)


def _event(data: Mapping[str, Any]) -> Event:
    """Return the event that ``Event.as_dict`` wrote: hooks get it after a restart."""
    not_before = data.get("NotBefore")
    return Event(
        event_id=data["EventId"],
        event_type=data.get("EventType"),
        resource_type=data.get("ResourceType"),
        resources=tuple(data.get("Resources", ())),
        event_status=data.get("EventStatus"),
        not_before=None if not_before is None else parse_time(not_before),
        description=data.get("Description"),
        event_source=data.get("EventSource"),
        duration_in_seconds=data.get("DurationInSeconds"),
    )
