# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decides events: from a document and facts, a decision with its reason for every event.

The first match of a policy whose condition holds decides; a policy without such a match abstains. One ``hold``
outweighs every ``approve`` of other policies. Without any ``approve``, and in every doubt, the decision is ``hold``.
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
    strictest_group,
)
from .evaluation_error import EvaluationError
from .params import bind, check_names
from .program import Match, Program
from .trace import TracingBuilder
from .view import DocumentView

_VALUES = Verdict._fields.index("values")


class RuleTrace(NamedTuple):
    """The result of one rule for one event: ``true``, ``false``, ``error`` or ``not reached``, and the values it read.

    ``error`` says why the condition has no value. ``failed_in`` is FILE:LINE of the part without a value, if that was
    imported from a library, else None.
    """

    rule: str
    where: str
    source: str
    result: str
    values: tuple[Value, ...] = ()
    error: str | None = None
    failed_in: str | None = None


class PolicyTrace(NamedTuple):
    """The results of all rules of one policy, in the order of the file, and its verdict."""

    policy: str
    rules: tuple[RuleTrace, ...]
    verdict: Verdict


class _Policy:
    """The program of a policy with the values of its parameters. Raises InputError for an invalid value."""

    def __init__(self, data: Mapping[str, Any], given: Mapping[str, Any]) -> None:
        self.program = Program(data)
        self.name = self.program.name
        self.params = bind(data["params"], given, data["name"])
        extra = data.get("extra_values", {})
        self.known_types = frozenset((*EVENT_TYPE_SINCE, *extra.get("EventType", ())))
        self.known_statuses = frozenset((*EVENT_STATUSES, *extra.get("EventStatus", ())))
        # The fields before and after ``values`` in the verdict of each match, by Match.index: the same for most events.
        self.verdict_fields = [
            (verdict[:_VALUES], verdict[_VALUES + 1 :])
            for verdict in map(self._plain_verdict, self.program.all_matches)
        ]

    @cached_property
    def tracing_program(self) -> Program:
        """The same program, which also records the values that it reads. Built on first use."""
        return Program(self.program.policy, TracingBuilder)

    def _plain_verdict(self, match: Match) -> Verdict:
        """Return the verdict of a match that applies, without what depends on the event."""
        data = match.data
        condition = data["condition"]
        return Verdict(
            self.name,
            data.get("output", ABSTAIN),  # a nested rule has none, and decides nothing itself
            match.rule,
            f"rule {match.rule} applies" + ("" if condition is None else f": {_one_line(condition['source'])}"),
            self.location(match),
            approver=data.get("approver", APPROVERS[0]),
            group=data.get("group", GROUPS[0]),
            on_failure=data.get("on_failure", HOLD),
            parallel=data.get("parallel", False),
            prepare=match.hook_entries["prepare"],
            recover=match.hook_entries["recover"],
            notify=match.hook_entries["notify"],
            prepare_within_seconds=data.get("prepare_within_seconds"),
            recover_when=data.get("recover_when", RECOVER_WHEN[0]),
        )

    def location(self, match: Match) -> str:
        """Return FILE:LINE:COLUMN of a match."""
        return f"{self.program.policy['source']}:{match.data['line']}:{match.data['column']}"

    def line(self, entry: Mapping[str, Any]) -> str:
        """Return FILE:LINE of an expression or a match; the file is a library if the expression was imported."""
        return f"{entry.get('file', self.program.policy['source'])}:{entry['line']}"

    def unknown_value(self, event: Event) -> str | None:
        """Return why an event is held for an unknown type or status; None if the policy knows both."""
        if event.event_type not in self.known_types:
            unknown = f"EventType {event.event_type}"
        elif event.event_status not in self.known_statuses:
            unknown = f"EventStatus {event.event_status}"
        else:
            return None
        return f"unknown {unknown}; the policy may declare it in extra_values"


class PolicySet:
    """The policies of one artifact with the values of their parameters. Any number of threads may use one.

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
        self.last_view: DocumentView | None = None  # of the last call of ``decide``
        self.time_dependent = any(policy.program.time_dependent for policy in self._policies)
        self.names = tuple(policy.name for policy in self._policies)
        rules = [(policy.name, match) for policy in self._policies for match in policy.program.all_matches]
        self.recovers_started = any(match.data.get("recover_when") == RECOVER_WHEN[1] for _name, match in rules)
        # The limits as the artifact has them, each with its rule as POLICY/RULE.
        self.limits = tuple(
            (f"{name}/{match.rule}", match.data["limit"]) for name, match in rules if "limit" in match.data
        )

    def decide(self, document: Document, facts: Facts) -> tuple[Decision, ...]:
        """Return the decisions on all events of a document, in its order."""
        # Often the document is that of the last call, and only the time differs.
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
        """Return the results of all rules for one event, also of those that the search does not reach."""
        view = DocumentView(document, facts)
        return tuple(_trace_policy(policy, event, view) for policy in self._policies)

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
            group=strictest_group([verdict.group for verdict in acting], prepares=bool(prepare)),
            prepare=prepare,
            recover=tuple(hook for verdict in acting for hook in verdict.recover),
            notify=tuple(hook for verdict in acting for hook in verdict.notify),
            limits=tuple(dict.fromkeys(limits)),
        )


def _verdict(policy: _Policy, event: Event, view: DocumentView) -> Verdict:
    unknown = policy.unknown_value(event)
    if unknown:
        return Verdict(policy.name, HOLD, None, unknown, policy.program.policy["source"])
    roots = view.roots(event, policy.params)
    match, error, reason, limit_group, failed = policy.program.evaluate(roots)
    if match is None:
        return Verdict(policy.name, ABSTAIN, None, "no rule matches", policy.program.policy["source"])
    values = Values(_traced_values, policy, match.index, roots, True)
    if error is not None:
        return _failed_verdict(policy, match, error, failed, values)
    before_values, after_values = policy.verdict_fields[match.index]
    verdict = Verdict._make((*before_values, values, *after_values))
    if reason is not None:
        verdict = verdict._replace(reason=reason)
    if match.hooks_have_expressions:
        hooks = policy.program.resolve_hooks(match, roots)
        verdict = verdict._replace(prepare=hooks["prepare"], recover=hooks["recover"], notify=hooks["notify"])
    limit = match.data.get("limit")
    if limit is not None:
        verdict = verdict._replace(limit=Limit(limit_group, limit.get("at_most"), limit.get("percent")))
    return verdict


def _failed_verdict(policy: _Policy, match: Match, error: EvaluationError, part: str | None, values: Values) -> Verdict:
    place = policy.line(error.expression or match.data)
    text = str(error)
    if error.expression is not None:
        text = f"{_one_line(error.expression['source'][error.start : error.end])}: {error}"
    reason = f"rule {match.rule} could not be evaluated ({place}): {text}"
    return Verdict(policy.name, HOLD, match.rule, reason, policy.location(match), values, text, failed=part)


def _trace_policy(policy: _Policy, event: Event, view: DocumentView) -> PolicyTrace:
    """Return the results of all rules of a policy for an event."""
    roots = view.roots(event, policy.params)
    tried: dict[int, bool | EvaluationError] = {}
    if policy.unknown_value(event) is None:  # otherwise no rule is tried
        policy.program.evaluate(roots, lambda match, met: tried.update({match.index: met}))
    rules = []
    for match in policy.program.all_matches:
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
                failed_in = policy.line(met.expression) if met.expression and "file" in met.expression else None
            values = _traced_values(policy, match.index, roots, False)
        rules.append(RuleTrace(match.rule, policy.location(match), source, result, values, error, failed_in))
    return PolicyTrace(policy.name, tuple(rules), _verdict(policy, event, view))


def _traced_values(policy: _Policy, index: int, roots: tuple[Any, ...], explained: bool) -> tuple[Value, ...]:
    """Evaluate a rule again, and return the values that its condition read.

    With ``explained``, also return those that the explanation and the limit read, if the condition holds.
    """
    trace: list[Value] = []
    program = policy.tracing_program
    env, match = program.environment(trace, roots), program.all_matches[index]
    if match.evaluate_condition(env) is True and explained and not match.has_only_condition:
        with suppress(EvaluationError):
            for closure in (match.explanation, match.limit_group):
                if closure is not None:
                    closure(env)
    return tuple(dict.fromkeys(trace))


def _one_line(text: str) -> str:
    return " ".join(text.split())
