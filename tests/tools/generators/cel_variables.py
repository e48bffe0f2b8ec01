# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The variables of a policy for random CEL expressions, and random values for them, from a seed."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from forewarn.compiler.cel import types as t
from forewarn.compiler.cel.environment import policy_declarations
from forewarn.compiler.cel.types import Declarations, Type
from forewarn.policy.functions import timevalues as tv

from ..judges.cel_oracles import MISSING
from .cel_calls import ZONES as ANY_ZONES

PARAMS: Mapping[str, Type] = {
    "flag": t.BOOL,
    "n": t.INT,
    "ratio": t.DOUBLE,
    "label": t.STRING,
    "wait": t.DURATION,
    "since": t.TIMESTAMP,
    "names": t.list_of(t.STRING),
    "sizes": t.list_of(t.INT),
    "roles": t.map_of(t.STRING, t.STRING),
    "zone": t.STRING,
}
DECLARATIONS: Declarations = policy_declarations("2020-07-01", PARAMS, {}, {})
TEXTS = (
    "",
    "a",
    "b",
    "ab",
    "web_0",
    "WEB_1",
    "é",
    "日本",
    "a,b,c",
    " x ",
    "\U0001f600",
    "10",
    "-7",
    "true",
    "1.5",
    "60s",
)
KNOWN_VALUES = {
    "EventType": ("Freeze", "Reboot", "Redeploy", "Preempt", "Terminate"),
    "EventStatus": ("Scheduled", "Started"),
    "EventSource": ("Platform", "User"),
    "ResourceType": ("VirtualMachine",),
}


def _event(random: Random, plain: bool) -> dict[str, Any]:
    """Return an event as the view gives it: fields that the service left out are missing."""
    values: dict[str, Any] = {
        "EventId": random.choice(("c7061bac-afdc-4513-b24b-aa5f13a16123", "X")),
        "EventType": random.choice(KNOWN_VALUES["EventType"]),
        "EventStatus": random.choice(KNOWN_VALUES["EventStatus"]),
        "Resources": random.choice((["web_0"], ["web_0", "WEB_1"], ["é"], [], ["a", "b", "ab"])),
    }
    if random.random() < 0.7:
        values["ResourceType"] = "VirtualMachine"
    if random.random() < 0.7:
        values["NotBefore"] = _time(random, plain)
    if random.random() < 0.7:
        values["Description"] = random.choice(TEXTS) if random.random() < 0.8 else random.choice(ANY_ZONES)
    if random.random() < 0.7:
        values["EventSource"] = random.choice(KNOWN_VALUES["EventSource"])
    if random.random() < 0.7:
        values["DurationInSeconds"] = random.choice((-1, 0, 5, 9, 30, 2**63 - 1))
    return values


def _time(random: Random, plain: bool) -> int:
    seconds = 1_769_860_800 + random.choice((0, 1, -1, 600, 900, 86_400, -86_400 * 400, 15_778_800))
    return seconds * tv.SECOND + (0 if plain else random.choice((0, 0, 500_000_000, 123_456_000)))


def values(random: Random, plain: bool = False) -> dict[str, Any]:
    """Return a value, or MISSING, for every variable of DECLARATIONS."""
    event = _event(random, plain)
    vm = {"name": "web_0", "location": "westeurope", "size": "D2", "scale_set": "web", "fault_domain": "0"}
    if random.random() < 0.6:
        vm["zone"] = "1"
    tags = random.choice(({"role": "web"}, {"a": "b", "role": "é"}, {}))
    return {
        "event": event,
        "events": [event, *(_event(random, plain) for _ in range(random.randint(0, 2)))],
        "notice": random.choice((MISSING, 0, 900 * tv.SECOND, 30 * tv.SECOND)),
        "age": random.choice((0, 61 * tv.SECOND)),
        "now": _time(random, plain),
        "affects_me": random.choice((MISSING, True, False)),
        "leader": random.choice((True, False)),
        "vm": {**vm, "tags": tags} if random.random() < 0.8 else vm,
        "params": {
            "flag": random.choice((True, False)),
            "n": random.choice((-1, 0, 1, 2, 9, 2**63 - 1, -(2**63))),
            "ratio": random.choice((0.0, 0.5, -1.5)),
            "label": random.choice(TEXTS),
            "wait": random.choice((5, 900, -1)) * tv.SECOND,
            "since": _time(random, plain),
            "names": random.choice(([], ["a"], ["web_0", "b"])),
            "sizes": random.choice(([], [0], [1, 2, 9])),
            "roles": random.choice(({}, {"role": "web", "a": ""}, {"é": "日本"})),
            "zone": random.choice(ANY_ZONES),
        },
    }
