# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The runner's cycle: poll, decide, approve; once a tick until a signal ends it.

An approval is sent only in a cycle whose poll was answered, so it always rests on the document as it is now.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, Callable, Protocol

from ..errors import ServiceError
from ..events import Document, Event
from ..imds.client import Client
from ..imds.errors import Fault, LastingFault, PassingFault
from ..policy.approval import Standing, standing
from ..policy.decision import Decision, Facts
from .log import Log, utc_now
from .poller import Identity, Poller
from .signals import Interrupted
from .ticks import Ticks
from .tracker import Tracker

# With --once somebody or something waits for the end.
ONCE_IDENTITY_PATIENCE_SECONDS = 10.0
ONCE_APPROVAL_PATIENCE_SECONDS = 30.0


class Policy(Protocol):
    """What the runner needs of ``policy.engine.PolicySet``."""

    @property
    def time_dependent(self) -> bool:
        """Whether decisions may change without a new document."""

    def decide(self, document: Document, facts: Facts) -> Sequence[Decision]:
        """Return a decision for each event of the document."""


class Stop(Protocol):
    """What the runner needs of ``signals.StopSignals``."""

    received: str | None

    def wait(self, seconds: float) -> None:
        """Sleep, but not past a stop signal."""

    def request(self) -> AbstractContextManager[None]:
        """Around requests: after a stop signal they may end in Interrupted."""


class Runner:
    """Decides by ``policy`` about what ``client`` reads, and approves, unless ``dry_run``.

    ``clock`` is monotonic, ``now`` the aware wall clock. ``identity`` holds a client of its own.
    """

    def __init__(
        self,
        client: Client,
        identity: Identity,
        policy: Policy,
        log: Log,
        stop: Stop,
        *,
        dry_run: bool = False,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self._client = client
        self._identity = identity
        self._policy = policy
        self._log = log
        self._stop = stop
        self._dry_run = dry_run
        self._clock = clock
        self._now = now
        self._poller = Poller(client, log, clock)
        self._tracker = Tracker(clock)
        self._document: Document | None = None
        self._facts: Facts | None = None
        self._decisions: Sequence[Decision] = ()
        self._once = False
        self._failure: tuple[object, ...] | None = None  # the last one of an approval, since one was taken

    def run(self, interval_seconds: float) -> None:
        """Work until a stop signal. Raises no ServiceError: no fault of the service ends the runner."""
        ticks = Ticks(interval_seconds, self._client.limiter, self._clock)
        try:
            while self._stop.received is None:
                with self._stop.request():
                    self.cycle()
                ticks.advance()
                self._stop.wait(ticks.remaining())
        except Interrupted:
            self._log.warning("interrupted", reason="a request was under way; whether it took effect is not known")
        self._log.info("stopped", signal=self._stop.received)

    def run_once(self) -> None:
        """Poll once, patiently, decide and approve. Raises ServiceError if the service did not do what was asked."""
        self._once = True
        try:
            with self._stop.request():
                document = self._client.read()
                if document.events:
                    self._identity.refresh(ONCE_IDENTITY_PATIENCE_SECONDS)
                faults = self._process(document)
        except Interrupted:
            raise ServiceError(f"Ended by {self._stop.received} before the service had answered.") from None
        if faults:
            raise faults[0]

    def cycle(self) -> None:
        """Do what is due at one tick."""
        document = self._poller.poll()
        if document is None:
            return
        self._identity.refresh()
        self._process(document)

    def _process(self, document: Document) -> list[Fault]:
        changed = document != self._document  # all of it: equal incarnations may hide a reset (SE-05, SE-10)
        if changed:
            self._document = document
            self._log_document(document)
        for tracked, outcome in self._tracker.update(document, changed):
            seconds = round(self._clock() - tracked.first_seen, 3)
            event = tracked.event
            self._log.info(
                "event-gone", event_id=event.event_id, type=event.event_type, outcome=outcome, listed_seconds=seconds
            )
        if not document.events:
            self._decisions = ()
            return []
        now = self._now()
        vm = self._identity.vm
        if changed or self._policy.time_dependent or self._facts is None or vm != self._facts.vm:
            self._facts = Facts(now, vm, self._tracker.first_seen(now))
            self._decisions = self._policy.decide(document, self._facts)
        standings = []
        for decision in self._decisions:
            where = standing(decision, vm.name, now, self._tracker.approvable_for(decision))
            standings.append((decision, where))
            self._log_decision(decision, where, now)
        return self._approve(document, standings)

    def _approve(self, document: Document, standings: Sequence[tuple[Decision, Standing]]) -> list[Fault]:
        """Send what is due; return the faults. What follows a passing fault is left to the next tick, and so is, as
        the document would be stale by then, what would have to wait for the request budget.
        """
        faults: list[Fault] = []
        requests = self._tracker.to_send(standings)
        while requests:
            events = requests.pop(0)
            ids = [event.event_id for event in events]
            if self._dry_run:
                self._tracker.pretended(events)
                self._log.info("would-approve", event_ids=ids)
                continue
            if not self._once and self._client.limiter.delay() > 0:
                break
            try:
                self._client.approve(ids, document.incarnation, ONCE_APPROVAL_PATIENCE_SECONDS if self._once else 0.0)
            except Fault as fault:
                self._log_failure(ids, fault)
                if isinstance(fault, LastingFault) and len(events) > 1:
                    requests.extend(self._tracker.split(events))
                    continue
                faults.append(fault)
                self._tracker.failed(events, fault)
                if isinstance(fault, PassingFault):
                    break
            else:
                self._failure = None
                self._tracker.approved(events)
                self._log.info("approved", event_ids=ids, times=self._times(events))
        return faults

    def _times(self, events: Sequence[Event]) -> int | None:
        """Return how often an event has been approved, if not for the first time."""
        times = max(self._tracker[event].approvals for event in events)
        return times if times > 1 else None

    def _log_document(self, document: Document) -> None:
        write = self._log.warning if document.problems else self._log.info
        write(
            "document",
            incarnation=document.incarnation,
            events=len(document.events),
            problems=list(document.problems) or None,
        )

    def _log_decision(self, decision: Decision, where: Standing, now: datetime) -> None:
        """Log what is decided for an event, if that has changed; other numbers in the reason are no change."""
        tracked = self._tracker[decision.event]
        event = decision.event
        news = (where.code, decision.output, decision.policy, decision.rule, event.event_status, event.not_before)
        if tracked.logged == news:
            return
        tracked.logged = news
        notice = event.notice_seconds(now)
        error = next((verdict.error for verdict in decision.verdicts if verdict.error), None)
        write = self._log.warning if error or event.problems else self._log.info
        fields: Mapping[str, Any] = {
            "event_id": event.event_id,
            "type": event.event_type,
            "status": event.event_status,
            "source": event.event_source,
            "resources": list(event.resources),
            "seconds_to_not_before": None if notice is None else round(notice, 3),
            "output": decision.output,
            "policy": decision.policy,
            "rule": decision.rule,
            "reason": where.reason,
            "policy_reason": decision.reason if decision.reason != where.reason else None,
            "values": {value.expression: value.value for value in decision.values} or None,
            "error": error,
        }
        write("decision", standing=where.code, **fields)

    def _log_failure(self, ids: Sequence[str], fault: Fault) -> None:
        failure = (tuple(ids), fault.kind, fault.status)
        if self._failure == failure:
            return
        self._failure = failure
        passing = isinstance(fault, PassingFault)
        write = self._log.warning if passing else self._log.error
        write(
            "approval-failed",
            event_ids=list(ids),
            kind=fault.kind,
            status=fault.status,
            lasting=not passing,
            reason=fault.message,
            hint=fault.hint or None,
        )
