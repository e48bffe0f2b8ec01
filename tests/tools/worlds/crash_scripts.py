# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Scenarios of ``tools.worlds.crashes``: what happens outside a runner, in virtual time, made from a number.

A world is rebuilt from a script and the ledger of what has happened so far: a runner that was killed leaves no more.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

from forewarn.emulator.lifecycle import SCHEDULED
from forewarn.emulator.spec import EventSpec
from forewarn.runner.drills.store import DrillRequest
from forewarn.runner.hooks.executor import FAILED, SUCCEEDED
from forewarn.runner.requester import APPROVAL, DOCUMENT, INSTANCE
from tools.worlds.runner_profiles import PROFILES
from tools.worlds.runner_world import VMS, Entry, Hook, World


class PlannedEvent(NamedTuple):
    """An event of a script. It is called off after ``cancel_after`` seconds, unless it has started."""

    at: float
    spec: EventSpec
    cancel_after: float | None


class Rehearsal(NamedTuple):
    """A drill of a script."""

    at: float
    event_id: str
    request: DrillRequest


class Change(NamedTuple):
    """The service changes an event: ``fields`` of its EventSpec, ``seconds`` by which NotBefore moves, or
    ``left`` seconds to it from now on.
    """

    at: float
    event_id: str
    fields: dict[str, Any]
    seconds: float = 0.0
    left: float | None = None

    def happen(self, world: World) -> None:
        """Let it happen, unless the event has started."""
        if world.model.find(self.event_id).status == SCHEDULED:
            if self.left is not None:
                world.move_to(self.event_id, self.at + self.left)
            if self.fields:
                world.change(self.event_id, **self.fields)
            if self.seconds:
                world.postpone(self.event_id, self.seconds)


class Silence(NamedTuple):
    """For some time the service answers nothing (``away``: with an error; ``stuck``: not at all), or no
    approval: ``failed``, or taken and the answer lost. Or the VM stands still before its next approval (``frozen``).
    """

    at: float
    seconds: float
    fault: str

    def hushes(self, world: World, silent: bool) -> None:
        """Let it begin, or end."""
        if self.fault == "away":
            world.read_fault = 503 if silent else None
        elif self.fault == "frozen":
            world.freeze_seconds = self.seconds if silent else 0.0
        elif self.fault == "stuck":
            world.stuck = frozenset({DOCUMENT, INSTANCE, APPROVAL} if silent else ())
        else:
            world.post_fault = self.fault if silent else None


class HeldApprovals(NamedTuple):
    """An operator pauses approvals for some seconds, or for None spoils the file of the pause; and may resume."""

    at: float
    seconds: float | None
    resume_at: float | None


class Script(NamedTuple):
    """What happens outside the runner, whatever it does."""

    seed: int
    events: tuple[PlannedEvent, ...]
    drills: tuple[Rehearsal, ...]
    silences: tuple[Silence, ...]
    changes: tuple[Change, ...] = ()
    reloads: tuple[tuple[float, int], ...] = ()  # when, and which generation of the policies
    pauses: tuple[HeldApprovals, ...] = ()

    @property
    def answers(self) -> bool:
        """Whether every poll is answered, and the VM never stands still."""
        return all(silence.fault not in ("away", "stuck", "frozen") for silence in self.silences)

    @property
    def vm(self) -> str:
        """The VM of the runner."""
        return VMS[0]


def make_script(seed: int) -> Script:
    """Return the script of a number. Script 0 is plain: one event, whose hooks succeed after 2.5 s."""
    if seed == 0:
        # Listed for a while after it was approved, but not for as long as to need a reminder.
        spec = EventSpec(
            "Reboot",
            VMS[:1],
            notice=90.0,
            description="two",
            start_delay=40.0,
            impact=0.0,
            gone_after=4.0,
            event_id="00000000-0000-4000-8000-000000000000",
        )
        return Script(seed, (PlannedEvent(0.0, spec, None),), (), ())
    if seed == -1:
        # Approved at once; then a rule with hooks applies, and then the service lists another type under the same id.
        spec = EventSpec(
            "Freeze",
            VMS[:1],
            notice=90.0,
            description="plain",
            start_on="not_before",
            impact=0.0,
            gone_after=4.0,
            event_id="00000001-0000-4000-8000-000000000000",
        )
        key = spec.event_id or ""
        after = (
            Change(5.0, key, {"description": "drain"}),
            Change(40.0, key, {"event_type": "Redeploy", "duration": -1}),
        )
        return Script(seed, (PlannedEvent(0.0, spec, None),), (), (), after)
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
        events.append(
            PlannedEvent(chance.choice([0.0, 1.0, 6.5, 20.0]), spec, chance.choice([None, None, 5.0, 15.0, 60.0]))
        )
    drills = []
    if chance.random() < 0.2:
        request = DrillRequest(
            "Reboot", 25.0, 6.0, "Platform", (VMS[0],), chance.choice(["drain", "share-a", "two", "sit"])
        )
        drills.append(Rehearsal(chance.choice([0.0, 3.0, 40.0]), f"drill-{seed:08x}", request))
    silences = []
    if chance.random() < 0.3:
        silences.append(Silence(chance.choice([0.0, 5.0, 10.0]), 6.0, chance.choice(["failed", "lost"])))
    if chance.random() < 0.1:
        silences.append(Silence(chance.choice([2.0, 12.0, 25.0]), chance.choice([6.0, 90.0]), "away"))
    if chance.random() < 0.2:
        silences.append(Silence(chance.choice([0.0, 2.0, 8.0]), chance.choice([4.0, 40.0]), "stuck"))
    silences += list(_closing(silences, random.Random(f"connections of {seed}")))
    changes = [change for planned in events for change in _changes(chance, planned)]
    if seed % 4 == 3:
        changes += _last_moment(chance, events[0])
    reloads: tuple[tuple[float, int], ...] = ()
    if chance.random() < 0.3:
        reloads = tuple(zip((chance.choice([1.5, 7.0, 30.0]), 60.0), (1, 0)))
    held: tuple[HeldApprovals, ...] = ()
    if chance.random() < 0.3:
        begin, seconds = chance.choice([0.0, 1.2, 4.0, 9.0, 30.0]), chance.choice([3.0, 12.0, 60.0, None])
        resumed = begin + chance.choice([2.0, 20.0, 50.0]) if seconds is None or chance.random() < 0.4 else None
        held = (HeldApprovals(begin, seconds, resumed),)
    return Script(seed, tuple(events), tuple(drills), tuple(silences), tuple(changes), reloads, held)


def _closing(silences: list[Silence], chance: random.Random) -> Iterator[Silence]:
    """Let connections be closed under approvals, in place of other faults too, and yield when the VM stands still."""
    for place, silence in enumerate(silences):
        if silence.fault in ("failed", "lost") and chance.random() < 0.5:
            silences[place] = silence._replace(fault="closed" if silence.fault == "failed" else "closed-after")
    if chance.random() < 0.3:
        yield Silence(chance.choice([0.0, 3.0, 8.0]), chance.choice([1.5, 8.0, 15.0, 40.0]), "frozen")


def _changes(chance: random.Random, planned: PlannedEvent) -> Iterator[Change]:
    """Yield how an event changes while it is scheduled; most do not."""
    for _ in range(chance.choice([0, 0, 0, 1, 1, 2])):
        fields: dict[str, Any] = chance.choice(
            [
                {"event_type": chance.choice(["Redeploy", "Terminate"])},
                {"resources": chance.choice([VMS[:1], VMS, VMS[::-1], VMS[1:]])},
                {"source": "User"},
                {"duration": chance.choice([0, 5, 30])},
                {"event_type": "Freeze", "description": chance.choice(sorted(PROFILES))},
                {},
            ]
        )
        seconds = 0.0 if fields else chance.choice([-60.0, -8.0, 20.0, 300.0])
        at = planned.at + chance.choice([0.5, 2.0, 4.5, 9.0, 30.0])
        yield Change(at, planned.spec.event_id or "", fields, seconds)


def _last_moment(chance: random.Random, planned: PlannedEvent) -> Iterator[Change]:
    """Yield how an event suddenly has little or no time left to prepare, and then time again."""
    at = planned.at + chance.choice([0.5, 3.0, 8.0])
    event_id = planned.spec.event_id or ""
    yield Change(at, event_id, {}, left=chance.choice([2.0, 3.5, 4.5, 6.0]))
    yield Change(at + chance.choice([1.2, 2.6]), event_id, {}, chance.choice([3.0, 30.0, 300.0]))


def _plan(script: Script) -> Callable[[Hook], None]:
    def plan(hook: Hook) -> None:
        if script.seed <= 0:
            hook.ends_at = hook.started_at + 2.5
            return
        chance = random.Random(f"{script.seed}/{hook.event}/{hook.name}/{hook.phase}/{hook.attempt}")
        hook.ends_at = hook.started_at + chance.choice(
            [0.0, 0.4, 2.5, 2.5, 8.0, 45.0 if hook.phase == "prepare" else 9.0]
        )
        lasting = hook.phase == "recover" and hook.attempt > 3  # or it would be tried again for hours
        hook.result = SUCCEEDED if chance.random() < 0.8 or lasting else FAILED
        hook.patience = chance.choice([0.0, 0.0, 1.5])

    return plan


def world_of(script: Script, ledger: list[Entry], keep: Callable[[Entry], None]) -> World:
    """Return the world in the state that the ledger describes."""
    world = World(_plan(script), keep)
    for planned in script.events:
        world.model.at(planned.at, partial(world.model.schedule, planned.spec))
        if planned.cancel_after is not None:
            cancel = partial(_cancel, world, planned.spec.event_id or "")
            world.model.at(planned.at + planned.cancel_after, cancel)
    for change in script.changes:
        world.model.at(change.at, partial(change.happen, world))
    for silence in script.silences:
        world.model.at(silence.at, partial(silence.hushes, world, True))
        world.model.at(silence.at + silence.seconds, partial(silence.hushes, world, False))
    world.model.request(script.vm)
    for entry in ledger:
        world.clock.advance(max(0.0, entry.at - world.now))  # sums of floats may be off a little
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
        world.generation = fields["generation"]
    elif entry.kind == "reload":
        world.generation = fields["generation"]
