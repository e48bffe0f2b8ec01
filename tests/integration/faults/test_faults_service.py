# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults of the service, each one that the emulator can inject, singly and in pairs: no event is lost or done twice."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from forewarn.emulator.clock import Clock
from forewarn.emulator.faults import KINDS, REFUSING
from forewarn.emulator.server import EmulatorServer
from forewarn.emulator.spec import EventSpec, Settings
from forewarn.imds.client import FIRST_READ_TIMEOUT_SECONDS, READ_TIMEOUT_SECONDS, Client
from forewarn.imds.errors import PassingFault
from forewarn.imds.transport import MAX_BODY_BYTES
from tools.suite.sizes import SEED, SIZE
from tools.worlds.timed_runner import Story, TimedRunner, memory, most_requests

Fault = dict[str, Any]
# SE-06: of more requests the service refuses some with 429.
BURST = 5


def _every_fault() -> list[Fault]:
    """Return every fault of every kind, with some of all statuses. A new kind is included by itself."""
    chance = Random(SEED)
    drawn = [chance.randrange(first, first + 100) for first in (100, 300, 400, 400, 500)]
    other_success = {
        "status": chance.randrange(201, 300),
        "processed": True,
    }  # of an approval, it says that it was taken
    how: dict[str, list[Fault]] = {
        "latency": [{"latency_seconds": 3.0}],
        "status": [
            *({"status": status} for status in (400, 403, 404, 410, 500, 503, *drawn)),
            other_success,
            {"status": 429, "retry_after_seconds": 7.0},
        ],
    }
    faults = [{"kind": kind, **values} for kind in KINDS for values in how.get(kind, [{}])]
    return faults + [{"kind": kind, "processed": True} for kind in REFUSING]


FAULTS = _every_fault()


def _name(fault: Fault) -> str:
    return "-".join(str(value) for value in fault.values())


def _inject(world: TimedRunner, faults: Sequence[Fault], request: str) -> None:
    for fault in faults:
        world.emulator.inject_fault(**fault, times=1, requests=request)


def check_requests(world: TimedRunner) -> None:
    """Check that the VM kept to the service's limits: 5 in any second, 1 a second on average."""
    entries = world.requests()
    assert most_requests(entries, 1.0) <= BURST
    assert len(entries) <= BURST + world.now
    assert most_requests(entries, 60.0) <= BURST + 60


def check_event(world: TimedRunner, event_id: str) -> None:
    """Check that an event was drained, approved and recovered, each once."""
    ran = {name: times for name, times in world.hooks().items() if event_id in name}
    assert ran == {f"prepare {event_id} 1": 1, f"recover {event_id} 1": 1}
    assert len(world.lines("event-gone", event_id=event_id)) == 1
    event = world.emulator.event(event_id)
    assert event["started_by"] == "approval"
    assert len(event["approvals"]) >= 1
    assert len(world.lines("approved", event_ids=[event_id])) <= 1, "none if its answer was lost"


@pytest.mark.parametrize("first", FAULTS, ids=_name)
@pytest.mark.parametrize("kind", ["get", "post"])
def test_faults_singly_and_in_pairs(first: Fault, kind: str) -> None:
    """Reads fail when an event is new, while it is prepared, and when it has started; so do approvals."""

    def story() -> Story:
        yield from world.wait(2.0)
        seconds = FAULTS[FAULTS.index(first) :]
        chosen = Random(f"{SEED} {first}").sample(seconds, max(1, len(seconds) * SIZE.fault_pairs_percent // 100))
        for faults in [[first], *([first, second] for second in seconds if second in chosen)]:
            yield from with_faults(faults)
            world.emulator.clear_faults()  # an approval whose answer is only spoilt is not sent again

    def with_faults(faults: Sequence[Fault]) -> Story:
        posts = world.posts()
        _inject(world, faults, kind)
        event_id = world.emulator.schedule("Reboot", ["web_0"])
        yield from world.until(lambda: world.hooks()[f"prepare {event_id} 1"], 200.0)
        if kind == "get":
            _inject(world, faults, kind)
        for _fault in faults:
            yield from world.until(lambda: world.started(event_id) or refused(event_id), 200.0)
            yield from world.wait(10.0 if refused(event_id) else 0.0)  # the next attempt may be under way
            if not world.started(event_id):
                yield from same_document(event_id)
                world.emulator.cancel(world.emulator.schedule("Freeze", ["web_0"]))  # which makes another document
        yield from world.until(lambda: world.started(event_id), 200.0)
        if kind == "get":
            _inject(world, faults, kind)
        yield from world.until(lambda: world.over(event_id), 200.0)
        check_event(world, event_id)
        assert world.posts() - posts <= 1 + len(faults) * (kind == "post"), faults

    def same_document(event_id: str) -> Story:
        """Check that a refused approval is not sent again while the document is the same."""
        sent = world.posts()
        yield from world.wait(20.0)
        assert (world.posts(), world.started(event_id)) == (sent, False)

    def refused(event_id: str) -> bool:
        return bool(world.lines("approval-failed", event_ids=[event_id], status=400))

    with memory() as directory, TimedRunner(directory) as world:
        world.play(story())
        check_requests(world)


ENDS: list[Fault] = [{"kind": kind} for kind in ("drop", "reset", "cut_head", "cut_off")]
ENDS += [{"kind": kind, "processed": True} for kind in ("drop", "reset")]


@pytest.mark.parametrize("end", ENDS, ids=_name)
@pytest.mark.parametrize("meanwhile", ["another event", "NotBefore", "gone", "nothing"])
def test_connection_closed_during_an_approval_is_not_retried(end: Fault, meanwhile: str) -> None:
    """After eight seconds, in which the service lists something else under the id, or NotBefore passes."""

    def story() -> Story:
        yield from world.wait(2.0)
        notice = 6.0 if meanwhile == "NotBefore" else 600.0
        event_id = world.emulator.schedule("Reboot", ["web_0"], notice_seconds=notice, description="plain")
        model = world.server.emulation.model
        world.emulator.inject_fault("latency", latency_seconds=8.0, times=1, requests="post")
        world.emulator.inject_fault(**end, times=1, requests="post")
        with world.server.emulation.lock:
            event = model.find(event_id)
            if meanwhile == "another event":
                model.at(world.now + 5.0, lambda: setattr(event, "spec", replace(event.spec, event_type="Terminate")))
            elif meanwhile == "gone":
                model.at(world.now + 5.0, lambda: model.cancel(event_id))
        yield from world.until(lambda: world.lines("approval-failed") or world.lines("approved"))
        yield from world.wait(20.0)
        assert world.posts() <= 1 + (meanwhile == "nothing"), "the next document decides"
        assert event.approvals or meanwhile != "nothing"

    with memory() as directory, TimedRunner(directory) as world:
        world.play(story())
        check_requests(world)


def test_faults_of_the_instance_metadata() -> None:
    """A VM that does not know its name approves nothing; it asks again."""

    def story() -> Story:
        event_id = world.emulator.schedule("Reboot", ["web_0"])
        yield from world.until(lambda: world.over(event_id), 200.0)
        check_event(world, event_id)
        assert world.emulator.state()["faults"] == [], "it was met"

    with memory() as directory, TimedRunner(directory) as world:
        for fault in FAULTS:
            _inject(world, [fault], "instance")
            world.play(story())
            world.clock.advance(5.0)  # each runner begins with a full budget
        check_requests(world)


@pytest.mark.parametrize("begins", ["before it is listed", "while it is prepared", "when it has started"])
def test_three_minutes_of_410(begins: str) -> None:
    """As while the host is updated. The drain goes on, and the approval waits for a document."""

    def story() -> Story:
        yield from world.wait(2.0)
        if begins == "before it is listed":
            world.emulator.inject_fault(410, for_seconds=180.0)
        event_id = world.emulator.schedule("Reboot", ["web_0"], description="long", gone_after_seconds=60.0)
        yield from world.long_hook(event_id)
        if begins == "while it is prepared":
            world.emulator.inject_fault(410, for_seconds=180.0)
            yield from world.wait(100.0)
        world.let_go()
        if begins == "while it is prepared":
            yield from world.until(lambda: world.lines("hook-ended", phase="prepare", result="succeeded"))
            assert world.posts() == 0, "no document says that it is still listed"
        yield from world.until(lambda: world.started(event_id), 200.0)
        if begins == "when it has started":
            yield from world.until(lambda: world.lines("state", to="started"))
            world.emulator.inject_fault(410, for_seconds=180.0)
        yield from world.until(lambda: world.over(event_id), 300.0)
        check_event(world, event_id)
        assert world.posts() == 1
        refused = [entry for entry in world.requests() if entry.status == 410]
        assert 30 <= len(refused) <= 50, "backed off, and never gave up"
        (failed,) = world.lines("poll-failed")
        assert failed["status"] == 410
        assert len(world.lines("poll-recovered")) == 1

    with memory() as directory, TimedRunner(directory) as world:
        world.play(story())
        check_requests(world)


def test_the_first_answer_takes_two_minutes_se05() -> None:
    """Time is scaled, and timeouts with it: one request is enough, and no later one may take as long."""
    scale = 20.0  # faster, a busy machine would not keep up
    clock = Clock(scale)
    settings = Settings(first_response=100.0, first_events=130.0)
    with EmulatorServer(vms=["web_0"], clock=clock, settings=settings) as server:
        server.emulation.model.schedule(EventSpec("Freeze", ("web_0",), duration=5))
        with Client(
            server.vm_endpoint("web_0"),
            clock=clock.now,
            sleep=lambda seconds: time.sleep(seconds / scale),  # time is scaled: what takes minutes takes seconds
            read_timeout=READ_TIMEOUT_SECONDS / scale,
            first_read_timeout=FIRST_READ_TIMEOUT_SECONDS / scale,
        ) as client:
            assert client.read_once().events == ()
            assert clock.now() >= 100.0
            while not client.read_once().events:
                assert clock.now() < 250.0
                client.sleep(1.0)
            server.emulation.perform("fault", {"kind": "latency", "latency": 40.0, "times": 1})
            with pytest.raises(PassingFault) as fault:
                client.read_once()
            assert fault.value.kind == "timeout"
        assert len(server.emulation.log.since()) < 5 + clock.now() - 100.0


def test_slow_first_answer_is_awaited() -> None:
    def story() -> Story:
        event_id = world.emulator.schedule("Preempt", ["web_0"], notice_seconds=400.0)
        yield from world.until(lambda: world.over(event_id), 400.0)
        check_event(world, event_id)
        assert world.requests()[1].received.emulated >= 110.0, "no second request while the first is under way"

    with memory() as directory, TimedRunner(directory, first_response=115.0, first_events=280.0) as world:
        world.play(story())
        check_requests(world)


# A field of more than 4,096 characters is in doubt.
@pytest.mark.parametrize("number", [300, pytest.param(1000, marks=pytest.mark.full)])
def test_a_document_of_a_mebibyte(number: int) -> None:
    """It lists many events without hooks, and one whose hooks do not read their input."""
    text = "x" * (1024 * 1024 // number)

    def story() -> Story:
        drained = schedule(text)
        plain = [schedule("plain" + text) for _ in range(number - 1)]
        yield from world.until(lambda: world.over(drained), 200.0)
        check_event(world, drained)
        yield from world.until(lambda: len(world.lines("event-gone")) == number)
        with world.server.emulation.lock:
            approvals = {len(world.server.emulation.model.find(event_id).approvals) for event_id in [*plain, drained]}
        assert approvals == {1}
        assert {entry.status for entry in world.requests()} == {200}
        assert world.posts() <= 2

    def schedule(description: str) -> str:
        with world.server.emulation.lock:
            spec = EventSpec("Reboot", ("web_0",), description=description)
            return world.server.emulation.model.schedule(spec)

    with memory() as directory, TimedRunner(directory) as world:
        world.play(story())
        check_requests(world)


def test_a_document_that_is_too_long_ends_nothing() -> None:
    def story() -> Story:
        event_id = world.emulator.schedule("Reboot", ["web_0"], description="long")
        yield from world.long_hook(event_id)
        with world.server.emulation.lock:
            long = EventSpec("Freeze", ("web_0",), description="x" * (MAX_BODY_BYTES + 1), name="long")
            world.server.emulation.model.schedule(long)
        yield from world.until(lambda: world.lines("poll-failed"))
        assert "too long" in world.lines("poll-failed")[0]["reason"]
        world.let_go()
        yield from world.wait(90.0)
        assert (world.posts(), world.lines("event-gone")) == (0, [])
        world.emulator.cancel("long")
        yield from world.until(lambda: world.over(event_id))
        check_event(world, event_id)

    with memory() as directory, TimedRunner(directory) as world:
        world.play(story())
        check_requests(world)
