# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long it takes from an event's first listing to the arrival of its approval, beside one poll interval."""

from __future__ import annotations

import contextlib
import heapq
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.processes import RUNNER, artifact_of, emulator, started
from benchmarks.report import AT_MOST, Goal, Quantity, Report
from benchmarks.rules import POLICY
from forewarn.emulator.client import EmulatorClient
from tools.sites.waiting import wait_until

INTERVAL = 1.0
ALLOWANCE = 0.025  # for reading, deciding and sending, and for what the request budget stretches the interval by
RUNNERS = 16
# An approval costs a runner one of the 5 requests that it may send beyond one a second, and so did its first question.
ROUNDS = 2
EVENTS_PER_ROUND = 7
SETTLING_SECONDS = 3.0
ROUND_SECONDS = 7.0
PATIENCE_SECONDS = 60.0
SEED = 1
WITH_A_HOOK = Path(__file__).with_name("with-a-hook.yml")


@dataclass
class Plan:
    """When to schedule which event. A VM's round begins right after one of its polls, so that it falls between two."""

    rounds: dict[str, list[float]]  # VM -> the times from which its rounds may begin
    due: list[tuple[float, str]] = field(default_factory=list)
    chance: random.Random = field(default_factory=lambda: random.Random(SEED))

    @property
    def over(self) -> bool:
        """Whether all has been scheduled."""
        return not self.due and not any(self.rounds.values())

    def polled(self, vm: str, at: float) -> None:
        """Begin a round, if one is waiting: offsets into the interval are random and uniform."""
        if self.rounds[vm] and at >= self.rounds[vm][0]:
            self.rounds[vm].pop(0)
            for _ in range(EVENTS_PER_ROUND):
                heapq.heappush(self.due, (at + self.chance.uniform(0.0, INTERVAL), vm))

    def take(self, now: float) -> str | None:
        """Return a VM for which an event is due."""
        return heapq.heappop(self.due)[1] if self.due and self.due[0][0] <= now else None


def run() -> Report:
    """Measure, and measure again while each runner has a hook running."""
    quiet, busy = measure(hooks=False), measure(hooks=True)
    quantities, goals = [], []
    for words, latencies in (("", quiet), (" with a running hook", busy)):
        p50, p99 = (latencies[round(share * len(latencies)) - 1] for share in (0.5, 0.99))
        quantities += [
            Quantity(f"p50{words}", p50 * 1e3, "ms"),
            Quantity(f"p99{words}", p99 * 1e3, "ms"),
            Quantity(f"longest{words}", latencies[-1] * 1e3, "ms"),
        ]
        baseline = f"({INTERVAL:g} s + {ALLOWANCE * 1e3:g} ms)"
        goals.append(Goal(f"p99{words}", p99 / (INTERVAL + ALLOWANCE), baseline, AT_MOST, 1))
    return Report(
        "From an event's appearance to its approval",
        quantities,
        goals,
        [
            f"{len(quiet)} events for {RUNNERS} runner processes, each polling every {INTERVAL:g} s, one emulator.",
            f"Events appear at random times, up to {EVENTS_PER_ROUND} of a VM between two of its polls.",
            "Each approval is in the journal, on the disk, before it is sent.",
        ],
    )


def measure(*, hooks: bool) -> list[float]:
    """Let several runners approve what appears at random times, and read the times off the emulator's records."""
    vms = [f"vm_{number}" for number in range(RUNNERS)]
    with contextlib.ExitStack() as stack:
        artifact = stack.enter_context(artifact_of(WITH_A_HOOK if hooks else POLICY))
        client = stack.enter_context(emulator(vms))
        for vm in vms:
            stack.enter_context(started([*RUNNER, str(artifact), "--endpoint", client.vm_endpoint(vm)]))
        if hooks:
            for vm in vms:
                client.schedule("Redeploy", [vm], seen_by="resources", notice_seconds=3600)
        time.sleep(SETTLING_SECONDS)  # what is measured is the steady state
        schedule_all(client, vms)
        return sorted(collect(client))


def schedule_all(client: EmulatorClient, vms: Sequence[str]) -> None:
    """Schedule every event at its time."""
    begin = time.monotonic()
    step = ROUND_SECONDS / len(vms)
    plan = Plan({vm: [begin + place * step + n * ROUND_SECONDS for n in range(ROUNDS)] for place, vm in enumerate(vms)})
    seen = 0
    while not plan.over:
        if time.monotonic() > begin + PATIENCE_SECONDS:
            raise AssertionError("the runners do not poll")
        for entry in client.requests(since=seen):
            seen = entry["number"]
            if entry["method"] == "GET":
                plan.polled(entry["vm"], entry["received"]["monotonic"])
        while (vm := plan.take(time.monotonic())) is not None:
            # Gone soon after its start, so that documents stay as short as real ones.
            client.schedule("Freeze", [vm], seen_by="resources", duration_seconds=5, gone_after_seconds=6)
        time.sleep(0.01)  # until the next look


def collect(client: EmulatorClient) -> list[float]:
    """Wait until all events are approved; return for each how long that took, in seconds."""

    def freezes() -> list[dict[str, Any]]:
        return [event for event in client.state()["events"] if event["type"] == "Freeze"]

    wait_until(lambda: all(event["approvals"] for event in freezes()), 5, 0.2, "an event was not approved")
    events = freezes()
    if len(events) != RUNNERS * ROUNDS * EVENTS_PER_ROUND:
        raise AssertionError(f"{len(events)} events are not all")
    refused = [entry for entry in client.requests() if entry["status"] != 200]
    if refused:
        raise AssertionError(f"the emulator refused a request: {refused[0]}")
    return [
        event["approvals"][0]["at"]["monotonic"] - event["visible_since"][event["resources"][0]]["monotonic"]
        for event in events
    ]
