# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hooks that misbehave, under ``forewarn run``: none keeps it from polling, and the end of each is logged."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from forewarn.emulator.client import EmulatorClient
from forewarn.emulator.server import EmulatorServer
from forewarn.runner.hooks.running_hooks import GRACE_SECONDS, MOST_RUNNING
from tools.fixtures.hook_bench import is_running
from tools.sites.runner_process import Process, Start, approvals, compiled, program
from tools.sites.waiting import wait_until
from tools.suite.sizes import SIZE
from tools.worlds.timed_runner import memory

POLICY = """
name: hooks
rule:
  match:
    - output: approve
      prepare: [{{run: [{directory}/drain], timeout: {timeout}}}]
      recover: [{{run: [{directory}/undrain]}}]
"""
SLACK_SECONDS = 20.0  # for a busy machine: what is waited for in vain takes for ever


@pytest.fixture
def place() -> Iterator[Path]:
    with memory() as directory:
        yield directory


@pytest.fixture
def run(start: Start, place: Path) -> Callable[..., Process]:
    """Return a function that starts a runner with these hooks, each the text of a shell script."""

    def starter(drain: str, undrain: str = "", timeout: str = "1m", quick: bool = True) -> Process:
        for name, text in (("drain", drain), ("undrain", undrain)):
            program(place / name, f"cd {place}\n{text}")
        artifact = compiled(place, POLICY.format(directory=place, timeout=timeout))
        runner = start("--artifact", str(artifact), quick=quick)
        runner.wait_for("document")
        return runner

    return starter


@pytest.fixture
def pids(place: Path) -> Iterator[Callable[[], list[int]]]:
    """Return a function that returns the numbers in the file pids; processes that still run are ended."""

    def read() -> list[int]:
        path = place / "pids"
        return [int(line) for line in path.read_text().split()] if path.exists() else []

    yield read
    for pid in read():
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def cpu_seconds(process: Process) -> float:
    """Return the processor time of a process."""
    fields = Path(f"/proc/{process.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def ended_in(seconds: float, line: dict[str, Any]) -> bool:
    """Return whether a hook ended in that time, or little later."""
    return bool(line["seconds"] < seconds + SLACK_SECONDS)


@pytest.mark.vm_python
def test_one_that_ignores_sigterm_as_does_its_child(
    run: Callable[..., Process], emulator: EmulatorClient, pids: Callable[[], list[int]]
) -> None:
    """Both are killed, the event is held, and the preparation is undone when the event has ended."""
    ignore = "trap '' TERM; echo $$ >> pids; while :; do sleep 0.1; done"
    runner = run(f"sh -c '{ignore.replace(chr(39), chr(34))}' &\n{ignore}", timeout="1s")
    event_id = emulator.schedule("Reboot", ["web_0"], start_on="not_before", impact_seconds=0.1)
    ended = runner.wait_for("hook-ended")
    assert ended["result"] == "timed-out"
    assert "SIGTERM was not enough" in ended["reason"]
    assert ended["seconds"] >= 1.0 + GRACE_SECONDS
    assert ended_in(1.0 + GRACE_SECONDS, ended)
    assert len(pids()) == 2
    wait_until(lambda: not any(map(is_running, pids())))
    runner.wait_for("decision", eligibility="preparation-failed")
    emulator.start(event_id)
    runner.wait_for("hook-ended", phase="recover", result="succeeded")
    assert approvals(emulator) == []
    polls = [entry["received"]["monotonic"] for entry in emulator.requests()]
    assert max(later - sooner for sooner, later in zip(polls, polls[1:])) < 1.0 + SLACK_SECONDS


def test_one_that_closes_its_output_and_stays(
    run: Callable[..., Process], emulator: EmulatorClient, place: Path
) -> None:
    """It runs until it ends, and waiting for it takes no processor time."""
    runner = run("exec <&- >&- 2>&-; touch closed; while [ ! -e go ]; do sleep 0.1; done", quick=False)
    emulator.schedule("Reboot", ["web_0"], impact_seconds=0.1)
    wait_until((place / "closed").exists)
    before, since = cpu_seconds(runner), time.monotonic()
    time.sleep(1.0)  # processor time is measured over this time
    assert (cpu_seconds(runner) - before) / (time.monotonic() - since) < 0.2
    assert approvals(emulator) == []
    (place / "go").touch()
    runner.wait_for("approved")
    runner.wait_for("state", to="done")


@pytest.mark.vm_python
def test_one_that_leaves_a_child_with_its_output(
    run: Callable[..., Process], emulator: EmulatorClient, pids: Callable[[], list[int]]
) -> None:
    """A daemon that it starts can stay. Waiting for its output to end would take for ever."""
    runner = run("echo before; (while :; do echo noise; sleep 0.05; done) &\necho $! >> pids\nexit 0")
    emulator.schedule("Reboot", ["web_0"], impact_seconds=0.1)
    ended = runner.wait_for("hook-ended")
    assert ended["result"] == "succeeded"
    assert ended_in(0.0, ended)
    assert ended["output"].startswith("before\n")
    runner.wait_for("state", to="done")
    assert len(approvals(emulator)) == 1


def test_two_hundred_events_in_one_document(
    run: Callable[..., Process], server: EmulatorServer, emulator: EmulatorClient, place: Path
) -> None:
    """So many at size full. Few hooks run at once, and what the events share is undone after the last.

    Each is prepared and approved once.
    """
    note = 'echo "{what} $FOREWARN_PHASE $FOREWARN_EVENT_ID" >> hooks'
    script = f"{note.format(what='begin')}; sleep 0.05; {note.format(what='end')}"
    runner = run(script, script)
    with server.emulation.lock:  # in one document
        events = [
            server.emulation.perform("schedule", {"type": "Reboot", "impact": 0.1}) or ""
            for _ in range(SIZE.hooks_due_at_once)
        ]
    wait_until(
        lambda: sum(line["line"] == "state" and line["to"] == "done" for line in runner.lines) == len(events), 300.0
    )
    lines = [line.split() for line in (place / "hooks").read_text().splitlines()]
    running = most = 0
    for what, _phase, _event in lines:
        running += 1 if what == "begin" else -1
        most = max(most, running)
    assert 2 < most <= MOST_RUNNING
    began = [(phase, event) for what, phase, event in lines if what == "begin"]
    assert sorted(event for phase, event in began if phase == "prepare") == sorted(events)
    recovered = [event for phase, event in began if phase == "recover"]
    assert 1 <= len(recovered) == len(set(recovered))
    assert began[-1][0] == "recover"
    sent = [event for entry in emulator.requests() for event in entry["event_ids"]]
    assert sorted(sent) == sorted(events)
