# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Resources of an event: a list of names, the first of which leads, and the place of this VM in it.

Names of VMs do not differ by case (events.Event.place_of); expressions that look into the list distinguish cases. The
list is not given to the solver. It knows of each name that something reads whether the list has it, how many names
there are, and that a loop over the list says the same of each name in it. Of a count it knows the names that it counts
and those that it does not; how often the list has a name is left open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from ....events import API_VERSIONS, MAX_NAME_CHARACTERS, MAX_NAMES
from ..terms import Formula, between, conj, disj, implies, is_constant, ite, neg, require, same
from .problem import Encoding, Problem
from .text_functions import TextFunction


class NameLoop(NamedTuple):
    """A loop over the names: whether the predicate is ``deciding`` for some name, and whether it fails for some."""

    predicate: Callable[[Any], Encoding]
    deciding: bool
    decides: Any
    fails: Any


class NameCount(NamedTuple):
    """How many entries of the list have a predicate, which has a value for each name unless it ``fails``."""

    key: str
    predicate: Callable[[Any], Encoding]
    number: Any
    fails: Formula

    def counts(self, name: Any) -> Formula:
        """Return whether a name has the predicate."""
        value, error = self.predicate(name)
        return conj((neg(error), value))

    def leaves_out(self, name: Any) -> Formula:
        """Return whether a name does not have the predicate."""
        return neg(self.counts(name))


@dataclass(frozen=True)
class Distinct:
    """The names without repetitions. ``count`` is how many there are."""

    names: Resources
    count: Any


class Resources:
    """The names of one event. ``count`` is their number, ``first`` the leader's name."""

    def __init__(self, problem: Problem, api_version: str, own: Any) -> None:
        """``own`` is the VM's own name, as a term; what it is where it is not known does not matter."""
        self._problem = problem
        longest = MAX_NAME_CHARACTERS - (1 if api_version == API_VERSIONS[0] else 0)
        self.can_be: Callable[[str], bool] = partial(_can_be_a_name, longest)
        self.own = own
        self._z3 = require()
        self.each_once = problem.boolean("event.Resources has each VM once")
        self.count = problem.integer("size(event.Resources)", 1, MAX_NAMES)
        self._has = self._z3.Function(
            "in event.Resources", self._z3.IntSort(problem.context), self._z3.BoolSort(problem.context)
        )
        integer = self._z3.IntSort(problem.context)
        self._spelling = self._z3.Function("the spelling in event.Resources", integer, integer)
        self.names: dict[Any, Any] = {}  # every name that something reads: a text or a term, by itself or by its id
        self._elements: set[int] = set()  # ids of names that are made for the list itself
        self.loops: list[NameLoop] = []
        self._by_key: dict[str, NameLoop] = {}
        self.counts: dict[str, NameCount] = {}
        self.distinct: Distinct | None = None  # if something reads it
        self._only_known: list[Formula] = []  # that no other names count
        self._all_known: list[Formula] = []  # that no more names count
        self._made_for: dict[int, str] = {}  # ids of names that are made for loops, with the keys of these
        self._others: set[int] = set()  # ids of names that ``facts`` has made
        self.first: Any = None
        self._affects: dict[Any, tuple[Any, Any]] = {}  # the names of VMs, and whether the list has them

    def has(self, name: Any) -> Formula:
        """Return whether the list has a name, in these very letters."""
        if isinstance(name, str) and not self.can_be(name):
            return False
        self._add(name)
        code = self._problem.texts.code(name)
        return self._has(self._z3.IntVal(code, self._problem.context) if is_constant(code) else code)

    def leads(self, name: Any = None) -> Formula:
        """Return whether a VM is the first in the list: this one, or the one of this name."""
        return self._alike(self.leader(), self.own if name is None else name)

    def leader(self) -> Any:
        """Return the first name in the list."""
        if self.first is None:
            self.first = self._element("event.Resources[0]")
            self._problem.facts.append(self.has(self.first))
        return self.first

    def affected(self, name: Any = None) -> Formula:
        """Return whether a VM is in the list: this one, or the one of this name."""
        own = self.own if name is None else name
        key = own if isinstance(own, str) else own.get_id()
        if key not in self._affects:
            which = "" if name is None else f" of {name}"
            self._affects[key] = own, self._problem.boolean(f"affects_me{which}")
            listed = self._element(f"this VM in event.Resources{which}")
            found = conj((self.has(listed), self._alike(listed, own)))
            self._problem.facts.append(implies(self._affects[key][1], found))
            self.leader()
        return self._affects[key][1]

    def loop(self, key: str, predicate: Callable[[Any], Encoding], *, deciding: bool) -> NameLoop:
        """Return a loop that one element decides, with the value ``deciding`` of a predicate.

        Predicates of one ``key`` are the same.
        """
        problem, about = self._problem, key
        key = f"{'some' if deciding else 'not all'} {key}"
        if key in self._by_key:
            return self._by_key[key]
        decided, failed = problem.boolean(f"decided: {key}"), problem.boolean(f"failed: {key}")
        for number, what in enumerate((decided, failed)):
            name = self._element(f"{number} of {key}")
            self._made_for[name.get_id()] = about
            value, error = predicate(name)
            is_so = conj((neg(error), same(value, deciding))) if number == 0 else error
            problem.facts.append(implies(what, conj((self.has(name), is_so))))
            if error is False:  # it fails for no name
                failed = False
                break
        loop = NameLoop(predicate, deciding, decided, failed)
        self.loops.append(loop)
        self._by_key[key] = loop
        return loop

    def count_of(self, key: str, predicate: Callable[[Any], Encoding]) -> NameCount:
        """Return how many entries have a predicate."""
        if key not in self.counts:
            can_fail = predicate(self._another(f"of {key}")).error is not False
            failed = self.loop(key, predicate, deciding=True).fails if can_fail else False
            number = self._problem.integer(f"number of {key}", 0)
            self.counts[key] = NameCount(key, predicate, number, failed)
        return self.counts[key]

    def without_repetitions(self) -> Distinct:
        """Return the names without those that are the same, case included, as one before them."""
        if self.distinct is None:
            self.distinct = Distinct(self, self._problem.integer("size(event.Resources.distinct())", 1))
        return self.distinct

    @property
    def extent(self) -> tuple[int, ...]:
        """How much ``facts`` are about."""
        return len(self.names), len(self.counts), self.distinct is not None

    def facts(self) -> list[Formula]:
        """Return what is true of the list and of all that reads it so far."""
        names = [name for key, name in self.names.items() if key not in self._others]
        facts: list[Formula] = []
        further: list[Any] = []
        known: dict[str, list[Any]] = {}  # what counts
        number = self.count if self.distinct is None else self.distinct.count
        if self.loops or self.counts or self.distinct is not None:
            further.append(self._another("in event.Resources"))
            more = number > _sum(self._first_of_their_kind(names))
            facts += self._is_another(more, further[0], names)
            if self.distinct is not None:
                facts += (implies(more, neg(conj((self.has(name), self._is(name, further[0]))))) for name in names)
                facts.append(between(1, number, self.count))
                facts.append(implies(self.each_once, number == self.count))
        for one in self.counts.values():
            others = [self._another(f"of {one.key}"), self._another(f"not of {one.key}")]
            known[one.key] = [*self._asked_for(one, names), *further[:1], *others]
            facts += self._of_count(one, known[one.key])
            further += others
        names += further
        facts.append(number >= _sum(self._first_of_their_kind(names)))
        for name in names:
            there = self.has(name)
            for loop in self.loops:
                value, error = loop.predicate(name)
                facts.append(implies(conj((there, neg(error), same(value, loop.deciding))), loop.decides))
                facts.append(implies(conj((there, error)), loop.fails))
            for one in self.counts.values():
                facts.append(implies(there, ite(one.counts(name), one.number > 0, one.number < self.count)))
            for own, affected in self._affects.values():
                facts.append(implies(conj((there, self._alike(name, own))), affected))
            if len(names) > 1:  # one in the list is there in no other case
                spelled = self._spelling(self._problem.texts.fold(name))
                facts.append(implies(conj((self.each_once, there)), spelled == self._code(name)))
        self._only_known = [conj(self._none_but(one, known[one.key], names)) for one in self.counts.values()]
        self._all_known = [self._is_number_of(one, known[one.key]) for one in self.counts.values()]
        return facts

    def _of_count(self, one: NameCount, known: list[Any]) -> Iterator[Formula]:
        """Yield what is true of a count: the last two names are others that count, and that do not, if it is larger."""
        first = self._first_of_their_kind(known)
        counted = [conj((new, one.counts(name))) for new, name in zip(first, known)]
        rest = [conj((new, one.leaves_out(name))) for new, name in zip(first, known)]
        yield from self._is_another(one.number > _sum(counted[:-2]), known[-2], known[:-2], one.counts)
        yield from self._is_another(self.count - one.number > _sum(rest[:-2]), known[-1], known[:-2], one.leaves_out)
        yield between(_sum(counted), one.number, self.count - _sum(rest))

    def _is_number_of(self, one: NameCount, known: list[Any]) -> Formula:
        """Return whether a count is that of the known names."""
        first = self._first_of_their_kind(known)
        return one.number == _sum(conj((new, one.counts(name))) for new, name in zip(first, known))

    def _none_but(self, one: NameCount, known: list[Any], names: list[Any]) -> Iterator[Formula]:
        """Yield that no name counts but the known ones."""
        for name in names:
            if not any(name is other for other in known):
                is_known = disj(self._is(name, other) for other in known)
                yield disj((neg(conj((self.has(name), one.counts(name)))), is_known))

    def _asked_for(self, one: NameCount, names: list[Any]) -> list[Any]:
        """Return the names without those that were made for loops about something else."""
        return [
            name for name in names if isinstance(name, str) or self._made_for.get(name.get_id(), one.key) == one.key
        ]

    def _is_another(
        self, more: Formula, other: Any, names: list[Any], holds: Callable[[Any], Formula] = lambda _name: True
    ) -> Iterator[Formula]:
        """Yield that the list has another name if there is more than the known ones."""
        yield implies(more, conj((self.has(other), holds(other))))
        once = conj((more, self.each_once))  # otherwise it may be a name that is listed twice
        yield from (implies(once, neg(conj((self.has(name), self._alike(name, other))))) for name in names)

    def _another(self, what: str) -> Any:
        other = self._element(f"another {what}")
        self._others.add(other.get_id())
        self.has(other)
        return other

    def plain(self) -> Iterator[Formula]:
        """Yield what makes it easier to find names for counts, that which makes it easiest first."""
        if self.counts:
            yield conj((*self._only_known, *self._all_known))
            yield conj(self._only_known)

    def _first_of_their_kind(self, names: list[Any]) -> list[Formula]:
        """Return of each name whether it is in the list and none before it is the same."""
        found = []
        for place, name in enumerate(names):
            before = (conj((self.has(one), self._is(one, name))) for one in names[:place])
            found.append(conj((self.has(name), neg(disj(before)))))
        return found

    def _alike(self, one: Any, other: Any) -> Formula:
        """Return whether two names are the same but for case."""
        texts = self._problem.texts
        return same(texts.fold(one), texts.fold(other))

    def _is(self, one: Any, other: Any) -> Formula:
        """Return whether two names are the same, case included."""
        return same(self._code(one), self._code(other))

    def _code(self, name: Any) -> Any:
        return self._problem.texts.code(name)

    def _element(self, name: str) -> Any:
        """Return a name that may be any."""
        term = self._problem.texts.variable(name, self.can_be)
        self._elements.add(term.get_id())
        return term

    def _add(self, name: Any) -> None:
        key = name if isinstance(name, str) else name.get_id()
        if key in self.names:
            return
        self.names[key] = name
        if not isinstance(name, str) and key not in self._elements:  # any text, of which only names are in the list
            can_be = TextFunction(name, "can be the name of a VM", self.can_be, "bool", total=True)
            self._problem.facts.append(implies(self._has(name), self._problem.texts.apply(can_be)[0]))


def names_of(value: Any) -> Resources | None:
    """Return the names that are the elements of a list, None for another list."""
    return value.names if isinstance(value, Distinct) else value if isinstance(value, Resources) else None


def _can_be_a_name(longest: int, text: str) -> bool:
    """Return whether a text can be the name of a VM in the list."""
    return 0 < len(text) <= longest


def _sum(formulas: Iterable[Formula]) -> Any:
    """Return how many formulas hold."""
    known, terms = 0, []
    for one in formulas:
        if isinstance(one, bool):
            known += one
        else:
            terms.append(require().If(one, 1, 0))
    return known + require().Sum(terms) if terms else known
