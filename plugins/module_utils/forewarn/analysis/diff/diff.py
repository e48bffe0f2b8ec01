# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``policy diff``: the events that two sets of policies decide differently, and whether the new one allows more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...policy.artifact import Artifact
from ..artifacts import Json
from ..proof import Progress, Proof, silent
from ..smt.effort import within_limits
from .behaviour import behaviour
from .behaviour_change import Description, describe
from .change import Change
from .change_search import OutcomePair, changes_of, differing_pairs
from .declarations import Declaration, changed_declarations
from .kinds import ALIKE, EXPLANATION, INCOMPARABLE, KINDS, LESS, MORE, UNPROVEN, joint_effect

_GAVE_UP = "the solver did not find all changes within its limits, so there may be others"


@dataclass(frozen=True)
class Difference:
    """All changes, of what happens to events and of what policies declare, and their overall effect.

    ``unproven`` says why the verdict is not proven, empty if it is. With ``incomplete`` there may be further changes;
    without, each that is possible is among these.
    """

    verdict: str
    changes: tuple[Change, ...]
    assumptions: tuple[str, ...]
    not_understood: tuple[str, ...]
    declarations: tuple[Declaration, ...] = ()
    unproven: str = ""
    incomplete: bool = False

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of all changes, the most important one first."""
        found = {kind for change in self.changes for kind in change.kinds} | {one.kind for one in self.declarations}
        return tuple(kind for kind in KINDS if kind in found)


@within_limits
def compare(old: Artifact, new: Artifact, params: Json | None = None, progress: Progress = silent) -> Difference:
    """Compare policies. Raises InputError where z3 is missing, AnalysisError on a defect of our own."""
    proof = Proof([old, new], params)
    pairs, complete = differing_pairs(proof, progress)
    changes = sorted(changes_of(proof, _described(pairs), progress), key=_order)
    declared = changed_declarations(old, new)
    unproven = _doubt(changes) if complete else _GAVE_UP
    effects = [*(one.effect for one in changes), *(one.effect for one in declared)]
    verdict = UNPROVEN if unproven else joint_effect(effects)
    basis = proof.assumptions, proof.not_understood
    return Difference(verdict, tuple(changes), *basis, declared, unproven, not complete)


def _described(pairs: Sequence[OutcomePair]) -> dict[Description, list[OutcomePair]]:
    """Return the pairs by the description of what differs: each is one change."""
    found: dict[Description, list[OutcomePair]] = {}
    for pair in pairs:
        description = describe(behaviour(pair.old), behaviour(pair.new))
        if description.kinds != (EXPLANATION,):  # the declarations have it, without any event
            found.setdefault(description, []).append(pair)
    return found


def _order(change: Change) -> tuple[int, str]:
    return [MORE, INCOMPARABLE, LESS, ALIKE].index(change.effect), change.what


def _doubt(changes: Sequence[Change]) -> str:
    """Return why changes that no event shows leave the verdict open, empty if they do not."""
    shown = joint_effect(one.effect for one in changes if one.certain or one.effect == ALIKE)
    if joint_effect(one.effect for one in changes) == shown:
        return ""
    return next(part.why for one in changes if not one.certain and one.effect != ALIKE for part in one.parts)
