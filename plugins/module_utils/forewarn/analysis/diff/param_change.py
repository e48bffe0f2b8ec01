# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the declarations of one parameter differ in two versions: its type, the values that it may have, its default."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

from ...policy.params import check_bounds, convert
from ..artifacts import Json
from ..event_space.domains import RANGES
from ..hook_wording import quoted, shows_as_it_is
from . import kinds


def declaration_changes(old: Json, new: Json) -> Iterator[tuple[str, str]]:
    """Yield the kind of each difference, and its words."""
    if old["type"] != new["type"]:
        yield kinds.PARAMETER_TYPE, f"type {old['type']} → {new['type']}"
    else:
        fewer, more = not _within(old, new), not _within(new, old)
        if fewer or more:
            words = "other values" if fewer and more else "a wider range" if more else "a narrower range"
            yield kinds.PARAMETER_RANGE, f"{words}, {_range(old)} → {_range(new)}"
    before, after = (_converted(entry) for entry in (old, new))
    if before != after:
        must = "" if "default" in new else ": each host must set it"
        yield kinds.PARAMETER_DEFAULT, f"default {_default(old)} → {_default(new)}{must}"


def _converted(entry: Json) -> tuple[Any, ...]:
    if "default" not in entry:
        return ()
    return entry["type"], convert(entry["default"], entry["type"])


def _within(inner: Json, outer: Json) -> bool:
    """Return whether every value that one declaration allows, of the same type, is allowed by the other."""
    values = _finite(inner)
    if values is not None:
        return all(_allows(outer, value) for value in values)
    low, high = _bounds(inner)
    lowest, highest = _bounds(outer)
    if lowest > low or highest < high:
        return False
    allowed = outer.get("enum")
    if allowed is None:
        return True
    if outer["type"] != "int" or high - low >= len(allowed):
        return False
    return all(_allows(outer, value) for value in range(low, high + 1))


def _finite(entry: Json) -> list[Any] | None:
    """Return the values that a declaration allows if it lists them."""
    kind = entry["type"]
    if "enum" in entry:
        return [value for one in entry["enum"] if _allows(entry, value := convert(one, kind))]
    if kind == "bool":
        return [False, True]
    low, high = _bounds(entry)
    return [low] if low == high else None


def _allows(entry: Json, value: Any) -> bool:
    try:
        check_bounds(value, entry)
    except ValueError:
        return False
    return True


def _bounds(entry: Json) -> tuple[Any, Any]:
    low, high = RANGES["int"] if entry["type"] == "int" else (-math.inf, math.inf)
    return (
        convert(entry["min"], entry["type"]) if "min" in entry else low,
        convert(entry["max"], entry["type"]) if "max" in entry else high,
    )


def _range(entry: Json) -> str:
    parts = []
    if "enum" in entry:
        parts.append(f"one of {', '.join(map(_value, entry['enum']))}")
    if "min" in entry:
        parts.append(f"at least {_value(entry['min'])}")
    if "max" in entry:
        parts.append(f"at most {_value(entry['max'])}")
    return " and ".join(parts) or "any value"


def _default(entry: Json) -> str:
    return _value(entry["default"]) if "default" in entry else "none"


def _value(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if shows_as_it_is(text) else quoted(text)
