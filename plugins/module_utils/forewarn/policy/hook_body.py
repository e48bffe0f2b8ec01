# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ``body`` of an http hook: an expression, whose value is the JSON that the hook sends.

The engine evaluates it for each verdict, so that the journal and the child process get plain JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from .builder import Builder
from .decision import NOTIFY, OCCASIONS
from .environment import Scope, guard
from .evaluation_error import EvaluationError
from .forms import free_variables, read_form

# The names that a body may read. A prepare or recover hook must not change during an event, since a hook that differs
# counts as another one. So its body reads only what stays the same.
STABLE_NAMES = ("event", "vm", "params")
NOTIFY_NAMES = (*STABLE_NAMES, "affects_me", "leader", "occasion")
MAX_BYTES = 64 * 1024  # of JSON


class Body:
    """The body of a hook, ready to be evaluated. ``expression`` is the artifact's, ``phase`` one of ``PHASES``.

    Raises KeyError if the expression reads a name that bodies of the phase may not read.
    """

    def __init__(self, expression: Mapping[str, Any], phase: str) -> None:
        form = read_form(expression["form"])
        self._names = NOTIFY_NAMES if phase == NOTIFY else STABLE_NAMES
        self._scope = Scope(self._names)
        self._closure = guard(Builder(self._scope, expression).build(form))
        self._reads_occasion = "occasion" in free_variables(form)

    def content(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return ``{"json": VALUE}``, or ``{"problem": WHY}`` if there is no value; ``values`` are by name.

        If the body reads ``occasion``, return such an object for each: ``{"occasions": {"decided": {"json": …}, …}}``.
        """
        if not self._reads_occasion:
            return self._evaluate(values)
        return {"occasions": {occasion: self._evaluate({**values, "occasion": occasion}) for occasion in OCCASIONS}}

    def _evaluate(self, values: Mapping[str, Any]) -> dict[str, Any]:
        given = {name: values[name] for name in self._names if name in values}
        try:
            value = self._closure(self._scope.environment(given))
        except EvaluationError as error:
            return {"problem": f"the body has no value: {_message(error)}"}
        try:
            size = len(json.dumps(value, allow_nan=False, ensure_ascii=False).encode("utf-8", "replace"))
        except ValueError:  # also what RFC 8259 has no number for
            return {"problem": "the body holds a number that JSON does not have: infinite, or not a number"}
        if size > MAX_BYTES:
            return {"problem": f"the body has {size} bytes, and at most {MAX_BYTES} are sent: leave something out"}
        return {"json": value}


def _message(error: EvaluationError) -> str:
    """Return the text of an error, with the source of the part that has no value."""
    if error.expression is None:
        return str(error)
    return f"{' '.join(error.expression['source'][error.start : error.end].split())}: {error}"


def content_for_occasion(hook: Mapping[str, Any], occasion: str | None) -> Mapping[str, Any]:
    """Return what a resolved hook with a body sends on an occasion: ``{"json": VALUE}`` or ``{"problem": WHY}``."""
    content: Mapping[str, Any] = hook["content"]
    found: Mapping[str, Any] = content["occasions"][occasion] if "occasions" in content else content
    return found


def with_body_source(hook: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a hook with the source of its body instead of the value for an event; a hook without a body as it is."""
    if "body" not in hook:
        return hook
    body = hook["body"]
    rest = {key: value for key, value in hook.items() if key != "content"}
    return {**rest, "body": body if isinstance(body, str) else body["source"]}
