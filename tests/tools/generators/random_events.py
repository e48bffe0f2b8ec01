# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random events that the service may send, near the values that policies compare with, for tests of the analysis."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from typing import Any

from forewarn.analysis.event_space.domains import LONGEST, MISSING
from forewarn.analysis.event_space.resources import ResourceListed
from forewarn.analysis.event_space.space import Space
from forewarn.analysis.event_space.symbols import Tag
from forewarn.events import Event, Vm, event_types, format_time, has_field, parse_document
from forewarn.policy.decision import Facts

NOW = datetime(2026, 6, 15, 12, 0, 0, tzinfo=timezone.utc)


def around(space: Space, name: str, spread: tuple[int, ...], default: list[int], chance: random.Random) -> Any:
    """Return a value of an ordered dimension: one of its representatives, or near one, or MISSING."""
    dimension = space.by_name.get(name)
    if dimension is None:
        return chance.choice(default)
    value = chance.choice(dimension.values)
    if value.concrete is MISSING:
        return MISSING
    return value.concrete + chance.choice(spread) if isinstance(value.concrete, int) else value.concrete


def text(space: Space, name: str, further: list[Any], chance: random.Random) -> Any:
    """Return a value of a text, MISSING, or another one."""
    dimension = space.by_name.get(name)
    values = [value.concrete for value in dimension.values] if dimension else []
    return chance.choice(values + further)


def case(space: Space, types: Mapping[str, str], chance: random.Random) -> tuple[Event, Any, Facts, dict[str, Any]]:
    """Return an event, its document, facts and converted values of the parameters that vary."""
    second = 10**9
    status = text(space, "event.EventStatus", ["Scheduled", "Scheduled", "Started"], chance)
    steps = (0, 1_000, -1_000, second, -second, 60 * second, 3_000 * second)
    now = max(946_684_800 * second, around(space, "now", steps, [0], chance)) if "now" in space.by_name else 0
    moment = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=now // 1000) if now else NOW
    lead = around(space, "notice", steps, [15 * 60 * second], chance)
    if isinstance(lead, int):
        lead = max(-LONGEST, min(LONGEST, lead))
    age = max(0, around(space, "age", steps, [0, 60 * second], chance))
    count = max(1, around(space, "count", (0, 1, -1), [1, 2, 3], chance))
    named = [name.vm for name in space.symbols(ResourceListed) if chance.random() < 0.5]
    vm_name = text(space, "vm.name", ["vm_0", MISSING], chance)
    if vm_name is not MISSING and chance.random() < 0.3:
        vm_name = "".join(chance.choice((one, one.swapcase())) for one in vm_name)
    resources = list({one.lower(): one for one in [*named, *(f"vm_{number}" for number in range(1, count))]}.values())
    if chance.random() < 0.7 and vm_name is not MISSING and vm_name.lower() not in map(str.lower, resources):
        resources.append(vm_name)
    chance.shuffle(resources)
    fields: dict[str, Any] = {
        "EventId": text(space, "event.EventId", ["e"], chance),
        "EventType": text(space, "event.EventType", list(event_types(space.api_version)), chance),
        "EventStatus": status,
        "ResourceType": text(space, "event.ResourceType", ["VirtualMachine"], chance),
        "Resources": resources or ["vm_9"],
        "Description": text(space, "event.Description", ["a Freeze of the host", "", MISSING], chance),
        "EventSource": text(space, "event.EventSource", ["Platform", "User", MISSING], chance),
        "DurationInSeconds": around(space, "event.DurationInSeconds", (0, 1, -1, 2, 100), [-1, 0, 7, 900], chance),
        "NotBefore": MISSING,
    }
    if isinstance(fields["DurationInSeconds"], int):
        fields["DurationInSeconds"] = max(-1, fields["DurationInSeconds"])
    if status != "Started" and lead is not MISSING:
        fields["NotBefore"] = format_time(moment + timedelta(microseconds=lead // 1000))
    fields = {k: v for k, v in fields.items() if v is not MISSING and has_field(space.api_version, k)}
    others = [{**fields, "EventId": f"other-{number}"} for number in range(chance.choice((0, 0, 1, 2)))]
    document = parse_document(json.dumps({"DocumentIncarnation": 1, "Events": [fields, *others]}), space.api_version)
    event = document.events[0]
    assert not event.problems, (fields, event.problems)
    tags = chance.choice(({}, {"": "x"}, {"Nobody asks": "for this one"}))
    for one in space.symbols(Tag):
        if (tag := text(space, one.name, ["ANY OTHER", "X IN ANOTHER CASE", ""], chance)) is not MISSING:
            tags[one.key] = tag
    facts = {
        fact: value
        for fact in ("location", "zone", "size", "scale_set", "fault_domain")
        if (value := text(space, f"vm.{fact}", ["x", MISSING], chance)) is not MISSING
    }
    vm = Vm(
        name=None if vm_name is MISSING else vm_name,
        tags=None if "vm.tags" in space.by_name and chance.random() < 0.2 else tags,
        **facts,
    )
    params = {}
    for name in types:
        dimension = space.by_name.get(f"params.{name}")
        if dimension is None:
            continue
        value = chance.choice(dimension.values)
        params[name] = value.concrete
        if dimension.ordered and value.interval and isinstance(value.concrete, int):
            params[name] += chance.choice((0, 0, 1, 2, 17))
            if (value.high is not None and params[name] > value.high) or params[name] < (value.low or 0):
                params[name] = value.concrete
    first_seen = moment - timedelta(microseconds=age // 1000)
    return event, document, Facts(moment, vm, {event.key: first_seen}), params
