# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Signals: SIGTERM and SIGINT stop the runner cleanly, SIGHUP reloads. They set flags, and end waits and requests."""

from __future__ import annotations

import select
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

REQUEST_GRACE_SECONDS = 0.5  # for a request that is in flight when the signal comes


class Interrupted(BaseException):
    """A request was given up because the runner is to stop. Not an Exception: no handler of faults may swallow it."""


class StopSignals:
    """While entered, SIGTERM and SIGINT set ``received``. For the main thread alone.

    Python repeats an interrupted system call after a handler has returned, so a wait has to watch a socket, and only an
    exception ends a blocked read: raised by an alarm, and only inside ``request()``.

    A signal that comes just before a system call interrupts nothing, and its handler runs only after the call. So the
    interpreter itself writes to the socket, handler or not, and in a request the alarm repeats.
    """

    def __init__(self, grace_seconds: float = REQUEST_GRACE_SECONDS) -> None:
        self.received: str | None = None  # the signal's name
        self.reload = False  # SIGHUP came; the loop sets this back
        self._woken = False
        self._grace = grace_seconds
        self._requesting = False
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)
        self._previous: dict[int, object] = {}
        self._previous_wakeup = -1
        self._previous_mask: set[int] = set()

    def __enter__(self) -> StopSignals:
        handlers = {
            signal.SIGTERM: self._on_stop,
            signal.SIGINT: self._on_stop,
            signal.SIGHUP: self._on_reload,
            signal.SIGALRM: self._on_alarm,
        }
        for number, handler in handlers.items():
            self._previous[number] = signal.signal(number, handler)
        self._previous_wakeup = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        # Since the start of the process a SIGHUP may have waited for this (cli.early_signals).
        self._previous_mask = signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGHUP,))
        return self

    def __exit__(self, *_: object) -> None:
        self._clear_alarm()
        signal.pthread_sigmask(signal.SIG_SETMASK, self._previous_mask)
        for number, handler in self._previous.items():
            signal.signal(number, handler)  # type: ignore[arg-type]  # what signal.signal returned
        signal.set_wakeup_fd(self._previous_wakeup)
        self._reader.close()
        self._writer.close()

    def wait(self, seconds: float) -> None:
        """Sleep, but not past a stop signal, SIGHUP, or a call of ``wake``."""
        end = time.monotonic() + seconds
        while self.received is None and not self.reload and not self._woken:
            left = end - time.monotonic()
            if left <= 0:
                return
            self._watch(left)
        self._woken = False

    def wake(self) -> None:
        """End the current wait, or the next one. From any thread."""
        self._woken = True
        with suppress(OSError):  # full: it ends anyway; closed: the runner has ended
            self._writer.send(b"!")

    def _watch(self, seconds: float) -> None:
        if select.select([self._reader], [], [], seconds)[0]:
            self._reader.recv(4096)  # an alarm writes too; a handler that is due runs before the next check

    def sleep(self, seconds: float) -> None:
        """Sleep within a request; a stop signal raises Interrupted."""
        end = time.monotonic() + seconds
        while self.received is None and (left := end - time.monotonic()) > 0:
            self._watch(left)
        if self.received is not None:
            raise Interrupted

    @contextmanager
    def request(self) -> Iterator[None]:
        """Wrap a request: after a stop signal it can go on for the grace period, then Interrupted is raised."""
        self._requesting = True
        self._set_alarm()
        try:
            yield
        finally:
            self._requesting = False
            self._clear_alarm()

    def _on_stop(self, number: int, _frame: FrameType | None) -> None:
        self.received = signal.Signals(number).name
        if self._requesting:
            self._set_alarm()

    def _on_reload(self, _number: int, _frame: FrameType | None) -> None:
        self.reload = True

    def _set_alarm(self) -> None:
        signal.setitimer(signal.ITIMER_REAL, self._grace, self._grace)

    def _clear_alarm(self) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)

    def _on_alarm(self, _number: int, _frame: FrameType | None) -> None:
        if self._requesting and self.received is not None:
            raise Interrupted
