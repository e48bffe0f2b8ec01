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
from typing import NamedTuple

from ...policy.decision import ABSTAIN, HOLD
from ..diff.behaviour import Behaviour, behaviour
from ..diff.behaviour_change import Description, describe
from ..event_space.class_sets import without
from ..event_space.expressions import ReadMatch
from ..event_space.param_domains import refuses
from ..event_space.policies import Reading, ReadPolicy
from ..event_space.space import Space
from ..policy_outcome import DOUBT, ERROR, EXPLANATION, LIMIT, NO_RULE, REFUSED, RULE, PolicyOutcome
from .conditions import Evaluation


@dataclass(frozen=True, eq=False)
class Region(PolicyOutcome[ReadMatch]):
    """The classes that one policy treats alike, for one reason."""

    classes: int


class PolicyRegions(NamedTuple):
    """One policy and its regions, without empty ones."""

    policy: ReadPolicy
    regions: tuple[Region, ...]


class SpaceDecisions:
    """The decisions of all policies over one space."""

    def __init__(self, reading: Reading, space: Space, evaluation: Evaluation | None = None) -> None:
        self.reading = reading
        self.space = space
        evaluation = evaluation or Evaluation(space)
        refused = 0
        for name in reading.limits:
            for place, value in enumerate(space.by_name[f"params.{name}"].values):
                if refuses(reading.limits, name, value.concrete):
                    refused |= space.mask(f"params.{name}", place)
        refused &= space.reachable
        self.policies = tuple(_walk(policy, evaluation, refused) for policy in reading.policies)

    def regions(self, classes: int | None = None) -> list[tuple[tuple[Region, ...], int]]:
        """Return the combinations of regions, one of each policy, that occur among ``classes``."""
        found: list[tuple[tuple[Region, ...], int]] = [((), self.space.reachable if classes is None else classes)]
        for policy in self.policies:
            found = [
                ((*before, region), both)
                for before, held in found
                for region in policy.regions
                if (both := held & region.classes)
            ]
        return [one for one in found if one[1]]


def _walk(policy: ReadPolicy, evaluation: Evaluation, refused: int) -> PolicyRegions:
    space = evaluation.space
    regions: list[Region] = []
    accepted = known = space.reachable ^ refused
    _add(regions, policy, REFUSED, HOLD, None, refused)
    for name, values in policy.known.items():
        known &= space.having(f"event.{name}", *values)
    _add(regions, policy, DOUBT, HOLD, None, accepted ^ known)
    left, abstained = _try(policy, policy.matches, known, evaluation, regions)
    _add(regions, policy, NO_RULE, ABSTAIN, None, left | abstained)
    return PolicyRegions(policy, tuple(regions))


def _add(
    regions: list[Region], policy: ReadPolicy, how: str, output: str, match: ReadMatch | None, classes: int
) -> None:
    if classes:
        regions.append(Region(policy.name, how, output, match, classes))


def _try(
    policy: ReadPolicy, matches: tuple[ReadMatch, ...], alive: int, evaluation: Evaluation, regions: list[Region]
) -> tuple[int, int]:
    """Return the classes that no match of a block has taken, and those for which the policy abstains.

    The same search as in policy.program, for all classes at once.
    """
    abstained = 0
    for match in matches:
        if match.condition is None:
            met, failed = alive, 0
        else:
            sets = evaluation.once(match.condition)
            met, failed = alive & sets.true, alive & sets.error
        alive ^= met | failed
        _add(regions, policy, ERROR, HOLD, match, failed)
        if match.inner is not None:
            left, more = _try(policy, match.inner, met, evaluation, regions)
            abstained |= more
            if match.conditional:
                abstained |= left
            else:
                alive |= left
        else:
            unexplained = ungrouped = 0
            if match.explanation is not None:
                unexplained = met & evaluation(match.explanation).error
            if match.limit is not None:
                ungrouped = without(met, evaluation(match.limit).true | unexplained)
            _add(regions, policy, RULE, match.data["output"], match, without(met, unexplained | ungrouped))
            _add(regions, policy, EXPLANATION, HOLD, match, unexplained)
            _add(regions, policy, LIMIT, HOLD, match, ungrouped)
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
