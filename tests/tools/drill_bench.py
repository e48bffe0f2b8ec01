# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A state directory, its clocks, and what lies in its store."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from forewarn.events import Document, Event
from forewarn.runner.clocks import Clocks
from forewarn.runner.drills import drill
from forewarn.runner.drills.store import DrillRequest
from tools.clocks import ManualClocks

REBOOT = DrillRequest("Reboot", 900.0, 30.0, "Platform")


def hand_over(state: Path, clocks: Clocks, request: DrillRequest = REBOOT) -> str:
    return drill.hand_over(str(state), request, clocks)


def events_of(document: Document | None) -> tuple[Event, ...]:
    assert document is not None
    return tuple(document.events)


def only_event(document: Document | None) -> Event:
    (event,) = events_of(document)
    return event


def files(state: Path) -> list[str]:
    return sorted(path.name for path in (state / "drills").glob("*"))


def record_of(state: Path, event_id: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((state / "drills" / f"{event_id}.json").read_text())
    return data


GOOD = {
    "forewarn": {"schema": "drill", "version": 1},
    "request": {
        "event_type": "Reboot",
        "notice_seconds": 900.0,
        "duration_seconds": 30.0,
        "source": "Platform",
        "resources": None,
        "description": None,
    },
    "handed_over": [*ManualClocks().stamp()],
    "scheduled": None,
    "started": None,
    "resources": None,
}


def changed(**values: Any) -> dict[str, Any]:
    return {**GOOD, **values}


def asked(**values: Any) -> dict[str, Any]:
    request: Any = GOOD["request"]
    return {**GOOD, "request": {**request, **values}}


def fail_to_write(*_: object) -> int:
    raise OSError(28, "No space left on device")
