# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The open records, and what the journal, the log and the metrics have of them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, List

from ...events import Event
from ..clocks import Clocks
from ..event_record import EventRecord
from ..journal.writer import EventRow
from ..telemetry.recorder import Recorder
from . import commands
from .executor import NOT_STARTED, HookResult
from .run import LEFT, Run

# Why nothing is prepared or approved meanwhile.
RESUMING = "the records of an earlier runner are still being resumed"


class OpenRecords(List[EventRecord]):
    """The records of events that are listed or recovering. For the main thread alone."""

    def __init__(self, recorder: Recorder, clocks: Clocks, settings: commands.HookSettings) -> None:
        super().__init__()
        self._settings = settings
        self._recorder = recorder
        self._journal, self._log, self._metrics = recorder
        self._clocks = clocks

    def resume(self, rows: Sequence[EventRow]) -> list[EventRecord]:
        """Add records from the journal; return them. One that is damaged is only reported."""
        resumed = []
        for row in rows:
            try:
                record = EventRecord.of(row)
            except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
                self._log.error("journal-trouble", event_key=row.key, reason=f"an event's record is damaged: {error}")
                self._journal.mark_damaged(row, f"{error.__class__.__name__}: {error}")
                continue
            resumed.append(record)
        self.extend(resumed)
        return resumed

    def open(self, event: Event, drill: bool) -> EventRecord:
        """Open the record of an event that is listed for the first time."""
        stamp = self._clocks.stamp()
        newest = max((record.identifier for record in self), default=0)
        record = EventRecord(max(int(stamp.wall * 1e6), newest + 1), event, stamp, drill)
        self.append(record)
        self.save(record)
        return record

    def step(self, record: EventRecord, transition: str, why: str) -> None:
        """Apply an input to a record, and save it if its state has changed."""
        before = record.state
        if not record.step(transition):
            return
        fields = {"from": before, "to": record.state, "why": why}
        if record.plan.runs:  # otherwise the other lines say it all
            self._log.info("state", event_id=record.event.event_id, drill=record.drill or None, **fields)
        self._journal.note("state", record.identifier, **fields)
        self.save(record)

    def close(self, record: EventRecord, why: str) -> None:
        """Close a record whose event has left the list, and has nothing left to recover."""
        self.step(record, record.closing_input(), why)
        self.remove(record)
        self._remove_memory(record)
        self._journal.commit()

    def _remove_memory(self, record: EventRecord) -> None:
        """Remove the memory files of an event's hooks, unless another event has run the same hook."""
        needed = {self._memory(run) for other in self for run in other.plan.runs if run.attempts}
        for path in {self._memory(run) for run in record.plan.runs} - needed - {None}:
            with suppress(OSError):
                os.unlink(str(path))  # noqa: PTH108 - without pathlib, as everywhere in the runner

    def _memory(self, run: Run) -> str | None:
        return self._settings.memory_file(run.hook) if "kind" in run.hook else None

    def save(self, record: EventRecord) -> None:
        """Save the record as it is now with the next commit."""
        self._journal.save(record.as_row())

    def write(self, line: str, record: EventRecord, fields: Mapping[str, Any], *, failed: bool = False) -> None:
        """Write a line to the log and an entry to the journal, and save the record."""
        self._recorder.write(line, record, fields, failed=failed)
        self.save(record)

    def count_hook(self, record: EventRecord, phase: str, hook: Mapping[str, Any], outcome: HookResult) -> None:
        """Count a hook that has ended."""
        labels = {"phase": phase, "kind": commands.kind(hook)}
        self._metrics.count("forewarn_hooks_total", result=outcome.result, drill=record.drill, **labels)
        if outcome.result != NOT_STARTED:
            self._metrics.observe("forewarn_hook_duration_seconds", outcome.seconds, **labels)

    def leave_out(self, record: EventRecord, run: Run, reason: str) -> None:
        """Mark a recover hook as left out: it need not run."""
        run.end(LEFT, reason)
        self.write("hook-left", record, {"hook": commands.describe(run.hook), "reason": run.reason})
