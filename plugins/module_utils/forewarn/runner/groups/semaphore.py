# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The semaphore of a group: which of its VMs are disturbed, and which wait until they may be.

A VM takes a slot before it prepares, and gives it back after its recovery. An event that names several VMs of the group
takes the slots of all in one step. No slot ends by the time: see docs/groups.md. Pure functions: no sockets, no clocks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import inf
from types import MappingProxyType
from typing import Any, NamedTuple

from .documents import SharedDocumentError, dump, load, member, texts

SCHEMA = "semaphore"
# What a VM wants for one of its events.
TAKE = "take"  # a slot, before anything is done
FORCE = "force"  # to be counted although there may be no slot: NotBefore is near, and the VM prepares
RECOVER = "recover"  # the event has left the list, and the VM recovers
RELEASE = "release"  # it has recovered: the slot is free again
# What a slot says about each VM.
HELD, RECOVERING = "held", "recovering"
MOST_RELEASES = 20  # that are remembered


class Want(NamedTuple):
    """What a VM wants for the event ``key`` (``Event.key``).

    ``names`` are the event's VMs in this group, in lower case; ``at_most`` is how many may be disturbed at once.
    ``not_before`` is in seconds since 1970, None where the service has named none. ``what`` and ``at`` are for people.
    """

    key: str
    state: str
    names: tuple[str, ...] = ()
    at_most: int = 1
    not_before: float | None = None
    what: str = ""
    at: str = ""

    @property
    def place(self) -> tuple[float, str]:
        """The sort key of waiters: the soonest NotBefore is served first."""
        return (inf if self.not_before is None else self.not_before, self.key)


class Slot(NamedTuple):
    """The VMs that an event disturbs: what each of them does, by name. ``granted``: they are within the limit."""

    names: Mapping[str, str]
    granted: bool
    what: str = ""
    since: str = ""


class Waiter(NamedTuple):
    """An event that waits for the slots of its ``names``."""

    names: tuple[str, ...]
    not_before: float | None
    what: str = ""
    since: str = ""

    def place(self, key: str) -> tuple[float, str]:
        """Return the sort key of waiters."""
        return (inf if self.not_before is None else self.not_before, key)


class Release(NamedTuple):
    """A slot that was freed ``by`` somebody else than its VM, and why."""

    name: str
    key: str
    by: str
    why: str
    at: str


class Semaphore(NamedTuple):
    """The document of a group: slots and waiters by ``Event.key``. Only a person creates it: see ``forewarn group``."""

    slots: Mapping[str, Slot] = MappingProxyType({})
    waiting: Mapping[str, Waiter] = MappingProxyType({})
    releases: tuple[Release, ...] = ()

    def disturbed(self, without: str | None = None) -> frozenset[str]:
        """Return the VMs that hold a slot for any event, but for one."""
        return frozenset(name for key, slot in self.slots.items() if key != without for name in slot.names)

    def has_room(self, key: str, names: Iterable[str], at_most: int) -> bool:
        """Return whether the event may disturb these VMs, with all others that are."""
        return len(self.disturbed(key).union(names)) <= at_most

    def ahead(self, place: tuple[float, str], passed_over: Collection[str] = ()) -> list[str]:
        """Return the events that wait and are served first, in order."""
        places = sorted((waiter.place(key), key) for key, waiter in self.waiting.items() if key not in passed_over)
        return [key for theirs, key in places if theirs < place]


def step(
    document: Semaphore,
    me: str,
    wants: Sequence[Want],
    passed_over: Collection[str] = (),
    orphans: Collection[str] = (),
) -> Semaphore:
    """Return the document with the ``wants`` of the VM ``me``. An unchanged document need not be written.

    ``passed_over`` are waiters that have had room and did not take it: who takes it instead removes them, and one that
    is still there waits again. ``orphans`` are events that this VM has seen listed, and has not for a while: their VMs
    are free again, unless they have said that they recover.
    """
    me = me.lower()
    for want in sorted(wants, key=lambda each: (each.state not in (RECOVER, RELEASE), each.place)):
        if want.state in (RECOVER, RELEASE):
            document = _without_vm(document, me, want)
            continue
        slot = document.slots.get(want.key)
        if slot is not None and me in slot.names:
            document = _granted_if_room(document, slot, want)
        elif want.state == FORCE:
            document = _with_slot(document, me, want)
        else:
            if not may_take(document, me, want, passed_over):
                document = _without_orphans(document, me, orphans, want.at)
            if may_take(document, me, want, passed_over):
                document = _with_slot(document, me, want)
                document = document._replace(waiting=_without(document.waiting, *passed_over))
            elif len(want.names) <= want.at_most:
                document = _with_waiter(document, want)
    return document


def may_take(document: Semaphore, me: str, want: Want, passed_over: Collection[str] = ()) -> bool:
    """Return whether there is room for the event, and nobody is served before it."""
    if not document.has_room(want.key, want.names, want.at_most):
        return False
    disturbed = document.disturbed(want.key) >= {*want.names, me.lower()}  # already: nobody waits longer for it
    return disturbed or not document.ahead(want.place, {*passed_over, want.key})


def is_granted(document: Semaphore, key: str, name: str) -> bool:
    """Return whether the event holds the VM's slot, within the limit."""
    slot = document.slots.get(key)
    return slot is not None and slot.granted and name.lower() in slot.names


def force_release(
    document: Semaphore, name: str, by: str, why: str, at: str, keys: Collection[str] | None = None
) -> Semaphore:
    """Return the document without the VM's slots, or those for the events ``keys``: a person, or a proof, frees them.

    Those that wait for this VM alone no longer do.
    """
    name = name.lower()
    slots, releases = {}, list(document.releases)
    for key, slot in document.slots.items():
        names = slot.names
        if name in names and (keys is None or key in keys):
            names = {other: what for other, what in names.items() if other != name}
            releases.append(Release(name, key, by, why, at))
        if names:
            slots[key] = slot._replace(names=names)
    waiting = dict(document.waiting)
    if keys is None:
        waiting = {key: waiter for key, waiter in waiting.items() if waiter.names != (name,)}
    return Semaphore(slots, waiting, tuple(releases[-MOST_RELEASES:]))


def _granted_if_room(document: Semaphore, slot: Slot, want: Want) -> Semaphore:
    """Let a slot beyond the limit count as one within it, once there is room for all VMs of the event."""
    names = {**dict.fromkeys(want.names, HELD), **slot.names}
    if slot.granted or not document.has_room(want.key, names, want.at_most):
        return document
    return document._replace(slots={**document.slots, want.key: slot._replace(names=names, granted=True)})


def _with_slot(document: Semaphore, me: str, want: Want) -> Semaphore:
    """Take the slots of all VMs of the event, if there is room; otherwise, by force, that of this VM alone."""
    before = document.slots.get(want.key, Slot({}, False, want.what, want.at))
    granted = document.has_room(want.key, {*want.names, me, *before.names}, want.at_most)
    names = dict.fromkeys((*want.names, me) if granted else (me,), HELD)
    slot = before._replace(names={**names, **before.names}, granted=granted)
    return document._replace(slots={**document.slots, want.key: slot}, waiting=_without(document.waiting, want.key))


def _with_waiter(document: Semaphore, want: Want) -> Semaphore:
    before = document.waiting.get(want.key)
    waiter = Waiter(want.names, want.not_before, want.what, want.at if before is None else before.since)
    if before == waiter:
        return document
    return document._replace(waiting={**document.waiting, want.key: waiter})


def _without_vm(document: Semaphore, me: str, want: Want) -> Semaphore:
    slots = dict(document.slots)
    slot = slots.get(want.key)
    if slot is not None and me in slot.names:
        names = {name: what for name, what in slot.names.items() if name != me}
        if want.state == RECOVER:
            names[me] = RECOVERING
        if names == slot.names:
            return document._replace(waiting=_without(document.waiting, want.key))
        slots[want.key] = slot._replace(names=names)
        if not names:
            del slots[want.key]
    return document._replace(slots=slots, waiting=_without(document.waiting, want.key))


def _without_orphans(document: Semaphore, me: str, orphans: Collection[str], at: str) -> Semaphore:
    why = "its event is no longer listed, and it has not said that it recovers"
    for key in sorted(set(orphans) & set(document.slots)):
        for name, what in sorted(document.slots[key].names.items()):
            if what == HELD and name != me:
                document = force_release(document, name, me, why, at, (key,))
    return document


def _without(waiting: Mapping[str, Waiter], *keys: str) -> Mapping[str, Waiter]:
    return {key: waiter for key, waiter in waiting.items() if key not in keys}


def encode(document: Semaphore) -> bytes:
    """Return the document as bytes."""
    slots = {key: {**slot._asdict(), "names": dict(slot.names)} for key, slot in sorted(document.slots.items())}
    waiting = {key: waiter._asdict() for key, waiter in sorted(document.waiting.items())}
    return dump(
        SCHEMA, {"slots": slots, "waiting": waiting, "releases": [each._asdict() for each in document.releases]}
    )


def decode(content: bytes) -> Semaphore:
    """Return the document that a store has. Raises SharedDocumentError for anything that ``encode`` does not write."""
    data = load(SCHEMA, content)
    return Semaphore(
        {key: _slot(slot) for key, slot in member(data, "slots", dict).items()},
        {key: _waiter(waiter) for key, waiter in member(data, "waiting", dict).items()},
        tuple(Release(*texts(each, Release._fields)) for each in member(data, "releases", list)),
    )


def _slot(data: Any) -> Slot:
    names = member(data, "names", dict)
    if not all(what in (HELD, RECOVERING) for what in names.values()) or not isinstance(data.get("granted"), bool):
        raise SharedDocumentError("one of its slots cannot be read")
    return Slot(names, data["granted"], *texts(data, ("what", "since")))


def _waiter(data: Any) -> Waiter:
    names = tuple(member(data, "names", list))
    moment = data.get("not_before")
    number = isinstance(moment, (int, float)) and not isinstance(moment, bool)
    if not all(isinstance(name, str) for name in names) or not (moment is None or number):
        raise SharedDocumentError("one of its waiters cannot be read")
    return Waiter(names, moment, *texts(data, ("what", "since")))
