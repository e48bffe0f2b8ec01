# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What this VM tells the other VMs of its group, and what it knows of them: the runner's side of the store.

Another thread asks the store (``requester``), so that neither hooks nor polls wait for it. The store is asked only
while an event of the group is listed here, or while this VM has to take something back.
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
from .group_reporter import GroupReporter
from .intent import Intent, Need
from .lineage import LineageMemory
from .obligations import EventObligations, Obligations
from .semaphore import RELEASE, TAKE, Semaphore, Want
from .settings import GroupSettings
from .stale_events import OrphanWatch, QueueWatch
from .store import LOST_DATA, Store, StoreFault
from .store_tasks import StoreResult, StoreTask, decode_semaphore, run_requests, want_of

# After a fault, doubled each time: while an event is listed, and when something is only to be taken back.
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS, LONGEST_IDLE_PAUSE_SECONDS = 0.5, 8.0, 60.0
DISK_PAUSE_SECONDS = 1.0
STORE = "store"  # what its requests are for


class Coordinator:
    """For the main thread alone. ``directory`` is the state directory. ``jitter`` returns a random number from 0 to 1.

    ``facts`` are for the heartbeat. Nothing here raises: what fails is a reason to hold.
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
        self._ending: frozenset[str] = frozenset()  # what is owed of these events is taken back
        self._unsaved = False
        self._save_at = 0.0
        self._resumed = False  # an earlier runner may have writes under way
        self._obligations_unreadable = False  # what an earlier runner has written cannot be read
        self._barriers: dict[str, CachedDocument] = {}
        self._semaphores: dict[str, CachedDocument] = {}
        self._memories: dict[str, LineageMemory] = {}  # of semaphores, also while nobody asks the store
        self._queues: dict[str, QueueWatch] = {}
        self._orphan_watch = OrphanWatch()
        self._tasks: list[StoreTask] = []
        self._disk_fault: StoreFault | None = None
        self._resume()
        self._reporter.update_facts(0)

    # What this VM has to say

    def update_listed(self, keys: Collection[str]) -> None:
        """Take in which events a whole document lists, by ``Event.key``."""
        self._orphan_watch.update_listed(keys, self._clock())

    def started_intent(self, key: str, intent: Intent) -> Intent:
        """Return what is left to tell of an event that has started: ``intent`` where nothing was told before."""
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
        """Return whether the store may have from this VM that it is ready: then it has to stay as it is.

        ``in_barrier``: this VM is one of those that have to say so.
        """
        owed = self._obligations.get(key)
        return self._obligations_unreadable and in_barrier if owed is None else bool(owed.ready)

    def publish(
        self, me: str | None, intents: Mapping[str, Intent], known: Collection[str], may_end: Callable[[str], bool]
    ) -> None:
        """Tell the store these ``intents`` of the VM ``me``, by ``Event.key``.

        What was told of an event that is still ``known`` stays. For another, all is taken back, provided that it
        ``may_end``: this VM is sure that it has nothing more to recover.
        """
        if me is not None and not self._obligations:  # otherwise the name under which that was written
            self._me = me.lower()
        self._known = frozenset(known)
        self._intents = {key: intent for key, intent in self._intents.items() if key in known}
        for key, intent in intents.items():
            if key in self._ending:
                self._invalidate(key)  # what is being taken back may look as if it was still there
            self._intents[key] = intent
            self._add_obligations(key, intent)
        over = [key for key in self._obligations if key not in self._intents and key not in known]
        self._ending = frozenset(key for key in over if may_end(key))
        if not self._obligations:
            self._semaphores.clear()  # nobody asks the store now, and nobody knows how it is
            self._queues.clear()
            self._reporter.clear_problem()
        self._begin_request()
        self._reporter.update_facts(len(self._ending))

    def _invalidate(self, key: str) -> None:
        owed = self._obligations[key]
        for views, keys in ((self._barriers, owed.barriers), (self._semaphores, owed.slots)):
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
        owed = EventObligations(intent.event_id, tuple(sorted(barriers)), tuple(sorted(slots)), tuple(sorted(ready)))
        if (barriers or slots) and owed != before:
            self._obligations[key] = owed
            self._unsaved = True

    # What it knows

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
        no_slot = None if need is None else self._no_slot(key, need, fresh=True)
        return Agreement(not_ready, no_slot, approver, seconds)

    def slot_obstacle(self, key: str, need: Need) -> str:
        """Return why this VM may not be prepared for an event yet, "" if it has its slot."""
        return self._no_slot(key, need, fresh=False) or ""

    def _no_slot(self, key: str, need: Need, *, fresh: bool) -> str | None:
        if need.impossible:
            return need.impossible
        known = self._semaphores.get(need.group)
        if known is None or known.document is None or known.fence:
            return cached_document.ASKED if known is None else known.problem
        doubt = known.doubt(self._clock()) if fresh else None
        return doubt or cached_document.why_no_slot(known.document, key, need)

    # Asking

    def next_in(self) -> float | None:
        """Return the seconds until the store is to be asked by the time alone, None if it is not."""
        if self._requester.busy or not self._me:
            return None
        now = self._clock()
        dues = [due for due, _task in self._due_tasks(now)]
        return max(0.0, min(dues) - now, self._save_at - now) if dues else None

    def collect_results(self) -> bool:
        """Take in what the store has answered, and ask what is due; return whether that may change a decision."""
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
        """Abandon what is under way: the next runner looks again."""
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
        """Return the documents that are to be looked at, each with the monotonic time at which."""
        dues = ((task.due_at(now, self._me, self._intents), task) for task in self._all_tasks())
        return [(due, task) for due, task in dues if due is not None]

    def _all_tasks(self) -> list[StoreTask]:
        tasks: list[StoreTask] = []
        wants: dict[str, list[Want]] = {}
        for key, owed in self._obligations.items():
            intent = self._intents.get(key)
            if intent is None and key not in self._ending:
                continue
            tasks += [self._barrier_task(key, each, intent) for each in owed.barriers]
            for group in owed.slots:
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
        # What is taken back is taken back for good. It is too late to take back what an approval rests on.
        takes_back = own is None or (own.state != READY and barrier_key in self._obligations[key].ready)
        closed = own is not None and known.document is not None and known.document.closed_for(own.content) is not None
        fence = known.fence or (takes_back and not closed)
        request = partial(self._change, known, barrier_key, barrier.decode, encode, step, fence)
        return StoreTask(known, barrier_key, step, request, fence, key, own is None)

    def _semaphore_task(self, group: str, wants: Sequence[Want]) -> StoreTask:
        memory = self._memories.setdefault(group, LineageMemory(kept=True))
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
        """Return the events that are over, and for which others have taken a slot for this VM when it did not run."""
        if document is None:
            return []
        over = self._orphan_watch.orphans - self._obligations.keys() - self._known
        return sorted(key for key in over if key in document.slots and self._me in document.slots[key].names)

    def _change(
        self,
        known: CachedDocument,
        key: str,
        decode: Callable[[bytes | None], Any],
        encode: Callable[[Any], bytes | None],
        step: Callable[[Any], Any],
        fence: bool,
    ) -> transaction.ChangeResult:
        """Look at a document. Runs in the requester's thread."""
        clock, memory = self._clock, known.memory
        return transaction.change(
            self._store, key, decode, encode, step, clock, self._pause, fence=fence, memory=memory
        )

    def _pause(self, attempt: int) -> None:
        longest = min(transaction.FIRST_PAUSE_SECONDS * 2.0**attempt, transaction.LONGEST_PAUSE_SECONDS)
        self._sleep(longest * self._jitter())

    # Answers

    def _handle_result(self, task: StoreTask, result: StoreResult) -> bool:
        """Take in one answer; return whether it may change a decision."""
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
            ours = [key for key, slot in result.document.slots.items() if self._me in slot.names]
            self._orphan_watch.add_unlisted(
                [key for key in ours if key not in self._obligations and key not in self._known]
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
        """Note that others no longer see this VM as ready, if so: no earlier write can take effect any more."""
        said, owed = document.members.get(self._me), self._obligations.get(key)
        if owed is not None and barrier_key in owed.ready and (said is None or said.state != READY):
            self._obligations[key] = owed._replace(ready=tuple(each for each in owed.ready if each != barrier_key))
            self._unsaved = True

    def _has_statement(self, key: str, barrier_key: str) -> bool:
        intent = self._intents.get(key)
        return intent is not None and intent.barrier == barrier_key and intent.statement is not None

    def _record_withdrawal(self, key: str, barriers: str = "", slots: str = "") -> None:
        """Note that the store has acknowledged that this VM has nothing there any more."""
        owed = self._obligations.get(key)
        if owed is None:
            return
        left = owed._replace(
            barriers=tuple(each for each in owed.barriers if each != barriers),
            slots=tuple(each for each in owed.slots if each != slots),
            ready=tuple(each for each in owed.ready if each != barriers),
        )
        self._unsaved = True
        self._barriers.pop(barriers, None)
        self._reporter.report_withdrawal(key, barriers or slots, left, self._intents.get(key))
        if left.barriers or left.slots:
            self._obligations[key] = left
        else:
            del self._obligations[key]
            self._ending -= {key}

    # Keeping what is owed

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
        """Return whether the file has all that is owed: nothing is asked before."""
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
        """Report what has changed: the store's health over all documents, and how it stands with this VM's events."""
        faults = (known.fault for known in (*self._semaphores.values(), *self._barriers.values()))
        self._reporter.report_problem(self._disk_fault or next((fault for fault in faults if fault is not None), None))
        for key, owed in self._obligations.items():
            intent = self._intents.get(key)
            for group in owed.slots:
                self._reporter.report_slot(self._semaphores.get(group), key, self._me, owed, group, intent)
            for barrier_key in owed.barriers:
                self._reporter.report_barrier(self._barriers.get(barrier_key), key, self._me, owed, barrier_key, intent)
