# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs drills: decides about their events, prepares and recovers as if they were real, and sends no approval."""

from __future__ import annotations

from collections.abc import Sequence

from ...events import Document, Event, Vm
from ..approvals import Approvals
from ..event_record import EventRecord
from ..reconciler import Reconciler
from ..telemetry.recorder import Recorder
from .drill import Drills


class DrillRunner:
    """Without a state directory ``drills`` is None: nobody can request one."""

    def __init__(self, reconciler: Reconciler, drills: Drills | None, approvals: Approvals, recorder: Recorder) -> None:
        self.reconciler = reconciler
        self._drills = drills
        self._approvals = approvals
        self._recorder = recorder

    def advance(self, vm: Vm, listed: Sequence[Event], recovering: EventRecord | None) -> None:
        """Continue the drills, unless a real event ends them.

        That is a ``listed`` event that may affect this VM, or one that is ``recovering``.
        """
        if self._drills is None or (vm.name is None and not self.reconciler.tracker.records):
            return
        document = self._drills.poll(vm.name, _reason_to_end(vm.name, listed, recovering))
        if document is not None or self.reconciler.tracker.records:
            document = document or Document(0)  # not an answer without a body
            events = [event for request in self.reconciler.process(document, vm) for event in request]
            self._drills.approve(self._approvals.simulate(events, self.reconciler.tracker))
        for drill in self._drills.take_results():
            self._recorder.log.info("drill", **drill._asdict())
            self._recorder.journal.note("drill", None, **drill._asdict())
            self._recorder.metrics.count("forewarn_drills_total", result=drill.result)


def _reason_to_end(vm_name: str | None, listed: Sequence[Event], recovering: EventRecord | None) -> str | None:
    """Return why drills have to end, or None."""
    # An event may affect this VM if either's names are unknown: a drill that ends early does no harm.
    unread = [event for event in listed if event.problems and not event.resources]
    affecting = unread + [event for event in listed if vm_name is None or event.place_of(vm_name) is not None]
    if affecting:
        return f"a real {affecting[0].event_type} is scheduled: {affecting[0].event_id}"
    if recovering is not None:
        return f"what was prepared for a real event is being recovered: {recovering.event.event_id}"
    return None
