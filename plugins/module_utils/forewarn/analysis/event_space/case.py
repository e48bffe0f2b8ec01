# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One event as dimensions see it: each puts its value into a case. A case makes an event that a runner could get."""

from __future__ import annotations

import itertools
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from ...events import Vm, format_time, has_field
from ...policy.environment import ABSENT
from ...policy.functions.timevalues import SECOND, from_datetime
from ..artifacts import Json
from ..witness import EVENT_ID, Witness, time_of, witness_of
from .domains import MISSING

VM = "vm_0"  # the name of a VM that no policy names
USUAL_NOW = from_datetime(datetime(2026, 1, 1, tzinfo=timezone.utc))
LEADER, FURTHER_DOWN, NOT_LISTED = "leader", "further down", "not listed"  # the VM's place among Resources
_USUAL_NOTICE = 15 * 60 * SECOND  # SE-20
_HOUR = 3600 * SECOND
# Times at which an event is looked at where the clock is asked for in a way that is not understood: hours and days of
# the week that differ, then months.
SAMPLE_TIMES = tuple(
    USUAL_NOW + hours * _HOUR
    for hours in (*(29 * number for number in range(8)), *((61 * 24 + 4) * number for number in range(1, 6)))
)


@dataclass
class Case:
    """What is known of an event and its VM; times are nanoseconds. None, or no entry: it is left open.

    MISSING is the value of what the event or the VM lacks. ``notice`` is NotBefore less ``now`` and may be negative.
    ``named`` maps names to whether Resources has them. ``params`` are converted values, ``given`` the JSON ones.
    """

    event: dict[str, Any] = field(default_factory=dict)
    notice: Any = None
    now: int = USUAL_NOW
    age: int = 0
    named: dict[str, bool] = field(default_factory=dict)
    count: int | None = None
    place: str | None = None
    vm: dict[str, Any] = field(default_factory=dict)
    tags_known: bool = False
    tags: dict[str, Any] = field(default_factory=dict)
    params: dict[str, Any] = field(default_factory=dict)
    given: dict[str, Any] = field(default_factory=dict)

    def roots(self, params: Json) -> tuple[Any, ...]:
        """Return what an expression reads of a case, in the order of program.ROOTS.

        What the case does not give is left out, so an expression must read nothing else. ``params`` are further ones.
        """
        event: dict[str, Any] = present(self.event)
        notice: Any = ABSENT
        if self.notice is not None and self.notice is not MISSING:
            event["NotBefore"] = self.now + self.notice
            notice = max(0, self.notice)
        if event.get("EventStatus") == "Started":
            notice = 0
        event["Resources"] = _listing(self, None)
        vm = present(self.vm)
        if self.tags_known:
            vm["tags"] = present(self.tags)
        named = self.vm.get("name") is not MISSING
        affects_me, leader = (self.place != NOT_LISTED, self.place == LEADER) if named else (ABSENT, ABSENT)
        return event, ABSENT, notice, self.age, self.now, affects_me, leader, vm, {**params, **self.params}

    def witness(self, api_version: str) -> Witness:
        """Return the event of the case. What it does not give is as usual, and this VM leads if possible."""
        name = self.vm.get("name", VM)
        listed = None if name is MISSING else spelling(name, self.named)
        if self.place is None:
            named = [one for one, has in self.named.items() if has]
            room = listed in named or self.count is None or len(named) < self.count
            self.place = LEADER if listed is not None and room else NOT_LISTED
        event: dict[str, Any] = {
            "EventId": EVENT_ID,
            "EventType": "Freeze",
            "ResourceType": "VirtualMachine",
            "Resources": _listing(self, listed),
            "EventStatus": "Scheduled",
            "NotBefore": "",
            "EventSource": "Platform",
            "DurationInSeconds": -1,
            **self.event,
        }
        lead = self.notice
        if lead is None:
            lead = MISSING if event["EventStatus"] == "Started" else _USUAL_NOTICE
        if lead is not MISSING:
            event["NotBefore"] = format_time(time_of((self.now + lead) // 1000))
        event = {field: value for field, value in present(event).items() if has_field(api_version, field)}
        if api_version == "2017-03-01":
            event["Resources"] = ["_" + one for one in event["Resources"]]
        tags = None
        if self.tags_known:
            # 'policy explain' cannot be given a VM without any tag, so it has one that nobody asks for.
            tags = present(self.tags) or {next(key for key in _unasked("other") if key not in self.tags): "x"}
        vm = Vm(**present({**self.vm, "name": name}), tags=tags)
        return witness_of(event, api_version, vm, self.now // 1000, self.age // 1000, self.given)


def present(values: Json) -> dict[str, Any]:
    """Return the values that are not MISSING."""
    return {name: value for name, value in values.items() if value is not MISSING}


def spelling(name: str, named: Mapping[str, bool]) -> str | None:
    """Return how a VM is listed by an event of which is known what Resources has.

    None if each way to spell it is asked for, and denied.
    """
    listed = [one for one, has in named.items() if has and one.lower() == name.lower()]
    if listed or name not in named:
        return listed[0] if listed else name
    return other_spelling(name, named)


def other_spelling(name: str, taken: Container[str]) -> str | None:
    """Return a name that is the same to Azure, in other letters, and not among ``taken``. None if there is none."""
    cases = [(one.swapcase(), one) if one.swapcase().lower() == one.lower() else (one,) for one in name]
    spellings = map("".join, itertools.product(*(dict.fromkeys(one) for one in cases)))
    return next((one for one in spellings if one not in taken and one.lower() == name.lower()), None)


def _listing(case: Case, vm: str | None) -> list[str]:
    """Return the names that an event lists: ``vm`` at its place, those asked for, and others up to the number."""
    named = [name for name, has in case.named.items() if has]
    taken = {name.lower() for name in (*case.named, vm or VM, str(case.vm.get("name", VM)))}
    others = (name for name in _unasked("vm_") if name.lower() not in taken)
    if vm is not None and case.place != NOT_LISTED:
        rest = [name for name in named if name != vm]
        named = [*(rest[:1] or [next(others)]), vm, *rest[1:]] if case.place == FURTHER_DOWN else [vm, *rest]
    while len(named) < (1 if case.count is None else case.count):
        named.append(next(others))
    return named


def _unasked(stem: str) -> Iterator[str]:
    """Yield names that begin with a stem."""
    if not stem.endswith("_"):
        yield stem
    yield from (f"{stem}{number}" for number in itertools.count(1))
