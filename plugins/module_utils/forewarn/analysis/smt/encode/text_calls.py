# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls that are functions of one text that is not constant; the solver learns their values for texts of policies."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any

from ....policy.evaluation_error import EvaluationError
from ....policy.forms import Call
from ....policy.functions.regex import compile_program
from ....policy.functions.table import FUNCTIONS
from ..terms import neg
from .arguments import TOTAL, Arguments, is_python
from .patterns import samples
from .problem import Encoding, OpaqueValue, failure
from .text_functions import TextFunction, identity

_RELATIONS = ("starts_with", "ends_with", "contains", "eq", "in")


def function_of_text(arguments: Arguments, exact: Container[str]) -> Encoding | None:
    """Return the encoding of a call all of whose arguments are known but for one text, None for another call.

    ``exact`` has the names of the functions of numbers that are terms.
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
        equal = function_of_text(arguments._replace(form=equal_form), exact)
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
    if inner.is_int_of_text and name in exact:
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


def matches(
    operand: Encoding,
    program: list[Any],
    plain: Callable[[Encoding], Encoding],
    fresh: Callable[[], Encoding],
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
