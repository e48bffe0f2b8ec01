# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A state directory as a runner leaves it: what ``status`` and ``history`` read."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from forewarn.runner.journal.writer import EventRow, Journal
from forewarn.runner.telemetry.heartbeat import Heartbeat
from tools.clocks import ManualClocks
from tools.events import GUID, listed

START = datetime(2026, 11, 21, 14, 5, 11, tzinfo=timezone.utc)
DRAIN = {"run": ["/usr/local/bin/drain", "--wait"], "timeout_seconds": 300}
UNDRAIN = {"run": ["/usr/local/bin/undrain"], "timeout_seconds": 60}


class Recorded:
    """Writes the state of a runner of this process. Each change is in the file at once."""

    def __init__(self, directory: Path) -> None:
        self.directory = str(directory)
        self.clocks = ManualClocks(wall=START.timestamp())
        self.journal = Journal(self.directory, self.clocks)
        self.journal.open()
        self._heartbeat = Heartbeat(self.directory, self.clocks)
        self._started = self.clocks.stamp()
        self._newest_id = 0

    def beat(self, **fields: Any) -> None:
        """Write the heartbeat of a runner that polls and keeps a journal."""
        kept = {
            "pid": os.getpid(),
            "version": "0.1.0",
            "state": "ok",
            "fault": None,
            "last_good_poll": self.clocks.stamp(),
            "events": 0,
            "policy": "sha256:" + "3f6a1c2b" * 8,
            "interval_seconds": 1.0,
            "journal_trouble": None,
            "vm": "web_1",
            "dry_run": False,
            "started": self._started,
        }
        self._heartbeat.beat({**kept, **fields}, False)

    def note(self, kind: str, record: EventRow | None = None, /, **fields: Any) -> None:
        """Write an entry."""
        self.journal.note(kind, None if record is None else record.id, **fields)
        assert self.journal.commit()

    def record(self, event_id: str = GUID, **fields: Any) -> EventRow:
        """Write the record of an event that is seen now; ``fields`` are the record's, ``event`` some of the event's."""
        now = self.clocks.stamp()
        self._newest_id = max(self._newest_id + 1, int(now.wall * 1e6))
        event = {
            "EventType": "Reboot",
            "NotBefore": self.at(889),
            "Description": "Host server is undergoing maintenance.",
            "DurationInSeconds": 30,
            **fields.pop("event", {}),
        }
        data = {
            "id": self._newest_id,
            "event": listed(event_id, **event),
            "drill": False,
            "state": "seen",
            "outcome": None,
            "first_seen": now,
            "last_seen": now,
            "started_at": None,
            "gone_at": None,
            "approvals": 0,
            "approved_at": None,
            "plan": [],
            "notify": [],
            "decision": None,
            "impact": {"paused_seconds": 0.0, "down_seconds": 0.0},
        }
        return self.save(EventRow(self._newest_id, event_id.lower(), "seen", True, data), **fields)

    def save(self, record: EventRow, **fields: Any) -> EventRow:
        """Write a record with other fields."""
        data = {**record.data, **fields}
        row = EventRow(record.id, record.key, data["state"], data["state"] not in ("done", "cancelled"), data)
        self.journal.save(row)
        assert self.journal.commit()
        return row

    def at(self, seconds: float) -> str:
        """Return a time some seconds ahead, in the format of events."""
        return datetime.fromtimestamp(int(self.clocks.wall() + seconds), timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def planned(phase: str, hook: Mapping[str, Any], status: str = "waiting", **fields: Any) -> dict[str, Any]:
    """Return a hook of a plan."""
    return {
        "phase": phase,
        "stage": 0,
        "policy": "web-tier",
        "rule": "drain",
        "hook": hook,
        "on_failure": "hold",
        "parallel": False,
        "status": status,
        "attempts": 0 if status == "waiting" else 1,
        "pid": None,
        "pid_started": None,
        "seconds": None,
        "exit_code": None,
        "reason": "",
        **fields,
    }


def decided(eligibility: str, reason: str = "a reboot waits for the drain", **fields: Any) -> dict[str, Any]:
    """Return a decision about an event, as its record keeps it."""
    return {
        "output": "hold" if eligibility == "refused-by-policy" else "approve",
        "policy": "web-tier",
        "rule": "drain",
        "reason": reason,
        "eligibility": eligibility,
        "eligibility_reason": reason,
        **fields,
    }


class Shown:
    """What a command wrote, and its exit code."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err
        self.lines = out.splitlines()


Run = Callable[..., Shown]


class Terminal(io.StringIO):
    """A terminal of so many columns, given by COLUMNS."""

    def isatty(self) -> bool:
        return True
