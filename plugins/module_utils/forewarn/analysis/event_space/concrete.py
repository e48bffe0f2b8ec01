# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A case made concrete: an event that a runner could get, with all that a decision about it reads."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from ...events import Vm, format_time, has_field
from ...policy.evaluate import ABSENT
from ...policy.functions.timevalues import SECOND
from ..artifacts import Json
from ..witness import EVENT_ID, Witness, time_of, witness_of
from .case import FURTHER_DOWN, LEADER, NOT_LISTED, USUAL_NOW, VM, Case, present, spelling
from .domains import MISSING

_USUAL_NOTICE = 15 * 60 * SECOND  # SE-20
_HOUR = 3600 * SECOND
# Times at which an event is looked at where the clock is asked for in a way that is not understood: hours and days of
# the week that differ, then months.
SAMPLE_TIMES = tuple(
    USUAL_NOW + hours * _HOUR
    for hours in (*(29 * number for number in range(8)), *((61 * 24 + 4) * number for number in range(1, 6)))
)


def roots(case: Case, params: Json) -> tuple[Any, ...]:
    """Return what an expression reads of a case, in the order of program.ROOTS.

    What the case does not give is left out, so an expression must read nothing else. ``params`` are further ones.
    """
    event: dict[str, Any] = present(case.event)
    notice: Any = ABSENT
    if case.notice is not None and case.notice is not MISSING:
        event["NotBefore"] = case.now + case.notice
        notice = max(0, case.notice)
    if event.get("EventStatus") == "Started":
        notice = 0
    event["Resources"] = _listing(case, None)
    vm = present(case.vm)
    if case.tags_known:
        vm["tags"] = present(case.tags)
    named = case.vm.get("name") is not MISSING
    affects_me, leader = (case.place != NOT_LISTED, case.place == LEADER) if named else (ABSENT, ABSENT)
    return event, ABSENT, notice, case.age, case.now, affects_me, leader, vm, {**params, **case.params}


def witness(case: Case, api_version: str) -> Witness:
    """Return an event of a case. What the case does not give is as usual, and this VM leads if possible."""
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
        "Resources": _listing(case, listed),
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
        event["NotBefore"] = format_time(time_of((case.now + lead) // 1000))
    event = {field: value for field, value in present(event).items() if has_field(api_version, field)}
    if api_version == "2017-03-01":
        event["Resources"] = ["_" + one for one in event["Resources"]]
    tags = None
    if case.tags_known:
        # 'policy explain' cannot be given a VM without any tag, so it has one that nobody asks for.
        tags = present(case.tags) or {next(key for key in _unasked("other") if key not in case.tags): "x"}
    vm = Vm(**present({**case.vm, "name": name}), tags=tags)
    return witness_of(event, api_version, vm, case.now // 1000, case.age // 1000, case.given)


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
