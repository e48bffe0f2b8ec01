# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Looks for events of several VMs that one VM approves while another prepares and relies on being waited for.

The policies are translated for two VMs of one event: they differ in their facts, names, places and parameters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...policy.artifact import Artifact
from ...policy.decision import APPROVE, APPROVERS, GROUPS, Decision
from ...policy.forms import every_match
from ..artifacts import Json, without_invariants
from ..event_space.policies import read
from ..proof import Example, Progress, Proof, decision_dict
from ..smt.encode.decisions import Decisions
from ..smt.terms import Formula, conj, disj, neg, same
from ..witness import Witness
from .all_policies import awaits_all, nobody_approves, prepared
from .finding import ProofFinding
from .search import TYPES, Search, at_rule

_HOLD, _READY, _INDEPENDENT = GROUPS
_WITNESS = APPROVERS[-1]


def approvals_before_others(artifact: Artifact, given: Json, progress: Progress) -> Iterator[ProofFinding]:
    """Yield the rules by which a VM approves what others still prepare for. ``given`` are values of parameters."""
    matches = [match for data in artifact.data["policies"] for _path, match in every_match(data["rule"])]
    if not (any(match.get("group") == _READY for match in matches) and any(match.get("prepare") for match in matches)):
        return
    artifact = without_invariants(artifact, artifact.data["policies"])
    proof = Proof([artifact], given)
    other = proof.on_another_vm()
    yield from _Pairs(Search(proof, read(artifact, given), progress), other).findings()


class _Pairs:
    """Asks about two VMs of one event: the one that the search is about, and another."""

    def __init__(self, search: Search, other: Decisions) -> None:
        self._search, self._proof, self._other = search, search.proof, other

    def findings(self) -> Iterator[ProofFinding]:
        hint = "write 'group: ready' here as well: it waits for the others, even where this VM has nothing to prepare"
        for match, taken in self._search.deciding(self._formula()):
            shown = self._proof.shows(taken, confirm=self._confirm)
            if shown is None:
                continue
            by = ""
            if isinstance(shown, Example) and (found := self._on_the_other(shown)) is not None:
                by = f" by rule {found[1].rule}"
            message = (
                f"rule {match.path} approves {TYPES} of several VMs without waiting for them, though another of these "
                f"VMs may still prepare for it{by}, with 'group: ready'"
            )
            finding = at_rule("approves-before-others", "warning", match, message, hint)
            few = [self._proof.inputs.resources.count == 2]
            for one in self._search.shown(finding, taken, confirm=self._confirm, preferred=few):
                yield self._with_other_vm(one)

    def _formula(self) -> Formula:
        inputs, decisions, other = self._proof.inputs, self._search.decisions, self._other
        texts = self._proof.problem.texts
        affected = conj((inputs.named, inputs.variable("affects_me").value))
        cautious = decisions.where(lambda one: one.output == APPROVE and one.data.get("approver") != _WITNESS)
        return conj(
            (
                self._proof.normal,
                other.inputs.normal(self._proof.extra),
                neg(self._search.started),
                inputs.resources.count > 1,
                disj((affected, neg(cautious))),
                decisions.approved,
                neg(nobody_approves(decisions)),
                neg(awaits_all(decisions)),
                other.inputs.variable("affects_me").value,
                neg(same(texts.fold(inputs.own_name), texts.fold(other.inputs.own_name))),
                other.approved,
                prepared(other),
                awaits_all(other),
            )
        )

    def _on_the_other(self, shown: Example) -> tuple[Witness, Decision] | None:
        """Return the event on the other VM, and what that one decides."""
        witness = self._proof.solver.other_witness(shown.model, self._other.inputs)
        return None if witness is None else (witness, self._proof.decide(witness))

    def _confirm(self, shown: Example) -> bool:
        """Return whether the engine decides so on both VMs."""
        found = self._on_the_other(shown)
        if found is None or found[0].event != shown.witness.event:
            return False
        here, there = shown.decisions[0], found[1]
        places = [one.document.events[0].place_of(one.facts.vm.name) for one in (shown.witness, found[0])]
        at_once = here.group == _INDEPENDENT or (here.group == _HOLD and not here.prepare)
        sends = places[0] is not None or here.approver == _WITNESS
        waits = there.output == APPROVE and there.group == _READY and bool(there.prepare)
        return here.output == APPROVE and at_once and sends and waits and places[1] not in (None, places[0])

    def _with_other_vm(self, finding: ProofFinding) -> ProofFinding:
        """Return a finding whose case has the other VM as well."""
        shown = self._search.cases[-1] if finding.case is not None else None
        found = None if shown is None else self._on_the_other(shown)
        if found is None or finding.case is None:
            return finding
        witness, decision = found
        seen = self._proof.with_given(witness)
        case = seen.as_dict()
        own = {"vm": case["vm"], "params": case["params"]}
        other = {**own, "decision": decision_dict(decision), "explain": seen.explain}
        return replace(finding, case={**finding.case, "other_vm": other})
