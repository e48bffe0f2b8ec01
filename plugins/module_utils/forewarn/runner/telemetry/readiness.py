# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the runner is alive, and whether this VM is ready for work: what the probes answer.

The main thread reports at each step of its loop, and any thread may ask. docs/operations.md has the table.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from .. import event_record as states
from ..clocks import Clocks
from ..event_record import EventRecord

# On top of the time that the main loop meant to wait: a request to the service can take this long.
LATE_SECONDS = 15.0


class _LoopReport(NamedTuple):
    """The report of a step of the main loop. Replaced as a whole, so no reader sees half of one."""

    next_by: float  # monotonic
    disturbed: bool
    not_before: float | None  # the soonest of this VM's events that are still Scheduled; seconds since 1970


class Readiness:
    """From ``lead_seconds`` before NotBefore on this VM is not ready, whatever is decided.

    ``vm_name`` is the last known name of this VM. ``drills``: a drill counts as an event.
    """

    def __init__(self, clocks: Clocks, lead_seconds: float, vm_name: str | None = None, *, drills: bool = True) -> None:
        self._clocks = clocks
        self._lead_seconds = lead_seconds
        self._vm_name = vm_name
        self._drills = drills
        self._report: _LoopReport | None = None

    def report_alive(
        self, records: Iterable[EventRecord], vm_name: str | None, within_seconds: float, *, unread: bool = False
    ) -> None:
        """Report a step of the main loop. The next is due ``within_seconds``. For the main thread.

        ``unread``: there may be records that are not known yet, of events that have drained this VM.
        """
        self._vm_name = vm_name or self._vm_name
        counted = [record for record in records if self._drills or not record.drill]
        ours = [record for record in counted if record.event.place_of(self._vm_name) is not None]
        times = [
            record.event.not_before.timestamp()
            for record in ours
            if record.listed and record.event.not_before is not None
        ]
        left = (record for record in counted if record.affected and record not in ours)
        self._report = _LoopReport(
            self._clocks.monotonic() + within_seconds + LATE_SECONDS,
            unread or any(_disturbed(record) for record in ours) or any(_has_acted(record) for record in left),
            min(times, default=None),
        )

    def alive(self) -> bool:
        """Return whether the main loop is alive. From any thread."""
        report = self._report
        return report is not None and self._clocks.monotonic() <= report.next_by

    def ready(self) -> bool:
        """Return whether, as far as is known, this VM neither drains nor will soon be disturbed. From any thread."""
        report = self._report
        if report is None or report.disturbed:
            return False
        return report.not_before is None or report.not_before - self._clocks.wall() > self._lead_seconds


def _disturbed(record: EventRecord) -> bool:
    """Return whether an event of this VM keeps it from its work.

    That lasts from the first prepare hook, or without one from the approval or the start, until all is recovered.
    """
    return (
        record.state in (states.APPROVED, states.STARTED, states.RECOVERING)
        or record.event.event_status == "Started"
        or _has_acted(record)
    )


def _has_acted(record: EventRecord) -> bool:
    """Return whether a hook or an approval was started, which counts even if the event no longer names this VM."""
    # The service may act on an approval, whatever happened to the event.
    return record.plan.has_begun() or record.approvals > 0
