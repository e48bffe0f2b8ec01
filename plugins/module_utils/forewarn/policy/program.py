# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One policy of an artifact, ready to run: its matches as closures, in order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable, NamedTuple

from .decision import PHASES
from .evaluate import MAX_STEPS, UNSET, Builder, Closure, Env, Scope, guarded, names
from .evaluation_error import EvaluationError, InternalError
from .forms import Form, Literal, read_form
from .interpolated import HookProgram, compile_hook

# What an expression may read, in the order of the environment.
ROOTS = ("event", "events", "notice", "age", "now", "affects_me", "leader", "vm", "params")
TIME = frozenset(("notice", "age", "now"))


def is_conditional(condition: Form | None) -> bool:
    """Return whether a match's condition counts as one; a literal does not, so that its rule only groups."""
    return condition is not None and not isinstance(condition, Literal)


class Match:
    """One match of a policy. ``data`` is the artifact's entry; ``rule`` its path of ids, for nested rules.

    ``index`` counts the policy's matches, nested ones included, in the order of the file. ``explanation`` and
    ``limit_group`` raise EvaluationError and nothing else.
    """

    def __init__(self, data: Mapping[str, Any], rule: str, index: int) -> None:
        self.data = data
        self.rule = rule
        self.index = index
        self.condition: Closure | None = None  # for try_condition
        self.conditional = False
        self.explanation: Closure | None = None
        self.limit_group: Closure | None = None
        self.only_condition = True  # whether nothing but the condition must have a value
        self.reads_time = False  # whether the condition, the explanation or the limit may, itself or in a variable
        self.matches: list[Match] | None = None  # of a nested rule
        self.hooks: Mapping[str, tuple[HookProgram, ...]] = {}  # by phase
        self.hooks_hold_values = False
        self.written_hooks = {phase: tuple(data.get(phase, ())) for phase in PHASES}
        self.decides = Answer(self)

    def try_condition(self, env: Env) -> bool | EvaluationError:
        """Return whether the condition holds, or the error of one that could not be evaluated."""
        if self.condition is None:
            return True
        try:
            met = self.condition(env)
        except EvaluationError as error:
            return error
        except Exception as error:  # of any type, as in guarded()
            return InternalError(error)
        if met is True or met is False:
            return met
        return EvaluationError("the condition is neither true nor false")


class Answer(NamedTuple):
    """The outcome of a policy for an event.

    ``match`` is the one that applies, None where the policy abstains. ``reason`` is the value of its explanation, None
    if it has none; ``limit_group`` likewise is the name of its limit's group. With ``error``, the match is the one of
    which an expression could not be evaluated: its ``condition``, ``explanation`` or ``limit``, which is ``failed``.
    """

    match: Match | None
    error: EvaluationError | None = None
    reason: str | None = None
    limit_group: str | None = None
    failed: str | None = None


_ABSTAINS = Answer(None)
Observer = Callable[[Match, "bool | EvaluationError"], None]


class Program:
    """The closures of one policy. ``time_dependent``: its answer may change without a new document."""

    def __init__(self, policy: Mapping[str, Any], builder: type[Builder] = Builder) -> None:
        self.policy = policy
        self.name: str = policy["name"]
        self.scope = Scope(ROOTS)
        self._builder = builder
        self.time_dependent = False
        self._read: set[str] = set()  # by what is built now: names of variables, and variables.NAME
        self._timed = set(TIME)  # the names of what may change with time
        self.every: list[Match] = []
        self.matches = self._block(policy["rule"], "")
        phases = ((match, phase) for match in self.every for phase in PHASES)
        self.hooks = [(match.rule, hook) for match, phase in phases for hook in match.data.get(phase, ())]
        # Variables start unset. Locals need no first value, so all places after the roots are alike.
        self._fresh: Env = [UNSET] * (self.scope.size - len(ROOTS) - 2)

    def _closure(self, expression: Mapping[str, Any], form: Form) -> Closure:
        read = names(form)
        self._read |= read
        self.time_dependent = self.time_dependent or not read.isdisjoint(TIME)
        return self._builder(self.scope, expression).build(form)

    def _block(self, block: Mapping[str, Any], prefix: str) -> list[Match]:
        for variable in block["variables"]:
            self._read = set()
            closure = self._closure(variable["expr"], read_form(variable["expr"]["form"]))
            self.scope.add("variables." + variable["name"])
            self.scope.variable_closures[variable["name"]] = closure
            if not self._read.isdisjoint(self._timed):
                self._timed.add("variables." + variable["name"])
        matches = []
        for data in block["match"]:
            match = Match(data, prefix + data["id"], len(self.every))
            self.every.append(match)
            self._read = set()
            condition, explanation = data["condition"], data.get("explanation")
            if condition is not None:
                form = read_form(condition["form"])
                match.condition = self._closure(condition, form)
                match.conditional = is_conditional(form)
            if explanation is not None:
                match.explanation = self._value(explanation)
            if "group" in data.get("limit", ()):
                match.limit_group = self._value(data["limit"]["group"])
            match.only_condition = match.explanation is None and match.limit_group is None
            match.reads_time = not self._read.isdisjoint(self._timed)
            match.hooks = {
                phase: tuple(compile_hook(hook, phase, self._value) for hook in data.get(phase, ())) for phase in PHASES
            }
            match.hooks_hold_values = any(hook.holds_values for hooks in match.hooks.values() for hook in hooks)
            if "rule" in data:
                match.matches = self._block(data["rule"], match.rule + ".")
            elif data["output"] not in ("approve", "hold"):
                raise ValueError(f"the output {data['output']!r} is neither approve nor hold")
            matches.append(match)
        return matches

    def _value(self, expression: Mapping[str, Any]) -> Closure:
        return guarded(self._closure(expression, read_form(expression["form"])))

    def hooks_of(self, match: Match, roots: tuple[Any, ...]) -> Mapping[str, tuple[Mapping[str, Any], ...]]:
        """Return the hooks of a match by phase, with the values in their texts; ``roots`` in the order of ROOTS."""
        if not match.hooks_hold_values:
            return match.written_hooks
        env, values = self.environment(None, roots), dict(zip(ROOTS, roots))
        hooks = {phase: tuple(hook.resolved(env, values) for hook in found) for phase, found in match.hooks.items()}
        # What could never be prepared needs no recovery.
        unprepared = [hook for hook in hooks["prepare"] if "problem" in hook]
        hooks["recover"] = tuple(
            hook for hook in hooks["recover"] if not any(_same(hook, other) for other in unprepared)
        )
        return hooks

    def environment(self, trace: list[Any] | None, roots: tuple[Any, ...]) -> Env:
        """Return a fresh environment for one evaluation; ``roots`` in the order of ROOTS."""
        return [MAX_STEPS, trace, *roots, *self._fresh]

    def answer(self, roots: tuple[Any, ...], observe: Observer | None = None) -> Answer:
        """Return the policy's outcome for an event; ``roots`` in the order of ROOTS.

        ``observe`` is called with each match that is tried, in order, and with the result of its condition.
        """
        answer = _search(self.matches, self.environment(None, roots), observe) or _ABSTAINS
        match = answer.match
        if match is None or match.only_condition or answer.error is not None:
            return answer
        reason = group = None
        part = "explanation"
        try:  # each with steps of its own: those that others took must not change the decision
            if match.explanation is not None:
                reason = str(match.explanation(self.environment(None, roots)))
            part = "limit"
            if match.limit_group is not None:
                group = _group_name(match, match.limit_group(self.environment(None, roots)))
        except EvaluationError as failure:
            return Answer(match, failure, failed=part)
        return Answer(match, None, reason, group)


def _group_name(match: Match, value: object) -> str:
    name = str(value)
    if name:
        return name
    error = EvaluationError("it is empty, and names no group")
    error.expression = match.data["limit"]["group"]
    error.end = len(error.expression["source"])
    raise error


def _same(hook: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    both = "problem" in hook and "kind" in hook and "kind" in other
    return both and (hook["kind"], hook["options"]) == (other["kind"], other["options"])


def _search(matches: list[Match], env: Env, observe: Observer | None) -> Answer | None:
    """Return the outcome of a block of matches for an event, None if the search goes on after the block.

    Only this function defines what a policy means: the first match whose condition holds decides. If that is a nested
    rule in which nothing decides, a conditional one ends the whole search, and the policy abstains; after an
    unconditional one, the next match is tried.
    """
    for match in matches:
        met = match.try_condition(env)
        if observe is not None:
            observe(match, met)
        if met is False:
            continue
        if met is not True:
            return Answer(match, met, failed="condition")
        if match.matches is None:
            return match.decides
        found = _search(match.matches, env, observe)
        if found is not None:
            return found
        if match.conditional:
            return _ABSTAINS
    return None
