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
from forewarn.runner.drills.store import Request

REBOOT = Request("Reboot", 900.0, 30.0, "Platform")


class FakeClocks(Clocks):
    """A machine whose clocks do what a test says."""

    def __init__(self) -> None:
        super().__init__()
        self.boot_id = "boot-a"
        self.ran = 5000.0
        self.offset = 1_777_896_000.0  # of the wall clock, to the time since boot

    def monotonic(self) -> float:
        return self.ran

    def boottime(self) -> float:
        return self.ran

    def wall(self) -> float:
        return self.offset + self.ran

    def reboot(self, down: float) -> None:
        """Be down for some seconds."""
        self.offset += self.ran + down
        self.boot_id += "b"
        self.ran = 0.0


def hand_over(state: Path, clocks: Clocks, request: Request = REBOOT) -> str:
    return drill.hand_over(str(state), request, clocks)


def only_event(document: Document | None) -> Event:
    assert document is not None
    assert len(document.events) == 1
    return document.events[0]


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
    "handed_over": [1_777_901_000.0, 5000.0, "boot-a"],
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
