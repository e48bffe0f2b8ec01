# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which dimensions of the event space the words of a decision depend on: what a page must list reasons by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...policy.forms import Access, Form, PolicyVariable, Variable, read_form
from ...policy.program import ROOTS
from ..symbolic.decide import DOUBT, ERROR, NO_RULE, Region
from ..symbolic.domains import Dimension

# Dimensions that together make one part of an event: whom it concerns, and when.
WHO = ("place", "count", "vm.name")
WHEN = ("event.EventStatus", "notice", "now", "age")


class Reads:
    """The words of one policy, of its artifact's ``data``."""

    def __init__(self, data: Mapping[str, Any], dimensions: Sequence[Dimension]) -> None:
        self._variables: dict[str, list[Form]] = {}
        self._collect(data["rule"])
        self._names = [dimension.name for dimension in dimensions]

    def of(self, region: Region) -> tuple[int, ...]:
        """Return the places of the dimensions."""
        data = {} if region.match is None else region.match.data
        if region.how == DOUBT:
            wanted = {"event.EventType", "event.EventStatus"}
        elif region.how == NO_RULE:
            wanted = set()
        else:
            expression = data.get("condition" if region.how == ERROR else "explanation")
            wanted = set() if not expression else self._dimensions(self._read(read_form(expression["form"]), set()))
        return tuple(place for place, name in enumerate(self._names) if name in wanted)

    def _collect(self, block: Mapping[str, Any]) -> None:
        for variable in block["variables"]:
            self._variables.setdefault(variable["name"], []).append(read_form(variable["expr"]["form"]))
        for match in block["match"]:
            if "rule" in match:
                self._collect(match["rule"])

    def _read(self, form: Form, seen: set[str]) -> set[str]:
        """Return what a form reads: names, and fields as ``event.X``."""
        if isinstance(form, Access) and form.record is not None:
            return {f"{form.record}.{form.name}"}
        if isinstance(form, Variable):
            return {form.name}
        if isinstance(form, PolicyVariable):
            if form.name in seen:
                return set()
            return set().union(*(self._read(one, seen | {form.name}) for one in self._variables.get(form.name, ())))
        return set().union(*(self._read(part, seen) for part in form.parts))

    def _dimensions(self, reads: set[str]) -> set[str]:
        wanted: set[str] = set()
        for read in reads:
            root, _dot, field = read.partition(".")
            if root not in ROOTS:
                continue  # of a loop over something that is read itself
            if read in ("notice", "event.NotBefore"):
                wanted |= {"notice", "event.EventStatus", "now"}
            elif read in ("affects_me", "leader"):
                wanted |= {"place", "vm.name"}
            elif read == "event.Resources":
                wanted |= {name for name in self._names if name in WHO or name.startswith("names:")}
            elif read == "vm.tags":
                wanted |= {name for name in self._names if name == "vm.tags" or name.startswith("tag:")}
            elif field or read in ("age", "now"):
                wanted.add(read)
            else:
                wanted |= set(self._names)  # all of an event, of the document or the VM
        return wanted
