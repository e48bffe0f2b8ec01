# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kinds of hooks, as the commands ``forewarn hook …`` name and describe them."""

from __future__ import annotations

from typing import Any

from ... import hook_kinds
from ...errors import InputError
from ...hook_kinds.common.declaration import HookKind

# Titles for people, and the fields of a kind that they are about.
TEXTS = (
    ("Prepare", "prepares"),
    ("Recover", "recovers"),
    ("Effect", "effect"),
    ("Twice", "repeatable"),
    ("It needs", "requirements"),
    ("Tried with", "tried_with"),
)


def known(name: str) -> HookKind:
    """Return the kind of a name. Raises InputError if it is not here."""
    kind = hook_kinds.find(name)
    if kind is None:
        names = ", ".join(one.name for one in hook_kinds.available()) or "none: a VM has those that its policies use"
        raise InputError(f"There is no kind of hook {name} here.", f"The kinds here are {names}.")
    return kind


def as_json(kind: HookKind) -> dict[str, Any]:
    """Return what is declared of a kind; durations are in seconds."""
    texts = {field: getattr(kind, field) for _title, field in TEXTS}
    options = [
        {key: value for key, value in option._asdict().items() if value not in (None, "", ())}
        for option in kind.options
    ]
    return {
        "name": kind.name,
        "summary": kind.summary,
        "systems": list(kind.systems),
        **texts,
        "timeout_seconds": kind.timeout_seconds,
        "options": options,
    }
