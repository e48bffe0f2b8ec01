# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The scheduler of hooks, with requests to run a recovery again or to count it as done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from forewarn.runner.clocks import Stamp
from forewarn.runner.event_record import EventRecord
from forewarn.runner.hooks.recovery_requests import AGAIN, DEALT_WITH, RecoveryRequest, RecoveryRequests, submit
from forewarn.runner.journal.reader import JournalEntry, JournalReader
from forewarn.runner.journal.writer import Journal
from forewarn.runner.telemetry.health import HealthReporter
from forewarn.runner.telemetry.readiness import Readiness
from forewarn.system.service_manager import ServiceNotifier
from tools.worlds.stage import Stage

KINDS = ("recovery-again", "recovery-dealt-with", "recovery-refused")


class Machine(Stage):
    """A scheduler with a real journal, and the requests beside it."""

    def __init__(self, state: Path) -> None:
        self.state = state
        super().__init__()

    def new_journal(self) -> Journal:
        return Journal(str(self.state), self.world.clocks())

    def begin(self) -> None:
        super().begin()
        self.readiness = Readiness(self.world.clocks(), 60.0, "web_0")
        self.health = HealthReporter(
            self.scheduler,
            self.recorder,
            self.world.clocks(),
            notifier=ServiceNotifier({}, self.world.clocks().monotonic),
            readiness=self.readiness,
        )
        self.recoveries = RecoveryRequests(str(self.state), self.scheduler.records, self.recorder)

    def restart(self) -> None:
        self.journal._disconnect()
        super().restart()

    def work(self, seconds: float = 0.0) -> None:
        """Do what the runner's loop does at a tick."""
        self.world.clock.advance(seconds)
        self.recoveries.read_requests()
        self.scheduler.collect_results()
        self.recoveries.carry_out()
        self.scheduler.advance()
        if self.journal.commit():
            self.recoveries.remove_done()
        self.health.report()
        self.health.report_alive(1.0)

    def gauge(self, drill: bool = False) -> float:
        """Return how many recoveries fail, as Prometheus reads it."""
        wanted = f'forewarn_recoveries_failing{{drill="{"true" if drill else "false"}"}} '
        (line,) = (line for line in self.metrics.render().splitlines() if line.startswith(wanted))
        return float(line[len(wanted) :])

    def recovering(self, recover: str = "undrain", name: str = "A") -> EventRecord:
        """Return the record of an event that is over, and whose first recover hook runs."""
        record = self.prepared(name, recover=recover)
        self.gone(record)
        return record

    def retrying(self, recover: str = "undrain") -> EventRecord:
        """Return the record of an event whose first recover hook has failed once, and runs again."""
        record = self.recovering(recover)
        self.end(recover.split()[0], "failed")
        self.work(10.0)
        return record

    def failing(self, recover: str = "undrain") -> EventRecord:
        """Return the record of an event whose first recover hook has failed three times."""
        record = self.recovering(recover)
        for pause in (10.0, 60.0, 0.0):
            self.end(recover.split()[0], "failed")
            self.work(pause)
        return record

    def ask(self, record: EventRecord, note: str | None = None, **changes: Any) -> str:
        action = AGAIN if note is None else DEALT_WITH
        asked = Stamp(self.world.wall, self.world.now, "boot")
        request = RecoveryRequest(record.identifier, record.event.event_id, action, note, "alice", asked)
        return submit(str(self.state), request._replace(**changes))

    def answers(self) -> list[JournalEntry]:
        return list(JournalReader(str(self.state)).entries(kinds=KINDS))

    def files(self) -> list[str]:
        return sorted(path.name for path in (self.state / "recoveries").glob("*"))
