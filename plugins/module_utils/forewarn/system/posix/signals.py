# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Signals: SIGTERM and SIGINT stop the runner cleanly, SIGHUP reloads. They set flags, and end waits."""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType

from ..common.stop_request import StopRequest


class StopSignals(StopRequest):
    """While entered, SIGTERM and SIGINT set ``received``. For the main thread alone.

    Python repeats an interrupted system call after a handler has returned, so a wait has to watch a socket. A signal
    that comes just before a system call interrupts nothing, and its handler runs only after the call. So the
    interpreter itself writes to the socket, handler or not. Without ``reloads``, SIGHUP does what it did before.
    """

    def __init__(self, reloads: bool = True) -> None:
        super().__init__()
        self._reloads = reloads
        self._previous: dict[int, object] = {}
        self._previous_wakeup = -1
        self._previous_mask: set[int] = set()

    def __enter__(self) -> StopSignals:
        handlers: dict[int, Callable[[int, FrameType | None], None]] = {
            signal.SIGTERM: self._on_stop,
            signal.SIGINT: self._on_stop,
        }
        if self._reloads:
            handlers[signal.SIGHUP] = self._on_reload
        for number, handler in handlers.items():
            self._previous[number] = signal.signal(number, handler)
        self._previous_wakeup = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        # Since the start of the process a SIGHUP may have waited for this (early_signals).
        self._previous_mask = signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGHUP,))
        return self

    def __exit__(self, *_: object) -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, self._previous_mask)
        for number, handler in self._previous.items():
            signal.signal(number, handler)  # type: ignore[arg-type]  # what signal.signal returned
        signal.set_wakeup_fd(self._previous_wakeup)
        self.close()

    def _on_stop(self, number: int, _frame: FrameType | None) -> None:
        self.received = signal.Signals(number).name

    def _on_reload(self, _number: int, _frame: FrameType | None) -> None:
        self.reload = True


def block_signals() -> None:
    """Block all signals in the calling thread: they are for the main thread, whose system calls must be interrupted."""
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
