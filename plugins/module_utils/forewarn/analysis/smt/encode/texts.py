# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Texts as integers: their codes, and what functions make of them.

Each text that occurs in a policy has a code of its own, from 0; a negative code is some other text. What a function
makes of a text that policies mention is a fact for the solver. Of other texts it may be anything, until
``decode.model_texts`` has found texts that all functions agree with, or has learnt that there are none.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ....policy.evaluation_error import EvaluationError, LimitError
from ....policy.functions.standard import INT_MAX, INT_MIN
from ..terms import Formula, between, conj, implies, neg, require, same
from .text_functions import TextFunction, branches, follows, has_spellings

_NAMES = "names of which only the letters' case may differ"


class FunctionApplication(NamedTuple):
    """A function of a text, as terms: of the text, of its value, and of whether it has none."""

    function: TextFunction
    term: Any
    value: Any
    error: Formula


class TextSymbols(NamedTuple):
    """The symbols that stand for a function of texts: those of its value and of whether it has none, by codes."""

    function: TextFunction
    value: Any
    error: Any


class Texts:
    """The texts of one problem. ``new_facts`` must follow the last text and function.

    ``listed`` are those that policies mention, by code. ``variables`` are terms by their names, each with which texts
    it may be; ``applications`` are by the function's key and the term's id. ``folded`` are terms by their ids, each
    with what ``fold`` made of it, and ``folds`` the results for the mentioned texts.
    """

    def __init__(self, context: Any) -> None:
        self._z3 = require()
        self._context = context
        self._integer, self._boolean = self._z3.IntSort(context), self._z3.BoolSort(context)
        self._codes: dict[str, int] = {}
        self.listed: list[str] = []
        self.functions: dict[str, TextSymbols] = {}
        self.applications: dict[tuple[str, int], FunctionApplication] = {}
        self.variables: dict[str, tuple[Any, Callable[[str], bool]]] = {}
        self._fold = self._z3.Function(_NAMES, self._integer, self._integer)
        self._spelling = self._z3.Function("the only spelling", self._integer, self._integer)
        self.folds: dict[str, int] = {}
        self.folded: dict[int, tuple[Any, Any]] = {}
        self.exact = True  # no function makes a text of a text that no policy mentions
        self._known: set[tuple[str, int]] = set()

    @property
    def extent(self) -> tuple[int, ...]:
        """How much ``new_facts`` are about."""
        return tuple(map(len, (self.listed, self.variables, self.functions, self.folded)))

    # Making terms

    def code(self, value: Any) -> Any:
        """Return the term whose value in every model is the code of a text: a term is its own."""
        if not isinstance(value, str):
            return value
        if value not in self._codes:
            self._codes[value] = len(self.listed)
            self.listed.append(value)
        return self._codes[value]

    def variable(self, name: str, allowed: Callable[[str], bool]) -> Any:
        """Return the variable whose value in every model is the code of a text that is allowed, or of another one."""
        if name not in self.variables:
            self.variables[name] = (self._z3.Int(name, self._context), allowed)
        return self.variables[name][0]

    def apply(self, function: TextFunction) -> tuple[Any, Formula]:
        """Return the terms whose values in every model are those of a function of a text, and of whether it fails."""
        if function.type == "string":
            self.exact = False
        if function.key not in self.functions:
            sort = self._boolean if function.type == "bool" else self._integer
            value = self._z3.Function(f"value: {function.key}", self._integer, sort)
            error = self._z3.Function(f"error: {function.key}", self._integer, self._boolean)
            self.functions[function.key] = TextSymbols(function, value, error)
        key = function.key, function.term.get_id()
        if key not in self.applications:
            first, value, error = self.functions[function.key]
            fails = False if function.total else error(function.term)
            self.applications[key] = FunctionApplication(first, function.term, value(function.term), fails)
        one = self.applications[key]
        return one.value, one.error

    def fold(self, term: Any) -> Any:
        """Return the term whose value in every model is the same for texts that are the same but for case."""
        if isinstance(term, str):
            self.code(term)
            return self.folds.setdefault(term.lower(), len(self.folds))
        if term.get_id() not in self.folded:
            self.folded[term.get_id()] = term, self._fold(term)
        return self.folded[term.get_id()][1]

    def apart(self) -> Formula:
        """Return a formula that holds iff no two texts are the same but for case: such texts are found more easily."""
        return conj(self._spelling(fold) == term for term, fold in self.folded.values())

    @staticmethod
    def is_unknown(term: Any) -> Formula:
        """Return a formula that holds iff a text is none of those that policies mention."""
        return term < 0

    # Facts

    def new_facts(self) -> list[Formula]:
        """Return the formulas that hold of all texts, except those that were returned before."""
        facts: list[Formula] = []
        for _round in range(2):  # the value of a function may be a text that nobody mentioned
            for key, symbols in self.functions.items():
                for code, text in enumerate(self.listed[:]):
                    if self._is_new(key, code):
                        facts += self._value_of(symbols, code, text)
        facts += (one.value < len(self.listed) for one in self.applications.values() if one.function.type == "string")
        for (key, number), one in self.applications.items():
            if one.function.is_int_of_text and self._is_new(f"range of {key}", number):
                facts.append(between(INT_MIN, one.value, INT_MAX))
        facts += self._relations()
        for name, (term, allowed) in self.variables.items():
            if self._is_new(name, -1):
                facts.append(term < len(self.listed))
            for code, text in enumerate(self.listed):
                if self._is_new(name, code) and not allowed(text):
                    facts.append(term != code)
        if self.folded:
            for code, text in enumerate(self.listed):
                if self._is_new(_NAMES, code):
                    facts.append(self._fold(self._code_term(code)) == self.fold(text))
                    if not has_spellings(text):
                        only = (implies(fold == self.fold(text), one == code) for one, fold in self.folded.values())
                        facts += only
        return facts

    def _relations(self) -> Iterator[Formula]:
        """Yield what follows from relations of a text: others, and that it has no other beginning or ending."""
        related = [one.function for one in self.functions.values()]
        related = [one for one in related if one.relation and one.relation[0] != "matches"]
        by_key: dict[str, dict[int, FunctionApplication]] = {}
        for (key, number), one in self.applications.items():
            by_key.setdefault(key, {})[number] = one
        for first, second in itertools.permutations(related, 2):
            if follows(first, second):
                others = by_key.get(second.key, {})
                for number, one in by_key.get(first.key, {}).items():
                    if number in others and self._is_new(f"{first.key} has {second.key}", number):
                        yield implies(one.value, others[number].value)
        places: dict[Any, int] = {}
        for function, what in branches(related):
            # Another relation may come between two of them, so what was told apart before is another function.
            name = f"{what} and then, of {len(related)}"
            which = self._z3.Function(name, self._integer, self._integer)
            for number, one in by_key.get(function.key, {}).items():
                if self._is_new(f"{name}: {function.key}", number):
                    yield implies(one.value, which(one.term) == places.setdefault(function.relation, len(places)))

    def _is_new(self, what: str, code: int) -> bool:
        known = len(self._known)
        self._known.add((what, code))
        return len(self._known) > known

    def _value_of(self, symbols: TextSymbols, code: int, text: str) -> list[Formula]:
        """Return the value that a function has for a mentioned text, as formulas."""
        function, value, error = symbols
        number = self._code_term(code)
        try:
            result = function.function(text)
        except LimitError:
            return []
        except EvaluationError:
            return [error(number)]
        fact = same(value(number), self.code(result))
        return [fact] if function.total else [neg(error(number)), fact]

    def _code_term(self, code: int) -> Any:
        return self._z3.IntVal(code, self._context)
