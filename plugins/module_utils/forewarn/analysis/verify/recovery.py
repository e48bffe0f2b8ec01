# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Looks for VMs that stay prepared: prepared too early, never recovered, or with a recover that does not run."""

from __future__ import annotations

from collections.abc import Iterator

from ...policy.decision import GROUPS
from ..policy_outcome import RULE
from ..smt.encode.decisions import MatchFormulas, OutcomeFormula
from ..smt.terms import Formula, conj, disj, neg, same
from .all_policies import approved_with
from .finding import ProofFinding
from .search import TYPES, Search, at_rule

_EARLY = 3600 * 1_000_000  # µs; a longer time in the prepared state is worth a warning
_PREDICTED = 7 * 24 * _EARLY  # how far ahead a hardware failure is announced
_PLANNED = ("Freeze", "Reboot", "Redeploy")  # a Preempt comes 30 s ahead, a Terminate at most 15 min


def early(search: Search) -> Iterator[ProofFinding]:
    """Yield the rules that prepare for a distant event that is then held, by this rule or another."""
    inputs, decisions = search.proof.inputs, search.decisions
    left = inputs.not_before_us - inputs.now_us
    source, sourced = inputs.event_field("EventSource")
    far = conj(
        (
            search.proof.normal,
            inputs.is_one_of("EventType", *_PLANNED),
            neg(search.started),
            neg(conj((sourced, same(source, search.proof.problem.texts.code("User"))))),
            inputs.has_not_before,
            left > _EARLY,
            left <= _PREDICTED,
        )
    )
    several = inputs.resources.count > 1
    for one, match in _rules(search):
        if not one.data.get("prepare") or "prepare_within_seconds" in match.data:
            continue
        held = conj((one.when, far, neg(decisions.approved)))
        grouped = conj((one.when, far, decisions.approved, several, approved_with(decisions, "group", GROUPS[0])))
        is_held = not search.proof.never(held)
        why = "it is held" if is_held else "an event of several VMs is not approved"
        message = (
            f"rule {match.path} prepares for {TYPES} as soon as it is announced, up to 7 days ahead, "
            f"and {why}: the VM stays prepared until NotBefore"
        )
        hint = "add 'prepare_within: 15m', or whatever the preparation needs"
        finding = at_rule("prepares-early", "warning", match, message, hint)
        yield from search.shown(finding, held if is_held else grouped, preferred=[left == _PREDICTED])


def recovery(search: Search) -> Iterator[ProofFinding]:
    """Yield the rules that do not undo what they prepare, or whose recover does not run when it should."""
    for one, match in _rules(search):
        if match.data.get("prepare") and not match.data.get("recover"):
            yield from _never_undone(search, match, one.when)
        elif match.data.get("recover") and match.data.get("recover_when") == "started":
            yield from _none_started(search, match, one.when)
        elif match.data.get("recover"):
            yield from _only_started(search, match, one.when)


def _rules(search: Search) -> Iterator[tuple[OutcomeFormula, MatchFormulas]]:
    for policy in search.decisions.policies:
        for one in policy.outcomes:
            if one.how == RULE and one.match is not None:
                yield one, one.match


def _never_undone(search: Search, match: MatchFormulas, when: Formula) -> Iterator[ProofFinding]:
    message = (
        f"rule {match.path} prepares and has no recover: once it is over, or was cancelled, "
        f"nothing undoes what was prepared for {TYPES}"
    )
    hint = "add recover hooks, or suppress this with the reason why nothing needs to be undone"
    finding = at_rule("prepared-not-recovered", "warning", match, message, hint)
    yield from search.shown(finding, conj((when, search.proof.normal, neg(search.started))))


def _only_started(search: Search, match: MatchFormulas, when: Formula) -> Iterator[ProofFinding]:
    if not search.proof.never(when, neg(search.started)):
        return
    message = f"rule {match.path} decides started events only: nothing is prepared for them, so recover never runs"
    hint = "write 'recover_when: started' if recover is to follow every such event"
    yield from search.shown(at_rule("recover-never-runs", "warning", match, message, hint), when)


def _none_started(search: Search, match: MatchFormulas, when: Formula) -> Iterator[ProofFinding]:
    """Yield that no rule of a policy that is meant to recover started events decides one."""
    rules = (one for one, other in _rules(search) if other.policy is match.policy)
    meant = (one.when for one in rules if one.data.get("recover") and one.data.get("recover_when") == "started")
    if not search.proof.never(disj(meant), search.started):
        return
    message = (
        f"rule {match.path} has 'recover_when: started' but decides no started event: "
        f"nothing is recovered after one that is first listed as Started"
    )
    hint = "move 'recover' and 'recover_when' to the rule that decides started events"
    finding = at_rule("started-not-recovered", "warning", match, message, hint)
    types = search.types(when)
    alike = conj((search.started, search.proof.normal, search.proof.inputs.is_one_of("EventType", *types)))
    yield from search.shown(finding, when if search.proof.never(alike) else alike)
