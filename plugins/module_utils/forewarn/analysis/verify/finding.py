# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The findings of ``policy verify``: their codes, and the class of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from ..artifacts import Json

Severity = Literal["error", "warning", "note"]

# Every code and its meaning; docs/findings/CODE.md has a page for each.
CODES = {
    "shadowed-rule": "A rule that never decides, since rules before it take every event that it is for.",
    "unsatisfiable-rule": "A rule whose condition no event can meet.",
    "rule-can-fail": "A rule that cannot be evaluated for some events, which are then held.",
    "redundant-rule": "A rule whose removal changes nothing, since rules after it do the same.",
    "simpler-condition": "A condition with a part that changes nothing.",
    "uncovered-events": "Events that no rule applies to; they are held.",
    "unknown-duration-approved": "An event of unknown duration is approved, where a long one is not.",
    "approved-unprepared": "An event is approved without the preparation that the policy makes for others of its kind.",
    "follower-approves": "A VM that does not lead approves an event of several VMs.",
    "approves-before-others": "A VM approves an event of several VMs while another prepares with `group: ready`.",
    "slot-not-freed": "A rule takes a slot for an event that deletes the VM, which never gives it back.",
    "several-groups": "Two rules that approve the same event limit different groups, so it is never approved.",
    "prepared-not-recovered": "A rule prepares and never undoes it, though the event may be cancelled.",
    "prepares-early": "A VM is prepared long before an event that nobody approves, and stays so until then.",
    "recover-never-runs": "Recover hooks of a rule that decides started events only: nothing is prepared for them.",
    "started-not-recovered": "A rule is meant to recover started events, but decides none.",
    "invariant-violated": "A claim of the policy does not hold for some event.",
    "invariant-can-fail": "A claim of the policy cannot be evaluated for some event.",
    "invariant-not-proven": "A claim of the policy that neither holds for certain nor is violated by an event found.",
    "engines-differ": "An expression that cel-python and forewarn evaluate differently, for some event.",
    "unused-suppression": "A suppression in the file that suppresses nothing.",
}


@dataclass(frozen=True)
class ProofFinding:
    """One finding. ``case`` is an event that shows it, in the form of Witness.as_dict, with its decision. If it takes
    another VM to show it, ``case`` has what that one decides as ``other_vm``.

    ``explain`` are arguments of ``forewarn policy explain`` that repeat it. ``certain`` is False where an
    expression that is not understood prevents a proof. ``suppressed`` is the reason given in the file. ``cause`` is
    what findings about different rules may have in common: why a rule has no value, or why a proof is prevented.
    """

    code: str
    severity: Severity
    policy: str
    rule: str | None
    source: str
    line: int
    column: int
    message: str
    suggestion: str = ""
    certain: bool = True
    suppressed: str | None = None
    case: Json | None = None
    explain: tuple[str, ...] = ()
    cause: str = ""
    alone: bool = False  # the case has the decision of this policy alone, though there are others

    def as_dict(self) -> dict[str, Any]:
        """Return the finding for ``--json``."""
        found = {"path" if name == "source" else name: value for name, value in vars(self).items()}
        found.update(case=None if self.case is None else dict(self.case), explain=list(self.explain))
        return {name: value for name, value in found.items() if name not in ("cause", "alone")}
