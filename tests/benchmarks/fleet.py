# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long the table and the page of a large fleet take, and how much memory: the hosts' results are simulated."""

from __future__ import annotations

import json
import os
import resource
import sys
import time

from benchmarks.report import AT_MOST, Goal, Quantity, Report
from forewarn.fleet.page import page
from forewarn.fleet.status import host_states
from forewarn.fleet.table import table
from tools.sites.commands import SEARCH_PATH, run_program
from tools.worlds.fleets import AT, fleet, iso

HOSTS, EVENTS, PAST = 1000, 8, 20
SECONDS, MEBIBYTES = 5.0, 300.0  # the limits


def run() -> Report:
    """Measure both in a process each, so that the peak of memory is theirs."""
    quantities, goals = [], []
    for what in ("table", "page"):
        environ = {**os.environ, "PYTHONPATH": SEARCH_PATH}
        child = run_program(sys.executable, "-m", "benchmarks.fleet", what, env=environ)
        if child.returncode:
            raise AssertionError(child.stderr)
        measured = json.loads(child.stdout)
        quantities.append(Quantity(f"{what}, {HOSTS} hosts", measured["seconds"], "s"))
        quantities.append(Quantity(f"{what}, peak of memory", measured["mebibytes"], "MiB"))
        quantities.append(Quantity(f"{what}, size", measured["kilobytes"], "kB"))
        goals.append(Goal(f"{what}, time", measured["seconds"] / SECONDS, f"{SECONDS:g} s", AT_MOST, 1))
        memory = measured["mebibytes"] / MEBIBYTES
        goals.append(Goal(f"{what}, memory", memory, f"{MEBIBYTES:g} MiB", AT_MOST, 1))
    note = f"Every host lists {EVENTS} pending events, and has {PAST} in its history. Memory includes these results."
    return Report("Showing a fleet", quantities, goals, [note])


def _measure(what: str) -> None:
    answers = fleet(HOSTS, EVENTS, trouble=30, past=PAST)
    begin = time.perf_counter()
    if what == "table":
        shown = "\n".join(line.text for line in table(host_states(answers)))
    else:
        shown = page(answers, iso(AT), "7d")
    seconds = time.perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "mebibytes": peak, "kilobytes": len(shown.encode()) / 1000}))


if __name__ == "__main__":
    _measure(sys.argv[1])
