# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What z3 says of the outcomes of policies: by the engine on random events, by the classes, and by a second solver.

Counts: ``-rP``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from forewarn.analysis.event_space.policies import read
from forewarn.analysis.policy_outcome import ERROR, EXPLANATION
from forewarn.analysis.proof import Example, Proof
from forewarn.analysis.report.decisions import SpaceDecisions
from forewarn.analysis.smt.encode.decisions import OutcomeFormula
from forewarn.analysis.smt.solver import SolverAnswer
from forewarn.analysis.smt.terms import Formula, conj, neg, same
from forewarn.compiler.policies import load_policies
from forewarn.errors import InputError
from forewarn.policy.artifact import Artifact
from forewarn.policy.decision import Decision
from forewarn.policy.engine import PolicySet
from forewarn.policy.params import convert
from tools.fixtures.policy_files import SHIPPED, loaded
from tools.generators.fixed_inputs import Case, fixed, not_listed
from tools.generators.wild_policies import case, policy
from tools.judges.second_solver import answer
from tools.judges.smt_facts import smt2
from tools.suite.sizes import NAME, SEED, SIZE, enough

POLICIES = SIZE.smt_policies
PARTS = 2
EVENTS = 6  # for each policy
MOST = 4_000  # classes, of which each is compared


def _artifacts(part: int, directory: Path) -> Iterator[tuple[str, Artifact, Random]]:
    for number in range(part, POLICIES, PARTS):
        chance = Random(f"{SEED} {number}")
        text = policy(chance)
        yield text, loaded(directory, text), chance
    for path in SHIPPED[part::PARTS]:
        yield path.name, load_policies([path]), Random(path.name)


def _params(proof: Proof, given: dict[str, Any]) -> list[Formula]:
    """Return that parameters have the values given, and others their defaults."""
    entries = {entry["name"]: entry for entry in proof.versions[0].params}
    parts: list[Formula] = []
    for name, (kind, term, is_given) in proof.params.varying().items():
        value = convert(given.get(name, entries[name].get("default")), kind)
        parts.append(is_given if name in given or is_given is True else neg(is_given))
        if isinstance(value, float):
            over, under = value.as_integer_ratio()
            parts.append(term * under == over)
        else:
            parts.append(same(term, proof.problem.texts.code(value)))
    return parts


def _is(one: OutcomeFormula, decision: Decision) -> bool:
    verdict = next(verdict for verdict in decision.verdicts if verdict.policy == one.policy)
    failed = one.how in (ERROR, EXPLANATION)
    return (one.output, one.rule, failed) == (verdict.output, verdict.rule, verdict.error is not None)


def _event(text: str, artifact: Artifact, chance: Random) -> tuple[Case, dict[str, Any], Decision] | None:
    """Return a random event with the engine's decision, None where the policies refuse its parameters."""
    seen = case(chance)
    names = {entry["name"] for entry in artifact.params}
    given = {name: value for name, value in seen.params.items() if name in names}
    try:
        engine = PolicySet(artifact, given)
    except InputError:
        return None
    document, facts = seen.document(), seen.given()
    decision = engine.decide(document, facts)[0]
    if not decision.verdicts:
        return None
    return Case(document.events[0], document, facts, {}), given, decision


@pytest.mark.parametrize("part", range(PARTS))
def test_the_engine_decides_random_events_as_z3_says(part: int, tmp_path: Path) -> None:
    counts: Counter[str] = Counter()
    for text, artifact, chance in _artifacts(part, tmp_path):
        proof = Proof([artifact])
        events = [one for _ in range(EVENTS) if (one := _event(text, artifact, chance)) is not None]
        formulas = [[*fixed(proof.inputs, {}, one), *_params(proof, given)] for one, given, _decision in events]
        texts = proof.problem.texts.listed[:]
        for (case_, given, decision), inputs in zip(events, formulas):
            here = conj([*inputs, *not_listed(proof.inputs, case_, texts)])
            counts["events"] += 1
            for policy_ in proof.decisions[0].policies:
                right = [outcome.when for outcome in policy_.outcomes if _is(outcome, decision)]
                others = [outcome for outcome in policy_.outcomes if not _is(outcome, decision)]
                where = (text, case_, given, decision.reason)
                assert any(proof.ask(here, when) is SolverAnswer.POSSIBLE for when in right), where
                for other in others:
                    said = proof.ask(here, other.when)
                    counts["others impossible" if said is SolverAnswer.NEVER else "others open"] += 1
                    assert said is SolverAnswer.NEVER or proof.not_understood, (where, other)
            approved = proof.decisions[0].approved
            assert proof.ask(here, approved if decision.output == "approve" else neg(approved)) is SolverAnswer.POSSIBLE
            wrong = proof.ask(here, neg(approved) if decision.output == "approve" else approved)
            assert wrong is SolverAnswer.NEVER or proof.not_understood, (text, case_, decision)
    print(dict(counts))
    assert counts["events"] > POLICIES // PARTS * EVENTS // 2
    assert counts["others impossible"] > 2 * counts["events"]


@pytest.mark.parametrize("part", range(PARTS))
def test_outcomes_agree_with_a_second_solver(part: int, tmp_path: Path) -> None:
    counts: Counter[str] = Counter()
    for text, artifact, chance in _artifacts(part, tmp_path):
        proof = Proof([artifact])
        for one in (one for policy_ in proof.decisions[0].policies for one in policy_.outcomes):
            shown = proof.shows(one.when, usual=chance.random() < 0.3)
            kind = "shown" if isinstance(shown, Example) else "never" if shown is None else "unproven"
            counts[kind] += 1
            if kind == "unproven" or (kind == "shown" and chance.random() < 0.8):
                continue
            said = answer(smt2(proof.solver, one.when))
            counts[f"{kind}: {said} for cvc5"] += 1
            assert said != ("sat" if kind == "never" else "unsat"), (text, one)
    print(dict(counts))
    assert counts["never: unsat for cvc5"] >= enough(POLICIES // PARTS // 2)
    assert counts["shown: sat for cvc5"] >= enough(POLICIES // PARTS // 4)
    if NAME != "small":  # where one policy that is hard to analyse is already many
        assert counts["never: unknown for cvc5"] <= counts["never"] // 10
        assert counts["unproven"] <= (counts["shown"] + counts["never"]) // 10


@pytest.mark.parametrize("part", range(PARTS))
def test_outcomes_by_the_classes(part: int, tmp_path: Path) -> None:
    counts: Counter[str] = Counter()
    for text, artifact, _chance in _artifacts(part, tmp_path):
        reading = read(artifact)
        sizes = math.prod(len(dimension.values) for dimension in reading.symbols.dimensions())
        if sizes > MOST or reading.symbols.opaque:
            counts["too large" if sizes > MOST else "not understood"] += 1
            continue
        proof = Proof([artifact])
        found: set[tuple[str, str, str | None]] = set()
        for space in reading.spaces():
            decided = SpaceDecisions(reading, space)
            for one in (one for regions in decided.policies for one in regions):
                number = decided.space.first(one.classes)
                decision = proof.decide(decided.space.witness(number))
                verdict = next(verdict for verdict in decision.verdicts if verdict.policy == one.policy)
                if (verdict.output, verdict.rule) == (one.output, one.rule):
                    found.add((one.policy, one.how, one.rule))
        for outcome in (one for policy_ in proof.decisions[0].policies for one in policy_.outcomes):
            said = proof.ask(outcome.when)
            key = (outcome.policy, outcome.how, outcome.rule)
            counts[f"{said.value}, {'with' if key in found else 'without'} a class"] += 1
            assert (said is not SolverAnswer.NEVER) or key not in found, (text, key)
    print(dict(counts))
    assert counts["never, without a class"] >= enough(4)
    assert counts["possible, with a class"] > POLICIES // PARTS // 2
