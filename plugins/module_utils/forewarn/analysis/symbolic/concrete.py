# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A class of events made concrete: what the evaluator sees of it, and an event that a runner could get."""

from __future__ import annotations

import itertools
import json
from collections.abc import Container, Iterator, Mapping
from datetime import datetime, timedelta, timezone
from typing import Any, NamedTuple

from ...events import LATEST_API_VERSION, VM_FACTS, Document, Event, Vm, format_time, has_field, parse_document
from ...policy.decision import Facts
from ...policy.evaluate import ABSENT
from ...policy.timevalues import SECOND, format_duration, format_timestamp, from_datetime
from .domains import MISSING, duration_text

Assignment = Mapping[str, Any]  # name of a dimension -> concrete value

_NOW = datetime(2026, 1, 1, tzinfo=timezone.utc)
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_VM = "vm_0"
_USUAL_NOTICE = 15 * 60 * SECOND  # SE-20
# Times at which an event is looked at where the clock is asked for in a way that is not understood: hours and days of
# the week that differ, then months.
MOMENTS = tuple(
    from_datetime(_NOW + ahead)
    for ahead in (
        *(timedelta(hours=29 * number) for number in range(8)),
        *(timedelta(days=61 * number, hours=4 * number) for number in range(1, 6)),
    )
)
EVENT_ID = "00000000-0000-4000-8000-000000000001"


class Witness(NamedTuple):
    """One event of a class with everything that a decision about it reads.

    ``event`` is as the service writes it. ``params`` are JSON values, those of the class's dimensions alone.
    """

    event: Mapping[str, Any]
    document: Document
    facts: Facts
    params: Mapping[str, Any]

    @property
    def explain(self) -> list[str]:
        """The arguments of ``forewarn policy explain``, beside ``--policy`` and ``--event``, that repeat the case."""
        arguments = ["--now", format_time(self.facts.now)]
        first_seen = self.facts.first_seen.get(self.document.events[0].key, self.facts.now)
        if first_seen != self.facts.now:
            arguments += ["--first-seen", format_time(first_seen)]
        for fact, value in self.facts.vm.as_dict().items():
            if fact == "tags":
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
        first_seen = self.facts.first_seen.get(self.document.events[0].key, self.facts.now)
        given["now"] = format_time(self.facts.now)
        if first_seen != self.facts.now:
            given["age"] = duration_text(from_datetime(self.facts.now) - from_datetime(first_seen))
        if self.params:
            given["params"] = dict(self.params)
        return given

    def as_dict(self) -> dict[str, Any]:
        """Return the case for ``--json``."""
        return {
            "event": dict(self.event),
            "now": format_time(self.facts.now),
            "first_seen": format_time(self.facts.first_seen.get(self.document.events[0].key, self.facts.now)),
            "vm": self.facts.vm.as_dict(),
            "params": dict(self.params),
        }


def roots(values: Assignment, params: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what an expression reads, in the order of program.ROOTS, of a class of which ``values`` are known.

    What no dimension tells is left out, so an expression must read nothing else.
    """
    event = {name[6:]: value for name, value in values.items() if name.startswith("event.") and value is not MISSING}
    now = values.get("now", from_datetime(_NOW))
    lead = values.get("notice", MISSING)
    notice: Any = ABSENT
    if lead is not MISSING:
        event["NotBefore"] = now + lead
        notice = max(0, lead)
    if event.get("EventStatus") == "Started":
        notice = 0
    event["Resources"] = _resources(values, None)
    known = values.get("vm.name") is not MISSING
    place = values.get("place")
    vm = {name[3:]: value for name, value in values.items() if name.startswith("vm.") and value is not MISSING}
    if vm.pop("tags", False):
        vm["tags"] = _tags(values)
    given = {**params, **{name[7:]: value for name, value in values.items() if name.startswith("params.")}}
    return (
        *(event, ABSENT, notice, values.get("age", 0), now),
        *((place != "not listed", place == "leader") if known else (ABSENT, ABSENT)),
        *(vm, given),
    )


def _tags(values: Assignment) -> dict[str, str]:
    return {name[4:]: value for name, value in values.items() if name.startswith("tag:") and value is not MISSING}


def _resources(values: Assignment, vm: str | None) -> list[str]:
    """Return the names that an event lists: ``vm`` at its place, those asked for, and others up to the number."""
    asked = {name[6:]: value for name, value in values.items() if name.startswith("names:")}
    named = [name for name, value in asked.items() if value]
    taken = {name.lower() for name in (*asked, vm or _VM, str(values.get("vm.name", _VM)))}
    others = (name for name in _unasked("vm_") if name.lower() not in taken)
    place = values.get("place", "leader") if vm is not None else "not listed"
    if place != "not listed" and vm is not None:
        rest = [name for name in named if name != vm]
        named = [vm, *rest] if place == "leader" else [*(rest[:1] or [next(others)]), vm, *rest[1:]]
    while len(named) < values.get("count", 1):
        named.append(next(others))
    return named


def _unasked(stem: str) -> Iterator[str]:
    if not stem.endswith("_"):
        yield stem
    yield from (f"{stem}{number}" for number in itertools.count(1))


def spelling(name: str, values: Assignment) -> str | None:
    """Return how a VM of a name is listed in a class: names of VMs are not told apart by case.

    None if each way to spell it is asked for, and denied.
    """
    asked = {one[6:]: value for one, value in values.items() if one.startswith("names:")}
    listed = [one for one, value in asked.items() if value and one.lower() == name.lower()]
    if listed or name not in asked:
        return listed[0] if listed else name
    return other_spelling(name, asked)


def other_spelling(name: str, taken: Container[str]) -> str | None:
    """Return a name that is the same to Azure, in other letters, and not among ``taken``. None if there is none."""
    cases = [(one.swapcase(), one) if one.isascii() and one.isalpha() else (one,) for one in name]
    return next((one for one in map("".join, itertools.product(*cases)) if one not in taken), None)


def witness(values: Assignment, params: Mapping[str, str], api_version: str) -> Witness:
    """Return an event of a class. ``params`` maps the names of parameters among the dimensions to their types."""
    now_ns = values.get("now", from_datetime(_NOW))
    now = _EPOCH + timedelta(microseconds=now_ns // 1000)
    name = None if values.get("vm.name") is MISSING else values.get("vm.name", _VM)
    listed = None if name is None else spelling(name, values)
    if "place" not in values:  # it leads if that may be
        named = [one[6:] for one, value in values.items() if one.startswith("names:") and value]
        room = listed in named or len(named) < values.get("count", len(named) + 1)
        values = {**values, "place": "leader" if listed is not None and room else "not listed"}
    event: dict[str, Any] = {
        "EventId": EVENT_ID,
        "EventType": "Freeze",
        "ResourceType": "VirtualMachine",
        "Resources": _resources(values, listed),
        "EventStatus": "Scheduled",
        "NotBefore": "",
        "EventSource": "Platform",
        "DurationInSeconds": -1,
    }
    for dimension, value in values.items():
        if dimension.startswith("event."):
            event[dimension[6:]] = value
    lead = values.get("notice", MISSING if event["EventStatus"] == "Started" else _USUAL_NOTICE)
    if lead is not MISSING:
        event["NotBefore"] = format_time(_EPOCH + timedelta(microseconds=(now_ns + lead) // 1000))
    event = {name: value for name, value in event.items() if value is not MISSING and has_field(api_version, name)}
    if api_version == "2017-03-01":
        event["Resources"] = ["_" + one for one in event["Resources"]]
    document = parse_document(json.dumps({"DocumentIncarnation": 1, "Events": [event]}), api_version)
    facts_of_vm = {
        key[3:]: value
        for key, value in values.items()
        if key.startswith("vm.") and key not in ("vm.name", "vm.tags") and value is not MISSING
    }
    tags = None
    if values.get("vm.tags", False):
        # 'policy explain' cannot be told of a VM without any tag, so it has one that nobody asks for.
        tags = _tags(values) or {next(name for name in _unasked("other") if f"tag:{name}" not in values): "x"}
    first_seen = now - timedelta(microseconds=values.get("age", 0) // 1000)
    seen = {one.key: first_seen for one in document.events}
    facts = Facts(now, Vm(name=name, tags=tags, **facts_of_vm), seen)
    given = {key[7:]: _as_json(value, params[key[7:]]) for key, value in values.items() if key.startswith("params.")}
    return Witness(event, document, facts, given)


def _as_json(value: Any, kind: str) -> Any:
    if kind == "duration":
        return format_duration(value)
    return format_timestamp(value) if kind == "timestamp" else value


def observed(event: Event, facts: Facts, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the dimensions read of a concrete case: the opposite of ``witness``.

    Keys are dimensions that stand alone; those of single tags, names and parameters are asked for by the caller.
    """
    now = from_datetime(facts.now)
    fields = event.as_dict()
    values: dict[str, Any] = {f"event.{name}": fields.get(name, MISSING) for name in _FIELDS}
    values["notice"] = MISSING if event.not_before is None else from_datetime(event.not_before) - now
    values["now"] = now
    values["age"] = max(0, now - from_datetime(facts.first_seen.get(event.key, facts.now)))
    values["count"] = len(event.resources)
    place = event.place_of(facts.vm.name)
    values["place"] = "not listed" if place is None else "leader" if place == 0 else "further down"
    for fact in VM_FACTS:
        value = getattr(facts.vm, fact)
        values[f"vm.{fact}"] = MISSING if value is None else value
    values["vm.tags"] = facts.vm.tags is not None
    values.update({f"tag:{tag}": text for tag, text in (facts.vm.tags or {}).items()})
    values.update({f"names:{name}": True for name in event.resources})
    values.update({f"params.{name}": value for name, value in params.items()})
    return values


_FIELDS = ("EventId", "EventType", "ResourceType", "EventStatus", "Description", "EventSource", "DurationInSeconds")
