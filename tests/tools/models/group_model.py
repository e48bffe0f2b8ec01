# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A model of VMs that share all documents of their group: the barriers of two events, and the semaphore.

``group_model_vm`` has what a VM does. Here are the store, the events, the faults and the promises. What is bounded:

- Faults: each run has at most ``faults`` of them. A fault is a restart, a read that returns the document as it was
  before its last change, a write that is answered by nobody, and a change of the first event's content, to the second
  one and back. VMs look at the list and approve at once: so it does not change back before a VM that knows that all are
  ready has approved, nor does a VM act on what it was in between.
- Only one write is under way at a time. It arrives, is refused because somebody else was faster, or is lost.
- Reading, then writing if it is unchanged, is one step: what comes between the two makes the write fail.

There is no time: ``near`` is when an event's NotBefore makes VMs hurry, and from then on Azure may start it at any
moment. With ``patient`` neither happens and nothing is cancelled, so that every event has to be approved in the end.
A doubled answer to a read is another read, and a doubled write is refused by the version.

A state is a tuple of small numbers, those of values in tables. Three kinds of states count as one, because no step
and no promise tells them apart: those that differ in what will not be looked at again; in who has closed a barrier;
and, where ``mirrored``, in which of the first event's two VMs is which. Names in a trace may be swapped by the last.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from functools import lru_cache
from typing import Any

from forewarn.runner.groups import barrier, semaphore
from forewarn.runner.groups.barrier import Barrier
from forewarn.runner.groups.semaphore import RELEASE, Semaphore, Want

from .group_model_vm import (
    AZURE,
    CONTENTS,
    GONE,
    LISTED,
    OURS,
    OVER,
    STARTED,
    Act,
    Env,
    Group,
    Part,
    Talk,
    Vm,
    acts,
    encoded_barrier,
    encoded_slots,
    slot_names,
    talks_of_itself,
    talks_of_slots,
)
from .model_checker import Step

State = tuple[int, ...]
# Places in a state. Each document stands there twice: as it is, and as it was. The first is the semaphore.
DOCUMENTS = 3
LATE, ENV, FAULTS, WRONG, VMS = 6, 7, 8, 9, 10


class Table:
    """Values, and their numbers in a state."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._numbers: dict[Any, int] = {}

    def number(self, value: Hashable) -> int:
        """Return the number of a value."""
        found = self._numbers.get(value)
        if found is None:
            found = self._numbers[value] = len(self.values)
            self.values.append(value)
        return found


class GroupModel:
    """``silent`` are VMs on which nothing runs. ``dies``: a VM may die for good once the first barrier is closed.

    The content then stays as it is: nobody would be ready for another.
    """

    def __init__(
        self, group: Group, faults: int, silent: str = "", *, patient: bool = False, dies: bool = False
    ) -> None:
        self.group = group
        self.faults = faults
        self.silent = silent
        self.patient = patient
        self.dies = dies
        self.names = sorted(set("".join(group.events)))
        apart = len(self.names) == sum(map(len, group.events))
        self.mirrored = apart and group.events[0] == "ab" and not {"a", "b"} & {*silent, *group.easy}
        self._texts, self._envs, self._vms, self._lates, self._wrongs = (Table() for _table in range(5))
        self._lates.number(None)
        self._wrongs.number("")
        self._talk = lru_cache(None)(self._find_talk)
        self._acts = lru_cache(None)(self._find_acts)
        self._changes = lru_cache(None)(self._find_changes)
        self._restarted = lru_cache(None)(self._find_restarted)
        self._judged = lru_cache(None)(self._find_broken)
        self._other_text = lru_cache(None)(self._find_other_text)
        self._touched = lru_cache(None)(self._find_touched)

    def initial(self) -> State:
        """Return the state in which all events are listed, and nobody has done anything."""
        empty, nothing = self._texts.number(encoded_slots(Semaphore())), self._texts.number(None)
        env = self._envs.number(Env((LISTED,) * len(self.group.events), (False,) * len(self.group.events)))
        vms = [self._vms.number(self._first(name)) for name in self.names]
        return (empty, empty, nothing, nothing, nothing, nothing, 0, env, 0, 0, *vms)

    def _first(self, name: str) -> Vm:
        events = [event for event, names in enumerate(self.group.events) if name in names]
        owed = self.group.rules.notes_before and name not in self.silent
        return Vm(tuple(Part(event, owed=owed) for event in events))

    # What may happen

    def steps(self, state: Hashable) -> Iterator[Step]:
        """Return what may happen."""
        assert isinstance(state, tuple)
        env, faulty = state[ENV], state[FAULTS] < self.faults
        for place, name in enumerate(self.names, VMS):
            vm = state[place]
            if name in self.silent or self._vms.values[vm].dead:
                continue
            for document in range(DOCUMENTS):
                talk = self._talk(name, vm, env, document, state[2 * document])
                if talk is not None:
                    yield from self._talks(state, place, document, talk)
            for what, after, approves in self._acts(name, vm, env):
                yield Step(
                    what, self._approved(state, place, approves) if approves >= 0 else self._is(state, place, after)
                )
            if faulty:
                yield self._restarts(state, place, name)
                if self.dies and self._may_die(vm, state[2], env):
                    dead = self._vms.number(self._vms.values[vm]._replace(dead=True))
                    yield Step(f"{name} dies", self._is(_faulty(state), place, dead), True)
        for what, after, fault in self._changes(env):
            if not fault:
                yield Step(what, self._changed(state, after))
            elif faulty and (self._envs.values[after].content or not self._approves_at_once(state)):
                yield Step(what, self._changed(_faulty(state), after), True)
        if state[LATE]:
            document, text = self._lates.values[state[LATE]]
            left = (*state[:LATE], 0, *state[LATE + 1 :])
            yield Step("a late write arrives", self._canonical(self._written(left, document, text)))
            yield Step("a late write is lost", self._canonical(left))

    def _approves_at_once(self, state: State) -> bool:
        """Return whether a VM knows that all are ready for the first event as it was before it changed."""
        return any(part.event == part.closed == 0 for vm in state[VMS:] for part in self._vms.values[vm].parts)

    def _talks(self, state: State, place: int, document: int, talk: Any) -> Iterator[Step]:
        what, writes, written, after, unanswered = talk
        now, before = state[2 * document], state[2 * document + 1]
        answered = _put(state, place, after)
        yield Step(what, self._canonical(self._written(answered, document, written) if writes else answered))
        if state[FAULTS] == self.faults:
            return
        if before != now:
            stale = self._talk(self.names[place - VMS], state[place], state[ENV], document, before)
            if stale is not None and (not stale[1] or not self.group.rules.checks_version):
                out_of_date = _put(_faulty(state), place, stale[3])
                if stale[1]:
                    out_of_date = self._written(out_of_date, document, stale[2])
                yield Step(f"out of date: {stale[0]}", self._canonical(out_of_date), True)
        if writes:
            doubtful = _put(_faulty(state), place, unanswered)
            yield Step(f"unanswered: {what}", self._canonical(self._written(doubtful, document, written)), True)
            if not state[LATE]:
                late = _put(doubtful, LATE, self._lates.number((document, written)))
                yield Step(f"late: {what}", self._canonical(late), True)

    def _may_die(self, vm: int, text: int, env: int) -> bool:
        first = any(part.event == 0 for part in self._vms.values[vm].parts)
        listed = self._envs.values[env].status[0] == LISTED
        return first and listed and barrier.decode(self._texts.values[text]).closed is not None

    def _restarts(self, state: State, place: int, name: str) -> Step:
        after, freed = self._restarted(name, state[place], state[0])
        restarted = _put(_faulty(state), place, after)
        if freed != state[0]:
            restarted = self._written(restarted, 0, freed)
        return Step(f"{name} restarts", self._canonical(restarted), True)

    def _written(self, state: State, document: int, text: int) -> State:
        """Return the state after a write. What is under way to this document will be refused: the version differs."""
        place = 2 * document
        if text != state[place]:
            state = (*state[:place], text, state[place], *state[place + 2 :])
        if state[LATE] and self._lates.values[state[LATE]][0] == document and self.group.rules.checks_version:
            state = _put(state, LATE, 0)
        return state

    def _is(self, state: State, place: int, vm: int) -> State:
        return self._canonical(_put(state, place, vm))

    def _changed(self, state: State, env: int) -> State:
        """Return the state in which the events are so, and do to the VMs what they do."""
        vms = [self._touched(name, vm, state[ENV], env) for name, vm in zip(self.names, state[VMS:])]
        return self._canonical((*state[:ENV], env, *state[FAULTS:VMS], *vms))

    def _canonical(self, state: State) -> State:
        if state[FAULTS] == self.faults:  # nobody will read anything out of date
            slots, _, first, _, second, _, *rest = state
            state = (slots, slots, first, first, second, second, *rest)
        if not self.mirrored:
            return state
        texts = [self._other_text(text, place // 2) for place, text in enumerate(state[:LATE])]
        late = state[LATE]
        if late:
            document, text = self._lates.values[late]
            late = self._lates.number((document, self._other_text(text, document)))
        other = (*texts, late, *state[ENV:VMS], state[VMS + 1], state[VMS], *state[VMS + 2 :])
        return min(state, other)

    # The same for all states that agree in the arguments: computed once

    def _find_talk(self, name: str, vm: int, env: int, document: int, text: int) -> Any:
        member, around, content = self._vms.values[vm], self._envs.values[env], self._texts.values[text]
        found: Talk | None = None
        if document == 0:
            found = talks_of_slots(self.group, name, member, around, semaphore.decode(content))
        else:
            for number, part in enumerate(member.parts):
                if part.event == document - 1 and len(self.group.events[part.event]) > 1:
                    found = talks_of_itself(self.group, name, member, number, around, barrier.decode(content))
        if found is None:
            return None
        written, after, doubtful = map(self._texts.number, (found.written,)), found.after, found.unanswered
        return (found.name, found.writes, next(written), self._vms.number(after), self._vms.number(doubtful))

    def _find_acts(self, name: str, vm: int, env: int) -> list[tuple[str, int, int]]:
        found: Iterator[Act] = acts(self.group, name, self._vms.values[vm], self._envs.values[env])
        return [(act.name, self._vms.number(act.after), act.approves) for act in found]

    def _find_restarted(self, name: str, vm: int, slots: int) -> tuple[int, int]:
        member: Vm = self._vms.values[vm]
        parts = tuple(part._replace(granted=False, closed=-1, unsure=part.said) for part in member.parts)
        after = self._vms.number(Vm(parts, any(part.owed for part in parts)))
        if self.group.rules.keeps_on_restart:
            return after, slots
        wants = [Want(str(part.event), RELEASE) for part in parts]
        freed = semaphore.step(semaphore.decode(self._texts.values[slots]), name, wants)
        return after, self._texts.number(encoded_slots(freed))

    def _find_changes(self, env: int) -> list[tuple[str, int, bool]]:
        around: Env = self._envs.values[env]
        found: list[tuple[str, Env, bool]] = []
        for event, status in enumerate(around.status):
            if status == LISTED and not self.patient:
                if not around.near[event]:
                    found.append(
                        (f"event {event} is near", around._replace(near=_put(around.near, event, True)), False)
                    )
                else:
                    found.append((f"event {event} starts by itself", _as(around, event, STARTED), False))
                found.append((f"event {event} is cancelled", _as(around, event, OVER), False))
            elif status == STARTED:
                found.append((f"event {event} is over", _as(around, event, OVER), False))
        if around.status[0] == LISTED and not self.dies:
            what = "changes back" if around.content else "changes"
            found.append((f"event 0 {what}", around._replace(content=1 - around.content), True))
        return [(what, self._envs.number(after), fault) for what, after, fault in found]

    def _find_touched(self, name: str, vm: int, before: int, after: int) -> int:
        old, new = self._envs.values[before], self._envs.values[after]
        member: Vm = self._vms.values[vm]
        for number, part in enumerate(member.parts):
            status = new.status[part.event]
            if part.event == 0 and (old.content, part.sees, new.content) == (1, 1, 0):
                part = part._replace(sees=0)
                member = member.with_part(number, part)
            if status == old.status[part.event]:
                continue
            if status == STARTED:
                part = part._replace(disturbed=max(AZURE, part.disturbed))
            if (name in self.silent or member.dead) and status == OVER:
                part = part._replace(disturbed=0)
            if not self.group.late and part.sees != GONE:  # it will not act on it any more
                part = part._replace(granted=False, closed=-1, sees=0, prepared=min(part.prepared, 0), ready=False)
            member = member.with_part(number, part)
        return self._vms.number(member)

    def _approved(self, state: State, place: int, event: int) -> State:
        sees = next(part.sees for part in self._vms.values[state[place]].parts if part.event == event)
        lacking = []
        around: Env = self._envs.values[state[ENV]]
        env = self._envs.number(_as(around, event, STARTED))
        vms = []
        for name, number in zip(self.names, state[VMS:]):
            touched: Vm = self._vms.values[self._touched(name, number, state[ENV], env)]
            for which, part in enumerate(self._vms.values[number].parts):
                if part.event == event:
                    unprepared = part.prepared not in (sees, around.seen(event)) and not _hurries(around, part)
                    if unprepared and name not in self.group.easy:
                        lacking.append(name)
                    touched = touched.with_part(which, touched.parts[which]._replace(disturbed=OURS))
            vms.append(self._vms.number(touched))
        started = [*state[:ENV], env, *state[FAULTS:VMS], *vms]
        if self.group.impossible(event):
            started[WRONG] = self._wrongs.number("an event was approved that needs more slots than there are")
        elif lacking and len(self.group.events[event]) > 1:
            started[WRONG] = self._wrongs.number(f"an approval was sent, and {', '.join(lacking)} was not prepared")
        return self._canonical(tuple(started))

    def _find_other_text(self, text: int, document: int) -> int:
        """Return the document in which the two VMs of the first event have changed places."""
        content = self._texts.values[text]
        if content is None:
            return text
        other = {"a": "b", "b": "a"}
        if document:
            said: Barrier = barrier.decode(content)
            members = {other.get(name, name): statement for name, statement in said.members.items()}
            return self._texts.number(encoded_barrier(said._replace(members=members)))
        slots = semaphore.decode(content)
        swapped = {
            key: slot._replace(names={other.get(name, name): what for name, what in slot.names.items()})
            for key, slot in slots.slots.items()
        }
        return self._texts.number(encoded_slots(slots._replace(slots=swapped)))

    # The promises

    def broken(self, state: Hashable) -> str | None:
        """Return which promise does not hold."""
        assert isinstance(state, tuple)
        if state[WRONG]:
            return str(self._wrongs.values[state[WRONG]])
        found: str | None = self._judged((state[0], state[2], state[4], state[ENV], *state[VMS:]))
        return found

    def _find_broken(self, looked_at: State) -> str | None:
        slots = semaphore.decode(self._texts.values[looked_at[0]])
        env: Env = self._envs.values[looked_at[3]]
        vms: list[Vm] = [self._vms.values[number] for number in looked_at[4:]]
        ours = [name for name, vm in zip(self.names, vms) if vm.disturbed == OURS]
        if len(ours) > self.group.at_most:
            return f"{', '.join(ours)} are disturbed by us, and only {self.group.at_most} may be"
        for event, names in enumerate(self.group.events):
            if env.status[event] == OVER:
                continue
            slot = slots.slots.get(str(event))
            if slot is not None and slot.granted and set(slot.names) != set(names):
                return f"event {event} has some of its slots, and not all"
            closed = barrier.decode(self._texts.values[looked_at[1 + event]]).closed if len(names) > 1 else None
            if closed is None or env.status[event] != LISTED:
                continue
            content = CONTENTS.index(closed.content)
            for name, vm in zip(self.names, vms):
                for part in vm.parts:
                    unprepared = part.prepared != content and not _hurries(env, part)
                    if part.event == event and unprepared and name not in self.group.easy:
                        return f"{name} is not prepared, and the barrier is closed"
        return None

    def settled(self, state: Hashable) -> bool:
        """Return whether all is over, and nothing is left in the store but what VMs on which nothing runs hold.

        A fault may leave a statement in a barrier: its event is over, and no other has this document.
        """
        assert isinstance(state, tuple)
        if state[LATE] or any(status != OVER for status in self._envs.values[state[ENV]].status):
            return False
        left = set(self.silent)
        for name, number in zip(self.names, state[VMS:]):
            vm: Vm = self._vms.values[number]
            if vm.dead:
                left.add(name)
            for part in vm.parts:
                if part.disturbed or (name not in left and (part.sees != GONE or part.owed or part.said)):
                    return False
        slots = semaphore.decode(self._texts.values[state[0]])
        held = set().union(*(slot_names(slots, event) for event in range(len(self.group.events))))
        said = [barrier.decode(self._texts.values[state[place]]).members for place in (2, 4)]
        return not slots.waiting and held <= left and (state[FAULTS] > 0 or not any(said))


def _hurries(env: Env, part: Part) -> bool:
    """Return whether it prepares again though others may still take it for ready."""
    return env.near[part.event] and part.prepared >= 0


def _as(env: Env, event: int, status: str) -> Env:
    return Env(
        _put(env.status, event, status), _put(env.near, event, False), env.content if status == LISTED or event else 0
    )


def _put(values: tuple[Any, ...], place: int, value: Any) -> tuple[Any, ...]:
    return (*values[:place], value, *values[place + 1 :])


def _faulty(state: State) -> State:
    return _put(state, FAULTS, state[FAULTS] + 1)
