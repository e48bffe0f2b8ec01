# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hints for names that are not known: those of other languages, and those that need another one before them.

An author who follows a hint must get an expression that compiles, and that is true for no more events than was meant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...policy.functions.overloads import FUNCTIONS, METHODS
from ..wording import ELSEWHERE, closest, did_you_mean
from .types import Declarations, Type

_WORDS = {
    **dict.fromkeys(("True", "TRUE", "yes", "Yes", "on", "On"), "write true"),
    **dict.fromkeys(("False", "FALSE", "no", "No", "off", "Off"), "write false"),
    **dict.fromkeys(
        ("None", "nil", "NULL", "Null", "undefined"),
        "nothing here is null: ask with has(event.NotBefore) or !has(event.NotBefore)",
    ),
    **dict.fromkeys(("hostname", "inventory_hostname", "host", "node"), "write vm.name"),
    **dict.fromkeys(("decision", "prepare"), "only invariants and queries have it: a rule makes the decision"),
}
_FIELDS = {
    "timestamp": {"year": "getFullYear", "hour": "getHours", "minute": "getMinutes", "second": "getSeconds",
                  "weekday": "getDayOfWeek", "dayofweek": "getDayOfWeek", "dayofyear": "getDayOfYear"},
    "duration": {"hour": "getHours", "minute": "getMinutes", "second": "getSeconds", "totalseconds": "getSeconds"},
    **{kind: {"length": "size", "count": "size", "len": "size"} for kind in ("list", "map", "string", "bytes")},
}  # fmt: skip
# Functions of other languages, and the function here.
_FUNCTIONS = {
    **{
        name: f"math.{name}" for name in ("abs", "ceil", "floor", "round", "sqrt", "trunc", "greatest", "least", "sign")
    },
    "max": "math.greatest",
    "min": "math.least",
    "quote": "strings.quote",
    "math.max": "math.greatest",
    "math.min": "math.least",
}
_LOOPS = frozenset(("all", "exists", "exists_one", "existsOne", "map", "filter"))
_PRESENCE = frozenset(("defined", "isset", "exists", "present", "has", "is_defined", "isDefined"))


def name_hint(name: str, declarations: Declarations, local: Sequence[str]) -> str:
    """Return what to write for a variable that does not exist, or an empty text."""
    if name in _WORDS and name not in declarations.policy_variables:
        return _WORDS[name]
    if name in declarations.policy_variables:
        return f"write variables.{name}"
    for record in ("params", "event", "vm"):
        if name in declarations.records.get(record, {}) and record in declarations.variables:
            return f"write {record}.{name}"
    texts = {
        value
        for fields in declarations.records.values()
        for field in fields.values()
        for value in field.type.values or ()
    }
    meant = next((value for value in sorted(texts) if value.lower() == name.lower()), None)
    if meant is not None:
        return f'put it in quotes: "{meant}"'
    known = [*declarations.variables, *local]
    variable = closest(name, declarations.policy_variables)
    return did_you_mean(name, known) or (f"write variables.{variable}" if variable else "")


def field_hint(type_: Type, name: str, operand: str) -> str:
    """Return what to write for ``operand.name``, where values of the type have no fields."""
    of_size = name.lower() in ("size", "length", "count", "len")
    if type_.kind == "list" and type_.of[0].kind == "record" and not of_size:
        return f"ask each element, as in {operand}.exists(e, e.{name} == …)"
    if any(overload.kinds == (type_.kind,) for overload in METHODS.get(name, ())):
        return f"write .{name}()"
    plain = name.lower().replace("_", "")
    method = _FIELDS.get(type_.kind, {}).get(plain.rstrip("s")) or _FIELDS.get(type_.kind, {}).get(plain)
    if method is not None:
        return f"write .{method}()"
    if type_.kind == "timestamp":
        return "ask it with a function: getFullYear(), getDayOfWeek(), getHours() …"
    return f"remove .{name}"


def call_hint(name: str, arguments: Sequence[str], variables: Mapping[str, Type]) -> str:
    """Return what to write for the call of a function that does not exist, ``name(arguments)``, or an empty text."""
    if name in variables:
        return f"{name} is a value: leave out ()"
    if name in _PRESENCE and len(arguments) == 1 and "." in arguments[0]:
        return f"write has({arguments[0]})"
    if name == "range" and len(arguments) == 2:
        return f"name both ends: {arguments[0]} <= x && x < {arguments[1]}"
    if name in _FUNCTIONS:
        return f"write {_FUNCTIONS[name]}({', '.join(arguments)})"
    method = ELSEWHERE.get(name.lower(), name)
    if method in _LOOPS and arguments:
        return f"write {arguments[0]}.{method}(e, …)" if len(arguments) > 1 else f"write x.{method}(e, …)"
    if method in METHODS and arguments and (method == name or method not in FUNCTIONS):
        return f"write {arguments[0]}.{method}({', '.join(arguments[1:])})"
    return ""


def method_hint(name: str, receiver: str, type_: Type, arguments: Sequence[str], literal: object) -> str:
    """Return what to write for ``receiver.name(arguments)``, where there is no such function, or an empty text.

    ``literal`` is the value of a first argument that is a literal.
    """
    plain = name.lower().replace("_", "")
    if plain in ("get", "has", "haskey", "containskey") and isinstance(literal, str):
        if plain != "get":
            return (
                f"write has({receiver}.{literal})" if type_.kind == "record" else f"write {arguments[0]} in {receiver}"
            )
        if type_.kind == "record":
            return f"write {receiver}.{literal}"
        return (
            f"write {receiver}[?{arguments[0]}].orValue({arguments[1]})"
            if arguments[1:]
            else f"write {receiver}[{arguments[0]}]"
        )
    if type_.kind in ("list", "string", "map") and plain in ("isempty", "empty"):
        return f"write {receiver}.size() == 0"
    if type_.kind == "list" and plain == "first" and not arguments:
        return f"write {receiver}[0]"
    if plain in ("equals", "eq") and len(arguments) == 1:
        return f"write {receiver} == {arguments[0]}"
    method = _FIELDS.get(type_.kind, {}).get(plain.rstrip("s"))
    if method is not None and not arguments:
        return f"write {receiver}.{method}()"
    if any(overload.kinds == (type_.kind,) for overload in FUNCTIONS.get(name, ())) and not arguments:
        return f"write {name}({receiver})"
    return ""
