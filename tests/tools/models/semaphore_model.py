# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A model of VMs that share a semaphore: events, a store that misbehaves, and VMs that crash, for ``model_checker``.

The protocol is the real one (``runner.groups.semaphore``). What a VM does with it, the store, and the events are
modelled here. A version is modelled by whether a document that was read is still the newest.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from functools import lru_cache
from typing import Callable, NamedTuple

from forewarn.runner.groups import semaphore
from forewarn.runner.groups.semaphore import FORCE, RECOVER, RELEASE, TAKE, Semaphore, Want

from .model_checker import Step

LISTED, STARTED, GONE = "listed", "started", "gone"


class Member(NamedTuple):
    """A VM and its one event. A crash forgets ``granted`` and ``fence``; the rest is on its disk.

    ``owed``: it has noted that it may hold a slot. ``granted``: what it has read or written last. ``fence``: what it
    has written last may have been applied, or still be. ``disturbed``: 0, or 1 by Azure alone, or 2 by our hand.
    """

    event: int
    owed: bool = True
    prepared: bool = False
    sees_gone: bool = False
    granted: bool = False
    fence: bool = False
    disturbed: int = 0


class State(NamedTuple):
    """``delayed`` are writes that were answered by nobody, and may still be applied: by whom, and what."""

    document: bytes
    previous: bytes
    members: tuple[Member, ...]
    events: tuple[str, ...]
    near: tuple[bool, ...]
    delayed: tuple[tuple[bytes, bool], ...] = ()
    faults: int = 0


class Rules(NamedTuple):
    """What a VM does, so that a test can break it."""

    step: Callable[..., Semaphore] = semaphore.step
    checks_version: bool = True
    fences: bool = True
    notes_before: bool = True  # that it may hold a slot, before it asks for one
    releases_on_restart: bool = False
    releases_when_gone: bool = False  # before it has recovered
    waits_for_grant: bool = True  # before it prepares
    forced_approves: bool = False


REAL = Rules()


class SemaphoreModel:
    """``events`` are the VMs that each event names. ``faults`` is how many may happen in one run."""

    def __init__(self, events: tuple[str, ...], at_most: int, faults: int, rules: Rules = REAL) -> None:
        self.names = tuple(name for names in events for name in names)
        self.of_event = tuple(tuple(names) for names in events)
        self.at_most = at_most
        self.faults = faults
        self.rules = rules
        self._answer = lru_cache(None)(self._compute)

    def initial(self) -> State:
        """Return the state in which all events are listed."""
        empty = semaphore.encode(Semaphore())
        members = tuple(
            Member(number, owed=self.rules.notes_before)
            for number, names in enumerate(self.of_event)
            for _name in names
        )
        count = len(self.of_event)
        return State(empty, empty, members, (LISTED,) * count, (False,) * count)

    # The protocol

    def _want(self, state: State, place: int) -> str | None:
        member = state.members[place]
        if member.sees_gone:
            done = not member.disturbed or self.rules.releases_when_gone
            return (RELEASE if done else RECOVER) if member.owed else None
        if member.granted or state.events[member.event] != LISTED:
            return None
        return FORCE if member.prepared else TAKE

    def _compute(self, document: bytes, place: int, event: int, want: str) -> bytes:
        names = self.of_event[event]
        asked = Want(str(event), want, names, self.at_most, float(event))
        return semaphore.encode(self.rules.step(semaphore.decode(document), self.names[place], [asked]))

    def _is_granted(self, document: bytes, place: int, event: int) -> bool:
        return semaphore.is_granted(_decoded(document), str(event), self.names[place])

    # What may happen

    def steps(self, state: Hashable) -> Iterator[Step]:
        """Return what may happen."""
        assert isinstance(state, State)
        for place in range(len(state.members)):
            yield from self._talks(state, place)
            yield from self._acts(state, place)
        yield from self._environment(state)

    def _talks(self, state: State, place: int) -> Iterator[Step]:
        """Reading, then writing if it is unchanged, is one step: what comes between the two makes the write fail."""
        member, name = state.members[place], self.names[place]
        want = self._want(state, place)
        if want is None:
            return
        yield from self._writes(state, place, want, state.document, stale=False)
        if state.faults == self.faults:
            return
        if state.previous != state.document:
            yield from self._writes(_faulty(state), place, want, state.previous, stale=True)
        after = self._answer(state.document, place, member.event, want)
        if after != state.document:
            unsure = _with(_faulty(state), place, member._replace(fence=True))
            yield Step(f"{name} writes, unanswered: {want}", _written(unsure, after), True)
            late = unsure._replace(delayed=(*unsure.delayed, (after, True)))
            yield Step(f"{name} writes, and that is under way: {want}", late, True)

    def _writes(self, state: State, place: int, want: str, base: bytes, stale: bool) -> Iterator[Step]:
        member, name = state.members[place], self.names[place]
        after = self._answer(base, place, member.event, want)
        said = f"{name}{', out of date,' if stale else ''} "
        sure = want == RELEASE or member.fence  # what it read may be out of date, or about to be
        if after == base and not (sure and self.rules.fences):
            yield Step(
                f"{said}has nothing to write: {want}", _with(state, place, self._told(member, place, base, want)), stale
            )
        elif not stale or not self.rules.checks_version:
            told = self._told(member._replace(fence=False), place, after, want)
            yield Step(f"{said}writes: {want}", _with(_written(state, after), place, told), stale)

    def _told(self, member: Member, place: int, document: bytes, want: str) -> Member:
        if want == RELEASE:
            return member._replace(owed=False, granted=False, fence=False)
        return member._replace(granted=self._is_granted(document, place, member.event), owed=True)

    def _acts(self, state: State, place: int) -> Iterator[Step]:
        member, name = state.members[place], self.names[place]
        event = member.event
        listed = state.events[event] == LISTED and not member.sees_gone
        if listed and not member.prepared:
            if member.granted or not self.rules.waits_for_grant:
                yield Step(f"{name} prepares", _with(state, place, member._replace(prepared=True, disturbed=2)))
            elif state.near[event]:
                noted = member._replace(prepared=True, disturbed=max(1, member.disturbed))
                yield Step(f"{name} prepares without a slot", _with(state, place, noted))
        may = member.granted or (self.rules.forced_approves and state.near[event])
        if listed and member.prepared and may:  # after a look at the list
            yield Step(f"{name} approves", self._started(state, event, 2))
        if state.events[event] == GONE and not member.sees_gone:
            yield Step(f"{name} sees it gone", _with(state, place, member._replace(sees_gone=True)))
        if member.sees_gone and member.disturbed:
            yield Step(f"{name} recovers", _with(state, place, member._replace(disturbed=0)))
        if state.faults < self.faults:
            gone = member._replace(granted=False, fence=True)
            if self.rules.releases_on_restart and not member.sees_gone:
                freed = semaphore.encode(
                    semaphore.step(_decoded(state.document), name, [Want(str(event), RELEASE, self.of_event[event])])
                )
                yield Step(f"{name} restarts", _with(_faulty(_written(state, freed)), place, gone), True)
            else:
                yield Step(f"{name} restarts", _with(_faulty(state), place, gone), True)

    def _environment(self, state: State) -> Iterator[Step]:
        for event, status in enumerate(state.events):
            if status == LISTED and not state.near[event]:
                yield Step(f"event {event} is near", state._replace(near=_put(state.near, event, True)))
            if status == LISTED and state.near[event]:
                yield Step(f"event {event} starts by itself", self._started(state, event, 1))
            if status == STARTED:
                yield Step(f"event {event} is over", state._replace(events=_put(state.events, event, GONE)))
            if status == LISTED:
                yield Step(f"event {event} is cancelled", state._replace(events=_put(state.events, event, GONE)))
        for number, (after, newest) in enumerate(state.delayed):
            left = state._replace(delayed=state.delayed[:number] + state.delayed[number + 1 :])
            if newest or not self.rules.checks_version:
                yield Step("a late write arrives", _written(left, after))
            else:
                yield Step("a late write is refused", left)

    def _started(self, state: State, event: int, by: int) -> State:
        members = tuple(
            each._replace(disturbed=max(each.disturbed, by)) if each.event == event else each for each in state.members
        )
        return state._replace(events=_put(state.events, event, STARTED), members=members)

    # The promises

    def broken(self, state: Hashable) -> str | None:
        """Return whether more VMs are disturbed by our hand than may be."""
        assert isinstance(state, State)
        ours = {self.names[place] for place, member in enumerate(state.members) if member.disturbed == 2}
        if len(ours) > self.at_most:
            return f"{', '.join(sorted(ours))} are disturbed by us, and only {self.at_most} may be"
        return None

    def settled(self, state: Hashable) -> bool:
        """Return whether all is over: nobody is disturbed, and every slot is free."""
        assert isinstance(state, State)
        free = not _decoded(state.document).slots and not _decoded(state.document).waiting
        idle = all(member.sees_gone and not member.owed and not member.disturbed for member in state.members)
        return free and idle and not state.delayed


@lru_cache(None)
def _decoded(document: bytes) -> Semaphore:
    return semaphore.decode(document)


def _with(state: State, place: int, member: Member) -> State:
    return state._replace(members=_put(state.members, place, member))


def _put(values: tuple, place: int, value: object) -> tuple:  # type: ignore[type-arg]  # of any one type
    return (*values[:place], value, *values[place + 1 :])


def _faulty(state: State) -> State:
    return state._replace(faults=state.faults + 1)


def _written(state: State, document: bytes) -> State:
    """Return the state after a write: what is still under way is refused when it arrives."""
    delayed = tuple((after, False) for after, _newest in state.delayed)
    return state._replace(document=document, previous=state.document, delayed=delayed)
