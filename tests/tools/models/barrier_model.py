# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A model of VMs that share an event's barrier: a content that changes, a store that misbehaves, VMs that crash.

The protocol is the real one (``runner.groups.barrier``). Reading, then writing if it is unchanged, is one step: what
comes between the two makes the write fail.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from functools import lru_cache
from typing import Callable, NamedTuple

from forewarn.runner.groups import barrier
from forewarn.runner.groups.barrier import FAILED, PREPARING, READY, Barrier, Statement

from .model_checker import Step

CONTENTS = ("first", "second")  # the service changes the event once


class Member(NamedTuple):
    """A VM. It sees the event with the content of this number, or not at all any more (2).

    ``prepared`` is the number of the content that it has prepared for, -1 for none. A crash forgets ``closed``, what it
    has read last, and ``fence``: what it wrote last may have been applied, or still be. ``said`` is for the judge: the
    content for which it says that it is ready, -1 for none, -2 where an answer was lost.
    """

    sees: int = 0
    prepared: int = -1
    closed: bool = False
    fence: bool = False
    said: int = -1


class State(NamedTuple):
    """``content`` is that of the event, 2 once it is gone. ``approved``: what an approval was for, or -1."""

    document: bytes | None
    previous: bytes | None
    members: tuple[Member, ...]
    content: int = 0
    approved: int = -1
    lie: str = ""  # what an approval or a closed barrier rests on, and is not so
    delayed: tuple[tuple[bytes | None, bool], ...] = ()
    faults: int = 0


class Rules(NamedTuple):
    """What a VM does, so that a test can break it."""

    step: Callable[..., Barrier] = barrier.step
    checks_version: bool = True
    waits_for_closed: bool = True
    ready_before_prepared: bool = False


REAL = Rules()


class BarrierModel:
    """``names`` are the VMs of the event. ``faults`` is how many may happen in one run. ``ends``: the event may go."""

    def __init__(self, names: str, faults: int, rules: Rules = REAL, *, ends: bool = True) -> None:
        self.ends = ends
        self.names = tuple(names)
        self.faults = faults
        self.rules = rules
        self._answer = lru_cache(None)(self._compute)

    def initial(self) -> State:
        """Return the state in which all see the event, and nobody has prepared."""
        return State(None, None, tuple(Member() for _name in self.names))

    def _said(self, member: Member) -> Statement | None:
        if member.sees == 2:
            return None
        ready = member.prepared == member.sees or self.rules.ready_before_prepared
        return Statement(CONTENTS[member.sees], READY if ready else PREPARING)

    def _compute(self, document: bytes | None, place: int, said: Statement | None) -> bytes | None:
        after = self.rules.step(barrier.decode(document), self.names[place], said, self.names)
        return barrier.encode(after, "event")

    def steps(self, state: Hashable) -> Iterator[Step]:
        """Return what may happen."""
        assert isinstance(state, State)
        for place, member in enumerate(state.members):
            yield from self._talks(state, place)
            yield from self._acts(state, place, member)
        if state.content == 0:
            yield Step("the event changes", state._replace(content=1))
        if state.content < 2 and self.ends:
            yield Step("the event is gone", state._replace(content=2))
        for number, (after, newest) in enumerate(state.delayed):
            left = state._replace(delayed=state.delayed[:number] + state.delayed[number + 1 :])
            arrives = newest or not self.rules.checks_version
            yield Step("a late write arrives", self._judged(_written(left, after)) if arrives else left)

    def _talks(self, state: State, place: int) -> Iterator[Step]:
        member, name = state.members[place], self.names[place]
        said = self._said(member)
        yield from self._writes(state, place, said, state.document, stale=False)
        if state.faults == self.faults:
            return
        if state.previous != state.document:
            yield from self._writes(_faulty(state), place, said, state.previous, stale=True)
        after = self._answer(state.document, place, said)
        if after != state.document:
            unsure = _with(_faulty(state), place, member._replace(fence=True, said=-2))
            yield Step(f"{name} writes, unanswered", self._judged(_written(unsure, after), place), True)
            yield Step(f"{name} writes late", unsure._replace(delayed=(*unsure.delayed, (after, True))), True)

    def _writes(
        self, state: State, place: int, said: Statement | None, base: bytes | None, stale: bool
    ) -> Iterator[Step]:
        member, name = state.members[place], self.names[place]
        after = self._answer(base, place, said)
        if after == base and not member.fence:
            yield Step(f"{name} reads", _with(state, place, self._told(member, base, said)), stale)
        elif not stale or not self.rules.checks_version:
            told = self._told(member._replace(fence=False), after, said)
            yield Step(f"{name} writes", self._judged(_with(_written(state, after), place, told)), stale)

    def _told(self, member: Member, document: bytes | None, said: Statement | None) -> Member:
        closed = said is not None and barrier.decode(document).closed_for(said.content) is not None
        ready = said is not None and said.state == READY
        return member._replace(closed=closed, said=member.sees if ready else -1)

    def _judged(self, state: State, writer: int | None = None) -> State:
        """Note whether a barrier was closed now though a VM does not say that it is ready for this content."""
        before, after = barrier.decode(state.previous).closed, barrier.decode(state.document).closed
        if after is None or after == before:
            return state
        content = CONTENTS.index(after.content)
        others = [(name, each) for place, (name, each) in enumerate(zip(self.names, state.members)) if place != writer]
        lacking = [name for name, each in others if each.sees < 2 and each.said not in (content, -2)]
        return state._replace(lie=f"closed without {', '.join(lacking)}") if lacking else state

    def _acts(self, state: State, place: int, member: Member) -> Iterator[Step]:
        name = self.names[place]
        if member.sees < 2 and member.prepared != member.sees:
            yield Step(f"{name} prepares", _with(state, place, member._replace(prepared=member.sees)))
        if member.sees < state.content:
            seen = member._replace(sees=state.content, closed=False)
            if state.content == 2:
                seen = seen._replace(prepared=-1)  # it recovers
            yield Step(f"{name} sees the list", _with(state, place, seen))
        may = member.closed or not self.rules.waits_for_closed
        if member.sees < 2 and member.prepared == member.sees and may and state.approved < 0:
            others = zip(self.names, state.members)
            lacking = [other for other, theirs in others if theirs.sees < 2 and theirs.prepared < member.sees]
            lie = f"{', '.join(lacking)} was not prepared" if lacking else state.lie
            yield Step(f"{name} approves", state._replace(approved=member.sees, lie=lie))
        if state.faults < self.faults:
            restarted = member._replace(closed=False, fence=True)
            yield Step(f"{name} restarts", _with(_faulty(state), place, restarted), True)

    def broken(self, state: Hashable) -> str | None:
        """Return whether a barrier was closed, or an event approved, without a VM that it still concerns."""
        assert isinstance(state, State)
        return state.lie or None

    def settled(self, state: Hashable) -> bool:
        """Return whether the event was approved, or is gone and forgotten."""
        assert isinstance(state, State)
        gone = all(member.sees == 2 for member in state.members) and state.document is None
        return not state.delayed and (state.approved >= 0 or gone)


def failing(document: Barrier, me: str, own: Statement | None, names: tuple[str, ...]) -> Barrier:
    """Close also when a VM has failed: a rule that a test breaks."""
    after = barrier.step(document, me, own, names)
    if own is not None and len(after.members) == len(names):
        return after._replace(closed=barrier.Closure(own.content, me))
    return after


def any_content(document: Barrier, me: str, own: Statement | None, names: tuple[str, ...]) -> Barrier:
    """Close when all are ready, for whatever content: a rule that a test breaks."""
    after = barrier.step(document, me, own, names)
    states = [said.state for said in after.members.values()]
    if own is not None and len(states) == len(names) and PREPARING not in states and FAILED not in states:
        return after._replace(closed=barrier.Closure(own.content, me))
    return after


def _with(state: State, place: int, member: Member) -> State:
    return state._replace(members=(*state.members[:place], member, *state.members[place + 1 :]))


def _faulty(state: State) -> State:
    return state._replace(faults=state.faults + 1)


def _written(state: State, document: bytes | None) -> State:
    delayed = tuple((after, False) for after, _newest in state.delayed)
    return state._replace(document=document, previous=state.document, delayed=delayed)
