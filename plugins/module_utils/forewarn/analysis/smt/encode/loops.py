# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Loops over lists: over names of VMs as a whole, over other lists element by element where all of them are known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ....policy import forms as f
from ..terms import conj, disj, neg, require
from .form_encoder import FormEncoder
from .logic import joined
from .problem import Encoding, OpaqueValue
from .resources import Resources, names_of

_MOST_UNROLLED = 64  # elements of a list that a loop goes over one by one
# Whether a size is not 0, for comparisons with a number on the right.
_EMPTINESS = {
    ("gt", 0): True,
    ("ge", 1): True,
    ("ne", 0): True,
    ("le", 0): False,
    ("lt", 1): False,
    ("eq", 0): False,
}
_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


def quantifier(encoder: FormEncoder, form: f.All | f.Exists) -> Encoding:
    """Return the encoding of ``all()`` or ``exists()``."""
    deciding = isinstance(form, f.Exists)
    items = encoder.encode(form.items)
    names = None if encoder.scope.in_name_loop else names_of(items.value)
    if names is not None:
        loop = names.loop(_element_key(encoder, form), _predicate(encoder, form), deciding=deciding)
        error = disj((items.error, conj((neg(loop.decides), loop.fails))))
        return Encoding(loop.decides if deciding else neg(loop.decides), error)
    values = _each(encoder, form, items.value) if items.error is False else None
    return encoder.fresh(form) if values is None else joined(values, deciding=deciding)


def exists_one(encoder: FormEncoder, form: f.ExistsOne) -> Encoding:
    """Return the encoding of ``exists_one()``."""
    items = encoder.encode(form.items)
    known = items.error is False or isinstance(items.value, Resources)
    number = _number(encoder, form, items) if known else None
    return encoder.fresh(form) if number is None else Encoding(number.value == 1, number.error)


def filtered(encoder: FormEncoder, form: f.Call) -> Encoding | None:
    """Return the encoding of how many elements a filter leaves, or of whether any; None for another call."""
    counted = filter_counted_by(form)
    if counted is not None:
        return _number(encoder, counted, encoder.encode(counted.items))
    tested = filter_tested_by(form)
    if tested is None:
        return None
    loop, wanted = tested
    items = encoder.encode(loop.items)
    names = None if encoder.scope.in_name_loop else names_of(items.value)
    if names is not None:
        found = names.loop(_element_key(encoder, loop), _predicate(encoder, loop), deciding=True)
        some, error = found.decides, disj((items.error, found.fails))  # unlike that of exists(), it is not absorbed
    else:
        values = _each(encoder, loop, items.value)
        if values is None:
            return None
        some, error = _sum(values) != 0, disj((items.error, *(one.error for one in values)))
    return Encoding(some if wanted else neg(some), error)


def filter_counted_by(form: f.Call) -> f.Filter | None:
    """Return the filter of ``x.filter(…).size()``, None for another call."""
    (first, *_rest) = (*form.arguments, None)
    return first if form.function == "size" and isinstance(first, f.Filter) else None


def filter_tested_by(form: f.Call) -> tuple[f.Filter, bool] | None:
    """Return the filter of ``x.filter(…).size() > 0`` or ``x.filter(…) == []``, and whether something is to be left.

    None for another call.
    """
    if len(form.arguments) != 2:
        return None
    (left, right), function = form.arguments, form.function
    if isinstance(left, (f.Literal, f.List)):
        left, right, function = right, left, _MIRRORED.get(function, function)
    if isinstance(left, f.Filter) and isinstance(right, f.List) and not right.parts:
        return (left, function in ("ne", "ne_deep")) if function in ("eq", "ne", "eq_deep", "ne_deep") else None
    if not isinstance(left, f.Call) or left.function != "size" or not isinstance(left.arguments[0], f.Filter):
        return None
    if not isinstance(right, f.Literal) or right.type != "int":
        return None
    wanted = _EMPTINESS.get((function, right.value))
    return None if wanted is None else (left.arguments[0], wanted)


def _number(encoder: FormEncoder, form: f.Loop, items: Encoding) -> Encoding | None:
    """Return the encoding of how many elements have a loop's predicate, None if not all of them are known."""
    if isinstance(items.value, Resources) and not encoder.scope.in_name_loop:
        found = items.value.count_of(_element_key(encoder, form), _predicate(encoder, form))
        return Encoding(found.number, disj((items.error, found.fails)))
    values = _each(encoder, form, items.value)
    return None if values is None else Encoding(_sum(values), disj((items.error, *(one.error for one in values))))


def _each(encoder: FormEncoder, form: f.Loop, items: Any) -> list[Encoding] | None:
    """Return the predicate's encoding for each element of a list, None if not all of them are known, or too many."""
    elements: list[Encoding] = []
    if isinstance(items, tuple):
        elements = list(items)
    elif isinstance(items, (list, dict)):
        elements = [Encoding(item) for item in items]
    else:
        return None
    return None if len(elements) > _MOST_UNROLLED else [encoder.encode_with(form, one) for one in elements]


def _predicate(encoder: FormEncoder, form: f.Loop) -> Callable[[Any], Encoding]:
    """Return a function from a name to the predicate's value, which may be called at any time."""
    scope = encoder.scope._replace(in_name_loop=True)

    def predicate(name: Any) -> Encoding:
        with encoder.within(scope):
            return encoder.encode_with(form, Encoding(name))

    return predicate


def _element_key(encoder: FormEncoder, form: f.Loop) -> str:
    """Return a text that is the same for loops that ask the same of each element."""
    element = Encoding(OpaqueValue("the element"))
    with encoder.within(encoder.scope._replace(locals={**encoder.scope.locals, form.number: element})):
        return encoder.key(form.predicate)


def _sum(values: Sequence[Encoding]) -> Any:
    """Return the term whose value in every model is the number of values that are true."""
    total: Any = 0
    for one in values:
        total = total + (int(one.value) if isinstance(one.value, bool) else require().If(one.value, 1, 0))
    return total
