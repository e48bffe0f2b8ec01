# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Looks for slots of a ``limit`` that nobody gives back, or that nobody gets: see docs/groups.md."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from ...policy.decision import APPROVE
from ..artifacts import Json
from ..smt.terms import conj, neg
from .finding import ProofFinding
from .search import TYPES, Search, at_rule

_DELETING = ("Terminate", "Preempt")


def unfreed_slots(search: Search) -> Iterator[ProofFinding]:
    """Yield the rules that take a slot for an event that deletes the VM."""
    limited = [found for found in search.outcomes(APPROVE) if "limit" in found[0].data]
    if not limited:
        return
    inputs = search.proof.inputs
    gone = conj(
        (
            search.proof.normal,
            inputs.is_one_of("EventType", *_DELETING),
            neg(search.started),
            inputs.variable("affects_me").value,
            search.decisions.approved,
        )
    )
    for one, match in limited:
        message = (
            f"rule {match.path} takes a slot for {TYPES}: if that deletes the VM, "
            f"nobody gives the slot back, and the group has one less until 'forewarn group release'"
        )
        hint = "decide these events by a rule of their own, without a limit"
        finding = at_rule("slot-not-freed", "warning", match, message, hint)
        yield from search.shown(finding, conj((one.when, gone)))


def conflicting_limits(search: Search) -> Iterator[ProofFinding]:
    """Yield the rules that approve the same events and limit different groups: such an event gets no slot."""
    limited = [found for found in search.outcomes(APPROVE) if "limit" in found[0].data]
    affects = search.proof.inputs.variable("affects_me").value
    for (one, match), (other, other_match) in combinations(limited, 2):
        groups = [_group(each.data["limit"]) for each in (one, other)]
        if match.policy is other_match.policy or groups[0] == groups[1]:
            continue
        message = (
            f"rule {match.path} and rule {other_match.path} of policy {other.policy} limit different groups, "
            f"{' and '.join(groups)}, and both apply to {TYPES}: an event takes slots of one group only, so it waits "
            "for NotBefore, unapproved"
        )
        hint = "let the rules for these events limit the same group"
        finding = at_rule("several-groups", "warning", match, message, hint)
        both = (search.proof.normal, affects, search.decisions.approved, one.when, other.when)
        yield from search.shown(finding, conj(both))


def _group(limit: Json) -> str:
    """Return the group of a limit of an artifact, for people."""
    return " ".join(limit["group"]["source"].split()) if "group" in limit else "the VM's own"
