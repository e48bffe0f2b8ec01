# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sending approvals, and their results."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Callable

from ..events import Document, Event
from ..imds.client import Client
from ..imds.errors import NOT_SENT, Fault, LastingFault, PassingFault
from . import event_record as states
from .clocks import Clocks
from .hooks.records import OpenRecords
from .options import Mode
from .pausing import Pausing
from .reconciler import Reconciler
from .telemetry.recorder import Recorder


class Approvals:
    """Sends what a reconciler wants approved. ``request`` wraps each request of ``send``: a stop signal can end it."""

    def __init__(
        self,
        client: Client,
        records: OpenRecords,
        recorder: Recorder,
        clocks: Clocks,
        request: Callable[[], AbstractContextManager[None]],
        mode: Mode,
        pausing: Pausing,
    ) -> None:
        self._client = client
        self._records = records
        self._journal, self._log, self._metrics = recorder
        self._clocks = clocks
        self._request = request
        self._mode = mode
        self._pausing = pausing
        self._failure: tuple[object, ...] | None = None  # the last one, since an approval was taken

    def send(self, events: Sequence[Event], reconciler: Reconciler, document: Document) -> Fault | None:
        """Send a request now, and take in the result, which is returned."""
        try:
            with self._request():
                self.ask(events, document)
        except Fault as fault:
            self.answered(events, reconciler, fault)
            return fault
        self.answered(events, reconciler)
        return None

    def next(self, requests: list[list[Event]], reconciler: Reconciler) -> list[Event] | None:
        """Take the next request out of ``requests``, write down that it is about to be sent, and return its events.

        None if nothing can be sent now: in a dry run, during an operator's pause, or while the request budget is used
        up, since the document that the request rests on would be stale by the time it is sent.
        """
        if reconciler.drill:
            raise ValueError("what is rehearsed is never sent")
        while requests:
            if not self._mode.dry_run and self._client.limiter.delay() > 0:
                return None
            if self._pausing.obstacle() is not None:  # the latest moment: it may have begun since the decision
                return None
            events = requests.pop(0)
            if self._mode.dry_run:
                reconciler.tracker.pretended(events)
                self._report("would-approve", reconciler, events)
                self._metrics.count("forewarn_approvals_total", float(len(events)), result="pretended")
            elif self._announce(reconciler, events):
                return events
        return None

    def ask(self, events: Sequence[Event], document: Document) -> None:
        """Send one request, unless its time is over by then. Runs in the requester's thread. Raises Fault."""
        ids = [event.event_id for event in events]
        ends = [event.not_before.timestamp() for event in events if event.not_before is not None]
        self._client.approve(ids, document.incarnation, min(ends, default=None))

    def answered(self, events: Sequence[Event], reconciler: Reconciler, fault: Fault | None = None) -> bool:
        """Take in the result of a request. Return whether another document should be asked for at once.

        That decides whether an approval is sent again that was not sent, or perhaps not taken; and when several events
        were refused together, it lets each be approved by itself.
        """
        if fault is None:
            self._failure = None
            self._metrics.count("forewarn_approvals_total", float(len(events)), result="taken")
            self.taken(reconciler, events)
            return False
        result = NOT_SENT if fault.kind == NOT_SENT else "failed"
        self._metrics.count("forewarn_approvals_total", float(len(events)), result=result)
        self._report_failure(reconciler, events, fault)
        if isinstance(fault, LastingFault) and len(events) > 1:
            reconciler.tracker.split(events)
            return True
        reconciler.tracker.failed(events, fault)
        for event in events:
            self._journal.save(reconciler.tracker[event].record.as_row())
        return fault.unsure or fault.kind == NOT_SENT

    def pretend(self, requests: Sequence[list[Event]], reconciler: Reconciler) -> list[str]:
        """Do all but send, for drills; return the ids of their events."""
        events = [event for request in requests for event in request]
        if not events:
            return []
        self._report("would-approve", reconciler, events)
        self._metrics.count("forewarn_approvals_total", float(len(events)), result="pretended")
        if self._mode.dry_run:
            reconciler.tracker.pretended(events)
            return []
        self.taken(reconciler, events)
        return [event.event_id for event in events]

    def taken(self, reconciler: Reconciler, events: Sequence[Event]) -> None:
        """Note that the events are approved; in a drill, that they would be."""
        reconciler.tracker.approved(events)
        records = [reconciler.tracker[event].record for event in events]
        if not reconciler.drill:
            times = max(record.approvals for record in records)
            self._report("approved", reconciler, events, times=times if times > 1 else None)
        for record in records:
            if record.approvals == 1 and not reconciler.drill:
                self._metrics.observe("forewarn_event_to_approval_seconds", self._clocks.since(record.first_seen))
            why = "this VM would approve it" if reconciler.drill else "this VM approved it"
            self._records.step(record, states.SENT, why)
            self._journal.save(record.as_row())
        self._journal.commit()

    def _announce(self, reconciler: Reconciler, events: Sequence[Event]) -> bool:
        """Write down what is about to be sent; return whether it may be. An event without hooks needs no journal."""
        reconciler.tracker.sending(events)
        for event in events:
            record = reconciler.tracker[event].record
            self._journal.note("approval-sending", record.identifier, event_ids=[event.event_id])
            self._journal.save(record.as_row())
        if self._journal.commit() or not any(reconciler.tracker[event].record.plan.runs for event in events):
            return True
        reconciler.tracker.unsent(events)
        return False

    def _report(self, line: str, reconciler: Reconciler, events: Sequence[Event], **fields: Any) -> None:
        records = [reconciler.tracker[event].record for event in events]
        ids = [event.event_id for event in events]
        self._log.info(line, event_ids=ids, drill=any(record.drill for record in records) or None, **fields)
        for record in records:  # each has its own id: all ids in each entry would grow quadratically
            own = [record.event.event_id]
            self._journal.note(line, record.identifier, event_ids=own, events_in_request=len(ids), **fields)

    def _report_failure(self, reconciler: Reconciler, events: Sequence[Event], fault: Fault) -> None:
        ids = [event.event_id for event in events]
        failure = (tuple(ids), fault.kind, fault.status)
        if self._failure == failure:
            return
        self._failure = failure
        passing = isinstance(fault, PassingFault)
        write = self._log.warning if passing else self._log.error
        fields = {"kind": fault.kind, "status": fault.status, "lasting": not passing, "reason": fault.message}
        fields["unsure"] = fault.unsure or None
        write("approval-failed", event_ids=ids, **fields, hint=fault.hint or None)
        for event in events:
            own = {"event_ids": [event.event_id], "events_in_request": len(ids)}
            self._journal.note("approval-failed", reconciler.tracker[event].record.identifier, **own, **fields)
