# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asks z3 whether an event can be, within limits that do not depend on the speed of the machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from functools import cached_property, partial
from typing import Any

from ..witness import Witness
from .decode.model_texts import BlockingClause, FoundTexts
from .decode.witness import ModelDecoder
from .effort import DIVIDED, TEXTS, units_of
from .encode.inputs import Inputs
from .encode.params import Params
from .encode.problem import Problem
from .terms import Formula, conj, require

RLIMIT = 2_000_000  # of z3 for one question: a second or two
_MOST_BLOCKED = 20
_MOST_LEARNT = 200  # facts about texts that one question may need


class SolverAnswer(Enum):
    """Whether there is an event: NEVER is proven, POSSIBLE has a model, UNKNOWN is neither."""

    NEVER = "never"
    POSSIBLE = "possible"
    UNKNOWN = "unknown"


class SolverResult:
    """The answer to a question; where an event is possible, with the model. ``witness`` makes the event."""

    def __init__(
        self, answer: SolverAnswer, model: Any = None, make: Callable[[], Witness | None] | None = None
    ) -> None:
        self.answer, self.model = answer, model
        self._make = make

    @property
    def never(self) -> bool:
        """Whether it is proven that there is no event."""
        return self.answer is SolverAnswer.NEVER

    @property
    def possible(self) -> bool:
        """Whether there is a model."""
        return self.answer is SolverAnswer.POSSIBLE

    @cached_property
    def witness(self) -> Witness | None:
        """The event, None if there is none, or if no names were found for all of its VMs."""
        return None if self._make is None else self._make()


class Solver:
    """z3 with all facts of one problem.

    Without ``definitions``, its questions must not mention any Boolean that ``Problem.define`` made. Then they cost as
    much with many rules as with few.
    """

    def __init__(self, problem: Problem, params: Params, inputs: Inputs, *, definitions: bool = True) -> None:
        z3 = require()
        self._unsat, self._sat, self._unknown = z3.unsat, z3.sat, z3.unknown
        self.problem, self.inputs = problem, inputs
        self._decoder = ModelDecoder(problem, params)
        self._solver = z3.SimpleSolver(ctx=problem.context)
        self._solver.set("rlimit", RLIMIT)
        self._solver.set("random_seed", 0)
        self._learnt: list[Formula] = []
        self._extent: tuple[int, ...] = ()
        self._known = 0  # how many of the problem's facts
        problem.closed = True
        self.learn()
        if definitions:
            self._solver.add(problem.definitions)

    def ask(self, *formulas: Formula) -> SolverResult:
        """Return whether there is an event for which all formulas hold."""
        asked = [formula for formula in formulas if formula is not True]
        if any(formula is False for formula in asked):
            return SolverResult(SolverAnswer.NEVER)
        self.learn()
        blocking: list[Formula] = []  # clauses for models for which no texts were found
        for _turn in range(_MOST_LEARNT):
            # Every other time, first without names of which only the letters' case differs.
            apart = self.problem.texts.apart() if len(blocking) % 2 else True
            answer = self._unknown
            for plain in (*self.inputs.resources.plain(), *([] if apart is True else [True])):
                if answer != self._sat:
                    answer = self._tried(*asked, *blocking, conj((plain, apart)))
            if answer != self._sat:
                answer = self._check(*asked, *blocking)
            if answer == self._unsat:
                return SolverResult(SolverAnswer.UNKNOWN if blocking else SolverAnswer.NEVER)
            if answer != self._sat:
                return SolverResult(SolverAnswer.UNKNOWN)
            model = self._solver.model()
            texts = self._decoder.texts(model, self.inputs)
            self.problem.effort.spend(TEXTS * len(self.problem.texts.applications))
            if isinstance(texts, FoundTexts):
                return SolverResult(
                    SolverAnswer.POSSIBLE, model, partial(self._decoder.witness, model, self.inputs, texts)
                )
            if isinstance(texts, BlockingClause):
                blocking.append(texts.formula)
                if len(blocking) > _MOST_BLOCKED or texts.formula is False:
                    return SolverResult(SolverAnswer.UNKNOWN, model)
                continue
            self._learnt.append(texts.formula)
            self._solver.add(texts.formula)
        return SolverResult(SolverAnswer.UNKNOWN)

    def excludes(self, formula: Formula) -> bool:
        """Return whether it is proven that a formula holds for no event: faster than ``ask``, which learns more
        about texts and may prove what this cannot.
        """
        self.learn()
        return formula is False or bool(self._check(formula) == self._unsat)

    def _check(self, *formulas: Formula) -> Any:
        """Return z3's answer, "unknown" beyond a limit. Raises TooCostlyError there if something can be set aside."""
        answer = self._tried(*formulas)
        if answer == self._unknown:
            self.problem.effort.reached(self.problem.subexpressions)
        return answer

    def _tried(self, *formulas: Formula) -> Any:
        """Return z3's answer, "unknown" beyond a limit."""
        if self.problem.effort.left <= 0:
            return self._unknown
        answer = self._solver.check(*formulas)
        units = units_of(self._solver)
        price = DIVIDED if self.problem.divisions else 1
        self.problem.effort.spend(price * max(0, units - self.problem.spent))
        self.problem.spent = max(units, self.problem.spent)
        return answer

    def learn(self) -> tuple[int, ...]:
        """Learn the facts about what was asked for since the last question; return how much is known."""
        if (*self.problem.extent, *self.inputs.extent) != self._extent:
            facts = self.inputs.facts()
            self.problem.add_text_facts()
            facts += self.problem.facts[self._known :]
            self._known = len(self.problem.facts)
            self._extent = (*self.problem.extent, *self.inputs.extent)
            facts = [fact for fact in facts if fact is not True]
            self._learnt += facts
            self._solver.add(facts)
        return self._extent

    def ask_preferring(self, formulas: Sequence[Formula], preferred: Sequence[Formula]) -> SolverResult:
        """Return an event for which all formulas hold, and as many of the preferred ones as possible, in order."""
        found, given = self.ask(*formulas), list(formulas)
        if not found.possible or not preferred:
            return found
        best = self.ask(*formulas, *preferred)
        if best.possible:
            return best
        for one in preferred:
            if self.holds(found.model, one):
                given.append(one)
                continue
            better = self.ask(*given, one)
            if better.possible:
                found = better
                given.append(one)
        return found

    def unsat_core(self, formulas: Sequence[Formula], further: Sequence[Formula]) -> set[int]:
        """Return the places of some of the ``further`` formulas that exclude all events together with the others.

        They are none if the others do so alone, or if there is such an event.
        """
        given = [one for one in formulas if one is not True]
        left = {one.get_id(): place for place, one in enumerate(further) if not isinstance(one, bool)}
        if self._check(*given, *(further[place] for place in left.values())) != self._unsat:
            return set()
        core = {one.get_id() for one in self._solver.unsat_core()}
        needed = [place for number, place in left.items() if number in core]
        for place in reversed(needed[:]):  # it may have more than it takes
            others = [one for one in needed if one != place]
            if self._check(*given, *(further[one] for one in others)) == self._unsat:
                needed = others
        return set(needed)

    def other_witness(self, model: Any, inputs: Inputs) -> Witness | None:
        """Return another event of a model, or the same on another VM; None where its texts were not found."""
        texts = self._decoder.texts(model, self.inputs if inputs.vm else inputs)
        return self._decoder.witness(model, inputs, texts) if isinstance(texts, FoundTexts) else None

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Forget at the end of the block what was added in it, but not what was learnt."""
        self._solver.push()
        known = len(self._learnt)
        try:
            yield
        finally:
            self._solver.pop()
            self._solver.add(self._learnt[known:])

    def add(self, formula: Formula) -> None:
        """Assume that a formula holds."""
        if formula is not True:
            self._solver.add(formula)

    @staticmethod
    def holds(model: Any, formula: Formula) -> bool:
        """Return whether a formula holds in a model."""
        if isinstance(formula, bool):
            return formula
        return bool(require().is_true(model.eval(formula, True)))
