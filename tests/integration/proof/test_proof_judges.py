# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The judges of the prover notice lies: findings left out, made up, or shown by another event; verdicts exchanged."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest
import yaml
from forewarn.events import LATEST_API_VERSION
from tools.generators.drawn_events import Observation, pool
from tools.generators.drawn_policies import DrawnPolicies, of
from tools.judges import claims
from tools.judges.claim_diff_judge import DiffJudge
from tools.judges.claim_judge import VerifyJudge
from tools.judges.claim_results import CASE_KINDS, DIFF_KINDS, VERIFY_KINDS, Results
from tools.judges.claims import (
    ALIKE,
    GAVE_UP,
    INCOMPARABLE,
    LESS,
    MORE,
    NO_CHANGE,
    Finding,
    Proof,
    compiled,
    diff,
    verify,
)

EVENTS = 2000
# A policy about which verify finds much, each of it true.
RICH = """
name: p0
params: []
rule:
  match:
    - {id: brief, condition: event.EventType == 'Freeze' && event.DurationInSeconds < 9, output: approve, approver: any}
    - {id: role, condition: "vm.tags['role'] == 'web'", output: hold}
    - {id: mine, condition: event.EventSource == 'User' && event.EventType != 'Freeze', output: approve}
    - id: drained
      condition: event.EventType == 'Reboot'
      output: approve
      prepare: [{run: [/usr/bin/drain]}]
    - id: lead
      condition: event.EventType == 'Redeploy' && leader
      output: approve
      group: ready
      prepare: [{run: [/usr/bin/drain]}]
    - {id: follow, condition: event.EventType == 'Redeploy', output: approve}
    - {id: never, condition: event.EventType == 'Freeze' && event.EventType == 'Reboot', output: approve}
    - {id: last, condition: event.EventType != 'Preempt', output: hold}
    - {id: shadowed, condition: event.EventType == 'Terminate', output: hold}
invariants:
  - {name: nothing, expression: decision == hold}
  - {name: tagged, expression: "decision == hold || vm.tags['env'] != 'x'"}
"""
REMOVED = {  # the kind of claim that is made when findings with a code are left out
    "cannot fail": "rule-can-fail",
    "invariant holds": "invariant-violated",
    "invariant has a value": "invariant-can-fail",
    "covered": "uncovered-events",
    "no unknown duration": "unknown-duration-approved",
    "no follower": "follower-approves",
    "no unprepared": "approved-unprepared",
    "none before others": "approves-before-others",
}
OLD = """
name: p0
params: []
rule:
  match:
    - {id: a, condition: event.EventType == 'Freeze', output: approve}
    - {id: b, condition: event.EventType == 'Reboot', output: hold}
"""
APPROVING = OLD.replace("output: hold", "output: approve")
HOLDING = OLD.replace("output: approve", "output: hold")
ABSTAINING = OLD.replace("'Reboot'", "'Redeploy'")
NOTIFYING = OLD.replace("output: hold}", "output: hold, notify: [{run: [/bin/tell]}]}")


@pytest.fixture(scope="module")
def events() -> list[Observation]:
    """Return events to judge by."""
    return pool(random.Random(5), LATEST_API_VERSION, EVENTS)  # among them one for each lie


@pytest.fixture(scope="module")
def rich() -> tuple[DrawnPolicies, Proof]:
    """Return the policy and what verify finds."""
    drawn = of([yaml.safe_load(RICH)], LATEST_API_VERSION)
    return drawn, verify(*drawn.texts)


@pytest.fixture(scope="module")
def refuted(rich: tuple[DrawnPolicies, Proof], events: list[Observation]) -> set[str]:
    """Return the kinds of claims that the events contradict although nobody lies: none, if all is well."""
    return judged(*rich, events)


def judged(drawn: DrawnPolicies, proof: Proof, events: Sequence[Observation], kind: str | None = None) -> set[str]:
    """Return the kinds of claims that the events contradict; the events end where they contradict ``kind``."""
    results = Results()
    judge = VerifyJudge(drawn, compiled(*drawn.texts), proof, results)
    judge.static()
    engines = judge.engines({})
    assert engines is not None
    chance = random.Random(2)
    for seen in events:
        judge.judge(engines, seen, {}, chance)
        if kind is not None and results.of(kind):
            break
    return {one.kind for one in results.contradictions}


def lie(proof: Proof, *findings: Finding) -> Proof:
    """Return a proof with other findings."""
    return proof._replace(findings=tuple(findings))


def test_all_kinds_of_lies_are_told_here() -> None:
    told = {*REMOVED, "shadowed-rule", "unsatisfiable-rule", "fails for unusual events only"}
    assert told == set(VERIFY_KINDS)
    assert {*VERDICTS, "case of a change"} == set(DIFF_KINDS)


@pytest.mark.parametrize("kind", sorted(REMOVED))
def test_what_is_not_found_is_contradicted(
    rich: tuple[DrawnPolicies, Proof], events: list[Observation], refuted: set[str], kind: str
) -> None:
    drawn, proof = rich
    assert REMOVED[kind] in proof.codes()
    left = [one for one in proof.findings if one.code != REMOVED[kind]]
    assert kind not in refuted
    assert kind in judged(drawn, lie(proof, *left), events, kind)


@pytest.mark.parametrize("code", ["shadowed-rule", "unsatisfiable-rule"])
def test_a_rule_that_lives_is_not_dead(
    rich: tuple[DrawnPolicies, Proof], events: list[Observation], refuted: set[str], code: str
) -> None:
    drawn, proof = rich
    (true,) = proof.having(code)
    assert code not in refuted
    assert code in judged(drawn, lie(proof, *proof.findings, true._replace(rule="last")), events, code)


def test_severity_lowered_for_usual_events_is_noticed(
    rich: tuple[DrawnPolicies, Proof], events: list[Observation], refuted: set[str]
) -> None:
    drawn, proof = rich
    softer = [one._replace(severity="note") if one.code == "rule-can-fail" else one for one in proof.findings]
    kind = "fails for unusual events only"
    assert kind not in refuted
    assert kind in judged(drawn, lie(proof, *softer), events, kind)


def test_unproven_invariant_that_passes_is_noticed(
    rich: tuple[DrawnPolicies, Proof], events: list[Observation]
) -> None:
    drawn, proof = rich
    passed = lie(proof, *(one._replace(severity="note", certain=False) for one in proof.findings))._replace(code=0)
    assert "invariant holds" in judged(drawn, passed, events, "invariant holds")


@pytest.mark.parametrize("code", [kind.removeprefix("case of ") for kind in CASE_KINDS[:-1]])
def test_an_event_that_shows_nothing_is_noticed(rich: tuple[DrawnPolicies, Proof], code: str) -> None:
    drawn, proof = rich
    # The event of another finding, which is decided in another way.
    others = {one.code: one.case for one in proof.findings if one.case is not None}
    other = others["unknown-duration-approved" if code in ("rule-can-fail", "uncovered-events") else "uncovered-events"]
    if code == "invariant-can-fail":
        other = others["uncovered-events"]
    kind = f"case of {code}"
    true = proof.having(code)
    assert true
    lies = [one._replace(case=other) for one in true if one.certain]
    assert kind in judged(drawn, lie(proof, *lies), [])


@pytest.mark.parametrize(("key", "value"), [("output", "hold"), ("rule", "other"), ("policy", "other")])
def test_decision_unlike_the_engines_is_noticed(rich: tuple[DrawnPolicies, Proof], key: str, value: str) -> None:
    drawn, proof = rich
    (one,) = proof.having("unknown-duration-approved")
    assert one.case is not None
    assert not judged(drawn, lie(proof, one), []) & {"case of unknown-duration-approved"}
    wrong = {**one.case, "decision": {**one.case["decision"], key: value}}
    assert "case of unknown-duration-approved" in judged(drawn, lie(proof, one._replace(case=wrong)), [])


VERDICTS: dict[str, tuple[str, set[str]]] = {  # another version, and the verdicts that it refutes
    "no change": (NOTIFYING, {NO_CHANGE}),
    "not more permissive": (APPROVING, {LESS, ALIKE, NO_CHANGE}),
    "not less permissive": (HOLDING, {MORE, ALIKE, NO_CHANGE}),
    "hold to abstain": (ABSTAINING, {LESS, ALIKE, NO_CHANGE}),
}


@pytest.mark.parametrize("kind", sorted(VERDICTS))
def test_verdicts_are_judged(events: list[Observation], kind: str) -> None:
    new, refuted = VERDICTS[kind]
    versions = [of([yaml.safe_load(text)], LATEST_API_VERSION) for text in (OLD, new)]
    found = diff(OLD, new)
    for verdict in (MORE, LESS, INCOMPARABLE, ALIKE, NO_CHANGE):
        results = Results()
        judge = DiffJudge(
            versions, [compiled(*one.texts) for one in versions], found._replace(verdict=verdict), results
        )
        engines = judge.engines({})
        for seen in events if verdict in refuted else events[: len(events) // 4]:
            judge.judge(engines, seen, {})
            if results.of(kind):
                break
        assert (kind in {one.kind for one in results.contradictions}) == (verdict in refuted), verdict


@pytest.mark.parametrize("side", ["old", "new", None])
def test_the_event_of_a_change_is_judged(side: str | None) -> None:
    versions = [of([yaml.safe_load(text)], LATEST_API_VERSION) for text in (OLD, APPROVING)]
    found = diff(OLD, APPROVING)
    changes: list[dict[str, Any]] = [dict(change) for change in found.changes]
    for change in changes:
        parts = [dict(part) for part in change["events"]]
        change["events"] = [{**part, side: {**part[side], "rule": "other"}} if side else part for part in parts]
    results = Results()
    told = found._replace(changes=tuple(changes))
    DiffJudge(versions, [compiled(*one.texts) for one in versions], told, results).static()
    assert results.claims["case of a change"]
    assert bool(results.of("case of a change")) == (side is not None)


def test_proof_beyond_its_time_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The end may arrive while ctypes converts an argument, which makes an error of its own of it."""

    def crash(*_command: object) -> subprocess.CompletedProcess[str]:
        try:
            while True:
                pass
        except BaseException:  # as the command does: this one is not an Exception
            return subprocess.CompletedProcess([], 70, "", "ctypes.ArgumentError: argument 2")

    monkeypatch.setattr(claims, "in_process", crash)
    assert verify(RICH, seconds=0.01).code == GAVE_UP


def test_proof_ends_although_an_interrupt_was_ignored() -> None:
    ignored: list[bool] = []

    def wait() -> None:
        while True:
            pass

    def work() -> None:
        with suppress(BaseException):  # as in a __del__
            wait()
        ignored.append(True)
        wait()

    assert claims.within(0.01, work) is None
    assert ignored
