# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Notify hooks: they run when there is room, in the order in which something happened, and nothing waits for them."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Callable, NamedTuple

from ...errors import InputError
from ..event_record import EventRecord
from .commands import Command
from .executor import Executor, Outcome

MOST_NOTIFYING = 4
MOST_WAITING = 1000

DECIDED, BEGAN, ENDED, CALLED_OFF = "decided", "started", "ended", "cancelled"  # occasions


class Notification(NamedTuple):
    """One notify hook on one occasion."""

    record: EventRecord
    hook: Any
    occasion: str


class Notifications:
    """The notifications that wait, and those whose hooks run. None of them outlives the runner.

    ``command`` makes what is to be run, or raises InputError. ``ended`` gets what became of each, and how many were
    dropped before it because too many waited.
    """

    def __init__(
        self,
        executor: Executor,
        command: Callable[[Notification], Command],
        ended: Callable[[Notification, Outcome, int], None],
    ) -> None:
        self._executor = executor
        self._command = command
        self._ended = ended
        self._waiting: list[Notification] = []
        self._running: dict[Hashable, Notification] = {}  # by the executor's token
        self._count = 0
        self._dropped = 0

    def add(self, record: EventRecord, occasion: str) -> None:
        """Queue the notify hooks of an event."""
        for hook in record.notify:
            if len(self._waiting) >= MOST_WAITING:
                self._waiting.pop(0)
                self._dropped += 1
            self._waiting.append(Notification(record, hook, occasion))

    def advance(self) -> None:
        """Start what there is room for."""
        while self._waiting and len(self._running) < MOST_NOTIFYING:
            notification = self._waiting.pop(0)
            try:
                command = self._command(notification)
            except InputError as error:
                self._over(notification, Outcome("not-started", None, 0.0, "", error.message))
                continue
            self._count += 1
            token = ("notify", self._count)
            self._running[token] = notification
            self._executor.start(token, command)

    def collect(self, token: Hashable, outcome: Outcome) -> bool:
        """Take in what has ended; return whether it was one of these."""
        notification = self._running.pop(token, None)
        if notification is None:
            return False
        self._over(notification, outcome)
        return True

    def idle(self) -> bool:
        """Return whether none runs or waits."""
        return not self._running and not self._waiting

    def _over(self, notification: Notification, outcome: Outcome) -> None:
        dropped, self._dropped = self._dropped, 0
        self._ended(notification, outcome, dropped)
