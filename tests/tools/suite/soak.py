# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Looks for broken promises for a given time: a third of it each by crashes, by hypothesis, and by the prover.

The first two are about the runner. The prover makes claims about all events, and random ones contradict it. Each run
tries something new. What is broken is printed with the command that repeats it.

    python -m tools.suite.soak SECONDS
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

from tools.suite import claim_fuzz
from tools.worlds import crashes
from tools.worlds.group_scenario import Scenario
from tools.worlds.timed_runner import memory

REPOSITORY = Path(__file__).resolve().parents[3]
STORIES = "tests/integration/groups/test_groups_simulated.py"
PROPERTIES = "tests/integration/runner/test_runner_properties.py"


def try_properties(seconds: float) -> bool:
    """Run the stateful test with one seed after another; return whether all went well."""
    began = time.monotonic()
    count = 0
    while count == 0 or time.monotonic() - began < seconds:
        seed = random.SystemRandom().randrange(2**31)
        options = ["-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", PROPERTIES]
        size = {"FOREWARN_SIZE": "small", "FOREWARN_SEED": str(seed)}  # some seconds
        command, environment = [sys.executable, *options], {**os.environ, **size}
        done = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)
        count += 1
        if done.returncode:
            again = f"FOREWARN_SEED={seed} python {' '.join(options)}"
            print(f"{done.stdout}{done.stderr}\nAgain: {again}", file=sys.stderr)
            return False
        line = f"{time.monotonic() - began:6.0f} s  {PROPERTIES} with {count} seeds, all well"
        print(line, file=sys.stderr, flush=True)
    return True


def try_groups(seconds: float) -> bool:
    """Play stories of many VMs, each with a seed that nobody has tried; return whether all went well."""
    began = time.monotonic()
    count = 0
    while count == 0 or time.monotonic() - began < seconds:
        seed = random.SystemRandom().randrange(2**31)
        with memory() as directory:
            broken = Scenario(seed, directory, 3 + seed % 6, faults=True).play()
        count += 1
        if broken:
            again = f"FOREWARN_SEED={seed} python -m pytest -n0 {STORIES} -k 'no_promise_is_broken and {seed}'"
            print("\n".join([*broken, f"Again: {again}"]), file=sys.stderr)
            return False
    line = f"{time.monotonic() - began:6.0f} s  {count} stories of many VMs, all well"
    print(line, file=sys.stderr, flush=True)
    return True


def main(arguments: list[str]) -> int:
    """Return 1 if a promise was broken, or a claim contradicted."""
    seconds = float(arguments[0])
    crashed = crashes.main(["--seconds", str(seconds / 4)])
    well = try_properties(seconds / 4)
    together = try_groups(seconds / 4)
    contradicted = claim_fuzz.main(["--seconds", str(seconds / 4), "--shrink"])
    return 0 if well and together and not crashed and not contradicted else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
