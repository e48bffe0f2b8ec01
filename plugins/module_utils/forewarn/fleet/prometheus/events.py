# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The open events of a fleet, made of metrics, in the shape in which ``forewarn status --json`` has them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ...events import format_time
from ..status import natural
from .queries import FleetQueries, iso, moment, span

_LABELS = ("type", "status", "source", "duration_seconds", "state", "affected", "output", "policy", "rule", "drill")
_STAMPS = {"first_seen": "first-seen", "approved_at": "approved", "started_at": "started", "gone_at": "gone"}
_SHARED_STEPS = ("not-before", "started")  # which are the same for all VMs
_AFFECTED = 'affected="true"'


def open_events(fleet: FleetQueries) -> dict[str, list[dict[str, Any]]]:
    """Return the open events by host, in the shape of ``forewarn status --json``."""
    info, moments = fleet.selector("forewarn_event_info"), fleet.selector("forewarn_event_timestamp_seconds")
    infos = list(fleet.samples(info, "event_id", *_LABELS))
    if not infos:
        return {}
    resources: dict[str, list[str]] = {}
    named = f"max by (event_id, vm) ({fleet.selector('forewarn_event_resource_info')})"
    for _no_host, sample in fleet.samples(named, "event_id", "vm"):
        resources.setdefault(sample.labels.get("event_id", ""), []).append(sample.labels.get("vm", ""))
    # Of events that do not affect a VM, the times are those that any VM reports.
    shared = f"max by (event_id, step) ({moments})"
    own = f"{moments} and on (job, instance, event_id) {fleet.selector('forewarn_event_info', _AFFECTED)}"
    times: dict[tuple[str, str], dict[str, float]] = {}
    for host, sample in (*fleet.samples(shared, "event_id", "step"), *fleet.samples(own, "event_id", "step")):
        event_id, step = (sample.labels.get(label, "") for label in ("event_id", "step"))
        times.setdefault((host, event_id), {})[step] = sample.value
    found: dict[str, list[dict[str, Any]]] = {}
    for host, sample in infos:
        labels = sample.labels
        event_id = labels.get("event_id", "")
        alike = {step: time for step, time in times.get(("", event_id), {}).items() if step in _SHARED_STEPS}
        its = times.get((host, event_id)) or alike
        vms = sorted(resources.get(event_id, ()), key=natural)
        found.setdefault(host, []).append(_event(labels, its, vms, fleet.at))
    for events in found.values():
        events.sort(key=lambda event: str(event["event_id"]))
    return found


def _event(labels: Mapping[str, str], times: Mapping[str, float], vms: Sequence[str], at: float) -> dict[str, Any]:
    not_before, state = times.get("not-before"), labels.get("state", "")
    duration = labels.get("duration_seconds")
    decision = {name: labels.get(name) or None for name in ("output", "policy", "rule")}
    return {
        "event_id": labels.get("event_id", ""),
        "state": state,
        "open": True,
        "outcome": None,
        "drill": labels.get("drill") == "true",
        "event": {
            "EventType": labels.get("type") or None,
            "EventStatus": labels.get("status") or None,
            "EventSource": labels.get("source") or None,
            "Resources": list(vms),
            "NotBefore": None if not_before is None else format_time(moment(not_before)),
            "DurationInSeconds": int(duration) if duration and re.fullmatch(r"-?\d{1,9}", duration) else None,
        },
        "decision": decision if decision["output"] else None,
        **{name: iso(times[step]) if step in times else None for name, step in _STAMPS.items()},
        "seconds_to_not_before": None if not_before is None else round(not_before - at, 3),
        "starts": _starts(times, at),
        "failure": "its preparation failed" if state == "failed" else None,
    }


def _starts(times: Mapping[str, float], at: float) -> str:
    for step in ("gone", "started"):
        if step in times:
            return f"{step} {span(at - times[step])} ago"
    if "not-before" not in times:
        return "-"
    left = times["not-before"] - at
    return f"in {span(left)}" if left > 0 else f"overdue {span(-left)}"


def name_of(event: Mapping[str, Any]) -> str:
    """Return the type and the id of an event."""
    return f"{event['event']['EventType'] or 'event'} {event['event_id']}"
