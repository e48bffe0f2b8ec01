# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds events whose VMs are gone: waiters that take no slot, and slots of events that have ended.

Only time counts in which this VM saw them so, by its own clock. All times are monotonic, in seconds.
"""

from __future__ import annotations

from collections.abc import Collection

from .semaphore import Semaphore

# A waiting event that had room for this long is passed over.
PASSED_OVER_SECONDS = 10.0
# An event that has left the list for this long has ended, also for a VM that cannot say so any more. It is long because
# a VM that is still drained, but has not reached the store since, loses its slot too.
ORPHAN_SECONDS = 3600.0
# A longer gap between two documents counts as this: what happened in between was not seen.
_LONGEST_LOOK_SECONDS = 3.0
_LONGEST_POLL_SECONDS = 10.0
_MOST_GONE = 1000


class QueueWatch:
    """Who waits at the head of one group's queue, and does not take what is free."""

    def __init__(self) -> None:
        self._free_for: dict[str, float] = {}  # by Event.key: how long it has had room, at the head
        self._looked_at: float | None = None

    def update(self, document: Semaphore, at: float, at_most: int, own: Collection[str]) -> None:
        """Update to the document as it was ``at`` a time. ``own`` are the events of this VM."""
        gap = 0.0 if self._looked_at is None else min(max(0.0, at - self._looked_at), _LONGEST_LOOK_SECONDS)
        self._looked_at = at
        free_for: dict[str, float] = {}
        for _place, key in sorted((waiter.place(key), key) for key, waiter in document.waiting.items()):
            if key in own:
                continue
            if not document.has_room(key, document.waiting[key].names, at_most):
                break
            free_for[key] = self._free_for[key] + gap if key in self._free_for else 0.0
            if free_for[key] < PASSED_OVER_SECONDS:
                break
        self._free_for = free_for

    @property
    def passed_over(self) -> frozenset[str]:
        """The events at the head that have had room for long enough."""
        return frozenset(key for key, seconds in self._free_for.items() if seconds >= PASSED_OVER_SECONDS)


class OrphanWatch:
    """The events that are no longer listed, and those that name this VM and are not listed to it."""

    def __init__(self) -> None:
        self._listed: frozenset[str] = frozenset()
        self._gone_for: dict[str, float] = {}
        self._polled_at: float | None = None

    def update_listed(self, keys: Collection[str], at: float) -> None:
        """Update to the events that a whole document lists, by ``Event.key``."""
        gap = 0.0 if self._polled_at is None else min(max(0.0, at - self._polled_at), _LONGEST_POLL_SECONDS)
        self._polled_at = at
        for key in self._gone_for:
            self._gone_for[key] += gap
        self._gone_for.update((key, 0.0) for key in self._listed.difference(keys))
        for key in keys:
            self._gone_for.pop(key, None)
        for key in list(self._gone_for)[:-_MOST_GONE]:
            del self._gone_for[key]
        self._listed = frozenset(keys)

    def add_unlisted(self, keys: Collection[str]) -> None:
        """Add events of the store that name this VM: one that is not listed may have ended."""
        for key in keys:
            if key not in self._listed:
                self._gone_for.setdefault(key, 0.0)

    @property
    def orphans(self) -> frozenset[str]:
        """Those that have been gone for long enough."""
        return frozenset(key for key, seconds in self._gone_for.items() if seconds >= ORPHAN_SECONDS)
