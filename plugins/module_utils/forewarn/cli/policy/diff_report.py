# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ``forewarn policy diff`` found, for people, for a comment on a change, and for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ...analysis.diff.change import Change, Part
from ...analysis.diff.declarations import OLD, Declaration
from ...analysis.diff.diff import Difference
from ...analysis.diff.kinds import ALIKE, FEWER, INCOMPARABLE, KINDS, LESS, MORE, NO_CHANGE, UNPROVEN
from ...analysis.event_space.regions import ANY
from ...analysis.query.answers import NONE, NOT_PROVEN, SOME, QueryAnswer
from ...texts import escaped
from ..output.console import Console
from .common import show_assumptions
from .event_groups import UNUSUAL, notes, show_groups, show_no_value, show_verdict, words
from .output.sarif import sarif_location, sarif_log, sarif_result, sarif_rule

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


_WORDS = {
    MORE: "more permissive: events start that waited before, or with less done before",
    LESS: "less permissive: events wait that started before",
    INCOMPARABLE: "incomparable: more permissive for some events, less for others",
    FEWER: "fewer promises: policies claim or prove less, and nothing more is approved",
    ALIKE: "neither more nor less permissive",
    NO_CHANGE: "no change",
    UNPROVEN: "not proven",
}
_COLOURS = {UNPROVEN: "red", MORE: "red", INCOMPARABLE: "red", LESS: "yellow", FEWER: "yellow", ALIKE: "cyan"}
_LEVELS = {MORE: "error", INCOMPARABLE: "error", LESS: "warning", FEWER: "warning", ALIKE: "note"}


def as_json(difference: Difference, forbidden: Sequence[Forbidden] = ()) -> dict[str, Any]:
    """Return what ``--format json`` writes, below its schema."""
    return {
        "verdict": difference.verdict,
        "unproven": difference.unproven,
        "kinds": list(difference.kinds),
        "changes": [change.as_dict() for change in difference.changes],
        "declarations": [one.as_dict() for one in difference.declarations],
        "assumptions": list(difference.assumptions),
        "not_understood": list(difference.not_understood),
        "forbidden": [one.as_dict() for one in forbidden],
    }


def show(difference: Difference, console: Console) -> None:
    """Write the difference for people."""
    for change in difference.changes:
        head = console.style(_what(change), "bold", _COLOURS[change.effect])
        console.line(head + console.style(f"  {change.effect} ({', '.join(change.kinds)})"))
        for part in change.parts:
            if part.certain or part.when != ANY:
                console.line("  when " + console.style(part.when))
            for note in _notes(part):
                console.line(console.style(f"    {note}", "dim"))
            if part.case is not None:
                console.line(console.style(f"    for example {json.dumps(part.case['event'])}", "dim"))
            if part.old is not None and part.new is not None and part.new["reason"]:
                console.line(console.style(f"    {part.old['reason']} → {part.new['reason']}", "dim"))
        if not change.complete:
            console.line("  and in other cases")
        console.line()
    for one in difference.declarations:
        console.line(
            console.style(one.what, "bold", _COLOURS[one.effect])
            + console.style(f"  {one.effect} ({one.kind})")
            + console.style(_where(one), "dim")
        )
    if difference.declarations:
        console.line()
    show_assumptions(console, difference.assumptions, difference.not_understood)
    why = f": {difference.unproven}" if difference.unproven else ""
    console.line(console.style(_WORDS[difference.verdict] + why, "bold"))


def _where(one: Declaration) -> str:
    if one.place is None:
        return ""
    line = "" if one.place.line is None else f":{one.place.line}:{one.place.column}"
    return f"  {one.place.path}{line}{' before' if one.place.version == OLD else ''}"


def _what(change: Change) -> str:
    return change.what if change.certain else f"perhaps {change.what}"


def _notes(part: Part) -> list[str]:
    notes = [] if part.usual else [UNUSUAL]
    return notes if part.certain else [*notes, f"not proven: {part.why}"]


def as_markdown(difference: Difference, old: str, new: str, forbidden: Sequence[Forbidden] = ()) -> str:
    """Return the difference as Markdown, for a comment on a change."""
    why = f": {_plain(difference.unproven)}" if difference.unproven else ""
    lines = [f"**{_WORDS[difference.verdict]}**{why} (`{_plain(old)}` → `{_plain(new)}`)", ""]
    if difference.changes:
        lines += ["| Change | Effect | When | SpaceDecisions by | Kind |", "| --- | --- | --- | --- | --- |"]
    for change in difference.changes:
        by = "" if change.rule is None else f"{change.rule[0]}/{change.rule[1]}"
        for part in change.parts:
            notes = "".join(f" ({note})" for note in _notes(part))
            lines.append(_row(_what(change), change.effect, part.when + notes, by, ", ".join(change.kinds)))
        if not change.complete:
            lines.append(_row(_what(change), change.effect, "and in other cases", "", ", ".join(change.kinds)))
    if difference.declarations:
        lines += ["", "| Declaration | Effect | Where | Kind |", "| --- | --- | --- | --- |"]
    lines += [_row(one.what, one.effect, _where(one), one.kind) for one in difference.declarations]
    if forbidden:
        lines += ["", "| Forbidden | Events |", "| --- | --- |"]
    for one in forbidden:
        lines += [_row(one.expression, text) for text in one.lines() or ["proven: no event changes so"]]
    lines += ["", *(f"- assumed: {_plain(one)}" for one in difference.assumptions)]
    return "\n".join(lines).rstrip() + "\n"


def _row(*cells: str) -> str:
    return "| " + " | ".join(map(_plain, cells)) + " |"


def _plain(text: str) -> str:
    for character in "\\|`*_<>[]":
        text = text.replace(character, "\\" + character)
    return escaped(" ".join(text.split()))


def as_sarif(difference: Difference, new: str, forbidden: Sequence[Forbidden] = ()) -> dict[str, Any]:
    """Return the difference as SARIF 2.1.0. ``new`` is the NEW of the command line, which places are in."""
    rules = [sarif_rule(kind.name, kind.means, level=_LEVELS[kind.effects[0]]) for kind in KINDS.values()]
    results = [result for change in difference.changes for result in _results(change, new)]
    for one in difference.declarations:
        place = None if one.place is None or one.place.version == OLD else one.place[1:]
        results.append(_result(one.what, one.effect, (one.kind,), new, place))
    if forbidden:
        rules.append(sarif_rule(CODE, "An event changes in a way that --forbid names.", level="error"))
    names = [*KINDS, CODE]
    results += [sarif_result(names, CODE, "error", text) for one in forbidden for text in one.lines()]
    return sarif_log(rules, results)


def _results(change: Change, new: str) -> list[dict[str, Any]]:
    results = []
    place = None if change.rule is None else change.rule[2:]
    for part in change.parts:
        notes = "".join(f" ({note})" for note in _notes(part))
        results.append(_result(f"{_what(change)} when {part.when}{notes}", change.effect, change.kinds, new, place))
    return results


def _result(
    text: str,
    effect: str,
    kinds: Sequence[str],
    new: str,
    place: tuple[str, int | None, int | None] | None,
) -> dict[str, Any]:
    """Return a result. ``place``: file, line and column in NEW."""
    location = None
    if place is not None and _is_elsewhere(place[0]):
        text += f" (in {place[0]}{'' if place[1] is None else f':{place[1]}'})"
    elif place is not None:
        location = sarif_location(_file(new, place[0]), *place[1:])
    properties = {"effect": effect, "kinds": list(kinds)}
    return sarif_result(list(KINDS), kinds[0], _LEVELS[effect], text, location, properties=properties)


def _is_elsewhere(source: str) -> bool:
    """Return whether a library is in another repository or in a collection: REPOSITORY@COMMIT:PATH, COLLECTION:PATH."""
    return ":" in source.partition("/")[0]


def _file(new: str, source: str) -> Path:
    """Return the path of a policy of NEW, or of a library that it imports."""
    place = Path(new.split(":", 2)[2] if new.startswith("git:") else new)
    return (place.parent if place.suffix in (".yml", ".yaml") else place) / source
