# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Texts as integers: their codes, and what functions make of them.

Each text that occurs in a policy has a code of its own, from 0; a negative code is some other text. What a function
makes of a text that policies mention is a fact for the solver. Of other texts it may be anything, until ``words`` has
found texts that all functions agree with, or has learnt that there are none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from ...policy.evaluation_error import EvaluationError, LimitError
from .terms import Formula, conj, disj, implies, is_constant, neg, require, same
from .words import Mapped, NoWord, Wanted, find_words, has_spellings, images

_NAMES = "names of which only the letters' case may differ"


class Guess(NamedTuple):
    """No texts were found for a model, though there may be some; ``formula`` excludes the model and others like it."""

    formula: Formula


class Texts:
    """The codes of one problem's texts. ``define`` must follow the last text and function."""

    def __init__(self, context: Any) -> None:
        self._z3 = require()
        self._context = context
        self._integer, self._boolean = self._z3.IntSort(context), self._z3.BoolSort(context)
        self._codes: dict[str, int] = {}
        self._listed: list[str] = []
        self._functions: dict[str, tuple[Mapped, Any, Any]] = {}  # by key: how it is defined, its value, its error
        self._applied: dict[tuple[str, int], tuple[str, Any]] = {}  # keys of functions, with the term
        self._variables: dict[str, tuple[Any, Callable[[str], bool]]] = {}
        self._fold = self._z3.Function(_NAMES, self._integer, self._integer)
        self._folds: dict[str, int] = {}
        self._folded: dict[int, Any] = {}  # terms by their ids
        self.exact = True  # no function makes a text of a text that no policy mentions
        self._defined: set[tuple[str, int]] = set()

    @property
    def extent(self) -> tuple[int, ...]:
        """How much there is to define."""
        return tuple(map(len, (self._listed, self._variables, self._functions, self._folded)))

    @property
    def applied(self) -> int:
        """How many functions of texts there are to read in a model."""
        return len(self._applied)

    # Making terms

    def code(self, value: Any) -> Any:
        """Return the code of a text, or the term as it is."""
        if not isinstance(value, str):
            return value
        if value not in self._codes:
            self._codes[value] = len(self._listed)
            self._listed.append(value)
        return self._codes[value]

    def variable(self, name: str, allowed: Callable[[str], bool]) -> Any:
        """Return a text that may be anything allowed."""
        if name not in self._variables:
            self._variables[name] = (self._z3.Int(name, self._context), allowed)
        return self._variables[name][0]

    def apply(self, mapped: Mapped) -> tuple[Any, Formula]:
        """Return the value and the error of a function of a text, as terms."""
        if mapped.type == "string":
            self.exact = False
        if mapped.key not in self._functions:
            sort = self._boolean if mapped.type == "bool" else self._integer
            value = self._z3.Function(f"value: {mapped.key}", self._integer, sort)
            error = self._z3.Function(f"error: {mapped.key}", self._integer, self._boolean)
            self._functions[mapped.key] = (mapped, value, error)
        _mapped, value, error = self._functions[mapped.key]
        self._applied[mapped.key, mapped.term.get_id()] = (mapped.key, mapped.term)
        return value(mapped.term), False if mapped.total else error(mapped.term)

    def fold(self, term: Any) -> Any:
        """Return a number that two texts share if they are the same but for case."""
        if isinstance(term, str):
            self.code(term)
            return self._folds.setdefault(term.lower(), len(self._folds))
        self._folded[term.get_id()] = term
        return self._fold(term)

    @staticmethod
    def is_unknown(term: Any) -> Formula:
        """Return whether a text is none of those that policies mention."""
        return term < 0

    # Facts

    def define(self) -> list[Formula]:
        """Return what is true of all texts, except what was returned before."""
        facts: list[Formula] = []
        for _round in range(2):  # the value of a function may be a text that nobody mentioned
            for key, (mapped, value, error) in self._functions.items():
                for code, text in enumerate(self._listed[:]):
                    if self._first(key, code):
                        facts += self._values_of(mapped, value, error, code, text)
        for key, term in self._applied.values():
            mapped, value, _error = self._functions[key]
            if mapped.type == "string":
                facts.append(value(term) < len(self._listed))
        for name, (term, allowed) in self._variables.items():
            if self._first(name, -1):
                facts.append(term < len(self._listed))
            for code, text in enumerate(self._listed):
                if self._first(name, code) and not allowed(text):
                    facts.append(term != code)
        if self._folded:
            for code, text in enumerate(self._listed):
                if self._first(_NAMES, code):
                    facts.append(self._fold(self._number(code)) == self.fold(text))
                    if not has_spellings(text):
                        only = (
                            implies(self._fold(one) == self.fold(text), one == code) for one in self._folded.values()
                        )
                        facts += only
        return facts

    def _first(self, what: str, code: int) -> bool:
        known = len(self._defined)
        self._defined.add((what, code))
        return len(self._defined) > known

    def _values_of(self, mapped: Mapped, value: Any, error: Any, code: int, text: str) -> list[Formula]:
        number = self._number(code)
        try:
            result = mapped.function(text)
        except LimitError:
            return []
        except EvaluationError:
            return [error(number)]
        fact = same(value(number), self.code(result))
        return [fact] if mapped.total else [neg(error(number)), fact]

    def _number(self, code: int) -> Any:
        return self._z3.IntVal(code, self._context)

    # The texts of a model

    def read(self, model: Any, terms: Mapping[str, Any], names: Collection[str]) -> dict[str, str] | Formula | Guess:
        """Return a text for each term of a model, by its name in ``terms``; ``names`` are those that name VMs.

        Where there are no such texts, returns a formula that is true of all texts and false in the model. Returns a
        Guess where none were found, though there may be some.
        """
        allowed = {term.get_id(): can_be for term, can_be in self._variables.values()}
        by_term: dict[int, int] = {}  # the codes of terms
        wanted: dict[int, Wanted] = {}
        made: dict[int, list[tuple[Mapped, int]]] = {}
        codes = {name: self._code_of(model, term) for name, term in terms.items()}
        beyond = [terms[name] for name, code in codes.items() if code >= len(self._listed)]
        if beyond:  # a text that was first asked for after ``define``
            return conj(term < len(self._listed) for term in beyond)
        for name, code in codes.items():
            if code < 0:
                one = wanted.setdefault(code, Wanted(name in names))
                if terms[name].get_id() in allowed:
                    one.allowed.append(allowed[terms[name].get_id()])
        for key, term in self._applied.values():
            if term.get_id() not in by_term:
                by_term[term.get_id()] = self._code_of(model, term)
            code = by_term[term.get_id()]
            if code < 0:
                mapped, value, error = self._functions[key]
                fails = not mapped.total and self._z3.is_true(model.eval(error(term), True))
                result = None if fails else self._value_of(model, mapped, value(term))
                wanted.setdefault(code, Wanted(False)).results[key] = (mapped, fails, result)
                if mapped.type == "string" and result is None and not fails:
                    number = self._code_of(model, value(term))
                    if (key, number) not in [(one.key, other) for one, other in made.setdefault(code, [])]:
                        made[code].append((mapped, number))
        by_number = {number: text for text, number in self._folds.items()}
        for term in self._folded.values():
            code = self._code_of(model, term)
            if code in wanted:
                number = model.eval(self._fold(term), True).as_long()
                wanted[code].group = number
                wanted[code].like = by_number.get(number)
        found = find_words(wanted, self._listed, made)
        if isinstance(found, NoWord):
            return self._none(found) if found.impossible else Guess(self._otherwise(model, found.number))
        return {name: self._listed[code] if code >= 0 else found[code] for name, code in codes.items()}

    def _otherwise(self, model: Any, code: int) -> Formula:
        """Return that some function makes something else of a text than in a model, and no text it hardly can make.

        Or the text is another in case only of something else.
        """
        parts: list[Formula] = []
        likely: list[Formula] = []
        used = Counter(self._made(model).values())
        used.update({self._code_of(model, term) for _key, term in self._applied.values()})
        for key, term in self._applied.values():
            if self._code_of(model, term) == code:
                mapped, value, error = self._functions[key]
                if not mapped.total:
                    parts.append(neg(same(error(term), self._z3.is_true(model.eval(error(term), True)))))
                number = model.eval(value(term), True)
                if mapped.type == "string" and number.as_long() < 0 and used[number.as_long()] == 1:
                    parts.append(value(term) >= 0)  # another number of a text that is nothing else is no difference
                else:
                    parts.append(neg(same(value(term), number)))
                if mapped.type == "string":
                    made = images(mapped, self._listed)
                    known = [value(term) == number for number, text in enumerate(self._listed) if text in made]
                    likely.append(disj((False if mapped.total else error(term), value(term) < 0, *known)))
        folds = [(self._code_of(model, term), self._fold(term)) for term in self._folded.values()]
        for fold in (fold for one, fold in folds if one == code):
            number = model.eval(fold, True)
            if number.as_long() in self._folds.values():
                parts.append(fold != number)
            others = [other for one, other in folds if one != code]
            parts += (fold != other for other in others if model.eval(other, True).eq(number))
        return conj((disj(parts), *likely))

    def _made(self, model: Any) -> dict[tuple[str, int], int]:
        """Return the codes of the texts that functions make in a model, by the function and the term's id."""
        made = {}
        for (key, number), (_key, term) in self._applied.items():
            mapped, value, _error = self._functions[key]
            if mapped.type == "string":
                made[key, number] = model.eval(value(term), True).as_long()
        return made

    def _none(self, found: NoWord) -> Formula:
        """Return that no text but the known ones has certain values of functions together."""
        keys = {mapped.key for mapped, _fails, _result in found.impossible}
        terms = {term.get_id(): term for key, term in self._applied.values() if key in keys}
        return conj(
            disj((term >= 0, *(self._differs(term, mapped, result) for mapped, _fails, result in found.impossible)))
            for term in terms.values()
        )

    def _differs(self, term: Any, mapped: Mapped, result: Any) -> Formula:
        _mapped, value, error = self._functions[mapped.key]
        differs = neg(same(value(term), self.code(result)))
        return differs if mapped.total else disj((error(term), differs))

    def _value_of(self, model: Any, mapped: Mapped, term: Any) -> Any:
        value = model.eval(term, True)
        if mapped.type == "bool":
            return self._z3.is_true(value)
        number = value.as_long()
        if mapped.type != "string":
            return number
        return self._listed[number] if 0 <= number < len(self._listed) else None

    def _code_of(self, model: Any, term: Any) -> int:
        if isinstance(term, str):
            return int(self.code(term))
        return term if is_constant(term) else int(model.eval(term, True).as_long())
