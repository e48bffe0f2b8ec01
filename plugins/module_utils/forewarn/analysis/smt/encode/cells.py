# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values of the dimensions of the event space as formulas: what they say about an event."""

from __future__ import annotations

from typing import Any

from ...event_space.case import LEADER, NOT_LISTED
from ...event_space.domains import MISSING, DomainValue
from ...event_space.resources import OTHER_CASE, Count, Place, ResourceListed, VmName
from ...event_space.symbol_table import Dimension, Symbol
from ...event_space.symbols import EventField, Notice, Param, Tag, TagsKnown, Time, VmFact
from ..terms import Formula, between, conj, disj, neg, same
from .inputs import MICROSECOND, Inputs
from .params import Params, exact


def cell(inputs: Inputs, params: Params, dimension: Dimension, value: DomainValue) -> Formula:
    """Return a formula that holds iff a dimension has one of its values."""
    if isinstance(dimension.symbol, Place):
        return _place(inputs, value)
    if isinstance(dimension.symbol, VmName):
        return _name(inputs, dimension, value)
    term, there = _term(inputs, params, dimension.symbol)
    if term is None:
        return True
    if value.concrete is MISSING or isinstance(value.concrete, str):
        return _text(inputs, term, there, dimension, value)
    if not dimension.ordered:
        return same(term, _number(inputs, value.concrete))
    low, high = value.low, value.high
    if isinstance(dimension.symbol, Time):  # there are no bounds of the time that is left, or of now
        known = [one for one in dimension.values if one.concrete is not MISSING]
        low, high = None if low == known[0].low else low, None if high == known[-1].high else high
    return conj((there, between(_number(inputs, low), term, _number(inputs, high))))


def number(inputs: Inputs, params: Params, symbol: Symbol) -> Any:
    """Return the term whose value in every model is that of an ordered symbol; times and durations in nanoseconds."""
    return inputs.variable(symbol.name).value if isinstance(symbol, Time) else _term(inputs, params, symbol)[0]


def _term(inputs: Inputs, params: Params, symbol: Symbol) -> tuple[Any, Formula]:
    """Return the value of a symbol, and whether it is there. It has no term if it is a parameter that is given."""
    if isinstance(symbol, EventField):
        return inputs.event_field(symbol.key)
    if isinstance(symbol, VmFact):
        return inputs.vm_fact(symbol.key)
    if isinstance(symbol, Tag):
        there, value = inputs.tags.tag(symbol.key)
        return value, conj((inputs.tags.known, there))
    if isinstance(symbol, Notice):
        return (inputs.not_before_us - inputs.now_us) * MICROSECOND, inputs.has_not_before
    if isinstance(symbol, Time):
        return inputs.variable(symbol.name).value, True
    if isinstance(symbol, Param):
        return params.varying().get(symbol.key, ("", None, True))[1], True
    if isinstance(symbol, Count):
        return inputs.resources.count, True
    if isinstance(symbol, ResourceListed):
        return inputs.resources.has(symbol.vm), True
    if isinstance(symbol, TagsKnown):
        return inputs.tags.known, True
    raise TypeError(f"{symbol.name} has no term")


def _number(inputs: Inputs, value: Any) -> Any:
    return exact(inputs.problem, value) if isinstance(value, float) else value


def _text(inputs: Inputs, term: Any, there: Formula, dimension: Dimension, value: DomainValue) -> Formula:
    if value.concrete is MISSING:
        return neg(there)
    code = inputs.problem.texts.code
    if value.label != "any other":
        return conj((there, same(term, code(value.concrete))))
    others = (one.concrete for one in dimension.values if one.concrete is not MISSING and one.label != "any other")
    return conj((there, *(neg(same(term, code(one))) for one in others)))


def _name(inputs: Inputs, dimension: Dimension, value: DomainValue) -> Formula:
    """Return where the VM has a name, or one that is another in case only."""
    own, texts = inputs.own_name, inputs.problem.texts
    found = _text(inputs, own, inputs.named, dimension, value)
    others = [one.concrete for one in dimension.values if one.label.endswith(OTHER_CASE)]
    if value.label == "any other":
        return conj((found, *(neg(same(texts.fold(own), texts.fold(one))) for one in others)))
    if value.concrete not in others:
        return found
    spelled = (one.concrete for one in dimension.values if one.concrete is not MISSING and one is not value)
    differs = (neg(same(own, texts.code(one))) for one in spelled)
    return conj((inputs.named, same(texts.fold(own), texts.fold(value.concrete)), *differs))


def _place(inputs: Inputs, value: DomainValue) -> Formula:
    listed, leads = inputs.resources.affected(), inputs.resources.leads()
    if value.concrete == LEADER:
        return disj((neg(inputs.named), conj((listed, leads))))
    found = neg(listed) if value.concrete == NOT_LISTED else conj((listed, neg(leads)))
    return conj((inputs.named, found))
