# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The requests to the store that this VM has to make, and when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Callable, NamedTuple, Union

from ...imds.errors import CONNECTION, REFUSED, TIMEOUT, Fault
from . import semaphore, transaction
from .barrier import READY
from .cached_document import CachedDocument
from .intent import Intent
from .semaphore import FORCE, RECOVER, RELEASE, TAKE, Semaphore, Want
from .store import CERTIFICATE, LOGIN, LOST_DATA, StoreFault

# How often a document is read while this VM waits for other VMs, or for a slot: longer for each event ahead.
WAITING_SECONDS, QUEUE_SECONDS, QUEUE_STEP_SECONDS = 5.0, 1.0, 0.02
_UNREACHABLE = (TIMEOUT, REFUSED, CONNECTION, CERTIFICATE, LOGIN)

StoreResult = Union[transaction.ChangeResult, Fault]


class StoreTask(NamedTuple):
    """A request for one document: ``key`` is that of a barrier, or the group of a semaphore with its ``wants``.

    ``step`` returns the document after the change. ``fence``: it is written even if nothing changes. ``event`` is the
    barrier's; ``withdraws``: this VM withdraws its statement there.
    """

    cached: CachedDocument
    key: str
    step: Callable[[Any], Any]
    request: Callable[[], transaction.ChangeResult]
    fence: bool
    event: str | None = None
    withdraws: bool = False
    wants: tuple[Want, ...] = ()

    def due_at(self, now: float, me: str, intents: Mapping[str, Intent]) -> float | None:
        """Return the monotonic time at which the request is due, None if there is no need."""
        known = self.cached
        if known.document is None or self.fence or self.step(known.document) != known.document:
            return max(known.due, now)
        interval = (
            self._slot_interval(me, intents) if self.event is None else _barrier_interval(intents.get(self.event))
        )
        return None if interval is None else max(known.due, known.at + interval)

    def _slot_interval(self, me: str, intents: Mapping[str, Intent]) -> float | None:
        """Return after how many seconds a semaphore is read again, None if there is no need."""
        document: Semaphore = self.cached.document
        intervals = [] if self.wants else [WAITING_SECONDS]
        for want in self.wants:
            waiter = document.waiting.get(want.key)
            if want.state == TAKE and waiter is not None:
                intervals.append(QUEUE_SECONDS + QUEUE_STEP_SECONDS * len(document.ahead(waiter.place(want.key))))
            elif want.state in (TAKE, FORCE) and (
                intents[want.key].fresh or not semaphore.is_granted(document, want.key, me)
            ):
                intervals.append(WAITING_SECONDS)
        return min(intervals, default=None)


def _barrier_interval(intent: Intent | None) -> float | None:
    """Return after how many seconds a barrier is read again, None if there is no need."""
    statement = None if intent is None else intent.statement
    return WAITING_SECONDS if intent is not None and intent.fresh and statement and statement.state == READY else None


def want_of(key: str, group: str, intent: Intent | None) -> Want | None:
    """Return what this VM wants of a group for an event, None if nothing."""
    if intent is None:
        return Want(key, RELEASE)
    if intent.recovering:
        return Want(key, RECOVER)
    return intent.want if intent.group == group else None


def run_requests(requests: Sequence[Callable[[], transaction.ChangeResult]]) -> list[StoreResult]:
    """Make one request after another. Once the store cannot be reached, it is not tried for the others."""
    results: list[StoreResult] = []
    for request in requests:
        last = results[-1] if results else None
        if isinstance(last, Fault) and last.kind in _UNREACHABLE:
            results.append(StoreFault(last.message, last.hint, kind=last.kind))
            continue
        try:
            results.append(request())
        except Fault as fault:
            results.append(fault)
    return results


def decode_semaphore(group: str, content: bytes | None) -> Semaphore:
    """Return the semaphore. Raises SharedDocumentError, and StoreFault where there is none."""
    if content is None:
        text = f"the store has no semaphore of group {group}: it was never created, or the store has lost its data."
        hint = "When no VM of the group is disturbed: forewarn group create."
        raise StoreFault(text, hint, kind=LOST_DATA, lasting=True)
    return semaphore.decode(content)
