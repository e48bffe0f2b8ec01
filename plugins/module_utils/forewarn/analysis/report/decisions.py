# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Walks the rules of all policies over all classes at once: which rule decides where, and in which combinations.

Sets of classes are integers (see space). Every class of ``space.reachable`` is in exactly one region of each policy.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple

from ...policy.decision import ABSTAIN, HOLD
from ..event_space.class_sets import without
from ..event_space.expressions import ReadMatch
from ..event_space.param_domains import refuses
from ..event_space.policies import Reading, ReadPolicy
from ..event_space.space import Space
from .conditions import Evaluation

# How a region came about.
RULE, ERROR, EXPLANATION, LIMIT, DOUBT, NO_RULE = "rule", "error", "explanation", "limit", "doubt", "no-rule"
REFUSED = "refused"


class Region(NamedTuple):
    """The classes that one policy treats alike, for one reason.

    ``how``: RULE: the match decided; ERROR: its condition, EXPLANATION: its explanation, LIMIT: the group of its limit
    could not be evaluated, so hold; DOUBT: unknown EventType or EventStatus, so hold; NO_RULE: abstain; REFUSED: a
    parameter has a value that the policies do not run with, so nothing is approved.
    """

    policy: str
    how: str
    output: str
    match: ReadMatch | None
    classes: int

    @property
    def rule(self) -> str | None:
        """The rule's path, as decisions name it."""
        return None if self.match is None else self.match.path

    @property
    def data(self) -> Mapping[str, Any]:
        """The artifact's entry of the match that decided, empty where none did."""
        return self.match.data if self.how == RULE and self.match is not None else {}

    @property
    def limit_group(self) -> Hashable:
        """What stands for the name of the limit's group."""
        return None if self.match is None else self.match.limit_group


class PolicyRegions(NamedTuple):
    """One policy and its regions, without empty ones."""

    policy: ReadPolicy
    regions: tuple[Region, ...]


class Decided:
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
    policy: ReadPolicy,
    matches: tuple[ReadMatch, ...],
    alive: int,
    evaluation: Evaluation,
    regions: list[Region],
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
