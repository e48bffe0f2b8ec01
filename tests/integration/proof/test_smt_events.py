# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""For z3, an expression over an event has the value that the evaluator gives it, and no other. Counts: ``-rP``."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from tools.generators.cel_expressions import Generator
from tools.generators.fixed_inputs import case
from tools.generators.smt_expressions import Writer
from tools.judges.expression_judge import Expression, judged
from tools.suite.sizes import SEED, SIZE, enough

EVENTS = 4  # for each expression
PARTS = 2
EXPRESSIONS = SIZE.smt_expressions // PARTS
KINDS = ("bool", "bool", "bool", "int", "string", "timestamp", "duration", "uint")


def _written(chance: Random, exact: bool) -> Expression:
    if not exact:
        return Expression(Generator(chance).expression(), {})
    writer, variables = Writer(chance), {}
    for number in range(chance.choice((0, 0, 1, 2))):
        kind = chance.choice(KINDS)
        variables[f"v{number}"] = writer.make(kind, 2)
        writer.variables.setdefault(kind, []).append(f"v{number}")
    return Expression(writer.make(chance.choice(KINDS), chance.randint(1, 4)), variables)


@pytest.mark.parametrize("exact", [True, False], ids=["exact", "any"])
@pytest.mark.parametrize("part", range(PARTS))
def test_an_expression_has_the_value_of_the_evaluator(part: int, exact: bool) -> None:
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    number = part
    while counts["expressions"] < EXPRESSIONS and len(wrong) < 5:
        chance = Random(f"{SEED} {exact} {number}")
        number += PARTS
        expression = _written(chance, exact)
        if expression.form is None:
            counts["refused"] += 1
            continue
        counts["expressions"] += 1
        wrong += judged(expression, [case(chance, repeated=True) for _ in range(EVENTS)], counts)
    print(dict(sorted(counts.items())))
    assert not wrong, "\n\n".join(wrong)
    assert counts["EXACT"] > enough(EVENTS * EXPRESSIONS * (85 if exact else 30) // 100)
    assert counts["errors"] > enough(EXPRESSIONS // 4)


@pytest.mark.parametrize("part", range(PARTS))
def test_value_bound_outside_a_loop_is_constant(part: int) -> None:
    """Two expressions bind a value each, which a loop reads: its facts are made after both are translated."""
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    for number in range(part, SIZE.smt_bound_loops, PARTS):
        chance = Random(f"{SEED} bound {number}")
        writer = Writer(chance)
        variables = {name: writer.bound_loop() for name in ("v0", "v1")}
        negated = [chance.choice(("", "!")) + f"variables.{name}" for name in variables]
        expression = Expression(f" {chance.choice(('&&', '||', '=='))} ".join(negated), variables)
        if expression.form is not None:
            counts["expressions"] += 1
            wrong += judged(expression, [case(chance, repeated=True) for _ in range(EVENTS)], counts)
    print(dict(sorted(counts.items())))
    assert not wrong, "\n\n".join(wrong)
    assert counts["EXACT"] > enough(EVENTS * counts["expressions"] * 55 // 100)
