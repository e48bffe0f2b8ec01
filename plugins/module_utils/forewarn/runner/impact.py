# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What events really cost this VM: pauses and reboots that the clocks show, each with the event that caused it.

A pause shows as a wait that took longer than intended, by clocks that nobody sets. A pause that stops these clocks too
leaves no trace here, and a machine too busy to wake the runner looks like one that stood still.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .clocks import Clocks
from .event_record import APPROVED, CALLED_OFF, STARTED, EventRecord
from .telemetry.heartbeat import Beat
from .telemetry.recorder import Recorder

PAUSE, REBOOT = "pause", "reboot"

# Wake-ups are this late on a machine that is merely busy.
THRESHOLD_SECONDS = 0.5
# A pause is noticed before the document shows its event. After this long, no event caused it.
LONGEST_WAIT_SECONDS = 60.0


class ImpactTracker:
    """Attributes each pause and reboot to the event that caused it, once the service shows it."""

    def __init__(self, recorder: Recorder, clocks: Clocks) -> None:
        self._journal, self._log, self._metrics = recorder
        self._clocks = clocks
        self._pending: dict[str, tuple[float, float]] = {}  # kind -> seconds, noticed at (monotonic)
        self._ended: list[EventRecord] = []  # since something is pending, while this VM's name is not known

    def wait(self, wait: Callable[[float], None], seconds: float) -> None:
        """Call ``wait``, which takes at most ``seconds``, and note for how long the machine stood still meanwhile."""
        paused = paused_seconds(self._clocks, wait, seconds)
        if paused is not None:
            self._add(PAUSE, paused)

    def add_reboot(self, down_seconds: float) -> None:
        """Note for how long the machine was down."""
        self._add(REBOOT, down_seconds)

    def _add(self, kind: str, seconds: float) -> None:
        before, _at = self._pending.get(kind, (0.0, 0.0))
        self._pending[kind] = (before + seconds, self._clocks.monotonic())

    def report(self, listed: Sequence[EventRecord], ended: Sequence[EventRecord], vm_name: str | None) -> None:
        """Report pending pauses and reboots with the events of this VM that have started or just ended."""
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
                self._report_cause(record, kind, seconds)

    def _report_cause(self, record: EventRecord, kind: str, seconds: float) -> None:
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


def paused_seconds(clocks: Clocks, wait: Callable[[float], None], seconds: float) -> float | None:
    """Call ``wait``, which takes at most ``seconds``; return how long the machine stood still, None if it did not.

    A wait may end early. If the machine was suspended, the clocks differ even then.
    """
    seconds, monotonic, boottime = max(0.0, seconds), clocks.monotonic(), clocks.boottime()
    wait(seconds)
    ran, passed = clocks.monotonic() - monotonic, clocks.boottime() - boottime
    late = max(ran - seconds, passed - seconds, passed - ran)
    return late if late > THRESHOLD_SECONDS else None


def downtime(last: Beat | None, clocks: Clocks) -> float | None:
    """Return the seconds from the last beat before a reboot to now, or None if the machine has not rebooted.

    Only the wall clock runs through a reboot, and it may have been set: the time since boot is the minimum.
    """
    if last is None or not last.stamp.boot_id or not clocks.boot_id or last.stamp.boot_id == clocks.boot_id:
        return None
    return max(clocks.wall() - last.stamp.wall, clocks.boottime())
