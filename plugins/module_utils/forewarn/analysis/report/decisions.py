# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Walks the rules of all policies over all classes at once: which rule decides where, and the joint outcome.

For the outcome of one class ask ``Decided.outcome``; for an event that belongs to it, ``Decided.space.witness``. Sets
of classes are integers (see space). Every class of ``space.reachable`` is in exactly one region of each policy.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, NamedTuple

from ...policy.decision import ABSTAIN, APPROVE, APPROVERS, GROUPS, HOLD, PHASES, joint_group
from ..event_space.expressions import ReadMatch
from ..event_space.param_domains import refuses
from ..event_space.policies import Reading, ReadPolicy
from ..event_space.space import Space, without
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


class MatchSets(NamedTuple):
    """The classes that reach a match, meet its condition, fail in it, and fail in its explanation or its limit.

    ``left`` are those that a nested rule without a condition hands on to the next match.
    """

    match: ReadMatch
    reached: int
    met: int
    failed: int
    unexplained: int
    left: int = 0


class JointDecision(NamedTuple):
    """The joint decision of all policies for a class, like the engine's Decision."""

    output: str
    policy: str | None
    rule: str | None
    how: str | None
    approver: str
    group: str
    prepare: tuple[Mapping[str, Any], ...]
    recover: tuple[Mapping[str, Any], ...]
    notify: tuple[Mapping[str, Any], ...]
    rules: tuple[tuple[str, str, str | None], ...]  # of every policy: its name, output and rule


class PolicyDecided(NamedTuple):
    """One policy's regions, without empty ones, and the sets of its matches by their number."""

    policy: ReadPolicy
    regions: tuple[Region, ...]
    matches: Mapping[int, MatchSets]


class Decided:
    """The decisions of all policies over one space. ``approve`` is a set."""

    def __init__(self, reading: Reading, space: Space, evaluation: Evaluation | None = None) -> None:
        self.reading = reading
        self.space = space
        self.evaluation = evaluation or Evaluation(space)
        refused = 0
        for name in reading.limits:
            for place, value in enumerate(space.by_name[f"params.{name}"].values):
                if refuses(reading.limits, name, value.concrete):
                    refused |= space.mask(f"params.{name}", place)
        refused &= space.reachable
        self.policies = tuple(_walk(policy, self.evaluation, refused) for policy in reading.policies)
        held, approved = self.where(lambda one: one.output == HOLD), self.where(lambda one: one.output == APPROVE)
        self.approve = without(approved, held)
        self.uncovered = space.reachable ^ (held | approved)  # every policy abstains

    def where(self, test: Callable[[Region], object]) -> int:
        """Return the classes of the regions, of any policy, that pass a test."""
        classes = 0
        for policy in self.policies:
            for region in policy.regions:
                if test(region):
                    classes |= region.classes
        return classes

    def outcome(self, number: int) -> JointDecision:
        """Return the outcome of a class."""
        bit = 1 << number
        return combine([next(one for one in policy.regions if one.classes & bit) for policy in self.policies])

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


def combine(regions: list[Region] | tuple[Region, ...]) -> JointDecision:
    """Combine the policies' regions of one class, by the rule of policy.engine."""
    acting = [one for one in regions if one.output != ABSTAIN]
    deciding = next((one for one in regions if one.output == HOLD), None)
    if deciding is None:
        deciding = next((one for one in regions if one.output == APPROVE), None)
    data = [one.data for one in acting]
    hooks = {kind: tuple(hook for entry in data for hook in entry.get(kind, ())) for kind in PHASES}
    groups = [entry.get("group", GROUPS[0]) for entry in data]
    return JointDecision(
        HOLD if deciding is None else deciding.output,
        None if deciding is None else deciding.policy,
        None if deciding is None else deciding.rule,
        None if deciding is None else deciding.how,
        min((entry.get("approver", APPROVERS[0]) for entry in data), key=APPROVERS.index, default=APPROVERS[0]),
        joint_group(groups, prepares=bool(hooks["prepare"])),
        hooks["prepare"],
        hooks["recover"],
        hooks["notify"],
        tuple((one.policy, one.output, one.rule) for one in regions),
    )


def _walk(policy: ReadPolicy, evaluation: Evaluation, refused: int) -> PolicyDecided:
    space = evaluation.space
    regions: list[Region] = []
    matches: dict[int, MatchSets] = {}
    accepted = known = space.reachable ^ refused
    _add(regions, policy, REFUSED, HOLD, None, refused)
    for name, values in policy.known.items():
        known &= space.having(f"event.{name}", *values)
    _add(regions, policy, DOUBT, HOLD, None, accepted ^ known)
    left, abstained = _try(policy, policy.matches, known, evaluation, regions, matches)
    _add(regions, policy, NO_RULE, ABSTAIN, None, left | abstained)
    return PolicyDecided(policy, tuple(regions), matches)


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
    found: dict[int, MatchSets],
) -> tuple[int, int]:
    """Return the classes that no match of a block has taken, and those for which the policy abstains.

    The same search as in policy.program, for all classes at once.
    """
    abstained = 0
    for match in matches:
        reached = alive
        if match.condition is None:
            met, failed = alive, 0
        else:
            sets = evaluation.once(match.condition)
            met, failed = alive & sets.true, alive & sets.error
        alive ^= met | failed
        _add(regions, policy, ERROR, HOLD, match, failed)
        unexplained = handed_on = 0
        if match.inner is not None:
            left, more = _try(policy, match.inner, met, evaluation, regions, found)
            abstained |= more
            if match.conditional:
                abstained |= left
            else:
                alive |= left
                handed_on = left
        else:
            if match.explanation is not None:
                unexplained = met & evaluation(match.explanation).error
            ungrouped = 0
            if match.limit is not None:
                ungrouped = without(met, evaluation(match.limit).true | unexplained)
            _add(regions, policy, RULE, match.data["output"], match, without(met, unexplained | ungrouped))
            _add(regions, policy, EXPLANATION, HOLD, match, unexplained)
            _add(regions, policy, LIMIT, HOLD, match, ungrouped)
            unexplained |= ungrouped
        found[match.number] = MatchSets(match, reached, met, failed, unexplained, handed_on)
    return alive, abstained
