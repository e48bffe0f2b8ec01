# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the runner costs a VM, beside a loop of requests.get and sleep(1) on the same document."""

from __future__ import annotations

import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import psutil
from benchmarks.processes import PYTHON, RUNNER, artifact_of, emulator, started
from benchmarks.report import AT_MOST, Goal, Quantity, Report
from benchmarks.rules import POLICY
from forewarn.emulator.client import EmulatorClient
from tools.fixtures.events import listed
from tools.servers.scripted_imds import vm_service

MANY_EVENTS = 10_000
MANY_SECONDS = 8.0
WARM_UP_SECONDS = 4.0
SECONDS = 30.0
LOOP = Path(__file__).with_name("requests_loop.py")


@dataclass(frozen=True)
class Reading:
    """What a process has used so far: CPU time (seconds), resident memory (MiB), polls that arrived."""

    cpu: float
    memory: float
    polls: int


@dataclass(frozen=True)
class Subject:
    """A process, and the VM as which the emulator knows it."""

    pid: int
    vm: str

    def read(self, client: EmulatorClient) -> Reading:
        """Read what it has used so far."""
        # In nanoseconds, of each thread; none of either process ends. The usual counters tick by 10 ms.
        threads = Path(f"/proc/{self.pid}/task").glob("*/schedstat")
        cpu = sum(int(thread.read_text(encoding="ascii").split()[0]) for thread in threads) / 1e9
        memory = psutil.Process(self.pid).memory_info().rss / 2**20
        polls = [entry for entry in client.requests() if entry["vm"] == self.vm and entry["path"].endswith("events")]
        return Reading(cpu, memory, len(polls))


class Usage(NamedTuple):
    """What the runner and the loop used: resident memory (MiB), CPU (ms per poll), polls."""

    memory: list[float]
    cpu: list[float]
    polls: list[int]


def measure(
    client: EmulatorClient,
    runner: subprocess.Popen[bytes],
    loop: subprocess.Popen[bytes],
    warm_up_seconds: float,
    seconds: float,
) -> Usage:
    """Return what the VMs ``runner`` and ``loop`` use side by side in so many seconds after the warm-up."""
    # Both see both events. The runner decides them at every poll: a rule of the policy looks at the notice.
    client.schedule("Freeze", ["loop"], duration_seconds=30, notice_seconds=3600)
    client.schedule("Freeze", ["runner", "loop"], duration_seconds=-1, notice_seconds=3600)
    subjects = (Subject(runner.pid, "runner"), Subject(loop.pid, "loop"))
    time.sleep(warm_up_seconds)  # what is measured is the steady state
    before = [subject.read(client) for subject in subjects]
    time.sleep(seconds)  # the time that is measured
    after = [subject.read(client) for subject in subjects]
    if runner.poll() is not None or loop.poll() is not None:
        raise AssertionError("one of the two ended by itself")
    polls = [late.polls - early.polls for early, late in zip(before, after)]
    cpu = [(late.cpu - early.cpu) / count * 1e3 for early, late, count in zip(before, after, polls)]
    return Usage([late.memory for late in after], cpu, polls)


def with_many_events() -> float:
    """Return the runner's peak resident memory (MiB) with a document of MANY_EVENTS."""
    events = [
        listed(
            f"{number:08X}-0000-4513-9DB5-24B0A2A2A2A2",
            Resources=["web_0"],
            NotBefore="",
            Description="Virtual machine is being paused.",
        )
        for number in range(MANY_EVENTS)
    ]
    with (
        vm_service(events) as server,
        artifact_of(POLICY) as artifact,
        started([*RUNNER, str(artifact), "--endpoint", server.url]) as runner,
    ):
        time.sleep(MANY_SECONDS)  # the time that is measured
        status = Path(f"/proc/{runner.pid}/status").read_text(encoding="ascii")
        if runner.poll() is not None:
            raise AssertionError("the runner ended by itself")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def run() -> Report:
    """Let both poll side by side and compare what they used between two readings."""
    with artifact_of(POLICY) as artifact, emulator(["runner", "loop"]) as client:
        runner_command = [*RUNNER, str(artifact), "--endpoint", client.vm_endpoint("runner")]
        loop_command = [*PYTHON, str(LOOP), client.vm_endpoint("loop")]
        with started(runner_command) as runner, started(loop_command) as loop:
            memory, cpu, polls = measure(client, runner, loop, WARM_UP_SECONDS, SECONDS)
    many = with_many_events()
    return Report(
        "Memory and CPU of the runner",
        [
            Quantity("resident memory, runner", memory[0], "MiB"),
            Quantity("resident memory, requests loop", memory[1], "MiB"),
            Quantity(f"most memory, runner, {MANY_EVENTS:,} events", many, "MiB"),
            Quantity("CPU per poll, runner", cpu[0], "ms"),
            Quantity("CPU per poll, requests loop", cpu[1], "ms"),
        ],
        [
            Goal("memory", memory[0] / memory[1], "a loop of requests.get and sleep(1)", AT_MOST, 0.8),
            Goal(f"memory at {MANY_EVENTS:,} events", many / 64, "64 MiB", AT_MOST, 1),
            Goal("CPU per poll", cpu[0] / cpu[1], "a loop of requests.get and sleep(1)", AT_MOST, 0.75),
        ],
        [
            f"Two processes of this Python, side by side for {SECONDS:g} s: {polls[0]} and {polls[1]} polls.",
            "CPU is the difference of two readings after the warm-up: starting is not in it.",
            "The runner asks in a thread of its own, so that hooks never wait for the service: 0.3 ms of a poll.",
            "The runner decided two events by five rules at each poll; the loop did little more than read them.",
        ],
    )
