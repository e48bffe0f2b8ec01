# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An explicit-state model checker: it visits every state that can be reached, however the steps interleave.

A model gives the first state, and the steps that are possible in a state. States are compared by value, so they have to
be hashable. Each step says whether it is a fault: a fault may happen, everything else does happen in the end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable
from typing import NamedTuple, Protocol


class Step(NamedTuple):
    """What may happen next: its name, the state that it leads to, and whether it is a fault."""

    name: str
    state: Hashable
    fault: bool = False


class Model(Protocol):
    """What is checked."""

    def initial(self) -> Hashable:
        """Return the first state."""

    def steps(self, state: Hashable) -> Iterable[Step]:
        """Return what may happen in a state."""

    def broken(self, state: Hashable) -> str | None:
        """Return which promise does not hold in a state, or None."""

    def settled(self, state: Hashable) -> bool:
        """Return whether everything that has to happen in the end has happened."""


class Outcome(NamedTuple):
    """How many states were visited, and the promise that does not hold, with the ``trace`` that leads there."""

    states: int
    broken: str | None = None
    trace: tuple[str, ...] = ()


def check(model: Model, most_states: int = 5_000_000) -> Outcome:
    """Visit every reachable state; return the first broken promise, by the shortest way there.

    Also broken is liveness: a state from which no faultless steps lead to a settled one. Raises MemoryError if there
    are more states than ``most_states``: such a model proves nothing.
    """
    first = model.initial()
    number = {first: 0}
    came: list[tuple[int, str]] = [(-1, "")]
    before: list[list[int]] = [[]]  # by faultless steps
    settled: list[int] = []
    waiting = deque([first])
    while waiting:
        state = waiting.popleft()
        here = number[state]
        broken = model.broken(state)
        if broken is not None:
            return Outcome(len(number), broken, _trace(came, here))
        if model.settled(state):
            settled.append(here)
        for name, after, fault in model.steps(state):
            there = number.get(after)
            if there is None:
                there = number[after] = len(number)
                if there > most_states:
                    raise MemoryError(f"more than {most_states} states")
                came.append((here, name))
                before.append([])
                waiting.append(after)
            if not fault and there != here:
                before[there].append(here)
    stuck = _cannot_settle(before, settled)
    if stuck is not None:
        return Outcome(len(number), "nothing leads to the end from here", _trace(came, stuck))
    return Outcome(len(number))


def _cannot_settle(before: list[list[int]], settled: list[int]) -> int | None:
    can = bytearray(len(before))
    waiting = list(settled)
    for here in settled:
        can[here] = 1
    while waiting:
        for there in before[waiting.pop()]:
            if not can[there]:
                can[there] = 1
                waiting.append(there)
    return next((here for here, reached in enumerate(can) if not reached), None)


def _trace(came: list[tuple[int, str]], here: int) -> tuple[str, ...]:
    names = []
    while here > 0:
        here, name = came[here]
        names.append(name)
    return tuple(reversed(names))
