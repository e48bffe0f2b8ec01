# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``policy verify``: looks for problems of valid policies over every possible event."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...compiler.testing.second_opinion import CODE as ENGINES_DIFFER
from ...policy.artifact import Artifact
from ..artifacts import Json, without_invariants
from ..event_space.policies import read
from ..proof import Progress, Proof, silent
from ..smt.effort import within_limits
from ..smt.encode.inputs import CONSTRAINTS
from .all_policies import joint_findings
from .approves_before_others import approvals_before_others
from .engines_differ import example_differences, rule_differences
from .finding import CODES, ProofFinding
from .paired_events import VariantDecisions, paired_findings
from .recovery import early, recovery
from .redundant import RedundancySearch
from .rules import RuleSearch
from .search import Search
from .slots import conflicting_limits, unfreed_slots

__all__ = ["CODES", "Verification", "verify"]


@dataclass(frozen=True)
class Verification:
    """The findings and what they rest on. ``not_understood`` are expressions that may have any value."""

    findings: tuple[ProofFinding, ...]
    assumptions: tuple[str, ...]
    not_understood: tuple[str, ...]
    constraints: tuple[str, ...] = CONSTRAINTS


@within_limits
def verify(
    artifact: Artifact, params: Json | None = None, invariants: Sequence[Json] = (), progress: Progress = silent
) -> Verification:
    """Look for findings.

    ``params`` are JSON values given for parameters, as PolicySet takes them; others vary over all that is allowed.
    ``invariants`` are further claims, entries as the artifact has them, with ``source``.

    Raises InputError where z3 or cel-python is missing, AnalysisError on a defect of our own.
    """
    given = dict(params or {})
    search, beside = _search(artifact, given, invariants, progress)
    progress("decisions of all policies together", 0, 0)
    single = len(artifact.data["policies"]) == 1
    found = [*joint_findings(search), *paired_findings(search, beside)]
    found += [*approvals_before_others(artifact, given, progress)]
    found += [*early(search), *unfreed_slots(search), *conflicting_limits(search)]
    by_itself: list[ProofFinding] = []  # findings of policies with suppressions, each by itself
    found += _of_rules(search) if single else example_differences(search)
    for data in () if single else artifact.data["policies"]:
        declared = {entry["name"] for entry in data["params"]}
        one = without_invariants(artifact, [data])
        alone, beside = _search(one, {name: value for name, value in given.items() if name in declared}, (), progress)
        found += (replace(finding, alone=True) for finding in _of_rules(alone))
        if data.get("suppress"):
            by_itself += [*joint_findings(alone), *paired_findings(alone, beside), *early(alone), *unfreed_slots(alone)]
            by_itself += approvals_before_others(one, alone.proof.given, progress)
    findings = _suppressed(artifact, _once(found), by_itself)
    findings.sort(key=lambda one: (one.source, one.line, one.column, one.code))
    return Verification(tuple(findings), search.proof.assumptions, search.proof.not_understood)


def _search(
    artifact: Artifact, given: Json, invariants: Sequence[Json], progress: Progress
) -> tuple[Search, VariantDecisions]:
    proof = Proof([artifact], given, invariants)
    return Search(proof, read(artifact, given, invariants), progress), VariantDecisions(proof)


def _of_rules(search: Search) -> list[ProofFinding]:
    """Return the findings about single rules, which depend on their own policy only."""
    found: list[ProofFinding] = []
    for policy in search.decisions.policies:
        rules = RuleSearch(search, policy)
        about_rules = list(rules.findings())
        found += about_rules
        found += rule_differences(search, rules.seen)
        dead = {one.rule for one in about_rules if one.rule and one.code in ("shadowed-rule", "unsatisfiable-rule")}
        found += RedundancySearch(search, policy, dead).findings()
    found += recovery(search)
    return [*found, *example_differences(search)]


def _once(found: list[ProofFinding]) -> list[ProofFinding]:
    """Return each finding of a rule once, though several events show it."""
    kept: dict[tuple[Any, ...], ProofFinding] = {}
    for number, one in enumerate(found):
        place = (one.source, one.line, one.column)
        kept.setdefault((one.code, one.policy, one.rule, *place) if one.rule else (number,), one)
    return list(kept.values())


def _suppressed(artifact: Artifact, findings: list[ProofFinding], by_itself: list[ProofFinding]) -> list[ProofFinding]:
    """Return the findings, the suppressed ones marked, and a finding for each unused suppression.

    A suppression that a policy needs when it runs ``by_itself`` counts as used beside other policies.
    """
    result = list(findings)
    for data in artifact.data["policies"]:
        for entry in data.get("suppress", ()):
            code, rule = entry["code"], entry.get("rule")
            used = any(_meant(finding, code, data["name"], rule) for finding in by_itself)
            for place, finding in enumerate(result):
                if _meant(finding, code, data["name"], rule):
                    result[place], used = replace(finding, suppressed=entry["reason"]), True
            if not used and code != ENGINES_DIFFER:  # tests may have an event for it
                about = f"of rule {rule} " if rule else ""
                message = f"the file suppresses {code} {about}and there is no such finding"
                source = data["source"]
                hint = "remove it from 'suppress'" if code in CODES else f"the codes are {', '.join(CODES)}"
                result.append(
                    ProofFinding("unused-suppression", "warning", data["name"], rule, source, 1, 1, message, hint)
                )
    return result


def _meant(finding: ProofFinding, code: str, policy: str, rule: str | None) -> bool:
    return (finding.code, finding.policy) == (code, policy) and rule in (None, finding.rule)
