# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an expression sees of an event, a document and a VM: the service's fields as CEL values."""

from __future__ import annotations

from typing import Any, Dict, Tuple

from ..events import Document, Event
from .decision import Facts
from .evaluate import ABSENT
from .functions.timevalues import from_datetime

# Of an event: its key, its fields as expressions see them, affects_me, leader.
_Lasting = Tuple[str, Dict[str, Any], Any, Any]


def event_view(event: Event) -> dict[str, Any]:
    """Return the event under the service's own field names; absent fields are left out."""
    view = event.fields(None if event.not_before is None else from_datetime(event.not_before))
    if event.problems and not event.resources:
        del view["Resources"]  # unreadable is not empty: a rule that looks into it must fail
    return view


class DocumentView:
    """What expressions see of a document, made once for all its events and policies.

    ``before`` is the view of another moment. If it is of the same document and the same VM, what does not change with
    time is taken from there.
    """

    __slots__ = ("_lasting", "document", "events", "facts", "now", "vm")
    vm: dict[str, Any]
    events: Any
    _lasting: dict[int, _Lasting]

    def __init__(self, document: Document, facts: Facts, before: DocumentView | None = None) -> None:
        self.document = document
        self.facts = facts
        self.now = from_datetime(facts.now)
        if before is not None and before.document is document and before.facts.vm is facts.vm:
            self.vm, self.events, self._lasting = before.vm, before.events, before._lasting
            return
        self.vm = facts.vm.as_dict()  # what is not known is left out, so that a rule asking for it fails and holds
        lasting = [self._of(event) for event in document.events]
        # By id(): the document keeps its events, and so these numbers are theirs alone.
        self._lasting = {id(event): one for event, one in zip(document.events, lasting)}
        # An event that was skipped may be the very one that a rule over all events looks for.
        self.events = ABSENT if document.problems else [fields for _key, fields, *_names in lasting]

    def roots(self, event: Event, params: dict[str, Any]) -> tuple[Any, ...]:
        """Return the values of program.ROOTS for an event."""
        key, fields, affects_me, leader = self._lasting.get(id(event)) or self._of(event)
        notice: Any = ABSENT
        if event.event_status == "Started":
            notice = 0
        elif event.not_before is not None:
            notice = max(0, fields["NotBefore"] - self.now)
        first_seen = self.facts.first_seen.get(key)
        age = 0 if first_seen is None else max(0, self.now - from_datetime(first_seen))
        return (fields, self.events, notice, age, self.now, affects_me, leader, self.vm, params)

    def _of(self, event: Event) -> _Lasting:
        name = self.facts.vm.name
        if name is None:
            return event.key, event_view(event), ABSENT, ABSENT
        place = event.place_of(name)
        return event.key, event_view(event), place is not None, place == 0
