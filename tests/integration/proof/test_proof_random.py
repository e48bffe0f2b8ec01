# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A hundred thousand random events are decided as the analysis says of their class. Counts: ``-rP``.

At size small, test_proof_classes.py shows that of each region of these policies, and test_proof_wild.py with random
events of policies that are harder to analyse.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
from forewarn.analysis.engine import Engine
from forewarn.analysis.event_space.policies import read
from forewarn.analysis.report.decisions import SpaceDecisions
from forewarn.analysis.witness import Witness
from forewarn.compiler.policies import load_policies
from forewarn.policy.functions.timevalues import format_duration
from tools.fixtures.policy_files import SHIPPED
from tools.generators.random_events import case
from tools.judges.class_agreement import agrees, joint_decision
from tools.judges.event_classes import EventClasses
from tools.suite.sizes import SEED

pytestmark = pytest.mark.full
EVENTS = 100_000


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_random_events_are_decided_as_their_class(path: Path) -> None:
    reading = read(load_policies([path]))
    (space,) = reading.spaces()
    decided, classes, engine, chance = (
        SpaceDecisions(reading, space),
        EventClasses(reading, space),
        Engine(reading.artifact, reading.fixed),
        random.Random(20_26 + SEED),
    )
    types = {name: entry["type"] for name, entry in reading.symbols.params.items()}
    outcomes: Counter[int] = Counter()
    answers: Counter[tuple[str, str | None]] = Counter()
    for _ in range(EVENTS // len(SHIPPED)):
        event, document, facts, params = case(space, types, chance)
        number = classes.locate(event, facts, params, ())
        assert number is not None, (event, facts, params)
        given = {k: format_duration(v) if types[k] == "duration" else v for k, v in params.items()}
        decision = engine.decide(Witness(event.as_dict(), document, facts, given))
        assert agrees(joint_decision(decided, number), decision), (space.values(number), event, decision)
        outcomes[number] += 1
        answers[decision.output, decision.rule] += 1
    print(f"{path.stem}: {sum(outcomes.values()):,} events of {len(outcomes):,} classes, {len(answers)} decisions")
    assert len(outcomes) > 50
    assert len(answers) >= 3
