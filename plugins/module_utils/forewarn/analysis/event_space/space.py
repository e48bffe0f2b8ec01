# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The space of event classes: the product of dimensions, sets of classes as bits of Python integers.

A class is a number below ``Space.count``; bit N of a set says whether class N is in it. ``Space.reachable`` leaves out
what the service never sends (docs/service-facts.md). For one class, ``witness`` gives an event that belongs to it, with
the facts about VM and time.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, Tuple, TypeVar

from ...errors import InputError
from ..witness import Witness
from . import concrete
from .domains import MISSING, DomainValue
from .symbols import EVENT_STATUS, EVENT_TYPE, NOTICE, Dimension, Symbol, case_of

S = TypeVar("S", bound=Symbol)

MAX_CLASSES = 2_000_000  # of one slice: 250 kB a set
MAX_SLICES = 128

# Which slice of a space: dimensions, each with the place of its only value.
Cell = Tuple[Tuple[str, int], ...]

# Never sliced by: an event is compared with others that differ in these, and they must be in one slice.
_WHOLE = frozenset(("event.DurationInSeconds", "event.EventSource", "event.Description", "event.ResourceType"))
_WHOLE |= {"event.EventId", "notice", "age", "now"}


class Space:
    """All classes over ``dimensions``, or those of a ``cell``, where some dimensions have one value."""

    def __init__(self, dimensions: Sequence[Dimension], api_version: str, cell: Cell = ()) -> None:
        self.cell = cell
        only = dict(cell)
        self.dimensions = tuple(
            one._replace(values=(one.values[only[one.name]],)) if one.name in only else one for one in dimensions
        )
        self.api_version = api_version
        self.by_name = {dimension.name: dimension for dimension in self.dimensions}
        self.count = math.prod(len(dimension.values) for dimension in self.dimensions)
        self.all = (1 << self.count) - 1
        self._strides: dict[str, int] = {}
        stride = self.count
        for dimension in self.dimensions:
            stride //= len(dimension.values)
            self._strides[dimension.name] = stride
        self._masks: dict[tuple[str, int], int] = {}
        self.normal = self._normal()
        self.reachable = self.all
        for dimension in self.dimensions:
            self.reachable = without(self.reachable, dimension.symbol.impossible(self))

    def symbols(self, kind: type[S]) -> list[S]:
        """Return the symbols of one kind."""
        return [one.symbol for one in self.dimensions if isinstance(one.symbol, kind)]

    def values_of(self, name: str) -> tuple[DomainValue, ...]:
        """Return the values of a dimension; empty if there is no such dimension."""
        return self.by_name[name].values if name in self.by_name else ()

    # Sets

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

    def having(self, name: str, *concretes: Any) -> int:
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

    def _normal(self) -> int:
        result = self.all
        for dimension in self.dimensions:
            for place, value in enumerate(dimension.values):
                if not value.normal:
                    unusual = self.mask(dimension.name, place)
                    if dimension.symbol is NOTICE and value.concrete is MISSING:
                        unusual &= ~self.having(EVENT_STATUS.name, "Started")
                    result &= ~unusual
        return result

    # Single classes

    def values(self, number: int) -> dict[str, DomainValue]:
        """Return the values of a class by the name of the dimension."""
        return {dimension.name: value for dimension, value in self._values(number)}

    def _values(self, number: int) -> Iterator[tuple[Dimension, DomainValue]]:
        for dimension, stride in zip(self.dimensions, self._strides.values()):
            place, number = divmod(number, stride)
            yield dimension, dimension.values[place]

    def first(self, classes: int) -> int:
        """Return the lowest class of a set that is not empty, a normal one if there is one."""
        chosen = (classes & self.normal) or classes
        return (chosen & -chosen).bit_length() - 1

    def members(self, classes: int) -> Iterator[int]:
        """Yield the classes of a set in ascending order."""
        for _turn in range(4):  # often no more are needed
            if not classes:
                return
            lowest = classes & -classes
            yield lowest.bit_length() - 1
            classes ^= lowest
        digits = bin(classes)[:1:-1]
        place = digits.find("1")
        while place >= 0:
            yield place
            place = digits.find("1", place + 1)

    def witness(self, number: int) -> Witness:
        """Return an event of a class. What an opaque dimension says is true of it only by chance."""
        return concrete.witness(case_of(self._values(number)), self.api_version)


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
