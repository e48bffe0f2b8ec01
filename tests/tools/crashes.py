# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kills a runner at every point where its journal or the outside world changes, and judges what became of it.

A scenario is a script in virtual time, made from a number. The runner is the real one on a real journal, in a forked
process; what is outside of it is a world whose ledger is a file. At its n-th point the process sends itself SIGKILL;
the next one goes on with the state directory and the ledger as they are.

    python -m tools.crashes --seed 7                kill scenario 7 at each of its points
    python -m tools.crashes --seed 7 --kill 12 3    at the 12th point, and the next runner at its 3rd
    python -m tools.crashes --seconds 60            as many scenarios as there is time for
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import signal
import sqlite3  # noqa: F401 - imported once, not by each child
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import forewarn.runner.drill  # noqa: F401 - imported once, not by each child
from forewarn.emulator.lifecycle import SCHEDULED
from forewarn.emulator.spec import EventSpec
from forewarn.runner.executor import FAILED, SUCCEEDED
from forewarn.runner.journal_reader import JournalReader
from forewarn.runner.spool import Record, Request, Spool
from tools.promises import BrokenPromise, Judge
from tools.runner_profiles import PROFILES, policies
from tools.runner_world import VMS, Entry, Hook, Instance, World, leftovers_in, new_runner
from tools.watched_journals import WatchedJournal

LONGEST_SECONDS = 1200.0
_NOT_ENDED = 3  # exit code of a runner that has not come to rest


class Planned(NamedTuple):
    """An event of a script. ``cancel_after`` seconds it is called off, if it has not started by then."""

    at: float
    spec: EventSpec
    cancel_after: float | None


class Rehearsal(NamedTuple):
    """A drill of a script."""

    at: float
    event_id: str
    request: Request


class Script(NamedTuple):
    """What happens outside, whatever the runner does."""

    seed: int
    events: tuple[Planned, ...]
    drills: tuple[Rehearsal, ...]

    @property
    def vm(self) -> str:
        """Whose runner it is."""
        return VMS[0]


class Kill(NamedTuple):
    """At which point, for how long nothing runs then, and whether the machine is booted meanwhile."""

    point: int
    down: float = 0.0
    reboot: bool = False


def make_script(seed: int) -> Script:
    """Return the script of a number."""
    chance = random.Random(seed)
    names = sorted(PROFILES)
    events = []
    for number in range(chance.choice([1, 1, 2, 3])):
        spec = EventSpec(
            chance.choice(["Reboot", "Redeploy", "Freeze", "Preempt"]),
            chance.choice([VMS[:1], VMS[:1], VMS[:1], VMS[1:], VMS]),
            notice=chance.choice([12.0, 40.0, 90.0, 200.0]),
            description=names[(seed + number * 5) % len(names)] if number < 2 else chance.choice(names),
            start_on=chance.choice(["any_approval", "any_approval", "not_before"]),
            start_delay=chance.choice([0.0, 3.0, 70.0]),
            gone_after=chance.choice([0.0, 4.0, 30.0]),
            impact=0.0,
            hardware_failure=chance.random() < 0.06,
            event_id=f"{seed:08X}-0000-4000-8000-{number:012X}",
        )
        events.append(Planned(chance.choice([0.0, 1.0, 6.5, 20.0]), spec, chance.choice([None, None, 5.0, 15.0, 60.0])))
    drills = []
    if chance.random() < 0.2:
        request = Request("Reboot", 25.0, 6.0, "Platform", (VMS[0],), chance.choice(["drain", "share-a", "two", "sit"]))
        drills.append(Rehearsal(chance.choice([0.0, 3.0, 40.0]), f"drill-{seed:08x}", request))
    return Script(seed, tuple(events), tuple(drills))


def _plan(script: Script) -> Callable[[Hook], None]:
    def plan(hook: Hook) -> None:
        chance = random.Random(f"{script.seed}/{hook.event}/{hook.name}/{hook.phase}/{hook.attempt}")
        hook.ends_at = hook.started_at + chance.choice(
            [0.0, 0.4, 2.5, 2.5, 8.0, 45.0 if hook.phase == "prepare" else 9.0]
        )
        hook.result = SUCCEEDED if chance.random() < 0.8 else FAILED
        hook.patience = chance.choice([0.0, 0.0, 1.5])

    return plan


def _world(script: Script, ledger: list[Entry], keep: Callable[[Entry], None]) -> World:
    """Return the world as the ledger left it."""
    world = World(_plan(script), keep)
    for planned in script.events:
        world.model.at(planned.at, partial(world.model.schedule, planned.spec))
        if planned.cancel_after is not None:
            cancel = partial(_cancel, world, planned.spec.event_id or "")
            world.model.at(planned.at + planned.cancel_after, cancel)
    world.model.request(script.vm)
    for entry in ledger:
        world.clock.advance(entry.at - world.now)
        _replay(world, script, entry)
    world.ledger = list(ledger)
    return world


def _cancel(world: World, event_id: str) -> None:
    if world.model.find(event_id).status == SCHEDULED:
        world.model.cancel(event_id)


def _replay(world: World, script: Script, entry: Entry) -> None:
    fields = entry.fields
    if entry.kind == "post" and fields["result"] in ("taken", "lost"):
        world.model.approve(fields["ids"], script.vm)
    elif entry.kind == "start":
        known = {name: fields[name] for name in ("event", "drill", "phase", "name", "attempt")}
        hook = Hook(fields["uid"], world.boot, started_at=entry.at, timeout_at=entry.at + fields["timeout"], **known)
        _plan(script)(hook)
        world.hooks.append(hook)
    elif entry.kind == "asked":
        world.hooks[fields["uid"] - 1].asked_at = entry.at
    elif entry.kind in ("end", "exit", "leftover", "stopped"):
        hook = world.hooks[fields["uid"] - 1]
        hook.over, hook.over_at, hook.collected = fields.get("result", "ended"), entry.at, True
    elif entry.kind == "kill":
        for hook in world.running():
            hook.timeout_at = float("inf")
    elif entry.kind == "reboot":
        for hook in world.running():
            hook.over, hook.over_at, hook.collected = "ended", entry.at, True
        world.boot += 1
    elif entry.kind == "run":
        world.booted_at = fields["booted_at"]


class Scene:
    """One scenario in a directory of its own."""

    def __init__(self, script: Script, directory: Path) -> None:
        self.script = script
        self.state = directory / "state"
        self.state.mkdir(mode=0o700)
        self._file = directory / "ledger"
        self._file.touch()
        self._points = directory / "points"

    def ledger(self) -> list[Entry]:
        """Return what happened so far."""
        return [Entry(*json.loads(line)) for line in self._file.read_text().splitlines()]

    def run(self, kill: Kill | None = None, before: Kill | None = None) -> bool:
        """Run a runner in a process of its own, after the one that ``before`` ended; tell whether it was killed."""
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                code = self._work(kill, before)
            except BaseException:  # a child must never return into its parent's frames
                traceback.print_exc()
            finally:
                os._exit(code)
        _pid, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
            return True
        if status:
            raise BrokenPromise(f"a runner ended with status {status}")
        return False

    def points(self) -> int:
        """Return how many points the last runner that was not killed came to."""
        return int(self._points.read_text())

    def _work(self, kill: Kill | None, before: Kill | None) -> int:
        file = os.open(self._file, os.O_WRONLY | os.O_APPEND)
        world = _world(self.script, self.ledger(), lambda entry: _append(file, entry))
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
                os.kill(os.getpid(), signal.SIGKILL)

        world.at_point = at_point
        made: list[Instance] = []
        new = new_runner(
            world,
            str(self.state),
            self.script.vm,
            lambda directory, clocks: WatchedJournal(world, directory, clocks),
            lambda: self._look(world, made[0]),
        )
        made.append(new)
        with leftovers_in(world):
            new.runner.run(1.0)
        self._points.write_text(str(reached))
        return 0 if _at_rest(world, new, self.script) else _NOT_ENDED

    def _look(self, world: World, instance: Instance) -> bool:
        """Do what is due outside; tell whether all is over."""
        for drill in self.script.drills:
            told = any(entry.kind == "rehearse" for entry in world.ledger)
            if world.now >= drill.at and not told:
                world.note("rehearse", event=drill.event_id)
                spool = Spool(str(self.state))
                Path(spool.path).mkdir(mode=0o700, exist_ok=True)
                spool.write(drill.event_id, Record(drill.request, instance.parts.clocks.stamp()))
        return _at_rest(world, instance, self.script) or world.now > LONGEST_SECONDS


def _append(file: int, entry: Entry) -> None:
    os.write(file, json.dumps(entry).encode() + b"\n")


def _at_rest(world: World, instance: Instance, script: Script) -> bool:
    conductor = instance.parts.conductor
    pending = [planned.at for planned in script.events] + [drill.at + 2.0 for drill in script.drills]
    return (
        world.now > max(pending) + 2.0
        and not any(life.listed for life in world.model.events.values())
        and not conductor.lives
        and conductor.idle()
    )


def play(script: Script, kills: list[Kill]) -> int:
    """Play a scenario with these kills, and to its end; return the points of the last runner. Raises BrokenPromise."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # SIGKILL loses nothing that a disk would keep
    with tempfile.TemporaryDirectory(prefix="forewarn-crash-", dir=memory) as directory:
        scene = Scene(script, Path(directory))
        before = None
        try:
            for kill in kills:
                if not scene.run(kill, before):
                    break
                before = kill
            else:
                scene.run(None, before)
            Judge(script.vm).read(scene.ledger()).over()
            left = JournalReader(str(scene.state)).lives(open_only=True)
            if left:
                raise BrokenPromise(f"the journal has open lives in the end: {left}")
        except (BrokenPromise, AssertionError) as error:
            words = " ".join(str(kill.point) for kill in kills)
            raise BrokenPromise(
                f"scenario {script.seed}, kills {kills} (--seed {script.seed} --kill {words}): {error}"
            ) from error
        return scene.points()


def all_kills(seed: int, points: int) -> Iterator[list[Kill]]:
    """Yield what to try with a scenario: each point singly, and some with another kill soon after, or a reboot."""
    chance = random.Random(f"kills of {seed}")
    for point in range(1, points + 1):
        first = Kill(point, chance.choice([0.0, 0.0, 0.5, 3.0]))
        yield [first]
        if point % 3 == seed % 3:
            yield [first, Kill(chance.randint(1, 12), chance.choice([0.0, 2.0]))]
        if point % 4 == seed % 4:
            yield [Kill(point, chance.choice([5.0, 40.0, 100.0]), reboot=True)]


def main(arguments: list[str]) -> int:
    """Print what was tried, as JSON; return 1 if a promise was broken."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, nargs="+", default=[])
    parser.add_argument("--kill", type=int, nargs="*", default=None)
    parser.add_argument("--reboot", action="store_true")
    parser.add_argument("--seconds", type=float, default=0.0)
    parser.add_argument("--first", type=int, default=1000)
    args = parser.parse_args(arguments)
    policies()  # so that no child has to compile them
    gc.freeze()
    tried = scenarios = 0
    end = time.monotonic() + args.seconds
    if args.kill is not None:
        play(make_script(args.seed[0]), [Kill(point, reboot=args.reboot) for point in args.kill])
        return 0
    seeds = iter(args.seed or range(args.first, 10**9))
    broken: list[str] = []
    for seed in seeds:
        script = make_script(seed)
        scenarios += 1
        try:
            points = play(script, [])
            for kills in all_kills(seed, points):
                tried += 1
                play(script, kills)
        except BrokenPromise as error:
            broken.append(str(error))
        if args.seconds and time.monotonic() > end:
            break
    sys.stdout.write(json.dumps({"scenarios": scenarios, "crashes": tried, "broken": broken}) + "\n")
    return 1 if broken else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
