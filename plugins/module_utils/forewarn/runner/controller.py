# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decides about documents of the service and of drills, and decides again when something else has changed."""

from __future__ import annotations

from ..events import Document, Event
from ..policy.engine import PolicySet
from .drills.runner import DrillRunner
from .event_record import RECOVERING
from .hooks.running_hooks import GRACE_SECONDS
from .hooks.scheduler import HookScheduler
from .impact import ImpactTracker
from .options import PreviousRunner
from .poller import VmIdentity
from .reconciler import Reconciler
from .shadow import Shadow
from .telemetry.health import HealthReporter


class Controller:
    """Hands each document to its reconciler: ``reconciler`` for real events, that of ``drill_runner`` for drills."""

    def __init__(
        self,
        reconciler: Reconciler,
        drill_runner: DrillRunner,
        scheduler: HookScheduler,
        identity: VmIdentity,
        health: HealthReporter,
        impact: ImpactTracker,
    ) -> None:
        self.reconciler = reconciler
        self.scheduler = scheduler
        self.impact = impact
        self._drill_runner = drill_runner
        self._identity = identity
        self._health = health
        self._document_processed = False  # since the last ``refresh_decisions``

    def resume(self, previous: PreviousRunner) -> None:
        """Resume what the previous runner left."""
        self.scheduler.vm_name = self._identity.vm.name  # if it is known: recoveries begin now
        self.scheduler.resume()
        for reconciler in self._reconcilers():
            reconciler.restore(previous.last_poll)
        if previous.down_seconds is not None:
            self.impact.add_reboot(previous.down_seconds)

    def close(self) -> None:
        """Abandon the requests to the group's store, and end the hooks."""
        if self.reconciler.group is not None:
            self.reconciler.group.coordinator.close()
        self.scheduler.close()

    def collect_results(self) -> bool:
        """Process hooks that have ended, and answers of the group's store; return whether an approval may be due."""
        news = self.scheduler.collect_results()
        group = self.reconciler.group
        if group is not None:
            if news:
                self.decide_again()  # the other VMs wait for this one
            if group.coordinator.collect_results():
                self.decide_again()
                news = True
        return news

    def next_in(self) -> float | None:
        """Return the seconds until a hook or a request to the group's store is due by the time alone, or None."""
        group = self.reconciler.group
        dues = (self.scheduler.next_in(), None if group is None else group.coordinator.next_in())
        return min((due for due in dues if due is not None), default=None)

    def process(self, document: Document, age_seconds: float = 0.0) -> list[list[Event]]:
        """Decide about what the service lists; return the events to approve, grouped by request."""
        vm = self._identity.vm
        self._document_processed = True
        self.scheduler.vm_name = vm.name
        for reconciler in self._reconcilers():
            reconciler.nameless = self._identity.nameless
        requests = self.reconciler.process(document, vm, age_seconds)
        # When no drill is active, nothing else triggers this.
        self._drill_runner.reconciler.recover_nameless(vm)
        self._health.record_document(document)
        self.impact.report(self.reconciler.tracker.records, self.reconciler.ended, vm.name)
        return requests

    def decide_again(self) -> None:
        """Decide about what was listed last, without a new document; approve nothing."""
        for reconciler in self._reconcilers():
            reconciler.decide_again(self._identity.vm)

    def refresh_decisions(self) -> None:
        """Decide again unless a document came since the last call, and continue the drills."""
        if not self._document_processed:  # the service is silent, or answers with errors
            self.decide_again()
        self._document_processed = False
        self.continue_drills()

    def continue_drills(self) -> None:
        """Continue the drills, as far as real events allow."""
        # This includes events that the service cannot show now.
        listed = [record.event for record in self.reconciler.tracker.records]
        recovering = (one for one in self.scheduler.records if one.state == RECOVERING and not one.drill)
        self._drill_runner.advance(self._identity.vm, listed, next(recovering, None))

    def decide_about_late_records(self) -> None:
        """Resume the records that the journal can read only now, if there are any, and decide again."""
        if self.resume_late_records():
            self.decide_again()  # they were planned by the policies of that time
            self.continue_drills()

    def resume_late_records(self, grace_seconds: float = GRACE_SECONDS) -> bool:
        """Resume records that the journal could not read at the start but can now; return whether there were any.

        Hooks of the previous runner that still run have ``grace_seconds`` to end.
        """
        records = self.scheduler.resume_late_records(grace_seconds)
        for record in records or ():
            if record.listed:
                (self._drill_runner.reconciler if record.drill else self.reconciler).restore_late(record)
        return records is not None

    def use_policies(self, policies: PolicySet, shadow: Shadow | None) -> None:
        """Decide by these policies from now on."""
        for reconciler in self._reconcilers():
            reconciler.policies = policies
        self.reconciler.shadow = shadow

    def _reconcilers(self) -> tuple[Reconciler, Reconciler]:
        return self.reconciler, self._drill_runner.reconciler
