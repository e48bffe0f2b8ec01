# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What tests leave out, and the tests that are suggested for it: they pass, and nothing is left out with them."""

from __future__ import annotations

import shutil
import textwrap
from pathlib import Path

import pytest
import yaml
from forewarn.analysis.coverage.coverage import Gaps, find_gaps
from forewarn.analysis.coverage.outcomes import FAILS
from forewarn.analysis.coverage.suggestions import Suggestion, append_suggestions, as_yaml, new_test_file
from forewarn.compiler.testing.policytest import PolicyTestRun, run_tests
from forewarn.compiler.yaml.tree import YamlFile
from forewarn.errors import InputError
from hypothesis import given
from hypothesis import strategies as st

POLICY = """
name: web
params: [{name: limit, type: int, default: 9, min: 0, max: 60}]
rule:
  match:
    - id: under-way
      condition: event.EventStatus == "Started"
      output: hold
    - id: brief
      condition: event.EventType == "Freeze" && event.DurationInSeconds < params.limit
      output: approve
    - id: mine
      condition: affects_me
      output: hold
"""
TESTS = """
section:
  - name: freezes
    tests:
      - name: brief
        input: {event: {EventType: Freeze, DurationInSeconds: 5}}
        output: approve
        rule: brief
"""


def ran(directory: Path, policy: str = POLICY, tests: str = TESTS) -> PolicyTestRun:
    (directory / "web.yml").write_text(textwrap.dedent(policy))
    (directory / "web.test.yml").write_text(textwrap.dedent(tests))
    run = run_tests([directory / "web.test.yml"])
    assert not run.findings, run.findings
    return run


def gaps(run: PolicyTestRun) -> Gaps:
    (found,) = find_gaps(run.tested)
    assert found.trouble is None
    return found


def completed(directory: Path, policy: str = POLICY, tests: str = TESTS) -> PolicyTestRun:
    """Return a run with the suggested tests, which pass and leave nothing out."""
    found = gaps(ran(directory, policy, tests))
    assert found.suggestions
    run = ran(directory, policy, append_suggestions(textwrap.dedent(tests), "web.test.yml", found.suggestions))
    assert [result for result in run.failed if result.section == "suggested"] == []
    after = gaps(run)
    assert (after.gaps, after.suggestions) == ([], [])
    assert after.covered == after.possible == found.possible
    return run


def test_condition_and_explanation_failures_are_separate_outcomes(tmp_path: Path) -> None:
    """Of a Freeze only the explanation can, of a Reboot both: either is a hold by a rule that cannot be evaluated."""
    found = gaps(
        ran(
            tmp_path,
            """
            name: web
            rule:
              match:
                - id: brief
                  condition: event.EventType == "Freeze" || event.DurationInSeconds < 9
                  output: approve
                  explanation: "'until ' + string(event.NotBefore)"
            """,
        )
    )
    assert [one for one in found.impossible if one.result == FAILS and one.event_type in ("Freeze", "Reboot")] == []
    texts = [gap.text for gap in found.gaps]
    assert len(texts) == len(set(texts))
    for kind in ("Freeze", "Reboot"):
        assert f"no test of a {kind}, hold by web/brief, as it cannot be evaluated" in texts


def test_outcomes_that_no_test_covers(tmp_path: Path) -> None:
    found = gaps(ran(tmp_path))
    results = {(gap.rule, gap.result) for gap in found.gaps if gap.rule}
    assert results == {
        ("under-way", "true"),
        ("brief", "false"),
        ("brief", "error"),
        ("mine", "true"),
        ("mine", "false"),
        ("mine", "error"),
    }
    assert found.gaps[0].text == "no test in which an event is held by a rule"
    (under_way,) = [gap for gap in found.gaps if (gap.rule, gap.result) == ("under-way", "true")]
    assert under_way.where == f"{tmp_path}/web.yml:6"
    assert under_way.text == "no test in which under-way applies"
    wholes = {gap.text for gap in found.gaps if gap.rule is None and gap.event_type is None}
    assert wholes == {
        "no test in which an event is held by a rule",
        "no test in which no policy decides",
        "no test in which no rule applies",
        "no test in which the type or status is unknown",
    }
    assert found.covered == 4  # an approval; under-way does not apply, brief does; a Freeze by brief
    ways = {(gap.event_type, gap.way) for gap in found.gaps if gap.event_type}
    assert ("Reboot", "hold by web/mine") in ways
    assert ("Reboot", "abstain") in ways
    assert {gap.test for gap in found.gaps} == {suggestion.name for suggestion in found.suggestions}


def test_suggested_tests_pass_and_leave_nothing_out(tmp_path: Path) -> None:
    run = completed(tmp_path)
    assert len(run.results) > 10


def test_infallible_condition_has_no_error_branch(tmp_path: Path) -> None:
    run = completed(tmp_path)
    never = {rule.rule for covered in run.coverage for rule in covered.rules if not rule.results["error"]}
    assert never == {"under-way"}


@pytest.mark.parametrize("name", ["azure-sample", "postgres-patroni", "observe-only", "spot-worker", "web-tier"])
def test_the_shipped_policies(repository: Path, tmp_path: Path, name: str) -> None:
    for suffix in (".yml", ".test.yml"):
        shutil.copy(repository / "policies" / f"{name}{suffix}", tmp_path / f"web{suffix}")
    policy, tests = (tmp_path / "web.yml").read_text(), (tmp_path / "web.test.yml").read_text()
    completed(tmp_path, policy, tests)


@pytest.mark.parametrize(
    "common",
    [
        "{vm: {name: db_0, tags: {role: web}, zone: '1'}, params: {limit: 3}, age: 1h, notice: 3m}",
        "{event: {EventStatus: Started, EventSource: User, NotBefore: '2026-01-01T00:05:00Z', ResourceType: X}}",
        "{event: {value: {DurationInSeconds: 3, Resources: [a, b]}}, now: '2027-05-05T00:00:00Z'}",
        "{events: [{EventId: A}, {EventId: B}], vm: {name: null}}",
        "{event: {EventId: A, Description: x}, now: {expr: \"timestamp('2026-05-05T00:00:00Z')\"}}",
    ],
)
def test_suggestions_override_common_input(tmp_path: Path, common: str) -> None:
    tests = f"""
    input: {common}
    section:
      - name: s
        tests:
          - name: t
            input: {{events: [{{EventId: Z}}], event: {{EventType: Freeze, EventStatus: Scheduled}}}}
            decisions: [{{event: Z, output: hold}}]
    """
    run = ran(tmp_path, tests=tests)
    found = gaps(run)
    after = ran(tmp_path, tests=append_suggestions(textwrap.dedent(tests), "t", found.suggestions))
    assert [result for result in after.failed if result.section == "suggested"] == []
    assert gaps(after).gaps == []


@pytest.mark.parametrize(
    "condition",
    [
        'notice < duration("5m") && age > duration("2m")',
        'now > timestamp("2027-01-01T00:00:00Z")',
        'vm.tags["a b: c"] == "1e3" || vm.zone == "on"',
        'event.Description == "line\\nbreak, {x}: [y] #z \\u00e9"',
        '"vm_7" in event.Resources && size(event.Resources) > 2',
        'event.EventId == "X"',
    ],
)
def test_whatever_a_condition_reads(tmp_path: Path, condition: str) -> None:
    policy = yaml.safe_dump({"name": "web", "rule": {"match": [{"condition": condition, "output": "approve"}]}})
    completed(tmp_path, policy, TESTS.replace("rule: brief", "reason: whatever"))


def test_policies_that_are_tested_together(tmp_path: Path) -> None:
    (tmp_path / "other.yml").write_text(
        "name: other\nrule:\n  match:\n    - condition: leader\n      output: approve\n"
    )
    completed(tmp_path, tests="policies: [web.yml, other.yml]\n" + TESTS.lstrip().replace("        rule: brief\n", ""))


def test_policy_is_covered_by_any_test_file(tmp_path: Path) -> None:
    ran(tmp_path)
    (tmp_path / "tests.yml").write_text("policies: [web.yml]\n" + TESTS.lstrip().replace("brief", "brief", 1))
    first, second = find_gaps(run_tests([tmp_path / "web.test.yml", tmp_path / "tests.yml"]).tested)
    assert first.gaps
    assert second.gaps == []


def test_missing_approval_test_is_always_reported(tmp_path: Path) -> None:
    """Even where the condition has arithmetic, and names of VMs, that finite classes know nothing of."""
    policy = POLICY.replace('event.EventType == "Freeze"', "event.DurationInSeconds * 3 % 7 == 5 && vm.name == 'Web_1'")
    tests = TESTS.replace("approve", "hold").replace("rule: brief", "rule: mine")
    run = completed(tmp_path, policy, tests)
    assert any(decision.output == "approve" for decision in run.tested[0].decisions)
    found = gaps(ran(tmp_path, policy, tests))
    assert found.gaps[0].text == "no test in which an event is approved"


def test_what_is_proven_impossible_does_not_count(tmp_path: Path) -> None:
    policy = POLICY.replace("affects_me", 'event.EventStatus == "Started" && affects_me')
    found = gaps(ran(tmp_path, policy))
    assert ("mine", "true") not in {(gap.rule, gap.result) for gap in found.gaps}
    assert ("mine", "true") in {(item.rule, item.result) for item in found.impossible}
    assert ("mine", "false") in {(gap.rule, gap.result) for gap in found.gaps}
    assert found.unproven == []


def test_failed_explanation_is_an_outcome(tmp_path: Path) -> None:
    policy = POLICY.replace("output: approve", "output: approve\n      explanation: event.Description")
    found = gaps(ran(tmp_path, policy, TESTS.replace("DurationInSeconds: 5", "DurationInSeconds: 5, Description: x")))
    assert ("brief", "explanation") in {(gap.rule, gap.result) for gap in found.gaps}
    assert ("brief", "true") not in {(gap.rule, gap.result) for gap in found.gaps}
    completed(tmp_path, policy, TESTS.replace("DurationInSeconds: 5", "DurationInSeconds: 5, Description: x"))
    alone = ran(tmp_path, policy, TESTS.replace("output: approve", "output: hold"))
    assert ("brief", "true") in {(gap.rule, gap.result) for gap in gaps(alone).gaps}


def test_an_unproven_outcome_is_neither_counted_nor_concealed(tmp_path: Path) -> None:
    policy = POLICY.replace("affects_me", "size(event.Description) * size(event.EventId) == 3599")
    found = gaps(ran(tmp_path, policy))
    assert ("mine", "true") not in {(gap.rule, gap.result) for gap in found.gaps}
    assert ("mine", "true") not in {(item.rule, item.result) for item in found.impossible}
    ((_what, why), *_others) = [one for one in found.unproven if one[0] == "mine applies"]
    assert "may have any value" in why


@pytest.mark.parametrize("fact", ["r == vm.name", "has(vm.tags.role)"])
def test_unsent_event_shows_no_way_to_decide(tmp_path: Path, fact: str) -> None:
    """A VM that does not know itself shows that a rule can fail, and not how a type of events is decided."""
    policy = POLICY.replace("affects_me", f"event.Resources.map(r, {fact})[0]")
    found = gaps(ran(tmp_path, f"{policy}    - id: rest\n      output: hold\n"))
    failures = [gap.text for gap in found.gaps if "cannot be evaluated" in gap.text and "brief" not in gap.text]
    assert failures == ["no test in which mine cannot be evaluated"]
    assert "Freeze, hold by web/mine, as it cannot be evaluated" in dict(found.unproven)


def test_parameter_takes_every_allowed_value(tmp_path: Path) -> None:
    policy = POLICY.replace('event.EventType == "Freeze"', "params.limit > 50")
    run = completed(tmp_path, policy, TESTS.replace("approve", "hold").replace("rule: brief", "rule: mine"))
    assert any(decision.rule == "brief" for decision in run.tested[0].decisions)


SUGGESTION = Suggestion("a: b", {"event": {"EventType": "Freeze"}}, {"output": "hold"})


def test_the_end_of_a_file_keeps_its_indentation() -> None:
    for lead in ("", "    "):
        text = f"section:\n{lead}- name: s\n{lead}  tests: [{{name: t, output: hold}}]\n# the end\n\n"
        result = append_suggestions(text, "t.test.yml", [SUGGESTION])
        assert result == text.rstrip() + "\n" + as_yaml([SUGGESTION], lead)


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_any_text_is_read_as_it_was(text: str) -> None:
    suggestion = Suggestion("n", {"vm": {"tags": {text: text}}, "notice": text}, {"rule": text, "output": "hold"})
    file = YamlFile.from_bytes("t", ("section:\n" + as_yaml([suggestion])).encode())
    assert file.root is not None, file.report.findings
    ((section,),) = file.root.data().values()
    assert section == {"name": "suggested", "tests": [suggestion.as_dict()]}


@pytest.mark.parametrize(
    "text",
    [
        "section: [{name: s, tests: [{name: t, output: hold}]}]\n",
        "section:\n  - name: s\n    tests: [{name: t, output: hold}]\ninput: {vm: {name: a}}\n",
        "section: []\n",
        "x",
        "",
    ],
)
def test_file_without_trailing_sections_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="cannot be added at its end"):
        append_suggestions(text, "t.test.yml", [SUGGESTION])


def test_a_new_file_stands_alone(tmp_path: Path) -> None:
    run = ran(tmp_path, tests="input: {vm: {name: db_0}, params: {limit: 3}}\n" + TESTS.lstrip())
    (found,) = find_gaps(run.tested, alone=True)
    (tmp_path / "more.test.yml").write_text(new_test_file(["web.yml"], found.suggestions))
    run = run_tests([tmp_path / "more.test.yml"])
    assert (run.findings, run.failed) == ([], [])
    assert len(run.results) == len(found.suggestions)


def test_limit_without_a_group_is_an_outcome(tmp_path: Path) -> None:
    policy = POLICY.replace(
        "output: approve", "output: approve\n      limit: {at_most: 1, group: event.Description}", 1
    )
    described = TESTS.replace("DurationInSeconds: 5", "DurationInSeconds: 5, Description: x")
    found = gaps(ran(tmp_path, policy, described))
    results = {gap.result for gap in found.gaps if gap.rule == "brief"}
    assert "limit" in results
    assert "true" not in results
    assert any(gap.text == "no test in which the limit of brief names no group" for gap in found.gaps)
    completed(tmp_path, policy, described)
