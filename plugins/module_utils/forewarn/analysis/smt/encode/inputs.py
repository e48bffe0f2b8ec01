# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a decision about an event reads, as terms: the event, the time, the VM and the parameters.

What is true of them is what events.py reads and policy.view shows, no matter what the service normally sends:
``normal`` says what it does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from copy import copy
from typing import Any

from ....events import (
    EVENT_SOURCES,
    EVENT_STATUSES,
    MAX_ID_CHARACTERS,
    MAX_NAME_CHARACTERS,
    MAX_TEXT_CHARACTERS,
    RESOURCE_TYPES,
    VM_FACTS,
    event_types,
    has_field,
)
from ....policy.functions.standard import INT_MAX
from ....policy.functions.timevalues import MAX_TIMESTAMP, MIN_TIMESTAMP
from ..terms import Formula, between, conj, disj, implies, ite, neg, same
from .params import Params
from .problem import Encoding, Problem, any_text
from .resources import Resources

MICROSECOND = 1_000  # ns; finer than that no time reaches an expression, though a parameter may be
FIRST_NORMAL, LAST_NORMAL = 946_684_800_000_000, 4_102_444_800_000_000  # µs: the years 2000 to 2100
_TIMES = MIN_TIMESTAMP // MICROSECOND, MAX_TIMESTAMP // MICROSECOND
_SURE = ("EventId", "EventType", "EventStatus", "Resources")  # an event without them is in doubt, and held
# What every proof assumes of events (docs/service-facts.md).
CONSTRAINTS = (
    "an event has the fields and types of its api-version (EventSource since 2019-08-01, DurationInSeconds since "
    "2020-07-01, Preempt since 2017-11-01, Terminate since 2019-01-01)",
    "DurationInSeconds is -1 or more",
    "Resources names at least one VM, and the leader is the first of them",
    "affects_me and leader are known exactly where the VM's name is, which has at most 256 characters",
    "now lies in the years 2020 to 2059, NotBefore and age in the years 1 to 9999; times are whole microseconds",
    "an event that forewarn reads with a problem is held, and not looked at",
    "no text, list or loop reaches the evaluator's limits",
)
TEXT_FIELDS = ("EventId", "EventType", "EventStatus", "ResourceType", "Description", "EventSource")


class Tags:
    """The tags of a VM, by their names."""

    def __init__(self, problem: Problem, whose: str = "") -> None:
        self._problem, self._whose = problem, whose
        self.known = problem.boolean(f"vm.tags are known{whose}")
        self.count = problem.integer(f"size(vm.tags){whose}", 0)
        self.read: dict[str, tuple[Any, Any]] = {}  # whether there is the tag, and its value

    def tag(self, name: str) -> tuple[Any, Any]:
        """Return whether there is a tag, and its value."""
        if name not in self.read:
            there = self._problem.boolean(f"has vm.tags[{name!r}]{self._whose}")
            self.read[name] = there, self._problem.texts.variable(f"vm.tags[{name!r}]{self._whose}", any_text)
        return self.read[name]

    def facts(self) -> list[Formula]:
        """Return what is true of all tags that something reads so far."""
        total: Any = 0
        for there, _value in self.read.values():
            total = total + ite(there, 1, 0)
        return [self.count >= total]


class Inputs:
    """Terms for everything that expressions may read, made when they are first asked for.

    Those of another event, or of another VM, differ in some of them from those that they are made of; ``vm`` tells
    VMs apart, ``number`` and ``document`` events of one problem and the documents that they are in. ``others`` are what
    further VMs read of the same event.
    """

    def __init__(self, problem: Problem, api_version: str) -> None:
        self.problem = problem
        self.api_version = api_version
        self.number = self.document = self.vm = 0
        self.params: Params | None = None  # of another VM
        self.others: list[Inputs] = []
        self._base: Inputs | None = None
        self._own: Collection[str] = ()  # names of what differs from the base
        self._fields: dict[str, tuple[Any, Formula]] = {}  # of the event and the VM: value, whether it is there
        self.now_us = problem.integer("now", *_TIMES)
        self.age_us = problem.integer("age", 0)
        problem.facts.append(self.age_us <= self.now_us - _TIMES[0])
        self.not_before_us = problem.integer("event.NotBefore", *_TIMES)
        self.has_not_before = problem.boolean("has event.NotBefore")
        self.named = problem.boolean("vm.name is known")
        self.resources = Resources(problem, api_version, self.own_name)
        self.tags = Tags(problem)

    @property
    def own_name(self) -> Any:
        """The VM's own name, wherever it is known."""
        return self.problem.texts.variable(self._of_vm("vm.name"), lambda text: 0 < len(text) <= MAX_NAME_CHARACTERS)

    def variant(self, differing: Collection[str], *, same_document: bool) -> Inputs:
        """Return inputs that differ in nothing but some of an event's fields, ``now`` and ``age``, by their names.

        With ``same_document``, expressions about all events have the same value for both.
        """
        problem, other = self.problem, self._differing_in(differing)
        other.number = next(problem.numbers)
        other.document = self.document if same_document else other.number
        if "now" in differing:
            other.now_us = problem.integer(other._of_event("now"), *_TIMES)
        if "age" in differing:
            other.age_us = problem.integer(other._of_event("age"), 0)
        problem.facts.append(other.age_us <= other.now_us - _TIMES[0])
        if "NotBefore" in differing:
            other.not_before_us = problem.integer(other._of_event("event.NotBefore"), *_TIMES)
            other.has_not_before = problem.boolean(other._of_event("has event.NotBefore"))
        return other

    def on_another_vm(self, params: Params) -> Inputs:
        """Return what another VM reads of the same event at the same time: ``params`` are its parameters.

        It has its own name, facts and tags, and with its name its own place.
        """
        other = self._differing_in(("vm",))
        other.params, other.vm = params, next(self.problem.numbers)
        other.named = self.problem.boolean(other._of_vm("vm.name is known"))
        other.tags = Tags(self.problem, other._of_vm(""))
        self.others.append(other)
        return other

    def _differing_in(self, names: Collection[str]) -> Inputs:
        other = copy(self)
        other._base, other._own, other._fields, other.others = self, names, {}, []
        return other

    def assume_now(self, first: int, end: int) -> None:
        """Assume that now is at ``first`` or later, and before ``end``: microseconds since 1970."""
        self.problem.facts.append(between(first, self.now_us, end - 1))
        self.problem.note_range(self.now_us * MICROSECOND, first * MICROSECOND, (end - 1) * MICROSECOND)

    # Facts

    @property
    def extent(self) -> tuple[int, ...]:
        """How much ``facts`` are about; it grows with what expressions read."""
        return (*self.resources.extent, *(len(one.tags.read) for one in (self, *self.others)))

    def facts(self) -> list[Formula]:
        """Return what is true of lists and maps, once all expressions are translated."""
        return [*self.resources.facts(), *(fact for one in (self, *self.others) for fact in one.tags.facts())]

    # Single inputs

    def variable(self, name: str) -> Encoding:
        """Return the value of ``notice``, ``age``, ``now``, ``affects_me`` or ``leader``."""
        if name == "now":
            return Encoding(self.now_us * MICROSECOND)
        if name == "age":
            return Encoding(self.age_us * MICROSECOND)
        if name == "notice":
            started = self.is_one_of("EventStatus", "Started")
            left = (self.not_before_us - self.now_us) * MICROSECOND
            return Encoding(ite(disj((started, left < 0)), 0, left), neg(disj((started, self.has_not_before))))
        own = self.own_name if self.vm else None
        listed = self.resources.affected(own) if name == "affects_me" else self.resources.leads(own)
        return Encoding(listed, neg(self.named))

    def event_field(self, name: str) -> tuple[Any, Formula]:
        """Return the value of an event's field, and whether it is there."""
        if name == "Resources":
            return self.resources, True
        if not has_field(self.api_version, name):
            return 0, False
        if name == "NotBefore":
            return self.not_before_us * MICROSECOND, self.has_not_before
        if name != "DurationInSeconds":
            return self.text(name)
        if self._base is not None and name not in self._own:
            return self._base.event_field(name)
        if name not in self._fields:
            value = self.problem.integer(self._of_event(f"event.{name}"), -1, INT_MAX)
            self._fields[name] = value, self.problem.boolean(self._of_event(f"event.has {name}"))
        return self._fields[name]

    def text(self, name: str) -> tuple[Any, Formula]:
        """Return the value of a field that is a text, and whether it is there."""
        if self._base is not None and name not in self._own:
            return self._base.text(name)
        if name not in self._fields:
            value = self.problem.texts.variable(self._of_event(f"event.{name}"), _can_be(name))
            there = True if name in _SURE else self.problem.boolean(self._of_event(f"event.has {name}"))
            self._fields[name] = value, there
        return self._fields[name]

    def is_one_of(self, name: str, *texts: str) -> Formula:
        """Return a formula that holds iff a field that is a text is one of some, if it is there."""
        value, _there = self.text(name)
        return disj(same(value, self.problem.texts.code(text)) for text in texts)

    def vm_fact(self, name: str) -> tuple[Any, Formula]:
        """Return the value of a fact about the VM, and whether it is known."""
        if self._base is not None and "vm" not in self._own:
            return self._base.vm_fact(name)
        if name == "tags":
            return self.tags, self.tags.known
        if name == "name":
            return self.own_name, self.named
        key = f"vm.{name}"
        if key not in self._fields:
            value = self.problem.texts.variable(self._of_vm(key), any_text)
            self._fields[key] = value, self.problem.boolean(self._of_vm(f"has {key}"))
        return self._fields[key]

    def reads(self, field: str) -> bool:
        """Return whether something reads a field of the event that is a text."""
        return field in self._fields or (self._base is not None and self._base.reads(field))

    def facts_read(self) -> list[str]:
        """Return the facts about the VM that something read."""
        if self._base is not None and "vm" not in self._own:
            return self._base.facts_read()
        return [name for name in VM_FACTS if f"vm.{name}" in self._fields]

    # What the service sends

    def normal(self, extra: dict[str, tuple[str, ...]]) -> Formula:
        """Return whether the service sends such an event, by its documentation, and the VM knows itself.

        ``extra`` has the types and statuses that policies declare as well.
        """
        version = self.api_version
        started = self.is_one_of("EventStatus", "Started")
        parts = [
            self.is_one_of("EventType", *event_types(version), *extra.get("EventType", ())),
            self.is_one_of("EventStatus", *EVENT_STATUSES, *extra.get("EventStatus", ())),
            same(self.has_not_before, neg(started)),
            self.is_one_of("ResourceType", *RESOURCE_TYPES),
            self.text("ResourceType")[1],
            self.named,
            self.resources.each_once,
            between(FIRST_NORMAL, self.now_us, LAST_NORMAL),
            implies(self.has_not_before, between(FIRST_NORMAL, self.not_before_us, LAST_NORMAL)),
            self.age_us <= self.now_us - FIRST_NORMAL,
        ]
        if has_field(version, "EventSource"):
            parts += [self.is_one_of("EventSource", *EVENT_SOURCES), self.text("EventSource")[1]]
        if has_field(version, "DurationInSeconds"):
            parts.append(self.event_field("DurationInSeconds")[1])
        parts.append(self.tags.known)
        parts += [self.vm_fact(name)[1] for name in ("location", "size") if f"vm.{name}" in self._fields]
        return conj(parts)

    def _of_event(self, name: str) -> str:
        return f"{name} of another event (no. {self.number})" if self.number else name

    def _of_vm(self, name: str) -> str:
        return f"{name} of another VM (no. {self.vm})" if self.vm else name


def _can_be(name: str) -> Callable[[str], bool]:
    """Return whether a text can be a field of an event, as events.py reads it."""
    if name == "EventId":
        return lambda text: bool(text.strip()) and len(text) <= MAX_ID_CHARACTERS
    if name in ("EventType", "EventStatus"):
        return lambda text: 0 < len(text) <= MAX_TEXT_CHARACTERS
    return lambda text: len(text) <= MAX_TEXT_CHARACTERS
