# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Texts of hooks that hold CEL values: ``{"parts": ["web/", EXPRESSION]}`` in the artifact, for ``web/${vm.name}``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Callable, NamedTuple

from .bodies import Body, as_asked
from .decision import NOTIFY
from .evaluate import Closure, Env
from .evaluation_error import EvaluationError


class HookProgram(NamedTuple):
    """A hook of the artifact, a closure for each text of its options that holds values, and its body."""

    data: Mapping[str, Any]
    options: Mapping[str, Callable[[Env], Any]]
    body: Body | None
    notifies: bool

    @property
    def holds_values(self) -> bool:
        """Whether it is complete only once it is resolved."""
        return bool(self.options) or self.body is not None

    def resolved(self, env: Env, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the hook with the values in its texts; ``values`` are those of a body, by name.

        A hook with a body has its source as ``body``, and as ``content`` what ``Body.content`` returns.

        A hook whose values cannot be evaluated has a ``problem``, which says why: it cannot be run.
        """
        if self.body is not None:
            content = self.body.content(values)
            if "problem" in content and not self.notifies:
                return {**self.data, **content}
            return {**self.data, "content": content}
        if not self.options:
            return self.data
        options = dict(self.data["options"])
        name = ""
        try:
            for name, closure in self.options.items():
                options[name] = closure(env)
        except EvaluationError as error:
            return {**self.data, "problem": f"{name}: {written(options[name])} has no value: {error}"}
        return {**self.data, "options": options}


def compile_hook(hook: Mapping[str, Any], phase: str, build: Callable[[Mapping[str, Any]], Closure]) -> HookProgram:
    """Return a hook, ready to be resolved; ``build`` makes the closure of an expression of an option."""
    options = {name: value for name, value in hook.get("options", {}).items() if holds_values(value)}
    body = Body(hook["body"], phase) if "body" in hook else None
    closures = {name: _closure(value, build) for name, value in options.items()}
    return HookProgram(as_asked(hook), closures, body, phase == NOTIFY)


def written(value: Any) -> Any:
    """Return a value of an option as its author wrote it."""
    if isinstance(value, list):
        return [written(item) for item in value]
    if isinstance(value, str):
        return value.replace("${", "$${")
    if not isinstance(value, Mapping):
        return value
    parts = (written(part) if isinstance(part, str) else "${" + part["source"] + "}" for part in value["parts"])
    return "".join(parts)


def holds_values(value: Any) -> bool:
    """Return whether a value of an option is a text, or a list of texts, that is complete only once it is resolved."""
    return any(isinstance(item, Mapping) for item in (value if isinstance(value, list) else [value]))


def _closure(value: Any, build: Callable[[Mapping[str, Any]], Closure]) -> Callable[[Env], Any]:
    if isinstance(value, list):
        items = [_closure(item, build) for item in value]
        return lambda env: [item(env) for item in items]
    if isinstance(value, str):
        return lambda _env: value
    parts: Sequence[Any] = [part if isinstance(part, str) else build(part) for part in value["parts"]]
    return lambda env: "".join(part if isinstance(part, str) else str(part(env)) for part in parts)
