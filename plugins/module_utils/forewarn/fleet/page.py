# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state of a fleet as one HTML page, without scripts, fonts, or anything else that a browser would load."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..pages import render
from .status import Event, HostState, host_states, mapping, summary
from .timeline import STEPS, clock, moment_of, number_of, seconds_left, timeline

Facts = list[tuple[str, Any]]  # names and values

# The colours of badges: for the state of an event, and for a host.
_STATES = {
    **dict.fromkeys(("failed", "not-recovered"), "error"),
    **dict.fromkeys(("held", "seen", "preparing"), "warning"),
    **dict.fromkeys(("approved", "prepared", "finished", "recovered"), "approve"),
}
_LEVELS = {"trouble": "error", "pending": "warning", "quiet": "approve"}


def page(
    answers: Mapping[str, Mapping[str, Any]], histories: Mapping[str, Mapping[str, Any]], made_at: str, since: str
) -> str:
    """Return the page of registered results of ``forewarn status --json`` and ``forewarn history --json`` by host."""
    states = host_states(answers)
    pasts = {state.host: _past(histories.get(state.host) or {}, state) for state in states}
    pending = _pending(states)
    return render(
        Path(__file__).with_name("page.html.j2"),
        title="Scheduled events of the fleet",
        summary=summary(states),
        made_at=clock(made_at),
        since=since,
        tiles=_tiles(states, [on_hosts[0][1] for on_hosts in pending]),
        problems=[(state.host, problem) for state in states for problem in state.problems],
        pending=[_event(on_hosts, made_at) for on_hosts in pending],
        timeline=timeline({state.host: [*pasts[state.host], *state.events] for state in states}, made_at),
        hosts=[_host(state, pasts[state.host]) for state in states],
    )


def _tiles(states: Sequence[HostState], pending: Sequence[Event]) -> list[tuple[object, str]]:
    times = [left for event in pending if (left := seconds_left(event)) is not None and left > 0]
    return [
        (len(states), "host" if len(states) == 1 else "hosts"),
        (sum(state.level == "trouble" for state in states), "with trouble"),
        (len(pending), "event pending" if len(pending) == 1 else "events pending"),
        (_span(min(times)) if times else "–", "until the next one starts"),
    ]


def _pending(states: Sequence[HostState]) -> list[list[tuple[HostState, Event]]]:
    """Return the pending events, the next to start first, each with the hosts that list it."""
    found: dict[str, list[tuple[HostState, Event]]] = {}
    for state in states:
        for number, event in enumerate(state.events):
            found.setdefault(str(event.get("event_id") or f"{state.host} {number}"), []).append((state, event))

    def urgency(on_hosts: list[tuple[HostState, Event]]) -> tuple[bool, float]:
        left = seconds_left(on_hosts[0][1])
        return (left is None, left or 0.0)

    return sorted(found.values(), key=urgency)


def _event(on_hosts: Sequence[tuple[HostState, Event]], made_at: str) -> dict[str, Any]:
    event = on_hosts[0][1]
    fields = mapping(event.get("event"))
    return {
        "kind": fields.get("EventType") or "event",
        "starts": event.get("starts") or "",
        "drill": event.get("drill"),
        "share": _share(event, made_at),
        "facts": _given(
            ("Not before", fields.get("NotBefore") or "-"),
            ("Source", fields.get("EventSource") or "-"),
            ("Affects", ", ".join(str(name) for name in _list(fields.get("Resources"))) or "-"),
            ("Description", fields.get("Description")),
            ("Id", event.get("event_id") or "-"),
        ),
        "hosts": [_on_host(state, its) for state, its in on_hosts],
    }


def _on_host(state: HostState, event: Event) -> dict[str, Any]:
    decision = mapping(event.get("decision"))
    by = ", ".join(str(decision[name]) for name in ("policy", "rule") if decision.get(name))
    hooks = [hook for hook in _list(event.get("hooks")) if isinstance(hook, Mapping)]
    return {
        "host": state.host,
        "state": event.get("state") or "-",
        "mark": _STATES.get(str(event.get("state")), "same"),
        "facts": _given(
            ("Decision", f"{decision.get('output') or '-'}{' by ' + by if by else ''}"),
            ("Reason", decision.get("reason")),
            ("Waits for", event.get("waits_for") or "-"),
            ("Failed", event.get("failure")),
            *(("Hook", f"{hook.get('phase')} {hook.get('hook')}: {hook.get('status')}") for hook in hooks),
        ),
        "steps": _steps(event),
    }


def _share(event: Event, made_at: str) -> str | None:
    """Return the part of the notice that has passed, in percent."""
    begin, now, left = moment_of(event.get("first_seen")), moment_of(made_at), seconds_left(event)
    if begin is None or now is None or left is None or left <= 0:
        return None
    over = max(0.0, (now - begin).total_seconds())
    return f"{100 * over / (over + left):.1f}"


def _host(state: HostState, past: Sequence[Event]) -> dict[str, Any]:
    return {
        "name": state.host,
        "level": state.level,
        "mark": _LEVELS[state.level],
        "dry": state.runner.endswith(", dry run"),
        "facts": _given(
            ("VM", state.vm),
            ("Runner", state.health.get("runner") or state.runner),
            ("Service", state.health.get("service") or state.service),
            ("Policy", state.policy),
            ("Version", state.health.get("version")),
        ),
        "past": [_past_event(event) for event in past],
    }


def _past_event(event: Event) -> dict[str, Any]:
    decision = mapping(event.get("decision"))
    paused = number_of(mapping(event.get("impact")).get("paused_seconds"))
    return {
        "kind": mapping(event.get("event")).get("EventType") or "event",
        "outcome": event.get("outcome") or event.get("state"),
        "drill": event.get("drill"),
        "facts": _given(
            ("Decision", decision.get("output")),
            ("Reason", decision.get("reason")),
            ("Stood still", None if paused is None else f"{paused:g} s"),
            ("Id", event.get("event_id")),
        ),
        "steps": _steps(event),
    }


def _past(answer: Mapping[str, Any], state: HostState) -> list[Event]:
    """Return the events of a history that are no longer pending."""
    pending = {str(event.get("life_id")) for event in state.events}
    try:
        events = [event for event in json.loads(answer.get("stdout") or "")["events"] if isinstance(event, Mapping)]
    except (ValueError, KeyError, TypeError):
        return []
    return [event for event in events if str(event.get("life_id")) not in pending]


def _given(*facts: tuple[str, Any]) -> Facts:
    return [(name, value) for name, value in facts if value not in (None, "")]


def _steps(event: Event) -> list[tuple[str, str]]:
    found = sorted((str(event[name]), word) for name, word in STEPS if event.get(name))
    return [(clock(at), word) for at, word in found]


def _span(seconds: float) -> str:
    rest = int(seconds)
    for unit, length, smaller_unit, smaller in (("d", 86400, "h", 3600), ("h", 3600, "min", 60), ("min", 60, "s", 1)):
        if rest >= length:
            return f"{rest // length} {unit} {rest % length // smaller} {smaller_unit}"
    return f"{rest} s"


def _list(value: object) -> Sequence[Any]:
    return value if isinstance(value, (list, tuple)) else ()
