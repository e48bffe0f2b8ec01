# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes and their groups as the kernel shows them."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import NamedTuple

_ENVIRON_READS, _ENVIRON_PAUSE_SECONDS = 20, 0.01  # at an environment that is empty


class ProcessIdentity(NamedTuple):
    """What the kernel reports of a process. ``start`` is in clock ticks since boot."""

    state: str
    group: int
    start: int


def identity(pid: int) -> ProcessIdentity | None:
    """Return what the kernel reports of a process, or None without such a process or without /proc."""
    try:
        # The name, in brackets, may hold anything.
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        return ProcessIdentity(fields[0].decode(), int(fields[2]), int(fields[19]))
    except (OSError, ValueError, IndexError):
        return None


def exists(pid: int) -> bool:
    """Return whether a process exists; True if that is unknown."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # another user's process, or not the number of one
        return True
    return True


def signal_group(process_group: int, number: int) -> bool:
    """Send a signal to each process of a group; 0 only checks. Return whether there is any."""
    try:
        os.killpg(process_group, number)
    except ProcessLookupError:
        return False
    except PermissionError:  # they run as another user now
        return True
    return True


def group_exists(process_group: int) -> bool:
    """Return whether a process of a group still runs: one that has ended stays in it until its parent waits for it."""
    if not signal_group(process_group, 0):
        return False
    members = _members(process_group)
    return members is None or bool(members)


def group_is_of_hook(process_group: int, started: int) -> bool:
    """Return whether a group without its leader has processes that a hook started: they have its environment.

    Linux shows no environment of a process that is about to begin another program, so this may take 0.2 s.
    """
    if not signal_group(process_group, 0):
        return False
    numbers = [number for number, found in _members(process_group) or () if found.start >= started]
    for attempt in range(_ENVIRON_READS):
        if attempt:
            time.sleep(_ENVIRON_PAUSE_SECONDS)  # the kernel says nothing when a program has begun
        environments = [_environment(number) for number in numbers]
        if any(b"FOREWARN_ATTEMPT=" in one for one in environments if one):
            return True
        if b"" not in environments:
            break
    return False


def _environment(pid: int) -> bytes | None:
    """Return the environment that a process was given, None if it has ended or is another user's."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return None


def _members(process_group: int) -> list[tuple[int, ProcessIdentity]] | None:
    """Return the running processes of a group, or None without a /proc that we can read."""
    try:
        numbers = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    except OSError:
        return None
    known = [(number, found) for number in numbers if (found := identity(number)) is not None]
    return [each for each in known if each[1].group == process_group and each[1].state not in "ZX"] if known else None
