# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn policy check``: every mistake in policy files at once, each with its place and a hint."""

from __future__ import annotations

import argparse

from ...compiler.cel.expression import CODES as EXPRESSION_CODES
from ...compiler.findings import CODES, fails, render
from ...compiler.policies import Compilation, compile_policies
from ..output.console import Console
from .common import add_policy_arguments, add_target, findings_summary, plural, show_findings
from .output.formats import DOCUMENTATION, FindingsReport, ReportedFinding, add_format, write_report


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_policy_arguments(parser)
    add_target(parser)
    add_format(parser)


def run(args: argparse.Namespace) -> int:
    """Check the policies; 1 if anything was found."""
    compilation = compile_policies(args.paths, args.api_version, libraries=True, target=args.target)
    write_report(_report(compilation), args.format, args.output)
    return int(any(fails(finding) for finding in compilation.findings))


def _report(compilation: Compilation) -> FindingsReport:
    files, findings = (*compilation.files, *compilation.libraries), compilation.findings
    counts = ((len(compilation.files), "policy"), (len(compilation.libraries), "library"))
    nothing = f"{' and '.join(plural(count, word) for count, word in counts if count)} checked, nothing found"

    def show(console: Console) -> None:
        if findings:
            show_findings(findings, console)
        else:
            console.line(nothing)

    return FindingsReport(
        command="check",
        files=files,
        findings=[
            ReportedFinding.of(*(one, one.path, "\n".join(render(one))), fails=fails(one), end_column=one.end_column)
            for one in findings
        ],
        meanings={**CODES, **EXPRESSION_CODES},
        pages=lambda _code: f"{DOCUMENTATION}/findings.md",
        summary=findings_summary(findings) if findings else nothing,
        show=show,
        schema="findings",
        data={"files": list(files), "findings": [finding.as_dict() for finding in findings]},
    )
