# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Many VMs with real runners, one service and one store, in virtual time: a turn of a runner is one step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from forewarn.emulator.clock import ManualClock
from forewarn.emulator.model import Model
from forewarn.emulator.spec import Settings, VmSpec
from forewarn.imds.errors import Fault
from forewarn.policy.engine import PolicySet
from forewarn.runner.groups.settings import GroupSettings, StoreSettings
from forewarn.runner.options import GroupOptions
from forewarn.runner.requester import RequestResult
from tools.worlds.memory_store import MemoryServer, MemoryStore
from tools.worlds.runner_world import EPOCH, NEVER, TICK, Hook, World
from tools.worlds.watched_journals import JournalDisk, MemoryJournal
from tools.worlds.world_runner import Instance, leftovers_in, new_runner

GROUP = "web"
RUNNING, KILLED, FROZEN, DELETED = "running", "killed", "frozen", "deleted"


class StoreRequester:
    """Asks the store in the world's time: a request takes effect when its time has passed."""

    def __init__(self, world: World, seconds: Callable[[], float]) -> None:
        self.due = NEVER
        self._world = world
        self._seconds = seconds
        self._request: Callable[[], object] | None = None

    @property
    def busy(self) -> bool:
        return self._request is not None

    @property
    def has_response(self) -> bool:
        return self.busy and self._world.now >= self.due - TICK

    def begin(self, what: str, request: Callable[[], object]) -> None:
        assert what == "store"
        assert not self.busy, "one request at a time"
        self.due, self._request = self._world.now + self._seconds(), request

    def take_response(self) -> RequestResult:
        assert self.has_response
        assert self._request is not None
        request, self._request, self.due = self._request, None, NEVER
        try:
            return RequestResult(request(), None, self._world.clocks().monotonic())
        except Fault as fault:
            return RequestResult(None, fault, self._world.clocks().monotonic())

    def wait(self, seconds: float) -> bool:
        raise AssertionError(f"nobody waits {seconds} s for the store")


class _Stop:
    """A runner's wait: it only says how long it wants to."""

    def __init__(self) -> None:
        self.received: str | None = None
        self.reload = False
        self.seconds = 0.0

    def wait(self, seconds: float) -> None:
        self.seconds = seconds

    def wake(self) -> None:
        """Nobody waits: what ends, ends in virtual time."""


@dataclass
class Member:
    """One VM. ``state`` is RUNNING, KILLED, FROZEN or DELETED; ``wake_at`` is when its runner goes on."""

    name: str
    world: World
    directory: Path
    disk: JournalDisk = field(default_factory=JournalDisk)
    instance: Instance | None = None
    requester: StoreRequester | None = None
    store: MemoryStore | None = None
    state: str = KILLED
    wake_at: float = NEVER
    turns_at: tuple[float, int] = (0.0, 0)


class GroupWorld:
    """``plan`` sets when and how a new hook of a VM ends, ``trouble`` what happens to a request to the store."""

    def __init__(
        self,
        names: tuple[str, ...],
        policies: PolicySet,
        directory: Path,
        random: Random,
        plan: Callable[[str, Hook], None],
        trouble: Callable[[str, str, str], str | None] = lambda vm, what, key: None,
    ) -> None:
        self.random = random
        self.clock = ManualClock(EPOCH)
        self.model = Model(self.clock, [VmSpec(name) for name in names], Settings(switch_off=None, first_events=0.0))
        self.server = MemoryServer()
        self.requests: list[tuple[float, str]] = []  # to the store: when, and by whom
        self._trouble = trouble
        self.members = {name: self._member(name, policies, directory, plan) for name in names}
        for name in names:
            self.model.request(name)

    @property
    def now(self) -> float:
        return self.clock.now()

    def _member(self, name: str, policies: PolicySet, directory: Path, plan: Callable[[str, Hook], None]) -> Member:
        world = World(lambda hook: plan(name, hook))
        world.clock, world.model = self.clock, self.model
        world.policies = lambda _generation: policies
        state = directory / name
        state.mkdir(mode=0o700)
        return Member(name, world, state)

    def _asked(self, vm: str) -> Callable[[str, str], str | None]:
        def trouble(what: str, key: str) -> str | None:
            self.requests.append((self.now, vm))
            return self._trouble(vm, what, key)

        return trouble

    # What happens to VMs

    def start(self, member: Member) -> None:
        """Start a VM's runner on what the previous one has left."""
        world = member.world
        member.store = MemoryStore(self.server, self._asked(member.name))
        member.requester = StoreRequester(world, lambda: self.random.choice((0.001, 0.003, 0.02, 0.3)))
        options = GroupOptions(
            GroupSettings(GROUP, tuple(name.lower() for name in self.members), StoreSettings()),
            member.store,
            member.requester,
            self.random.random,
            lambda seconds: None,
        )
        made = new_runner(
            world,
            str(member.directory),
            member.name,
            lambda *_: MemoryJournal(world, member.disk),
            group=lambda: options,
        )
        made.runner._stop = _Stop()
        with leftovers_in(world):
            made.runner.resume()
        made.runner.recorder.journal.commit()
        made.runner.health.report_started()
        made.runner._schedule.set_interval(1.0)
        made.runner.advance_hooks()
        member.instance, member.state, member.wake_at = made, RUNNING, self.now

    def kill(self, member: Member) -> None:
        """Kill a VM's runner, as kill -9 does."""
        member.world.kill()
        member.instance, member.state, member.wake_at = None, KILLED, NEVER

    def reboot(self, member: Member) -> None:
        """Reboot a VM: its hooks are gone too."""
        self.kill(member)
        for hook in member.world.running():
            hook.over, hook.over_at, hook.collected = "ended", self.now, True
        member.world.boot += 1
        member.world.booted_at = self.now

    def freeze(self, member: Member) -> None:
        """Let a VM stand still."""
        if member.state == RUNNING:
            member.state, member.wake_at = FROZEN, NEVER

    def thaw(self, member: Member) -> None:
        """Let it go on."""
        if member.state == FROZEN:
            member.state, member.wake_at = RUNNING, self.now

    def delete(self, member: Member) -> None:
        """Let a VM vanish for good."""
        if member.instance is not None:
            self.kill(member)
        member.state = DELETED

    # Time

    def run(self, until: float) -> None:
        """Let the time pass."""
        while True:
            member = min(self.members.values(), key=lambda each: each.wake_at)
            if member.wake_at > until:
                break
            self.clock.advance(max(0.0, member.wake_at - self.now))
            self._turn(member)
        self.clock.advance(max(0.0, until - self.now))
        self.model.settle()

    def _turn(self, member: Member) -> None:
        made = member.instance
        assert made is not None
        assert member.requester is not None
        at, turns = member.turns_at
        member.turns_at = (self.now, turns + 1 if self.now - at <= TICK else 0)
        assert turns < 300, f"the runner of {member.name} spins"
        stop: Any = made.runner._stop
        with leftovers_in(member.world):
            made.runner.step()
        due = min(made.executor.next_end(), made.requester.due, member.requester.due)
        wait = max(stop.seconds, TICK if stop.seconds > 0 else 0.0)
        member.wake_at = max(self.now, min(self.now + wait, due))
