# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which rules are dead, and which can fail, in generated policies: z3 proves both what is claimed and what is not.

Counts: ``-rP``.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
import z3  # type: ignore[import-untyped]  # has no types
from forewarn.analysis.verify.verify import verify
from forewarn.compiler.policies import load_policies
from tools.generators.z3_policies import Maker, World, fates, rules, text
from tools.suite.sizes import SEED, SIZE, enough

PARTS = 4  # so that they can be run beside each other
WORLD = World()  # once: the names of its types may not be declared again


def possible(formula: object) -> bool:
    solver = z3.Solver()
    solver.set("timeout", 20_000)
    solver.add(formula)
    answer = solver.check()
    assert answer != z3.unknown, formula
    return bool(answer == z3.sat)


@pytest.mark.parametrize("part", range(PARTS))
def test_dead_rules_are_dead_and_others_are_not(part: int, tmp_path: Path) -> None:
    counts = Counter[str]()
    for number in range(SEED + part, SEED + SIZE.z3_policies, PARTS):
        chance = random.Random(number)
        some = rules(Maker(WORLD, chance), chance)
        path = tmp_path / f"{number}.yml"
        path.write_text(text(some))
        report = verify(load_policies([path]))
        assert not report.not_understood
        # These policies know no time that is 292 years away.
        within = [one for one in report.findings if "duration out of range" not in one.message]
        claimed, within_centuries = ({(one.rule, one.code) for one in some_} for some_ in (report.findings, within))
        assert all(one.certain for one in report.findings)
        dead_around: list[str] = []
        for rule, (met, failed, wanted) in fates(WORLD, some).items():
            if any(rule.startswith(one + ".") for one in dead_around):
                continue  # reported for the rule around it
            shadowed, unsatisfiable = (rule, "shadowed-rule") in claimed, (rule, "unsatisfiable-rule") in claimed
            assert possible(met) == (not shadowed and not unsatisfiable), (path.read_text(), rule)
            assert possible(wanted) == (not unsatisfiable), (path.read_text(), rule)
            key = (rule, "rule-can-fail")
            assert key in claimed if possible(failed) else key not in within_centuries, (path.read_text(), rule)
            counts["shadowed" if shadowed else "unsatisfiable" if unsatisfiable else "alive"] += 1
            counts["can fail"] += (rule, "rule-can-fail") in claimed
            if shadowed or unsatisfiable:
                dead_around.append(rule)
        counts["policies"] += 1
    print(", ".join(f"{count} {name}" for name, count in sorted(counts.items())))
    assert min(counts["shadowed"], counts["unsatisfiable"], counts["alive"]) >= enough(5)
