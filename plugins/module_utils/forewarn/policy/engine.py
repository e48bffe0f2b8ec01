# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The policies at work: a document and facts in, a decision with its reason for every event out.

The meaning is fixed: the first match of a policy decides, and a policy without a match abstains. One ``hold`` outweighs
every ``approve`` of other policies. Without any ``approve``, and in every doubt, the decision is ``hold``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any, NamedTuple

from ..events import EVENT_STATUSES, EVENT_TYPE_SINCE, Document, Event
from .artifact import Artifact
from .decision import (
    ABSTAIN,
    APPROVERS,
    GROUPS,
    HOLD,
    RECOVER_WHEN,
    Decision,
    Facts,
    Limit,
    Value,
    Values,
    Verdict,
    joint_group,
)
from .evaluation_error import EvaluationError
from .params import bind, check_names
from .program import Match, Program
from .trace import TracingBuilder
from .view import DocumentView

_VALUES = Verdict._fields.index("values")


class RuleTrace(NamedTuple):
    """One rule tried on one event: ``true``, ``false``, ``error`` or ``not reached``, with the values it read.

    ``error`` is why the condition has no value, and ``failed_in`` FILE:LINE of the library that has the part without
    one, if it is in a library.
    """

    rule: str
    where: str
    source: str
    result: str
    values: tuple[Value, ...] = ()
    error: str | None = None
    failed_in: str | None = None


class PolicyTrace(NamedTuple):
    """Every rule of one policy, in order, and the verdict they lead to."""

    policy: str
    rules: tuple[RuleTrace, ...]
    verdict: Verdict


class _Policy:
    def __init__(self, data: Mapping[str, Any], given: Mapping[str, Any]) -> None:
        self.program = Program(data)
        self.name = self.program.name
        self.params = bind(data["params"], given, data["name"])
        extra = data.get("extra_values", {})
        self.known_types = frozenset((*EVENT_TYPE_SINCE, *extra.get("EventType", ())))
        self.known_statuses = frozenset((*EVENT_STATUSES, *extra.get("EventStatus", ())))
        # By Match.index, what is before and after the values in a verdict, as far as no event can change it.
        self.outcomes = [
            (verdict[:_VALUES], verdict[_VALUES + 1 :]) for verdict in map(self._outcome, self.program.every)
        ]

    @cached_property
    def tracing(self) -> Program:
        """The same program, but it records the values that it reads; built when they are first asked for."""
        return Program(self.program.policy, TracingBuilder)

    def _outcome(self, match: Match) -> Verdict:
        data = match.data
        condition = data["condition"]
        return Verdict(
            self.name,
            data.get("output", ABSTAIN),  # a nested rule has none, and decides nothing itself
            match.rule,
            f"rule {match.rule} applies" + ("" if condition is None else f": {_one_line(condition['source'])}"),
            self.where(match),
            approver=data.get("approver", APPROVERS[0]),
            group=data.get("group", GROUPS[0]),
            on_failure=data.get("on_failure", HOLD),
            parallel=data.get("parallel", False),
            prepare=match.written_hooks["prepare"],
            recover=match.written_hooks["recover"],
            notify=match.written_hooks["notify"],
            prepare_within_seconds=data.get("prepare_within_seconds"),
            recover_when=data.get("recover_when", RECOVER_WHEN[0]),
        )

    def where(self, match: Match) -> str:
        return f"{self.program.policy['source']}:{match.data['line']}:{match.data['column']}"

    def place(self, entry: Mapping[str, Any]) -> str:
        """Return FILE:LINE of an expression or a match; the file is a library if the expression was imported."""
        return f"{entry.get('file', self.program.policy['source'])}:{entry['line']}"

    def doubt(self, event: Event) -> str | None:
        """Return why the event's own type or status is a reason to hold."""
        if event.event_type not in self.known_types:
            unknown = f"EventType {event.event_type}"
        elif event.event_status not in self.known_statuses:
            unknown = f"EventStatus {event.event_status}"
        else:
            return None
        return f"unknown {unknown}; the policy may declare it in extra_values"


class PolicySet:
    """Policies of one artifact with their parameters, ready to decide. Any number of threads may use one.

    ``params`` maps names to JSON values; a name applies to every policy that declares it. Raises InputError for a
    value of the wrong type and for a name that no policy declares.
    """

    def __init__(self, artifact: Artifact, params: Mapping[str, Any] | None = None) -> None:
        given = dict(params or {})
        check_names(given, artifact.params)
        self.artifact = artifact
        self.digest = artifact.digest
        self.api_version = artifact.api_version
        self._policies = [_Policy(data, given) for data in artifact.data["policies"]]
        self.last_view: DocumentView | None = None  # of the document that was decided last
        self.time_dependent = any(policy.program.time_dependent for policy in self._policies)
        every = [match for policy in self._policies for match in policy.program.every]
        self.recovers_started = any(match.data.get("recover_when") == RECOVER_WHEN[1] for match in every)
        self.names = tuple(policy.name for policy in self._policies)
        rules = ((policy.name, match) for policy in self._policies for match in policy.program.every)
        # The limits as the artifact has them, each with its rule as POLICY/RULE.
        self.limits = tuple(
            (f"{name}/{match.rule}", match.data["limit"]) for name, match in rules if "limit" in match.data
        )

    def decide(self, document: Document, facts: Facts) -> tuple[Decision, ...]:
        """Decide every event of a document, in its order."""
        # Often it is the document of the last call: only the time has passed.
        view = self.last_view = DocumentView(document, facts, self.last_view)
        return tuple([self._decide_event(event, view) for event in document.events])

    def every_hook(self) -> Iterator[Mapping[str, Any]]:
        """Return every hook that any rule has."""
        return (hook for _policy, _rule, hook in self.hooks_by_rule())

    def hooks_by_rule(self) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
        """Yield every hook, with the names of its policy and its rule."""
        for policy in self._policies:
            for rule, hook in policy.program.hooks:
                yield policy.name, rule, hook

    def explain(self, event: Event, document: Document, facts: Facts) -> tuple[PolicyTrace, ...]:
        """Try every rule of every policy on one event, reached or not by the decision, with the values read."""
        view = DocumentView(document, facts)
        return tuple(_trace(policy, event, view) for policy in self._policies)

    def _decide_event(self, event: Event, view: DocumentView) -> Decision:
        if event.problems:
            return Decision(event, HOLD, None, None, "the event is in doubt: " + "; ".join(event.problems))
        verdicts = tuple([_verdict(policy, event, view) for policy in self._policies])
        acting = [verdict for verdict in verdicts if verdict.output != ABSTAIN]
        if not acting:
            reason = "no rule of any policy applies to this event"
            return Decision(event, HOLD, None, None, reason, verdicts=verdicts)
        alone = len(acting) == 1
        deciding = acting[0] if alone else next((one for one in acting if one.output == HOLD), acting[0])
        decision = Decision(
            event,
            deciding.output,
            deciding.policy,
            deciding.rule,
            deciding.reason,
            deciding.values,
            verdicts,
            deciding.approver,
            deciding.group,
            deciding.prepare,
            deciding.recover,
            deciding.notify,
            () if deciding.limit is None else (deciding.limit,),
        )
        if alone:
            return decision
        prepare = tuple(hook for verdict in acting for hook in verdict.prepare)
        limits = (verdict.limit for verdict in acting if verdict.limit is not None)
        return decision._replace(
            approver=min((verdict.approver for verdict in acting), key=APPROVERS.index),
            group=joint_group([verdict.group for verdict in acting], prepares=bool(prepare)),
            prepare=prepare,
            recover=tuple(hook for verdict in acting for hook in verdict.recover),
            notify=tuple(hook for verdict in acting for hook in verdict.notify),
            limits=tuple(dict.fromkeys(limits)),
        )


def _verdict(policy: _Policy, event: Event, view: DocumentView) -> Verdict:
    doubt = policy.doubt(event)
    if doubt:
        return Verdict(policy.name, HOLD, None, doubt, policy.program.policy["source"])
    roots = view.roots(event, policy.params)
    match, error, reason, limit_group, failed = policy.program.answer(roots)
    if match is None:
        return Verdict(policy.name, ABSTAIN, None, "no rule matches", policy.program.policy["source"])
    values = Values(_values, policy, match.index, roots, True)
    if error is not None:
        return _failed(policy, match, error, failed, values)
    before_values, after_values = policy.outcomes[match.index]
    verdict = Verdict._make((*before_values, values, *after_values))
    if reason is not None:
        verdict = verdict._replace(reason=reason)
    if match.hooks_hold_values:
        hooks = policy.program.hooks_of(match, roots)
        verdict = verdict._replace(prepare=hooks["prepare"], recover=hooks["recover"], notify=hooks["notify"])
    limit = match.data.get("limit")
    if limit is not None:
        verdict = verdict._replace(limit=Limit(limit_group, limit.get("at_most"), limit.get("percent")))
    return verdict


def _failed(policy: _Policy, match: Match, error: EvaluationError, part: str | None, values: Values) -> Verdict:
    place = policy.place(error.expression or match.data)
    text = str(error)
    if error.expression is not None:
        text = f"{_one_line(error.expression['source'][error.start : error.end])}: {error}"
    reason = f"rule {match.rule} could not be evaluated ({place}): {text}"
    return Verdict(policy.name, HOLD, match.rule, reason, policy.where(match), values, text, failed=part)


def _trace(policy: _Policy, event: Event, view: DocumentView) -> PolicyTrace:
    """Return the result of each rule in the search that decides."""
    roots = view.roots(event, policy.params)
    tried: dict[int, bool | EvaluationError] = {}
    if policy.doubt(event) is None:  # otherwise no rule is asked
        policy.program.answer(roots, lambda match, met: tried.update({match.index: met}))
    rules = []
    for match in policy.program.every:
        condition = match.data["condition"]
        source = "" if condition is None else _one_line(condition["source"])
        result, error, failed_in = "not reached", None, None
        values: tuple[Value, ...] = ()
        if match.index in tried:
            met = tried[match.index]
            if isinstance(met, bool):
                result = "true" if met else "false"
            else:
                result, error = "error", str(met)
                failed_in = policy.place(met.expression) if met.expression and "file" in met.expression else None
            values = _values(policy, match.index, roots, False)
        rules.append(RuleTrace(match.rule, policy.where(match), source, result, values, error, failed_in))
    return PolicyTrace(policy.name, tuple(rules), _verdict(policy, event, view))


def _values(policy: _Policy, index: int, roots: tuple[Any, ...], explained: bool) -> tuple[Value, ...]:
    """Evaluate a rule's condition, explanation and limit again, and return the values that they read."""
    trace: list[Value] = []
    tracing = policy.tracing
    env, traced = tracing.environment(trace, roots), tracing.every[index]
    if traced.try_condition(env) is True and explained and not traced.only_condition:
        with suppress(EvaluationError):
            for closure in (traced.explanation, traced.limit_group):
                if closure is not None:
                    closure(env)
    return tuple(dict.fromkeys(trace))


def _one_line(text: str) -> str:
    return " ".join(text.split())
