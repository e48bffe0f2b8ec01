# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds texts of which functions have given results, or that there are none.

Candidates are made of the constants that the functions use; each is judged by the functions themselves. Where none
fits, and z3 knows all functions, z3 decides whether there is a text.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Callable, Mapping, NamedTuple, Sequence, Tuple

from ....policy.evaluation_error import EvaluationError
from ..effort import units_of
from ..encode.patterns import LAST_CHARACTER, texts_matching
from ..encode.text_functions import TextFunction
from ..terms import require

_MOST = 4000  # candidates for one text
_FEW = 300  # of them, before z3 is asked
_RLIMIT = 3_000_000  # units of z3 for one text: about a second
_PATTERNS = 5  # what a unit is worth where z3 has patterns: it needs that much longer for one
_CANDIDATE = 30  # units that a candidate is worth
_MOST_TURNS = 40  # of questions to z3 for one text
_MOST_LEARNT = 4  # results that z3 learns at once
_MOST_PARTS = 5  # of a text that ends with a number
_FILLINGS = ("x", "0", "_", "A", "-", " ", "z9", "é")

Result = Tuple[TextFunction, bool, Any]  # a function, whether it fails, and its value otherwise (None: any text)
# For the code of a text: functions that make a text of it, each with the code of that text.
Images = Mapping[int, Sequence[Tuple[TextFunction, int]]]
Spend = Callable[[float], None]


@dataclass
class TextConstraint:
    """What a text must be like. Texts of one ``group`` differ in case only, from ``like`` too if that is not None."""

    name: bool  # of a VM
    allowed: list[Callable[[str], bool]] = field(default_factory=list)
    results: dict[str, Result] = field(default_factory=dict)
    group: int | None = None
    like: str | None = None

    def fits(self, text: str) -> bool:
        """Return whether a text has all results: the one that the last text did not have is checked first."""
        for key, one in self.results.items():
            if not _has(text, *one):
                self.results = {key: one, **self.results}
                return False
        return all(one(text) for one in self.allowed)

    def likely(self) -> list[Result]:
        """Return the results, those first that few texts have."""
        return sorted(self.results.values(), key=lambda one: one[1] or one[2] in (False, None))


class Conflict(NamedTuple):
    """No text was found for a code. No text at all has the results of the ``core`` together, if any: values only."""

    code: int
    core: tuple[Result, ...] = ()


def find_texts(
    constraints: Mapping[int, TextConstraint],
    known: Sequence[str],
    images_of: Images | None = None,
    spend: Spend | None = None,
) -> dict[int, str] | Conflict:
    """Return a text for each code, all different and none of the known ones.

    ``spend`` is told what the search costs, in units of z3.
    """
    return _TextSearch(constraints, known, images_of or {}, spend or _nothing).run()


def _nothing(_units: float) -> None:
    """Count nothing."""


class _TextSearch:
    """Finds one text after another; what was found is not looked for again."""

    def __init__(
        self, constraints: Mapping[int, TextConstraint], known: Sequence[str], images_of: Images, spend: Spend
    ) -> None:
        self._constraints, self._known, self._images_of, self._spend = constraints, known, images_of, spend
        self._found: dict[int, str] = {}
        self._derived: dict[int, str] = {}  # by their codes: texts that functions make of those that were found
        self._taken = set(known)
        self._groups: dict[int | None, str] = {}  # one of the texts of each group
        self._members: Counter[int | None] = Counter(one.group for one in constraints.values() if one.group is not None)

    def run(self) -> dict[int, str] | Conflict:
        """Return a text for each code."""
        made = {value for number, images in self._images_of.items() for _function, value in images if value != number}
        # First the texts of which functions make others, then those, and then names that are like them.
        order = sorted(
            self._constraints,
            key=lambda code: (code in made if code in self._images_of or code in made else 2, -code),
        )
        for code in order:
            text = self._follow(code) if code in self._derived else self._search(code)
            if isinstance(text, Conflict):
                return text
            self._found[code] = text
            self._derived.update(self._derive(code, text, self._taken - {text}) or {})
            self._taken |= {text, *self._derived.values()}
            self._groups[self._constraints[code].group] = text
        return self._found

    def _follow(self, code: int) -> str | Conflict:
        """Return the text that a function makes of one that was found."""
        text = self._derived[code]
        fits = self._constraints[code].fits(text) and self._has_case(code, text)
        return text if fits and self._derive(code, text, self._taken - {text}) is not None else Conflict(code)

    def _search(self, code: int) -> str | Conflict:
        one, images = self._constraints[code], self._images_of.get(code, ())
        like = one.like if one.like is not None else self._groups.get(one.group) if one.group is not None else None
        before = [self._derived[value] for _function, value in images if value in self._derived]
        candidates = _spellings(like) if like is not None else _candidates(one, [*before, *self._known])
        lower = {text.lower() for text in self._taken}
        solved: str | Conflict | None = Conflict(code) if like is not None or images else None
        for tried, text in enumerate(itertools.islice(candidates, _MOST)):
            if tried == _FEW and solved is None:  # often there is none at all
                solved = _solve(code, one, self._taken, self._spend)
                if isinstance(solved, Conflict) and solved.core:
                    return solved
            self._spend(_CANDIDATE)
            apart = like is not None or before or text.lower() not in lower
            if like is None and 2 ** sum(letter.isalpha() for letter in text) < self._members[one.group]:
                continue  # it has not as many spellings as are needed
            fits = text not in self._taken and apart and one.fits(text) and self._has_case(code, text)
            if fits and self._derive(code, text, self._taken) is not None:
                return text
        return _solve(code, one, self._taken, self._spend) if solved is None else solved

    def _derive(self, code: int, text: str, taken: Collection[str]) -> dict[int, str] | None:
        """Return the texts that functions make of a text, None where they are not as different as their codes."""
        before, texts = {**self._derived, **self._found}, {code: text}
        for function, value in self._images_of.get(code, ()):
            image = function.function(text)
            expected = texts.get(value, before.get(value))
            if expected is None and (image in taken or image in texts.values()):
                return None
            if expected is not None and image != expected:
                return None
            texts[value] = image
        return texts

    def _has_case(self, code: int, text: str) -> bool:
        """Return whether a text differs from others in more than case where their groups say so."""
        one = self._constraints[code]
        if one.group is None:
            return True
        if one.like is not None or any(text.lower() == other.lower() for other in self._known):
            return one.like is not None and text.lower() == one.like.lower()
        groups = ((self._constraints[number].group, other) for number, other in self._found.items())
        return all(
            (group == one.group) == (other.lower() == text.lower()) for group, other in groups if group is not None
        )


def images(function: TextFunction, known: Sequence[str]) -> set[str]:
    """Return texts that a function makes of some text that is not known; there may be more."""
    constraint = TextConstraint(False, results={function.key: (function, False, None)})
    found: set[str] = set()
    taken = set(known)
    for text in itertools.islice(_candidates(constraint, known), _MOST):
        if text not in taken:
            with suppress(EvaluationError):
                found.add(function.function(text))
    return found


def _has(text: str, function: TextFunction, fails: bool, result: Any) -> bool:
    try:
        value = function.function(text)
    except EvaluationError:
        return fails
    return not fails and (result is None or value == result)


def _spellings(name: str) -> Iterator[str]:
    """Yield a name in other case."""
    yield from (name.upper(), name.lower(), name.capitalize())
    cases = [(one.swapcase(), one) if one.isalpha() else (one,) for one in name]
    yield from map("".join, itertools.product(*cases))


def _candidates(constraint: TextConstraint, known: Sequence[str]) -> Iterator[str]:
    """Yield texts, the most readable ones first."""
    yield from (f"vm_{number}" if constraint.name else f"other{number or ''}" for number in range(20))
    if constraint.name:
        yield from (f"machine_{number}" for number in range(20))  # which has many spellings
    yield from (f"Other{number or ''} " for number in range(20))  # which is another text in most spellings
    constants = [one for function, _fails, _result in constraint.likely() for one in function.constants]
    results = [result for _function, fails, result in constraint.results.values() if not fails]
    parts = list(dict.fromkeys(one for one in constants if isinstance(one, str)))
    numbers = (one for one in (*constants, *results) if isinstance(one, int) and not isinstance(one, bool))
    sizes = sorted({one + more for one in numbers for more in (-1, 0, 1)})
    holding = [
        function.relation
        for function, fails, result in constraint.results.values()
        if function.relation is not None and result is True and not fails
    ]
    begin = max((part for kind, part in holding if kind == "starts_with"), key=len, default="")
    end = max((part for kind, part in holding if kind == "ends_with"), key=len, default="")
    middle = "".join(part for kind, part in holding if kind == "contains")
    for number in dict.fromkeys(str(one) for one in results if isinstance(one, int) and not isinstance(one, bool)):
        yield number
        for times, part in itertools.product(range(1, _MOST_PARTS), parts[:_MOST_PARTS]):
            yield from ((filling + part) * times + number for filling in ("", *_FILLINGS[:2]))
    for filling in ("", *_FILLINGS):
        yield from (begin + filling + middle + filling + end, begin + middle + filling + end)
    for size in sizes:
        if 0 <= size <= 4096:
            yield from ((begin + middle).ljust(size - len(end), filling) + end for filling in _FILLINGS[:3])
    yield from ("", *_FILLINGS, "0", "1", "42", "-1", "true", "false")
    yield from parts
    for text in (*parts, *known[:50]):
        yield from (text, text.upper(), text.lower(), text.swapcase(), text.capitalize(), text[:-1], text[1:])
        for filling in _FILLINGS:
            yield from (text + filling, filling + text, filling + text + filling)
    for one, other in itertools.product(parts[:20], repeat=2):
        yield from (one + other, f"{one}x{other}", f"{one} {other}", f"x{one}{other}x")


def _solve(code: int, constraint: TextConstraint, taken: set[str], spend: Spend) -> str | Conflict:
    """Ask z3 for a text with the results of the functions that it knows, some first, others as texts lack them."""
    z3 = require()
    context = z3.Context()
    text = z3.String("text", context)
    solver = z3.Solver(ctx=context)
    known = [one for one in constraint.likely() if one[0].relation is not None and not one[1]]
    if not known:
        return Conflict(code)
    whole = len(known) == len(constraint.results)
    patterns = any(function.relation is not None and function.relation[0] == "matches" for function, *_rest in known)
    price = _PATTERNS if patterns else 1
    marks: dict[str, Result] = {}
    spent = 0  # units, all in all
    unknown = [one for one in known if one[2]] or known[:1]
    excluded = False  # texts that have all results
    for _turn in range(_MOST_TURNS):
        for one in unknown:
            known.remove(one)
            holds = _holds(text, *(one[0].relation or ()), patterns=patterns)
            if holds is not None:
                solver.assert_and_track(holds if one[2] else z3.Not(holds), f"result {len(marks)}")
                marks[f"result {len(marks)}"] = one
        solver.set("rlimit", max(1, _RLIMIT // price - spent))
        answer = solver.check()
        before, spent = spent, units_of(solver)
        spend(price * (spent - before))
        if answer == z3.unsat and not excluded:
            return Conflict(code, tuple(marks[str(mark)] for mark in solver.unsat_core()))
        if answer != z3.sat:
            return Conflict(code)
        value = solver.model().eval(text, True)
        word = str(value.py_value())
        unknown = [one for one in known if not _has(word, *one)][:_MOST_LEARNT]
        if unknown:
            continue
        if _is_literal(word) and constraint.fits(word) and word.lower() not in {one.lower() for one in taken}:
            return word
        if not whole:  # z3 does not know what the text lacks
            return Conflict(code)
        if not excluded:
            for other in filter(_is_literal, sorted(taken)):  # what is found is compared with the others above
                solver.add(text != z3.StringVal(other, context))
        excluded = True
        solver.add(text != value)
    return Conflict(code)


def _holds(text: Any, kind: str, part: Any, *, patterns: bool) -> Any | None:
    """Return whether a relation holds for a text, None if z3 cannot say it exactly.

    Beside ``patterns`` it is a pattern as well: z3 decides more of one kind than of two.
    """
    z3 = require()
    if kind == "matches":
        texts = texts_matching(part, text.ctx)
        return None if texts is None else z3.InRe(text, texts)
    if not _is_literal(part):
        return None
    value = z3.StringVal(part, text.ctx)
    if patterns:
        anything = z3.Full(z3.ReSort(text.sort()))
        before = [] if kind == "starts_with" else [anything]
        after = [] if kind == "ends_with" else [anything]
        return z3.InRe(text, z3.Concat(*before, z3.Re(value), *after))
    if kind == "contains":
        return z3.Contains(text, value)
    return z3.PrefixOf(value, text) if kind == "starts_with" else z3.SuffixOf(value, text)


def _is_literal(text: str) -> bool:
    """Return whether z3 reads a text as it is: it has escapes with a backslash, and no characters beyond U+2FFFF.

    That character stands for those beyond it, so no text may name it; and half a surrogate pair is no text.
    """
    return "\\" not in text and all(ord(one) < LAST_CHARACTER and not 0xD800 <= ord(one) < 0xE000 for one in text)
