# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every class of the shipped policies, decided by the engine and by two other CEL engines, is what the analysis says.

Below size full, one class of each region and some others. Run with ``-rP`` to see the counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from forewarn.analysis.engine import Engine
from forewarn.analysis.event_space.policies import Reading, read
from forewarn.analysis.report.decisions import Region, SpaceDecisions
from forewarn.compiler.policies import load_policies
from tools.fixtures.policy_files import SHIPPED
from tools.judges.cel_oracles import CelPython, Google
from tools.judges.class_agreement import agrees, joint_decision
from tools.judges.policy_oracle import Answer, Oracle
from tools.suite.sizes import SEED, SIZE

ENGINES: dict[str, type[CelPython] | type[Google]] = {"cel-python": CelPython, "cel-expr-python": Google}


def answer_of(region: Region) -> Answer:
    """Return what the oracle has to say about the classes of a region; no shipped policy has a limit."""
    assert "limit" not in region.data
    group, prepares = region.data.get("group", "hold"), bool(region.data.get("prepare"))
    return Answer(region.output, region.rule, region.how, group, prepares=prepares)


def decided_spaces(reading: Reading) -> Iterator[SpaceDecisions]:
    for space in reading.spaces():
        yield SpaceDecisions(reading, space)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_every_class_of_a_shipped_policy(path: Path) -> None:
    reading = read(load_policies([path]))
    engine = Engine(reading.artifact, reading.fixed)
    oracles = {name: Oracle(path, engine) for name, engine in ENGINES.items()}
    classes, seen = 0, set()
    for decided in decided_spaces(reading):
        regions = decided.policies[0]
        region_of = {number: region for region in regions for number in decided.space.members(region.classes)}
        assert len(region_of) == decided.space.reachable.bit_count()
        chosen = Random(f"{SEED} {path.stem}").sample(sorted(region_of), min(len(region_of), SIZE.policy_classes))
        for number in sorted({decided.space.first(region.classes) for region in regions} | {*chosen}):
            region = region_of[number]
            witness = decided.space.witness(number)
            decision = engine.decide(witness)
            assert agrees(joint_decision(decided, number), decision), decided.space.values(number)
            expected = answer_of(region)
            for name, oracle in oracles.items():
                assert oracle.decide(witness.as_dict()) == expected, (name, decided.space.values(number))
            seen.add(expected)
        classes += len(region_of)
    evaluated = ", ".join(f"{oracle.evaluations:,} by {name}" for name, oracle in oracles.items())
    print(f"{path.stem}: {classes:,} classes, {len(seen)} ways to decide; different evaluations: {evaluated}")
    assert classes > 50
    assert len({answer.how for answer in seen}) >= 3


def test_combined_policies_agree_with_both_oracles() -> None:
    """All shipped policies at once have 200,000 classes and more: one is examined for each combination of what each
    policy says, of every event type and status.
    """
    reading = read(load_policies(SHIPPED))
    engine = Engine(reading.artifact, reading.fixed)
    oracles = {policy.name: Oracle(path, CelPython) for path, policy in zip(SHIPPED, reading.policies, strict=True)}
    ways = classes = 0
    for decided in decided_spaces(reading):
        classes += decided.space.reachable.bit_count()
        for regions, found in decided.regions():
            ways += 1
            number = decided.space.first(found)
            witness = decided.space.witness(number)
            assert agrees(joint_decision(decided, number), engine.decide(witness)), decided.space.values(number)
            case = witness.as_dict()
            for region in regions:
                own = {k: v for k, v in case["params"].items() if k in oracles[region.policy].params}
                answer = oracles[region.policy].decide({**case, "params": own})
                assert answer == answer_of(region), decided.space.values(number)
    print(f"all together: {classes:,} classes; {ways:,} combinations of a type, a status and what each policy says")
    assert classes > 200_000
    assert ways > 100
