# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Journals for tests: clocks that move when a test says so, records, and disks that are full or read-only."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from forewarn.runner.clocks import Clocks
from forewarn.runner.journal.reader import JournalEntry, JournalReader
from forewarn.runner.journal.writer import EventRow, Journal
from tools.clocks import ManualClocks
from tools.commands import SEARCH_PATH, run_program

DAY = 86400.0


def record(number: int, is_open: bool = True, state: str = "seen", **data: Any) -> EventRow:
    """Return a record whose key has its number."""
    return EventRow(number, f"{number:08x}-afdc-4513", state, is_open, {"id": number, **data})


def opened(directory: Path, clocks: Clocks | None = None, **options: Any) -> Journal:
    """Return a journal that is open, without trouble."""
    journal = Journal(str(directory), clocks or ManualClocks(), **options)
    journal.open()
    assert journal.trouble is None
    return journal


def commit(journal: Journal) -> None:
    """Commit, which must succeed."""
    assert journal.commit(), journal.trouble


def entries(directory: Path, **options: Any) -> list[JournalEntry]:
    """Return the entries that a reader finds."""
    return list(JournalReader(str(directory)).entries(**options))


def kinds(directory: Path) -> list[str]:
    """Return the kinds of all entries, in order."""
    return [entry.kind for entry in entries(directory)]


@cache
def _private_mounts() -> tuple[str, ...] | None:
    for command in (("unshare", "--mount"), ("unshare", "--map-root-user", "--mount")):
        try:
            tried = subprocess.run(
                [*command, "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, check=False, timeout=30
            )
        except FileNotFoundError:
            return None
        if tried.returncode == 0:
            return command
    return None


def run_with_own_mounts(program: str, directory: Path) -> dict[str, Any]:
    """Run a Python program that can mount file systems on ``sys.argv[1]``; return the JSON that it prints.

    The mounts are its own and end with it. Skips the test where that is not permitted.
    """
    command = _private_mounts()
    if command is None:
        pytest.skip("no mount namespaces here")
    environ = {"PYTHONPATH": SEARCH_PATH, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
    done = run_program(*command, sys.executable, "-c", program, directory, env=environ)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found
