# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a fleet is, as one HTML page: no script, no font, no address that a browser would ask.

Its policy (CSP) admits its style sheet, by the hash, and nothing else. Every text comes from VMs and is escaped.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ansible_collections.forewarn.azure.plugins.plugin_utils._fleet import (
    HostState,
    count,
    host_states,
    mapping,
    summary,
)
from ansible_collections.forewarn.azure.plugins.plugin_utils._fleet_timeline import (
    STEPS,
    Event,
    as_text,
    clock,
    moment_of,
    number_of,
    seconds_left,
    timeline,
)

_STYLE = """
:root{color-scheme:light;--page:#f6f7f9;--card:#fff;--ink:#1c2330;--dim:#5a6474;--line:#d5dae2;
--bad:#ffcfc9;--bad-ink:#7a150b;--wait:#ffe2ae;--wait-ink:#5c3500;--good:#bfe8cb;--good-ink:#0c4a20;
--calm:#e3e8f0;--calm-ink:#3f4a5c;--m-wait:#d08700;--m-good:#2e9e55;--m-bad:#cf3a2b;--m-calm:#8b96a8}
@media screen and (prefers-color-scheme:dark){:root{color-scheme:dark;--page:#12161d;--card:#1a2029;--ink:#e6eaf1;
--dim:#a0aaba;--line:#343d4b;--bad:#66211b;--bad-ink:#ffcdc7;--wait:#5a3d08;--wait-ink:#ffdf9e;--good:#174a2b;
--good-ink:#b5f0c8;--calm:#29313d;--calm-ink:#b6c0cf;--m-wait:#e8a935;--m-good:#4cc47a;--m-bad:#f2695b;--m-calm:#7b8798}}
*{box-sizing:border-box}
body{font:1rem/1.5 system-ui,sans-serif;margin:0 auto;max-width:70rem;padding:1.2rem 1rem 3rem;background:var(--page);
color:var(--ink);overflow-wrap:anywhere}
h1{font-size:1.5rem;line-height:1.25;margin:0}h2{font-size:1.15rem;margin:1.6rem 0 .6rem}h3{font-size:1rem;margin:0}
p{margin:.4rem 0}.dim,dt{color:var(--dim);font-size:.875rem}time{font-variant-numeric:tabular-nums}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(8.5rem,1fr));gap:.6rem;margin:1rem 0;
padding:0;list-style:none}
.tiles li{background:var(--card);border:1px solid var(--line);border-radius:.7rem;padding:.6rem .8rem}
.tiles b{display:block;font-size:1.5rem;line-height:1.2}
.card{background:var(--card);border:1px solid var(--line);border-left:.35rem solid var(--m-calm);border-radius:.7rem;
padding:.8rem 1rem;margin:.7rem 0;break-inside:avoid}
.card.trouble{border-left-color:var(--m-bad)}.card.pending{border-left-color:var(--m-wait)}
.card.quiet{border-left-color:var(--m-good)}
.head{display:flex;flex-wrap:wrap;gap:.3rem .6rem;align-items:center}
.badge{display:inline-flex;align-items:center;gap:.3rem;border-radius:1rem;padding:.05rem .6rem .05rem .4rem;
font-size:.875rem;font-weight:600;background:var(--calm);color:var(--calm-ink);print-color-adjust:exact;-webkit-print-color-adjust:exact}
.badge.bad{background:var(--bad);color:var(--bad-ink)}.badge.wait{background:var(--wait);color:var(--wait-ink)}
.badge.good{background:var(--good);color:var(--good-ink)}
.icon{width:1em;height:1em;fill:none;stroke:currentColor;stroke-width:2;stroke-linecap:round;stroke-linejoin:round;flex:none}
.bar{display:block;width:100%;height:.5rem;margin:.5rem 0 .2rem;border-radius:.25rem}
.bar .whole{fill:var(--calm)}.bar .gone{fill:var(--m-wait)}
dl{display:grid;grid-template-columns:minmax(5.5rem,auto) minmax(0,1fr);gap:.15rem .8rem;margin:.5rem 0}
dt{padding-top:.1rem}dd{margin:0}
.problem{background:var(--bad);color:var(--bad-ink);border-radius:.5rem;padding:.4rem .6rem;font-weight:600}
.card>summary{padding:0}.card>summary .head{display:inline-flex;vertical-align:middle}
.on{border-top:1px solid var(--line);margin-top:.6rem;padding-top:.6rem}
.steps{list-style:none;padding:0;margin:.4rem 0;display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;font-size:.875rem}
.past{border-top:1px solid var(--line);padding:.5rem 0}summary{cursor:pointer;padding:.3rem 0}
.lane{display:grid;grid-template-columns:12rem minmax(0,1fr);gap:.2rem 1rem;align-items:center;
border-top:1px solid var(--line);padding:.3rem 0}.lane svg{display:block;width:100%;overflow:visible}
.chart{border-left-width:1px}
line{stroke-linecap:round}line.now{stroke:var(--dim);stroke-width:1.5;stroke-dasharray:2 3}
line.m-wait{stroke:var(--m-wait);stroke-width:5}line.m-good{stroke:var(--m-good);stroke-width:8}
line.m-bad{stroke:var(--m-bad);stroke-width:11}line.m-calm{stroke:var(--m-calm);stroke-width:3}
line.ahead{stroke:var(--m-wait);stroke-width:2;stroke-dasharray:1 5}
.axis{display:flex;justify-content:space-between;font-size:.8125rem;color:var(--dim);margin-left:13rem}
.key{display:flex;flex-wrap:wrap;gap:.2rem 1rem;list-style:none;padding:0;margin:.6rem 0 0;font-size:.8125rem}
.key svg{width:1.6rem;height:.7rem;margin-right:.35rem}
@media (max-width:36rem){body{padding:.8rem .7rem 2rem}.lane{grid-template-columns:minmax(0,1fr)}.axis{margin-left:0}
.card{padding:.7rem .8rem}dl{grid-template-columns:5.2rem minmax(0,1fr);gap:.15rem .5rem}}
"""
_ICONS = {
    "bad": "M8 2.5v7M8 12.4v.7",
    "wait": "M5.5 3v10M10.5 3v10",
    "good": "M2.5 8.5l3.5 3.5 7.5-8",
    "calm": "M8 3v5l3 2",
}
# How a state of an event is marked; others are calm.
_MARKS = {
    **dict.fromkeys(("failed", "not-recovered"), "bad"),
    **dict.fromkeys(("held", "seen", "preparing"), "wait"),
    **dict.fromkeys(("approved", "prepared", "finished", "recovered"), "good"),
}


class _Pending(NamedTuple):
    """One event and the hosts that have it listed."""

    event: Event
    hosts: list[tuple[HostState, Event]]


def page(
    answers: Mapping[str, Mapping[str, Any]], histories: Mapping[str, Mapping[str, Any]], made_at: str, since: str
) -> str:
    """Return the page of registered results of ``forewarn status --json`` and ``forewarn history --json`` by host."""
    states = host_states(answers)
    pasts = {state.host: _past(histories.get(state.host) or {}, state) for state in states}
    pending = _pending(states)
    trouble = "".join(
        f'<p class="problem">{as_text(state.host)}: {as_text(problem)}</p>'
        for state in states
        for problem in state.problems
    )
    drawn = timeline({state.host: [*pasts[state.host], *state.events] for state in states}, made_at)
    parts = [
        '<header><h1>Scheduled events of the fleet</h1><p class="dim">'
        f"As of {_time(made_at)} UTC, with the history of {as_text(since)}. {as_text(summary(states))}.</p></header>",
        _tiles(states, pending),
        _heading("Trouble", trouble) if trouble else "",
        _heading("Pending", "".join(_event_card(one, made_at) for one in pending) or "<p>No event is pending.</p>"),
        _heading("Timeline", drawn) if drawn else "",
        _heading(
            "Hosts", "".join(_host_card(state, pasts[state.host]) for state in states) or "<p>None was asked.</p>"
        ),
    ]
    digest = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Forewarn: {as_text(summary(states))}</title><style>{_STYLE}</style></head><body>\n"
        + "\n".join(part for part in parts if part)
        + "\n</body></html>\n"
    )


def _heading(title: str, content: str) -> str:
    return f"<section><h2>{title}</h2>{content}</section>"


def _tiles(states: Sequence[HostState], pending: Sequence[_Pending]) -> str:
    trouble = sum(state.level == "trouble" for state in states)
    times = [left for one in pending if (left := seconds_left(one.event)) is not None and left > 0]
    tiles = [
        (str(len(states)), "host" if len(states) == 1 else "hosts"),
        (str(trouble), "with trouble"),
        (str(len(pending)), "event pending" if len(pending) == 1 else "events pending"),
        (_span(min(times)) if times else "–", "until the next one starts"),
    ]
    return f'<ul class="tiles">{"".join(f"<li><b>{value}</b> {text}</li>" for value, text in tiles)}</ul>'


# What is pending


def _pending(states: Sequence[HostState]) -> list[_Pending]:
    """Return the pending events, the next to start first; hosts with the same event share one."""
    found: dict[str, _Pending] = {}
    for state in states:
        for number, event in enumerate(state.events):
            key = str(event.get("event_id") or f"{state.host} {number}")
            found.setdefault(key, _Pending(event, [])).hosts.append((state, event))
    return sorted(found.values(), key=lambda one: (seconds_left(one.event) is None, seconds_left(one.event) or 0.0))


def _event_card(one: _Pending, made_at: str) -> str:
    event = one.event
    fields = mapping(event.get("event"))
    kind = fields.get("EventType") or "event"
    drill = _badge("calm", "drill") if event.get("drill") else ""
    resources = ", ".join(str(name) for name in _list(fields.get("Resources")))
    rows = [
        ("Not before", fields.get("NotBefore") or "-"),
        ("Source", fields.get("EventSource") or "-"),
        ("Affects", resources or "-"),
        ("Description", fields.get("Description")),
        ("Id", event.get("event_id") or "-"),
    ]
    hosts = "".join(_on_host(state, event) for state, event in one.hosts)
    head = f"<h3>{as_text(kind)}</h3><b>{as_text(event.get('starts') or '')}</b>{drill}"
    told = f"{_bar(event, made_at)}{_facts(rows)}{hosts}"
    return f'<article class="card pending"><div class="head">{head}</div>{told}</article>'


def _on_host(state: HostState, event: Event) -> str:
    decision = mapping(event.get("decision"))
    by = ", ".join(str(decision[name]) for name in ("policy", "rule") if decision.get(name))
    rows = [
        ("Decision", f"{decision.get('output') or '-'}{' by ' + by if by else ''}"),
        ("Reason", decision.get("reason")),
        ("Waits for", event.get("waits_for") or "-"),
        ("Failed", event.get("failure")),
        *[("Hook", _hook(hook)) for hook in _list(event.get("hooks")) if isinstance(hook, Mapping)],
    ]
    mark = _MARKS.get(str(event.get("state")), "calm")
    return (
        f'<div class="on"><div class="head"><b>{as_text(state.host)}</b>{_badge(mark, event.get("state") or "-")}</div>'
        f"{_facts(rows)}{_steps(event)}</div>"
    )


def _hook(hook: Mapping[str, Any]) -> str:
    return f"{hook.get('phase')} {hook.get('hook')}: {hook.get('status')}"


def _bar(event: Event, made_at: str) -> str:
    """Return how much of the notice is over."""
    begin, now, left = moment_of(event.get("first_seen")), moment_of(made_at), seconds_left(event)
    if begin is None or now is None or left is None or left <= 0:
        return ""
    over = max(0.0, (now - begin).total_seconds())
    share = 100 * over / (over + left)
    return (
        '<svg class="bar" role="img" aria-label="notice that is over"><rect class="whole" width="100%" height="100%"/>'
        f'<rect class="gone" width="{share:.1f}%" height="100%"/></svg>'
    )


# The hosts


def _host_card(state: HostState, past: Sequence[Event]) -> str:
    mark, word = {"trouble": ("bad", "trouble"), "pending": ("wait", "pending")}.get(state.level, ("good", "quiet"))
    rows = [
        ("VM", state.vm),
        ("Runner", state.health.get("runner") or state.runner),
        ("Service", state.health.get("service") or state.service),
        ("Policy", state.policy),
        ("Version", state.health.get("version")),
    ]
    dry = _badge("calm", "dry run") if state.runner.endswith(", dry run") else ""
    head = f'<span class="head"><b>{as_text(state.host)}</b>{_badge(mark, word)}{dry}</span>'
    told = _facts(rows)
    if past:
        blocks = "".join(map(_past_block, past))
        told += f"<details><summary>{count(len(past), 'earlier event')}</summary>{blocks}</details>"
    if state.level == "quiet":  # the many of which nobody needs to read
        return f'<details class="card quiet"><summary>{head}</summary>{told}</details>'
    return f'<article class="card {state.level}">{head}{told}</article>'


def _past_block(event: Event) -> str:
    fields, impact = mapping(event.get("event")), mapping(event.get("impact"))
    outcome = event.get("outcome") or event.get("state")
    drill = _badge("calm", "drill") if event.get("drill") else ""
    paused = number_of(impact.get("paused_seconds"))
    rows = [
        ("Decision", mapping(event.get("decision")).get("output")),
        ("Reason", mapping(event.get("decision")).get("reason")),
        ("Stood still", None if paused is None else f"{paused:g} s"),
        ("Id", event.get("event_id")),
    ]
    head = f"<b>{as_text(fields.get('EventType') or 'event')} {as_text(outcome)}</b>{drill}"
    return f'<div class="past"><div class="head">{head}</div>{_facts(rows)}{_steps(event)}</div>'


def _past(answer: Mapping[str, Any], state: HostState) -> list[Event]:
    """Return the events of a history that are no longer pending."""
    pending = {str(event.get("life_id")) for event in state.events}
    try:
        events = [event for event in json.loads(answer.get("stdout") or "")["events"] if isinstance(event, Mapping)]
    except (ValueError, KeyError, TypeError):
        return []
    return [event for event in events if str(event.get("life_id")) not in pending]


# Words


def _facts(rows: Sequence[tuple[str, object]]) -> str:
    told = "".join(f"<dt>{name}</dt><dd>{as_text(value)}</dd>" for name, value in rows if value not in (None, ""))
    return f"<dl>{told}</dl>" if told else ""


def _steps(event: Event) -> str:
    found = [(str(event[name]), word) for name, word in STEPS if event.get(name)]
    told = "".join(f"<li>{_time(at)} {word}</li>" for at, word in sorted(found))
    return f'<ol class="steps">{told}</ol>' if told else ""


def _badge(mark: str, text: object) -> str:
    icon = f'<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d="{_ICONS[mark]}"/></svg>'
    return f'<span class="badge {mark}">{icon}{as_text(text)}</span>'


def _time(value: object) -> str:
    return f"<time>{as_text(clock(value))}</time>"


def _span(seconds: float) -> str:
    rest = int(seconds)
    for unit, length, below in (("d", 86400, "h"), ("h", 3600, "min"), ("min", 60, "s")):
        if rest >= length:
            smaller = {"h": 3600, "min": 60, "s": 1}[below]
            return f"{rest // length} {unit} {rest % length // smaller} {below}"
    return f"{rest} s"


def _list(value: object) -> Sequence[Any]:
    return value if isinstance(value, (list, tuple)) else ()
