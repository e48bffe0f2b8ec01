# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Signals: SIGTERM and SIGINT stop the runner cleanly, SIGHUP reloads. They set flags, and end waits."""

from __future__ import annotations

import select
import signal
import socket
import time
from contextlib import suppress
from types import FrameType


class StopSignals:
    """While entered, SIGTERM and SIGINT set ``received``. For the main thread alone.

    Python repeats an interrupted system call after a handler has returned, so a wait has to watch a socket. A signal
    that comes just before a system call interrupts nothing, and its handler runs only after the call. So the
    interpreter itself writes to the socket, handler or not.
    """

    def __init__(self) -> None:
        self.received: str | None = None  # the signal's name
        self.reload = False  # SIGHUP came; the loop sets this back
        self._woken = False
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
        }
        for number, handler in handlers.items():
            self._previous[number] = signal.signal(number, handler)
        self._previous_wakeup = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        # Since the start of the process a SIGHUP may have waited for this (cli.early_signals).
        self._previous_mask = signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGHUP,))
        return self

    def __exit__(self, *_: object) -> None:
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
            if select.select([self._reader], [], [], left)[0]:
                self._reader.recv(4096)  # a handler that is due runs before the next check
        self._woken = False

    def wake(self) -> None:
        """End the current wait, or the next one. From any thread."""
        self._woken = True
        with suppress(OSError):  # full: it ends anyway; closed: the runner has ended
            self._writer.send(b"!")

    def _on_stop(self, number: int, _frame: FrameType | None) -> None:
        self.received = signal.Signals(number).name

    def _on_reload(self, _number: int, _frame: FrameType | None) -> None:
        self.reload = True
