# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long hooks wait while the service is stuck, beside the same runner with a service that answers."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks.report import AT_MOST, Goal, Quantity, Report
from tools.servers.stuck_services import WAYS, StuckService, stuck_service
from tools.sites.runner_process import Process, compiled, program
from tools.sites.waiting import wait_until

HOOKS = 12  # one after another, in each way
RESTARTS = 3  # in each way
MOST_SECONDS = 0.1  # from the moment a hook is due to its start, and from its end to the moment that is known
MOST_RECOVERY_SECONDS = 1.0
# Beside a service that answers. Where both take a few milliseconds, chance has its share.
MOST_TIMES = 3.0
ANSWERS = "answers"

_HOOK = """
echo "$(date +%s.%N) $FOREWARN_PHASE begins" >> {directory}/said
[ "$FOREWARN_PHASE" = recover ] && exec sleep 60
sleep 0.1
echo "$(date +%s.%N) $FOREWARN_PHASE ends" >> {directory}/said
"""
_POLICY = """
name: drains
rule:
  match:
    - condition: event.EventType == "Preempt"
      output: approve
      prepare: [{chain}]
    - condition: event.EventType == "Reboot"
      output: hold
      prepare: [{{run: [{hook}, drain]}}]
      recover: [{{run: [{hook}, undrain]}}]
"""


class Waits(NamedTuple):
    """What was measured, in seconds."""

    starts: list[float]
    ends: list[float]
    recoveries: list[float]


def run() -> Report:
    """Measure with a service that answers, and with one that is stuck in each way."""
    baseline = measure([ANSWERS] * len(WAYS))
    stuck = measure(WAYS)
    rows = [
        ("hook start", stuck.starts, baseline.starts, MOST_SECONDS),
        ("hook end taken in", stuck.ends, baseline.ends, MOST_SECONDS),
        ("recovery after a restart", stuck.recoveries, baseline.recoveries, MOST_RECOVERY_SECONDS),
    ]
    quantities, goals = [], []
    for name, hanging, answering, limit in rows:
        quantities += [
            Quantity(f"{name}, longest, service stuck", max(hanging) * 1e3, "ms"),
            Quantity(f"{name}, median, service stuck", _median(hanging) * 1e3, "ms"),
            Quantity(f"{name}, median, service answers", _median(answering) * 1e3, "ms"),
        ]
        goals += [
            Goal(f"{name}, longest", max(hanging) / limit, f"({limit * 1e3:g} ms)", AT_MOST, 1),
            Goal(
                f"{name}, median", _median(hanging) / _median(answering), "a service that answers", AT_MOST, MOST_TIMES
            ),
        ]
    return Report(
        "What hooks wait while the service is stuck",
        quantities,
        goals,
        [
            f"Stuck in {len(WAYS)} ways: {', '.join(WAYS)}. In each, {HOOKS} hooks in a row and {RESTARTS} restarts.",
            "A hook is due when the end of the one before it is known; a recovery when the process starts.",
            "Each step is in the journal, on the disk, before the next. Times are the log's and the hooks' own.",
        ],
    )


def measure(ways: Sequence[str]) -> Waits:
    """Measure with a service that is stuck in these ways, or answers."""
    found = Waits([], [], [])
    for way in ways:
        with tempfile.TemporaryDirectory(prefix="forewarn-bench-") as directory, stuck_service() as service:
            one_after_another(Path(directory), service, way, found)
        with tempfile.TemporaryDirectory(prefix="forewarn-bench-") as directory, stuck_service() as service:
            restarts(Path(directory), service, way, found)
    return found


def one_after_another(directory: Path, service: StuckService, way: str, found: Waits) -> None:
    """Let the service get stuck when the first of many hooks runs."""
    runner = _runner(directory, service)
    try:
        runner.wait_for("identity")
        service.schedule("P", 600)
        wait_until(lambda: _times(directory, "prepare begins"))
        if way != ANSWERS:
            service.get_stuck(way)
        runner.wait_for("hook-ended", count=HOOKS, timeout=60)
    finally:
        _end(runner)
    known = [datetime.fromisoformat(line["time"]).timestamp() for line in runner.lines if line["line"] == "hook-ended"]
    begins, ends = _times(directory, "prepare begins"), _times(directory, "prepare ends")
    if not len(known) == len(begins) == len(ends) == HOOKS:
        raise AssertionError("not every hook ran")
    # The log's times are cut to milliseconds, so starts are up to one too long and ends up to one too short.
    found.starts.extend(begin - moment for begin, moment in zip(begins[1:], known))
    found.ends.extend(max(0.0, moment - end) for moment, end in zip(known, ends))


def restarts(directory: Path, service: StuckService, way: str, found: Waits) -> None:
    """Kill a runner during a recovery, again and again, and start the next one."""
    runner = _runner(directory, service)
    try:
        runner.wait_for("identity")
        service.schedule("R", 600, "Reboot")
        runner.wait_for("hook-ended", phase="prepare")
        service.clear()
        wait_until(lambda: _times(directory, "recover begins"))
        for number in range(RESTARTS):
            time.sleep(0.2)  # the hook's process is to be in the journal
            _end(runner)
            if way != ANSWERS and number == 0:
                service.get_stuck(way)
            begin = time.time()
            runner = _runner(directory, service)
            wait_until(partial(_has_begun_again, directory, number + 2))
            begun = _times(directory, "recover begins")
            found.recoveries.append(begun[-1] - begin)
    finally:
        _end(runner)


def _has_begun_again(directory: Path, times: int) -> bool:
    return len(_times(directory, "recover begins")) >= times


def _runner(directory: Path, service: StuckService) -> Process:
    artifact = directory / "policy.json"
    if not artifact.exists():
        directory.chmod(0o700)
        hook = program(directory / "hook", _HOOK.format(directory=directory))
        chain = ", ".join(f'{{run: [{hook}, "{number}"]}}' for number in range(HOOKS))
        compiled(directory, _POLICY.format(hook=hook, chain=chain))
    return Process("--artifact", str(artifact), endpoint=service.url, state=directory / "state")


def _end(runner: Process) -> None:
    runner.process.kill()
    runner.end()
    runner.close()


def _times(directory: Path, what: str) -> list[float]:
    """Return the times that hooks wrote down."""
    said = directory / "said"
    lines = said.read_text().splitlines() if said.exists() else []
    return [float(line.split()[0]) for line in lines if line.endswith(what)]


def _median(values: Sequence[float]) -> float:
    return sorted(values)[len(values) // 2]
