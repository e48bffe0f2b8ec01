# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Events in words: the values of a few inputs for which something is possible.

The solver says which combinations of values there are; ``event_space.regions`` writes them down. The words may be about
more events than are meant, where what tells them apart is not among these inputs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

from ..events import event_types
from .artifacts import Json
from .event_space.domains import MISSING
from .event_space.policies import Reading, read_together
from .event_space.regions import ANY, Cube, cubes, words
from .event_space.space import Space
from .event_space.symbol_table import Dimension
from .event_space.symbols import EVENT_TYPE, NOW
from .proof import Proof
from .smt.encode.cells import cell, number
from .smt.solver import SolverAnswer
from .smt.terms import Formula, conj, disj, neg

_MOST_CELLS = 20_000  # combinations of values
_MOST_PARTS = 3  # of a finding
_SIGNS = {("<",): "<", ("=",): "=", (">",): ">", ("<", "="): "≤", ("=", ">"): "≥", ("<", ">"): "≠"}
_MOST_FOUND = 48  # of those, before the words are about fewer inputs


class _Event(NamedTuple):
    """An event that the solver found, and the places of its values in some dimensions (None: it has none of them)."""

    model: Any
    places: dict[str, int | None]


class Wording:
    """Describes events of one proof. ``readings`` have what the expressions of its versions read."""

    def __init__(self, proof: Proof, readings: Sequence[Reading]) -> None:
        self._proof = proof
        table = readings[0].symbols
        self._api_version = table.api_version
        every = [one for one in table.dimensions() if one.kind != "opaque"]
        self._dimensions = {one.name: _plain(one) for one in every}
        self._peers = {one.name: one.peers for one in every if one.ordered}
        self._extra = table.extra
        self._formulas: dict[str, list[Formula]] = {}  # by the name of an input: where it has each of its values
        self._seen: list[_Event] = []
        self._extent: tuple[int, ...] = ()  # what the solver knew when it found these

    def types(self, *formulas: Formula) -> list[str]:
        """Return the types of events for which formulas hold."""
        ask, is_one_of = self._proof.ask, self._proof.inputs.is_one_of
        known = (*event_types(self._api_version), *self._extra.get("EventType", ()))
        return [one for one in known if ask(*formulas, is_one_of("EventType", one)) is SolverAnswer.POSSIBLE]

    def when(self, formula: Formula, among: Formula, names: Collection[str]) -> str:
        """Return in words for which events a formula holds, among others; ``names`` are of the inputs to mention."""
        parts, complete = self.parts(formula, among, names, _MOST_PARTS)
        texts = list(dict.fromkeys(text for text, _part in parts))
        return ANY if ANY in texts else "; or ".join([*texts, *([] if complete else ["in other cases"])])

    def values(self, name: str, formula: Formula, among: Formula, *, there: bool = False) -> str:
        """Return in words for which values of an input a formula holds, of those that it has in some events.

        Empty where it is not proven that it holds for all events with these values and for no others, or if there is
        nothing to say of the values. With ``there``, those are left out that have none.
        """
        dimension = self._dimensions.get(name)
        if dimension is None or name == NOW.name:  # its words know no bounds of the time
            return ""
        formulas, found = self._values(dimension), []
        if not self._proof.never(among, neg(disj(formulas))):
            return ""
        for value, here in zip(dimension.values, formulas):
            if (there and value.concrete is MISSING) or self._proof.never(among, here, formula):
                continue
            if self._proof.ask(among, here) is not SolverAnswer.POSSIBLE:
                return ""
            if not self._proof.never(among, here, neg(formula)):
                return ""
            found.append(value)
        vague = there and any(one.label == "any other" for one in found)
        return dimension.phrase(found) if found and not vague else ""

    def parts(
        self, formula: Formula, among: Formula, names: Collection[str], most: int
    ) -> tuple[list[tuple[str, Formula]], bool]:
        """Return the parts of the events for which a formula holds, each in words and as a formula that is true of it
        and maybe of others, and whether they are all.
        """
        found = self._found(formula, among, names)
        if found is None:
            return [(ANY, True)], True
        space, inside, care = found
        covered, rest = cubes(space, inside, most, care)
        parts = []
        for one in covered:
            part = self._formula(space, one)
            texts = [words(space, one, care), *self._relations(space, conj((among, formula, part)))]
            parts.append((" and ".join(filter(None, texts)) or ANY, part))
        return parts, not rest

    def _relations(self, space: Space, formula: Formula) -> Iterator[str]:
        """Yield how inputs compare that rules compare with each other, where it is always the same."""
        for first, second in itertools.combinations(space.by_name, 2):
            if second not in self._peers.get(first, ()):
                continue
            symbols = [space.by_name[name].symbol for name in (first, second)]
            one, other = (number(self._proof.inputs, self._proof.params, symbol) for symbol in symbols)
            possible = tuple(
                sign
                for sign, relation in (("<", one < other), ("=", one == other), (">", one > other))
                if not self._proof.never(formula, relation)
            )
            if possible in _SIGNS:
                yield f"{symbols[0].spoken} {_SIGNS[possible]} {symbols[1].spoken}"

    def _found(self, formula: Formula, among: Formula, names: Collection[str]) -> tuple[Space, int, int] | None:
        """Return a space of some inputs, the cells that a formula is possible in, and those of ``among``."""
        chosen = [one for one in self._dimensions.values() if one.name in names or one.symbol is EVENT_TYPE]
        while chosen:
            if math.prod(len(one.values) for one in chosen) <= _MOST_CELLS:
                space = Space(chosen, self._api_version)
                inside = self._cells(space, conj((among, formula)))
                if inside is not None:
                    outside = self._cells(space, conj((among, neg(formula))), inside)
                    return space, inside, space.all if outside is None else inside | outside
            chosen.pop()
        return None

    def _formula(self, space: Space, cube: Cube) -> Formula:
        """Return where the inputs have the values of a cube."""
        return conj(
            disj(self._values(space.by_name[name])[place] for place in places) for name, places in cube.chosen.items()
        )

    def _cells(self, space: Space, formula: Formula, known: int = 0) -> int | None:
        """Return the cells in which a formula is possible, beside known ones; None if there are too many.

        Of events beside known ones, there are often some among those that other questions found.
        """
        solver, beside = self._proof.solver, list(space.members(known))
        seen = [one for one in self._events() if solver.holds(one.model, formula)] if known else []
        numbers = [self._number(space, one) for one in seen]
        cells = {number for number in numbers if number is not None}.difference(beside)
        if None in numbers or len(cells) >= _MOST_FOUND:
            return None
        with solver.scope():
            solver.add(formula)
            for number in (*beside, *cells):
                solver.add(self._outside(space, number))
            while len(cells) < _MOST_FOUND:
                found = solver.ask()
                if not found.possible:
                    return sum(1 << one for one in cells) if found.never else None
                self._seen.append(_Event(found.model, {}))
                new = self._number(space, self._seen[-1])
                if new is None:
                    return None
                cells.add(new)
                solver.add(self._outside(space, new))
        return None

    def _events(self) -> list[_Event]:
        """Return the events that were found so far, none if something was asked for that they do not know."""
        extent = self._proof.solver.learn()
        if extent != self._extent:
            self._extent = extent
            self._seen.clear()
        return self._seen

    def _number(self, space: Space, event: _Event) -> int | None:
        """Return the cell that an event is in, None if it is in none."""
        number = 0
        for dimension in space.dimensions:
            if dimension.name not in event.places:
                values = enumerate(self._values(dimension))
                event.places[dimension.name] = next(
                    (place for place, value in values if self._proof.solver.holds(event.model, value)), None
                )
            place = event.places[dimension.name]
            if place is None:
                return None
            number = number * len(dimension.values) + place
        return number

    def _outside(self, space: Space, number: int) -> Formula:
        """Return where the inputs do not have the values of a cell."""
        return neg(conj(self._values(one)[space.place(one.name, number)] for one in space.dimensions))

    def _values(self, dimension: Dimension) -> list[Formula]:
        """Return where an input has each of its values."""
        if dimension.name not in self._formulas:
            inputs, params = self._proof.inputs, self._proof.params
            self._formulas[dimension.name] = [cell(inputs, params, dimension, value) for value in dimension.values]
        return self._formulas[dimension.name]


def _plain(dimension: Dimension) -> Dimension:
    """Return a dimension with one value for each interval."""
    if not dimension.ordered:
        return dimension._replace(peers=())
    values: dict[Any, Any] = {}
    for value in dimension.values:
        values.setdefault((value.low, value.high), value)
    return dimension._replace(values=tuple(values.values()), peers=())


class Context(NamedTuple):
    """Which parameters are given, in words and as a formula, and what expressions read then."""

    words: str
    given: Formula
    readings: Sequence[Reading]

    def joined(self, words: str) -> str:
        """Return the words for events, with those for which parameters are given."""
        return " and ".join(one for one in (self.words, words) if one not in ("", ANY)) or ANY


def contexts(proof: Proof, invariants: Sequence[Json] = ()) -> Iterator[Context]:
    """Yield which parameters are given: all of those that have several defaults, or all but one.

    ``invariants`` are further expressions to read, as ``read_together`` takes them.
    """
    given = {name: one for name, (_kind, _term, one) in proof.params.varying().items() if one is not True}
    yield Context("", conj(given.values()), read_together(proof.versions, proof.given, invariants))
    for name, one in given.items():
        readings = read_together(proof.versions, proof.given, invariants, at_default=[name])
        yield Context(f"params.{name} is not given", neg(one), readings)
