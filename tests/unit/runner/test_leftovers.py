# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hooks that outlive a runner, and what they have started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from forewarn.runner.hooks.executor import end_leftovers
from forewarn.system.posix import leftovers
from forewarn.system.posix.process_groups import group_is_of_hook, identity, signal_group
from tools.fixtures.hook_bench import is_running, leftover
from tools.worlds.runner_world import VMS
from tools.worlds.stories import DRAINED, hook, listed, match
from tools.worlds.world_runner import new_runner

# The child sleeps until it is killed.
SCRIPT = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print(child.pid, flush=True)
sys.stdin.readline()
"""


def test_child_of_an_ended_hook_is_ended() -> None:
    """docs/runner-states.md: its leftover process is ended before that; one gap is left, and it is another."""
    leader = subprocess.Popen(
        [sys.executable, "-c", SCRIPT],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
        env={"FOREWARN_ATTEMPT": "1"},
    )
    assert leader.stdin
    assert leader.stdout
    child = int(leader.stdout.readline())
    found = identity(leader.pid)
    assert found is not None
    leader.stdin.close()
    leader.wait()
    try:
        assert is_running(child)
        end_leftovers([(leader.pid, found.start)])
        assert not is_running(child), "the next attempt runs beside it"
    finally:
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)


def test_process_before_exec_is_known_by_its_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Between fork and exec Linux shows no environment for an instant."""
    shown = [b"", b""]
    read_bytes = Path.read_bytes

    def read(path: Path) -> bytes:
        return shown.pop() if path.name == "environ" and shown else read_bytes(path)

    with leftover("/bin/sleep", "60", env={"FOREWARN_ATTEMPT": "1"}) as (process, start):
        monkeypatch.setattr(Path, "read_bytes", read)
        assert group_is_of_hook(process.pid, start)
        assert not shown


def test_processes_without_any_environment_are_looked_at_together(monkeypatch: pytest.MonkeyPatch) -> None:
    command = "env -i /bin/sleep 60 & env -i /bin/sleep 60 & echo on; exec env -i /bin/sleep 60"
    with leftover("/bin/sh", "-c", command) as (process, start):
        assert process.stdout
        assert process.stdout.readline()
        waits: list[float] = []
        monkeypatch.setattr("forewarn.system.posix.process_groups.time.sleep", waits.append)
        try:
            assert not group_is_of_hook(process.pid, start)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
    assert sum(waits) < 0.3


# It sleeps until it is killed.
STUBBORN = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("on", flush=True)
time.sleep(60)
"""


def test_several_leftover_hooks_are_ended_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/runner-states.md: after a restart recovery begins within 1 s, whatever ... ; each costs 2 s.

    Each has one SIGTERM: at a second one, a shell would begin its trap again in the middle of the first.
    """
    sent: dict[int, list[int]] = {}

    def send(pid: int, number: int) -> bool:
        sent.setdefault(pid, []).append(number)
        return signal_group(pid, number)

    monkeypatch.setattr(leftovers, "signal_group", send)
    three = match("three", prepare=[hook(name) for name in ("a", "b", "c")], parallel=True, recover=["undrain"])
    story, _event = listed(tmp_path, [("web", [three])], seconds=3, slow={"a", "b", "c"})
    processes = []
    (record,) = story.instance.runner.scheduler.records
    with ExitStack() as stack:
        for run in record.plan.active_runs():
            process, run.pid_started = stack.enter_context(leftover(sys.executable, "-c", STUBBORN))
            assert process.stdout
            process.stdout.readline()
            run.pid = process.pid
            processes.append(process)
        assert len(processes) == 3
        story.instance.runner.recorder.journal.save(record.as_row())
        assert story.instance.runner.recorder.journal.commit()
        story.world.kill()
        story.instance.runner.recorder.journal._disconnect()
        instance = new_runner(story.world, str(tmp_path), VMS[0])
        instance.runner.scheduler._clocks.monotonic = time.monotonic  # type: ignore[method-assign]  # hooks are real here
        began = time.monotonic()
        instance.runner.resume()
        seconds = time.monotonic() - began
    assert seconds < 3.0, seconds
    assert sent == {process.pid: [signal.SIGTERM, signal.SIGKILL] for process in processes}


def test_leftover_of_two_records_gets_one_sigterm(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[int] = []

    def send(pid: int, number: int) -> bool:
        sent.append(number)
        return signal_group(pid, number)

    monkeypatch.setattr(leftovers, "signal_group", send)
    with leftover("/bin/sleep", "60") as (process, start):
        assert end_leftovers([(process.pid, start)] * 2) == {process.pid}
        assert process.wait(10) == -signal.SIGTERM
    assert sent == [signal.SIGTERM]


def test_process_of_another_boot_is_no_leftover(tmp_path: Path) -> None:
    """The number and the ticks since boot are those of a process of this boot by chance."""
    story, _event = listed(tmp_path, DRAINED, seconds=3, slow={"drain"})
    (record,) = story.instance.runner.scheduler.records
    (run,) = record.plan.active_runs()
    with leftover("/bin/sleep", "60") as (process, start):
        run.pid, run.pid_started = process.pid, start
        story.instance.runner.recorder.journal.save(record.as_row())
        assert story.instance.runner.recorder.journal.commit()
        story.world.kill()
        story.world.reboot(30.0)
        story.instance.runner.recorder.journal._disconnect()
        new_runner(story.world, str(tmp_path), VMS[0]).runner.resume()
        assert is_running(process.pid), "it is somebody else's"
