# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CEL's functions as terms, where they are exact; see ``policy.functions`` for what they mean."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ....policy.evaluation_error import EvaluationError
from ....policy.forms import Call
from ....policy.functions.standard import INT_MAX, INT_MIN, UINT_MAX
from ....policy.functions.table import FUNCTIONS
from ....policy.functions.timevalues import MAX_DURATION, MAX_TIMESTAMP, MIN_DURATION, MIN_TIMESTAMP, SECOND
from ..terms import Formula, between, conj, disj, floor_div, is_constant, ite, neg, require, same
from .inputs import Tags
from .params import exact
from .patterns import in_case
from .problem import NUMBERS, Encoding, OpaqueValue, Problem, TextList, failure
from .resources import Distinct, Resources, names_of
from .text_functions import TextFunction
from .times import ACCESSORS, accessor, duration_field

_RELATIONS = ("starts_with", "ends_with", "contains")
_IN_CASE = (*_RELATIONS, "eq", "in")
# Functions that have a value wherever their arguments have one: no text reaches the evaluator's limit (CONSTRAINTS).
TOTAL = frozenset(
    (
        *("eq", "ne", "lt", "le", "gt", "ge", "eq_deep", "ne_deep", "in", "in_deep", "not", "same", "size"),
        *("add_double", "sub_double", "mul_double", "div_double", "neg_double", "to_double"),
        *("add_string", "add_bytes", "add_list", "contains", "starts_with", "ends_with", "matches", "replace", "join"),
        *("lower_ascii", "upper_ascii", "trim", "reverse", "quote", "defined", "non_zero"),
        *("number_eq", "number_ne", "number_lt", "number_le", "number_gt", "number_ge"),
        *("ceil", "floor", "round", "trunc", "is_nan", "is_inf", "is_finite", "sqrt", "abs_double", "sign_double"),
        *("sign_int", "sign_uint", "bit_and", "bit_or", "bit_xor", "bit_not_int", "bit_not_uint"),
        *("integer_to_string", "bool_to_string", "timestamp_to_string", "duration_to_string"),
    )
)
_COMPARES: Mapping[str, Callable[[Any, Any], Formula]] = {
    "eq": same,
    "ne": lambda a, b: neg(same(a, b)),
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
_RANGES = {
    "int": (INT_MIN, INT_MAX),
    "uint": (0, UINT_MAX),
    "duration": (MIN_DURATION, MAX_DURATION),
    "timestamp": (MIN_TIMESTAMP, MAX_TIMESTAMP),
}
_SUMS: Mapping[str, tuple[str, Callable[[Any, Any], Any]]] = {  # the type of the result, and the operation
    "add_int": ("int", lambda a, b: a + b),
    "sub_int": ("int", lambda a, b: a - b),
    "add_uint": ("uint", lambda a, b: a + b),
    "sub_uint": ("uint", lambda a, b: a - b),
    "add_timestamp": ("timestamp", lambda a, b: a + b),
    "sub_timestamp": ("timestamp", lambda a, b: a - b),
    "diff_timestamp": ("duration", lambda a, b: a - b),
    "add_duration": ("duration", lambda a, b: a + b),
    "sub_duration": ("duration", lambda a, b: a - b),
}


class Arguments(NamedTuple):
    """The arguments of a call. ``plain`` makes a term of a value, ``anything`` is a value that may be any."""

    problem: Problem
    form: Call
    values: tuple[Encoding, ...]
    plain: Callable[[Encoding], Encoding]
    anything: Callable[[], Encoding]

    @property
    def value(self) -> Any:
        """A value that may be any, the same for the same call."""
        return self.anything().value

    @property
    def error(self) -> Formula:
        """Whether an argument has no value."""
        return disj(one.error for one in self.values)

    def type_of(self, place: int) -> str:
        """Return the type of an argument."""
        return self.form.arguments[place].type


def call(arguments: Arguments) -> Encoding | None:
    """Return the value of a call, None where it cannot be translated exactly."""
    mapped = _of_one_text(arguments)
    if mapped is not None:
        return mapped
    values = tuple(map(arguments.plain, arguments.values))
    if any(isinstance(one.value, OpaqueValue) and not isinstance(one.value, TextList) for one in values):
        return None
    arguments = arguments._replace(values=values)
    name = arguments.form.function
    found = _FUNCTIONS[name](arguments) if name in _FUNCTIONS else None
    return None if found is None else Encoding(found.value, disj((arguments.error, found.error)))


def is_python(one: Encoding) -> bool:
    """Return whether a value is known."""
    kinds = (TextFunction, tuple, Tags, Resources, Distinct)  # a OptionalValue is a tuple, too
    known = not isinstance(one.value, OpaqueValue) and not isinstance(one.value, kinds) and is_constant(one.value)
    return known and one.error is False


def _of_one_text(arguments: Arguments) -> Encoding | None:
    """Return what a function makes of one text that is not constant, if all else is."""
    function, others = FUNCTIONS[arguments.form.function], list(arguments.values)
    if arguments.form.function in ("eq", "ne", "in") and not any(isinstance(one.value, TextFunction) for one in others):
        return None
    open_ = [place for place, one in enumerate(others) if not is_python(one)]
    if len(open_) != 1:
        return None
    if arguments.form.function == "ne":  # so that the solver learns of one function, not of two
        form = arguments.form
        equal_form = Call((form.type, form.start, form.end), "eq", *form.arguments)
        equal = _of_one_text(arguments._replace(form=equal_form))
        return None if equal is None else Encoding(neg(equal.value), equal.error)
    (place,) = open_
    text = others[place]
    if not isinstance(text.value, TextFunction) and (
        arguments.type_of(place) != "string" or isinstance(text.value, OpaqueValue)
    ):
        return None
    if isinstance(text.value, str):  # known, if it has a value at all
        try:
            return Encoding(function(*(one.value for one in others)), text.error)
        except EvaluationError:
            return failure(arguments.form.type)
    inner = text.value if isinstance(text.value, TextFunction) else None
    name = arguments.form.function
    if inner is not None and inner.is_int_of_text and name in _FUNCTIONS:
        return None  # the number is one function of the text, whatever it is compared with
    constants = [one.value for number, one in enumerate(others) if number != place]

    def made(value: str) -> Any:
        given = list(constants)
        given.insert(place, value if inner is None else inner.function(value))
        return function(*given)

    relation: tuple[str, Any] | None = None
    if inner is None and name in _RELATIONS and place == 0:
        relation = (name, constants[0])
    elif inner is not None and inner.case is not None and (place == 0 or name == "eq") and name in _IN_CASE:
        relation = ("matches", in_case(inner.case, name, constants[0]))
    outer = ", ".join(["·" if inner is None else inner.key, *map(repr, constants)]) + f" at {place}"
    found = TextFunction(
        text.value if inner is None else inner.term,
        f"{name}({outer})",
        made,
        arguments.form.type,
        (*(() if inner is None else inner.constants), *_samples(constants)),
        relation,
        name in TOTAL and (inner is None or inner.total),
        name if inner is None and name in ("lower_ascii", "upper_ascii") else None,
    )
    return arguments.plain(Encoding(found, text.error)) if found.type == "bool" else Encoding(found, text.error)


def _samples(constants: list[Any]) -> list[Any]:
    return [item for one in constants for item in (one if isinstance(one, (list, dict)) else [one])]


# Comparisons


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


# Arithmetic


def _in_range(type_: str, value: Any) -> Encoding:
    low, high = _RANGES[type_]
    return Encoding(value, neg(between(low, value, high)))


def _sum(arguments: Arguments) -> Encoding:
    type_, operation = _SUMS[arguments.form.function]
    values = [one.value for one in arguments.values]
    total = operation(*values)
    if type_ == "timestamp" and isinstance(values[1], int):
        known = arguments.problem.range_of(values[0])
        if known is not None:
            arguments.problem.note_range(total, operation(known[0], values[1]), operation(known[1], values[1]))
    return _in_range(type_, total)


def _negated(arguments: Arguments) -> Encoding:
    return _in_range("duration" if arguments.form.function == "neg_duration" else "int", -arguments.values[0].value)


def _product(arguments: Arguments) -> Encoding | None:
    one, other = (value.value for value in arguments.values)
    if not isinstance(one, int) and not isinstance(other, int):
        return None
    return _in_range("uint" if arguments.form.function == "mul_uint" else "int", one * other)


def _quotient(arguments: Arguments) -> Encoding | None:
    """Divide by a constant, towards zero."""
    dividend, divisor = (value.value for value in arguments.values)
    name = arguments.form.function
    if not isinstance(divisor, int):
        overflows = conj((same(dividend, INT_MIN), divisor == -1)) if name in ("div_int", "mod_int") else False
        return Encoding(arguments.value, disj((divisor == 0, overflows)))  # any value, but an exact error
    if divisor == 0:
        return Encoding(0, True)
    size = abs(divisor)
    quotient = ite(dividend >= 0, floor_div(dividend, size), -floor_div(-dividend, size))
    quotient = quotient if divisor > 0 else -quotient
    if name in ("div_int", "div_uint"):
        return _in_range("int" if name == "div_int" else "uint", quotient)
    overflows = conj((dividend == INT_MIN, divisor == -1)) if name == "mod_int" else False
    return Encoding(dividend - divisor * quotient, overflows)


# Conversions, sizes and elements


def _converted(arguments: Arguments) -> Encoding:
    name, value = arguments.form.function, arguments.values[0].value
    if name == "timestamp_to_int":
        return Encoding(floor_div(value, SECOND))
    if name == "int_to_timestamp":
        return _in_range("timestamp", value * SECOND)
    return _in_range("int" if name == "uint_to_int" else "uint", value)


def _same(arguments: Arguments) -> Encoding:
    return arguments.values[0]


def _size(arguments: Arguments) -> Encoding | None:
    value = arguments.values[0].value
    if isinstance(value, (Resources, Distinct, Tags)):
        return Encoding(value.count)
    return Encoding(len(value)) if isinstance(value, tuple) else None


def _index_list(arguments: Arguments) -> Encoding | None:
    items, index = arguments.values[0].value, arguments.values[1].value
    none = failure(arguments.form.type)
    names = names_of(items)
    if names is not None and isinstance(index, int):
        return Encoding(names.leader()) if index == 0 else none if index < 0 else None
    if isinstance(items, tuple) and isinstance(index, int):
        return items[index] if 0 <= index < len(items) else none
    return None


def _distinct(arguments: Arguments) -> Encoding | None:
    items = arguments.values[0].value
    if isinstance(items, Distinct):
        return Encoding(items)
    return Encoding(items.without_repetitions()) if isinstance(items, Resources) else None


def _index_map(arguments: Arguments) -> Encoding | None:
    tags, key = arguments.values[0].value, arguments.values[1].value
    if not isinstance(tags, Tags) or not isinstance(key, str):
        return None
    there, value = tags.tag(key)
    return Encoding(value, neg(there))


def _calendar(arguments: Arguments) -> Encoding | None:
    moment, *zones = (one.value for one in arguments.values)
    problem, function = arguments.problem, arguments.form.function
    if not zones:
        return accessor(problem, function, moment, None)
    found: Encoding | None = None
    for zone in problem.choices(zones[0]):  # it is one of them
        here = accessor(problem, function, moment, zone)
        if found is not None:
            this = same(zones[0], problem.texts.code(zone))
            here = Encoding(ite(this, here.value, found.value), ite(this, here.error, found.error))
        found = here
    return found


def _duration_field(arguments: Arguments) -> Encoding:
    return duration_field(arguments.form.function, arguments.values[0].value)


_FUNCTIONS: Mapping[str, Callable[[Arguments], Encoding | None]] = {
    **dict.fromkeys(_COMPARES, _compare),
    **dict.fromkeys(("eq_deep", "ne_deep"), _deep),
    **dict.fromkeys(_SUMS, _sum),
    **dict.fromkeys(("neg_int", "neg_duration"), _negated),
    **dict.fromkeys(("mul_int", "mul_uint"), _product),
    **dict.fromkeys(("div_int", "div_uint", "mod_int", "mod_uint"), _quotient),
    **dict.fromkeys(("timestamp_to_int", "int_to_timestamp", "uint_to_int", "int_to_uint"), _converted),
    **dict.fromkeys(ACCESSORS, _calendar),
    **dict.fromkeys(("duration_hours", "duration_minutes", "duration_seconds"), _duration_field),
    **dict.fromkeys(("in", "in_deep"), _in),
    **dict.fromkeys(("number_eq", "number_ne", "number_lt", "number_le", "number_gt", "number_ge"), _numbers),
    **dict.fromkeys(("greatest", "least"), _extreme),
    **dict.fromkeys(("sets_contains", "sets_equivalent", "sets_intersects"), _sets),
    "not": _not,
    "same": _same,
    "size": _size,
    "distinct": _distinct,
    "index_list": _index_list,
    "index_map": _index_map,
}
