# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One expression by itself, evaluated for an event: it reads what the conditions of a policy read."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any, Mapping, NamedTuple

from ..errors import InputError
from ..events import Document, Event
from ..policy.decision import Facts, Value
from ..policy.environment import ABSENT, MAX_STEPS, UNSET, Scope, guard
from ..policy.evaluation_error import EvaluationError
from ..policy.forms import read_form
from ..policy.functions import timevalues as tv
from ..policy.functions.dynamic import Dyn, inner_types
from ..policy.params import bind
from ..policy.program import ROOTS
from ..policy.trace import TracingBuilder
from ..policy.trace import render as render_value
from ..policy.view import DocumentView
from .cel.environment import policy_declarations
from .cel.expression import ExpressionError, check
from .cel.types import Declarations, RecordField, Type, parse_type

SOURCE = "expression"  # the file that messages name
_Records = Mapping[str, Mapping[str, RecordField]]
_MOST_EXACT = 2**53  # beyond, readers of JSON lose digits of a number


class EvaluationResult(NamedTuple):
    """The value of an expression for one event, or its error, and the values of its parts."""

    value: Any
    error: EvaluationError | None
    values: tuple[Value, ...]


class EventExpression:
    """A checked expression, which ``evaluate`` gives a value for an event.

    ``policy`` is the entry of a policy in an artifact, whose parameters and variables the expression may read;
    ``given`` has JSON values of parameters. Raises ExpressionError with all mistakes, and InputError for a parameter
    that is wrong or missing and for a variable that means several things.
    """

    def __init__(
        self, source: str, api_version: str, policy: Mapping[str, Any] | None, given: Mapping[str, Any]
    ) -> None:
        self.source = source
        self._params = {} if policy is None else bind(policy["params"], given, policy["name"])
        self._types = {entry["name"]: parse_type(entry["type"]) for entry in (policy or {}).get("params", ())}
        extra = (policy or {}).get("extra_values", {})
        self._extra = {name: tuple(values) for name, values in extra.items()}
        self._api_version = api_version
        self._scope = Scope(ROOTS)
        self._declarations = self._declare({})
        if policy is not None:
            self._add_variables(policy)
        checked = check(source, self._declarations, None)
        if checked.form is None or checked.type is None:
            raise ExpressionError(source, checked.findings)
        self.type: Type = checked.type
        self.warnings = checked.findings
        entry = {"source": source, "line": 1, "column": 1}
        self._closure = guard(TracingBuilder(self._scope, entry).build(read_form(checked.form)))

    def _declare(self, variables: Mapping[str, Type]) -> Declarations:
        return policy_declarations(self._api_version, self._types, variables, self._extra)

    def _add_variables(self, policy: Mapping[str, Any]) -> None:
        found = list(_variables(policy["rule"]))
        visible: dict[str, Type] = {}
        for name, expression in found:
            places = [other["line"] for known, other in found if known == name]
            if len(places) > 1:
                if re.search(rf"\bvariables\.{name}\b", self.source):
                    listed = " and ".join(f"line {line}" for line in places)
                    message = f"variables.{name} is declared in {listed} of {policy['source']}, in several nested rules"
                    raise InputError(message, "Write its expression instead.")
                continue
            checked = check(expression["source"], self._declare(visible), None)
            if checked.form is None or checked.type is None:
                continue  # it reads one that means several things
            visible[name] = checked.type
            closure = TracingBuilder(self._scope, {**expression, "name": name}).build(read_form(checked.form))
            self._scope.add("variables." + name)
            self._scope.variable_closures[name] = closure
        self._declarations = self._declare(visible)

    def evaluate(self, document: Document | None, event: Event | None, facts: Facts) -> EvaluationResult:
        """Return the value for an event of a document; without them, everything about an event is unknown."""
        if document is None or event is None:
            roots = DocumentView(Document(None, ()), facts)
            known = {"now": roots.now, "vm": roots.vm, "params": self._params}
            values = tuple(known.get(name, ABSENT) for name in ROOTS)
        else:
            values = DocumentView(document, facts).roots(event, self._params)
        trace: list[Value] = []
        env = [MAX_STEPS, trace, *values, *[UNSET] * (self._scope.size - len(ROOTS) - 2)]
        try:
            value, error = self._closure(env), None
        except EvaluationError as failure:
            value, error = None, failure
        whole = " ".join(self.source.split())
        read = tuple(one for one in dict.fromkeys(trace) if one.expression != whole)
        return EvaluationResult(value, error, read)

    def to_text(self, value: Any) -> str:
        """Return a value as CEL would write it, whatever its type."""
        return _text(value, str(self.type), self._declarations.records)

    def to_json(self, value: Any) -> Any:
        """Return a value for JSON: times as RFC 3339, durations as ``9s``, bytes as text of Latin-1.

        A number that JSON cannot hold exactly is a text, an optional value a list of at most one.
        """
        return _json(value, str(self.type), self._declarations.records)


def _variables(rule: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the variables of a rule and of those nested in it."""
    for variable in rule["variables"]:
        yield variable["name"], variable["expr"]
    for match in rule["match"]:
        if "rule" in match:
            yield from _variables(match["rule"])


def _fields(value: Mapping[str, Any], type_: str, records: _Records) -> Sequence[tuple[str, Any, str]]:
    """Return the fields of a record that are known: name, value and type."""
    fields = records[type_[len("record(") : -1]]
    return [(name, value[name], str(fields[name].type)) for name in fields if name in value]


def _text(value: Any, type_: str, records: _Records) -> str:
    if isinstance(value, Dyn):
        return _text(value.value, value.type, records)
    kind, inner = type_.partition("(")[0], inner_types(type_)
    if kind == "record":
        fields = _fields(value, type_, records)
        return "{" + ", ".join(f"{name}: {_text(one, of, records)}" for name, one, of in fields) + "}"
    if kind == "list":
        return "[" + ", ".join(_text(item, inner[0], records) for item in value) + "]"
    if kind == "map":
        pairs = (f"{_text(key, inner[0], records)}: {_text(value[key], inner[1], records)}" for key in value)
        return "{" + ", ".join(pairs) + "}"
    if kind == "optional":
        return f"optional.of({_text(value[0], inner[0], records)})" if value else "optional.none()"
    if kind == "string":
        return json.dumps(value, ensure_ascii=False)
    if kind == "bytes":
        return "b" + json.dumps(value.decode("latin-1"))
    return render_value(value, kind)


def _json(value: Any, type_: str, records: _Records) -> Any:
    if isinstance(value, Dyn):
        return _json(value.value, value.type, records)
    kind, inner = type_.partition("(")[0], inner_types(type_)
    if kind == "record":
        return {name: _json(one, of, records) for name, one, of in _fields(value, type_, records)}
    if kind in ("list", "optional"):
        return [_json(item, inner[0], records) for item in value]
    if kind == "map":
        keys = {key: key if isinstance(key, str) else _text(key, inner[0], records) for key in value}
        return {keys[key]: _json(value[key], inner[1], records) for key in value}
    if kind == "timestamp":
        return tv.format_timestamp(value)
    if kind == "duration":
        return tv.format_duration(value)
    if kind == "bytes":
        return value.decode("latin-1")
    beyond = kind in ("int", "uint") and abs(value) > _MOST_EXACT
    return str(value) if beyond or (kind == "double" and not math.isfinite(value)) else value
