# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""This VM as a member of its group: publishes the state of its events and hooks, and applies what the group agrees on.

``reconciler`` asks it about each event that it decides; ``coordinator`` knows the store.
"""

from __future__ import annotations

from datetime import datetime, timezone

from ...policy.approval import NO_SLOT, PAUSED, PREPARING, Agreement, Eligibility, needs_barrier
from ...policy.decision import APPROVE, Decision
from .. import event_record as states
from ..event_record import EventRecord
from ..hooks.scheduler import HookScheduler
from ..journal.writer import Journal
from . import documents
from .coordinator import Coordinator
from .intent import Intent, Need, event_label, need_of, statement_of
from .semaphore import FORCE, TAKE, Want


class Member:
    """For real events, in the main thread. ``scheduler`` has their hooks, ``journal`` knows whether all is known."""

    def __init__(self, coordinator: Coordinator, scheduler: HookScheduler, journal: Journal) -> None:
        self.coordinator = coordinator
        self._scheduler = scheduler
        self._journal = journal
        self._intents: dict[str, Intent] = {}

    def update_group_blocker(self, decision: Decision, record: EventRecord, vm_name: str | None) -> None:
        """Delay the event's preparation, if time allows: for a slot, or until no VM takes this one for ready."""
        if record.group_blocker is not None and record.obstacle == record.group_blocker.reason:
            record.obstacle = ""  # it is found anew when its hooks are due
        record.group_blocker = None
        if self._scheduler.preparation.is_urgent(record):
            return
        need, key = self._need(decision, vm_name), record.event.key
        in_barrier = needs_barrier(decision) and decision.event.place_of(vm_name) is not None
        no_slot = need is not None and not record.plan.has_begun() and self.coordinator.no_slot(key, need, fresh=False)
        if no_slot:
            record.group_blocker = Eligibility(NO_SLOT, no_slot)
        elif self.coordinator.may_say_ready(key, in_barrier):
            record.group_blocker = Eligibility(
                PREPARING, "the group's store is being told that this VM is no longer ready"
            )

    def agreement(
        self, decision: Decision, record: EventRecord, blocked: Eligibility | None, vm_name: str | None, now: datetime
    ) -> Agreement | None:
        """Return what the group has agreed on about an event, and note this VM's intent for ``publish``.

        ``blocked`` is what keeps this VM from approving, whatever the others do, or None. None: it concerns others.
        """
        event = decision.event
        affected = event.place_of(vm_name) is not None
        witness = not affected and decision.approver == "witness"
        if vm_name is None or event.problems or not (affected or witness):
            return None
        needs = needs_barrier(decision)
        need = self._need(decision, vm_name)
        barrier_key = None
        if needs or witness:
            key_of = documents.barrier_key if needs else documents.claim_key
            barrier_key = key_of(self.coordinator.settings.name, event.key)
        if event.event_status == "Scheduled":
            self._intents[event.key] = self._intent(decision, record, blocked, barrier_key, need, now, affected)
        else:  # no VM waits for it any more
            group = need.group if need is not None and affected else ""
            untold = Intent(event.event_id, record.identifier, group=group, slot=group != "")
            self._intents[event.key] = self.coordinator.started_intent(event.key, untold)
        names = event.resources if needs else ()
        return self.coordinator.agreement(event.key, record.content, barrier_key, names, need)

    def publish(self, vm_name: str | None) -> None:
        """Publish the intents noted since the last time, and the events that this VM recovers from."""
        ours = [record for record in self._scheduler.records if not record.drill]
        known = {record.event.key for record in ours}
        listed = {record.event.key for record in ours if record.listed}
        for record in ours:
            key = record.event.key
            if record.state == states.RECOVERING and key not in listed and self.coordinator.has_obligations(key):
                self._intents[key] = Intent(record.event.event_id, record.identifier, recovering=True)
        intents, self._intents = self._intents, {}
        self.coordinator.publish(vm_name, intents, known, self._may_end)

    def _may_end(self, key: str) -> bool:
        """Return whether an event without a record certainly has nothing left to recover."""
        return not (self._journal.has_unread_records or self._journal.late_records) and self._journal.doubt(key) is None

    def _need(self, decision: Decision, vm_name: str | None) -> Need | None:
        return None if vm_name is None else need_of(decision, vm_name, self.coordinator.settings)

    def _intent(
        self,
        decision: Decision,
        record: EventRecord,
        blocked: Eligibility | None,
        barrier_key: str | None,
        need: Need | None,
        now: datetime,
        affected: bool,
    ) -> Intent:
        event = decision.event
        statement = None
        names = event.resources if affected or needs_barrier(decision) else ()
        if barrier_key is None and affected and len(event.resources) > 1:  # the others may wait for it
            barrier_key = documents.barrier_key(self.coordinator.settings.name, event.key)
        if barrier_key is not None and record.content and not record.undecided:
            statement = statement_of(decision, record.content, blocked)
        want = (
            None
            if need is None or not affected or record.undecided
            else self._wanted_slots(decision, record, blocked, need, now)
        )
        return Intent(
            event.event_id,
            record.identifier,
            barrier_key or "",
            statement,
            names,
            "" if need is None else need.group,
            want,
            slot=need is not None and affected,
            fresh=blocked is None and decision.output == APPROVE,
        )

    def _wanted_slots(
        self, decision: Decision, record: EventRecord, blocked: Eligibility | None, need: Need, now: datetime
    ) -> Want | None:
        """Return the slots that the event needs now, None if none: its time has not come, or it never gets them."""
        event, preparation = decision.event, self._scheduler.preparation
        disturbed = record.plan.has_begun() or record.approvals > 0 or record.unanswered
        forced = disturbed or preparation.is_urgent(record)
        if need.impossible and not disturbed:
            return None
        stages = [stage for stage in record.plan.wanted_stages() if stage.prepare]
        paused = blocked is not None and blocked.code == PAUSED
        begins_now = preparation.may_begin(record) if stages else decision.output == APPROVE and not paused
        if not disturbed and not begins_now:
            return None
        moment = event.not_before
        return Want(
            event.key,
            FORCE if forced else TAKE,
            need.names,
            need.at_most,
            None if moment is None else moment.timestamp(),
            event_label(event),
            now.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        )
