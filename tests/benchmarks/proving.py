# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long it takes to verify policies of 5, 50 and 200 rules, and to compare two of 50, each in a process of its own.

``python tests/benchmarks/proving.py --svg docs/growth.svg`` draws how that grows.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.report import AT_MOST, Goal, Quantity, Report

# Measured is what the commands do between compiling the policies and writing the result. Time is that of the processor:
# nothing here waits, and a busy machine does not count. The second opinion, of cel-python, is measured by itself.
_MEASURE = """
import json, resource, sys, time
from pathlib import Path
from forewarn.analysis.diff import compare
from forewarn.analysis.symbolic.reading import read
from forewarn.analysis.verify import verify
from forewarn.compiler.policyfile import load_policies
from forewarn.analysis import verify as verifying
from forewarn.errors import InputError

class Timed(verifying.Differing):
    seconds = 0.0

    def __init__(self, reading):
        begin = time.process_time()
        super().__init__(reading)
        Timed.seconds += time.process_time() - begin

    def found(self, search):
        begin = time.process_time()
        found = list(super().found(search))
        Timed.seconds += time.process_time() - begin
        return iter(found)

verifying.Differing = Timed
artifacts = [load_policies([Path(path)]) for path in sys.argv[1:]]
begin = time.process_time()
try:
    result = verify(read(artifacts[0])) if len(artifacts) == 1 else compare(*artifacts)
    classes, found = result.classes, len(getattr(result, "findings", None) or result.changes)
except InputError as error:
    classes, found = 0, f"{error.message}. {error.hint}"
seconds = time.process_time() - begin - Timed.seconds
print(json.dumps([seconds, Timed.seconds, classes, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, found]))
"""
_GOALS = {5: 0.02, 50: 0.3, 200: 5.0}  # seconds by number of rules
_DIFF_GOAL = 0.3
_MEMORY_GOAL = 500.0  # MiB of the whole process
_REPEATS = 3
_TYPES = ("Freeze", "Reboot", "Redeploy", "Preempt", "Terminate")
_SIZES = (5, 10, 20, 35, 50, 75, 100, 150, 200)
_CONSTANTS = (2, 5, 10, 20, 40, 80, 120, 160)


class Measured(NamedTuple):
    """``found`` is the number of findings or changes, or why there is no result."""

    seconds: float
    opinion_seconds: float
    classes: int
    mebibytes: float
    found: int | str


def policy(rules: int, constants: int | None = None, seed: int = 1) -> str:
    """Return a policy of so many rules, as a team's might grow: limits of durations and notices, sources, tags.

    ``constants`` is from how many durations, and notices, the limits are chosen; more with more rules by default.
    """
    chance = random.Random(seed)
    many = constants or max(2, rules // 4)
    durations = sorted(chance.sample(range(1, 600), many))
    notices = sorted(chance.sample(range(1, 600), constants or max(1, rules // 12)))
    text = [
        "name: generated",
        "params: [{name: limit, type: int, default: 9, min: 0, max: 60}]",
        "rule:",
        "  variables:",
        "    - {name: mine, expression: affects_me && event.EventStatus != 'Started'}",
        "  match:",
        "    - {id: under-way, condition: event.EventStatus == 'Started', output: hold}",
    ]
    for number in range(rules - 2):
        parts = [f"event.EventType == '{chance.choice(_TYPES)}'"]
        if chance.random() < 0.7:
            low = chance.choice(durations)
            high = chance.choice([one for one in durations if one > low] or [low + 1])
            parts.append(f"event.DurationInSeconds >= {low} && event.DurationInSeconds < {high}")
        elif chance.random() < 0.3:
            parts.append("event.DurationInSeconds >= 0 && event.DurationInSeconds < params.limit")
        if chance.random() < 0.4:
            parts.append(f"has(event.EventSource) && event.EventSource == '{chance.choice(('User', 'Platform'))}'")
        if chance.random() < 0.5:
            parts.append(f"notice < duration('{chance.choice(notices)}m')")
        if chance.random() < 0.3:
            parts.append(chance.choice(("variables.mine", "size(event.Resources) == 1", "leader || !affects_me")))
        output = chance.choice(("approve", "hold"))
        condition = json.dumps(" && ".join(f"({part})" if "||" in part else part for part in parts))
        text.append(f"    - {{id: r{number}, condition: {condition}, output: {output}}}")
    text.append("    - {id: rest, output: hold}")
    claim = "decision == hold || event.EventStatus == 'Scheduled'"
    text += ["invariants:", f"  - {{name: what has started is held, expression: {json.dumps(claim)}}}"]
    return "\n".join(text) + "\n"


def changed(text: str) -> str:
    """Return a policy as somebody might change it: one rule's output, another one's limit, one rule less."""
    lines = text.splitlines(keepends=True)
    rules = [number for number, line in enumerate(lines) if "{id: r" in line and "rest" not in line]
    turned = lines[rules[3]]
    lines[rules[3]] = turned.replace("approve", "hold") if "approve" in turned else turned.replace("hold}", "approve}")
    for number in rules[5:]:
        if "< " in lines[number]:
            lines[number] = lines[number].replace("< ", "<= ", 1)
            break
    del lines[rules[8]]
    return "".join(lines)


def measure(*texts: str, repeats: int = 1) -> Measured:
    """Verify one policy, or compare two; return the fastest of some repeats."""
    found = []
    with tempfile.TemporaryDirectory() as directory:
        paths = []
        for number, text in enumerate(texts):
            paths.append(Path(directory) / f"{number}.yml")
            paths[-1].write_text(text)
        command = [sys.executable, "-c", _MEASURE, *map(str, paths)]
        for _ in range(repeats):
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            found.append(Measured(*json.loads(done.stdout)))
    return min(found)


def run() -> Report:
    """Measure. Raises AssertionError if mistakes are not found, or if a limit is not reported."""
    quantities: list[Quantity] = []
    goals: list[Goal] = []
    most = 0.0

    def note(name: str, one: Measured, goal: float | None) -> None:
        nonlocal most
        if isinstance(one.found, str) or not one.found:
            raise AssertionError(f"{name}: {one.found or 'nothing found'}")
        most = max(most, one.mebibytes)
        quantities.append(Quantity(f"{name}, {one.classes:,} classes, {one.found} reported", one.seconds, "s"))
        if one.opinion_seconds:
            quantities.append(Quantity(f"{name}, the second opinion", one.opinion_seconds, "s"))
        if goal is not None:
            goals.append(Goal(name, one.seconds / goal, f"{goal:g} s", AT_MOST, 1))

    for size, goal in _GOALS.items():
        note(f"verify {size} rules", measure(policy(size), repeats=_REPEATS), goal)
    fifty = policy(50)
    note("diff of 50 rules and 50", measure(fifty, changed(fifty), repeats=_REPEATS), _DIFF_GOAL)
    note("verify 50 rules of 100 different constants", measure(policy(50, 100)), None)
    quantities.append(Quantity("most memory, of the whole process", most, "MiB"))
    goals.append(Goal("memory", most / _MEMORY_GOAL, f"{_MEMORY_GOAL:g} MiB", AT_MOST, 1))
    refused = measure(policy(200, 500))
    if not isinstance(refused.found, str) or "more than can be analysed" not in refused.found:
        raise AssertionError(f"200 rules of 1000 constants were not refused: {refused}")
    notes = [
        f"Processor time beyond compiling, the best of {_REPEATS} processes.",
        f"Of 200 rules with 1,000 different constants it says, after {refused.seconds:.1f} s: {refused.found}",
    ]
    return Report("Proving policies", quantities, goals, notes)


# The picture

_LICENCE = "SPDX-License-" + "Identifier: GPL-3.0-or-later"  # of the picture; in one piece it would be this file's

_STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #1f2933 } .title { font-weight: 600 } .small { font-size: 11px }
  .frame { stroke: #7b8794; fill: none } .grid { stroke: #d5dbe1 } .goal { stroke: #b4491c; stroke-dasharray: 5 4 }
  .line { stroke: #1d6fb8; stroke-width: 2; fill: none } .dot { fill: #1d6fb8 } .goaltext { fill: #b4491c }
  @media (prefers-color-scheme: dark) {
    text { fill: #e4e7eb } .frame { stroke: #9aa5b1 } .grid { stroke: #3e4c59 } .goal { stroke: #ff9466 }
    .line { stroke: #63b3ed } .dot { fill: #63b3ed } .goaltext { fill: #ff9466 }
  }
"""
_DECADES = (0.001, 0.01, 0.1, 1.0, 10.0)  # s
_WIDTH, _HEIGHT, _LEFT, _TOP = 300, 230, 60, 46


def draw() -> str:
    """Return an SVG of the time by the number of rules, and of constants; readable on light and dark pages."""
    by_rules = [(size, measure(policy(size)).seconds) for size in _SIZES]
    by_constants = [(2 * many, measure(policy(50, many)).seconds) for many in _CONSTANTS]
    goals = list(_GOALS.items())
    panels = [
        _panel(0, "verify, by rules", "rules (a quarter as many durations)", by_rules, goals),
        _panel(
            _LEFT + _WIDTH + 20,
            "verify 50 rules, by constants",
            "durations and notices to choose from",
            by_constants,
            [],
        ),
    ]
    width, height = 2 * (_LEFT + _WIDTH + 20), _TOP + _HEIGHT + 46
    times = "; ".join(f"{size} rules {seconds:.2g} s" for size, seconds in by_rules)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
            f"<!-- {_LICENCE} -->",
            f"<title>How long it takes to verify a policy: {times}</title>",
            f"<style>{_STYLE}</style>",
            *panels,
            "</svg>",
            "",
        ]
    )


def _panel(shift: int, title: str, axis: str, points: list[tuple[int, float]], goals: list[tuple[int, float]]) -> str:
    last = max(x for x, _ in points)

    def across(x: float) -> float:
        return round(_LEFT + _WIDTH * x / last, 1)

    def up(seconds: float) -> float:
        first, end = (_DECADES[0], _DECADES[-1])
        return round(_TOP + _HEIGHT * (1 - math.log10(max(first, seconds) / first) / math.log10(end / first)), 1)

    parts = [f'<g transform="translate({shift} 0)">', f'<text class="title" x="{_LEFT}" y="22">{title}</text>']
    for seconds in _DECADES:
        y = up(seconds)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_LEFT + _WIDTH}" y1="{y}" y2="{y}"/>')
        label = f"{seconds:g} s" if seconds >= 1 else f"{seconds * 1000:g} ms"
        parts.append(f'<text class="small" text-anchor="end" x="{_LEFT - 6}" y="{y + 4}">{label}</text>')
    parts.append(f'<rect class="frame" x="{_LEFT}" y="{_TOP}" width="{_WIDTH}" height="{_HEIGHT}"/>')
    bottom = _TOP + _HEIGHT
    ticks = range(0, last + 1, 50 if last <= 250 else 80)
    parts += [f'<text class="small" text-anchor="middle" x="{across(x)}" y="{bottom + 16}">{x}</text>' for x in ticks]
    middle = _LEFT + _WIDTH / 2
    parts.append(f'<text class="small" text-anchor="middle" x="{middle}" y="{bottom + 34}">{axis}</text>')
    for x, seconds in goals:
        y, begin, end = up(seconds), max(_LEFT, across(x) - 22), min(_LEFT + _WIDTH, across(x) + 22)
        parts.append(f'<line class="goal" x1="{begin}" x2="{end}" y1="{y}" y2="{y}"/>')
        if x == max(one for one, _ in goals):
            parts.append(f'<text class="small goaltext" text-anchor="end" x="{end}" y="{y - 6}">goals</text>')
    line = " ".join(f"{across(x)},{up(seconds)}" for x, seconds in points)
    parts.append(f'<polyline class="line" points="{line}"/>')
    for x, seconds in points:
        parts.append(f'<circle class="dot" cx="{across(x)}" cy="{up(seconds)}" r="3"/>')
    return "\n".join([*parts, "</g>"])


def main() -> int:
    """Draw the picture."""
    parser = argparse.ArgumentParser(description="Draw how long verification takes. (To measure: run.py proving.)")
    parser.add_argument("--svg", type=Path, required=True, metavar="FILE", help="where to write the picture")
    args = parser.parse_args()
    args.svg.write_text(draw())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
