# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compiles the hooks of a match: what the schema cannot check, and their part of the artifact."""

from __future__ import annotations

import math
import re
from typing import Any

from ... import hook_kinds
from ...hook_kinds.common.declaration import COMMAND, DURATION, TEXTS, HookKind, Option
from ...policy.decision import HOOK_TIMEOUT_SECONDS, NOTIFY
from ...policy.functions.timevalues import SECOND, parse_duration
from ...policy.structure import exposes_secret
from ...system.common.windows_program import SUFFIXES, is_windows_path
from ..cel.expression import check
from ..cel.types import CelSyntaxError, Declarations, ExpressionFinding
from ..yaml.tree import Mapping, Scalar, Sequence, YamlFile, YamlNode, short_json, text_of
from . import interpolation
from .bodies import check_body
from .expressions import expression_entry
from .hook_systems import ANY, HookSystems

_LONGEST_TIMEOUT_SECONDS = 24 * 3600.0
_COMMON = ("timeout", "retry")  # of every hook
_IN_TEXTS = ("string", "int", "unknown")  # kinds of types
_EXPRESSION = re.compile(r"\$\{\s*(?:event|events|vm|params|variables)\s*[.\[][^}]*\}?")  # no shell has such variables


class HookCompiler:
    """Compiles the hooks of one file.

    ``declarations`` are the names that a ``${…}`` and a body may use, ``notification`` those of a notify hook's body.
    ``target`` is the system on which they are to run.
    """

    def __init__(
        self, file: YamlFile, declarations: Declarations, notification: Declarations, target: str = ANY
    ) -> None:
        self._file = file
        self._systems = HookSystems(file, target)
        self._declarations = declarations
        self._notification = notification

    def hook(self, node: YamlNode, phase: str) -> dict[str, Any]:
        """Return the artifact's entry of a hook, without values that have findings."""
        if not isinstance(node, Mapping):
            return {}
        name = next((name for name in hook_kinds.NAMES if name in node.values), None)
        kind = None if name is None else hook_kinds.find(name)
        if kind is not None:
            self._systems.check_kind(kind, node.keys[kind.name])
            return self._hook_of_kind(kind, node, phase)
        hook: dict[str, Any] = {}
        command = node.get("run")
        if isinstance(command, Sequence):
            hook["run"] = [argument.text for argument in command.items if isinstance(argument, Scalar)]
            self._check_command(command)
            for argument in command.items:
                self._warn_of_expressions(
                    argument, "run", "the program finds the values in its environment: $FOREWARN_VM_NAME"
                )
        names = node.get("credentials")
        if isinstance(names, Sequence):
            hook["credentials"] = sorted({item.text for item in names.items if isinstance(item, Scalar)})
            for item in names.items:
                self._systems.check_credential(item)
        if "unit" in node.keys:
            self._systems.check_unit(node.keys["unit"])
        for key in ("unit", "action", "http", "template"):
            if key in node.values:
                hook[key] = text_of(node.get(key))
        self._warn_of_expressions(node.get("http"), "http", "add a 'body': its values are expressions")
        body = node.get("body")
        if isinstance(body, Scalar) and not body.empty:
            hook["body"] = self._body(body, phase)
        bearer = node.get("bearer")
        if hook.get("template") == "pagerduty" and bearer is None:
            message = "'bearer' is missing beside 'template: pagerduty': it names where the routing key is"
            hint = "add bearer: {credential: NAME}, and give the routing key to the role as forewarn_credentials"
            self._file.add("missing-key", message, node.keys["template"], hint)
        if isinstance(bearer, Mapping):
            hook["bearer"] = {key: text_of(bearer.get(key)) for key in ("credential", "file") if key in bearer.values}
            self._systems.check_credential(bearer.get("credential"))
            self._systems.check_file(bearer.get("file"))
            if exposes_secret(hook.get("http") or "https:"):
                message = "the secret would travel unencrypted"
                self._file.add("unencrypted", message, node.keys["bearer"], "use a URL that begins with https://")
        hook.update(self._timing(node, HOOK_TIMEOUT_SECONDS))
        return hook

    def recovery(self, prepare: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the recover hooks that follow from the prepare hooks: those of a kind, the last first."""
        return [
            {key: one for key, one in hook.items() if key != "retry"} for hook in reversed(prepare) if "kind" in hook
        ]

    def _hook_of_kind(self, kind: HookKind, node: Mapping, phase: str) -> dict[str, Any]:
        hook: dict[str, Any] = {"kind": kind.name, "options": {}}
        if phase == NOTIFY:
            message = f"'{kind.name}' has no place here: it changes what this VM does, and notify hooks only tell"
            self._file.add("not-here", message, node.keys[kind.name], "move it to 'prepare'")
        for key in _COMMON:
            if key in node.keys:
                message = f"'{key}' belongs to the options of '{kind.name}'"
                hint = f"write {kind.name}: {{…, {key}: {text_of(node.get(key)) or '…'}}}"
                self._file.add("not-here", message, node.keys[key], hint)
        options = node.get(kind.name)
        if not isinstance(options, Mapping):
            return hook
        for option in kind.options:
            if option.name in options.values:
                value = self._option(option, options.values[option.name])
                if value is not None:
                    hook["options"][option.name] = value
        hook.update(self._timing(options, kind.timeout_seconds))
        return hook

    def _option(self, option: Option, node: YamlNode) -> Any:
        """Return the value of an option as the artifact has it; None if it has a finding."""
        if option.type == COMMAND:
            if not isinstance(node, Sequence):
                return None  # the schema has reported it
            self._check_command(node)
            return [self._text(item) for item in node.items if isinstance(item, Scalar)]
        if option.type == DURATION:
            value: Any = _seconds(node)
        elif option.type in TEXTS and isinstance(node, Scalar):
            value = self._text(node)
        else:
            value = node.data()
        if value is None or isinstance(value, dict):  # a text with an expression is checked when it has its value
            return value
        problem = option.problem(value)
        if problem is not None and _of_the_schema_type(option, value):
            self._file.add(
                "option-value",
                f"'{option.name}' {problem}, not {short_json(node.data())}",
                node,
                f"for example {option.example:g}s" if option.type == DURATION else f"for example {option.example}",
            )
            return None
        return value

    def _text(self, node: Scalar) -> str | dict[str, Any]:
        """Return a text, or its parts where it has expressions: ``{"parts": [str | expression]}``."""
        value = node.data() if isinstance(node.data(), str) else node.text
        try:
            found = interpolation.parts(value)
        except CelSyntaxError as error:
            self._file.add_in(node, error.finding)
            return value
        if not any(part.is_expression for part in found):
            return "".join(part.source for part in found)
        return {"parts": [self._expression(part, node) if part.is_expression else part.source for part in found]}

    def _expression(self, part: interpolation.TextPart, node: Scalar) -> dict[str, Any]:
        checked = check(part.source, self._declarations)
        entry = expression_entry(self._file, node, part.source, checked, part.start)
        if checked.type is not None and checked.type.kind not in _IN_TEXTS:
            message = f"'{part.source}' is a {checked.type}, and only a string or an int can stand in a text"
            hint = f"write string({part.source})"
            finding = ExpressionFinding("wrong-result-type", message, 0, len(part.source), hint)
            self._file.add_in(node, finding, part.start)
        return entry

    def _warn_of_expressions(self, node: YamlNode | None, key: str, hint: str) -> None:
        """Warn of each expression in a text that is taken as it is written: only kinds of hooks have expressions."""
        if not isinstance(node, Scalar):
            return
        for found in _EXPRESSION.finditer(node.text):
            message = (
                f"'{found[0]}' is taken as it is written: expressions stand in the options of kinds, not in '{key}'"
            )
            self._file.add_in(node, ExpressionFinding("no-expression", message, *found.span(), hint, "warning"))

    def _body(self, node: Scalar, phase: str) -> dict[str, Any]:
        source = self._file.expression(node)
        declarations = self._notification if phase == NOTIFY else self._declarations
        return expression_entry(self._file, node, source, check_body(source, declarations))

    def _timing(self, node: Mapping, default_seconds: float) -> dict[str, Any]:
        """Return how long and how often a hook runs."""
        times: dict[str, Any] = {"timeout_seconds": self._timeout(node.get("timeout"), default_seconds)}
        if "retry" in node.values:
            retry = self._retry(node.get("retry"))
            if retry:
                times["retry"] = retry
        return times

    def _retry(self, node: YamlNode | None) -> dict[str, Any]:
        """Return the artifact's entry for a retry, without values that have findings."""
        if not isinstance(node, Mapping):
            return {"attempts": 1} if text_of(node) == "never" else {}
        retry: dict[str, Any] = {}
        attempts = node.get("attempts")
        count = attempts.data() if isinstance(attempts, Scalar) else None
        if isinstance(count, int) and not isinstance(count, bool):
            retry["attempts"] = count
        for key in ("delay", "max_delay"):
            if key in node.values and (seconds := seconds_above_0(self._file, node.get(key), key)):
                retry[f"{key}_seconds"] = seconds
        if retry.get("max_delay_seconds", math.inf) < retry.get("delay_seconds", 0.0):
            message = "the longest pause is shorter than the first"
            self._file.add(
                "out-of-range", message, node.get("max_delay") or node, "make it at least as long as 'delay'"
            )
        return retry

    def _check_command(self, command: Sequence) -> None:
        program = command.items[0] if command.items else None
        if not isinstance(program, Scalar):
            return
        if not program.text.strip():
            self._file.add("command", "the program has no name", program, "name it, with its path")
        elif not self._systems.check_escapes(program):
            pass
        elif _is_relative(program.text):
            message = "a path must begin with /, or on Windows with a drive: a service has no current directory"
            self._file.add("command", message, program, "write the whole path")
        elif len(command.items) == 1 and _has_arguments(program.text):
            words = ", ".join(program.text.split())
            message = "the system takes this as one word: no shell splits it"
            self._file.add("command", message, program, f"write run: [{words}]")
        else:
            self._systems.check_command(command)
        for item in command.items:
            if isinstance(item, Scalar) and "\0" in item.text:
                self._file.add("command", "an argument cannot hold a NUL character", item, "remove it")

    def _timeout(self, node: YamlNode | None, default_seconds: float) -> float:
        seconds = _seconds(node)
        if node is None or seconds is None:
            return default_seconds
        if seconds == 0:
            hint = f"leave it out, for {default_seconds:g}s"
            self._file.add("timeout-range", "a timeout of 0 fails at once", node, hint)
        elif seconds > _LONGEST_TIMEOUT_SECONDS:
            self._file.add("timeout-range", "a timeout is at most 24h", node, "NotBefore cuts it short anyway")
        return seconds


def seconds_above_0(file: YamlFile, node: YamlNode | None, name: str) -> float:
    """Return a duration that must be above 0, in seconds; 0 if it has a finding."""
    seconds = _seconds(node)
    if node is None or seconds is None:
        return 0.0
    if seconds == math.inf:
        file.add("out-of-range", f"'{name}' is longer than the longest duration", node)
        return 0.0
    if not seconds:
        file.add("out-of-range", f"'{name}' must be above 0", node, "leave it out")
    return seconds


def _is_relative(program: str) -> bool:
    """Return whether the path of a program is not whole, neither on Linux nor on Windows; a name is no path."""
    return bool(re.search(r"[/\\]", program)) and not program.startswith("/") and not is_windows_path(program)


def _has_arguments(program: str) -> bool:
    """Return whether a text is a program and its arguments, rather than a path of Windows, where blanks are common."""
    is_path = is_windows_path(program) and program.lower().endswith(SUFFIXES)
    return bool(re.search(r"\s", program.strip())) and not is_path


def _seconds(node: YamlNode | None) -> float | None:
    """Return a duration in seconds, infinity beyond the longest; None for anything else, which the schema reports."""
    try:
        return parse_duration(text_of(node) or "") / SECOND
    except ValueError as error:
        return math.inf if "range" in str(error) else None


def _of_the_schema_type(option: Option, value: object) -> bool:
    """Return whether the schema has accepted the type of a value: only then its content is worth a finding."""
    if option.type in TEXTS:
        return isinstance(value, str) and bool(value)
    return option.type == DURATION
