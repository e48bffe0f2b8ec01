# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The versions of ansible-core that the collection is tested with, and their commands."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

_TOOLS = Path(__file__).resolve().parents[1]
# Each version, as in 2.16, and the Pythons that its control node may have.
SUPPORTED: dict[str, list[str]] = {
    version: pythons
    for version, *pythons in map(str.split, (_TOOLS / "ansible-cores.txt").read_text().splitlines())
    if version != "#"
}
# What the tests of the collection run, for example 2.16 (make test-ansible); by default that of the tests' Python.
CORE = os.environ.get("FOREWARN_ANSIBLE_CORE")


def ansible(command: str, version: str | None = CORE) -> Path:
    """Return a command of an ansible-core, by its name; skip the test where this machine cannot have that version."""
    return (_directory(version) if version else Path(sys.executable).parent) / command


@cache
def _directory(version: str) -> Path:
    done = subprocess.run([_TOOLS / "ansible-core.sh", version], capture_output=True, text=True, check=False)
    if done.returncode == 3:
        import pytest  # here: the demos have none

        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip())
