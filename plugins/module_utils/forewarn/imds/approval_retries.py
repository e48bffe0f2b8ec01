# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Approves events with retries: after a fault, only a new document tells what may be sent again (SE-31)."""

from __future__ import annotations

from collections.abc import Sequence

from ..events import Document, Event
from .client import Client
from .errors import NOT_SENT, Fault
from .retry import RetryPolicy

_MAX_UNSENT = 3  # approvals that were not sent are retried at once, so often; then as after any other fault


def approve_with_retries(
    client: Client, document: Document, events: Sequence[Event], patience_seconds: float, in_time: bool = False
) -> None:
    """Approve events that are Scheduled in ``document``, the last one that ``client`` has read.

    After a passing fault, read the document again, for up to ``patience_seconds``. An event that has started by then
    needs no approval; one that is unchanged is approved again (SE-31). With ``in_time``, send nothing once NotBefore of
    one of the events has passed. Raises PassingFault or LastingFault, also if an event has changed or is gone; the
    fault's ``unsure`` says whether any of the approvals may have had an effect.
    """
    policy = RetryPolicy(client.clock() + patience_seconds, clock=client.clock)
    unsure, unsent_count = False, 0
    while True:
        try:
            ends = [event.not_before.timestamp() for event in events if event.not_before is not None]
            not_after = min(ends, default=None) if in_time else None
            client.approve([event.event_id for event in events], document.incarnation, not_after)
            return
        except Fault as fault:
            unsure = fault.unsure = unsure or fault.unsure
            lost = fault
        if lost.kind == NOT_SENT and unsent_count < _MAX_UNSENT:
            unsent_count += 1
        else:
            due = policy.record_failure(lost)
            if policy.is_exhausted(lost):
                raise lost
            client.faults.record_failure(lost)
            client.sleep(max(0.0, due - client.clock()))
        try:
            document = client.read(max(0.0, (policy.deadline or 0.0) - client.clock()))
        except Fault as fault:
            fault.unsure = unsure
            raise
        listed = {event.key: event for event in document.events}
        for event in events:
            now = listed.get(event.key)
            if now != event and (now is None or now.event_status != "Started" or lost.kind == NOT_SENT):
                lost.message += f" {event.event_id} {'is no longer listed' if now is None else 'has changed'} since."
                raise lost
        events = [event for event in events if listed[event.key] == event]
        if not events:
            return
