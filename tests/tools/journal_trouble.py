# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A runner whose journal cannot be written for a while, in a process of its own.

Its arguments are a directory, KIND and WHEN. KIND is ``too-large`` (no file may grow) or, with mounts of its own,
``full`` or ``read-only``; WHEN is ``start`` or ``middle``. Prints what happened as JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tools.full_disk import fill
from tools.timed_runner import Story, TimedRunner


def _limit(size: int) -> None:
    import resource

    _soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard if size < 0 else size, hard))


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)


def troubles(kind: str, state: Path) -> tuple[Callable[[], None], Callable[[], None]]:
    """Return a function that makes the trouble, and one that heals it."""
    if kind == "too-large":
        return lambda: _limit(1), lambda: _limit(-1)
    _mount("-t", "tmpfs", "-o", "size=4m,mode=0700", "none", str(state))
    if kind == "full":
        filler = state / "filler"
        return lambda: fill(filler), filler.unlink
    # Not with the options of mountinfo, which a plain user may not set.
    remount = ("--options-mode", "ignore", "-o")
    return lambda: _mount(*remount, "remount,ro", str(state)), lambda: _mount(*remount, "remount,rw", str(state))


def play(directory: Path, kind: str, when: str) -> dict[str, Any]:
    """Let it happen; return what was seen."""
    seen: dict[str, Any] = {}
    with TimedRunner(directory) as world:
        trouble, heal = troubles(kind, world.state)

        def story() -> Story:
            events = {}
            schedule = world.emulator.schedule
            if when == "middle":
                events["leaving"] = schedule("Reboot", ["web_0"])
                yield from world.until(lambda: world.lines("state", to="started"))
                events["draining"] = schedule("Reboot", ["web_0"], description="long")
                yield from world.long_hook(events["draining"])
                trouble()
                world.let_go()
            events["new"] = schedule("Reboot", ["web_0"], description="drain it")
            events["plain"] = schedule("Reboot", ["web_0"], description="plain")
            yield from world.wait(30.0)
            seen["in trouble"] = summary(world, events)
            heal()
            yield from world.until(lambda: world.lines("journal-recovered"), 15.0)
            drained = [event_id for name, event_id in events.items() if name != "plain"]
            yield from world.until(lambda: all(world.over(event_id) for event_id in drained))
            seen["in the end"] = summary(world, events)
            seen["reasons"] = [line["reason"] for line in world.lines("journal-trouble")]

        if when == "start":
            trouble()
        world.play(story())
        seen["posts"] = world.posts()
    return seen


def summary(world: TimedRunner, events: dict[str, str]) -> dict[str, Any]:
    """Return for each event which hooks ran, whether it was approved, and its last logged eligibility."""
    found = {}
    for name, event_id in events.items():
        hooks = sorted(text.split()[0] for text in world.hooks().elements() if event_id in text)
        approved = any(event_id in line["event_ids"] for line in world.lines("approved"))
        eligibility = world.lines("decision", event_id=event_id)[-1]["eligibility"]
        found[name] = {"hooks": hooks, "approved": approved, "eligibility": eligibility}
    return found


if __name__ == "__main__":
    print(json.dumps(play(Path(sys.argv[1]), *sys.argv[2:])))
