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
from . import concrete
from .class_sets import Cell, ClassSets, without
from .domains import DomainValue
from .impossible import impossible, normal
from .symbol_table import Dimension, case_of
from .symbols import EVENT_STATUS, EVENT_TYPE

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
        self.normal = normal(self)
        self.reachable = without(self.all, impossible(self))

    def values(self, number: int) -> dict[str, DomainValue]:
        """Return the values of a class by the name of the dimension."""
        return {one.name: one.values[self.place(one.name, number)] for one in self.dimensions}

    def first(self, classes: int) -> int:
        """Return the lowest class of a set that is not empty, a normal one if there is one."""
        chosen = (classes & self.normal) or classes
        return (chosen & -chosen).bit_length() - 1

    def witness(self, number: int) -> Witness:
        """Return an event of a class. What an opaque dimension says is true of it only by chance."""
        return concrete.witness(case_of(zip(self.dimensions, self.values(number).values())), self.api_version)


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
