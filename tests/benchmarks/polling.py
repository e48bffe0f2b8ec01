# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What one poll costs in CPU time, without anything that a runner does beside: the client alone, and requests alone."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable

import requests
from benchmarks.processes import emulator
from benchmarks.report import AT_MOST, Goal, Quantity, Report
from forewarn.imds.client import Client

POLLS = 2_000
WARM_UP_POLLS = 100
ROUNDS = 5


def run() -> Report:
    """Let both poll the emulator in turn, each over one kept connection, and take the cheapest round of each."""
    ours, theirs = [], []
    with emulator(["web_0"]) as service, requests.Session() as session:
        service.schedule("Freeze", ["web_0"], duration_seconds=5, notice_seconds=3600)
        endpoint = service.vm_endpoint("web_0")
        url = f"{endpoint}/metadata/scheduledevents?api-version=2020-07-01"
        # By its clock a second passes between two looks at it, so that the request budget never makes it wait.
        with Client(endpoint, clock=itertools.count().__next__) as client:
            for _ in range(ROUNDS):
                ours.append(cpu_of(client.read_once))
                theirs.append(cpu_of(lambda: session.get(url, headers={"Metadata": "true"}, timeout=10).json()))
    return Report(
        "CPU of a poll",
        [
            Quantity("client", min(ours) * 1e6, "µs"),
            Quantity("requests.Session", min(theirs) * 1e6, "µs"),
        ],
        [Goal("client", min(ours) / min(theirs), "requests.Session.get(…).json()", AT_MOST, 0.5)],
        [
            f"CPU time of this process, for {POLLS:,} polls in a row; of {ROUNDS} rounds the cheapest.",
            "Both read a document of one event from the emulator. It changes in no poll, so the client parses it once.",
        ],
    )


def cpu_of(poll: Callable[[], object]) -> float:
    """Return the CPU seconds of a poll."""
    for _ in range(WARM_UP_POLLS):
        poll()
    begin = time.process_time()
    for _ in range(POLLS):
        poll()
    return (time.process_time() - begin) / POLLS
