# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The search for findings of one set of policies: a formula for each, and an event that shows it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from ...policy.artifact import Artifact
from ...policy.decision import APPROVE
from ..artifacts import Json
from ..claims import Claim
from ..event_space.policies import Reading
from ..event_space.regions import ANY
from ..proof import Example, ExampleCheck, NoProof, Progress, Proof, decision_dict, silent
from ..smt.encode.decisions import Decisions, MatchFormulas, OutcomeFormula
from ..smt.terms import Formula, conj, neg
from ..wording import Wording
from .finding import ProofFinding, Severity

WHEN, TYPES = "{when}", "{types}"  # placeholders in a message


class Search:
    """Shows findings about the policies of one artifact, whose translation is ``proof`` (of one version)."""

    def __init__(self, proof: Proof, reading: Reading, progress: Progress = silent) -> None:
        self.proof = proof
        self.progress = progress
        self.decisions: Decisions = proof.decisions[0]
        self.artifact: Artifact = proof.versions[0]
        self._reading = reading
        self.cases: list[Example] = []  # the events of all findings

    @property
    def started(self) -> Formula:
        """The formula that holds iff the event has started."""
        return self.proof.inputs.is_one_of("EventStatus", "Started")

    @cached_property
    def wording(self) -> Wording:
        """Events in words."""
        return Wording(self.proof, [self._reading])

    def shown(
        self,
        finding: ProofFinding,
        formula: Formula,
        *,
        among: Formula = True,
        about: Collection[str] = (),
        confirm: ExampleCheck | None = None,
        brief: bool = False,
        preferred: Sequence[Formula] = (),
    ) -> Iterator[ProofFinding]:
        """Yield a finding with an event that shows it, a weaker one where none was found, nothing if there is none.

        ``among``: the events that its words tell apart; ``about``: names of inputs that they mention. A ``brief`` one
        gives the engine's reason for this event instead. ``preferred``: what the event should be like, if possible.
        """
        # The event of a brief finding is not shown to people: then it need not be plain.
        plain = (self.proof.soon,) if brief else preferred
        found = self.proof.shows(formula, confirm=confirm, usual=not brief, preferred=plain)
        if found is None:
            return
        text = finding.message.replace(WHEN, ANY) if brief else finding.message
        finding = replace(finding, message=self._message(text, formula, among, about))
        if isinstance(found, NoProof):
            message = "perhaps: " + _without_any(finding.message)
            why = found.why
            yield replace(finding, severity="note", certain=False, message=message, suggestion=why, cause=why)
        elif brief or f" when {ANY}" in finding.message:
            yield self.by_example(finding, found, unusual=brief)
        else:
            yield self.with_case(finding, found)

    def by_example(self, finding: ProofFinding, shown: Example, *, unusual: bool) -> ProofFinding:
        """Return a finding with the engine's reason for one event, where no words say for which events it is.

        ``unusual``: the service sends none of them.
        """
        why = " for events that the service does not send" if unusual else f" when {ANY}"
        errors = [one.error for one in shown.decisions[0].verdicts if one.error and one.policy == finding.policy]
        if errors and finding.code == "rule-can-fail":
            why = f", for example: {errors[0]}"
            finding = replace(finding, cause=errors[0])
        return self.with_case(replace(finding, message=_without_any(finding.message) + why), shown)

    def by_severity(
        self, finding: ProofFinding, formula: Formula, *, brief: bool = True, **more: Any
    ) -> Iterator[ProofFinding]:
        """Yield a finding about events that the service normally sends. If there are none, it is a note about others,
        maybe a ``brief`` one.
        """
        usual, perhaps = conj((formula, self.proof.normal)), ""
        if not self.proof.never(usual):
            normal = {**more, "among": conj((more.get("among", True), self.proof.normal))}
            found = list(self.shown(finding, usual, **normal))
            if any(one.certain for one in found):
                yield from found
                return
            perhaps = "; it is not proven that the service sends no such event"
        for one in self.shown(replace(finding, severity="note"), formula, **more, brief=brief):
            yield replace(one, message=one.message + perhaps)

    def reads(self, match: MatchFormulas) -> set[str]:
        """Return the names of the inputs that a rule reads."""
        return self._reading.reads_of([(match.policy["name"], match.path)])

    def claim_reads(self, claim: Claim) -> set[str]:
        """Return the names of the inputs that a claim reads."""
        place = claim.name, claim.source, claim.line, claim.column
        claims = self._reading.invariants
        return set().union(*(one.reads for one in claims if (one.name, one.source, one.line, one.column) == place))

    def outcomes(self, output: str) -> Iterator[tuple[OutcomeFormula, MatchFormulas]]:
        """Yield the outcomes of rules with an output."""
        for policy in self.decisions.policies:
            for one in policy.outcomes:
                if one.match is not None and one.output == output and one.data:
                    yield one, one.match

    def deciding(self, formula: Formula) -> Iterator[tuple[MatchFormulas, Formula]]:
        """Yield the rules that decide the approvals among some events: of several policies, the first."""
        before: list[Formula] = []  # where policies before this one approve
        for policy in self.decisions.policies:
            approvals = [(one.match, one.when) for one in policy.outcomes if one.output == APPROVE]
            for match, when in approvals:
                if match is not None:
                    yield match, conj((formula, self.decisions.approved, when, *map(neg, before)))
            before += (when for _match, when in approvals)

    def with_case(self, finding: ProofFinding, shown: Example) -> ProofFinding:
        """Return a finding with the event that shows it."""
        self.cases.append(shown)
        decision = shown.decisions[0]
        seen = self.proof.with_given(shown.witness)
        case = {
            **seen.as_dict(),
            "decision": decision_dict(decision),
            "test": {
                "name": f"an event of {finding.code}",
                "input": seen.as_test_input(),
                "output": decision.output,
                **({"rule": decision.rule} if decision.rule else {}),
            },
        }
        return replace(finding, case=case, explain=tuple(seen.explain))

    def types(self, formula: Formula) -> list[str]:
        """Return the types of events for which a formula holds."""
        return self.wording.types(formula)

    def _message(self, message: str, formula: Formula, among: Formula, about: Collection[str]) -> str:
        if WHEN in message:
            message = message.replace(WHEN, self.wording.when(formula, among, about))
        if TYPES in message:
            name, *others = self.types(formula) or ["event"]
            message = message.replace(TYPES, f"{'an' if name[:1] in 'AEIOUe' else 'a'} {name}")
            if others:
                message += f"; likewise for {' and '.join(', '.join(others).rsplit(', ', 1))}"
        return message


def _without_any(message: str) -> str:
    """Return a message without the words for any event."""
    return message.replace(WHEN, ANY).replace(f" when {ANY}", "").rstrip(",")


def at_rule(code: str, severity: Severity, match: MatchFormulas, message: str, suggestion: str = "") -> ProofFinding:
    """Return a finding about a rule, at its place in the file."""
    place = match.policy["source"], match.data["line"], match.data["column"]
    return ProofFinding(code, severity, match.policy["name"], match.path, *place, message, suggestion)


def overall(code: str, severity: Severity, data: Json, message: str, suggestion: str = "") -> ProofFinding:
    """Return a finding about a policy as a whole."""
    return ProofFinding(code, severity, data["name"], None, data["source"], 1, 1, message, suggestion)
