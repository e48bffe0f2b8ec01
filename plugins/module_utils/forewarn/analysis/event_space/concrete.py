# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A case made concrete: an event that a runner could get, with all that a decision about it reads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from typing import Any, NamedTuple

from ...events import LATEST_API_VERSION, Document, Vm, format_time, has_field, parse_document
from ...policy.decision import Facts
from ...policy.evaluate import ABSENT
from ...policy.functions.timevalues import SECOND, from_datetime
from .case import LEADER, NOT_LISTED, USUAL_NOW, Case, known
from .domains import MISSING, duration_text
from .resources import VM, listing, spelling, unasked

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_USUAL_NOTICE = 15 * 60 * SECOND  # SE-20
_HOUR = 3600 * SECOND
# Times at which an event is looked at where the clock is asked for in a way that is not understood: hours and days of
# the week that differ, then months.
SAMPLE_TIMES = tuple(
    USUAL_NOW + hours * _HOUR
    for hours in (*(29 * number for number in range(8)), *((61 * 24 + 4) * number for number in range(1, 6)))
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


def roots(case: Case, params: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what an expression reads of a case, in the order of program.ROOTS.

    What the case does not give is left out, so an expression must read nothing else. ``params`` are further ones.
    """
    event: dict[str, Any] = known(case.event)
    notice: Any = ABSENT
    if case.notice is not None and case.notice is not MISSING:
        event["NotBefore"] = case.now + case.notice
        notice = max(0, case.notice)
    if event.get("EventStatus") == "Started":
        notice = 0
    event["Resources"] = listing(case, None)
    vm = known(case.vm)
    if case.tags_known:
        vm["tags"] = known(case.tags)
    named = case.vm.get("name") is not MISSING
    affects_me, leader = (case.place != NOT_LISTED, case.place == LEADER) if named else (ABSENT, ABSENT)
    return event, ABSENT, notice, case.age, case.now, affects_me, leader, vm, {**params, **case.params}


def witness(case: Case, api_version: str) -> Witness:
    """Return an event of a case. What the case does not give is as usual, and this VM leads if possible."""
    now = _time(case.now)
    name = case.vm.get("name", VM)
    listed = None if name is MISSING else spelling(name, case.named)
    if case.place is None:
        named = [one for one, has in case.named.items() if has]
        room = listed in named or case.count is None or len(named) < case.count
        case.place = LEADER if listed is not None and room else NOT_LISTED
    event: dict[str, Any] = {
        "EventId": EVENT_ID,
        "EventType": "Freeze",
        "ResourceType": "VirtualMachine",
        "Resources": listing(case, listed),
        "EventStatus": "Scheduled",
        "NotBefore": "",
        "EventSource": "Platform",
        "DurationInSeconds": -1,
        **case.event,
    }
    lead = case.notice
    if lead is None:
        lead = MISSING if event["EventStatus"] == "Started" else _USUAL_NOTICE
    if lead is not MISSING:
        event["NotBefore"] = format_time(_time(case.now + lead))
    event = {field: value for field, value in known(event).items() if has_field(api_version, field)}
    if api_version == "2017-03-01":
        event["Resources"] = ["_" + one for one in event["Resources"]]
    document = parse_document(json.dumps({"DocumentIncarnation": 1, "Events": [event]}), api_version)
    tags = None
    if case.tags_known:
        # 'policy explain' cannot be given a VM without any tag, so it has one that nobody asks for.
        tags = known(case.tags) or {next(key for key in unasked("other") if key not in case.tags): "x"}
    first_seen = now - timedelta(microseconds=case.age // 1000)
    vm = Vm(**known({**case.vm, "name": name}), tags=tags)
    return Witness(event, document, Facts(now, vm, {one.key: first_seen for one in document.events}), case.given)


def _time(nanoseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=nanoseconds // 1000)
