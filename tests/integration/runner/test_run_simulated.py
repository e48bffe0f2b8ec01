# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runners of several VMs against the emulator: real policies, real HTTP, and a clock that only the test moves."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from forewarn.compiler.policies import load_policies
from forewarn.emulator.client import EmulatorClient
from forewarn.emulator.clock import ManualClock
from forewarn.emulator.server import EmulatorServer
from forewarn.emulator.spec import Settings
from forewarn.imds.client import Client
from forewarn.policy.engine import PolicySet
from forewarn.runner.assembly import Equipment, assemble
from forewarn.runner.poller import VmIdentity
from forewarn.runner.telemetry.log import Log
from forewarn.runner.tracker import REPEAT_SECONDS
from tools.fixtures.clocks import ScriptedClocks

POLICY = """
name: web-tier
rule:
  match:
    - id: admin-action
      condition: event.EventSource == "User"
      output: approve
    - id: brief-freeze
      condition: event.EventType == "Freeze" && event.DurationInSeconds >= 0 && event.DurationInSeconds < 9
      output: approve
      explanation: "'a freeze of ' + string(event.DurationInSeconds) + ' s goes unnoticed here'"
    - id: patience
      condition: event.EventType == "Redeploy" && age > duration("60s") && affects_me
      output: approve
"""


class Vm:
    """A VM with a runner whose cycles the fleet calls."""

    def __init__(self, name: str, url: str, policies: PolicySet, clock: ManualClock) -> None:
        self.received: str | None = None
        self.reload = False
        self.stream = io.StringIO()
        log = Log(self.stream, "json")
        self.client = Client(url, clock=clock.now, sleep=clock.advance)
        identity = VmIdentity(Client(url, clock=clock.now, sleep=clock.advance), None, log, clock.now)
        clocks = ScriptedClocks(clock.now, lambda: clock.wall(clock.now()))
        self.runner = assemble(self.client, identity, policies, self, lambda: None, Equipment(clocks, log))

    def wait(self, seconds: float) -> None:
        raise NotImplementedError("the fleet waits")

    @contextmanager
    def request(self) -> Iterator[None]:
        yield

    def lines(self, name: str) -> list[dict[str, Any]]:
        read = [json.loads(line) for line in self.stream.getvalue().splitlines()]
        return [line for line in read if line["line"] == name]


class Fleet:
    """The VMs and their emulator. One second is one poll of each VM."""

    def __init__(self, vms: list[Vm], emulator: EmulatorClient, clock: ManualClock) -> None:
        self.vms = vms
        self.emulator = emulator
        self._clock = clock
        self.silent: set[int] = set()

    def run(self, seconds: int) -> None:
        for _ in range(seconds):
            for index, vm in enumerate(self.vms):
                if index not in self.silent:
                    vm.runner.cycle()
            self._clock.advance(1.0)

    def posts(self) -> list[tuple[str, list[str]]]:
        return [(entry["vm"], entry["event_ids"]) for entry in self.emulator.requests() if entry["method"] == "POST"]


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Callable[..., Fleet]]:
    """Return a function that makes a fleet: its policy, the names of its VMs, settings of the emulator."""
    servers: list[EmulatorServer] = []
    fleets: list[Fleet] = []

    def make(policy: str = POLICY, names: Sequence[str] = ("web_0", "web_1"), **settings: Any) -> Fleet:
        (tmp_path / "policy.yml").write_text(policy)
        policies = PolicySet(load_policies([tmp_path / "policy.yml"]))
        clock = ManualClock()
        server = EmulatorServer(vms=list(names), clock=clock, settings=Settings(requests_per_second=0, **settings))
        server.start()
        servers.append(server)
        vms = [Vm(name, server.vm_endpoint(name), policies, clock) for name in names]
        fleets.append(Fleet(vms, EmulatorClient(server.url), clock))
        return fleets[-1]

    yield make
    for made in fleets:
        made.emulator.close()
        for vm in made.vms:
            vm.client.close()
    for server in servers:
        server.close()


def test_only_the_leader_approves_se20_se32(fleet: Callable[..., Fleet]) -> None:
    made = fleet()
    made.run(3)
    event_id = made.emulator.schedule("Freeze", ["web_0", "web_1"], duration_seconds=5)
    made.run(1)
    assert made.posts() == [("web_0", [event_id])]
    made.run(700)
    assert made.posts() == [("web_0", [event_id])]
    for vm, eligibilities in zip(made.vms, (["approve", "started"], ["not-the-leader", "started"])):
        assert [line["eligibility"] for line in vm.lines("decision")] == eligibilities
        assert [line["outcome"] for line in vm.lines("event-gone")] == ["finished"]


def test_second_vm_replaces_a_silent_leader_se25(fleet: Callable[..., Fleet]) -> None:
    made = fleet()
    made.run(3)
    made.silent = {0}
    event_id = made.emulator.schedule("Reboot", ["web_0", "web_1"], source="User")
    made.run(30)
    assert made.posts() == []
    made.run(2)
    assert made.posts() == [("web_1", [event_id])]
    assert [line["eligibility"] for line in made.vms[1].lines("decision")] == ["not-the-leader", "approve"]


def test_one_witness_approves_for_a_hanging_vm(fleet: Callable[..., Fleet], repository: Path) -> None:
    """By the policy azure-sample: what an administrator asked for does not wait for NotBefore."""
    names = [f"web_{number}" for number in range(6)]
    made = fleet((repository / "policies" / "azure-sample.yml").read_text(), names)
    made.run(3)
    made.silent = {0}
    # Of an id by chance, two witnesses may be due within the second that the event takes to start.
    event_id = made.emulator.schedule(
        "Reboot", ["web_0"], source="User", event_id="C7061BAC-AFDC-4513-B24B-AA5F13A16124"
    )
    made.run(60)
    assert made.posts() == [], "for a minute it is up to web_0"
    made.run(62)
    ((sender, event_ids),) = made.posts()
    assert sender in names[1:]
    assert event_ids == [event_id]
    for name, vm in zip(names[1:], made.vms[1:]):
        decided = [(line["rule"], line["eligibility"]) for line in vm.lines("decision")]
        assert decided[0] == ("user-elsewhere", "refused-by-policy")
        assert decided[-1] == ("started", "started")
        assert (("user-witness", "approve") in decided) == (name == sender)


def test_unknown_duration_is_held_until_not_before_se19(fleet: Callable[..., Fleet]) -> None:
    made = fleet()
    made.run(1)
    made.emulator.schedule("Freeze", ["web_0"], duration_seconds=-1)
    made.run(920)
    assert made.posts() == []
    first, last = made.vms[0].lines("decision")
    assert (first["eligibility"], last["eligibility"]) == ("refused-by-policy", "started")


def test_cancelled_event_differs_from_a_finished_one_se21(fleet: Callable[..., Fleet]) -> None:
    made = fleet()
    made.run(1)
    event_id = made.emulator.schedule("Reboot", ["web_0"], source="Platform")
    made.run(5)
    made.emulator.cancel(event_id)
    made.run(2)
    assert [(line["event_id"], line["outcome"]) for line in made.vms[0].lines("event-gone")] == [
        (event_id, "cancelled")
    ]


def test_other_vms_events_are_not_ours_se14(fleet: Callable[..., Fleet]) -> None:
    made = fleet()
    made.run(1)
    event_id = made.emulator.schedule("Reboot", ["web_1"], source="User")
    made.run(60)
    assert made.posts() == [("web_1", [event_id])]
    assert made.vms[0].lines("decision")[0]["eligibility"] == "not-ours"


def test_event_is_approved_after_a_period_of_410(fleet: Callable[..., Fleet]) -> None:
    made = fleet()
    made.run(3)
    made.emulator.inject_fault(410, for_seconds=150)
    event_id = made.emulator.schedule("Freeze", ["web_0"], duration_seconds=5)
    made.run(150)
    refused = [entry for entry in made.emulator.requests() if entry["status"] == 410 and entry["vm"] == "web_0"]
    assert 25 <= len(refused) <= 45, "backed off, and never gave up"
    made.run(12)
    assert made.posts() == [("web_0", [event_id])]
    (failed,) = made.vms[0].lines("poll-failed")
    assert failed["status"] == 410
    assert len(made.vms[0].lines("poll-recovered")) == 1


def test_approval_with_a_lost_answer_is_repeated_se31(fleet: Callable[..., Fleet]) -> None:
    made = fleet(start_delay=20)
    made.run(1)
    made.emulator.inject_fault("drop", requests="post", times=2, processed=True)
    event_id = made.emulator.schedule("Freeze", ["web_0"], duration_seconds=5)
    made.run(15)
    assert made.posts()[-1] == ("web_0", [event_id])
    assert len(made.vms[0].lines("approved")) == 1
    assert len(made.posts()) <= 3


def test_age_is_decided_again_as_time_passes(fleet: Callable[..., Fleet]) -> None:
    made = fleet()
    made.run(1)
    event_id = made.emulator.schedule("Redeploy", ["web_0"])
    made.run(58)
    assert made.posts() == []
    made.run(6)
    assert made.posts() == [("web_0", [event_id])]
    assert [line["eligibility"] for line in made.vms[0].lines("decision")][:2] == ["refused-by-policy", "approve"]


def test_a_service_that_forgets_an_approval_is_reminded(fleet: Callable[..., Fleet]) -> None:
    made = fleet(start_delay=REPEAT_SECONDS * 2)
    made.run(1)
    event_id = made.emulator.schedule("Freeze", ["web_0"], duration_seconds=5)
    made.run(int(REPEAT_SECONDS) - 5)
    assert made.posts() == [("web_0", [event_id])]
    made.run(10)
    assert made.posts() == [("web_0", [event_id])] * 2


def test_events_after_an_incarnation_reset_are_seen_se05(fleet: Callable[..., Fleet]) -> None:
    made = fleet()
    made.run(1)
    made.emulator.schedule("Freeze", ["web_0"], duration_seconds=5)
    made.run(3)
    made.emulator.switch_off()
    made.run(1)
    second = made.emulator.schedule("Freeze", ["web_0"], duration_seconds=6)
    made.run(3)
    assert [second] in [ids for _, ids in made.posts()]


def test_unknown_type_and_invalid_field_are_held(fleet: Callable[..., Fleet]) -> None:
    made = fleet()
    made.run(1)
    made.emulator.schedule("SpotRebalanceRecommendation", ["web_0"], source="User")
    made.emulator.schedule("Reboot", ["web_0"], source="User", fields={"NotBefore": "soon"})
    made.run(5)
    assert made.posts() == []
    assert [line["output"] for line in made.vms[0].lines("decision")] == ["hold", "hold"]
