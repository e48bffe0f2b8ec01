# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A hostile text in any field of any page is a text there: the page has the elements of one with harmless texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from forewarn.analysis.diff.change import Change, Part
from forewarn.analysis.diff.diff import Difference
from forewarn.analysis.diff.kinds import MORE
from forewarn.analysis.report.page import difference_page, verification_page
from forewarn.analysis.verify.finding import ProofFinding
from forewarn.analysis.verify.verify import Verification
from forewarn.compiler.policies import load_policies
from forewarn.fleet.page import page
from forewarn.pages import printable
from forewarn.policy.artifact import Artifact
from tools.judges.elements import Elements

HARMLESS = "harmless"
HOSTILE = [
    "</script></style></title><script>alert(1)</script>",
    "<img src=x onerror='alert(2)'>&lt;",
    '" onmouseover="alert(3)" \'',
    "{{ 7 * 7 }}{% raw %}",
    "\u202egnp.exe\x1b[2J\n<b>",
]
AT = "2026-05-04T12:05:00Z"


def fleet(text: str) -> str:
    """Return the page of a host of which everything is this text that can be a text."""
    hook = dict.fromkeys(("phase", "hook", "status"), text)
    decision = dict.fromkeys(("output", "policy", "rule", "reason"), text)
    fields = {**dict.fromkeys(("EventType", "NotBefore", "EventSource", "Description"), text), "Resources": [text]}
    names = ("event_id", "state", "starts", "waits_for", "failure", "approved_at", "started_at", "drill")
    event = {**dict.fromkeys(names, text), "event": fields, "decision": decision, "hooks": [hook]}
    pending = {**event, "first_seen": "2026-05-04T12:00:00Z", "started_at": None, "seconds_to_not_before": 100.0}
    past = {**event, "life_id": text, "outcome": text, "first_seen": text, "gone_at": text}
    drawn = {**past, "first_seen": "2026-05-04T12:00:00Z"}
    runner: dict[str, Any] = dict.fromkeys(("condition", "text", "policy", "vm", "version"), text)
    runner |= {"policies": [text], "source": dict.fromkeys(("repository", "ref", "commit"), text), "missing": [text]}
    report = {
        "runner": {**runner, "dry_run": True},
        "service": {"state": text, "text": text},
        "events": [pending, {**event, "life_id": 2}],
        "problems": [text],
    }
    history = json.dumps({"events": [{**past, "event_id": f"{text} 2"}, {**drawn, "event_id": f"{text} 3"}]})
    calm = {**report, "events": [], "problems": []}
    answers: dict[str, dict[str, Any]] = {
        text: {"stdout": json.dumps(report), "history": history},
        f"{text} 2": {"failed": True, "msg": f"2 {text}"},
        f"{text} 4": {"stdout": json.dumps(calm)},
    }
    return page(answers, AT, text)


def artifact(directory: Path, text: str) -> Artifact:
    path = directory / f"{printable(text).replace('/', '_')}.yml"
    path.write_text(
        f"""
name: hostile
description: {json.dumps(text)}
params: [{{name: word, type: string, default: {json.dumps(text)}}}]
rule:
  variables: [{{name: odd, expression: {json.dumps(f"event.Description == {json.dumps(text)}")}}}]
  match:
    - {{id: a, condition: variables.odd, output: approve, explanation: {json.dumps(json.dumps(text))}}}
    - {{id: b, condition: {json.dumps(f"vm.tags['x'] == {json.dumps(text)}")}, output: approve,
       prepare: [{{run: [/bin/x, {json.dumps(text)}]}}], explanation: "'of ' + params.word"}}
    - {{id: c, output: hold}}
"""
    )
    return load_policies([path])


CASE_FIELDS = ("now", "first_seen")


def case(text: str) -> dict[str, Any]:
    decision = dict.fromkeys(("output", "policy", "rule", "reason"), text)
    return {**dict.fromkeys(CASE_FIELDS, text), "event": {text: text}, "vm": {text: text}, "params": {text: text}} | {
        "decision": decision
    }


def verification(directory: Path, text: str) -> str:
    """Return the page of findings and a policy of which everything is this text that can be a text."""
    fields: dict[str, Any] = dict.fromkeys(("code", "policy", "rule", "source", "message", "suggestion"), text)
    findings = (
        ProofFinding(**fields, severity="error", line=1, column=1, case=case(text)),
        ProofFinding(
            **{**fields, "policy": "hostile", "rule": "a"}, severity="note", line=1, column=1, suppressed=text
        ),
    )
    report = Verification(findings, assumptions=(text,), not_understood=(text,), constraints=(text,))
    return verification_page(artifact(directory, text), report, [text])


def difference(directory: Path, text: str) -> str:
    """Return the page of changes and policies of which everything is this text that can be a text."""
    decision = case(text)["decision"]
    part = Part(when=text, usual=False, case=case(text), old=decision, new=decision, certain=False)
    changes = (
        Change(text, MORE, (text, text, text, 1, 1), [part], complete=False),
        Change(text, MORE, ("hostile", "a", text, 1, 1)),
    )
    policies = artifact(directory, text)
    return difference_page(policies, policies, Difference(MORE, changes, (text,), (text,)), (text, text))


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("kind", ["fleet", "verification", "difference"])
def test_hostile_text_is_escaped_in_every_field(kind: str, text: str, tmp_path: Path) -> None:
    def made(text: str) -> str:
        return (
            fleet(text)
            if kind == "fleet"
            else {"verification": verification, "difference": difference}[kind](tmp_path, text)
        )

    harmless, hostile = Elements(made(HARMLESS)), Elements(made(text))
    assert [(name, list(attributes)) for name, attributes in hostile.found] == [
        (name, list(attributes)) for name, attributes in harmless.found
    ]
    assert [name for name, _ in hostile.raw] == [name for name, _ in harmless.raw]
    assert all(char.isprintable() or char == "\n" for char in hostile.text)
    shown = printable(text, newline=" ")
    assert harmless.text.count(HARMLESS) > 20
    assert hostile.text.replace("\n", " ").count(shown) >= 20, "as text it is all there"
