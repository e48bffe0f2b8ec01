# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn run`` waits for nobody: not for a service that is stuck, nor for a reader of its log that has stalled.

Everything is real here, time too. So bounds are generous; ``make bench`` has the figures.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from forewarn.runner.telemetry.log_writer import _OVERHEAD_BYTES, LIMIT_BYTES
from tools.servers.stuck_services import APPROVALS, WAYS, StuckService, stuck_service
from tools.sites.commands import vm_command
from tools.sites.runner_process import Process, compiled, program
from tools.sites.waiting import wait_until

# Less than the runner gives anybody to answer, or to accept a connection, each time that it tries.
SOON_SECONDS = 4.5
# Each hook writes down when it begins and ends. One is over after the time it is named after, or goes on for ever.
HOOK = """echo "$(date +%s.%N) $FOREWARN_PHASE $1 begins" >> {directory}/said
trap 'exit 1' TERM
[ "$2" = stubborn ] && trap '' TERM
if [ "$2" = forever ] || [ "$2" = stubborn ]; then
  for _ in $(seq 1000); do [ -e {directory}/go ] && break; sleep 0.05; done
else
  sleep "$2"
fi
echo "$(date +%s.%N) $FOREWARN_PHASE $1 ends" >> {directory}/said
"""
POLICY = """
name: drains
rule:
  match:
    - id: five
      condition: event.EventType == "Preempt"
      output: approve
      prepare:
        - {{run: [{hook}, a, "0.2"]}}
        - {{run: [{hook}, b, "0.2"]}}
        - {{run: [{hook}, c, "0.2"]}}
        - {{run: [{hook}, d, "0.2"]}}
        - {{run: [{hook}, e, "0.2"]}}
    - id: long
      condition: event.EventType == "Reboot"
      output: approve
      prepare: [{{run: [{hook}, drain, "0"]}}]
      recover: [{{run: [{hook}, undrain, forever], timeout: 1m}}]
    - id: stubborn
      condition: event.EventType == "Redeploy"
      output: approve
      prepare: [{{run: [{hook}, drain, stubborn], timeout: 1m}}]
    - id: plain
      condition: event.EventType == "Freeze"
      output: approve
"""


class Vm:
    """A VM, its service, and one runner after the other."""

    def __init__(self, directory: Path, service: StuckService) -> None:
        self.directory = directory
        self.service = service
        self.processes: list[subprocess.Popen[str]] = []
        hook = program(directory / "hook", HOOK.format(directory=directory))
        self.artifact = compiled(directory, POLICY.format(hook=hook))

    def run(self) -> Process:
        runner = Process(
            "--artifact", str(self.artifact), endpoint=self.service.url, state=self.directory / "state", quick=True
        )
        self.processes.append(runner.process)
        return runner

    def run_into(self, out: int, *arguments: str) -> subprocess.Popen[str]:
        """Start a runner whose log goes to a descriptor."""
        command = [*vm_command(quick=True), "run", "--artifact", str(self.artifact), *arguments]
        environment = {"FOREWARN_ENDPOINT": self.service.url, "STATE_DIRECTORY": str(self.directory / "state")}
        process = subprocess.Popen(command, env={**os.environ, **environment}, stdout=out, text=True)
        self.processes.append(process)
        return process

    def said(self) -> list[str]:
        """Return what the hooks wrote down, without the times."""
        return [line.partition(" ")[2] for line in self._lines()]

    def when(self, what: str) -> float:
        """Return the time (of the wall clock) at which a hook last wrote this down."""
        return [float(line.split()[0]) for line in self._lines() if line.endswith(what)][-1]

    def _lines(self) -> list[str]:
        file = self.directory / "said"
        return file.read_text().splitlines() if file.exists() else []

    def seconds_to_end(self, process: subprocess.Popen[str]) -> float:
        """Send SIGTERM; return how long it takes until the process has ended."""
        begin = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        return time.monotonic() - begin


@pytest.fixture
def vm(tmp_path: Path) -> Iterator[Vm]:
    tmp_path.chmod(0o700)
    with stuck_service() as service:
        made = Vm(tmp_path, service)
        yield made
        (tmp_path / "go").touch()
        for process in made.processes:
            if process.poll() is None:
                process.kill()
                process.wait(10)


def begin_to_recover(vm: Vm) -> Process:
    """Return a runner in the middle of a recovery."""
    runner = vm.run()
    runner.wait_for("identity")
    vm.service.schedule("A", 600, "Reboot")
    runner.wait_for("approved")
    vm.service.clear()
    wait_until(lambda: "recover undrain begins" in vm.said())
    return runner


@pytest.mark.parametrize("way", WAYS)
def test_recovery_continues_after_a_restart_without_the_service(vm: Vm, way: str) -> None:
    first = begin_to_recover(vm)
    runs = len(vm.said())
    first.stop(signal.SIGKILL)
    vm.service.get_stuck(way)
    second = vm.run()
    second.wait_for("started")  # how long that takes depends on the machine
    begin = time.time()
    wait_until(lambda: vm.said()[runs:].count("recover undrain begins") == 1)
    assert vm.when("recover undrain begins") - begin < SOON_SECONDS
    (vm.directory / "go").touch()
    second.wait_for("hook-ended", phase="recover", result="succeeded")
    assert vm.seconds_to_end(second.process) < SOON_SECONDS


@pytest.mark.parametrize("way", WAYS)
def test_hooks_go_on_while_the_service_is_stuck(vm: Vm, way: str) -> None:
    """Five hooks of a fifth of a second each take little more than a second."""
    runner = vm.run()
    runner.wait_for("identity")
    vm.service.schedule("P", 30)
    wait_until(lambda: "prepare a begins" in vm.said())
    vm.service.get_stuck(way)
    runner.wait_for("hook-ended", count=5)
    assert vm.said() == [f"prepare {name} {what}" for name in "abcde" for what in ("begins", "ends")]
    assert vm.when("prepare e ends") - vm.when("prepare a begins") < 2 * SOON_SECONDS
    assert vm.seconds_to_end(runner.process) < SOON_SECONDS


def test_hooks_continue_while_an_approval_is_unanswered(vm: Vm) -> None:
    vm.service.way = APPROVALS
    vm.service.schedule("F", 600, "Freeze")
    runner = vm.run()
    wait_until(lambda: vm.service.requests("POST"))
    vm.service.schedule("P", 60)
    runner.wait_for("approval-failed")
    sent = vm.service.requests("POST")[0].at
    polls = vm.service.requests("GET", after=sent)
    assert not [poll for poll in polls if poll.at < sent + 8], "nothing else is asked meanwhile"
    wait_until(lambda: len(vm.service.requests("POST")) >= 2)
    runner.wait_for("hook-ended", event_id="P", count=5)
    assert vm.when("prepare e ends") - vm.when("prepare a begins") < 2 * SOON_SECONDS
    assert not [line for line in runner.lines if line["line"] == "approved"]


def test_it_stops_soon_whatever_is_under_way(vm: Vm) -> None:
    """A hook that ignores SIGTERM, a service that does not answer, and a reader of the log that does not read."""
    runner = vm.run()
    vm.service.schedule("R", 600, "Redeploy")
    wait_until(lambda: "prepare drain begins" in vm.said())
    vm.service.get_stuck("silent")
    asked = time.monotonic()
    wait_until(lambda: vm.service.requests("GET", after=asked))
    assert vm.seconds_to_end(runner.process) < SOON_SECONDS


# A reader of the log


class Pipe:
    """A pipe of one page, whose reader reads only when ``read`` is called."""

    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()
        fcntl.fcntl(self.writer, getattr(fcntl, "F_SETPIPE_SZ", 1031), 4096)
        os.set_blocking(self.reader, False)
        self.text = ""

    def read(self) -> list[str]:
        """Read what is there; return the whole lines so far."""
        while True:
            try:
                piece = os.read(self.reader, 65536)
            except BlockingIOError:
                break
            if not piece:
                break
            self.text += piece.decode()
        return self.text.split("\n")[:-1]

    def fill(self) -> None:
        """Leave no room in it."""
        os.set_blocking(self.writer, False)
        try:
            while True:
                os.write(self.writer, b"x" * 63 + b"\n")
        except BlockingIOError:
            os.set_blocking(self.writer, True)


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    made = Pipe()
    yield made
    os.close(made.reader)
    os.close(made.writer)


def busy(vm: Vm, number: int) -> Callable[[], bool]:
    """Let the service list so many events; return a function that says whether they were approved."""
    for each in range(number):
        vm.service.schedule(f"F{each}", 600, "Freeze")
    return lambda: len(vm.service.requests("POST")) >= 1


def test_stalled_log_reader_blocks_nothing(vm: Vm, pipe: Pipe) -> None:
    """Polls, hooks and SIGTERM go on."""
    pipe.fill()
    process = vm.run_into(pipe.writer)
    wait_until(lambda: len(vm.service.requests("GET")) >= 3)
    assert process.poll() is None
    approved = busy(vm, 20)  # each leaves a line
    wait_until(approved)
    vm.service.schedule("P", 60)
    wait_until(lambda: "prepare e ends" in vm.said())
    since = time.monotonic()
    wait_until(lambda: len(vm.service.requests("GET", after=since)) >= 3)
    assert vm.seconds_to_end(process) < SOON_SECONDS


def test_stalled_log_reader_does_not_keep_once_running(vm: Vm, pipe: Pipe) -> None:
    pipe.fill()
    vm.service.schedule("F", 600, "Freeze")
    process = vm.run_into(pipe.writer, "--once")
    wait_until(lambda: len(vm.service.requests("POST")) == 1, what="it does what it has to do")
    assert process.poll() is None, "the log is not lost to a reader that takes its time"
    process.send_signal(signal.SIGTERM)
    process.wait(30)


def test_slow_log_reader_gets_every_line_of_once(vm: Vm, pipe: Pipe) -> None:
    pipe.fill()
    for each in range(1000):  # more than may wait in a runner that works for months
        vm.service.schedule(f"F{each}-{'x' * 245}", 600, "Freeze")
    process = vm.run_into(pipe.writer, "--once", "--log-format", "json")
    wait_until(lambda: len(vm.service.requests("POST")) >= 1)
    wait_until(lambda: pipe.read() and process.poll() is not None)
    lines = [json.loads(line) for line in pipe.read() if not line.startswith("xxx")]
    assert [line["line"] for line in lines].count("decision") == 1000
    assert len(pipe.text) + len(lines) * _OVERHEAD_BYTES > LIMIT_BYTES, "in memory, before anybody read"
    assert process.returncode == 0
