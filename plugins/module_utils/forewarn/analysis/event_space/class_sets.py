# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sets of event classes as bits of Python integers: bit N says whether class N is in a set.

A class is a combination of one value of each dimension, and a number below ``ClassSets.count``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Tuple, TypeVar

from .domains import MISSING, DomainValue
from .symbol_table import Dimension, Symbol

S = TypeVar("S", bound=Symbol)
# Which slice of a space: dimensions, each with the place of its only value.
Cell = Tuple[Tuple[str, int], ...]


class ClassSets:
    """The sets of classes over ``dimensions``, or those of a ``cell``, where some dimensions have one value."""

    def __init__(self, dimensions: Sequence[Dimension], cell: Cell = ()) -> None:
        self.cell = cell
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
