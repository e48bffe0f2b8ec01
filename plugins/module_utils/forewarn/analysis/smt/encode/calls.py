# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls of functions, and the forms that make lists and maps."""

from __future__ import annotations

from functools import partial

from ....policy import forms as f
from ....policy.evaluation_error import EvaluationError
from ....policy.functions.patterns import compile_pattern
from ....policy.functions.table import FUNCTIONS
from ....policy.functions.timevalues import MAX_DURATION, MIN_DURATION, UNITS
from ..terms import between, conj, disj, neg
from .form_encoder import TOTAL, Arguments, FormEncoder, is_python
from .functions import call, match_of
from .logic import OPTIONAL, optional
from .loops import filtered
from .problem import Encoding, OpaqueValue, failure


def function_call(encoder: FormEncoder, form: f.Call) -> Encoding:
    """Return the encoding of a call."""
    if form.function in OPTIONAL:
        return optional(encoder, form)
    special = _number_and_unit(encoder, form) if form.function == "string_to_duration" else filtered(encoder, form)
    if special is not None:
        return special
    values = tuple(encoder.encode(argument) for argument in form.arguments)
    if all(map(is_python, values)):
        try:
            return Encoding(FUNCTIONS[form.function](*(one.value for one in values)))
        except EvaluationError:
            return failure(form.type)
    if any(one.error is True for one in values):
        return failure(form.type)
    fresh = partial(encoder.fresh, form)
    if form.function == "matches" and is_python(values[1]):
        return match_of(values[0], compile_pattern(values[1].value), encoder.plain, fresh)
    found = call(Arguments(encoder.problem, form, values, encoder.plain, fresh))
    if found is not None:
        return found
    errors = disj(encoder.plain(one).error for one in values)
    if form.function in TOTAL:
        value = OpaqueValue(encoder.key(form)) if form.type == "string" else fresh().value
        return Encoding(value, errors)
    return Encoding(fresh().value, disj((errors, fresh().error)))


def matches(encoder: FormEncoder, form: f.Matches) -> Encoding:
    """Return the encoding of whether a text has a match of a pattern that is a literal."""
    return match_of(encoder.encode(form.operand), form.program, encoder.plain, partial(encoder.fresh, form))


def list_of(encoder: FormEncoder, form: f.List) -> Encoding:
    """Return the encoding of a list."""
    items = tuple(encoder.encode(part) for part in form.parts)
    if all(map(is_python, items)):
        return Encoding([one.value for one in items])
    plain = tuple(map(encoder.plain, items))
    return Encoding(plain, disj(one.error for one in plain))


def map_of(encoder: FormEncoder, form: f.Map) -> Encoding:
    """Return the encoding of a map."""
    values = [encoder.encode(part) for part in form.parts]
    keys = [one.value for one in values[::2]]
    if all(map(is_python, values)) and len({repr(key) for key in keys}) == len(keys):
        return Encoding(dict(zip(keys, (one.value for one in values[1::2]))))
    return encoder.fresh(form)


def _number_and_unit(encoder: FormEncoder, form: f.Call) -> Encoding | None:
    """Return the encoding of ``duration(string(n) + "s")``, for any unit; None for another text."""
    (text,) = form.arguments
    number, unit = text.arguments if isinstance(text, f.Call) and text.function == "add_string" else (text, text)
    if not isinstance(number, f.Call) or number.function != "integer_to_string":
        return None
    if not isinstance(unit, f.Literal) or unit.value not in UNITS:
        return None
    count = encoder.plain(encoder.encode(number.arguments[0]))
    if isinstance(count.value, OpaqueValue):
        return None
    value = count.value * UNITS[unit.value]
    fits = between(MIN_DURATION, value, MAX_DURATION), between(-MAX_DURATION, count.value, MAX_DURATION)
    return Encoding(value, disj((count.error, neg(conj(fits)))))
