# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What one VM of ``group_model`` does: it asks for slots, says how it is, prepares, approves and recovers.

The protocol is the real one (``runner.groups``); the rules of the runner's side of it are written down here once more,
each so that a test can break it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Callable, NamedTuple

from forewarn.runner.groups import barrier, semaphore
from forewarn.runner.groups.barrier import PREPARING, READY, Barrier, Statement
from forewarn.runner.groups.semaphore import FORCE, RECOVER, RELEASE, TAKE, Semaphore, Want

LISTED, STARTED, OVER = "listed", "started", "over"
CONTENTS = ("first", "second")  # between which the service may change an event
GONE = 2  # what a VM sees of an event that has left its list
AZURE, OURS = 1, 2  # by whom a VM is disturbed


class Env(NamedTuple):
    """The events as the service has them. ``content`` is that of the first: no other changes."""

    status: tuple[str, ...]
    near: tuple[bool, ...]
    content: int = 0

    def seen(self, event: int) -> int:
        """Return what a VM sees that looks at the list now."""
        if self.status[event] == OVER:
            return GONE
        return self.content if event == 0 else 0


class Part(NamedTuple):
    """A VM and one event that names it.

    ``sees`` is the content that it knows, or GONE. ``prepared`` is the content that it has prepared for, or -1.
    ``granted`` and ``closed``, for which content or -1, are what it has read; a crash forgets them. ``owed``: it has to
    give back its slot, ``said``: it has to take back its statement. ``unsure``: what it said last may not have arrived,
    or may still arrive. ``ready``: the store may have from it that it is ready.
    """

    event: int
    sees: int = 0
    prepared: int = -1
    disturbed: int = 0
    granted: bool = False
    closed: int = -1
    owed: bool = True
    said: bool = False
    unsure: bool = False
    ready: bool = False


class Vm(NamedTuple):
    """``unsure``: what it wrote last into the semaphore may not have arrived, or may still arrive.

    A ``dead`` one does nothing any more.
    """

    parts: tuple[Part, ...]
    unsure: bool = False
    dead: bool = False

    def with_part(self, number: int, part: Part) -> Vm:
        """Return the VM with another of its parts."""
        return self._replace(parts=(*self.parts[:number], part, *self.parts[number + 1 :]))

    @property
    def disturbed(self) -> int:
        """By whom it is disturbed, 0 if by nobody."""
        return max(part.disturbed for part in self.parts)


class Rules(NamedTuple):
    """What a VM does, so that a test can break it."""

    take: Callable[..., Semaphore] = semaphore.step
    tell: Callable[..., Barrier] = barrier.step
    checks_version: bool = True
    notes_before: bool = True  # that it may hold a slot, before it asks for one
    waits_for_slot: bool = True  # before it prepares
    waits_for_closed: bool = True  # before it approves
    this_content: bool = True  # only a barrier that is closed for the event as it is counts
    ready_when_prepared: bool = True
    ready_again: bool = True  # it says so only once it has prepared for a changed event again
    takes_back_first: bool = True  # that it is ready, before it prepares again
    takes_all: bool = True  # the slots of all VMs of an event
    forced_holds: bool = True  # who has prepared without a slot does not approve
    recovers_first: bool = True  # before it gives back its slot
    keeps_on_restart: bool = True
    stays_prepared: bool = True
    fences: bool = True  # a slot is free, and a doubt ends, only with a write that the store has acknowledged
    refuses_impossible: bool = True  # an event that needs more slots than there are


REAL = Rules()


class Group(NamedTuple):
    """``events`` are the VMs that each event names. ``easy`` have nothing to prepare. ``late``: lists come late."""

    events: tuple[str, ...]
    at_most: int
    easy: str = ""
    late: bool = False
    rules: Rules = REAL

    def impossible(self, event: int) -> bool:
        """Return whether an event needs more slots than there are."""
        return len(self.events[event]) > self.at_most

    def current(self, part: Part, env: Env) -> bool:
        """Return whether the VM acts on the event as one that is listed."""
        return part.sees != GONE and (self.late or env.status[part.event] == LISTED)


class Talk(NamedTuple):
    """A look at a document: what is ``written``, if anything, how the VM is after the answer, and without one."""

    name: str
    writes: bool
    written: bytes | None
    after: Vm
    unanswered: Vm


class Act(NamedTuple):
    """What a VM does by itself. ``approves`` is an event, -1 for none."""

    name: str
    after: Vm
    approves: int = -1


def slot_wants(group: Group, vm: Vm, env: Env) -> list[tuple[int, str]]:
    """Return what the VM wants of the semaphore, by the number of its part."""
    wants = []
    for number, part in enumerate(vm.parts):
        status = env.status[part.event]
        if part.sees == GONE:
            if part.owed:
                done = not part.disturbed or not group.rules.recovers_first
                wants.append((number, RELEASE if done else RECOVER))
        elif part.prepared >= 0:
            if status != OVER or group.late:
                wants.append((number, FORCE))
        elif group.current(part, env) and not (group.rules.refuses_impossible and group.impossible(part.event)):
            wants.append((number, FORCE if env.near[part.event] else TAKE))
    return wants


def left_over(group: Group, vm: Vm, env: Env, name: str, document: Semaphore) -> list[int]:
    """Return the parts that are done, and for which others have taken a slot since: they saw the event for longer."""
    return [
        number
        for number, part in enumerate(vm.parts)
        if group.late and part.sees == GONE and not part.owed and name in slot_names(document, part.event)
    ]


def talks_of_slots(group: Group, name: str, vm: Vm, env: Env, document: Semaphore) -> Talk | None:
    """Return what comes of a look at the semaphore, None if the VM wants nothing of it."""
    wanted = slot_wants(group, vm, env)
    wanted += [(number, RELEASE) for number in left_over(group, vm, env, name, document)]
    if not wanted:
        return None
    wants = []
    for number, state in wanted:
        event = vm.parts[number].event
        names = tuple(group.events[event]) if group.rules.takes_all else (name,)
        at_most = group.at_most if group.rules.refuses_impossible else max(group.at_most, len(names))
        wants.append(Want(str(event), state, names, at_most, float(event)))
    after = group.rules.take(document, name, wants)
    what = f"{name} asks for slots: {', '.join(f'{want.state} {want.key}' for want in wants)}"
    sure = group.rules.fences and (vm.unsure or any(want.state == RELEASE for want in wants))
    parts = list(vm.parts)
    for number, part in enumerate(parts):
        granted = group.current(part, env) and _granted(group, after, part, name)
        parts[number] = part._replace(granted=granted)
    for number, state in wanted:
        parts[number] = parts[number]._replace(owed=state != RELEASE)
    doubtful = vm._replace(parts=tuple(part._replace(granted=False) for part in vm.parts), unsure=True)
    return Talk(what, sure or after != document, encoded_slots(after), Vm(tuple(parts)), doubtful)


def talks_of_itself(group: Group, name: str, vm: Vm, number: int, env: Env, document: Barrier) -> Talk | None:
    """Return what comes of a look at a barrier, None if the VM has nothing to say there."""
    part = vm.parts[number]
    own = None
    if part.sees != GONE:
        if env.status[part.event] != LISTED:
            return None
        own = Statement(CONTENTS[part.sees], READY if _ready(group, name, part) else PREPARING)
    elif not part.said:
        return None
    after = group.rules.tell(document, name, own, tuple(group.events[part.event]))
    closed = -1 if after.closed is None or own is None else CONTENTS.index(after.closed.content)
    readies = own is not None and own.state == READY
    ready = name in after.members and after.members[name].state == READY
    told = vm.with_part(number, part._replace(closed=closed, said=own is not None, unsure=False, ready=ready))
    doubtful = vm.with_part(number, part._replace(said=True, unsure=True, ready=part.ready or readies))
    # Where there is nothing, and nothing is to be, there is nothing to replace.
    sure = part.unsure or (part.ready and not readies and after.members.get(name) == own)
    writes = after != document or (sure and group.rules.fences and bool(document.members))
    what = f"{name} says of {part.event}: {'nothing more' if own is None else f'{own.state} for {own.content}'}"
    return Talk(what, writes, encoded_barrier(after), told, doubtful)


def acts(group: Group, name: str, vm: Vm, env: Env) -> Iterator[Act]:
    """Return what a VM may do without the store."""
    rules = group.rules
    for number, part in enumerate(vm.parts):
        event = part.event
        sees = env.seen(event)
        if part.sees != sees and (sees == GONE or env.status[event] == LISTED):
            seen = part._replace(sees=sees)
            if sees == GONE:
                seen = seen._replace(prepared=-1, granted=False, closed=-1, ready=False)
            yield Act(f"{name} sees event {event} {'gone' if sees == GONE else 'changed'}", vm.with_part(number, seen))
        if part.sees == GONE:
            if part.disturbed:
                yield Act(f"{name} recovers from {event}", vm.with_part(number, part._replace(disturbed=0)))
            continue
        if not group.current(part, env):
            continue
        stays = part.ready and rules.takes_back_first and not env.near[event]
        if part.prepared != part.sees and name not in group.easy and not stays:
            yield from _prepares(group, name, vm, number, env)
        if _ready(group, name, part) and env.status[event] == LISTED and _may_approve(group, vm, part, env):
            yield Act(f"{name} approves {event}", vm, event)
        if not rules.stays_prepared and part.prepared >= 0:
            yield Act(f"{name} undoes its preparation", vm.with_part(number, part._replace(prepared=-1)))


def _prepares(group: Group, name: str, vm: Vm, number: int, env: Env) -> Iterator[Act]:
    part = vm.parts[number]
    granted = (part.granted and not vm.unsure) or not group.rules.waits_for_slot
    prepared = part._replace(prepared=part.sees)
    if granted:
        yield Act(f"{name} prepares for {part.event}", vm.with_part(number, prepared._replace(disturbed=OURS)))
    elif part.prepared >= 0 or env.near[part.event]:  # it has begun, or waiting would make it late
        alone = prepared._replace(disturbed=max(AZURE, part.disturbed))
        yield Act(f"{name} prepares for {part.event} without a slot", vm.with_part(number, alone))


def _ready(group: Group, name: str, part: Part) -> bool:
    if name in group.easy or not group.rules.ready_when_prepared:
        return True
    return part.prepared == part.sees or (part.prepared >= 0 and not group.rules.ready_again)


def _may_approve(group: Group, vm: Vm, part: Part, env: Env) -> bool:
    rules = group.rules
    forced = not rules.forced_holds and env.near[part.event]
    if not (forced or (part.granted and not vm.unsure)):
        return False
    if len(group.events[part.event]) == 1 or not rules.waits_for_closed:
        return True
    # By whom it was closed decides only who approves first: the others take over, and may do so at any time here.
    return part.closed == part.sees or (part.closed >= 0 and not rules.this_content)


def _granted(group: Group, document: Semaphore, part: Part, name: str) -> bool:
    if group.rules.refuses_impossible and group.impossible(part.event):
        return False
    slot = document.slots.get(str(part.event))
    needed = group.events[part.event] if group.rules.takes_all else name
    return slot is not None and slot.granted and set(needed) <= set(slot.names)


def slot_names(document: Semaphore, event: int) -> set[str]:
    """Return the VMs that have a slot for an event."""
    slot = document.slots.get(str(event))
    return set() if slot is None else set(slot.names)


def encoded_slots(document: Semaphore) -> bytes:
    """Return one text for all documents that differ only in the order of names, or in what was freed by others."""
    slots = {key: slot._replace(names=dict(sorted(slot.names.items()))) for key, slot in document.slots.items()}
    return semaphore.encode(document._replace(slots=slots, releases=()))


def encoded_barrier(document: Barrier) -> bytes | None:
    """Return one text for all documents that differ only in who has closed it: no rule reads that in the document."""
    closed = None if document.closed is None else document.closed._replace(by="")
    return barrier.encode(document._replace(closed=closed), "event")
