# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The parts of the model: one event, one VM's approval, one deployment's switch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..errors import InputError
from .spec import EventSpec

SCHEDULED, STARTED, FINISHED, CANCELLED = "Scheduled", "Started", "Finished", "Cancelled"


class UnknownNameError(InputError):
    """There is no such event, or no such VM."""


class WrongStateError(InputError):
    """The event's state forbids the action: for example, a started event cannot be cancelled."""


@dataclass(frozen=True)
class EmulatedTime:
    """When something happened: in emulated seconds, in seconds since 1970, and as ``time.monotonic()``."""

    emulated: float
    wall: float
    monotonic: float


@dataclass(frozen=True)
class Approval:
    """One VM's StartRequest, as it arrived."""

    vm: str
    at: EmulatedTime


@dataclass(frozen=True)
class Transition:
    """Something that happened to an event or a deployment; ``detail`` is for people."""

    at: EmulatedTime
    kind: str
    subject: str
    detail: str = ""


@dataclass(frozen=True)
class ListedEvent:
    """An event as a document lists it. ``not_before`` is in seconds since 1970, None once started (SE-16).

    ``preview_resources``: the names in Resources as api-version 2017-03-01 spells them.
    """

    event_id: str
    spec: EventSpec
    status: str
    not_before: int | None
    preview_resources: tuple[str, ...]


@dataclass
class EmulatedEvent:
    """One event as the emulated service keeps it.

    ``deadline`` is the requested moment. ``not_before`` is the same in real seconds since 1970, rounded up to whole
    seconds. ``start_at`` is the moment, no earlier than either, at which the event starts unless approved.
    """

    event_id: str
    spec: EventSpec
    created: EmulatedTime
    deadline: float
    not_before: int
    start_at: float
    status: str = SCHEDULED
    approvals: list[Approval] = field(default_factory=list)
    approved_start: float | None = None
    started: EmulatedTime | None = None
    started_by: str | None = None
    gone_at: float | None = None
    impacts: list[tuple[float, float]] = field(default_factory=list)
    ended: EmulatedTime | None = None
    visible_since: dict[str, EmulatedTime] = field(default_factory=dict)
    # The other fault domains (SE-24), served one after another once this event has finished.
    followers: tuple[EventSpec, ...] = ()
    pause: float = 0.0
    preview_resources: tuple[str, ...] = ()

    @property
    def listed(self) -> bool:
        """Whether the service still has the event (SE-15)."""
        return self.status in (SCHEDULED, STARTED)

    @property
    def due(self) -> float | None:
        """The moment of the next transition that happens by itself, or None once the event is over."""
        if self.status == SCHEDULED:
            return self.start_at if self.approved_start is None else min(self.start_at, self.approved_start)
        return self.gone_at if self.status == STARTED else None

    def listing(self) -> ListedEvent:
        """Return the event as a document lists it."""
        not_before = self.not_before if self.status == SCHEDULED else None
        return ListedEvent(self.event_id, self.spec, self.status, not_before, self.preview_resources)

    def as_dict(self, now: float) -> dict[str, Any]:
        """Return everything about the event, for the control API, as ``service.json_response`` writes it."""
        return {
            "event_id": self.event_id,
            "name": self.spec.name,
            "type": self.spec.event_type,
            "resources": list(self.spec.resources),
            "source": self.spec.source,
            "status": self.status,
            "created": self.created,
            "not_before": self.not_before,
            "start_on": self.spec.start_on,
            "approvals": list(self.approvals),
            "started": self.started,
            "started_by": self.started_by,
            "impacts": [{"from": since, "until": until} for since, until in self.impacts],
            "impacted": any(since <= now < until for since, until in self.impacts),
            "gone_at": self.gone_at,
            "ended": self.ended,
            "visible_since": dict(self.visible_since),
        }


@dataclass
class Deployment:
    """Whether the service is on for a group of VMs (SE-05)."""

    name: str
    enabled: bool = False
    listing: bool = False  # on for long enough to show events
    ready_at: float = 0.0
    events_from: float = 0.0
    last_request: float = 0.0
