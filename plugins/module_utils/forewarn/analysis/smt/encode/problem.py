# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One problem for the solver: its variables, its texts, and what is true of them all."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from ..effort import Subexpression, current
from ..terms import Formula, between, is_constant, require
from .texts import Texts

NUMBERS = ("int", "uint", "duration", "timestamp")  # types whose values are integers
_Made = TypeVar("_Made")
SORTS = (*NUMBERS, "bool", "string")  # types whose values the solver has


@dataclass(frozen=True)
class OpaqueValue:
    """The value of an expression that cannot be translated and is neither a Boolean, a number nor a text.

    Values of the same ``key`` are the same.
    """

    key: str


@dataclass(frozen=True)
class TextList(OpaqueValue):
    """A list of texts: ``has`` returns whether it has a text, as a term. Nothing else is known of it."""

    has: Callable[[Any], Formula] = field(repr=False, compare=False)


NOTHING = OpaqueValue("nothing")  # of what has no value anyway


class OptionalValue(NamedTuple):
    """An optional value: where it is there, and what it is then."""

    present: Formula
    value: Any


class Encoding(NamedTuple):
    """The encoding of an expression: the term of its value, and the formula that holds iff it has none.

    ``value`` is a value of Python, a term of z3 (a text is its code, a time or duration nanoseconds), a
    ``TextFunction``, a tuple of Encodings for a list, an ``OptionalValue``, one of the objects of ``inputs``, or an
    ``OpaqueValue``. Where ``error`` holds, it means nothing.
    """

    value: Any
    error: Formula = False


def failure(type_: str) -> Encoding:
    """Return the value of an expression of a type that never has one."""
    return Encoding(False if type_ == "bool" else 0 if type_ in SORTS else NOTHING, True)


class Problem:
    """Variables and facts. ``opaque`` has the sources of the expressions that may have any value, with their types.

    ``definitions`` are the formulas of the Booleans that ``define`` made. A question that mentions none of these
    Booleans does not need them.
    """

    def __init__(self) -> None:
        self._z3 = require()
        self.context = self._z3.Context()
        self.effort = current()
        self.texts = Texts(self.context)
        self.facts: list[Formula] = []
        self.definitions: list[Formula] = []
        self.opaque: dict[str, str] = {}
        self.spent = 0  # units of z3, by all solvers of the problem
        self.subexpressions: dict[
            str, Subexpression
        ] = {}  # parts of expressions that may cost too much, by their sources
        self.numbers = itertools.count(1)  # for names that must be unique
        self.exact = True  # whether each value of the solver is one of CEL
        self.inputs_read: set[str] = set()  # the names of variables and of fields of the event that expressions read
        self._fresh_values: dict[str, Encoding] = {}
        self._ranges: dict[int, tuple[Any, int, int]] = {}  # of terms, by their ids, which a term keeps
        self._choices: dict[int, tuple[Any, tuple[str, ...]]] = {}  # likewise
        self._memo: dict[tuple[str, int], tuple[Any, Any]] = {}  # what was made of terms, likewise
        self.divisions: dict[int, tuple[Any, Any]] = {}  # quotients and remainders with what is divided, likewise
        self.invented_names: set[str] = set()  # names of VMs that no model has, and that are in all lists of texts
        self.closed = False  # whether there was a question: what is translated later may mention texts that it excluded

    def define(self, name: str, formula: Formula) -> Formula:
        """Return a Boolean that is defined as a formula, so that others can use it without repeating it.

        Raises RuntimeError after the first question to the solver.
        """
        if self.closed:
            raise RuntimeError("nothing can be named after the first question")
        if isinstance(formula, bool) or not formula.num_args():
            return formula
        term = self.boolean(f"{name} (no. {next(self.numbers)})")  # two definitions of one name would contradict
        self.definitions.append(term == formula)
        return term

    def boolean(self, name: str) -> Any:
        """Return a fresh Boolean."""
        return self._z3.Bool(name, self.context)

    def integer(self, name: str, low: int | None = None, high: int | None = None) -> Any:
        """Return a fresh integer, in a range if one is given."""
        term = self._z3.Int(name, self.context)
        if low is not None:
            self.facts.append(term >= low)
        if high is not None:
            self.facts.append(term <= high)
        return term

    def note_range(self, term: Any, low: int, high: int) -> None:
        """Note that the facts have a number lie in a range, both ends included."""
        if not is_constant(term):
            self._ranges[term.get_id()] = term, low, high

    def range_of(self, term: Any) -> tuple[int, int] | None:
        """Return the range in which a number is known to lie, both ends included; None if none is known."""
        if is_constant(term):
            return term, term
        return self._ranges[term.get_id()][1:] if term.get_id() in self._ranges else None

    def plus(self, term: Any, other: Any, low: int | None = None, high: int | None = None) -> Any:
        """Return a sum. ``other`` lies in a range, both ends included; without one, it is a constant."""
        total, known = term + other, self.range_of(term)
        if known is not None:
            self.note_range(
                total, known[0] + (other if low is None else low), known[1] + (other if high is None else high)
            )
        return total

    def memo(self, what: str, term: Any, make: Callable[[], _Made]) -> _Made:
        """Return what is made of a term, by a name: the same for the same term."""
        if is_constant(term):
            return make()
        key = what, term.get_id()
        if key not in self._memo:
            self._memo[key] = term, make()
        made: _Made = self._memo[key][1]
        return made

    def divide(self, term: Any, by: int) -> tuple[Any, Any]:
        """Return the quotient, rounded down, and the remainder of a number: the same terms for the same number.

        They are numbers of their own, so that what divides them further does not repeat the division.
        """
        if is_constant(term):
            return term // by, term % by

        def split() -> tuple[Any, Any]:
            name = f"division by {by} (no. {next(self.numbers)})"
            known = self.range_of(term)
            if known is not None and known[0] // by == known[1] // by:
                quotient = known[0] // by
                return quotient, self.plus(term, -by * quotient)
            quotient = self.integer(name)
            if known is not None:
                self.facts.append(between(known[0] // by, quotient, known[1] // by))
                self.note_range(quotient, known[0] // by, known[1] // by)
            rest = self.integer(f"rest of {name}", 0, by - 1)
            self.note_range(rest, 0, by - 1)
            self.facts.append(term == by * quotient + rest)
            self.divisions[quotient.get_id()] = quotient, term
            self.divisions[rest.get_id()] = rest, term
            return quotient, rest

        return self.memo(f"divided by {by}", term, split)

    def note_choices(self, term: Any, texts: Sequence[str]) -> None:
        """Note that the facts have a text be one of some."""
        self._choices[term.get_id()] = term, tuple(texts)

    def choices(self, term: Any) -> tuple[str, ...]:
        """Return the texts that a text is known to be one of; none if none are known."""
        if isinstance(term, str):
            return (term,)
        return () if is_constant(term) else self._choices.get(term.get_id(), (None, ()))[1]

    def real(self, name: str) -> Any:
        """Return a number that stands for a double; it may be one that no double is equal to."""
        self.exact = False
        return self._z3.Real(name, self.context)

    def fresh_value(self, key: str, source: str, type_: str) -> Encoding:
        """Return the value of an expression that cannot be translated: the same for the same ``key``.

        ``source`` is its text, ``type_`` its type as CEL writes it.
        """
        if key not in self._fresh_values:
            self.opaque.setdefault(source, type_)
            name = f"{source} (no. {len(self._fresh_values) + 1})"
            error = self.boolean(f"error: {name}")
            value: Any = OpaqueValue(key)
            if type_ == "bool":
                value = self.boolean(name)
            elif type_ in NUMBERS:
                value = self.integer(name)
            elif type_ == "string":
                value = self.texts.variable(name, any_text)
            self._fresh_values[key] = Encoding(value, error)
        return self._fresh_values[key]

    @property
    def extent(self) -> tuple[int, ...]:
        """How much there is to know; it grows where something is asked for that was not translated before."""
        return (len(self.facts), *self.texts.extent)

    def add_text_facts(self) -> None:
        """Add the facts about the texts that were asked for since the last call."""
        self.facts += self.texts.new_facts()


def any_text(text: str) -> bool:  # noqa: ARG001  # any text is allowed
    """Return that a text is allowed."""
    return True
