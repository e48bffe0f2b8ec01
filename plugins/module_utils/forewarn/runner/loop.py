# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The runner's cycle: poll, decide, approve, see to the hooks; once a tick until a signal ends it.

An approval is sent only right after a poll that was answered, so it always rests on the document as it is now. Hooks
wait neither for the service (``exchange``) nor for who reads the log (``log_writer``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ..errors import InputError, ServiceError
from ..events import Document, Event
from ..imds.client import Client
from .approvals import Approvals
from .clocks import Clocks, Stamp
from .drills.drill import Drills
from .event_record import RECOVERING
from .exchange import Exchange
from .hooks.executor import Executor
from .hooks.recovery_requests import Recoveries
from .hooks.scheduler import GRACE_SECONDS, HookScheduler
from .impact import Pauses
from .journal.writer import Journal
from .observed import Observed
from .poller import Identity, Poller
from .reconciler import Policy, Reconciler
from .requester import Requester
from .signals import Interrupted
from .telemetry.health import HealthReporter
from .telemetry.log import Logger
from .telemetry.metrics import Metrics
from .ticks import Ticks

if TYPE_CHECKING:
    from .shadow import Shadow

# With --once somebody or something waits for the end.
ONCE_IDENTITY_PATIENCE_SECONDS = 10.0
# An answer of the service comes within this, or what is due at every tick is done before it.
KEEP_PATIENCE_SECONDS = 0.1
# For an approval that is under way when the stop signal comes.
STOP_PATIENCE_SECONDS = 0.5


class Stop(Protocol):
    """What the runner needs of ``signals.StopSignals``."""

    received: str | None
    reload: bool

    def wait(self, seconds: float) -> None:
        """Sleep, but not past a signal, nor past a hook that has ended, nor past an answer of the service."""

    def request(self) -> AbstractContextManager[None]:
        """Around requests of ``run_once``: after a stop signal they may end in Interrupted."""


class Reloaded(NamedTuple):
    """The configuration as it is now."""

    policies: Policy
    shadow: Shadow | None
    interval_seconds: float
    absent: Sequence[str] = ()  # sentences on programs of hooks that are not there


class Parts(NamedTuple):
    """What a runner is made of; ``assembly`` puts it together."""

    client: Client
    requester: Requester
    identity: Identity
    reconciler: Reconciler
    drill_reconciler: Reconciler
    directory: str | None
    scheduler: HookScheduler
    executor: Executor
    approvals: Approvals
    journal: Journal
    log: Logger
    metrics: Metrics
    clocks: Clocks
    health: HealthReporter
    observed: Observed
    pauses: Pauses


class Runner:
    """Decides by policy about what the service lists, runs the hooks, and approves.

    ``last_poll`` is when the runner before had its last answer, ``down_seconds`` for how long a reboot since took.
    """

    def __init__(
        self,
        parts: Parts,
        stop: Stop,
        *,
        reload: Callable[[], Reloaded] | None = None,
        last_poll: Stamp | None = None,
        down_seconds: float | None = None,
    ) -> None:
        self._parts = parts
        self._stop = stop
        self._reload_configuration = reload
        self._last_poll = last_poll
        self._down_seconds = down_seconds
        clock = parts.clocks.monotonic
        self._exchange = Exchange(
            parts.requester,
            Poller(parts.client, parts.log, parts.journal, parts.metrics, clock),
            parts.identity,
            parts.approvals,
            parts.reconciler,
            parts.log,
            parts.client.limiter,
            clock,
            self._process,
            parts.health.polled,
        )
        self._ticks = Ticks(1.0, parts.client.limiter, clock)
        self._interval = 1.0
        self._keep_at = clock()  # monotonic seconds
        self._hurried = False  # a poll should not wait for its tick
        self._processed = False  # a document, since the last look at what is due once in a while
        self._drills: Drills | None = None
        self._recoveries: Recoveries | None = None
        if parts.directory is not None:
            self._recoveries = Recoveries(parts.directory, parts.scheduler, parts.journal, parts.log)
            self._drills = Drills(parts.directory, parts.clocks, parts.reconciler.policies.api_version)

    def resume(self) -> None:
        """Take up what the runner before left, before anything is processed."""
        parts = self._parts
        parts.scheduler.vm_name = parts.identity.vm.name  # as far as it is known: recoveries begin now
        parts.scheduler.resume()
        for reconciler in (parts.reconciler, parts.drill_reconciler):
            reconciler.restore(self._last_poll)
        if self._down_seconds is not None:
            parts.observed.rebooted(self._down_seconds)

    def run(self, interval_seconds: float) -> None:
        """Work until a stop signal. Raises no ServiceError: no fault of the service ends the runner.

        Raises BrokenPipeError, once its hooks have ended, if nobody is there to read the log any more.
        """
        parts = self._parts
        try:
            self._work_on(interval_seconds)
        except BrokenPipeError:
            parts.executor.close()
            parts.journal.close()
            raise

    def _work_on(self, interval_seconds: float) -> None:
        parts = self._parts
        self.resume()
        parts.journal.commit()
        parts.health.started()
        self._tick_every(interval_seconds)
        self._look_for_requests()  # before what they concern is started
        self.work()  # what is to be recovered needs nothing of the service
        while self._stop.received is None:
            self.turn()
        self._stopped()

    def turn(self) -> None:
        """Do what is due, then wait until something else may be."""
        if self._stop.reload:
            self._reload()
        exchange = self._exchange
        if not exchange.busy and self._ticks.remaining() <= 0:
            self.cycle()
        elif exchange.take_in() or self._parts.clocks.monotonic() >= self._keep_at:
            self._keep()
        else:
            self.work()
        if not exchange.busy:
            if exchange.ended:
                self._ticks.advance()
            if exchange.hurried or self._hurried:
                self._ticks.hurry()
            exchange.ended = exchange.hurried = self._hurried = False
        self._wait()

    def _wait(self) -> None:
        parts, exchange = self._parts, self._exchange
        now = parts.clocks.monotonic()
        dues = [self._keep_at - now if exchange.busy else self._ticks.remaining()]
        dues += [due for due in (parts.scheduler.next_in(), exchange.next_in()) if due is not None]
        wait = max(0.0, min(dues))
        parts.health.turning(wait)
        parts.pauses.before_wait(wait)
        self._stop.wait(wait)
        pause = parts.pauses.after_wait()
        if pause is not None:
            parts.observed.paused(pause)

    def _tick_every(self, seconds: float) -> None:
        self._interval = seconds
        self._ticks = Ticks(seconds, self._parts.client.limiter, self._parts.clocks.monotonic)

    def _stopped(self) -> None:
        parts = self._parts
        parts.health.stopping()
        until = parts.clocks.monotonic() + STOP_PATIENCE_SECONDS
        parts.executor.close()  # what it ends runs again: by the journal it was running
        self._exchange.abandon(max(0.0, until - parts.clocks.monotonic()))
        parts.log.info("stopped", signal=self._stop.received)
        parts.journal.note("runner-stopped", None, signal=self._stop.received)
        parts.journal.close()
        if self._adopt_late(grace_seconds=0.0):  # this stop is what found the journal
            parts.journal.close()

    def run_once(self) -> None:
        """Poll once, patiently, decide and approve. Raises ServiceError if the service did not do what was asked."""
        parts = self._parts
        parts.journal.open()  # with a state directory: what is in doubt there is not approved
        try:
            with self._stop.request():
                document = parts.client.read()
                if document.events:
                    parts.identity.refresh(ONCE_IDENTITY_PATIENCE_SECONDS)
            faults = parts.approvals.send(self._process(document), parts.reconciler, document)
        except Interrupted:
            raise ServiceError(f"Ended by {self._stop.received} before the service had answered.") from None
        if faults:
            raise faults[0]

    def cycle(self) -> None:
        """Do what is due at one tick."""
        self._exchange.poll()
        self._exchange.take_in()
        if self._exchange.busy:  # what else is due at a tick is done with the answer, or soon without it
            self._keep_at = max(self._keep_at, self._parts.clocks.monotonic() + KEEP_PATIENCE_SECONDS)
            self.work()
        else:
            self._keep()

    def _keep(self) -> None:
        """Do what is due after an answer of the service, and once in a while without one."""
        parts = self._parts
        self._keep_at = parts.clocks.monotonic() + self._interval
        if not self._processed:  # the service is silent, or answers with errors
            self._decide_again()
        self._processed = False
        self._rehearse()
        self._look_for_requests()
        self.work()
        parts.health.keep()

    def _decide_again(self) -> None:
        for reconciler in (self._parts.reconciler, self._parts.drill_reconciler):
            reconciler.decide_again(self._parts.identity.vm)

    def _look_for_requests(self) -> None:
        if self._recoveries is not None:
            self._recoveries.look()

    def work(self) -> None:
        """See to the hooks: take in what has ended, start what is due."""
        parts = self._parts
        if parts.scheduler.collect():
            self._hurried = True  # what is prepared may be approved, and for that the document has to be fresh
        self._resume_late()  # before anything is started, and before requests that concern it
        if self._recoveries is not None:
            self._recoveries.settle()
        waited = parts.journal.trouble is not None
        parts.scheduler.advance()
        kept = parts.journal.commit()
        if waited and kept:  # what had to wait for the journal is due now
            self._resume_late()
            parts.scheduler.advance()
            kept = parts.journal.commit()
        if kept and self._recoveries is not None:
            self._recoveries.kept()

    def _resume_late(self) -> None:
        """Take up records that the journal could not read at the start, and can now."""
        if self._adopt_late():
            self._decide_again()  # they were planned by the policies of that time
            self._rehearse()

    def _adopt_late(self, grace_seconds: float = GRACE_SECONDS) -> bool:
        """Go on with what the journal found late; return whether there was anything.

        Hooks of the earlier runner that still run have this long to end.
        """
        rows, self._parts.journal.late = self._parts.journal.late, []
        for record in self._parts.scheduler.resume_records(rows, grace_seconds):
            if record.listed:
                (self._parts.drill_reconciler if record.drill else self._parts.reconciler).adopt(record)
        return bool(rows)

    def _process(self, document: Document, age_seconds: float = 0.0) -> list[list[Event]]:
        parts = self._parts
        self._processed = True
        parts.scheduler.vm_name = parts.identity.vm.name
        parts.reconciler.nameless = parts.drill_reconciler.nameless = parts.identity.nameless
        requests = parts.reconciler.process(document, parts.identity.vm, age_seconds)
        # There may be no drill any more, and so no document of theirs.
        parts.drill_reconciler.ask_late(parts.identity.vm)
        parts.health.documented(document)
        parts.observed.attribute(parts.reconciler.tracker.records, parts.reconciler.ended, parts.scheduler.vm_name)
        return requests

    def _rehearse(self) -> None:
        """Let the drills go on. A real event that may affect this VM, or is being recovered from, ends them."""
        parts, drills = self._parts, self._drills
        name = parts.identity.vm.name
        if drills is None or (name is None and not parts.drill_reconciler.tracker.records):
            return
        # Also those that the service cannot show just now.
        real = [record.event for record in parts.reconciler.tracker.records]
        # Where the name of this VM is not known, or those of the event's, it may: a drill that ends early does no harm.
        unread = [event for event in real if event.problems and not event.resources]
        affecting = unread + [event for event in real if name is None or event.place_of(name) is not None]
        overtaken = None
        if affecting:
            overtaken = f"a real {affecting[0].event_type} is scheduled: {affecting[0].event_id}"
        else:
            records = (record for record in parts.scheduler.records if record.state == RECOVERING and not record.drill)
            recovering = next(records, None)
            if recovering is not None:
                overtaken = f"what was prepared for a real event is being recovered: {recovering.event.event_id}"
        document = drills.poll(name, overtaken)
        if document is not None or parts.drill_reconciler.tracker.records:
            document = document or Document(0)  # not an answer without a body
            requests = parts.drill_reconciler.process(document, parts.identity.vm)
            drills.approve(parts.approvals.pretend(requests, parts.drill_reconciler))
        for ended in drills.ended():
            parts.log.info("drill", **ended._asdict())
            parts.journal.note("drill", None, **ended._asdict())
            parts.metrics.count("forewarn_drills_total", result=ended.result)

    def _reload(self) -> None:
        """Read the configuration again; what was good stays, if what is there now is not."""
        self._stop.reload = False
        if self._reload_configuration is None:
            return
        parts = self._parts
        parts.health.reloading()
        problem = None
        try:
            reloaded = self._reload_configuration()
        except InputError as error:
            problem = error.message
            hint = "The runner goes on with what it had. " + error.hint
            parts.log.error("reload-failed", reason=error.message, hint=hint.strip())
            parts.journal.note("reload-failed", None, reason=error.message)
        else:
            before = parts.reconciler.policies.digest
            for reconciler in (parts.reconciler, parts.drill_reconciler):
                reconciler.policies = reloaded.policies
            parts.reconciler.shadow = reloaded.shadow
            parts.log.info("reloaded", digest=reloaded.policies.digest, before=before)
            for text in reloaded.absent:
                parts.log.error("hook-missing", reason=text, hint="Events that need it will be held.")
            parts.journal.note("reloaded", None, policy=reloaded.policies.digest, before=before)
            self._decide_again()
            parts.health.decided_by(reloaded.policies)
            parts.health.facts["interval_seconds"] = reloaded.interval_seconds
            self._tick_every(reloaded.interval_seconds)
        parts.health.reloaded(problem)
