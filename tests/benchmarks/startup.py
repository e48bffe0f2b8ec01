# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long the runner takes from the start of its process to its first request, beside a Python that does nothing."""

from __future__ import annotations

import socket
import statistics
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.processes import PYTHON, RUNNER, artifact_of, bare_socket, started
from benchmarks.report import AT_MOST, Goal, Quantity, Report
from benchmarks.rules import POLICY

RUNS = 30
WARM_UP_RUNS = 3
NOTHING = (*PYTHON, "-c", "pass")


def run() -> Report:
    """Start both in turn, many times."""
    runner, nothing = [], []
    with artifact_of(POLICY) as artifact, bare_socket() as (server, endpoint):
        for _ in range(WARM_UP_RUNS + RUNS):
            runner.append(first_request([*RUNNER, str(artifact), "--endpoint", endpoint], server))
            nothing.append(whole_run(NOTHING))
    ours, bare = (statistics.median(times[WARM_UP_RUNS:]) for times in (runner, nothing))
    return Report(
        "From the start of the process to the first request",
        [
            Quantity("runner", ours * 1e3, "ms"),
            Quantity("python -c pass", bare * 1e3, "ms"),
            Quantity("runner, the fastest", min(runner) * 1e3, "ms"),
            Quantity("python -c pass, the fastest", min(nothing) * 1e3, "ms"),
        ],
        [Goal("runner", ours / bare, "python -c pass", AT_MOST, 7)],
        [
            f"Medians of {RUNS} runs each, in turn. The runner: until its request has arrived at a bare socket.",
            "The runner is the installed command 'forewarn run', on the Python of the baseline. Its journal is new.",
        ],
    )


def first_request(command: Sequence[str], server: socket.socket, state: Path | None = None) -> float:
    """Return the seconds until a process has sent its first request."""
    begin = time.monotonic()
    with started(command, state):
        connection, _ = server.accept()
        with connection:
            if not connection.recv(4096).startswith(b"GET /metadata/scheduledevents?"):
                raise AssertionError("not the request expected")
            return time.monotonic() - begin


def whole_run(command: Sequence[str]) -> float:
    """Return the seconds that a process takes from start to end."""
    begin = time.monotonic()
    subprocess.run(command, check=True)
    return time.monotonic() - begin
