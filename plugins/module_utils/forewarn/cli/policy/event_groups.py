# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Answers about every event, for people: in words, with an example, and the command that repeats its decision."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from ...analysis.query.answers import NONE, SOME, EventGroup, QueryAnswer
from ..output.console import Console
from .common import explain_command, show_assumptions

UNUSUAL = "by its documentation the service does not send such events"
UNCERTAIN = "perhaps: no event was found that shows this"


def show_groups(found: QueryAnswer, console: Console, policies: Sequence[Sequence[Path | str]]) -> None:
    """Write the events. ``policies`` are the files of each version, empty where the command cannot name them."""
    for group in found.groups:
        console.line(console.style(words(group), "bold"))
        for note in notes(group):
            console.line(console.style(f"  {note}", "dim"))
        if group.case is None:
            continue
        event = group.case["event"]
        console.labelled("event", json.dumps(event))
        for paths, decision in zip(policies, group.decisions):
            by = f" by {decision['policy']}/{decision['rule']}" if decision["rule"] else ""
            console.labelled("decided", f"{decision['output']}{by}: {decision['reason']}")
            if paths:
                console.labelled("repeat", explain_command(event, paths, decision["explain"]))
    if found.groups and not found.complete:
        console.line("and in other cases")
    if found.groups:
        console.line()


def words(group: EventGroup) -> str:
    """Return which events are meant."""
    return f"when {group.when}" if group.all else f"for some events when {group.when}"


def notes(group: EventGroup) -> list[str]:
    """Return what restricts an answer."""
    return [*([] if group.usual else [UNUSUAL]), *([] if group.case is not None else [UNCERTAIN])]


def show_basis(found: QueryAnswer, console: Console) -> None:
    """Write what an answer rests on."""
    show_assumptions(console, found.assumptions, found.not_understood)
    show_no_value(found, console)


def show_no_value(found: QueryAnswer, console: Console) -> None:
    """Write for which events the expression has no value, if for any."""
    if found.no_value:
        text = f"the expression has no value, and so does not hold, when {found.no_value}; test for it with has()"
        console.note(text)


def show_verdict(found: QueryAnswer, console: Console, texts: dict[str, str]) -> None:
    """Write the last line. ``texts`` has one for each verdict."""
    why = f": {found.why}" if found.why else ""
    colour = "green" if found.verdict == NONE else "yellow" if found.verdict == SOME else "red"
    console.line(console.style(texts[found.verdict] + why, "bold", colour))
