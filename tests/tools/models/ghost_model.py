# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A model of VMs that wait for a slot behind others that are no longer there, for ``model_checker``.

The protocol and the queue are the real ones (``runner.groups``). A *ghost* may be deleted at any moment: it leaves its
slot, or its place in the queue, in the semaphore. A *sleeper* is a VM whose runner may stop while it waits, and may
start again. Others pass over a waiter that does not take what is free; they free the slots of an event that they have
not seen listed for a while, and a person frees those of a ghost.

There is no time. A waiter may be passed over as soon as there is room for it, however quick it is: more than can really
happen. An event counts as gone for a while only when each VM that exists has had the time to say that it recovers:
that is what the while is for. ``Rules.in_time`` shows what happens if it has not.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from functools import lru_cache
from typing import Any, Callable, NamedTuple

from forewarn.runner.groups import semaphore
from forewarn.runner.groups.semaphore import FORCE, HELD, RECOVER, RECOVERING, RELEASE, TAKE, Semaphore, Want
from forewarn.runner.groups.stale_events import PASSED_OVER_SECONDS, QueueWatch

from .group_model_vm import AZURE, LISTED, OURS, OVER, STARTED, encoded_slots, slot_names
from .model_checker import Step

RUNS, SLEEPS, DELETED = "runs", "sleeps", "deleted"
Freed = Callable[..., Semaphore]


class Member(NamedTuple):
    """A VM and its event. ``passed_over`` and ``orphans`` are events that it has observed for long enough."""

    event: int
    how: str = RUNS
    prepared: bool = False
    granted: bool = False
    disturbed: int = 0
    owed: bool = True
    sees_gone: bool = False
    unsure: bool = False
    passed_over: frozenset[str] = frozenset()
    orphans: frozenset[str] = frozenset()


class State(NamedTuple):
    """``slots`` is the semaphore, with what it was before its last change."""

    slots: bytes
    before: bytes
    members: tuple[Member, ...]
    status: tuple[str, ...]
    near: tuple[bool, ...]
    faults: int = 0
    wrong: str = ""


class Rules(NamedTuple):
    """What VMs and people do, so that a test can break it."""

    take: Callable[..., Semaphore] = semaphore.step
    freed: Freed = semaphore.force_release
    passes_over: bool = True
    frees_orphans: bool = True
    in_time: bool = True  # an event is gone for long enough that each VM that exists could say that it recovers
    gone_means_gone: bool = True  # only an event that has left the list counts as gone
    person_looks: bool = True  # whether the VM is gone


REAL = Rules()


class GhostModel:
    """``events`` are the VMs that each event names. A ``patient`` model has no NotBefore: all have to be approved.

    ``person``: somebody may free a ghost's slots at any time. If it has said that it recovers, nobody else can.
    """

    def __init__(
        self,
        events: tuple[str, ...],
        at_most: int,
        ghost: str,
        sleeper: str = "",
        faults: int = 0,
        rules: Rules = REAL,
        *,
        patient: bool = True,
        person: bool = False,
    ) -> None:
        self.events, self.at_most, self.faults, self.rules = events, at_most, faults, rules
        self.ghost, self.sleeper, self.patient, self.person = ghost, sleeper, patient, person
        self.names = tuple("".join(events))
        self._after = lru_cache(None)(self._compute)

    def initial(self) -> State:
        """Return the state in which all events are listed."""
        empty = encoded_slots(Semaphore())
        members = tuple(Member(event) for event, names in enumerate(self.events) for _name in names)
        return State(empty, empty, members, (LISTED,) * len(self.events), (False,) * len(self.events))

    # What may happen

    def steps(self, state: Hashable) -> Iterator[Step]:
        """Return what may happen."""
        assert isinstance(state, State)
        for place, name in enumerate(self.names):
            member = state.members[place]
            if member.how == RUNS:
                yield from self._asks(state, place)
                yield from self._acts(state, place)
                yield from self._observes(state, place)
            elif member.how == SLEEPS:
                awake = member._replace(how=RUNS, granted=False, unsure=True, passed_over=frozenset())
                yield Step(f"the runner of {name} starts again", _with(state, place, awake), True)
            yield from self._vanishes(state, place)
        yield from self._changes(state)

    def _want(self, state: State, place: int) -> str | None:
        member = state.members[place]
        if member.sees_gone:
            # Another VM that saw the event for longer may have taken a slot for this one again.
            owes = member.owed or self.names[place] in slot_names(_decoded(state.slots), member.event)
            return (RECOVER if member.disturbed else RELEASE) if owes else None
        if state.status[member.event] != LISTED:
            return FORCE if member.prepared else None
        return FORCE if member.prepared or state.near[member.event] else TAKE

    def _compute(self, document: bytes, place: int, state: str, passed_over: Any, orphans: Any) -> bytes:
        event = self.of(place)
        want = Want(str(event), state, tuple(self.events[event]), self.at_most, float(event))
        return encoded_slots(
            self.rules.take(_decoded(document), self.names[place], [want], passed_over=passed_over, orphans=orphans)
        )

    def of(self, place: int) -> int:
        """Return the event of a VM."""
        return next(event for event, names in enumerate(self.events) if self.names[place] in names)

    def _asks(self, state: State, place: int) -> Iterator[Step]:
        want, member, name = self._want(state, place), state.members[place], self.names[place]
        if want is None:
            return
        after = self._after(state.slots, place, want, member.passed_over, member.orphans)
        sure = member.unsure or want == RELEASE
        if after != state.slots or sure:
            yield Step(f"{name} writes: {want}", _with(_written(state, after), place, self._told(member, want, after)))
        else:
            told = self._told(member, want, after)._replace(unsure=member.unsure)
            yield Step(f"{name} reads: {want}", _with(state, place, told))
        if state.faults == self.faults:
            return
        old = self._after(state.before, place, want, member.passed_over, member.orphans)
        if old == state.before != state.slots and not sure:
            yield Step(f"{name} reads what was", _with(_faulty(state), place, self._told(member, want, old)), True)
        if after != state.slots:
            unsure = _with(_faulty(state), place, member._replace(unsure=True, granted=False))
            yield Step(f"{name} writes, unanswered: {want}", _written(unsure, after), True)

    def _told(self, member: Member, want: str, document: bytes) -> Member:
        if want == RELEASE:
            return member._replace(owed=False, granted=False, unsure=False, passed_over=frozenset())
        slots, event = _decoded(document), member.event
        slot = slots.slots.get(str(event))
        granted = slot is not None and slot.granted and set(self.events[event]) <= set(slot.names)
        passed_over = self._looked(member, slots, 0) if want == TAKE else frozenset()
        return member._replace(granted=granted and want != RECOVER, unsure=False, passed_over=passed_over)

    def _looked(self, member: Member, slots: Semaphore, times: int) -> frozenset[str]:
        """Return who is passed over after this look at the queue, and more ``times``, each a second later."""
        queue = QueueWatch()
        queue._free_for = dict.fromkeys(member.passed_over, PASSED_OVER_SECONDS)
        for second in range(1 + times):
            queue.update(slots, float(second), self.at_most, [str(member.event)])
        return queue.passed_over

    def _observes(self, state: State, place: int) -> Iterator[Step]:
        member, name = state.members[place], self.names[place]
        if self.rules.passes_over and self._want(state, place) == TAKE and not member.granted:
            passed = self._looked(member, _decoded(state.slots), int(PASSED_OVER_SECONDS))
            if not passed <= member.passed_over:
                what = f"{name} has waited long enough for {', '.join(sorted(passed - member.passed_over))}"
                yield Step(what, _with(state, place, member._replace(passed_over=passed)))
        for event, status in enumerate(state.status):
            gone = status == OVER or not self.rules.gone_means_gone
            if gone and event != member.event and str(event) not in member.orphans and self.rules.frees_orphans:
                slot = _decoded(state.slots).slots.get(str(event))
                held = set() if slot is None else {each for each, what in slot.names.items() if what == HELD}
                exist = {each for each, other in zip(self.names, state.members) if other.how != DELETED}
                if member.sees_gone or (self.rules.in_time and held & exist):
                    continue
                seen = member._replace(orphans=member.orphans | {str(event)})
                yield Step(f"{name} has not seen event {event} for a while", _with(state, place, seen))

    def _acts(self, state: State, place: int) -> Iterator[Step]:
        member, name, event = state.members[place], self.names[place], self.of(place)
        listed = state.status[event] == LISTED and not member.sees_gone
        if listed and not member.prepared:
            if member.granted:
                yield Step(f"{name} prepares", _with(state, place, member._replace(prepared=True, disturbed=OURS)))
            elif state.near[event]:
                alone = member._replace(prepared=True, disturbed=AZURE)
                yield Step(f"{name} prepares without a slot", _with(state, place, alone))
        if listed and member.prepared and member.granted:
            yield Step(f"{name} approves", self._started(state, event, OURS))
        if state.status[event] == OVER and not member.sees_gone:
            seen = member._replace(sees_gone=True, granted=False, prepared=False, passed_over=frozenset())
            yield Step(f"{name} sees it gone", _with(state, place, seen._replace(orphans=frozenset())))
        if member.sees_gone and member.disturbed:
            yield Step(f"{name} recovers", _with(state, place, member._replace(disturbed=0)))
        if state.faults < self.faults:
            restarted = member._replace(granted=False, unsure=True, passed_over=frozenset(), orphans=frozenset())
            yield Step(f"{name} restarts", _with(_faulty(state), place, restarted), True)

    def _vanishes(self, state: State, place: int) -> Iterator[Step]:
        member, name = state.members[place], self.names[place]
        if name in self.ghost and member.how == RUNS:
            left = Member(member.event, DELETED)
            yield Step(f"{name} is deleted", _with(state, place, left), True)
        if name in self.sleeper and member.how == RUNS:
            waits = str(member.event) in _decoded(state.slots).waiting and not member.disturbed and not member.granted
            if waits and state.status[member.event] == LISTED:
                yield Step(f"the runner of {name} stops", _with(state, place, member._replace(how=SLEEPS)), True)
        if name in self.ghost and (member.how == DELETED or not self.rules.person_looks):
            slots = _decoded(state.slots)
            slot = slots.slots.get(str(member.event))
            needed = slot is not None and slot.names.get(name) == RECOVERING
            freed = self.rules.freed(slots, name, "a person", "it is gone", "")
            if freed != slots and (needed or self.person):
                freely = _written(state, encoded_slots(freed))
                yield Step(f"a person frees the slots of {name}", freely, not needed)

    def _changes(self, state: State) -> Iterator[Step]:
        for event, status in enumerate(state.status):
            left = all(self.events[event].find(name) < 0 or member.how == DELETED for name, member in self._all(state))
            over = state._replace(status=_put(state.status, event, OVER), near=_put(state.near, event, False))
            if status == STARTED or (status == LISTED and (left or not self.patient)):
                yield Step(f"event {event} is over", over)
            if status == LISTED and not self.patient and not state.near[event]:
                yield Step(f"event {event} is near", state._replace(near=_put(state.near, event, True)))
            if status == LISTED and state.near[event]:
                yield Step(f"event {event} starts by itself", self._started(state, event, AZURE))

    def _all(self, state: State) -> Iterator[tuple[str, Member]]:
        return zip(self.names, state.members)

    def _started(self, state: State, event: int, by: int) -> State:
        members = tuple(
            each._replace(disturbed=max(each.disturbed, by), granted=False, passed_over=frozenset())
            if each.event == event and each.how != DELETED
            else each
            for each in state.members
        )
        near = _put(state.near, event, False)
        return state._replace(status=_put(state.status, event, STARTED), near=near, members=members)

    # The promises

    def broken(self, state: Hashable) -> str | None:
        """Return which promise does not hold."""
        assert isinstance(state, State)
        slots = _decoded(state.slots)
        ours = [(name, member) for name, member in self._all(state) if member.disturbed == OURS]
        if len(ours) > self.at_most:
            return f"{', '.join(name for name, _member in ours)} are disturbed by us, and only {self.at_most} may be"
        lost = [name for name, member in ours if name not in slot_names(slots, member.event)]
        return f"{', '.join(lost)} has lost its slot, and is still disturbed" if lost else None

    def settled(self, state: Hashable) -> bool:
        """Return whether all VMs that exist are done, and hold nothing. What a ghost has left is freed on demand."""
        assert isinstance(state, State)
        slots = _decoded(state.slots)
        for name, member in self._all(state):
            if member.how == DELETED:
                continue
            if member.how == SLEEPS:
                if member.disturbed == OURS or name in slot_names(slots, member.event):
                    return False
                continue
            held = name in slot_names(slots, member.event) or str(member.event) in slots.waiting
            if not member.sees_gone or member.owed or member.disturbed or held:
                return False
        return True


@lru_cache(None)
def _decoded(document: bytes) -> Semaphore:
    return semaphore.decode(document)


def _with(state: State, place: int, member: Member) -> State:
    return state._replace(members=_put(state.members, place, member))


def _put(values: tuple[Any, ...], place: int, value: Any) -> tuple[Any, ...]:
    return (*values[:place], value, *values[place + 1 :])


def _faulty(state: State) -> State:
    return state._replace(faults=state.faults + 1)


def _written(state: State, document: bytes) -> State:
    return state if document == state.slots else state._replace(slots=document, before=state.slots)
