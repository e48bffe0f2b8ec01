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
from ...policy.forms import every_match, every_variable
from ..diff import ALIKE, INCOMPARABLE, LESS, MORE, Difference
from ..hook_wording import hook_texts
from ..verify import Verification
from .table import difference_table, verification_table

_HERE = Path(__file__).parent
_SCRIPTS = [_HERE / name for name in ("page_data.js", "page_map.js", "page_detail.js")]
_EFFECTS = {
    MORE: "more permissive",
    LESS: "less permissive",
    INCOMPARABLE: "more and less permissive",
    ALIKE: "otherwise different",
}
_VERDICTS = {
    MORE: "More permissive: events start that waited before.",
    LESS: "Less permissive: events wait that started before.",
    INCOMPARABLE: "More permissive for some events, less for others.",
    ALIKE: "Neither more nor less permissive.",
}
Anchors = Dict[Tuple[str, str], str]  # policy and rule -> where the page has it


def verification_page(
    artifact: Artifact, report: Verification, files: Sequence[str], params: Mapping[str, Any] | None = None
) -> str:
    """Return the page of what verify found. ``files`` are the policies' names for people, in their order.

    Raises InputError if there are too many classes.
    """
    rules, anchors = _policies(artifact, 0, files)
    open_ones = [one.severity for one in report.findings if one.suppressed is None]
    return render(
        _HERE / "verification.html.j2",
        _SCRIPTS,
        title=f"What {rules[0]['name']} decides" if len(rules) == 1 else f"What {len(rules)} policies decide together",
        api_version=artifact.api_version,
        table=verification_table(artifact, params),
        report=report,
        counts=[(name, open_ones.count(name)) for name in ("error", "warning", "note") if name in open_ones],
        findings=[
            (
                one,
                one.severity if one.suppressed is None else "suppressed",
                anchors.get((one.policy, one.rule or "")),
                one.case and _example(one.case, f"{_decided(one.case['decision'])}: {one.case['decision']['reason']}"),
            )
            for one in report.findings
        ],
        rules=rules,
    )


def difference_page(
    old: Artifact,
    new: Artifact,
    difference: Difference,
    names: tuple[str, str],
    params: Mapping[str, Any] | None = None,
) -> str:
    """Return the page of what differs; ``names`` are those of the two sets of policies, for people.

    Raises InputError if there are too many classes.
    """
    rules, anchors = _policies(new, 1, ())
    return render(
        _HERE / "difference.html.j2",
        _SCRIPTS,
        title="What a change of policies changes",
        api_version=new.api_version,
        table=difference_table(old, new, params),
        verdict=_VERDICTS.get(difference.verdict, "Nothing changes."),
        names=names,
        difference=difference,
        changes=[
            (
                one,
                _EFFECTS[one.effect],
                one.rule and anchors.get(one.rule[:2]),
                [
                    (part, _example(part.case, f"Before: {_quoted(part.old)}; After: {_quoted(part.new)}"))
                    for part in one.parts
                ],
            )
            for one in difference.changes
        ],
        old_rules=_policies(old, 0, ())[0],
        new_rules=rules,
    )


def _example(case: Mapping[str, Any], answers: str) -> dict[str, str]:
    facts = (
        f"{name}: {json.dumps(case[name]) if isinstance(case[name], Mapping) else case[name]}"
        for name in ("now", "first_seen", "vm", "params")
        if case.get(name)
    )
    return {"event": json.dumps(case["event"], indent=1), "facts": "; ".join(facts), "answers": answers}


def _decided(decision: Mapping[str, Any]) -> str:
    by = f" by {decision['policy']}/{decision['rule']}" if decision["rule"] else ""
    return f"{decision['output']}{by}"


def _quoted(decision: Mapping[str, Any]) -> str:
    return _decided(decision) + (f", \u201c{decision['reason']}\u201d" if decision["reason"] else "")


# The rules


def _policies(artifact: Artifact, side: int, files: Sequence[str]) -> tuple[list[dict[str, Any]], Anchors]:
    """Return what the page shows of each policy, and where its rules are."""
    policies, anchors = [], {}
    for place, data in enumerate(artifact.data["policies"]):
        rules = []
        for number, (path, match) in enumerate(every_match(data["rule"])):  # as the analysis numbers them
            anchor = anchors[data["name"], path] = f"rule-{side}-{place}-{number}"
            prepares = match.get("output") == "approve" and match.get("prepare")
            more = {"anchor": anchor, "path": path, "nested": path != match["id"], "prepares": prepares}
            fields = {name: match.get(name) for name in ("line", "output", "condition", "explanation")}
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
