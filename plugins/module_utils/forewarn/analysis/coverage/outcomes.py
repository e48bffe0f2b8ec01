# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a test can cover: the results of rules, policies and decisions, as the engine has them and as formulas."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple, Tuple

from ...compiler.testing.policytest import RESULTS, TestFileRun, result_of
from ...events import event_types
from ...policy.artifact import Artifact
from ...policy.decision import ABSTAIN, APPROVE, HOLD, Decision
from ...policy.engine import PolicyTrace
from ..artifacts import extra_values
from ..policy_outcome import DOUBT, FAILED, NO_RULE
from ..proof import Proof
from ..smt.encode.decisions import Decisions, MatchFormulas, OutcomeFormula
from ..smt.terms import Formula, conj, disj, neg

NO_RULE_APPLIES, UNKNOWN = "no rule applies", "unknown"  # results of a whole policy
FAILS = "cannot be evaluated"  # the output of a decision by a rule that has no value
_SENTENCES = {
    "true": "{} applies",
    "false": "{} does not apply",
    "error": "{} cannot be evaluated",
    "explanation": "the explanation of {} cannot be evaluated",
    "limit": "the limit of {} names no group",
}
# What a test can state (compiler.testing.testfile), with something to spare.
_OLDEST = 99 * 365 * 86_400_000_000  # µs

Scope = Tuple[str, ...]


class CoverageItem(NamedTuple):
    """Something that a test can cover.

    ``scope``: for the result of a rule or a policy the policy's path; for a decision all policies that are tested
    together. ``result`` is that of a rule (RESULTS), of a policy, or an output. The decision about an ``event_type``
    has the policy and the rule that decided.
    """

    scope: Scope
    result: str
    policy: str | None = None
    rule: str | None = None
    event_type: str | None = None

    @property
    def sentence(self) -> str:
        """What happens, in words."""
        if self.event_type is not None:
            return f"{self.event_type}, {self.way}"
        if self.rule is not None:
            return _SENTENCES[self.result].format(self.rule)
        if self.policy is not None:
            return {NO_RULE_APPLIES: "no rule applies", UNKNOWN: "the type or status is unknown"}[self.result]
        return {APPROVE: "an event is approved", HOLD: "an event is held by a rule", ABSTAIN: "no policy decides"}[
            self.result
        ]

    @property
    def way(self) -> str:
        """How an event is decided, in words; empty if this is not about a type of events."""
        if self.event_type is None:
            return ""
        if self.rule is None:
            return self.result
        by = f"{self.policy}/{self.rule}"
        return f"hold by {by}, as it {FAILS}" if self.result == FAILS else f"{self.result} by {by}"


class CoverageTarget(NamedTuple):
    """An item, and the events that cover it; ``match`` is the rule that it is about, if it is the result of one."""

    item: CoverageItem
    formula: Formula
    match: MatchFormulas | None = None


def scope_of(tested: TestFileRun) -> Scope:
    """Return what tells apart sets of policies that are tested together."""
    return (tested.artifact.api_version, *(str(path.resolve()) for path in tested.tests.policies))


# The engine's side


def items_covered_by(tested: TestFileRun) -> set[CoverageItem]:
    """Return what the tests of a file cover; of rules, also what other files with the same policy do."""
    items = {
        CoverageItem((covered.path,), result, covered.policy, rule.rule)
        for covered in tested.coverage
        for rule in covered.rules
        for result, count in rule.results.items()
        if count
    }
    paths = {covered.policy: covered.path for covered in tested.coverage}
    return items.union(*(items_of_decision(decision, tested, paths) for decision in tested.decisions))


def items_of_decision(decision: Decision, tested: TestFileRun, paths: Mapping[str, str]) -> set[CoverageItem]:
    """Return what a decision covers, but for the results of single rules. ``paths`` are those of policies, by name."""
    if not decision.verdicts or decision.event.problems:
        return set()
    items = set()
    for verdict in decision.verdicts:
        if verdict.rule is None:
            result = NO_RULE_APPLIES if verdict.output == ABSTAIN else UNKNOWN
            items.add(CoverageItem((paths[verdict.policy],), result, verdict.policy))
    scope = scope_of(tested)
    output = ABSTAIN if decision.policy is None else decision.output
    if decision.rule is not None or output == ABSTAIN:
        items.add(CoverageItem(scope, output))
        if decision.event.event_type in _types(tested.artifact):
            failed = any(one.policy == decision.policy and one.error is not None for one in decision.verdicts)
            result, kind = FAILS if failed else output, decision.event.event_type
            items.add(CoverageItem(scope, result, decision.policy, decision.rule, kind))
    return items


def items_of_traces(traces: Sequence[PolicyTrace], paths: Mapping[str, str]) -> set[CoverageItem]:
    """Return the results of single rules in an evaluation."""
    return {
        CoverageItem((paths[trace.policy],), result, trace.policy, tried.rule)
        for trace in traces
        for tried in trace.rules
        if (result := result_of(trace, tried)) in RESULTS
    }


# The solver's side


def possible_items(proof: Proof, tested: TestFileRun) -> Iterator[CoverageTarget]:
    """Yield everything that a test could cover, with the events that do: some of it may be impossible."""
    decisions, scope = proof.decisions[0], scope_of(tested)
    paths = {covered.policy: covered.path for covered in tested.coverage}
    for output in (APPROVE, HOLD, ABSTAIN):
        yield CoverageTarget(
            CoverageItem(scope, output), disj(when for one, when in _deciding(decisions) if one.output == output)
        )
    for policy in decisions.policies:
        here = (paths[policy.name],)
        for match in policy.every():
            for result, formula in _results(match).items():
                yield CoverageTarget(CoverageItem(here, result, policy.name, match.path), formula, match)
        for how, result in ((NO_RULE, NO_RULE_APPLIES), (DOUBT, UNKNOWN)):
            found = disj(one.when for one in policy.outcomes if one.how == how)
            yield CoverageTarget(CoverageItem(here, result, policy.name), found)
    for name in _types(tested.artifact):
        among = conj((proof.normal, proof.inputs.is_one_of("EventType", name)))
        ways: dict[CoverageItem, list[Formula]] = {}  # a rule may fail in its condition and in its explanation
        for one, when in _deciding(decisions):
            result = FAILS if one.how in FAILED else one.output
            policy_name = None if one.output == ABSTAIN else one.policy
            ways.setdefault(CoverageItem(scope, result, policy_name, one.rule, name), []).append(when)
        yield from (CoverageTarget(item, conj((among, disj(formulas)))) for item, formulas in ways.items())


def stateable(proof: Proof, params: Collection[str]) -> Formula:
    """Return which events a test can state: no event is older than a century.

    ``params`` are the names of parameters that are given in any case.
    """
    given = [is_given for name, (_kind, _term, is_given) in proof.params.varying().items() if name in params]
    return conj((proof.params.accepted(0), proof.inputs.age_us <= _OLDEST, *given))


def _results(match: MatchFormulas) -> dict[str, Formula]:
    """Return the events that reach a rule, by its result (RESULTS)."""
    met = conj((match.reached, match.holds))
    return {
        "true": conj((met, neg(match.output_fails))),
        "false": conj((match.reached, neg(match.holds), neg(match.fails))),
        "error": conj((match.reached, match.fails)),
        "explanation": conj((met, match.explanation_fails)),
        "limit": conj((met, neg(match.explanation_fails), match.group_fails)),
    }


def _deciding(decisions: Decisions) -> Iterator[tuple[OutcomeFormula, Formula]]:
    """Yield each way to decide by all policies together: of those that hold, or else approve, the first decides."""
    held: list[Formula] = []
    approved: list[Formula] = [decisions.held]
    for policy in decisions.policies:
        for output, before in ((HOLD, held), (APPROVE, approved)):
            listed = [one for one in policy.outcomes if one.output == output]
            for one in listed:
                if one.match is not None:
                    yield one, conj((one.when, neg(disj(before))))
            before += [one.when for one in listed]
    abstaining = [one for policy in decisions.policies for one in policy.outcomes if one.output == ABSTAIN]
    if abstaining:
        yield abstaining[0], decisions.uncovered


def _types(artifact: Artifact) -> tuple[str, ...]:
    """Return the types of events that the service sends, and those that policies declare."""
    extra = extra_values(artifact.data["policies"]).get("EventType", ())
    return tuple(dict.fromkeys((*event_types(artifact.api_version), *extra)))
