# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What VMs of a group tell each other, and when they ask: real runners in virtual time, and a store in memory."""

from __future__ import annotations

import pytest
from forewarn.runner.groups import barrier, semaphore, stale_events
from tools.suite import sizes
from tools.worlds.small_group import VMS, Group


@pytest.fixture
def orphan_seconds(monkeypatch: pytest.MonkeyPatch) -> float:
    """Return how long an event has to have been gone before its slot is freed: an hour, at size small ten minutes."""
    if sizes.NAME == "small":
        monkeypatch.setattr(stale_events, "ORPHAN_SECONDS", 600.0)
    return stale_events.ORPHAN_SECONDS


# Prepared together


def test_the_last_to_be_prepared_approves_for_all(running: Group) -> None:
    running.seconds.update(a=3.0, b=20.0, c=8.0)
    event = running.schedule("ready", "a", "b", "c")
    running.pass_time(15.0)
    assert running.approved_by(event) == []
    code, reason = running.why("a")
    assert (code, reason) == ("group-not-ready", "waits for b, which is preparing (waits for run /bin/true drain)")
    running.pass_time(15.0)
    assert running.approved_by(event) == ["b"]
    assert running.lines("b", "barrier-closed")
    running.pass_time(60.0)
    assert running.barriers() == []


def test_silent_vm_holds_the_event_and_is_named(group: Group) -> None:
    group.create()
    group.begin("a", "c", "d")
    event = group.schedule("ready", "a", "b", notice=60.0)
    group.pass_time(40.0)
    assert group.why("a") == ("group-not-ready", "waits for b, which has said nothing")
    group.pass_time(15.0)
    assert group.approved_by(event) == []


def test_a_failed_hook_is_named_with_its_reason(running: Group) -> None:
    running.results["b"] = "failed"
    running.schedule("ready", "a", "b")
    running.pass_time(20.0)
    _code, reason = running.why("a")
    assert reason.startswith("waits for b, which is failed (a prepare hook failed, and is tried again")


def test_vm_with_independent_policies_is_not_ready(running: Group) -> None:
    """It has said so, and approves by its own policies."""
    event = running.schedule("independent", "a", "b")
    running.pass_time(1.5)
    (found,) = running.barriers()
    assert {said.state for said in found.members.values()} == {barrier.HELD}
    running.pass_time(5.0)
    assert running.approved_by(event) == ["a"]


def test_another_content_has_to_be_prepared_for_again(running: Group) -> None:
    running.seconds["b"] = 30.0
    event = running.schedule("ready", "a", "b")
    running.pass_time(10.0)
    running.members["a"].world.change(event, duration=120)
    running.pass_time(1.5)
    assert running.hooks("a") == ["drain", "drain"]
    running.pass_time(23.0)
    assert running.approved_by(event) == []
    running.pass_time(20.0)
    assert running.approved_by(event) == ["b"]


def test_next_vm_takes_over_from_a_dead_one(running: Group) -> None:
    running.seconds["b"] = 10.0
    event = running.schedule("ready", "a", "b")
    running.members["b"].world.post_fault = "failed"  # its approvals do not arrive
    running.pass_time(14.0)
    running.delete(running.members["b"])
    running.pass_time(20.0)
    assert running.why("a")[0] == "not-the-leader"
    running.pass_time(25.0)
    assert running.approved_by(event) == ["a"]


# Never too many


def test_events_are_served_in_notbefore_order(running: Group) -> None:
    running.seconds.update(a=10.0)
    later = running.schedule("one", "a", notice=900.0)
    running.pass_time(2.0)
    last = running.schedule("one", "b", notice=800.0)
    first = running.schedule("one", "c", notice=500.0)
    running.pass_time(4.0)
    assert running.holders() == ["a"]
    assert running.hooks("b") == running.hooks("c") == []
    running.pass_time(120.0)
    moments = [running.model.find(event).approvals[0].at.emulated for event in (later, first, last)]
    assert moments == sorted(moments)


def test_status_says_who_has_the_slot(running: Group) -> None:
    running.seconds["a"] = 60.0
    running.schedule("one", "a", seen_by="resources")
    running.pass_time(2.0)
    running.schedule("one", "b", seen_by="resources")
    running.pass_time(4.0)
    assert running.why("b") == ("no-slot", "waits for a slot of web, of which there is 1: a has them")
    assert running.lines("b", "slot-waits")


def test_slot_is_kept_until_the_recovery_ends(running: Group) -> None:
    running.schedule("one", "a")
    running.pass_time(3.0)
    assert running.holders() == ["a"]
    running.results["a"] = "failed"  # from now on
    running.pass_time(30.0)
    slot = next(iter(running.semaphore().slots.values()))
    assert slot.names == {"a": semaphore.RECOVERING}
    running.results["a"] = "succeeded"
    running.pass_time(90.0)
    assert running.holders() == []
    assert running.lines("a", "slot-free")


def test_near_notbefore_prepares_without_slot_or_approval(running: Group) -> None:
    running.seconds["a"] = 25.0
    running.schedule("one", "a", notice=900.0, gone_after=300.0)
    running.pass_time(2.0)
    near = running.schedule("one", "b", notice=90.0)
    running.pass_time(45.0)
    assert running.hooks("b") == []
    running.pass_time(15.0)
    assert running.hooks("b") == ["drain"]
    assert running.lines("b", "slot-beyond-limit")
    running.pass_time(40.0)
    assert running.approved_by(near) == []
    assert running.model.find(near).status != "Scheduled"


def test_event_takes_all_slots_or_none(running: Group) -> None:
    running.seconds.update(a=30.0)
    running.schedule("both", "a")
    running.pass_time(3.0)
    running.schedule("both", "b", "c")
    running.pass_time(5.0)
    assert running.holders() == ["a"]
    running.pass_time(90.0)
    assert running.hooks("b") == ["drain", "undrain"]


def test_event_beyond_the_limit_is_held(running: Group) -> None:
    event = running.schedule("both", "a", "b", "c", notice=90.0)
    running.pass_time(5.0)
    assert running.why("a") == ("no-slot", "it names 3 VMs of web, and at most 2 may be disturbed at once")
    running.pass_time(60.0)
    assert running.hooks("a") == ["drain"]  # NotBefore is near
    running.pass_time(50.0)
    assert running.approved_by(event) == []


def test_an_approval_without_hooks_needs_a_slot_too(running: Group) -> None:
    running.schedule("alone", "a", gone_after=20.0)
    running.pass_time(0.5)
    other = running.schedule("alone", "b", notice=900.0)
    running.pass_time(10.0)
    assert running.approved_by(other) == []
    running.pass_time(30.0)
    assert running.approved_by(other) == ["b"]


def test_a_share_is_one_of_the_members(running: Group) -> None:
    running.seconds.update(dict.fromkeys(VMS, 10.0))
    for name in VMS:
        running.schedule("share", name)
    running.pass_time(5.0)
    assert len(running.holders()) == 2


def test_group_from_cel_has_its_own_semaphore(running: Group) -> None:
    running.create("db")
    running.schedule("elsewhere", "a")
    running.pass_time(2.0)
    assert (running.holders("db"), running.holders()) == (["a"], [])


def test_prepared_event_held_by_policy_takes_a_slot(running: Group) -> None:
    running.schedule("held", "a")
    running.pass_time(3.0)
    assert running.holders() == ["a"]


def test_of_several_witnesses_one_sends_at_once(running: Group) -> None:
    event = running.schedule("witness", "a")
    running.pass_time(5.0)
    assert len(running.approved_by(event)) == 1
    assert running.approved_by(event)[0] in ("b", "c", "d")


def test_witness_hooks_wait_for_the_affected_vms_slot(running: Group) -> None:
    running.seconds.update(a=20.0, c=20.0)
    running.schedule("one", "c")
    running.pass_time(2.0)
    running.schedule("watched", "a", notice=900.0)
    running.pass_time(10.0)
    assert running.hooks("a") == running.hooks("b") == []
    running.pass_time(45.0)
    assert running.hooks("a")[:1] == running.hooks("b")[:1] == ["drain"]


def test_vm_releases_a_slot_taken_during_its_downtime(running: Group, orphan_seconds: float) -> None:
    running.kill(running.members["b"])
    over = running.schedule("both", "a", "b", notice=60.0)
    running.pass_time(90.0)
    assert running.holders() == ["b"]
    running.start(running.members["b"])
    running.schedule("one", "b", notice=2000.0)
    running.pass_time(30.0)
    assert over.lower() in running.semaphore().slots
    running.pass_time(orphan_seconds)
    running.schedule("one", "b", notice=2000.0)
    running.pass_time(30.0)
    assert running.holders() == []


def test_waiter_frees_the_slot_of_a_deleted_vm(running: Group, orphan_seconds: float) -> None:
    running.schedule("one", "a", notice=60.0)
    running.pass_time(3.0)
    running.delete(running.members["a"])
    running.pass_time(90.0)
    event = running.schedule("one", "b", notice=2 * orphan_seconds)
    running.pass_time(orphan_seconds - 100.0)
    assert running.holders() == ["a"]
    running.pass_time(200.0)
    assert running.approved_by(event) == ["b"]
    (release,) = running.semaphore().releases
    assert (release.name, release.by) == ("a", "b")


def test_returning_vm_keeps_its_slot(running: Group, orphan_seconds: float) -> None:
    first = running.schedule("one", "a", notice=2000.0)
    running.pass_time(3.5)
    assert running.approved_by(first) == ["a"]
    running.kill(running.members["a"])
    second = running.schedule("one", "b", notice=6000.0)
    running.pass_time(orphan_seconds / 2)
    assert running.approved_by(second) == []
    running.start(running.members["a"])
    running.pass_time(30.0)
    assert running.approved_by(second) == ["b"]


def test_failing_recovery_keeps_its_slot(running: Group, orphan_seconds: float) -> None:
    first = running.schedule("one", "a", notice=2000.0)
    running.pass_time(3.5)
    running.results["a"] = "failed"
    second = running.schedule("one", "b", notice=3 * orphan_seconds)
    running.pass_time(2 * orphan_seconds)
    assert running.approved_by(first) == ["a"]
    assert running.approved_by(second) == []


def test_a_waiter_that_has_vanished_is_passed_over(running: Group) -> None:
    running.seconds["a"] = 10.0
    running.schedule("one", "a", notice=2000.0)
    running.pass_time(2.0)
    running.schedule("one", "b", notice=1000.0)
    running.pass_time(2.0)
    running.delete(running.members["b"])
    event = running.schedule("one", "c", notice=1900.0)
    running.pass_time(80.0)
    assert running.approved_by(event) == ["c"]
    later = running.schedule("one", "d", notice=1900.0)
    running.pass_time(6.0)
    assert running.approved_by(later) == ["d"], "it waits for the one that has vanished, too"
