# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Other CEL engines to compare with: Google's cel-expr-python, and the product's own use of cel-python.

Values go in and come out as the evaluator has them: timestamps and durations are nanoseconds.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta, timezone
from typing import Any

from cel_expr_python import cel  # type: ignore[import-untyped]  # has types for editors, but does not say so
from cel_expr_python.ext import (  # type: ignore[import-untyped]  # as above
    ext_bindings,
    ext_math,
    ext_optional,
    ext_strings,
)
from forewarn.compiler.cel import types as t
from forewarn.compiler.cel.expression import check
from forewarn.compiler.cel.types import CelSyntaxError, Declarations, Type
from forewarn.compiler.testing import cel_python
from forewarn.compiler.testing.outcome import Outcome
from forewarn.policy.builder import Builder
from forewarn.policy.environment import Closure, Env, Scope
from forewarn.policy.evaluation_error import EvaluationError
from forewarn.policy.forms import All, Exists, Form, read_form
from forewarn.policy.functions import timevalues as tv
from forewarn.policy.functions.dynamic import to_plain

MISSING = object()  # a variable or field without a value

# Errors of ours where an engine may have a value (docs/cel.md, "Deliberately stricter").
STRICT = (
    "duration out of range",
    "out of range in that time zone",
    "splitting an empty text by an empty separator",
    "finer than a nanosecond",
    "the keys of a map have no order",
    "is not an int",
    "is not a uint",
    "is not a double",
    "is not an RFC 3339 time",
    "out of range: second must be in 0..59",
    "no time zone",
    "no offset",
    "CEL engines write",
    "NaN has no place in an order",
    "the bytes are not UTF-8",  # in a format
    "clauses, and the list",
    "%d can only be used on int, uint, was given double",
    "can only be used on double, int, uint, was given string",  # "NaN" and "-Infinity" are numbers there
)


def strict(ours: Outcome, other: Outcome, errors: Iterable[str] = ()) -> bool:
    """Return whether we fail on purpose where the other engine has a value. ``errors`` are those of all parts: of two
    errors, only the first is the outcome.
    """
    said = (ours.detail, *errors)
    return ours.kind == "error" and other.kind == "value" and any(text in one for text in STRICT for one in said)


class Ours:
    """One expression, compiled by us. ``type`` is None if it was refused; ``findings`` say why."""

    def __init__(self, source: str, declarations: Declarations) -> None:
        checked = check(source, declarations)
        self.source = source
        self.declarations = declarations
        self.type = checked.type
        self.findings = checked.findings
        self.form = checked.form
        self._scope = Scope(tuple(declarations.variables))
        if checked.form is not None:
            self._closure = Builder(self._scope, {"source": source, "line": 1, "column": 1}).build(
                read_form(checked.form)
            )

    def run(self, values: Mapping[str, Any]) -> Outcome:
        """Evaluate; a variable that is MISSING is left out."""
        given = {name: value for name, value in values.items() if value is not MISSING}
        try:
            return Outcome("value", to_plain(self._closure(self._scope.environment(given))))
        except EvaluationError as error:
            return Outcome("error", str(error))

    def errors(self, values: Mapping[str, Any]) -> set[str]:
        """Return the errors of all parts, also those that ``&&`` and the like absorb."""
        scope = Scope(tuple(self.declarations.variables))
        builder = _Noting(scope, {"source": self.source, "line": 1, "column": 1})
        assert self.form is not None
        closure = builder.build(read_form(self.form))
        with contextlib.suppress(EvaluationError):
            closure(scope.environment({name: value for name, value in values.items() if value is not MISSING}))
        return builder.errors


class _Noting(Builder):
    """Notes every error of every part."""

    fuses_parts = False

    def __init__(self, scope: Scope, expression: Mapping[str, Any]) -> None:
        super().__init__(scope, expression)
        self.errors: set[str] = set()

    def build(self, form: Form) -> Closure:
        closure = super().build(form)
        if isinstance(form, All | Exists):
            closure = self._visit(form, closure)

        def note(env: Env) -> Any:
            try:
                return closure(env)
            except EvaluationError as error:
                self.errors.add(str(error))
                raise

        return note

    def _visit(self, form: All | Exists, evaluate: Closure) -> Closure:
        """Visit all keys of a map before: another engine may begin with one that we do not reach."""
        slot, items, predicate = self._local_slot(form.number), self.build(form.items), self.build(form.predicate)

        def visit(env: Env) -> Any:
            keys = items(env)
            for key in keys if isinstance(keys, Mapping) else ():
                env[slot] = key
                with contextlib.suppress(EvaluationError):
                    predicate(env)
            return evaluate(env)

        return visit


_GOOGLE_TYPES = {
    "bool": cel.Type.BOOL,
    "int": cel.Type.INT,
    "uint": cel.Type.UINT,
    "double": cel.Type.DOUBLE,
    "string": cel.Type.STRING,
    "bytes": cel.Type.BYTES,
    "null": cel.Type.NULL,
    "timestamp": cel.Type.TIMESTAMP,
    "duration": cel.Type.DURATION,
}


def literal(value: Any, type_: Type, declarations: Declarations) -> str:
    """Write a value as CEL. A record becomes a map."""
    if type_.kind == "record":
        fields = declarations.records[type_.name]
        pairs = (f'"{name}": dyn({literal(item, fields[name].type, declarations)})' for name, item in value.items())
        return "{" + ", ".join(('"": dyn(0)', *pairs)) + "}"  # never empty, since {} would be of any type
    if type_.kind == "list":
        return "[" + ", ".join(literal(item, type_.of[0], declarations) for item in value) + "]"
    if type_.kind == "map":
        pairs = (
            f"{literal(key, type_.of[0], declarations)}: {literal(item, type_.of[1], declarations)}"
            for key, item in value.items()
        )
        return "{" + ", ".join(pairs) + "}"
    writers: dict[str, Callable[[Any], str]] = {
        "bool": lambda v: "true" if v else "false",
        "int": str,
        "uint": "{}u".format,
        "double": lambda v: repr(v) if math.isfinite(v) and "." in repr(v) else f"double('{v!r}')",
        "string": lambda v: "'" + "".join(c if c.isalnum() else f"\\U{ord(c):08x}" for c in v) + "'",
        "bytes": lambda v: "b'" + "".join(f"\\x{byte:02x}" for byte in v) + "'",
        "null": lambda v: "null",
        "timestamp": lambda v: f"timestamp('{tv.format_timestamp(v)}')",
        "duration": lambda v: f"duration('{tv.format_duration(v)}')",
    }
    return writers[type_.kind](value)


class Google:
    """cel-expr-python. Records, which it cannot be given with times in them, are written into the expression.

    ``written``: so are all other values. It does not take every value from Python as it is.
    """

    def __init__(self, declarations: Declarations, written: bool = False) -> None:
        self.declarations = declarations
        variables = declarations.variables
        self._given = {name: type_ for name, type_ in variables.items() if not (written or _has_record(type_))}
        self._written = {name: type_ for name, type_ in variables.items() if name not in self._given}
        self._compiled = functools.lru_cache(maxsize=64)(self._compile)
        self._env = cel.NewEnv(
            variables={name: _google_type(type_) for name, type_ in self._given.items()},
            extensions=[
                ext_bindings.ExtBindings(),
                ext_math.ExtMath(),
                ext_optional.ExtOptional(),
                ext_strings.ExtStrings(),
            ],
        )

    def _compile(self, text: str) -> Any:
        try:
            return self._env.compile(text)
        except RuntimeError as error:
            # Without declared records it makes wrong guesses at types; evaluation needs none.
            if "found no matching overload" not in str(error):
                raise
            return self._env.compile(text, disable_check=True)

    def run(self, source: str, values: Mapping[str, Any], type_: Type | None = None) -> Outcome:
        """Compile and evaluate. ``type_`` is the result's; times come out as nanoseconds only if it is given."""
        text = source
        if type_ in (t.TIMESTAMP, t.DURATION):
            text = f"string({text})"  # its Python values end at microseconds
        elif type_ in (t.list_of(t.TIMESTAMP), t.list_of(t.DURATION)):
            text = f"({text}).map(t, string(t))"
        for name, record in self._written.items():
            if name in source and values.get(name, MISSING) is not MISSING:
                value = _mentioned(values[name], source) if _has_record(record) else values[name]
                text = f"[{literal(value, record, self.declarations)}].map({name}, {text})[0]"
        try:
            expression = self._compiled(text)
        except RuntimeError as error:
            return Outcome("refused", str(error))
        data = {
            name: _google_value(values[name], kind)
            for name, kind in self._given.items()
            if name in source and values.get(name, MISSING) is not MISSING
        }
        try:
            result = expression.eval(data=data)
        except RuntimeError as error:  # of some errors it raises an exception
            return Outcome("error", str(error))
        if result.type().name() == "ERROR":
            return Outcome("error", str(result.value()))
        if result.type().name() == "OPTIONAL":
            return Outcome("broken", "an optional value, which it does not return")
        if result.type().name() == "NULL":  # each None it returns is counted wrongly, and ends the interpreter at last
            return Outcome("value", None)
        try:
            return Outcome("value", _from_google(result.plain_value(), type_))
        except (TypeError, SystemError) as error:  # a text that is not UTF-8, by itself or in a list
            return Outcome("error", str(error))


def _mentioned(value: Any, source: str) -> Any:
    """Leave out fields of records that an expression does not name: no expression uses a record as a whole."""
    if isinstance(value, list):
        return [_mentioned(item, source) for item in value]
    return {name: item for name, item in value.items() if name in source}


def _has_record(type_: Type) -> bool:
    return t.contains_kind(type_, "record")


def _google_type(type_: Type) -> cel.Type:
    if type_.kind == "list":
        return cel.Type.List(_google_type(type_.of[0]))
    if type_.kind == "map":
        return cel.Type.Map(_google_type(type_.of[0]), _google_type(type_.of[1]))
    return _GOOGLE_TYPES[type_.kind]


def _google_value(value: Any, type_: Type) -> Any:
    if type_.kind == "list":
        return [_google_value(item, type_.of[0]) for item in value]
    if type_.kind == "map":
        return {key: _google_value(item, type_.of[1]) for key, item in value.items()}
    if type_.kind == "timestamp":
        return datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=value // 1000)
    if type_.kind == "duration":
        return timedelta(microseconds=value // 1000)
    return value


def _from_google(value: Any, type_: Type | None) -> Any:
    if isinstance(value, list):
        inner = type_.of[0] if type_ is not None and type_.of else None
        return [_from_google(item, inner) for item in value]
    if isinstance(value, dict):
        return {key: _from_google(item, None) for key, item in value.items()}
    if isinstance(value, bytearray):
        return bytes(value)
    if type_ == t.TIMESTAMP:
        return tv.parse_timestamp(value)
    if type_ == t.DURATION:
        return _seconds(value)
    return value


def _seconds(text: str) -> int:
    """Read a duration of protobuf's JSON, which may be longer than one of ours."""
    whole, _point, fraction = text.removesuffix("s").lstrip("-").partition(".")
    value = int(whole) * tv.SECOND + int(fraction.ljust(9, "0"))
    return -value if text.startswith("-") else value


class CelPython:
    """cel-python with its interpreter; never with its CompiledRunner, which shares state between threads."""

    def __init__(self, declarations: Declarations) -> None:
        self._engine = cel_python.CelPython(declarations.records)
        self._types = {name: str(type_) for name, type_ in declarations.variables.items()}

    def run(self, source: str, values: Mapping[str, Any], type_: Type | None = None) -> Outcome:
        """Compile and evaluate; what it raises beside its own errors is an error, too."""
        try:
            given = {name: value for name, value in values.items() if value is not MISSING}
            outcome = self._engine.evaluate(source, given, self._types)
        except CelSyntaxError as error:
            return Outcome("refused", str(error))
        return outcome._replace(kind="error") if outcome.kind == "broken" else outcome
