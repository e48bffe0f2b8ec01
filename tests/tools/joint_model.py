# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A model of VMs with both documents: an event of two, which both have to prepare for, and one of a third.

The limit lets only one of the events disturb its VMs. The protocol is the real one (``barrier`` and ``semaphore``);
what a VM does with it, the store, and the events are modelled here.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from functools import lru_cache
from typing import Callable, NamedTuple

from forewarn.runner.groups import barrier, semaphore
from forewarn.runner.groups.barrier import PREPARING, READY, Barrier, Statement
from forewarn.runner.groups.semaphore import FORCE, RECOVER, RELEASE, TAKE, Semaphore, Want

from .model_checker import Step

LISTED, STARTED, GONE = "listed", "started", "gone"
EVENTS = (("a", "b"), ("c",))  # the VMs that each names
AT_MOST = 2
CONTENTS = ("first", "second")


class Member(NamedTuple):
    """A VM. ``prepared`` is the content it has prepared for, or -1. ``disturbed``: 1 by Azure alone, 2 by our hand.

    A crash forgets what it has read: ``granted``, and ``closed``, who approves which content. ``fence``: what it wrote
    last into the semaphore may have been applied, or still be. ``owed``: it has to give back its slot, ``said``: it has
    to take back its statement.
    """

    prepared: int = -1
    granted: bool = False
    closed: tuple[str, str] | None = None
    fence: bool = False
    owed: bool = True
    said: bool = True
    sees_gone: bool = False
    disturbed: int = 0


class State(NamedTuple):
    """``slots`` and ``said`` are the documents, with what they were before. ``delayed`` is a late write, if any."""

    slots: bytes
    slots_before: bytes
    said: bytes | None
    said_before: bytes | None
    members: tuple[Member, ...]
    events: tuple[str, ...]
    near: tuple[bool, ...]
    content: int = 0
    delayed: tuple[str, bytes | None, bool] | None = None
    faults: int = 0
    wrong: str = ""


class Rules(NamedTuple):
    """What a VM does, so that a test can break it."""

    step: Callable[..., Semaphore] = semaphore.step
    tell: Callable[..., Barrier] = barrier.step
    checks_version: bool = True
    waits_for_slot: bool = True
    waits_for_closed: bool = True
    any_content: bool = False  # a barrier that is closed for another content counts
    ready_early: bool = False
    own_slot_only: bool = False
    forced_approves: bool = False
    releases_when_gone: bool = False  # before it has recovered
    undoes: bool = False  # its preparation, while the event is listed


REAL = Rules()


class JointModel:
    """``faults`` is how many may happen in one run. ``silent``: a VM on which nothing runs. ``events``: how many."""

    def __init__(self, faults: int, rules: Rules = REAL, silent: str = "", events: int = 2) -> None:
        self.faults = faults
        self.names = tuple(name for names in EVENTS[:events] for name in names)
        self.of = tuple(event for event, names in enumerate(EVENTS[:events]) for _name in names)
        self.rules = rules
        self.silent = silent
        self._slots_after = lru_cache(None)(self._compute_slots)
        self._said_after = lru_cache(None)(self._compute_said)

    def initial(self) -> State:
        """Return the state in which both events are listed."""
        empty = semaphore.encoded(Semaphore())
        members = tuple(
            Member(said=self.of[place] == 0 and name != self.silent, owed=name != self.silent)
            for place, name in enumerate(self.names)
        )
        quiet = (LISTED,) * len(set(self.of))
        return State(empty, empty, None, None, members, quiet, (False,) * len(quiet))

    # The protocol

    def _compute_slots(self, document: bytes, place: int, state: str) -> bytes:
        event, name = self.of[place], self.names[place]
        names = (name,) if self.rules.own_slot_only else EVENTS[event]
        want = Want(str(event), state, names, AT_MOST, float(event))
        return semaphore.encoded(self.rules.step(_slots(document), name, [want]))

    def _compute_said(self, document: bytes | None, place: int, own: Statement | None) -> bytes | None:
        return barrier.encoded(self.rules.tell(_said(document), self.names[place], own, EVENTS[0]), "0")

    def _want(self, state: State, place: int) -> str | None:
        member = state.members[place]
        if member.sees_gone:
            done = not member.disturbed or self.rules.releases_when_gone
            return (RELEASE if done else RECOVER) if member.owed else None
        if member.granted or state.events[self.of[place]] != LISTED:
            return None
        return FORCE if member.prepared >= 0 else TAKE

    def _statement(self, state: State, place: int) -> Statement | None:
        member = state.members[place]
        if member.sees_gone:
            return None
        ready = member.prepared == state.content or self.rules.ready_early
        return Statement(CONTENTS[state.content], READY if ready else PREPARING)

    # What may happen

    def steps(self, state: Hashable) -> Iterator[Step]:
        """Return what may happen."""
        assert isinstance(state, State)
        for name, after, fault in self._steps(state):
            assert isinstance(after, State)
            yield Step(name, self._without_what_no_longer_matters(after), fault)

    def _without_what_no_longer_matters(self, state: State) -> State:
        """Return one state for all that differ in what nobody will look at again."""
        members = tuple(
            member if state.events[self.of[place]] == LISTED else member._replace(granted=False, closed=None)
            for place, member in enumerate(state.members)
        )
        near = tuple(near and status == LISTED for near, status in zip(state.near, state.events))
        state = state._replace(members=members, near=near)
        if state.faults == self.faults:  # nobody will read anything stale
            state = state._replace(slots_before=state.slots, said_before=state.said)
        return state

    def _steps(self, state: State) -> Iterator[Step]:
        for place, name in enumerate(self.names):
            if name == self.silent:
                continue
            yield from self._asks_for_slots(state, place)
            if self.of[place] == 0:
                yield from self._tells(state, place)
            yield from self._acts(state, place)
        yield from self._environment(state)

    def _asks_for_slots(self, state: State, place: int) -> Iterator[Step]:
        want, member, name = self._want(state, place), state.members[place], self.names[place]
        if want is None:
            return

        def told(document: bytes) -> Member:
            if want == RELEASE:
                return member._replace(owed=False, granted=False, fence=False)
            slot = _slots(document).slots.get(str(self.of[place]))
            names = (name,) if self.rules.own_slot_only else EVENTS[self.of[place]]
            granted = slot is not None and slot.granted and set(names) <= set(slot.names)
            return member._replace(granted=granted, fence=False)

        sure = want == RELEASE or member.fence
        for base, stale in ((state.slots, False), (state.slots_before, True)):
            if stale and (state.faults == self.faults or base == state.slots):
                continue
            after = self._slots_after(base, place, want)
            before = _faulty(state) if stale else state
            if after == base and not sure:
                yield Step(
                    f"{name} reads: {want}", _with(before, place, told(base)._replace(fence=member.fence)), stale
                )
            elif not stale or not self.rules.checks_version:
                yield Step(f"{name} writes: {want}", _with(_slots_written(before, after), place, told(after)), stale)
        after = self._slots_after(state.slots, place, want)
        if state.faults < self.faults and after != state.slots:
            unsure = _with(_faulty(state), place, member._replace(fence=True))
            yield Step(f"{name} writes unanswered: {want}", _slots_written(unsure, after), True)
            yield Step(f"{name} writes late: {want}", unsure._replace(delayed=("slots", after, True)), True)

    def _tells(self, state: State, place: int) -> Iterator[Step]:
        member, name, own = state.members[place], self.names[place], self._statement(state, place)
        if own is None and not member.said:
            return

        def told(document: bytes | None) -> Member:
            closed = _said(document).closed
            return member._replace(closed=None if closed is None else (closed.content, closed.by), said=own is not None)

        for base, stale in ((state.said, False), (state.said_before, True)):
            if stale and (state.faults == self.faults or base == state.said):
                continue
            after = self._said_after(base, place, own)
            before = _faulty(state) if stale else state
            if after == base:
                yield Step(f"{name} reads what others say", _with(before, place, told(base)), stale)
            elif not stale or not self.rules.checks_version:
                yield Step(f"{name} says how it is", _with(_said_written(before, after), place, told(after)), stale)
        after = self._said_after(state.said, place, own)
        if state.faults < self.faults and after != state.said:
            yield Step(f"{name} says so unanswered", _said_written(_faulty(state), after), True)
            yield Step(f"{name} says so late", _faulty(state)._replace(delayed=("said", after, True)), True)

    def _acts(self, state: State, place: int) -> Iterator[Step]:
        member, name, event = state.members[place], self.names[place], self.of[place]
        content = state.content if event == 0 else 0
        listed = state.events[event] == LISTED and not member.sees_gone
        if listed and member.prepared != content:
            begun = member.prepared >= 0
            if member.granted or begun or not self.rules.waits_for_slot:
                how = 2 if member.granted or not begun else member.disturbed
                noted = member._replace(prepared=content, disturbed=max(member.disturbed, how))
                yield Step(f"{name} prepares", _with(state, place, noted))
            elif state.near[event]:
                noted = member._replace(prepared=content, disturbed=max(1, member.disturbed))
                yield Step(f"{name} prepares without a slot", _with(state, place, noted))
        if listed and member.prepared == content and self._may_approve(state, place):
            yield Step(f"{name} approves", self._approved(state, event))
        if state.events[event] == GONE and not member.sees_gone:
            yield Step(f"{name} sees it gone", _with(state, place, member._replace(sees_gone=True)))
        if member.sees_gone and member.disturbed:
            yield Step(f"{name} recovers", _with(state, place, member._replace(disturbed=0, prepared=-1)))
        if self.rules.undoes and listed and member.prepared >= 0:
            yield Step(f"{name} undoes it", _with(state, place, member._replace(prepared=-1)))
        if state.faults < self.faults:
            yield self._restarts(state, place)

    def _may_approve(self, state: State, place: int) -> bool:
        member, event = state.members[place], self.of[place]
        if not (member.granted or (self.rules.forced_approves and state.near[event])):
            return False
        if event == 1 or not self.rules.waits_for_closed:
            return True
        # By whom it was closed decides who approves first; the others take over later.
        return member.closed is not None and (self.rules.any_content or member.closed[0] == CONTENTS[state.content])

    def _approved(self, state: State, event: int) -> State:
        names = [place for place in range(len(self.names)) if self.of[place] == event]
        content = state.content if event == 0 else 0
        unprepared = [self.names[place] for place in names if state.members[place].prepared != content]
        wrong = f"{', '.join(unprepared)} was not prepared" if event == 0 and unprepared else state.wrong
        return self._started(state, event, 2)._replace(wrong=wrong)

    def _restarts(self, state: State, place: int) -> Step:
        member, name = state.members[place], self.names[place]
        after = _with(_faulty(state), place, member._replace(granted=False, closed=None, fence=True))
        return Step(f"{name} restarts", after, True)

    def _environment(self, state: State) -> Iterator[Step]:
        for event, status in enumerate(state.events):
            if status == LISTED and not state.near[event]:
                yield Step(f"event {event} is near", state._replace(near=_put(state.near, event, True)))
            if status == LISTED and state.near[event]:
                yield Step(f"event {event} starts by itself", self._started(state, event, 1))
            if status in (LISTED, STARTED):
                yield Step(f"event {event} is over", state._replace(events=_put(state.events, event, GONE)))
        if state.content == 0 and state.events[0] == LISTED and state.faults < self.faults:
            yield Step("event 0 changes", _faulty(state)._replace(content=1), True)
        if state.delayed is not None:
            where, after, newest = state.delayed
            left = state._replace(delayed=None)
            if newest or not self.rules.checks_version:
                written = _slots_written(left, after or b"") if where == "slots" else _said_written(left, after)
                yield Step("a late write arrives", written)
            else:
                yield Step("a late write is refused", left)

    def _started(self, state: State, event: int, by: int) -> State:
        members = tuple(
            each._replace(disturbed=max(each.disturbed, by)) if self.of[place] == event else each
            for place, each in enumerate(state.members)
        )
        return state._replace(events=_put(state.events, event, STARTED), members=members)

    # The promises

    def broken(self, state: Hashable) -> str | None:
        """Return which promise does not hold."""
        assert isinstance(state, State)
        if state.wrong:
            return f"an approval was sent, and {state.wrong}"
        ours = [self.names[place] for place, member in enumerate(state.members) if member.disturbed == 2]
        if len(ours) > AT_MOST:
            return f"{', '.join(ours)} are disturbed by us, and only {AT_MOST} may be"
        closed = _said(state.said).closed_for(CONTENTS[state.content])
        if closed is not None and state.events[0] == LISTED:
            for place in (0, 1):
                if state.members[place].prepared != state.content:
                    return f"{self.names[place]} is not prepared, and the barrier is closed"
        slot = _slots(state.slots).slots.get("0")
        if slot is not None and slot.granted and state.events[0] == LISTED and set(slot.names) != {"a", "b"}:
            return "an event has some of its slots, and not all"
        return None

    def settled(self, state: Hashable) -> bool:
        """Return whether all is over, and nothing is left in the store.

        A fault may leave a statement behind: its event is over, and it says nothing about any other.
        """
        assert isinstance(state, State)
        slots = _slots(state.slots)
        held = {name for slot in slots.slots.values() for name in slot.names} - {self.silent}
        idle = all(
            self.names[place] == self.silent
            or (member.sees_gone and not (member.owed or member.said or member.disturbed))
            for place, member in enumerate(state.members)
        )
        clean = state.said is None or state.faults > 0
        return idle and clean and not held and not slots.waiting and state.delayed is None


@lru_cache(None)
def _slots(document: bytes) -> Semaphore:
    return semaphore.decoded(document)


@lru_cache(None)
def _said(document: bytes | None) -> Barrier:
    return barrier.decoded(document)


def _with(state: State, place: int, member: Member) -> State:
    return state._replace(members=_put(state.members, place, member))


def _put(values: tuple, place: int, value: object) -> tuple:  # type: ignore[type-arg]  # of any one type
    return (*values[:place], value, *values[place + 1 :])


def _faulty(state: State) -> State:
    return state._replace(faults=state.faults + 1)


def _slots_written(state: State, document: bytes) -> State:
    return _outdated(state, "slots")._replace(slots=document, slots_before=state.slots)


def _said_written(state: State, document: bytes | None) -> State:
    return _outdated(state, "said")._replace(said=document, said_before=state.said)


def _outdated(state: State, where: str) -> State:
    """Return the state in which a late write to a document is refused when it arrives: somebody has changed it."""
    late = state.delayed
    return state if late is None or late[0] != where else state._replace(delayed=(late[0], late[1], False))
