# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an expression reads of an event, a document and a VM: the service's fields as CEL values."""

from __future__ import annotations

from typing import Any, Dict, Tuple

from ..events import Document, Event
from .decision import Facts
from .environment import ABSENT
from .functions.timevalues import from_datetime

# What does not change with time: the event's key, its fields as CEL values, affects_me, leader.
_EventView = Tuple[str, Dict[str, Any], Any, Any]


def event_view(event: Event) -> dict[str, Any]:
    """Return the fields of an event as CEL values, by the service's names; absent fields are left out."""
    view = event.fields(None if event.not_before is None else from_datetime(event.not_before))
    if event.problems and not event.resources:
        del view["Resources"]  # unreadable is not empty: a rule that looks into it must fail
    return view


class DocumentView:
    """What expressions read of a document, for all its events and all policies.

    ``previous`` is a view of an earlier time. If it is of the same document and the same VM, this view takes from it
    what does not change with time.
    """

    __slots__ = ("_event_views", "document", "events", "facts", "now", "vm")
    vm: dict[str, Any]
    events: Any
    _event_views: dict[int, _EventView]

    def __init__(self, document: Document, facts: Facts, previous: DocumentView | None = None) -> None:
        self.document = document
        self.facts = facts
        self.now = from_datetime(facts.now)
        if previous is not None and previous.document is document and previous.facts.vm is facts.vm:
            self.vm, self.events, self._event_views = previous.vm, previous.events, previous._event_views
            return
        self.vm = facts.vm.as_dict()  # without unknown facts: a rule that reads one fails, and so holds
        views = [self._view_event(event) for event in document.events]
        # By id(): the document keeps its events, so no other object gets the same number.
        self._event_views = {id(event): one for event, one in zip(document.events, views)}
        # A document with problems may lack the very event that a rule looks for in ``events``.
        self.events = ABSENT if document.problems else [fields for _key, fields, *_names in views]

    def roots(self, event: Event, params: dict[str, Any]) -> tuple[Any, ...]:
        """Return the values of program.ROOTS for an event."""
        key, fields, affects_me, leader = self._event_views.get(id(event)) or self._view_event(event)
        notice: Any = ABSENT
        if event.event_status == "Started":
            notice = 0
        elif event.not_before is not None:
            notice = max(0, fields["NotBefore"] - self.now)
        first_seen = self.facts.first_seen.get(key)
        age = 0 if first_seen is None else max(0, self.now - from_datetime(first_seen))
        return (fields, self.events, notice, age, self.now, affects_me, leader, self.vm, params)

    def _view_event(self, event: Event) -> _EventView:
        name = self.facts.vm.name
        if name is None:
            return event.key, event_view(event), ABSENT, ABSENT
        place = event.place_of(name)
        return event.key, event_view(event), place is not None, place == 0
