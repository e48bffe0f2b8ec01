# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random policies without what notes call needless: the engine decides no event otherwise. What is planted is noted."""

from __future__ import annotations

import copy
import random
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import pytest
from forewarn.analysis.event_space.policies import read
from forewarn.analysis.verify.finding import ProofFinding
from forewarn.analysis.verify.verify import verify
from forewarn.errors import ForewarnError
from forewarn.events import LATEST_API_VERSION
from forewarn.policy.artifact import Artifact
from forewarn.policy.decision import Decision
from tools.generators.drawn_events import Observation, pool, several
from tools.generators.drawn_policies import Data, DrawnPolicies, drawn, of
from tools.judges.claim_results import engine
from tools.judges.claims import compiled, within
from tools.suite.sizes import SIZE, enough, seeds

EVENTS = 700
SECONDS = 10.0  # of the processor, after which a proof is given up
DEAD = ("shadowed-rule", "unsatisfiable-rule")
CODES = ("redundant-rule", "simpler-condition")
_PART = re.compile(r"`(.*?)` changes nothing")


@pytest.fixture(scope="module")
def events() -> list[Observation]:
    """Return events to judge by."""
    return pool(random.Random(11), LATEST_API_VERSION, EVENTS)


def policies() -> Iterator[tuple[int, DrawnPolicies, Artifact]]:
    """Yield random policies, each with its number."""
    for number in seeds(SIZE.needless_policies):
        chance = random.Random(f"redundant {number}")
        while True:
            one = drawn(chance, LATEST_API_VERSION, small=True)
            try:
                artifact = compiled(*one.texts)
                read(artifact)
            except ForewarnError:  # also where two policies declare a parameter that needs a value otherwise
                continue
            yield number, one, artifact
            break


def proven(artifact: Artifact) -> tuple[ProofFinding, ...] | None:
    """Return what verify finds, None if the proof takes too long."""
    report = within(SECONDS, lambda: verify(artifact))
    return None if report is None else tuple(report.findings)


def blocks(data: Data, path: str) -> tuple[list[Data], Data]:
    """Return a rule of a policy, and the block that it is in."""
    block: list[Data] = data["rule"]["match"]
    *outer, last = path.split(".")
    for name in outer:
        block = next(one for one in block if one["id"] == name)["rule"]["match"]
    return block, next(one for one in block if one["id"] == last)


def without_part(condition: str, part: str) -> str | None:
    """Return a condition with a literal instead of a part, None where its text does not say which part is meant."""
    places = [found.start() for found in re.finditer(re.escape(part), condition)]
    if len(places) != 1:
        return None
    before, after = condition[: places[0]], condition[places[0] + len(part) :]
    while before.endswith("(") and after.startswith(")"):
        before, after = before[:-1], after[1:]
    beside = before[-3:], after[:4]
    neutral = "true" if any("&&" in one for one in beside) else "false" if any("||" in one for one in beside) else None
    return None if neutral is None else f"{before}({neutral}){after}"


def applied(drawing: DrawnPolicies, notes: list[tuple[str, str, str, str]]) -> tuple[DrawnPolicies, int]:
    """Return policies without what the notes are about, and how many parts were left out."""
    changed = copy.deepcopy(drawing.data)
    by_name, count = {data["name"]: data for data in changed}, 0
    for policy, code, rule, message in sorted(notes, key=lambda one: one[1], reverse=True):  # conditions first
        block, match = blocks(by_name[policy], rule)
        if code == "redundant-rule":
            block.remove(match)
            count += 1
            continue
        for part in _PART.findall(message):
            shorter = without_part(match["condition"], part)
            match["condition"] = match["condition"] if shorter is None else shorter
            count += shorter is not None
    return of(changed, drawing.api_version), count


def behaviour(decision: Decision) -> tuple[Any, ...]:
    """Return all that a runner acts on, and whether a rule had no value."""
    errors = [verdict.error is not None for verdict in decision.verdicts]
    outputs = [verdict.output for verdict in decision.verdicts]
    names = ("output", "approver", "group", "prepare", "recover", "notify")
    return (*(getattr(decision, name) for name in names), errors, outputs)


def judged(old: Artifact, new: Artifact, params: Mapping[str, Any], events: list[Observation]) -> None:
    """Raise AssertionError where two versions differ."""
    engines = engine(old, params), engine(new, params)
    if None in engines:
        return
    for seen in events:
        decisions = [one.decide(seen.document, seen.facts)[0] for one in engines if one is not None]
        assert behaviour(decisions[0]) == behaviour(decisions[1]), (seen, params)


def planted(data: Data, dead: Collection[str | None], chance: random.Random) -> list[tuple[Data, str, str]]:
    """Return versions of a policy with something needless, each with the rule that a note has to be about.

    The last item is a rule that may be shadowed instead, "" if none may: a rule whose events all meet the narrow one
    before it. Then either could go, but not both.
    """
    rules = [one for one in data["rule"]["match"] if "condition" in one and "rule" not in one and one["id"] not in dead]
    if not rules:
        return []
    place = data["rule"]["match"].index(chance.choice(rules))
    twice, narrow = copy.deepcopy(data), copy.deepcopy(data)
    match = twice["rule"]["match"][place]
    match["condition"] = f"({match['condition']}) {chance.choice(('&&', '||'))} ({match['condition']})"
    match = narrow["rule"]["match"][place]
    added = {**match, "id": "narrow", "condition": f"({match['condition']}) && event.EventId != 'a'"}
    narrow["rule"]["match"].insert(place, added)
    return [(twice, match["id"], ""), (narrow, "narrow", match["id"])]


def judge(
    one: DrawnPolicies, findings: Sequence[ProofFinding], events: list[Observation], seed: int
) -> tuple[int, int, set[str]]:
    """Return how many rules and parts are needless, and the rules with notes. Raises AssertionError if one is not."""
    artifact = compiled(*one.texts)
    notes = [(each.policy, each.code, each.rule or "", each.message) for each in findings if each.code in CODES]
    shorter, count = applied(one, notes)
    without = compiled(*shorter.texts)
    chance = random.Random(seed)
    for params in several(chance, sorted(one.params()), 2, one.required()) if count else ():
        judged(artifact, without, params, events)
    removed = sum(code == "redundant-rule" for _policy, code, _rule, _message in notes)
    return removed, count - removed, {rule for _policy, _code, rule, _message in notes}


def test_without_what_is_noted_nothing_changes(events: list[Observation]) -> None:
    rules = parts = given_up = 0
    for number, one, artifact in policies():
        findings = proven(artifact)
        if findings is None:
            given_up += 1
            continue
        removed, shortened, _noted = judge(one, findings, events, number)
        rules, parts = rules + removed, parts + shortened
        if len(one.data) > 1:
            continue
        dead = {finding.rule for finding in findings if finding.code in DEAD}
        for data, rule, instead in planted(one.data[0], dead, random.Random(number)):
            other = of([data], one.api_version)
            findings = proven(compiled(*other.texts))
            if findings is None:
                given_up += 1
                continue
            removed, shortened, noted = judge(other, findings, events, number)
            shadowed = {finding.rule for finding in findings if finding.code == "shadowed-rule"}
            assert rule in noted or instead in shadowed, data
            rules, parts = rules + removed, parts + shortened
    print(f"{rules} rules and {parts} parts removed, {given_up} proofs given up")
    assert given_up < SIZE.needless_policies  # of up to three proofs for each
    assert min(rules, parts) >= enough(2)
