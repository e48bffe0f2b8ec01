# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One expression, evaluated and translated: what z3 says of its value for events that are fixed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from forewarn.analysis.smt.encode.problem import Encoding
from forewarn.compiler.cel.environment import policy_declarations
from forewarn.compiler.cel.expression import check
from forewarn.policy.builder import Builder
from forewarn.policy.environment import UNSET, Scope, guard
from forewarn.policy.evaluation_error import EvaluationError
from forewarn.policy.forms import read_form
from forewarn.policy.program import ROOTS

from ..generators.cel_variables import PARAMS
from ..generators.fixed_inputs import LISTS, SCALAR_PARAMS, Case, fixed, not_listed
from .translated import FAILS, Agreement, Question


class Expression:
    """One expression with its policy variables, compiled. ``form`` is None if the compiler refuses it."""

    def __init__(self, source: str, variables: dict[str, str]) -> None:
        types: dict[str, Any] = {}
        self.scope = Scope(ROOTS)
        self.variables = {}
        for name, text in variables.items():
            checked = check(text, policy_declarations("2020-07-01", PARAMS, types, {}))
            if checked.form is None:
                continue
            types[name] = checked.type
            self.variables[name] = {"source": text, "form": checked.form}
            closure = Builder(self.scope, {"source": text}).build(read_form(checked.form))
            self.scope.add(f"variables.{name}")
            self.scope.variable_closures[name] = closure
        self.source = source
        self.form = check(source, policy_declarations("2020-07-01", PARAMS, types, {})).form
        if self.form is not None:
            self._closure = guard(Builder(self.scope, {"source": source}).build(read_form(self.form)))

    def outcome(self, roots: dict[str, Any]) -> Any:
        """Return the value, or FAILS."""
        env = self.scope.environment(roots)
        for name in self.variables:
            env[self.scope.slots[f"variables.{name}"]] = UNSET
        try:
            return self._closure(env)
        except EvaluationError:
            return FAILS


def judged(expression: Expression, cases: Sequence[Case], counts: Counter[str]) -> list[str]:
    """Compare the evaluator with z3 on events, in both directions. Return what z3 says wrongly; count the answers."""
    assert expression.form is not None
    judge = Question()
    params = {name: judge.free(f"params.{name}", type_) for name, type_ in SCALAR_PARAMS.items()}
    known = {name: Encoding(term) for name, term in params.items()} | {
        name: Encoding(one) for name, one in LISTS.items()
    }
    judge.translate(expression.source, expression.form, parameter=known.__getitem__, variables=expression.variables)
    formulas = [fixed(judge.inputs, params, one) for one in cases]
    outcomes = [expression.outcome(one.roots()) for one in cases]
    texts = judge.problem.texts.listed[:]
    for one, formula in zip(cases, formulas):
        formula += not_listed(judge.inputs, one, texts)
    wrong = []
    for one, outcome, answer in zip(cases, outcomes, judge.agreements([*zip(formulas, outcomes)])):
        counts[answer.name] += 1
        counts["errors" if outcome is FAILS else f"of type {expression.form[1]}"] += 1
        if answer not in (Agreement.EXACT, Agreement.OPEN):
            given = {**one.event.as_dict(), **one.facts.vm.as_dict(), **one.params, "now": str(one.facts.now)}
            variables = {name: text["source"] for name, text in expression.variables.items()}
            wrong.append(f"{expression.source}\n{variables}\n{outcome!r}: {answer.value}\n{given}")
    return wrong
