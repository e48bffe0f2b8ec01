# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The runner's loop until a signal ends it: poll, decide, approve, run hooks.

An approval is sent only right after a poll that was answered, so it always rests on the document as it is now. Hooks
wait neither for the service (``exchange``) nor for a reader of the log (``log_writer``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..errors import InputError
from .controller import Controller
from .exchange import STOP_PATIENCE_SECONDS, Exchange, Stop
from .hooks.recovery_requests import RecoveryRequests
from .operator_pause import OperatorPause
from .options import RunnerOptions
from .poll_schedule import PollSchedule
from .telemetry.health import HealthReporter
from .telemetry.recorder import Recorder

if TYPE_CHECKING:
    from .background import BackgroundTask
    from .policy_source.source import PolicySource
    from .state.accepted_policy import SignedPolicy

# Delay the periodic tasks this long while a request is in flight.
TASKS_PATIENCE_SECONDS = 0.1


class Runner:
    """Decides by policy about the service's events, runs the hooks, and approves. ``assembly`` puts it together."""

    def __init__(
        self,
        options: RunnerOptions,
        controller: Controller,
        exchange: Exchange,
        schedule: PollSchedule,
        operator_pause: OperatorPause,
        recoveries: RecoveryRequests,
        recorder: Recorder,
        health: HealthReporter,
        stop: Stop,
        background: Sequence[BackgroundTask],
        policy_source: PolicySource | None,
    ) -> None:
        self.controller = controller
        self.scheduler = controller.scheduler
        self.recorder = recorder
        self.health = health
        self._options = options
        self._exchange = exchange
        self._schedule = schedule
        self._operator_pause = operator_pause
        self._recoveries = recoveries
        self._stop = stop
        self._background = background  # with the policy source, if there is one
        self._policy_source = policy_source
        self._tasks_at = options.clocks.monotonic()  # when the periodic tasks are due, whether or not an answer comes

    def resume(self) -> None:
        """Resume what the previous runner left, before anything is processed."""
        self.controller.resume(self._options.previous)

    def run(self, interval_seconds: float) -> None:
        """Run until a stop signal. Raises no ServiceError: no fault of the service ends the runner.

        Raises BrokenPipeError, once its hooks have ended, if the log has lost its reader.
        """
        try:
            self.resume()
            self.recorder.journal.commit()
            self.health.report_started()
            self._schedule.set_interval(interval_seconds)
            self._read_operator_requests()  # before what they concern is started
            self.advance_hooks()  # recoveries need no answer of the service
            while self._stop.received is None:
                self.step()
            self._stopped()
        except BrokenPipeError:
            self.close()
            raise

    def close(self) -> None:
        """End the hooks and all requests except those to the service, then close the files of the state."""
        self._end_children()
        self.recorder.journal.close()
        self.health.close()

    def _end_children(self) -> None:
        for task in self._background:
            task.close()  # at once: its process does not catch the signal
        self.controller.close()  # in the journal its hooks are still running, so they run again

    def step(self) -> None:
        """Perform the work that is due, then wait until more may be due."""
        if self._stop.reload:
            self._stop.reload = False
            self._reload()
        self._load_offer()
        if not self._exchange.busy and self._schedule.due_in() <= 0:
            self.poll_and_process()
        elif self._exchange.handle_responses() or self._options.clocks.monotonic() >= self._tasks_at:
            self._run_periodic_tasks()
        else:
            self.advance_hooks()
        self._wait()

    def _wait(self) -> None:
        exchange = self._exchange
        first = self._tasks_at - self._options.clocks.monotonic() if exchange.busy else self._schedule.due_in()
        dues = (first, self.controller.next_in(), exchange.next_in())
        wait = max(0.0, min(due for due in dues if due is not None))
        self.health.report_alive(wait)
        self.controller.impact.wait(self._stop.wait, wait)

    def _stopped(self) -> None:
        clock, journal = self._options.clocks.monotonic, self.recorder.journal
        self.health.report_stopping()
        until = clock() + STOP_PATIENCE_SECONDS
        self._end_children()
        self._exchange.abandon(max(0.0, until - clock()))
        self.recorder.log.info("stopped", signal=self._stop.received)
        journal.note("runner-stopped", None, signal=self._stop.received)
        journal.close()
        if self.controller.resume_late_records(grace_seconds=0.0):  # the journal could be read only now
            journal.close()
        self.health.close()

    def run_once(self) -> None:
        """Poll once, patiently, decide and approve. Raises ServiceError if the service did not do what was asked."""
        self.recorder.journal.open()  # a state directory can name events in doubt, which are not approved
        self._exchange.run_once(self._stop)

    def poll_and_process(self) -> None:
        """Poll, and process the answer if it is there at once."""
        self._exchange.poll()
        self._exchange.handle_responses()
        if self._exchange.busy:  # the periodic tasks follow the answer, or come soon without it
            self._tasks_at = max(self._tasks_at, self._options.clocks.monotonic() + TASKS_PATIENCE_SECONDS)
            self.advance_hooks()
        else:
            self._run_periodic_tasks()

    def _run_periodic_tasks(self) -> None:
        """Run what is due after each response of the service, and once an interval without one."""
        self._tasks_at = self._options.clocks.monotonic() + self._schedule.interval
        self.controller.refresh_decisions()
        self._read_operator_requests()
        self.advance_hooks()
        for task in self._background:
            task.vm_name = self.scheduler.vm_name
            task.start_if_due()
        self.health.report()

    def _read_operator_requests(self) -> None:
        self._operator_pause.report_change(approval_in_flight=self._exchange.approval_in_flight)
        self._recoveries.read_requests()

    def advance_hooks(self) -> None:
        """Process the hooks that have ended, and start those that are due."""
        journal = self.recorder.journal
        for task in self._background:
            task.collect_results()
        if self.controller.collect_results():
            self._schedule.poll_soon()
        self.controller.decide_about_late_records()  # before anything is started, and before requests that concern it
        self._recoveries.carry_out()
        blocked = journal.trouble is not None
        self.scheduler.advance()
        saved = journal.commit()
        if blocked and saved:  # what the journal has delayed is due now
            self.controller.decide_about_late_records()
            self.scheduler.advance()
            saved = journal.commit()
        if saved:
            self._recoveries.remove_done()

    def _reload(self) -> None:
        """Read the configuration again. If it is invalid, the runner keeps the one that it has."""
        self.health.report_reloading()
        problem = self._load(None)
        if problem is not None:
            hint = "The runner goes on with what it had. " + problem.hint
            self.recorder.log.error("reload-failed", reason=problem.message, hint=hint.strip())
            self.recorder.journal.note("reload-failed", None, reason=problem.message)
        self.health.report_reloaded(None if problem is None else problem.message)
        if self._policy_source is not None:
            self._policy_source.ask_again()

    def _load_offer(self) -> None:
        """Load what the policy source has offered. If it cannot be used, the runner keeps what it has."""
        offer = None if self._policy_source is None else self._policy_source.take_offer()
        if offer is not None and self._policy_source is not None:
            problem = self._load(offer)
            self._policy_source.report_loaded(None if problem is None else str(problem))

    def _load(self, offer: SignedPolicy | None) -> InputError | None:
        """Put the configuration in use, with policies of the source if there are any; return why it cannot be."""
        if self._options.reload is None:
            return None
        log, journal = self.recorder.log, self.recorder.journal
        try:
            configuration = self._options.reload(offer)
        except InputError as error:
            return error
        policies, before = configuration.policies, self.controller.reconciler.policies.digest
        self.controller.use_policies(policies, configuration.shadow)
        source: dict[str, object] = {} if policies.artifact.serial is None else {"serial": policies.artifact.serial}
        if offer is not None:
            source["from"] = "policy-source"
        log.info("reloaded", digest=policies.digest, before=before, **source)
        journal.note("reloaded", None, policy=policies.digest, before=before, **source)
        self.controller.decide_again()
        self.health.facts.update(configuration.facts, interval_seconds=configuration.interval_seconds)
        self.health.record_policies(policies)
        self.health.watch_needs(configuration.check, configuration.missing)
        self._schedule.set_interval(configuration.interval_seconds)
        return None
