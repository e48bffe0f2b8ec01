# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The metrics about open events. A series with an event's id is gone as soon as the event is no longer open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..clocks import Clocks
from ..event_record import EventRecord
from .metrics import Metrics, Value, seconds_until

MOST_RESOURCES = 20  # of an event, this VM first; docs/observability/README.md says so


def set_event_metrics(metrics: Metrics, records: Sequence[EventRecord], vm: str | None, clocks: Clocks) -> None:
    """Replace the series of all open events. ``vm`` is the name of this VM, None if unknown."""
    numbers: dict[tuple[object, ...], float] = {}
    notices: dict[tuple[object, ...], Value] = {}
    infos: dict[str, tuple[object, ...]] = {}
    times: dict[tuple[object, ...], Value] = {}
    named: dict[tuple[object, ...], Value] = {}
    for record in records:
        event, drill = record.event, record.drill
        key = (record.state, event.event_type, drill)
        numbers[key] = numbers.get(key, 0.0) + 1.0
        if record.listed and event.event_status != "Started" and event.not_before is not None:
            moment = event.not_before.timestamp()
            notices[event.event_id, event.event_type, drill] = seconds_until(moment, clocks)
        infos[event.event_id] = _info(record)  # one for each id, so that queries can join by it
        times.update({(event.event_id, step): moment for step, moment in _times(record).items()})
        named.update({(event.event_id, name): 1.0 for name in _resources(event.resources, vm)})
    metrics.replace("forewarn_events", numbers)
    metrics.replace("forewarn_event_notice_seconds", notices)
    metrics.replace("forewarn_event_info", {(event_id, *info): 1.0 for event_id, info in infos.items()})
    metrics.replace("forewarn_event_timestamp_seconds", times)
    metrics.replace("forewarn_event_resource_info", named)


def answer_of(record: EventRecord) -> tuple[object, ...]:
    """Return the latest decision about an event: output, policy and rule, each None if there is none."""
    decision: Mapping[str, Any] = record.decision or {}
    return tuple(decision.get(name) for name in ("output", "policy", "rule"))


def _info(record: EventRecord) -> tuple[object, ...]:
    event = record.event
    duration = event.duration_in_seconds
    about = (event.event_type, event.event_status, event.event_source, None if duration is None else f"{duration:g}")
    return (*about, record.state, record.affected, *answer_of(record), record.drill)


def _times(record: EventRecord) -> dict[str, float]:
    stamps = {
        "first-seen": record.first_seen,
        "approved": record.approved_at,
        "started": record.started_at,
        "gone": record.gone_at,
    }
    found = {step: stamp.wall for step, stamp in stamps.items() if stamp is not None}
    not_before = record.event.not_before
    return found if not_before is None else {"not-before": not_before.timestamp(), **found}


def _resources(names: Sequence[str], vm: str | None) -> list[str]:
    """Return the first names of Resources; that of this VM is always among them."""
    own = (vm or "").lower()
    return sorted(names, key=lambda name: name.lower() != own)[:MOST_RESOURCES]
