# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The scenarios of ``tools.worlds.crashes``, with a runner that is a process of Windows on a disk of Windows.

At its n-th point the process says so and waits, and is killed with SIGKILL. It reads its script by its number.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

from forewarn.policy.artifact import digest_of
from tools.judges.promises import BrokenPromise
from tools.sites.wine import Wine, communicate
from tools.sites.wine_modules import program
from tools.worlds.crash_runner import NOT_ENDED, Kill
from tools.worlds.crash_scripts import Script
from tools.worlds.crashes import Scene
from tools.worlds.runner_profiles import GENERATIONS, PROGRAM, artifact

HOOK = r"C:\windows\system32\cmd.exe"  # which nobody runs, as PROGRAM
_CHILD = "from tools.worlds.windows import crash_child; sys.exit(crash_child.run(*sys.argv[1:]))"
_PATIENCE_SECONDS = 120.0
_NUMBERS = count(1)


class WindowsScene(Scene):
    """One scenario on drive C:, in a directory that has a space and an umlaut in its name."""

    def __init__(self, script: Script, wine: Wine) -> None:
        self._directory = rf"C:\crashes\scene ä {next(_NUMBERS)}"
        self._wine = wine
        self.place = wine.path(self._directory)
        self.place.mkdir(mode=0o755, parents=True)
        super().__init__(script, self.place)
        for generation in range(len(GENERATIONS)):
            text = json.dumps(_for_windows(generation))
            (self.place / f"policies-{generation}.json").write_text(text)

    def run(self, kill: Kill | None = None, before: Kill | None = None) -> bool:
        """Run a runner in a process of its own, after the one that ``before`` ended; return whether it was killed.

        Raises BrokenPromise if it ended otherwise than it should.
        """
        words = (str(self.script.seed), str(kill or "-"), str(before or "-"), self._directory)
        with self._wine.popen(*program(_CHILD), *words) as process:
            assert process.stdout
            at_point = process.stdout.readline().strip() == b"kill me"
            if at_point:
                process.kill()
            _output, problems = communicate(process, b"", _PATIENCE_SECONDS)
        if at_point:
            return True
        if process.returncode:
            why = (
                "has not come to rest"
                if process.returncode == NOT_ENDED
                else f"ended with {process.returncode}: {problems.decode(errors='replace')}"
            )
            raise BrokenPromise(f"a runner {why}")
        return False


def _for_windows(generation: int) -> dict[str, object]:
    data: dict[str, object] = json.loads(json.dumps(artifact(generation)).replace(PROGRAM, json.dumps(HOOK)[1:-1]))
    return {**data, "digest": digest_of({name: value for name, value in data.items() if name != "digest"})}


@contextmanager
def in_windows(script: Script, wine: Wine) -> Iterator[Scene]:
    """Yield a scenario whose runners are processes of a Windows."""
    scene = WindowsScene(script, wine)
    try:
        yield scene
    finally:
        shutil.rmtree(scene.place)


def chained_kills(seed: int, number: int) -> list[Kill]:
    """Draw kills, each of a runner that got a few points further than the one before; or of one that had just begun."""
    chance = random.Random(f"Windows {seed}")
    return [
        Kill(
            chance.choice((1, 2, 3, chance.randint(4, 16), chance.randint(4, 16))),
            chance.choice((0.0, 0.0, 0.5, 3.0, 40.0)),
            reboot=chance.random() < 0.15,
        )
        for _ in range(number)
    ]
