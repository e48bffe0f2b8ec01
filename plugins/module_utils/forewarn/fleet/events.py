# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The events of a fleet: each once, with what every host that lists it says about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from ..events import parse_time
from ..texts import exact_text
from .status import Event, HostState, affects, grouped, listed, mapping, names, natural, resources
from .timeline import clock, number_of, seconds_left

_MOST_NAMES = 5  # of hosts that say the same
# What all hosts should say alike about an event, under the service's own names.
_SHARED = ("EventType", "EventStatus", "NotBefore", "EventSource", "DurationInSeconds", "Resources")


class HostEvent(NamedTuple):
    """An event as one host reports it."""

    state: HostState
    event: Event


class FleetEvent(NamedTuple):
    """An event. ``affected`` and ``neighbours`` are what hosts report, in natural order.

    ``missing`` are the affected VMs of which no host reports the event, each with the reason.
    """

    event_id: str
    affected: Sequence[HostEvent]
    neighbours: Sequence[HostEvent]
    missing: Sequence[tuple[str, str]]

    @property
    def reports(self) -> list[HostEvent]:
        """Return what all hosts report, affected ones first."""
        return [*self.affected, *self.neighbours]

    @property
    def event(self) -> Event:
        """Return the event as its first host reports it."""
        return self.reports[0].event

    @property
    def kind(self) -> str:
        """Return the event's type."""
        return str(mapping(self.event.get("event")).get("EventType") or "event")

    @property
    def drill(self) -> bool:
        """Return whether it is a rehearsal."""
        return bool(self.event.get("drill"))


def fleet_events(states: Sequence[HostState], events: Mapping[str, Sequence[Event]] | None = None) -> list[FleetEvent]:
    """Return the events of all hosts: the pending ones, or those of ``events``, by host.

    Those under way come first, then the next to start.
    """
    found: dict[str, list[HostEvent]] = {}
    for state in states:
        for number, event in enumerate(state.events if events is None else events.get(state.host, ())):
            event_id = str(event.get("event_id") or "")
            found.setdefault(event_id.lower() or f"{state.host} {number}", []).append(HostEvent(state, event))
    grouped = [_fleet_event(reports, states) for reports in found.values()]
    return sorted(grouped, key=lambda one: (_urgency(one.event), one.event_id))


def _fleet_event(reports: Sequence[HostEvent], states: Sequence[HostState]) -> FleetEvent:
    affected = [report for report in reports if affects(report.event, report.state)]
    neighbours = [report for report in reports if not affects(report.event, report.state)]
    reporting = {(report.state.vm or report.state.host).lower() for report in affected}
    named = {str(name).lower(): str(name) for report in reports for name in resources(report.event)}
    absent = {key: name for key, name in named.items() if key not in reporting}
    known = {name.lower(): state for state in states for name in (state.host, state.vm) if name} if absent else {}
    missing = [(name, _why_missing(known.get(key))) for key, name in absent.items()]
    event_id = str(reports[0].event.get("event_id") or "-")
    return FleetEvent(event_id, affected, neighbours, sorted(missing, key=lambda one: natural(one[0])))


def _why_missing(state: HostState | None) -> str:
    if state is None:
        return "not among the hosts of this run"
    return state.problems[0] if state.policy is None and state.problems else "does not list the event"


def _urgency(event: Event) -> tuple[int, float]:
    if event.get("started_at"):
        return (0, 0.0)
    left = seconds_left(event)
    return (2, 0.0) if left is None else (1, left)


def when(event: Event) -> str:
    """Return when an event starts, with the time of the service's NotBefore."""
    starts, not_before = str(event.get("starts") or ""), moment_text(mapping(event.get("event")).get("NotBefore"))
    if not_before and not event.get("started_at") and starts != "-":
        return f"{starts} (not before {not_before})".lstrip()
    return starts


def moment_text(value: object) -> str:
    """Return a time as the service writes it, for people; anything else unchanged, and "" for nothing."""
    if value in (None, ""):
        return ""
    try:
        return f"{clock(parse_time(str(value)).isoformat())} UTC"
    except (ValueError, OverflowError):
        return str(value)


def progress(event: Event) -> str:
    """Return why an event has failed on a host, or what it waits for."""
    if event.get("failure"):
        return str(event["failure"])
    waits_for = str(event.get("waits_for") or "")
    known = not waits_for or waits_for == "-" or waits_for.startswith("nothing")
    return waits_for.removeprefix("nothing: ") if known else f"waits for {waits_for}"


def source(event: Event) -> str:
    """Return who has caused an event and how long the service says that it lasts, as far as is known."""
    fields = mapping(event.get("event"))
    lasts = number_of(fields.get("DurationInSeconds"))
    known = (
        f"from {fields['EventSource']}" if fields.get("EventSource") else "",
        "" if lasts is None or lasts < 0 else f"lasts {exact_text(lasts)}",
    )
    return ", ".join(text for text in known if text)


def decisions(event: FleetEvent) -> list[tuple[str, str]]:
    """Return each decision of affected hosts with its reason, and the hosts that decided so: "" if all did.

    What others decide is not about their VMs: many policies hold whatever affects others.
    """
    decided = [report for report in event.affected if mapping(report.event.get("decision"))]
    return _alike(decided, lambda report: _decision(report.event)[0], lambda report: _decision(report.event)[1])


def differences(event: FleetEvent) -> list[tuple[str, str]]:
    """Return what hosts say differently about the event itself, each with the hosts that say so."""
    found = []
    for name in _SHARED:
        said = _alike(event.reports, partial(_shared, name))
        found += [(f"{name} {text or 'missing'}", hosts) for text, hosts in said] if len(said) > 1 else []
    return found


def _alike(
    reports: Sequence[HostEvent], key: Callable[[HostEvent], str], text: Callable[[HostEvent], str] | None = None
) -> list[tuple[str, str]]:
    groups = grouped((key(report), report) for report in reports)
    return [
        (
            text(group[0]) if text else said,
            "" if len(groups) == 1 else names((report.state.host for report in group), _MOST_NAMES),
        )
        for said, group in groups.items()
    ]


def _shared(name: str, report: HostEvent) -> str:
    value = mapping(report.event.get("event")).get(name)
    if name == "NotBefore":
        return moment_text(value)
    return ", ".join(str(one) for one in listed(value)) if name == "Resources" else str(value or "")


def _decision(event: Event) -> tuple[str, str]:
    """Return a decision without its reason, which can contain the time that is left, and with it."""
    decision = mapping(event.get("decision"))
    by = [str(decision["policy"])] if decision.get("policy") else []
    by += [f"rule {decision['rule']}"] if decision.get("rule") else []
    text = f"{decision.get('output') or 'not decided'}{' by ' + ', '.join(by) if by else ''}"
    reason, rule = str(decision.get("reason") or ""), f"rule {decision.get('rule')} applies"
    reason = reason[len(rule) :].lstrip(": ") if reason.startswith(rule) else reason
    return text, f"{text}: {reason}" if reason else text
