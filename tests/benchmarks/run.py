# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measures, and compares with baselines measured in the same run. Usage: ``run.py [--json] [BENCHMARK…]``.

Says PASS or MISS for each goal and ends with 0 either way: a busy machine is no defect. An exception (contenders that
disagree, a process that dies) is one.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import (
    adhoc,
    asking,
    fleet,
    footprint,
    groups,
    journal,
    latency,
    monitoring,
    polling,
    proving,
    pull,
    replay,
    role,
    rules,
    startup,
    waiting,
    windows,
)

BENCHMARKS = {
    "rules": rules.run,
    "footprint": footprint.run,
    "polling": polling.run,
    "latency": latency.run,
    "waiting": waiting.run,
    "groups": groups.run,
    "startup": startup.run,
    "journal": journal.run,
    "adhoc": adhoc.run,
    "asking": asking.run,
    "replay": replay.run,
    "proving": proving.run,
    "role": role.run,
    "fleet": fleet.run,
    "pull": pull.run,
    "monitoring": monitoring.run,
    "windows": windows.run,
}


def main() -> int:
    """Run the benchmarks named, or all."""
    parser = argparse.ArgumentParser(description="Measure how long things take, and what they cost.")
    parser.add_argument("benchmark", nargs="*", metavar="BENCHMARK", help=f"of: {', '.join(BENCHMARKS)} (default: all)")
    parser.add_argument("--json", action="store_true", help="write one JSON object")
    args = parser.parse_args()
    unknown = [name for name in args.benchmark if name not in BENCHMARKS]
    if unknown:
        parser.error(f"there is no benchmark {unknown[0]!r}, only {', '.join(BENCHMARKS)}")
    begin = time.monotonic()
    machine = f"Python {platform.python_version()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    reports = {}
    if not args.json:
        print(f"{machine}\n", flush=True)
    for name in args.benchmark or BENCHMARKS:
        report = reports[name] = BENCHMARKS[name]()
        if not args.json:
            report.write(lambda text: print(text, flush=True))
    if args.json:
        document = {"forewarn": {"schema": "benchmarks", "version": 1}, "machine": machine}
        print(json.dumps({**document, "benchmarks": {name: report.as_dict() for name, report in reports.items()}}))
        return 0
    goals = [goal for report in reports.values() for goal in report.goals]
    met = sum(goal.met for goal in goals)
    print(f"{met} of {len(goals)} goals met, in {time.monotonic() - begin:.0f} s")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
