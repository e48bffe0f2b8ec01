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
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Callable, Mapping, NamedTuple, Sequence, Tuple

from ....policy.evaluation_error import EvaluationError
from ..effort import units_of
from ..encode.patterns import LAST_CHARACTER, texts_matching
from ..terms import require

_MOST = 4000  # candidates for one text
_FEW = 300  # of them, before z3 is asked
_MOST_LONG = 300  # characters that a candidate is made longer by
_RLIMIT = 3_000_000  # units of z3 for one text: about a second
_PATTERNS = 5  # what a unit is worth where z3 has patterns: it needs that much longer for one
_CANDIDATE = 30  # units that a look at a candidate is worth
_MOST_TURNS = 40  # of questions to z3 for one text
_MOST_LACKING = 4  # results of which z3 learns at once
_MOST_PARTS = 5  # of a text that ends with a number
_FILLINGS = ("x", "0", "_", "A", "-", " ", "z9", "é")


@dataclass(frozen=True)
class Mapped:
    """What a function makes of a text that is not constant.

    ``function`` raises EvaluationError where it has no value. ``constants`` are those that it uses, samples of texts
    among them. ``relation`` is its meaning for a solver of texts, where it has one: ``starts_with``, ``ends_with`` or
    ``contains``, with the text, or ``matches``, with the compiled pattern. ``case`` is the function that it is,
    ``lower_ascii`` or ``upper_ascii``, if it is one of a text itself.
    """

    term: Any
    key: str
    function: Callable[[str], Any]
    type: str
    constants: tuple[Any, ...] = ()
    relation: tuple[str, Any] | None = None
    total: bool = False  # it has a value for every text
    case: str | None = None

    @property
    def is_int_of_text(self) -> bool:
        """Whether it is CEL's int(), of the text or of what functions make of it."""
        return self.key.startswith("string_to_int(")


def follows(first: Mapped, second: Mapped) -> bool:
    """Return whether the second relation holds for each text for which the first one does. Neither is a pattern."""
    (kind, part), (other, smaller) = first.relation or ("", ""), second.relation or ("", "")
    if other == "starts_with":
        return bool(kind == other and part.startswith(smaller))
    if other == "ends_with":
        return bool(kind == other and part.endswith(smaller))
    return other == "contains" and kind in ("starts_with", "ends_with", "contains") and smaller in part


def branches(relations: Sequence[Mapped]) -> Iterator[tuple[Mapped, str]]:
    """Yield each beginning and each ending with what tells apart those of which a text has one at most.

    Those are the ones that the same other relation follows from, if any: the longest of the same kind.
    """
    for one in relations:
        kind, part = one.relation or ("", "")
        if kind in ("starts_with", "ends_with"):
            others = (other.relation for other in relations if other is not one and follows(one, other))
            shorter = [other[1] for other in others if other is not None and other[0] == kind and other[1] != part]
            yield one, f"{kind} {max(shorter, key=len, default=None)!r}"


Result = Tuple[Mapped, bool, Any]  # a function, whether it fails, and its value otherwise (None: any text)
Made = Mapping[int, Sequence[Tuple[Mapped, int]]]
Spend = Callable[[float], None]


@dataclass
class Wanted:
    """What a text must be like. Texts of one ``group`` differ in case only, from ``like`` too if that is not None."""

    name: bool  # of a VM
    allowed: list[Callable[[str], bool]] = field(default_factory=list)
    results: dict[str, Result] = field(default_factory=dict)
    group: int | None = None
    like: str | None = None

    def fits(self, text: str) -> bool:
        """Return whether a text has all results: what the last text lacked is looked at first."""
        for key, one in self.results.items():
            if not _has(text, *one):
                self.results = {key: one, **self.results}
                return False
        return all(one(text) for one in self.allowed)

    def likely(self) -> list[Result]:
        """Return the results, those first that few texts have."""
        return sorted(self.results.values(), key=lambda one: one[1] or one[2] in (False, None))


class NoWord(NamedTuple):
    """No text was found. No text at all has the results that are ``impossible``, if any: values only."""

    impossible: tuple[Result, ...] = ()
    number: int = 0  # the text that was not found


def find_words(
    wanted: Mapping[int, Wanted], known: Sequence[str], made: Made | None = None, spend: Spend | None = None
) -> dict[int, str] | NoWord:
    """Return a text for each number, all different and none of the known ones.

    ``made`` has, for a number, the functions that make a text of its text, with the number of that text. ``spend`` is
    told what the search costs, in units of z3.
    """
    made, spend = made or {}, spend or _nothing
    found: dict[int, str] = {}
    derived: dict[int, str] = {}
    taken = set(known)
    groups: dict[int | None, str] = {}
    members: Counter[int | None] = Counter(one.group for one in wanted.values() if one.group is not None)
    results = {value for number, makes in made.items() for _mapped, value in makes if value != number}
    # First the texts of which functions make others, then those, and then names that are like them.
    order = sorted(
        wanted, key=lambda number: (number in results if number in made or number in results else 2, -number)
    )
    for number in order:
        one = wanted[number]
        like = one.like if one.like is not None else groups.get(one.group) if one.group is not None else None
        makes = made.get(number, ())
        if number in derived:
            text = derived[number]
            if not one.fits(text) or not _alike(text, number, found, wanted, known):
                return NoWord(number=number)
            if _derived(text, number, makes, {**derived, **found}, taken - {text}) is None:
                return NoWord(number=number)
        else:
            lower = {text.lower() for text in taken}
            before = [derived[value] for _mapped, value in makes if value in derived]
            candidates = _spellings(like) if like is not None else _candidates(one, [*before, *known])
            solved: str | NoWord | None = NoWord() if like is not None or makes else None
            for tried, text in enumerate(itertools.islice(candidates, _MOST)):
                if tried == _FEW and solved is None:  # often there is none at all
                    solved = _solve(one, taken, spend)
                    if isinstance(solved, NoWord) and solved.impossible:
                        return solved._replace(number=number)
                spend(_CANDIDATE)
                apart = like is not None or before or text.lower() not in lower
                if like is None and 2 ** sum(letter.isalpha() for letter in text) < members[one.group]:
                    continue  # it has not as many spellings as are needed
                fits = text not in taken and apart and one.fits(text) and _alike(text, number, found, wanted, known)
                if fits and _derived(text, number, makes, {**derived, **found}, taken) is not None:
                    break
            else:
                solved = _solve(one, taken, spend) if solved is None else solved
                if isinstance(solved, NoWord):
                    return solved._replace(number=number)
                text = solved
        found[number] = text
        derived.update(_derived(text, number, makes, {**derived, **found}, taken - {text}) or {})
        taken |= {text, *derived.values()}
        groups[one.group] = text
    return found


def _nothing(_units: float) -> None:
    """Count nothing."""


def images(mapped: Mapped, known: Sequence[str]) -> set[str]:
    """Return texts that a function makes of some text that is not known; there may be more."""
    wanted = Wanted(False, results={mapped.key: (mapped, False, None)})
    found: set[str] = set()
    taken = set(known)
    for text in itertools.islice(_candidates(wanted, known), _MOST):
        if text not in taken:
            with suppress(EvaluationError):
                found.add(mapped.function(text))
    return found


def _derived(
    text: str, number: int, makes: Iterable[tuple[Mapped, int]], before: Mapping[int, str], taken: Collection[str]
) -> dict[int, str] | None:
    """Return the texts that functions make of a text, None where they are not as different as their numbers."""
    texts: dict[int, str] = {number: text}
    for mapped, value in makes:
        made = mapped.function(text)
        expected = texts.get(value, before.get(value))
        if expected is None and (made in taken or made in texts.values()):
            return None
        if expected is not None and made != expected:
            return None
        texts[value] = made
    return texts


def _alike(
    text: str, number: int, found: Mapping[int, str], wanted: Mapping[int, Wanted], known: Sequence[str]
) -> bool:
    """Return whether a text differs from others in more than case where their groups say so."""
    one = wanted[number]
    if one.group is None:
        return True
    if one.like is not None or any(text.lower() == other.lower() for other in known):
        return one.like is not None and text.lower() == one.like.lower()
    others = ((wanted[other].group, found[other]) for other in found if wanted[other].group is not None)
    return all((group == one.group) == (other.lower() == text.lower()) for group, other in others)


def _has(text: str, mapped: Mapped, fails: bool, result: Any) -> bool:
    try:
        value = mapped.function(text)
    except EvaluationError:
        return fails
    return not fails and (result is None or value == result)


def has_spellings(name: str) -> bool:
    """Return whether there may be another name that differs from this one in case only."""
    return not name.isascii() or any(one.isalpha() for one in name)


def _spellings(name: str) -> Iterator[str]:
    """Yield a name in other case."""
    yield from (name.upper(), name.lower(), name.capitalize())
    cases = [(one.swapcase(), one) if one.isalpha() else (one,) for one in name]
    yield from map("".join, itertools.product(*cases))


def _candidates(wanted: Wanted, known: Sequence[str]) -> Iterator[str]:
    """Yield texts, the most readable ones first."""
    yield from (f"vm_{number}" if wanted.name else f"other{number or ''}" for number in range(20))
    if wanted.name:
        yield from (f"machine_{number}" for number in range(20))  # which has many spellings
    yield from (f"Other{number or ''} " for number in range(20))  # which is another text in most spellings
    constants = [one for mapped, _fails, _result in wanted.likely() for one in mapped.constants]
    results = [result for _mapped, fails, result in wanted.results.values() if not fails]
    parts = list(dict.fromkeys(one for one in constants if isinstance(one, str)))
    numbers = (one for one in (*constants, *results) if isinstance(one, int) and not isinstance(one, bool))
    sizes = sorted({one + more for one in numbers for more in (-1, 0, 1)})
    holding = [
        mapped.relation
        for mapped, fails, result in wanted.results.values()
        if mapped.relation is not None and result is True and not fails
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


def _solve(wanted: Wanted, taken: set[str], spend: Spend) -> str | NoWord:
    """Ask z3 for a text with the results of the functions that it knows, some first, others as texts lack them."""
    z3 = require()
    context = z3.Context()
    text = z3.String("text", context)
    solver = z3.Solver(ctx=context)
    known = [one for one in wanted.likely() if one[0].relation is not None and not one[1]]
    if not known:
        return NoWord()
    whole = len(known) == len(wanted.results)
    patterns = any(mapped.relation is not None and mapped.relation[0] == "matches" for mapped, *_rest in known)
    price = _PATTERNS if patterns else 1
    marks: dict[str, Result] = {}
    spent = 0  # units, all in all
    lacking = [one for one in known if one[2]] or known[:1]
    excluded = False  # texts that have all results
    for _turn in range(_MOST_TURNS):
        for one in lacking:
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
            return NoWord(tuple(marks[str(mark)] for mark in solver.unsat_core()))
        if answer != z3.sat:
            return NoWord()
        value = solver.model().eval(text, True)
        word = str(value.py_value())
        lacking = [one for one in known if not _has(word, *one)][:_MOST_LACKING]
        if lacking:
            continue
        if _is_literal(word) and wanted.fits(word) and word.lower() not in {one.lower() for one in taken}:
            return word
        if not whole:  # z3 does not know what the text lacks
            return NoWord()
        if not excluded:
            for other in filter(_is_literal, sorted(taken)):  # what is found is compared with the others above
                solver.add(text != z3.StringVal(other, context))
        excluded = True
        solver.add(text != value)
    return NoWord()


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
