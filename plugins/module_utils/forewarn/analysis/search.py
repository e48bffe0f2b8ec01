# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Looks for findings in one slice of the event space."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from ..policy.decision import APPROVE, HOLD
from .counterexamples import Beside, Example, Making, Prover
from .finding import ProofFinding, Severity
from .symbolic.decide import DOUBT, Decided, MatchSets, PolicyDecided
from .symbolic.reading import Invariant
from .symbolic.regions import describe
from .symbolic.resources import COUNT
from .symbolic.space import Cell, without
from .symbolic.symbols import EVENT_TYPE
from .symbolic.translation import ReadMatch

WHEN, TYPES = "{when}", "{types}"  # placeholders in a message, filled in after all slices


class SliceFinding(NamedTuple):
    """A finding in one slice of the space, with the parts of its message: the events as text, and their types."""

    finding: ProofFinding
    when: str
    types: tuple[str, ...]
    cell: Cell
    about: str  # distinguishes findings at one place that are about no rule


class Refuted(NamedTuple):
    """A claim about all events of a rule, which one slice of the space has disproved."""

    code: str
    policy: str
    rule: str


class Dead(NamedTuple):
    """A rule that never decides. ``takers`` take its events; ``wanted``: some event meets its condition."""

    policy: PolicyDecided
    match: ReadMatch
    wanted: bool
    takers: tuple[str, ...]

    def merged(self, other: Dead) -> Dead:
        """Return the combined result of two slices of the space."""
        takers = tuple(dict.fromkeys((*self.takers, *other.takers)))
        return self._replace(wanted=self.wanted or other.wanted, takers=takers)

    def finding(self) -> ProofFinding:
        """Return the finding."""
        path = self.match.path
        if not self.wanted:
            message = f"rule {path} never applies: no event meets its condition"
            hint = "remove the rule, or see which parts of its condition exclude each other"
            return at_rule("unsatisfiable-rule", "warning", self.policy, self.match, message, hint)
        default = self.match.condition is None and self.match.data.get("output") == HOLD
        by = f"{_listed(self.takers)} before it" if self.takers else "the conditions around it"
        verb = "take" if len(self.takers) != 1 else "takes"
        message = f"rule {path} never decides: {by} {verb} every event that it is for"
        hint = "" if default else f"move it before {self.takers[0]}, or remove it" if self.takers else "remove it"
        return at_rule("shadowed-rule", "note" if default else "error", self.policy, self.match, message, hint)


def _listed(names: tuple[str, ...], most: int = 8) -> str:
    more = f" and {len(names) - most} others" if len(names) > most else ""
    return ", ".join(names[:most] if more else names) + more


def never(decided: Decided) -> dict[int, Dead]:
    """Return, by number, the rules that never decide, for a policy by itself."""
    found: dict[int, Dead] = {}
    for policy in decided.policies:
        doubtful = sum(region.classes for region in policy.regions if region.how == DOUBT)  # no rule is asked
        among = decided.space.reachable ^ doubtful
        _look_for_dead(decided, policy, policy.policy.matches, among, found)
    return found


def _look_for_dead(
    decided: Decided, policy: PolicyDecided, matches: tuple[ReadMatch, ...], among: int, found: dict[int, Dead]
) -> None:
    before: list[MatchSets] = []
    for match in matches:
        sets = policy.matches[match.number]
        if not sets.met:
            wanted = among
            if match.condition is not None:
                wanted &= decided.evaluation.once(match.condition).true
            left, takers = wanted, []
            for one in before:
                if not left:
                    break
                taken = left & without(one.met | one.failed, one.left)
                if taken:
                    takers.append(one.match.path)
                    left ^= taken
            found[match.number] = Dead(policy, match, bool(wanted), tuple(takers))
        if match.inner is not None:  # even if it is dead: it may be alive in another slice
            _look_for_dead(decided, policy, match.inner, among, found)
        before.append(sets)


def at_rule(
    code: str, severity: Severity, policy: PolicyDecided, match: ReadMatch, message: str, suggestion: str = ""
) -> ProofFinding:
    place = policy.policy.data["source"], match.data["line"], match.data["column"]
    return ProofFinding(code, severity, policy.policy.name, match.path, *place, message, suggestion)


class Search:
    """Findings that one event shows, in one slice of the space."""

    def __init__(self, decided: Decided, prover: Prover) -> None:
        self.decided = decided
        self.space = decided.space
        self.prover = prover

    def rules(self) -> Iterator[SliceFinding]:
        """Yield the findings about single rules, whatever the other policies decide."""
        for policy in self.decided.policies:
            for sets in policy.matches.values():
                yield from self._failing(policy, sets)

    def together(self) -> Iterator[SliceFinding]:
        """Yield the findings about the decisions of all policies together."""
        yield from self._uncovered()
        yield from self._followers()
        for invariant in self.decided.reading.invariants:
            yield from self._invariant(invariant)

    def shown(
        self,
        finding: ProofFinding,
        classes: int,
        among: int | None = None,
        witness: Making | None = None,
        beside: Beside | None = None,
    ) -> Iterator[SliceFinding]:
        """Yield a finding with an event that shows it, or a weaker finding if there is no such event.

        ``witness`` makes the event of a class instead of the space; ``beside`` finds another event without which
        the first shows nothing (see ``Prover.example``).
        """
        when = describe(self.space, classes, among) if WHEN in finding.message else ""
        types: tuple[str, ...] = ()
        if TYPES in finding.message:
            values = self.space.by_name[EVENT_TYPE.name].values
            types = tuple(values[place].label for place in self.space.places(EVENT_TYPE.name, classes))
        found = SliceFinding(finding, when, types, self.space.cell, "" if finding.rule else finding.message)
        example = self.prover.example(self.decided, classes, witness, beside)
        if example is None:
            weaker = replace(
                finding,
                severity="note",
                certain=False,
                message="perhaps: " + finding.message,
                suggestion="an expression here is not understood, and no event was found that shows it",
            )
            yield found._replace(finding=weaker)
            return
        yield found._replace(finding=self.with_case(finding, example))

    def with_case(self, finding: ProofFinding, example: Example) -> ProofFinding:
        """Return a finding with the event that shows it."""
        decision = example.decision
        # The inputs given for all events are part of each decision.
        seen = example.witness._replace(params={**self.decided.reading.fixed, **example.witness.params})
        case = {
            **seen.as_dict(),
            "decision": {name: getattr(decision, name) for name in ("output", "policy", "rule", "reason")},
            "test": {
                "name": f"an event of {finding.code}",
                "input": seen.as_test_input(),
                "output": decision.output,
                **({"rule": decision.rule} if decision.rule else {}),
            },
        }
        return replace(finding, case=case, explain=tuple(seen.explain))

    def _failing(self, policy: PolicyDecided, sets: MatchSets) -> Iterator[SliceFinding]:
        for classes, what in ((sets.failed, "condition"), (sets.unexplained, "explanation")):
            among = sets.reached if what == "condition" else sets.met
            message = f"the {what} of rule {sets.match.path} has no value, and the event is held, when {WHEN}"
            hint = "test for it first, with has() or an earlier rule, if this is not what you want"
            for part, severity in self._by_severity(classes):
                yield from self.shown(
                    at_rule("rule-can-fail", severity, policy, sets.match, message, hint), part, among
                )

    def _by_severity(self, classes: int) -> Iterator[tuple[int, Severity]]:
        """Yield classes of events that the service normally sends with ``warning``, others with ``note``.

        They are one finding if an event of the former shows it.
        """
        sent = classes & self.space.normal
        if not sent:
            parts: list[tuple[int, Severity]] = [(classes, "note")]
        elif self.space.opaque_terms and self.prover.example(self.decided, sent) is None:
            parts = [(sent, "warning"), (classes ^ sent, "note")]
        else:
            parts = [(classes, "warning")]
        for part, severity in parts:
            if part:
                yield part, severity

    def _uncovered(self) -> Iterator[SliceFinding]:
        classes = self.decided.uncovered & self.space.normal
        if classes:
            message = f"no rule applies to an event when {WHEN}; it is held"
            yield from self.shown(self._overall("uncovered-events", "warning", message, "add a rule"), classes)

    def _overall(self, code: str, severity: Severity, message: str, hint: str) -> ProofFinding:
        data = self.decided.reading.policies[0].data
        return ProofFinding(code, severity, data["name"], None, data["source"], 1, 1, message, hint)

    def approving(self, classes: int) -> Iterator[tuple[PolicyDecided, ReadMatch, int]]:
        """Yield the rules that decide the approvals among some classes."""
        left = classes & self.decided.approve
        for policy in self.decided.policies:
            for region in policy.regions:
                taken = left & region.classes
                if taken and region.output == "approve" and region.match is not None:
                    yield policy, region.match, taken
                    left ^= taken

    def prepared(self, decided: Decided | None = None) -> int:
        """Return the classes that some rule prepares for."""
        return (decided or self.decided).where(lambda region: region.data.get("prepare"))

    def _followers(self) -> Iterator[SliceFinding]:
        several = without(self.space.all, self.space.having(COUNT.name, 1))
        several = without(several, self.approved_with("approver", "leader"))  # the most careful one applies
        several = without(several, self.approved_with("group", "hold") & self.prepared())  # nobody approves these
        for policy in self.decided.policies:
            for region in policy.regions:
                match = region.match
                if match is None or region.output != "approve" or match.data.get("approver", "leader") == "leader":
                    continue
                taken = region.classes & several & self.decided.approve & self.space.normal
                if not taken:
                    continue
                anyone = match.data["approver"] == "any"
                who = "every VM of an event" if anyone else "a VM that is not even among an event's Resources"
                message = f"rule {match.path} lets {who} approve it, and one approval starts it for all of them"
                hint = "leave out 'approver', or let the condition require size(event.Resources) == 1"
                yield from self.shown(at_rule("follower-approves", "warning", policy, match, message, hint), taken)

    def approved_with(self, key: str, default: str) -> int:
        """Return the classes that some rule approves with the default of a key."""
        return self.decided.where(lambda one: one.output == APPROVE and one.data.get(key, default) == default)

    def _invariant(self, invariant: Invariant) -> Iterator[SliceFinding]:
        evaluation, decided = self.decided.evaluation, self.decided
        approve, hold = (evaluation(invariant.terms[one]) for one in ("approve", "hold"))
        violated = (decided.approve & approve.false) | (decided.hold & hold.false)
        failing = (decided.approve & approve.error) | (decided.hold & hold.error)
        owners = [one.name for one in decided.reading.policies if one.data["source"] == invariant.source]
        place = invariant.source, invariant.line, invariant.column
        base = ProofFinding("invariant-violated", "error", "".join(owners), None, *place, "")
        if violated:
            message = f"'{invariant.name}' does not hold when {WHEN}"
            yield from self.shown(replace(base, message=message, suggestion="correct the rule that decides"), violated)
        if failing:
            message = f"'{invariant.name}' has no value when {WHEN}"
            base = replace(base, code="invariant-can-fail", message=message, suggestion="test for it first, with has()")
            for part, severity in self._by_severity(failing):
                yield from self.shown(replace(base, severity=severity), part)
