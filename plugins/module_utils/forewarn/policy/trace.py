# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The values behind a decision: a builder whose closures also record the values of an expression's parts."""

from __future__ import annotations

import json
import re
from typing import Any

from .builder import Builder
from .decision import Value
from .environment import Closure, Env
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

_TRACED = (Access, Variable, PolicyVariable, Matches, All, Exists, ExistsOne)
_PRESENCE = ("in", "ge", "lt", "dyn_has", "dyn_has_index")  # functions that test whether there is a value
_OPTIONAL = re.compile(r"\.\s*\?\s*[\w`]+$|\[\s*\?.*\]$")
_MAX_SHOWN = 120  # characters of one value
_encode_text = json.JSONEncoder(ensure_ascii=False).encode  # json.dumps would make an encoder for each text


class TracingBuilder(Builder):
    """Builds closures that append a Value to the trace for each access, comparison and test that they evaluate.

    The parts inside a loop are left out: they have a value for each iteration.
    """

    fuses_parts = False

    def build(self, form: Form) -> Closure:
        """Return the recording closure of a form."""
        closure = super().build(form)
        bare_record = isinstance(form, Variable) and form.type.startswith("record(")
        test = isinstance(form, Call) and form.type == "bool"
        if bare_record or not (test or isinstance(form, _TRACED)) or _free_locals(form):
            return closure
        text = " ".join(self.expression["source"][form.start : form.end].split())
        kind = form.type
        of_true, of_false = Value(text, "true"), Value(text, "false")  # shared, since most parts are tests
        is_optional_test = tests_optional(form, text)

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
            if is_optional_test:
                trace += [] if value else [Value(text, "optional.none()")]
            elif value is True:
                trace.append(of_true)
            elif value is False:
                trace.append(of_false)
            else:
                trace.append(Value(text, render(value, kind)))
            return value

        return record


def tests_optional(form: Form, text: str) -> bool:
    """Return whether a form tests if ``x.?f`` or ``x[?k]`` has a value; ``text`` is its source."""
    test = isinstance(form, Has) or (isinstance(form, Call) and form.function in _PRESENCE)
    return test and _OPTIONAL.search(text) is not None


def _free_locals(form: Form) -> set[int]:
    """Return the numbers of the locals (of loops and cel.bind()) that a form reads and does not set itself."""
    if isinstance(form, (Local, Bound)):
        return {form.number}
    read: set[int] = set().union(*map(_free_locals, form.parts))
    return read - {form.number} if isinstance(form, (Loop, MapList, Bind)) else read


def render(value: Any, kind: str) -> str:
    """Return a value of the CEL type ``kind`` as CEL writes it, in at most 120 characters.

    Texts are in quotes; timestamps are RFC 3339, durations in seconds.
    """
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
        return _encode_text(value)
    return str(value)
