# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``policy verify`` finds what it promises and nothing else, each shown by an event that the engine decides so."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from forewarn.analysis.verify.finding import ProofFinding
from forewarn.analysis.verify.verify import CODES, verify
from forewarn.cli.main import main
from forewarn.errors import InputError
from tools.fixtures.policy_files import HEAD, loaded, verified

CLASSIC = (
    HEAD + "    - id: brief\n      condition: event.EventType == 'Freeze' && event.DurationInSeconds < 9\n"
    "      output: approve\n    - id: rest\n      output: hold\n"
)


def of(findings: list[ProofFinding], code: str) -> ProofFinding:
    (finding,) = [one for one in findings if one.code == code]
    assert code in CODES
    return finding


def event_of(finding: ProofFinding) -> Mapping[str, Any]:
    assert finding.case is not None
    event: Mapping[str, Any] = finding.case["event"]
    return event


def test_the_classic_mistake_comes_out_in_words(tmp_path: Path) -> None:
    finding = of(verified(tmp_path, CLASSIC), "unknown-duration-approved")
    assert "approves a Freeze whose duration is unknown (-1)" in finding.message
    assert "9 s and more is held" in finding.message
    assert finding.severity == "error"
    assert finding.rule == "brief"
    assert event_of(finding)["DurationInSeconds"] == -1
    assert "DurationInSeconds >= 0" in finding.suggestion


def test_the_classic_mistake_alone(tmp_path: Path) -> None:
    text = HEAD + "    - {id: brief, condition: event.DurationInSeconds < 9, output: approve}\n"
    assert of(verified(tmp_path, text), "unknown-duration-approved").message == (
        "rule brief approves a Freeze whose duration is unknown (-1), though one of 9 s and more is held; "
        "likewise for Reboot, Redeploy, Preempt and Terminate"
    )


@pytest.mark.parametrize("night", ["now.getHours() < 5", "event.NotBefore.getHours() < 5", "now.getDayOfWeek() != 0"])
def test_mistake_behind_a_timed_rule_is_shown(night: str, tmp_path: Path) -> None:
    text = CLASSIC.replace("  match:\n", f'  match:\n    - {{id: night, condition: "{night}", output: hold}}\n')
    finding = of(verified(tmp_path, text), "unknown-duration-approved")
    assert finding.severity == "error"
    assert finding.case is not None
    assert finding.case["decision"]["rule"] == "brief"


@pytest.mark.parametrize(
    "condition",
    [
        "event.DurationInSeconds >= 0 && event.DurationInSeconds < 9",
        "event.DurationInSeconds == 5",
        "event.DurationInSeconds != 5",  # a long one is approved as well
        "event.EventType == 'Freeze'",
    ],
)
def test_guarded_duration_is_no_finding(condition: str, tmp_path: Path) -> None:
    text = HEAD + f"    - {{id: a, condition: {json.dumps(condition)}, output: approve}}\n    - {{output: hold}}\n"
    assert not [one for one in verified(tmp_path, text) if one.code == "unknown-duration-approved"]


def test_shadowed_and_unsatisfiable_rules(tmp_path: Path) -> None:
    text = HEAD + (
        "    - {id: wide, condition: \"event.EventType in ['Freeze', 'Reboot']\", output: approve}\n"
        "    - {id: narrow, condition: event.EventType == 'Freeze' && affects_me, output: hold}\n"
        "    - {id: never, condition: event.DurationInSeconds < 5 && event.DurationInSeconds > 7, output: hold}\n"
        "    - id: outer\n      condition: event.EventType == 'Redeploy'\n      rule:\n        match:\n"
        "          - {id: inner, condition: event.EventType == 'Preempt', output: approve}\n"
        "    - {id: last, output: hold}\n"
    )
    findings = verified(tmp_path, text)
    shadowed = [one for one in findings if one.code == "shadowed-rule"]
    assert [(one.rule, one.severity) for one in shadowed] == [("narrow", "error"), ("outer.inner", "error")]
    assert "wide before it takes every event" in shadowed[0].message
    assert of(findings, "unsatisfiable-rule").rule == "never"


@pytest.mark.parametrize(
    ("never", "always"),
    [
        ("size(b'a') == 2", "size('61') == 2"),  # the bytes of b'a' are 61 in hexadecimal
        ("size(b'') > 0 || size(b'1') == 2", "size(b'') > 0 || size('31') == 2"),
        ("string(b'a') == '61'", "string('61') == '61'"),
        ("1.0 / 0.0 < 0.0", "1.0 / -0.0 < 0.0"),
        ("string(1) == 'true'", "string(true) == 'true'"),
        ("string(1) == '1s'", "string(duration('1s')) == '1s'"),
        ("string(duration('0s')) == '1970-01-01T00:00:00Z'", "string(timestamp(0)) == '1970-01-01T00:00:00Z'"),
        ("size([b'a'][0]) == 2", "size(['61'][0]) == 2"),
        ("size({'a': b'a'}['a']) == 2", "size({'a': '61'}['a']) == 2"),
    ],
)
def test_literals_of_two_types_are_two_expressions(tmp_path: Path, never: str, always: str) -> None:
    text = HEAD + (
        f'    - {{id: never, condition: "{never}", output: approve}}\n'
        f'    - {{id: always, condition: "{always}", output: approve}}\n'
        "invariants: [{name: held, expression: decision == hold}]\n"
    )
    findings = verified(tmp_path, text)
    assert [one.rule for one in findings if one.code == "unsatisfiable-rule"] == ["never"]
    assert of(findings, "invariant-violated").severity == "error"


@pytest.mark.parametrize("limits", ["min: 0.0", "max: 9.0", "default: 1.0, min: 0.0, max: 9.0", "description: any"])
def test_no_parameter_is_infinite_or_nan(tmp_path: Path, limits: str) -> None:
    text = f"name: p\nparams: [{{name: ratio, type: double, {limits}}}]\nrule:\n  match:\n" + (
        "    - {id: above, condition: params.ratio >= double('inf'), output: hold}\n"
        "    - {id: below, condition: params.ratio <= double('-inf'), output: hold}\n"
        "    - {id: not-a-number, condition: params.ratio == double('nan'), output: hold}\n"
        "    - {id: one, condition: params.ratio == 1.0, output: hold}\n"
        "    - {id: every, condition: params.ratio < double('inf'), output: hold}\n"
        "    - {id: rest, output: approve}\n"
    )
    dead = {one.rule: one.code for one in verified(tmp_path, text) if one.code != "redundant-rule"}
    unsatisfiable = dict.fromkeys(("above", "below", "not-a-number"), "unsatisfiable-rule")
    assert dead == {**unsatisfiable, "rest": "shadowed-rule"}


@pytest.mark.parametrize("kind", ["double", "string", "bool", "duration"])
def test_unread_parameter_needs_no_default(tmp_path: Path, kind: str) -> None:
    head = HEAD.replace("rule:", f"params: [{{name: more, type: {kind}}}]\nrule:")
    text = head + "    - {id: all, output: approve}\ninvariants: [{name: held, expression: decision == hold}]\n"
    assert of(verified(tmp_path, text), "invariant-violated").case is not None


def test_list_without_a_default_must_be_given(tmp_path: Path) -> None:
    head = HEAD.replace("rule:", "params: [{name: more, type: list(int)}]\nrule:")
    text = head + "    - {id: all, condition: 1 in params.more, output: approve}\n    - {id: rest, output: hold}\n"
    with pytest.raises(InputError, match="parameter more has no default"):
        verified(tmp_path, text)
    assert verified(tmp_path, text, params={"more": [1]})


@pytest.mark.parametrize(
    "name", ["", " ", "a.b", "it's", '"', "a[0]", "tag:", "Über/日本", "missing", "any other", "x" * 512, "ROLE"]
)
def test_a_tag_may_have_any_name(tmp_path: Path, name: str) -> None:
    written = json.dumps(f"vm.tags[{json.dumps(name)}] == 'x' && !('role' in vm.tags) && {json.dumps(name)} in vm.tags")
    text = (
        HEAD + f"    - {{id: tagged, condition: {written}, output: approve}}\n"
        "invariants: [{name: held, expression: decision == hold}]\n"
    )
    findings = verified(tmp_path, text)
    assert "unsatisfiable-rule" not in {one.code for one in findings}
    case = of(findings, "invariant-violated").case
    assert case is not None
    assert case["vm"]["tags"] == {name: "x"}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("missing", "'missing'"),
        ("any other", "'any other'"),
        ("x in another case", "'x in another case'"),
        ("", "''"),
        ("a = b, c; or d", "'a = b, c; or d'"),
        ("O'Hara", '"O\'Hara"'),
        ("web_0.example:80/a+b@c", "web_0.example:80/a+b@c"),
        ("Größe", "Größe"),
    ],
)
def test_ambiguous_texts_are_quoted(tmp_path: Path, text: str, shown: str) -> None:
    condition = f"vm.tags[{json.dumps(text)}] == {json.dumps(text)}"
    policy = HEAD + (
        f"    - {{id: a, condition: {json.dumps(condition)}, output: approve}}\n"
        "invariants: [{name: held, expression: decision == hold}]\n"
    )
    tag = f"vm.tags.{text}" if text.isidentifier() else f"vm.tags[{text!r}]"
    assert of(verified(tmp_path, policy), "invariant-violated").message.endswith(f" when {tag} = {shown}")


def test_unreachable_default_is_a_note(tmp_path: Path) -> None:
    text = HEAD + (
        "    - {id: all, condition: \"event.EventStatus in ['Scheduled', 'Started']\", output: hold}\n"
        "    - {id: default, output: hold}\n"
    )
    assert [(one.code, one.severity) for one in verified(tmp_path, text)] == [("shadowed-rule", "note")]


def test_a_text_that_contains_another_contains_its_parts(tmp_path: Path) -> None:
    text = HEAD + (
        "    - {id: a, condition: \"event.Description.contains('x')\", output: approve}\n"
        "    - {id: b, condition: \"event.Description.contains('xy')\", output: hold}\n"
        "    - {id: rest, output: hold}\n"
    )
    assert of(verified(tmp_path, text), "shadowed-rule").rule == "b"


def test_what_is_not_understood_supports_no_claim(tmp_path: Path) -> None:
    text = HEAD + (
        "    - {id: a, condition: \"event.Description.split(' ').exists(w, w == 'x')\", output: approve}\n"
        "    - {id: b, condition: \"event.Description == 'x'\", output: hold}\n"  # dead, but we cannot know
        "    - {id: rest, output: hold}\n"
    )
    findings = verified(tmp_path, text)
    assert not [one for one in findings if one.code in ("shadowed-rule", "unsatisfiable-rule")]


def test_opaque_expression_is_reported_as_written(tmp_path: Path) -> None:
    text = (
        "name: p\nrule:\n  variables:\n    - {name: words, expression: event.Description.split(' ')}\n"
        "    - {name: many, expression: size(variables.words) > 3}\n  match:\n"
        "    - {id: a, condition: \"variables.words.exists(word, word == 'x') && variables.many\", output: approve}\n"
        "    - {output: hold}\n"
    )
    assert verify(loaded(tmp_path, text)).not_understood == ("variables.words.exists(word, word == 'x')",)


def test_rules_that_can_fail(tmp_path: Path) -> None:
    text = HEAD + (
        "    - {id: tag, condition: \"vm.tags.role == 'x'\", output: approve}\n"
        "    - id: told\n      condition: event.EventType == 'Freeze'\n      output: approve\n"
        "      explanation: string(event.DurationInSeconds)\n    - {output: hold}\n"
    )
    tag, reported = [one for one in verified(tmp_path, text) if one.code == "rule-can-fail"]
    assert (tag.severity, reported.severity) == (
        "warning",
        "note",
    )  # the service sends DurationInSeconds, tags are free
    assert "vm.tags.role is missing" in tag.message
    assert "explanation of rule told" in reported.message
    assert "there is no DurationInSeconds" in reported.message


def test_a_dead_rule_within_another(tmp_path: Path) -> None:
    text = HEAD + (
        "    - id: outer\n      condition: event.EventType == 'Freeze'\n      rule:\n        match:\n"
        "          - {id: first, condition: leader, output: hold}\n"
        "          - {id: again, condition: leader, output: approve}\n    - {output: hold}\n"
    )
    finding = of(verified(tmp_path, text), "shadowed-rule")
    assert finding.message == "rule outer.again never decides: outer.first before it takes every event that it is for"


def test_what_only_unknown_types_meet_no_event_meets(tmp_path: Path) -> None:
    known = "['Freeze', 'Reboot', 'Redeploy', 'Preempt', 'Terminate']"
    text = (
        HEAD + f'    - {{id: new, condition: "!(event.EventType in {known})", output: hold}}\n    - {{output: hold}}\n'
    )
    assert of(verified(tmp_path, text), "unsatisfiable-rule").rule == "new"


def test_one_policy_may_have_nearly_all_findings(tmp_path: Path) -> None:
    text = CLASSIC.replace("    - id: rest\n      output: hold\n", "") + (
        "    - id: lead\n      condition: has(vm.zone) && vm.zone == '1' && leader && notice > age\n"
        "      output: approve\n      group: ready\n      prepare: [{run: [/bin/drain]}]\n"
        "      recover: [{run: [/bin/undrain]}]\n"
        "    - {id: evicted, condition: event.EventSource == 'User' && notice > age && event.EventType == 'Preempt',\n"
        "       output: approve, approver: any}\n"
        "    - {id: user, condition: event.EventSource == 'User' && notice > age, output: approve, approver: any}\n"
        "    - id: mine\n      condition: leader && vm.tags['role'] == 'x'\n      output: approve\n      limit: 1\n"
        "      prepare: [{run: [/bin/drain]}]\n"
        "    - {id: none, condition: affects_me && !affects_me, output: hold}\n"
        "    - {id: again, condition: event.DurationInSeconds < 3 && event.EventType == 'Freeze', output: hold}\n"
        "    - id: late\n      condition: event.EventStatus == 'Started' && event.EventType == 'Redeploy'\n"
        "      output: hold\n      prepare: [{run: [/bin/drain]}]\n      recover: [{run: [/bin/undrain]}]\n"
        "    - id: soon\n      condition: event.EventStatus == 'Scheduled' && event.EventType == 'Redeploy'\n"
        "      output: hold\n      recover: [{run: [/bin/undrain]}]\n      recover_when: started\n"
        "invariants:\n  - {name: mine only, expression: decision == hold || event.DurationInSeconds > 2}\n"
        "  - {name: reboots, expression: \"decision == hold || event.EventType != 'Reboot'\"}\n"
    )
    others = {"unused-suppression", "engines-differ", "invariant-not-proven", "several-groups"}
    assert {one.code for one in verified(tmp_path, text)} == CODES.keys() - others


def test_a_rule_is_shown_by_its_policy_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.yml").write_text("name: brake\nrule:\n  match:\n    - {output: hold}\n")
    text = HEAD + "    - {id: tag, condition: \"vm.tags['x'] == 'y'\", output: approve}\n    - {output: hold}\n"
    (tmp_path / "b.yml").write_text(text)
    assert main(["policy", "verify", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "no value, and the event is held, when vm.tags.x is missing\n" in out
    assert "decided: hold by p/tag\n" in out
    assert f"forewarn policy explain --policy {tmp_path / 'b.yml'} --event" in out


def test_uncovered_events(tmp_path: Path) -> None:
    text = HEAD + "    - {condition: \"event.EventType in ['Freeze', 'Reboot']\", output: hold}\n"
    finding = of(verified(tmp_path, text), "uncovered-events")
    assert "Redeploy, Preempt, Terminate" in finding.message
    assert event_of(finding)["EventType"] == "Redeploy"


def test_approved_unprepared(tmp_path: Path) -> None:
    text = HEAD + (
        "    - {id: user, condition: has(event.EventSource) && event.EventSource == 'User', output: approve}\n"
        "    - id: drain\n      condition: event.EventType == 'Reboot'\n      output: approve\n"
        "      prepare: [{run: [/bin/drain]}]\n    - {output: hold}\n"
    )
    finding = of(verified(tmp_path, text), "approved-unprepared")
    assert finding.rule == "user"
    assert "a Reboot" in finding.message
    assert "EventSource only" in finding.message


def test_claims_at_one_place_are_each_reported(tmp_path: Path) -> None:
    text = (
        "name: p\nrule: {match: [{id: a, output: approve}]}\ninvariants: [{name: one, expression: decision == hold}, "
        "{name: two, expression: &same event.EventType != 'Freeze'}, {name: three, expression: *same}]\n"
    )
    reported = [one.message.partition(" ")[0] for one in verified(tmp_path, text) if one.code == "invariant-violated"]
    assert reported == ["'one'", "'two'", "'three'"]


def test_followers(tmp_path: Path) -> None:
    text = (
        HEAD
        + "    - {id: a, condition: event.EventType == 'Freeze', approver: any, output: approve}\n"
        + "    - {output: hold}\n"
    )
    assert of(verified(tmp_path, text), "follower-approves").severity == "warning"
    alone = text.replace("'Freeze'", "'Freeze' && size(event.Resources) == 1")
    waits = text.replace("output: approve", "output: approve, group: ready")
    for harmless in (alone, waits):
        assert not [one for one in verified(tmp_path, harmless) if one.code == "follower-approves"]


def test_invariants(tmp_path: Path) -> None:
    text = CLASSIC + (
        "invariants:\n"
        "  - {name: unknown, expression: '!(decision == approve && event.DurationInSeconds == -1)'}\n"
        "  - {name: fine, expression: \"decision == hold || event.EventType == 'Freeze'\"}\n"
        '  - {name: fails, expression: "event.DurationInSeconds > -5"}\n'
    )
    findings = verified(tmp_path, text)
    violated = of(findings, "invariant-violated")
    assert "'unknown'" in violated.message
    assert event_of(violated)["DurationInSeconds"] == -1
    assert violated.line == 10
    assert "'fails' has no value when DurationInSeconds is missing" in of(findings, "invariant-can-fail").message


def test_policies_are_verified_as_they_run_together(tmp_path: Path) -> None:
    brake = "name: brake\nrule:\n  match:\n    - {condition: event.DurationInSeconds < 0, output: hold}\n"
    findings = verified(tmp_path, CLASSIC, brake)
    assert not [one for one in findings if one.code == "unknown-duration-approved"]


def test_a_parameter_is_proven_over_its_range(tmp_path: Path) -> None:
    text = (
        "name: p\nparams: [{name: most, type: int, default: 9, min: 0, max: 20}]\nrule:\n  match:\n"
        "    - {condition: event.DurationInSeconds >= 0 && event.DurationInSeconds < params.most, output: approve}\n"
        "    - {output: hold}\ninvariants:\n"
        "  - {name: at most 10 s, expression: decision == hold || event.DurationInSeconds < 10}\n"
    )
    violated = of(verified(tmp_path, text), "invariant-violated")
    assert violated.case is not None
    assert violated.case["params"]["most"] > 10
    assert not [one for one in verified(tmp_path, text, params={"most": 10}) if one.severity == "error"]


def test_every_code_has_a_page(repository: Path) -> None:
    pages = {path.stem for path in (repository / "docs" / "findings").glob("*.md")}
    assert CODES.keys() <= pages
    listed = (repository / "docs" / "verify.md").read_text()
    for code, meaning in CODES.items():
        page = (repository / "docs" / "findings" / f"{code}.md").read_text()
        assert f"# {code}" in page
        assert meaning in page
        for part in ("## Why it matters", "## For example", "## What to do", "## If it is intentional"):
            assert part in page, code
        assert f"[`{code}`](findings/{code}.md)" in listed
