# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn policy test``: runs the tests beside the policies, and reports what they do not cover."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...atomic_file import replace_file
from ...compiler.paths import find_policies, find_tests
from ...compiler.testing.policytest import Coverage, Mismatch, PolicyTestRun, Result, run_tests, run_without_tests
from ...errors import InputError
from ..output.console import Console, attributes, write_json
from .common import plural, show_findings
from .output.junit import JUnitCase, JUnitOutcome, JUnitSuite, junit_xml

if TYPE_CHECKING:
    from .test_coverage import CoverageGaps


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths", nargs="+", type=Path, metavar="PATH", help="test files, policies with tests beside them, directories"
    )
    parser.add_argument(
        "--coverage", action="store_true", help="report what policies can do, for all that is proven, and no test has"
    )
    parser.add_argument(
        "--suggest",
        nargs="?",
        const="-",
        metavar="FILE",
        help="write a test for each of these; FILE: add them to this test file, or create it",
    )
    parser.add_argument(
        "--require-coverage",
        action="store_true",
        help="fail if a rule decides in no test; with --coverage, if anything is left out",
    )
    parser.add_argument("--junit", type=Path, metavar="FILE", help="write the results as JUnit XML as well")
    parser.add_argument("-v", "--verbose", action="store_true", help="also name the tests that pass")
    parser.add_argument("--json", action="store_true", help="write one JSON object")


def run(args: argparse.Namespace) -> int:
    """Run the tests; return 1 if one fails or a file has mistakes."""
    outcome = _run(args)
    if args.junit:
        _write_junit(outcome, args.junit)
    gaps = None
    if args.coverage or args.suggest is not None:
        from .test_coverage import find_test_gaps  # here: a plain run of tests does not import the analysis

        gaps = find_test_gaps(outcome, args.suggest)
    if args.json:
        write_json("policy-test", _as_json(outcome, gaps))
    elif gaps is not None and args.suggest == "-":
        gaps.write_suggestions()
    else:
        console = Console(sys.stdout)
        _show(outcome, console, args.verbose)
        if gaps is not None:
            gaps.show(console, tip=args.suggest is None)
    if gaps is not None and args.suggest not in (None, "-"):
        gaps.add_suggestions(Path(args.suggest), outcome)
    uncovered = any(covered.missing for covered in outcome.coverage)
    uncovered |= args.coverage and gaps is not None and not gaps.complete
    return 1 if outcome.failed or outcome.findings or (args.require_coverage and uncovered) else 0


def _run(args: argparse.Namespace) -> PolicyTestRun:
    try:
        return run_tests(find_tests(args.paths))
    except InputError:
        if args.suggest is None:
            raise
        policies = [policy.path for policy in find_policies(args.paths)]  # without tests so far
        beside = policies[0].with_suffix(".test.yml") if args.suggest == "-" else Path(args.suggest)
        if beside.exists():
            raise
    return run_without_tests(policies, beside)


def _show(outcome: PolicyTestRun, console: Console, verbose: bool) -> None:
    if outcome.findings:
        show_findings(outcome.findings, console)
        console.line()
    for result in outcome.results:
        if not result.passed:
            _show_failure(result, console)
        elif verbose:
            console.line(f"{console.style('ok', 'green')}    {console.style(_title(result))}")
    if outcome.coverage:
        rows = [_coverage_row(covered) for covered in outcome.coverage]
        console.line()
        console.table(("POLICY", "RULES", "DECIDED", "NEVER DECIDED"), rows)
        console.line()
    failed, total = len(outcome.failed), len(outcome.results)
    if outcome.findings and not total:
        console.line("no test was run")
        return
    summary = f"{plural(total, 'test')} in {plural(len(outcome.files), 'file')}, "
    console.line(summary + (console.style(f"{failed} failed", "bold", "red") if failed else "none failed"))


def _title(result: Result) -> str:
    return f"{result.path}:{result.line}  {result.section} / {result.name}"


def _show_failure(result: Result, console: Console) -> None:
    console.line(f"{console.style('FAIL', 'bold', 'red')}  {console.style(_title(result), 'bold')}")
    for mismatch in result.mismatches:
        for line in _mismatch_lines(result, mismatch):
            console.line("      " + console.style(line))
    console.line()


def _mismatch_lines(result: Result, mismatch: Mismatch) -> Iterator[str]:
    at = f" at {mismatch.at}" if mismatch.at else ""
    event = f" of event {mismatch.event}" if mismatch.event else ""
    yield f"{result.path}:{mismatch.line}: {mismatch.what}{event}{at}"
    yield f"  expected  {mismatch.expected}"
    yield f"  got       {mismatch.got}"
    if mismatch.why:
        yield f"  because   {mismatch.why}"


def _coverage_row(covered: Coverage) -> tuple[str, str, str, str]:
    rules = [rule for rule in covered.rules if rule.decides]
    decided = sum(1 for rule in rules if rule.decided)
    never = ", ".join(
        f"{rule.rule} ({'tried, never true' if rule.reached else 'never tried'})" for rule in covered.missing
    )
    return covered.policy, str(len(rules)), f"{decided} ({100 * decided // max(1, len(rules))} %)", never or "-"


def _as_json(outcome: PolicyTestRun, gaps: CoverageGaps | None) -> dict[str, Any]:
    return {
        "tests": [
            {
                **attributes(result, "path line section name passed"),
                "seconds": round(result.seconds, 6),
                "mismatches": [vars(mismatch) for mismatch in result.mismatches],
            }
            for result in outcome.results
        ],
        "coverage": [
            {
                "policy": covered.policy,
                "path": covered.path,
                "rules": [
                    attributes(rule, "rule where reached decided results") for rule in covered.rules if rule.decides
                ],
            }
            for covered in outcome.coverage
        ],
        "findings": [finding.as_dict() for finding in outcome.findings],
        **({} if gaps is None else gaps.as_json()),
    }


def _write_junit(outcome: PolicyTestRun, path: Path) -> None:
    suites = [
        JUnitSuite(file, [_junit_case(result) for result in outcome.results if result.path == file])
        for file in outcome.files
    ]
    mistakes = [(one, JUnitOutcome("error", f"{one.code}: {one.message}", one.code)) for one in outcome.findings]
    if mistakes:
        cases = [JUnitCase("files", one.where, one.path, outcomes=[mistake]) for one, mistake in mistakes]
        suites.append(JUnitSuite("files", cases))
    replace_file(path, junit_xml(suites).encode("utf-8"))


def _junit_case(result: Result) -> JUnitCase:
    failures = [
        JUnitOutcome(
            "failure",
            f"{mismatch.what}: expected {mismatch.expected}, got {mismatch.got}",
            mismatch.what,
            "\n".join(_mismatch_lines(result, mismatch)),
        )
        for mismatch in result.mismatches
    ]
    classname = f"{Path(result.path).stem}.{result.section}"
    return JUnitCase(classname, result.name, result.path, result.line, result.seconds, failures)
