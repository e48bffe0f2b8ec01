# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What verify, diff and the tests of policies say is true: odd names, hooks, parameters, files and documents."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from forewarn.analysis.coverage.coverage import find_gaps
from forewarn.analysis.diff.diff import compare
from forewarn.analysis.verify.finding import ProofFinding
from forewarn.cli.main import main
from forewarn.compiler.testing.policytest import run_tests
from forewarn.events import DocumentError, Vm, parse_document
from forewarn.policy.decision import Facts
from forewarn.policy.engine import PolicySet
from tools.fixtures.events import listed
from tools.fixtures.policy_files import HEAD, loaded, verified

REST = "    - {id: rest, output: hold}\ninvariants:\n  - {name: nothing is approved, expression: decision == hold}\n"


def codes(findings: list[ProofFinding]) -> set[str]:
    return {one.code for one in findings if one.severity != "note"}


def decided(artifact: Any, **fields: Any) -> str:
    """Return what the engine decides for an event that names the VM web_0 alone, a quarter of an hour ahead."""
    own = {"Resources": ["web_0"], "DurationInSeconds": 900, "NotBefore": "2026-06-15T12:15:01Z"}
    event = listed("a", **{**own, **fields})
    document = parse_document(json.dumps({"DocumentIncarnation": 1, "Events": [event]}))
    facts = Facts(datetime(2026, 6, 15, 12, tzinfo=timezone.utc), Vm(name="web_0"), {})
    (decision,) = PolicySet(artifact).decide(document, facts)
    return decision.output


@pytest.mark.parametrize(
    "condition",
    [
        "now - timestamp('1750-01-01T00:00:00Z') > duration('1h')",
        "params.until - now > duration('1h')",
        "event.NotBefore - timestamp('2300-01-01T00:00:00Z') < duration('0s')",
        "event.NotBefore + (now - timestamp('2300-01-01T00:00:00Z')) < now",
    ],
)
def test_difference_of_times_has_values_for_some_events(tmp_path: Path, condition: str) -> None:
    text = (
        "name: p\nparams: [{name: until, type: timestamp, default: '2300-01-01T00:00:00Z'}]\nrule:\n  match:\n"
        f'    - {{id: some, condition: "{condition}", output: approve}}\n' + REST
    )
    assert decided(loaded(tmp_path, text)) == "approve"  # in 2026, though there is no such difference in 2050
    findings = verified(tmp_path, text)
    assert "unsatisfiable-rule" not in codes(findings)
    assert "invariant-violated" in codes(findings)
    assert "rule-can-fail" in {one.code for one in findings}


@pytest.mark.parametrize(
    "condition",
    [
        "'' in event.Resources",
        f"'{'x' * 257}' in event.Resources && affects_me",
        "vm.name == ''",
        f"vm.name == '{'x' * 257}' && leader",
        "event.EventId in ['', ' ']",
        f"event.EventId == '{'x' * 257}'",
        f"event.Description == '{'x' * 4097}'",
    ],
)
def test_rule_for_impossible_values_is_unsatisfiable(tmp_path: Path, condition: str) -> None:
    text = HEAD + f'    - {{id: odd, condition: "{condition}", output: approve}}\n' + REST
    assert codes(verified(tmp_path, text)) - {"rule-can-fail"} == {"unsatisfiable-rule"}
    longest = text.replace("x" * 257, "x" * 256).replace("x" * 4097, "x" * 4096)
    assert ("invariant-violated" in codes(verified(tmp_path, longest))) == (longest != text)


def test_rule_after_one_about_a_vm_is_alive(tmp_path: Path) -> None:
    text = (
        HEAD
        + "    - {id: one, condition: \"'vm_1' in event.Resources\", output: hold}\n    - {id: all, output: approve}\n"
    )
    assert "shadowed-rule" not in codes(verified(tmp_path, text))


def test_a_vm_is_one_in_whatever_case(tmp_path: Path) -> None:
    condition = "vm.name == 'web_0' && !affects_me && 'WEB_0' in event.Resources"
    findings = verified(tmp_path, HEAD + f'    - {{id: odd, condition: "{condition}", output: approve}}\n' + REST)
    assert codes(findings) == {"unsatisfiable-rule"}


@pytest.mark.parametrize("more", ["", " && vm.name != 'WEB_0'", " && vm.name != 'WEB_0' && vm.name != 'Web_0'"])
def test_vm_name_may_differ_in_case(tmp_path: Path, more: str) -> None:
    condition = f"'WEB_0' in event.Resources && affects_me && size(event.Resources) == 1{more}"
    text = (
        HEAD + f'    - {{id: a, condition: "{condition}", output: approve}}\n    - {{id: rest, output: hold}}\n'
        "invariants:\n  - {name: by that name alone, expression: \"decision == hold || vm.name == 'WEB_0'\"}\n"
    )
    assert decided(loaded(tmp_path, text), Resources=["WEB_0"]) == "approve"  # and the VM is called web_0
    findings = verified(tmp_path, text)
    assert "unsatisfiable-rule" not in codes(findings)
    (violated,) = [one for one in findings if one.code == "invariant-violated"]
    assert "WEB_0 in another case" in violated.message


def test_invariant_covers_unknown_event_types(tmp_path: Path) -> None:
    text = (
        "name: p\nparams: [{name: kind, type: string, default: Freeze, enum: [Freeze, Hibernate, '']}]\n"
        "rule: {match: [{id: rest, output: hold}]}\n"
        "invariants:\n  - name: none of that kind\n"
        "    expression: \"event.EventType in ['Freeze', 'Reboot'] || event.EventType != params.kind\"\n"
    )
    (violated,) = [one for one in verified(tmp_path, text) if one.code == "invariant-violated"]
    assert violated.case is not None
    assert violated.case["event"]["EventType"] == "Hibernate"


def test_a_limit_on_one_side_of_a_time(tmp_path: Path) -> None:
    text = (
        "name: p\nparams:\n"
        "  - {name: due, type: timestamp, default: '2026-06-01T00:00:00Z', min: '2025-01-01T00:00:00Z'}\n"
        "rule:\n  match:\n"
        "    - {id: early, condition: now < params.due, output: hold}\n    - {id: late, output: approve}\n"
    )
    assert verified(tmp_path, text) == []


def test_a_group_takes_only_what_its_rules_take(tmp_path: Path) -> None:
    text = (
        HEAD + "    - id: group\n      rule:\n        match:\n"
        '          - {id: freeze, condition: event.EventType == "Freeze", output: hold}\n'
        '    - {id: first, condition: event.EventType == "Reboot", output: approve}\n'
        '    - {id: second, condition: event.EventType == "Reboot", output: hold}\n    - {id: rest, output: hold}\n'
    )
    (dead,) = [one for one in verified(tmp_path, text) if one.code == "shadowed-rule"]
    assert dead.rule == "second"
    assert "first before it takes" in dead.message


def test_hold_by_hooks_has_no_approving_follower(tmp_path: Path) -> None:
    """Every VM of the group prepares, so none approves without hooks."""
    text = (
        HEAD
        + "    - {id: drain, output: approve, approver: any, prepare: [{run: [/bin/a]}], recover: [{run: [/bin/b]}]}\n"
    )
    assert "follower-approves" not in codes(verified(tmp_path, text))


def test_one_policy_for_the_leader_is_enough(tmp_path: Path) -> None:
    rule = "name: {}\nrule: {{match: [{{id: r, output: approve{}}}]}}\n"
    findings = verified(tmp_path, rule.format("a", ", approver: any"), rule.format("b", ""))
    assert "follower-approves" not in codes(list(findings))


@pytest.mark.parametrize(
    ("condition", "arguments", "params"),
    [
        ("!('other' in vm.tags)", [], {}),
        ("vm.tags['a=b'] == 'c=d' && vm.tags[''] == ''", [], {}),
        (
            "event.DurationInSeconds < params.limit && event.DurationInSeconds > 30",
            ["--param", "limit=60"],
            {"limit": 60},
        ),
    ],
)
def test_finding_is_reproduced_by_command_and_test(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], condition: str, arguments: list[str], params: dict[str, Any]
) -> None:
    text = (
        "name: p\nparams: [{name: limit, type: int, default: 9}]\nrule:\n  match:\n"
        f'    - {{id: some, condition: "{condition}", output: approve}}\n' + REST
    )
    (finding,) = [one for one in verified(tmp_path, text, params=params) if one.code == "invariant-violated"]
    assert finding.case is not None
    event = tmp_path / "event.json"
    event.write_text(json.dumps(finding.case["event"]))
    main(["policy", "explain", "--policy", str(tmp_path / "p.yml"), "--event", str(event), "--json", *finding.explain])
    (explained,) = json.loads(capsys.readouterr().out)["explanations"]
    assert explained["decision"]["output"] == finding.case["decision"]["output"] == "approve"
    tests = tmp_path / "p.test.yml"
    tests.write_text(json.dumps({"section": [{"name": "s", "tests": [dict(finding.case["test"])]}]}))
    run = run_tests([tests])
    assert (run.failed, run.findings, len(run.results)) == ([], [], 1)


def test_a_command_names_the_version(tmp_path: Path) -> None:
    rule = "name: p\nrule: {match: [{id: r, output: approve, prepare: [{run: [/bin/a]}]}]}\n"
    findings = verified(tmp_path, rule, api_version="2019-08-01")
    assert findings
    assert all(one.explain[-2:] == ("--api-version", "2019-08-01") for one in findings if one.case is not None)


@pytest.mark.parametrize("test", ["event.DurationInSeconds / 60 < 1", "double(event.DurationInSeconds) < 60.0"])
def test_unknown_duration_in_an_opaque_condition_is_noticed(tmp_path: Path, test: str) -> None:
    condition = f"event.EventType == 'Freeze' && {test}"
    text = HEAD + f'    - {{id: a, condition: "{condition}", output: approve}}\n' + REST
    artifact = loaded(tmp_path, text)
    assert [decided(artifact, DurationInSeconds=seconds) for seconds in (-1, 900)] == ["approve", "hold"]
    (unknown,) = [one for one in verified(tmp_path, text) if one.code == "unknown-duration-approved"]
    assert unknown.severity == "error"
    assert "approves a Freeze whose duration is unknown (-1), though one of 60 s and more is held" in unknown.message


def test_approval_only_for_extreme_durations_is_noticed(tmp_path: Path) -> None:
    test = "event.DurationInSeconds * 7 - 3 < 1000000000"
    text = HEAD + f"    - {{id: a, condition: {test}, output: approve}}\n" + REST
    (unknown,) = [one for one in verified(tmp_path, text) if one.code == "unknown-duration-approved"]
    assert (unknown.severity, unknown.certain) == ("error", True)
    text = text.replace(test, f"event.DurationInSeconds >= 0 && {test}")
    assert "unknown-duration-approved" not in {one.code for one in verified(tmp_path, text)}


@pytest.mark.parametrize(
    ("test", "severity", "differing"),
    [
        ("event.NotBefore.getHours() < 5", "warning", "NotBefore"),
        ("now.getDayOfWeek() == 2", "warning", "now"),
        ("event.Description.contains('migration')", "warning", "Description"),
    ],
)
def test_unprepared_approval_by_an_opaque_condition_is_noticed(
    tmp_path: Path, test: str, severity: str, differing: str
) -> None:
    text = HEAD + (
        f'    - {{id: a, condition: "{test}", output: approve}}\n'
        "    - {id: b, output: approve, prepare: [{run: [/bin/a]}], recover: [{run: [/bin/b]}]}\n"
    )
    (unprepared,) = [one for one in verified(tmp_path, text) if one.code == "approved-unprepared"]
    assert unprepared.severity == severity
    assert f"for others that differ in {differing} only" in unprepared.message


@pytest.mark.parametrize(
    "test",
    ["event.DurationInSeconds / 60 < 1", "event.Resources.exists(name, name.startsWith('db'))", "size(events) > 1"],
)
def test_events_of_another_kind_may_be_prepared_for(tmp_path: Path, test: str) -> None:
    text = HEAD + (
        f'    - {{id: a, condition: "{test}", output: approve}}\n'
        "    - {id: b, output: approve, prepare: [{run: [/bin/a]}], recover: [{run: [/bin/b]}]}\n"
    )
    assert "approved-unprepared" not in {one.code for one in verified(tmp_path, text)}


def test_fields_that_differ_are_reported_once(tmp_path: Path) -> None:
    text = HEAD + (
        "    - {id: a, condition: notice < duration('5m'), output: approve}\n"
        "    - {id: b, output: approve, prepare: [{run: [/bin/a]}], recover: [{run: [/bin/b]}]}\n"
    )
    (unprepared,) = [one for one in verified(tmp_path, text) if one.code == "approved-unprepared"]
    assert "differ in notice only" in unprepared.message


def large(output: str) -> str:
    """Return a policy of 83 million classes, which are looked at in slices by what is not understood."""
    seconds = ", ".join(str(10 + 3 * number) for number in range(59))
    minutes = ", ".join(f"duration('{2 * number + 2}m')" for number in range(59))
    return (
        HEAD + "    - id: odd\n      output: hold\n"
        f"      condition: event.DurationInSeconds in [{seconds}] && notice in [{minutes}] && age in [{minutes}]\n"
        f"    - id: ours\n      output: {output}\n"
        "      condition: \"!event.Resources.exists(name, name.startsWith('db'))\"\n" + REST
    )


def test_opaque_condition_may_be_false(tmp_path: Path) -> None:
    text = large("approve")
    assert decided(loaded(tmp_path, text)) == "approve"
    findings = verified(tmp_path, text)
    assert "unsatisfiable-rule" not in codes(findings)
    (violated,) = [one for one in findings if one.code == "invariant-violated"]
    assert violated.certain


def test_what_is_not_understood_hides_no_finding(tmp_path: Path) -> None:
    text = HEAD + (
        '    - {id: a, condition: "event.DurationInSeconds / 2 == 0 || now.getHours() < 5", output: approve}\n'
        "    - id: b\n      condition: event.DurationInSeconds < 120\n      output: approve\n"
        "      prepare: [{run: [/bin/a]}]\n      recover: [{run: [/bin/b]}]\n" + REST
    )
    wanted = {("unknown-duration-approved", "error", "a"), ("approved-unprepared", "warning", "a")}
    assert wanted <= {(one.code, one.severity, one.rule) for one in verified(tmp_path, text)}


def test_a_change_in_a_large_space_is_seen(tmp_path: Path) -> None:
    old, new = loaded(tmp_path, large("hold")), loaded(tmp_path, large("approve"))
    assert (decided(old), decided(new)) == ("hold", "approve")
    assert compare(old, new).verdict == "more-permissive"


def test_unevaluated_events_cover_no_rule(tmp_path: Path) -> None:
    (tmp_path / "p.yml").write_text(
        "name: p\nrule:\n  match:\n"
        "    - {id: brief, condition: event.DurationInSeconds < 9, output: hold}\n    - {id: rest, output: hold}\n"
    )
    tests = tmp_path / "p.test.yml"
    tests.write_text(
        "section:\n  - name: s\n    tests:\n"
        "      - {name: t, input: {event: {EventType: Unheard, DurationInSeconds: 1}}, output: hold}\n"
    )
    (gaps,) = find_gaps(run_tests([tests]).tested)
    assert ("brief", "true") in {(gap.rule, gap.result) for gap in gaps.gaps}


@pytest.mark.parametrize("listed", ["[p.yml, p.yml]", "[p.yml, ./p.yml]", "[p.yml, link.yml]"])
def test_policy_listed_twice_is_tested_once(tmp_path: Path, listed: str) -> None:
    (tmp_path / "p.yml").write_text("name: p\nrule: {match: [{id: r, output: hold}]}\n")
    (tmp_path / "link.yml").symlink_to("p.yml")
    tests = tmp_path / "x.test.yml"
    tests.write_text(
        f"policies: {listed}\nsection:\n  - name: s\n    tests:\n"
        "      - {name: t, input: {event: {EventType: Freeze}}, output: hold}\n"
    )
    assert len(run_tests([tests]).results) == 1


def test_directory_tests_ignore_hidden_files_and_directories(tmp_path: Path) -> None:
    (tmp_path / "p.yml").write_text("name: p\nrule: {match: [{id: r, output: hold}]}\n")
    (tmp_path / ".draft.yml").write_text("name: draft\nrule: {match: [{id: r, output: approve}]}\n")
    (tmp_path / "old.yml").mkdir()
    (tmp_path / "tests.yml").write_text(
        "section:\n  - name: s\n    tests:\n      - {name: t, input: {event: {EventType: Freeze}}, output: hold}\n"
    )
    run = run_tests([tmp_path / "tests.yml"])
    assert [covered.policy for covered in run.coverage] == ["p"]


def test_duplicate_field_is_a_problem() -> None:
    event = (
        '{"EventId": "A", "EventType": "Reboot", "EventType": "Freeze", "Resources": ["x"], "EventStatus": "Scheduled"}'
    )
    (parsed,) = parse_document(f'{{"DocumentIncarnation": 1, "Events": [{event}]}}').events
    assert parsed.problems == ("EventType appears more than once",)
    with pytest.raises(DocumentError, match="Events more than once"):
        parse_document('{"DocumentIncarnation": 1, "Events": [], "Events": []}')


def test_what_has_no_value_is_not_called_false(tmp_path: Path) -> None:
    text = HEAD + '    - {id: share, condition: "60 / event.DurationInSeconds > 5", output: hold}\n' + REST
    (failing,) = [one for one in verified(tmp_path, text) if one.code == "rule-can-fail"]
    assert failing.message.endswith("division by zero")
