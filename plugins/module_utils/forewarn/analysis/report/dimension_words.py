# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The dimensions of the map in words: their values, intervals with the units that people use, and how wide they are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...pages import counted
from ...policy.functions.timevalues import SECOND, format_timestamp
from ...policy.params import convert
from ..artifacts import Json
from ..event_space.domains import LONGEST, RANGES, DomainValue
from ..event_space.resources import COUNT, PLACE, VM_NAME
from ..event_space.symbol_table import Dimension
from ..event_space.symbols import DURATION, EVENT_STATUS, FIRST_NOW, LAST_NOW, TAGS_KNOWN, Param

_USUAL = {EVENT_STATUS: "Scheduled", PLACE: "leader", VM_NAME: "any other", TAGS_KNOWN: "known"}
_FIRST = {*(low for low, _high in RANGES.values()), -LONGEST, FIRST_NOW, None}
_LAST = {*(high for _low, high in RANGES.values()), LONGEST, LAST_NOW, None}
_UNITS = ((86400, "day"), (3600, "h"), (60, "min"))
_NARROWEST, _WIDEST, _OPEN = 0.75, 2.0, 2.2  # in columns of a dimension without a scale


def dimension_data(dimension: Dimension) -> dict[str, Any]:
    """Return what a page knows of a dimension.

    ``values`` have either ``label`` and ``said`` or, for an interval, ``low`` and ``high``: a text and whether the
    bound is part of the interval, None where it is open. ``start`` is the place of the usual value, if there is one.
    """
    symbol = dimension.symbol
    data: dict[str, Any] = {
        "name": dimension.name,
        "title": symbol.title,
        "subject": symbol.spoken if symbol is COUNT else symbol.title,
        "opaque": dimension.kind == "opaque",
        "open": "known" if symbol is DURATION else "any",  # an interval without bounds
        "values": [_value(dimension, value) for value in dimension.values],
    }
    labels = [value.label for value in dimension.values]
    usual = _USUAL.get(symbol)
    if usual in labels:
        data["start"] = labels.index(usual)
    if isinstance(symbol, Param) and "default" in symbol.declaration:
        default = convert(symbol.declaration["default"], symbol.type)
        concretes = [value.concrete for value in dimension.values]
        if default in concretes:
            data["start"] = concretes.index(default)
    return data


def what_matters(dims: Sequence[Json]) -> list[str]:
    """Return the names of what decisions can depend on, for people, of dimensions as of ``dimension_data``."""
    names = {PLACE.name: "the VM's place in Resources", VM_NAME.name: "the VM's name", TAGS_KNOWN.name: None}
    plain = [one for one in dims if not one["opaque"] and not (one["name"] == VM_NAME.name and len(one["values"]) == 2)]
    found = [name for one in plain if (name := names.get(one["name"], one["subject"]))]
    odd = len([one for one in dims if one["opaque"]])
    return [*found, *([counted(odd, "expression") + " that forewarn does not understand"] if odd else [])]


def duration_words(value: int) -> str:
    """Write a duration in nanoseconds as people do: ``30 s``, ``1 min 30 s``, ``7 days``."""
    seconds, rest = divmod(abs(value), SECOND)
    parts = []
    for size, unit in _UNITS:
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count} {unit}{'s' if unit == 'day' and count > 1 else ''}")
    if seconds or rest or not parts:
        parts.append(f"{seconds}{f'.{rest:09}'.rstrip('0') if rest else ''} s")
    return ("-" if value < 0 else "") + " ".join(parts)


def _value(dimension: Dimension, value: DomainValue) -> dict[str, Any]:
    alone = [(one.low, one.high) for one in dimension.values].count((value.low, value.high)) == 1
    if (
        not dimension.ordered
        or not alone
        or (value.low, value.high) == (None, None)
        or value.label.endswith("(unknown)")
    ):
        return {"label": _label(dimension, value), "said": _said(dimension, value)}
    low, high = _bounds(dimension, value)
    return {"low": low, "high": high, "exact": value.low == value.high, "width": _width(dimension, value)}


def _bounds(dimension: Dimension, value: DomainValue) -> tuple[list[Any] | None, list[Any] | None]:
    """Return both bounds in round numbers: below 5 min, not up to 4 min 59.999999999 s."""
    low, high = value.low, value.high
    if low == high:
        return [_shown(dimension, low), True], [_shown(dimension, high), True]
    low_in = high_in = True
    if dimension.kind in ("duration", "timestamp"):
        low_in, high_in = low is None or low % SECOND != 1, high is None or high % SECOND != SECOND - 1
    elif dimension.symbol is DURATION:
        low_in, high_in = low <= 60 or low % 60 != 1, high >= 60 and high % 60 == 0
    first = low in _FIRST or (low == 0 and dimension.symbol is DURATION)
    first = first or (low == 0 and dimension.kind == "duration" and high not in _LAST)
    return (
        None if first else [_shown(dimension, low if low_in else low - 1), low_in],
        None if high in _LAST else [_shown(dimension, high if high_in else high + 1), high_in],
    )


def _shown(dimension: Dimension, bound: Any) -> str:
    if dimension.symbol is DURATION:
        return duration_words(bound * SECOND)
    if dimension.kind == "duration":
        return duration_words(bound)
    return format_timestamp(bound) if dimension.kind == "timestamp" else str(bound)


def _width(dimension: Dimension, value: DomainValue) -> float:
    """Return how wide an interval is drawn: by the powers of ten that it spans. An open one is the widest."""
    if value.high in _LAST:
        return _OPEN
    if dimension.kind == "timestamp" or value.low in _FIRST or value.low < 0:
        return 1.0
    unit = SECOND if dimension.kind == "duration" else 1
    low = value.low / unit + 1
    return round(min(_WIDEST, max(_NARROWEST, math.log10((value.high / unit + 2) / low))), 2)


def _said(dimension: Dimension, value: DomainValue) -> str:
    if dimension.symbol is DURATION and value.label.startswith("-1 "):
        return f"{dimension.symbol.spoken} is unknown"
    said = dimension.phrase([value])
    return said.replace(f" in {value.label}", f" {value.label}") if " " in value.label else said


def _label(dimension: Dimension, value: DomainValue) -> str:
    label = value.label
    if dimension.symbol is DURATION and label.startswith("-1 "):
        return "unknown"
    if dimension.symbol is PLACE:
        return {"leader": "leads (is first)", "further down": "is affected, not first"}.get(label, "is not affected")
    if dimension.symbol is VM_NAME and [one.label for one in dimension.values] == ["any other", "missing"]:
        return {"any other": "known"}.get(label, "not known")
    return label
