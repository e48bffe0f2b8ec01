# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One policy of an artifact, ready to run: its matches as closures, in order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .evaluate import UNSET, Builder, Closure, Env, Scope, names
from .functions import EvaluationError

# What an expression may read, in the order of the environment.
ROOTS = ("event", "events", "notice", "age", "now", "affects_me", "leader", "vm", "params")
TIME = frozenset(("notice", "age", "now"))
_HOOKS = ("prepare", "recover", "notify")


# What a form that no compiler of ours has made may raise while it runs.
DAMAGED = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


def damage(error: Exception) -> EvaluationError:
    """Return the error of a policy for one of DAMAGED."""
    return EvaluationError(f"the artifact is damaged ({type(error).__name__}: {error}); compile the policies again")


class Match:
    """One match of a policy. ``data`` is the artifact's entry; ``rule`` its path of ids, for nested rules.

    ``index`` counts the policy's matches, nested ones included, in the order of the file.
    """

    def __init__(self, data: Mapping[str, Any], rule: str, index: int, condition: Closure | None) -> None:
        self.data = data
        self.rule = rule
        self.index = index
        self.condition = condition
        self.always = data["condition"] is None or data["condition"]["form"][0] == "lit"
        self.explanation: Closure | None = None
        self.matches: list[Match] | None = None  # of a nested rule

    def try_condition(self, env: Env) -> tuple[str, EvaluationError | None]:
        """Return ``true``, ``false``, or ``error`` with the error."""
        if self.condition is None:
            return "true", None
        try:
            met = self.condition(env)
        except EvaluationError as error:
            return "error", error
        except DAMAGED as error:
            return "error", damage(error)
        if met is True or met is False:
            return ("true" if met else "false"), None
        return "error", EvaluationError("the condition is neither true nor false")


class Program:
    """The closures of one policy. ``time_dependent``: its answer may change without a new document."""

    def __init__(self, policy: Mapping[str, Any], builder: type[Builder] = Builder) -> None:
        self.policy = policy
        self.name: str = policy["name"]
        self.scope = Scope(ROOTS)
        self._builder = builder
        self._read: set[str] = set()
        self.every: list[Match] = []
        self.matches = self._block(policy["rule"], "")
        self.time_dependent = bool(self._read & TIME)
        self.hooks = any(match.data.get(kind) for match in self.every for kind in _HOOKS)
        # Variables start unset; what loops write needs no start, so all places after the roots are alike.
        self._fresh: Env = [UNSET] * (self.scope.size - len(ROOTS) - 2)

    def _closure(self, expression: Mapping[str, Any]) -> Closure:
        self._read |= names(expression["form"])
        return self._builder(self.scope, expression).build(expression["form"])

    def _block(self, block: Mapping[str, Any], prefix: str) -> list[Match]:
        for variable in block["variables"]:
            closure = self._closure(variable["expr"])
            self.scope.add("variables." + variable["name"])
            self.scope.variable_closures[variable["name"]] = closure
        matches = []
        for data in block["match"]:
            condition = None if data["condition"] is None else self._closure(data["condition"])
            match = Match(data, prefix + data["id"], len(self.every), condition)
            self.every.append(match)
            if data.get("explanation") is not None:
                match.explanation = self._closure(data["explanation"])
            if "rule" in data:
                match.matches = self._block(data["rule"], match.rule + ".")
            elif data["output"] not in ("approve", "hold"):
                raise ValueError(f"the output {data['output']!r} is neither approve nor hold")
            matches.append(match)
        return matches

    def environment(self, budget: int, trace: list[Any] | None, roots: tuple[Any, ...]) -> Env:
        """Return a fresh environment for one evaluation; ``roots`` in the order of ROOTS."""
        return [budget, trace, *roots, *self._fresh]

    def first_match(self, env: Env) -> tuple[Match | None, EvaluationError | None]:
        """Return the first match whose condition holds, or the one that could not be evaluated and its error.

        A conditional nested rule that has no match of its own ends the search, as in the CEL policy format: its
        condition was the first to hold. One without a condition lets the next match be tried.
        """
        return _first(self.matches, env)


def _first(matches: list[Match], env: Env) -> tuple[Match | None, EvaluationError | None]:
    for match in matches:
        if match.condition is not None:
            try:
                met = match.condition(env)
            except EvaluationError as error:
                return match, error
            except DAMAGED as error:
                return match, damage(error)
            if met is False:
                continue
            if met is not True:
                return match, EvaluationError("the condition is neither true nor false")
        if match.matches is None:
            return match, None
        inner, failure = _first(match.matches, env)
        if inner is not None or not match.always:
            return inner, failure
    return None, None
