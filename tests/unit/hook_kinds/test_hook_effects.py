# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Success of a hook of any kind: its whole effect is there at that moment, whatever others have undone before.

Each kind runs in a made-up world that says by itself whether the effect is there. A kind without a world fails here.
"""

from __future__ import annotations

import random
from collections.abc import Collection
from pathlib import Path

import pytest
from forewarn import hook_kinds
from forewarn.hook_kinds.common.process import PREPARE, RECOVER
from forewarn.hook_kinds.common.work import HookFailedError
from tools.suite.sizes import examples, seeds
from tools.worlds.hook_worlds import WORLDS, World

FOR_EVER = range(1, 10_000)
LOST = "somebody has undone it meanwhile"


class Worlds:
    """Makes worlds of one kind, each with a directory of its own."""

    def __init__(self, kind: str, directory: Path, patch: pytest.MonkeyPatch) -> None:
        self.kind = WORLDS[kind]
        self.patch = patch
        self._directories = (directory / str(count) for count in range(1_000_000))

    def new(self) -> World:
        directory = next(self._directories)
        directory.mkdir()
        return self.kind(directory)

    def prepared(self) -> World:
        world = self.new()
        world.run(self.patch, PREPARE)
        return world

    def holds_at_success(self, breaks: Collection[int], begins: float) -> bool:
        """Return whether the hook succeeds, and see that its effect is there if so."""
        world = self.new()
        world.begins = begins
        try:
            world.run(self.patch, PREPARE, breaks)
        except HookFailedError:
            return False
        assert world.holds(), f"undone right before steps {sorted(breaks)}"
        return True

    def steps(self, phase: str) -> int:
        """Return how many steps a hook takes with which nobody interferes."""
        world = self.new() if phase == PREPARE else self.prepared()
        world.run(self.patch, phase)
        assert world.holds() if phase == PREPARE else world.recovered()
        return world.steps


@pytest.fixture(params=hook_kinds.NAMES)
def worlds(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Worlds:
    return Worlds(request.param, tmp_path, monkeypatch)


def test_drain_undone_once_holds_at_success(worlds: Worlds) -> None:
    steps = worlds.steps(PREPARE)
    for begins in (0.0, 2.0):
        held = [worlds.holds_at_success({step}, begins) for step in range(1, steps + 1)]
        assert held.count(False) <= 1  # a checkpoint that vanishes before anybody has seen it was never saved


def test_drain_undone_repeatedly_holds_at_success(worlds: Worlds) -> None:
    steps = worlds.steps(PREPARE)
    for seed in seeds(examples(100)):
        chance = random.Random(seed)
        breaks = set(chance.sample(range(1, 3 * steps), chance.randint(2, 4)))
        worlds.holds_at_success(breaks, chance.choice([0.0, 2.0]))


def test_drain_undone_forever_is_no_success(worlds: Worlds) -> None:
    steps = worlds.steps(PREPARE)
    reasons = []
    for first in (1, max(1, steps // 2), steps):
        with pytest.raises(HookFailedError) as caught:
            worlds.new().run(worlds.patch, PREPARE, FOR_EVER[first - 1 :], 20.0)
        reasons.append(str(caught.value))
    if worlds.kind.kind != "probe":  # which orders nothing
        assert LOST in reasons[-1]


def test_lost_drain_without_time_fails_as_lost(worlds: Worlds) -> None:
    if worlds.kind.kind == "probe":
        pytest.skip("it orders nothing")
    quiet = worlds.prepared()
    # Some can order it again in no time; a second more is not enough for any to fail without a loss.
    with pytest.raises(HookFailedError, match=LOST):
        worlds.new().run(worlds.patch, PREPARE, range(quiet.steps, 10_000), quiet.now + 1.0)


def test_recovery_undone_once_holds_at_success(worlds: Worlds) -> None:
    for step in range(1, worlds.steps(RECOVER) + 1):
        world = worlds.prepared()
        world.run(worlds.patch, RECOVER, {step})
        assert world.recovered(), f"undone right before step {step}"
