# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``body`` of http hooks: an expression in the artifact, whose value is the JSON that the hook sends.

The engine evaluates it for each verdict, so that the journal and the child process get plain JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from .decision import NOTIFY, OCCASIONS
from .evaluate import Builder, Scope, guarded, names
from .evaluation_error import EvaluationError
from .forms import read_form

# What a body reads. Preparing and recovering must stay the same for one event: what changes is another hook.
LASTING = ("event", "vm", "params")
TOLD = (*LASTING, "affects_me", "leader", "occasion")
MOST_BYTES = 64 * 1024


class Body:
    """The body of a hook of a phase, ready to be evaluated. Raises KeyError for a name that the phase does not have."""

    def __init__(self, expression: Mapping[str, Any], phase: str) -> None:
        form = read_form(expression["form"])
        self._names = TOLD if phase == NOTIFY else LASTING
        self._scope = Scope(self._names)
        self._closure = guarded(Builder(self._scope, expression).build(form))
        self._by_occasion = "occasion" in names(form)

    def content(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return ``{"json": VALUE}``, or ``{"problem": WHY}`` if there is no value; ``values`` are by name.

        A body that reads ``occasion`` has one of these for each: ``{"occasions": {"decided": {"json": VALUE}, …}}``.
        """
        if not self._by_occasion:
            return self._one(values)
        return {"occasions": {occasion: self._one({**values, "occasion": occasion}) for occasion in OCCASIONS}}

    def _one(self, values: Mapping[str, Any]) -> dict[str, Any]:
        given = {name: values[name] for name in self._names if name in values}
        try:
            value = self._closure(self._scope.environment(given))
        except EvaluationError as error:
            return {"problem": f"the body has no value: {_placed(error)}"}
        try:
            size = len(json.dumps(value, allow_nan=False, ensure_ascii=False).encode("utf-8", "replace"))
        except ValueError:  # also what RFC 8259 has no number for
            return {"problem": "the body holds a number that JSON does not have: infinite, or not a number"}
        if size > MOST_BYTES:
            return {"problem": f"the body has {size} bytes, and at most {MOST_BYTES} are sent: leave something out"}
        return {"json": value}


def _placed(error: EvaluationError) -> str:
    """Return an error with the part of the expression that has no value."""
    if error.expression is None:
        return str(error)
    return f"{' '.join(error.expression['source'][error.start : error.end].split())}: {error}"


def of_occasion(hook: Mapping[str, Any], occasion: str | None) -> Mapping[str, Any]:
    """Return the content of a resolved hook with a body: ``{"json": VALUE}`` or ``{"problem": WHY}``."""
    content: Mapping[str, Any] = hook["content"]
    found: Mapping[str, Any] = content["occasions"][occasion] if "occasions" in content else content
    return found


def as_asked(hook: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a hook as its author wrote it: the source of its body, without the value that it has for an event."""
    if "body" not in hook:
        return hook
    body = hook["body"]
    rest = {key: value for key, value in hook.items() if key != "content"}
    return {**rest, "body": body if isinstance(body, str) else body["source"]}
