# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long it takes to verify policies of 5 to 800 rules, and to compare two of 50, each in a process of its own."""

from __future__ import annotations

import json
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
from forewarn.analysis.diff.diff import compare
from forewarn.analysis.verify import verify as module
from forewarn.compiler.policies import load_policies

opinion = [0.0]

def timed(function):
    def measured(*arguments):
        begin = time.process_time()
        found = list(function(*arguments))
        opinion[0] += time.process_time() - begin
        return found
    return measured

for name in ("example_differences", "rule_differences"):
    setattr(module, name, timed(getattr(module, name)))
artifacts = [load_policies([Path(path)]) for path in sys.argv[1:]]
import z3  # as the start-up of a process is not measured either
begin = time.process_time()
result = module.verify(artifacts[0]) if len(artifacts) == 1 else compare(*artifacts)
seconds = time.process_time() - begin - opinion[0]
found = len(getattr(result, "findings", None) or result.changes)
print(json.dumps([seconds, opinion[0], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, found]))
"""
_GOALS = {5: 0.05, 50: 0.5, 200: 1.5, 800: 5.0}  # seconds by number of rules
_DIFF_GOAL = 0.5
_LIMIT = 10.0  # seconds, after which a proof ends with what is not proven
_KINDS: dict[str, tuple[str, float]] = {  # a condition of 50 rules, and the goal
    "names by pattern": ("vm.name.matches('^(web|db{0})[-_][0-9]+$') && event.EventType == 'Freeze'", 2.0),
    "Description": ("event.Description.contains('w{0}') || event.Description.lowerAscii() == 'x{0}'", 2.0),
    "Resources": ("event.Resources.exists(r, r.startsWith('n{0}_')) && size(event.Resources) > 1", _LIMIT),
    "days of two zones": ("now.getDayOfYear('America/New_York') == {0} && now.getDayOfYear() == {0} + 1", _LIMIT),
}
_MEMORY_GOAL = 250.0  # MiB of the whole process
_REPEATS = 3
_REPEATED = 50  # rules: larger policies are measured once
_TYPES = ("Freeze", "Reboot", "Redeploy", "Preempt", "Terminate")


class Measurement(NamedTuple):
    """``found`` is the number of findings or changes."""

    seconds: float
    opinion_seconds: float
    mebibytes: float
    found: int


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


def alike(condition: str, rules: int = 50) -> str:
    """Return a policy of rules of one kind: ``{0}`` is the number of the rule."""
    every = [
        f"    - {{id: r{number}, condition: {json.dumps(condition.format(number))}, output: hold}}\n"
        for number in range(rules)
    ]
    return "".join(["name: alike\nrule:\n  match:\n", *every, "    - {id: rest, output: approve}\n"])


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


def measure(*texts: str, repeats: int = 1) -> Measurement:
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
            found.append(Measurement(*json.loads(done.stdout)))
    return min(found)


def run() -> Report:
    """Measure. Raises AssertionError if mistakes are not found."""
    quantities: list[Quantity] = []
    goals: list[Goal] = []
    most = 0.0

    def note(name: str, one: Measurement, goal: float | None) -> None:
        nonlocal most
        if not one.found:
            raise AssertionError(f"{name}: nothing found")
        most = max(most, one.mebibytes)
        quantities.append(Quantity(f"{name}, {one.found} reported", one.seconds, "s"))
        if one.opinion_seconds:
            quantities.append(Quantity(f"{name}, the second opinion", one.opinion_seconds, "s"))
        if goal is not None:
            goals.append(Goal(name, one.seconds / goal, f"{goal:g} s", AT_MOST, 1))

    for size, goal in _GOALS.items():
        note(f"verify {size} rules", measure(policy(size), repeats=_REPEATS if size <= _REPEATED else 1), goal)
    for name, (condition, limit) in _KINDS.items():
        note(f"verify 50 rules on {name}", measure(alike(condition)), limit)
    fifty = policy(50)
    note("diff of 50 rules and 50", measure(fifty, changed(fifty), repeats=_REPEATS), _DIFF_GOAL)
    note("verify 50 rules of 100 different constants", measure(policy(50, 100)), None)
    quantities.append(Quantity("most memory, of the whole process", most, "MiB"))
    goals.append(Goal("memory", most / _MEMORY_GOAL, f"{_MEMORY_GOAL:g} MiB", AT_MOST, 1))
    note("verify 200 rules of 1,000 different constants", measure(policy(200, 500)), None)
    notes = [
        f"Processor time beyond compiling, the best of {_REPEATS} processes; of more than {_REPEATED} rules, of one."
    ]
    return Report("Proving policies", quantities, goals, notes)
