# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One CEL expression as terms of z3, and questions to z3 about its value: the judge of ``analysis.smt``.

A question is asked both ways: whether the right outcome is possible, and whether there is any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any

import z3  # type: ignore[import-untyped]  # has no types
from forewarn.analysis.smt.encode.expressions import ExpressionEncoder
from forewarn.analysis.smt.encode.inputs import Inputs
from forewarn.analysis.smt.encode.problem import NOTHING, NUMBERS, Encoding, OpaqueValue, Problem
from forewarn.analysis.smt.encode.resources import Resources
from forewarn.analysis.smt.terms import Formula, conj, disj, neg, same
from forewarn.policy.functions.lists import equal

RLIMIT = 5_000_000
SCALARS = (*NUMBERS, "bool", "string")


class Failure(Enum):
    """The outcome of an expression that has no value."""

    FAILS = "error"


FAILS = Failure.FAILS


class Agreement(Enum):
    """What the solver says of the right outcome. All but the first two are defects."""

    EXACT = "it is the only one"
    OPEN = "it is one of several, for a part may have any value"
    IMPOSSIBLE = "it is impossible"
    VAGUE = "it is one of several, though every part was translated"
    UNKNOWN = "z3 gave up"


class Question:
    """One expression. ``known`` are the values of its variables, ``variables`` those of its policy, in order.

    The first question ends the translation.
    """

    def __init__(self, api_version: str = "2020-07-01") -> None:
        self.problem = Problem()
        self.inputs = Inputs(self.problem, api_version)
        self._type = ""
        self._value = Encoding(NOTHING)

    def translate(
        self,
        source: str,
        form: Any,
        known: Mapping[str, Encoding] | None = None,
        parameter: Callable[[str], Encoding] | None = None,
        variables: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        """Translate an expression with its policy variables, which are as an artifact has them."""
        translation = ExpressionEncoder(self.inputs, parameter or _none, known)
        for name, expression in (variables or {}).items():
            translation.declare(name, expression)
        self._type = form[1]
        self._value = translation.value({"source": source, "form": form})

    @property
    def opaque(self) -> tuple[str, ...]:
        """The sources of the parts that may have any value."""
        return tuple(self.problem.opaque)

    @property
    def open(self) -> bool:
        """Whether the expression or a part of it may have any value."""
        return bool(self.problem.opaque) or isinstance(self._value.value, (OpaqueValue, Resources))

    def free(self, name: str, type_: str) -> Any:
        """Return a value of a type that z3 chooses."""
        if type_ == "bool":
            return self.problem.boolean(name)
        if type_ == "string":
            return self.problem.texts.variable(name, lambda _text: True)
        return self.problem.real(name) if type_ == "double" else self.problem.integer(name)

    def equals(self, term: Any, value: Any) -> Formula:
        """Return that a term of a simple type has a value."""
        if isinstance(value, float):
            return term == z3.RealVal(str(value.as_integer_ratio()[0]), term.ctx) / value.as_integer_ratio()[1]
        code = self.problem.texts.code
        return same(code(term), code(value))

    def is_outcome(self, outcome: Any) -> Formula:
        """Return that the expression has an outcome: a value as ``policy.builder`` has it, or FAILS."""
        value, error = self._value
        if outcome is FAILS:
            return error
        return conj((neg(error), self._is(value, outcome, self._type)))

    def _is(self, term: Any, value: Any, type_: str) -> Formula:
        if isinstance(term, (OpaqueValue, Resources)):
            return True
        if isinstance(term, tuple):
            element = type_[len("list(") : -1]
            parts = [conj((neg(one.error), self._is(one.value, item, element))) for one, item in zip(term, value)]
            return conj(parts) if len(term) == len(value) else False
        if type_ in SCALARS:
            return self.equals(term, value)
        if isinstance(term, z3.ExprRef):
            return self.equals(term, value)
        return repr(term) == repr(value) if isinstance(value, float) else equal(term, value)

    def agreement(self, fixed: Sequence[Formula], outcome: Any) -> Agreement:
        """Ask z3 both ways about an outcome that the expression has with fixed values.

        All formulas must have been made before the first question.
        """
        return self.agreements([(fixed, outcome)])[0]

    def agreements(self, cases: Sequence[tuple[Sequence[Formula], Any]]) -> list[Agreement]:
        """Ask z3 both ways about several outcomes, each with its fixed values."""
        right = [self.is_outcome(outcome) for _fixed, outcome in cases]
        facts = self.inputs.facts()
        self.problem.add_text_facts()
        facts += [*self.problem.facts, *self.problem.definitions]
        return [self._agreement([*facts, *fixed], one) for (fixed, _outcome), one in zip(cases, right)]

    def _agreement(self, fixed: Sequence[Formula], right: Formula) -> Agreement:
        possible, other = self._check([*fixed, right]), self._check([*fixed, neg(right)])
        if z3.unknown in (possible, other):
            return Agreement.UNKNOWN
        if possible == z3.unsat:
            return Agreement.IMPOSSIBLE
        if other == z3.unsat:
            return Agreement.OPEN if isinstance(self._value.value, OpaqueValue) else Agreement.EXACT
        return Agreement.OPEN if self.open else Agreement.VAGUE

    def _check(self, formulas: Sequence[Formula]) -> Any:
        """Return z3's answer about formulas together. What is fixed is put in everywhere first."""
        if any(one is False for one in formulas):
            return z3.unsat
        steps = [z3.Tactic(one, self.problem.context) for one in ("simplify", "propagate-values", "solve-eqs", "smt")]
        solver = z3.Then(*steps, ctx=self.problem.context).solver()
        solver.set("rlimit", RLIMIT)
        solver.add([one for one in formulas if one is not True])
        return solver.check()


def _none(name: str) -> Encoding:
    raise KeyError(name)


def literals(form: Any) -> Iterator[list[Any]]:
    """Yield the literals of the JSON of a form that z3 has values for."""
    if isinstance(form, list) and form and form[0] == "matches":
        yield from literals(form[4])
    elif isinstance(form, list) and len(form) > 3 and form[0] == "lit" and isinstance(form[1], str):
        if form[1] in SCALARS:
            yield form
    elif isinstance(form, list):
        for part in form:
            yield from literals(part)


def hidden(form: Any, names: Mapping[int, str]) -> Any:
    """Return the JSON of a form in which literals, by their ids, are variables."""
    if not isinstance(form, list):
        return form
    if id(form) in names:
        return ["var", form[1], form[2], form[3], names[id(form)]]
    if form and form[0] == "matches":
        return [*form[:4], hidden(form[4], names), form[5]]
    return [hidden(part, names) for part in form]


__all__ = ["FAILS", "Agreement", "Question", "disj", "hidden", "literals"]
