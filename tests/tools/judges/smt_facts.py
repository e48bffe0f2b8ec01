# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Questions to z3 about a problem of ``analysis.smt``, without the search for texts that ``smt.solver`` does."""

from __future__ import annotations

from typing import Any

import z3  # type: ignore[import-untyped]  # has no types
from forewarn.analysis.smt.encode.problem import Problem
from forewarn.analysis.smt.solver import Solver
from forewarn.analysis.smt.terms import Formula, neg


def facts_of(problem: Problem) -> list[Formula]:
    """Return what is true of everything that was made so far."""
    problem.add_text_facts()
    return [one for one in (*problem.facts, *problem.definitions) if one is not True]


def smt2(solver: Solver, *formulas: Formula) -> str:
    """Return a question in the language SMT-LIB 2, for other solvers."""
    own: Any = solver._solver
    own.push()
    own.add(*[formula for formula in formulas if formula is not True])
    text = str(own.to_smt2())
    own.pop()
    return text


class Facts:
    """What is true of everything that was made so far, and the ``further`` formulas, those of inputs for instance.

    Nothing may be made after the first question.
    """

    def __init__(self, problem: Problem, *further: Formula) -> None:
        self._solver = z3.SimpleSolver(ctx=problem.context)
        self._solver.add([one for one in (*further, *facts_of(problem)) if one is not True])

    def possible(self, *formulas: Formula) -> bool:
        """Return whether all formulas may hold together."""
        if any(one is False for one in formulas):
            return False
        found: Any = self._solver.check([one for one in formulas if one is not True])
        assert found != z3.unknown
        return bool(found == z3.sat)

    def certain(self, formula: Formula, *given: Formula) -> bool:
        """Return whether a formula holds wherever the others do; they must be possible."""
        assert self.possible(*given)
        return not self.possible(neg(formula), *given)
