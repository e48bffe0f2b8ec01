# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CEL's functions as terms, where they are exact; see ``policy.functions`` for what they mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..terms import disj, ite, neg, same
from .arguments import Arguments
from .arithmetic import ARITHMETIC
from .comparisons import COMPARISONS
from .inputs import Tags
from .problem import Encoding, OpaqueValue, TextList, failure
from .resources import Distinct, Resources, names_of
from .text_calls import function_of_text
from .times import ACCESSORS, accessor, duration_field


def call(arguments: Arguments) -> Encoding | None:
    """Return the encoding of a call, None where it cannot be translated exactly."""
    found = function_of_text(arguments, _FUNCTIONS)
    if found is not None:
        return found
    values = tuple(map(arguments.plain, arguments.values))
    if any(isinstance(one.value, OpaqueValue) and not isinstance(one.value, TextList) for one in values):
        return None
    arguments = arguments._replace(values=values)
    name = arguments.form.function
    found = _FUNCTIONS[name](arguments) if name in _FUNCTIONS else None
    return None if found is None else Encoding(found.value, disj((arguments.error, found.error)))


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
    **COMPARISONS,
    **ARITHMETIC,
    **dict.fromkeys(ACCESSORS, _calendar),
    **dict.fromkeys(("duration_hours", "duration_minutes", "duration_seconds"), _duration_field),
    "same": _same,
    "size": _size,
    "distinct": _distinct,
    "index_list": _index_list,
    "index_map": _index_map,
}
