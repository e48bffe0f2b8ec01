# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lists, maps and optional values with nothing in them: what would be their element has every type, and no value."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from forewarn.compiler.cel.environment import policy_declarations
from forewarn.compiler.cel.expression import CheckResult, check
from tools.fixtures.policy_files import HEAD, verified
from tools.generators.empty_values import empty_value
from tools.generators.fixed_inputs import case
from tools.judges.expression_judge import Expression
from tools.judges.translated import FAILS, Agreement, Question
from tools.suite.sizes import examples, seeds

DECLARATIONS = policy_declarations("2020-07-01", {}, {}, {})
EVENT = case(Random(0)).roots()


def checked(source: str) -> CheckResult:
    return check(source, DECLARATIONS)


def found(directory: Path, condition: str) -> set[str]:
    """Return the codes of what is found in a policy with one condition."""
    return {
        one.code for one in verified(directory, f'{HEAD}    - {{id: one, output: hold, condition: "{condition}"}}\n')
    }


@pytest.mark.parametrize("seed", seeds(examples(20)))
def test_prover_agrees_with_the_evaluator(seed: int) -> None:
    chance = Random(seed)
    for _number in range(40):
        source = empty_value(chance, chance.randint(1, 12), lambda text: checked(text).form is not None)
        outcome, type_ = Expression(source, {}).outcome(EVENT), str(checked(source).type)
        assert type_ != "nothing" or outcome is FAILS, source
        if type_ in ("nothing", "bool", "int", "string"):
            judge = Question()
            judge.translate(source, checked(source).form)
            assert judge.agreement([], outcome) in (Agreement.EXACT, Agreement.OPEN), source


@pytest.mark.parametrize("seed", seeds(examples(20)))
def test_conditions_are_verified(seed: int, tmp_path: Path) -> None:
    chance = Random(seed)
    for _number in range(10):
        source = empty_value(chance, chance.randint(1, 12), lambda text: checked(text).form is not None)
        if str(checked(source).type) not in ("nothing", "bool"):
            continue
        outcome = Expression(source, {}).outcome(EVENT)
        codes = found(tmp_path, source)
        assert "unsatisfiable-rule" not in codes or outcome is not True, source
        assert "rule-can-fail" in codes or outcome is not FAILS, source


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
