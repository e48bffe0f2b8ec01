# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A group whose store fails, whose runners are restarted, or whose disk is full."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from forewarn.runner.groups import obligations
from forewarn.runner.groups.barrier import READY
from tools.worlds.memory_store import LOST_ANSWER, OUTAGE
from tools.worlds.small_group import Group

# The store


def test_unreachable_store_holds_until_it_recovers(running: Group) -> None:
    running.seconds["a"] = 20.0
    running.schedule("one", "a", notice=200.0)
    running.pass_time(1.5)
    running.troubles["a"] = OUTAGE
    running.pass_time(40.0)
    assert running.why("a") == ("no-slot", "the memory of the tests refused the connection.")
    running.pass_time(250.0)
    assert running.hooks("a") == ["drain", "undrain"]
    assert running.holders() == ["a"]
    running.troubles.clear()
    running.pass_time(70.0)
    assert running.holders() == []
    assert running.lines("a", "group-store-recovered")


def test_unused_store_is_neither_up_nor_down(running: Group) -> None:
    def up() -> str:
        made = running.members["a"].instance
        assert made is not None
        shown = made.runner.recorder.metrics.render().splitlines()
        return "".join(line for line in shown if line.startswith("forewarn_group_store_up "))

    running.troubles["a"] = OUTAGE
    event = running.schedule("one", "a", notice=600.0)
    running.pass_time(10.0)
    assert up() == "forewarn_group_store_up 0"
    running.troubles.clear()
    running.model.cancel(event)
    running.pass_time(70.0)
    assert up() == "", "an alert ends with the event"


def test_missing_semaphore_grants_no_slot(group: Group) -> None:
    group.begin()
    group.schedule("one", "a")
    group.pass_time(10.0)
    code, reason = group.why("a")
    assert (code, "has no semaphore of group web" in reason) == ("no-slot", True)
    assert "forewarn group create" in group.lines("a", "group-store-failed")[0]["hint"]
    group.create()
    group.seconds["a"] = 30.0
    group.pass_time(15.0)
    assert group.hooks("a") == ["drain"]


def test_missing_document_is_one_problem_until_created(group: Group) -> None:
    """The event's barrier can be read all the time."""
    group.begin()
    group.schedule("at-once", "a", "b")
    group.pass_time(60.0)
    assert len(group.lines("a", "group-store-failed")) == 1
    assert group.lines("a", "group-store-recovered") == []
    group.create()
    group.pass_time(15.0)
    assert len(group.lines("a", "group-store-recovered")) == 1


@pytest.mark.parametrize("idle", [False, True], ids=["while an event is listed", "between two events"])
def test_restored_store_is_noticed_after_others_caught_up(idle: bool, running: Group) -> None:
    """b, which has never read the store, cannot know; a has seen more, and holds."""
    running.seconds["a"] = 2.0 if idle else 20.0
    running.schedule("one", "c")
    running.pass_time(60.0)
    backup = running.server.backup()
    running.schedule("one", "a", notice=300.0)
    running.pass_time(60.0 if idle else 5.0)
    assert running.holders() == ([] if idle else ["a"])
    seen = running.server.revision()
    running.troubles["a"] = OUTAGE
    running.server.restore(backup)
    running.schedule("one", "b", notice=600.0)
    running.pass_time(60.0)
    for number in range(10):
        running.server.swap(f"forewarn/other/{number}", b"{}", "")
    assert running.server.revision() > seen
    del running.troubles["a"]
    if idle:
        running.schedule("one", "a")
    running.pass_time(20.0)
    assert "gone back to an older state" in running.lines("a", "group-store-failed")[-1]["reason"]
    if idle:
        code, reason = running.why("a")
        assert (code, "gone back to an older state" in reason) == ("no-slot", True)
    posts = [entry for entry in running.members["a"].world.ledger if entry.kind == "post"]
    assert len(posts) == idle, "only that of before"


def test_slot_with_a_lost_answer_is_taken_once(running: Group) -> None:
    running.troubles["a"] = LOST_ANSWER
    running.schedule("one", "a")
    running.pass_time(5.0)
    assert running.hooks("a") == []
    assert running.holders() == ["a"]
    running.troubles.clear()
    running.seconds["a"] = 30.0
    running.pass_time(10.0)
    assert running.hooks("a") == ["drain"]


@pytest.mark.parametrize("restart", ["none", "kept", "damaged"])
def test_published_readiness_binds_until_the_store_knows(restart: str, running: Group) -> None:
    """The event changes, and changes back: in the store it is still ready for that, as it was."""
    running.seconds["b"] = 19.0
    event = running.schedule("ready", "a", "b", notice=400.0, duration=5)
    running.pass_time(10.0)
    assert running.barriers()[0].members["a"].state == READY
    running.troubles["a"] = OUTAGE
    if restart != "none":
        running.kill(running.members["a"])
        if restart == "damaged":
            (running.members["a"].directory / obligations.FILE_NAME).write_text("{")
        running.start(running.members["a"])
    for duration in (120, 5):
        running.members["a"].world.change(event, duration=duration)
        running.pass_time(20.0)
    assert running.hooks("a") == ["drain"]
    assert "no longer ready" in running.why("a")[1]
    running.pass_time(60.0)
    assert running.approved_by(event) == ["b"]


def test_vm_without_obligations_prepares_after_store_answers(running: Group) -> None:
    running.kill(running.members["a"])
    (running.members["a"].directory / obligations.FILE_NAME).write_text("{")
    running.start(running.members["a"])
    for number in (1, 2):
        event = running.schedule("ready", "a", "b", notice=400.0)
        running.pass_time(10.0)
        assert len(running.approved_by(event)) == 1
        assert running.hooks("a").count("drain") == number
        running.pass_time(30.0)


@pytest.mark.parametrize("outage", [False, True])
def test_vm_without_obligations_approves_independent_events(outage: bool, running: Group) -> None:
    running.kill(running.members["a"])
    (running.members["a"].directory / obligations.FILE_NAME).write_text("{")
    running.troubles.update({"a": OUTAGE} if outage else {})
    running.start(running.members["a"])
    event = running.schedule("independent", "a", "b", notice=400.0)
    running.pass_time(10.0)
    assert running.approved_by(event) == ["a"]
    assert running.hooks("a")[:1] == ["drain"]


def test_irrevocable_readiness_is_prepared_again_near_notbefore(running: Group) -> None:
    """The store cannot be told that the VM is no longer ready."""
    event = running.schedule("ready", "a", "b", notice=200.0, duration=5)
    running.troubles["b"] = OUTAGE
    running.pass_time(10.0)
    running.troubles["a"] = OUTAGE
    running.members["a"].world.change(event, duration=120)
    running.pass_time(120.0)
    assert running.hooks("a") == ["drain"]
    running.pass_time(50.0)
    assert running.hooks("a") == ["drain", "drain"]


def test_idle_vms_ask_nobody(running: Group) -> None:
    running.pass_time(60.0)
    assert running.requests == []
    running.schedule("one", "a")
    running.pass_time(100.0)
    assert {vm for _at, vm in running.requests} == {"a"}
    before = len(running.requests)
    running.pass_time(600.0)
    assert len(running.requests) == before


# Restarts


def test_event_over_during_downtime_is_given_back(running: Group) -> None:
    event = running.schedule("one", "a")
    running.pass_time(1.2)
    running.kill(running.members["a"])
    running.model.cancel(event)
    running.start(running.members["a"])
    running.pass_time(30.0)
    assert running.holders() == []
    assert not (running.members["a"].directory / obligations.FILE_NAME).exists()


def test_a_file_that_cannot_be_read_is_reported(running: Group) -> None:
    member = running.members["a"]
    running.kill(member)
    (member.directory / obligations.FILE_NAME).write_text("{")
    running.start(member)
    (line,) = running.lines("a", "group-trouble")
    assert "cannot be read" in line["reason"]


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.update(vm=7),
        lambda data: data.update(forewarn={}),
        lambda data: data["events"].update(x={"event_id": 1, "barriers": [], "slots": [], "ready": []}),
        lambda data: data["events"].update(x={"event_id": "1", "barriers": [], "ready": []}),
        lambda data: data["events"].update(x={"event_id": "1", "barriers": [], "slots": [], "ready": None}),
        lambda data: data["events"].update(x=None),
    ],
)
def test_a_damaged_file_of_obligations_is_refused(change: Callable[[dict[str, Any]], None], tmp_path: Path) -> None:
    kept = obligations.Obligations("a", {"key": obligations.EventObligations("id", ("k",), ("web",), ("k",))})
    obligations.write(str(tmp_path), kept)
    assert obligations.read(str(tmp_path)) == kept
    path = tmp_path / obligations.FILE_NAME
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))
    with pytest.raises(ValueError, match=obligations.FILE_NAME):
        obligations.read(str(tmp_path))


def test_older_obligations_file_counts_as_ready(tmp_path: Path) -> None:
    obligations.write(
        str(tmp_path), obligations.Obligations("a", {"key": obligations.EventObligations("id", ("k",), ("web",))})
    )
    path = tmp_path / obligations.FILE_NAME
    data = json.loads(path.read_text())
    del data["events"]["key"]["ready"]
    path.write_text(json.dumps(data))
    found = obligations.read(str(tmp_path))
    assert found is not None
    assert found.events == {"key": obligations.EventObligations("id", ("k",), ("web",), ("k",))}


def test_a_full_disk_keeps_it_from_asking(running: Group, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(obligations, "write", Mock(side_effect=OSError(28, "No space left on device")))
    running.schedule("one", "a")
    running.pass_time(10.0)
    assert running.requests == []
    assert running.hooks("a") == []
    monkeypatch.undo()
    running.pass_time(5.0)
    assert running.hooks("a") == ["drain"]
