# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the commands about policies share: their arguments, and how findings are shown."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..compiler.findings import Finding, blocks, render
from ..events import API_VERSIONS, LATEST_API_VERSION
from .console import Console


def add_policy_arguments(parser: argparse.ArgumentParser) -> None:
    """Add ``PATH…`` and ``--api-version``."""
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="policy files, or directories of them")
    add_api_version(parser)


def add_api_version(parser: argparse.ArgumentParser) -> None:
    """Add ``--api-version``."""
    parser.add_argument(
        "--api-version",
        metavar="VERSION",
        choices=API_VERSIONS,
        default=LATEST_API_VERSION,
        help=f"api-version whose events the policies see (default: {LATEST_API_VERSION})",
    )


def show_findings(findings: Sequence[Finding], console: Console) -> None:
    """Write findings for people, and how many there are."""
    for finding in findings:
        for line in render(finding, console):
            console.line(line)
        console.line()
    console.line(console.style(count_of(findings), "bold"))


def count_of(findings: Sequence[Finding]) -> str:
    """Return how many findings there are, in words."""
    errors = sum(1 for finding in findings if blocks(finding))
    warnings = len(findings) - errors
    return ", ".join(plural(count, word) for count, word in ((errors, "error"), (warnings, "warning")) if count)


def plural(count: int, word: str) -> str:
    """Return ``1 rule``, ``2 rules``, ``2 policies``."""
    if count == 1:
        return f"1 {word}"
    return f"{count} {word[:-1]}ies" if word.endswith("y") else f"{count} {word}s"


def write_json(schema: str, content: dict[str, Any], version: int = 1) -> None:
    """Write one JSON object to standard output, with what it is in front."""
    json.dump({"forewarn": {"schema": schema, "version": version}, **content}, sys.stdout, indent=2)
    sys.stdout.write("\n")
