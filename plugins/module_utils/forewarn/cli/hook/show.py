# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn hook show``: one kind of hook, with its options."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from ... import hook_kinds
from ...errors import InputError
from ...hook_kinds.declaration import DURATION, HookKind, Option
from ..output.console import Console, write_json

_TEXTS = (
    ("Prepare", "prepares"),
    ("Recover", "recovers"),
    ("Effect", "effect"),
    ("Twice", "repeatable"),
    ("It needs", "requirements"),
    ("Tried with", "tried_with"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", metavar="KIND", help="the name of a kind: see forewarn hook list")
    parser.add_argument("--json", action="store_true", help="write one JSON object")


def run(args: argparse.Namespace) -> int:
    """Show a kind."""
    kind = known(args.kind)
    if args.json:
        write_json("hook", as_json(kind))
        return 0
    console = Console(sys.stdout)
    console.line(f"{console.style(kind.name, 'bold')}: {kind.summary}")
    console.line()
    for title, field in _TEXTS:
        console.line(f"{title + ':':12}{getattr(kind, field)}")
    console.line()
    rows = [(option.name, default_text(option), option.description) for option in kind.options]
    rows.append(("timeout", f"{kind.timeout_seconds:g}s", "The time after which the hook fails."))
    rows.append(("retry", "", "How often, and at what intervals, a failed hook runs again."))
    console.table(("OPTION", "DEFAULT", "MEANING"), rows)
    return 0


def known(name: str) -> HookKind:
    """Return a kind. Raises InputError."""
    kind = hook_kinds.find(name)
    if kind is None:
        names = ", ".join(one.name for one in hook_kinds.available()) or "none: a VM has those that its policies use"
        raise InputError(f"There is no kind of hook {name} here.", f"The kinds here are {names}.")
    return kind


def default_text(option: Option) -> str:
    """Return the default of an option as people write it."""
    if option.required:
        return "required"
    if option.default is None:
        return ""
    return f"{option.default:g}s" if option.type == DURATION else str(option.default)


def as_json(kind: HookKind) -> dict[str, Any]:
    """Return what is declared of a kind; durations are in seconds."""
    texts = {field: getattr(kind, field) for _title, field in _TEXTS}
    options = [
        {key: value for key, value in option._asdict().items() if value not in (None, "", ())}
        for option in kind.options
    ]
    return {
        "name": kind.name,
        "summary": kind.summary,
        **texts,
        "timeout_seconds": kind.timeout_seconds,
        "options": options,
    }
