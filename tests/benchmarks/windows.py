# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the runner costs a Windows made of Wine, beside a Python loop there, and how fast it starts there."""

from __future__ import annotations

import shutil
import socket
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import forewarn as forewarn_package
from benchmarks.footprint import Usage, measure
from benchmarks.processes import artifact_of, bare_socket, emulator
from benchmarks.report import AT_MOST, Goal, Quantity, Report
from benchmarks.rules import POLICY
from forewarn.bundle import build
from tools.sites.wine import PYTHON, Wine, wine

RUNS = 7
WARM_UP_SECONDS, SECONDS = 6.0, 20.0
_PYZ, _ARTIFACT, _LOOP = r"C:\vm\forewarn.pyz", r"C:\vm\policy.json", r"C:\vm\loop.py"


def run() -> Report:
    """Measure on this machine, in one Windows."""
    title = "The runner on Windows (Wine)"
    if shutil.which("wine") is None:
        return Report(title, [], [], ["Skipped: there is no Wine (Debian: wine wine64)."])
    with tempfile.TemporaryDirectory(prefix="forewarn-bench-") as directory, wine(Path(directory, "prefix")) as windows:
        place = windows.path(r"C:\vm")
        place.mkdir()
        build(Path(forewarn_package.__path__[0]), windows.path(_PYZ))
        shutil.copy(Path(__file__).with_name("windows_loop.py"), windows.path(_LOOP))
        with artifact_of(POLICY) as artifact:
            shutil.copy(artifact, windows.path(_ARTIFACT))
        memory, cpu, polls = _side_by_side(windows)
        first, nothing = _starts(windows)
    return Report(
        title,
        [
            Quantity("resident memory, runner", memory[0], "MiB"),
            Quantity("resident memory, Python loop", memory[1], "MiB"),
            Quantity("CPU per poll, runner", cpu[0], "ms"),
            Quantity("CPU per poll, Python loop", cpu[1], "ms"),
            Quantity("start to the first request, runner", first * 1e3, "ms"),
            Quantity("python -c pass", nothing * 1e3, "ms"),
        ],
        [
            Goal("memory", memory[0] / memory[1], "a loop of urlopen and sleep(1)", AT_MOST, 1.5),
            Goal("CPU per poll", cpu[0] / cpu[1], "a loop of urlopen and sleep(1)", AT_MOST, 1),
            Goal("start", first / nothing, "python -c pass", AT_MOST, 7),
        ],
        [
            f"Two processes of python.org's embeddable Python under Wine, for {SECONDS:g} s: {polls[0]} and {polls[1]}"
            " polls. What Wine's server does for them is not in it.",
            f"The start: medians of {RUNS} runs each, in turn. No Windows was measured.",
        ],
    )


def _side_by_side(windows: Wine) -> Usage:
    with (
        emulator(["runner", "loop"]) as client,
        _started(windows, *_runner(client.vm_endpoint("runner"), "side")) as runner,
        _started(windows, PYTHON, _LOOP, client.vm_endpoint("loop")) as loop,
    ):
        return measure(client, runner, loop, WARM_UP_SECONDS, SECONDS)


def _starts(windows: Wine) -> tuple[float, float]:
    """Return the seconds from the start to the first request, and those of a Python that does nothing."""
    first, nothing = [], []
    with bare_socket() as (server, endpoint):
        for number in range(RUNS):
            first.append(_first_request(windows, server, endpoint, f"start-{number}"))
            begin = time.monotonic()
            windows.run(PYTHON, "-c", "pass")
            nothing.append(time.monotonic() - begin)
    return statistics.median(first), statistics.median(nothing)


def _first_request(windows: Wine, server: socket.socket, endpoint: str, state: str) -> float:
    begin = time.monotonic()
    with _started(windows, *_runner(endpoint, state)):
        connection, _ = server.accept()
        with connection:
            if not connection.recv(4096).startswith(b"GET /metadata/scheduledevents?"):
                raise AssertionError("not the request expected")
            return time.monotonic() - begin


def _runner(endpoint: str, state: str) -> tuple[str, ...]:
    options = ("--artifact", _ARTIFACT, "--endpoint", endpoint, "--state", rf"C:\vm\{state}")
    return PYTHON, _PYZ, "run", *options


@contextmanager
def _started(windows: Wine, *command: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process whose output nobody reads: it is shorter than a pipe."""
    with windows.popen(*command) as process:
        try:
            yield process
        finally:
            process.kill()
