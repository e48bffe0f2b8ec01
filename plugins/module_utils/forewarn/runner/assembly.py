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
from .conductor import GRACE_SECONDS, Conductor
from .docket import Docket, Mode, Policy
from .executor import Executor
from .heartbeat import Heartbeat
from .hooks import HookSettings
from .housekeeping import Housekeeping
from .impact import Pauses
from .journal import Journal
from .log import Logger
from .loop import Parts, Stop
from .metrics import Metrics
from .nojournal import NoJournal
from .observed import Observed
from .poller import Identity
from .readiness import Readiness
from .requester import InlineRequester, Requester
from .systemd import Notifier


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

    def now() -> datetime:
        return datetime.fromtimestamp(clocks.wall(), timezone.utc)

    executor = Executor(wake, grace_seconds=GRACE_SECONDS, clock=clocks.monotonic)
    conductor = Conductor(executor, journal, log, metrics, clocks, equipment.settings, now)

    def docket(drill: bool) -> Docket:
        return Docket(policies, conductor, journal, log, metrics, clocks, now, mode, drill=drill)

    return Parts(
        client,
        equipment.requester or InlineRequester(clocks.monotonic),
        identity,
        docket(False),
        docket(True),
        directory,
        conductor,
        executor,
        Approvals(client, conductor, journal, log, metrics, clocks, stop.request, mode),
        journal,
        log,
        metrics,
        clocks,
        Housekeeping(
            conductor,
            journal,
            log,
            metrics,
            clocks,
            now,
            notifier=equipment.notifier or Notifier({}, clocks),
            heartbeat=None if directory is None else Heartbeat(directory, clocks, equipment.elsewhere),
            textfile=equipment.textfile,
            readiness=equipment.readiness,
        ),
        Observed(journal, log, metrics, clocks),
        Pauses(clocks),
    )
