# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever the service, the hooks, the clock and the disk do, in any order: the runner keeps its promises.

The promises are those of ``tools.promises``; docs/runner-states.md lists them.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import tempfile
from functools import partial
from typing import Any

import pytest
from forewarn.emulator.lifecycle import SCHEDULED, STARTED, EmulatedEvent
from forewarn.emulator.spec import START_ON, EventSpec, Settings
from forewarn.errors import InputError
from forewarn.runner import event_record as states
from forewarn.runner.drills.store import ID_PREFIX, DrillRecord, DrillRequest, DrillStore
from forewarn.runner.hooks.executor import FAILED, SUCCEEDED
from forewarn.runner.requester import APPROVAL, DOCUMENT, INSTANCE
from forewarn.runner.telemetry import log_writer
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tools.logs import Lines, PipedLines
from tools.promises import Judge
from tools.runner_profiles import GENERATIONS, PROFILES, policies
from tools.runner_world import VMS, Hook, World
from tools.waiting_promises import NobodyWaits
from tools.watched_journals import Kept, MemoryJournal
from tools.world_runner import Instance, leftovers_in, new_runner

# With a number of examples they differ each time, as in make soak; the tests of a change are always the same.
EXAMPLES = os.environ.get("FOREWARN_EXAMPLES")
DESCRIPTIONS = st.sampled_from(sorted(PROFILES))
HOOKED = st.sampled_from(
    sorted(name for name, profile in PROFILES.items() if any(each.prepare for each in profile.stages))
)
RESOURCES = st.sampled_from([VMS[:1], VMS[:1], VMS[1:], VMS[1:], VMS, VMS[::-1]])
SECONDS = st.sampled_from([1, 1, 2, 3, 5, 12, 25, 40, 70, 130])
ENDS = st.sampled_from([SUCCEEDED, SUCCEEDED, SUCCEEDED, FAILED])
STUCK = st.sampled_from([{DOCUMENT}, {DOCUMENT, INSTANCE, APPROVAL}, {APPROVAL}, {INSTANCE}, set()])
SPOILT: list[dict[str, Any]] = [
    {},
    {"DurationInSeconds": "soon"},
    {"NotBefore": "later"},
    {"Resources": "web_0"},
    {"EventType": 7},
    {"EventStatus": 7},
    {"EventStatus": "InProgress"},
]
NOTICES = st.sampled_from([3.0, 20.0, 60.0, 300.0, 900.0, 900.0])


class RunnerMachine(RuleBasedStateMachine):
    """A VM with its runner, the service, and what can happen to them."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.mkdtemp()
        self.kept = Kept()
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
        made = new_runner(self.world, self.directory, self.vm, lambda *_: MemoryJournal(self.world, self.kept))
        with leftovers_in(self.world):
            made.runner.resume()
        return made

    def described(self, name: str) -> str:
        """Return a Description that the policies know."""
        return name if self.timed or not PROFILES[name].after else "drain"

    # The service

    @rule(
        description=DESCRIPTIONS,
        resources=RESOURCES,
        notice=NOTICES,
        start_on=st.sampled_from(START_ON),
        gone_after=st.sampled_from([0.0, 10.0, 60.0, 7200.0]),
        failure=st.sampled_from([False] * 7 + [True]),
    )
    def schedule(
        self,
        description: str,
        resources: tuple[str, ...],
        notice: float,
        start_on: str,
        gone_after: float,
        failure: bool,
    ) -> None:
        self.world.model.schedule(
            EventSpec(
                "Reboot",
                resources,
                notice=notice,
                description=self.described(description),
                start_on=start_on,
                gone_after=gone_after,
                hardware_failure=failure,
            )
        )

    def events(self, *status: str) -> list[EmulatedEvent]:
        self.world.model.settle()
        return [event for event in self.world.model.events.values() if not status or event.status in status]

    @precondition(lambda self: self.events(SCHEDULED, STARTED))
    @rule(data=st.data(), what=st.sampled_from(["cancel", "start", "finish", "finish"]))
    def change(self, data: st.DataObject, what: str) -> None:
        event = data.draw(st.sampled_from(self.events(SCHEDULED, STARTED)))
        with contextlib.suppress(InputError):
            getattr(self.world.model, what)(event.event_id)

    @precondition(lambda self: self.events(SCHEDULED))
    @rule(
        data=st.data(),
        what=st.fixed_dictionaries(
            {},
            optional={
                "event_type": st.sampled_from(["Freeze", "Reboot", "Redeploy", "Preempt", "Terminate"]),
                "resources": RESOURCES,
                "source": st.sampled_from(["Platform", "User"]),
                "duration": st.sampled_from([-1, 0, 5, 30]),
                "description": DESCRIPTIONS,
            },
        ),
    )
    def change_what_is_listed(self, data: st.DataObject, what: dict[str, Any]) -> None:
        """Other content under the same id."""
        event = data.draw(st.sampled_from(self.events(SCHEDULED)))
        if "description" in what:
            what = {**what, "description": self.described(what["description"])}
        self.world.change(event.event_id, **what)

    @precondition(lambda self: self.events(SCHEDULED))
    @rule(data=st.data(), fields=st.sampled_from(SPOILT))
    def spoil_a_field(self, data: st.DataObject, fields: dict[str, Any]) -> None:
        """Or mend it."""
        self.world.change(data.draw(st.sampled_from(self.events(SCHEDULED))).event_id, fields=fields)

    @precondition(lambda self: self.events(SCHEDULED))
    @rule(data=st.data(), seconds=st.sampled_from([-600.0, -30.0, -5.0, 5.0, 60.0, 3600.0]))
    def move_not_before(self, data: st.DataObject, seconds: float) -> None:
        self.world.postpone(data.draw(st.sampled_from(self.events(SCHEDULED))).event_id, seconds)

    @rule(
        description=HOOKED,
        left=st.sampled_from([0.5, 2.0, 3.5, 4.5, 6.0]),
        seconds=st.sampled_from([1, 1, 2, 4]),
        postponed=st.sampled_from([3.0, 30.0, 900.0]),
    )
    def postpone_at_the_last_moment(self, description: str, left: float, seconds: int, postponed: float) -> None:
        """An event with little or no time left to prepare; then there is time again."""
        event_id = self.world.model.schedule(
            EventSpec("Reboot", (self.vm,), notice=left, description=self.described(description), start_on="not_before")
        )
        self.pass_time(seconds)
        if event_id in [event.event_id for event in self.events(SCHEDULED)]:
            self.world.postpone(event_id, postponed)
            self.pass_time(1)

    @rule(generation=st.sampled_from(range(len(GENERATIONS))))
    def reload(self, generation: int) -> None:
        """In the middle of whatever is under way."""
        self.world.generation = generation
        self.instance.runner._reload()

    @precondition(lambda self: any(not event.listed for event in self.events()))
    @rule(data=st.data(), description=DESCRIPTIONS, notice=NOTICES)
    def use_an_id_again(self, data: st.DataObject, description: str, notice: float) -> None:
        event = data.draw(st.sampled_from([event for event in self.events() if not event.listed]))
        key = event.event_id.lower()
        resources: tuple[str, ...] = (self.vm,)
        if not self.judge.over_for_good(key):  # to the runner it is the same event, however long nobody asked
            description, resources = str(event.spec.description), event.spec.resources
        description = self.described(description)
        del self.world.model.events[key]
        self.world.model.schedule(
            EventSpec("Redeploy", resources, notice=notice, description=description, event_id=key)
        )

    @rule()
    def switch_the_service_off(self) -> None:
        """Incarnations begin again, and for a while it may list nothing (SE-05)."""
        self.world.model.switch_off()

    @rule(fault=st.sampled_from([None, None, 410, 503, 403]))
    def answer_reads_with(self, fault: int | None) -> None:
        self.world.read_fault = fault

    @rule(fault=st.sampled_from([None, None, "failed", "lost"]))
    def answer_approvals_with(self, fault: str | None) -> None:
        self.world.post_fault = fault

    @rule(data=st.data())
    def spoil_entries(self, data: st.DataObject) -> None:
        ids = [event.event_id.lower() for event in self.events(SCHEDULED, STARTED)]
        chosen = data.draw(st.lists(st.sampled_from(ids), unique=True)) if ids else []
        self.world.unreadable = frozenset(chosen)

    @rule(
        seconds=st.sampled_from([1.0, 3.0, 12.0, 20.0]),
        generation=st.sampled_from([None, *range(len(GENERATIONS))]),
        restarted=st.booleans(),
    )
    def answer_without_a_body(self, seconds: float, generation: int | None, restarted: bool) -> None:
        """For less than a minute: so nothing has left the list. A poll may wait 20 s for the request budget."""
        until = self.world.now + seconds
        since = self.world.bodyless_since
        if since is not None and until - since >= 40.0:
            return
        self.world.bodyless = True
        self.pass_time(1)
        if generation is not None:
            self.reload(generation)
        if restarted and self.world.now < until:
            self.restart(1)
        while self.world.now < until:
            self.pass_time(1)
        self.world.bodyless = False

    # Hooks

    @precondition(lambda self: self.world.running())
    @rule(data=st.data(), result=ENDS)
    def end_a_hook(self, data: st.DataObject, result: str) -> None:
        self.end(data.draw(st.sampled_from(self.world.running())), result)
        self.instance.runner.work()

    @precondition(lambda self: self.world.running())
    @rule()
    def end_all_hooks(self) -> None:
        for hook in self.world.running():
            self.end(hook, SUCCEEDED)
        self.instance.runner.work()

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
            self.instance.runner.cycle()
            self.world.clock.advance(1.0)

    @rule(seconds=SECONDS)
    def pass_busy_time(self, seconds: int) -> None:
        """Hooks succeed after a second."""
        for _ in range(seconds):
            self.instance.runner.cycle()
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
                self.instance.runner.turn()
        world.stuck, world.latency, self.hook_seconds = frozenset(), 0.0, None

    @rule(seconds=SECONDS)
    def freeze(self, seconds: int) -> None:
        self.world.clock.advance(seconds)

    @rule(seconds=st.sampled_from([-3600.0, 3600.0]))
    def set_the_clock(self, seconds: float) -> None:
        self.world.wall_error += seconds
        self.world.note("step", seconds=seconds)

    @rule(broken=st.booleans())
    def break_or_heal_the_disk(self, broken: bool) -> None:
        self.kept.broken = broken

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
        if self.kept.broken:
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
        self.kept.hidden = True
        self.world.note("hidden")
        self.instance = self.run_it()
        self.pass_busy_time(seconds)
        self.kept.hidden = False

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

    # The promises

    @invariant()
    def promises_are_kept(self) -> None:
        self.judge.read(self.world.ledger)
        self.punctual.read(self.world.ledger)

    @invariant()
    def states_tell_the_truth(self) -> None:
        for record in self.instance.runner.scheduler.records:
            if record.state == states.RECOVERING:
                assert record.outcome
                assert record.gone_at

    def teardown(self) -> None:
        try:
            if hasattr(self, "world"):
                self.come_to_rest()
                for log in self.logs:
                    if isinstance(log, PipedLines):
                        log.read()
        finally:
            self.patch.undo()
            for log in self.logs:
                if isinstance(log, PipedLines):
                    log.close()
            shutil.rmtree(self.directory)

    def come_to_rest(self) -> None:
        """Let everything work again, end every event, and judge the results."""
        self.judge.read(self.world.ledger)
        self.answer_reads_with(None)
        self.answer_approvals_with(None)
        self.world.unreadable = frozenset()
        self.world.not_startable = False
        self.kept.broken = self.kept.hidden = False
        for event in self.events(SCHEDULED, STARTED):
            if event.spec.fields:
                self.world.change(event.event_id, fields={})
        self.pass_busy_time(150)
        self.judge.read(self.world.ledger).at_rest(self.world.now, self.world.wall)
        for event in self.events(SCHEDULED):
            self.world.model.cancel(event.event_id)
        for event in self.events(STARTED):
            self.world.model.finish(event.event_id)
        store = DrillStore(self.directory)
        names = store.names()
        for drill in names.drills if names else ():
            store.cancel(drill)
        self.pass_busy_time(150)
        for _ in range(6):  # a recovery that has failed is tried again an hour later
            if self.instance.runner.scheduler.records:
                self.world.clock.advance(3600.0)
                self.pass_busy_time(5)
        self.judge.read(self.world.ledger).over()
        assert not self.instance.runner.scheduler.records
        assert self.instance.runner.scheduler.idle()
        assert not [row for row in self.kept.records() if row.open]


TestRunner = RunnerMachine.TestCase
TestRunner.settings = settings(
    max_examples=int(EXAMPLES or 70),
    derandomize=EXAMPLES is None,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
