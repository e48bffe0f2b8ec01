# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The texts of a model: for each term of a text one that all functions agree with, or why there is none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ..encode.text_functions import TextFunction
from ..encode.texts import Texts
from ..terms import Formula, conj, disj, neg, same
from .model_values import ModelValues
from .text_search import Conflict, TextConstraint, find_texts, images


class FoundTexts(NamedTuple):
    """The texts of a model: ``by_term`` has those of terms by their ids, and those that are known by themselves."""

    by_term: Mapping[Any, str]

    def of(self, term: Any) -> str:
        """Return the text of a term."""
        return term if isinstance(term, str) else self.by_term[term.get_id()]


class Lemma(NamedTuple):
    """A formula that is true of all texts, and false in a model for which there are none."""

    formula: Formula


class BlockingClause(NamedTuple):
    """A formula that excludes a model, and others like it, for which no texts were found, though there may be some."""

    formula: Formula


class ModelTexts:
    """Finds the texts of one model. ``spend`` is told what the search costs, in units of z3."""

    def __init__(self, texts: Texts, values: ModelValues, spend: Callable[[float], None]) -> None:
        self._texts, self._values, self._spend = texts, values, spend

    def find(self, terms: Sequence[Any], names: Sequence[Any]) -> FoundTexts | Lemma | BlockingClause:
        """Return a text for each term; ``names`` are further terms, which name VMs."""
        texts, values = self._texts, self._values
        allowed = {term.get_id(): can_be for term, can_be in texts.variables.values()}
        every = {_id(term): term for term in (*terms, *names)}
        codes = {key: self._code(term) for key, term in every.items()}
        beyond = [every[key] for key, code in codes.items() if code >= len(texts.listed)]
        if beyond:  # a text that was first asked for after ``Texts.new_facts``
            return Lemma(conj(term < len(texts.listed) for term in beyond))
        of_names = {_id(term) for term in names}.difference(map(_id, terms))
        constraints: dict[int, TextConstraint] = {}
        for key, code in codes.items():
            if code < 0:
                one = constraints.setdefault(code, TextConstraint(key in of_names))
                if key in allowed:
                    one.allowed.append(allowed[key])
        code_of: dict[int, int] = {}  # by the ids of terms
        images_of: dict[int, list[tuple[TextFunction, int]]] = {}
        for (key, number), (function, term, value, error) in texts.applications.items():
            if number not in code_of:
                code_of[number] = self._code(term)
            code = code_of[number]
            if code >= 0 or key in constraints.setdefault(code, TextConstraint(False)).results:
                continue
            fails = values.truth(error)
            result = None if fails else self._result(function, value)
            constraints[code].results[key] = (function, fails, result)
            if function.type == "string" and result is None and not fails:
                images_of.setdefault(code, []).append((function, values.number(value)))
        by_fold = {number: text for text, number in texts.folds.items()}
        for term, fold in texts.folded.values():
            code = self._code(term)
            if code in constraints:
                number = values.number(fold)
                constraints[code].group = number
                constraints[code].like = by_fold.get(number)
        found = find_texts(constraints, texts.listed, images_of, self._spend)
        if isinstance(found, Conflict):
            return Lemma(self._excluded(found)) if found.core else BlockingClause(self._otherwise(found.code))
        return FoundTexts({key: texts.listed[code] if code >= 0 else found[code] for key, code in codes.items()})

    def _otherwise(self, code: int) -> Formula:
        """Return a formula that excludes what the model has for a text: a result of a function, or a folded form.

        The results of functions are then among those that the known texts have, or belong to no known text.
        """
        texts, values = self._texts, self._values
        parts: list[Formula] = []
        likely: list[Formula] = []
        applications = texts.applications.values()
        results = [values.number(one.value) for one in applications if one.function.type == "string"]
        uses = Counter([*results, *{self._code(one.term) for one in applications}])
        for function, term, value, error in applications:
            if self._code(term) == code:
                if error is not False:
                    parts.append(neg(same(error, values.truth(error))))
                result = values.truth(value) if function.type == "bool" else values.number(value)
                if function.type == "string" and result < 0 and uses[result] == 1:
                    parts.append(value >= 0)  # another number of a text that is nothing else is no difference
                else:
                    parts.append(neg(same(value, result)))
                if function.type == "string":
                    possible = images(function, texts.listed)
                    known = [value == number for number, text in enumerate(texts.listed) if text in possible]
                    likely.append(disj((error, value < 0, *known)))
        folds = [(self._code(term), fold, values.number(fold)) for term, fold in texts.folded.values()]
        others = [(fold, number) for one, fold, number in folds if one != code]
        for one, fold, number in folds:
            if one == code:
                if number in texts.folds.values():
                    parts.append(fold != number)
                parts += (fold != other for other, like in others if like == number)
        return conj((disj(parts), *likely))

    def _excluded(self, conflict: Conflict) -> Formula:
        """Return that no text but the mentioned ones has the results of a conflict together."""
        keys = {function.key for function, _fails, _result in conflict.core}
        terms = {number: one.term for (key, number), one in self._texts.applications.items() if key in keys}
        return conj(
            disj((term >= 0, *(self._differs(term, function, result) for function, _fails, result in conflict.core)))
            for term in terms.values()
        )

    def _differs(self, term: Any, function: TextFunction, result: Any) -> Formula:
        _function, value, error = self._texts.functions[function.key]
        differs = neg(same(value(term), self._texts.code(result)))
        return differs if function.total else disj((error(term), differs))

    def _result(self, function: TextFunction, value: Any) -> Any:
        """Return the value of a function in the model, None for a text that no policy mentions."""
        if function.type == "bool":
            return self._values.truth(value)
        number = self._values.number(value)
        if function.type != "string":
            return number
        return self._texts.listed[number] if 0 <= number < len(self._texts.listed) else None

    def _code(self, term: Any) -> int:
        return self._values.number(self._texts.code(term))


def _id(term: Any) -> Any:
    return term if isinstance(term, str) else term.get_id()
