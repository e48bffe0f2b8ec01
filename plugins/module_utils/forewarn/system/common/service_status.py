# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The status of a service of Windows (SERVICE_STATUS_PROCESS in the Windows API reference)."""

from __future__ import annotations

from typing import NamedTuple

STOPPED, START_PENDING, STOP_PENDING, RUNNING = "stopped", "start pending", "stop pending", "running"
# By their numbers, from 1.
STATES = (STOPPED, START_PENDING, STOP_PENDING, RUNNING, "continue pending", "pause pending", "paused")


class ServiceStatus(NamedTuple):
    """``state`` is one of ``STATES``. ``exit_code`` is that of a service that has stopped: 0 if it did so in order.

    ``pid`` is that of its process, which it may share with others; 0 if it is stopped.
    """

    name: str
    state: str
    exit_code: int = 0
    pid: int = 0

    def __str__(self) -> str:
        return f"{self.name} is {self.state}"
