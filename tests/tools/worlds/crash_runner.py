# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A runner that goes on with a world from its script and its ledger, and is killed at its n-th point.

It is a process of its own: ``tools.worlds.crashes`` forks it, ``tools.worlds.windows.crashes`` starts it in a Windows.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, Callable, NamedTuple

from forewarn.imds.client import READ_TIMEOUT_SECONDS
from forewarn.imds.retry import LONGEST_DELAY_SECONDS
from forewarn.policy.engine import PolicySet
from forewarn.runner.drills.store import DrillRecord, DrillStore
from tools.fixtures.replaced import replaced
from tools.worlds import pauses
from tools.worlds.crash_scripts import Script, world_of
from tools.worlds.runner_profiles import policies
from tools.worlds.runner_world import Entry, World
from tools.worlds.watched_journals import WatchedJournal
from tools.worlds.world_runner import Instance, leftovers_in, new_runner

LONGEST_SECONDS = 1200.0
NOT_ENDED = 3  # exit code of a runner that has not come to rest


class Kill(NamedTuple):
    """At which point, for how long no runner runs then, and whether the machine boots meanwhile."""

    point: int
    down: float = 0.0
    reboot: bool = False

    def __str__(self) -> str:
        return f"{self.point}:{self.down:g}" + (":reboot" if self.reboot else "")

    @classmethod
    def of(cls, text: str) -> Kill:
        """Return what ``str`` wrote. Raises ValueError for anything else."""
        point, _, rest = text.partition(":")
        down, _, boot = rest.partition(":")
        if boot not in ("", "reboot"):
            raise ValueError(f"{text} is not a POINT[:SECONDS[:reboot]]")
        return cls(int(point), float(down or 0), boot == "reboot")


class Files:
    """Where one scenario has its files: state, ledger, and how many points the last runner came to."""

    def __init__(self, directory: Path) -> None:
        self.state = directory / "state"
        self.ledger = directory / "ledger"
        self.points = directory / "points"

    def entries(self) -> list[Entry]:
        """Return the ledger's entries so far."""
        return [Entry(*json.loads(line)) for line in self.ledger.read_text().splitlines()]


class CrashRunner:
    """One runner of a scenario. ``die`` kills this process at once.

    ``policies`` are those of a generation, and with ``job`` hooks end with their runner.
    """

    def __init__(
        self,
        script: Script,
        files: Files,
        die: Callable[[], object],
        policies: Callable[[int], PolicySet] = policies,
        *,
        job: bool = False,
    ) -> None:
        self.script = script
        self._files = files
        self._die = die
        self._policies = policies
        self._job = job

    def run(self, kill: Kill | None, before: Kill | None) -> int:
        """Go on after the runner that ``before`` ended; return the exit code of a process that was not killed."""
        random.seed(self.script.seed)  # what the runner leaves to chance
        file = self._files.ledger.open("ab", buffering=0)
        world = world_of(self.script, self._files.entries(), lambda entry: _append(file, entry))
        world.policies, world.job = self._policies, self._job
        if before is not None:
            if before.reboot:
                world.reboot(before.down)
            else:
                world.clock.advance(before.down)
        reached = 0

        def at_point(_what: str) -> None:
            nonlocal reached
            reached += 1
            if kill is not None and reached == kill.point:
                world.kill()
                self._die()

        world.at_point = at_point
        made: list[Instance] = []
        new = new_runner(
            world,
            str(self._files.state),
            self.script.vm,
            lambda directory, clocks: WatchedJournal(world, directory, clocks),
            lambda: self._look(world, made[0]),
        )
        made.append(new)
        with leftovers_in(world), _points_of_drills(world), world.driven():
            new.runner.run(1.0)
        self._files.points.write_text(str(reached))
        return 0 if _at_rest(world, new, self.script) else NOT_ENDED

    def _look(self, world: World, instance: Instance) -> bool:
        """Do what is due outside the runner; return whether everything is over."""
        for drill in self.script.drills:
            requested = any(entry.kind == "rehearse" for entry in world.ledger)
            if world.now >= drill.at and not requested:
                world.note("rehearse", event=drill.event_id)
                store = DrillStore(str(self._files.state))
                store.inbox.path.mkdir(mode=0o700, exist_ok=True)
                _hand_over(store, drill.event_id, DrillRecord(drill.request, instance.clocks.stamp()))
        for held in self.script.pauses:
            done = [entry.kind for entry in world.ledger if entry.kind in ("pause", "resume")]
            if world.now >= held.at and not done:
                if held.seconds is None:
                    pauses.damage(world, str(self._files.state))
                else:
                    pauses.pause(world, str(self._files.state), held.seconds)
            if held.resume_at is not None and world.now >= held.resume_at and "resume" not in done:
                pauses.resume(world, str(self._files.state))
        wanted = max((reload for reload in self.script.reloads if world.now >= reload[0]), default=(0.0, 0))[1]
        if world.generation != wanted:
            world.generation = wanted
            instance.stop.reload = True
        return _at_rest(world, instance, self.script) or world.now > LONGEST_SECONDS


_hand_over = DrillStore.write  # the original, without points


@contextmanager
def _points_of_drills(world: World) -> Iterator[None]:
    """Make changes of drills' files points, too."""

    def around(work: Callable[..., None]) -> Callable[..., None]:
        def watched(*arguments: Any) -> None:
            world.at_point("before a drill's file changes")
            work(*arguments)
            world.at_point("after a drill's file has changed")

        return watched

    with ExitStack() as stack:
        for name in ("write", "remove"):
            stack.enter_context(replaced(DrillStore, name, around(getattr(DrillStore, name))))
        yield


def _append(file: IO[bytes], entry: Entry) -> None:
    file.write(json.dumps(entry).encode() + b"\n")


def _at_rest(world: World, instance: Instance, script: Script) -> bool:
    scheduler = instance.runner.scheduler
    pending = [planned.at for planned in script.events] + [drill.at + 2.0 for drill in script.drills]
    longest = LONGEST_DELAY_SECONDS + READ_TIMEOUT_SECONDS
    pending += [silence.at + silence.seconds + longest for silence in script.silences]
    return (
        world.now > max(pending) + 2.0
        and not any(record.listed for record in world.model.events.values())
        and not scheduler.records
        and scheduler.idle()
        and world.now > max((reload[0] for reload in script.reloads), default=0.0)
    )
