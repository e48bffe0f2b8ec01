# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Scheduled events: a brief Freeze of two VMs a quarter of an hour ahead, unless a test says something else."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

from forewarn.events import Event

NOW = datetime(2026, 5, 4, 12, 0, 0, tzinfo=timezone.utc)
GUID = "C7061BAC-AFDC-4513-B24B-AA5F13A16123"


def in_minutes(minutes: float, now: datetime = NOW) -> str:
    """Return a NotBefore as the service writes it (SE-16)."""
    return (now + timedelta(minutes=minutes)).strftime("%a, %d %b %Y %H:%M:%S GMT")


def listed(event_id: str = GUID, **fields: Any) -> dict[str, Any]:
    """Return an event as the service lists it."""
    return {
        "EventId": event_id,
        "EventStatus": "Scheduled",
        "EventType": "Freeze",
        "ResourceType": "VirtualMachine",
        "Resources": ["web_0", "web_1"],
        "NotBefore": in_minutes(15),
        "Description": "",
        "EventSource": "Platform",
        "DurationInSeconds": 5,
        **fields,
    }


# As recorded during a live migration.
MIGRATION = listed(
    Resources=["WestNO_0", "WestNO_1"],
    NotBefore="Mon, 11 Apr 2022 22:26:58 GMT",
    Description="Virtual machine is being paused because of a memory-preserving Live Migration operation.",
)


def event(event_id: str = "A", **values: Any) -> Event:
    """Return an event as the package reads it."""
    fields: dict[str, Any] = {
        "event_type": "Freeze",
        "resource_type": "VirtualMachine",
        "resources": ("web_0", "web_1"),
        "event_status": "Scheduled",
        "not_before": NOW + timedelta(minutes=15),
        "event_source": "Platform",
        "duration_in_seconds": 5,
    }
    return Event(event_id, **{**fields, **values})
