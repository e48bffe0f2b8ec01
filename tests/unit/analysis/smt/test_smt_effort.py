# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An expression that costs too much is set aside by its name, and takes no other proof with it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from forewarn.analysis.diff.diff import compare
from forewarn.analysis.query.query import query
from forewarn.analysis.smt.effort import Effort, TooCostlyError, current, within_limits
from forewarn.analysis.verify.verify import verify
from tools.fixtures.policy_files import loaded

HARD = "now.getDayOfYear('America/New_York') == 365 && now.getDayOfYear() == 0"
POLICY = f"""\
name: p
rule:
  match:
    - {{id: first, condition: leader, output: hold}}
    - id: costly
      condition: "{HARD}"
      output: hold
    - {{id: dead, condition: leader && affects_me, output: approve}}
    - {{id: rest, output: hold}}
invariants:
  - {{name: the leader holds, expression: decision == hold || !leader}}
  - {{name: unknown, expression: "decision == hold || {HARD}"}}
"""


@pytest.fixture
def _little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forewarn.analysis.smt.solver.RLIMIT", 20_000)


@pytest.mark.usefixtures("_little")
def test_costly_expression_is_named_and_others_proven(tmp_path: Path) -> None:
    found = verify(loaded(tmp_path, POLICY.replace("{id: rest, output: hold}", "{id: rest, output: approve}")))
    costly = next(one for one in found.assumptions if "costs too much" in one)
    assert costly.startswith("now.getDayOfYear('America/New_York') (")
    assert "p.yml:6)" in costly
    assert "now.getDayOfYear('America/New_York')" in found.not_understood
    codes = {(one.code, one.rule or one.message) for one in found.findings if one.certain}
    assert ("shadowed-rule", "dead") in codes
    unproven = [one.message for one in found.findings if one.code == "invariant-not-proven"]
    assert unproven == []
    assert not any("the leader holds" in one.message for one in found.findings)


def test_nothing_is_set_aside_within_the_limit(tmp_path: Path) -> None:
    found = verify(loaded(tmp_path, POLICY.replace(HARD, "now.getDayOfYear() == 3")))
    assert not any("costs too much" in one for one in found.assumptions)


@pytest.mark.usefixtures("_little")
def test_questions_and_changes_name_it_too(tmp_path: Path) -> None:
    old, new = (loaded(tmp_path, POLICY.replace("output: hold", f"output: {one}")) for one in ("hold", "approve"))
    for found in (compare(old, new), query([new], f"decision == approve && {HARD}")):
        assert any("costs too much" in one for one in found.assumptions)


def test_total_limit_sets_expressions_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forewarn.analysis.smt.effort.TOTAL", 30_000)
    found = verify(loaded(tmp_path, POLICY))
    assert any("costs too much" in one for one in found.assumptions)


def test_similar_parts_are_set_aside_together() -> None:
    seen: list[dict[str, str]] = []

    @within_limits
    def work() -> str:
        seen.append(current().aside)
        if len(seen) == 1:
            raise TooCostlyError({"a": "p.yml:1", "b": "p.yml:2"})
        return "answer"

    assert work() == "answer"
    assert seen == [{}, {"a": "p.yml:1", "b": "p.yml:2"}]
    Effort().reached({})  # nothing can be set aside any more


def test_an_analysis_ends_although_all_costs_too_much() -> None:
    turns: list[int] = []

    @within_limits
    def work() -> int:
        turns.append(len(current().aside))
        if len(turns) < 3:
            raise TooCostlyError({str(len(turns)): "p.yml:1"})
        return len(turns)

    assert work() == 3
    assert turns == [0, 1, 2]


@pytest.mark.parametrize(
    "number",
    ["int(vm.tags['n'])", "int(vm.name.split('_')[1])", "int(vm.name.split('-')[2]) % 7"],
    ids=["tag", "name", "modulo"],
)
def test_many_rules_on_one_number_are_proven(tmp_path: Path, number: str) -> None:
    rules = "".join(f'    - {{id: r{n}, condition: "{number} == {n}", output: hold}}\n' for n in range(7))
    rules += f'    - {{id: dead, condition: "{number} in [2, 4]", output: approve}}\n'
    found = verify(loaded(tmp_path, f"name: p\nrule:\n  match:\n{rules}    - {{id: rest, output: hold}}\n"))
    assert found.not_understood == ()
    assert [one.message for one in found.findings if not one.certain] == []
    assert ("shadowed-rule", "dead") in {(one.code, one.rule) for one in found.findings}


def test_parts_of_equal_cost_are_set_aside_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forewarn.analysis.smt.effort.TOTAL", 20_000)
    seen: list[int] = []

    class CountedEffort(Effort):
        def __init__(self, aside: Mapping[str, str] | None = None, *, last: bool = True) -> None:
            seen.append(len(aside or {}))
            super().__init__(aside, last=last)

    monkeypatch.setattr("forewarn.analysis.smt.effort.Effort", CountedEffort)
    parts = ("now.getHours('Europe/Berlin')", "now.getDayOfWeek('Europe/Berlin')")
    rules = "".join(
        f'    - {{id: r{n}, condition: "{parts[0]} < {n + 2} && {parts[1]} == {n}", output: hold}}\n' for n in range(6)
    )
    found = verify(loaded(tmp_path, f"name: p\nrule:\n  match:\n{rules}    - {{id: rest, output: hold}}\n"))
    assert seen == [0, 2]
    assert set(found.not_understood) == set(parts)
    assert sum("costs too much" in one for one in found.assumptions) == 2
