# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``policy verify``: what is wrong with policies that are without mistakes, found over every event there can be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from ..policy.decision import HOLD
from .boxes import describe
from .decide import Decided, MatchSets, PolicyDecided
from .domains import MISSING
from .proof import Prover
from .reading import Invariant, Reading, ReadMatch
from .space import CONSTRAINTS, without

Severity = Literal["error", "warning", "note"]
_RANK = {"error": 0, "warning": 1, "note": 2}

# Every code, and what it means; docs/findings/CODE.md has a page for each.
CODES = {
    "shadowed-rule": "A rule that never decides, since rules before it take every event that it is for.",
    "unsatisfiable-rule": "A rule whose condition no event can meet.",
    "rule-can-fail": "A rule that cannot be evaluated for some events, which are held for that.",
    "uncovered-events": "Events that no rule is for; they are held.",
    "unknown-duration-approved": "An event of unknown duration is approved, where a long one is not.",
    "approved-unprepared": "An event is approved without the preparation that the policy makes for others of its kind.",
    "follower-approves": "A VM that does not lead approves an event of several VMs.",
    "invariant-violated": "A claim of the policy does not hold for some event.",
    "invariant-can-fail": "A claim of the policy cannot be evaluated for some event.",
    "unused-suppression": "A suppression in the file that suppresses nothing.",
}


@dataclass(frozen=True)
class Finding:
    """One thing found. ``case`` is an event that shows it, as Witness.as_dict has it, with what was decided.

    ``explain`` are arguments of ``forewarn policy explain`` that repeat it. ``certain`` is False where an
    expression that is not understood stands before a proof. ``suppressed`` is the reason given in the file.
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
    case: Mapping[str, Any] | None = None
    explain: tuple[str, ...] = ()
    certain: bool = True
    suppressed: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the finding for ``--json``."""
        return {
            "code": self.code,
            "severity": self.severity,
            "policy": self.policy,
            "rule": self.rule,
            "path": self.source,
            "line": self.line,
            "column": self.column,
            "message": self.message,
            "suggestion": self.suggestion,
            "certain": self.certain,
            "suppressed": self.suppressed,
            "case": None if self.case is None else dict(self.case),
            "explain": list(self.explain),
        }


@dataclass(frozen=True)
class Report:
    """What verify found, and on what it rests. ``not_understood`` are expressions that may be true or false."""

    findings: tuple[Finding, ...]
    classes: int
    assumptions: tuple[str, ...]
    not_understood: tuple[str, ...]
    constraints: tuple[str, ...] = CONSTRAINTS


def verify(reading: Reading) -> Report:
    """Look for findings. Raises InputError if there are too many classes, AnalysisError on a defect of our own."""
    prover = Prover(reading)
    found: dict[tuple[Any, ...], Finding] = {}
    unmet: dict[tuple[str, int], Finding] | None = None
    classes = 0
    for space in reading.spaces():
        decided = Decided(reading, space)
        classes += space.reachable.bit_count()
        for finding in _Search(decided, prover).all():
            key = (finding.code, finding.policy, finding.rule, finding.line)
            known = found.get(key)
            if known is None or _RANK[finding.severity] < _RANK[known.severity]:
                found[key] = finding
        here = {(one.policy, one.line): one for one in _never(decided)}
        # A rule is dead only if every slice says so.
        unmet = here if unmet is None else {key: _weaker(unmet[key], here[key]) for key in unmet if key in here}
    findings = _suppressed(reading, [*found.values(), *(unmet or {}).values()])
    findings.sort(key=lambda one: (one.source, one.line, one.column, one.code))
    sources = tuple(dict.fromkeys(free.source for free in reading.vocabulary.frees.values()))
    return Report(tuple(findings), classes, reading.assumptions, sources)


def _suppressed(reading: Reading, findings: list[Finding]) -> list[Finding]:
    """Return the findings, those marked that their file suppresses; a suppression of nothing is one more."""
    result = list(findings)
    for policy in reading.policies:
        for entry in policy.data.get("suppress", ()):
            code, rule, used = entry["code"], entry.get("rule"), False
            for place, finding in enumerate(result):
                if (finding.code, finding.policy) == (code, policy.name) and rule in (None, finding.rule):
                    result[place], used = replace(finding, suppressed=entry["reason"]), True
            if not used:
                about = f"of rule {rule} " if rule else ""
                message = f"the file suppresses {code} {about}and there is no such finding"
                source = policy.data["source"]
                hint = "remove it from 'suppress'" if code in CODES else f"the codes are {', '.join(CODES)}"
                result.append(Finding("unused-suppression", "warning", policy.name, rule, source, 1, 1, message, hint))
    return result


def _weaker(first: Finding, second: Finding) -> Finding:
    """Of the same dead rule in two slices: unsatisfiable only if in both."""
    return first if first.code == "shadowed-rule" else second


def _never(decided: Decided) -> Iterator[Finding]:
    """Yield the rules that never decide."""
    for policy in decided.policies:
        yield from _dead(decided, policy, policy.policy.matches)


def _dead(decided: Decided, policy: PolicyDecided, matches: tuple[ReadMatch, ...]) -> Iterator[Finding]:
    reachable = decided.space.reachable
    before: list[MatchSets] = []
    for match in matches:
        sets = policy.matches[match.number]
        if sets.met:
            if match.inner is not None:
                yield from _dead(decided, policy, match.inner)
            before.append(sets)
            continue
        wanted = reachable if match.condition is None else reachable & decided.evaluation.once(match.condition).true
        if not wanted:
            message = f"rule {match.path} never applies: no event meets its condition"
            hint = "remove the rule, or see which parts of its condition exclude each other"
            yield _at("unsatisfiable-rule", "warning", policy, match, message, hint)
        else:
            takers = [one.match.path for one in before if one.met & wanted or one.failed & wanted]
            default = match.condition is None and match.data.get("output") == HOLD
            by = f"{', '.join(takers)} before it" if takers else "the conditions around it"
            verb = "take" if len(takers) != 1 else "takes"
            message = f"rule {match.path} never decides: {by} {verb} every event that it is for"
            hint = "" if default else f"move it before {takers[0]}, or remove it" if takers else "remove it"
            yield _at("shadowed-rule", "note" if default else "error", policy, match, message, hint)
        before.append(sets)


def _at(
    code: str, severity: Severity, policy: PolicyDecided, match: ReadMatch, message: str, suggestion: str = ""
) -> Finding:
    data = policy.policy.data
    return Finding(
        code,
        severity,
        data["name"],
        match.path,
        data["source"],
        match.data["line"],
        match.data["column"],
        message,
        suggestion,
    )


class _Search:
    """Findings that one event shows, in one slice of the space."""

    def __init__(self, decided: Decided, prover: Prover) -> None:
        self.decided = decided
        self.space = decided.space
        self.prover = prover

    def all(self) -> Iterator[Finding]:
        """Yield them."""
        for policy in self.decided.policies:
            for sets in policy.matches.values():
                yield from self._failing(policy, sets)
        yield from self._uncovered()
        yield from self._unknown_duration()
        yield from self._unprepared()
        yield from self._followers()
        for invariant in self.decided.reading.invariants:
            yield from self._invariant(invariant)

    def _shown(self, finding: Finding, classes: int) -> Iterator[Finding]:
        """Yield a finding with an event that shows it; weaker if only events that the service does not send do."""
        example = self.prover.example(self.decided, classes)
        if example is None:
            yield replace(
                finding,
                severity="note",
                certain=False,
                message="perhaps: " + finding.message,
                suggestion="an expression here is not understood, and no event was found that shows it",
            )
            return
        decision = example.decision
        case = {
            **example.witness.as_dict(),
            "decision": {
                "output": decision.output,
                "policy": decision.policy,
                "rule": decision.rule,
                "reason": decision.reason,
            },
        }
        yield replace(finding, case=case, explain=tuple(example.witness.explain))

    def _sent(self, classes: int) -> bool:
        return bool(classes & self.space.normal)

    def _failing(self, policy: PolicyDecided, sets: MatchSets) -> Iterator[Finding]:
        for classes, what in ((sets.failed, "condition"), (sets.unexplained, "explanation")):
            if classes:
                sent = self._sent(classes)
                where = describe(self.space, classes, sets.reached if what == "condition" else sets.met)
                message = f"the {what} of rule {sets.match.path} has no value, and the event is held, when {where}"
                hint = "ask first, with has() or a rule before it, if that is not what you want"
                finding = _at("rule-can-fail", "warning" if sent else "note", policy, sets.match, message, hint)
                yield from self._shown(finding, classes)

    def _uncovered(self) -> Iterator[Finding]:
        classes = self.decided.uncovered & self.space.normal
        if classes:
            message = f"no rule is for an event when {describe(self.space, classes)}; it is held"
            yield from self._shown(self._overall("uncovered-events", "warning", message, "add a rule"), classes)

    def _overall(self, code: str, severity: Severity, message: str, hint: str) -> Finding:
        data = self.decided.reading.policies[0].data
        return Finding(code, severity, data["name"], None, data["source"], 1, 1, message, hint)

    def _unknown_duration(self) -> Iterator[Finding]:
        name = "event.DurationInSeconds"
        dimension = self.space.by_name.get(name)
        if dimension is None or len(dimension.values) < 3:
            return
        top = max(value.low for value in dimension.values if value.concrete is not MISSING)
        unknown = self.space.having(name, -1)
        classes = self.decided.approve & unknown & self._alike_held(top)
        for policy, match, taken in self._approving(classes):
            least = top
            for value in reversed(dimension.values):
                if value.concrete is not MISSING and value.low >= 0:
                    if without(taken, self._alike_held(value.low)):
                        break
                    least = value.low
            message = (
                f"rule {match.path} approves {self._types(taken)} whose duration is unknown (-1), "
                f"though one of {least} s and more is held"
            )
            hint = "DurationInSeconds is -1 when it is not known: add event.DurationInSeconds >= 0 &&"
            yield from self._shown(_at("unknown-duration-approved", "error", policy, match, message, hint), taken)

    def _alike_held(self, low: int) -> int:
        """Return the classes that would be held if their duration were in the interval that begins at ``low``."""
        name, held = "event.DurationInSeconds", 0
        for place, value in enumerate(self.space.by_name[name].values):
            if value.low == low and value.concrete is not MISSING:
                held |= self.space.mask(name, place)
        return self.space.fold(self.decided.hold & held, [name])

    def _types(self, classes: int) -> str:
        values = self.space.by_name["event.EventType"].values
        found = [values[place].label for place in self.space.places("event.EventType", classes)]
        listed = " or ".join(", ".join(found).rsplit(", ", 1))
        return f"{'an' if listed[:1] in 'AEIOU' else 'a'} {listed}"

    def _approving(self, classes: int) -> Iterator[tuple[PolicyDecided, ReadMatch, int]]:
        """Yield the rules that decide the approvals among some classes."""
        left = classes & self.decided.approve
        for policy in self.decided.policies:
            for region in policy.regions:
                taken = left & region.classes
                if taken and region.output == "approve" and region.match is not None:
                    yield policy, region.match, taken
                    left ^= taken

    def _prepared(self) -> int:
        classes = 0
        for policy in self.decided.policies:
            for region in policy.regions:
                if region.match is not None and region.how == "rule" and region.match.data.get("prepare"):
                    classes |= region.classes
        return classes

    def _unprepared(self) -> Iterator[Finding]:
        prepared = self._prepared()
        others = (
            "event.EventSource",
            "event.Description",
            "event.ResourceType",
            "event.EventId",
            "notice",
            "age",
            "now",
        )
        alike = [name for name in (*others, "notice", "age", "now") if name in self.space.by_name]
        usual = self.space.normal & self.decided.approve
        folded = self.space.fold(usual & prepared, alike)
        classes = without(usual & folded, prepared)
        for policy, match, taken in self._approving(classes):
            message = (
                f"rule {match.path} approves {self._types(taken)} without preparing, though the policies prepare "
                f"for others that differ in {' or '.join(self._differing(taken, prepared & usual, alike))} only"
            )
            hint = "give the rule the same prepare, or move it after the one that prepares"
            yield from self._shown(_at("approved-unprepared", "warning", policy, match, message, hint), taken)

    def _differing(self, classes: int, others: int, names_: list[str]) -> list[str]:
        found = [name for name in names_ if self.space.fold(others, [name]) & classes]
        return [name.removeprefix("event.") for name in found or names_]

    def _followers(self) -> Iterator[Finding]:
        several = without(self.space.all, self.space.having("count", 1))
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
                hint = "leave out 'approver', or let the rule ask for size(event.Resources) == 1"
                yield from self._shown(_at("follower-approves", "warning", policy, match, message, hint), taken)

    def _invariant(self, invariant: Invariant) -> Iterator[Finding]:
        evaluation, decided = self.decided.evaluation, self.decided
        approve, hold = (evaluation(invariant.terms[one]) for one in ("approve", "hold"))
        violated = (decided.approve & approve.false) | (decided.hold & hold.false)
        failing = (decided.approve & approve.error) | (decided.hold & hold.error)
        owners = [one.name for one in decided.reading.policies if one.data["source"] == invariant.source]
        base = Finding(
            "invariant-violated",
            "error",
            "".join(owners),
            None,
            invariant.source,
            invariant.line,
            invariant.column,
            "",
            "",
        )
        if violated:
            where = describe(self.space, violated)
            message = f"'{invariant.name}' does not hold when {where}"
            yield from self._shown(replace(base, message=message, suggestion="mend the rule that decides"), violated)
        if failing:
            where = describe(self.space, failing)
            message = f"'{invariant.name}' has no value when {where}"
            severity: Severity = "warning" if self._sent(failing) else "note"
            finding = replace(base, code="invariant-can-fail", severity=severity, message=message)
            yield from self._shown(replace(finding, suggestion="ask first, with has()"), failing)
