# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The runner's exchange with the service: documents, the VM's identity, approvals.

One request follows another, and the main thread waits for none. An approval is the first request after the document
that the decision rests on; while it is in flight no other document is requested.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

from ..errors import ServiceError
from ..events import Document, Event
from ..imds.errors import TIMEOUT, Fault, PassingFault
from ..imds.transport import FRESH_SECONDS
from .approvals import Approvals
from .controller import Controller
from .poll_schedule import PollSchedule
from .poller import Poller, VmIdentity
from .requester import APPROVAL, DOCUMENT, INSTANCE, Requester, RequestResult
from .telemetry.health import HealthReporter
from .telemetry.log import Log

# Delay the decision about a document this long while the VM's identity is requested: usually some milliseconds.
IDENTITY_PATIENCE_SECONDS = 0.05
# A request that is in flight when the stop signal comes has this long: an approval, and with --once any.
STOP_PATIENCE_SECONDS = 0.5
# With --once a person or a script waits for the end.
ONCE_PATIENCE_SECONDS, ONCE_IDENTITY_PATIENCE_SECONDS = 30.0, 10.0


class Stop(Protocol):
    """What the runner needs of ``system.signals.StopSignals``."""

    received: str | None
    reload: bool

    def wait(self, seconds: float) -> None:
        """Sleep until a signal comes, a hook ends or the service answers, but ``seconds`` at most."""


class Exchange:
    """For the main thread alone. ``controller`` decides what to approve, ``health`` counts each poll."""

    def __init__(
        self,
        requester: Requester,
        poller: Poller,
        identity: VmIdentity,
        approvals: Approvals,
        controller: Controller,
        schedule: PollSchedule,
        health: HealthReporter,
        log: Log,
        clock: Callable[[], float],
    ) -> None:
        self._requester = requester
        self._poller = poller
        self._identity = identity
        self._approvals = approvals
        self._controller = controller
        self._tracker = controller.reconciler.tracker
        self._schedule = schedule
        self._health = health
        self._log = log
        self._clock = clock
        self._request_kind = ""  # of the request in flight
        self._events_in_request: list[Event] = []  # the events that it approves
        self._more_requests = False  # that this one leaves to a later document
        self._document: Document | None = None  # waits for the VM's identity
        self._document_at = 0.0  # when it, or ``_document_without_identity``, was answered
        self._identity_deadline = 0.0
        self._document_without_identity: Document | None = None

    @property
    def busy(self) -> bool:
        """Whether a request is in flight."""
        return self._requester.busy

    @property
    def approval_in_flight(self) -> bool:
        """Whether an approval is in flight."""
        return self._requester.busy and self._request_kind == APPROVAL

    def run_once(self, stop: Stop) -> None:
        """Read the document patiently, decide and approve.

        Raises ServiceError if the service did not do what was asked before a stop signal came.
        """
        until = self._clock() + ONCE_PATIENCE_SECONDS
        document = self._read(stop)
        if document.events and self._identity.due:
            fetch = partial(self._identity.fetch, ONCE_IDENTITY_PATIENCE_SECONDS)
            self._handle_identity(self._wait_for(stop, INSTANCE, fetch))
        failed: dict[str, Fault] = {}  # the latest fault of an event's approval, by Event.key
        while True:  # each request rests on a document of its own
            requests, fault = self._controller.process(document), None
            events = self._approvals.next_request(requests, self._tracker)
            if events is not None:
                fault = self._wait_for(stop, APPROVAL, partial(self._approvals.send_request, events, document)).fault
                self._approvals.handle_response(events, self._tracker, fault)
            for event in document.events:
                if event.event_status == "Started" or (events is not None and event in events):
                    failed.pop(event.key, None)
                    if fault is not None and event.event_status != "Started":
                        failed[event.key] = fault
            passing = [key for key, fault in failed.items() if isinstance(fault, PassingFault)]
            wait = self._tracker.retry_in(passing)
            if not (requests or fault is not None or wait) or self._clock() + wait > until:
                break
            document = self._read(stop, wait)
        for fault in failed.values():
            raise fault

    def _read(self, stop: Stop, pause_seconds: float = 0.0) -> Document:
        answer = self._wait_for(stop, DOCUMENT, partial(self._poller.read, pause_seconds))
        if answer.fault is not None:
            raise answer.fault
        document: Document = answer.value
        return document

    def _wait_for(self, stop: Stop, kind: str, request: Callable[[], object]) -> RequestResult:
        """Make a request and return its result. Raises ServiceError if a stop signal comes before."""
        if stop.received is None or kind == APPROVAL:  # which the journal has announced
            self._begin(kind, request)
            while stop.received is None and not self._requester.has_response:
                stop.wait(ONCE_PATIENCE_SECONDS)
                stop.reload = False  # nothing is read again
            if self._requester.wait(STOP_PATIENCE_SECONDS):
                return self._requester.take_response()
        raise ServiceError(f"Ended by {stop.received} before the service had answered.")

    def poll(self) -> None:
        """Request the document, if no request is in flight and a poll is due."""
        if self.busy:
            return
        if self._poller.due:
            self._begin(DOCUMENT, self._poller.fetch)
        else:
            self._schedule.request_done()

    def handle_responses(self) -> bool:
        """Handle the responses of the service, and make the requests that follow; return whether there were any."""
        news = False
        while self._requester.has_response:
            self._handle_response()
            news = True
        if self._document is not None and self._clock() >= self._identity_deadline:
            self._document_without_identity = self._document
            self._process_waiting_document()  # the next poll follows the answer to the request for the identity
            news = True
        return news

    def next_in(self) -> float | None:
        """Return the seconds until ``handle_responses`` has something to do even without a response, or None."""
        return None if self._document is None else max(0.0, self._identity_deadline - self._clock())

    def abandon(self, seconds: float) -> None:
        """Abandon all requests. An approval in flight still has ``seconds``; after that its result is unknown."""
        self._document = None
        if not self.busy:
            return
        if self._request_kind != APPROVAL:
            self._log.warning("interrupted", reason="the service was being asked, and had not answered")
            return
        if self._requester.wait(seconds):
            fault: Fault | None = self._requester.take_response().fault
        else:
            reason = "an approval was under way; whether it took effect is unknown"
            self._log.warning("interrupted", reason=reason)
            fault = PassingFault("the runner was stopped before the service had answered", kind=TIMEOUT)
            fault.unsure = True
        self._approvals.handle_response(self._events_in_request, self._tracker, fault)

    def _begin(self, kind: str, request: Callable[[], object]) -> None:
        self._request_kind = kind
        self._requester.begin(kind, request)

    def _handle_response(self) -> None:
        answer = self._requester.take_response()
        if self._request_kind == DOCUMENT:
            self._document_at = answer.at
            self._handle_document(answer.value, answer.fault, self._age() <= FRESH_SECONDS)
        elif self._request_kind == INSTANCE:
            self._handle_identity(answer)
            if answer.fault is None and self._document is None:  # decide again, now with the identity
                self._document = self._document_without_identity
            self._document_without_identity = None
            self._finish(poll_soon=self._process_waiting_document())  # an approval needs another document
        else:
            again = self._approvals.handle_response(self._events_in_request, self._tracker, answer.fault)
            self._finish(poll_soon=self._more_requests or again)

    def _handle_identity(self, answer: RequestResult) -> None:
        if answer.fault is None:
            self._identity.set_identity(answer.value)
        else:
            self._identity.note_fault(answer.fault)

    def _handle_document(self, document: Document, fault: Fault | None, fresh: bool) -> None:
        if fault is not None:
            self._poller.note_fault(fault)
            self._health.record_poll(fault.message)
            self._finish()
            return
        self._poller.note_success()
        self._health.record_poll(None, self._age())
        if self._identity.due:
            self._document, self._identity_deadline = document, self._clock() + IDENTITY_PATIENCE_SECONDS
            self._begin(INSTANCE, self._identity.fetch)
            return
        requests = self._controller.process(document, self._age())
        events = self._approvals.next_request(requests, self._tracker) if fresh else None
        if events is None:
            self._finish(poll_soon=bool(requests) and not fresh)
            return
        self._events_in_request, self._more_requests = events, bool(requests)
        self._begin(APPROVAL, partial(self._approvals.send_request, events, document))

    def _process_waiting_document(self) -> bool:
        """Decide about the document that waits; return whether there is anything to approve."""
        document, self._document = self._document, None
        return document is not None and bool(self._controller.process(document, self._age()))

    def _age(self) -> float:
        return max(0.0, self._clock() - self._document_at)

    def _finish(self, *, poll_soon: bool = False) -> None:
        if poll_soon and self._poller.due and self._poller.affordable:
            self._begin(DOCUMENT, self._poller.fetch)
            return
        self._schedule.request_done()
        if poll_soon:
            self._schedule.poll_soon()
