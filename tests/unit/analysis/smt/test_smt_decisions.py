# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Outcomes of a policy as formulas: each event has the outcome that the engine says, and no other."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from forewarn.analysis.policy_outcome import DOUBT, ERROR, EXPLANATION, NO_RULE, REFUSED, RULE
from forewarn.analysis.proof import Proof
from forewarn.analysis.smt.encode.decisions import OutcomeFormula
from forewarn.analysis.smt.terms import Formula, conj, neg, same
from forewarn.errors import InputError
from forewarn.events import Vm, parse_document
from forewarn.policy.artifact import Artifact
from forewarn.policy.decision import Decision, Facts
from forewarn.policy.engine import PolicySet
from tools.fixtures.policy_files import loaded
from tools.judges import smt_facts

FIRST = """
name: first
params: [{name: limit, type: int, default: 10, max: 20}]
extra_values: {EventType: [Hibernate]}
rule:
  variables: [{name: short, expression: event.DurationInSeconds < params.limit}]
  match:
    - {id: off, condition: "false", rule: {match: [{id: all, output: hold}]}}
    - id: group
      rule:
        match:
          - id: freeze
            condition: event.EventType == 'Freeze' && variables.short
            output: approve
            explanation: string(60 / event.DurationInSeconds)
    - id: "on"
      condition: "true"
      rule: {match: [{id: preempt, condition: event.EventType == 'Preempt', output: hold}]}
    - id: nested
      condition: event.EventType == 'Reboot'
      rule:
        match:
          - {id: long, condition: event.DurationInSeconds > 60, output: hold}
          - id: inner
            condition: event.DurationInSeconds > 30
            rule: {match: [{id: even, condition: event.DurationInSeconds % 2 == 0, output: approve}]}
    - {id: failing, condition: event.DurationInSeconds >= 0 || event.EventType == 'Terminate', output: approve}
    - {id: last, condition: event.EventType != 'Hibernate', output: hold}
"""
SECOND = """
name: second
rule:
  match:
    - {id: freeze, condition: event.EventType == 'Freeze' && event.DurationInSeconds == 5, output: hold}
"""
CASES = [
    (type_, status, seconds, limit)
    for type_ in ("Freeze", "Reboot", "Preempt", "Terminate", "Hibernate", "Unknown")
    for status, seconds in (
        *(("Scheduled", one) for one in (None, -1, 0, 5, 15, 31, 32, 61)),
        ("Paused", 5),
        ("Started", 5),
    )
    for limit in (10, 20, 21)
]


def decided(artifact: Artifact, type_: str, status: str, seconds: int | None, limit: int) -> Decision | None:
    """Return the engine's decision, None where the policies refuse the parameter."""
    fields = {} if seconds is None else {"DurationInSeconds": seconds}
    event = {"EventId": "a", "EventType": type_, "EventStatus": status, "Resources": ["vm"], "NotBefore": "", **fields}
    document = parse_document(json.dumps({"DocumentIncarnation": 1, "Events": [event]}), artifact.api_version)
    now = datetime(2026, 1, 1, tzinfo=timezone.utc)
    try:
        return PolicySet(artifact, {"limit": limit}).decide(document, Facts(now, Vm(name="vm"), {}))[0]
    except InputError:
        return None


def formula(proof: Proof, type_: str, status: str, seconds: int | None, limit: int) -> Formula:
    inputs, code = proof.inputs, proof.problem.texts.code
    value, there = inputs.event_field("DurationInSeconds")
    return conj(
        (
            same(inputs.text("EventType")[0], code(type_)),
            same(inputs.text("EventStatus")[0], code(status)),
            neg(there) if seconds is None else conj((there, value == seconds)),
            proof.params.varying()["limit"][1] == limit,
        )
    )


def is_right(one: OutcomeFormula, decision: Decision | None) -> bool:
    """Return whether an outcome is the one of the engine; of several, by its policy's verdict."""
    if decision is None:
        return one.how == REFUSED
    verdicts = [verdict for verdict in decision.verdicts if verdict.policy == one.policy]
    if not verdicts or (verdicts[0].output == "hold" and verdicts[0].rule is None):
        return one.how == DOUBT
    (verdict,) = verdicts
    how = NO_RULE if verdict.output == "abstain" else RULE
    if verdict.error is not None:
        how = EXPLANATION if verdict.rule == "group.freeze" and "60 /" in (verdict.error + verdict.reason) else ERROR
    wanted = (how,) if how != EXPLANATION else (EXPLANATION, ERROR)
    return one.how in wanted and (one.output, one.rule) == (verdict.output, verdict.rule)


@pytest.mark.parametrize("texts", [[FIRST], [FIRST, SECOND]])
def test_each_event_has_the_outcome_of_the_engine(texts: list[str], tmp_path: Path) -> None:
    artifact = loaded(tmp_path, *texts)
    wider = loaded(tmp_path, FIRST.replace("max: 20", "max: 30"))  # some version runs with each value
    proof = Proof([artifact, wider])
    formulas = {case: formula(proof, *case) for case in CASES}
    facts = smt_facts.Facts(proof.problem, *proof.inputs.facts())
    together = proof.decisions[0]
    hows: set[str] = set()
    for case in CASES:
        decision = decided(artifact, *case)
        for policy in together.policies:
            held = [one for one in policy.outcomes if facts.possible(formulas[case], one.when)]
            assert len(held) == 1, (case, [(one.how, one.rule) for one in held])
            assert is_right(held[0], decision), (case, held[0].how, held[0].rule, decision)
            assert facts.certain(held[0].when, formulas[case])
            asked = held[0].how not in (REFUSED, DOUBT)
            assert facts.possible(formulas[case], policy.evaluated) is asked, case
            hows.add(held[0].how)
        output = "hold" if decision is None else decision.output
        abstain = (
            decision is not None and decision.verdicts and all(one.output == "abstain" for one in decision.verdicts)
        )
        assert facts.possible(formulas[case], together.approved) is (output == "approve"), case
        assert facts.possible(formulas[case], together.uncovered) is bool(abstain), case
        assert facts.possible(formulas[case], together.held) is (output == "hold" and not abstain), case
    assert hows == {RULE, ERROR, EXPLANATION, DOUBT, NO_RULE, REFUSED}


def test_matches_in_the_order_of_the_file(tmp_path: Path) -> None:
    proof = Proof([loaded(tmp_path, FIRST)])
    every = list(proof.decisions[0].policies[0].every())
    paths = ["off", "off.all", "group", "group.freeze", "on", "on.preempt", "nested", "nested.long", "nested.inner"]
    assert [one.path for one in every] == [*paths, "nested.inner.even", "failing", "last"]
    assert [one.number for one in every] == list(range(1, 13))
    assert {one.path for one in every if one.conditional} == {
        *("group.freeze", "on.preempt", "nested", "nested.long", "nested.inner", "nested.inner.even", "failing", "last")
    }
    assert every[0].holds is False
    assert every[2].holds is True


def test_an_outcome_knows_its_rule(tmp_path: Path) -> None:
    proof = Proof([loaded(tmp_path, FIRST)])
    for one in proof.decisions[0].policies[0].outcomes:
        data: dict[str, Any] = dict(one.data)
        assert bool(data) is (one.how == RULE), one.how
        assert (one.rule is None) is (one.how in (DOUBT, REFUSED, NO_RULE))
        if data:
            assert data["id"] == str(one.rule).rpartition(".")[2]
