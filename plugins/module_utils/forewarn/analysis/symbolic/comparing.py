# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares events that differ in one respect: of unknown duration and long ones, unprepared and prepared ones.

Where what is not understood makes the difference, the engine is asked about both events.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from ...policy.decision import APPROVE, HOLD
from ..counterexamples import Instead, tried
from ..search import TYPES, Search, SliceFinding, at_rule
from .abstract import Evaluation
from .decide import Decided
from .domains import MISSING
from .space import without
from .symbols import DURATION

_LONG = (900, 3600, 24 * 3600, 30 * 24 * 3600)  # seconds, tried where nothing shows which are long
# What may differ between events of one kind, and under which name expressions read it.
_ALIKE = {name: f"event.{name}" for name in ("EventSource", "Description", "ResourceType", "EventId")}
_ALIKE.update({"notice": "notice", "NotBefore": "event.NotBefore", "age": "age", "now": "now"})
_MOST_SLICED = 3  # expressions with one value in a slice, which are tried with others
_MOST_BESIDE = 400  # events tried beside those of one finding


def compared(search: Search) -> Iterator[SliceFinding]:
    """Yield approvals of events that are held, or prepared for, if they differ a little."""
    yield from _unknown_duration(search)
    yield from _unprepared(search)


def _unknown_duration(search: Search) -> Iterator[SliceFinding]:
    space = search.space
    dimension = space.by_name.get(DURATION.name)
    if dimension is None or len(dimension.values) < 3:
        return
    opaque_terms = _opaque_terms(search, (DURATION.name,))
    top = max(value.low for value in dimension.values if value.concrete is not MISSING)
    classes = search.decided.approve & space.having(DURATION.name, -1) & _alike_held(search, top, opaque_terms)
    hint = "DurationInSeconds is -1 when it is not known: add event.DurationInSeconds >= 0 &&"
    for policy, match, taken in search.approving(classes):
        longer = "a longer one" if opaque_terms else f"one of {_least(search, taken, top)} s and more"
        message = f"rule {match.path} approves {TYPES} whose duration is unknown (-1), though {longer} is held"
        finding = at_rule("unknown-duration-approved", "error", policy, match, message, hint)
        yield from search.shown(finding, taken, beside=_Longer(search, top) if opaque_terms else None)


def _least(search: Search, classes: int, top: int) -> int:
    """Return the duration from which on all similar events are held."""
    least = top
    for value in reversed(search.space.by_name[DURATION.name].values):
        if value.concrete is not MISSING and value.low >= 0:
            if without(classes, _alike_held(search, value.low, ())):
                break
            least = value.low
    return least


def _alike_held(search: Search, low: int, opaque_terms: Sequence[str]) -> int:
    """Return the classes that would be held if their duration were in the interval that begins at ``low``."""
    space, held = search.space, 0
    for place, value in enumerate(space.by_name[DURATION.name].values):
        if value.low == low and value.concrete is not MISSING:
            held |= space.mask(DURATION.name, place)
    found = 0
    for decided in _otherwise(search, opaque_terms):
        found |= (
            space.all
            if decided is None
            else space.fold(decided.hold & held, [DURATION.name, *_whole(search, opaque_terms)])
        )
    return found


class _Longer:
    """Looks for a longer event, the same in all else, that is held."""

    def __init__(self, search: Search, top: int) -> None:
        self._search = search
        values = search.space.by_name[DURATION.name].values
        reps = [value.concrete for value in values if value.low == top and value.concrete is not MISSING]
        self._durations = [*(one for one in _LONG if one >= top), *(max(one, 0) for one in reps)]
        self._left = _MOST_BESIDE

    def __call__(self, number: int, instead: Instead) -> bool:
        for duration in self._durations:
            if self._left > 0:
                self._left -= 1
                seen = self._search.space.witness(number, {**(instead or {}), DURATION: duration})
                if self._search.prover.decide(seen).output == HOLD:
                    return True
        return False


def _unprepared(search: Search) -> Iterator[SliceFinding]:
    space = search.space
    opaque_terms = _opaque_terms(search, tuple(_ALIKE.values()))
    dims = [read for read in _ALIKE.values() if read in space.by_name]
    folded = usual = 0
    for decided in _otherwise(search, opaque_terms):
        one = space.all if decided is None else space.normal & decided.approve & search.prepared(decided)
        usual |= one
        folded |= space.fold(one, [*dims, *_whole(search, opaque_terms)])
    classes = without(space.normal & search.decided.approve & folded, search.prepared())
    hint = "give the rule the same prepare, or move it after the one that prepares"
    for policy, match, taken in search.approving(classes):
        message = (
            f"rule {match.path} approves {TYPES} without preparing, though the policies prepare "
            f"for others that differ in {' or '.join(_differing(search, taken, usual, opaque_terms))} only"
        )
        finding = at_rule("approved-unprepared", "warning", policy, match, message, hint)
        beside = _Prepared(search, usual, [*dims, *_whole(search, opaque_terms)]) if opaque_terms else None
        yield from search.shown(finding, taken, beside=beside)


def _differing(search: Search, classes: int, others: int, opaque_terms: Sequence[str]) -> list[str]:
    """Return what may differ between events and the nearest of others."""
    space, by_name = search.space, {}
    for name, read in _ALIKE.items():
        asking = [opaque for opaque in opaque_terms if read in space.opaque_terms[opaque].reads]
        own = [read] if read in space.by_name else []
        if asking or own:
            by_name[name] = [*own, *_whole(search, asking)]
    return [name for name, dims in by_name.items() if space.fold(others, dims) & classes] or list(by_name)


class _Prepared:
    """Looks for an event that differs in a few respects, and is prepared for before it is approved."""

    def __init__(self, search: Search, classes: int, names: Sequence[str]) -> None:
        self._search = search
        self._classes = classes
        self._names = names
        self._left = _MOST_BESIDE

    def __call__(self, number: int, _instead: Instead) -> bool:
        space = self._search.space
        others = space.members(space.fold(1 << number, self._names) & self._classes)
        for other, instead in tried(space, others, 8):
            if self._left > 0:
                self._left -= 1
                decision = self._search.prover.decide(space.witness(other, instead))
                if decision.output == APPROVE and decision.prepare:
                    return True
        return False


def _opaque_terms(search: Search, reads: Sequence[str]) -> list[str]:
    """Return the expressions that are not understood and read one of some names."""
    return [name for name, opaque in search.space.opaque_terms.items() if not opaque.reads.isdisjoint(reads)]


def _whole(search: Search, opaque_terms: Sequence[str]) -> list[str]:
    return [name for name in opaque_terms if len(search.space.by_name[name].values) > 1]


def _otherwise(search: Search, opaque_terms: Sequence[str]) -> Iterator[Decided | None]:
    """Yield the decisions for each value of expressions that have one value in the slice; None: there are too many."""
    sliced = [name for name in opaque_terms if len(search.space.by_name[name].values) == 1]
    if not sliced:
        yield search.decided
    elif len(sliced) > _MOST_SLICED:
        yield None
    else:
        for values in itertools.product((True, False), repeat=len(sliced)):
            instead: dict[str, Any] = dict(zip(sliced, values))
            yield Decided(search.decided.reading, search.space, Evaluation(search.space, instead))
