# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The space of event classes: the product of dimensions, without what the service never sends.

For one class, ``Space.witness`` gives an event that belongs to it, with the facts about VM and time.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

from ...errors import InputError
from ..witness import Witness
from .case import FURTHER_DOWN, LEADER, NOT_LISTED, spelling
from .class_sets import Cell, ClassSets, without
from .domains import MISSING, DomainValue
from .resources import COUNT, PLACE, VM_NAME, ResourceListed
from .symbol_table import Dimension, case_of
from .symbols import EVENT_STATUS, EVENT_TYPE, NOTICE, TAGS_KNOWN, Tag


def _normal(space: ClassSets) -> int:
    """Return the classes of events that the service sends, by its documentation."""
    result = space.all
    for dimension in space.dimensions:
        for place, value in enumerate(dimension.values):
            if not value.normal:
                unusual = space.mask(dimension.name, place)
                if dimension.symbol is NOTICE and value.concrete is MISSING:
                    unusual &= ~space.having(EVENT_STATUS.name, "Started")
                result &= ~unusual
    return result


def _impossible(space: ClassSets) -> int:
    """Return the classes that cannot be."""
    result = 0
    if NOTICE.name in space.by_name:
        result |= space.having(EVENT_STATUS.name, "Started") & ~space.having(NOTICE.name, MISSING)
    for tag in space.symbols(Tag):
        result |= space.having(TAGS_KNOWN.name, False) & ~space.having(tag.name, MISSING)
    if COUNT.name in space.by_name:
        result |= _impossible_count(space)
    if PLACE.name in space.by_name:
        result |= _impossible_place(space)
    return result


def _impossible_count(space: ClassSets) -> int:
    """Return the classes in which Resources has more names than there are, or one below the only one."""
    at_least = [space.all]  # at_least[n]: n of the asked-for names, or more, are among Resources
    named = space.symbols(ResourceListed)
    for one in named:
        held = space.having(one.name, True)
        at_least = [more | (fewer & held) for more, fewer in zip([*at_least, 0], [space.all, *at_least])]
    listed = space.having(PLACE.name, LEADER, FURTHER_DOWN) & ~space.having(VM_NAME.name, MISSING)
    for value in space.values_of(VM_NAME.name):
        for one in () if value.concrete is MISSING else _spelled(named, value.concrete):
            listed &= ~(space.having(VM_NAME.name, value.concrete) & space.having(one.name, True))  # it is one of them
    result = space.having(PLACE.name, FURTHER_DOWN) & space.having(COUNT.name, 1)
    for place, value in enumerate(space.values_of(COUNT.name)):
        over = at_least[value.concrete + 1] if value.concrete + 1 < len(at_least) else 0
        over |= (at_least[value.concrete] & listed) if value.concrete < len(at_least) else 0
        result |= space.mask(COUNT.name, place) & over
    return result


def _impossible_place(space: ClassSets) -> int:
    """Return the classes in which Resources does and does not have this VM, or has it twice."""
    result = space.having(VM_NAME.name, MISSING) & ~space.having(PLACE.name, LEADER)
    named = space.symbols(ResourceListed)
    for value in space.values_of(VM_NAME.name):
        if value.concrete is MISSING:
            continue
        itself = space.having(VM_NAME.name, value.concrete)
        listed = itself & space.having(PLACE.name, LEADER, FURTHER_DOWN)
        some = twice = 0
        for one in _spelled(named, value.concrete):
            held = space.having(one.name, True)
            some, twice = some | held, twice | (some & held)
        result |= itself & space.having(PLACE.name, NOT_LISTED) & some
        result |= listed & twice
        if spelling(value.concrete, {one.vm: False for one in named}) is None:
            result |= listed & ~some
    return result


def _spelled(named: Sequence[ResourceListed], vm: str) -> list[ResourceListed]:
    """Return those that ask for a VM, however they spell its name."""
    return [one for one in named if one.vm.lower() == vm.lower()]


MAX_CLASSES = 2_000_000  # of one slice: 250 kB a set
MAX_SLICES = 128

# Never sliced by: an event is compared with others that differ in these, and they must be in one slice.
_WHOLE = frozenset(("event.DurationInSeconds", "event.EventSource", "event.Description", "event.ResourceType"))
_WHOLE |= {"event.EventId", "notice", "age", "now"}


class Space(ClassSets):
    """All classes over ``dimensions``, or those of a ``cell``; ``reachable`` are those that can be."""

    def __init__(self, dimensions: Sequence[Dimension], api_version: str, cell: Cell = ()) -> None:
        super().__init__(dimensions, cell)
        self.api_version = api_version
        self.normal = _normal(self)
        self.reachable = without(self.all, _impossible(self))

    def values(self, number: int) -> dict[str, DomainValue]:
        """Return the values of a class by the name of the dimension."""
        return {one.name: one.values[self.place(one.name, number)] for one in self.dimensions}

    def first(self, classes: int) -> int:
        """Return the lowest class of a set that is not empty, a normal one if there is one."""
        chosen = (classes & self.normal) or classes
        return (chosen & -chosen).bit_length() - 1

    def witness(self, number: int) -> Witness:
        """Return an event of a class. What an opaque dimension says is true of it only by chance."""
        return case_of(zip(self.dimensions, self.values(number).values())).witness(self.api_version)


def slices(dimensions: Sequence[Dimension], api_version: str) -> Iterator[Space]:
    """Yield the space as one, or by the values of some dimensions where it is too large for that.

    Raises InputError if there would be too many slices.
    """
    count = math.prod(len(dimension.values) for dimension in dimensions)
    may = [one for one in dimensions if one.name not in _WHOLE and len(one.values) > 1]
    first = [one for one in may if one.symbol in (EVENT_TYPE, EVENT_STATUS)]  # rules read them
    understood = [one for one in may if one.kind != "opaque"]  # by others only if necessary
    chosen = _sliced_by(count, understood, first)
    if chosen is None:
        chosen = _sliced_by(count, may, first)
        if chosen is None:
            sizes = sorted(((len(one.values), one.name) for one in dimensions), reverse=True)[:5]
            shown = ", ".join(f"{name} {size}" for size, name in sizes)
            raise InputError(
                f"these policies tell apart {count:,} classes of events, more than can be analysed (largest: {shown})",
                "Verify fewer policies at a time, fix parameters with --param, or compare with fewer different values.",
            )
    for places in itertools.product(*(range(len(one.values)) for one in chosen)):
        cell = tuple((one.name, place) for one, place in zip(chosen, places))
        space = Space(dimensions, api_version, cell)
        if space.reachable:
            yield space


def _sliced_by(count: int, may: Sequence[Dimension], first: Sequence[Dimension]) -> list[Dimension] | None:
    """Return the dimensions to slice by, None if there would be too many slices."""
    chosen: list[Dimension] = []
    while count > MAX_CLASSES * (parts := math.prod(len(one.values) for one in chosen)):
        left = [one for one in may if one not in chosen]
        fitting = [one for one in left if parts * len(one.values) <= MAX_SLICES]
        if not fitting:
            return None
        enough = [one for one in fitting if count <= MAX_CLASSES * parts * len(one.values)]
        preferred = [one for one in first if one in fitting]
        chosen.append(preferred[0] if preferred else min(enough, key=_size) if enough else max(fitting, key=_size))
    return chosen


def _size(dimension: Dimension) -> int:
    return len(dimension.values)
