# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The log of requests: when they arrived, and how they were answered."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .lifecycle import EmulatedTime

_KEPT = 20_000


@dataclass
class LoggedRequest:
    """One request to the emulated service. ``status`` is None until it is answered, and if the connection was closed.

    ``received`` is when its head had been read; ``event_ids`` are those of its StartRequests; ``fault`` is the kind of
    fault that hit it; ``incarnation`` is the DocumentIncarnation of the answer.
    """

    number: int
    received: EmulatedTime
    vm: str | None
    method: str
    path: str
    api_version: str | None
    user_agent: str | None
    status: int | None = None
    answered: EmulatedTime | None = None
    event_ids: list[str] = field(default_factory=list)
    fault: str | None = None
    incarnation: int | None = None
    error: str | None = None


class RequestLog:
    """The latest requests. ``on_answer`` is called with each one when it has been answered."""

    def __init__(self, on_answer: Callable[[LoggedRequest], None] | None = None) -> None:
        self._entries: deque[LoggedRequest] = deque(maxlen=_KEPT)
        self._count = 0
        self._on_answer = on_answer

    def arrived(self, received: EmulatedTime, **values: Any) -> LoggedRequest:
        """Note the arrival of a request."""
        self._count += 1
        entry = LoggedRequest(self._count, received, **values)
        self._entries.append(entry)
        return entry

    def answered(self, entry: LoggedRequest, at: EmulatedTime, status: int | None) -> None:
        """Note the status of the answer; None means that the connection was closed instead."""
        entry.answered, entry.status = at, status
        if self._on_answer is not None:
            self._on_answer(entry)

    def since(self, number: int = 0) -> list[LoggedRequest]:
        """Return the entries after a number, oldest first."""
        return [entry for entry in self._entries if entry.number > number]

    def clear(self) -> None:
        """Forget all entries; numbering continues."""
        self._entries.clear()
