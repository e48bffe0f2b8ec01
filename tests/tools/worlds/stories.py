# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A runner in a simulated world, with the policies of a test: what happens to one VM, step by step."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

from forewarn.emulator.spec import EventSpec
from forewarn.runner.drills import store
from forewarn.runner.hooks.executor import FAILED, SUCCEEDED
from forewarn.runner.journal.writer import Journal
from forewarn.runner.telemetry.readiness import Readiness
from tools.fixtures.policy_data import policy, policy_set
from tools.judges.promises import Judge
from tools.worlds.runner_profiles import PROGRAM
from tools.worlds.runner_world import VMS, Hook, World
from tools.worlds.watched_journals import JournalDisk, MemoryJournal
from tools.worlds.world_runner import Instance, leftovers_in, new_runner

NOTICE_SECONDS = 600.0
# What one policy asks for: its name, and its matches.
Policies = Sequence[tuple[str, Sequence[dict[str, Any]]]]


def hook(name: str, timeout_seconds: float = 30.0, **values: Any) -> dict[str, Any]:
    """Return a hook, in the form of an artifact."""
    return {"run": [PROGRAM, name], "timeout_seconds": timeout_seconds, **values}


def match(identifier: str, output: str = "approve", **values: Any) -> dict[str, Any]:
    """Return a match, in the form of an artifact; ``prepare`` and ``recover`` may name their hooks."""
    made: dict[str, Any] = {
        "id": identifier,
        "condition": None,
        "output": output,
        "approver": "leader",
        "group": "independent",
        "notify": [],
        "on_failure": "hold",
        "parallel": False,
        "recover_when": "prepared",
        **values,
    }
    for phase in ("prepare", "recover"):
        made[phase] = [hook(each) if isinstance(each, str) else each for each in made.get(phase, ())]
    return made


DRAIN: dict[str, Any] = {"prepare": ["drain"], "recover": ["undrain"]}
ONCE: dict[str, Any] = {"retry": {"attempts": 1}}
# Policies: they approve what is drained, hold what is drained, or recover whatever has started.
DRAINED = [("web", [match("both", **DRAIN)])]
HELD = [("web", [match("both", "hold", **DRAIN)])]
AFTER = [("web", [match("after", "hold", recover=["start-again"], recover_when="started")])]


class Story:
    """The first VM, and its runner with a journal in ``directory``. ``generations`` are the policies before and after
    each reload. Hooks succeed after half a second, but those that are ``slow``, or ``fail``.
    """

    def __init__(
        self,
        directory: Path,
        *generations: Policies,
        plan: Callable[[Hook], None] = lambda hook: None,
        dry_run: bool = False,
    ) -> None:
        directory.chmod(0o700)
        self.directory = directory
        self.world = World(plan)
        self.world.dry_run = dry_run
        if generations:
            sets = [policy_set(*(policy(*matches, name=name) for name, matches in one)) for one in generations]
            self.world.policies = sets.__getitem__
        self.world.model.request(VMS[0])
        self.slow: set[str] = set()
        self.fail: set[str] = set()
        self.start()

    def new_journal(self, *arguments: Any) -> Any:
        """Return the journal of a runner."""
        return Journal(*arguments)

    def start(self) -> None:
        """Start a runner."""
        self.instance: Instance = new_runner(self.world, str(self.directory), VMS[0], self.new_journal)
        with leftovers_in(self.world):
            self.instance.runner.resume()
        self.instance.runner.advance_hooks()

    def stop(self) -> None:
        """Stop the runner in an orderly way."""
        self.instance.runner._stopped()

    def restart(self) -> None:
        """Stop the runner in an orderly way, and start another."""
        self.stop()
        self.start()

    def crash(self, down: float = 0.0, reboot: bool = False) -> None:
        """Kill the runner, or the machine, and start another a while later."""
        self.world.kill()
        if reboot:
            self.world.reboot(down)
        else:
            self.world.clock.advance(down)
        self.start()

    def schedule(self, **values: Any) -> str:
        """Schedule an event that affects the VM; return its id."""
        made = {"notice": NOTICE_SECONDS, "description": "x", "start_on": "not_before", "impact": 0.0, **values}
        return self.world.model.schedule(EventSpec("Reboot", VMS[:1], **made))

    def drill(self, name: str, notice: float = NOTICE_SECONDS, duration: float = 30.0) -> store.DrillStore:
        """Ask for a drill; return the store that it lies in."""
        drills = store.DrillStore(str(self.directory))
        drills.inbox.create()
        request = store.DrillRequest("Reboot", notice, duration, "Platform", VMS[:1])
        drills.write(name, store.DrillRecord(request, self.instance.clocks.stamp()))
        return drills

    def go(self, seconds: int) -> None:
        """Let time pass."""
        for _ in range(seconds):
            with leftovers_in(self.world):
                self.instance.runner.poll_and_process()
                self.world.clock.advance(0.5)
                for one in self.world.running():
                    if one.ends_at > self.world.now and one.name not in self.slow:
                        self.end(one.name)
                self.instance.runner.advance_hooks()
            self.world.clock.advance(0.5)

    def start_event(self, event_id: str, seconds: int) -> None:
        """Let the service start an event, and let time pass."""
        self.world.model.start(event_id)
        self.go(seconds)

    def finish_event(self, event_id: str, seconds: int) -> None:
        """Let the service end an event, and let time pass."""
        self.world.model.finish(event_id)
        self.go(seconds)

    def finish_unseen(self, event_id: str, *, silent: int, seconds: int) -> None:
        """Let an event start and end while the service fails for ``silent`` seconds, and let time pass."""
        self.world.read_fault = 503
        self.go(silent)
        self.world.model.finish(event_id)
        self.world.read_fault = None
        self.go(seconds)

    def cancel_event(self, event_id: str, seconds: int) -> None:
        """Let the service cancel an event, and let time pass."""
        self.world.model.cancel(event_id)
        self.go(seconds)

    def end(self, name: str) -> None:
        """End a running hook."""
        for one in self.world.running():
            if one.name == name:
                one.ends_at, one.result = self.world.now, FAILED if name in self.fail else SUCCEEDED
                one.settle(self.world.now)

    def reload(self, generation: int = 1) -> None:
        """Let the runner read other policies."""
        self.world.generation = generation
        self.instance.runner._reload()

    def turns(self, seconds: float) -> int:
        """Let time pass in the runner's own loop; return how often it woke."""
        number, end = 0, self.world.now + seconds
        with self.world.driven():
            while self.world.now < end:
                self.instance.runner.step()
                number += 1
        return number

    def ready(self) -> bool:
        """Return the answer of /readyz."""
        health, scheduler = self.instance.runner.health, self.instance.runner.scheduler
        found = Readiness(self.instance.clocks, 60.0, VMS[0])
        health._readiness = found  # as if it were asked for by --probe-listen
        scheduler.vm_name = VMS[0]
        health.report_alive(1.0)
        return found.ready()

    def outcomes(self) -> list[str]:
        """Return how events have ended, by the log."""
        return [line["outcome"] for line in self.instance.log.named("event-gone")]

    def count(self, kind: str, **fields: Any) -> int:
        """Return how many entries the ledger has of a kind with these fields."""
        return len(self.times(kind, **fields))

    def times(self, kind: str, **fields: Any) -> list[float]:
        """Return when that happened."""
        found = [entry for entry in self.world.ledger if entry.kind == kind]
        return [entry.at for entry in found if fields.items() <= entry.fields.items()]


def listed(
    directory: Path,
    *generations: Policies,
    seconds: int,
    slow: Collection[str] = (),
    fail: Collection[str] = (),
    **event: Any,
) -> tuple[Story, str]:
    """Return a story in which an event has been listed for some seconds, and the event's id."""
    story = Story(directory, *generations)
    story.slow, story.fail = set(slow), set(fail)
    event_id = story.schedule(**event)
    story.go(seconds)
    return story, event_id


class ProfileStory(Story):
    """A story with the policies of ``tools.worlds.runner_profiles``, a journal in memory, and a judge of its ledger."""

    def __init__(self, directory: Path, plan: Callable[[Hook], None] = lambda hook: None) -> None:
        self.disk = JournalDisk()
        self.judge = Judge(VMS[0])
        super().__init__(directory, plan=plan)

    def new_journal(self, *_: Any) -> Any:
        return MemoryJournal(self.world, self.disk)

    def schedule(self, description: str = "plain", **values: Any) -> str:
        """Schedule an event that affects the VM; its description says which profile it has. Return its id."""
        return self.world.model.schedule(EventSpec("Reboot", VMS[:1], description=description, **values))

    def go(self, seconds: int) -> None:
        super().go(seconds)
        self.judge.read(self.world.ledger)

    def turns(self, seconds: float) -> int:
        number = super().turns(seconds)
        self.judge.read(self.world.ledger)
        return number
