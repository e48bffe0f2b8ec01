# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values of the dimensions of the event space as formulas: what they say about an event."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...event_space.case import LEADER, NOT_LISTED
from ...event_space.domains import MISSING, DomainValue
from ...event_space.resources import OTHER_CASE, Count, Place, ResourceListed, VmName
from ...event_space.symbol_table import Dimension, Symbol
from ...event_space.symbols import Duration, EventField, Notice, Param, Tag, TagsKnown, Time, VmFact
from ..terms import Formula, between, conj, disj, neg, same
from .inputs import Inputs
from .params import Params, exact


def cell(inputs: Inputs, params: Params, dimension: Dimension, value: DomainValue) -> Formula:
    """Return where a dimension has one of its values."""
    kind = next(kind for kind in type(dimension.symbol).__mro__ if kind in _CELLS)
    return _CELLS[kind](inputs, params, dimension, value)


def number(inputs: Inputs, params: Params, symbol: Symbol) -> Any:
    """Return the value of an ordered symbol as a term; a time or duration in nanoseconds."""
    if isinstance(symbol, Duration):
        return inputs.event_field("DurationInSeconds")[0]
    if isinstance(symbol, Count):
        return inputs.resources.count
    if isinstance(symbol, Param):
        return params.varying()[symbol.key][1]
    return inputs.variable(symbol.name).value


def _text(inputs: Inputs, term: Any, there: Formula, dimension: Dimension, value: DomainValue) -> Formula:
    if value.concrete is MISSING:
        return neg(there)
    code = inputs.problem.texts.code
    if value.label != "any other":
        return conj((there, same(term, code(value.concrete))))
    others = (one.concrete for one in dimension.values if one.concrete is not MISSING and one.label != "any other")
    return conj((there, *(neg(same(term, code(one))) for one in others)))


def _field(inputs: Inputs, _params: Params, dimension: Dimension, value: DomainValue) -> Formula:
    return _text(inputs, *inputs.event_field(dimension.symbol.key), dimension, value)


def _name(inputs: Inputs, _params: Params, dimension: Dimension, value: DomainValue) -> Formula:
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


def _fact(inputs: Inputs, _params: Params, dimension: Dimension, value: DomainValue) -> Formula:
    return _text(inputs, *inputs.vm_fact(dimension.symbol.key), dimension, value)


def _tag(inputs: Inputs, _params: Params, dimension: Dimension, value: DomainValue) -> Formula:
    there, term = inputs.tags.tag(dimension.symbol.key)
    return _text(inputs, term, conj((inputs.tags.known, there)), dimension, value)


def _tags_known(inputs: Inputs, _params: Params, _dimension: Dimension, value: DomainValue) -> Formula:
    return inputs.tags.known if value.concrete else neg(inputs.tags.known)


def _duration(inputs: Inputs, _params: Params, _dimension: Dimension, value: DomainValue) -> Formula:
    term, there = inputs.event_field("DurationInSeconds")
    return neg(there) if value.concrete is MISSING else conj((there, between(value.low, term, value.high)))


def _time(inputs: Inputs, _params: Params, dimension: Dimension, value: DomainValue) -> Formula:
    term, _error = inputs.variable(dimension.name)
    first, last = dimension.values[0].low, dimension.values[-1].high
    return between(None if value.low == first else value.low, term, None if value.high == last else value.high)


def _notice(inputs: Inputs, _params: Params, dimension: Dimension, value: DomainValue) -> Formula:
    if value.concrete is MISSING:
        return neg(inputs.has_not_before)
    last = max(one.high for one in dimension.values if one.concrete is not MISSING)
    left = (inputs.not_before_us - inputs.now_us) * 1000
    low = None if value.low <= 0 and value is dimension.values[0] else value.low
    return conj((inputs.has_not_before, between(low, left, None if value.high == last else value.high)))


def _count(inputs: Inputs, _params: Params, _dimension: Dimension, value: DomainValue) -> Formula:
    return between(value.low, inputs.resources.count, value.high)


def _place(inputs: Inputs, _params: Params, _dimension: Dimension, value: DomainValue) -> Formula:
    listed, leads = inputs.resources.affected(), inputs.resources.leads()
    if value.concrete == LEADER:
        return disj((neg(inputs.named), conj((listed, leads))))
    found = neg(listed) if value.concrete == NOT_LISTED else conj((listed, neg(leads)))
    return conj((inputs.named, found))


def _named(inputs: Inputs, _params: Params, dimension: Dimension, value: DomainValue) -> Formula:
    has = inputs.resources.has(dimension.symbol.key)
    return has if value.concrete else neg(has)


def _param(inputs: Inputs, params: Params, dimension: Dimension, value: DomainValue) -> Formula:
    varying = params.varying().get(dimension.symbol.key)
    if varying is None:
        return True
    kind, term, _given = varying
    if kind == "string":
        return _text(inputs, term, True, dimension, value)
    if dimension.ordered:
        low, high = value.low, value.high
        if kind == "double":
            low, high = (None if one is None else exact(inputs.problem, one) for one in (low, high))
        return between(low, term, high)
    return same(term, exact(inputs.problem, value.concrete) if kind == "double" else value.concrete)


_CELLS: Mapping[type[Symbol], Callable[[Inputs, Params, Dimension, DomainValue], Formula]] = {
    Duration: _duration,
    EventField: _field,
    Notice: _notice,
    Time: _time,
    VmName: _name,
    VmFact: _fact,
    Tag: _tag,
    TagsKnown: _tags_known,
    Param: _param,
    Count: _count,
    Place: _place,
    ResourceListed: _named,
}
