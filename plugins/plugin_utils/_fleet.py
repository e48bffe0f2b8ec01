# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a fleet is, for people: as a table for a terminal, and as a page for a browser.

What is shown comes from many VMs and, through their events, from the service: no text of it is believed to be harmless.
"""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

_HEADER = ("HOST", "RUNNER", "SERVICE", "POLICY", "PENDING")
_WIDEST = 60  # of a column
_DIGITS = 12  # of a digest: enough to tell policies apart
_TROUBLE_FIRST = {"trouble": 0, "pending": 1, "quiet": 2}


class HostState(NamedTuple):
    """What is known of a host. ``level`` is trouble, pending or quiet; ``problems`` are sentences."""

    host: str
    level: str
    runner: str
    service: str
    policy: str
    vm: str
    events: Sequence[Mapping[str, Any]]
    problems: Sequence[str]


def host_states(answers: Mapping[str, Mapping[str, Any]]) -> list[HostState]:
    """Read registered results of ``forewarn status --json`` by host; those with trouble come first."""
    states = [_host_state(host, answer or {}) for host, answer in answers.items()]
    return sorted(states, key=lambda state: (_TROUBLE_FIRST[state.level], state.host))


def table(answers: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the lines of a table: a host each, and below it a line for each further event and problem."""
    rows: list[tuple[str, ...]] = [_HEADER]
    states = host_states(answers)
    for state in states:
        details = [event_text(event) for event in state.events] + [f"! {problem}" for problem in state.problems]
        rows.append((state.host, state.runner, state.service, state.policy, details[0] if details else "-"))
        rows += [("", "", "", "", detail) for detail in details[1:]]
    shown = [tuple(plain(text) for text in row) for row in rows]
    widths = [min(_WIDEST, max(len(row[column]) for row in shown)) for column in range(len(_HEADER) - 1)]
    lines = []
    for row in shown:
        cells = [text[:_WIDEST].ljust(width) for text, width in zip(row, widths, strict=False)]
        lines.append("  ".join([*cells, row[-1]]).rstrip())
    return [*lines, summary(states)]


def summary(states: Sequence[HostState]) -> str:
    """Return a sentence on all of them."""
    trouble = sum(state.level == "trouble" for state in states)
    events = {str(event.get("event_id")) for state in states for event in state.events}
    return f"{_count(len(states), 'host')}, {trouble} with trouble; {_count(len(events), 'event')} pending"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def event_text(event: Mapping[str, Any]) -> str:
    """Return what an event is, how far the host is with it, and when it starts."""
    kind = _mapping(event.get("event")).get("EventType") or "event"
    text = f"{kind} {event.get('state')}, {event.get('starts')}"
    return f"{text} (drill)" if event.get("drill") else text


def plain(text: object) -> str:
    """Return a text in one line, control characters written out."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in str(text))


def _host_state(host: str, answer: Mapping[str, Any]) -> HostState:
    try:
        report = json.loads(answer.get("stdout") or "")
        runner, service = report["runner"], report["service"]
        events = [event for event in report["events"] if isinstance(event, Mapping)]
        problems = [str(problem) for problem in report["problems"]]
        return HostState(
            host,
            "trouble" if problems else "pending" if events else "quiet",
            str(runner["condition"]) + (", dry run" if runner.get("dry_run") else ""),
            str(service["state"]),
            str(runner.get("policy") or "-").rpartition(":")[2][:_DIGITS],
            str(runner.get("vm") or "-"),
            events,
            problems,
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return HostState(host, "trouble", "unknown", "-", "-", "-", [], [_why_silent(answer)])


def _why_silent(answer: Mapping[str, Any]) -> str:
    if answer.get("unreachable"):
        return f"not reached: {answer.get('msg') or 'no reason given'}"
    said = answer.get("stderr") or answer.get("msg") or "it said nothing"
    return f"no status: {said}"


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


_STYLE = """
:root{color-scheme:light dark;--line:#8884;--bad:#c62828;--wait:#b26a00;--good:#2e7d32}
body{font:16px/1.45 system-ui,sans-serif;margin:0 auto;padding:1rem;max-width:60rem;overflow-wrap:anywhere}
h1{font-size:1.4rem;margin:0}h2{font-size:1.1rem;margin:0}small,.dim{opacity:.75}
section{border:1px solid var(--line);border-left:.4rem solid var(--good);border-radius:.4rem}
section{padding:.7rem;margin:.8rem 0}
section.trouble{border-left-color:var(--bad)}section.pending{border-left-color:var(--wait)}
.event{border-top:1px solid var(--line);margin-top:.6rem;padding-top:.6rem}.bad{color:var(--bad);font-weight:600}
ol{padding-left:1.2rem;margin:.4rem 0}time{font-variant-numeric:tabular-nums}
"""


def page(
    answers: Mapping[str, Mapping[str, Any]], histories: Mapping[str, Mapping[str, Any]], made_at: str, since: str
) -> str:
    """Return one HTML page with everything in it: no script, no font, no address that a browser would ask."""
    states = host_states(answers)
    parts = [_section(state, _past(histories.get(state.host) or {})) for state in states]
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>Forewarn: {_text(summary(states))}</title><style>{_STYLE}</style></head><body>"
        f"<h1>Scheduled events of the fleet</h1><p>{_text(summary(states))}<br>"
        f"<small>as of <time>{_text(made_at)}</time>, history of {_text(since)}</small></p>"
        + "".join(parts)
        + "</body></html>\n"
    )


def _section(state: HostState, past: Sequence[Mapping[str, Any]]) -> str:
    lines = [
        f'<section class="{state.level}"><h2>{_text(state.host)}</h2>',
        f'<div class="dim">{_text(state.vm)} · runner {_text(state.runner)} · service {_text(state.service)}'
        f" · policy {_text(state.policy)}</div>",
        *(f'<p class="bad">{_text(problem)}</p>' for problem in state.problems),
        *(_event_block(event) for event in state.events),
    ]
    if not state.events:
        lines.append("<p>Nothing is pending.</p>" if state.runner != "unknown" else "")
    pending = {event.get("life_id") for event in state.events}
    ended = [event for event in past if event.get("life_id") not in pending]
    if ended:
        lines.append(f"<details><summary>{_count(len(ended), 'earlier event')}</summary>")
        lines += [_past_block(event) for event in ended]
        lines.append("</details>")
    return "".join([*lines, "</section>"])


def _event_block(event: Mapping[str, Any]) -> str:
    fields, decision = _mapping(event.get("event")), _mapping(event.get("decision"))
    by = ", ".join(str(decision[name]) for name in ("policy", "rule") if decision.get(name))
    reason = decision.get("reason") or ""
    rows = [
        ("Affects", ", ".join(str(name) for name in fields.get("Resources") or ())),
        (
            "Decision",
            f"{decision.get('output') or '-'}{' by ' + by if by else ''}{': ' + str(reason) if reason else ''}",
        ),
        ("Waits for", event.get("waits_for") or "-"),
        ("Id", event.get("event_id") or "-"),
    ]
    body = "".join(f"<div><b>{name}</b> {_text(value)}</div>" for name, value in rows)
    return f'<div class="event"><b>{_text(event_text(event))}</b>{body}{_timeline(event)}</div>'


def _past_block(event: Mapping[str, Any]) -> str:
    kind = _mapping(event.get("event")).get("EventType") or "event"
    title = f"{kind} {event.get('outcome') or event.get('state')}{' (drill)' if event.get('drill') else ''}"
    name = f"<b>{_text(title)}</b> <small>{_text(event.get('event_id'))}</small>"
    return f'<div class="event">{name}{_timeline(event)}</div>'


def _timeline(event: Mapping[str, Any]) -> str:
    steps = (("first_seen", "seen"), ("approved_at", "approved"), ("started_at", "started"), ("gone_at", "gone"))
    found = [(str(event[name]), word) for name, word in steps if event.get(name)]
    return "<ol>" + "".join(f"<li><time>{_text(at)}</time> {word}</li>" for at, word in sorted(found)) + "</ol>"


def _past(answer: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    try:
        return [event for event in json.loads(answer.get("stdout") or "")["events"] if isinstance(event, Mapping)]
    except (ValueError, KeyError, TypeError):
        return []


def _text(value: object) -> str:
    return html.escape(plain(value))
