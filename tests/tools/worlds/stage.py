# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The scheduler of hooks alone, with hooks that end when a test says so."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from forewarn.events import Event
from forewarn.policy.decision import APPROVE, Verdict
from forewarn.runner.event_record import FINISHED, EventRecord
from forewarn.runner.hooks.commands import HookSettings
from forewarn.runner.hooks.scheduler import HookScheduler
from forewarn.runner.telemetry.metrics import Metrics
from forewarn.runner.telemetry.recorder import Recorder
from tools.fixtures.logs import Lines
from tools.worlds.runner_profiles import hook
from tools.worlds.runner_world import EPOCH, Hook, World
from tools.worlds.watched_journals import JournalDisk, MemoryJournal
from tools.worlds.world_runner import WorldExecutor, leftovers_in


def verdict(prepare: str, recover: str = "", **values: Any) -> Verdict:
    """Return a verdict that asks for hooks, which are named in a row."""
    made = Verdict("web", APPROVE, "drain", "because", "web.yml:1:1", **values)
    return made._replace(prepare=tuple(map(hook, prepare.split())), recover=tuple(map(hook, recover.split())))


class Stage:
    """A scheduler on a journal in memory, or on what ``new_journal`` returns; both outlive a restart."""

    def __init__(self) -> None:
        self.world = World()
        self.disk = JournalDisk()
        self.begin()

    def new_journal(self) -> Any:
        return MemoryJournal(self.world, self.disk)

    def begin(self) -> None:
        """Begin a runner on what is kept."""
        executor: Any = WorldExecutor(self.world)
        self.executor = executor
        self.log = Lines()
        self.metrics = Metrics()
        self.journal = self.new_journal()
        self.recorder = Recorder(self.journal, self.log, self.metrics)
        self.scheduler = HookScheduler(executor, self.recorder, self.world.clocks(), HookSettings())
        with leftovers_in(self.world):
            self.scheduler.resume()

    def restart(self) -> None:
        """Kill the runner, and begin another."""
        self.world.kill()
        self.begin()

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.world.wall, timezone.utc)

    def event(self, event_id: str, not_before: float | None = 900.0) -> Event:
        """Return an event whose NotBefore is so many seconds ahead."""
        moment = None
        if not_before is not None:
            moment = datetime.fromtimestamp(EPOCH + self.world.now + not_before, timezone.utc)
        return Event(event_id, "Reboot", "VirtualMachine", ("web_0",), "Scheduled", moment)

    def listed(
        self, event_id: str, prepare: str = "", recover: str = "", not_before: float | None = 900.0, **values: Any
    ) -> EventRecord:
        """Return the record of an event that was just seen, with a plan."""
        record = self.scheduler.records.open(self.event(event_id, not_before), False)
        record.confirmed = True
        self.scheduler.plan(record, [verdict(prepare, recover, **values)])
        return record

    def prepared(self, event_id: str, prepare: str = "drain", recover: str = "undrain") -> EventRecord:
        """Return the record of an event whose prepare hooks have succeeded."""
        record = self.listed(event_id, prepare, recover)
        self.work()
        for name in prepare.split():
            self.end(name)
        return record

    def gone(self, record: EventRecord, outcome: str = FINISHED) -> None:
        """Let an event leave the list."""
        self.scheduler.end_event(record, outcome)
        self.work()

    def work(self, seconds: float = 0.0) -> None:
        """Let time pass, and the scheduler work."""
        self.world.clock.advance(seconds)
        self.scheduler.collect_results()
        self.scheduler.advance()
        self.journal.commit()

    def running(self, *phases: str) -> list[str]:
        """Return the names of the hooks that run, of these phases or of all."""
        return [hook.name for hook in self.world.running() if not phases or hook.phase in phases]

    def end(self, name: str, result: str = "succeeded") -> None:
        """Let a hook end, and the runner notice."""
        (found,) = (hook for hook in self.world.running() if hook.name == name)
        found.ends_at, found.result = self.world.now, result
        self.work()

    def started(self) -> list[str]:
        """Return the names of all hooks that were started, in order."""
        return [entry.fields["name"] for entry in self.world.ledger if entry.kind == "start"]

    def latest(self, name: str) -> Hook:
        """Return the process of a hook that was started last."""
        return [hook for hook in self.world.hooks if hook.name == name][-1]
