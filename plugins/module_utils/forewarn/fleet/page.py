# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state of a fleet as one HTML page, without scripts, fonts, or anything else that a browser would load."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, List, Tuple

from ..pages import render
from ..texts import duration_text, exact_text
from .events import FleetEvent, HostEvent, decisions, differences, fleet_events, moment_text, progress, source
from .status import Event, HostState, affects, host_states, listed, mapping, names
from .table import host_and_vm, pauses, policies, same_trouble, summary
from .timeline import STEPS, clock, moment_of, number_of, seconds_left, timeline

Facts = List[Tuple[str, Any]]  # names and values

# The colours of badges: for the state of an event, and for a host.
_STATES = {
    **dict.fromkeys(("failed", "not-recovered"), "error"),
    **dict.fromkeys(("held", "seen", "preparing"), "warning"),
    **dict.fromkeys(("approved", "prepared", "finished", "recovered"), "approve"),
}
_LEVELS = {"trouble": "error", "pending": "warning", "quiet": "approve"}
_MOST_ROWS = 12  # of a section, before the rest is folded


def page(reports: Mapping[str, Mapping[str, Any]], made_at: str, since: str) -> str:
    """Return the page of registered results of the module ``runner_report`` by host, with their histories."""
    states = host_states(reports)
    pending = fleet_events(states)
    pasts = _pasts(states, reports, {event.event_id.lower() for event in pending})
    return _render(states, pending, pasts, made_at, since)


def page_of_states(states: Sequence[HostState], made_at: str) -> str:
    """Return the page of hosts without their histories. ``made_at`` is a time in ISO 8601."""
    return _render(states, fleet_events(states), {}, made_at, "")


def _render(
    states: Sequence[HostState],
    pending: Sequence[FleetEvent],
    pasts: Mapping[str, Sequence[Event]],
    made_at: str,
    since: str,
) -> str:
    past = sorted(fleet_events(states, pasts), key=lambda event: str(event.event.get("first_seen")))
    return render(
        Path(__file__).with_name("page.html.j2"),
        title="Scheduled events of the fleet",
        summary=summary(states, pending),
        made_at=clock(made_at),
        since=since,
        tiles=_tiles(states, pending),
        most_rows=_MOST_ROWS,
        paused=[(names(hosts), text) for hosts, text in pauses(states)],
        trouble=[(names(hosts), problems) for hosts, problems in same_trouble(states)],
        pending=[_event(event, made_at) for event in pending],
        timeline=timeline(_affecting(states, {state.host: state.events for state in states}), made_at),
        past_timeline=timeline(_affecting(states, pasts), made_at),
        policies=[(policy, version, len(hosts), names(hosts)) for policy, version, hosts in policies(states)],
        past=[_past_event(event) for event in reversed(past)],
        hosts=[_host(state) for state in states],
    )


def _tiles(states: Sequence[HostState], pending: Sequence[FleetEvent]) -> list[tuple[object, str]]:
    times = [left for event in pending if (left := seconds_left(event.event)) is not None and left > 0]
    return [
        (len(states), "host" if len(states) == 1 else "hosts"),
        (sum(state.level == "trouble" for state in states), "with trouble"),
        (len(pending), "event pending" if len(pending) == 1 else "events pending"),
        (duration_text(min(times)) if times else "–", "until the next one starts"),
    ]


def _event(event: FleetEvent, made_at: str) -> dict[str, Any]:
    its = event.event
    fields = mapping(its.get("event"))
    return {
        "kind": event.kind,
        "starts": its.get("starts") or "",
        "drill": event.drill,
        "source": source(its),
        "share": _share(its, made_at),
        "decisions": [_by_hosts(said) for said in decisions(event)],
        "differences": [_by_hosts(said) for said in differences(event)],
        "facts": _given(
            ("Not before", moment_text(fields.get("NotBefore"))),
            ("Description", fields.get("Description")),
            ("Id", event.event_id),
        ),
        "hosts": [_on_host(report) for report in event.affected],
        "missing": event.missing,
        "neighbours": len(event.neighbours),
    }


def _on_host(report: HostEvent) -> dict[str, Any]:
    state, event = report
    hooks = [hook for hook in listed(event.get("hooks")) if isinstance(hook, Mapping)]
    return {
        "host": host_and_vm(state),
        "state": event.get("state") or "-",
        "mark": _STATES.get(str(event.get("state")), "same"),
        "dry": state.dry_run,
        "progress": progress(event),
        "facts": _given(
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


def _host(state: HostState) -> dict[str, Any]:
    return {
        "name": host_and_vm(state),
        "level": state.level,
        "mark": _LEVELS[state.level],
        "dry": state.dry_run,
        "facts": _given(
            ("Runner", state.health.get("runner") or state.runner),
            ("Service", state.health.get("service") or state.service),
            ("Approvals", None if state.pause is None else f"paused until {state.pause.until}"),
            *([("Group", state.health["group"])] if state.health.get("group") else []),
            ("Policy", None if state.policy is None else str(state.policy)),
            ("Version", state.version),
        ),
    }


def _past_event(event: FleetEvent) -> dict[str, Any]:
    return {
        "kind": event.kind,
        "outcome": event.event.get("outcome") or event.event.get("state") or "",
        "drill": event.drill,
        "facts": _given(
            *(("Decision", _by_hosts(said)) for said in decisions(event)),
            *(("Affected", _outcome(report)) for report in event.affected),
            ("Affected", ", ".join(name for name, _why in event.missing)),
            ("Id", event.event_id),
        ),
        "steps": _steps(event.event),
    }


def _outcome(report: HostEvent) -> str:
    paused = number_of(mapping(report.event.get("impact")).get("paused_seconds"))
    outcome = report.event.get("outcome") or report.event.get("state") or "-"
    return f"{host_and_vm(report.state)}: {outcome}" + (
        "" if paused is None else f", stood still for {exact_text(paused)}"
    )


def _pasts(
    states: Sequence[HostState], reports: Mapping[str, Mapping[str, Any]], pending: set[str]
) -> dict[str, list[Event]]:
    """Return by host the events of the histories that no host lists any more.

    Every VM records the events of its neighbours. They count only if no other host has reported them.
    """
    found: dict[str, list[Event]] = {}
    others: dict[str, tuple[str, Event]] = {}
    known = set(pending)
    for state in states:
        for event in _history(mapping(reports.get(state.host))):
            event_id = str(event.get("event_id")).lower()
            if event_id in pending:
                continue
            if affects(event, state):
                found.setdefault(state.host, []).append(event)
                known.add(event_id)
            else:
                others.setdefault(event_id, (state.host, event))
    for event_id, (host, event) in others.items():
        if event_id not in known:
            found.setdefault(host, []).append(event)
    return found


def _history(answer: Mapping[str, Any]) -> list[Event]:
    try:
        found = json.loads(answer.get("history") or "")
    except (ValueError, TypeError, RecursionError):
        return []
    return [event for event in listed(mapping(found).get("events")) if isinstance(event, Mapping)]


def _affecting(states: Sequence[HostState], events: Mapping[str, Sequence[Event]]) -> dict[str, list[Event]]:
    """Return of events by host those that affect the host's VM."""
    return {state.host: [event for event in events.get(state.host, ()) if affects(event, state)] for state in states}


def _by_hosts(said: tuple[str, str]) -> str:
    text, hosts = said
    return f"{text} [{hosts}]" if hosts else text


def _given(*facts: tuple[str, Any]) -> Facts:
    return [(name, value) for name, value in facts if value not in (None, "")]


def _steps(event: Event) -> list[tuple[str, str]]:
    found = sorted((str(event[name]), word) for name, word in STEPS if event.get(name))
    return [(clock(at), word) for at, word in found]
