# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Typed parameters of policies: a policy declares them, hosts set them, and each VM checks the values."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from ..errors import InputError
from .functions import timevalues as tv

_SURROGATE = re.compile("[\ud800-\udfff]")
# Types a parameter may have, as policy files write them.
TYPES = ("bool", "int", "double", "string", "duration", "timestamp", "list(string)", "list(int)", "map(string, string)")


def convert(value: Any, type_name: str) -> Any:
    """Return a JSON or YAML value as a CEL value of a type. Raises ValueError that names the type."""
    if type_name == "bool" and isinstance(value, bool):
        return value
    if type_name == "int" and isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63:
        return value
    if type_name == "double" and isinstance(value, (int, float)) and not isinstance(value, bool):
        return _finite(value)
    if type_name == "string" and isinstance(value, str):
        if _SURROGATE.search(value):
            raise ValueError(f"{value!r} is not Unicode")
        return value
    if type_name == "duration" and isinstance(value, str):
        return tv.parse_duration(value)
    if type_name == "timestamp" and isinstance(value, str):
        return tv.parse_timestamp(value)
    if type_name in ("list(string)", "list(int)") and isinstance(value, (list, tuple)):
        return [convert(item, type_name[5:-1]) for item in value]
    if type_name.startswith("map(") and isinstance(value, Mapping):
        return {convert(key, "string"): convert(item, "string") for key, item in value.items()}
    examples = {"duration": ", written as '15m'", "timestamp": ", written as '2026-01-31T15:04:05Z'"}
    raise ValueError(f"{value!r} is not of type {type_name}{examples.get(type_name, '')}")


def _finite(value: float) -> float:
    try:
        number = float(value)
    except OverflowError as error:
        raise ValueError(f"{str(value)[:40]}… is too large for a double") from error
    if not math.isfinite(number):
        raise ValueError(f"{number} is not a finite number")
    return number


def check_bounds(value: Any, declaration: Mapping[str, Any]) -> None:
    """Raise ValueError if a converted value breaks the declaration's ``min``, ``max``, ``enum`` or ``each``,
    or is not a pattern though ``pattern`` is true.
    """
    type_name = declaration["type"]
    if "min" in declaration and value < convert(declaration["min"], type_name):
        raise ValueError(f"is less than {declaration['min']}")
    if "max" in declaration and value > convert(declaration["max"], type_name):
        raise ValueError(f"is more than {declaration['max']}")
    if "enum" in declaration and value not in [convert(item, type_name) for item in declaration["enum"]]:
        raise ValueError(f"is not one of {', '.join(map(str, declaration['enum']))}")
    if "each" in declaration and not set(value) <= set(declaration["each"]):
        other = next(item for item in value if item not in declaration["each"])
        raise ValueError(f"has {other}, which is not one of {', '.join(declaration['each'])}")
    if declaration.get("pattern") is True:
        from .functions.patterns import PatternError, compile_pattern  # not at the top: few parameters are patterns

        try:
            compile_pattern(value)
        except PatternError as error:
            raise ValueError(
                f"is not a pattern that matches() takes: {error} (at its character {error.position + 1})"
            ) from error


def bind(declarations: list[Mapping[str, Any]], given: Mapping[str, Any], policy: str) -> dict[str, Any]:
    """Return name -> value of a policy's parameters: the given value, or else the default.

    Raises InputError naming the policy and the parameter.
    """
    values = {}
    for declaration in declarations:
        name = declaration["name"]
        if name not in given and "default" not in declaration:
            of = f"{policy}, imported from {declaration['file']}," if "file" in declaration else policy
            raise InputError(f"parameter {name} of policy {of} has no default", f"give it a value: {name}=…")
        raw = given.get(name, declaration.get("default"))
        try:
            value = convert(raw, declaration["type"])
            check_bounds(value, declaration)
        except (TypeError, ValueError) as error:  # TypeError: a limit has another type
            raise InputError(f"parameter {name} of policy {policy}: {error}") from error
        values[name] = value
    return values


def check_names(given: Iterable[str], declarations: Iterable[Mapping[str, Any]]) -> None:
    """Raise InputError if a parameter is given that no policy declares."""
    declared = {entry["name"] for entry in declarations}
    unknown = sorted(set(given) - declared)
    if unknown:
        hint = f"The policies declare {', '.join(sorted(declared)) or 'none'}."
        raise InputError(f"no policy declares a parameter {unknown[0]}", hint)


def from_options(options: Iterable[str], declarations: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the JSON values that ``--param`` options give, by name. Raises InputError."""
    types = {entry["name"]: entry["type"] for entry in declarations}
    values = {}
    for option in options:
        name, text = name_and_value("--param", option)
        try:
            values[name] = parse_text(text, types.get(name, "string"))
        except ValueError as error:
            raise InputError(f"--param {option}: {error}") from error
    return values


def name_and_value(option: str, text: str) -> tuple[str, str]:
    """Split NAME=VALUE. Raises InputError, naming the option."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise InputError(f"{option} {text}: there is no '=' after a name.", f"Write {option} NAME=VALUE.")
    return name, value


def parse_text(text: str, type_name: str) -> Any:
    """Read a parameter from a command line. Raises ValueError."""
    import json

    if type_name in ("string", "duration", "timestamp"):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{text[:200]!r} is not of type {type_name}; write it as JSON") from error
