# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Puts a runner together."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..imds.client import Client
from ..policy.engine import PolicySet
from ..system.paths import SERVICE_STATE
from ..system.service_manager import ServiceNotifier
from .approvals import Approvals
from .controller import Controller
from .drills.drill import Drills
from .drills.runner import DrillRunner
from .exchange import Exchange, Stop
from .hooks.executor import Executor
from .hooks.recovery_requests import RecoveryRequests
from .hooks.running_hooks import GRACE_SECONDS
from .hooks.scheduler import HookScheduler
from .impact import ImpactTracker
from .journal.null import NoJournal
from .journal.writer import Journal
from .loop import Runner
from .operator_pause import OperatorPause
from .options import RunnerOptions
from .poll_schedule import PollSchedule
from .poller import Poller, VmIdentity
from .reconciler import Reconciler
from .requester import ThreadRequester
from .telemetry.health import HealthReporter
from .telemetry.heartbeat import Heartbeat
from .telemetry.metrics import Metrics
from .telemetry.recorder import Recorder

if TYPE_CHECKING:
    from .groups.member import Member
    from .policy_source.source import PolicySource
    from .sink.sink import Sink


def assemble(
    client: Client,
    identity: VmIdentity,
    policies: PolicySet,
    stop: Stop,
    wake: Callable[[], None],
    options: RunnerOptions,
) -> Runner:
    """Return a runner that decides by ``policies``. ``wake`` ends ``stop``'s wait, from any thread."""
    clocks, log, mode, directory = options.clocks, options.log, options.mode, options.directory
    journal = NoJournal(clocks) if directory is None else Journal(directory, clocks)
    recorder = Recorder(journal, log, options.metrics or Metrics())

    executor = Executor(wake, grace_seconds=GRACE_SECONDS, clock=clocks.monotonic)
    scheduler = HookScheduler(executor, recorder, clocks, options.hook_settings)
    health = HealthReporter(
        scheduler,
        recorder,
        clocks,
        notifier=options.notifier or ServiceNotifier({}, clocks.monotonic),
        heartbeat=None if directory is None else Heartbeat(directory, clocks, options.fallback_directory),
        textfile=options.textfile,
        readiness=options.readiness,
        watch=options.needs_watch,
    )

    operator_pause = OperatorPause(directory or SERVICE_STATE, recorder, clocks, health.facts, options.previous.pause)

    def reconciler(drill: bool) -> Reconciler:
        return Reconciler(policies, scheduler, recorder, clocks, mode, operator_pause, drill=drill)

    approvals = Approvals(client, scheduler.records, recorder, clocks, mode, operator_pause)
    drills = None if directory is None else Drills(directory, clocks, policies.api_version)
    controller = Controller(
        reconciler(drill=False),
        DrillRunner(reconciler(drill=True), drills, approvals, recorder),
        scheduler,
        identity,
        health,
        ImpactTracker(recorder, clocks),
    )
    controller.reconciler.shadow = options.shadow
    controller.reconciler.group = _group(options, scheduler, recorder, health)
    schedule = PollSchedule(1.0, client.limiter, clocks.monotonic)
    exchange = Exchange(
        options.requester or ThreadRequester(wake, clocks.monotonic),
        Poller(client, recorder, clocks.monotonic),
        identity,
        approvals,
        controller,
        schedule,
        health,
        log,
        clocks.monotonic,
    )
    recoveries = RecoveryRequests(directory or os.devnull, scheduler.records, recorder)  # no file can be below it
    source = _policy_source(options, recorder, wake, health)
    background = [task for task in (_sink(options, recorder, wake, health), source) if task is not None]
    return Runner(
        options,
        controller,
        exchange,
        schedule,
        operator_pause,
        recoveries,
        recorder,
        health,
        stop,
        background,
        source,
    )


def _policy_source(
    options: RunnerOptions, recorder: Recorder, wake: Callable[[], None], health: HealthReporter
) -> PolicySource | None:
    if options.policy_source is None or options.directory is None:
        return None
    from .policy_source.source import PolicySource  # here: most have none

    clocks = options.clocks
    executor = Executor(wake, grace_seconds=GRACE_SECONDS, clock=clocks.monotonic)
    return PolicySource(options.policy_source, options.directory, executor, recorder, clocks, health.facts)


def _sink(options: RunnerOptions, recorder: Recorder, wake: Callable[[], None], health: HealthReporter) -> Sink | None:
    if options.sink is None or options.directory is None:
        return None
    from .sink.sink import Sink  # here: most have none

    clocks = options.clocks
    executor = Executor(wake, grace_seconds=GRACE_SECONDS, clock=clocks.monotonic)
    return Sink(options.sink, options.directory, executor, recorder, clocks, health.facts, dry_run=options.mode.dry_run)


def _group(
    options: RunnerOptions, scheduler: HookScheduler, recorder: Recorder, health: HealthReporter
) -> Member | None:
    if options.group is None or options.directory is None or options.mode.dry_run:
        return None
    from .groups.coordinator import Coordinator  # here: most have none
    from .groups.member import Member

    settings, store, requester, jitter, sleep = options.group
    coordinator = Coordinator(
        settings, store, requester, options.directory, recorder, options.clocks, health.facts, jitter, sleep
    )
    return Member(coordinator, scheduler, recorder.journal)
