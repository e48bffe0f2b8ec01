# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks files against their JSON Schema, and reports each error in plain words at its place."""

from __future__ import annotations

import functools
import json
import math
import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...policy.decision import APPROVE, HOLD, MOST_SLOTS
from ..wording import closest
from .tree import Mapping, Scalar, Sequence, YamlFile, YamlNode, short_json

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator

_SCHEMAS = Path(__file__).resolve().parents[1]  # editors and people know the addresses of these files
_TYPES = {
    "object": "a mapping",
    "array": "a list",
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
}
# Names that other tools use, and the names here.
_SYNONYMS = {
    "if": "condition",
    "when": "condition",
    "then": "output",
    "decision": "output",
    "result": "output",
    "reason": "explanation",
    "message": "explanation",
    "rules": "rule",
    "cmd": "run",
    "command": "run",
    "url": "http",
    "value": "default",
    "expr": "expression",
    "parameters": "params",
    **dict.fromkeys(("slots", "max", "maximum", "count", "number", "percent", "limit", "max_unavailable"), "at_most"),
}
_REFUSALS = ("deny", "reject", "refuse", "disapprove", "block", "wait", "no", "false")
_TRUE, _FALSE = ("yes", "on", "y"), ("no", "off", "n")
_LIMITS = ("Limit", "At most")  # titles


def check(file: YamlFile, schema: str) -> None:
    """Report each departure of a file from the schema in the compiler's file ``schema``."""
    if file.root is None:
        return
    errors: Iterable[Any] = _validator(schema).iter_errors(file.root.data())
    _Reporter(file).report(
        _SchemaError(list(error.absolute_path), error.validator, error.validator_value, error.instance, error.schema)
        for error in errors
    )


def load(schema: str) -> dict[str, Any]:
    """Return a schema of the compiler, such as ``policy.schema.json``."""
    data = json.loads((_SCHEMAS / schema).read_text(encoding="utf-8"))
    if not isinstance(data, dict):
        raise TypeError(f"{schema} is not an object")
    return data


@functools.lru_cache(maxsize=None)
def _validator(schema: str) -> Draft202012Validator:
    from jsonschema import Draft202012Validator  # here: it takes a tenth of a second to import

    return Draft202012Validator(load(schema))


@dataclass(frozen=True)
class _SchemaError:
    """An error of jsonschema: the keyword of ``schema`` that ``value`` offends, and what the keyword expects."""

    path: list[str | int]
    keyword: str
    expected: Any
    value: Any
    schema: Any


class _Reporter:
    def __init__(self, file: YamlFile) -> None:
        self.file = file
        self.meant: set[tuple[YamlNode, str]] = set()  # keys of a mapping that are only misspelt

    def report(self, errors: Iterable[_SchemaError]) -> None:
        """Report all errors; unknown keys first, since they may explain missing keys."""
        ordered = sorted(errors, key=lambda error: error.keyword != "additionalProperties")
        mistyped = [error.path for error in ordered if error.keyword == "type"]
        for error in ordered:
            node, label = self._locate(error.path)
            if error.keyword != "type" and error.path in mistyped:
                continue  # a value of the wrong type has one finding
            if isinstance(node, Mapping) and error.keyword == "additionalProperties":
                self._report_unknown_keys(error, node)
            elif isinstance(node, Mapping) and error.keyword in ("required", "oneOf", "dependentRequired"):
                self._report_missing_keys(error, node, label)
            elif error.keyword == "not":
                self._report_misplaced(error)
            elif isinstance(node, Scalar) and node.empty:
                self._report_at_key(error, "missing-value", f"{label} has no value", "")
            elif error.keyword == "type":
                self._report_type(error, node, label)
            elif error.keyword == "enum":
                self._report_enum(error, node, label)
            elif error.keyword == "pattern":
                self._report_pattern(error, node, label)
            elif error.keyword in ("minimum", "maximum"):
                low, high = error.schema["minimum"], error.schema["maximum"]
                message = f"{label} is between {low} and {high}, not {short_json(error.value)}"
                hint = _as_limit(short_json(error.value)) if error.schema.get("title") in _LIMITS else ""
                self.file.add("out-of-range", message, node, hint)
            else:
                self._report_at_key(
                    error, "too-short", f"{label} is empty", "give it at least one value, or leave it out"
                )

    def _locate(self, path: list[str | int]) -> tuple[YamlNode, str]:
        """Return the node at a path, and its name for messages."""
        node: Any = self.file.root
        label, name = "the file", ""
        for step in path:
            if isinstance(step, int):
                node = node.items[step]
                label = f"item {step + 1} of '{name}'" if name else f"item {step + 1}"
            else:
                node = node.values[step]
                name, label = step, f"'{step}'"
        return node, label

    def _report_at_key(self, error: _SchemaError, code: str, message: str, suggestion: str) -> None:
        node, _label = self._locate(error.path)
        parent, _label = self._locate(error.path[:-1])
        if isinstance(parent, Mapping):
            node = parent.keys[str(error.path[-1])]
        self.file.add(code, message, node, suggestion)

    def _report_unknown_keys(self, error: _SchemaError, node: Mapping) -> None:
        known = error.schema["properties"]
        for key, key_node in node.keys.items():
            if key in known:
                continue
            absent = [word for word in known if word not in node.keys] or list(known)
            synonym = _SYNONYMS.get(key.lower())
            meant = synonym if synonym in known else closest(key, absent)
            if meant is not None:
                self.meant.add((node, meant))
                suggestion = f"did you mean '{meant}'?"
            elif key == "<<":
                suggestion = "merge keys are not supported; write the keys out, or use an alias for a whole value"
            else:
                suggestion = "the keys here are " + ", ".join(known)
            self.file.add("unknown-key", f"'{key}' is an unknown key", key_node, suggestion)

    def _report_missing_keys(self, error: _SchemaError, node: Mapping, label: str) -> None:
        if error.keyword == "oneOf":
            self._report_alternatives(error, node)
            return
        if error.keyword == "required":
            wanted = {key: "" for key in error.expected if key not in node.keys}
        else:
            wanted = {
                key: f" beside '{have}'"
                for have, keys in error.expected.items()
                for key in keys
                if have in node.keys and key not in node.keys
            }
        for key, beside in wanted.items():
            if (node, key) not in self.meant:
                message = f"'{key}' is missing{beside or ' in ' + label}"
                self.file.add("missing-key", message, node, self._example(error, key))

    @staticmethod
    def _example(error: _SchemaError, key: str) -> str:
        schema = error.schema.get("properties", {}).get(key, {})
        if "x-hint" in schema:
            return f"add '{key}:'; {schema['x-hint']}"
        example = schema.get("examples", schema.get("enum"))
        if example and isinstance(example[0], (str, int)):
            return f"add a line such as '{key}: {example[0]}'"
        return f"add '{key}:'"

    def _report_alternatives(self, error: _SchemaError, node: Mapping) -> None:
        names = [name for alternative in error.expected for name in alternative["required"]]
        found = [name for name in names if name in node.keys]
        for name in found[1:]:
            message = f"'{found[0]}' and '{name}' exclude each other"
            self.file.add("alternatives", message, node.keys[name], "keep one of them")
        if not found and not any((node, name) in self.meant for name in names):
            listed = " or ".join(f"'{name}'" for name in names)
            self.file.add("missing-key", f"{listed} is missing here", node, f"add one of {', '.join(names)}")

    def _report_misplaced(self, error: _SchemaError) -> None:
        unknown = error.schema.get("x-unknown")
        if unknown is not None:
            self._report_at_key(error, "unknown-key", f"'{error.path[-1]}' is an unknown key", unknown)
            return
        beside = error.schema.get("x-beside")
        if beside is not None:
            message = f"'{beside}' and '{error.path[-1]}' exclude each other"
            self._report_at_key(error, "alternatives", message, "keep one of them")
            return
        message = f"'{error.path[-1]}' has no place beside 'rule'"
        hint = "a match with a nested rule has only a condition; put this into the matches of the nested rule"
        self._report_at_key(error, "not-here", message, hint)

    def _report_type(self, error: _SchemaError, node: YamlNode, label: str) -> None:
        types = error.expected if isinstance(error.expected, list) else [error.expected]
        wanted = next((_TYPES[name] for name in types), "something else")
        found = _TYPES["object" if isinstance(node, Mapping) else "array"]
        text = ""
        if isinstance(node, Scalar):
            value, text = node.data(), node.text
            found = f"the text {short_json(value)}" if isinstance(value, str) else short_json(value)
        is_text = isinstance(node, Scalar) and bool(text)
        suggestion = ""
        if error.schema.get("title") == "Retry":
            suggestion = f"write {_as_retry(text)}"
        elif error.schema.get("title") in _LIMITS:
            wanted, suggestion = error.schema["x-pattern"], _as_limit(text)
        elif error.schema.get("title") == "Duration" and re.fullmatch(r"[0-9.]+", text):
            suggestion = f"say in which unit: {text}s"
        elif error.schema.get("title") == "Body" and isinstance(node, Mapping):
            suggestion = "put it in quotes, so that CEL reads it and not YAML: body: '{\"text\": event.EventType}'"
        elif label == "'condition'" and not isinstance(node, Scalar):
            suggestion = "join conditions with &&, as in a && b; one that begins with a bracket or brace needs quotes"
        elif wanted == "a text" and is_text:
            suggestion = f'put it in quotes: "{text}"'
        elif wanted == "true or false" and text.lower() in _TRUE + _FALSE:
            suggestion = f"write {'true' if text.lower() in _TRUE else 'false'}"
        elif wanted == "a list" and is_text:
            suggestion = f"write [{', '.join(_words(text))}]"
        elif wanted == "a list" and isinstance(node, Mapping):
            suggestion = _as_items(label, node)
        elif wanted == "a mapping" and isinstance(node, Sequence):
            suggestion = "leave out the '- '"
        self.file.add("wrong-type", f"{label} must be {wanted}, not {found}", node, suggestion)

    def _report_enum(self, error: _SchemaError, node: YamlNode, label: str) -> None:
        value = error.value
        allowed = [str(word) for word in error.expected if not isinstance(word, dict) and str(word)[:1] not in "'\""]
        words = ", ".join(allowed)
        meant = closest(str(value), allowed)
        if meant == APPROVE and not re.fullmatch(r"\W*a[a-z]+\W*", str(value), re.IGNORECASE):
            meant = None  # disapprove is not a misspelt approve
        if APPROVE in allowed and str(value).lower() in _REFUSALS:
            meant = HOLD
        suggestion = f"did you mean {meant}?" if meant else f"use one of {words}"
        if APPROVE in allowed and "?" in str(value):
            suggestion = "write one match for each outcome, each with its condition"
        self.file.add("wrong-value", f"{label} is one of {words}, not {short_json(value)}", node, suggestion)

    def _report_pattern(self, error: _SchemaError, node: YamlNode, label: str) -> None:
        suggestion = ""
        if error.schema.get("title") == "Duration":
            suggestion = _as_duration(str(error.value))
        elif error.schema.get("title") == "Retry":
            suggestion = f"write {_as_retry(str(error.value))}"
        elif error.schema.get("title") in _LIMITS:
            suggestion = _as_limit(str(error.value))
        elif error.schema.get("x-hint") or error.schema.get("examples"):
            suggestion = error.schema.get("x-hint") or f"for example {error.schema['examples'][0]}"
        message = f"{label} must be {error.schema['x-pattern']}, not {short_json(error.value)}"
        self.file.add("malformed", message, node, suggestion)


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:  # an open quote
        return text.split()


def _as_retry(text: str) -> str:
    """Guess the intended retry."""
    if text.isdecimal() and int(text) > 1:
        return f"{{attempts: {text}}}"
    if re.fullmatch(r"([0-9]+(\.[0-9]+)?(h|ms|m|s))+", text):
        return f"{{delay: {text}}}"
    once = text.lower() in ("0", "1", "false", "none", *_FALSE) or closest(text, ["never"])
    return "never" if once else "{attempts: 5}"


def _as_items(label: str, node: Mapping) -> str:
    """Return how to write a mapping of names as a list of parameters or variables."""
    name, value = next(iter(node.values.items()), ("", None))
    if label not in ("'params'", "'variables'") or not name:
        return "begin each item with '- '"
    rest = "type: …, default: …" if label == "'params'" else "expression: …"
    if isinstance(value, Scalar) and not value.empty:
        data = value.data()
        kind = {bool: "bool", int: "int", float: "double"}.get(type(data), "string")
        text = f"'{value.text}'" if re.search(r"""[:#{}\[\],"]""", value.text) else value.text
        rest = f"type: {kind}, default: {text}" if label == "'params'" else f"expression: {text}"
    return f"write - {{name: {name}, {rest}}}"


def _as_limit(text: str) -> str:
    """Return how to write a limit that is written in another way, or what to write instead."""
    found = re.fullmatch(r"(-?[0-9]+(?:\.[0-9]+)?)\s*(%|percent)?(?:\s*VMs?)?", text.strip(), re.IGNORECASE)
    if not found:
        unlimited = text.lower() in ("none", "unlimited", "false", *_FALSE)
        return "leave it out for no limit" if unlimited else "write 1 for one VM at a time, or a share such as 25%"
    number, share = float(found.group(1)), found.group(2) is not None
    if number <= 0:
        return "to approve nothing, write 'output: hold'"
    if share and number > 100:
        return "a share is at most 100%"
    if not share and number > MOST_SLOTS:
        return "leave it out for no limit"
    if number.is_integer():
        return f"write {number:.0f}{'%' if share else ''}"
    if not share and (number * 100).is_integer() and number < 1:
        return f"write {number * 100:.0f}% for a share"
    return f"write {max(1, math.floor(number))}{'%' if share else ''}, which is a whole number"


def _as_duration(text: str) -> str:
    """Guess the intended duration."""
    days = re.fullmatch(r"(\d+)\s*d(?:ays?)?", text)
    if days:
        return f"write {int(days.group(1)) * 24}h"
    match = re.fullmatch(r"(\d+)\s*(h|m|s)\w*", text, re.IGNORECASE)
    if match:
        return f"write {match.group(1)}{match.group(2).lower()}"
    return f"say in which unit: {text}s" if text.isdecimal() else ""
