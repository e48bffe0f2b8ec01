# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Drills: handed over, listed, started, gone; across restarts, bad files and whatever else lies in the spool."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from forewarn.errors import InputError
from forewarn.events import API_VERSIONS, FIELD_SINCE, Document, Event, has_field, parse_document
from forewarn.runner import drill, spool
from forewarn.runner.clocks import Clocks, Stamp
from forewarn.runner.drill import CANCELLED, FINISHED, LONGEST_WAIT_SECONDS, MOST_RUNNING, OVERTAKEN, REFUSED, Drills
from forewarn.runner.heartbeat import LONGEST_SILENCE_SECONDS, Heartbeat
from forewarn.runner.spool import Record, Request, Spool
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

REBOOT = Request("Reboot", 900.0, 30.0, "Platform")


class FakeClocks(Clocks):
    """A machine whose clocks do what a test says."""

    def __init__(self) -> None:
        super().__init__()
        self.boot_id = "boot-a"
        self.ran = 5000.0
        self.offset = 1_777_896_000.0  # of the wall clock, to the time since boot

    def monotonic(self) -> float:
        return self.ran

    def boottime(self) -> float:
        return self.ran

    def wall(self) -> float:
        return self.offset + self.ran

    def reboot(self, down: float) -> None:
        """Be down for some seconds."""
        self.offset += self.ran + down
        self.boot_id += "b"
        self.ran = 0.0


@pytest.fixture
def clocks() -> FakeClocks:
    return FakeClocks()


@pytest.fixture
def state(tmp_path: Path, clocks: FakeClocks) -> Iterator[Path]:
    """Return a state directory on which a runner works."""
    tmp_path.chmod(0o700)
    heart = Heartbeat(str(tmp_path), clocks)
    heart.beat({"pid": os.getpid(), "vm": "web_0"}, durable=False)
    yield tmp_path
    heart.close()


@pytest.fixture
def drills(state: Path, clocks: FakeClocks) -> Drills:
    Spool(str(state)).make()
    found = Drills(str(state), clocks)
    assert found.poll("web_0") is None
    return found


def hand_over(state: Path, clocks: Clocks, request: Request = REBOOT) -> str:
    return drill.hand_over(str(state), request, clocks)


def only_event(document: Document | None) -> Event:
    assert document is not None
    assert len(document.events) == 1
    return document.events[0]


def files(state: Path) -> list[str]:
    return sorted(path.name for path in (state / "drills").glob("*"))


def record_of(state: Path, event_id: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((state / "drills" / f"{event_id}.json").read_text())
    return data


# A drill's life


def test_nothing_is_there_at_first(state: Path, clocks: FakeClocks) -> None:
    drills = Drills(str(state), clocks)
    assert drills.poll("web_0") is None
    assert drills.ended() == []
    assert not (state / "drills").exists()


def test_who_asks_first_makes_the_directory(state: Path, clocks: FakeClocks) -> None:
    runner = Drills(str(state), clocks)
    assert runner.poll("web_0") is None
    event_id = hand_over(state, clocks)
    assert (state / "drills").stat().st_mode & 0o777 == 0o700
    assert only_event(runner.poll("web_0")).event_id == event_id


def test_a_drill_is_scheduled_then_started_then_gone(state: Path, clocks: FakeClocks, drills: Drills) -> None:
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
    clocks.ran += 899.9
    assert drills.poll("web_0") is scheduled
    clocks.ran += 0.1
    started = drills.poll("web_0")
    assert only_event(started).event_status == "Started"
    assert only_event(started).not_before is None
    clocks.ran += 29.9
    assert drills.poll("web_0") is started
    assert drills.ended() == []
    clocks.ran += 0.1
    gone = drills.poll("web_0")
    assert gone is not None
    assert gone.events == ()
    assert drills.ended() == [(event_id, FINISHED, "it lasted 30 s")]
    assert drills.ended() == []
    assert files(state) == []
    assert drills.poll("web_0") is None
    assert scheduled is not None
    assert started is not None
    assert len({scheduled.incarnation, started.incarnation, gone.incarnation}) == 3


def test_an_approval_starts_it_early(state: Path, clocks: FakeClocks, drills: Drills) -> None:
    event_id = hand_over(state, clocks)
    drills.poll("web_0")
    clocks.ran += 60
    drills.approve([event_id.upper(), "drill-unheardof", "C7061BAC"])
    assert only_event(drills.poll("web_0")).event_status == "Started"
    clocks.ran += 20
    drills.approve([event_id])  # once more does not make it longer
    clocks.ran += 9.9
    assert only_event(drills.poll("web_0")).event_status == "Started"
    clocks.ran += 0.1
    drills.poll("web_0")
    assert drills.ended() == [(event_id, FINISHED, "it lasted 30 s")]
    drills.approve([event_id])
    assert drills.poll("web_0") is None


def test_without_notice_it_is_started_when_first_seen(state: Path, clocks: FakeClocks, drills: Drills) -> None:
    hand_over(state, clocks, REBOOT._replace(notice_seconds=0.0))
    event = only_event(drills.poll("web_0"))
    assert (event.event_status, event.not_before) == ("Started", None)


def test_what_was_asked_for_is_what_is_listed(state: Path, clocks: FakeClocks, drills: Drills) -> None:
    request = Request("SpotRebalanceRecommendation", 30.0, 4.2, "User", ("db_1", "web_0"), "a test of ours")
    hand_over(state, clocks, request)
    event = only_event(drills.poll("web_0"))
    assert event.event_type == "SpotRebalanceRecommendation"
    assert event.resources == ("db_1", "web_0")
    assert event.event_source == "User"
    assert event.description == "a test of ours"
    assert event.duration_in_seconds == 5


@pytest.mark.parametrize("api_version", API_VERSIONS)
def test_its_fields_are_those_of_the_api_version(state: Path, clocks: FakeClocks, api_version: str) -> None:
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


def test_several_drills_live_side_by_side(state: Path, clocks: FakeClocks, drills: Drills) -> None:
    first = hand_over(state, clocks)
    drills.poll("web_0")
    clocks.ran += 10
    second = hand_over(state, clocks, REBOOT._replace(event_type="Freeze", notice_seconds=5.0, duration_seconds=1.0))
    document = drills.poll("web_0")
    assert document is not None
    assert [event.event_id for event in document.events] == [first, second]
    clocks.ran += 6
    document = drills.poll("web_0")
    assert document is not None
    clocks.ran += 1
    assert only_event(drills.poll("web_0")).event_id == first
    assert [ended.event_id for ended in drills.ended()] == [second]


def test_only_so_many_at_once(state: Path, clocks: FakeClocks, drills: Drills) -> None:
    for _ in range(MOST_RUNNING + 1):
        hand_over(state, clocks)
    document = drills.poll("web_0")
    assert document is not None
    assert len(document.events) == MOST_RUNNING
    ended = drills.ended()
    assert [(one.result, one.reason) for one in ended] == [(REFUSED, f"{MOST_RUNNING} drills are under way already")]


def test_a_drill_is_told_from_an_event() -> None:
    assert drill.is_drill(Event("drill-1"))
    assert drill.is_drill(Event("DRILL-1"))
    assert drill.is_drill(Event("C7061BAC", extra={"Drill": True}))
    assert not drill.is_drill(Event("C7061BAC-AFDC-4513-B24B-AA5F13A16123"))


def test_every_drill_is_one(state: Path, clocks: FakeClocks, drills: Drills) -> None:
    hand_over(state, clocks)
    event = only_event(drills.poll("web_0"))
    assert drill.is_drill(event)
    assert drill.is_drill(Event(event.event_id))


@pytest.mark.parametrize("step", [3600.0, -3600.0])
def test_a_wall_clock_that_is_set_changes_nothing(state: Path, clocks: FakeClocks, drills: Drills, step: float) -> None:
    hand_over(state, clocks)
    scheduled = drills.poll("web_0")
    clocks.offset += step
    clocks.ran += 899
    assert drills.poll("web_0") is scheduled
    clocks.ran += 1
    assert only_event(drills.poll("web_0")).event_status == "Started"
    clocks.offset -= step
    clocks.ran += 29
    assert only_event(drills.poll("web_0")).event_status == "Started"
    clocks.ran += 1
    drills.poll("web_0")
    assert [ended.result for ended in drills.ended()] == [FINISHED]


# Restarts


def test_a_restart_goes_on_with_it(state: Path, clocks: FakeClocks, drills: Drills) -> None:
    event_id = hand_over(state, clocks)
    before = only_event(drills.poll("web_0"))
    clocks.ran += 600
    drills = Drills(str(state), clocks)
    # Who this VM is may not be known yet; and it is no reason to wait that the request is old.
    assert only_event(drills.poll(None)) == before
    drills.approve([event_id])
    drills = Drills(str(state), clocks)
    assert only_event(drills.poll("web_0")).event_status == "Started"
    clocks.ran += 29
    assert only_event(Drills(str(state), clocks).poll("web_0")).event_status == "Started"
    clocks.ran += 1
    drills = Drills(str(state), clocks)
    assert drills.poll("web_0") is None
    assert drills.ended() == [(event_id, FINISHED, "it lasted 30 s")]
    assert files(state) == []


def test_a_reboot_goes_on_with_it(state: Path, clocks: FakeClocks, drills: Drills) -> None:
    hand_over(state, clocks)
    before = only_event(drills.poll("web_0"))
    clocks.ran += 100
    clocks.reboot(down=60)
    drills = Drills(str(state), clocks)
    assert only_event(drills.poll("web_0")) == before
    clocks.ran += 739
    assert only_event(drills.poll("web_0")) == before
    clocks.ran += 1
    assert only_event(drills.poll("web_0")).event_status == "Started"


def test_what_was_due_while_nobody_worked_is_past(state: Path, clocks: FakeClocks, drills: Drills) -> None:
    event_id = hand_over(state, clocks)
    drills.poll("web_0")
    clocks.ran += 910
    drills = Drills(str(state), clocks)
    assert only_event(drills.poll("web_0")).event_status == "Started"
    clocks.ran += 20  # 30 s after it was due, and not after it was seen
    drills.poll("web_0")
    assert drills.ended() == [(event_id, FINISHED, "it lasted 30 s")]


def test_a_request_that_nobody_took_in_time_is_refused(state: Path, clocks: FakeClocks) -> None:
    Drills(str(state), clocks).poll("web_0")
    event_id = hand_over(state, clocks)
    clocks.ran += LONGEST_WAIT_SECONDS + 1
    drills = Drills(str(state), clocks)
    assert drills.poll("web_0") is None
    assert drills.ended() == [(event_id, REFUSED, "it could not begin for 301 s")]
    assert files(state) == [f"{event_id}.json.refused"]
    assert Drills(str(state), clocks).poll("web_0") is None


def test_without_a_name_it_waits(state: Path, clocks: FakeClocks, drills: Drills) -> None:
    waiting = hand_over(state, clocks)
    named = hand_over(state, clocks, REBOOT._replace(resources=("web_0",)))
    assert only_event(drills.poll(None)).event_id == named
    clocks.ran += LONGEST_WAIT_SECONDS
    document = drills.poll("web_0")
    assert document is not None
    assert [event.event_id for event in document.events] == [named, waiting]
    assert [event.resources for event in document.events] == [("web_0",), ("web_0",)]


def test_without_a_name_it_does_not_wait_for_ever(state: Path, clocks: FakeClocks, drills: Drills) -> None:
    event_id = hand_over(state, clocks)
    assert drills.poll(None) is None
    clocks.ran += LONGEST_WAIT_SECONDS + 1
    assert drills.poll(None) is None
    reason = "it could not begin for 301 s, since the name of this VM is not known"
    assert drills.ended() == [(event_id, REFUSED, reason)]
    assert drills.poll("web_0") is None


# Ended early


def test_cancelled_while_scheduled_it_is_gone_without_a_start(state: Path, clocks: FakeClocks, drills: Drills) -> None:
    event_id = hand_over(state, clocks)
    drills.poll("web_0")
    drill.cancel(str(state), event_id, clocks)
    document = drills.poll("web_0")
    assert document is not None
    assert document.events == ()
    assert drills.ended() == [(event_id, CANCELLED, "somebody cancelled it")]
    assert files(state) == []
    assert drills.poll("web_0") is None


def test_cancelled_while_started_it_is_gone(state: Path, clocks: FakeClocks, drills: Drills) -> None:
    event_id = hand_over(state, clocks, REBOOT._replace(notice_seconds=0))
    drills.poll("web_0")
    drill.cancel(str(state), event_id, clocks)
    document = drills.poll("web_0")
    assert document is not None
    assert document.events == ()
    assert [ended.result for ended in drills.ended()] == [CANCELLED]


def test_cancelled_before_it_was_taken_it_never_begins(state: Path, clocks: FakeClocks, drills: Drills) -> None:
    event_id = hand_over(state, clocks)
    drill.cancel(str(state), event_id, clocks)
    assert drills.poll("web_0") is None
    assert drills.ended() == [(event_id, CANCELLED, "somebody cancelled it")]
    assert files(state) == []


def test_cancelled_it_ends_once_even_if_its_file_is_bad(state: Path, clocks: FakeClocks, drills: Drills) -> None:
    (state / "drills" / "drill-a.json").write_text("{")
    drill.cancel(str(state), "drill-a", clocks)
    assert drills.poll("web_0") is None
    assert drills.ended() == [("drill-a", CANCELLED, "somebody cancelled it")]
    assert files(state) == []


def test_whose_file_is_removed_before_it_begins_was_never_there(
    state: Path, clocks: FakeClocks, drills: Drills
) -> None:
    event_id = hand_over(state, clocks)
    drills.poll(None)
    (state / "drills" / f"{event_id}.json").unlink()
    drills.overtaken("something real")
    assert drills.poll("web_0") is None
    assert drills.ended() == []


def test_a_drill_that_is_not_there_cannot_be_cancelled(state: Path, clocks: FakeClocks, drills: Drills) -> None:
    with pytest.raises(InputError) as caught:
        drill.cancel(str(state), "drill-0", clocks)
    assert str(caught.value) == "there is no drill drill-0. None is under way."
    event_id = hand_over(state, clocks)
    with pytest.raises(InputError, match=f"There are: {event_id}"):
        drill.cancel(str(state), "../drill-0", clocks)
    assert files(state) == [f"{event_id}.json"]


def test_a_mark_that_came_too_late_is_swept_away(state: Path, clocks: FakeClocks, drills: Drills) -> None:
    (state / "drills" / "drill-0.cancel").touch()
    assert drills.poll("web_0") is None
    assert drills.ended() == []
    assert files(state) == []


def test_whose_file_is_removed_is_cancelled(state: Path, clocks: FakeClocks, drills: Drills) -> None:
    event_id = hand_over(state, clocks)
    drills.poll("web_0")
    (state / "drills" / f"{event_id}.json").unlink()
    document = drills.poll("web_0")
    assert document is not None
    assert document.events == ()
    assert drills.ended() == [(event_id, CANCELLED, "its file was removed")]


def test_something_real_ends_all_of_them(state: Path, clocks: FakeClocks, drills: Drills) -> None:
    scheduled = hand_over(state, clocks)
    started = hand_over(state, clocks)
    drills.poll("web_0")
    drills.approve([started])
    drills.poll("web_0")
    waiting = hand_over(state, clocks)
    drills.poll(None)
    new = hand_over(state, clocks)
    drills.overtaken("a real Preempt is scheduled: X")
    document = drills.poll("web_0")
    assert document is not None
    assert document.events == ()
    ended = drills.ended()
    assert {one.event_id for one in ended} == {scheduled, started, waiting, new}
    assert {one[1:] for one in ended} == {(OVERTAKEN, "a real Preempt is scheduled: X")}
    assert len(ended) == 4
    assert files(state) == []
    drills.overtaken("a real Preempt is scheduled: X")
    assert drills.poll("web_0") is None
    assert drills.ended() == []


# What is wrong with a file


def refused(state: Path, drills: Drills, name: str) -> str:
    """Poll; return why the one file was refused, and see that it is done with and out of the way."""
    assert drills.poll("web_0") is None
    ended = drills.ended()
    assert [(one.event_id, one.result) for one in ended] == [(name, REFUSED)]
    assert drills.poll("web_0") is None
    assert drills.ended() == []
    return ended[0].reason


GOOD = {
    "forewarn": {"schema": "drill", "version": 1},
    "request": {
        "event_type": "Reboot",
        "notice_seconds": 900.0,
        "duration_seconds": 30.0,
        "source": "Platform",
        "resources": None,
        "description": None,
    },
    "handed_over": [1_777_901_000.0, 5000.0, "boot-a"],
    "scheduled": None,
    "started": None,
    "resources": None,
}


def changed(**values: Any) -> dict[str, Any]:
    return {**GOOD, **values}


def asked(**values: Any) -> dict[str, Any]:
    request: Any = GOOD["request"]
    return {**GOOD, "request": {**request, **values}}


def test_what_the_bad_ones_are_made_of_is_good(state: Path, clocks: FakeClocks, drills: Drills) -> None:
    (state / "drills" / "drill-good.json").write_text(json.dumps(GOOD))
    assert only_event(drills.poll("web_0")).event_id == "drill-good"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "no drill"),
        ("{", "no drill"),
        ("[]", "keys"),
        ("null", "keys"),
        ("\xff", "no drill"),
        ("[" * 60000, "no drill"),
        ("0" * 70000, "longer than 65536 bytes"),
        ({**GOOD, "extra": 1}, "keys"),
        ({}, "keys"),
        (changed(forewarn={"schema": "drill", "version": 2}), "another version"),
        (changed(forewarn=None), "another version"),
        (changed(request=None), "keys"),
        (changed(handed_over=None), "handed over"),
        (changed(handed_over=[1, 2]), "no drill"),
        (changed(handed_over=[1, 2, 3, 4]), "no drill"),
        (changed(handed_over=["a", "b", "c"]), "no drill"),
        (changed(handed_over=[float("nan"), 1, "b"]), "not a number"),
        (changed(handed_over=[float("inf"), 1, "b"]), "not a number"),
        (changed(scheduled=[1, 2, "b"]), "contradicts itself"),
        (changed(resources=["web_0"]), "contradicts itself"),
        (changed(started=[1, 2, "b"]), "contradicts itself"),
        (changed(scheduled=[1e300, 2, "b"], resources=["web_0"]), ""),
        (changed(scheduled=[-1e12, 2, "b"], resources=["web_0"]), ""),
        (changed(scheduled=[1, 2, "b"], resources=[]), "0 resources"),
        (changed(scheduled=[1, 2, "b"], resources=["a\nb"]), "not the name of a VM"),
        (asked(event_type="reboot now"), "not a word"),
        (asked(event_type=""), "not a word"),
        (asked(event_type=None), "not a text"),
        (asked(notice_seconds=-1), "the notice"),
        (asked(notice_seconds=8 * 86400), "the notice"),
        (asked(notice_seconds="900"), "not a number"),
        (asked(notice_seconds=True), "not a number"),
        (asked(notice_seconds=float("nan")), "not a number"),
        (asked(duration_seconds=float("inf")), "not a number"),
        (asked(duration_seconds=10**400), "no drill"),
        (asked(source="Azure"), "source"),
        (asked(resources="web_0"), "not a list"),
        (asked(resources=[]), "0 resources"),
        (asked(resources=["web_0", 5]), "not a text"),
        (asked(resources=["x"] * 101), "101 resources"),
        (asked(resources=["x" * 256]), "not the name of a VM"),
        (asked(resources=["\ud800"]), "not the name of a VM"),
        (asked(resources=[" web_0"]), "not the name of a VM"),
        (asked(description="two\nlines"), "the description"),
        (asked(description="x" * 1001), "the description"),
        (asked(description=5), "not a text"),
        (asked(more=1), "keys"),
    ],
)
def test_a_bad_file_is_refused_and_moved_aside(
    state: Path, clocks: FakeClocks, drills: Drills, content: object, reason: str
) -> None:
    text = content.encode("latin-1") if isinstance(content, str) else json.dumps(content).encode()
    (state / "drills" / "drill-bad.json").write_bytes(text)
    assert reason in refused(state, drills, "drill-bad")
    assert files(state) == ["drill-bad.json.refused"]


def test_a_bad_file_keeps_no_good_one_from_being_taken(state: Path, clocks: FakeClocks, drills: Drills) -> None:
    (state / "drills" / "drill-0.json").write_text("{")
    good = hand_over(state, clocks)
    assert only_event(drills.poll("web_0")).event_id == good


@pytest.mark.parametrize("name", ["reboot.json", "drill-.json", "drill-A.json", "drill-é.json", "drill-a b.cancel"])
def test_a_file_that_is_not_named_as_one_is_refused(state: Path, drills: Drills, name: str) -> None:
    (state / "drills" / name).write_text(json.dumps(GOOD))
    assert refused(state, drills, name) == f"{name} is not the name of a drill's file"
    assert files(state) == [f"{name}.refused"]


def test_other_files_are_let_lie(state: Path, clocks: FakeClocks, drills: Drills) -> None:
    names = [".drill-a.json.1f", "README", "drill-a.json.refused", "drill-a.json~"]
    for name in names:
        (state / "drills" / name).touch()
    assert drills.poll("web_0") is None
    assert drills.ended() == []
    assert files(state) == sorted(names)


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_a_file_that_others_may_write_to_is_refused(state: Path, drills: Drills, mode: int) -> None:
    path = state / "drills" / "drill-a.json"
    path.write_text(json.dumps(GOOD))
    path.chmod(mode)
    assert "can be changed by others" in refused(state, drills, "drill-a")


def test_so_is_one_in_a_directory_that_they_may_write_to(state: Path, clocks: FakeClocks, drills: Drills) -> None:
    event_id = hand_over(state, clocks)
    (state / "drills").chmod(0o770)
    assert "can be changed by others" in refused(state, drills, event_id)


def test_so_is_a_link(state: Path, drills: Drills) -> None:
    (state / "elsewhere.json").write_text(json.dumps(GOOD))
    (state / "drills" / "drill-a.json").symlink_to(state / "elsewhere.json")
    refused(state, drills, "drill-a")
    assert (state / "elsewhere.json").exists()


def test_so_is_a_pipe_and_a_directory(state: Path, drills: Drills) -> None:
    os.mkfifo(state / "drills" / "drill-a.json", 0o600)
    assert "not a regular file" in refused(state, drills, "drill-a")
    (state / "drills" / "drill-b.json").mkdir()
    assert "not a regular file" in refused(state, drills, "drill-b")


def test_what_cannot_be_moved_aside_is_refused_once(
    state: Path, drills: Drills, monkeypatch: pytest.MonkeyPatch
) -> None:
    (state / "drills" / "drill-a.json").write_text("{")
    (state / "drills" / "b.json").write_text("{")

    def fail(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "replace", fail)
    assert drills.poll("web_0") is None
    assert len(drills.ended()) == 2
    assert drills.poll("web_0") is None
    assert drills.ended() == []


def test_what_cannot_be_removed_does_not_begin_again(
    state: Path, clocks: FakeClocks, drills: Drills, monkeypatch: pytest.MonkeyPatch
) -> None:
    event_id = hand_over(state, clocks, REBOOT._replace(notice_seconds=0))
    drills.poll("web_0")

    def fail(*_: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "unlink", fail)
    clocks.ran += 30
    document = drills.poll("web_0")
    assert document is not None
    assert document.events == ()
    assert [ended.event_id for ended in drills.ended()] == [event_id]
    assert drills.poll("web_0") is None
    assert drills.ended() == []


def fail_to_write(*_: object) -> int:
    raise OSError(28, "No space left on device")


def test_a_drill_that_cannot_be_kept_does_not_begin(
    state: Path, clocks: FakeClocks, drills: Drills, monkeypatch: pytest.MonkeyPatch
) -> None:
    event_id = hand_over(state, clocks)
    monkeypatch.setattr(os, "write", fail_to_write)
    assert refused(state, drills, event_id).endswith("No space left on device.")
    assert files(state) == [f"{event_id}.json.refused"]


def test_a_start_that_cannot_be_kept_is_one_all_the_same(
    state: Path, clocks: FakeClocks, drills: Drills, monkeypatch: pytest.MonkeyPatch
) -> None:
    event_id = hand_over(state, clocks)
    drills.poll("web_0")
    monkeypatch.setattr(os, "write", fail_to_write)
    drills.approve([event_id])
    assert only_event(drills.poll("web_0")).event_status == "Started"
    assert files(state) == [f"{event_id}.json"]
    assert record_of(state, event_id)["started"] is None


def test_while_the_directory_cannot_be_read_what_runs_goes_on(
    state: Path, clocks: FakeClocks, drills: Drills, monkeypatch: pytest.MonkeyPatch
) -> None:
    hand_over(state, clocks)
    document = drills.poll("web_0")

    def fail(*_: object) -> list[str]:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "listdir", fail)
        assert drills.poll("web_0") is document
        clocks.ran += 900
        assert only_event(drills.poll("web_0")).event_status == "Started"
    assert only_event(drills.poll("web_0")).event_status == "Started"


def test_a_directory_that_was_removed_ends_what_ran(state: Path, clocks: FakeClocks, drills: Drills) -> None:
    event_id = hand_over(state, clocks)
    drills.poll("web_0")
    shutil.rmtree(state / "drills")
    document = drills.poll("web_0")
    assert document is not None
    assert document.events == ()
    assert [ended.event_id for ended in drills.ended()] == [event_id]
    assert drills.poll("web_0") is None


def test_a_state_directory_that_cannot_be_written_has_no_drills(tmp_path: Path, clocks: FakeClocks) -> None:
    drills = Drills(str(tmp_path / "missing"), clocks)
    assert drills.poll("web_0") is None
    assert drills.poll("web_0") is None


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.binary(max_size=200) | _JSON.map(lambda value: json.dumps(value).encode()))
def test_whatever_a_file_holds_is_read_or_refused(content: bytes) -> None:
    try:
        record = spool._record(content)
    except InputError:
        return
    assert isinstance(record, Record)


@given(st.data())
def test_whatever_one_value_is_it_is_read_or_refused(data: st.DataObject) -> None:
    record: dict[str, Any] = json.loads(json.dumps(GOOD))
    part = data.draw(st.sampled_from([record, record["request"], record["forewarn"]]))
    part[data.draw(st.sampled_from(sorted(part)))] = data.draw(_JSON)
    try:
        found = spool._record(json.dumps(record).encode())
    except InputError:
        return
    assert spool.check(found.request) == found.request


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
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
def test_every_drill_ends_once_and_starts_only_when_due(
    steps: list[tuple[str, float, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    clocks = FakeClocks()
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
            drills.overtaken("real")
        elif what == "restart":
            drills = Drills(str(state), clocks)
        elif what == "reboot":
            clocks.reboot(seconds)
            drills = Drills(str(state), clocks)
        elif what == "remove" and target:
            (state / "drills" / f"{target}.json").unlink()
        else:
            clocks.ran += seconds
        document = drills.poll("web_0")
        listed = document.events if document is not None else ()
        new = [one.event_id for one in drills.ended()]
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


# Handing over


def test_what_is_handed_over_is_for_the_runner_alone(state: Path, clocks: FakeClocks, drills: Drills) -> None:
    event_id = hand_over(state, clocks)
    assert files(state) == [f"{event_id}.json"]
    assert (state / "drills" / f"{event_id}.json").stat().st_mode & 0o777 == 0o600
    record = Spool(str(state)).read(event_id)
    assert record == Record(REBOOT, clocks.stamp())
    assert record_of(state, event_id) == changed(handed_over=list(clocks.stamp()))


def test_without_a_runner_nothing_is_handed_over(tmp_path: Path, clocks: FakeClocks) -> None:
    (tmp_path / "drills").mkdir()
    with pytest.raises(InputError, match=r"no runner works on .*: no runner has ever worked there"):
        hand_over(tmp_path, clocks)
    with pytest.raises(InputError, match="no runner works on"):
        drill.cancel(str(tmp_path), "drill-0", clocks)
    assert files(tmp_path) == []


def test_a_runner_that_is_silent_is_none(state: Path, clocks: FakeClocks, drills: Drills) -> None:
    clocks.ran += LONGEST_SILENCE_SECONDS + 1
    with pytest.raises(InputError, match=r"last sign of life is 181 s old\. Start it, or name"):
        hand_over(state, clocks)
    assert files(state) == []


def test_a_runner_before_the_reboot_is_none(state: Path, clocks: FakeClocks, drills: Drills) -> None:
    clocks.reboot(10)
    with pytest.raises(InputError, match="booted since"):
        hand_over(state, clocks)


def test_a_request_that_is_wrong_is_not_handed_over(state: Path, clocks: FakeClocks, drills: Drills) -> None:
    with pytest.raises(InputError, match="the notice"):
        hand_over(state, clocks, REBOOT._replace(notice_seconds=float("nan")))
    assert files(state) == []


def test_a_directory_that_cannot_be_made_is_told(
    state: Path, clocks: FakeClocks, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "mkdir", fail)
    with pytest.raises(InputError, match=r"drills: Permission denied\. Only root and the runner's user may write"):
        hand_over(state, clocks)


def test_a_full_disk_is_told_and_leaves_nothing(
    state: Path, clocks: FakeClocks, drills: Drills, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "write", fail_to_write)
    with pytest.raises(InputError, match="No space left on device"):
        hand_over(state, clocks)
    assert files(state) == []


def test_what_is_written_in_part_is_not_handed_over(
    state: Path, clocks: FakeClocks, drills: Drills, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "write", lambda file, content: len(content) - 1)
    with pytest.raises(InputError, match="No space left on device"):
        hand_over(state, clocks)
    assert files(state) == []


def test_a_link_in_place_of_the_directory_is_not_followed(state: Path, clocks: FakeClocks) -> None:
    (state / "elsewhere").mkdir()
    (state / "drills").symlink_to(state / "elsewhere")
    with pytest.raises(InputError):
        hand_over(state, clocks)
    assert list((state / "elsewhere").iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize("there", [False, True])
def test_what_root_hands_over_the_user_of_the_runner_can_read(
    state: Path, clocks: FakeClocks, drills: Drills, there: bool
) -> None:
    event_id = hand_over(state, clocks)
    assert (state / "drills").stat().st_uid == 0  # the runner's, here
    if not there:
        shutil.rmtree(state / "drills")
    os.chown(state, 12345, 12346)
    event_id = hand_over(state, clocks)
    assert ((state / "drills").stat().st_uid, (state / "drills").stat().st_gid) == (12345, 12346)
    status = (state / "drills" / f"{event_id}.json").stat()
    assert (status.st_uid, status.st_gid) == (12345, 12346)
    drill.cancel(str(state), event_id, clocks)
    assert (state / "drills" / f"{event_id}.cancel").stat().st_uid == 12345


def test_ids_are_new_each_time() -> None:
    ids = {spool.new_id() for _ in range(1000)}
    assert len(ids) == 1000
    assert all(len(one) == 18 for one in ids)


def test_a_stamp_is_kept_as_it_was(state: Path, clocks: FakeClocks, drills: Drills) -> None:
    found = Spool(str(state))
    record = Record(REBOOT, Stamp(1.25, 2.5, "b"), Stamp(3.125, 4.0, "b"), Stamp(5.0, 6.0, "b"), ("web_0", "é"))
    found.write("drill-1", record)
    assert found.read("drill-1") == record
