# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Puts a runner together."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from typing import NamedTuple

from ..imds.client import Client
from .approvals import Approvals
from .clocks import Clocks
from .hooks.commands import HookSettings
from .hooks.executor import Executor
from .hooks.scheduler import GRACE_SECONDS, HookScheduler
from .impact import Pauses
from .journal.null import NoJournal
from .journal.writer import Journal
from .loop import Parts, Stop
from .observed import Observed
from .poller import Identity
from .reconciler import Mode, Policy, Reconciler
from .requester import InlineRequester, Requester
from .telemetry.health import HealthReporter
from .telemetry.heartbeat import Heartbeat
from .telemetry.log import Logger
from .telemetry.metrics import Metrics
from .telemetry.readiness import Readiness
from .telemetry.recorder import Recorder
from .telemetry.systemd import Notifier


class Equipment(NamedTuple):
    """What may differ from one runner to another. ``directory`` is that of the state, None to keep nothing;
    ``elsewhere`` is one in memory, for the heartbeat when the disk is full.

    Without a ``requester`` each request is waited for.
    """

    clocks: Clocks
    log: Logger
    mode: Mode = Mode()
    directory: str | None = None
    settings: HookSettings = HookSettings(None, None, None)
    metrics: Metrics | None = None
    textfile: str | None = None
    notifier: Notifier | None = None
    readiness: Readiness | None = None
    requester: Requester | None = None
    elsewhere: str | None = None


def assemble(
    client: Client,
    identity: Identity,
    policies: Policy,
    stop: Stop,
    wake: Callable[[], None],
    equipment: Equipment,
) -> Parts:
    """Return the parts of a runner that decides by ``policies``. ``wake`` ends ``stop``'s wait, from any thread."""
    clocks, log, mode, directory = equipment.clocks, equipment.log, equipment.mode, equipment.directory
    metrics = equipment.metrics or Metrics()
    journal = NoJournal() if directory is None else Journal(directory, clocks)
    recorder = Recorder(journal, log, metrics)

    def now() -> datetime:
        return datetime.fromtimestamp(clocks.wall(), timezone.utc)

    executor = Executor(wake, grace_seconds=GRACE_SECONDS, clock=clocks.monotonic)
    scheduler = HookScheduler(executor, recorder, clocks, equipment.settings, now)

    def reconciler(drill: bool) -> Reconciler:
        return Reconciler(policies, scheduler, recorder, clocks, now, mode, drill=drill)

    return Parts(
        client,
        equipment.requester or InlineRequester(clocks.monotonic),
        identity,
        reconciler(False),
        reconciler(True),
        directory,
        scheduler,
        executor,
        Approvals(client, scheduler, recorder, clocks, stop.request, mode),
        journal,
        log,
        metrics,
        clocks,
        HealthReporter(
            scheduler,
            recorder,
            clocks,
            now,
            notifier=equipment.notifier or Notifier({}, clocks),
            heartbeat=None if directory is None else Heartbeat(directory, clocks, equipment.elsewhere),
            textfile=equipment.textfile,
            readiness=equipment.readiness,
        ),
        Observed(recorder, clocks),
        Pauses(clocks),
    )
