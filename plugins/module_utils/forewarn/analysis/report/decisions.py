# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Walks the rules of all policies over all classes at once: which rule decides where, and in which combinations.

Sets of classes are integers (see space). Every class of ``space.reachable`` is in exactly one region of each policy.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from ...policy.decision import ABSTAIN, HOLD
from ..diff.behaviour import Behaviour, behaviour
from ..diff.behaviour_change import Description, describe
from ..event_space.expressions import ReadMatch
from ..event_space.policies import Reading, ReadPolicy
from ..event_space.space import Space, without
from ..policy_outcome import DOUBT, ERROR, EXPLANATION, LIMIT, NO_RULE, RULE, PolicyOutcome
from .conditions import Evaluation


@dataclass(frozen=True, eq=False)
class Region(PolicyOutcome[ReadMatch]):
    """The classes that one policy treats alike, for one reason."""

    classes: int


class SpaceDecisions:
    """The decisions of all policies over one space: the regions of each policy, without empty ones."""

    def __init__(self, reading: Reading, space: Space, evaluation: Evaluation | None = None) -> None:
        self.space = space
        evaluation = evaluation or Evaluation(space)
        self.policies = tuple(_RuleWalk(policy, evaluation).regions() for policy in reading.policies)

    def regions(self) -> list[tuple[tuple[Region, ...], int]]:
        """Return the combinations of regions, one of each policy, that occur, with their classes."""
        found: list[tuple[tuple[Region, ...], int]] = [((), self.space.reachable)]
        for regions in self.policies:
            found = [
                ((*before, region), both)
                for before, held in found
                for region in regions
                if (both := held & region.classes)
            ]
        return [one for one in found if one[1]]


class _RuleWalk:
    """Goes through the matches of one policy in the order of the file, as policy.program does, for all classes."""

    def __init__(self, policy: ReadPolicy, evaluation: Evaluation) -> None:
        self._policy, self._evaluation = policy, evaluation
        self._regions: list[Region] = []

    def regions(self) -> tuple[Region, ...]:
        """Return the regions of the policy."""
        space = self._evaluation.space
        known = space.reachable
        for name, values in self._policy.known.items():
            known &= space.classes_with(f"event.{name}", *values)
        self._add(DOUBT, HOLD, None, space.reachable ^ known)
        left, abstained = self._block(self._policy.matches, known)
        self._add(NO_RULE, ABSTAIN, None, left | abstained)
        return tuple(self._regions)

    def _add(self, how: str, output: str, match: ReadMatch | None, classes: int) -> None:
        if classes:
            self._regions.append(Region(self._policy.name, how, output, match, classes))

    def _block(self, matches: tuple[ReadMatch, ...], alive: int) -> tuple[int, int]:
        """Return the classes that no match of a block has taken, and those for which the policy abstains."""
        abstained = 0
        for match in matches:
            holds, fails = alive, 0
            if match.condition is not None:
                sets = self._evaluation.once(match.condition)
                holds, fails = alive & sets.true, alive & sets.error
            alive ^= holds | fails
            self._add(ERROR, HOLD, match, fails)
            if match.inner is not None:
                left, more = self._block(match.inner, holds)
                abstained |= more | left if match.conditional else more
                alive |= 0 if match.conditional else left
                continue
            unexplained = ungrouped = 0
            if match.explanation is not None:
                unexplained = holds & self._evaluation(match.explanation).error
            if match.limit is not None:
                ungrouped = without(holds, self._evaluation(match.limit).true | unexplained)
            self._add(RULE, match.data["output"], match, without(holds, unexplained | ungrouped))
            self._add(EXPLANATION, HOLD, match, unexplained)
            self._add(LIMIT, HOLD, match, ungrouped)
        return alive, abstained


def changed_classes(old: SpaceDecisions, new: SpaceDecisions) -> Iterator[tuple[str, str, int]]:
    """Yield each change and its effect, with its classes."""
    merged: dict[Description, int] = {}
    pairs = itertools.product(_behaviours(old).items(), _behaviours(new).items())
    for (before, classes), (after, others) in pairs:
        if before != after and (both := classes & others):
            change = describe(before, after)
            merged[change] = merged.get(change, 0) | both
    for change, classes in merged.items():
        yield change.what, change.effect, classes


def _behaviours(decided: SpaceDecisions) -> dict[Behaviour, int]:
    found: dict[Behaviour, int] = {}
    for regions, classes in decided.regions():
        key = behaviour(regions)
        found[key] = found.get(key, 0) | classes
    return found
