# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The space of event classes: the product of dimensions, without what the service never sends.

A class is a combination of one value of each dimension, and a number below ``Space.count``. A set of classes is an
integer: bit N says whether class N is in it. For one class, ``Space.witness`` gives an event that belongs to it, with
the facts about VM and time.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, Tuple, TypeVar

from ...errors import InputError
from ..witness import Witness
from .case import FURTHER_DOWN, LEADER, NOT_LISTED, spelling
from .domains import MISSING, DomainValue
from .resources import COUNT, PLACE, VM_NAME, ResourceListed
from .symbol_table import Dimension, Symbol, case_of
from .symbols import EVENT_STATUS, EVENT_TYPE, NOTICE, TAGS_KNOWN, Tag

MAX_CLASSES = 2_000_000  # of one slice: 250 kB a set
MAX_SLICES = 128
S = TypeVar("S", bound=Symbol)
# Which slice of a space: dimensions, each with the place of its only value.
Cell = Tuple[Tuple[str, int], ...]


class Space:
    """All classes over ``dimensions``, or those of a ``cell``, where some dimensions have one value.

    ``reachable`` are those that can be, ``normal`` those of events that the service sends, by its documentation.
    """

    def __init__(self, dimensions: Sequence[Dimension], api_version: str, cell: Cell = ()) -> None:
        self.api_version, self.cell = api_version, cell
        only = dict(cell)
        self.dimensions = tuple(
            one._replace(values=(one.values[only[one.name]],)) if one.name in only else one for one in dimensions
        )
        self.by_name = {dimension.name: dimension for dimension in self.dimensions}
        self.count = math.prod(len(dimension.values) for dimension in self.dimensions)
        self.all = (1 << self.count) - 1
        self._strides: dict[str, int] = {}
        stride = self.count
        for dimension in self.dimensions:
            stride //= len(dimension.values)
            self._strides[dimension.name] = stride
        self._masks: dict[tuple[str, int], int] = {}
        self.normal = _normal(self)
        self.reachable = without(self.all, _impossible(self))

    def symbols(self, kind: type[S]) -> list[S]:
        """Return the symbols of a class."""
        return [one.symbol for one in self.dimensions if isinstance(one.symbol, kind)]

    def values_of(self, name: str) -> tuple[DomainValue, ...]:
        """Return the values of a dimension; empty if there is no such dimension."""
        return self.by_name[name].values if name in self.by_name else ()

    def mask(self, name: str, place: int) -> int:
        """Return the classes in which a dimension has its value at ``place``."""
        found = self._masks.get((name, place))
        if found is None:
            found = self._masks[name, place] = self.mask_of(name, (place,))
        return found

    def mask_of(self, name: str, places: Sequence[int]) -> int:
        """Return the classes in which a dimension has one of the values at ``places``, which are in order."""
        stride, width = self._strides[name], self._strides[name] * len(self.by_name[name].values)
        block, begin = 0, 0
        for number, place in enumerate(places, 1):
            if number == len(places) or places[number] != place + 1:  # one run at a time: there are few
                run = number - begin
                block |= ((1 << (stride * run)) - 1) << (stride * places[begin])
                begin = number
        while width < self.count:  # doubled until it covers all
            step = min(width, self.count - width)
            block |= block << step
            width += step
        return block

    def classes_with(self, name: str, *concretes: Any) -> int:
        """Return the classes in which a dimension has one of some concrete values; none if there is no such value."""
        found = 0
        for place, value in enumerate(self.values_of(name)):
            if any(_is(value.concrete, one) for one in concretes):
                found |= self.mask(name, place)
        return found

    def fold(self, classes: int, names: Sequence[str]) -> int:
        """Return all classes that differ from one of ``classes`` in the named dimensions only."""
        for name in names:
            stride, size = self._strides[name], len(self.by_name[name].values)
            classes = _spread(classes, stride, size, left=False) & self.mask(name, 0)
            classes = _spread(classes, stride, size, left=True)
        return classes

    def places(self, name: str, classes: int) -> list[int]:
        """Return the places of the values that a dimension has in some of ``classes``."""
        stride, size = self._strides[name], len(self.by_name[name].values)
        width = stride * size
        blocks = self.count // width
        while blocks > 1:  # all blocks onto the first, half of them at a time
            half = (blocks + 1) // 2
            classes = (classes >> (half * width)) | (classes & ((1 << (half * width)) - 1))
            blocks = half
        one = (1 << stride) - 1
        return [place for place in range(size) if classes >> (stride * place) & one]

    def place(self, name: str, number: int) -> int:
        """Return the place of the value that a dimension has in a class."""
        return number // self._strides[name] % len(self.by_name[name].values)

    def members(self, classes: int) -> Iterator[int]:
        """Yield the classes of a set in ascending order."""
        digits = bin(classes)[:1:-1]
        place = digits.find("1")
        while place >= 0:
            yield place
            place = digits.find("1", place + 1)

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


def without(classes: int, others: int) -> int:
    """Return the classes that are not among ``others``: as ``classes & ~others`` does, in a tenth of the time."""
    return classes ^ (classes & others)


def _spread(classes: int, stride: int, size: int, *, left: bool) -> int:
    """Return ``classes`` with their copies at 1 to ``size - 1`` strides further up (``left``) or down."""
    reach = 1
    while reach < size:  # doubled; the last step is shorter, so that nothing gets into the next block
        step = stride * min(reach, size - reach)
        classes |= classes << step if left else classes >> step
        reach *= 2
    return classes


def _is(one: Any, other: Any) -> bool:
    return one is other or (type(one) is type(other) and one == other and one is not MISSING)


def _normal(space: Space) -> int:
    """Return the classes of events that the service sends, by its documentation."""
    result = space.all
    for dimension in space.dimensions:
        for place, value in enumerate(dimension.values):
            if not value.normal:
                unusual = space.mask(dimension.name, place)
                if dimension.symbol is NOTICE and value.concrete is MISSING:
                    unusual &= ~space.classes_with(EVENT_STATUS.name, "Started")
                result &= ~unusual
    return result


def _impossible(space: Space) -> int:
    """Return the classes that cannot be."""
    result = 0
    if NOTICE.name in space.by_name:
        result |= space.classes_with(EVENT_STATUS.name, "Started") & ~space.classes_with(NOTICE.name, MISSING)
    for tag in space.symbols(Tag):
        result |= space.classes_with(TAGS_KNOWN.name, False) & ~space.classes_with(tag.name, MISSING)
    if COUNT.name in space.by_name:
        result |= _impossible_count(space)
    if PLACE.name in space.by_name:
        result |= _impossible_place(space)
    return result


def _impossible_count(space: Space) -> int:
    """Return the classes in which Resources has more names than there are, or one below the only one."""
    at_least = [space.all]  # at_least[n]: n of the asked-for names, or more, are among Resources
    named = space.symbols(ResourceListed)
    for one in named:
        held = space.classes_with(one.name, True)
        at_least = [more | (fewer & held) for more, fewer in zip([*at_least, 0], [space.all, *at_least])]
    listed = space.classes_with(PLACE.name, LEADER, FURTHER_DOWN) & ~space.classes_with(VM_NAME.name, MISSING)
    for value in space.values_of(VM_NAME.name):
        for one in () if value.concrete is MISSING else _spelled(named, value.concrete):
            itself = space.classes_with(VM_NAME.name, value.concrete)
            listed &= ~(itself & space.classes_with(one.name, True))  # it is one of them
    result = space.classes_with(PLACE.name, FURTHER_DOWN) & space.classes_with(COUNT.name, 1)
    for place, value in enumerate(space.values_of(COUNT.name)):
        over = at_least[value.concrete + 1] if value.concrete + 1 < len(at_least) else 0
        over |= (at_least[value.concrete] & listed) if value.concrete < len(at_least) else 0
        result |= space.mask(COUNT.name, place) & over
    return result


def _impossible_place(space: Space) -> int:
    """Return the classes in which Resources does and does not have this VM, or has it twice."""
    result = space.classes_with(VM_NAME.name, MISSING) & ~space.classes_with(PLACE.name, LEADER)
    named = space.symbols(ResourceListed)
    for value in space.values_of(VM_NAME.name):
        if value.concrete is MISSING:
            continue
        itself = space.classes_with(VM_NAME.name, value.concrete)
        listed = itself & space.classes_with(PLACE.name, LEADER, FURTHER_DOWN)
        some = twice = 0
        for one in _spelled(named, value.concrete):
            held = space.classes_with(one.name, True)
            some, twice = some | held, twice | (some & held)
        result |= itself & space.classes_with(PLACE.name, NOT_LISTED) & some
        result |= listed & twice
        if spelling(value.concrete, {one.vm: False for one in named}) is None:
            result |= listed & ~some
    return result


def _spelled(named: Sequence[ResourceListed], vm: str) -> list[ResourceListed]:
    """Return those that ask for a VM, however they spell its name."""
    return [one for one in named if one.vm.lower() == vm.lower()]


def slices(dimensions: Sequence[Dimension], api_version: str) -> Iterator[Space]:
    """Yield the space as one, or by the values of some dimensions where it is too large for that.

    Raises InputError if there would be too many slices.
    """
    chosen = _sliced_by(dimensions)
    if chosen is None:
        sizes = sorted(((len(one.values), one.name) for one in dimensions), reverse=True)[:5]
        shown, count = ", ".join(f"{name} {size}" for size, name in sizes), math.prod(map(_size, dimensions))
        raise InputError(
            f"these policies tell apart {count:,} classes of events, more than can be analysed (largest: {shown})",
            "Verify fewer policies at a time, fix parameters with --param, or compare with fewer different values.",
        )
    for places in itertools.product(*(range(len(one.values)) for one in chosen)):
        cell = tuple((one.name, place) for one, place in zip(chosen, places))
        space = Space(dimensions, api_version, cell)
        if space.reachable:
            yield space


def _sliced_by(dimensions: Sequence[Dimension]) -> list[Dimension] | None:
    """Return the dimensions to slice by, first those that rules read; None if there would be too many slices."""
    count = math.prod(map(_size, dimensions))
    chosen: list[Dimension] = []
    while count > MAX_CLASSES * (parts := math.prod(map(_size, chosen))):
        left = [one for one in dimensions if one not in chosen and _size(one) > 1]
        fitting = [one for one in left if parts * _size(one) <= MAX_SLICES]
        if not fitting:
            return None
        enough = [one for one in fitting if count <= MAX_CLASSES * parts * _size(one)]
        preferred = [one for one in fitting if one.symbol in (EVENT_TYPE, EVENT_STATUS)]
        chosen.append(preferred[0] if preferred else min(enough, key=_size) if enough else max(fitting, key=_size))
    return chosen


def _size(dimension: Dimension) -> int:
    return len(dimension.values)
