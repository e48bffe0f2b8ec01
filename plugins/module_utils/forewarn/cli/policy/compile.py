# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn policy compile``: makes of policies the artifact that a runner loads."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from ...atomic_file import replace_file
from ...compiler.policies import compile_policies
from ...errors import InputError
from ..output.console import Console
from .common import add_policy_arguments, add_target, is_same_file, plural, show_findings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_policy_arguments(parser)
    add_target(parser)
    parser.add_argument(
        "-o", "--output", required=True, metavar="FILE", help="where to write the artifact; '-' for standard output"
    )


def run(args: argparse.Namespace) -> int:
    """Compile the policies; return 1 and write nothing if they have mistakes."""
    compilation = compile_policies(args.paths, args.api_version, target=args.target)
    read = [*compilation.files, *(source.path for source in compilation.imported.values())]
    if any(is_same_file(Path(args.output), Path(file)) for file in read):
        raise InputError(
            f"{args.output} is a policy: it would be overwritten", "Name another file, such as policy.json."
        )
    problems = Console(sys.stderr)
    if compilation.findings:
        show_findings(compilation.findings, problems)
    if compilation.artifact is None:
        return 1
    content = json.dumps(compilation.artifact, indent=1, sort_keys=True) + "\n"
    if args.output == "-":
        sys.stdout.write(content)
        return 0
    replace_file(Path(args.output), content.encode("utf-8"))
    count = plural(len(compilation.artifact["policies"]), "policy")
    Console(sys.stdout).line(f"{args.output}: {count}, {compilation.artifact['digest']}")
    return 0
