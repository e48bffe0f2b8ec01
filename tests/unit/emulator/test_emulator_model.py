# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state machine: how events proceed, who sees them, and what increases DocumentIncarnation."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
from forewarn.emulator.clock import Clock, ManualClock
from forewarn.emulator.lifecycle import UnknownNameError, WrongStateError
from forewarn.emulator.model import Model
from forewarn.emulator.spec import EventSpec, Settings, VmSpec
from forewarn.errors import InputError
from forewarn.events import NOTICE_SECONDS
from tools.fixtures.clocks import ManualClocks

PAIR = (VmSpec("a", fault_domain="0"), VmSpec("b", fault_domain="1"))


def make(vms: tuple[VmSpec, ...] = PAIR, **settings: Any) -> tuple[Model, ManualClock]:
    clock = ManualClock()
    model = Model(clock, vms, Settings(**settings))
    for vm in vms:
        model.request(vm.name)
    return model, clock


def statuses(model: Model, vm: str | None = None) -> list[str]:
    return [event.status for event in model.document(vm)[1]]


def test_se20_the_recorded_life_scheduled_started_gone() -> None:
    model, clock = make()
    event = model.schedule(EventSpec("Freeze", ("a", "b"), duration=5))
    assert model.document("b")[0] == 2
    listed = model.document("b")[1][0]
    assert (listed.status, listed.spec.resources, listed.not_before) == ("Scheduled", ("a", "b"), int(clock.wall(900)))

    clock.advance(899.9)
    assert statuses(model) == ["Scheduled"]
    clock.advance(0.1)
    assert model.document("b")[0] == 3
    listed = model.document("b")[1][0]
    assert (listed.status, listed.not_before) == ("Started", None)  # SE-16: blank once started
    assert model.find(event).started_by == "NotBefore"

    clock.advance(599.9)
    assert statuses(model) == ["Started"]
    clock.advance(0.1)
    assert model.document("b") == (4, ())
    assert model.find(event).status == "Finished"


@pytest.mark.parametrize(("event_type", "notice"), [*NOTICE_SECONDS.items(), ("SpotRebalanceRecommendation", 900.0)])
def test_minimum_notice_is_the_default_of_each_type(event_type: str, notice: float) -> None:
    model, clock = make()
    model.schedule(EventSpec(event_type, ("a",)))
    assert model.document("a")[1][0].not_before == int(clock.wall(notice))


def test_notice_is_set_per_type_or_event() -> None:
    model, clock = make(notice={"Terminate": 600.0})
    model.schedule(EventSpec("Terminate", ("a",)))
    model.schedule(EventSpec("Freeze", ("a",), notice=60.0))
    assert [event.not_before for event in model.document("a")[1]] == [int(clock.wall(600)), int(clock.wall(60))]


def test_se11_event_ids_are_stable_upper_case_guids() -> None:
    model, clock = make()
    event = model.schedule(EventSpec("Freeze", ("a",)))
    assert re.fullmatch(r"[0-9A-F]{8}(-[0-9A-F]{4}){3}-[0-9A-F]{12}", event)
    clock.advance(900)
    assert [listed.event_id for listed in model.document()[1]] == [event]


def test_se33_approved_event_starts_after_a_short_delay() -> None:
    model, clock = make(start_delay=3.0)
    event = model.schedule(EventSpec("Reboot", ("a", "b")))
    model.approve([event.lower()], "b")  # SE-11: either case
    clock.advance(2.9)
    assert statuses(model) == ["Scheduled"]
    clock.advance(0.1)
    assert statuses(model) == ["Started"]
    assert model.find(event).started_by == "approval"
    assert [approval.vm for approval in model.find(event).approvals] == ["b"]


def test_approval_never_delays_the_start_beyond_not_before() -> None:
    model, clock = make(start_delay=30.0)
    event = model.schedule(EventSpec("Preempt", ("a",)))
    clock.advance(29)
    model.approve([event], "a")
    clock.advance(1)
    assert statuses(model) == ["Started"]
    assert model.find(event).started_by == "NotBefore"


def test_se31_second_approval_changes_nothing() -> None:
    model, clock = make(start_delay=5.0)
    event = model.schedule(EventSpec("Reboot", ("a", "b")))
    model.approve([event], "a")
    clock.advance(4)
    model.approve([event], "b")
    clock.advance(1)
    assert statuses(model) == ["Started"], "the second approval did not begin the delay anew"
    before = model.document()
    model.approve([event], "b")
    assert model.document() == before


def test_se30_one_post_may_approve_several_events() -> None:
    model, _clock = make(start_delay=0.0)
    events = [model.schedule(EventSpec("Reboot", ("a",))), model.schedule(EventSpec("Freeze", ("b",)))]
    model.approve(events, "a")
    assert statuses(model) == ["Started", "Started"]


def test_se20_shared_hardware_needs_every_approval() -> None:
    model, _clock = make(start_delay=0.0)
    event = model.schedule(EventSpec("Reboot", ("a", "b"), start_on="all_approvals"))
    model.approve([event], "a")
    model.approve([event], "a")
    assert statuses(model) == ["Scheduled"]
    model.approve([event], "b")
    assert statuses(model) == ["Started"]


def test_se20_missing_approval_means_start_at_not_before() -> None:
    model, clock = make(start_delay=0.0)
    event = model.schedule(EventSpec("Reboot", ("a", "b"), start_on="not_before"))
    model.approve([event], "a")
    model.approve([event], "b")
    clock.advance(899)
    assert statuses(model) == ["Scheduled"]
    clock.advance(1)
    assert statuses(model) == ["Started"]


def test_se32_unaffected_vm_can_approve() -> None:
    model, _clock = make(start_delay=0.0)
    event = model.schedule(EventSpec("Reboot", ("a",)))
    model.approve([event], "b")
    assert statuses(model, "a") == ["Started"]


def test_se21_a_cancelled_event_is_gone_without_impact() -> None:
    model, _clock = make()
    event = model.schedule(EventSpec("Reboot", ("a",)))
    model.cancel(event)
    assert model.document("a") == (3, ())
    assert model.find(event).impacts == []
    with pytest.raises(UnknownNameError):
        model.approve([event], "a")
    with pytest.raises(WrongStateError):
        model.start(event)


def test_a_started_event_cannot_be_cancelled() -> None:
    model, clock = make()
    event = model.schedule(EventSpec("Reboot", ("a",), notice=0.0))
    clock.advance(1)
    with pytest.raises(WrongStateError):
        model.cancel(event)


def test_se22_hardware_failure_is_listed_as_started() -> None:
    model, _clock = make()
    model.schedule(EventSpec("Reboot", ("a",), hardware_failure=True))
    incarnation, (event,) = model.document("a")
    assert (incarnation, event.status, event.not_before, event.spec.listed_duration) == (2, "Started", None, -1)


def test_se23_secondary_impact_changes_no_document() -> None:
    model, clock = make(gone_after=60.0)
    event = model.schedule(EventSpec("Freeze", ("a",), notice=0.0, impact=7.0))
    clock.advance(0.0)
    model.settle()
    before = model.document()
    clock.advance(58)
    model.settle()
    assert not model.find(event).as_dict(model.time)["impacted"]
    model.secondary_impact(event, 3.0)
    assert model.find(event).as_dict(model.time)["impacted"]
    assert model.document() == before
    clock.advance(2.9)
    assert model.document() == before, "listed until the impact is over"
    clock.advance(0.1)
    assert statuses(model) == []
    with pytest.raises(WrongStateError):
        model.secondary_impact(event, 1.0)


def test_se24_fault_domains_are_served_one_after_another() -> None:
    model, clock = make(gone_after=60.0)
    first = model.schedule_fault_domains(EventSpec("Reboot", ("a", "b"), notice=30.0, name="roll"), pause=20.0)
    assert [event.spec.resources for event in model.document("b")[1]] == [("a",)]
    clock.advance(30 + 60)
    assert statuses(model) == []
    clock.advance(20)
    (second,) = model.document("a")[1]
    assert second.spec.resources == ("b",)
    assert second.event_id != first
    assert model.find("roll-2").event_id == second.event_id
    clock.advance(1000)
    assert statuses(model) == []
    assert len(model.events) == 2


def test_se24_a_cancelled_domain_ends_the_row() -> None:
    model, clock = make()
    model.cancel(model.schedule_fault_domains(EventSpec("Reboot", ("a", "b"))))
    clock.advance(86400 * 0.5)
    model.settle()
    assert len(model.events) == 1


def test_se14_a_group_shares_its_documents() -> None:
    model, clock = make()
    model.schedule(EventSpec("Reboot", ("a",)))
    clock.advance(1000)
    model.schedule(EventSpec("Reboot", ("b",)))
    assert model.document("a") == model.document("b")
    assert model.document("A") == model.document("b"), "names in any case"


def test_se14_groups_and_lone_vms_see_their_own() -> None:
    vms = (*PAIR, VmSpec("c", group="other"), VmSpec("gpu_0", alone=True), VmSpec("gpu_1", alone=True))
    model, _clock = make(vms)
    event = model.schedule(EventSpec("Reboot", ("gpu_0",)))
    model.schedule(EventSpec("Freeze", ("a",)))
    assert {vm.name: len(model.document(vm.name)[1]) for vm in vms} == {"a": 1, "b": 1, "c": 0, "gpu_0": 1, "gpu_1": 0}
    assert model.document("c")[0] == 1
    with pytest.raises(UnknownNameError):
        model.approve([event], "gpu_1")
    with pytest.raises(InputError, match="not in one group"):
        model.schedule(EventSpec("Reboot", ("gpu_0", "gpu_1")))


@pytest.mark.parametrize(
    ("size", "scale_set", "domains", "alone", "sees"),
    [
        ("Standard_NC6s_v3", "gpus", "00", None, 0),
        ("standard_nd96asr_v4", "gpus", "11", None, 0),
        ("Standard_NC6s_v3", "gpus", "00", False, 1),
        ("Standard_NC6s_v3", "gpus", "01", None, 1),
        ("Standard_NC6s_v3", "", "00", None, 1),
        ("Standard_D2s_v5", "gpus", "00", None, 1),
        ("Standard_D2s_v5", "", "00", True, 0),
    ],
)
def test_se14_gpu_vms_see_only_their_own_events(
    size: str, scale_set: str, domains: str, alone: bool | None, sees: int
) -> None:
    vms = tuple(
        VmSpec(f"vm_{number}", size=size, scale_set=scale_set, fault_domain=domain, zone=str(number), alone=alone)
        for number, domain in enumerate(domains)
    )
    model, _clock = make(vms)
    model.schedule(EventSpec("Reboot", ("vm_0",)))
    assert [len(model.document(vm.name)[1]) for vm in vms] == [1, sees]


def test_se24_event_across_fault_domains_is_reported() -> None:
    model, _clock = make((VmSpec("a"), VmSpec("b"), VmSpec("c", fault_domain="1")))
    model.schedule(EventSpec("Reboot", ("a", "b")))
    model.schedule(EventSpec("Reboot", ("a", "c")))
    usual, unusual = (entry.detail for entry in model.transitions if entry.kind == "scheduled")
    assert usual == "Reboot of a, b"
    assert unusual == "Reboot of a, c (of several fault domains, which Azure serves one after another)"


def test_terminate_is_each_vms_own() -> None:
    model, _clock = make()
    event = model.schedule(EventSpec("Terminate", ("a",)))
    assert statuses(model, "a") == ["Scheduled"]
    assert model.document("b") == (1, ())
    with pytest.raises(UnknownNameError):
        model.approve([event], "b")
    with pytest.raises(InputError, match="one VM"):
        model.schedule(EventSpec("Terminate", ("a", "b")))
    model.schedule(EventSpec("Terminate", ("a",), seen_by="group"))
    assert statuses(model, "b") == ["Scheduled"]


def test_se05_the_first_request_enables_the_service() -> None:
    clock = ManualClock()
    model = Model(clock, PAIR, Settings(first_response=120.0, first_events=300.0))
    model.schedule(EventSpec("Reboot", ("a",)))
    clock.advance(10)
    assert model.document("a") == (1, ())
    assert model.request("a") == 130.0
    clock.advance(50)
    assert model.request("b") == 130.0, "the other VMs of the deployment wait for the same"
    clock.advance(249)
    assert model.document("a") == (1, ())
    clock.advance(1)
    assert statuses(model, "b") == ["Scheduled"]
    seen = model.find(next(iter(model.events))).visible_since
    assert {vm: stamp.emulated for vm, stamp in seen.items()} == {"a": 310.0, "b": 310.0}
    clock.advance(100)
    assert model.request("a") <= clock.now()


def test_se05_silent_day_resets_the_incarnation() -> None:
    model, clock = make()
    model.cancel(model.schedule(EventSpec("Reboot", ("a",))))
    event = model.schedule(EventSpec("Reboot", ("b",), notice=7 * 86400.0))
    assert model.document("a")[0] == 4
    clock.advance(86399)
    model.request("a")
    clock.advance(86399)
    assert model.document("a")[0] == 4
    clock.advance(1)
    assert model.document("a") == (1, ())
    model.request("b")
    assert model.document("a")[0] == 2
    assert [listed.event_id for listed in model.document("a")[1]] == [event]


def test_switch_off_by_hand_and_never() -> None:
    model, clock = make(switch_off=None)
    model.schedule(EventSpec("Reboot", ("b",), notice=9 * 86400.0))
    clock.advance(8 * 86400)
    assert model.document("a")[0] == 2
    model.switch_off()
    assert model.document("a") == (1, ())


def test_incarnations_may_jump() -> None:
    model, _clock = make(incarnation_step=2)
    model.schedule(EventSpec("Reboot", ("a",)))
    assert model.document()[0] == 3


def test_planned_calls_run_in_order_and_log_failures() -> None:
    model, clock = make()
    model.at(5.0, lambda: model.cancel("x"))
    model.at(3.0, lambda: model.schedule(EventSpec("Reboot", ("a",), name="x")))
    model.at(9.0, lambda: model.cancel("x"))
    clock.advance(10)
    model.settle()
    kinds = [(entry.at.emulated, entry.kind) for entry in model.transitions if entry.kind != "enabled"]
    assert kinds == [(3.0, "scheduled"), (5.0, "cancelled"), (9.0, "failed")]


@pytest.mark.parametrize(
    "spec",
    [
        EventSpec("Reboot", ()),
        EventSpec("Reboot", ("a", "a")),
        EventSpec("Reboot", ("a", "A")),
        EventSpec("Reboot", ("nobody",)),
        EventSpec("Reboot", ("a",), notice=-1.0),
        EventSpec("Reboot", ("a",), impact=math.nan),
        EventSpec("Reboot", ("a",), start_delay=math.inf),
        EventSpec("Reboot", ("a",), start_on="a whim"),
        EventSpec("Reboot", ("a",), seen_by="nobody"),
        EventSpec("Reboot", ("a",), event_id="not-a-guid"),
    ],
)
def test_events_that_cannot_be_are_refused(spec: EventSpec) -> None:
    model, _clock = make()
    with pytest.raises(InputError):
        model.schedule(spec)
    assert model.document() == (1, ())


def test_ids_and_names_are_given_once() -> None:
    model, _clock = make()
    guid = "C7061BAC-AFDC-4513-B24B-AA5F13A16123"
    model.schedule(EventSpec("Reboot", ("a",), event_id=guid, name="x"))
    for spec in (EventSpec("Reboot", ("a",), event_id=guid.lower()), EventSpec("Reboot", ("a",), name="x")):
        with pytest.raises(InputError):
            model.schedule(spec)


def test_vms_have_different_names() -> None:
    for vms in ((), (VmSpec("a"), VmSpec("A"))):
        with pytest.raises(InputError):
            Model(ManualClock(), vms)


@pytest.mark.parametrize("scale", [1.0, 2.0, 60.0, 1000.0])
def test_not_before_is_real_time_rounded_up(scale: float) -> None:
    """A client compares NotBefore (whole seconds, SE-16) with its own clock: no start before that."""
    real = ManualClocks(wall=1_800_000_000.25)
    clock = Clock(scale, real.monotonic, real.wall)
    model = Model(clock, PAIR)
    model.request("a")
    model.schedule(EventSpec("Reboot", ("a",)))
    not_before = model.document("a")[1][0].not_before
    assert not_before == math.ceil(1_800_000_000.25 + 900 / scale)
    real.now += not_before - 1_800_000_000.25 - 0.001
    assert statuses(model, "a") == ["Scheduled"]
    real.now += 0.002
    assert statuses(model, "a") == ["Started"]


def test_events_in_stopped_time_start_on_request() -> None:
    real = ManualClocks(wall=1_800_000_000.7)
    clock = Clock(0.0, real.monotonic, real.wall)
    model = Model(clock, PAIR)
    model.request("a")
    model.schedule(EventSpec("Preempt", ("a",)))
    real.now += 5000.0
    assert statuses(model, "a") == ["Scheduled"]
    clock.advance(29.999)
    assert statuses(model, "a") == ["Scheduled"]
    clock.advance(0.001)
    assert statuses(model, "a") == ["Started"]
    assert model.find(next(iter(model.events))).started.emulated == 30.0  # type: ignore[union-attr]  # started it has
