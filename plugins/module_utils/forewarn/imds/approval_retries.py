# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Approving what a person has named, patiently: another document decides what is sent again."""

from __future__ import annotations

from collections.abc import Sequence

from ..events import Document, Event
from .client import Client
from .errors import NOT_SENT, Fault
from .retry import RetryPolicy

_MOST_UNSENT = 3  # approvals that were not sent, before patience counts: the document is just read again


def approve_patiently(
    client: Client, document: Document, events: Sequence[Event], patience_seconds: float, in_time: bool = False
) -> None:
    """Approve events that ``document``, the one that ``client`` has read last, lists as Scheduled.

    After a passing fault it is read again, for up to ``patience_seconds``: what has started by then is done, and what
    is still listed just as it was is sent again (SE-31). ``in_time``: nothing is sent once NotBefore of one of them has
    passed. Raises PassingFault or LastingFault, also where an event has
    changed or is gone; ``unsure`` says whether any of the approvals may have had an effect.
    """
    policy = RetryPolicy(client.clock() + patience_seconds, clock=client.clock)
    unsure, unsent = False, 0
    while True:
        try:
            ends = [event.not_before.timestamp() for event in events if event.not_before is not None]
            not_after = min(ends, default=None) if in_time else None
            client.approve([event.event_id for event in events], document.incarnation, not_after)
            return
        except Fault as fault:
            unsure = fault.unsure = unsure or fault.unsure
            lost = fault
        if lost.kind == NOT_SENT and unsent < _MOST_UNSENT:
            unsent += 1
        else:
            due = policy.failed(lost)
            if policy.gives_up(lost):
                raise lost
            client.faults.failed(lost)
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
