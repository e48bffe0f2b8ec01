# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A drawn story of many VMs: events, hooks, and what fails. The same seed makes the same story.

``Scenario.play`` returns what was broken: see ``tools.judges.group_judge``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import cache, partial
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from forewarn.emulator.lifecycle import SCHEDULED, STARTED, EmulatedEvent
from forewarn.emulator.spec import EventSpec
from forewarn.errors import InputError
from forewarn.policy.engine import PolicySet
from forewarn.runner.groups import documents, semaphore
from forewarn.runner.groups.obligations import FILE_NAME
from forewarn.runner.groups.semaphore import Semaphore
from forewarn.runner.groups.stale_events import ORPHAN_SECONDS
from tools.fixtures.policy_data import policy, policy_set
from tools.judges.group_judge import Judge, ListedEvent, Rule
from tools.worlds.group_world import DELETED, FROZEN, GROUP, KILLED, RUNNING, GroupWorld, Member
from tools.worlds.memory_store import DOUBLED, LATE, LOST_ANSWER, LOST_REQUEST, OUTAGE, STALE
from tools.worlds.runner_profiles import hook
from tools.worlds.runner_world import Hook, World

HOOK_SECONDS = 30.0
RULES = {
    "together": Rule(ready=True, limited=True, prepare_seconds=HOOK_SECONDS),
    "ready": Rule(ready=True, limited=False, prepare_seconds=HOOK_SECONDS),
    "one-by-one": Rule(ready=False, limited=True, prepare_seconds=HOOK_SECONDS),
    "at-once": Rule(ready=True, limited=True, prepare_seconds=None),
    "nothing-to-do": Rule(ready=False, limited=True, prepare_seconds=None),
}
QUIET_SECONDS = 150.0  # after which everything has to be over


@cache
def policies(at_most: int) -> PolicySet:
    """Return the policy of all rules: an event's Description says which one is meant."""
    matches = []
    for name, rule in RULES.items():
        match: dict[str, Any] = {"id": name, "condition": f'event.Description == "{name}"', "output": "approve"}
        match["group"] = "ready" if rule.ready else "independent"
        if rule.limited:
            match["limit"] = {"at_most": at_most}
        if rule.prepare_seconds is not None:
            match.update(prepare=[hook("drain")], recover=[hook("undrain")])
        matches.append(match)
    return policy_set(policy(*matches))


class Scenario:
    """``faults``: anything may fail. Without, everything that can be approved has to be."""

    def __init__(self, seed: int, directory: Path, vms: int, *, faults: bool, seconds: float = 400.0) -> None:
        self.random = Random(seed)
        self.names = tuple(f"vm-{number}" for number in range(vms))
        self.faults = faults
        self.seconds = seconds
        self.at_most = self.random.randint(1, max(2, vms * 2 // 3)) if faults else vms
        self.trouble = self.random.choice((0.0, 0.02, 0.2)) if faults else 0.0
        self.outage = False
        self.apart: set[str] = set()  # VMs that cannot reach the store
        self.healed = not faults
        self.created_again = True
        self.world = GroupWorld(self.names, policies(self.at_most), directory, self.random, self._plan, self._trouble)
        numbers = count(1)
        self.world.model._new_id = lambda: f"{seed % 2**32:08X}-{next(numbers):04X}-4000-8000-000000000000"
        self.rules: dict[str, str] = {}
        self.started: set[str] = set()
        self.deleted: dict[str, float] = {}
        self.later: list[tuple[float, Callable[[], None]]] = []

    def play(self) -> list[str]:
        """Play the story to its end; return which promises were broken."""
        world = self.world
        self._create()
        for member in world.members.values():
            world.start(member)
        world.run(world.now + 3.0)
        broken = [] if not world.requests else ["an idle VM has asked the store"]
        self._pass(2.0)
        end = world.now + self.seconds
        while world.now < end:
            self._happen()
            self._pass(self.random.choice((0.3, 1.0, 4.0, 15.0)))
        self._heal()
        while self._events(SCHEDULED, STARTED):
            self._pass(5.0)
        self._pass(20.0)
        if not self.created_again:
            self._create()  # by a person, who has seen that nobody is disturbed, and who restarts the runners
            for member in self.world.members.values():
                if member.state != DELETED:
                    self.world.kill(member)
                    self.world.start(member)
        self._pass(QUIET_SECONDS)
        # A VM that was late may have taken slots for others, after they had given theirs back. These notice with their
        # next event, and free them with one that comes an hour later.
        for _round in range(2):
            late = sorted({name for name, _key in self._held()})
            self._pass(ORPHAN_SECONDS + 20.0 if late else 0.0)
            for name in late:
                self._publish([name], "one-by-one", 240.0)
            while self._events(SCHEDULED, STARTED):
                self._pass(5.0)
            self._pass(QUIET_SECONDS)
        return broken + self._judged() + self._left()

    def large(self, events: int) -> set[str]:
        """Publish so many events at once when the story begins; return the names of their VMs."""
        names = self.random.sample(self.names, 3 * events)
        groups = [names[3 * number : 3 * number + 1 + number % 3] for number in range(events)]
        rules = list(RULES)
        for number, group in enumerate(groups):
            publish = partial(self._publish, group, rules[number % len(rules)], 240.0)
            self.later.append((4.0, publish))
        return {name for group in groups for name in group}

    # What happens

    def _happen(self) -> None:
        deeds: list[tuple[int, Callable[[], None]]] = [(6, self._schedule), (1, self._cancel)]
        if self.faults:
            deeds += [
                (2, self._change),
                (2, self._move),
                (3, self._kill),
                (1, self._freeze),
                (2, self._break_store),
                (2, self._part),
                (1, self._delete),
                (1, self._wipe),
                (2, self.world.server.deliver),
            ]
        deed = self.random.choices([each for _weight, each in deeds], [weight for weight, _each in deeds])[0]
        deed()

    def _schedule(self) -> None:
        busy = {name for event in self._events(SCHEDULED, STARTED) for name in event.spec.resources}
        free = [name for name in self.names if self.faults or name not in busy]
        if not free:
            return
        size = self.random.choice((1, 1, 2, 2, 3, 5))
        if self.random.random() < 0.9:  # otherwise it may need more slots than there are
            size = min(size, self.at_most)
        names = self.random.sample(free, min(len(free), size))
        notice = self.random.choice((60.0, 120.0, 240.0) if self.faults else (150.0, 240.0))
        self._publish(names, self.random.choice(list(RULES)), notice)

    def _publish(self, names: list[str], rule: str, notice: float) -> None:
        event_id = self.world.model.schedule(
            EventSpec(
                "Reboot",
                tuple(names),
                notice=notice,
                description=rule,
                impact=self.random.choice((0.0, 5.0, 30.0)),
                gone_after=self.random.choice((5.0, 40.0)),
            )
        )
        self.rules[event_id] = rule

    def _events(self, *status: str) -> list[EmulatedEvent]:
        self.world.model.settle()
        return [event for event in self.world.model.events.values() if event.status in status]

    def _cancel(self) -> None:
        self._with_event(lambda event: self.world.model.cancel(event.event_id))

    def _with_event(self, do: Callable[[EmulatedEvent], None]) -> None:
        scheduled = self._events(SCHEDULED)
        if scheduled:
            with contextlib.suppress(InputError):
                do(self.random.choice(scheduled))

    def _change(self) -> None:
        def change(event: EmulatedEvent) -> None:
            before = event.spec.listed_duration
            after = self.random.choice([seconds for seconds in (5, 30, 120, 600) if seconds != before])
            self._any_world().change(event.event_id, duration=after)

        self._with_event(change)

    def _move(self) -> None:
        def move(event: EmulatedEvent) -> None:
            later = self.random.choice((-60.0, -10.0, 60.0))
            if event.deadline + later > self.world.now:
                self._any_world().postpone(event.event_id, later)

        self._with_event(move)

    def _any_world(self) -> World:
        return self.world.members[self.names[0]].world

    def _some(self, *states: str) -> Member | None:
        found = [member for member in self.world.members.values() if member.state in states]
        return self.random.choice(found) if found else None

    def _kill(self) -> None:
        member = self._some(RUNNING)
        if member is not None:
            self.random.choice((self.world.kill, self.world.reboot))(member)
            self._after(self.random.choice((0.0, 1.0, 20.0, 90.0)), lambda: self._start(member))

    def _start(self, member: Member) -> None:
        if member.state == KILLED:
            self.world.start(member)

    def _freeze(self) -> None:
        member = self._some(RUNNING)
        if member is not None:
            self.world.freeze(member)
            self._after(self.random.choice((2.0, 15.0, 60.0)), lambda: self.world.thaw(member))

    def _delete(self) -> None:
        member = self._some(RUNNING, KILLED)
        if member is not None and not self.deleted:
            self.world.delete(member)
            self.deleted[member.name] = self.world.now

    def _break_store(self) -> None:
        self.outage = True
        self._after(self.random.choice((1.0, 10.0, 60.0)), self._mend_store)

    def _mend_store(self) -> None:
        self.outage = False

    def _part(self) -> None:
        name = self.random.choice(self.names)
        self.apart.add(name)
        self._after(self.random.choice((5.0, 60.0)), lambda: self.apart.discard(name))

    def _wipe(self) -> None:
        if self.random.random() < 0.2:
            self.world.server.wipe()
            self.created_again = False

    def _create(self) -> None:
        self.world.server.swap(documents.semaphore_key(GROUP), semaphore.encode(Semaphore()), "")
        self.created_again = True

    def _heal(self) -> None:
        self.healed, self.outage = True, False
        self.apart.clear()
        self.world.server.deliver()
        for _at, do in self.later:
            do()
        self.later.clear()
        for member in self.world.members.values():
            self.world.thaw(member)
            self._start(member)

    def _after(self, seconds: float, do: Callable[[], None]) -> None:
        self.later.append((self.world.now + seconds, do))

    def _pass(self, seconds: float) -> None:
        end = self.world.now + seconds
        while self.world.now < end:
            self.world.run(min(self.world.now + 1.0, end))
            for event in self.world.model.events.values():
                self._note(event)
            due = [each for each in self.later if each[0] <= self.world.now]
            self.later = [each for each in self.later if each[0] > self.world.now]
            for _at, do in due:
                do()

    def _note(self, event: EmulatedEvent) -> None:
        """Let VMs feel an event that has started."""
        key = event.event_id
        if event.status != STARTED or key in self.started:
            return
        self.started.add(key)
        if self.faults:
            for name in event.spec.resources:
                self._strike(self.world.members[name])

    def _strike(self, member: Member) -> None:
        seconds = self.random.choice((1.0, 10.0, 30.0))
        if member.state == RUNNING and self.random.random() < 0.5:
            self.world.reboot(member)
            self._after(seconds, lambda: self._start(member))
        elif member.state in (RUNNING, FROZEN):
            self.world.freeze(member)
            self._after(seconds, lambda: self.world.thaw(member))

    # What VMs and the store do

    def _plan(self, _vm: str, started: Hook) -> None:
        seconds = self.random.choice((0.5, 3.0, 10.0))
        if self.healed:
            started.ends_at = started.started_at + seconds
        else:
            seconds = self.random.choice((seconds, seconds, seconds, 60.0))
            started.ends_at = started.started_at + seconds
            result = self.random.choice(("succeeded",) * 5 + ("failed",))
            if started.phase == "prepare" or started.attempt == 1:  # the pauses between recoveries are long
                started.result = result

    def _trouble(self, vm: str, what: str, _key: str) -> str | None:
        if self.outage or vm in self.apart:
            return OUTAGE
        if self.healed or self.random.random() >= self.trouble:
            return None
        return self.random.choice((OUTAGE, LOST_REQUEST, LOST_ANSWER, LATE, DOUBLED, STALE))

    # The end

    def _held(self) -> list[tuple[str, str]]:
        """Return the VMs that hold a slot, each with the event's key, but for those that have vanished."""
        document = semaphore.decode(self.world.server.content()[documents.semaphore_key(GROUP)])
        slots = ((name, key) for key, slot in document.slots.items() for name in slot.names)
        return sorted(each for each in slots if each[0] not in self.deleted)

    def _judged(self) -> list[str]:
        events = {}
        for event_id, rule in self.rules.items():
            event = self.world.model.find(event_id)
            events[event_id] = ListedEvent(
                event_id,
                event.spec.resources,
                rule,
                event.ended.emulated if event.ended is not None else self.world.now,
            )
        ledgers = {name: member.world.ledger for name, member in self.world.members.items()}
        found = Judge(events, RULES, self.at_most, self.deleted).judge(ledgers)
        found += [f"{name} still holds a slot for {key}" for name, key in self._held()]
        if not self.faults:
            for event_id in events:
                event = self.world.model.find(event_id)
                if not event.approvals and event_id in self.started:
                    found.append(f"{event_id} ({self.rules[event_id]}) was never approved")
        return found

    def _left(self) -> list[str]:
        """Return what should not be left when all is over."""
        left = []
        for member in self.world.members.values():
            if member.state != DELETED and (member.directory / FILE_NAME).exists():
                left.append(f"{member.name} still owes something")
            if member.instance is not None and list(member.instance.runner.scheduler.records):
                left.append(f"{member.name} has open records")
        return left
