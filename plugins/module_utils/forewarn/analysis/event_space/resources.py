# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The VMs of an event: how many there are, who is among them, and at which place this VM is.

Names of VMs do not differ by case; expressions that look into Resources distinguish cases.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...events import API_VERSIONS, MAX_NAME_CHARACTERS
from ...policy.functions.standard import INT_MAX
from .case import FURTHER_DOWN, LEADER, NOT_LISTED, VM, other_spelling
from .domains import DomainValue, intervals, quoted, texts
from .symbol_table import Symbol, SymbolTable
from .symbols import Flag, VmFact

OTHER_CASE = " in another case"  # behind a name: any spelling of it that nobody asks for


def _can_be_name(text: str, api_version: str) -> bool:
    prefix = 1 if api_version == API_VERSIONS[0] else 0
    return 0 < len(text) <= MAX_NAME_CHARACTERS - prefix


class Count(Symbol):
    """The number of Resources."""

    kind = "int"
    bounds = frozenset((0, 1))

    def __init__(self) -> None:
        super().__init__("count", spoken="number of Resources", title="Number of Resources", part="who")

    def values(self, table: SymbolTable) -> tuple[DomainValue, ...]:
        return intervals(self.kind, table.cuts_of(self), 1, INT_MAX, len(table.group(self.name)), fine=True)

    def cuts(self, table: SymbolTable) -> set[Any]:
        """Return cuts that give each class room for those who must be listed, or not."""
        named = len(table.symbols(ResourceListed))
        return set(range(2, named + 3)) if named or PLACE.name in table.uses else set()


class Place(Flag):
    """Where this VM is among Resources. Without a name this is unknown, and one value stands for all."""

    choices: tuple[DomainValue, ...] = tuple(DomainValue(place, place) for place in (LEADER, FURTHER_DOWN, NOT_LISTED))

    def __init__(self) -> None:
        super().__init__("place", title="This VM", part="who")

    def companions(self) -> tuple[Symbol, ...]:
        return (VM_NAME,)

    def phrase(self, listed: Sequence[str]) -> str:
        words = {
            LEADER: "this VM leads",
            FURTHER_DOWN: "this VM is further down",
            NOT_LISTED: "this VM is not affected",
        }
        if listed == [LEADER, FURTHER_DOWN]:
            return "this VM is affected"
        return " or ".join(words[label] for label in listed)


class ResourceListed(Flag):
    """Whether Resources has a name, in these very letters."""

    section = "named"

    def __init__(self, vm: str) -> None:
        super().__init__(f"names:{vm}", vm, title=f"Resources names {quoted(vm)}", part="who")
        self.vm = vm

    def values(self, table: SymbolTable) -> tuple[DomainValue, ...]:
        return self.choices if _can_be_name(self.vm, table.api_version) else self.choices[1:]

    def phrase(self, listed: Sequence[str]) -> str:
        return f"Resources {'names' if listed[0] == 'yes' else 'does not name'} {quoted(self.vm)}"


class VmName(VmFact):
    """The VM's own name: whether it is one of those that Resources is asked for makes a difference."""

    absent = "not known"

    def __init__(self) -> None:
        super().__init__("name")
        self.title, self.part = "This VM's name", "who"

    def values(self, table: SymbolTable) -> tuple[DomainValue, ...]:
        literals = {text for text in table.use(self).texts if _can_be_name(text, table.api_version)}
        named = {one.vm for one in table.symbols(ResourceListed) if _can_be_name(one.vm, table.api_version)}
        found = texts((), literals | named, False, name=VM)
        others = self._otherwise_spelled(named, literals | named) if PLACE.name in table.uses else ()
        return (*found[:-2], *others, *found[-2:])

    def _otherwise_spelled(self, named: set[str], taken: set[str]) -> Iterator[DomainValue]:
        """Yield for each name a spelling that nobody asks for: Resources may mean such a VM by that name."""
        for name in sorted({one.lower(): one for one in sorted(named)}.values()):
            other = other_spelling(name, taken)
            if other is not None:
                yield DomainValue(f"{quoted(name)}{OTHER_CASE}", other)


COUNT, PLACE, VM_NAME = Count(), Place(), VmName()
