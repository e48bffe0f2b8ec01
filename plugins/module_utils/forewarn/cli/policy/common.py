# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the commands about policies share: arguments, and the output of findings."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...atomic_file import replace_file
from ...compiler.findings import Finding, render
from ...compiler.policy_file.hook_systems import ANY, TARGETS
from ...errors import ForewarnError, InputError
from ...events import API_VERSIONS, LATEST_API_VERSION, VM_FACTS, Vm
from ...policy.params import convert, name_and_value, parse_text
from ..output.console import Console


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


def add_target(parser: argparse.ArgumentParser) -> None:
    """Add ``--target``."""
    text = "system whose VMs run the hooks (default: any, which refuses only what runs nowhere)"
    parser.add_argument("--target", choices=TARGETS, default=ANY, help=text)


def add_param(parser: argparse.ArgumentParser, what: str = "a parameter") -> None:
    """Add ``--param``, whose values are texts such as ``NAME=VALUE``."""
    parser.add_argument("--param", action="append", default=[], metavar="NAME=VALUE", help=f"{what}; repeatable")


def add_facts(parser: argparse.ArgumentParser) -> None:
    """Add ``--vm-name``, ``--vm`` and ``--param``: what policies see besides an event."""
    parser.add_argument(
        "--vm-name", metavar="NAME", help="the VM that decides (resource name); short for --vm name=NAME"
    )
    parser.add_argument(
        "--vm",
        action="append",
        default=[],
        metavar="FACT=VALUE",
        help=f"a fact about the VM: {', '.join(VM_FACTS)}, tags.KEY, or tags as JSON; repeatable",
    )
    add_param(parser)


def given_vm(given: Sequence[str], vm_name: str | None) -> Vm:
    """Return the VM that ``--vm`` and ``--vm-name`` describe. Raises InputError."""
    facts: dict[str, str] = {} if vm_name is None else {"name": vm_name}
    tags: dict[str, str] | None = None
    for item in given:
        fact, value = name_and_value("--vm", item)
        if fact == "tags":
            tags = {**(tags or {}), **_tags(value)}
        elif fact.startswith("tags."):
            tags = {**(tags or {}), fact[len("tags.") :]: value}
        elif fact in VM_FACTS:
            facts[fact] = value
        else:
            raise InputError(f"--vm {fact}: there is no such fact", f"Use one of {', '.join(VM_FACTS)}, tags.KEY.")
    return Vm(**facts, tags=tags)


def _tags(text: str) -> dict[str, str]:
    kind = "map(string, string)"
    try:
        return dict(convert(parse_text(text, kind), kind))
    except ValueError as error:
        raise InputError(f"--vm tags={text}: {error}", """Write --vm 'tags={"KEY": "VALUE"}'.""") from error


def show_findings(findings: Sequence[Finding], console: Console) -> None:
    """Write findings for people, and their number."""
    for finding in findings:
        for line in render(finding, console):
            console.line(line)
        console.line()
    console.line(console.style(findings_summary(findings), "bold"))


def findings_summary(findings: Sequence[Finding]) -> str:
    """Return ``2 errors, 1 warning``."""
    counts = ((sum(one.severity == word for one in findings), word) for word in ("error", "warning", "note"))
    return ", ".join(plural(count, word) for count, word in counts if count)


def add_html(parser: argparse.ArgumentParser) -> None:
    """Add ``--html``."""
    text = "also write it as one HTML page, with a map of all decisions; '-': standard output, and nothing else"
    parser.add_argument("--html", metavar="FILE", help=text)


def write_html(file: str, page: str) -> None:
    """Write a page to the file of ``--html``. Raises InputError if it cannot be written."""
    if file == "-":
        sys.stdout.write(page)
    else:
        replace_file(Path(file), page.encode("utf-8"))


def is_same_file(one: Path, other: Path) -> bool:
    """Return whether two paths name one file that exists."""
    try:
        return one.samefile(other)
    except OSError:  # there is no such file yet
        return False


def plural(count: int, word: str) -> str:
    """Return ``1 rule``, ``2 rules``, ``2 policies``, ``2 classes``."""
    if count == 1:
        return f"1 {word}"
    if word.endswith("s"):
        return f"{count:,} {word}es"
    return f"{count:,} {word[:-1]}ies" if word.endswith("y") else f"{count:,} {word}s"


def show_assumptions(
    console: Console, assumptions: Sequence[str], not_understood: Sequence[str] = (), more: str = ""
) -> None:
    """Write what a result rests on, and the expressions of which nothing is known; ``more`` follows each of these."""
    for assumption in assumptions:
        console.line(console.style("assumed: ", "dim") + console.style(assumption))
    for source in not_understood:
        console.line(console.style("not understood: ", "dim") + console.style(source) + console.style(more, "dim"))


def defect(message: str, hint: str) -> ForewarnError:
    """Return the error for a defect of forewarn, which is not in its input."""
    error = ForewarnError(f"internal error: {message}", hint)
    error.exit_code = 70
    return error


def explain_command(event: Mapping[str, Any], paths: Sequence[Path | str], explain: Sequence[str]) -> str:
    """Return the command that repeats a decision; ``explain`` are arguments beside the policies and the event."""
    policies = " ".join(shlex.quote(str(path)) for path in paths)
    options = " ".join(shlex.quote(part) for part in explain)
    return f"echo {shlex.quote(json.dumps(event))} | forewarn policy explain --policy {policies} --event - {options}"
