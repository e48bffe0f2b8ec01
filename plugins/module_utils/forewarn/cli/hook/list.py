# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn hook list``: the kinds of hooks that are here, and what each does."""

from __future__ import annotations

import argparse

from ... import hook_kinds
from ..output.console import write_result
from .kinds import as_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="write one JSON object")
    parser.epilog = "Beside these every policy can use run, unit and http: docs/policies.md."


def run(args: argparse.Namespace) -> int:
    """List the kinds."""
    kinds = hook_kinds.available()
    console = write_result(args.json, "hooks", {"kinds": [as_json(kind) for kind in kinds]})
    if kinds:
        console.table(
            ("KIND", "RUNS ON", "WHAT IT DOES"), [(kind.name, kind.systems_text, kind.summary) for kind in kinds]
        )
    if len(kinds) < len(hook_kinds.NAMES):
        console.note("A VM has only the kinds that its policies use.")
    return 0
