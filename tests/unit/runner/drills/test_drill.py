# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Drills: listed, started, gone; across restarts, and whatever is done to them."""

from __future__ import annotations

import json
import os
from datetime import datetime, timezone
from pathlib import Path

import pytest
from forewarn.errors import InputError
from forewarn.events import API_VERSIONS, FIELD_SINCE, Event, has_field, parse_document
from forewarn.runner.drills import drill
from forewarn.runner.drills.drill import (
    CANCELLED,
    FINISHED,
    LONGEST_WAIT_SECONDS,
    MOST_RUNNING,
    OVERTAKEN,
    REFUSED,
    Drills,
)
from forewarn.runner.telemetry.heartbeat import Heartbeat
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tools.fixtures.clocks import ManualClocks
from tools.fixtures.drill_bench import REBOOT, events_of, files, hand_over, only_event
from tools.suite.sizes import examples

# A drill's record


def test_nothing_is_there_at_first(state: Path, clocks: ManualClocks) -> None:
    drills = Drills(str(state), clocks)
    assert drills.poll("web_0") is None
    assert drills.take_results() == []
    assert not (state / "drills").exists()


def test_who_asks_first_makes_the_directory(state: Path, clocks: ManualClocks) -> None:
    runner = Drills(str(state), clocks)
    assert runner.poll("web_0") is None
    event_id = hand_over(state, clocks)
    assert (state / "drills").stat().st_mode & 0o777 == 0o700
    assert only_event(runner.poll("web_0")).event_id == event_id


def test_a_drill_is_scheduled_then_started_then_gone(state: Path, clocks: ManualClocks, drills: Drills) -> None:
    event_id = hand_over(state, clocks)
    assert event_id.startswith("drill-")
    scheduled = drills.poll("web_0")
    not_before = datetime.fromtimestamp(clocks.wall() + 900, timezone.utc)
    assert only_event(scheduled) == Event(
        event_id,
        "Reboot",
        "VirtualMachine",
        ("web_0",),
        "Scheduled",
        not_before,
        "Drill: a Reboot is rehearsed.",
        "Platform",
        30,
        {"Drill": True},
    )
    clocks.now += 899.9
    assert drills.poll("web_0") is scheduled
    clocks.now += 0.1
    started = drills.poll("web_0")
    assert only_event(started).event_status == "Started"
    assert only_event(started).not_before is None
    clocks.now += 29.9
    assert drills.poll("web_0") is started
    assert drills.take_results() == []
    clocks.now += 0.1
    gone = drills.poll("web_0")
    assert gone is not None
    assert gone.events == ()
    assert drills.take_results() == [(event_id, FINISHED, "it lasted 30 s")]
    assert drills.take_results() == []
    assert files(state) == []
    assert drills.poll("web_0") is None
    assert scheduled is not None
    assert started is not None
    assert len({scheduled.incarnation, started.incarnation, gone.incarnation}) == 3


def test_an_approval_starts_it_early(state: Path, clocks: ManualClocks, drills: Drills) -> None:
    event_id = hand_over(state, clocks)
    drills.poll("web_0")
    clocks.now += 60
    drills.approve([event_id.upper(), "drill-unheardof", "C7061BAC"])
    assert only_event(drills.poll("web_0")).event_status == "Started"
    clocks.now += 20
    drills.approve([event_id])  # once more does not make it longer
    clocks.now += 9.9
    assert only_event(drills.poll("web_0")).event_status == "Started"
    clocks.now += 0.1
    drills.poll("web_0")
    assert drills.take_results() == [(event_id, FINISHED, "it lasted 30 s")]
    drills.approve([event_id])
    assert drills.poll("web_0") is None


@pytest.mark.parametrize("api_version", API_VERSIONS)
def test_its_fields_are_those_of_the_api_version(state: Path, clocks: ManualClocks, api_version: str) -> None:
    drills = Drills(str(state), clocks, api_version)
    drills.poll("web_0")
    hand_over(state, clocks)
    document = drills.poll("web_0")
    event = only_event(document)
    assert set(event.as_dict()) == {name for name in FIELD_SINCE if has_field(api_version, name)}
    # As the service would have sent it: the parser reads the same.
    assert document is not None
    body = {"DocumentIncarnation": document.incarnation, "Events": [{**event.as_dict(), "Drill": True}]}
    parsed = parse_document(json.dumps(body), api_version)
    assert parsed.events == (event,)
    assert parsed == document


def test_several_drills_live_side_by_side(state: Path, clocks: ManualClocks, drills: Drills) -> None:
    first = hand_over(state, clocks)
    drills.poll("web_0")
    clocks.now += 10
    second = hand_over(state, clocks, REBOOT._replace(event_type="Freeze", notice_seconds=5.0, duration_seconds=1.0))
    assert [event.event_id for event in events_of(drills.poll("web_0"))] == [first, second]
    clocks.now += 6
    document = drills.poll("web_0")
    assert document is not None
    clocks.now += 1
    assert only_event(drills.poll("web_0")).event_id == first
    assert [ended.event_id for ended in drills.take_results()] == [second]


def test_only_so_many_at_once(state: Path, clocks: ManualClocks, drills: Drills) -> None:
    for _ in range(MOST_RUNNING + 1):
        hand_over(state, clocks)
    assert len(events_of(drills.poll("web_0"))) == MOST_RUNNING
    ended = drills.take_results()
    assert [(one.result, one.reason) for one in ended] == [(REFUSED, f"{MOST_RUNNING} drills are under way already")]


@pytest.mark.parametrize("step", [3600.0, -3600.0])
def test_a_wall_clock_that_is_set_changes_nothing(
    state: Path, clocks: ManualClocks, drills: Drills, step: float
) -> None:
    hand_over(state, clocks)
    scheduled = drills.poll("web_0")
    clocks.wall_offset += step
    clocks.now += 899
    assert drills.poll("web_0") is scheduled
    clocks.now += 1
    assert only_event(drills.poll("web_0")).event_status == "Started"
    clocks.wall_offset -= step
    clocks.now += 29
    assert only_event(drills.poll("web_0")).event_status == "Started"
    clocks.now += 1
    drills.poll("web_0")
    assert [ended.result for ended in drills.take_results()] == [FINISHED]


# Restarts


def test_a_restart_goes_on_with_it(state: Path, clocks: ManualClocks, drills: Drills) -> None:
    event_id = hand_over(state, clocks)
    before = only_event(drills.poll("web_0"))
    clocks.now += 600
    drills = Drills(str(state), clocks)
    # Who this VM is may not be known yet; and it is no reason to wait that the request is old.
    assert only_event(drills.poll(None)) == before
    drills.approve([event_id])
    drills = Drills(str(state), clocks)
    assert only_event(drills.poll("web_0")).event_status == "Started"
    clocks.now += 29
    assert only_event(Drills(str(state), clocks).poll("web_0")).event_status == "Started"
    clocks.now += 1
    drills = Drills(str(state), clocks)
    assert drills.poll("web_0") is None
    assert drills.take_results() == [(event_id, FINISHED, "it lasted 30 s")]
    assert files(state) == []


def test_a_reboot_goes_on_with_it(state: Path, clocks: ManualClocks, drills: Drills) -> None:
    hand_over(state, clocks)
    before = only_event(drills.poll("web_0"))
    clocks.now += 100
    clocks.reboot(down=60)
    drills = Drills(str(state), clocks)
    assert only_event(drills.poll("web_0")) == before
    clocks.now += 739
    assert only_event(drills.poll("web_0")) == before
    clocks.now += 1
    assert only_event(drills.poll("web_0")).event_status == "Started"


def test_what_was_due_while_nobody_worked_is_past(state: Path, clocks: ManualClocks, drills: Drills) -> None:
    event_id = hand_over(state, clocks)
    drills.poll("web_0")
    clocks.now += 910
    drills = Drills(str(state), clocks)
    assert only_event(drills.poll("web_0")).event_status == "Started"
    clocks.now += 20  # 30 s after it was due, and not after it was seen
    drills.poll("web_0")
    assert drills.take_results() == [(event_id, FINISHED, "it lasted 30 s")]


def test_request_that_waited_too_long_is_refused(state: Path, clocks: ManualClocks) -> None:
    Drills(str(state), clocks).poll("web_0")
    event_id = hand_over(state, clocks)
    clocks.now += LONGEST_WAIT_SECONDS + 1
    drills = Drills(str(state), clocks)
    assert drills.poll("web_0") is None
    assert drills.take_results() == [(event_id, REFUSED, "it could not begin for 5 min 1 s")]
    assert files(state) == [f"{event_id}.json.refused"]
    assert Drills(str(state), clocks).poll("web_0") is None


def test_without_a_name_it_waits(state: Path, clocks: ManualClocks, drills: Drills) -> None:
    waiting = hand_over(state, clocks)
    named = hand_over(state, clocks, REBOOT._replace(resources=("web_0",)))
    assert only_event(drills.poll(None)).event_id == named
    clocks.now += LONGEST_WAIT_SECONDS
    document = drills.poll("web_0")
    assert document is not None
    assert [event.event_id for event in document.events] == [named, waiting]
    assert [event.resources for event in document.events] == [("web_0",), ("web_0",)]


def test_drill_without_a_vm_name_expires(state: Path, clocks: ManualClocks, drills: Drills) -> None:
    event_id = hand_over(state, clocks)
    assert drills.poll(None) is None
    clocks.now += LONGEST_WAIT_SECONDS + 1
    assert drills.poll(None) is None
    reason = "it could not begin for 5 min 1 s, since the name of this VM is not known"
    assert drills.take_results() == [(event_id, REFUSED, reason)]
    assert drills.poll("web_0") is None


# Ended early


@pytest.mark.parametrize(("notice", "taken"), [(900.0, False), (900.0, True), (0.0, True)])
def test_cancelled_drill_ends_in_any_state(
    state: Path, clocks: ManualClocks, drills: Drills, notice: float, taken: bool
) -> None:
    event_id = hand_over(state, clocks, REBOOT._replace(notice_seconds=notice))
    if taken:
        drills.poll("web_0")
    drill.cancel(str(state), event_id, clocks)
    gone = drills.poll("web_0")
    assert (gone is not None) == taken, "what has never been listed need not leave the list"
    assert gone is None or gone.events == ()
    assert drills.take_results() == [(event_id, CANCELLED, "somebody cancelled it")]
    assert files(state) == []
    assert drills.poll("web_0") is None


def test_cancelled_drill_with_a_bad_file_ends_once(state: Path, clocks: ManualClocks, drills: Drills) -> None:
    (state / "drills" / "drill-a.json").write_text("{")
    drill.cancel(str(state), "drill-a", clocks)
    assert drills.poll("web_0") is None
    assert drills.take_results() == [("drill-a", CANCELLED, "somebody cancelled it")]
    assert files(state) == []


def test_drill_removed_before_its_start_never_existed(state: Path, clocks: ManualClocks, drills: Drills) -> None:
    event_id = hand_over(state, clocks)
    drills.poll(None)
    (state / "drills" / f"{event_id}.json").unlink()
    drills.end_all("something real")
    assert drills.poll("web_0") is None
    assert drills.take_results() == []


def test_unknown_drill_cannot_be_cancelled(state: Path, clocks: ManualClocks, drills: Drills) -> None:
    with pytest.raises(InputError) as caught:
        drill.cancel(str(state), "drill-0", clocks)
    assert str(caught.value) == "there is no drill drill-0. None is under way."
    event_id = hand_over(state, clocks)
    with pytest.raises(InputError, match=f"There are: {event_id}"):
        drill.cancel(str(state), "../drill-0", clocks)
    assert files(state) == [f"{event_id}.json"]


def test_late_cancel_mark_is_removed(state: Path, clocks: ManualClocks, drills: Drills) -> None:
    (state / "drills" / "drill-0.cancel").touch()
    assert drills.poll("web_0") is None
    assert drills.take_results() == []
    assert files(state) == []


def test_whose_file_is_removed_is_cancelled(state: Path, clocks: ManualClocks, drills: Drills) -> None:
    event_id = hand_over(state, clocks)
    drills.poll("web_0")
    (state / "drills" / f"{event_id}.json").unlink()
    assert events_of(drills.poll("web_0")) == ()
    assert drills.take_results() == [(event_id, CANCELLED, "its file was removed")]


def test_something_real_ends_all_of_them(state: Path, clocks: ManualClocks, drills: Drills) -> None:
    scheduled = hand_over(state, clocks)
    started = hand_over(state, clocks)
    drills.poll("web_0")
    drills.approve([started])
    drills.poll("web_0")
    waiting = hand_over(state, clocks)
    drills.poll(None)
    new = hand_over(state, clocks)
    drills.end_all("a real Preempt is scheduled: X")
    assert events_of(drills.poll("web_0")) == ()
    ended = drills.take_results()
    assert {one.event_id for one in ended} == {scheduled, started, waiting, new}
    assert {one[1:] for one in ended} == {(OVERTAKEN, "a real Preempt is scheduled: X")}
    assert len(ended) == 4
    assert files(state) == []
    drills.end_all("a real Preempt is scheduled: X")
    assert drills.poll("web_0") is None
    assert drills.take_results() == []


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["hand over", "approve", "cancel", "overtake", "restart", "reboot", "pass", "remove"]),
            st.floats(0, 1200),
            st.integers(0, 5),
        ),
        max_size=25,
    )
)
def test_drill_ends_once_and_starts_when_due(
    steps: list[tuple[str, float, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    clocks = ManualClocks()
    state = tmp_path_factory.mktemp("state")
    heart = Heartbeat(str(state), clocks)
    drills = Drills(str(state), clocks)
    drills.poll("web_0")
    taken_at: dict[str, float] = {}  # wall clock, which nothing sets here
    approved: set[str] = set()
    handed: list[str] = []
    ended: list[str] = []
    for what, seconds, which in [*steps, ("pass", 2000.0, 0)]:
        heart.beat({"pid": os.getpid()}, durable=False)
        under_way = [one for one in handed if one not in ended]
        target = under_way[which % len(under_way)] if under_way else None
        if what == "hand over" and len(under_way) < MOST_RUNNING:
            handed.append(hand_over(state, clocks, REBOOT))
        elif what == "approve" and target:
            drills.approve([target])
            approved.add(target)
        elif what == "cancel" and target:
            drill.cancel(str(state), target, clocks)
        elif what == "overtake":
            drills.end_all("real")
        elif what == "restart":
            drills = Drills(str(state), clocks)
        elif what == "reboot":
            clocks.reboot(seconds)
            drills = Drills(str(state), clocks)
        elif what == "remove" and target:
            (state / "drills" / f"{target}.json").unlink()
        else:
            clocks.now += seconds
        document = drills.poll("web_0")
        listed = document.events if document is not None else ()
        new = [one.event_id for one in drills.take_results()]
        assert not set(new) & {event.event_id for event in listed}
        ended += new
        for event in listed:
            taken_at.setdefault(event.event_id, clocks.wall())
            due = clocks.wall() - taken_at[event.event_id] >= 899.99
            assert (event.event_status == "Started") == (due or event.event_id in approved)
            assert clocks.wall() - taken_at[event.event_id] < 930.01
    heart.close()
    assert sorted(ended) == sorted(set(handed))
    assert [name for name in files(state) if not name.endswith(".refused")] == []
