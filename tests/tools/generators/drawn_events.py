# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random events and parameters from pools that know nothing of the policy, for tests that judge the prover.

Each is one that the service may send, and within what the documentation of verify does not exclude.
"""

from __future__ import annotations

import json
import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any, NamedTuple

from forewarn.events import Document, Vm, event_types, format_time, has_field, parse_document
from forewarn.policy.decision import Facts

from .drawn_words import (
    LETTERS,
    MINUTES,
    NAMES,
    SECONDS,
    STRANGE_BEGINNINGS,
    STRANGE_NAMES,
    STRANGE_TEXTS,
    TAGS,
    TEXTS,
    TIMES,
    UNKNOWN_TYPES,
    ZONES,
)

LONG = 10**6  # seconds, more than any number in a policy
# The times at which policies are proven.
_FIRST = datetime(2020, 1, 1, tzinfo=timezone.utc)
_LAST = datetime(2060, 1, 1, tzinfo=timezone.utc) - timedelta(microseconds=1)
_NAMED = [datetime.fromisoformat(one[:-1]).replace(tzinfo=timezone.utc) for one in TIMES]
_MOMENTS = [_FIRST, _LAST, *(one for one in _NAMED if _FIRST <= one <= _LAST)]
_STEPS = (timedelta(0), timedelta(0), timedelta(microseconds=1), timedelta(microseconds=-1), timedelta(seconds=1))
# Values of parameters, among them many that limits forbid.
_VALUES: Mapping[str, Sequence[Any]] = {
    "n": (*SECONDS, 8, 29, 31, 59, 62, 901, -(2**63), 2**63 - 1),
    "m": (0, 1, 2, 3, 4, -1, 30),
    "d": ("0s", "59s", "1m", "5m", "5m0.000000001s", "6m", "10m", "15m", "30m", "31m", "1440m", "-5m"),
    "e": ("0s", "1s", "1m", "5m", "4m59.999999999s", "5m0.0000005s", "10m", "31m"),
    "until": (*TIMES, "2026-06-15T12:00:00.000000001Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"),
    "s": (*TEXTS, *STRANGE_TEXTS, "Reboot", "web_0", "any other"),
    "zone": (*ZONES, "Nowhere", ""),
    "r": (0.0, -0.0, 0.25, 0.5, 1.0, 1e308, -1.0, 0.30000000000000004),
    "b": (True, False),
    "names": ([], ["web_0"], ["WEB_0", "db_0"], ["any other"], [*NAMES], [*TEXTS, "", "web_0"], ["web_0", "web_0"]),
    "numbers": ([], [9], [1, 5], [-1, 60, 60]),
    "map": ({}, {"role": "web"}, {"Role": "web"}, {"a.b": "", "env": "x"}),
}


class Observation(NamedTuple):
    """One document, whose first event is the one that is judged, and the facts.

    ``normal``: the event has everything that the documentation of the service promises, and the VM's tags are known.
    ``fields`` is the first event.
    """

    document: Document
    facts: Facts
    normal: bool
    fields: Mapping[str, Any]


def params(chance: random.Random, names: Sequence[str], share: float = 0.8) -> dict[str, Any]:
    """Return values for some of the parameters."""
    return {name: chance.choice(_VALUES[name]) for name in names if chance.random() < share}


def seen(chance: random.Random, api_version: str) -> Observation:
    """Return a random event."""
    normal = chance.random() < 0.5
    now = _now(chance)
    strange = chance.random() < 0.25
    facts = _vm(chance, normal, STRANGE_NAMES if strange else NAMES)
    fields = _fields(chance, api_version, now, facts["name"], normal)
    if strange:
        fields["Resources"] = _resources(chance, facts["name"], STRANGE_NAMES)
        if "Description" in fields:
            fields["Description"] = _strange(chance)
    others = [
        {**_fields(chance, api_version, now, facts["name"], normal=False), "EventId": f"other {number}"}
        for number in range(chance.choice((0, 0, 0, 0, 1, 2)))
    ]
    age = timedelta(minutes=chance.choice((0, 0, 0, *MINUTES))) + chance.choice(_STEPS)
    return made([fields, *others], now, max(age, timedelta(0)), Vm(**facts), normal, api_version)


def made(
    events: Sequence[Mapping[str, Any]], now: datetime, age: timedelta, vm: Vm, normal: bool, api_version: str
) -> Observation:
    """Return the case of events as the service writes them."""
    document = parse_document(json.dumps({"DocumentIncarnation": 1, "Events": list(events)}), api_version)
    facts = Facts(now, vm, {one.key: now - age for one in document.events})
    return Observation(document, facts, normal, events[0])


def longer(one: Observation, seconds: int) -> Observation:
    """Return the same event with another duration."""
    first_seen = one.facts.first_seen[one.document.events[0].key]
    fields = {**one.fields, "DurationInSeconds": seconds}
    age = one.facts.now - first_seen
    return made([fields], one.facts.now, age, one.facts.vm, one.normal, one.document.api_version)


def alike(one: Observation, chance: random.Random) -> Observation:
    """Return an event of the same kind on the same VM, with another source, description, time, notice or age."""
    now = _now(chance) if chance.random() < 0.5 else one.facts.now
    again = _fields(chance, one.document.api_version, now, one.facts.vm.name, normal=True)
    taken = [name for name in ("EventSource", "Description") if chance.random() < 0.6]
    fields = {**one.fields, **{name: again[name] for name in taken if name in again}}
    if one.fields["EventStatus"] == "Scheduled":
        fields["NotBefore"] = format_time(now + _lead(chance, normal=True))
    age = timedelta(minutes=chance.choice((0, *MINUTES)))
    return made([fields], now, age, one.facts.vm, one.normal, one.document.api_version)


def elsewhere(one: Observation, chance: random.Random) -> Observation | None:
    """Return the same event on another of its VMs, at the same time; None if it has no other."""
    own = (one.facts.vm.name or "").lower()
    names = [name for name in one.document.events[0].resources if name.lower() != own]
    if not names:
        return None
    vm = one.facts.vm
    moved = Vm(**_vm(chance, True, names)) if chance.random() < 0.5 else vm._replace(name=chance.choice(names))
    return one._replace(facts=one.facts._replace(vm=moved))


def _now(chance: random.Random) -> datetime:
    if chance.random() < 0.2:
        moment = chance.choice(_MOMENTS) + chance.choice(_STEPS) - timedelta(hours=chance.choice((0, 0, 1, 24)))
        return min(max(_FIRST, moment), _LAST)
    days = chance.randrange(365 * 39) if chance.random() < 0.7 else chance.randrange(365)
    hours = timedelta(hours=chance.randrange(24), minutes=chance.choice((0, 7, 30, 59)))
    fraction = timedelta(seconds=chance.choice((0, 59)), microseconds=chance.choice((0, 0, 1, 999_999)))
    begin = datetime(2020 if days >= 365 else 2026, 1, 2, tzinfo=timezone.utc)
    return begin + timedelta(days=days) + hours + fraction


def _lead(chance: random.Random, normal: bool) -> timedelta:
    lead = timedelta(minutes=chance.choice(MINUTES)) + chance.choice(_STEPS)
    if normal:
        return max(lead, timedelta(0))
    return lead if chance.random() < 0.7 else -lead


def _strange(chance: random.Random) -> str:
    kind = chance.random()
    begin, end = chance.choice(STRANGE_BEGINNINGS), chance.choice((*LETTERS, *STRANGE_BEGINNINGS))
    return chance.choice(STRANGE_TEXTS) if kind < 0.3 else begin + end if kind < 0.8 else begin + end + begin


def _vm(chance: random.Random, normal: bool, names: Sequence[str]) -> dict[str, Any]:
    facts: dict[str, Any] = {"name": chance.choice(names if normal or chance.random() < 0.8 else (None,))}
    others = ("location", "zone", "size", "scale_set", "fault_domain")
    facts.update({one: chance.choice((None, "1", "2", "01", *TEXTS)) for one in others})
    if normal:  # what a runner always knows
        facts.update({one: facts[one] or "x" for one in ("location", "size")})
    listed = chance.sample(TAGS, chance.choice((0, 1, 2, 5)))
    tags = {tag: chance.choice(TEXTS) for tag in listed}
    return {**facts, "tags": tags if normal or chance.random() < 0.8 else None}


def _fields(chance: random.Random, api_version: str, now: datetime, name: str | None, normal: bool) -> dict[str, Any]:
    known = event_types(api_version)
    started = chance.random() < 0.2
    status = "Started" if started else "Scheduled"
    if not normal and chance.random() < 0.05:
        status = chance.choice(("Completed", "Paused"))
    fields: dict[str, Any] = {
        "EventId": chance.choice(("a", "A", "0-1", *(one for one in TEXTS if one))),
        "EventType": chance.choice(known if normal or chance.random() < 0.9 else UNKNOWN_TYPES),
        "ResourceType": "VirtualMachine",
        "Resources": _resources(chance, name),
        "EventStatus": status,
        "NotBefore": "" if started else format_time(now + _lead(chance, normal)),
        "Description": chance.choice((*TEXTS, "aab", "Thing")),
        "EventSource": chance.choice(("Platform", "User")),
        "DurationInSeconds": max(-1, chance.choice(SECONDS) + chance.choice((-1, 0, 0, 1))),
    }
    if not normal:
        lost = [
            one for one in ("ResourceType", "Description", "EventSource", "DurationInSeconds") if chance.random() < 0.1
        ]
        fields = {one: value for one, value in fields.items() if one not in lost}
        if chance.random() < 0.1:  # the service lists each VM once
            again = chance.choice(fields["Resources"])
            fields["Resources"] = [*fields["Resources"], chance.choice((again, again, again.swapcase()))]
        if chance.random() < 0.1:
            fields["NotBefore"] = ""
        if chance.random() < 0.1 and "DurationInSeconds" in fields:
            fields["DurationInSeconds"] = chance.choice((LONG, 2**31, 2**63 - 1))
        if chance.random() < 0.05 and "EventSource" in fields:
            fields["EventSource"] = "Nobody"
    return {one: value for one, value in fields.items() if has_field(api_version, one)}


def _resources(chance: random.Random, name: str | None, names: Sequence[str] = NAMES) -> list[str]:
    listed = {one.lower(): one for one in chance.sample(names, chance.choice((0, 0, 1, 2, 3)))}
    if name is not None and chance.random() < 0.7:
        listed[name.lower()] = chance.choice((name, name, name.upper(), name.swapcase()))
    found = chance.sample(list(listed.values()), len(listed))
    if chance.random() < 0.03:
        found += [f"more_{number}" for number in range(30)]
    return found or [chance.choice(("vm_9", "any other"))]


def pool(chance: random.Random, api_version: str, count: int) -> list[Observation]:
    """Return many events, to be used for many policies."""
    return [seen(chance, api_version) for _ in range(count)]


def several(
    chance: random.Random, names: Sequence[str], count: int, always: Collection[str] = ()
) -> Iterator[dict[str, Any]]:
    """Yield values of parameters: first only those that are always given, then others as well."""
    yield params(chance, sorted(always), 1.0)
    for _ in range(count if names else 0):
        yield {**params(chance, sorted(always), 1.0), **params(chance, names)}
