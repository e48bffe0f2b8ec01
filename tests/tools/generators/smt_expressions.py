# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random CEL expressions that z3 is given exactly, for the most part: each operation has one operand that z3 knows.

``cel_expressions`` combines everything with everything, so that few of its expressions are translated exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from .fixed_inputs import MOMENTS, NAMES

ZONES = (
    *("Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Asia/Kolkata", "Australia/Lord_Howe", "America/St_Johns"),
    *("UTC", "+02:00", "-08:30", "05:45", "+14:00", "-12:00", "+23:59"),
)
_ACCESSORS = ("FullYear", "Month", "Date", "DayOfMonth", "DayOfWeek", "DayOfYear", "Hours", "Minutes", "Seconds",
              "Milliseconds")  # fmt: skip
_INTS = ("0", "1", "2", "7", "60", "-1", "-2", "-7", "3600", "9223372036854775807", "-9223372036854775808")
_DURATIONS = ("0s", "1s", "59s", "1m", "5m", "1h", "24h", "-1s", "-1.5s", "1us", "1ns", "2562047h", "-2562047h")
_PATTERNS = ("^web", "_[0-9]+$", "a|b", "[^a]", "^$", "(?i)WEB", ".", "^.{2}$", r"\\d", "^[A-Z]", "é|x", "(^|,)b")
_TEXTS = ("", "a", "web", "web_0", "_0", "0", "x", " ", "An", "er", "é", "42", "true")
_TAGS = ("role", "Role", "", "a", "it's")
_DEPTH_OF_LOOPS = 1


class Writer:
    """Writes expressions of a kind. ``variables`` are the policy's, by their kinds."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._names: list[str] = []  # of loops over names
        self._bound: list[tuple[str, str]] = []  # by cel.bind(): kind and name
        self.variables: dict[str, list[str]] = {}

    def make(self, kind: str, depth: int) -> str:
        """Return an expression; ``kind`` is ``bool``, ``int``, ``uint``, ``string``, ``timestamp`` or ``duration``."""
        chance = self._chance
        if self.variables.get(kind) and chance.random() < 0.15:
            return f"variables.{chance.choice(self.variables[kind])}"
        if depth > 0 and chance.random() < 0.08:
            condition, then, otherwise = (self.make(one, depth - 1) for one in ("bool", kind, kind))
            return f"(({condition}) ? ({then}) : ({otherwise}))"
        bound = [name for of, name in self._bound if of == kind]
        if bound and chance.random() < 0.4:
            return self._pick(*bound)
        if depth > 0 and chance.random() < 0.06:
            return self._bind(kind, depth)
        if depth > 0 and chance.random() < 0.08:
            return f"{self._optional(kind, depth - 1)}.{self._pick(f'orValue({self.make(kind, 0)})', 'value()')}"
        method: Callable[[int], str] = getattr(self, f"_{kind}")
        return method(depth)

    def bound_loop(self) -> str:
        """Return a loop that reads what is bound around it."""
        value = self.make("bool", 1)
        self._bound.append(("bool", "b0"))
        loop = self._loop(1)
        self._bound.pop()
        return f"cel.bind(b0, {value}, {loop})"

    def about_names(self) -> str:
        """Return a condition about several names of an event, and how many there are of which kind."""
        parts = [self._about_names() for _ in range(self._chance.randint(1, 4))]
        return f" {self._pick('&&', '&&', '||')} ".join(parts)

    def _about_names(self) -> str:
        pick = self._pick
        other = pick("vm.name", "vm.zone", "params.label", self._text(), "event.Resources[0]")
        has = pick(
            f"r == {other}",
            f"r != {other}",
            f"r != {other} && r != vm.name",
            f"r in [{self._text()}, {other}, 'b']",
            "r in params.names",
            f"r.{pick('startsWith', 'endsWith', 'contains')}({self._text()})",
            f"r.matches('{pick(*_PATTERNS)}')",
            f"r.lowerAscii() == {other}",
            "r.charAt(3) == '_'",
            f"size(r) > {pick('1', '3')}",
        )
        several, number = pick("event.Resources", "event.Resources", "event.Resources.distinct()"), pick(*"0123579")
        return pick("", "", "!") + pick(
            f"{several}.{pick('exists', 'all', 'exists_one')}(r, {has})",
            f"({several}.filter(r, {has}).size() {pick('==', '>', '<=')} {number})",
            f"({several}.filter(r, {has}).size() {pick('==', '>', '<')} size(event.Resources.filter(r, {other} == r)))",
            f"(size({several}) {pick('==', '>', '<=')} {number})",
            f"({other} in {pick(several, 'params.names')})",
            pick("affects_me", "leader"),
        )

    def _bind(self, kind: str, depth: int) -> str:
        of, name = self._pick("bool", "int", "string", "timestamp", "duration"), f"b{len(self._bound)}"
        value = self.make(of, depth - 1)
        self._bound.append((of, name))
        body = self.make(kind, depth - 1)
        self._bound.pop()
        return f"cel.bind({name}, {value}, {body})"

    def _optional(self, kind: str, depth: int) -> str:
        known = {"int": "event.?DurationInSeconds", "timestamp": "event.?NotBefore", "string": "event.?EventSource"}
        some = [
            known.get(kind, f"optional.of({self.make(kind, 0)})"),
            f"[{self.make(kind, 0)}][?{self._pick('0', '1')}]",
        ]
        if kind == "string":
            some += [f"vm.tags[?'{self._pick('role', 'a')}']", "vm.?zone", f"event.Resources[?{self._pick('0', '1')}]"]
        if depth <= 0:
            return self._pick(*some)
        one = self._optional(kind, depth - 1)
        name = f"b{len(self._bound)}"
        self._bound.append((kind, name))
        body = self.make(kind, depth - 1)
        self._bound.pop()
        return self._pick(
            f"{one}.or({self._pick(*some)})",
            f"({self.make('bool', 0)} ? {one} : optional.none())",
            f"{one}.optMap({name}, {body})",
            f"optional.of({self.make(kind, depth - 1)})",
            f"[{one}, optional.none()][0]",
        )

    def _pick(self, *some: str) -> str:
        return self._chance.choice(some)

    def _text(self) -> str:
        return f'"{self._pick(*_TEXTS)}"'

    def _number(self, but: str = "") -> str:
        return self._pick(*(one for one in _INTS if one != but))

    def _bool(self, depth: int) -> str:
        pick = self._pick
        if depth <= 0:
            return pick("affects_me", "leader", "params.flag", "has(event.NotBefore)", "has(vm.tags.role)", "true")
        kind = self._chance.randrange(18)
        if kind == 16:
            return self._extended(depth)
        if kind < 4:
            one, other = (self._bool(depth - 1) for _ in range(2))
            return pick(f"({one}) && ({other})", f"({one}) || ({other})", f"!({one})", f"({one}) == ({other})")
        compare = pick("==", "!=", "<", "<=", ">", ">=")
        if kind < 8:
            of = pick("int", "timestamp", "duration", "uint")
            return f"({self.make(of, depth - 1)}) {compare} ({self.make(of, 0 if depth < 3 else depth - 2)})"
        text = self.make("string", depth - 1)
        if kind < 10:
            other = pick(self._text(), self._text(), self.make("string", 0))
            return f"({text}) {pick('==', '!=')} ({other})"
        if kind == 10:
            return f"({text}).matches('{pick(*_PATTERNS)}')"
        if kind == 11:
            return f"({text}).{pick('startsWith', 'endsWith', 'contains')}({self._text()})"
        if kind == 12:
            some = f"[{self._text()}, {self._text()}, {self.make('string', 0)}]"
            return pick(f"({text}) in {some}", f"({text}) in event.Resources", f"({text}) in params.names")
        if kind == 13:
            return pick(f"{self._text()} in vm.tags", f"({self.make('int', depth - 1)}) in [1, 7, {self._number()}]")
        return self._loop(depth)

    def _extended(self, depth: int) -> str:
        """Return a condition with functions of CEL's extensions, or numbers of several types."""
        compare = self._pick("==", "!=", "<", "<=", ">", ">=")
        number = self._pick("8.5", "-1.0", "0.0", "9007199254740993.0", "1e300", "7u", "0u", "params.ratio")
        kind = self._pick("int", "string", "timestamp", "duration", "bool")
        some = f"[{self.make('string', depth - 1)}, {self._text()}]"
        other = f"[{self._text()}, {self.make('string', 0)}]"
        return self._pick(
            f"({self.make('int', depth - 1)}) {compare} {number}",
            f"{number} {compare} ({self.make('uint', depth - 1)})",
            f"{self._optional(kind, depth - 1)}.hasValue()",
            f"{self._optional(kind, depth - 1)} == {self._optional(kind, 0)}",
            f"sets.{self._pick('contains', 'equivalent', 'intersects')}({some}, {other})",
            f"dyn({self.make('int', depth - 1)}) {compare} ({self.make('int', 0)})",
            f"type({self.make(kind, depth - 1)}) == {self._pick('int', 'string', 'bool')}",
        )

    def _loop(self, depth: int) -> str:
        macro = self._pick("all", "exists", "exists_one" if self._chance.random() < 0.3 else "exists")
        source = self._pick(*["event.Resources"] * 5, "event.Resources.distinct()")
        if len(self._names) >= _DEPTH_OF_LOOPS or self._chance.random() < 0.2:
            source = f"[{self.make('string', 0)}, {self._text()}]"
        name = f"x{len(self._names)}"
        self._names.append(name)
        body = self.make("bool", depth - 1)
        if self._chance.random() < 0.5:
            test = self._pick(f"{name}.startsWith('web')", f"{name} == vm.name", f"size({name}) > 3", f"{name} != 'b'")
            body = f"{test} {self._pick('&&', '||')} ({body})"
        truths = [of for kind, of in self._bound if kind == "bool"]
        if truths and self._chance.random() < 0.6:  # a loop keeps what was bound around it
            body = f"{self._pick('', '!')}{self._pick(*truths)} {self._pick('&&', '||')} ({body})"
        self._names.pop()
        if self._chance.random() < 0.25:
            left = f"{source}.filter({name}, {body})"
            compare = self._pick("==", "!=", "<", "<=", ">", ">=")
            size = f"{left}.size() {compare} {self._pick('0', '0', '1', '2')}"
            return self._pick(size, f"0 {compare} size({left})", f"{left} {self._pick('==', '!=')} []")
        return f"{source}.{macro}({name}, {body})"

    def _int(self, depth: int) -> str:
        pick = self._pick
        if depth <= 0:
            return pick("event.DurationInSeconds", "params.n", "event.DurationInSeconds", self._number())
        one = f"({self.make('int', depth - 1)})"
        kind = self._chance.randrange(13)
        if kind == 12:
            other = f"({self.make('int', 0)})"
            return pick(f"math.{pick('greatest', 'least')}({one}, {other}, 7)", f"math.{pick('abs', 'sign')}({one})")
        if kind < 3:
            return f"{one} {pick('+', '-')} ({self.make('int', depth - 1)})"
        if kind < 5:
            return f"{one} {pick('/', '%')} {self._number(but='0')}"
        if kind == 5:
            return pick(f"{one} * {self._number()}", f"{self._number()} * {one}", f"-{one}")
        if kind < 9:
            zone = pick("", f"'{pick(*ZONES)}'", f"'{pick(*ZONES)}'", "params.zone")
            return f"({self.make('timestamp', depth - 1)}).get{pick(*_ACCESSORS)}({zone})"
        if kind == 9:
            return f"({self.make('duration', depth - 1)}).get{pick('Hours', 'Minutes', 'Seconds')}()"
        text = self.make("string", depth - 1)
        if kind == 10:
            return pick(
                f"size({text})",
                pick("size(event.Resources)", "event.Resources.distinct().size()"),
                "size(vm.tags)",
                f"({text}).indexOf({self._text()})",
            )
        return pick(f"int({text})", f"int({self.make('timestamp', depth - 1)})", f"int({self.make('uint', depth - 1)})")

    def _uint(self, depth: int) -> str:
        pick = self._pick
        if depth <= 0:
            return pick("uint(event.DurationInSeconds)", "uint(params.n)", "7u", "0u", "18446744073709551615u")
        one = f"({self.make('uint', depth - 1)})"
        operation = pick("+", "-", "*", "/", "%")
        return f"{one} {operation} {pick('1u', '2u', '7u', '18446744073709551615u')}"

    def _string(self, depth: int) -> str:
        pick, fields = self._pick, ("EventType", "EventStatus", "EventSource", "Description", "EventId")
        if self._names and self._chance.random() < 0.5:
            return self._pick(*self._names)
        if depth <= 0 or self._chance.random() < 0.4:
            known = pick(f"event.{pick(*fields)}", "vm.name", "vm.zone", "params.label", "event.Resources[0]")
            return pick(known, known, f'vm.tags["{pick(*_TAGS)}"]', "vm.tags.role", f"'{pick(*NAMES)}'")
        text = f"({self.make('string', depth - 1)})"
        kind = self._chance.randrange(6)
        if kind == 0:
            return f"{text}.{pick('lowerAscii', 'upperAscii', 'trim', 'reverse')}()"
        if kind == 1:
            return pick(f"{text} + {self._text()}", f"{self._text()} + {text}")
        if kind == 2:
            return f"{text}.substring({pick('0', '1', '2')}{pick('', ', 3')})"
        if kind == 3:
            return pick(f"{text}.charAt({pick('0', '1', '3')})", f"{text}.split({self._text()})[{pick('0', '1')}]")
        if kind == 4:
            return f"{text}.replace({self._text()}, {self._text()})"
        return f"[{text}, {self.make('string', 0)}][{pick('0', '1')}]"

    def _timestamp(self, depth: int) -> str:
        pick = self._pick
        if depth <= 0:
            return pick("now", "event.NotBefore", "params.since", f"timestamp('{pick(*MOMENTS)}Z')")
        kind = self._chance.randrange(4)
        if kind == 0:
            return f"timestamp({self.make('int', depth - 1)})"
        if kind == 1:
            return self._timestamp(0)
        return f"({self.make('timestamp', depth - 1)}) {pick('+', '-')} ({self.make('duration', depth - 1)})"

    def _duration(self, depth: int) -> str:
        pick = self._pick
        if depth <= 0:
            return pick("notice", "age", "params.wait", f"duration('{pick(*_DURATIONS)}')")
        kind = self._chance.randrange(5)
        if kind == 0:
            return self._duration(0)
        if kind == 4:
            number = self.make(pick("int", "int", "uint"), depth - 1)
            return f"duration(string({number}) + '{pick('s', 's', 's', 'm', 'ns', 'd', '')}')"
        if kind == 1:
            return f"({self.make('timestamp', depth - 1)}) - ({self.make('timestamp', depth - 1)})"
        return f"({self.make('duration', depth - 1)}) {pick('+', '-')} ({self.make('duration', 0)})"
