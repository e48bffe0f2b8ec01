# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Questions to the solver: what is asked together, what is preferred, and what excludes events."""

from __future__ import annotations

import itertools

import pytest
import z3  # type: ignore[import-untyped]  # has no types
from forewarn.analysis.smt.encode.inputs import Inputs
from forewarn.analysis.smt.encode.params import Params
from forewarn.analysis.smt.encode.problem import Problem
from forewarn.analysis.smt.solver import Solver, SolverAnswer
from forewarn.analysis.smt.terms import neg, same
from tools.judges.smt_facts import smt2


def solver() -> tuple[Solver, Inputs]:
    problem = Problem()
    inputs = Inputs(problem, "2020-07-01")
    inputs.event_field("DurationInSeconds")
    inputs.text("EventType")
    return Solver(problem, Params(problem, [[]], {}), inputs), inputs


def test_answers() -> None:
    asked, inputs = solver()
    seconds, there = inputs.event_field("DurationInSeconds")
    assert asked.ask(seconds == 5, there).answer is SolverAnswer.POSSIBLE
    assert asked.ask(seconds == 5, seconds == 6).answer is SolverAnswer.NEVER
    assert asked.ask(seconds == -2).answer is SolverAnswer.NEVER
    assert asked.ask(True).answer is SolverAnswer.POSSIBLE
    found = asked.ask(False)
    assert (found.answer, found.model, found.witness) == (SolverAnswer.NEVER, None, None)


def test_the_event_of_an_answer() -> None:
    asked, inputs = solver()
    seconds, there = inputs.event_field("DurationInSeconds")
    witness = asked.ask(seconds == 5, there).witness
    assert witness is not None
    assert witness.event["DurationInSeconds"] == 5
    without = asked.ask(neg(there)).witness
    assert without is not None
    assert "DurationInSeconds" not in without.event


def test_what_holds_in_a_model() -> None:
    asked, inputs = solver()
    seconds, _there = inputs.event_field("DurationInSeconds")
    model = asked.ask(seconds == 5).model
    assert asked.holds(model, seconds == 5)
    assert not asked.holds(model, seconds == 6)
    assert asked.holds(model, True)
    assert not asked.holds(model, False)
    open_ = inputs.problem.boolean("what no question is about")
    assert asked.holds(model, open_) is not asked.holds(model, neg(open_))


def test_what_is_preferred_in_order() -> None:
    asked, inputs = solver()
    seconds, there = inputs.event_field("DurationInSeconds")
    preferred = [seconds > 10, seconds == 5, seconds < 20, there]
    found = asked.ask_preferring([seconds >= 0], preferred)
    assert [asked.holds(found.model, one) for one in preferred] == [True, False, True, True]
    every = asked.ask_preferring([seconds >= 0], [seconds > 10, seconds == 15])
    assert asked.holds(every.model, seconds == 15)
    assert asked.ask_preferring([seconds == -2], preferred).answer is SolverAnswer.NEVER
    assert asked.ask_preferring([seconds == 3], [seconds == 4]).answer is SolverAnswer.POSSIBLE


def test_no_later_preference_gives_up_an_earlier_one() -> None:
    asked, inputs = solver()
    seconds, _there = inputs.event_field("DurationInSeconds")
    for first, second in itertools.product(range(7), range(11)):
        preferred = [seconds % 7 == first, seconds == -2, seconds % 11 == second, seconds < 77]
        found = asked.ask_preferring([seconds >= 0], preferred)
        assert [asked.holds(found.model, one) for one in preferred] == [True, False, True, True]


def test_what_excludes_events() -> None:
    asked, inputs = solver()
    seconds, there = inputs.event_field("DurationInSeconds")
    formulas = [there, seconds > 10, seconds < 100, True, seconds < 5]
    assert asked.unsat_core([True], formulas) == {1, 4}
    assert asked.unsat_core([seconds > 50], formulas) == {4}
    assert asked.unsat_core([], formulas[:4]) == set()
    assert asked.unsat_core([seconds == -2], formulas) == set()


def test_an_assumption_ends_with_its_block() -> None:
    asked, inputs = solver()
    seconds, _there = inputs.event_field("DurationInSeconds")
    with asked.scope():
        asked.add(seconds == 5)
        asked.add(True)
        assert asked.ask(seconds == 6).answer is SolverAnswer.NEVER
        asked.add(False)
        assert asked.ask(True).answer is SolverAnswer.NEVER
    assert asked.ask(seconds == 6).answer is SolverAnswer.POSSIBLE


def test_another_event_of_a_model() -> None:
    problem = Problem()
    inputs = Inputs(problem, "2020-07-01")
    other = inputs.variant(("EventType",), same_document=True)
    types = [
        same(one.text("EventType")[0], problem.texts.code(text))
        for one, text in ((inputs, "Freeze"), (other, "Reboot"))
    ]
    asked = Solver(problem, Params(problem, [[]], {}), inputs)
    model = asked.ask(*types).model
    beside = asked.other_witness(model, other)
    assert beside is not None
    assert beside.event["EventType"] == "Reboot"
    assert problem.closed


def test_a_question_in_the_language_of_other_solvers() -> None:
    asked, inputs = solver()
    seconds, _there = inputs.event_field("DurationInSeconds")
    text = smt2(asked, seconds == 123456, True)
    assert "123456" in text
    assert "(check-sat)" in text
    assert asked.ask(seconds == 5).answer is SolverAnswer.POSSIBLE
    assert "123456" not in smt2(asked)
    judge = z3.Solver()
    judge.from_string(smt2(asked, False))
    assert judge.check() == z3.unsat


def test_question_beyond_the_limit_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forewarn.analysis.smt.solver.RLIMIT", 1)
    asked, inputs = solver()
    seconds, _there = inputs.event_field("DurationInSeconds")
    found = asked.ask((seconds * seconds * seconds) % 1009 == 17, seconds > 10**6)
    assert (found.answer, found.model) == (SolverAnswer.UNKNOWN, None)
