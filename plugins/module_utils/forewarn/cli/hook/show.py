# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn hook show``: one kind of hook, with its options."""

from __future__ import annotations

import argparse

from ...hook_kinds.common.declaration import DURATION, Option
from ..output.console import write_result
from .kinds import TEXTS, as_json, known


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", metavar="KIND", help="the name of a kind: see forewarn hook list")
    parser.add_argument("--json", action="store_true", help="write one JSON object")


def run(args: argparse.Namespace) -> int:
    """Show a kind."""
    kind = known(args.kind)
    console = write_result(args.json, "hook", as_json(kind))
    console.line(f"{console.style(kind.name, 'bold')}: {kind.summary}")
    console.line()
    console.line(f"{'Runs on:':12}{kind.systems_text}")
    for title, field in TEXTS:
        console.line(f"{title + ':':12}{getattr(kind, field)}")
    console.line()
    rows = [(option.name, _default_text(option), option.description) for option in kind.options]
    rows.append(("timeout", f"{kind.timeout_seconds:g}s", "The time after which the hook fails."))
    rows.append(("retry", "", "How often, and at what intervals, a failed hook runs again."))
    console.table(("OPTION", "DEFAULT", "MEANING"), rows)
    return 0


def _default_text(option: Option) -> str:
    if option.required:
        return "required"
    if option.default is None:
        return ""
    return f"{option.default:g}s" if option.type == DURATION else str(option.default)
