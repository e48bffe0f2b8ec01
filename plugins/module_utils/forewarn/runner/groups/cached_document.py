# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A document of the store as this VM has last read it, and what it means for an event."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...imds.errors import Fault
from .barrier import Barrier
from .intent import Need
from .lineage import LineageMemory
from .semaphore import Semaphore

# An approval rests on nothing that was read earlier than this.
FRESH_SECONDS = 10.0
ASKED = "the group's store is being asked"
# Lines of the log.
TAKEN, BEYOND, WAITS = "slot-taken", "slot-beyond-limit", "slot-waits"
HOLDING = (TAKEN, BEYOND)


class CachedDocument:
    """``document`` is None until it was read, at the monotonic time ``at``.

    ``fence``: an earlier write of this VM may still take effect, so the next request writes. ``due`` is the monotonic
    time before which there is no request, after ``failures`` that ended with ``fault``. ``since`` is when ``document``
    first had the value ``closed``.
    """

    def __init__(self, fence: bool, memory: LineageMemory) -> None:
        self.document: Any = None
        self.at = 0.0
        self.fence = fence
        self.memory = memory  # for the thread that asks the store
        self.due = 0.0
        self.failures = 0
        self.fault: Fault | None = None
        self.closed: object = None
        self.since = 0.0

    def update(self, document: Any, at: float) -> None:
        """Update the document to the one read, or written."""
        self.document, self.at = document, at
        self.fence, self.failures, self.due, self.fault = False, 0, 0.0, None
        closed = getattr(document, "closed", None)
        if closed != self.closed:
            self.closed, self.since = closed, at

    def record_fault(self, fault: Fault, due: float) -> None:
        """Record that it could not be read or written, and is not requested before ``due``."""
        self.failures += 1
        self.fault, self.due, self.fence = fault, due, self.fence or fault.unsure

    @property
    def problem(self) -> str:
        """Why nothing is known of it."""
        return ASKED if self.fault is None else self.fault.message

    def doubt(self, now: float) -> str | None:
        """Return why the document must not be relied on, or None."""
        if self.document is not None and now - self.at <= FRESH_SECONDS:
            return None
        return self.problem


def why_not_ready(document: Barrier, content: str, names: Sequence[str], me: str) -> str | None:
    """Return which VMs of an event ``me`` does not know to be ready, None if its barrier is closed."""
    if document.closed_for(content) is not None:
        return None
    missing = [_member_text(document, name, content) for name in document.missing(content, names) if name.lower() != me]
    return f"waits for {_listed(missing)}" if missing else "the group's store is being told that this VM is ready"


def _member_text(document: Barrier, name: str, content: str) -> str:
    statement = document.members.get(name.lower())
    if statement is None:
        return f"{name}, which has said nothing"
    if statement.content != content:
        return f"{name}, which knows another content of the event"
    return f"{name}, which is {statement.state}" + (f" ({statement.reason})" if statement.reason else "")


def why_no_slot(document: Semaphore, key: str, need: Need) -> str | None:
    """Return why the event's VMs may not be disturbed by us, None if each of them has its slot within the limit."""
    slot = document.slots.get(key)
    if slot is not None and slot.granted and set(need.names) <= set(slot.names):
        return None
    if slot is not None and slot.granted:
        free = sorted(set(need.names) - set(slot.names))
        return f"the slot of {', '.join(free)} in {need.group} was freed by somebody else"
    holders = sorted(document.disturbed(key))
    text = f"waits for a slot of {need.group}, of which there {'is 1' if need.at_most == 1 else f'are {need.at_most}'}"
    if slot is not None:
        text = f"its VMs are beyond the limit of {need.group}, which is {need.at_most}"
    waiter = document.waiting.get(key)
    ahead = [] if waiter is None else document.ahead(waiter.place(key))
    if ahead:
        text += f", behind {len(ahead)} {'event' if len(ahead) == 1 else 'events'} whose NotBefore is sooner"
    return f"{text}: {_listed(holders)} {'has' if len(holders) == 1 else 'have'} them" if holders else text


def slot_line(document: Semaphore, key: str, me: str) -> str:
    """Return the line of the log for the state of this VM's slot for an event, "" if it has none."""
    slot = document.slots.get(key)
    if slot is not None and me in slot.names:
        return TAKEN if slot.granted else BEYOND
    return WAITS if key in document.waiting else ""


def _listed(texts: Sequence[str], most: int = 3) -> str:
    shown = ", ".join(texts[:most])
    return shown if len(texts) <= most else f"{shown} and {len(texts) - most} more"
