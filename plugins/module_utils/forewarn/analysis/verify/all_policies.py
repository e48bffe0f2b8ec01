# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Looks at the decisions of all policies together: events that no rule is for, who approves, and invariants."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ...policy.decision import APPROVE, GROUPS
from ..claims import Claim, value_of
from ..proof import Example, NoProof
from ..smt.encode.decisions import Decisions
from ..smt.terms import Formula, conj, disj, neg
from .finding import ProofFinding
from .search import WHEN, Search, at_rule, overall


def joint_findings(search: Search) -> Iterator[ProofFinding]:
    """Yield the findings about the decisions of all policies together."""
    yield from _uncovered(search)
    yield from _followers(search)
    reported: set[tuple[str, str]] = set()  # a claim may be asked for several defaults of a parameter
    for claim in search.proof.claims:
        for finding in _invariant(search, claim):
            key = finding.code, f"{claim.policy} {claim.source}:{claim.line}:{claim.column} {claim.name}"
            if key not in reported:
                reported.add(key)
                yield finding


def approved_with(decisions: Decisions, key: str, default: str, value: str | None = None) -> Formula:
    """Return where some rule approves with a value of a key, the default if none is given."""
    wanted = default if value is None else value
    return decisions.where(lambda one: one.output == APPROVE and one.data.get(key, default) == wanted)


def prepared(decisions: Decisions) -> Formula:
    """Return where some rule prepares."""
    return decisions.where(lambda one: one.data.get("prepare"))


def nobody_approves(decisions: Decisions) -> Formula:
    """Return which approved events are not approved after all if they have several VMs: ``group: hold`` applies."""
    return conj((approved_with(decisions, "group", GROUPS[0]), prepared(decisions)))


def awaits_all(decisions: Decisions) -> Formula:
    """Return which approved events are approved once all of their VMs are prepared: ``group: ready`` applies."""
    ready = approved_with(decisions, "group", GROUPS[0], GROUPS[1])
    return conj((ready, neg(nobody_approves(decisions))))


def _uncovered(search: Search) -> Iterator[ProofFinding]:
    formula = conj((search.decisions.uncovered, search.proof.normal))
    message = f"no rule applies to an event when {WHEN}; it is held"
    finding = overall("uncovered-events", "warning", search.artifact.data["policies"][0], message, "add a rule")
    matches = (match for policy in search.decisions.policies for match in policy.every())
    about = set().union(*map(search.reads, matches))
    yield from search.shown(finding, formula, among=search.proof.normal, about=about)


def _followers(search: Search) -> Iterator[ProofFinding]:
    several = search.proof.inputs.resources.count > 1
    careful = approved_with(search.decisions, "approver", "leader")  # the most careful one applies
    # Nobody approves these, or everybody has had the time to prepare.
    grouped = disj((nobody_approves(search.decisions), awaits_all(search.decisions)))
    for one, match in search.outcomes(APPROVE):
        if one.data.get("approver", "leader") == "leader":
            continue
        formula = conj((one.when, several, search.decisions.approved, search.proof.normal, neg(careful), neg(grouped)))
        who = (
            "every VM of an event"
            if one.data["approver"] == "any"
            else "a VM that is not even among an event's Resources"
        )
        message = f"rule {match.path} lets {who} approve it, and one approval starts it for all of them"
        hint = "leave out 'approver', or let the condition require size(event.Resources) == 1"
        yield from search.shown(at_rule("follower-approves", "warning", match, message, hint), formula)


def _invariant(search: Search, claim: Claim) -> Iterator[ProofFinding]:
    """Yield that a claim is violated, has no value, or is not proven."""
    place = claim.source, claim.line, claim.column
    base = ProofFinding("invariant-violated", "error", claim.policy or "", None, *place, "")
    violated = replace(base, suggestion="correct the rule that decides")
    yield from _claimed(search, claim, violated, claim.formulas.false, "does not hold", wanted=False)
    failing = replace(base, code="invariant-can-fail", suggestion="test for it first, with has()")
    yield from _claimed(search, claim, failing, claim.formulas.failing, "has no value", wanted=None)


def _claimed(
    search: Search, claim: Claim, base: ProofFinding, formula: Formula, what: str, *, wanted: bool | None
) -> Iterator[ProofFinding]:
    def confirm(shown: Example) -> bool:
        witness, outputs = search.proof.with_given(shown.witness), (shown.decisions[0].output,)
        return value_of([search.artifact], claim.expression, claim.owners, witness, outputs) is wanted

    shown = search.proof.shows(formula, confirm=confirm)
    if shown is None:
        return
    message = f"it is not proven that '{claim.name}' holds"
    unproven = replace(base, code="invariant-not-proven", message=message, certain=False)
    if isinstance(shown, NoProof):
        yield replace(unproven, suggestion=shown.why)
        return
    rules = (search.decisions.rule(one.policy, one.rule) for one in shown.decisions[0].verdicts)
    about = search.claim_reads(claim).union(*(search.reads(match) for match in rules if match is not None))
    imported = f", which {claim.policy} imports," if "file" in claim.expression else ""
    finding = replace(base, message=f"'{claim.name}'{imported} {what} when {WHEN}")
    more: dict[str, Any] = {"about": about, "confirm": confirm}
    usual = conj((formula, search.proof.normal))
    if wanted is None:
        found = list(search.by_severity(finding, formula, brief=False, **more))
        enough = search.proof.never(usual)  # then it is a note
    else:
        found = list(search.shown(finding, usual, among=search.proof.normal, **more))
        if not any(one.certain for one in found):
            found = list(search.shown(finding, formula, **more))
        enough = False
    yield from found
    if not enough and not any(one.certain and one.severity == "error" for one in found):
        yield replace(unproven, suggestion=f"it may be that it {what} for events that the service sends")
