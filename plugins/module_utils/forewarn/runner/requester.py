# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests, one at a time: in a thread of their own, so that a slow service never delays the hooks."""

from __future__ import annotations

import time
from _thread import allocate_lock, start_new_thread  # importing threading would cost each VM 0.2 MiB
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from ..imds.errors import CONNECTION, Fault, PassingFault
from ..system.signals import block_signals

# Kinds of requests.
DOCUMENT, INSTANCE, APPROVAL = "document", "instance", "approval"


class RequestResult(NamedTuple):
    """The ``value`` that a request has returned, or its ``fault``. ``at`` is when (monotonic, seconds)."""

    value: Any
    fault: Fault | None
    at: float


class Requester(Protocol):
    """Makes one request after another."""

    @property
    def busy(self) -> bool:
        """Whether a request is in flight, or its result not taken yet."""

    @property
    def has_response(self) -> bool:
        """Whether there is a result to take."""

    def begin(self, kind: str, request: Callable[[], object]) -> None:
        """Begin a request; never while ``busy``. ``request`` makes it, and returns its value or raises Fault."""

    def take_response(self) -> RequestResult:
        """Return the result, once it is there. Raises what ``request`` raised, unless that was a Fault."""

    def wait(self, seconds: float) -> bool:
        """Wait ``seconds`` at most for the result; return whether it is there."""


class ThreadRequester:
    """Makes requests in a daemon thread, which the first of them starts.

    That thread calls ``wake`` when a result is there; it must not raise. All else is for one thread alone.
    """

    def __init__(self, wake: Callable[[], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._wake = wake
        self._clock = clock
        self._started = False
        self._busy = False
        self._request: Callable[[], object] = lambda: None
        self._result: tuple[RequestResult | None, BaseException | None] | None = None
        # Two locks, each acquired by one thread and released by the other.
        self._request_ready = allocate_lock()
        self._result_ready = allocate_lock()
        self._request_ready.acquire()

    @property
    def busy(self) -> bool:
        """Whether a request is in flight, or its result not taken yet."""
        return self._busy

    @property
    def has_response(self) -> bool:
        """Whether there is a result to take."""
        return self._busy and self._result is not None

    def begin(self, kind: str, request: Callable[[], object]) -> None:
        """Hand a request to the thread. If no thread can be started, the result is a fault."""
        if self._busy:
            raise ValueError(f"a request is under way, so that none for the {kind} can begin")
        self._busy, self._result, self._request = True, None, request
        if not self._started:
            try:
                start_new_thread(self._serve, ())
            except (RuntimeError, OSError) as error:  # too many threads
                fault = PassingFault(f"no thread can be started to ask the service: {error}", kind=CONNECTION)
                self._result = (RequestResult(None, fault, self._clock()), None)
                return
            self._started = True
        self._result_ready.acquire(False)
        self._request_ready.release()

    def take_response(self) -> RequestResult:
        """Return the result. Raises what the request raised, unless that was a Fault."""
        if not self._busy or self._result is None:
            raise ValueError("there is no result")
        (result, error), self._result = self._result, None
        self._busy = False
        if result is None:
            raise error or RuntimeError("a request had no end")
        return result

    def wait(self, seconds: float) -> bool:
        """Wait ``seconds`` at most for the result; return whether it is there."""
        if self._busy and self._result is None and self._result_ready.acquire(timeout=seconds):
            self._result_ready.release()
        return self.has_response

    def _serve(self) -> None:
        # Signals are for the main thread: its system calls have to be interrupted.
        block_signals()
        while True:
            self._request_ready.acquire()
            try:
                self._result = RequestResult(self._request(), None, self._clock()), None
            except Fault as fault:
                self._result = RequestResult(None, fault, self._clock()), None
            except BaseException as error:  # a defect: the main thread reports it, as it does all others
                self._result = None, error
            self._result_ready.release()
            self._wake()
