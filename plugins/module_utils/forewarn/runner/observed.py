# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What events really cost this VM: pauses and reboots that the clocks show, each with the event that caused it."""

from __future__ import annotations

from collections.abc import Sequence

from .clocks import Clocks
from .event_record import APPROVED, CALLED_OFF, STARTED, EventRecord
from .impact import Pauses
from .telemetry.recorder import Recorder

PAUSE, REBOOT = "pause", "reboot"

# A pause is noticed before the document shows its event. After this long, no event caused it.
LONGEST_WAIT_SECONDS = 60.0


class Observed:
    """Keeps a pause or a reboot until the service shows which event caused it."""

    def __init__(self, recorder: Recorder, clocks: Clocks) -> None:
        self._journal, self._log, self._metrics = recorder
        self._clocks = clocks
        self._pauses = Pauses(clocks)
        self._pending: dict[str, tuple[float, float]] = {}  # kind -> seconds, noticed at (monotonic)
        self._ended: list[EventRecord] = []  # since something is pending, while this VM's name is not known

    def before_wait(self, seconds: float) -> None:
        """Note that the runner now waits for at most ``seconds``."""
        self._pauses.before_wait(seconds)

    def after_wait(self) -> None:
        """Note that the wait is over. The machine may have stood still meanwhile."""
        seconds = self._pauses.after_wait()
        if seconds is not None:
            self._note(PAUSE, seconds)

    def rebooted(self, down_seconds: float) -> None:
        """Note for how long the machine was down."""
        self._note(REBOOT, down_seconds)

    def _note(self, kind: str, seconds: float) -> None:
        before, _at = self._pending.get(kind, (0.0, 0.0))
        self._pending[kind] = (before + seconds, self._clocks.monotonic())

    def attribute(self, listed: Sequence[EventRecord], ended: Sequence[EventRecord], vm_name: str | None) -> None:
        """Report what is pending with the events that are under way, or have just ended, and affect this VM."""
        if not self._pending:
            self._ended.clear()
            return
        self._ended += ended
        ours = [record for record in (*listed, *self._ended) if record.event.place_of(vm_name) is not None]
        causes = [record for record in ours if record.state == STARTED or record.outcome not in (None, CALLED_OFF)]
        if not causes and PAUSE not in self._pending:  # a reboot after an approval is that event's
            causes = [record for record in ours if record.state == APPROVED]
        if vm_name is not None:
            self._ended.clear()
        for kind, (seconds, noticed_at) in list(self._pending.items()):
            if not causes and self._clocks.monotonic() - noticed_at < LONGEST_WAIT_SECONDS:
                continue
            del self._pending[kind]
            if not causes:
                self._log.warning("impact", kind=kind, seconds=round(seconds, 3), reason="no event explains it")
                self._journal.note("impact", None, kind=kind, seconds=round(seconds, 3))
            for record in causes:
                self._report(record, kind, seconds)

    def _report(self, record: EventRecord, kind: str, seconds: float) -> None:
        if kind == PAUSE:
            record.paused_seconds += seconds
        else:
            record.down_seconds += seconds
        announced = record.event.duration_in_seconds
        fields = {"kind": kind, "seconds": round(seconds, 3), "announced_seconds": announced}
        self._log.info("impact", event_id=record.event.event_id, type=record.event.event_type, **fields)
        self._journal.note("impact", record.identifier, **fields)
        self._journal.save(record.as_row())
        self._metrics.observe("forewarn_event_impact_seconds", seconds, type=record.event.event_type or "", kind=kind)
