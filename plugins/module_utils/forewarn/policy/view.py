# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an expression sees of an event, a document and a VM: the service's fields as CEL values."""

from __future__ import annotations

from typing import Any

from ..events import Document, Event
from .decision import Facts
from .evaluate import ABSENT
from .timevalues import from_datetime


def event_view(event: Event) -> dict[str, Any]:
    """Return the event under the service's own field names; absent fields are left out."""
    view = event.as_dict()
    if event.not_before is not None:
        view["NotBefore"] = from_datetime(event.not_before)
    if event.problems and not event.resources:
        del view["Resources"]  # unreadable is not empty: a rule that looks into it must fail
    return view


class DocumentView:
    """The views of a document's events, made once for all policies, and the variables for each event."""

    def __init__(self, document: Document, facts: Facts) -> None:
        self.facts = facts
        views = [event_view(event) for event in document.events]
        self.views = {event.key: view for event, view in zip(document.events, views)}
        self._seen = {event.key: event for event in document.events}
        # An event that was skipped may be the very one that a rule over all events looks for.
        self.events: Any = ABSENT if document.problems else views
        self.now = from_datetime(facts.now)
        self.vm = facts.vm.as_dict()  # what is not known is left out, so that a rule asking for it fails and holds

    def roots(self, event: Event, params: dict[str, Any]) -> tuple[Any, ...]:
        """Return the values of program.ROOTS for an event."""
        first_seen = self.facts.first_seen.get(event.key)
        age = 0 if first_seen is None else max(0, self.now - from_datetime(first_seen))
        affects_me: Any = ABSENT
        leader: Any = ABSENT
        if self.facts.vm.name is not None:
            place = event.place_of(self.facts.vm.name)
            affects_me, leader = place is not None, place == 0
        view = self.views[event.key] if self._seen.get(event.key) is event else event_view(event)
        return (view, self.events, self._notice(event), age, self.now, affects_me, leader, self.vm, params)

    def _notice(self, event: Event) -> Any:
        if event.event_status == "Started":
            return 0
        if event.not_before is None:
            return ABSENT
        return max(0, from_datetime(event.not_before) - self.now)
