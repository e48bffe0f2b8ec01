# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What verify and diff found as one HTML page: a map of all decisions, then findings or changes, and the rules.

The page has everything in it and asks nobody: its policy (CSP) admits the one script and the one style sheet by their
hashes and nothing else. No text of a policy is believed to be harmless. The same policies give the same bytes.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...policy.artifact import Artifact
from ..diff import ALIKE, INCOMPARABLE, LESS, MORE, Difference, Part
from ..hook_wording import hook_texts
from ..verify import Finding, Report
from .table import Table, difference_table, verification_table

_SCRIPTS = ("page_data.js", "page_map.js", "page_detail.js")  # one script, in this order
_EFFECTS = {
    MORE: "more permissive",
    LESS: "less permissive",
    INCOMPARABLE: "more and less permissive",
    ALIKE: "otherwise different",
}
_VERDICTS = {
    MORE: "More permissive: events start that waited before.",
    LESS: "Less permissive: events wait that started before.",
    INCOMPARABLE: "More permissive for some events, less for others.",
    ALIKE: "Neither more nor less permissive.",
}
Anchors = dict[tuple[str, str], str]  # policy and rule -> where the page has it


def verification_page(
    artifact: Artifact, report: Report, files: Sequence[str], params: Mapping[str, Any] | None = None
) -> str:
    """Return the page of what verify found. ``files`` are the policies' names for people, in their order.

    Raises InputError if there are too many classes.
    """
    table = verification_table(artifact, params)
    anchors = _anchors(artifact, 0)
    names = [data["name"] for data in artifact.data["policies"]]
    title = f"What {names[0]} decides" if len(names) == 1 else f"What {len(names)} policies decide together"
    counts = [
        (severity, count)
        for severity in ("error", "warning", "note")
        if (count := sum(one.severity == severity and one.suppressed is None for one in report.findings))
    ]
    told = "".join(f'<li class="badge c-{severity}">{_count(count, severity)}</li>' for severity, count in counts)
    lead = (
        f"<p>{report.classes:,} classes of events were looked at, for api-version {_text(artifact.api_version)}.</p>"
        f'<ul class="counts">{told or "<li>Nothing was found.</li>"}</ul>'
    )
    findings = "".join(_finding(one, anchors) for one in report.findings)
    body = [
        _map(table),
        _card("Findings", f'<ul class="plain">{findings}</ul>' if findings else "<p>None.</p>"),
        _card("Rules", _rules(artifact, 0, files)),
        _card("What this rests on", _grounds(report)),
    ]
    return _page(title, lead, body, table)


def difference_page(
    old: Artifact,
    new: Artifact,
    difference: Difference,
    names: tuple[str, str],
    params: Mapping[str, Any] | None = None,
) -> str:
    """Return the page of what differs; ``names`` are those of the two sets of policies, for people.

    Raises InputError if there are too many classes.
    """
    table = difference_table(old, new, params)
    verdict = _VERDICTS.get(difference.verdict, "Nothing changes.")
    lead = (
        f"<p><b>{_text(verdict)}</b></p><p>From <code>{_text(names[0])}</code> to <code>{_text(names[1])}</code>. "
        f"{difference.classes:,} classes of events were compared, for api-version {_text(new.api_version)}.</p>"
    )
    anchors = _anchors(new, 1)
    changes = "".join(
        f'<li><p><span class="badge c-{change.effect}">{_EFFECTS[change.effect]}</span> <b>{_text(change.what)}</b>'
        f"{_link(change.rule, anchors)}</p>{''.join(map(_part, change.parts))}"
        f"{'' if change.complete else '<p>And in other cases.</p>'}</li>"
        for change in difference.changes
    )
    grounds = _list("Assumed", difference.assumptions) + _list("Not understood", difference.not_understood)
    rules = (
        '<div class="columns">'
        f"<div><h3>Before</h3>{_rules(old, 0, ())}</div><div><h3>After</h3>{_rules(new, 1, ())}</div></div>"
    )
    body = [
        _map(table),
        _card("Changes", f'<ul class="plain">{changes}</ul>' if changes else "<p>None.</p>"),
        _card("Rules", rules),
        *([_card("What this rests on", grounds)] if grounds else []),
    ]
    return _page("What a change of policies changes", lead, body, table)


def _page(title: str, lead: str, body: Sequence[str], table: Table) -> str:
    style = _file("page.css")
    script = '(() => {\n"use strict";\n' + "".join(map(_file, _SCRIPTS)) + "})();\n"
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; base-uri 'none'; form-action 'none'"
    )
    # In a script element only "<" could begin markup; the others are written out to be sure of every reader.
    data = json.dumps(table, separators=(",", ":")).translate({ord(char): f"\\u{ord(char):04x}" for char in "<>&"})
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>Forewarn: {_text(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f"<header><h1>{_text(title)}</h1>{lead}</header>\n<main>\n" + "\n".join(body) + "\n</main>\n"
        f'<script type="application/json" id="table">{data}</script>\n<script>{script}</script>\n</body>\n</html>\n'
    )


def _file(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _hash(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def _map(table: Table) -> str:
    settled = ", ".join(f"<code>{_text(name)} = {_text(value)}</code>" for name, value in table["params"].items())
    note = f'<p class="dim">Drawn for {settled}, as given or by default.</p>' if settled else ""
    return (
        '<section class="card"><div class="noscript"><h2>Decisions</h2><p>The map of decisions needs JavaScript. '
        'What is below does not.</p></div><div class="map"><h2>Decisions</h2><details class="controls" id="controls">'
        '<summary>What is shown<span id="chosen"></span></summary>'
        '<div id="filters" role="group" aria-label="What to show"></div></details>'
        f"{note}"
        '<div class="sheet"><ul id="legend" aria-label="Legend"></ul><div id="panels"></div></div>'
        '<aside id="detail" tabindex="-1" aria-label="The chosen cell"></aside></div></section>'
    )


def _card(title: str, content: str) -> str:
    return f'<section class="card"><h2>{title}</h2>{content}</section>'


def _finding(finding: Finding, anchors: Anchors) -> str:
    severity = "suppressed" if finding.suppressed is not None else finding.severity
    href = anchors.get((finding.policy, finding.rule or ""))
    place = f"{finding.source}:{finding.line}:{finding.column}"
    where = f'<a href="#{href}">{_text(place)}</a>' if href else f"<span>{_text(place)}</span>"
    lines = [
        f'<p><span class="badge c-{severity}">{severity}</span> <b>{_text(finding.code)}</b> {where}</p>',
        f"<p>{_text(finding.message)}</p>",
    ]
    if finding.suppressed is not None:
        lines.append(f'<p class="dim">Suppressed: {_text(finding.suppressed)}</p>')
    if finding.suggestion:
        lines.append(f'<p class="dim">Hint: {_text(finding.suggestion)}</p>')
    if finding.case is not None:
        decision = finding.case["decision"]
        by = f" by {decision['policy']}/{decision['rule']}" if decision["rule"] else ""
        told = f"{decision['output']}{by}: {decision['reason']}"
        lines.append(_example(finding.case, told))
    return f"<li>{''.join(lines)}</li>"


def _part(part: Part) -> str:
    notes = [] if part.usual else ["The service does not send such events by its documentation."]
    notes += [] if part.certain else ["Perhaps: an expression is not understood, and no event was found that shows it."]
    sides = (("Before", part.old), ("After", part.new))
    told = "; ".join(f"{word}: {one['output']}{_because(one)}" for word, one in sides)
    return f"<p>when {_text(part.when)}</p>" + _notes(notes) + _example(part.case, told)


def _because(one: Mapping[str, Any]) -> str:
    by = f" by {one['policy']}/{one['rule']}" if one["rule"] else ""
    return by + (f", \u201c{one['reason']}\u201d" if one["reason"] else "")


def _notes(notes: Sequence[str]) -> str:
    return "".join(f'<p class="dim">{_text(note)}</p>' for note in notes)


def _example(case: Mapping[str, Any], told: str) -> str:
    event = json.dumps(case["event"], indent=1)
    facts = "; ".join(
        f"{name}: {json.dumps(case[name]) if isinstance(case[name], Mapping) else case[name]}"
        for name in ("now", "first_seen", "vm", "params")
        if case.get(name)
    )
    return (
        f"<details><summary>An event that shows it</summary><pre>{_text(event, lines=True)}</pre>"
        f'<p class="dim">{_text(facts)}</p><p>{_text(told)}</p></details>'
    )


def _link(rule: tuple[str, str, str, int, int] | None, anchors: Anchors) -> str:
    if rule is None:
        return ""
    policy, path, source, line, _column = rule
    text = f"{policy}/{path}"
    href = anchors.get((policy, path))
    linked = f'<a href="#{href}">{_text(text)}</a>' if href else _text(text)
    return f' <span class="dim">by {linked}, {_text(source)}:{line}</span>'


# The rules


def _anchors(artifact: Artifact, side: int) -> Anchors:
    return {
        (data["name"], path): f"rule-{side}-{place}-{number}"
        for place, data in enumerate(artifact.data["policies"])
        for number, (path, _match, _depth) in enumerate(_matches(data["rule"], "", 0))
    }


def _matches(block: Mapping[str, Any], prefix: str, depth: int) -> Iterator[tuple[str, Mapping[str, Any], int]]:
    """Yield every match with its path, in the order in which the analysis numbers them."""
    for match in block["match"]:
        path = prefix + match["id"]
        yield path, match, depth
        if "rule" in match:
            yield from _matches(match["rule"], path + ".", depth + 1)


def _variables(block: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for variable in block["variables"]:
        yield variable["name"], variable["expr"]["source"]
    for match in block["match"]:
        if "rule" in match:
            yield from _variables(match["rule"])


def _rules(artifact: Artifact, side: int, files: Sequence[str]) -> str:
    told = []
    for place, data in enumerate(artifact.data["policies"]):
        file = files[place] if place < len(files) else data["source"]
        opened = " open" if len(artifact.data["policies"]) == 1 else ""
        name = f'<b>{_text(data["name"])}</b> <span class="dim">{_text(file)}</span>'
        told.append(f'<details class="policy"{opened}><summary>{name}</summary>')
        if data.get("description"):
            told.append(f"<p>{_text(data['description'])}</p>")
        for name, source in _variables(data["rule"]):
            told.append(f'<p class="dim">variables.{_text(name)}</p>{_source(source)}')
        for number, (path, match, depth) in enumerate(_matches(data["rule"], "", 0)):
            told.append(_rule(f"rule-{side}-{place}-{number}", path, match, depth))
        told.append("</details>")
    return "".join(told)


def _rule(anchor: str, path: str, match: Mapping[str, Any], depth: int) -> str:
    condition = match["condition"]
    output = match.get("output")
    prepares = output == "approve" and match.get("prepare")
    badge = f'<span class="badge c-{"prepared" if prepares else output}">{_text(output)}</span> ' if output else ""
    lines = [
        f'<p><b>{_text(path)}</b> {badge}<span class="dim">line {match["line"]}</span></p>',
        _source(condition["source"]) if condition else '<p class="dim">always</p>',
    ]
    if match.get("explanation"):
        lines.append(f'<p class="dim">Reason: <code>{_text(match["explanation"]["source"])}</code></p>')
    lines += [f'<p class="dim">{phase}: {_text(", ".join(texts))}</p>' for phase, texts in hook_texts(match).items()]
    return f'<div class="rule{" inner" if depth else ""}" id="{anchor}">{"".join(lines)}</div>'


def _source(source: str) -> str:
    return f"<pre>{_text(source.strip(), lines=True)}</pre>"


# Words


def _grounds(report: Report) -> str:
    return (
        _list("Assumed", report.assumptions)
        + _list("Not understood, and so taken as anything", report.not_understood)
        + _list("Left out, since the service does not do it", report.constraints)
    )


def _list(title: str, items: Sequence[str]) -> str:
    return f"<h3>{title}</h3><ul>{''.join(f'<li>{_text(item)}</li>' for item in items)}</ul>" if items else ""


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _text(value: object, *, lines: bool = False) -> str:
    """Return a text as HTML; what would turn it around, hide it or break the line is written out."""
    shown = "".join(
        char if char.isprintable() or (lines and char == "\n") else " " if char == "\n" else ascii(char)[1:-1]
        for char in str(value)
    )
    return html.escape(shown)
