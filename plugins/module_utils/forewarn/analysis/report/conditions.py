# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Evaluates terms on all classes at once: for each, the set where it is true, where false, where an error.

``&&`` and ``||`` absorb errors as the CEL language definition says: a side that decides hides the other's error.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from typing import Any, NamedTuple

from ..event_space.atoms import Atom, Term
from ..event_space.space import Space
from ..event_space.symbol_table import case_of


class Sets(NamedTuple):
    """Three sets of classes that have none in common and cover the space."""

    true: int
    false: int
    error: int


class Evaluation:
    """Evaluates terms on one space; what is asked for twice is computed once."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self._known: dict[int, Sets] = {}
        self._kept: list[Term] = []  # so that no other term gets the id of a known one
        self._roots: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}

    def __call__(self, term: Term) -> Sets:
        """Return the sets of a term."""
        found = self._known.get(id(term))
        if found is None:
            found = self._known[id(term)] = self._evaluate(term)
            self._kept.append(term)
        return found

    def once(self, term: Term) -> Sets:
        """Return the sets of a term that is not asked for again; those of its parts are kept."""
        return self._known.get(id(term)) or self._evaluate(term)

    def _evaluate(self, term: Term) -> Sets:
        everything = self.space.all
        if term.op == "lit":
            return Sets(*(everything if term.name == one else 0 for one in ("true", "false", "error")))
        if term.op == "exact" and term.atom is not None:
            return self._exact(term.atom)
        inner = []
        for one in term.terms:
            sets = self(one)
            if (sets.false if term.op == "and" else sets.true if term.op == "or" else 0) == everything:
                return sets  # decides alone, whatever the others are
            inner.append(sets)
        if term.op == "opaque":
            valued = inner[0].true
            true = valued & self.space.classes_with(term.name, True)  # in a slice, its only value may be False
            return Sets(true, valued ^ true, everything ^ valued)
        true, false = _OPERATIONS[term.op](inner) if inner else (everything, 0)
        return Sets(true, false, everything ^ (true | false))

    def _exact(self, atom: Atom) -> Sets:
        given = iter(self._all_roots(atom))
        space = self.space

        def pattern(depth: int) -> Any:
            """Return the answers for all combinations of the dimensions from ``depth`` on, nested."""
            if depth == len(atom.dims):
                return atom.evaluate(next(given))
            return tuple([pattern(depth + 1) for _value in space.by_name[atom.dims[depth]].values])

        def sets(answers: Any, depth: int) -> dict[str, int]:
            """Return the classes of each answer, as far as they differ in the dimensions from ``depth`` on."""
            if depth == len(atom.dims):
                return {answers: space.all}
            alike: dict[Any, list[int]] = {}
            for place, inner in enumerate(answers):
                alike.setdefault(inner, []).append(place)
            found: dict[str, int] = {}
            for inner, places in alike.items():
                mask = space.mask_of(atom.dims[depth], places) if len(alike) > 1 else space.all
                for answer, classes in sets(inner, depth + 1).items():
                    chosen = mask if classes is space.all else classes & mask
                    found[answer] = found[answer] | chosen if answer in found else chosen
            return found

        found = sets(pattern(0), 0)
        return Sets(*(found.get(answer, 0) for answer in ("true", "false", "error")))

    def _all_roots(self, atom: Atom) -> list[tuple[Any, ...]]:
        """Return what an atom reads for each combination of values, the last dimension varying fastest."""
        key = (atom.dims, id(atom.params))
        if key not in self._roots:
            dimensions = [self.space.by_name[name] for name in atom.dims]
            self._roots[key] = [
                case_of(zip(dimensions, values)).roots(atom.params)
                for values in itertools.product(*(dimension.values for dimension in dimensions))
            ]
        return self._roots[key]


# The classes in which a term is true, and in which it is false, by those of its parts.
_OPERATIONS: Mapping[str, Callable[[list[Sets]], tuple[int, int]]] = {
    "and": lambda sets: (_in_all(one.true for one in sets), _in_some(one.false for one in sets)),
    "or": lambda sets: (_in_some(one.true for one in sets), _in_all(one.false for one in sets)),
    "not": lambda sets: (sets[0].false, sets[0].true),
    "if": lambda sets: (
        (sets[0].true & sets[1].true) | (sets[0].false & sets[2].true),
        (sets[0].true & sets[1].false) | (sets[0].false & sets[2].false),
    ),
    "same": lambda sets: _alike(*sets),
    "differ": lambda sets: _alike(*sets)[::-1],
    "defined": lambda sets: (_in_all(one.true | one.false for one in sets), 0),
}


def _in_all(sets: Iterable[int]) -> int:
    return reduce(operator.and_, sets)


def _in_some(sets: Iterable[int]) -> int:
    return reduce(operator.or_, sets)


def _alike(one: Sets, other: Sets) -> tuple[int, int]:
    true = (one.true & other.true) | (one.false & other.false)
    return true, (one.true & other.false) | (one.false & other.true)
