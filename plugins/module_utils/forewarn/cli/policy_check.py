# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn policy check``: every mistake in policy files at once, each with its place and a hint."""

from __future__ import annotations

import argparse
import sys

from ..compiler.policyfile import compile_policies
from .console import Console, write_json
from .policy_common import add_policy_arguments, plural, show_findings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_policy_arguments(parser)
    parser.add_argument("--json", action="store_true", help="write one JSON object")


def run(args: argparse.Namespace) -> int:
    """Check the policies; 1 if anything was found."""
    compilation = compile_policies(args.paths, args.api_version)
    findings = compilation.findings
    if args.json:
        write_json(
            "findings", {"files": list(compilation.files), "findings": [finding.as_dict() for finding in findings]}
        )
    elif findings:
        show_findings(findings, Console(sys.stdout))
    else:
        Console(sys.stdout).line(f"{plural(len(compilation.files), 'policy')} checked, nothing found")
    return 1 if findings else 0
