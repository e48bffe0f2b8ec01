# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What verify and diff found as one HTML page: a map of all decisions, then findings or changes, and the rules.

Texts of policies are not trusted. The same policies give the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Dict, Tuple

from ...pages import render
from ...policy.artifact import Artifact
from ...policy.decision import APPROVE, HOLD
from ...policy.forms import every_match, every_variable
from ..artifacts import Json
from ..diff.diff import Difference
from ..diff.kinds import ALIKE, FEWER, INCOMPARABLE, LESS, MORE, NO_CHANGE, UNPROVEN
from ..hook_wording import hook_texts
from ..limits import limit_words
from ..verify.verify import Verification
from .categories import APPROVED, HELD, UNCOVERED, WORDS, rule_category
from .dimension_words import what_matters
from .table import difference_table, verification_table

_HERE = Path(__file__).parent
_SCRIPTS = [_HERE / f"page_{part}.js" for part in ("data", "simple", "axes", "map", "moving", "detail")]
_EFFECTS = {
    MORE: "more permissive",
    LESS: "less permissive",
    INCOMPARABLE: "more and less permissive",
    FEWER: "fewer promises",
    ALIKE: "otherwise different",
}
_VERDICTS = {
    MORE: "More permissive: events start that waited before.",
    LESS: "Less permissive: events wait that started before.",
    INCOMPARABLE: "More permissive for some events, less for others.",
    FEWER: "Decisions allow no more than before, but policies promise less.",
    ALIKE: "Neither more nor less permissive.",
    NO_CHANGE: "Nothing changes.",
    UNPROVEN: "Not proven.",
}
Anchors = Dict[Tuple[str, str], str]  # policy and rule -> where the page has it


def verification_page(
    artifact: Artifact, report: Verification, files: Sequence[str], params: Json | None = None
) -> str:
    """Return the page of what verify found. ``files`` are the policies' names for people, in their order.

    Raises InputError if there are too many classes.
    """
    rules, anchors = _policies(artifact, 0, files)
    table = verification_table(artifact, params)
    said = _DecisionWords(artifact)
    open_ones = [one.severity for one in report.findings if one.suppressed is None]
    return render(
        _HERE / "verification.html.j2",
        _SCRIPTS,
        title=f"What {rules[0]['name']} decides" if len(rules) == 1 else f"What {len(rules)} policies decide together",
        api_version=artifact.api_version,
        table=table,
        matters=what_matters(table["dims"]),
        report=report,
        counts=[(name, open_ones.count(name)) for name in ("error", "warning", "note") if name in open_ones],
        findings=[
            (
                one,
                one.severity if one.suppressed is None else "suppressed",
                anchors.get((one.policy, one.rule or "")),
                one.case and _example(one.case, f"{said(one.case['decision'])}: {one.case['decision']['reason']}"),
            )
            for one in report.findings
        ],
        rules=rules,
    )


def difference_page(
    old: Artifact, new: Artifact, difference: Difference, names: tuple[str, str], params: Json | None = None
) -> str:
    """Return the page of what differs; ``names`` are those of the two sets of policies, for people.

    Raises InputError if there are too many classes.
    """
    rules, anchors = _policies(new, 1, ())
    table = difference_table(old, new, params)
    categories = {leaf["what"]: leaf["category"] for leaf in table["views"][0]["leaves"]}
    said = _DecisionWords(old), _DecisionWords(new)
    return render(
        _HERE / "difference.html.j2",
        _SCRIPTS,
        title="What a change of policies changes",
        api_version=new.api_version,
        table=table,
        matters=what_matters(table["dims"]),
        verdict=_VERDICTS[difference.verdict],
        names=names,
        difference=difference,
        declarations=[(one, _EFFECTS[one.effect]) for one in difference.declarations],
        changes=[
            (
                one,
                categories.get(one.what, one.effect),  # other defaults of a parameter change more than the map shows
                one.rule and anchors.get(one.rule[:2]),
                [
                    (
                        part,
                        part.case and part.old and part.new and _before_and_after(part.case, part.old, part.new, said),
                    )
                    for part in one.parts
                ],
            )
            for one in difference.changes
        ],
        old_rules=_policies(old, 0, ())[0],
        new_rules=rules,
    )


def _before_and_after(case: Json, old: Json, new: Json, said: tuple[_DecisionWords, _DecisionWords]) -> dict[str, str]:
    return _example(case, f"Before: {said[0].quoted(old)}; After: {said[1].quoted(new)}")


def _example(case: Json, answers: str) -> dict[str, str]:
    facts = (
        f"{name}: {json.dumps(case[name]) if isinstance(case[name], Mapping) else case[name]}"
        for name in ("now", "first_seen", "vm", "params")
        if case.get(name)
    )
    return {"event": json.dumps(case["event"], indent=1), "facts": "; ".join(facts), "answers": answers}


class _DecisionWords:
    """Says decisions of the engine by the words of the map."""

    def __init__(self, artifact: Artifact) -> None:
        self._rules = {
            (data["name"], path): rule_category(match)
            for data in artifact.data["policies"]
            for path, match in every_match(data["rule"])
        }

    def __call__(self, decision: Json) -> str:
        category = self._rules.get((decision["policy"], decision["rule"]))
        if category is None or decision["output"] == HOLD:  # a rule without a value holds, whatever it says
            category = {HOLD: HELD, APPROVE: APPROVED}.get(decision["output"], UNCOVERED)
        by = f" by {decision['policy']}/{decision['rule']}" if decision["rule"] else ""
        return f"{WORDS[category][0]}{by}"

    def quoted(self, decision: Json) -> str:
        return self(decision) + (f", \u201c{decision['reason']}\u201d" if decision["reason"] else "")


# The rules


def _policies(artifact: Artifact, side: int, files: Sequence[str]) -> tuple[list[dict[str, Any]], Anchors]:
    """Return what the page shows of each policy, and where its rules are."""
    policies, anchors = [], {}
    for place, data in enumerate(artifact.data["policies"]):
        rules = []
        for number, (path, match) in enumerate(every_match(data["rule"])):  # as the analysis numbers them
            anchor = anchors[data["name"], path] = f"rule-{side}-{place}-{number}"
            more = {"anchor": anchor, "path": path, "nested": path != match["id"], "category": rule_category(match)}
            fields = {name: match.get(name) for name in ("line", "condition", "explanation")}
            more["limit"] = limit_words(match["limit"]) if "limit" in match else None
            more["waits"] = match.get("group") == "ready" and match.get("output") == APPROVE
            rules.append({**fields, **more, "hooks": hook_texts(match)})
        policies.append(
            {
                "name": data["name"],
                "file": files[place] if place < len(files) else data["source"],
                "description": data.get("description"),
                "variables": [(one["name"], one["expr"]["source"]) for one in every_variable(data["rule"])],
                "rules": rules,
            }
        )
    return policies, anchors
