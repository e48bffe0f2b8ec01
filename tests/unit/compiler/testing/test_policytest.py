# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Test files: what they state is compared with the decisions, and what they should have stated fails as well."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from forewarn.compiler.testing.policytest import PolicyTestRun, Result, run_tests
from forewarn.compiler.testing.testfile import read_tests
from forewarn.errors import InputError

POLICY = """\
name: p
params: [{name: limit, type: int, default: 9}]
rule:
  match:
    - id: started
      condition: event.EventStatus == "Started"
      output: hold
    - id: soon
      condition: notice < duration("2m") && age > duration("1m")
      output: hold
    - id: freeze
      condition: event.EventType == "Freeze" && event.DurationInSeconds < params.limit
      output: approve
      explanation: "'brief: ' + string(event.DurationInSeconds)"
    - id: tagged
      condition: event.EventType == "Terminate"
      rule:
        match:
          - {id: old, condition: 'vm.tags["state"] == "old"', output: approve, approver: any}
"""


def run(directory: Path, tests: str, policy: str = POLICY) -> PolicyTestRun:
    (directory / "p.yml").write_text(policy)
    path = directory / "p.test.yml"
    path.write_text("section:\n  - name: s\n    tests:\n" + textwrap.indent(textwrap.dedent(tests), " " * 6))
    return run_tests([path])


def only(directory: Path, tests: str) -> Result:
    outcome = run(directory, tests)
    assert outcome.findings == []
    (result,) = outcome.results
    return result


def wrong_fields(result: Result) -> list[tuple[int, str, str, str]]:
    return [(mismatch.line, mismatch.what, mismatch.expected, mismatch.got) for mismatch in result.mismatches]


def test_all_that_is_stated_is_looked_at(tmp_path: Path) -> None:
    right = """\
        - name: t
          input: {event: {EventType: Freeze, DurationInSeconds: 5}}
          output: approve
          rule: freeze
          policy: p
          reason: "brief: 5"
          approver: leader
          group: hold
          limit: none
          eligibility: approve
          values: {event.DurationInSeconds: 5, event.EventType: Freeze, params.limit: "9"}
        """
    assert only(tmp_path, right).passed
    wrong = """\
        - name: t
          input: {event: {EventType: Freeze, DurationInSeconds: 5}}
          output: hold
          rule: started
          reason: long
          approver: any
          group: independent
          eligibility: not-ours
          values: {event.DurationInSeconds: 6, event.EventSource: Platform}
        """
    assert wrong_fields(only(tmp_path, wrong)) == [
        (6, "output", "hold", "approve"),
        (6, "rule", "started", "freeze"),
        (6, "approver", "any", "leader"),
        (6, "group", "independent", "hold"),
        (6, "reason", "… long …", "brief: 5"),
        (6, "event.DurationInSeconds", "6", "5"),
        (6, "event.EventSource", "Platform", "not read"),
        (6, "eligibility", "not-ours", "approve"),
    ]


LIMITED = """\
name: p
rule:
  match:
    - output: approve
      group: ready
      limit: {at_most: 25%, group: "vm.tags['role']"}
"""


@pytest.mark.parametrize(
    ("stated", "got"),
    [
        ("25%", None),
        ("{at_most: 25%}", None),
        ("{at_most: 25%, group: web}", None),
        ("[25%]", None),
        ("[{at_most: 25%, group: web}]", None),
        ("none", ("none", "25% of web")),
        ("25", ("25", "25% of web")),
        ("24%", ("24%", "25% of web")),
        ("{at_most: 25%, group: db}", ("25% of db", "25% of web")),
        ("[25%, 1]", ("25%, 1", "25% of web")),
    ],
)
def test_a_test_states_the_limit(tmp_path: Path, stated: str, got: tuple[str, str] | None) -> None:
    test = (
        "- {name: t, input: {event: {EventType: Reboot}, vm: {tags: {role: web}}}, output: approve, group: ready, "
        f"limit: {stated}}}\n"
    )
    (result,) = run(tmp_path, test, LIMITED).results
    assert wrong_fields(result) == ([] if got is None else [(4, "limit", *got)])


@pytest.mark.parametrize(
    ("stated", "code", "says"),
    [
        ("0", "out-of-range", "between 1 and 100000"),
        ("half", "malformed", "none, a number such as 1"),
        ("{slots: 1}", "unknown-key", "did you mean 'at_most'?"),
        ("[]", "too-short", "'limit' is empty"),
        ('["1"]', "malformed", "write 1"),
    ],
)
def test_a_limit_that_no_decision_can_have(tmp_path: Path, stated: str, code: str, says: str) -> None:
    test = f"- {{name: t, input: {{event: {{EventType: Reboot}}}}, output: approve, limit: {stated}}}\n"
    (finding,) = run(tmp_path, test, LIMITED).findings
    assert finding.code == code
    assert says in f"{finding.message} {finding.suggestion}"


def test_limit_without_a_group_is_a_result(tmp_path: Path) -> None:
    test = "- {name: t, input: {event: {EventType: Reboot}}, output: hold, rule: match-1, limit: none}\n"
    outcome = run(tmp_path, test, LIMITED)
    assert not outcome.failed
    (rule,) = outcome.coverage[0].rules
    assert {result for result, count in rule.results.items() if count} == {"limit"}


@pytest.mark.parametrize(
    ("written", "passes"),
    [
        ("abstain", True),
        ("hold", True),
        ("{value: hold}", True),
        ('{expr: "optional.none()"}', True),
        ("approve", False),
        ("{value: approve}", False),
    ],
)
def test_outputs_may_use_cel_policy_syntax(tmp_path: Path, written: str, passes: bool) -> None:
    test = f"- {{name: t, input: {{event: {{EventType: Reboot}}}}, output: {written}}}\n"
    assert only(tmp_path, test).passed is passes


def test_a_hold_by_a_rule_is_no_abstention(tmp_path: Path) -> None:
    test = "- {name: t, input: {event: {EventType: Reboot, EventStatus: Started}}, output: abstain}\n"
    assert wrong_fields(only(tmp_path, test)) == [(4, "output", "abstain", "hold")]
    doubt = "- {name: t, input: {event: {EventType: Reboot, NotBefore: soon}}, output: abstain}\n"
    assert wrong_fields(only(tmp_path, doubt)) == [(4, "output", "abstain", "hold")]


def test_a_decision_that_nobody_stated_fails(tmp_path: Path) -> None:
    test = """\
        - name: t
          input:
            event: {EventType: Freeze}
            events:
              - {EventId: a, DurationInSeconds: 5}
              - {EventId: b, DurationInSeconds: 50}
          decisions:
            - {event: A, output: approve}
        """
    (mismatch,) = only(tmp_path, test).mismatches
    assert (mismatch.line, mismatch.event, mismatch.got) == (4, "b", "hold")
    shorthand = """\
        - name: t
          input:
            events: [{EventId: a, EventType: Reboot}, {EventId: b, EventType: Reboot}]
          output: hold
        """
    assert [mismatch.event for mismatch in only(tmp_path, shorthand).mismatches] == ["b"]


def test_time_passes_between_steps(tmp_path: Path) -> None:
    """NotBefore and the time of the first sight stand still; notice shrinks, age grows."""
    test = """\
        - name: t
          input:
            event: {EventType: Freeze, DurationInSeconds: 5, Resources: [vm_9, VM_0]}
            notice: 5m
          steps:
            - {at: 0s, output: approve, eligibility: not-the-leader}
            - {at: 31s, output: approve, eligibility: approve}
            - {at: 3m, output: approve, rule: freeze}
            - {at: 3m1s, output: hold, rule: soon}
            - {at: 4m, input: {event: {EventStatus: Started}}, output: hold, rule: started}
            - {at: 5m, output: hold, rule: started}
        """
    assert only(tmp_path, test).mismatches == ()
    (mismatch,) = only(tmp_path, test.replace("3m1s, output: hold", "3m1s, output: approve")).mismatches[:1]
    assert (mismatch.line, mismatch.at) == (12, "3m1s")


def test_inputs_are_laid_over_those_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "p.yml").write_text(POLICY)
    path = tmp_path / "p.test.yml"
    path.write_text(
        textwrap.dedent(
            """\
            input:
              event: {EventType: Terminate, DurationInSeconds: 50}
              vm: {name: a, tags: {state: old}}
              params: {limit: 60}
              age: {expr: "duration('2m')"}
              now: {expr: "timestamp('2026-05-01T00:00:00Z')"}
            section:
              - name: s
                tests:
                  - {name: tags, output: approve, rule: tagged.old, eligibility: approve}
                  - {name: params, input: {event: {value: {EventType: Freeze}}}, output: approve, rule: freeze}
                  - {name: own params, input: {event: {EventType: Freeze}, params: {limit: 5}}, output: abstain}
                  - {name: age, input: {notice: 1m}, output: hold, rule: soon}
                  - {name: removed, input: {event: {EventType: Freeze, DurationInSeconds: null}}, output: hold}
                  - {name: unknown name, input: {vm: {name: null}}, output: approve, eligibility: not-ours}
                  - {name: given time, input: {event: {NotBefore: "2026-05-01T00:01:00Z"}}, output: hold, rule: soon}
            """
        )
    )
    outcome = run_tests([path])
    assert outcome.findings == []
    assert [(result.name, result.mismatches) for result in outcome.failed] == []


def test_coverage_counts_what_was_tried_and_what_decided(tmp_path: Path) -> None:
    outcome = run(
        tmp_path,
        """\
        - {name: a, input: {event: {EventType: Freeze, DurationInSeconds: 5}}, output: approve}
        - {name: b, input: {event: {EventType: Freeze}}, output: hold}
        - {name: c, input: {event: {EventType: Reboot, EventStatus: Started}}, output: hold}
        """,
    )
    (coverage,) = outcome.coverage
    assert [(rule.rule, rule.reached, rule.decided) for rule in coverage.rules] == [
        ("started", 3, 1),
        ("soon", 2, 0),
        ("freeze", 2, 1),  # an error is not a decision of the rule
        ("tagged", 0, 0),
        ("tagged.old", 0, 0),
    ]
    assert [rule.rule for rule in coverage.missing] == ["soon", "tagged.old"]


@pytest.mark.parametrize(
    ("test", "code", "says"),
    [
        ("- {name: t, output: hold}", "test-input", "has no event"),
        ("- {name: t, input: {event: {EvenType: Freeze}}, output: hold}", "unknown-key", "EventType"),
        ("- {name: t, input: {event: {EventType: Freeze}}}", "missing-key", "'output' or 'decisions' or 'steps'"),
        ("- {name: t, input: {event: {EventType: Freeze}}, output: aprove}", "wrong-value", "approve"),
        (
            "- {name: t, input: {event: {EventType: Freeze}, now: today}, output: hold}",
            "test-input",
            "not a valid time",
        ),
        (
            "- {name: t, input: {event: {EventType: Freeze}, now: 9999-12-31T00:00:00Z}, output: hold}",
            "test-input",
            "9000",
        ),
        (
            "- {name: t, input: {event: {EventType: Freeze}, age: {expr: duration(string(1))}}, output: hold}",
            "test-input",
            "no value",
        ),
        (
            "- {name: t, input: {event: {EventType: Freeze}, notice: soon}, output: hold}",
            "test-input",
            "not a valid duration",
        ),
        ("- {name: t, input: {event: {EventType: Freeze}, age: -5s}, output: hold}", "test-input", "between 0s"),
        ("- {name: t, input: {event: {EventType: Freeze}, age: {expr: evnt}}, output: hold}", "test-input", "evnt"),
        ("- {name: t, input: {event: {EventType: Freeze}, params: {limits: 1}}, output: hold}", "test-input", "limits"),
        ("- {name: t, input: {event: {EventType: Freeze}, params: {limit: x}}, output: hold}", "test-input", "int"),
        ("- {name: t, input: {event: {EventId: null}}, output: hold}", "test-input", "EventId"),
        ("- {name: t, input: {event: {EventType: Freeze}}, output: hold, rule: freezes}", "test-rule", "freeze"),
        ("- {name: t, input: {event: {EventType: Freeze}}, output: hold, policy: q}", "test-rule", "p"),
        (
            "- {name: t, input: {event: {EventType: Freeze}}, decisions: [{event: x, output: hold}]}",
            "test-decision",
            "no event x",
        ),
        (
            "- {name: t, input: {event: {EventType: Freeze}}, steps: [{at: 5m, output: hold}, {at: 1m, output: hold}]}",
            "test-steps",
            "out of order",
        ),
        (
            "- {name: t, input: {event: {EventType: Freeze}}, steps: [{at: 5, output: hold}]}",
            "wrong-type",
            "'at' must be a text",
        ),
    ],
)
def test_a_mistake_in_a_test_has_a_place(tmp_path: Path, test: str, code: str, says: str) -> None:
    findings = run(tmp_path, test + "\n").findings
    assert [finding.code for finding in findings] == [code]
    assert findings[0].line == 4
    assert says in f"{findings[0].message} {findings[0].suggestion}"


def test_two_tests_of_one_name_in_a_section(tmp_path: Path) -> None:
    test = "- {name: t, input: {event: {EventType: Freeze}}, output: hold}\n"
    assert [(f.code, f.line) for f in run(tmp_path, test * 2).findings] == [("duplicate-name", 5)]


def test_a_broken_policy_is_reported_and_nothing_runs(tmp_path: Path) -> None:
    outcome = run(
        tmp_path, "- {name: t, input: {event: {EventType: Freeze}}, output: hold}", POLICY.replace("age", "aeg")
    )
    assert [(Path(f.path).name, f.code) for f in outcome.findings] == [("p.yml", "undeclared-name")]
    assert outcome.results == []


class TestWhichPolicies:
    TESTS = "section: [{name: s, tests: [{name: t, input: {event: {EventType: Reboot}}, output: hold}]}]\n"

    def policies(self, path: Path, text: str = TESTS) -> list[str]:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        tests = read_tests(path)
        return [policy.name for policy in tests.policies] + [finding.code for finding in tests.file.report.findings]

    def test_by_name(self, tmp_path: Path) -> None:
        for name in ("a.yml", "b.yaml", "c.txt"):
            (tmp_path / name).write_text(POLICY)
        assert self.policies(tmp_path / "a.test.yml") == ["a.yml"]
        assert self.policies(tmp_path / "b.test.yml") == ["b.yaml"]
        assert self.policies(tmp_path / "tests.yml") == ["a.yml", "b.yaml"]
        assert self.policies(tmp_path / "tests" / "a.test.yml") == ["a.yml"]
        assert self.policies(tmp_path / "tests" / "a.yml") == ["a.yml"]
        assert self.policies(tmp_path / "none.test.yml") == ["test-policy"]

    def test_by_list(self, tmp_path: Path) -> None:
        for name in ("a.yml", "b.yml"):
            (tmp_path / name).write_text(POLICY)
        assert self.policies(tmp_path / "x.test.yml", "policies: [b.yml, a.yml]\n" + self.TESTS) == ["b.yml", "a.yml"]
        assert self.policies(tmp_path / "x.test.yml", "policies: [c.yml]\n" + self.TESTS)[-1] == "test-policy"

    def test_several_together_are_decided_together(self, tmp_path: Path) -> None:
        (tmp_path / "p.yml").write_text(POLICY)
        (tmp_path / "q.yml").write_text("name: q\nrule: {match: [{id: never, output: hold}]}\n")
        (tmp_path / "tests.yml").write_text(
            "section: [{name: s, tests: [{name: t, output: hold, policy: q, rule: never, "
            "input: {event: {EventType: Freeze, DurationInSeconds: 1}}}]}]\n"
        )
        outcome = run_tests([tmp_path / "tests.yml"])
        assert (outcome.findings, outcome.failed) == ([], [])
        assert [coverage.policy for coverage in outcome.coverage] == ["p", "q"]

    def test_api_version(self, tmp_path: Path) -> None:
        (tmp_path / "a.yml").write_text(POLICY)
        old = run_tests([self.write(tmp_path, "api_version: 2019-08-01\n")])
        assert {finding.code for finding in old.findings} == {"field-not-in-api-version"}
        unknown = read_tests(self.write(tmp_path, "api_version: 2018\n"))
        assert [finding.code for finding in unknown.file.report.findings] == ["wrong-type"]
        unknown = read_tests(self.write(tmp_path, "api_version: '2018'\n"))
        assert [finding.code for finding in unknown.file.report.findings] == ["test-input"]

    def write(self, directory: Path, head: str) -> Path:
        path = directory / "a.test.yml"
        path.write_text(head + self.TESTS)
        return path

    def test_a_missing_file_is_bad_usage(self, tmp_path: Path) -> None:
        with pytest.raises(InputError):
            run_tests([tmp_path / "none.test.yml"])
