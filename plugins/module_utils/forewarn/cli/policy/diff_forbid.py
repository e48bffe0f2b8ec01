# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The changes that ``forewarn policy diff --forbid`` names, and the events that change so, if any."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ...analysis.query.answers import NONE, NOT_PROVEN, SOME, QueryAnswer
from ..output.console import Console
from .answer import notes, show_groups, show_no_value, show_verdict, words

CODE = "forbidden-change"  # of a result in SARIF


class Forbidden(NamedTuple):
    """A change that is forbidden, as an expression, and the events that change so."""

    expression: str
    found: QueryAnswer

    def as_dict(self) -> dict[str, Any]:
        """Return it for ``--format json``."""
        return {"expression": self.expression, **self.found.as_dict()}

    def lines(self) -> list[str]:
        """Return what is wrong, empty if it is proven that no event changes so."""
        if self.found.verdict == NONE:
            return []
        if self.found.verdict == NOT_PROVEN:
            return [f"not proven that no event changes so: {self.expression}: {self.found.why}"]
        texts = []
        for group in self.found.groups:
            restricted = "".join(f" ({note})" for note in notes(group))
            texts.append(f"forbidden: {self.expression}: {words(group)}{restricted}")
        return texts or [f"forbidden: {self.expression}"]


def show_forbidden(forbidden: Sequence[Forbidden], places: tuple[str, str], console: Console) -> None:
    """Write the forbidden changes for people. ``places`` are OLD and NEW of the command line."""
    policies = [[] if place.startswith("git:") else [place] for place in places]
    for expression, found in forbidden:
        console.line()
        show_groups(found, console, policies)
        show_no_value(found, console)
        texts = {
            NONE: f"proven: no event changes so: {expression}",
            SOME: f"forbidden: {expression}",
            NOT_PROVEN: f"not proven that no event changes so: {expression}",
        }
        show_verdict(found, console, texts)
