# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""No random event refutes what is proven of policies that are hard to analyse. Counts: ``-rP``."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from forewarn.analysis.diff.diff import Difference, compare
from forewarn.analysis.diff.kinds import INCOMPARABLE, LESS, MORE, UNPROVEN
from forewarn.analysis.event_space.policies import Reading, read, read_together
from forewarn.analysis.report.decisions import SpaceDecisions
from forewarn.analysis.verify.verify import verify
from forewarn.errors import InputError
from forewarn.events import Document
from forewarn.policy.artifact import Artifact
from forewarn.policy.decision import Facts
from forewarn.policy.engine import PolicySet
from forewarn.policy.view import DocumentView
from tools.fixtures.policy_files import loaded
from tools.generators.wild_policies import LONG, Case, case, other, policy
from tools.judges.class_agreement import JointDecision, agrees, joint_decision
from tools.judges.event_classes import EventClasses
from tools.suite.sizes import SEED, SIZE, enough, seeds

EVENTS = 40
MOST = 60_000  # classes; of more it takes too long


def size(reading: Reading) -> int:
    """Return the number of classes."""
    return math.prod(len(dimension.values) for dimension in reading.symbols.dimensions())


def engine(artifact: Artifact, seen: Case) -> PolicySet | None:
    """Return the engine with the parameters of a case, or None if the policies refuse them."""
    try:
        return PolicySet(artifact, seen.params)
    except InputError:
        return None


def outcomes(
    decided: list[tuple[SpaceDecisions, EventClasses]], policies: PolicySet, document: Document, facts: Facts
) -> Iterator[JointDecision]:
    """Yield the outcome that the analysis gives each class of a document's first event."""
    params = dict(policies._policies[0].params)
    event, roots = document.events[0], DocumentView(document, facts).roots(document.events[0], params)
    for one, classes in decided:
        number = classes.locate(event, facts, params, roots)
        if number is not None:
            yield joint_decision(one, number)


@pytest.mark.parametrize("part", range(2))
def test_no_event_refutes_what_is_proven(part: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counts: Counter[str] = Counter()
    for number in range(SEED + part, SEED + SIZE.wild_policies, 2):
        chance = random.Random(number)
        text = policy(chance)
        artifact = loaded(tmp_path, text)
        reading = read(artifact)
        if size(reading) > MOST:
            continue
        most = size(reading) // chance.choice((1, 3, 20))
        monkeypatch.setattr("forewarn.analysis.event_space.space.MAX_CLASSES", most)
        decided = [(SpaceDecisions(reading, space), EventClasses(reading, space)) for space in reading.spaces()]
        counts["policies"] += 1
        counts["sliced"] += len(decided) > 1
        counts["sliced by what is not understood"] += any("opaque:" in one[0] for one in decided[0][0].space.cell)
        findings = [(one.code, one.rule, one.message) for one in verify(artifact).findings]
        codes = {code for code, _rule, _message in findings}
        dead = [rule for code, rule, _message in findings if code in ("shadowed-rule", "unsatisfiable-rule")]
        failing = [rule for code, rule, _message in findings if code == "rule-can-fail"]
        unproven = ("invariant-violated", "invariant-not-proven")
        violated = [message.split("'")[1] for code, _rule, message in findings if code in unproven]
        for _ in range(EVENTS):
            seen = case(chance)
            seen = seen._replace(params={k: v for k, v in seen.params.items() if k in reading.symbols.params})
            policies = engine(artifact, seen)
            if policies is None:
                continue
            document, facts = seen.document(), seen.given()
            decision = policies.decide(document, facts)[0]
            where = (text, seen, decision)
            assert [agrees(outcome, decision) for outcome in outcomes(decided, policies, document, facts)] == [True], (
                where
            )
            verdict = decision.verdicts[0]
            if verdict.rule and verdict.error is None:
                assert not any(f"{verdict.rule}.".startswith(f"{rule}.") for rule in dead), where
            if verdict.rule and verdict.error is not None:
                assert verdict.rule in failing, where
            if decision.output == "approve":
                counts["approved"] += 1
                assert "nothing" in violated, where
                assert "known" in violated or seen.fields.get("DurationInSeconds") != -1, where
                assert "mine" in violated or seen.facts["name"] != "WEB_0", where
            unknown, longer = (
                policies.decide(seen.document(DurationInSeconds=seconds), facts)[0].output for seconds in (-1, LONG)
            )
            if (unknown, longer) == ("approve", "hold"):
                counts["unknown durations"] += 1
                assert "unknown-duration-approved" in codes, where
            counts["events"] += 1
    print(dict(counts))
    assert counts["policies"] > enough(SIZE.wild_policies // 8)
    assert min(counts["sliced by what is not understood"], counts["unknown durations"]) >= enough(2)
    assert min(counts["approved"], counts["events"] - counts["approved"]) >= enough(EVENTS + 1)


def allows(found: Difference, effect: str) -> bool:
    """Return whether what a comparison says is true if there is a change with this effect."""
    if found.verdict == UNPROVEN:  # what was found, or may be, is listed unless it says that there may be others
        return found.incomplete or any(change.effect in (effect, INCOMPARABLE) for change in found.changes)
    return found.verdict in (effect, INCOMPARABLE)


def test_no_event_refutes_that_nothing_has_changed(tmp_path: Path) -> None:
    counts: Counter[str] = Counter()
    for number in seeds(SIZE.wild_changes):
        chance = random.Random(number)
        text = policy(chance)
        artifacts = [loaded(tmp_path, one) for one in (text, other(text, chance))]
        if size(read_together(artifacts)[0]) > MOST:
            continue
        found = compare(artifacts[0], artifacts[1])
        counts[found.verdict] += 1
        entries = [entry for artifact in artifacts for entry in artifact.data["policies"][0]["params"]]
        limited = {entry["name"] for entry in entries if {"min", "max", "enum"} & entry.keys()}  # others: by default
        for _ in range(EVENTS):
            seen = case(chance)
            seen = seen._replace(params={k: v for k, v in seen.params.items() if k in limited})
            sides = [engine(artifact, seen) for artifact in artifacts]
            outputs = [
                "hold" if side is None else side.decide(seen.document(), seen.given())[0].output for side in sides
            ]
            where = (text, seen, found)
            if outputs == ["hold", "approve"]:
                assert allows(found, MORE), where
            elif outputs == ["approve", "hold"]:
                assert allows(found, LESS), where
            counts["changed"] += outputs[0] != outputs[1]
    print(dict(counts))
    assert min(counts[MORE], counts[LESS], counts["changed"]) >= enough(6)
