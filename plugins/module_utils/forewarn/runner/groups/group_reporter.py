# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reports the state of this VM in its group: in the log, the journal, the metrics and the heartbeat."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ...imds.errors import Fault
from ..telemetry.recorder import Recorder
from . import cached_document
from .cached_document import CachedDocument

CLOSED, FREE = "barrier-closed", "slot-free"


class Subject(NamedTuple):
    """The event that a report is about, and its record, None if it has none any more."""

    event_id: str
    record_id: int | None


class GroupReporter:
    """For the main thread alone. ``group`` and ``store`` are names, ``facts`` are for the heartbeat."""

    def __init__(self, group: str, store: str, recorder: Recorder, facts: dict[str, Any]) -> None:
        self._group = group
        self._store = store
        self._journal, self._log, self._metrics = recorder
        self._facts = facts
        self._problem: str | None = None
        self._metrics.count("forewarn_group_requests_total", 0.0, result="failed")  # so that the first is an increase
        self._last_lines: dict[tuple[str, str], str] = {}  # by Event.key and group or barrier: the last line of the log

    def count_request(self, *, failed: bool, swaps: int = 0) -> None:
        """Count a request for a document; all swaps but the last met a conflict."""
        self._metrics.count("forewarn_group_requests_total", result="failed" if failed else "ok")
        self._metrics.count("forewarn_group_conflicts_total", float(max(0, swaps - 1)))

    def report_problem(self, fault: Fault | None) -> None:
        """Report why requests to the store fail, None if they succeed. It is logged if it differs from before."""
        message = None if fault is None else fault.message
        self._metrics.set("forewarn_group_store_up", 1.0 if fault is None else 0.0)
        if message == self._problem:
            return
        if fault is None:
            self._log.info("group-store-recovered", store=self._store)
        else:
            self._log.warning("group-store-failed", reason=message, hint=fault.hint or None)
        self._problem = message

    def clear_problem(self) -> None:
        """Clear the problem: the store is not asked now, and its state is unknown."""
        self._problem = None
        self._metrics.replace("forewarn_group_store_up", {})

    def report_unreadable_file(self, error: ValueError) -> None:
        """Report that the file of obligations cannot be read."""
        reason = f"what this VM still holds in the group's store is not known: {error}"
        hint = "Does it hold a slot? See forewarn group status, and forewarn group release."
        self._log.error("group-trouble", reason=reason, hint=hint)

    def report_slot(self, known: CachedDocument | None, key: str, me: str, group: str, about: Subject) -> None:
        """Report the state of this VM's slot for an event, if it has changed."""
        if known is not None and known.document is not None:
            self._report_once(cached_document.slot_line(known.document, key, me), key, group, group, about)

    def report_barrier(self, known: CachedDocument | None, key: str, me: str, where: str, about: Subject) -> None:
        """Report that this VM has closed a barrier, once."""
        closed = None if known is None or known.document is None else known.document.closed
        if closed is not None and closed.by == me:
            self._report_once(CLOSED, key, where, self._group, about)

    def report_withdrawal(self, key: str, where: str, about: Subject) -> None:
        """Report that this VM has released a slot, or withdrawn from a barrier."""
        line = self._last_lines.pop((key, where), "")
        if line and line != CLOSED:
            self._write(FREE, where, about)

    def update_facts(self, taking_back: int) -> None:
        """Set the metrics and the facts; ``taking_back`` is the number of events with something to withdraw."""
        lines = list(self._last_lines.values())
        slots, waiting = sum(map(lines.count, cached_document.HOLDING)), lines.count(cached_document.WAITS)
        self._metrics.set("forewarn_group_slots", float(slots))
        self._metrics.set("forewarn_group_waiting", float(waiting))
        self._facts["group"] = {
            "name": self._group,
            "store": self._store,
            "problem": self._problem,
            "slots": slots,
            "waiting": waiting,
            "taking_back": taking_back,
        }

    def _report_once(self, line: str, key: str, where: str, group: str, about: Subject) -> None:
        if line and line != self._last_lines.get((key, where)):
            self._last_lines[key, where] = line
            self._write(line, group, about)

    def _write(self, line: str, group: str, about: Subject) -> None:
        fields: Mapping[str, Any] = {"event_id": about.event_id, "group": group}
        self._log.info(line, **fields)
        self._journal.note(line, about.record_id, **fields)
