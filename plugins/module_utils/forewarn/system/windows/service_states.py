# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The states of a service of Windows, and when its manager is told of them."""

from __future__ import annotations

from _thread import allocate_lock  # importing threading would cost each VM 0.2 MiB
from collections.abc import Callable
from typing import NamedTuple

# SERVICE_STATUS.dwCurrentState
STOPPED, START_PENDING, STOP_PENDING, RUNNING = 1, 2, 3, 4
# SERVICE_STATUS.dwControlsAccepted: STOP, SHUTDOWN, PARAMCHANGE, PRESHUTDOWN
ACCEPTED_WHILE_RUNNING = 0x1 | 0x4 | 0x8 | 0x100
# How often ServiceStates.tick is to be called, and how long the manager waits for the next report.
TICK_SECONDS = 1.0
_HINT_MILLISECONDS = 10_000
# For longer the manager is not told that all is well: the limits of the systemd unit.
_LONGEST_PENDING_SECONDS = {START_PENDING: 240.0, STOP_PENDING: 30.0}
_ORDER = (START_PENDING, RUNNING, STOP_PENDING, STOPPED)


class StatusReport(NamedTuple):
    """What SetServiceStatus is told. ``exit_code`` is the service's own, 0 if all is well."""

    state: int
    accepted: int = 0
    exit_code: int = 0
    checkpoint: int = 0
    hint_milliseconds: int = 0


class ServiceStates:
    """Reports each state once, and never an earlier one than before: a stop may come during the start.

    ``report`` tells the manager, ``monotonic`` is that clock, in seconds. From any thread.
    """

    def __init__(self, report: Callable[[StatusReport], None], monotonic: Callable[[], float]) -> None:
        self._report = report
        self._monotonic = monotonic
        self._lock = allocate_lock()  # around all that follows
        self._state: int | None = None
        self._since = 0.0
        self._checkpoint = 0

    def starting(self) -> None:
        """Report that the start has begun."""
        self._change(START_PENDING)

    def running(self) -> None:
        """Report that the start has ended."""
        self._change(RUNNING)

    def stopping(self) -> None:
        """Report that the stop has begun."""
        self._change(STOP_PENDING)

    def stopped(self, exit_code: int) -> None:
        """Report the end. The manager restarts the service if ``exit_code`` is not 0 (failureflag 1).

        It may end the process at any time after that.
        """
        self._change(STOPPED, exit_code)

    def tick(self) -> None:
        """Report that a start or a stop goes on, but no longer than one may take."""
        with self._lock:
            longest = _LONGEST_PENDING_SECONDS.get(self._state or STOPPED)
            if longest is not None and self._monotonic() - self._since < longest:
                self._report_state(0)

    def _change(self, state: int, exit_code: int = 0) -> None:
        with self._lock:
            if self._state is None or _ORDER.index(state) > _ORDER.index(self._state):
                self._state, self._since, self._checkpoint = state, self._monotonic(), 0
                self._report_state(exit_code)

    def _report_state(self, exit_code: int) -> None:
        state = self._state or STOPPED
        accepted = ACCEPTED_WHILE_RUNNING if state == RUNNING else 0
        if state in _LONGEST_PENDING_SECONDS:
            self._checkpoint += 1
            self._report(StatusReport(state, accepted, exit_code, self._checkpoint, _HINT_MILLISECONDS))
        else:
            self._report(StatusReport(state, accepted, exit_code))
