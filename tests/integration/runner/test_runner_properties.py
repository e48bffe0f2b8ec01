# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever the service, the hooks, the clock and the disk do, in any order: the runner keeps its promises.

The promises are those of ``tools.judges.promises``; docs/runner-states.md lists them.
"""

from __future__ import annotations

import contextlib
import shutil
from typing import Any

from forewarn.emulator.lifecycle import SCHEDULED, STARTED, EmulatedEvent
from forewarn.emulator.spec import START_ON, EventSpec
from forewarn.errors import InputError
from forewarn.runner import event_record as states
from forewarn.runner.drills.store import DrillStore
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule
from tools.fixtures.logs import PipedLines
from tools.suite.sizes import examples
from tools.worlds.runner_profiles import GENERATIONS, PROFILES
from tools.worlds.vm_machine import DESCRIPTIONS, NOTICES, RESOURCES, VmMachine

STATUSES = st.integers(100, 599).filter(lambda status: status != 200)
HOOKED = st.sampled_from(
    sorted(name for name, profile in PROFILES.items() if any(each.prepare for each in profile.stages))
)
SPOILT: list[dict[str, Any]] = [
    {},
    {"DurationInSeconds": "soon"},
    {"NotBefore": "later"},
    {"Resources": "web_0"},
    {"EventType": 7},
    {"EventStatus": 7},
    {"EventStatus": "InProgress"},
]


class RunnerMachine(VmMachine):
    """A VM with its runner, the service, and what can happen to them."""

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

    @rule(fault=st.sampled_from([None, None, 410, 503, 403]) | STATUSES)
    def answer_reads_with(self, fault: int | None) -> None:
        self.world.read_fault = fault

    @rule(seconds=st.sampled_from([1.5, 8.0, 15.0, 40.0]))
    def stand_still_before_the_next_approval(self, seconds: float) -> None:
        """As a VM that is frozen, or a process that is stopped."""
        self.world.freeze_seconds = seconds

    @rule(fault=st.sampled_from([None, None, "failed", "lost", "closed", "closed-after"]))
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
        self.resume()
        self.disk.broken = self.disk.hidden = False
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
        assert not [row for row in self.disk.records() if row.open]


TestRunner = RunnerMachine.TestCase
TestRunner.settings = settings(
    max_examples=examples(70),
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
