# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The values behind a decision: a builder that also records the values of an expression's parts."""

from __future__ import annotations

import json
import re
from typing import Any

from .decision import Value
from .evaluate import Builder, Closure, Env
from .evaluation_error import EvaluationError
from .forms import (
    Access,
    All,
    Bind,
    Bound,
    Call,
    Exists,
    ExistsOne,
    Form,
    Has,
    Local,
    Loop,
    MapList,
    Matches,
    PolicyVariable,
    Variable,
)
from .functions import timevalues as tv
from .functions.dynamic import Dyn, inner_types

_SHOWN = (Access, Variable, PolicyVariable, Matches, All, Exists, ExistsOne)
_PRESENCE = ("in", "ge", "lt", "dyn_has", "dyn_has_index")  # functions that tell whether there is a value
_OPTIONAL = re.compile(r"\.\s*\?\s*[\w`]+$|\[\s*\?.*\]$")
_MAX_SHOWN = 120  # characters of one value
_quoted = json.JSONEncoder(ensure_ascii=False).encode  # json.dumps would make an encoder for each text


class TracingBuilder(Builder):
    """Appends to item 1 of the environment a Value for each access, comparison and test that was evaluated.

    The inside of a loop is left out: it has a value for each iteration.
    """

    fuse = False

    def build(self, form: Form) -> Closure:
        """Return the recording closure of a form."""
        closure = super().build(form)
        bare_record = isinstance(form, Variable) and form.type.startswith("record(")
        test = isinstance(form, Call) and form.type == "bool"
        if bare_record or not (test or isinstance(form, _SHOWN)) or _open_locals(form):
            return closure
        text = " ".join(self.expression["source"][form.start : form.end].split())
        kind = form.type
        of_true, of_false = Value(text, "true"), Value(text, "false")  # most are tests: made once
        asks = asks_for_optional(form, text)

        def record(env: Env) -> Any:
            trace = env[1]
            try:
                value = closure(env)
            except EvaluationError as error:
                if trace is not None:
                    trace.append(Value(text, f"error: {error}"))
                raise
            if trace is None:
                return value
            if asks:
                trace += [] if value else [Value(text, "optional.none()")]
            elif value is True:
                trace.append(of_true)
            elif value is False:
                trace.append(of_false)
            else:
                trace.append(Value(text, render(value, kind)))
            return value

        return record


def asks_for_optional(form: Form, text: str) -> bool:
    """Return whether a form asks if ``x.?f`` or ``x[?k]`` has a value."""
    test = isinstance(form, Has) or (isinstance(form, Call) and form.function in _PRESENCE)
    return test and _OPTIONAL.search(text) is not None


def _open_locals(form: Form) -> set[int]:
    """Return the variables of loops and of cel.bind() that a form reads and that a form around it sets."""
    if isinstance(form, (Local, Bound)):
        return {form.number}
    read: set[int] = set().union(*map(_open_locals, form.parts))
    return read - {form.number} if isinstance(form, (Loop, MapList, Bind)) else read


def render(value: Any, kind: str) -> str:
    """Write a value of a CEL type as CEL would, shortened: texts quoted, times as RFC 3339, durations in seconds."""
    text = _render(value, kind)
    return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 1] + "…"


def _render(value: Any, kind: str) -> str:
    if isinstance(value, Dyn):
        return _render(value.value, value.type)
    if value is None:
        return "null"
    if kind == "type":
        return str(value)
    if kind == "timestamp":
        return tv.format_timestamp(value)
    if kind == "duration":
        return tv.format_duration(value)
    if kind == "bytes":
        return "b" + json.dumps(value.decode("latin-1"))
    if isinstance(value, tuple):  # an optional value
        return f"optional.of({_render(value[0], inner_types(kind)[0])})" if value else "optional.none()"
    if isinstance(value, list):
        inner = kind[len("list(") : -1]
        return "[" + ", ".join(_render(item, inner) for item in value[:20]) + (", …]" if len(value) > 20 else "]")
    if isinstance(value, dict) and kind.startswith("map("):
        key_type, value_type = inner_types(kind)
        pairs = (f"{_render(key, key_type)}: {_render(item, value_type)}" for key, item in list(value.items())[:20])
        return "{" + ", ".join(pairs) + (", …}" if len(value) > 20 else "}")
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {item}" for key, item in list(value.items())[:20]) + "}"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _quoted(value)
    return str(value)
