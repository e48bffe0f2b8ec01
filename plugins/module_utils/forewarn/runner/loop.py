# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The runner's cycle, once a tick until a signal ends it: poll, decide, approve, run hooks.

An approval is sent only right after a poll that was answered, so it always rests on the document as it is now. Hooks
wait neither for the service (``exchange``) nor for a reader of the log (``log_writer``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ..errors import InputError, ServiceError
from .clocks import Clocks, Stamp
from .controller import Controller
from .exchange import Exchange
from .hooks.needs_watch import Look
from .hooks.recovery_requests import RecoveryRequests
from .hooks.scheduler import HookScheduler
from .observed import Observed
from .pausing import Pausing
from .policies import Policies
from .signals import Interrupted
from .telemetry.health import HealthReporter
from .telemetry.recorder import Recorder
from .ticks import Ticks

if TYPE_CHECKING:
    from .groups.coordinator import Coordinator
    from .shadow import Shadow
    from .sink.sink import Sink

# What is due at every tick waits this long for an answer of the service.
KEEP_PATIENCE_SECONDS = 0.1
# For an approval that is under way when the stop signal comes.
STOP_PATIENCE_SECONDS = 0.5


class Stop(Protocol):
    """What the runner needs of ``signals.StopSignals``."""

    received: str | None
    reload: bool

    def wait(self, seconds: float) -> None:
        """Sleep until a signal comes, a hook ends or the service answers, but ``seconds`` at most."""

    def request(self) -> AbstractContextManager[None]:
        """Wrap requests of ``run_once``: a stop signal can end them with Interrupted."""


class Reloaded(NamedTuple):
    """The configuration as it is now.

    ``missing`` are sentences on what hooks need and lack; ``look`` returns them anew, None if they need nothing.
    ``facts`` are for the heartbeat.
    """

    policies: Policies
    shadow: Shadow | None
    interval_seconds: float
    missing: Sequence[str] = ()
    look: Look | None = None
    facts: Mapping[str, Any] = MappingProxyType({})


class Previous(NamedTuple):
    """What is known of the previous runner: when it had its last answer, how long a reboot since then took, and the
    pause that it had reported.
    """

    last_poll: Stamp | None = None
    down_seconds: float | None = None
    pause: str | None = None


class Runner:
    """Decides by policy about what the service lists, runs the hooks, and approves. ``assembly`` puts it together."""

    def __init__(
        self,
        controller: Controller,
        exchange: Exchange,
        scheduler: HookScheduler,
        recoveries: RecoveryRequests | None,
        pausing: Pausing,
        recorder: Recorder,
        health: HealthReporter,
        observed: Observed,
        clocks: Clocks,
        ticks: Ticks,
        stop: Stop,
        reload: Callable[[], Reloaded] | None,
        previous: Previous,
        sink: Sink | None = None,
        group: Coordinator | None = None,
    ) -> None:
        self.controller = controller
        self.scheduler = scheduler
        self.recorder = recorder
        self.health = health
        self._exchange = exchange
        self._recoveries = recoveries
        self._pausing = pausing
        self._observed = observed
        self._clocks = clocks
        self._ticks = ticks
        self._stop = stop
        self._reload_configuration = reload
        self._previous = previous
        self._sink = sink
        self._group = group
        self._keep_at = clocks.monotonic()
        self._hurried = False  # a poll should not wait for its tick

    def resume(self) -> None:
        """Resume what the previous runner left, before anything is processed."""
        self.controller.resume(self._previous.last_poll)
        if self._previous.down_seconds is not None:
            self._observed.rebooted(self._previous.down_seconds)

    def run(self, interval_seconds: float) -> None:
        """Work until a stop signal. Raises no ServiceError: no fault of the service ends the runner.

        Raises BrokenPipeError, once its hooks have ended, if the log has lost its reader.
        """
        try:
            self.resume()
            self.recorder.journal.commit()
            self.health.started()
            self._ticks.every(interval_seconds)
            self._look_for_requests()  # before what they concern is started
            self.work()  # recoveries need no answer of the service
            while self._stop.received is None:
                self.turn()
            self._stopped()
        except BrokenPipeError:
            self.close()
            raise

    def close(self) -> None:
        """End the hooks, then close the files of its state."""
        self.scheduler.close()
        if self._sink is not None:
            self._sink.close()
        if self._group is not None:
            self._group.close()
        self.recorder.journal.close()
        self.health.close()

    def turn(self) -> None:
        """Do what is due, then wait until something else may be."""
        if self._stop.reload:
            self._reload()
        exchange = self._exchange
        if not exchange.busy and self._ticks.remaining() <= 0:
            self.cycle()
        elif exchange.take_in() or self._clocks.monotonic() >= self._keep_at:
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
        exchange, now = self._exchange, self._clocks.monotonic()
        dues = [self._keep_at - now if exchange.busy else self._ticks.remaining()]
        group_due = None if self._group is None else self._group.next_in()
        dues += [due for due in (self.scheduler.next_in(), exchange.next_in(), group_due) if due is not None]
        wait = max(0.0, min(dues))
        self.health.turning(wait)
        self._observed.before_wait(wait)
        self._stop.wait(wait)
        self._observed.after_wait()

    def _stopped(self) -> None:
        journal = self.recorder.journal
        self.health.stopping()
        until = self._clocks.monotonic() + STOP_PATIENCE_SECONDS
        if self._sink is not None:
            self._sink.close()  # at once: its process does not catch the signal
        if self._group is not None:
            self._group.close()
        self.scheduler.close()  # in the journal these hooks are still running, so they run again
        self._exchange.abandon(max(0.0, until - self._clocks.monotonic()))
        self.recorder.log.info("stopped", signal=self._stop.received)
        journal.note("runner-stopped", None, signal=self._stop.received)
        journal.close()
        if self.controller.adopt_late(grace_seconds=0.0):  # the journal could be read only now
            journal.close()
        self.health.close()

    def run_once(self) -> None:
        """Poll once, patiently, decide and approve. Raises ServiceError if the service did not do what was asked."""
        self.recorder.journal.open()  # a state directory can name events in doubt, which are not approved
        try:
            self._exchange.once(self._stop.request)
        except Interrupted:
            raise ServiceError(f"Ended by {self._stop.received} before the service had answered.") from None

    def cycle(self) -> None:
        """Do what is due at one tick."""
        self._exchange.poll()
        self._exchange.take_in()
        if self._exchange.busy:  # what else is due at a tick is done with the answer, or soon without it
            self._keep_at = max(self._keep_at, self._clocks.monotonic() + KEEP_PATIENCE_SECONDS)
            self.work()
        else:
            self._keep()

    def _keep(self) -> None:
        """Do what is due after an answer of the service, and once in a while without one."""
        self._keep_at = self._clocks.monotonic() + self._ticks.interval
        self.controller.keep()
        self._look_for_requests()
        self.work()
        if self._sink is not None:
            self._sink.vm_name = self.scheduler.vm_name
            self._sink.keep()
        self.health.keep()

    def _look_for_requests(self) -> None:
        self._pausing.keep(sending=self._exchange.sending)
        if self._recoveries is not None:
            self._recoveries.look()

    def work(self) -> None:
        """Take in the hooks that have ended, and start those that are due."""
        journal = self.recorder.journal
        if self._sink is not None:
            self._sink.collect()
        if self.scheduler.collect():
            self._hurried = True  # a prepared event may be approved, which takes a fresh document
            if self._group is not None:
                self.controller.decide_again()  # the other VMs wait for this one
        if self._group is not None and self._group.collect():
            self._hurried = True  # what they have agreed on may be approved
            self.controller.decide_again()
        self.controller.resume_late()  # before anything is started, and before requests that concern it
        if self._recoveries is not None:
            self._recoveries.settle()
        waited = journal.trouble is not None
        self.scheduler.advance()
        kept = journal.commit()
        if waited and kept:  # what had to wait for the journal is due now
            self.controller.resume_late()
            self.scheduler.advance()
            kept = journal.commit()
        if kept and self._recoveries is not None:
            self._recoveries.kept()

    def _reload(self) -> None:
        """Read the configuration again. If it is invalid, the runner goes on with what it had."""
        self._stop.reload = False
        if self._reload_configuration is None:
            return
        log, journal = self.recorder.log, self.recorder.journal
        self.health.reloading()
        problem = None
        try:
            reloaded = self._reload_configuration()
        except InputError as error:
            problem = error.message
            hint = "The runner goes on with what it had. " + error.hint
            log.error("reload-failed", reason=error.message, hint=hint.strip())
            journal.note("reload-failed", None, reason=error.message)
        else:
            digest, before = reloaded.policies.digest, self.controller.reconciler.policies.digest
            self.controller.follow(reloaded.policies, reloaded.shadow)
            log.info("reloaded", digest=digest, before=before)
            journal.note("reloaded", None, policy=digest, before=before)
            self.controller.decide_again()
            self.health.decided_by(reloaded.policies)
            self.health.watch_needs(reloaded.look, reloaded.missing)
            self.health.facts.update(reloaded.facts, interval_seconds=reloaded.interval_seconds)
            self._ticks.every(reloaded.interval_seconds)
        self.health.reloaded(problem)
