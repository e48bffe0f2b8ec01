# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks declarations of parameters: types, defaults of these types, and consistent limits."""

from __future__ import annotations

import re
from collections.abc import Mapping as AnyMapping
from typing import Any

from ...policy.params import check_bounds, convert
from ..cel.syntax import RESERVED
from ..cel.types import UNKNOWN, Type, list_of, parse_type
from ..wording import did_you_mean, duration_hint
from ..yaml.tree import Mapping, Scalar, Sequence, YamlFile, YamlNode, mappings, short_json, text_of

_ORDERED = ("int", "double", "duration", "timestamp")
_WORDS = {
    "bool": "true or false",
    "int": "a whole number",
    "double": "a number",
    "string": "a text",
    "duration": "a duration such as 5m or 1m30s",
    "timestamp": "a time such as 2026-01-31T15:04:05Z",
    "list(string)": "a list of texts, such as [a, b]",
    "list(int)": "a list of whole numbers, such as [1, 2]",
    "map(string, string)": "a mapping of texts, such as {key: text}",
}


def read_params(
    file: YamlFile,
    node: YamlNode | None,
    of_fields: AnyMapping[str, Type],
    imported: AnyMapping[str, str] | None = None,
) -> tuple[list[dict[str, Any]], dict[str, Type]]:
    """Return the declarations for the artifact, and the types that expressions see.

    ``of_fields`` are the types with the names of fields, such as EventType. In the artifact they are texts.
    ``imported`` are the places of imported parameters by their names, which are not declared again.
    """
    declared: list[dict[str, Any]] = []
    types: dict[str, Type] = {}
    for item in mappings(node):
        name = text_of(item.get("name"))
        if name is None:
            continue
        check_name(file, item.get("name"), types, "parameter", imported)
        written = text_of(item.get("type")) or ""
        of_field = of_fields.get(written.replace("list(", "").rstrip(")"))
        try:
            types[name] = parse_type(plain_type(written))
        except ValueError:  # the schema has reported it
            types[name] = UNKNOWN
            continue
        allowed: dict[str, Any] = {}
        if of_field is not None and types[name].of:
            types[name], allowed = list_of(of_field), {"each": list(of_field.values or ())}
        elif of_field is not None:
            types[name], allowed = of_field, {"enum": list(of_field.values or ())}
        declared.append({"name": name, "type": str(types[name]), **_limits(file, item, str(types[name]), allowed)})
    return declared, types


def plain_type(written: str) -> str:
    """Return the type that a parameter has at run time: a text for the values of a field."""
    return re.sub(r"\b(EventType|EventSource|EventStatus)\b", "string", written)


def check_name(
    file: YamlFile,
    node: YamlNode | None,
    taken: AnyMapping[str, Type],
    what: str,
    imported: AnyMapping[str, str] | None = None,
) -> None:
    """Report a name that is taken, imported from the place that ``imported`` has for it, or that CEL reserves."""
    name = text_of(node)
    if node is None or name is None:
        return
    if imported is not None and name in imported:
        message = f"{what} '{name}' is imported from {imported[name]}, and cannot be declared again"
        file.add("import-clash", message, node, "give it another name, or remove it here")
    elif name in taken:
        file.add("duplicate-name", f"a second {what} is called '{name}'", node, "give it another name")
    if name in RESERVED or name in ("true", "false", "null", "in"):
        file.add("reserved-word", f"'{name}' is a reserved word of CEL", node, "choose another name")


def patterns_in(data: Any) -> set[str]:
    """Return the parameters that ``matches()`` takes as patterns in a policy of an artifact, or in a part of it."""
    if isinstance(data, dict):
        return set().union(*map(patterns_in, data.values()))
    if not isinstance(data, list):
        return set()
    found = set().union(*map(patterns_in, data))
    return {*found, data[6][5]} if data[:1] == ["call"] and data[4] == "matches" else found


def check_patterns(file: YamlFile, node: YamlNode | None, names: set[str], declared: list[dict[str, Any]]) -> None:
    """Mark the parameters with these names as patterns, and report their values that are none."""
    for entry in declared:
        if entry["name"] in names:
            entry["pattern"] = True
    for item in mappings(node):
        if text_of(item.get("name")) in names:
            enum = item.get("enum")
            values = [item.get("default"), *(enum.items if isinstance(enum, Sequence) else ())]
            for value in values:
                if isinstance(value, Scalar) and isinstance(value.data(), str):
                    _check_limits(file, value, "string", "the pattern", {"pattern": True})


def check_pattern_values(file: YamlFile, node: YamlNode, entry: AnyMapping[str, Any], place: str) -> None:
    """Report at ``node`` if an imported parameter, declared at ``place``, is taken as a pattern and has a value that is
    none.
    """
    for value in (entry.get("default"), *entry.get("enum", ())):
        if isinstance(value, str):
            try:
                check_bounds(value, {"type": "string", "pattern": True})
            except ValueError as error:
                name = entry["name"]
                message = f"matches() takes parameter '{name}' of {place}, and its value {short_json(value)} {error}"
                file.add("param-value", message, node)


def _limits(file: YamlFile, item: Mapping, kind: str, allowed: dict[str, Any]) -> dict[str, Any]:
    """Return the rest of a declaration, after checking that its values fit the type and each other.

    ``allowed`` are the limits that the type itself has.
    """
    result: dict[str, Any] = dict(allowed)
    description = text_of(item.get("description"))
    if description is not None:
        result["description"] = description
    for key in ("min", "max"):
        node = item.get(key)
        if node is not None and kind not in _ORDERED:
            file.add("param-value", f"a {kind} has no '{key}'", item.keys[key], f"it is for {', '.join(_ORDERED)}")
        elif node is not None and _check_type(file, node, kind, f"'{key}'"):
            result[key] = node.data()
    enum = item.get("enum")
    if isinstance(enum, Sequence):
        fitting = [value for value in enum.items if _check_type(file, value, kind, "an allowed value")]
        for value in fitting:
            _check_limits(file, value, kind, "the allowed value", allowed)
        if len(fitting) == len(enum.items):
            result["enum"] = enum.data()
    if "min" in result and "max" in result and convert(result["min"], kind) > convert(result["max"], kind):
        file.add("param-value", "'min' is more than 'max'", item.values["min"], "swap them")
        return result
    if isinstance(enum, Sequence) and "enum" in result:
        limits: dict[str, Any] = {key: result[key] for key in ("min", "max") if key in result}
        for value in enum.items:
            _check_limits(file, value, kind, "the allowed value", limits)
    default = item.get("default")
    if default is not None and _check_type(file, default, kind, "the default"):
        result["default"] = default.data()
        _check_limits(file, default, kind, "the default", result)
    return result


def _check_limits(file: YamlFile, node: YamlNode, kind: str, label: str, limits: dict[str, Any]) -> None:
    value = node.data()
    try:
        check_bounds(convert(value, kind), {"type": kind, **limits})
    except ValueError as error:
        known = [str(one) for one in limits.get("enum", limits.get("each", ())) if isinstance(one, str)]
        wrong = [one for one in (value if isinstance(value, list) else [value]) if one not in known]
        hint = did_you_mean(str(wrong[0]), known) if wrong and known else ""
        file.add("param-value", f"{label} {short_json(value)} {error}", node, hint)


def _check_type(file: YamlFile, node: YamlNode, kind: str, label: str) -> bool:
    """Return whether a value has the declared type; report it otherwise."""
    value = node.data()
    if value is None:
        file.add("missing-value", f"{label} has no value", node, f"it must be {_WORDS.get(kind, kind)}")
        return False
    try:
        convert(value, kind)
    except ValueError as error:
        why = f": {error}" if isinstance(value, str) and kind in ("duration", "timestamp") else ""
        message = f"{label} must be {_WORDS.get(kind, kind)}, not {short_json(value)}{why}"
        file.add("param-value", message, node, _type_hint(node, kind))
        return False
    return True


def _type_hint(node: YamlNode, kind: str) -> str:
    written = node.text if isinstance(node, Scalar) else ""
    if kind == "string" and written:
        return f'put it in quotes: "{written}"'
    return duration_hint(written) if kind == "duration" else ""
