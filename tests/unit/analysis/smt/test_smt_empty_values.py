# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lists, maps and optional values with nothing in them: what would be their element has every type, and no value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from random import Random

import pytest
from forewarn.compiler.cel.environment import policy_declarations
from forewarn.compiler.cel.expression import check
from tools.fixtures.policy_files import HEAD, verified
from tools.generators.cel_variables import PARAMS
from tools.generators.empty_values import empty_value
from tools.generators.fixed_inputs import Case, case
from tools.judges.expression_judge import Expression, judged
from tools.judges.translated import FAILS
from tools.suite.sizes import examples, seeds

DECLARATIONS = policy_declarations("2020-07-01", PARAMS, {}, {})
CONDITIONS = ("nothing", "bool")


def drawn(chance: Random, *types: str) -> Iterator[tuple[str, str]]:
    """Yield expressions of some types, with their types, for ever."""
    while True:
        source = empty_value(chance, chance.randint(1, 12), lambda text: check(text, DECLARATIONS).form is not None)
        type_ = str(check(source, DECLARATIONS).type)
        if type_ in types:
            yield source, type_


def readable_cases(chance: Random) -> Iterator[Case]:
    """Yield events on which rules decide, for ever."""
    while True:
        one = case(chance, today=True)
        if one.event.event_type != "Other" and one.event.event_status != "Paused":
            yield one


def found(directory: Path, condition: str) -> set[str]:
    """Return the codes of what is found in a policy with one condition."""
    match = f'    - {{id: one, output: hold, condition: "{condition}"}}\n'
    return {one.code for one in verified(directory, HEAD + match)}


@pytest.mark.parametrize("seed", seeds(examples(20)))
def test_prover_agrees_with_the_evaluator(seed: int) -> None:
    chance, counts = Random(seed), Counter[str]()
    for source, type_ in islice(drawn(chance, *CONDITIONS, "int", "string"), 30):
        expression, cases = Expression(source, {}), [case(chance) for _ in range(3)]
        assert judged(expression, cases, counts) == []
        if type_ == "nothing":
            assert {expression.outcome(one.roots()) for one in cases} == {FAILS}, source
    assert counts["of type bool"]
    assert counts["errors"]


@pytest.mark.parametrize("seed", seeds(examples(20)))
def test_conditions_are_verified(seed: int, tmp_path: Path) -> None:
    chance = Random(seed)
    for source, _type in islice(drawn(chance, *CONDITIONS), 5):
        outcomes = [Expression(source, {}).outcome(one.roots()) for one in islice(readable_cases(chance), 10)]
        codes = found(tmp_path, source)
        assert "unsatisfiable-rule" not in codes or True not in outcomes, source
        assert "rule-can-fail" in codes or FAILS not in outcomes, source


@pytest.mark.parametrize(
    "source",
    [
        *("[][0]", "{}['a']", "{}.a", "[[]][0][0]", "[].map(x, x)[0]", "optional.none().value()", "![][0]"),
        *("true && [][0]", "[][0] || false", "[][0] ? true : false", "[true].all(x, [][0])", "[][0] ? [][0] : [][0]"),
    ],
)
def test_condition_without_a_value_can_fail(source: str, tmp_path: Path) -> None:
    codes = found(tmp_path, source)
    assert {"rule-can-fail", "unsatisfiable-rule"} <= codes


@pytest.mark.parametrize(
    "source", ["[].all(x, x)", "![].exists(x, x)", "!({}.exists_one(x, x))", "[].filter(x, x) == []"]
)
def test_loop_over_nothing_has_a_value(source: str, tmp_path: Path) -> None:
    codes = found(tmp_path, source)
    assert not {"rule-can-fail", "unsatisfiable-rule"} & codes
