# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Puts a runner together."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import datetime, timezone
from typing import TYPE_CHECKING, NamedTuple

from ..imds.client import Client
from ..policy.pause import SERVICE_STATE
from .approvals import Approvals
from .clocks import Clocks
from .controller import Controller
from .drills.drill import Drills
from .exchange import Exchange
from .hooks.commands import HookSettings
from .hooks.executor import Executor
from .hooks.needs_watch import NeedsWatch
from .hooks.recovery_requests import RecoveryRequests
from .hooks.running import GRACE_SECONDS
from .hooks.scheduler import HookScheduler
from .journal.null import NoJournal
from .journal.writer import Journal
from .loop import Previous, Reloaded, Runner, Stop
from .observed import Observed
from .pausing import Pausing
from .policies import Policies
from .poller import Poller, VmIdentity
from .reconciler import Mode, Reconciler
from .rehearsal import Rehearsal
from .requester import InlineRequester, Requester
from .shadow import Shadow
from .telemetry.health import HealthReporter
from .telemetry.heartbeat import Heartbeat
from .telemetry.log import Log
from .telemetry.metrics import Metrics
from .telemetry.readiness import Readiness
from .telemetry.recorder import Recorder
from .telemetry.systemd import Notifier
from .ticks import Ticks

if TYPE_CHECKING:
    from .groups.coordinator import Coordinator
    from .groups.settings import GroupSettings
    from .groups.store import Store
    from .sink.sink import Sink, SinkSettings


class GroupEquipment(NamedTuple):
    """The group of the VM, its store, and what asks it. ``chance`` returns a number from 0 to 1, so that VMs that begin
    together do not go on together.
    """

    settings: GroupSettings
    store: Store
    requester: Requester
    chance: Callable[[], float] = lambda: os.urandom(1)[0] / 255
    sleep: Callable[[float], None] = time.sleep


class Equipment(NamedTuple):
    """What may differ between runners. ``directory`` is the state directory, None to keep nothing; ``elsewhere`` is one
    in memory, for the heartbeat when the disk is full. Without a ``requester`` the main thread makes the requests.
    """

    clocks: Clocks
    log: Log
    mode: Mode = Mode()
    directory: str | None = None
    settings: HookSettings = HookSettings()
    metrics: Metrics | None = None
    textfile: str | None = None
    notifier: Notifier | None = None
    readiness: Readiness | None = None
    requester: Requester | None = None
    elsewhere: str | None = None
    shadow: Shadow | None = None
    reload: Callable[[], Reloaded] | None = None
    previous: Previous = Previous()
    watch: NeedsWatch | None = None
    sink: SinkSettings | None = None
    group: GroupEquipment | None = None


def assemble(
    client: Client, identity: VmIdentity, policies: Policies, stop: Stop, wake: Callable[[], None], equipment: Equipment
) -> Runner:
    """Return a runner that decides by ``policies``. ``wake`` ends ``stop``'s wait, from any thread."""
    clocks, log, mode, directory = equipment.clocks, equipment.log, equipment.mode, equipment.directory
    journal = NoJournal(clocks) if directory is None else Journal(directory, clocks)
    recorder = Recorder(journal, log, equipment.metrics or Metrics())

    def now() -> datetime:
        return datetime.fromtimestamp(clocks.wall(), timezone.utc)

    executor = Executor(wake, grace_seconds=GRACE_SECONDS, clock=clocks.monotonic)
    scheduler = HookScheduler(executor, recorder, clocks, equipment.settings, now)
    health = HealthReporter(
        scheduler,
        recorder,
        clocks,
        now,
        notifier=equipment.notifier or Notifier({}, clocks),
        heartbeat=None if directory is None else Heartbeat(directory, clocks, equipment.elsewhere),
        textfile=equipment.textfile,
        readiness=equipment.readiness,
        watch=equipment.watch,
    )

    pausing = Pausing(directory or SERVICE_STATE, recorder, clocks, health.facts, equipment.previous.pause)

    def reconciler(drill: bool) -> Reconciler:
        return Reconciler(policies, scheduler, recorder, clocks, now, mode, pausing, drill=drill)

    approvals = Approvals(client, scheduler.records, recorder, clocks, stop.request, mode, pausing)
    drills = None if directory is None else Drills(directory, clocks, policies.api_version)
    observed = Observed(recorder, clocks)
    controller = Controller(
        reconciler(drill=False),
        Rehearsal(reconciler(drill=True), drills, approvals, recorder),
        scheduler,
        identity,
        health,
        observed,
    )
    controller.reconciler.shadow = equipment.shadow
    exchange = Exchange(
        equipment.requester or InlineRequester(clocks.monotonic),
        Poller(client, recorder, clocks.monotonic),
        identity,
        approvals,
        controller,
        health,
        log,
        clocks.monotonic,
    )
    return Runner(
        controller,
        exchange,
        scheduler,
        None if directory is None else RecoveryRequests(directory, scheduler.records, recorder),
        pausing,
        recorder,
        health,
        observed,
        clocks,
        Ticks(1.0, client.limiter, clocks.monotonic),
        stop,
        equipment.reload,
        equipment.previous,
        _sink(equipment, recorder, wake, health),
        _group(equipment, controller.reconciler, scheduler, recorder, health),
    )


def _sink(equipment: Equipment, recorder: Recorder, wake: Callable[[], None], health: HealthReporter) -> Sink | None:
    if equipment.sink is None or equipment.directory is None:
        return None
    from .sink.sink import Sink  # here: most have none

    clocks = equipment.clocks
    executor = Executor(wake, grace_seconds=GRACE_SECONDS, clock=clocks.monotonic)
    return Sink(
        equipment.sink, equipment.directory, executor, recorder, clocks, health.facts, dry_run=equipment.mode.dry_run
    )


def _group(
    equipment: Equipment,
    reconciler: Reconciler,
    scheduler: HookScheduler,
    recorder: Recorder,
    health: HealthReporter,
) -> Coordinator | None:
    if equipment.group is None or equipment.directory is None or equipment.mode.dry_run:
        return None
    from .groups.coordinator import Coordinator  # here: most have none
    from .groups.member import Member

    settings, store, requester, chance, sleep = equipment.group
    coordinator = Coordinator(
        settings, store, requester, equipment.directory, recorder, equipment.clocks, health.facts, chance, sleep
    )
    reconciler.group = Member(coordinator, scheduler, recorder.journal)
    return coordinator
