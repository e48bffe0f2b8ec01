# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hooks with CEL expressions in their options or their body.

In the artifact, the text ``web/${vm.name}`` of an option is ``{"parts": ["web/", EXPRESSION]}``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Callable, NamedTuple

from .decision import NOTIFY
from .environment import Closure, Env
from .evaluation_error import EvaluationError
from .hook_body import Body, with_body_source


class HookProgram(NamedTuple):
    """A hook ready to be resolved: its entry in the artifact, the closures of its options by name, and its body.

    ``options`` has only those with expressions. ``is_notify`` says whether it is a hook of the phase notify.
    """

    data: Mapping[str, Any]
    options: Mapping[str, Callable[[Env], Any]]
    body: Body | None
    is_notify: bool

    @property
    def has_expressions(self) -> bool:
        """Whether the hook has to be resolved for each event."""
        return bool(self.options) or self.body is not None

    def resolve(self, env: Env, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the hook with the values of its expressions; ``values`` are what its body may read, by name.

        A hook with a body gets ``content``, the result of ``Body.content``; its ``body`` is the expression's source.
        A hook that cannot be run, because an expression has no value, gets a ``problem`` that says why.
        """
        if self.body is not None:
            content = self.body.content(values)
            if "problem" in content and not self.is_notify:
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
            return {**self.data, "problem": f"{name}: {option_source(options[name])} has no value: {error}"}
        return {**self.data, "options": options}


def compile_hook(hook: Mapping[str, Any], phase: str, build: Callable[[Mapping[str, Any]], Closure]) -> HookProgram:
    """Return the program of a hook; ``build`` makes the closure of an expression in an option."""
    options = {name: value for name, value in hook.get("options", {}).items() if has_expressions(value)}
    body = Body(hook["body"], phase) if "body" in hook else None
    closures = {name: _compile_value(value, build) for name, value in options.items()}
    return HookProgram(with_body_source(hook), closures, body, phase == NOTIFY)


def option_source(value: Any) -> Any:
    """Return the value of an option as the policy file has it: ``web/${vm.name}``."""
    if isinstance(value, list):
        return [option_source(item) for item in value]
    if isinstance(value, str):
        return value.replace("${", "$${")
    if not isinstance(value, Mapping):
        return value
    parts = (option_source(part) if isinstance(part, str) else "${" + part["source"] + "}" for part in value["parts"])
    return "".join(parts)


def has_expressions(value: Any) -> bool:
    """Return whether the value of an option is a text, or a list of texts, with an expression in it."""
    return any(isinstance(item, Mapping) for item in (value if isinstance(value, list) else [value]))


def _compile_value(value: Any, build: Callable[[Mapping[str, Any]], Closure]) -> Callable[[Env], Any]:
    if isinstance(value, list):
        items = [_compile_value(item, build) for item in value]
        return lambda env: [item(env) for item in items]
    if isinstance(value, str):
        return lambda _env: value
    parts: Sequence[Any] = [part if isinstance(part, str) else build(part) for part in value["parts"]]
    return lambda env: "".join(part if isinstance(part, str) else str(part(env)) for part in parts)
