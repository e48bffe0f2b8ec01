# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One policy of an artifact, ready to run: its matches as closures, in order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable, NamedTuple

from .builder import Builder
from .decision import PHASES
from .environment import MAX_STEPS, UNSET, Closure, Env, Scope, guard
from .evaluation_error import EvaluationError, InternalError
from .forms import Form, Literal, free_variables, read_form
from .hook_program import HookProgram, compile_hook

# What an expression may read, in the order of the environment.
ROOTS = ("event", "events", "notice", "age", "now", "affects_me", "leader", "vm", "params")
TIME = frozenset(("notice", "age", "now"))


def is_conditional(condition: Form | None) -> bool:
    """Return whether a match is conditional: it has a condition, which is not just a literal."""
    return condition is not None and not isinstance(condition, Literal)


class Match:
    """One match of a policy. ``data`` is its entry in the artifact, ``rule`` its path of ids: ``outer.inner``.

    ``index`` is its number among all matches of the policy, nested ones included, in the order of the file.
    ``explanation`` and ``limit_group`` raise EvaluationError and nothing else.
    """

    def __init__(self, data: Mapping[str, Any], rule: str, index: int) -> None:
        self.data = data
        self.rule = rule
        self.index = index
        self.condition: Closure | None = None  # for evaluate_condition
        self.conditional = False
        self.explanation: Closure | None = None
        self.limit_group: Closure | None = None
        self.has_only_condition = True  # neither an explanation nor a group of a limit, which need a value, too
        self.reads_time = False  # of the condition, the explanation and the limit, with the variables that they read
        self.matches: list[Match] | None = None  # of a nested rule
        self.hooks: Mapping[str, tuple[HookProgram, ...]] = {}  # by phase
        self.hooks_have_expressions = False
        self.hook_entries = {phase: tuple(data.get(phase, ())) for phase in PHASES}  # of the artifact
        self.outcome = ProgramOutcome(self)

    def evaluate_condition(self, env: Env) -> bool | EvaluationError:
        """Return whether the condition holds, or the error if it has no value."""
        if self.condition is None:
            return True
        try:
            met = self.condition(env)
        except EvaluationError as error:
            return error
        except Exception as error:  # of any type, as in guard()
            return InternalError(error)
        if met is True or met is False:
            return met
        return EvaluationError("the condition is neither true nor false")


class ProgramOutcome(NamedTuple):
    """The outcome of a policy for an event.

    ``match`` is the match that applies, None if the policy abstains. ``reason`` is the value of its explanation, and
    ``limit_group`` the name of its limit's group; each is None if the match does not have it. With an ``error``,
    ``match`` is the one that could not be evaluated, and ``failed`` the part without a value: ``condition``,
    ``explanation`` or ``limit``.
    """

    match: Match | None
    error: EvaluationError | None = None
    reason: str | None = None
    limit_group: str | None = None
    failed: str | None = None


_ABSTENTION = ProgramOutcome(None)
Observer = Callable[[Match, "bool | EvaluationError"], None]


class Program:
    """The closures of one policy. ``time_dependent``: its outcome may change without a new document.

    ``policy`` is the artifact's entry, which ``structure`` has checked. ``all_matches`` has nested matches, too;
    ``hooks`` are all hooks as the artifact has them, each with its rule. Raises ValueError for an invalid form.
    """

    def __init__(self, policy: Mapping[str, Any], builder: type[Builder] = Builder) -> None:
        self.policy = policy
        self.name: str = policy["name"]
        self.scope = Scope(ROOTS)
        self._builder = builder
        self.time_dependent = False
        self._names_read: set[str] = set()  # by the match or the variable that is being built; policy variables, too
        self._time_names = set(TIME)  # all names whose values may change with time
        self.all_matches: list[Match] = []
        self.matches = self._build_block(policy["rule"], "")
        phases = ((match, phase) for match in self.all_matches for phase in PHASES)
        self.hooks = [(match.rule, hook) for match, phase in phases for hook in match.data.get(phase, ())]
        # Policy variables start unset. Locals need no first value, so all slots after the roots are alike.
        self._fresh: Env = [UNSET] * (self.scope.size - len(ROOTS) - 2)

    def _build(self, expression: Mapping[str, Any], form: Form) -> Closure:
        names = free_variables(form)
        self._names_read |= names
        self.time_dependent = self.time_dependent or not names.isdisjoint(TIME)
        return self._builder(self.scope, expression).build(form)

    def _build_block(self, block: Mapping[str, Any], prefix: str) -> list[Match]:
        for variable in block["variables"]:
            self._names_read = set()
            closure = self._build(variable["expr"], read_form(variable["expr"]["form"]))
            self.scope.add("variables." + variable["name"])
            self.scope.variable_closures[variable["name"]] = closure
            if not self._names_read.isdisjoint(self._time_names):
                self._time_names.add("variables." + variable["name"])
        matches = []
        for data in block["match"]:
            match = Match(data, prefix + data["id"], len(self.all_matches))
            self.all_matches.append(match)
            self._names_read = set()
            condition, explanation = data["condition"], data.get("explanation")
            if condition is not None:
                form = read_form(condition["form"])
                match.condition = self._build(condition, form)
                match.conditional = is_conditional(form)
            if explanation is not None:
                match.explanation = self._build_guarded(explanation)
            if "group" in data.get("limit", ()):
                match.limit_group = self._build_guarded(data["limit"]["group"])
            match.has_only_condition = match.explanation is None and match.limit_group is None
            match.reads_time = not self._names_read.isdisjoint(self._time_names)
            match.hooks = {
                phase: tuple(compile_hook(hook, phase, self._build_guarded) for hook in data.get(phase, ()))
                for phase in PHASES
            }
            match.hooks_have_expressions = any(hook.has_expressions for hooks in match.hooks.values() for hook in hooks)
            if "rule" in data:
                match.matches = self._build_block(data["rule"], match.rule + ".")
            elif data["output"] not in ("approve", "hold"):
                raise ValueError(f"the output {data['output']!r} is neither approve nor hold")
            matches.append(match)
        return matches

    def _build_guarded(self, expression: Mapping[str, Any]) -> Closure:
        return guard(self._build(expression, read_form(expression["form"])))

    def resolve_hooks(self, match: Match, roots: tuple[Any, ...]) -> Mapping[str, tuple[Mapping[str, Any], ...]]:
        """Return the hooks of a match by phase, with the values of their expressions; ``roots`` as ROOTS names them."""
        if not match.hooks_have_expressions:
            return match.hook_entries
        env, values = self.environment(None, roots), dict(zip(ROOTS, roots))
        hooks = {
            phase: tuple(hook.resolve(env, values) for hook in programs) for phase, programs in match.hooks.items()
        }
        # A hook that cannot prepare anything needs no recovery.
        unprepared = [hook for hook in hooks["prepare"] if "problem" in hook]
        hooks["recover"] = tuple(
            hook for hook in hooks["recover"] if not any(_has_same_problem(hook, other) for other in unprepared)
        )
        return hooks

    def environment(self, trace: list[Any] | None, roots: tuple[Any, ...]) -> Env:
        """Return a new environment for one evaluation; ``roots`` are the values of ROOTS, in this order."""
        return [MAX_STEPS, trace, *roots, *self._fresh]

    def evaluate(self, roots: tuple[Any, ...], observe: Observer | None = None) -> ProgramOutcome:
        """Return the policy's outcome for an event; ``roots`` are the values of ROOTS, in this order.

        ``observe`` gets each match that the search reaches, in order, and the result of its condition.
        """
        outcome = _search(self.matches, self.environment(None, roots), observe) or _ABSTENTION
        match = outcome.match
        if match is None or match.has_only_condition or outcome.error is not None:
            return outcome
        reason = group = None
        part = "explanation"
        try:  # each in an environment of its own: the steps of one must not count against another
            if match.explanation is not None:
                reason = str(match.explanation(self.environment(None, roots)))
            part = "limit"
            if match.limit_group is not None:
                group = _group_name(match, match.limit_group(self.environment(None, roots)))
        except EvaluationError as error:
            return ProgramOutcome(match, error, failed=part)
        return ProgramOutcome(match, None, reason, group)


def _group_name(match: Match, value: object) -> str:
    name = str(value)
    if name:
        return name
    error = EvaluationError("it is empty, and names no group")
    error.expression = match.data["limit"]["group"]
    error.end = len(error.expression["source"])
    raise error


def _has_same_problem(hook: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    both = "problem" in hook and "kind" in hook and "kind" in other
    return both and (hook["kind"], hook["options"]) == (other["kind"], other["options"])


def _search(matches: list[Match], env: Env, observe: Observer | None) -> ProgramOutcome | None:
    """Return the outcome of a block of matches for an event, None if the search continues after the block.

    Only this function defines what a policy means. The first match whose condition holds decides. If that match is a
    nested rule in which nothing decides, its own condition counts: with one, the policy abstains; without one, the
    search continues with the next match.
    """
    for match in matches:
        met = match.evaluate_condition(env)
        if observe is not None:
            observe(match, met)
        if met is False:
            continue
        if met is not True:
            return ProgramOutcome(match, met, failed="condition")
        if match.matches is None:
            return match.outcome
        found = _search(match.matches, env, observe)
        if found is not None:
            return found
        if match.conditional:
            return _ABSTENTION
    return None
