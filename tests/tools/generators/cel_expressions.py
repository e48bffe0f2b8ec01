# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random CEL expressions over the variables of ``tools.generators.cel_variables``, from a seed.

Most expressions have a type; the few that do not show that engines refuse the same ones.
"""

# ruff: noqa: SIM905  # a list of short texts reads better as one
from __future__ import annotations

from collections.abc import Callable
from random import Random

from .cel_variables import KNOWN_VALUES, TEXTS

RESULTS = (
    *("bool", "bool", "bool", "bool", "int", "string", "double", "timestamp", "duration", "uint", "bytes"),
    *("texts", "rows", "table"),
)

INTS = (
    "0 1 2 3 9 -1 -2 10 60 900 9223372036854775807 -9223372036854775808 9223372036854775806 4611686018427387904 "
    "3037000500 -9223372036854775807 0x1F 253402300799 -62135596800"
).split()
UINTS = "0u 1u 2u 7u 18446744073709551615u 18446744073709551614u 9223372036854775808u".split()
DOUBLES = (
    "0.0 1.0 -1.0 0.5 1.5 -2.5 1e3 1e308 1e-308 9223372036854775807.0 -9223372036854775808.0 18446744073709551616.0 "
    "double('nan') double('inf') double('-inf') -0.0"
).split()
DURATIONS = "0s 1s 9s 30s 5m 15m 1h -1s 90m 1h30m 1.5s -0.5s 250ms 1us 1ns 2562047h -2562047h 24h".split()
TIMES = (
    "2026-01-31T12:00:00Z 2026-01-31T12:10:00Z 2024-02-29T23:59:59Z 1970-01-01T00:00:00Z 0001-01-01T00:00:00Z "
    "9999-12-31T23:59:59Z 2026-03-29T01:30:00+02:00 2026-10-25T00:30:00Z 1969-12-31T23:59:59.5Z "
    "2026-01-31T12:00:00.123456789Z"
).split()
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "+02:00", "-08:30", "05:45", "Australia/Lord_Howe")
PATTERNS = ("^web", "_[0-9]+$", "a|b", "[^a]", "^$", "(?i)web", ".", "é", "^.{2}$", "x*", r"\bb\b", r"\d")
_ACCESSORS = ("FullYear", "Month", "Date", "DayOfMonth", "DayOfWeek", "DayOfYear", "Hours", "Minutes", "Seconds",
              "Milliseconds")  # fmt: skip


class Generator:
    """Writes expressions. With ``plain`` only those that cel-python evaluates as CEL defines them (docs/cel.md).

    Kinds beside CEL's types: ``texts`` and ``ints`` are lists, ``rows`` lists of texts, ``roles`` maps of texts,
    ``table`` maps of texts to lists, ``ids`` maps of ints to texts.
    """

    def __init__(self, random: Random, plain: bool = False) -> None:
        self.random = random
        self.plain = plain
        self.locals: list[tuple[str, str]] = []
        self._counter = 0

    def expression(self) -> str:
        """Return an expression of a random type."""
        kind = "bool" if self.plain else self.random.choice(RESULTS)
        return self.make(kind, self.random.randint(1, 4))

    def make(self, kind: str, depth: int) -> str:
        """Return an expression of a kind."""
        if depth <= 0 or self.random.random() < 0.12:
            return self._leaf(kind)
        if self.random.random() < 0.06:
            condition = self.make("bool", depth - 1)
            return f"({condition} ? {self.make(kind, depth - 1)} : {self.make(kind, depth - 1)})"
        method: Callable[[int], str] = getattr(self, f"_{kind}")
        return method(depth - 1)

    def _pick(self, *options: str) -> str:
        return self.random.choice(options)

    def _text(self, text: str) -> str:
        return f"'{text}'" if self.random.random() < 0.7 else f'"{text}"'

    def _operand(self, kind: str, depth: int) -> str:
        text = self.make(kind, depth)
        return text if self.random.random() < 0.1 else f"({text})"

    def _event(self) -> str:
        return self._local("event") or "event"

    def _local(self, kind: str) -> str | None:
        found = [name for name, local in self.locals if local == kind]
        return self.random.choice(found) if found and self.random.random() < 0.7 else None

    def _leaf(self, kind: str) -> str:
        local = self._local(kind)
        if local:
            return local
        pick, event = self._pick, self._event()
        if kind == "bool":
            field = pick("NotBefore", "Description", "EventSource", "DurationInSeconds", "ResourceType")
            return pick("true", "false", "affects_me", "leader", "params.flag", f"has({event}.{field})")
        if kind == "int":
            return pick(pick(*INTS), pick(*INTS), f"{event}.DurationInSeconds", "params.n")
        if kind == "uint":
            return pick(*UINTS)
        if kind == "double":
            return pick("params.ratio", pick(*(DOUBLES[:8] if self.plain else DOUBLES)))
        if kind == "string":
            event_field = f"{event}.{pick('EventType', 'EventStatus', 'EventSource', 'Description', 'EventId')}"
            return pick(self._text(pick(*TEXTS)), event_field, "vm.name", "vm.zone", "params.label", "vm.tags.role")
        if kind == "bytes":
            return pick("b'a'", "b''", "b'\\xff'", "b'é'")
        if kind == "timestamp":
            times = [time for time in TIMES if not self.plain or "." not in time]
            return pick("now", f"{event}.NotBefore", "params.since", f"timestamp('{pick(*times)}')")
        if kind == "duration":
            whole = [d for d in DURATIONS if not self.plain or (not any(c in d for c in ".un") and "ms" not in d)]
            return pick("notice", "age", "params.wait", f"duration('{pick(*whole)}')")
        if kind == "texts":
            some = ", ".join(self._text(pick(*TEXTS)) for _ in range(self.random.randint(0, 3)))
            return pick(f"{event}.Resources", "params.names", f"[{some}]")
        if kind == "ints":
            return pick("params.sizes", f"[{', '.join(pick(*INTS) for _ in range(self.random.randint(0, 3)))}]")
        if kind == "rows":
            return pick("[]", "[[], ['a']]", f"[{self._leaf('texts')}, {self._leaf('texts')}]", "[[]]")
        if kind == "table":
            return pick(
                "{}", "{'a': []}", f"{{'a': {self._leaf('texts')}, {self._leaf('string')}: {self._leaf('texts')}}}"
            )
        if kind == "ids":
            return pick("{}", "{1: 'a'}", f"{{{self._leaf('int')}: {self._leaf('string')}, 0: 'b'}}")
        return pick("params.roles", "vm.tags", "{'role': 'web', 'a': 'b'}", "{'a': 'x'}", "{}")

    def _loop(self, kind: str, source: str, macro: str, body: str, depth: int) -> str:
        self._counter += 1
        # Sometimes a name that hides another one.
        name = self._pick("now", "notice", "vm") if self.random.random() < 0.05 else f"x{self._counter % 3}"
        hidden = [local for local in self.locals if local[0] == name]
        self.locals = [local for local in self.locals if local[0] != name]
        self.locals.append((name, kind))
        inner = self.make(body, depth)
        self.locals.pop()
        self.locals += hidden
        return f"{source}.{macro}({name}, {inner})"

    def _range(self, depth: int) -> tuple[str, str]:
        kind = self._pick("event", "event", "string", "int", "key", *([] if self.plain else ["texts", "column"]))
        if kind == "texts":
            return "texts", f"({self.make('rows', depth)})"
        if kind == "column":
            return "string", f"({self.make('table', depth)})"
        if kind == "event":
            return "event", "events"
        if kind == "key":
            return "string", self.make("roles", 0)
        source = self.make("texts" if kind == "string" else "ints", depth)
        return kind, source if source.startswith(("[", "params", "event.")) else f"({source})"

    def _bool(self, depth: int) -> str:
        random, event = self.random, self._event()
        choice = random.randrange(17)
        if choice < 4:
            operator = self._pick(" && ", " || ")
            return operator.join(self._operand("bool", depth) for _ in range(random.randint(2, 3)))
        if choice == 4:
            return f"!{self._operand('bool', depth)}"
        if choice < 8:
            kinds = ["int", "string", "timestamp", "duration", "double", "bool"]
            kind = self._pick(*kinds, *([] if self.plain else ["uint", "bytes"]))
            operator = self._pick("==", "!=", "<", "<=", ">", ">=")
            return f"{self._operand(kind, depth)} {operator} {self._operand(kind, depth)}"
        if choice == 8:
            name = self._pick(*KNOWN_VALUES)
            values = KNOWN_VALUES[name]
            if random.random() < 0.5:
                return f"{event}.{name} {self._pick('==', '!=')} '{self._pick(*values)}'"
            return f"{event}.{name} in [{', '.join(repr(self._pick(*values)) for _ in range(random.randint(1, 3)))}]"
        if choice == 9:
            kind, collection = self._pick("string texts", "int ints", "string roles").split()
            return f"{self._operand(kind, depth)} in {self._operand(collection, depth)}"
        if choice < 12:
            kind, source = self._range(depth)
            return self._loop(kind, source, self._pick("all", "exists", "exists_one"), "bool", depth)
        if choice == 12:
            method = self._pick("contains", "startsWith", "endsWith")
            return f"{self._operand('string', depth)}.{method}({self.make('string', depth)})"
        if choice == 13:
            return f"{self._operand('string', depth)}.matches(r'{self._pick(*PATTERNS)}')"
        if choice == 14 and not self.plain:
            return self._pick(
                f"bool({self.make('string', depth)})",
                f"{self._operand('texts', depth)} == {self._operand('texts', depth)}",
                f"[{self.make('double', depth)}] == [{self.make('double', depth)}]",
                f"{self._operand('double', depth)} in [{self.make('double', depth)}, {self.make('double', depth)}]",
                f"{self._operand('roles', depth)} == {self._operand('roles', depth)}",
                f"{self._operand('bytes', depth)} in [{self.make('bytes', depth)}]",
                f"{self._operand('timestamp', depth)} in [{self.make('timestamp', depth)}]",
            )
        if choice == 15:
            return self._contained(depth)
        return f"{event}.DurationInSeconds {self._pick('>=', '<', '==', '>')} {self._pick('0', '9', '-1', '30')}"

    def _contained(self, depth: int) -> str:
        """Return a test of containers in containers, empty ones above all."""
        kind = self._pick("string", "texts", "int", "roles", "bool")
        empty = f"{self._operand(kind, depth)} in {self._pick('[]', '[] + []', '[[]][0]')}"
        if self.plain:
            return empty
        return self._pick(
            empty,
            f"{self._operand('texts', depth)} in {self._operand('rows', depth)}",
            f"{self._operand('rows', depth)} {self._pick('==', '!=')} {self._operand('rows', depth)}",
            f"{self._operand('table', depth)} {self._pick('==', '!=')} {self._operand('table', depth)}",
            f"{self._operand('string', depth)} in {self._operand('table', depth)}",
            f"{self._operand('int', depth)} in {self._operand('ids', depth)}",
            f"{self._operand('bool', depth)} in {{true: 1}}",
            f"has({self._pick('params.roles', 'vm.tags')}.{self._pick('role', 'a', 'b')})",
        )

    def _zone(self, depth: int) -> str:
        """Return a time zone, which may not exist where the compiler cannot check it."""
        known = f"'{self._pick(*ZONES)}'"
        return self._pick("", "", known, known, "params.zone", "" if self.plain else self.make("string", depth))

    def _int(self, depth: int) -> str:
        choice = self.random.randrange(11)
        if choice < 4:
            operators = ["+", "-", "*"] if self.plain else ["+", "-", "*", "/", "%"]
            return f"{self._operand('int', depth)} {self._pick(*operators)} {self._operand('int', depth)}"
        if choice == 4:
            return f"-({self.make('int', depth)})"
        if choice == 5:
            kind = self._pick("string", "texts", "roles", "ints", *([] if self.plain else ["rows", "table", "bytes"]))
            text = self._operand(kind, depth)
            return f"{text}.size()" if self.random.random() < 0.5 else f"size({text})"
        if choice == 6:
            return f"{self._operand('timestamp', depth)}.get{self._pick(*_ACCESSORS)}({self._zone(depth)})"
        if choice == 7:
            return f"{self._operand('duration', depth)}.get{self._pick('Hours', 'Minutes', 'Seconds')}()"
        if choice == 8 and not self.plain:
            kind = self._pick("string", "double", "uint", "timestamp", "int")
            return f"int({self.make(kind, depth)})"
        if choice == 9 and not self.plain:
            start = self._pick("", "", f", {self._small()}")
            method = self._pick("indexOf", "lastIndexOf")
            return f"{self._operand('string', depth)}.{method}({self.make('string', depth)}{start})"
        index = self._pick("0", "1", "2") if self.plain else self._small()
        return f"{self._operand('ints', depth)}[{index}]"

    def _small(self) -> str:
        extreme = ("9223372036854775807", "-9223372036854775808") if self.random.random() < 0.1 else ()
        return self._pick("-1", "0", "1", "2", "3", "5", "params.n", *extreme)

    def _uint(self, depth: int) -> str:
        if self.random.random() < 0.6:
            return (
                f"{self._operand('uint', depth)} {self._pick('+', '-', '*', '/', '%')} {self._operand('uint', depth)}"
            )
        return f"uint({self.make(self._pick('int', 'double', 'string', 'uint'), depth)})"

    def _double(self, depth: int) -> str:
        if self.random.random() < 0.6:
            operators = ("+", "-", "*") if self.plain else ("+", "-", "*", "/")
            return f"{self._operand('double', depth)} {self._pick(*operators)} {self._operand('double', depth)}"
        if self.random.random() < 0.3:
            return f"-({self.make('double', depth)})"
        return f"double({self.make(self._pick('int', 'double', *([] if self.plain else ['string', 'uint'])), depth)})"

    def _string(self, depth: int) -> str:
        choice = self.random.randrange(4 if self.plain else 13)
        if choice < 2:
            return f"{self._operand('string', depth)} + {self._operand('string', depth)}"
        if choice == 2:
            kinds = ("int", "string") if self.plain else ("int", "string", "bool", "uint", "bytes")
            return f"string({self.make(self._pick(*kinds), depth)})"
        if choice == 3:
            key = self._pick(".role", ".a", "['role']", "['']")
            return f"{self._operand('roles', depth)}{key}"
        if choice == 4:
            return f"string({self.make(self._pick('timestamp', 'duration'), depth)})"
        if choice == 5:
            return f"{self._operand('string', depth)}.charAt({self._small()})"
        if choice == 6:
            return f"{self._operand('string', depth)}.{self._pick('lowerAscii', 'upperAscii', 'trim', 'reverse')}()"
        if choice == 7:
            limit = self._pick("", f", {self._small()}")
            arguments = f"{self.make('string', depth)}, {self.make('string', depth)}{limit}"
            return f"{self._operand('string', depth)}.replace({arguments})"
        if choice == 8:
            # Not with an end: Google's engine has a defect there, which other errors can hide (test_string_functions).
            return f"{self._operand('string', depth)}.substring({self._small()})"
        if choice == 9:
            return f"{self._operand('texts', depth)}.join({self._pick('', self.make('string', depth))})"
        if choice == 10:
            return f"{self._operand('ids', depth)}[{self._operand('int', depth)}]"
        return f"{self._operand('texts', depth)}[{self._small()}]"

    def _bytes(self, depth: int) -> str:
        if self.random.random() < 0.5:
            return f"bytes({self.make('string', depth)})"
        return f"{self._operand('bytes', depth)} + {self._operand('bytes', depth)}"

    def _timestamp(self, depth: int) -> str:
        if self.random.random() < 0.2 and not self.plain:
            return f"timestamp({self.make(self._pick('int', 'timestamp', 'string'), depth)})"
        if self.random.random() < 0.2:
            return f"{self._operand('duration', depth)} + {self._operand('timestamp', depth)}"
        return f"{self._operand('timestamp', depth)} {self._pick('+', '-')} {self._operand('duration', depth)}"

    def _duration(self, depth: int) -> str:
        if self.random.random() < 0.4:
            return f"{self._operand('timestamp', depth)} - {self._operand('timestamp', depth)}"
        if self.random.random() < 0.2 and not self.plain:
            return f"duration({self.make(self._pick('string', 'duration'), depth)})"
        return f"{self._operand('duration', depth)} {self._pick('+', '-')} {self._operand('duration', depth)}"

    def _texts(self, depth: int) -> str:
        choice = self.random.randrange(3 if self.plain else 7)
        if choice == 0:
            kind, source = self._range(depth)
            return self._loop(kind, source, "map", "string", depth)
        if choice == 1:
            return self._loop("string", f"({self.make('texts', depth)})", "filter", "bool", depth)
        if choice == 2:
            return f"{self._operand('texts', depth)} + {self._operand('texts', depth)}"
        if choice == 3:
            limit = self._pick("", f", {self._small()}")
            return f"{self._operand('string', depth)}.split({self.make('string', depth)}{limit})"
        if choice == 4:
            return f"{self._operand('rows', depth)}[{self._small()}]"
        if choice == 5:
            return f"{self._operand('table', depth)}{self._pick('.a', '.role', '[params.label]')}"
        body = f"{self.make('bool', depth - 1)}, "
        return self._loop("string", f"({self.make('texts', depth)})", "map", "string", depth).replace(
            ", ", f", {body}", 1
        )

    def _ints(self, depth: int) -> str:
        if self.random.random() < 0.5:
            kind, source = self._range(depth)
            return self._loop(kind, source, "map", "int", depth)
        return self._loop("int", f"({self.make('ints', depth)})", "filter", "bool", depth)

    def _rows(self, depth: int) -> str:
        choice = self.random.randrange(4)
        if choice == 0:
            return f"{self._operand('rows', depth)} + {self._operand('rows', depth)}"
        if choice == 1:
            kind, source = self._range(depth)
            return self._loop(kind, source, "map", "texts", depth)
        if choice == 2:
            return self._loop("texts", f"({self.make('rows', depth)})", "filter", "bool", depth)
        return f"[{self.make('texts', depth)}, {self.make('texts', depth)}]"

    def _table(self, depth: int) -> str:
        entries = {key: self.make("texts", depth) for key in ("'a'", self.make("string", depth))}
        return "{" + ", ".join(f"{key}: {value}" for key, value in entries.items()) + "}"

    def _ids(self, depth: int) -> str:
        return f"{{{self.make('int', depth)}: {self.make('string', depth)}, 1: 'a'}}"

    def _roles(self, _depth: int) -> str:
        return self._leaf("roles")
