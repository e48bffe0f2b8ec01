# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an operator does in a world: pauses approvals, and resumes them, as the commands do."""

from __future__ import annotations

from pathlib import Path

from forewarn.cli.approval_pause import hand_over
from forewarn.policy.pause import DIRECTORY, FILE_NAME, Pause, read_pause
from tools.worlds.runner_world import World


def pause(world: World, directory: str, seconds: float) -> None:
    """Let approvals be paused, by this world's wall clock."""
    now = world.wall
    begun = Pause(f"pause-{len(world.ledger):08x}", "alice", "a release", now, now + seconds)
    hand_over(directory, begun)
    world.note("pause", until=begun.until)


def damage(world: World, directory: str, content: bytes = b"{") -> None:
    """Spoil the file of the pause: until somebody resumes, nobody can tell whether approvals are paused."""
    Path(directory, DIRECTORY).mkdir(mode=0o700, exist_ok=True)
    Path(directory, DIRECTORY, FILE_NAME).write_bytes(content)
    world.note("pause", until=None)


def resume(world: World, directory: str) -> None:
    """Let a pause end early, if there is any."""
    found = read_pause(directory)
    known = found is not None and found.problem is None
    ended = found if known and found is not None else Pause("pause-mended", "bob", "x", world.wall, world.wall + 1.0)
    hand_over(directory, ended._replace(ended_by="bob"))
    world.note("resume")
