# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Arithmetic of integers, durations and times, with overflow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ....policy.functions.standard import INT_MIN, UINT_MAX
from ....policy.functions.timevalues import SECOND
from ...event_space.domains import RANGES
from ..terms import between, conj, disj, floor_div, ite, neg, same
from .form_encoder import Arguments
from .problem import Encoding

_RANGES = {**RANGES, "uint": (0, UINT_MAX)}
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


def _converted(arguments: Arguments) -> Encoding:
    name, value = arguments.form.function, arguments.values[0].value
    if name == "timestamp_to_int":
        return Encoding(floor_div(value, SECOND))
    if name == "int_to_timestamp":
        return _in_range("timestamp", value * SECOND)
    return _in_range("int" if name == "uint_to_int" else "uint", value)


ARITHMETIC: Mapping[str, Callable[[Arguments], Encoding | None]] = {
    **dict.fromkeys(_SUMS, _sum),
    **dict.fromkeys(("neg_int", "neg_duration"), _negated),
    **dict.fromkeys(("mul_int", "mul_uint"), _product),
    **dict.fromkeys(("div_int", "div_uint", "mod_int", "mod_uint"), _quotient),
    **dict.fromkeys(("timestamp_to_int", "int_to_timestamp", "uint_to_int", "int_to_uint"), _converted),
}
