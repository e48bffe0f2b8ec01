# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Signals at any moment of the start of ``forewarn run``, as a VM runs it, from the creation of its process on."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from forewarn.emulator.server import EmulatorServer
from tools.sites.commands import VM_PYTHON, run_program
from tools.sites.pythons import python
from tools.sites.runner_process import compiled
from tools.sites.waiting import wait_until
from tools.suite.sizes import SEED, examples

POLICY = "name: freezes\nrule:\n  match:\n    - {id: rest, output: hold}\n"
LONGEST_START_SECONDS = 0.3  # of this machine; later signals come to a runner that works, which is right too
ENDS = (signal.SIGTERM, signal.SIGINT)


class StartedRunner:
    """A runner whose process has just been created."""

    def __init__(self, pyz: Path, server: EmulatorServer, directory: Path, options: list[str]) -> None:
        self.log, self.problems = directory / "log", directory / "problems"
        interpreter = sys.executable if VM_PYTHON is None else python(VM_PYTHON)
        command = [interpreter, "-I", "-S", str(pyz), "run", "--log-format", "json", *options]
        environ = {"FOREWARN_ENDPOINT": server.vm_endpoint("web_0"), "STATE_DIRECTORY": str(directory / "state")}
        with self.log.open("w") as output, self.problems.open("w") as problems:
            self.process = subprocess.Popen(command, env=environ, stdout=output, stderr=problems)

    def is_ours(self) -> bool:
        """Return whether the first lines of the program have run, and not only those of Python."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            name, _colon, mask = line.partition(":")
            if name in ("SigBlk", "SigCgt") and int(mask, 16) >> (signal.SIGHUP - 1) & 1:
                return True
        return False

    def logged(self, name: str) -> int:
        return self.log.read_text().count(f'"line": "{name}"')


@contextmanager
def started(pyz: Path, server: EmulatorServer, directory: Path, *options: str) -> Iterator[StartedRunner]:
    directory.mkdir()
    runner = StartedRunner(pyz, server, directory, ["--artifact", str(compiled(directory, POLICY)), *options])
    try:
        yield runner
    finally:
        runner.process.kill()
        runner.process.wait()


def moments(number: int) -> list[float]:
    """Return times in seconds: the very first, and random ones, early ones more often."""
    drawn = random.Random(SEED)
    return [0.0, *(LONGEST_START_SECONDS * drawn.random() ** 2 for _ in range(number))]


@pytest.mark.vm_python
def test_sighup_during_the_start_is_a_reload(pyz: Path, server: EmulatorServer, tmp_path: Path) -> None:
    for number, moment in enumerate(moments(examples(60))):
        with started(pyz, server, tmp_path / str(number)) as runner:
            wait_until(runner.is_ours, what="the program does not begin")
            time.sleep(moment)  # the moment at which the signal comes is what is tried
            runner.process.send_signal(signal.SIGHUP)
            wait_until(lambda: runner.logged("document") > 0, what=f"it does not work after {moment} s")
            wait_until(lambda: runner.logged("reloaded") == 1, what=f"it does not reload after {moment} s")
            runner.process.send_signal(signal.SIGTERM)
            assert runner.process.wait(20) == 0
            assert runner.problems.read_text() == ""


@pytest.mark.vm_python
@pytest.mark.parametrize("number", ENDS)
def test_terminating_signal_leaves_no_traceback(
    pyz: Path, server: EmulatorServer, tmp_path: Path, number: signal.Signals
) -> None:
    for place, moment in enumerate(moments(examples(40))):
        with started(pyz, server, tmp_path / str(place)) as runner:
            wait_until(runner.is_ours, what="the program does not begin")
            time.sleep(moment)  # the moment at which the signal comes is what is tried
            runner.process.send_signal(number)
            assert runner.process.wait(20) in (0, -number)
            assert runner.problems.read_text() == ""


@pytest.mark.parametrize(
    ("command", "waits"),
    [("run", True), ("run --dry-run", True), ("run --once", False), ("run --check-config", False), ("status", False)],
)
def test_sighup_ends_a_command_that_somebody_waits_for(command: str, waits: bool) -> None:
    program = (
        "import sys; from forewarn.system.early_signals import keep_reloads; keep_reloads(); "
        "import signal; print(signal.SIGHUP in signal.pthread_sigmask(signal.SIG_BLOCK, ()))"
    )
    assert run_program(sys.executable, "-c", program, *command.split()).stdout == f"{waits}\n"
