# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sends approvals, and handles their results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..events import Document, Event
from ..imds.client import Client
from ..imds.errors import NOT_SENT, Fault, LastingFault, PassingFault
from . import event_record as states
from .clocks import Clocks
from .event_record import EventRecord
from .hooks.open_records import OpenRecords
from .operator_pause import OperatorPause
from .options import Mode
from .telemetry.recorder import Recorder
from .tracker import Tracker


class Approvals:
    """Sends the approvals that are due."""

    def __init__(
        self,
        client: Client,
        records: OpenRecords,
        recorder: Recorder,
        clocks: Clocks,
        mode: Mode,
        operator_pause: OperatorPause,
    ) -> None:
        self._client = client
        self._records = records
        self._journal, self._log, self._metrics = recorder
        self._clocks = clocks
        self._mode = mode
        self._operator_pause = operator_pause
        self._failure: tuple[object, ...] | None = None  # the latest, since the service took an approval

    def next_request(self, requests: list[list[Event]], tracker: Tracker) -> list[Event] | None:
        """Take the next request out of ``requests``, record in the journal that it will be sent, and return its events.

        None if nothing can be sent now: in a dry run, during an operator's pause, or while the request budget is used
        up, since the document that the request rests on would be stale by the time it is sent.
        """
        while requests:
            if not self._mode.dry_run and self._client.limiter.delay() > 0:
                return None
            if self._operator_pause.blocker() is not None:  # the latest moment: it may have begun since the decision
                return None
            events = requests.pop(0)
            if self._mode.dry_run:
                self._report_simulation(events, tracker)
            elif self._write_ahead(events, tracker):
                return events
        return None

    def send_request(self, events: Sequence[Event], document: Document) -> None:
        """Send one request, unless NotBefore has passed by then. Runs in the requester's thread. Raises Fault."""
        ids = [event.event_id for event in events]
        ends = [event.not_before.timestamp() for event in events if event.not_before is not None]
        self._client.approve(ids, document.incarnation, min(ends, default=None))

    def handle_response(self, events: Sequence[Event], tracker: Tracker, fault: Fault | None = None) -> bool:
        """Handle the result of a request; return whether the next poll should come soon.

        Its document shows whether an approval that was not sent, or perhaps not taken, is still due; and when several
        events were refused together, each is approved by itself.
        """
        if fault is None:
            self._failure = None
            self._metrics.count("forewarn_approvals_total", float(len(events)), result="taken")
            self._record_approvals(events, tracker)
            return False
        result = NOT_SENT if fault.kind == NOT_SENT else "failed"
        self._metrics.count("forewarn_approvals_total", float(len(events)), result=result)
        self._report_failure(events, tracker, fault)
        if isinstance(fault, LastingFault) and len(events) > 1:
            tracker.separate(events)
            return True
        tracker.record_fault(events, fault)
        for record in tracker.records_of(events):
            self._records.save(record)
        return fault.unsure or fault.kind == NOT_SENT

    def simulate(self, events: Sequence[Event], tracker: Tracker) -> list[str]:
        """Do everything but send, for drills; return the ids of their events."""
        if not events:
            return []
        self._report_simulation(events, tracker)
        if self._mode.dry_run:
            return []
        self._record_approvals(events, tracker)
        return [event.event_id for event in events]

    def _report_simulation(self, events: Sequence[Event], tracker: Tracker) -> None:
        if self._mode.dry_run:
            tracker.record_simulation(events)
        self._report("would-approve", tracker.records_of(events))
        self._metrics.count("forewarn_approvals_total", float(len(events)), result="pretended")

    def _record_approvals(self, events: Sequence[Event], tracker: Tracker) -> None:
        """Record that the events are approved; in a drill, that they would be."""
        tracker.record_approvals(events)
        records = tracker.records_of(events)
        real = [record for record in records if not record.drill]
        if real:
            times = max(record.approvals for record in real)
            self._report("approved", real, times=times if times > 1 else None)
        for record in records:
            if record.approvals == 1 and not record.drill:
                self._metrics.observe("forewarn_event_to_approval_seconds", self._clocks.since(record.first_seen))
            self._records.step(record, states.SENT, f"this VM {'would approve' if record.drill else 'approved'} it")
            self._records.save(record)
        self._journal.commit()

    def _write_ahead(self, events: Sequence[Event], tracker: Tracker) -> bool:
        """Commit the intention to send to the journal; return whether to send. Without hooks, no journal is needed."""
        records = tracker.records_of(events)
        if any(record.drill for record in records):
            raise ValueError("the approval of a drill is never sent")
        tracker.record_sending(events)
        for record in records:
            self._journal.note("approval-sending", record.identifier, event_ids=[record.event.event_id])
            self._records.save(record)
        if self._journal.commit() or not any(record.plan.runs for record in records):
            return True
        tracker.record_not_sent(events)
        return False

    def _report(self, line: str, records: Sequence[EventRecord], **fields: Any) -> None:
        ids = [record.event.event_id for record in records]
        self._log.info(line, event_ids=ids, drill=any(record.drill for record in records) or None, **fields)
        self._note_each(line, records, fields)

    def _note_each(self, line: str, records: Sequence[EventRecord], fields: Mapping[str, Any]) -> None:
        for record in records:  # each has its own id: all ids in each entry would grow quadratically
            own = [record.event.event_id]
            self._journal.note(line, record.identifier, event_ids=own, events_in_request=len(records), **fields)

    def _report_failure(self, events: Sequence[Event], tracker: Tracker, fault: Fault) -> None:
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
        self._note_each("approval-failed", tracker.records_of(events), fields)
