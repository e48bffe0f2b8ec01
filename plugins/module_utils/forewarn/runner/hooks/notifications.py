# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs notify hooks when there is room, in the order of their occasions. Nothing waits for them.

One that fails is tried again for a while. Of one event and one hook, a later occasion waits for the earlier ones.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Hashable, Mapping
from copy import copy
from typing import Any

from ...errors import InputError
from ...policy.decision import OCCASIONS
from ...policy.hook_body import with_body_source
from ..clocks import Clocks
from ..event_record import EventRecord
from . import commands
from .executor import NOT_STARTED, Executor, HookResult
from .open_records import OpenRecords
from .run import hook_key
from .running_hooks import RunningHooks

MOST_NOTIFYING = 4
MOST_WAITING = 1000
# The first and the longest pause before another attempt, and when there is none any more, in seconds.
PAUSES = (5.0, 120.0)
LONGEST_SECONDS = 600.0

DECIDED, BEGAN, ENDED, CALLED_OFF = OCCASIONS


class Notification:
    """One notify hook on one occasion. ``number`` rises with time.

    ``snapshot`` is the record as it was then: a later attempt sends the same. Times are monotonic, in seconds.
    """

    def __init__(self, number: int, record: EventRecord, hook: Mapping[str, Any], occasion: str) -> None:
        self.number = number
        self.record = record
        self.snapshot = copy(record)
        self.hook = hook
        self.occasion = occasion
        self.queue_key = (record.identifier, hook_key(with_body_source(hook)))  # a body changes with the event
        self.attempts = 0
        self.first_at = 0.0
        self.retry_at = 0.0

    def __lt__(self, other: Notification) -> bool:
        return self.number < other.number

    @property
    def still_wanted(self) -> bool:
        """Whether the policies still have the hook; a body may have another value by now."""
        return with_body_source(self.hook) in map(with_body_source, self.record.notify)

    def retry_delay(self, now: float) -> float | None:
        """Return the seconds to the next attempt after one that failed, None if there is none."""
        if commands.body_problem(self.hook, self.occasion) is not None:
            return None
        retry = self.hook.get("retry")
        if retry is None and commands.kind(self.hook) != commands.HTTP:
            return None
        retry = retry or {}
        delay = float(retry.get("delay_seconds", PAUSES[0]))
        longest = float(retry.get("max_delay_seconds", max(delay, PAUSES[1])))
        pause = min(longest, delay * 2.0 ** min(self.attempts - 1, 32))
        if "attempts" in retry:
            return pause if self.attempts < retry["attempts"] else None
        return pause if now + pause <= self.first_at + LONGEST_SECONDS else None


class Notifications:
    """The notifications that wait, and those whose hooks run. None of them outlives the runner."""

    def __init__(self, executor: Executor, records: OpenRecords, running: RunningHooks, clocks: Clocks) -> None:
        self._executor = executor
        self._records = records
        self._command = running.command
        self._clocks = clocks
        self._waiting: list[Notification] = []  # by number
        self._running: dict[Hashable, Notification] = {}  # by the executor's token
        self._count = 0
        self._dropped = 0

    def add(self, record: EventRecord, occasion: str) -> None:
        """Queue the notify hooks of an event."""
        for hook in record.notify:
            self._count += 1
            self._enqueue(Notification(self._count, record, hook, occasion))

    def advance(self) -> None:
        """Start what is due and there is room for."""
        now = self._clocks.monotonic()
        busy = {notification.queue_key for notification in self._running.values()}
        for notification in list(self._waiting):
            if len(self._running) >= MOST_NOTIFYING:
                return
            if notification.queue_key in busy or notification.retry_at > now:
                busy.add(notification.queue_key)  # it is first
                continue
            self._waiting.remove(notification)
            if notification.attempts and not notification.still_wanted:
                continue  # a reload has removed it
            self._start(notification, now)
            if notification in self._running.values() or notification in self._waiting:
                busy.add(notification.queue_key)

    def next_in(self) -> float | None:
        """Return the seconds until the next attempt of a hook that has failed, None if none waits for it."""
        if len(self._running) >= MOST_NOTIFYING:  # the end of one of them is the next occasion to start another
            return None
        now = self._clocks.monotonic()
        return min((one.retry_at - now for one in self._waiting if one.attempts), default=None)

    def _enqueue(self, notification: Notification) -> None:
        if len(self._waiting) >= MOST_WAITING:
            self._waiting.pop(0)
            self._dropped += 1
        insort(self._waiting, notification)

    def _start(self, notification: Notification, now: float) -> None:
        notification.attempts += 1
        if notification.attempts == 1:
            notification.first_at = now
        hook, occasion = notification.hook, notification.occasion
        try:
            command = self._command(notification.snapshot, hook, "notify", notification.attempts, occasion=occasion)
        except InputError as error:
            self._report_result(notification, HookResult(NOT_STARTED, None, 0.0, "", error.message))
            return
        token = ("notify", notification.number, notification.attempts)
        self._running[token] = notification
        self._executor.start(token, command)

    def handle_result(self, token: Hashable, outcome: HookResult) -> bool:
        """Handle the result of a hook, if it is one of these; return whether it is."""
        notification = self._running.pop(token, None)
        if notification is None:
            return False
        self._report_result(notification, outcome)
        return True

    def idle(self) -> bool:
        """Return whether none runs or waits."""
        return not self._running and not self._waiting

    def _report_result(self, notification: Notification, outcome: HookResult) -> None:
        record, hook = notification.record, notification.hook
        now = self._clocks.monotonic()
        pause = None if outcome.succeeded else notification.retry_delay(now)
        fields = {
            "hook": commands.describe(hook),
            "occasion": notification.occasion,
            "attempt": notification.attempts if notification.attempts > 1 else None,
            "result": outcome.result,
            "seconds": round(outcome.seconds, 3),
            "reason": outcome.reason or None,
            "retry_seconds": pause,
            "dropped": self._dropped or None,  # because too many waited
        }
        self._dropped = 0
        self._records.write("notified", record, fields, failed=not outcome.succeeded)
        self._records.count_hook(record, "notify", hook, outcome)
        if pause is not None:
            notification.retry_at = now + pause
            self._enqueue(notification)
