# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the tests of policies: compares decisions with the expected ones, and records which rules they cover."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from ...errors import InputError
from ...events import LATEST_API_VERSION, Event
from ...policy.approval import eligibility
from ...policy.artifact import Artifact, load
from ...policy.decision import APPROVE, Decision, Facts, Limit
from ...policy.engine import PolicySet, PolicyTrace, RuleTrace
from ...policy.forms import every_match
from ..findings import Finding, Report, SourceText, blocks, sort_findings
from ..policies import compile_policies
from ..yaml.tree import YamlFile
from .second_opinion import CODE, HINT, EngineDifference, SecondOpinion
from .testfile import ABSTAIN, Expectation, ExpectedLimit, PolicyTest, Step, TestFile, read_tests

# What a rule that is tried can do: its condition holds, does not hold, or has no value; or its explanation has none, or
# the group of its limit.
RESULTS = ("true", "false", "error", "explanation", "limit")


@dataclass(frozen=True)
class Mismatch:
    """A decision that differs from the expected one, which is at ``line``; ``at`` is the time of its step.

    ``event`` is the EventId, empty where the document has one event.
    """

    line: int
    event: str
    what: str
    expected: str
    got: str
    why: str = ""
    at: str | None = None


@dataclass(frozen=True)
class Result:
    """The outcome of one test."""

    path: str
    section: str
    name: str
    line: int
    mismatches: tuple[Mismatch, ...]
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether every decision was as expected."""
        return not self.mismatches


@dataclass
class Rule:
    """A rule of a policy, with the numbers of decisions in which it was tried and in which it decided.

    ``results`` counts its results (RESULTS).
    """

    rule: str
    where: str
    reached: int = 0
    decided: int = 0
    decides: bool = True  # False for a match with a nested rule, which only leads on
    results: dict[str, int] = field(default_factory=lambda: dict.fromkeys(RESULTS, 0))


@dataclass
class Coverage:
    """The rules of one policy, in order."""

    policy: str
    path: str
    rules: list[Rule]

    @property
    def missing(self) -> list[Rule]:
        """The rules that decided in no test."""
        return [rule for rule in self.rules if rule.decides and not rule.decided]


@dataclass(frozen=True)
class TestFileRun:
    """A test file that was run: its compiled policies, their coverage, and each stated decision."""

    tests: TestFile
    artifact: Artifact
    coverage: tuple[Coverage, ...]
    imported: Mapping[str, SourceText]  # libraries, by their names in the artifact
    decisions: list[Decision] = field(default_factory=list)


@dataclass
class PolicyTestRun:
    """The result of a test run. ``findings`` are mistakes in policies and test files, not failed tests."""

    results: list[Result] = field(default_factory=list)
    coverage: list[Coverage] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    tested: list[TestFileRun] = field(default_factory=list)

    @property
    def failed(self) -> list[Result]:
        """The tests that failed."""
        return [result for result in self.results if not result.passed]


def run_tests(paths: Sequence[Path]) -> PolicyTestRun:
    """Run test files. Raises InputError if a file does not exist; other mistakes are findings of the run."""
    run = PolicyTestRun()
    coverage: dict[Path, Coverage] = {}
    findings: list[Finding] = []
    for path in paths:
        tests = read_tests(path)
        run.files.append(str(path))
        compiled = _compile(tests, findings)
        if compiled is not None:
            run.tested.append(_file_run(tests, *compiled, coverage))
            runner = _TestFileRunner(run.tested[-1])
            run.results.extend(runner.run())
            findings.extend(runner.differences)
        findings.extend(tests.file.report.findings)
    run.findings = sort_findings(dict.fromkeys(findings))
    run.coverage = list(coverage.values())
    return run


def run_without_tests(policies: Sequence[Path], path: Path) -> PolicyTestRun:
    """Return a run without tests, as if ``path`` were an empty test file of policies that have none."""
    run = PolicyTestRun()
    tests = TestFile(YamlFile.from_bytes(str(path), b"section: []\n"), tuple(policies), LATEST_API_VERSION, ())
    compiled = _compile(tests, run.findings)
    if compiled is not None:
        run.tested.append(_file_run(tests, *compiled, {}))
        run.coverage.extend(run.tested[0].coverage)
    return run


def _compile(tests: TestFile, findings: list[Finding]) -> tuple[Artifact, Mapping[str, SourceText]] | None:
    """Return the tested policies compiled, and what they import. Returns None if they or the tests have mistakes, so
    that nothing can run.
    """
    if not tests.policies:
        return None
    compilation = compile_policies(tests.policies, tests.api_version)
    findings.extend(finding for finding in compilation.findings if blocks(finding))
    if compilation.artifact is None or tests.file.report.findings:
        return None
    return load(compilation.artifact), compilation.imported


def _file_run(
    tests: TestFile, artifact: Artifact, imported: Mapping[str, SourceText], known: dict[Path, Coverage]
) -> TestFileRun:
    """Return a test file with the coverage of its policies; files that test the same policy share its coverage."""
    pairs = zip(tests.policies, artifact.data["policies"], strict=True)
    return TestFileRun(tests, artifact, tuple(_coverage(known, path, policy) for path, policy in pairs), imported)


def _coverage(known: dict[Path, Coverage], path: Path, policy: Mapping[str, Any]) -> Coverage:
    key = path.resolve()
    if key not in known:
        rules = [
            Rule(rule, f"{path}:{match['line']}", decides="output" in match)
            for rule, match in every_match(policy["rule"])
        ]
        known[key] = Coverage(policy["name"], str(path), rules)
    return known[key]


class _TestFileRunner:
    """Runs the tests of one file."""

    def __init__(self, tested: TestFileRun) -> None:
        self.tests = tested.tests
        self.artifact = tested.artifact
        self.imported = tested.imported
        self.coverage = {covered.policy: covered for covered in tested.coverage}
        self.decisions = tested.decisions
        self.policy_sets: dict[str, PolicySet] = {}
        self.opinion = SecondOpinion(tested.artifact)
        self.differences: list[Finding] = []

    def run(self) -> Iterator[Result]:
        path = self.tests.file.source.path
        for case in self.tests.cases:
            began = time.perf_counter()
            try:
                policies = self._policies(case.params)
            except InputError as error:
                self._report("test-input", error.message, case.line, error.hint)
                continue
            self._check_rules(case)
            mismatches = tuple(self._mismatches(case, policies))
            yield Result(path, case.section, case.name, case.line, mismatches, time.perf_counter() - began)

    def _policies(self, params: Mapping[str, Any]) -> PolicySet:
        key = json.dumps(params, sort_keys=True)
        if key not in self.policy_sets:
            self.policy_sets[key] = PolicySet(self.artifact, params)
        return self.policy_sets[key]

    def _report(self, code: str, message: str, line: int, hint: str) -> None:
        source = self.tests.file.source
        text = source.line(line)
        start = source.start_of(line) + len(text) - len(text.lstrip(" -"))
        self.tests.file.report.add(code, message, start, start + 1, hint)

    def _check_rules(self, case: PolicyTest) -> None:
        """Report rules and policies in a test that do not exist: the test could never pass."""
        rules = [rule.rule for covered in self.coverage.values() for rule in covered.rules]
        for expected in (expected for step in case.steps for expected in step.expectations):
            for what, name, known in (
                ("policy", expected.policy, sorted(self.coverage)),
                ("rule", expected.rule, rules),
            ):
                if name is not None and name not in known:
                    message = f"the tested policies have no {what} {name}"
                    self._report("test-rule", message, expected.line, f"there is {', '.join(known)}")

    def _mismatches(self, case: PolicyTest, policies: PolicySet) -> Iterator[Mismatch]:
        approvable_since: dict[str, datetime] = {}
        for step in case.steps:
            first_seen = {event.key: case.first_seen for event in step.document.events}
            facts = Facts(step.now, step.vm, first_seen)
            decisions = policies.decide(step.document, facts)
            self._count_rules(policies, decisions, case, step, facts)
            asserted: set[str] = set()
            for expected in step.expectations:
                for decision in decisions:
                    key = decision.event.key
                    if expected.event is not None and expected.event.lower() != key:
                        continue
                    if expected.event is None and decision is not decisions[0]:
                        continue
                    asserted.add(key)
                    self.decisions.append(decision)
                    if decision.output == APPROVE:
                        approvable_since.setdefault(key, step.now)
                    else:
                        approvable_since.pop(key, None)
                    waited = (step.now - approvable_since.get(key, step.now)).total_seconds()
                    yield from _compare(case, step, expected, decision, waited)
            for decision in decisions:
                if decision.event.key not in asserted:
                    event, got = decision.event.event_id, decision.output
                    why = "state a decision for every event of the document, in 'decisions'"
                    yield Mismatch(case.line, event, "output", "(nothing stated)", got, why, _step_time(case, step))

    def _count_rules(
        self, policies: PolicySet, decisions: Sequence[Decision], case: PolicyTest, step: Step, facts: Facts
    ) -> None:
        for decision in decisions:
            if not decision.verdicts:  # an event in doubt: no rule was evaluated
                continue
            for trace in policies.explain(decision.event, step.document, facts):
                rules = {rule.rule: rule for rule in self.coverage[trace.policy].rules}
                reached = [tried for tried in trace.rules if tried.result != "not reached"]
                for tried in reached:
                    rules[tried.rule].reached += 1
                    rules[tried.rule].results[result_of(trace, tried)] += 1
                if trace.verdict.rule is not None and trace.verdict.error is None:
                    rules[trace.verdict.rule].decided += 1
                names = [tried.rule for tried in reached]
                about = (decision.event, step.document, facts, case.params)
                for difference in self.opinion.differences(trace.policy, names, *about):
                    self._report_difference(difference, trace.policy, case, decision.event)

    def _report_difference(self, difference: EngineDifference, policy: str, case: PolicyTest, event: Event) -> None:
        """Report a difference between the engines at its place in a file, unless the policy's file suppresses it."""
        files = {data["name"]: (path, data) for path, data in zip(self.tests.policies, self.artifact.data["policies"])}
        path, data = files[policy]
        if any(one["code"] == CODE and one.get("rule") in (None, difference.rule) for one in data.get("suppress", ())):
            return
        expression = difference.expression
        report = Report(self.imported[expression["file"]]) if "file" in expression else YamlFile.read(path).report
        start = report.source.start_of(expression["line"]) + expression["column"] - 1
        test = f"{self.tests.file.source.path}:{case.line}"
        message = f"{difference.message}; event {json.dumps(event.as_dict())} of the test at {test}"
        report.add(CODE, message, start, start + len(expression["source"]), HINT)
        self.differences += report.findings


def result_of(trace: PolicyTrace, tried: RuleTrace) -> str:
    """Return the result of a rule in an evaluation, one of RESULTS or ``not reached``."""
    decided = tried.result == "true" and trace.verdict.rule == tried.rule
    return trace.verdict.failed if decided and trace.verdict.failed is not None else tried.result


def _compare(
    case: PolicyTest, step: Step, expected: Expectation, decision: Decision, waited: float
) -> Iterator[Mismatch]:
    def differs(what: str, wanted: str, got: str, why: str = "") -> Mismatch:
        event = decision.event.event_id if expected.event is not None else ""
        return Mismatch(expected.line, event, what, wanted, got, why, _step_time(case, step))

    output = decision.output
    if expected.output == ABSTAIN and decision.policy is None and decision.verdicts:
        output = ABSTAIN
    if output != expected.output:
        yield differs("output", expected.output, output, _reason(decision))
    for what, wanted, got in (
        ("rule", expected.rule, decision.rule),
        ("policy", expected.policy, decision.policy),
        ("approver", expected.approver, decision.approver),
        ("group", expected.group, decision.group),
    ):
        if wanted is not None and wanted != got:
            yield differs(what, wanted, got or "none", _reason(decision))
    if expected.limits is not None:
        stated = ", ".join(limit.text for limit in expected.limits) or "none"
        got = ", ".join(limit.text for limit in decision.limits) or "none"
        if not _has_limits(expected.limits, decision.limits):
            yield differs("limit", stated, got, _reason(decision))
    if expected.reason is not None and expected.reason not in decision.reason:
        yield differs("reason", f"… {expected.reason} …", decision.reason)
    read = {value.expression: value.value for value in decision.values}
    for expression, wanted in expected.values.items():
        got = read.get(expression, "not read")
        if got not in (wanted, json.dumps(wanted, ensure_ascii=False)):
            yield differs(expression, wanted, got, _reason(decision))
    if expected.eligibility is not None:
        found = eligibility(decision, step.vm.name, step.now, waited)
        if found.code != expected.eligibility:
            yield differs("eligibility", expected.eligibility, found.code, found.reason)


def _has_limits(expected: Sequence[ExpectedLimit], found: Sequence[Limit]) -> bool:
    """Return whether a decision has exactly the limits that a test states, in the same order."""
    return len(expected) == len(found) and all(
        one.most == limit._replace(group=None).text and one.group in (None, limit.group)
        for one, limit in zip(expected, found, strict=True)
    )


def _reason(decision: Decision) -> str:
    rule = f"{decision.policy}/{decision.rule}: " if decision.rule else ""
    return rule + decision.reason


def _step_time(case: PolicyTest, step: Step) -> str | None:
    return step.at if len(case.steps) > 1 else None
