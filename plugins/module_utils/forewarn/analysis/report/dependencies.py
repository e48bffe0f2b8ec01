# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which dimensions of the event space the reason of a decision depends on: a page lists reasons by these."""

from __future__ import annotations

from collections.abc import Sequence

from ...policy.forms import Access, Form, PolicyVariable, Variable, every_variable, read_form
from ...policy.program import ROOTS
from ..artifacts import Json, every_part
from ..event_space.resources import PLACE, VM_NAME
from ..event_space.symbol_table import Dimension
from ..event_space.symbols import EVENT_STATUS, EVENT_TYPE, NOTICE, NOW, TAGS_KNOWN
from ..policy_outcome import DOUBT, ERROR, LIMIT, NO_RULE
from .decisions import Region


class ReasonInputs:
    """What the reasons of one policy depend on; ``data`` is its entry in the artifact."""

    def __init__(self, data: Json, dimensions: Sequence[Dimension]) -> None:
        self._variables: dict[str, list[Form]] = {}
        for variable in every_variable(data["rule"]):
            self._variables.setdefault(variable["name"], []).append(read_form(variable["expr"]["form"]))
        self._parts = {dimension.name: dimension.symbol.part for dimension in dimensions}

    def of(self, region: Region) -> tuple[int, ...]:
        """Return the places of the dimensions."""
        data = {} if region.match is None else region.match.data
        if region.how == DOUBT:
            wanted = {EVENT_TYPE.name, EVENT_STATUS.name}
        elif region.how == NO_RULE:
            wanted = set()
        else:
            expression = data.get("condition" if region.how == ERROR else "explanation")
            if region.how == LIMIT:
                expression = data["limit"]["group"]
            wanted = set() if not expression else self._dimensions(self._read(read_form(expression["form"])))
        return tuple(place for place, name in enumerate(self._parts) if name in wanted)

    def _read(self, form: Form, seen: frozenset[str] = frozenset()) -> set[str]:
        """Return what a form reads: names, and fields as ``event.X``."""
        found: set[str] = set()
        for one in every_part(form):
            if isinstance(one, Access) and one.record is not None:
                found.add(f"{one.record}.{one.name}")
            elif isinstance(one, Variable):
                found.add(one.name)
            elif isinstance(one, PolicyVariable) and one.name not in seen:
                found.update(*(self._read(each, seen | {one.name}) for each in self._variables.get(one.name, ())))
        return found

    def _dimensions(self, reads: set[str]) -> set[str]:
        wanted: set[str] = set()
        for read in reads:
            root, _dot, field = read.partition(".")
            if root not in ROOTS:
                continue  # a loop's variable: what it goes over is read itself
            if read in (NOTICE.name, "event.NotBefore"):
                wanted |= {NOTICE.name, EVENT_STATUS.name, NOW.name}
            elif read in ("affects_me", "leader"):
                wanted |= {PLACE.name, VM_NAME.name}
            elif read in ("event.Resources", TAGS_KNOWN.name):
                part = "who" if read == "event.Resources" else TAGS_KNOWN.part
                wanted |= {name for name, its_part in self._parts.items() if its_part == part}
            elif field or read in ("age", "now"):
                wanted.add(read)
            else:
                wanted |= self._parts.keys()  # all of an event, of the document or the VM
        return wanted
