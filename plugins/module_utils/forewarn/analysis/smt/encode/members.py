# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A list of texts that a host may be given: which texts are in it. Their number and their order are not known."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from ..terms import Formula, conj, disj, implies, is_constant, neg, require, same
from .problem import Problem, any_text


class Members:
    """The texts of one list, which may be any. ``read`` are those that something asks for, by what they are."""

    def __init__(self, problem: Problem, name: str) -> None:
        z3 = require()
        self._problem, self._name = problem, name
        self._in = z3.Function(f"in {name}", z3.IntSort(problem.context), z3.BoolSort(problem.context))
        self._limits: list[tuple[Collection[str], Formula]] = []
        self.read: dict[str, Any] = {}

    def has(self, text: Any) -> Formula:
        """Return whether the list has a text: one of Python, or a term.

        After the first question to the solver, a text that nothing has asked for is there if it is ``invented``.
        """
        key = f"{self._name}: {repr(text) if isinstance(text, str) else text.sexpr()}"
        if self._problem.closed and key not in self.read and isinstance(text, str):
            return text in self._problem.invented_names
        code = self._problem.texts.code(text)
        has = self._in(require().IntVal(code, self._problem.context) if is_constant(code) else code)
        if key not in self.read:
            self.read[key] = text
            self._problem.facts += (self._limited(text, has, *limit) for limit in self._limits)
        return has

    def within(self, allowed: Collection[str]) -> Formula:
        """Return whether the list has none but the allowed texts."""
        for known, is_within in self._limits:
            if set(known) == set(allowed):
                return is_within
        limit = (allowed, self._problem.boolean(f"{self._name} has only {sorted(allowed)}"))
        other = self._problem.texts.variable(f"what is in {self._name} beside {sorted(allowed)}", any_text)
        beside = conj((self.has(other), neg(self._is_one(other, allowed))))
        self._problem.facts.append(disj((limit[1], beside)))
        self._problem.facts += (self._limited(text, self.has(text), *limit) for text in list(self.read.values()))
        self._limits.append(limit)
        return limit[1]

    def equals(self, texts: Collection[str]) -> Formula:
        """Return whether the list has these texts of those that are asked for, and no others."""
        return conj(same(self.has(one), self._is_one(one, texts)) for one in list(self.read.values()))

    def _limited(self, text: Any, has: Formula, allowed: Collection[str], is_within: Formula) -> Formula:
        return implies(conj((has, is_within)), self._is_one(text, allowed))

    def _is_one(self, text: Any, of: Iterable[str]) -> Formula:
        code = self._problem.texts.code
        return disj(same(code(text), code(one)) for one in of)
