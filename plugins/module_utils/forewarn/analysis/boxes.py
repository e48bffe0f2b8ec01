# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sets of classes in words: covers a set by boxes, each a choice of values for some dimensions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from .domains import Value
from .space import Space, phrase


class Box(NamedTuple):
    """``chosen`` maps a dimension to the places of its values; one that is not named does not matter.

    ``classes`` are the reachable classes of the box.
    """

    chosen: Mapping[str, tuple[int, ...]]
    classes: int


def boxes(space: Space, classes: int, most: int = 8, care: int | None = None) -> tuple[list[Box], int]:
    """Cover a set by at most ``most`` boxes; returns them and what they leave out.

    A box may reach beyond ``care`` (reachable classes), which nobody can see, and never holds another reachable class.
    """
    care = space.reachable if care is None else care
    rest = classes
    found: list[Box] = []
    relevant = [
        dimension.name
        for dimension in space.dimensions
        if len(dimension.values) > 1 and space.fold(classes, [dimension.name]) & care & ~classes
    ]
    while rest and len(found) < most:
        box = _grown(space, classes, care, relevant, space.first(rest))
        found.append(box)
        rest &= ~box.classes
    return found, rest


def _grown(space: Space, classes: int, care: int, relevant: list[str], seed: int) -> Box:
    outside = care & ~classes
    chosen = {name: [_place(space, name, seed)] for name in relevant}
    masks = {name: space.mask(name, places[0]) for name, places in chosen.items()}
    for name in reversed(relevant):  # so that what the event is, its type say, is kept to the last
        others = space.all
        for other, mask in masks.items():
            if other != name:
                others &= mask
        if not others & outside:
            del chosen[name], masks[name]
            continue
        for place in range(len(space.by_name[name].values)):
            mask = space.mask(name, place)
            if place not in chosen[name] and not others & mask & outside and others & mask & care:
                chosen[name].append(place)
                masks[name] |= mask
    inside = care
    for mask in masks.values():
        inside &= mask
    return Box({name: tuple(sorted(places)) for name, places in chosen.items()}, inside)


def _place(space: Space, name: str, number: int) -> int:
    for place in range(len(space.by_name[name].values)):
        if space.mask(name, place) >> number & 1:
            return place
    raise LookupError(name)


def words(space: Space, box: Box, care: int | None = None) -> str:
    """Return a box as people would say it; empty if it holds everything that is cared about."""
    care = space.reachable if care is None else care
    told = []
    for name, places in box.chosen.items():
        dimension = space.by_name[name]
        values = [dimension.values[place] for place in places]
        if dimension.kind == "free":
            told.append(f"({space.frees[name].source}) is {values[0].label}")
            continue
        left_out = [
            value
            for place, value in enumerate(dimension.values)
            if place not in places and space.mask(name, place) & care
        ]
        if [value.label for value in values] == ["missing"]:
            told.append(phrase(dimension, values))
        elif [value.label for value in left_out] == ["any other"] and not dimension.ordered:
            told.append(phrase(dimension, left_out).replace(" = any other", " is a known one"))
        elif [value.label for value in values] == ["any other"] and _only_known(left_out):
            told.append(phrase(dimension, values).replace(" = any other", " is known"))
        elif len(left_out) == 1 and len(values) > 1 and not dimension.ordered and name != "place":
            shown = phrase(dimension, left_out)
            told.append(shown.replace(" = ", " is not ").replace(" is missing", " is there"))
        else:
            told.append(phrase(dimension, values))
    return " and ".join(told)


def _only_known(left_out: list[Value]) -> bool:
    return [value.label for value in left_out] == ["missing"]


def describe(space: Space, classes: int, among: int | None = None, most: int = 3) -> str:
    """Return a set of classes in words, such as tell it from other classes ``among`` which it is (reachable ones).

    What the service does not send is told only if there is nothing else.
    """
    care = space.reachable if among is None else among
    if classes & space.normal:
        care &= space.normal
    found, rest = boxes(space, classes & care, most, care)
    told = [words(space, box, care) for box in found]
    told = [" and ".join(part for part in (space.slice_words, one) if part) or "any event comes" for one in told]
    return "; or ".join(dict.fromkeys(told)) + ("; or in other cases" if rest else "")
