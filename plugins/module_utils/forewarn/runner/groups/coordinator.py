# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Publishes this VM's intents in the store of its group, and reads those of the other VMs.

Another thread makes the requests (``requester``), so that neither hooks nor polls wait for the store. There are some
only while an event of the group is listed here, or while this VM has to withdraw something.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any, Callable

from ...imds.errors import Fault
from ...policy.approval import Agreement
from ..clocks import Clocks
from ..requester import Requester
from ..telemetry.recorder import Recorder
from . import barrier, cached_document, documents, obligations, semaphore, transaction
from .barrier import READY, Barrier
from .cached_document import CachedDocument
from .group_reporter import GroupReporter, Subject
from .intent import Intent, Need
from .lineage import LineageMemory
from .obligations import EventObligations, Obligations
from .semaphore import RELEASE, TAKE, Semaphore, Want
from .settings import GroupSettings
from .stale_events import OrphanWatch, QueueWatch
from .store import LOST_DATA, Store, StoreFault
from .store_tasks import StoreResult, StoreTask, decode_semaphore, run_requests, want_of

# After a fault, doubled each time: while an event is listed, and when something is only to be withdrawn.
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS, LONGEST_IDLE_PAUSE_SECONDS = 0.5, 8.0, 60.0
DISK_PAUSE_SECONDS = 1.0
STORE = "store"  # the kind of its requests


class Coordinator:
    """For the main thread alone. ``directory`` is the state directory. ``jitter`` returns a random number from 0 to 1.

    ``facts`` are for the heartbeat. Nothing here raises: a failure is a reason to hold.
    """

    def __init__(
        self,
        settings: GroupSettings,
        store: Store,
        requester: Requester,
        directory: str,
        recorder: Recorder,
        clocks: Clocks,
        facts: dict[str, Any],
        jitter: Callable[[], float],
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.settings = settings
        self._store = store
        self._requester = requester
        self._directory = directory
        self._reporter = GroupReporter(settings.name, store.name, recorder, facts)
        self._clock = clocks.monotonic
        self._jitter = jitter
        self._sleep = sleep
        self._me = ""
        self._intents: dict[str, Intent] = {}
        self._obligations: dict[str, EventObligations] = {}
        self._known: frozenset[str] = frozenset()  # the events that have a record here
        self._ending: frozenset[str] = frozenset()  # everything of these events is withdrawn
        self._unsaved = False
        self._save_at = 0.0
        self._resumed = False  # an earlier runner may have writes in flight
        self._obligations_unreadable = False
        self._barriers: dict[str, CachedDocument] = {}
        self._semaphores: dict[str, CachedDocument] = {}
        self._memories: dict[str, LineageMemory] = {}  # of semaphores, also while there are no requests
        self._queues: dict[str, QueueWatch] = {}
        self._orphan_watch = OrphanWatch()
        self._tasks: list[StoreTask] = []
        self._disk_fault: StoreFault | None = None
        self._resume()
        self._reporter.update_facts(0)

    # Publishing

    def update_listed(self, keys: Collection[str]) -> None:
        """Update to the events that a whole document lists, by ``Event.key``."""
        self._orphan_watch.update_listed(keys, self._clock())

    def started_intent(self, key: str, intent: Intent) -> Intent:
        """Return the intent for an event that has started: ``intent`` if none was published before."""
        before = self._intents.get(key, intent)
        waits = before.want is not None and before.want.state == TAKE and not self._holds_slot(key, before.group)
        group = before.group if before.slot else ""  # a witness has no more to read
        return before._replace(fresh=False, group=group, want=None if waits else before.want)

    def _holds_slot(self, key: str, group: str) -> bool:
        known = self._semaphores.get(group)
        slot = None if known is None or known.document is None else known.document.slots.get(key)
        return slot is not None and self._me in slot.names

    def has_obligations(self, key: str) -> bool:
        """Return whether this VM may have written something about an event."""
        return key in self._obligations

    def may_say_ready(self, key: str, in_barrier: bool) -> bool:
        """Return whether the store may say that this VM is ready: then it must stay as it is.

        ``in_barrier``: the event waits for this VM.
        """
        own = self._obligations.get(key)
        return self._obligations_unreadable and in_barrier if own is None else bool(own.ready)

    def publish(
        self, me: str | None, intents: Mapping[str, Intent], known: Collection[str], may_end: Callable[[str], bool]
    ) -> None:
        """Publish these ``intents`` of the VM ``me``, by ``Event.key``.

        Earlier intents of events that are still ``known`` stay. Those of others are withdrawn if they ``may_end``: this
        VM is sure that it has nothing more to recover.
        """
        if me is not None and not self._obligations:  # otherwise the name under which they were written
            self._me = me.lower()
        self._known = frozenset(known)
        self._intents = {key: intent for key, intent in self._intents.items() if key in known}
        for key, intent in intents.items():
            if key in self._ending:
                self._invalidate(key)  # what is being withdrawn may look as if it was still there
            self._intents[key] = intent
            self._add_obligations(key, intent)
        ended = [key for key in self._obligations if key not in self._intents and key not in known]
        self._ending = frozenset(key for key in ended if may_end(key))
        if not self._obligations:
            self._semaphores.clear()  # there are no requests now, and its state is unknown
            self._queues.clear()
            self._reporter.clear_problem()
        self._begin_request()
        self._reporter.update_facts(len(self._ending))

    def _invalidate(self, key: str) -> None:
        own = self._obligations[key]
        for views, keys in ((self._barriers, own.barriers), (self._semaphores, own.slots)):
            for each in keys:
                if each in views:
                    views[each].document = None

    def _add_obligations(self, key: str, intent: Intent) -> None:
        before = self._obligations.get(key, EventObligations(intent.event_id))
        in_doubt = self._obligations_unreadable and key not in self._obligations
        barriers = {*before.barriers, *([] if intent.statement is None else [intent.barrier])}
        slots = {*before.slots, *([intent.group] if intent.slot else [])}
        says_ready = intent.statement is not None and (in_doubt or intent.statement.state == READY)
        ready = {*before.ready, *([intent.barrier] if says_ready else [])}
        own = EventObligations(intent.event_id, tuple(sorted(barriers)), tuple(sorted(slots)), tuple(sorted(ready)))
        if (barriers or slots) and own != before:
            self._obligations[key] = own
            self._unsaved = True

    # Reading

    def agreement(
        self, key: str, content: str, barrier_key: str | None, names: Sequence[str], need: Need | None
    ) -> Agreement:
        """Return what the VMs have agreed on about an event.

        ``barrier_key`` is that of the document in which ``names`` have to be ready, None where nobody has to be.
        """
        not_ready, approver, seconds = None, None, 0.0
        if barrier_key is not None:
            now, known = self._clock(), self._barriers.get(barrier_key)
            not_ready = cached_document.ASKED if known is None else known.doubt(now)
            if known is not None and not_ready is None:
                not_ready = cached_document.why_not_ready(known.document, content, names, self._me)
                closed = known.document.closed_for(content)
                if closed is not None:
                    approver, seconds = closed.by, now - known.since
        no_slot = None if need is None else self.no_slot(key, need, fresh=True)
        return Agreement(not_ready, no_slot, approver, seconds)

    def no_slot(self, key: str, need: Need, *, fresh: bool) -> str | None:
        """Return why an event may not use its slots, None if it may. ``fresh``: by a recent document only."""
        if need.impossible:
            return need.impossible
        known = self._semaphores.get(need.group)
        if known is None or known.document is None or known.fence:
            return cached_document.ASKED if known is None else known.problem
        doubt = known.doubt(self._clock()) if fresh else None
        return doubt or cached_document.why_no_slot(known.document, key, need)

    # Requests

    def next_in(self) -> float | None:
        """Return the seconds until a request is due by the time alone, None if none is."""
        if self._requester.busy or not self._me:
            return None
        now = self._clock()
        dues = [due for due, _task in self._due_tasks(now)]
        return max(0.0, min(dues) - now, self._save_at - now) if dues else None

    def collect_results(self) -> bool:
        """Handle the results of requests, and begin those that are due; return whether a decision may change."""
        news = False
        if self._requester.has_response:
            answer = self._requester.take_response()
            results = answer.value or [answer.fault] * len(self._tasks)
            for task, result in zip(self._tasks, results):
                news = self._handle_result(task, result) or news
            self._tasks = []
            self._save()
            self._report()
        self._begin_request()
        self._reporter.update_facts(len(self._ending))
        return news

    def close(self) -> None:
        """Abandon the requests: the next runner repeats them."""
        if not self._requester.busy:
            self._store.close()

    def _begin_request(self) -> None:
        now = self._clock()
        if self._requester.busy or not self._me or now < self._save_at:
            return
        tasks = [task for due, task in self._due_tasks(now) if due <= now]
        if tasks and self._save():
            self._tasks = tasks
            self._requester.begin(STORE, partial(run_requests, [task.request for task in tasks]))

    def _due_tasks(self, now: float) -> list[tuple[float, StoreTask]]:
        """Return the requests that are due some time, each with its monotonic time."""
        dues = ((task.due_at(now, self._me, self._intents), task) for task in self._all_tasks())
        return [(due, task) for due, task in dues if due is not None]

    def _all_tasks(self) -> list[StoreTask]:
        tasks: list[StoreTask] = []
        wants: dict[str, list[Want]] = {}
        for key, own in self._obligations.items():
            intent = self._intents.get(key)
            if intent is None and key not in self._ending:
                continue
            tasks += [self._barrier_task(key, each, intent) for each in own.barriers]
            for group in own.slots:
                want = want_of(key, group, intent)
                if want is not None:
                    wants.setdefault(group, []).append(want)
            # A witness wants no slot, but reads who has one.
            if intent is not None and intent.group and (intent.fresh or not intent.slot):
                wants.setdefault(intent.group, [])
        return tasks + [self._semaphore_task(group, each) for group, each in wants.items()]

    def _barrier_task(self, key: str, barrier_key: str, intent: Intent | None) -> StoreTask:
        known = self._barriers.setdefault(barrier_key, CachedDocument(self._resumed, LineageMemory()))
        here = intent if intent is not None and intent.barrier == barrier_key else Intent("", 0)
        own = here.statement
        step = partial(barrier.step, me=self._me, own=own, names=here.names)
        encode = partial(barrier.encode, event_id=self._obligations[key].event_id)
        # A withdrawal is written even if nothing changes, unless an approval rests on the statement already.
        withdraws = own is None or (own.state != READY and barrier_key in self._obligations[key].ready)
        closed = own is not None and known.document is not None and known.document.closed_for(own.content) is not None
        fence = known.fence or (withdraws and not closed)
        request = partial(self._change, known, barrier_key, barrier.decode, encode, step, fence)
        return StoreTask(known, barrier_key, step, request, fence, key, own is None)

    def _semaphore_task(self, group: str, wants: Sequence[Want]) -> StoreTask:
        memory = self._memories.setdefault(group, LineageMemory(permanent=True))
        known = self._semaphores.setdefault(group, CachedDocument(self._resumed, memory))
        wants = [*wants, *(Want(key, RELEASE) for key in self._left_over(known.document))] if wants else wants
        passed_over = self._queues[group].passed_over if group in self._queues else frozenset()
        step = partial(
            semaphore.step, me=self._me, wants=wants, passed_over=passed_over, orphans=self._orphan_watch.orphans
        )
        # A slot is free only when the store has acknowledged that.
        fence = bool(wants) and (known.fence or any(want.state == RELEASE for want in wants))
        decode = partial(decode_semaphore, group)
        request = partial(self._change, known, documents.semaphore_key(group), decode, semaphore.encode, step, fence)
        return StoreTask(known, group, step, request, fence, wants=tuple(wants))

    def _left_over(self, document: Semaphore | None) -> list[str]:
        """Return the ended events for which others have taken a slot for this VM while it did not run."""
        if document is None:
            return []
        ended = self._orphan_watch.orphans - self._obligations.keys() - self._known
        return sorted(key for key in ended if key in document.slots and self._me in document.slots[key].names)

    def _change(
        self,
        known: CachedDocument,
        key: str,
        decode: Callable[[bytes | None], Any],
        encode: Callable[[Any], bytes | None],
        step: Callable[[Any], Any],
        fence: bool,
    ) -> transaction.ChangeResult:
        """Change a document. Runs in the requester's thread."""
        functions = decode, encode, step, self._clock, self._pause
        return transaction.change(self._store, key, *functions, fence=fence, memory=known.memory)

    def _pause(self, attempt: int) -> None:
        longest = min(transaction.FIRST_PAUSE_SECONDS * 2.0**attempt, transaction.LONGEST_PAUSE_SECONDS)
        self._sleep(longest * self._jitter())

    # Results

    def _handle_result(self, task: StoreTask, result: StoreResult) -> bool:
        """Handle one result; return whether a decision may change."""
        known = task.cached
        if isinstance(result, Fault):
            longest = LONGEST_PAUSE_SECONDS if self._intents else LONGEST_IDLE_PAUSE_SECONDS
            pause = min(FIRST_PAUSE_SECONDS * 2.0 ** min(known.failures, 16), longest)
            known.record_fault(result, self._clock() + pause * (1.0 - 0.5 * self._jitter()))
            self._reporter.count_request(failed=True)
            return False
        news = known.doubt(self._clock()) is not None or known.document != result.document
        known.update(result.document, result.at)
        self._reporter.count_request(failed=False, swaps=result.swaps)
        if task.event is None:
            others = self._obligations.keys() | self._known
            slots = result.document.slots.items()
            self._orphan_watch.add_unlisted(
                [key for key, slot in slots if self._me in slot.names and key not in others]
            )
        if task.event is not None:
            self._confirm_not_ready(task.event, task.key, result.document)
            if task.withdraws and not self._has_statement(task.event, task.key):
                self._record_withdrawal(task.event, barriers=task.key)
            return news
        for want in task.wants:
            if want.state == RELEASE and want.key not in self._intents:
                self._record_withdrawal(want.key, slots=task.key)
        takes = [want.at_most for want in task.wants if want.state == TAKE]
        if takes:
            own = [want.key for want in task.wants]
            self._queues.setdefault(task.key, QueueWatch()).update(result.document, result.at, min(takes), own)
        return news

    def _confirm_not_ready(self, key: str, barrier_key: str, document: Barrier) -> None:
        """Record that the store no longer says that this VM is ready: no earlier write can take effect any more."""
        statement, own = document.members.get(self._me), self._obligations.get(key)
        if own is not None and barrier_key in own.ready and (statement is None or statement.state != READY):
            self._obligations[key] = own._replace(ready=tuple(each for each in own.ready if each != barrier_key))
            self._unsaved = True

    def _has_statement(self, key: str, barrier_key: str) -> bool:
        intent = self._intents.get(key)
        return intent is not None and intent.barrier == barrier_key and intent.statement is not None

    def _record_withdrawal(self, key: str, barriers: str = "", slots: str = "") -> None:
        """Record that the store has acknowledged a withdrawal."""
        own = self._obligations.get(key)
        if own is None:
            return
        left = own._replace(
            barriers=tuple(each for each in own.barriers if each != barriers),
            slots=tuple(each for each in own.slots if each != slots),
            ready=tuple(each for each in own.ready if each != barriers),
        )
        self._unsaved = True
        self._barriers.pop(barriers, None)
        self._reporter.report_withdrawal(key, barriers or slots, self._subject(key, left))
        if left.barriers or left.slots:
            self._obligations[key] = left
        else:
            del self._obligations[key]
            self._ending -= {key}

    # The file of obligations

    def _resume(self) -> None:
        try:
            found = obligations.read(self._directory)
        except ValueError as error:
            self._reporter.report_unreadable_file(error)
            self._resumed = self._obligations_unreadable = True
            return
        if found is not None:
            self._me, self._obligations, self._resumed = found.vm, dict(found.events), True

    def _save(self) -> bool:
        """Return whether the file has all obligations: there is no request before."""
        if not self._unsaved:
            return True
        try:
            obligations.write(self._directory, Obligations(self._me, self._obligations))
        except OSError as error:
            self._save_at = self._clock() + DISK_PAUSE_SECONDS
            self._disk_fault = StoreFault(f"{self._directory}: {error.strerror or error}", kind=LOST_DATA)
            self._report()
            return False
        self._unsaved, self._disk_fault = False, None
        return True

    def _report(self) -> None:
        """Report the state of the store, and of this VM's slots and barriers, if it has changed."""
        faults = (known.fault for known in (*self._semaphores.values(), *self._barriers.values()))
        self._reporter.report_problem(self._disk_fault or next((fault for fault in faults if fault is not None), None))
        for key, own in self._obligations.items():
            subject = self._subject(key, own)
            for group in own.slots:
                self._reporter.report_slot(self._semaphores.get(group), key, self._me, group, subject)
            for barrier_key in own.barriers:
                self._reporter.report_barrier(self._barriers.get(barrier_key), key, self._me, barrier_key, subject)

    def _subject(self, key: str, own: EventObligations) -> Subject:
        return Subject(own.event_id, self._intents[key].record if key in self._intents else None)
