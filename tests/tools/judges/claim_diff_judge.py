# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judges what ``policy diff`` says about two versions of policies, by single events that the engine decides."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from forewarn.policy.artifact import Artifact
from forewarn.policy.decision import APPROVERS, Decision, Limit
from forewarn.policy.engine import PolicySet

from ..generators.drawn_events import Observation
from ..generators.drawn_policies import DrawnPolicies
from .claim_results import Contradiction, Results, engine
from .claims import INCOMPARABLE, LESS, MORE, NO_CHANGE, UNPROVEN, Comparison, shown


class Behaviour(NamedTuple):
    """What diff compares of a decision. None of the hooks is left out."""

    output: str
    approver: str
    group: str
    limits: tuple[Limit, ...]
    hooks: str
    rule: tuple[str | None, str | None]


REFUSED = Behaviour("hold", "", "hold", (), "", (None, None))


def behaviour(decision: Decision | None) -> Behaviour:
    """Return what a decision does; None is that of policies that do not run."""
    if decision is None:
        return REFUSED
    acting = [one for one in decision.verdicts if one.output != "abstain"]
    hooks = [
        (
            one.prepare,
            one.prepare and (one.on_failure, one.parallel, one.prepare_within_seconds),
            one.recover,
            one.recover and one.recover_when,
            one.notify,
        )
        for one in acting
        if one.prepare or one.recover or one.notify
    ]
    approves = decision.output == "approve"
    return Behaviour(
        decision.output,
        decision.approver if approves else "",
        decision.group,
        decision.limits,
        json.dumps(hooks, default=str),
        (decision.policy, decision.rule),
    )


class DiffJudge:
    """Judges what diff says about two versions of policies."""

    def __init__(
        self, versions: Sequence[DrawnPolicies], artifacts: Sequence[Artifact], found: Comparison, results: Results
    ) -> None:
        self.artifacts, self.found, self.results = artifacts, found, results
        self.texts = ("OLD", *versions[0].texts, "NEW", *versions[1].texts, f"VERDICT {found.verdict}")
        self.api_version = versions[0].api_version

    def engines(self, params: Mapping[str, Any]) -> list[PolicySet | None]:
        """Return the engines of both versions for parameters."""
        return [engine(artifact, params) for artifact in self.artifacts]

    def judge(self, engines: Sequence[PolicySet | None], seen: Observation, params: Mapping[str, Any]) -> None:
        """Judge the verdict by one event."""
        decisions = [None if one is None else one.decide(seen.document, seen.facts)[0] for one in engines]
        old, new = map(behaviour, decisions)
        verdict = self.found.verdict
        self.results.counts["pairs of diff"] += 1
        self.results.counts["changed"] += old != new
        wrong = []
        if verdict == NO_CHANGE and old != new:
            wrong.append("no change")
        approves = new.output == "approve"
        both = approves and old.output == "approve"
        before, after = (_bare(one) for one in decisions)
        waits = [_waits(one) for one in decisions]
        wider = both and (
            APPROVERS.index(new.approver) > APPROVERS.index(old.approver)
            or waits[0] > waits[1]
            or not _within(new.limits, old.limits)
        )
        narrower = both and (
            APPROVERS.index(new.approver) < APPROVERS.index(old.approver)
            or waits[0] < waits[1]
            or not _within(old.limits, new.limits)
        )
        more = (approves and old.output == "hold") or wider or (both and before > after)
        less = (not approves and old.output == "approve") or narrower or (both and before < after)
        if more and verdict not in (MORE, INCOMPARABLE, UNPROVEN):
            wrong.append("not more permissive")
        if less and verdict not in (LESS, INCOMPARABLE, UNPROVEN):
            wrong.append("not less permissive")
        if verdict not in (MORE, INCOMPARABLE, UNPROVEN) and _lets_others(*decisions):
            wrong.append("hold to abstain")
        for kind in wrong:
            self.results.add(Contradiction(kind, f"{old} → {new}", self.texts, (seen, params), self.api_version))

    def static(self) -> None:
        """Judge the cases of changes, and count what is claimed."""
        verdict, claims = self.found.verdict, self.results.claims
        claims["no change"] += verdict == NO_CHANGE
        claims["not more permissive"] += verdict not in (MORE, INCOMPARABLE, UNPROVEN)
        claims["hold to abstain"] += verdict not in (MORE, INCOMPARABLE, UNPROVEN)
        claims["not less permissive"] += verdict not in (LESS, INCOMPARABLE, UNPROVEN)
        for change in self.found.changes:
            for part in change["events"]:
                if part["certain"] and part.get("case"):
                    claims["case of a change"] += 1
                    self._case(change, part)

    def _case(self, change: Mapping[str, Any], part: Mapping[str, Any]) -> None:
        given = shown(part["case"], self.api_version)
        decisions = [
            None if one is None else one.decide(given.document, given.facts)[0] for one in self.engines(given.params)
        ]
        told = [(part[side]["output"], part[side]["rule"]) for side in ("old", "new")]
        seen = [("hold", None) if one is None else (one.output, one.rule) for one in decisions]
        reasons = [one and one.reason for one in decisions]
        if told != seen or (behaviour(decisions[0]) == behaviour(decisions[1]) and reasons[0] == reasons[1]):
            about = f"{change['change']}: said {told}, seen {seen}"
            self.results.add(Contradiction("case of a change", about, self.texts, part["case"], self.api_version))


def _waits(decision: Decision | None) -> int:
    """Return how long an approved event of several VMs waits: until it starts, for all of them, or not at all."""
    if decision is None or (decision.group == "hold" and decision.prepare):
        return 2
    return 1 if decision.group == "ready" else 0


def _within(some: Sequence[Limit], others: Sequence[Limit]) -> bool:
    """Return whether whoever keeps within some limits keeps within others."""
    return all(any(_stricter(one, other) for one in some) for other in others)


def _stricter(one: Limit, other: Limit) -> bool:
    numbers = (one.at_most, other.at_most) if other.percent is None else (one.percent, other.percent)
    return one.group == other.group and None not in numbers and numbers == tuple(sorted(numbers, key=lambda n: n or 0))


def _bare(decision: Decision | None) -> frozenset[str]:
    """Return the programs of all preparation."""
    if decision is None:
        return frozenset()
    return frozenset(json.dumps({**hook, "timeout": None, "timeout_seconds": None}) for hook in decision.prepare)


def _lets_others(old: Decision | None, new: Decision | None) -> bool:
    """Return whether the policies held an event by a rule, and now all of them abstain."""
    if old is None or new is None or not new.verdicts:
        return False
    return old.output == "hold" and old.rule is not None and all(one.output == "abstain" for one in new.verdicts)
