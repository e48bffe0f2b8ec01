# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An event that an analysis made, with all that a decision about it reads."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from typing import Any, NamedTuple

from ..events import LATEST_API_VERSION, Document, Vm, format_time, parse_document
from ..policy.decision import Facts
from ..policy.functions.timevalues import format_duration, format_timestamp, from_datetime
from .artifacts import Json
from .event_space.domains import duration_text

EVENT_ID = "00000000-0000-4000-8000-000000000001"
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_WRITES = {"duration": format_duration, "timestamp": format_timestamp}


class Witness(NamedTuple):
    """One event with everything that a decision about it reads.

    ``event`` is as the service writes it. ``params`` are JSON values of the parameters that vary.
    """

    event: Json
    document: Document
    facts: Facts
    params: Json

    @property
    def first_seen(self) -> datetime:
        """When the event was first seen."""
        return self.facts.first_seen.get(self.document.events[0].key, self.facts.now)

    @property
    def age(self) -> int:
        """How long ago that was, in nanoseconds."""
        return from_datetime(self.facts.now) - from_datetime(self.first_seen)

    def with_event(self, event: Json) -> Witness:
        """Return the same case with another event."""
        return self._replace(event=event, document=_document(event, self.document.api_version))

    @property
    def explain(self) -> list[str]:
        """The arguments of ``forewarn policy explain``, beside ``--policy`` and ``--event``, that repeat the case."""
        arguments = ["--now", format_time(self.facts.now)]
        if self.first_seen != self.facts.now:
            arguments += ["--first-seen", format_time(self.first_seen)]
        for fact, value in self.facts.vm.as_dict().items():
            if fact == "tags" and (not value or any("=" in tag for tag in value)):
                arguments += ["--vm", f"tags={json.dumps(value, ensure_ascii=False)}"]
            elif fact == "tags":
                arguments += [part for tag, text in value.items() for part in ("--vm", f"tags.{tag}={text}")]
            elif fact == "name":
                arguments += ["--vm-name", value]
            else:
                arguments += ["--vm", f"{fact}={value}"]
        for name, value in self.params.items():
            arguments += ["--param", f"{name}={value if isinstance(value, str) else json.dumps(value)}"]
        if self.document.api_version != LATEST_API_VERSION:
            arguments += ["--api-version", self.document.api_version]
        return arguments

    def as_test_input(self) -> dict[str, Any]:
        """Return the ``input`` of a test that repeats the case."""
        filled_in = ("EventType", "EventStatus", "NotBefore", "Resources", "ResourceType")  # where a test leaves it out
        event = {name: self.event.get(name) for name in filled_in}
        event.update({name: value for name, value in self.event.items() if name != "EventId" or value != EVENT_ID})
        given: dict[str, Any] = {"event": event, "vm": {"name": None, **self.facts.vm.as_dict()}}
        given["now"] = format_time(self.facts.now)
        if self.age:
            given["age"] = duration_text(self.age)
        if self.params:
            given["params"] = dict(self.params)
        return given

    def as_dict(self) -> dict[str, Any]:
        """Return the case for ``--json``."""
        return {
            "event": dict(self.event),
            "now": format_time(self.facts.now),
            "first_seen": format_time(self.first_seen),
            "vm": self.facts.vm.as_dict(),
            "params": dict(self.params),
        }


def witness_of(event: Json, api_version: str, vm: Vm, now_us: int, age_us: int, params: Json) -> Witness:
    """Return the witness with an event as the service writes it.

    ``now_us`` and ``age_us`` are microseconds, the former since 1970; ``params`` are JSON values.
    """
    document, now = _document(event, api_version), time_of(now_us)
    first_seen = now - timedelta(microseconds=age_us)
    return Witness(event, document, Facts(now, vm, {one.key: first_seen for one in document.events}), params)


def time_of(microseconds: int) -> datetime:
    """Return a time given in microseconds since 1970."""
    return _EPOCH + timedelta(microseconds=microseconds)


def as_json(kind: str, value: Any) -> Any:
    """Return a converted value of a parameter as JSON has it."""
    write = _WRITES.get(kind)
    return value if write is None else write(value)


def _document(event: Json, api_version: str) -> Document:
    return parse_document(json.dumps({"DocumentIncarnation": 1, "Events": [event]}), api_version)
