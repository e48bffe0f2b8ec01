# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The VMs of an event: how many there are, who is among them, and at which place this VM is.

Names of VMs do not differ by case; expressions that look into Resources distinguish cases.
"""

from __future__ import annotations

import itertools
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...events import API_VERSIONS, MAX_NAME_CHARACTERS
from ...policy.functions.standard import INT_MAX
from .case import FURTHER_DOWN, LEADER, NOT_LISTED, Case
from .domains import MISSING, DomainValue, intervals, quoted, texts
from .symbols import Flag, Symbol, VmFact

if TYPE_CHECKING:
    from .space import Space
    from .symbol_table import SymbolTable

VM = "vm_0"  # the name of a VM that no policy names
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
        named = len(table.named())
        return set(range(2, named + 3)) if named or PLACE.name in table.specs else set()

    def impossible(self, space: Space) -> int:
        """Return the classes in which Resources has more names than there are, or one below the only one."""
        at_least = [space.all]  # at_least[n]: n of the asked-for names, or more, are among Resources
        named = space.symbols(Named)
        for one in named:
            held = space.having(one.name, True)
            at_least = [more | (fewer & held) for more, fewer in zip([*at_least, 0], [space.all, *at_least])]
        listed = space.having(PLACE.name, LEADER, FURTHER_DOWN) & ~space.having("vm.name", MISSING)
        for value in space.values_of("vm.name"):
            for one in () if value.concrete is MISSING else _spelled(named, value.concrete):
                listed &= ~(space.having("vm.name", value.concrete) & space.having(one.name, True))  # it is one of them
        result = space.having(PLACE.name, FURTHER_DOWN) & space.having(self.name, 1)
        for place, value in enumerate(space.values_of(self.name)):
            over = at_least[value.concrete + 1] if value.concrete + 1 < len(at_least) else 0
            over |= (at_least[value.concrete] & listed) if value.concrete < len(at_least) else 0
            result |= space.mask(self.name, place) & over
        return result


class Place(Flag):
    """Where this VM is among Resources. Without a name this is unknown, and one value stands for all."""

    choices: tuple[DomainValue, ...] = tuple(DomainValue(place, place) for place in (LEADER, FURTHER_DOWN, NOT_LISTED))

    def __init__(self) -> None:
        super().__init__("place", title="This VM", part="who")

    def impossible(self, space: Space) -> int:
        """Return the classes in which Resources does and does not have this VM, or has it twice."""
        result = space.having("vm.name", MISSING) & ~space.having(self.name, LEADER)
        named = space.symbols(Named)
        for value in space.values_of("vm.name"):
            if value.concrete is MISSING:
                continue
            itself = space.having("vm.name", value.concrete)
            listed = itself & space.having(self.name, LEADER, FURTHER_DOWN)
            some = twice = 0
            for one in _spelled(named, value.concrete):
                held = space.having(one.name, True)
                some, twice = some | held, twice | (some & held)
            result |= itself & space.having(self.name, NOT_LISTED) & some
            result |= listed & twice
            if spelling(value.concrete, {one.vm: False for one in named}) is None:
                result |= listed & ~some
        return result

    def phrase(self, listed: Sequence[str]) -> str:
        words = {
            LEADER: "this VM leads",
            FURTHER_DOWN: "this VM is further down",
            NOT_LISTED: "this VM is not affected",
        }
        if listed == [LEADER, FURTHER_DOWN]:
            return "this VM is affected"
        return " or ".join(words[label] for label in listed)


class Named(Flag):
    """Whether Resources has a name, in these very letters."""

    def __init__(self, vm: str) -> None:
        super().__init__(f"names:{vm}", vm, title=f"Resources names {quoted(vm)}", part="who")
        self.vm = vm

    def entries(self, case: Case) -> dict[str, Any]:
        return case.named

    def can_be(self, text: str, api_version: str) -> bool:
        return _can_be_name(text, api_version)

    def values(self, table: SymbolTable) -> tuple[DomainValue, ...]:
        return self.choices if self.can_be(self.vm, table.api_version) else self.choices[1:]

    def phrase(self, listed: Sequence[str]) -> str:
        return f"Resources {'names' if listed[0] == 'yes' else 'does not name'} {quoted(self.vm)}"


class VmName(VmFact):
    """The VM's own name: whether it is one of those that Resources is asked for makes a difference."""

    absent = "not known"

    def __init__(self) -> None:
        super().__init__("name")
        self.title, self.part = "This VM's name", "who"

    def can_be(self, text: str, api_version: str) -> bool:
        return _can_be_name(text, api_version)

    def values(self, table: SymbolTable) -> tuple[DomainValue, ...]:
        literals = {text for text in table.asked(self).texts if self.can_be(text, table.api_version)}
        named = {one.vm for one in table.named() if self.can_be(one.vm, table.api_version)}
        found = texts((), literals | named, False, name=VM)
        others = self._otherwise_spelled(named, literals | named) if PLACE.name in table.specs else ()
        return (*found[:-2], *others, *found[-2:])

    def _otherwise_spelled(self, named: set[str], taken: set[str]) -> Iterator[DomainValue]:
        """Yield for each name a spelling that nobody asks for: Resources may mean such a VM by that name."""
        for name in sorted({one.lower(): one for one in sorted(named)}.values()):
            other = other_spelling(name, taken)
            if other is not None:
                yield DomainValue(f"{quoted(name)}{OTHER_CASE}", other)


COUNT, PLACE, VM_NAME = Count(), Place(), VmName()


def _spelled(named: Sequence[Named], vm: str) -> list[Named]:
    """Return those that ask for a VM, however they spell its name."""
    return [one for one in named if one.vm.lower() == vm.lower()]


def spelling(name: str, named: Mapping[str, bool]) -> str | None:
    """Return how a VM is listed by an event of which is known what Resources has.

    None if each way to spell it is asked for, and denied.
    """
    listed = [one for one, has in named.items() if has and one.lower() == name.lower()]
    if listed or name not in named:
        return listed[0] if listed else name
    return other_spelling(name, named)


def other_spelling(name: str, taken: Container[str]) -> str | None:
    """Return a name that is the same to Azure, in other letters, and not among ``taken``. None if there is none."""
    cases = [(one.swapcase(), one) if one.swapcase().lower() == one.lower() else (one,) for one in name]
    spellings = map("".join, itertools.product(*(dict.fromkeys(one) for one in cases)))
    return next((one for one in spellings if one not in taken and one.lower() == name.lower()), None)


def listing(case: Case, vm: str | None) -> list[str]:
    """Return the names that an event lists: ``vm`` at its place, those asked for, and others up to the number."""
    named = [name for name, has in case.named.items() if has]
    taken = {name.lower() for name in (*case.named, vm or VM, str(case.vm.get("name", VM)))}
    others = (name for name in unasked("vm_") if name.lower() not in taken)
    if vm is not None and case.place != NOT_LISTED:
        rest = [name for name in named if name != vm]
        named = [*(rest[:1] or [next(others)]), vm, *rest[1:]] if case.place == FURTHER_DOWN else [vm, *rest]
    while len(named) < (1 if case.count is None else case.count):
        named.append(next(others))
    return named


def unasked(stem: str) -> Iterator[str]:
    """Yield names that begin with a stem."""
    if not stem.endswith("_"):
        yield stem
    yield from (f"{stem}{number}" for number in itertools.count(1))
