# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn policy verify``: proves what policies do with every possible event, and reports what is wrong with it."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...analysis.invariants import read_invariants
from ...analysis.report.page import verification_page
from ...analysis.verify.finding import CODES, ProofFinding
from ...analysis.verify.verify import Verification, verify
from ...compiler.policies import Compilation, PolicyError, compile_policies
from ...policy.artifact import load
from ...policy.params import from_options
from ..output.console import Console
from .common import add_html, add_param, add_policy_arguments, explain_command, plural, show_assumptions, write_html
from .output.formats import DOCUMENTATION, FindingsReport, ReportedFinding, add_format, plain, write_report
from .run_analysis import analysed

_MOST_NAMED = 12  # rules
# What an evaluation error names (policy/evaluation_error.py) -> which events are held for it.
_CAUSES = (
    (re.compile(r".*: there is no (\w+)", re.DOTALL), "an event without {} is held"),
    (re.compile(r".*: (\S+) is not known", re.DOTALL), "an event is held where {} is not known"),
)
_COLOURS = {"error": "red", "warning": "yellow", "note": "cyan"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_policy_arguments(parser)
    parser.add_argument(
        "--invariants", type=Path, metavar="FILE", help="a file of further claims to prove: a list of name, expression"
    )
    add_param(parser, "a parameter's value (default: every value that its limits allow, or its default)")
    parser.add_argument(
        "--verbose", action="store_true", help="show each note by itself, and suppressed ones too (default: by cause)"
    )
    parser.add_argument("--strict", action="store_true", help="also fail on warnings")
    add_format(parser)
    add_html(parser)


def run(args: argparse.Namespace) -> int:
    """Verify the policies together; return 1 for an error, with --strict also for a warning."""
    compilation = compile_policies(args.paths, args.api_version)
    if compilation.artifact is None:
        raise PolicyError([finding for finding in compilation.findings if finding.severity == "error"])
    artifact = load(compilation.artifact)
    given = from_options(args.param, artifact.params)
    claims = [] if args.invariants is None else read_invariants(args.invariants, artifact)
    report = analysed(lambda progress: verify(artifact, given, claims, progress), invariants=claims)
    report = _placed(report, compilation)
    failing = {"error", "warning"} if args.strict else {"error"}
    written = _report(report, compilation, args.paths, failing, args.verbose)
    if args.html is not None:
        write_html(args.html, verification_page(artifact, report, compilation.files, given))
    if args.html != "-":  # otherwise the page is the output
        write_report(written, args.format, args.output)
    return int(any(finding.fails for finding in written.findings))


def _report(
    report: Verification, compilation: Compilation, paths: Sequence[Path], failing: AbstractSet[str], verbose: bool
) -> FindingsReport:
    """Return the report in every format. ``failing`` are the severities that the command ends with 1 for."""
    return FindingsReport(
        command="verify",
        files=compilation.files,
        findings=[_reported(finding, paths, failing) for finding in report.findings],
        meanings=CODES,
        pages=lambda code: f"{DOCUMENTATION}/findings/{code}.md",
        summary=_summary(report, compilation),
        show=lambda console: _show(report, compilation, paths, console, verbose),
        schema="verification",
        data=_as_json(report, compilation),
    )


def _reported(finding: ProofFinding, paths: Sequence[Path], failing: AbstractSet[str]) -> ReportedFinding:
    text = plain(lambda console: _show_finding(finding, paths, console)).rstrip("\n")
    return ReportedFinding.of(
        *(finding, finding.source, text),
        fails=finding.severity in failing and finding.suppressed is None,
        suppressed=finding.suppressed,
        more=None if finding.case is None else {"case": dict(finding.case), "explain": list(finding.explain)},
    )


def _placed(report: Verification, compilation: Compilation) -> Verification:
    """Return the report, with files named as on the command line."""
    names = {name: source.path for name, source in compilation.imported.items()}
    if compilation.artifact is not None:
        names.update({data["source"]: file for data, file in zip(compilation.artifact["policies"], compilation.files)})
    findings = [replace(finding, source=names.get(finding.source, finding.source)) for finding in report.findings]
    return replace(report, findings=tuple(findings))


def _as_json(report: Verification, compilation: Compilation) -> dict[str, Any]:
    return {
        "files": list(compilation.files),
        "findings": [finding.as_dict() for finding in report.findings],
        "assumptions": list(report.assumptions),
        "constraints": list(report.constraints),
        "not_understood": list(report.not_understood),
    }


def _show(
    report: Verification, compilation: Compilation, paths: Sequence[Path], console: Console, verbose: bool
) -> None:
    shown = [finding for finding in report.findings if finding.suppressed is None]
    policies = compilation.artifact["policies"] if compilation.artifact is not None else []
    files = {data["name"]: file for data, file in zip(policies, compilation.files)}
    for severity in ("error", "warning"):
        for finding in shown:
            if finding.severity == severity:
                _show_finding(finding, [files[finding.policy]] if finding.alone else paths, console)
    for alike in _note_groups([finding for finding in shown if finding.severity == "note"]):
        if verbose or len(alike) == 1:
            for finding in alike:
                console.line(_head(finding, console))
        else:
            words = (console.style("note", "bold", _COLOURS["note"]), console.style(alike[0].code, "bold"))
            console.line(" ".join([*words, console.style(_in_one_sentence(alike))]))
    show_assumptions(console, report.assumptions, report.not_understood, " (may be anything)")
    suppressed = [finding for finding in report.findings if finding.suppressed is not None]
    for finding in [one for one in suppressed if verbose or one.severity != "note"]:
        where = f"{finding.source}:{finding.line}"
        console.line(console.style(f"suppressed: {finding.code} at {where}: {finding.suppressed}", "dim"))
    if not verbose and any(len(alike) > 1 for alike in _note_groups(shown)):
        console.line(console.style("--verbose shows each note with its place", "dim"))
    console.line(console.style(_summary(report, compilation), "bold"))


def _summary(report: Verification, compilation: Compilation) -> str:
    counts = [
        plural(count, severity)
        for severity in _COLOURS
        if (count := sum(one.severity == severity and one.suppressed is None for one in report.findings))
    ]
    verified = f"{plural(len(compilation.files), 'policy')} verified for every event"
    return f"{verified}: {', '.join(counts) or 'nothing found'}"


def _head(finding: ProofFinding, console: Console) -> str:
    where = f"{finding.source}:{finding.line}:{finding.column}"
    head = [console.style(where, "bold") + ":", console.style(finding.severity, "bold", _COLOURS[finding.severity])]
    return " ".join([*head, console.style(finding.code, "bold"), console.style(finding.message)])


def _show_finding(finding: ProofFinding, policies: Sequence[Path | str], console: Console) -> None:
    """Show a finding; ``policies`` are those whose decision its case has."""
    console.line(_head(finding, console))
    if finding.case is not None:
        event, decision, other = finding.case["event"], finding.case["decision"], finding.case.get("other_vm")
        by = f" by {decision['policy']}/{decision['rule']}" if decision["rule"] else ""
        console.labelled("event", json.dumps(event))
        console.labelled("decided", f"{decision['output']}{by}")
        console.labelled("repeat", explain_command(event, policies, finding.explain))
        if other is not None:
            console.labelled("on another VM", explain_command(event, policies, other["explain"]))
    if finding.suggestion:
        console.labelled("hint", finding.suggestion)
    console.line()


def _note_groups(findings: Sequence[ProofFinding]) -> list[list[ProofFinding]]:
    """Return the notes among findings, those of one kind and cause together; any other is by itself."""
    groups: dict[tuple[str, ...], list[ProofFinding]] = {}
    for number, one in enumerate(findings):
        if one.severity == "note":
            groups.setdefault((one.code, _cause(one)) if one.cause else (str(number),), []).append(one)
    return list(groups.values())


def _in_one_sentence(alike: Sequence[ProofFinding]) -> str:
    """Return a group of several notes as a sentence, which names the rules."""
    rules = list(dict.fromkeys(f"{one.policy}/{one.rule}" if one.rule else one.policy for one in alike))
    more = f" and {len(rules) - _MOST_NAMED} others" if len(rules) > _MOST_NAMED else ""
    named = f"{len(rules)} {'rule' if len(rules) == 1 else 'rules'}: {', '.join(rules[:_MOST_NAMED])}{more}"
    if alike[0].certain:
        return f"{_cause(alike[0])}, by {named}"
    return f"perhaps, since {_cause(alike[0])}; {named}"


def _cause(finding: ProofFinding) -> str:
    if not finding.certain:
        return finding.cause
    for pattern, words in _CAUSES:
        match = pattern.fullmatch(finding.cause)
        if match:
            return words.format(match[1])
    return f"an event is held where a rule has no value ({finding.cause})"
