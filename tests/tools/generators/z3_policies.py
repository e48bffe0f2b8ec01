# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random policies, each as CEL in YAML and as formulas for z3, which can prove or refute what the analysis claims.

Nothing of the analysis is used. Numbers are unbounded integers there, without intervals or representatives.
"""

from __future__ import annotations

import json
import random
from typing import Any, NamedTuple

import z3  # type: ignore[import-untyped]  # has no types

TYPES = ("Freeze", "Reboot", "Redeploy", "Preempt", "Terminate")
STATUSES = ("Scheduled", "Started")
SOURCES = ("Platform", "User")
MINUTE = 60_000_000  # microseconds, the unit of times
CENTURY = 100 * 365 * 24 * 60 * MINUTE


class Truth(NamedTuple):
    """An expression of type bool: when it is true, and when it has no value. Otherwise it is false."""

    cel: str
    true: Any
    error: Any


class World:
    """The fields of one event and its VM as variables of z3, with what the service and the runner promise of them."""

    def __init__(self) -> None:
        self.type, self.types = z3.EnumSort("EventType", [*TYPES, "another"])
        self.status, self.statuses = z3.EnumSort("EventStatus", [*STATUSES, "other"])
        self.source, self.sources = z3.EnumSort("EventSource", [*SOURCES, "else"])
        self.event_type, self.event_status = z3.Const("type", self.type), z3.Const("status", self.status)
        self.event_source, self.has_source = z3.Const("source", self.source), z3.Bool("has_source")
        self.duration, self.has_duration = z3.Int("duration"), z3.Bool("has_duration")
        self.lead, self.has_not_before = z3.Int("lead"), z3.Bool("has_not_before")  # NotBefore less now
        self.age, self.count, self.place = z3.Int("age"), z3.Int("count"), z3.Int("place")
        self.named, self.limit = z3.Bool("named"), z3.Int("limit")
        self.has_tags, self.has_role = z3.Bool("has_tags"), z3.Bool("has_role")
        self.role = z3.String("role")
        self.started = self.event_status == self.statuses[1]
        self.notice = z3.If(self.started, 0, z3.If(self.lead > 0, self.lead, 0))
        self.promises = z3.And(
            self.event_type != self.types[-1],  # the engine holds events of unknown type or status, without a rule
            self.event_status != self.statuses[-1],
            self.duration >= -1,
            self.age >= 0,
            self.age <= CENTURY,
            self.lead >= -CENTURY,
            self.lead <= CENTURY,
            self.count >= 1,
            self.place >= 0,  # 0: leads; below count: further down; otherwise not listed
            self.limit >= 0,
            self.limit <= 60,
            z3.Implies(self.has_role, self.has_tags),
        )


class Maker:
    """Makes random conditions, of constants that are near each other so that they often meet."""

    def __init__(self, world: World, chance: random.Random) -> None:
        self.world = world
        self.chance = chance
        fields = (self._age, self._count, self._place, self._role, self._limit, self._lead, self._order, self._source)
        # Not all in one policy: it would tell apart a hundred million classes, and few of its rules would meet.
        usual = (self._type, self._type, self._status, self._duration, self._notice, self._has)
        self._makers = (*usual, *chance.sample(fields, 4))

    def condition(self, depth: int = 2) -> Truth:
        """Return a random condition."""
        kind = self.chance.choice(("and", "and", "and", "or", "not", "if", "same")) if depth else "atom"
        if kind == "atom" or self.chance.random() < 0.15:
            return self._atom()
        if kind == "not":
            one = self.condition(depth - 1)
            return Truth(f"!({one.cel})", z3.And(z3.Not(one.true), z3.Not(one.error)), one.error)
        parts = [self.condition(depth - 1) for _ in range(3 if kind == "if" else 2)]
        return _COMBINED[kind](parts)

    def _atom(self) -> Truth:
        return self.chance.choice(self._makers)()

    def _type(self) -> Truth:
        return self._choice("event.EventType", self.world.event_type, TYPES, self.world.types, z3.BoolVal(False))

    def _status(self) -> Truth:
        error = z3.BoolVal(False)
        return self._choice("event.EventStatus", self.world.event_status, STATUSES, self.world.statuses, error)

    def _source(self) -> Truth:
        error = z3.Not(self.world.has_source)
        return self._choice("event.EventSource", self.world.event_source, SOURCES, self.world.sources, error)

    def _choice(self, cel: str, variable: Any, names: tuple[str, ...], constants: Any, error: Any) -> Truth:
        some = self.chance.sample(range(len(names)), self.chance.choice((1, 1, min(3, len(names)))))
        true = z3.And(z3.Not(error), z3.Or([variable == constants[place] for place in some]))
        if len(some) == 1:
            return Truth(f"{cel} == '{names[some[0]]}'", true, error)
        listed = ", ".join(f"'{names[place]}'" for place in some)
        return Truth(f"{cel} in [{listed}]", true, error)

    def _compared(self, cel: str, variable: Any, constant: int, shown: str, error: Any) -> Truth:
        sign = self.chance.choice(("<", "<=", ">", ">=", "==", "!="))
        true = {
            "<": variable < constant,
            "<=": variable <= constant,
            ">": variable > constant,
            ">=": variable >= constant,
            "==": variable == constant,
            "!=": variable != constant,
        }[sign]
        return Truth(f"{cel} {sign} {shown}", z3.And(true, z3.Not(error)), error)

    def _duration(self) -> Truth:
        constant = self.chance.choice((-1, 0, 3, 5, 9, 10, 30))
        error = z3.Not(self.world.has_duration)
        return self._compared("event.DurationInSeconds", self.world.duration, constant, str(constant), error)

    def _limit(self) -> Truth:
        error = z3.Not(self.world.has_duration)
        true = z3.And(self.world.duration < self.world.limit, z3.Not(error))
        return Truth("event.DurationInSeconds < params.limit", true, error)

    def _notice(self) -> Truth:
        minutes = self.chance.choice((0, 2, 5, 15))
        error = z3.And(z3.Not(self.world.started), z3.Not(self.world.has_not_before))
        return self._compared("notice", self.world.notice, minutes * MINUTE, f"duration('{minutes}m')", error)

    def _lead(self) -> Truth:
        minutes = self.chance.choice((-1, 0, 5))
        error = z3.Not(self.world.has_not_before)
        shown = f"duration('{minutes}m')"
        return self._compared("event.NotBefore - now", self.world.lead, minutes * MINUTE, shown, error)

    def _order(self) -> Truth:
        """Compare two fields, whose order no constant gives."""
        error = z3.And(z3.Not(self.world.started), z3.Not(self.world.has_not_before))
        sign, true = self.chance.choice(
            (
                ("<", self.world.notice < self.world.age),
                ("<=", self.world.notice <= self.world.age),
                ("==", self.world.notice == self.world.age),
            )
        )
        return Truth(f"notice {sign} age", z3.And(true, z3.Not(error)), error)

    def _age(self) -> Truth:
        minutes = self.chance.choice((1, 5))
        return self._compared("age", self.world.age, minutes * MINUTE, f"duration('{minutes}m')", z3.BoolVal(False))

    def _count(self) -> Truth:
        constant = self.chance.choice((1, 2, 3))
        return self._compared("size(event.Resources)", self.world.count, constant, str(constant), z3.BoolVal(False))

    def _place(self) -> Truth:
        error = z3.Not(self.world.named)
        if self.chance.random() < 0.5:
            return Truth("leader", z3.And(self.world.named, self.world.place == 0), error)
        return Truth("affects_me", z3.And(self.world.named, self.world.place < self.world.count), error)

    def _role(self) -> Truth:
        name = self.chance.choice(("primary", "replica"))
        error = z3.Not(self.world.has_role)
        return Truth(f"vm.tags['role'] == '{name}'", z3.And(self.world.has_role, self.world.role == name), error)

    def _has(self) -> Truth:
        never = z3.BoolVal(False)
        return self.chance.choice(
            (
                Truth("has(event.EventSource)", self.world.has_source, never),
                Truth("has(event.DurationInSeconds)", self.world.has_duration, never),
                Truth("has(event.NotBefore)", self.world.has_not_before, never),
                Truth("has(vm.tags.role)", self.world.has_role, z3.Not(self.world.has_tags)),
                Truth("'role' in vm.tags", self.world.has_role, z3.Not(self.world.has_tags)),
            )
        )


def _false(one: Truth) -> Any:
    return z3.And(z3.Not(one.true), z3.Not(one.error))


def _and(parts: list[Truth]) -> Truth:
    true = z3.And([one.true for one in parts])
    error = z3.And(z3.Not(true), z3.Not(z3.Or([_false(one) for one in parts])))  # one that is false hides an error
    return Truth(" && ".join(f"({one.cel})" for one in parts), true, error)


def _or(parts: list[Truth]) -> Truth:
    true = z3.Or([one.true for one in parts])
    error = z3.And(z3.Not(true), z3.Not(z3.And([_false(one) for one in parts])))  # and one that is true
    return Truth(" || ".join(f"({one.cel})" for one in parts), true, error)


def _if(parts: list[Truth]) -> Truth:
    test, then, otherwise = parts
    chosen = z3.Or(z3.And(test.true, then.true), z3.And(_false(test), otherwise.true))
    error = z3.Or(test.error, z3.And(test.true, then.error), z3.And(_false(test), otherwise.error))
    return Truth(f"({test.cel}) ? ({then.cel}) : ({otherwise.cel})", chosen, error)


def _same(parts: list[Truth]) -> Truth:
    first, second = parts
    error = z3.Or(first.error, second.error)
    return Truth(f"({first.cel}) == ({second.cel})", z3.And(first.true == second.true, z3.Not(error)), error)


_COMBINED = {"and": _and, "or": _or, "if": _if, "same": _same}


class Rule(NamedTuple):
    """One rule: its condition, None if it always applies, its path, and nested rules instead of an output."""

    path: str
    condition: Truth | None
    output: str
    inner: tuple[Rule, ...]


def rules(maker: Maker, chance: random.Random, prefix: str = "") -> tuple[Rule, ...]:
    """Return random rules; now and then one that repeats or narrows another one, as people write them."""
    found: list[Rule] = []
    for number in range(chance.randint(3, 6) if not prefix else 2):
        condition = maker.condition()
        earlier = [one.condition for one in found if one.condition is not None]
        if earlier and chance.random() < 0.25:
            other = chance.choice(earlier)
            condition = other if chance.random() < 0.3 else _and([other, condition])
        path = f"{prefix}r{number}"
        nested = not prefix and chance.random() < 0.15
        inner = rules(maker, chance, path + ".") if nested else ()
        found.append(Rule(path, condition, chance.choice(("approve", "hold")), inner))
    if not prefix:
        found.append(Rule("rest", None, "hold", ()))
    return tuple(found)


def text(some: tuple[Rule, ...]) -> str:
    """Return rules as a policy file."""
    head = "name: p\nparams: [{name: limit, type: int, default: 9, min: 0, max: 60}]\nrule:\n"
    return head + "\n".join(_lines(some, "  ")) + "\n"


def _lines(some: tuple[Rule, ...], indent: str) -> list[str]:
    lines = [f"{indent}match:"]
    for rule in some:
        lines.append(f"{indent}  - id: {rule.path.rpartition('.')[2]}")
        if rule.condition is not None:
            lines.append(f"{indent}    condition: {json.dumps(rule.condition.cel)}")
        if rule.inner:
            lines += [f"{indent}    rule:", *_lines(rule.inner, indent + "      ")]
        else:
            lines.append(f"{indent}    output: {rule.output}")
    return lines


def fates(world: World, some: tuple[Rule, ...], alive: Any = None) -> dict[str, tuple[Any, Any, Any]]:
    """Return for each rule when it is met, when it fails, and when its condition holds regardless of earlier rules."""
    left = world.promises if alive is None else alive
    found: dict[str, tuple[Any, Any, Any]] = {}
    for rule in some:
        true = z3.BoolVal(True) if rule.condition is None else rule.condition.true
        error = z3.BoolVal(False) if rule.condition is None else rule.condition.error
        met, failed = z3.And(left, true), z3.And(left, error)
        found[rule.path] = met, failed, z3.And(world.promises, true)
        found.update(fates(world, rule.inner, met))
        left = z3.And(left, z3.Not(true), z3.Not(error))
    return found
