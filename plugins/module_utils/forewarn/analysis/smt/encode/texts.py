# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Texts as integers: their codes, and what functions make of them.

Each text that occurs in a policy has a code of its own, from 0; a negative code is some other text. What a function
makes of a text that policies mention is a fact for the solver. Of other texts it may be anything, until ``words`` has
found texts that all functions agree with, or has learnt that there are none.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, NamedTuple

from ....policy.evaluation_error import EvaluationError, LimitError
from ....policy.functions.standard import INT_MAX, INT_MIN
from ..decode.model_values import ModelValues
from ..decode.words import Mapped, NoWord, Spend, Wanted, branches, find_words, follows, has_spellings, images
from ..terms import Formula, between, conj, disj, implies, is_constant, neg, require, same

_NAMES = "names of which only the letters' case may differ"


class Guess(NamedTuple):
    """No texts were found for a model, though there may be some; ``formula`` excludes the model and others like it."""

    formula: Formula


class Applied(NamedTuple):
    """A function of a text, as terms: of the text, of what it makes of that, and of whether it fails."""

    mapped: Mapped
    term: Any
    value: Any
    error: Formula


class Texts:
    """The codes of one problem's texts. ``define`` must follow the last text and function."""

    def __init__(self, context: Any, spend: Spend) -> None:
        self._z3 = require()
        self._context, self._spend = context, spend
        self._integer, self._boolean = self._z3.IntSort(context), self._z3.BoolSort(context)
        self._codes: dict[str, int] = {}
        self._listed: list[str] = []
        self._functions: dict[str, tuple[Mapped, Any, Any]] = {}  # by key: how it is defined, its value, its error
        self._applied: dict[tuple[str, int], Applied] = {}  # by the function's key and the term's id
        self._variables: dict[str, tuple[Any, Callable[[str], bool]]] = {}
        self._fold = self._z3.Function(_NAMES, self._integer, self._integer)
        self._spelling = self._z3.Function("the only spelling", self._integer, self._integer)
        self._folds: dict[str, int] = {}
        self._folded: dict[int, tuple[Any, Any]] = {}  # terms by their ids, with what ``fold`` made of them
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
        place = mapped.key, mapped.term.get_id()
        if place not in self._applied:
            first, value, error = self._functions[mapped.key]
            fails = False if mapped.total else error(mapped.term)
            self._applied[place] = Applied(first, mapped.term, value(mapped.term), fails)
        one = self._applied[place]
        return one.value, one.error

    def fold(self, term: Any) -> Any:
        """Return a number that two texts share if they are the same but for case."""
        if isinstance(term, str):
            self.code(term)
            return self._folds.setdefault(term.lower(), len(self._folds))
        if term.get_id() not in self._folded:
            self._folded[term.get_id()] = term, self._fold(term)
        return self._folded[term.get_id()][1]

    def apart(self) -> Formula:
        """Return that no two texts are the same but for case: such texts are found more easily."""
        return conj(self._spelling(fold) == term for term, fold in self._folded.values())

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
        facts += (one.value < len(self._listed) for one in self._applied.values() if one.mapped.type == "string")
        for (key, number), one in self._applied.items():
            if one.mapped.is_int_of_text and self._first(f"range of {key}", number):
                facts.append(between(INT_MIN, one.value, INT_MAX))
        facts += self._relations()
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
                        only = (implies(fold == self.fold(text), one == code) for one, fold in self._folded.values())
                        facts += only
        return facts

    def _relations(self) -> Iterator[Formula]:
        """Yield what follows from relations of a text: others, and that it has no other beginning or ending."""
        related = [one for one, *_rest in self._functions.values() if one.relation and one.relation[0] != "matches"]
        applied: dict[str, dict[int, Applied]] = {}
        for (key, number), one in self._applied.items():
            applied.setdefault(key, {})[number] = one
        for first, second in itertools.permutations(related, 2):
            if follows(first, second):
                others = applied.get(second.key, {})
                for number, one in applied.get(first.key, {}).items():
                    if number in others and self._first(f"{first.key} has {second.key}", number):
                        yield implies(one.value, others[number].value)
        places: dict[Any, int] = {}
        for mapped, what in branches(related):
            # Another relation may come between two of them, so what was told apart before is another function.
            name = f"{what} and then, of {len(related)}"
            which = self._z3.Function(name, self._integer, self._integer)
            for number, one in applied.get(mapped.key, {}).items():
                if self._first(f"{name}: {mapped.key}", number):
                    yield implies(one.value, which(one.term) == places.setdefault(mapped.relation, len(places)))

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
        reads = ModelValues(model)
        allowed = {term.get_id(): can_be for term, can_be in self._variables.values()}
        by_term: dict[int, int] = {}  # the codes of terms
        wanted: dict[int, Wanted] = {}
        made: dict[int, list[tuple[Mapped, int]]] = {}
        codes = {name: self._code_of(reads, term) for name, term in terms.items()}
        beyond = [terms[name] for name, code in codes.items() if code >= len(self._listed)]
        if beyond:  # a text that was first asked for after ``define``
            return conj(term < len(self._listed) for term in beyond)
        for name, code in codes.items():
            if code < 0:
                one = wanted.setdefault(code, Wanted(name in names))
                if terms[name].get_id() in allowed:
                    one.allowed.append(allowed[terms[name].get_id()])
        for (key, number), (mapped, term, value, error) in self._applied.items():
            if number not in by_term:
                by_term[number] = self._code_of(reads, term)
            code = by_term[number]
            if code >= 0 or key in wanted.setdefault(code, Wanted(False)).results:
                continue
            fails = error is not False and reads.truth(error)
            result = None if fails else self._value_of(reads, mapped, value)
            wanted[code].results[key] = (mapped, fails, result)
            if mapped.type == "string" and result is None and not fails:
                made.setdefault(code, []).append((mapped, reads.number(value)))
        by_number = {number: text for text, number in self._folds.items()}
        for term, fold in self._folded.values():
            code = self._code_of(reads, term)
            if code in wanted:
                number = reads.number(fold)
                wanted[code].group = number
                wanted[code].like = by_number.get(number)
        found = find_words(wanted, self._listed, made, self._spend)
        if isinstance(found, NoWord):
            return self._none(found) if found.impossible else Guess(self._otherwise(reads, found.number))
        return {name: self._listed[code] if code >= 0 else found[code] for name, code in codes.items()}

    def _otherwise(self, reads: ModelValues, code: int) -> Formula:
        """Return that some function makes something else of a text than in a model, and no text it hardly can make.

        Or the text is another in case only of something else.
        """
        parts: list[Formula] = []
        likely: list[Formula] = []
        made = [reads.number(one.value) for one in self._applied.values() if one.mapped.type == "string"]
        used = Counter([*made, *{self._code_of(reads, one.term) for one in self._applied.values()}])
        for mapped, term, value, error in self._applied.values():
            if self._code_of(reads, term) == code:
                if error is not False:
                    parts.append(neg(same(error, reads.truth(error))))
                is_bool = mapped.type == "bool"
                result = reads.truth(value) if is_bool else reads.number(value)
                if mapped.type == "string" and result < 0 and used[result] == 1:
                    parts.append(value >= 0)  # another number of a text that is nothing else is no difference
                else:
                    parts.append(neg(same(value, result)))
                if mapped.type == "string":
                    possible = images(mapped, self._listed)
                    known = [value == number for number, text in enumerate(self._listed) if text in possible]
                    likely.append(disj((error, value < 0, *known)))
        folds = [(self._code_of(reads, term), fold, reads.number(fold)) for term, fold in self._folded.values()]
        others = [(fold, number) for one, fold, number in folds if one != code]
        for one, fold, number in folds:
            if one == code:
                if number in self._folds.values():
                    parts.append(fold != number)
                parts += (fold != other for other, like in others if like == number)
        return conj((disj(parts), *likely))

    def _none(self, found: NoWord) -> Formula:
        """Return that no text but the known ones has certain values of functions together."""
        keys = {mapped.key for mapped, _fails, _result in found.impossible}
        terms = {number: one.term for (key, number), one in self._applied.items() if key in keys}
        return conj(
            disj((term >= 0, *(self._differs(term, mapped, result) for mapped, _fails, result in found.impossible)))
            for term in terms.values()
        )

    def _differs(self, term: Any, mapped: Mapped, result: Any) -> Formula:
        _mapped, value, error = self._functions[mapped.key]
        differs = neg(same(value(term), self.code(result)))
        return differs if mapped.total else disj((error(term), differs))

    def _value_of(self, reads: ModelValues, mapped: Mapped, term: Any) -> Any:
        if mapped.type == "bool":
            return reads.truth(term)
        number = reads.number(term)
        if mapped.type != "string":
            return number
        return self._listed[number] if 0 <= number < len(self._listed) else None

    def _code_of(self, reads: ModelValues, term: Any) -> int:
        if isinstance(term, str):
            return int(self.code(term))
        return term if is_constant(term) else reads.number(term)
