# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a cell of the map can be: decisions, and changes of them. Each has one word, everywhere on a page."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence

from ...policy.decision import ABSTAIN, APPROVE, HOLD
from ..artifacts import Json
from ..diff.kinds import ALIKE, INCOMPARABLE, LESS, MORE
from ..policy_outcome import RULE
from .decisions import Region

APPROVED, PREPARED, HELD, IN_DOUBT, UNCOVERED = "approve", "prepared", "hold", "in-doubt", "uncovered"
NEWLY_APPROVED, NO_LONGER_APPROVED = "newly-approved", "no-longer-approved"
PREPARATION_LOST, PREPARATION_ADDED = "preparation-lost", "preparation-added"
SAME = "same"

# The word of each, and how a sentence about everything ends. They are in the order of legends.
WORDS: Mapping[str, tuple[str, str]] = {
    APPROVED: ("approve", "Everything is approved"),
    PREPARED: ("approve once prepared", "Everything is approved once prepared"),
    HELD: ("hold", "Everything is held"),
    IN_DOUBT: ("hold, in doubt", "Everything is held, in doubt"),
    UNCOVERED: ("hold, no rule applies", "Everything is held: no rule applies"),
    NEWLY_APPROVED: ("newly approved", "Everything is newly approved"),
    PREPARATION_LOST: ("preparation lost", "All preparation is lost"),
    MORE: ("more permissive", "Everything is more permissive"),
    INCOMPARABLE: ("more and less permissive", "Everything is more and less permissive"),
    NO_LONGER_APPROVED: ("no longer approved", "Nothing is approved any longer"),
    PREPARATION_ADDED: ("preparation added", "Preparation is added everywhere"),
    LESS: ("less permissive", "Everything is less permissive"),
    ALIKE: ("otherwise different", "Everything is otherwise different"),
    SAME: ("no change", "Nothing changes"),
}
HOLDS = (HELD, IN_DOUBT, UNCOVERED)


def rule_category(match: Json) -> str | None:
    """Return what a rule decides, given its entry in the artifact; None if rules within it do."""
    output = match.get("output")
    if output is None:
        return None
    if output == ABSTAIN:
        return UNCOVERED
    return HELD if output != APPROVE else PREPARED if match.get("prepare") else APPROVED


def region_category(region: Region) -> str:
    """Return what a policy decides about the classes of a region."""
    if region.output == ABSTAIN:
        return UNCOVERED
    if region.output == APPROVE:
        return PREPARED if region.data.get("prepare") else APPROVED
    return HELD if region.how == RULE else IN_DOUBT


def joint_category(regions: Sequence[Region]) -> tuple[str, int | None]:
    """Return what policies decide together, and the place of the one that decides: the first; None: none has a rule."""
    outputs = [one.output for one in regions]
    place = next((outputs.index(one) for one in (HOLD, APPROVE) if one in outputs), None)
    if place is None:
        return UNCOVERED, None
    if outputs[place] == APPROVE:
        return (PREPARED if preparation(regions) else APPROVED), place
    return region_category(regions[place]), place


def preparation(regions: Sequence[Region]) -> tuple[str, ...]:
    """Return every hook that prepares, as a text that no other hook has."""
    return tuple(json.dumps(hook, sort_keys=True) for one in regions for hook in one.data.get("prepare") or ())


def change_category(effect: str, before: str, after: str, hooks: tuple[Sequence[str], Sequence[str]]) -> str:
    """Return what a change is for somebody who looks at it.

    ``effect`` is that of diff. ``before`` and ``after`` are decisions; ``hooks`` are both sides' as of ``preparation``.
    """
    if (before in HOLDS) != (after in HOLDS):
        return NEWLY_APPROVED if before in HOLDS else NO_LONGER_APPROVED
    first, second = map(Counter, hooks)
    if first - second and not second - first:
        return PREPARATION_LOST
    if second - first and not first - second and effect in (LESS, ALIKE):
        return PREPARATION_ADDED
    return effect
