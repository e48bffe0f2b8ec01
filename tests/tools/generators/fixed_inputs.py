# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random events at times and with texts that are hard to translate, and formulas that say "the input is this event"."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta, timezone
from random import Random
from typing import Any, NamedTuple

from forewarn.analysis.smt.encode.inputs import TEXT_FIELDS, Inputs
from forewarn.analysis.smt.terms import Formula, disj, implies, ite, neg, same
from forewarn.events import Document, Event, Vm, format_time, parse_document
from forewarn.policy.decision import Facts
from forewarn.policy.functions import timevalues as tv
from forewarn.policy.program import ROOTS
from forewarn.policy.view import DocumentView

from .cel_calls import ZONES
from .cel_variables import TEXTS

# Leap days, ends of years, changes of clocks, the ends of what a timestamp can be; zones are exact from 2000 to 2099.
MOMENTS = (
    *(
        "2024-02-28T23:59:59",
        "2024-02-29T00:00:00",
        "2024-02-29T23:59:59",
        "2024-03-01T00:00:00",
        "2023-02-28T23:59:59",
    ),
    *(
        "2024-12-30T12:00:00",
        "2024-12-31T23:59:59",
        "2025-01-01T00:00:00",
        "2025-12-31T00:00:00",
        "2026-12-31T23:00:00",
    ),
    *(
        "2000-02-29T12:00:00",
        "2096-02-29T06:00:00",
        "2099-12-31T23:59:59",
        "2000-01-01T00:00:00",
        "1999-12-31T23:59:59",
    ),
    *(
        "2026-03-29T00:59:59",
        "2026-03-29T01:00:00",
        "2026-10-25T00:59:59",
        "2026-10-25T01:00:00",
        "2026-03-08T06:59:59",
    ),
    *(
        "2026-03-08T07:00:00",
        "2026-11-01T05:59:59",
        "2026-11-01T06:00:00",
        "2026-06-15T18:14:59",
        "2026-06-15T18:15:00",
    ),
    *(
        "1970-01-01T00:00:00",
        "1969-12-31T23:59:59",
        "1900-02-28T12:00:00",
        "1900-03-01T00:00:00",
        "1600-02-29T00:00:00",
    ),
    *(
        "0001-01-01T00:00:00",
        "0001-12-31T23:59:59",
        "9999-12-31T23:59:59",
        "9999-02-28T23:00:00",
        "2400-02-29T01:00:00",
    ),
)
NAMES = ("web_0", "WEB_0", "Web_1", "web_1", "db_1", "7", "é_x", "É_x", "a", "b", "_web_0", "unheard_of")
_TAGS = ("role", "Role", "", "a", "it's", "日本")
_TEXTS = (
    *TEXTS,
    "Freeze",
    "an unknown text",
    "UNKNOWN",
    "42",
    "+7",
    "007",
    "2026-01-31T12:00:00Z",
    "1h30m",
    "x.y",
    "  ",
)
_INTS = (-(2**63), -(2**63) + 1, -61, -60, -7, -2, -1, 0, 1, 2, 3, 7, 9, 59, 60, 61, 2**62, 2**63 - 2, 2**63 - 1)
LISTS: Mapping[str, Any] = {"names": ["web_0", "b"], "sizes": [1, 2, 9], "roles": {"role": "web", "a": ""}}
SCALAR_PARAMS: Mapping[str, str] = {
    "flag": "bool",
    "n": "int",
    "ratio": "double",
    "label": "string",
    "wait": "duration",
    "since": "timestamp",
    "zone": "string",
}


class Case(NamedTuple):
    """One event and all else that an expression reads; ``params`` have values as the evaluator has them."""

    event: Event
    document: Document
    facts: Facts
    params: Mapping[str, Any]

    def roots(self) -> dict[str, Any]:
        """Return the values of all variables, as the engine has them."""
        values = DocumentView(self.document, self.facts).roots(self.event, dict(self.params))
        return dict(zip(ROOTS, values))


def _moment(chance: Random, *, today: bool = False) -> datetime:
    moments = [one for one in MOMENTS if "2020" <= one[:4] < "2060"] if today else MOMENTS
    year = chance.randint(20, 59) if today else chance.randint(0, 99)
    chosen = chance.choice(moments) if chance.random() < 0.8 else f"20{year:02}-07-01T00:00:00"
    moment = datetime.strptime(chosen, "%Y-%m-%dT%H:%M:%S").replace(tzinfo=timezone.utc)
    return moment + timedelta(microseconds=chance.choice((0, 0, 1, 999_999, 500_000)))


def _near(moment: datetime, chance: Random) -> datetime:
    seconds = chance.choice((-86_400, -60, -1, 0, 0, 1, 59, 60, 61, 300, 900, 3600, 86_400))
    try:
        return moment + timedelta(seconds=seconds, microseconds=chance.choice((0, 0, 1, -1)))
    except OverflowError:
        return moment


def case(chance: Random, *, today: bool = False, repeated: bool = False) -> Case:
    """Return a random event; ``today``: at one of the times at which policies are proven.

    ``repeated``: it may list a VM more than once, which the service never does.
    """
    now = _moment(chance, today=today)
    listed = {one.lower(): one for one in chance.sample(NAMES, chance.choice((0, 1, 1, 2, 3, 5)))}
    name = chance.choice((*NAMES, None))
    if name is not None and listed and chance.random() < 0.3:
        name = chance.choice([*listed.values()]).swapcase()
    optional: dict[str, Any] = {
        "ResourceType": "VirtualMachine",
        "NotBefore": format_time(_near(now, chance) if chance.random() < 0.6 else _moment(chance)),
        "Description": chance.choice(_TEXTS),
        "EventSource": chance.choice(("Platform", "User", "Elsewhere")),
        "DurationInSeconds": chance.choice([one for one in _INTS if one >= -1]),
    }
    fields: dict[str, Any] = {
        "EventId": chance.choice(("c7061bac-afdc-4513-b24b-aa5f13a16123", "X", "x.y")),
        "EventType": chance.choice(("Freeze", "Reboot", "Redeploy", "Preempt", "Terminate", "Other")),
        "EventStatus": chance.choice(("Scheduled", "Scheduled", "Started", "Paused")),
        "Resources": chance.sample([*listed.values()], len(listed)) or ["web_0"],
        **{name: value for name, value in optional.items() if chance.random() < 0.75},
    }
    if repeated:
        again = [chance.choice(fields["Resources"]) for _ in range(chance.choice((0, 0, 0, 1, 3)))]
        fields["Resources"] += [chance.choice((one, one.swapcase())) for one in again]
    document = parse_document(json.dumps({"DocumentIncarnation": 1, "Events": [fields]}))
    event = document.events[0]
    facts = {one: chance.choice(_TEXTS) for one in ("location", "zone", "size") if chance.random() < 0.7}
    tags = {one: chance.choice(_TEXTS) for one in chance.sample(_TAGS, chance.choice((0, 1, 3, 6)))}
    vm = Vm(name=name, tags=None if chance.random() < 0.15 else tags, **facts)
    since = tv.from_datetime(_moment(chance)) + chance.choice((0, 0, 1, 999))
    params = {
        "flag": chance.random() < 0.5,
        "n": chance.choice(_INTS),
        "ratio": chance.choice((0.0, 0.5, -1.5, 0.1, 1e308, 5e-324)),
        "label": chance.choice((*_TEXTS, *NAMES)),
        "wait": chance.choice((*_INTS, 900 * tv.SECOND, -900 * tv.SECOND, 3_599_999_999_999)),
        "since": min(since, tv.MAX_TIMESTAMP),
        "zone": chance.choice(ZONES),
        **LISTS,
    }
    seen = max(datetime(1, 1, 1, tzinfo=timezone.utc), now - timedelta(0)) if now.year == 1 else _near(now, chance)
    return Case(event, document, Facts(now, vm, {event.key: min(seen, now)}), params)


def fixed(inputs: Inputs, params: Mapping[str, Any], one: Case) -> list[Formula]:
    """Return that the inputs, and the terms of parameters, are those of a case. Further texts may not follow."""
    return [*_event(inputs, one), *_vm(inputs, one), *_params(inputs, params, one)]


def _event(inputs: Inputs, one: Case) -> Iterator[Formula]:
    view = one.roots()
    code, event = inputs.problem.texts.code, view["event"]
    for name in TEXT_FIELDS:
        if inputs.reads(name):
            term, there = inputs.text(name)
            yield same(term, code(event[name])) if name in event else neg(there)
            yield there if name in event else True
    duration, there = inputs.event_field("DurationInSeconds")
    yield there if "DurationInSeconds" in event else neg(there)
    yield duration == event.get("DurationInSeconds", -1)
    yield inputs.now_us == view["now"] // 1000
    yield inputs.age_us == view["age"] // 1000
    yield inputs.has_not_before if "NotBefore" in event else neg(inputs.has_not_before)
    if "NotBefore" in event:
        yield inputs.not_before_us == event["NotBefore"] // 1000
    names, resources = list(one.event.resources), inputs.resources
    yield resources.count == len(names)
    yield same(resources.leader(), code(names[0]))
    for name in names:
        yield resources.has(name)
    if len(set(names)) < len(names):  # there may be others, and how often a name is listed is known by counts only
        for other in list(resources.names.values()):
            yield implies(resources.has(other), disj(same(code(other), code(name)) for name in names))
        for count in resources.counts.values():
            yield count.number == sum(ite(count.counts(name), 1, 0) for name in names)
        if resources.distinct is not None:
            yield resources.distinct.count == len(set(names))


def not_listed(inputs: Inputs, one: Case, texts: Iterator[str] | list[str]) -> list[Formula]:
    """Return that Resources have none of some texts, unless they do."""
    names = one.event.resources
    return [neg(inputs.resources.has(text)) for text in texts if text not in names]


def _vm(inputs: Inputs, one: Case) -> Iterator[Formula]:
    vm, code = one.facts.vm, inputs.problem.texts.code
    yield inputs.named if vm.name is not None else neg(inputs.named)
    if vm.name is not None:
        yield same(inputs.own_name, code(vm.name))
    for name in inputs.facts_read():
        value, (term, there) = getattr(vm, name), inputs.vm_fact(name)
        yield neg(there) if value is None else there
        if value is not None:
            yield same(term, code(value))
    yield neg(inputs.tags.known) if vm.tags is None else inputs.tags.known
    tags = vm.tags or {}
    if vm.tags is not None:
        yield inputs.tags.count == len(tags)
    for name, (there, term) in inputs.tags.read.items():
        yield there if name in tags else neg(there)
        if name in tags:
            yield same(term, code(tags[name]))


def _params(inputs: Inputs, params: Mapping[str, Any], one: Case) -> Iterator[Formula]:
    for name, term in params.items():
        value = one.params[name]
        if isinstance(value, float):
            over, under = value.as_integer_ratio()
            yield term * under == over
        else:
            yield same(term, inputs.problem.texts.code(value))
