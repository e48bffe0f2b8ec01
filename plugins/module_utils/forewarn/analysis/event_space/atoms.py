# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Terms, which are logic over atoms, and atoms, which the evaluator answers."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...policy import forms as f
from ...policy.builder import Builder
from ...policy.environment import MAX_STEPS, UNSET, Closure, Scope, guard
from ...policy.evaluation_error import EvaluationError
from ...policy.program import ROOTS
from ..artifacts import Json
from .case import Case


class Atom(NamedTuple):
    """An exact test: ``closure`` has one answer for each combination of values of ``dims``."""

    dims: tuple[str, ...]
    closure: Closure
    scope: Scope
    params: Json
    is_test: bool  # a bool; otherwise only whether it has a value

    def evaluate(self, given: tuple[Any, ...]) -> str:
        """Return ``true``, ``false`` or ``error`` for values of program.ROOTS; of no test, whether it has a value."""
        try:
            value = self.value(given)
        except EvaluationError:
            return "error"
        if not self.is_test:
            return "true"
        return "true" if value is True else "false" if value is False else "error"

    def value_in(self, case: Case) -> Any:
        """Return the value in a case. Raises EvaluationError."""
        return self.value(case.roots(self.params))

    def has_value_in(self, case: Case) -> bool:
        """Return whether it has a value in a case."""
        try:
            self.value_in(case)
        except EvaluationError:
            return False
        return True

    def value(self, given: tuple[Any, ...]) -> Any:
        """Return the value for values of program.ROOTS. Raises EvaluationError."""
        env = [MAX_STEPS, None, *given, *[UNSET] * (self.scope.size - len(ROOTS) - 2)]
        return self.closure(env)


class Term(NamedTuple):
    """Logic over atoms.

    ``op``: ``lit`` (``name`` is true, false or error), ``and``, ``or``, ``not``, ``if``, ``same`` and ``differ`` (of
    bools), ``exact`` (an Atom), ``opaque`` (``name`` is a dimension; the term is true where it has a value),
    ``defined`` (true where all parts have a value).
    """

    op: str
    terms: tuple[Term, ...] = ()
    atom: Atom | None = None
    name: str = ""

    def reads(self) -> set[str]:
        """Return the names of the inputs that it reads."""
        own = set() if self.atom is None else set(self.atom.dims)
        return own.union(*(term.reads() for term in self.terms))


class Expressions:
    """Builds the atoms of one policy. ``params`` are the parameters that do not vary."""

    def __init__(self, params: Json) -> None:
        self.params = params
        self._scope = Scope(ROOTS)

    def add_variable(self, name: str, expression: Json, form: f.Form) -> None:
        """Declare a policy variable; what follows may read it."""
        closure = Builder(self._scope, expression).build(form)
        self._scope.add("variables." + name)
        self._scope.variable_closures[name] = closure

    def atom(self, expression: Json, form: f.Form, dims: frozenset[str] = frozenset()) -> Atom:
        """Return the atom of a part of an expression, whose places are those of the expression."""
        closure = guard(Builder(self._scope, expression).build(form))
        return Atom(tuple(sorted(dims)), closure, self._scope, self.params, form.type == "bool")
