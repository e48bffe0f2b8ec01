# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Notify hooks: they run when there is room, in the order in which something happened, and nothing waits for them."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

from ...errors import InputError
from ..event_record import EventRecord
from . import commands
from .executor import NOT_STARTED, Executor, HookResult
from .records import OpenRecords
from .running import RunningHooks

MOST_NOTIFYING = 4
MOST_WAITING = 1000

DECIDED, BEGAN, ENDED, CALLED_OFF = "decided", "started", "ended", "cancelled"  # occasions


class Notification(NamedTuple):
    """One notify hook on one occasion."""

    record: EventRecord
    hook: Any
    occasion: str


class Notifications:
    """The notifications that wait, and those whose hooks run. None of them outlives the runner."""

    def __init__(self, executor: Executor, records: OpenRecords, running: RunningHooks) -> None:
        self._executor = executor
        self._records = records
        self._command = running.command
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
            record, hook, occasion = notification
            try:
                command = self._command(record, hook, "notify", occasion=occasion)
            except InputError as error:
                self._ended(notification, HookResult(NOT_STARTED, None, 0.0, "", error.message))
                continue
            self._count += 1
            token = ("notify", self._count)
            self._running[token] = notification
            self._executor.start(token, command)

    def collect(self, token: Hashable, outcome: HookResult) -> bool:
        """Take in what has ended; return whether it was one of these."""
        notification = self._running.pop(token, None)
        if notification is None:
            return False
        self._ended(notification, outcome)
        return True

    def idle(self) -> bool:
        """Return whether none runs or waits."""
        return not self._running and not self._waiting

    def _ended(self, notification: Notification, outcome: HookResult) -> None:
        record, hook, occasion = notification
        fields = {
            "hook": commands.describe(hook),
            "occasion": occasion,
            "result": outcome.result,
            "seconds": round(outcome.seconds, 3),
            "reason": outcome.reason or None,
            "dropped": self._dropped or None,  # because too many waited
        }
        self._dropped = 0
        self._records.write("notified", record, fields, failed=not outcome.succeeded)
        self._records.count_hook(record, "notify", hook, outcome)
