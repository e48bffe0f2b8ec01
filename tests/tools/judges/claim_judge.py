# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judges claims of the prover by single events that the engine decides.

Whatever verify does not find is a claim as well: that a rule cannot fail, that an invariant holds. A judge of policies
takes one event after another and notes each claim that the event contradicts.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from forewarn.events import EVENT_STATUSES, EVENT_TYPE_SINCE
from forewarn.policy.artifact import Artifact
from forewarn.policy.decision import Decision
from forewarn.policy.engine import PolicySet

from ..generators.drawn_events import LONG, Observation, alike, elsewhere, longer
from ..generators.drawn_policies import EXTRA, Data, DrawnPolicies, written
from .claim_results import CASE_KINDS, Contradiction, Results, engine
from .claims import Case, Finding, Proof, compiled, shown

DEAD = ("shadowed-rule", "unsatisfiable-rule")
_DECISION = re.compile(r"\bdecision\b|\bapprove\b|\bhold\b")
_ANYTHING = {"EventType": [*EXTRA["EventType"], "freeze"], "EventStatus": [*EXTRA["EventStatus"], "Paused"]}
_KNOWN = {"EventType": EVENT_TYPE_SINCE, "EventStatus": EVENT_STATUSES}


class Engines(NamedTuple):
    """The engines that judge with one choice of parameters: the policies, their invariants, rules by themselves."""

    policies: PolicySet
    claims: Mapping[str, PolicySet]  # by the decision
    probes: PolicySet | None


class VerifyJudge:
    """Judges what verify says about some policies."""

    def __init__(self, drawn: DrawnPolicies, artifact: Artifact, proof: Proof, results: Results) -> None:
        self.drawn, self.artifact, self.proof, self.results = drawn, artifact, proof, results
        self.claims = list(drawn.claims())
        self._dead = {(one.policy, one.rule): one.code for one in proof.having(*DEAD) if one.certain}
        self._probed = [key for key, code in self._dead.items() if code == "unsatisfiable-rule"]
        self._claims = self._claim_artifacts(_ANYTHING)
        self._probes = self._probe_artifact()
        self._failing = {(one.policy, one.rule) for one in proof.having("rule-can-fail")}
        known = "it is not proven that"  # a note says so where it is not proven that others do not fail
        failing = proof.having("rule-can-fail")
        usual = [one for one in failing if one.severity != "note" or not one.certain or known in one.message]
        self._only_unusual = self._failing - {(one.policy, one.rule) for one in usual}
        self._places = {(one.code, one.file, one.line) for one in proof.findings}
        self._codes = proof.codes()
        self._prepares = any(list(find(data["rule"], "prepare")) for data in drawn.data)
        self._waits = self._prepares and any("ready" in find(data["rule"], "group") for data in drawn.data)
        self._hosts: list[PolicySet] = []  # as other hosts run the policies, with other parameters

    def engines(self, params: Mapping[str, Any]) -> Engines | None:
        """Return the engines for parameters, None if the policies refuse them."""
        policies = engine(self.artifact, params)
        if policies is None:
            return None
        self._hosts.append(policies)
        claims = {output: engine(one, params) for output, one in self._claims.items()}
        probes = engine(self._probes, params) if self._probes else None
        return Engines(policies, {output: one for output, one in claims.items() if one is not None}, probes)

    def judge(self, engines: Engines, seen: Observation, params: Mapping[str, Any], chance: random.Random) -> None:
        """Judge all claims by one event."""
        decision = engines.policies.decide(seen.document, seen.facts)[0]
        wrong = list(self._rules(decision, engines, seen))
        wrong += self._invariants(decision, engines, seen)
        wrong += self._together(decision, engines, seen, chance)
        for kind, about in wrong:
            self.results.add(
                Contradiction(kind, about, self.drawn.texts, (seen, params, decision), self.drawn.api_version)
            )
        self.results.counts["pairs"] += 1
        self.results.counts["approved"] += decision.output == "approve"

    def _rules(self, decision: Decision, engines: Engines, seen: Observation) -> Iterator[tuple[str, str]]:
        for verdict in decision.verdicts:
            if verdict.rule is None:
                continue
            path = verdict.rule.split(".")
            rules = [(verdict.policy, ".".join(path[:length])) for length in range(1, len(path) + 1)]
            if verdict.error is None:
                yield from ((self._dead[one], f"{one} decides") for one in rules if one in self._dead)
            elif rules[-1] not in self._failing:
                yield "cannot fail", f"{rules[-1]} fails: {verdict.error}"
            elif rules[-1] in self._only_unusual and seen.normal:
                yield "fails for unusual events only", f"{rules[-1]} fails: {verdict.error}"
        if engines.probes:
            for verdict in engines.probes.decide(seen.document, seen.facts)[0].verdicts:
                if verdict.output == "approve":
                    about = self._probed[int(verdict.policy[1:])]
                    yield "unsatisfiable-rule", f"the condition of {about} holds"

    def _promised(self, code: str, place: tuple[str, int]) -> bool:
        """Return whether a claim is said to be free of a finding; one that is not proven promises nothing."""
        return not self._places & {(code, *place), ("invariant-not-proven", *place)}

    def _invariants(self, decision: Decision, engines: Engines, seen: Observation) -> Iterator[tuple[str, str]]:
        judge = engines.claims.get(decision.output)
        if judge is None:
            return
        for claim, verdict in zip(self.claims, judge.decide(seen.document, seen.facts)[0].verdicts):
            place = self.file(claim.file), claim.line
            if verdict.error is not None:
                if self._promised("invariant-can-fail", place):
                    yield "invariant has a value", f"{claim.source}: {verdict.error}"
            elif verdict.output != "approve":
                proven = self._promised("invariant-violated", place)
                if proven or self.proof.code != 1:  # "perhaps" must not pass
                    yield "invariant holds", f"{claim.source} with exit code {self.proof.code}"

    def _together(
        self, decision: Decision, engines: Engines, seen: Observation, chance: random.Random
    ) -> Iterator[tuple[str, str]]:
        approved = decision.output == "approve"
        covered = any(one.output != "abstain" for one in decision.verdicts)
        if seen.normal and not covered and "uncovered-events" not in self._codes:
            yield "covered", "no rule applies"
        if not approved or not seen.normal or len(seen.document.events) != 1:
            return
        several = len(decision.event.resources) > 1 and at_once(decision)
        if several and decision.approver != "leader" and "follower-approves" not in self._codes:
            yield "no follower", decision.approver
        if decision.event.duration_in_seconds == -1 and "unknown-duration-approved" not in self._codes:
            other = longer(seen, LONG)
            if engines.policies.decide(other.document, other.facts)[0].output == "hold":
                yield "no unknown duration", f"one of {LONG} s is held"
        if self._prepares and not decision.prepare and "approved-unprepared" not in self._codes:
            other = alike(seen, chance)
            beside = engines.policies.decide(other.document, other.facts)[0]
            if beside.output == "approve" and beside.prepare:
                yield "no unprepared", f"prepared is {other}"
        if self._waits and several and "approves-before-others" not in self._codes and sends(decision, seen):
            there = elsewhere(seen, chance)
            host = chance.choice(self._hosts)
            if there is not None and relies(host.decide(there.document, there.facts)[0]):
                yield "none before others", f"prepares on {there.facts.vm}"

    def static(self) -> None:
        """Judge the cases of findings, and count what is claimed."""
        for one in self.proof.findings:
            if one.certain and one.case is not None:
                kind = f"case of {one.code}"
                kind = kind if kind in CASE_KINDS else "case of another finding"
                self.results.claims[kind] += 1
                if not self._shows(one):
                    self.results.add(
                        Contradiction(kind, one.message, self.drawn.texts, one.case, self.drawn.api_version)
                    )
        claims = self.results.claims
        for code in self._dead.values():
            claims[code] += 1
        rules = {(data["name"], path) for data in self.drawn.data for path in paths(data["rule"])}
        claims["cannot fail"] += len(rules - self._failing)
        claims["fails for unusual events only"] += len(self._only_unusual)
        for claim in self.claims:
            place = self.file(claim.file), claim.line
            claims["invariant holds"] += self._promised("invariant-violated", place)
            claims["invariant has a value"] += self._promised("invariant-can-fail", place)
        claims["covered"] += "uncovered-events" not in self._codes
        claims["no follower"] += "follower-approves" not in self._codes
        claims["no unknown duration"] += "unknown-duration-approved" not in self._codes
        claims["no unprepared"] += self._prepares and "approved-unprepared" not in self._codes
        claims["none before others"] += self._waits and "approves-before-others" not in self._codes

    def _shows(self, one: Finding) -> bool:
        """Return whether the engine confirms what a finding says of its case."""
        assert one.case is not None
        given = shown(one.case, self.drawn.api_version)
        alone = one.code in (
            "rule-can-fail",
            "engines-differ",
            "recover-never-runs",
            "prepared-not-recovered",
            "started-not-recovered",
        )
        among = [data for data in self.drawn.data if data["name"] == one.policy] if alone else self.drawn.data
        artifact = compiled(*map(written, among), api_version=self.drawn.api_version)
        policies = engine(artifact, given.params)
        if policies is None:
            return False
        decision = policies.decide(given.document, given.facts)[0]
        said = one.case["decision"]
        if (said["output"], said["policy"], said["rule"]) != (decision.output, decision.policy, decision.rule):
            return False
        return self._meets(one, decision, given)

    def _meets(self, one: Finding, decision: Decision, given: Case) -> bool:
        rules = {(verdict.policy, verdict.rule) for verdict in decision.verdicts}
        approves = decision.output == "approve"
        if one.code == "rule-can-fail":
            return any(verdict.error is not None and verdict.rule == one.rule for verdict in decision.verdicts)
        if one.code == "uncovered-events":
            return all(verdict.output == "abstain" for verdict in decision.verdicts)
        if one.code in ("invariant-violated", "invariant-can-fail"):
            named = {"EventType": decision.event.event_type, "EventStatus": decision.event.event_status}
            extra = {
                key: [*_ANYTHING[key], *({named[key] or ""} - {*_KNOWN[key], *_ANYTHING[key], ""})] for key in _ANYTHING
            }
            judge = engine(self._claim_artifacts(extra)[decision.output], given.params) if self.claims else None
            if judge is None:
                return False
            verdicts = judge.decide(given.document, given.facts)[0].verdicts
            (verdict,) = (
                verdict
                for claim, verdict in zip(self.claims, verdicts)
                if (self.file(claim.file), claim.line) == (one.file, one.line)
            )
            if one.code == "invariant-can-fail":
                return verdict.error is not None
            return verdict.error is None and verdict.output != "approve"
        if one.code == "unknown-duration-approved":
            return approves and (one.policy, one.rule) in rules and decision.event.duration_in_seconds == -1
        if one.code == "follower-approves":
            several = len(decision.event.resources) > 1
            return approves and (one.policy, one.rule) in rules and several and decision.approver != "leader"
        if one.code == "approved-unprepared":
            return approves and (one.policy, one.rule) in rules and not decision.prepare
        if one.code == "approves-before-others":
            return approves and (one.policy, one.rule) in rules and self._cuts_short(one, decision, given)
        return True

    def _cuts_short(self, one: Finding, decision: Decision, given: Case) -> bool:
        """Return whether a VM sends an approval while the other VM of the case prepares and relies on it to wait."""
        assert one.case is not None
        if "other_vm" not in one.case:
            return False
        there = shown({**one.case, **one.case["other_vm"]}, self.drawn.api_version)
        policies = engine(self.artifact, there.params)
        place, other = (decision.event.place_of(case.facts.vm.name) for case in (given, there))
        sent = at_once(decision) and (place is not None or decision.approver == "witness")
        waits = policies is not None and relies(policies.decide(there.document, there.facts)[0])
        return sent and waits and other not in (None, place)

    # What is judged by engines of its own

    def _claim_artifacts(self, extra: Mapping[str, Sequence[str]]) -> dict[str, Artifact]:
        """Return, by the decision, policies that approve exactly where an invariant holds.

        They hold an event of a type or status that is unknown and not among ``extra``.
        """
        if not self.claims:
            return {}
        found = {}
        for output in ("approve", "hold"):
            texts = []
            for number, claim in enumerate(self.claims):
                words = {"decision": f"'{output}'", "approve": "'approve'", "hold": "'hold'"}
                source = _DECISION.sub(lambda word, words=words: words[word[0]], claim.source)  # type: ignore[misc]  # binds it now
                texts.append(written(_single(f"c{number}", self.drawn.data[claim.file], source, {}, extra)))
            found[output] = compiled(*texts, api_version=self.drawn.api_version)
        return found

    def _probe_artifact(self) -> Artifact | None:
        """Return policies that approve exactly where the condition of a rule that is called unsatisfiable holds."""
        texts = []
        by_name = {data["name"]: data for data in self.drawn.data}
        for number, (policy, path) in enumerate(self._probed):
            data = by_name[policy]
            condition = _at(data["rule"], str(path)).get("condition", True)
            variables = {one["name"]: one["expression"] for one in data["rule"].get("variables", ())}
            extra = data.get("extra_values", {})
            texts.append(written(_single(f"c{number}", data, condition, variables, extra)))
        return compiled(*texts, api_version=self.drawn.api_version) if texts else None

    @staticmethod
    def file(number: int) -> str:
        """Return the name of a policy's file."""
        return f"p{number or ''}.yml"


def at_once(decision: Decision) -> bool:
    """Return whether an approved event of several VMs is approved without waiting for others."""
    return decision.group != "ready" and not (decision.group == "hold" and decision.prepare)


def sends(decision: Decision, seen: Observation) -> bool:
    """Return whether a VM would send an approval at some time."""
    listed = decision.event.place_of(seen.facts.vm.name) is not None or decision.approver == "witness"
    return listed and decision.event.event_status != "Started"


def relies(decision: Decision) -> bool:
    """Return whether a VM prepares, and relies on the others to wait for it."""
    return decision.output == "approve" and bool(decision.prepare) and decision.group == "ready"


def _single(
    name: str, data: Data, condition: Any, variables: Mapping[str, str], extra: Mapping[str, Any]
) -> dict[str, Any]:
    listed = [{"name": one, "expression": source} for one, source in variables.items()]
    match = [{"id": "only", "condition": condition, "output": "approve"}]
    known = {"extra_values": dict(extra)} if extra else {}
    return {"name": name, "params": data["params"], **known, "rule": {"variables": listed, "match": match}}


def paths(block: Data, prefix: str = "") -> Iterator[str]:
    """Yield the paths of all rules."""
    for match in block["match"]:
        yield prefix + match["id"]
        if "rule" in match:
            yield from paths(match["rule"], f"{prefix}{match['id']}.")


def find(block: Data, key: str) -> Iterator[Any]:
    """Yield the values of a key of rules."""
    for match in block["match"]:
        if key in match:
            yield match[key]
        if "rule" in match:
            yield from find(match["rule"], key)


def _at(block: Data, path: str) -> Data:
    first, _dot, rest = path.partition(".")
    (match,) = (one for one in block["match"] if one["id"] == first)
    return _at(match["rule"], rest) if rest else dict(match)
