# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The types of checked expressions, and the names that an expression may use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple


@dataclass(frozen=True)
class Type:
    """A CEL type. ``of`` holds the element type of a list, key and value of a map; ``name`` the record's.

    ``values`` are the texts that a string of a closed set may be, and ``label`` is what they are values of, such as
    EventType. ``later`` are those that came with a later api-version than the one compiled for, each with its version.
    Types that differ only in these three are equal.
    """

    kind: str
    of: tuple[Type, ...] = ()
    name: str = ""
    values: tuple[str, ...] | None = field(default=None, compare=False)
    label: str = field(default="", compare=False)
    later: tuple[tuple[str, str], ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        if self.kind == "record":
            return f"record({self.name})"
        if not self.of:
            return self.kind
        return f"{self.kind}({', '.join(map(str, self.of))})"


BOOL, INT, UINT, DOUBLE = Type("bool"), Type("int"), Type("uint"), Type("double")
STRING, BYTES, NULL = Type("string"), Type("bytes"), Type("null")
TIMESTAMP, DURATION = Type("timestamp"), Type("duration")
TYPE = Type("type")  # of the types themselves, as type() returns them
DYN = Type("dyn")  # of a value that carries its type at run time
PAIR = Type("pair")  # of a list's place and element, or of a map's key and value, in a loop with two variables
NOTHING = Type("nothing")  # of an empty list's elements: fits every type
UNKNOWN = Type("unknown")  # of a node that is already reported: fits everything

_SIMPLE = {type_.kind: type_ for type_ in (BOOL, INT, UINT, DOUBLE, STRING, BYTES, NULL, TIMESTAMP, DURATION)}
NUMERIC = frozenset(("int", "uint", "double"))
KEYS = frozenset(("bool", "int", "uint", "string"))  # kinds of map keys, by the language definition
ORDERED = frozenset(("bool", "int", "uint", "double", "string", "bytes", "timestamp", "duration"))


def list_of(element: Type) -> Type:
    """Return the type of lists of an element type."""
    return Type("list", (element,))


def map_of(key: Type, value: Type) -> Type:
    """Return the type of maps."""
    return Type("map", (key, value))


def optional_of(value: Type) -> Type:
    """Return the type of values that may be absent."""
    return Type("optional", (value,))


def with_article(type_: Type) -> str:
    """Return ``an int``, ``a list(string)``, ``an event``."""
    text = str(type_) if type_.kind != "record" else type_.name
    return ("an " if text[:1] in "aeio" else "a ") + text


def parse_type(text: str) -> Type:
    """Read a type as policy files write it: ``int``, ``list(string)``, ``map(string, int)``. Raises ValueError."""
    text = text.strip()
    if text in _SIMPLE:
        return _SIMPLE[text]
    if text.startswith("list(") and text.endswith(")"):
        return list_of(parse_type(text[5:-1]))
    if text.startswith("map(") and text.endswith(")"):
        key, comma, value = text[4:-1].partition(",")
        if comma and key.strip() in KEYS:
            return map_of(parse_type(key), parse_type(value))
    raise ValueError(f"{text!r} is not a type; the types are {', '.join(_SIMPLE)}, list(T), map(string, T)")


def join(a: Type, b: Type) -> Type | None:
    """Return the common type of two types, or None."""
    for one, other in ((a, b), (b, a)):
        if one.kind in ("nothing", "unknown"):
            return other
    if a.kind != b.kind or a.name != b.name or len(a.of) != len(b.of):
        return None
    parts = [join(x, y) for x, y in zip(a.of, b.of, strict=True)]
    if any(part is None for part in parts):
        return None
    values = a.values + b.values if a.values is not None and b.values is not None else None
    later = a.later if a.later == b.later else ()
    return Type(a.kind, tuple(part for part in parts if part is not None), a.name, values, a.label or b.label, later)


def join_all(types: Iterable[Type]) -> Type | None:
    """Return the common type of several types, NOTHING for none; None if they have no common type."""
    joined: Type | None = NOTHING
    for type_ in types:
        joined = None if joined is None else join(joined, type_)
    return joined


def comparable(a: Type, b: Type) -> bool:
    """Return whether values of two types may be equal, if types that are known only at run time fit."""
    if "dyn" in (a.kind, b.kind):
        return not (contains_kind(a, "record") or contains_kind(b, "record"))
    if a.kind in NUMERIC and b.kind in NUMERIC:
        return True
    if join(a, b) is not None:
        return True
    return a.kind == b.kind and len(a.of) == len(b.of) > 0 and all(map(comparable, a.of, b.of))


def contains_kind(type_: Type, kind: str) -> bool:
    """Return whether a type is of a kind, or contains one of it."""
    return type_.kind == kind or any(contains_kind(part, kind) for part in type_.of)


@dataclass(frozen=True)
class RecordField:
    """A field of a record: it ``always_exists``, may be absent, or never exists, for the ``missing_reason``."""

    type: Type
    always_exists: bool = False
    missing_reason: str | None = None


@dataclass(frozen=True)
class Declarations:
    """The names an expression may use: variables, the fields of records, policy variables (``variables.NAME``).

    ``named_zones``: the system that evaluates it knows time zones by name, such as Europe/Berlin.
    """

    variables: Mapping[str, Type]
    records: Mapping[str, Mapping[str, RecordField]] = field(default_factory=dict)
    policy_variables: Mapping[str, Type] = field(default_factory=dict)
    inner_names: Mapping[str, str] = field(default_factory=dict)
    named_zones: bool = True


# How a variable is read: that of a loop, those of a loop with two variables, and that of cel.bind().
LocalAccess = Literal["local", "first", "second", "bound"]


class LocalVariable(NamedTuple):
    """The variable of a loop or of cel.bind(); ``number`` counts from the outermost, from 0."""

    name: str
    type: Type
    number: int
    access: LocalAccess


Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True)
class ExpressionFinding:
    """A mistake in an expression: a stable code, a message, its place (character offsets), and a hint."""

    code: str
    message: str
    start: int
    end: int
    suggestion: str = ""
    severity: Severity = "error"


class CelSyntaxError(Exception):
    """The source cannot be parsed; ``finding`` has the place and the reason."""

    def __init__(self, code: str, message: str, start: int, end: int, suggestion: str = "") -> None:
        super().__init__(message)
        self.finding = ExpressionFinding(code, message, start, end, suggestion)
