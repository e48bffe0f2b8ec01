# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state of a fleet, as its runners report it, and as a table for a terminal. fleet.page makes a page of it.

The texts come from many VMs and, through their events, from the service: none of them is trusted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..pages import counted, printable

Event = Mapping[str, Any]  # as forewarn status and forewarn history report it

_HEADER = ("HOST", "RUNNER", "SERVICE", "POLICY", "PENDING")
_WIDEST = 60  # of a column
_DIGITS = 12  # of a digest: enough to tell policies apart
_TROUBLE_FIRST = {"trouble": 0, "pending": 1, "quiet": 2}


class HostState(NamedTuple):
    """The state of a host. ``level`` is trouble, pending or quiet; ``problems`` are sentences.

    ``health`` holds further facts for people, by name.
    """

    host: str
    level: str
    runner: str
    service: str
    policy: str
    vm: str
    events: Sequence[Event]
    problems: Sequence[str]
    health: Mapping[str, str] = {}


def host_states(answers: Mapping[str, Mapping[str, Any]]) -> list[HostState]:
    """Read registered results of ``forewarn status --json`` by host; those with trouble come first."""
    states = [_host_state(host, answer or {}) for host, answer in answers.items()]
    return sorted(states, key=lambda state: (_TROUBLE_FIRST[state.level], state.host))


def table(answers: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the lines of a table: a row for each host, and below it a line for each further event and problem."""
    rows: list[tuple[str, ...]] = [_HEADER]
    states = host_states(answers)
    for state in states:
        details = [event_text(event) for event in state.events] + [f"! {problem}" for problem in state.problems]
        rows.append((state.host, state.runner, state.service, state.policy, details[0] if details else "-"))
        rows += [("", "", "", "", detail) for detail in details[1:]]
    shown = [tuple(printable(text, newline=r"\n") for text in row) for row in rows]
    widths = [min(_WIDEST, max(len(row[column]) for row in shown)) for column in range(len(_HEADER) - 1)]
    lines = []
    for row in shown:
        cells = [text[:_WIDEST].ljust(width) for text, width in zip(row, widths, strict=False)]
        lines.append("  ".join([*cells, row[-1]]).rstrip())
    return [*lines, summary(states)]


def summary(states: Sequence[HostState]) -> str:
    """Return a sentence on all hosts."""
    trouble = sum(state.level == "trouble" for state in states)
    events = {str(event.get("event_id")) for state in states for event in state.events}
    return f"{counted(len(states), 'host')}, {trouble} with trouble; {counted(len(events), 'event')} pending"


def event_text(event: Event) -> str:
    """Return the type of an event, its state on the host, and when it starts."""
    kind = mapping(event.get("event")).get("EventType") or "event"
    text = f"{kind} {event.get('state')}, {event.get('starts')}"
    return f"{text} (drill)" if event.get("drill") else text


def _host_state(host: str, answer: Mapping[str, Any]) -> HostState:
    try:
        report = json.loads(answer.get("stdout") or "")
        runner, service = report["runner"], report["service"]
        facts = {"runner": runner.get("text"), "service": service.get("text"), "version": runner.get("version")}
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
            {name: str(value) for name, value in facts.items() if value},
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return HostState(host, "trouble", "unknown", "-", "-", "-", [], [_why_silent(answer)])


def _why_silent(answer: Mapping[str, Any]) -> str:
    if answer.get("unreachable"):
        return f"not reached: {answer.get('msg') or 'no reason given'}"
    said = answer.get("stderr") or answer.get("msg") or "without output"
    return f"no status: {said}"


def mapping(value: object) -> Mapping[str, Any]:
    """Return an object as it is, and an empty one for anything else."""
    return value if isinstance(value, Mapping) else {}
