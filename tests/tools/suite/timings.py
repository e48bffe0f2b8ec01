# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long the tests take: what to expect before they run, and where the time went.

    python -m tools.suite.timings plan            what make test runs here, what it leaves out, and how long it takes
    python -m tools.suite.timings table FILE      where the time of .ci/run went; FILE has the parts: name, seconds

Tests write their times to ``.cache/reports``, one JUnit file for each run of pytest, named after the part.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from lab import machine
from tools.suite import sizes

REPORTS = Path(__file__).resolve().parents[3] / ".cache" / "reports"
# What each part may take, in seconds on two idle cores at size small; twice as much is worth a warning.
BUDGETS = {
    "packages": 60,
    "environment": 90,
    "static checks": 240,
    "unit": 180,
    "processes": 480,
    "root": 90,
    "vm": 30,
    "ansible": 60,
    "hosts": 570,
}
# The runs of pytest that a part of .ci/run consists of.
_RUNS = {"make test": ("unit", "processes")}
_CORES = 2
_SLOWEST = 20
# A program that tests want, and the Debian packages that have it.
_PROGRAMS = {
    "chromium": "chromium",
    "chromedriver": "chromium-driver",
    "etcd": "etcd-server",
    "haproxy": "haproxy",
    "npm": "nodejs npm",
    "prometheus": "prometheus",
    "prometheus-alertmanager": "prometheus-alertmanager",
    "promtool": "prometheus",
    "redis-server": "redis-server",
    "wine": "wine wine64",
}


class Report(NamedTuple):
    """What a run of pytest says of itself. ``slowest`` has the seconds and names of its tests, the slowest first."""

    seconds: float
    tests: int
    failed: int
    skipped: int
    slowest: list[tuple[float, str]]


def report(part: str, directory: Path = REPORTS) -> Report | None:
    """Return what the last run of a part says, or None if there is none that can be read."""
    try:
        suite = ElementTree.parse(directory / f"{part}.xml").getroot()[0]
    except (OSError, ElementTree.ParseError, IndexError):
        return None
    number = {name: int(suite.get(name, 0)) for name in ("tests", "failures", "errors", "skipped")}
    cases = [
        (float(case.get("time", 0)), f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}")
        for case in suite
    ]
    failed = number["failures"] + number["errors"]
    return Report(
        float(suite.get("time", 0)), number["tests"], failed, number["skipped"], sorted(cases, reverse=True)[:_SLOWEST]
    )


def plan() -> Iterator[str]:
    """Yield the lines that make test begins with."""
    parts = {"unit": "unit tests", "processes": "tests of processes", "hosts": "tests on hosts"}
    why_no_hosts = machine.missing()
    if why_no_hosts is not None:
        del parts["hosts"]
    before = [found for part in parts if (found := report(part)) is not None]
    if len(before) == len(parts):
        seconds, known = sum(one.seconds for one in before), "as the last time"
    else:
        cores = os.cpu_count() or 1
        seconds, known = sum(map(BUDGETS.__getitem__, parts)) * _CORES / cores, f"on {cores} cores"
    yield f"{', '.join(parts.values())}; size {sizes.NAME}; about {max(1, round(seconds / 60))} minutes, {known}"
    yield from _less()
    if sizes.NAME == "small":
        yield "left out: tests with other Pythons and ansible-cores; make test-root runs them, and make test-all"
    if why_no_hosts is not None:
        yield f"left out: tests on hosts; {why_no_hosts}"
    missing = {name: packages for name, packages in _PROGRAMS.items() if shutil.which(name) is None}
    if missing:
        yield f"left out: tests with {', '.join(missing)}; Debian has them in {' '.join(missing.values())}"


def _less() -> Iterator[str]:
    """Yield a line about what this size tries less of, if it does."""
    if less := list(sizes.left_out()):
        yield f"size {sizes.NAME} tries {', '.join(less)}; make test-all tries all"


def _rows(parts: Iterable[tuple[str, float]]) -> Iterator[tuple[str, float]]:
    """Yield name and seconds of each line: of a part, or of the runs of pytest in it and what remains of its time."""
    for name, seconds in parts:
        runs = {run: found.seconds for run in _RUNS.get(name, ()) if (found := report(run))}
        yield from runs.items()
        yield f"{name}, the rest" if runs else name, seconds - sum(runs.values())


def table(parts: Iterable[tuple[str, float]]) -> Iterator[str]:
    """Yield where the time went: a line for each part, warnings, the slowest tests of all, and a closing line."""
    total, slowest, warnings = 0.0, list[tuple[float, str]](), list[str]()
    passed = failed = skipped = 0
    yield f"{'where the time went':24}{'seconds':>9}{'budget':>9}{'tests':>9}{'skipped':>9}"
    for name, seconds in _rows(parts):
        budget, found = BUDGETS.get(name), report(name)
        counts = f"{found.tests:9,}{found.skipped:9,}" if found else ""
        yield f"{name:24}{seconds:9,.0f}{budget or '':>9}{counts}".rstrip()
        total += seconds
        if budget and seconds > 2 * budget:
            warnings.append(f"warning: {name} took {seconds:,.0f} s, more than twice its {budget} s")
        if found:
            slowest += found.slowest
            failed, skipped = failed + found.failed, skipped + found.skipped
            passed += found.tests - found.failed - found.skipped
    yield f"{'all':24}{total:9,.0f}{sum(BUDGETS.values()):9,}"
    yield from warnings
    yield ""
    yield f"the {_SLOWEST} slowest tests"
    for seconds, name in sorted(slowest, reverse=True)[:_SLOWEST]:
        yield f"{seconds:8.1f} s  {name}"
    yield ""
    yield from _less()
    yield f"{passed} passed, {failed} failed, {skipped} skipped"


def main(arguments: list[str]) -> int:
    """Print the plan or the table."""
    if arguments[0] == "plan":
        lines = plan()
    else:
        rows = [line.split("\t") for line in Path(arguments[1]).read_text(encoding="utf-8").splitlines()]
        lines = table((name, float(seconds)) for name, seconds in rows)
    sys.stdout.writelines(f"{line}\n" for line in lines)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
