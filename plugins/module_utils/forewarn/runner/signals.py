# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A clean stop on SIGTERM and SIGINT: a flag, a wait that the flag ends, and an end to requests that are too slow."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

REQUEST_GRACE_SECONDS = 0.5  # for a request that is under way when the signal comes


class Interrupted(BaseException):
    """A request was given up because the runner is to stop. Not an Exception: no handler of faults may swallow it."""


class StopSignals:
    """While entered, SIGTERM and SIGINT set ``received``. For the main thread alone.

    Python goes on with an interrupted system call after a handler has returned, so a wait has to watch a pipe, and a
    blocked read can only be left by an exception: raised by an alarm, and only inside ``request()``.

    A signal that comes just before a system call interrupts nothing, and its handler runs only after the call. So the
    interpreter itself writes to the pipe, handler or not, and in a request the alarm rings again and again.
    """

    def __init__(self, grace_seconds: float = REQUEST_GRACE_SECONDS) -> None:
        self.received: str | None = None  # the signal's name
        self._grace = grace_seconds
        self._requesting = False
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)
        self._previous: dict[int, object] = {}
        self._previous_wakeup = -1

    def __enter__(self) -> StopSignals:
        handlers = {signal.SIGTERM: self._on_stop, signal.SIGINT: self._on_stop, signal.SIGALRM: self._on_alarm}
        for number, handler in handlers.items():
            self._previous[number] = signal.signal(number, handler)
        self._previous_wakeup = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        return self

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in self._previous.items():
            signal.signal(number, handler)  # type: ignore[arg-type]  # what signal.signal returned
        signal.set_wakeup_fd(self._previous_wakeup)
        os.close(self._reader)
        os.close(self._writer)

    def wait(self, seconds: float) -> None:
        """Sleep, but not past a stop signal."""
        end = time.monotonic() + seconds
        while self.received is None and (left := end - time.monotonic()) > 0:
            if select.select([self._reader], [], [], left)[0]:
                os.read(self._reader, 4096)  # an alarm writes too; a handler that is due runs before the next look

    def sleep(self, seconds: float) -> None:
        """Sleep within a request; a stop signal raises Interrupted."""
        self.wait(seconds)
        if self.received is not None:
            raise Interrupted

    @contextmanager
    def request(self) -> Iterator[None]:
        """Around a request: once a stop signal has come it may go on for the grace, then Interrupted is raised."""
        self._requesting = True
        self._set_alarm()
        try:
            yield
        finally:
            self._requesting = False
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _on_stop(self, number: int, _frame: FrameType | None) -> None:
        self.received = signal.Signals(number).name
        if self._requesting:
            self._set_alarm()

    def _set_alarm(self) -> None:
        signal.setitimer(signal.ITIMER_REAL, self._grace, self._grace)

    def _on_alarm(self, _number: int, _frame: FrameType | None) -> None:
        if self._requesting and self.received is not None:
            raise Interrupted
