# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Looks for VMs that stay prepared: prepared too early, never recovered, or with a recover that does not run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..policy.decision import GROUPS
from ..policy.timevalues import SECOND
from .search import TYPES, Refuted, Search, SliceFinding, at_rule
from .symbolic.concrete import Witness
from .symbolic.decide import RULE, PolicyDecided
from .symbolic.domains import MISSING
from .symbolic.resources import COUNT
from .symbolic.space import without
from .symbolic.symbols import EVENT_STATUS, NOTICE, Dimension, Symbol
from .symbolic.translation import ReadMatch

_EARLY = 3600 * SECOND  # a longer time in the prepared state is worth a warning
_PREDICTED = 7 * 24 * 3600 * SECOND  # how far ahead a hardware failure is announced
_PLANNED = ("Freeze", "Reboot", "Redeploy")  # a Preempt comes 30 s ahead, a Terminate at most 15 min


def early(search: Search) -> Iterator[SliceFinding]:
    """Yield the rules that prepare for a distant event that is then held, by this rule or another."""
    space, decided = search.space, search.decided
    far = _far(search) & space.normal & space.having("event.EventType", *_PLANNED)
    far = without(far, space.having(EVENT_STATUS.name, "Started") | space.having("event.EventSource", "User"))
    several = without(space.all, space.having(COUNT.name, 1))
    for policy in decided.policies:
        for region in policy.regions:
            match = region.match
            if match is None or not region.data.get("prepare") or "prepare_within_seconds" in match.data:
                continue
            held = region.classes & far & decided.hold
            grouped = region.classes & far & decided.approve & several & search.approved_with("group", GROUPS[0])
            if held or grouped:
                why = "it is held" if held else "an event of several VMs is not approved"
                message = (
                    f"rule {match.path} prepares for {TYPES} as soon as it is announced, up to 7 days ahead, "
                    f"and {why}: the VM stays prepared until NotBefore"
                )
                hint = "add 'prepare_within: 15m', or whatever the preparation needs"
                finding = at_rule("prepares-early", "warning", policy, match, message, hint)
                yield from search.shown(finding, held or grouped, witness=_Distant(search, several=not held))


def recovery(search: Search) -> Iterator[SliceFinding | Refuted]:
    """Yield the rules that do not undo what they prepare, or whose recover does not run when it should."""
    for policy in search.decided.policies:
        for region in policy.regions:
            match = region.match if region.how == RULE else None
            if match is None:
                continue
            if match.data.get("prepare") and not match.data.get("recover"):
                yield from _never_undone(search, policy, match, region.classes)
            elif match.data.get("recover") and match.data.get("recover_when") == "started":
                yield from _none_started(search, policy, match, region.classes)
            elif match.data.get("recover"):
                yield from _only_started(search, policy, match, region.classes)


def _never_undone(search: Search, policy: PolicyDecided, match: ReadMatch, classes: int) -> Iterator[SliceFinding]:
    listed = without(classes & search.space.normal, search.space.having(EVENT_STATUS.name, "Started"))
    if listed:
        message = (
            f"rule {match.path} prepares and has no recover: once it is over, or was cancelled, "
            f"nothing undoes what was prepared for {TYPES}"
        )
        hint = "add recover hooks, or suppress this with the reason why nothing needs to be undone"
        yield from search.shown(at_rule("prepared-not-recovered", "warning", policy, match, message, hint), listed)


def _only_started(
    search: Search, policy: PolicyDecided, match: ReadMatch, classes: int
) -> Iterator[SliceFinding | Refuted]:
    code = "recover-never-runs"
    if without(classes, search.space.having(EVENT_STATUS.name, "Started")):
        yield Refuted(code, policy.policy.name, match.path)
        return
    message = f"rule {match.path} decides started events only: nothing is prepared for them, so recover never runs"
    hint = "write 'recover_when: started' if recover is to follow every such event"
    yield from search.shown(at_rule(code, "warning", policy, match, message, hint), classes)


def _none_started(
    search: Search, policy: PolicyDecided, match: ReadMatch, classes: int
) -> Iterator[SliceFinding | Refuted]:
    code, space = "started-not-recovered", search.space
    started = space.having(EVENT_STATUS.name, "Started")
    if classes & started:  # whichever rule of the policy is meant to recover, one does
        for sets in policy.matches.values():
            yield Refuted(code, policy.policy.name, sets.match.path)
        return
    names = [name for name in (EVENT_STATUS.name, NOTICE.name) if name in space.by_name]
    alike = space.fold(classes, names) & started & space.normal & space.reachable
    message = (
        f"rule {match.path} has 'recover_when: started' but decides no started event: "
        f"nothing is recovered after one that is first listed as Started"
    )
    hint = "move 'recover' and 'recover_when' to the rule that decides started events"
    yield from search.shown(at_rule(code, "warning", policy, match, message, hint), alike or classes)


def _far(search: Search) -> int:
    """Return the classes whose NotBefore may be more than an hour away."""
    space = search.space
    dimension = space.by_name.get(NOTICE.name)
    if dimension is None:
        return space.all
    classes = 0
    for place, value in enumerate(dimension.values):
        if value.concrete is MISSING or (value.high is not None and value.high <= _EARLY):
            continue
        found = space.mask(NOTICE.name, place)
        if value.concrete <= _EARLY:  # it may be longer where all that it is compared with is shorter
            for peer in _peers(dimension):
                for other, its in enumerate(space.by_name[peer].values):
                    if its.concrete is not MISSING and its.concrete >= value.concrete:
                        found = without(found, space.mask(peer, other))
        classes |= found
    return classes


def _peers(dimension: Dimension) -> list[str]:
    return [name for name in dimension.peers if name != dimension.name]


class _Distant:
    """Makes events whose NotBefore is as far away as their class allows, up to a week."""

    def __init__(self, search: Search, *, several: bool) -> None:
        self._space = search.space
        self._several = several

    def __call__(self, number: int, given: Mapping[Symbol, Any] | None = None) -> Witness:
        instead = {**(given or {}), NOTICE: _PREDICTED}
        dimension = self._space.by_name.get(NOTICE.name)
        if dimension is not None:
            values = self._space.values(number)
            value = values[NOTICE.name]
            others = [values[peer].concrete for peer in _peers(dimension)]
            low, high = value.low or 0, _PREDICTED if value.high is None else value.high
            longest = all(other is MISSING or other < value.concrete for other in others)
            instead[NOTICE] = max(low, min(high, _PREDICTED)) if longest else value.concrete
        if self._several and COUNT.name not in self._space.by_name:
            instead[COUNT] = 2
        return self._space.witness(number, instead)
