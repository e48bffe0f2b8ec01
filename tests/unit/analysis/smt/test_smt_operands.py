# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a condition is without some of its operands."""

from __future__ import annotations

from pathlib import Path

import pytest
from forewarn.analysis.proof import Proof
from forewarn.analysis.smt.terms import neg, same
from tools.fixtures.policy_files import loaded
from tools.judges.smt_facts import Facts

FREEZE, SHORT = "event.EventType == 'Freeze'", "event.DurationInSeconds < 9"


@pytest.mark.parametrize("operator", ["&&", "||"])
def test_condition_without_its_last_operand_is_the_first(tmp_path: Path, operator: str) -> None:
    text = "name: p\nrule:\n  match:\n"
    for name, condition in (("both", f"{SHORT} {operator} {FREEZE}"), ("one", SHORT)):
        text += f'    - {{id: {name}, condition: "{condition}", output: hold}}\n'
    proof = Proof([loaded(tmp_path, text)])
    both, one = proof.decisions[0].policies[0].matches
    assert both.condition is not None
    ((_outer, last), *_others) = both.condition.pairs()
    true, false = both.condition.without({last.place})
    facts = Facts(proof.problem, *proof.inputs.facts())
    assert facts.certain(same(true, one.holds))
    assert facts.certain(same(false, neg(one.holds)), neg(one.fails))
    assert not facts.possible(false, one.fails)
    assert facts.possible(neg(same(true, both.holds)))
