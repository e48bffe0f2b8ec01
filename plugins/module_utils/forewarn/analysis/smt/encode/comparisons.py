# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Comparisons of values, and what CEL says of lists by comparing their elements."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from ....policy.functions.table import FUNCTIONS
from ..terms import Formula, between, conj, disj, ite, neg, require, same
from .form_encoder import Arguments
from .inputs import Tags
from .params import exact
from .problem import NUMBERS, Encoding, OpaqueValue, Problem, TextList
from .resources import names_of

_COMPARES: Mapping[str, Callable[[Any, Any], Formula]] = {
    "eq": same,
    "ne": lambda a, b: neg(same(a, b)),
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


def _compare(arguments: Arguments) -> Encoding | None:
    first, second = arguments.values
    return compared(arguments.problem, arguments.form.function, arguments.type_of(0), first, second)


def compared(problem: Problem, name: str, type_: str, first: Encoding, second: Encoding) -> Encoding | None:
    """Return a comparison of two values of a type, None where it cannot be translated."""
    one, other = first.value, second.value
    if isinstance(one, OpaqueValue) or isinstance(other, OpaqueValue):
        return None
    error = disj((first.error, second.error))
    if type_ in NUMBERS or (type_ == "bool" and name in ("eq", "ne")):
        return Encoding(_COMPARES[name](one, other), error)
    if type_ == "string" and name in ("eq", "ne"):
        return Encoding(_COMPARES[name](problem.texts.code(one), problem.texts.code(other)), error)
    if type_ == "double":
        for value, sign in ((one, 1), (other, -1)):
            if isinstance(value, float) and not math.isfinite(value):  # the other one is a finite parameter
                left = value if math.isnan(value) else value * sign
                return Encoding(bool(FUNCTIONS[name](left, 0.0)), error)
        one, other = (exact(problem, value) if isinstance(value, (int, float)) else value for value in (one, other))
        return Encoding(_COMPARES[name](one, other), error)
    return None


def _deep(arguments: Arguments) -> Encoding | None:
    lists = [_items(one) for one in arguments.values]
    element = arguments.type_of(0)[len("list(") : -1]
    if lists[0] is None or lists[1] is None or not arguments.type_of(0).startswith("list("):
        return None
    if len(lists[0]) != len(lists[1]):
        return Encoding(arguments.form.function == "ne_deep")
    parts = [compared(arguments.problem, "eq", element, one, other) for one, other in zip(*lists)]
    if None in parts:
        return None
    equal = conj(part.value for part in parts if part is not None)
    return Encoding(equal if arguments.form.function == "eq_deep" else neg(equal))


def _items(one: Encoding) -> list[Encoding] | None:
    """Return the elements of a list, None for what is no list of which they are known."""
    if isinstance(one.value, tuple):
        return list(one.value)
    return [Encoding(item) for item in one.value] if isinstance(one.value, list) else None


def _in(arguments: Arguments) -> Encoding | None:
    element, container = arguments.values
    names = names_of(container.value)
    if names is not None:
        return Encoding(names.has(element.value))
    if isinstance(container.value, TextList):
        return Encoding(container.value.has(element.value))
    if isinstance(container.value, Tags):
        if not isinstance(element.value, str):
            return None
        return Encoding(container.value.tag(element.value)[0])
    items = [Encoding(key) for key in container.value] if isinstance(container.value, dict) else _items(container)
    if items is None:
        return None
    parts = [compared(arguments.problem, "eq", arguments.type_of(0), element, item) for item in items]
    return None if None in parts else Encoding(disj(part.value for part in parts if part is not None))


def _numbers(arguments: Arguments) -> Encoding | None:
    """Compare numbers of different types."""
    name = arguments.form.function[len("number_") :]
    sides = []
    for place, one in enumerate(arguments.values):
        value = one.value
        if arguments.type_of(place) == "double":
            if isinstance(value, float) and not math.isfinite(value):
                return None
            sides.append(exact(arguments.problem, value) if isinstance(value, (int, float)) else value)
        else:
            sides.append(value)
    double = "double" in (arguments.type_of(0), arguments.type_of(1))
    if double:  # an int beyond 2^53 is compared as the double next to it, which the solver does not know
        for place, side in enumerate(sides):
            if arguments.type_of(place) != "double":
                limit = 2**53
                if isinstance(side, int):
                    if abs(side) > limit:
                        return None
                    sides[place] = exact(arguments.problem, side)
                else:
                    return _near(arguments, name, sides, place)
    return Encoding(_COMPARES[name](*sides))


def _near(arguments: Arguments, name: str, sides: list[Any], place: int) -> Encoding:
    """Compare an int that is not constant with a double: exactly up to 2^53, beyond that it may have any outcome."""
    side = sides[place]
    sides[place] = require().ToReal(side)
    holds = _COMPARES[name](*sides)
    return Encoding(ite(between(-(2**53), side, 2**53), holds, arguments.value))


def _extreme(arguments: Arguments) -> Encoding | None:
    """Return the greatest or least element of a list of numbers that are all known or terms."""
    items = _items(arguments.values[0])
    if not items or arguments.form.type not in NUMBERS:
        return None
    best = items[0].value
    for item in items[1:]:
        better = item.value > best if arguments.form.function == "greatest" else item.value < best
        best = ite(better, item.value, best)
    return Encoding(best)


def _sets(arguments: Arguments) -> Encoding | None:
    """Compare lists as sets."""
    first, second = (_items(one) for one in arguments.values)
    element = arguments.type_of(0)[len("list(") : -1]
    if first is None or second is None or arguments.type_of(0) != arguments.type_of(1):
        return None

    def among(one: Encoding, items: list[Encoding]) -> Formula | None:
        parts = [compared(arguments.problem, "eq", element, one, item) for item in items]
        return None if None in parts else disj(part.value for part in parts if part is not None)

    name = arguments.form.function
    found = [among(one, first) for one in second]
    back = [among(one, second) for one in first] if name == "sets_equivalent" else []
    if None in found or None in back:
        return None
    return Encoding(disj(found) if name == "sets_intersects" else conj((*found, *back)))


def _not(arguments: Arguments) -> Encoding:
    return Encoding(neg(arguments.values[0].value))


COMPARISONS: Mapping[str, Callable[[Arguments], Encoding | None]] = {
    **dict.fromkeys(_COMPARES, _compare),
    **dict.fromkeys(("eq_deep", "ne_deep"), _deep),
    **dict.fromkeys(("in", "in_deep"), _in),
    **dict.fromkeys((f"number_{name}" for name in _COMPARES), _numbers),
    **dict.fromkeys(("greatest", "least"), _extreme),
    **dict.fromkeys(("sets_contains", "sets_equivalent", "sets_intersects"), _sets),
    "not": _not,
}
