# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A runner of ``tools.worlds.windows.crashes``, in a process of a Windows."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path


def _die() -> None:
    sys.stdout.write("kill me\n")
    sys.stdout.flush()
    time.sleep(600)  # until it is killed, which is at once


def run(seed: str, kill: str, before: str, place: str) -> int:
    """Run it; return its exit code.

    The words are the scenario's number, the kill and the one before it, or ``-``, and the scenario's directory.
    """
    import forewarn.runner.skip_openssl  # noqa: F401 - first of all, as the command does
    from forewarn.policy.artifact import load
    from forewarn.policy.engine import PolicySet
    from tools.worlds.crash_runner import CrashRunner, Files, Kill
    from tools.worlds.crash_scripts import make_script

    directory = Path(place)

    def policies(generation: int) -> PolicySet:
        return PolicySet(load(json.loads((directory / f"policies-{generation}.json").read_text("utf-8"))))

    runner = CrashRunner(make_script(int(seed)), Files(directory), _die, policies, job=True)
    return runner.run(*(None if word == "-" else Kill.of(word) for word in (kill, before)))
