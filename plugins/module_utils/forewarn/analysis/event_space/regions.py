# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sets of classes in words: covers a set by cubes.

A cube, as in logic, is a conjunction: it chooses some values for each of some dimensions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from .resources import PLACE
from .space import Space, without

ANY = "any event comes"


class Cube(NamedTuple):
    """``chosen`` maps a dimension to the places of its values; one that is not named does not matter.

    ``classes`` are the reachable classes of the cube.
    """

    chosen: Mapping[str, tuple[int, ...]]
    classes: int


def cubes(space: Space, classes: int, most: int, care: int) -> tuple[list[Cube], int]:
    """Cover a set by at most ``most`` cubes; returns them and what they leave out.

    A cube may reach beyond ``care`` (reachable classes), which has no effect, and never holds another reachable class.
    """
    outside, rest = without(care, classes), classes
    relevant, widened = [], classes
    for dimension in reversed(space.dimensions):  # so that the first ones, such as the event's type, are kept
        if len(dimension.values) > 1:
            wider = space.fold(widened, [dimension.name])
            if wider & outside:
                relevant.append(dimension.name)
            else:
                widened = wider
    found: list[Cube] = []
    while rest and len(found) < most:
        cube = _grown(space, outside, care, relevant, space.first(rest))
        found.append(cube)
        rest = without(rest, cube.classes)
    return found, rest


def _grown(space: Space, outside: int, care: int, relevant: list[str], seed: int) -> Cube:
    """Return a cube around a class that no class of ``outside`` is in: with few dimensions and many values."""
    masks = {name: space.mask(name, space.place(name, seed)) for name in relevant}
    chosen: dict[str, list[int]] = {}
    for name in relevant:
        others = care
        for other, mask in masks.items():
            if other != name:
                others &= mask
        bad = others & outside
        if not bad:
            del masks[name]
            continue
        forbidden = set(space.places(name, bad))
        chosen[name] = [place for place in space.places(name, others) if place not in forbidden]
        masks[name] = space.mask_of(name, chosen[name])
    inside = care
    for mask in masks.values():
        inside &= mask
    order = [dimension.name for dimension in space.dimensions if dimension.name in chosen]
    return Cube({name: tuple(chosen[name]) for name in order}, inside)


def words(space: Space, cube: Cube, care: int) -> str:
    """Return a cube as text; empty if it holds all of ``care``."""
    parts = []
    for name, places in cube.chosen.items():
        dimension = space.by_name[name]
        values = [dimension.values[place] for place in places]
        left_out = []
        if not dimension.ordered and dimension.kind != "opaque":
            left_out = [dimension.values[place] for place in space.places(name, care) if place not in places]
        phrase, labels = dimension.phrase(values), [value.label for value in values]
        others = [value.label for value in left_out]
        if others == ["any other"] and labels != ["missing"]:
            phrase = dimension.phrase(left_out).replace(" = any other", " is a known one")
        elif others == ["missing"] and labels == ["any other"]:
            phrase = phrase.replace(" = any other", " is known")
        elif len(left_out) == 1 and len(values) > 1 and dimension.symbol is not PLACE:
            phrase = dimension.phrase(left_out).replace(f" = {others[0]}", f" is not {others[0]}")
            phrase = phrase.replace(" is missing", " is there") if others == ["missing"] else phrase
        parts.append(phrase)
    return " and ".join(parts)
