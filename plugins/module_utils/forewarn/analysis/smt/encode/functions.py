# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CEL's functions as terms, where they are exact; see ``policy.functions`` for what they mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ....policy.evaluation_error import EvaluationError
from ....policy.forms import Call
from ....policy.functions.regex import compile_program
from ....policy.functions.table import FUNCTIONS
from ..terms import disj, ite, neg, same
from .arithmetic import ARITHMETIC
from .comparisons import COMPARISONS
from .form_encoder import TOTAL, Arguments, is_python
from .inputs import Tags
from .patterns import samples
from .problem import Encoding, OpaqueValue, TextList, failure
from .resources import Distinct, Resources, names_of
from .text_functions import TextFunction, identity
from .times import ACCESSORS, accessor, duration_field


def call(arguments: Arguments) -> Encoding | None:
    """Return the encoding of a call, None where it cannot be translated exactly."""
    found = _function_of_text(arguments)
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


_RELATIONS = ("starts_with", "ends_with", "contains", "eq", "in")


def _function_of_text(arguments: Arguments) -> Encoding | None:
    """Return the encoding of a call all of whose arguments are known but for one text, None for another call.

    It is a function of the text, whose values the solver learns for the texts of policies.
    """
    form, values = arguments.form, list(arguments.values)
    name = form.function
    if name in ("eq", "ne", "in") and not any(isinstance(one.value, TextFunction) for one in values):
        return None
    unknown = [place for place, one in enumerate(values) if not is_python(one)]
    if len(unknown) != 1:
        return None
    if name == "ne":  # so that the solver learns of one function, not of two
        equal_form = Call((form.type, form.start, form.end), "eq", *form.arguments)
        equal = _function_of_text(arguments._replace(form=equal_form))
        return None if equal is None else Encoding(neg(equal.value), equal.error)
    (place,) = unknown
    text = values[place]
    is_function = isinstance(text.value, TextFunction)
    if not is_function and (arguments.type_of(place) != "string" or isinstance(text.value, OpaqueValue)):
        return None
    if isinstance(text.value, str):  # known, if it has a value at all
        try:
            return Encoding(FUNCTIONS[name](*(one.value for one in values)), text.error)
        except EvaluationError:
            return failure(form.type)
    inner: TextFunction = text.value if is_function else identity(text.value)
    if inner.is_int_of_text and name in _FUNCTIONS:
        return None  # the number is one function of the text, whatever it is compared with
    constants = [one.value for number, one in enumerate(values) if number != place]

    def function(value: Any) -> Any:
        return FUNCTIONS[name](*constants[:place], value, *constants[place:])

    found = inner.then(
        f"{name}({', '.join([inner.key, *map(repr, constants)])} at {place})",
        function,
        form.type,
        [item for one in constants for item in (one if isinstance(one, (list, dict)) else [one])],
        relation=inner.relation_of(name, constants[0]) if _is_relation(name, place) else None,
        total=name in TOTAL,
    )
    return arguments.plain(Encoding(found, text.error)) if found.type == "bool" else Encoding(found, text.error)


def match_of(
    operand: Encoding, program: list[Any], plain: Callable[[Encoding], Encoding], fresh: Callable[[], Encoding]
) -> Encoding:
    """Return the encoding of whether a text has a match of a pattern, which is compiled.

    ``plain`` and ``fresh`` are as those of Arguments.
    """
    search = compile_program(program)
    if is_python(operand):
        return Encoding(search(operand.value))
    if operand.error is True:
        return failure("bool")
    if isinstance(operand.value, OpaqueValue):
        return fresh()
    if isinstance(operand.value, str):  # known, if it has a value at all
        return Encoding(search(operand.value), operand.error)
    inner = operand.value if isinstance(operand.value, TextFunction) else identity(operand.value)
    key, relation = f"matches({inner.key}, {program})", inner.relation_of("matches", program)
    return plain(Encoding(inner.then(key, search, "bool", samples(program), relation=relation), operand.error))


def _is_relation(name: str, place: int) -> bool:
    return name in _RELATIONS and (place == 0 or name == "eq")


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
