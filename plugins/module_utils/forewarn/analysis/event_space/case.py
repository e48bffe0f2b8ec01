# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One event as dimensions see it: each puts its value into a case."""

from __future__ import annotations

import itertools
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from ...policy.functions.timevalues import from_datetime
from ..artifacts import Json
from .domains import MISSING

USUAL_NOW = from_datetime(datetime(2026, 1, 1, tzinfo=timezone.utc))
LEADER, FURTHER_DOWN, NOT_LISTED = "leader", "further down", "not listed"  # the VM's place among Resources


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


def present(values: Json) -> dict[str, Any]:
    """Return the values that are not MISSING."""
    return {name: value for name, value in values.items() if value is not MISSING}


VM = "vm_0"  # the name of a VM that no policy names


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
