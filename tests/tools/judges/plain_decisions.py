# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decisions by the slow and plain way: everything is made anew for each event, and every evaluation records its values.

It shares the expressions and their search with the engine, and nothing that the engine keeps between two decisions.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from forewarn.events import EVENT_STATUSES, EVENT_TYPE_SINCE, Document, Event, format_time
from forewarn.policy.artifact import Artifact
from forewarn.policy.builder import Builder
from forewarn.policy.decision import APPROVERS, GROUPS, Decision, Facts, Limit, Value, Values, Verdict, strictest_group
from forewarn.policy.environment import ABSENT, Closure, Env
from forewarn.policy.evaluation_error import EvaluationError
from forewarn.policy.forms import Call, Form, Matches, Variable
from forewarn.policy.functions.timevalues import from_datetime
from forewarn.policy.params import bind
from forewarn.policy.program import Match, Program
from forewarn.policy.trace import _TRACED, _free_locals, _render, tests_optional

PHASES = ("prepare", "recover", "notify")
Roots = tuple[Any, ...]


class Recording(Builder):
    """Appends to item 1 of the environment what is evaluated: a Value each."""

    fuses_parts = False

    def build(self, form: Form) -> Closure:
        closure = super().build(form)
        bare_record = isinstance(form, Variable) and form.type.startswith("record(")
        test = isinstance(form, (Call, Matches)) and form.type == "bool"
        if bare_record or not (test or isinstance(form, _TRACED)) or _free_locals(form):
            return closure
        text = " ".join(self.expression["source"][form.start : form.end].split())

        def record(env: Env) -> Any:
            try:
                value = closure(env)
            except EvaluationError as error:
                env[1].append(Value(text, f"error: {error}"))
                raise
            if tests_optional(form, text):
                env[1] += [] if value else [Value(text, "optional.none()")]
                return value
            plain = isinstance(value, (bool, str))
            shown = json.dumps(value, ensure_ascii=False) if plain else _render(value, form.type)
            env[1].append(Value(text, shown if len(shown) <= 120 else shown[:119] + "…"))
            return value

        return record


class RecordedPolicy(Program):
    """A policy whose every evaluation is recorded, whether anybody reads that or not."""

    def environment(self, trace: list[Any] | None, roots: Roots) -> Env:
        return super().environment([] if trace is None else trace, roots)


def decisions(artifact: Artifact, params: Mapping[str, Any], document: Document, facts: Facts) -> tuple[Decision, ...]:
    """Decide every event of a document, in its order."""
    return tuple(_decision(artifact, params, event, document, facts) for event in document.events)


def _decision(
    artifact: Artifact, params: Mapping[str, Any], event: Event, document: Document, facts: Facts
) -> Decision:
    if event.problems:
        return Decision(event, "hold", None, None, "the event is in doubt: " + "; ".join(event.problems))
    verdicts = tuple(_verdict(data, params, event, document, facts) for data in artifact.data["policies"])
    holds = [verdict for verdict in verdicts if verdict.output == "hold"]
    approvals = [verdict for verdict in verdicts if verdict.output == "approve"]
    if not holds and not approvals:
        reason = "no rule of any policy applies to this event"
        return Decision(event, "hold", None, None, reason, verdicts=verdicts)
    deciding = (holds or approvals)[0]
    acting = [verdict for verdict in verdicts if verdict.output != "abstain"]
    approver, group = acting[0].approver, acting[0].group
    prepare = tuple(hook for verdict in acting for hook in verdict.prepare)
    if len(acting) > 1:
        approver = min((verdict.approver for verdict in acting), key=APPROVERS.index)
        group = strictest_group([verdict.group for verdict in acting], prepares=bool(prepare))
    return Decision(
        event,
        output=deciding.output,
        policy=deciding.policy,
        rule=deciding.rule,
        reason=deciding.reason,
        values=deciding.values,
        verdicts=verdicts,
        approver=approver,
        group=group,
        prepare=prepare,
        recover=tuple(hook for verdict in acting for hook in verdict.recover),
        notify=tuple(hook for verdict in acting for hook in verdict.notify),
        limits=tuple(dict.fromkeys(verdict.limit for verdict in acting if verdict.limit is not None)),
    )


def _verdict(
    policy: Mapping[str, Any], given: Mapping[str, Any], event: Event, document: Document, facts: Facts
) -> Verdict:
    name, source = policy["name"], policy["source"]
    extra = policy.get("extra_values", {})
    for what, value, known in (
        ("EventType", event.event_type, EVENT_TYPE_SINCE),
        ("EventStatus", event.event_status, EVENT_STATUSES),
    ):
        if value not in (*known, *extra.get(what, ())):
            doubt = f"unknown {what} {value}; the policy may declare it in extra_values"
            return Verdict(name, "hold", None, doubt, source)
    program = RecordedPolicy(policy, Recording)
    roots = _roots(event, document, facts, bind(policy["params"], given, name))
    match, error, reason, limit_group, failed = program.evaluate(roots)
    if match is None:
        return Verdict(name, "abstain", None, "no rule matches", source)
    data, values = match.data, _values(program, match, roots)
    where = f"{source}:{data['line']}:{data['column']}"
    if error is not None:
        place, text = f"{source}:{data['line']}", str(error)
        if error.expression is not None:
            place = f"{source}:{error.expression['line']}"
            text = f"{_one_line(error.expression['source'][error.start : error.end])}: {error}"
        reason = f"rule {match.rule} could not be evaluated ({place}): {text}"
        return Verdict(name, "hold", match.rule, reason, where, Values(lambda: values), text, failed=failed)
    if reason is None:
        condition = data["condition"]
        asked = "" if condition is None else f": {_one_line(condition['source'])}"
        reason = f"rule {match.rule} applies{asked}"
    hooks = {phase: tuple(data.get(phase, ())) for phase in PHASES}
    if match.hooks_have_expressions:
        hooks.update(program.resolve_hooks(match, roots))
    limit = data.get("limit")
    return Verdict(
        name,
        data["output"],
        match.rule,
        reason,
        where,
        Values(lambda: values),
        approver=data.get("approver", APPROVERS[0]),
        group=data.get("group", GROUPS[0]),
        on_failure=data.get("on_failure", "hold"),
        parallel=data.get("parallel", False),
        prepare=hooks["prepare"],
        recover=hooks["recover"],
        notify=hooks["notify"],
        prepare_within_seconds=data.get("prepare_within_seconds"),
        recover_when=data.get("recover_when", "prepared"),
        limit=None if limit is None else Limit(limit_group, limit.get("at_most"), limit.get("percent")),
    )


def _values(program: Program, match: Match, roots: Roots) -> tuple[Value, ...]:
    env = program.environment([], roots)
    if match.evaluate_condition(env) is True:
        with suppress(EvaluationError):
            for closure in (match.explanation, match.limit_group):
                if closure is not None:
                    closure(env)
    return tuple(dict.fromkeys(env[1]))


def _roots(event: Event, document: Document, facts: Facts, params: Mapping[str, Any]) -> Roots:
    now = from_datetime(facts.now)
    first_seen = facts.first_seen.get(event.key)
    age = 0 if first_seen is None else max(0, now - from_datetime(first_seen))
    notice: Any = ABSENT if event.not_before is None else max(0, from_datetime(event.not_before) - now)
    affects_me: Any = ABSENT
    leader: Any = ABSENT
    if facts.vm.name is not None:
        place = event.place_of(facts.vm.name)
        affects_me, leader = place is not None, place == 0
    vm = {name: fact for name, fact in facts.vm._asdict().items() if fact is not None}
    return (
        _fields(event),
        ABSENT if document.problems else [_fields(one) for one in document.events],
        0 if event.event_status == "Started" else notice,
        age,
        now,
        affects_me,
        leader,
        vm,
        dict(params),
    )


def _fields(event: Event) -> dict[str, Any]:
    fields = event.as_dict()
    if event.not_before is not None:
        assert fields["NotBefore"] == format_time(event.not_before)
        fields["NotBefore"] = from_datetime(event.not_before)
    if event.problems and not event.resources:
        del fields["Resources"]
    return fields


def _one_line(text: str) -> str:
    return " ".join(text.split())
