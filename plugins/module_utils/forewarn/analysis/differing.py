# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Looks for rules on which forewarn and cel-python differ, with an event for each result that a rule can have."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from ..compiler.second_opinion import CODE, HINT, SecondOpinion
from .counterexamples import Example, tried
from .search import Search, SliceFinding, at_rule
from .symbolic.decide import MatchSets, PolicyDecided
from .symbolic.reading import Reading
from .symbolic.space import without

_EVENTS = 16  # per result: one event, and if a rule is not understood, the same one at other times
_WAYS: Mapping[str, Callable[[MatchSets], int]] = {
    "the condition holds": lambda sets: without(sets.met, sets.unexplained),
    "it does not": lambda sets: without(sets.reached, sets.met | sets.failed),
    "it has no value": lambda sets: sets.failed,
    "the explanation has no value": lambda sets: sets.unexplained,
}


class Differing:
    """Asks for a second opinion on each result of each rule, about an event of the first slice that has one."""

    def __init__(self, reading: Reading) -> None:
        self._opinion = SecondOpinion(reading.artifact)
        self._fixed = reading.fixed
        self._shown: set[tuple[str, str, str]] = set()

    def found(self, search: Search) -> Iterator[SliceFinding]:
        """Yield the expressions on which the engines differ."""
        for policy in search.decided.policies:
            for sets in policy.matches.values():
                for way, classes_of in _WAYS.items():
                    key = (policy.policy.name, sets.match.path, way)
                    classes = 0 if key in self._shown else classes_of(sets)
                    if classes:
                        self._shown.add(key)
                        yield from self._differences(search, policy, sets, search.space.first(classes))

    def _differences(
        self, search: Search, policy: PolicyDecided, sets: MatchSets, first: int
    ) -> Iterator[SliceFinding]:
        space, rule = search.space, sets.match.path
        for number, instead in itertools.islice(tried(space, [first], 1), _EVENTS):
            witness = space.witness(number, instead)
            document, facts, params = witness.document, witness.facts, {**self._fixed, **witness.params}
            for one in self._opinion.differences(
                policy.policy.name, (rule,), document.events[0], document, facts, params
            ):
                finding = replace(
                    at_rule(CODE, "error", policy, sets.match, one.message, HINT),
                    line=one.expression["line"],
                    column=one.expression["column"],
                )
                example = Example(number, witness, search.prover.decide(witness))
                yield SliceFinding(search.with_case(finding, example), "", (), space.cell, "")
