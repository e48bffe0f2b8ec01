# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state of a host, read from a result of the task ``scheduled_events`` instead of a runner's report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..texts import duration_text
from .host_answers import lines, no_connection, one_line
from .status import Event, HostState, listed, mapping
from .timeline import number_of

# The fields of an event, in the result and under the service's own names.
_FIELDS = {
    "event_type": "EventType",
    "event_status": "EventStatus",
    "event_source": "EventSource",
    "resources": "Resources",
    "not_before": "NotBefore",
    "duration_in_seconds": "DurationInSeconds",
    "description": "Description",
}


def adhoc_state(host: str, result: Mapping[str, Any], check_mode: bool) -> HostState:
    """Return the state of a host; a result without events is trouble, as Ansible or the task says."""
    if result.get("unreachable"):
        return HostState(host, "", [], [no_connection(str(result.get("msg") or ""))])
    if result.get("failed") or "events" not in result:
        # Where a module cannot run at all, what it wrote says why.
        wrote = one_line(result.get("module_stderr") or result.get("module_stdout") or "")
        return HostState(host, "", [], [wrote] if wrote else lines(result.get("msg") or "no events in the result"))
    decisions = {str(mapping(one).get("event_id")): mapping(one) for one in listed(result.get("decisions"))}
    approved = {str(event_id) for event_id in listed(result.get("approved"))}
    events, problems = [], []
    for its in listed(result["events"]):
        fields = mapping(its)
        event_id = str(fields.get("event_id"))
        decision = decisions.get(event_id, {})
        state = _state(fields, decision)
        if event_id in approved:
            state = "would be approved" if check_mode else "approved"
        events.append(_event(fields, decision, state, str(result.get("read_at") or "")))
        problems += [f"{fields.get('event_type')} {event_id}: {problem}" for problem in listed(fields.get("problems"))]
    unread = [f"the document cannot be read in full: {problem}" for problem in listed(result.get("problems"))]
    unknown = [str(problem) for problem in listed(result.get("vm_problems"))]
    vm = str(mapping(result.get("vm")).get("name") or "")
    return HostState(host, vm, events, [*unknown, *unread, *problems])


def _state(fields: Mapping[str, Any], decision: Mapping[str, Any]) -> str:
    if not decision:
        return str(fields.get("event_status") or "-").lower()
    if decision.get("output") == "approve":
        return str(mapping(decision.get("eligibility")).get("code") or "approve")
    return "held"


def _event(fields: Mapping[str, Any], decision: Mapping[str, Any], state: str, read_at: str) -> Event:
    """Return an event in the shape of ``forewarn status --json``."""
    started = fields.get("event_status") == "Started"
    left = number_of(fields.get("notice_seconds"))
    its = mapping(decision.get("eligibility"))
    kept_back = decision.get("output") == "approve" and its.get("code") != "approve"
    return {
        "event_id": fields.get("event_id"),
        "event": {name: fields.get(key) for key, name in _FIELDS.items()},
        "state": state,
        "decision": decision or None,
        "starts": "under way" if started else _starts(left),
        "started_at": read_at if started else None,
        "seconds_to_not_before": left,
        "waits_for": f"nothing: {its.get('reason')}" if kept_back else "",
    }


def _starts(left: float | None) -> str:
    if left is None:
        return "at an unknown time"
    return f"in {duration_text(left)}" if left > 0 else "any moment"
