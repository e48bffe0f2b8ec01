# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever is done to the model, in whatever order, a client can rely on the documents."""

from __future__ import annotations

import contextlib
import math

from forewarn.emulator.clock import Clock
from forewarn.emulator.lifecycle import ListedEvent
from forewarn.emulator.model import Model
from forewarn.emulator.spec import START_ON, EventSpec, Settings, VmSpec
from forewarn.errors import InputError
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tools.suite.sizes import examples

VMS = (
    VmSpec("a", fault_domain="0"),
    VmSpec("b", fault_domain="1"),
    VmSpec("c", group="other"),
    VmSpec("lone", alone=True),
)
NAMES = tuple(vm.name for vm in VMS)
SECONDS = st.floats(0, 2000, allow_nan=False).map(lambda value: round(value, 2))


class ModelMachine(RuleBasedStateMachine):
    """Random operations and passing time; after each, every VM looks."""

    def __init__(self) -> None:
        super().__init__()
        self.real = 0.0
        self.scale = 1.0
        self.clock = Clock(1.0, lambda: self.real, lambda: 1_800_000_000.3 + self.real)
        self.model = Model(self.clock, VMS, Settings(switch_off=None))
        for name in NAMES:
            self.model.request(name)
        self.seen = {name: self.model.document(name) for name in NAMES}
        self.looked_at = 0  # how many transitions there were then
        self.gone: dict[str, set[str]] = {name: set() for name in NAMES}
        self.announced: dict[str, int] = {}  # EventId -> the NotBefore last listed
        self.hurried: set[str] = set()  # approved, started by hand, or passed over by a jump

    @rule(
        event_type=st.sampled_from(["Freeze", "Reboot", "Preempt", "Terminate", "SpotRebalanceRecommendation"]),
        resources=st.lists(st.sampled_from(NAMES), min_size=1, max_size=2, unique=True),
        notice=SECONDS,
        start_on=st.sampled_from(START_ON),
        gone_after=SECONDS,
        failure=st.booleans(),
    )
    def schedule(
        self, event_type: str, resources: list[str], notice: float, start_on: str, gone_after: float, failure: bool
    ) -> None:
        spec = EventSpec(
            event_type,
            tuple(resources),
            notice=notice,
            start_on=start_on,
            gone_after=gone_after,
            hardware_failure=failure,
        )
        with contextlib.suppress(InputError):
            event = self.model.schedule(spec)
            if failure:
                self.hurried.add(event)

    @rule(notice=SECONDS, pause=SECONDS)
    def serve_fault_domains(self, notice: float, pause: float) -> None:
        self.model.schedule_fault_domains(EventSpec("Reboot", ("a", "b"), notice=notice, gone_after=30.0), pause)

    @rule(vm=st.sampled_from(NAMES), data=st.data())
    def approve(self, vm: str, data: st.DataObject) -> None:
        listed = [event.event_id for event in self.model.document(vm)[1]]
        if listed:
            chosen = data.draw(st.lists(st.sampled_from(listed), min_size=1, unique=True))
            self.model.approve(chosen, vm)
            for event in chosen:
                if self.model.find(event).approved_start is not None:
                    self.hurried.add(event)

    @rule(operation=st.sampled_from(["cancel", "start", "finish"]), data=st.data())
    def operate(self, operation: str, data: st.DataObject) -> None:
        if self.model.events:
            event = data.draw(st.sampled_from([known.event_id for known in self.model.events.values()]))
            with contextlib.suppress(InputError):
                getattr(self.model, operation)(event)
                self.hurried.add(event)

    @rule(seconds=SECONDS)
    def wait(self, seconds: float) -> None:
        self.real += seconds / (self.scale or 1.0)

    @rule(seconds=SECONDS)
    def jump(self, seconds: float) -> None:
        self.model.settle()
        self.clock.advance(seconds)
        self.model.settle()
        self.model.retime()
        self.hurried.update(event.event_id for event in self.model.events.values() if event.started is not None)

    @rule(scale=st.sampled_from([0.5, 1.0, 7.0, 60.0]))
    def change_scale(self, scale: float) -> None:
        self.model.settle()
        self.clock.set_scale(scale)
        self.model.retime()
        self.scale = scale

    @invariant()
    def the_number_changes_exactly_with_the_array(self) -> None:
        """SE-10."""
        for name in NAMES:
            incarnation, events = self.model.document(name)
            before, events_before = self.seen[name]
            assert incarnation >= before
            if events != events_before:
                assert incarnation > before
            elif incarnation != before:  # only if something came and went between two looks
                assert len(self.model.transitions) >= self.looked_at + 2
            self._gone_events_stay_gone(name, events_before, events)
            self.seen[name] = incarnation, events
        self.looked_at = len(self.model.transitions)

    def _gone_events_stay_gone(self, name: str, before: tuple[ListedEvent, ...], now: tuple[ListedEvent, ...]) -> None:
        """SE-15."""
        ids = [event.event_id for event in now]
        assert len(set(ids)) == len(ids)
        self.gone[name] |= {event.event_id for event in before} - set(ids)
        assert not self.gone[name] & set(ids)

    @invariant()
    def nothing_starts_before_its_not_before_unless_approved(self) -> None:
        """SE-20, as a client reads it: by the real clock, in whole seconds."""
        for event in self.model.events.values():
            if event.started is not None and event.event_id not in self.hurried:
                announced = self.announced.get(event.event_id, event.not_before)
                assert event.started.wall >= announced - 0.001
                assert event.started.wall < math.inf
            elif event.status == "Scheduled":
                self.announced[event.event_id] = event.not_before

    @invariant()
    def documents_tell_of_the_right_vms(self) -> None:
        """SE-14."""
        for name, (_incarnation, events) in self.seen.items():
            for event in events:
                if name in ("c", "lone") or event.spec.event_type == "Terminate":
                    assert name in event.spec.resources
                else:
                    assert {"a", "b"} & set(event.spec.resources)
                assert (event.not_before is None) == (event.status == "Started")


TestModel = ModelMachine.TestCase
TestModel.settings = settings(
    max_examples=examples(120), stateful_step_count=30, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
