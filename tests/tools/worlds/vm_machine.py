# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A VM with its runner for hypothesis: what can happen to the machine and to its hooks, whatever the service does."""

from __future__ import annotations

import itertools
import tempfile
from functools import partial

import pytest
from forewarn.emulator.spec import Settings
from forewarn.runner.drills.store import ID_PREFIX, DrillRecord, DrillRequest, DrillStore
from forewarn.runner.hooks.executor import FAILED, SUCCEEDED
from forewarn.runner.requester import APPROVAL, DOCUMENT, INSTANCE
from forewarn.runner.telemetry import log_writer
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from ..fixtures.logs import Lines, PipedLines
from ..judges.promises import Judge
from ..judges.waiting_promises import NobodyWaits
from . import pauses
from .runner_profiles import PROFILES, policies
from .runner_world import VMS, Hook, World
from .watched_journals import JournalDisk, MemoryJournal
from .world_runner import Instance, leftovers_in, new_runner

DESCRIPTIONS = st.sampled_from(sorted(PROFILES))
RESOURCES = st.sampled_from([VMS[:1], VMS[:1], VMS[1:], VMS[1:], VMS, VMS[::-1]])
SECONDS = st.sampled_from([1, 1, 2, 3, 5, 12, 25, 40, 70, 130])
ENDS = st.sampled_from([SUCCEEDED, SUCCEEDED, SUCCEEDED, FAILED])
STUCK = st.sampled_from([{DOCUMENT}, {DOCUMENT, INSTANCE, APPROVAL}, {APPROVAL}, {INSTANCE}, set()])
NOTICES = st.sampled_from([3.0, 20.0, 60.0, 300.0, 900.0, 900.0])


class VmMachine(RuleBasedStateMachine):
    """The rules of a VM in a world. A subclass has those of the service, and judges."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.mkdtemp()
        self.disk = JournalDisk()
        self.logs: list[Lines] = []
        self.piped = False
        self.patch = pytest.MonkeyPatch()

    @initialize(
        vm=st.sampled_from(VMS),
        first_events=st.sampled_from([0.0, 0.0, 90.0]),
        piped=st.booleans(),
        timed=st.booleans(),
        ids=st.integers(0, 2**32 - 1),
    )
    def begin(self, vm: str, first_events: float, piped: bool, timed: bool, ids: int) -> None:
        self.vm = vm
        self.timed = timed  # what is decided depends on the time, and so is decided anew at each poll
        self.piped = piped
        self.patch.setattr(log_writer, "LIMIT_BYTES", 20_000)  # or no example would have lines that find no room
        self.hook_seconds: float | None = None  # how long new hooks take, if not for ever
        self.world = World(self.plan, settings=Settings(switch_off=None, first_events=first_events))
        # An example has to go the same way each time, and how long a witness waits depends on the id.
        self.numbers = itertools.count(1)
        self.world.model._new_id = lambda: f"{ids:08X}-{next(self.numbers):04X}-4000-8000-000000000000"
        self.world.new_log = self.new_log
        self.world.policies = partial(policies, timed=timed)
        self.world.model.request(vm)
        self.judge = Judge(vm)
        self.punctual = NobodyWaits()
        self.instance = self.run_it()

    def new_log(self) -> Lines:
        """Return a log; in some examples its reader stalls until ``read_the_log``."""
        self.logs.append(PipedLines() if self.piped else Lines())
        return self.logs[-1]

    def run_it(self) -> Instance:
        made = new_runner(self.world, self.directory, self.vm, lambda *_: MemoryJournal(self.world, self.disk))
        with leftovers_in(self.world):
            made.runner.resume()
        return made

    def described(self, name: str) -> str:
        """Return a Description that the policies know."""
        return name if self.timed or not PROFILES[name].after else "drain"

    # Hooks

    @precondition(lambda self: self.world.running())
    @rule(data=st.data(), result=ENDS)
    def end_a_hook(self, data: st.DataObject, result: str) -> None:
        self.end(data.draw(st.sampled_from(self.world.running())), result)
        self.instance.runner.advance_hooks()

    @precondition(lambda self: self.world.running())
    @rule()
    def end_all_hooks(self) -> None:
        for hook in self.world.running():
            self.end(hook, SUCCEEDED)
        self.instance.runner.advance_hooks()

    def end(self, hook: Hook, result: str) -> None:
        hook.ends_at, hook.result = self.world.now, result
        hook.settle(self.world.now)
        if not self.instance.executor.watches(hook):
            hook.collected = True
            self.world.note("exit", uid=hook.uid)

    @precondition(lambda self: self.world.running())
    @rule(data=st.data())
    def let_a_hook_ignore_sigterm(self, data: st.DataObject) -> None:
        data.draw(st.sampled_from(self.world.running())).patience = 2.0

    @precondition(lambda self: self.piped)
    @rule()
    def read_the_log(self) -> None:
        """Whose reader has stalled since the last time."""
        for log in self.logs[-1:]:
            if isinstance(log, PipedLines):
                log.read()

    @rule()
    def lose_the_next_program(self) -> None:
        self.world.not_startable = True

    # The VM

    @rule(seconds=SECONDS)
    def pass_time(self, seconds: int) -> None:
        for _ in range(seconds):
            self.instance.runner.poll_and_process()
            self.world.clock.advance(1.0)

    @rule(seconds=SECONDS)
    def pass_busy_time(self, seconds: int) -> None:
        """Hooks succeed after a second."""
        for _ in range(seconds):
            self.instance.runner.poll_and_process()
            self.world.clock.advance(1.0)
            for hook in self.world.running():
                self.end(hook, SUCCEEDED)

    def plan(self, hook: Hook) -> None:
        if self.hook_seconds is not None:
            hook.ends_at = hook.started_at + self.hook_seconds

    @rule(
        seconds=SECONDS,
        stuck=STUCK,
        latency=st.sampled_from([0.0, 0.02, 0.7, 3.0]),
        hook_seconds=st.sampled_from([None, 0.0, 0.5, 0.5, 4.0]),
    )
    def pass_time_with_a_slow_service(
        self, seconds: int, stuck: set[str], latency: float, hook_seconds: float | None
    ) -> None:
        """Some requests get no answer, the others take a while; hooks end in between."""
        world = self.world
        world.stuck, world.latency, self.hook_seconds = frozenset(stuck), latency, hook_seconds
        end = world.now + seconds
        with world.driven(), leftovers_in(world):
            while world.now < end:
                self.instance.runner.step()
        world.stuck, world.latency, self.hook_seconds = frozenset(), 0.0, None

    @rule(seconds=SECONDS)
    def freeze(self, seconds: int) -> None:
        self.world.clock.advance(seconds)

    @rule(seconds=st.sampled_from([-3600.0, 3600.0]))
    def set_the_clock(self, seconds: float) -> None:
        self.world.wall_error += seconds
        self.world.note("step", seconds=seconds)

    @rule(seconds=st.sampled_from([2.0, 15.0, 70.0, 4000.0]))
    def pause(self, seconds: float) -> None:
        pauses.pause(self.world, self.directory, seconds)

    @rule(content=st.sampled_from([b"", b"{", b"{}", b"[1]", b"\xff"]))
    def spoil_the_pause(self, content: bytes) -> None:
        pauses.damage(self.world, self.directory, content)

    @rule()
    def resume(self) -> None:
        pauses.resume(self.world, self.directory)

    @rule(broken=st.booleans())
    def break_or_heal_the_disk(self, broken: bool) -> None:
        self.disk.broken = broken

    @rule(seconds=SECONDS)
    def kill(self, seconds: int) -> None:
        self.world.kill()
        self.world.clock.advance(seconds)
        self.instance = self.run_it()

    @rule(seconds=SECONDS)
    def reboot(self, seconds: int) -> None:
        self.world.kill()
        self.world.reboot(seconds)
        self.instance = self.run_it()

    @rule(seconds=SECONDS, nameless=st.booleans())
    def restart(self, seconds: int, nameless: bool = False) -> None:
        """An orderly restart; ``nameless``: it takes a while until the service says who this VM is."""
        self.instance.runner._stopped()
        if self.disk.broken:
            self.world.note("kill")  # what could not be kept is forgotten
        self.world.clock.advance(seconds)
        if nameless:
            self.world.stuck = frozenset({INSTANCE})
        self.instance = self.run_it()
        if nameless:
            self.pass_time(5)
            self.world.stuck = frozenset()

    @rule(seconds=st.sampled_from([1, 3, 12, 40]), stopped=st.booleans())
    def restart_while_the_journal_is_away(self, seconds: int, stopped: bool) -> None:
        """It cannot be read at the start, and can be some time later."""
        if stopped:
            self.instance.runner._stopped()
        self.world.kill()
        self.disk.hidden = True
        self.world.note("hidden")
        self.instance = self.run_it()
        self.pass_busy_time(seconds)
        self.disk.hidden = False

    @rule(times=st.sampled_from([2, 3, 5]))
    def restart_again_and_again(self, times: int) -> None:
        for _ in range(times):
            self.restart(1)
            self.pass_time(1)

    @rule(description=DESCRIPTIONS, notice=NOTICES, resources=RESOURCES)
    def rehearse(self, description: str, notice: float, resources: tuple[str, ...]) -> None:
        request = DrillRequest("Reboot", notice, 30.0, "Platform", resources, self.described(description))
        clocks = self.instance.clocks
        store = DrillStore(self.directory)
        store.inbox.path.mkdir(mode=0o700, exist_ok=True)
        store.write(f"{ID_PREFIX}{next(self.numbers):012x}", DrillRecord(request, clocks.stamp()))
