# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Conditions over events of which nothing is fixed: what z3 proves impossible no random event does, and what it finds
possible an event does, which the engine decides so. Counts: ``-rP``.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from forewarn.analysis.policy_outcome import ERROR
from forewarn.analysis.proof import Example, Proof
from forewarn.compiler.policies import PolicyError
from forewarn.policy.decision import Verdict
from forewarn.policy.engine import PolicySet
from forewarn.policy.functions.timevalues import format_duration, format_timestamp
from tools.fixtures.policy_files import loaded
from tools.generators.fixed_inputs import NAMES, SCALAR_PARAMS, case
from tools.generators.smt_expressions import Writer
from tools.suite.sizes import NAME, SEED, SIZE, enough

PARTS = 2
EVENTS = 30
_PARAMS = """
name: p
extra_values: {EventType: [Other], EventStatus: [Paused]}
params:
  - {name: flag, type: bool, default: true}
  - {name: n, type: int, default: 1}
  - {name: ratio, type: double, default: 1.0}
  - {name: label, type: string, default: a}
  - {name: wait, type: duration, default: 5m}
  - {name: since, type: timestamp, default: "2026-01-31T12:00:00Z"}
  - {name: zone, type: string, default: UTC, enum: [UTC, Europe/Berlin, "-08:30", Nowhere]}
  - {name: names, type: list(string), default: [web_0, b]}
rule:
  match:
    - id: r
      output: approve
      condition: """


def _how(verdict: Verdict) -> tuple[str | None, bool]:
    return verdict.rule, verdict.error is not None


@pytest.mark.parametrize("about", ["anything", "names"])
@pytest.mark.parametrize("part", range(PARTS))
def test_what_is_possible_happens_and_nothing_else_does(part: int, about: str, tmp_path: Path) -> None:
    counts: Counter[str] = Counter()
    for number in range(part, SIZE.smt_conditions, PARTS):
        chance = Random(f"{SEED} {about} {number}")
        writer = Writer(chance)
        source = writer.about_names() if about == "names" else writer.make("bool", chance.randint(1, 3))
        try:
            artifact = loaded(tmp_path, _PARAMS + json.dumps(source))
        except PolicyError:
            counts["refused"] += 1
            continue
        counts["conditions"] += 1
        proof, engine_of = Proof([artifact]), PolicySet
        never: set[tuple[str | None, bool]] = set()
        possible = {(one.rule, one.how == ERROR): one for one in proof.decisions[0].policies[0].outcomes}
        for way in (("r", False), ("r", True), (None, False)):
            outcome = possible.get(way)
            shown = None if outcome is None else proof.shows(outcome.when, usual=False)
            if shown is None:
                never.add(way)
            counts["possible" if isinstance(shown, Example) else "never" if shown is None else "unproven"] += 1
            counts["not understood"] += bool(proof.not_understood)
        for _ in range(EVENTS):
            one = case(chance, today=True, repeated=True)
            given = {name: one.params[name] for name in SCALAR_PARAMS}
            given["wait"], given["since"] = format_duration(given["wait"]), format_timestamp(given["since"])
            if chance.random() < 0.7:
                given["names"] = chance.sample((*NAMES, "Freeze", "", "a", "x.y"), chance.choice((0, 1, 3, 8)))
            given["zone"] = chance.choice(("UTC", "Europe/Berlin", "-08:30", "Nowhere"))
            verdict = engine_of(artifact, given).decide(one.document, one.facts)[0].verdicts[0]
            assert _how(verdict) not in never, (source, verdict.reason, one)
            counts["events"] += 1
    print(dict(counts))
    # Each condition has three ways. A few conditions may all be hard ones, and counts of names are.
    ways = (0.5 if about == "anything" else 1) * (2 if NAME == "small" else 1)
    assert counts["unproven"] <= ways * counts["conditions"]
    assert min(counts["possible"], counts["never"]) >= enough(counts["conditions"] // 10)
