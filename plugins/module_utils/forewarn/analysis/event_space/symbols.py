# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kinds of symbols: the values of each, its place in a case, and its words.

Those about the VMs of an event are in resources.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...events import (
    EVENT_SOURCES,
    EVENT_STATUSES,
    MAX_ID_CHARACTERS,
    MAX_TEXT_CHARACTERS,
    RESOURCE_TYPES,
    event_types,
    has_field,
)
from ...policy.functions.standard import INT_MAX
from ...policy.params import convert
from ..artifacts import Json
from ..witness import as_json
from .case import Case
from .domains import LONGEST, MISSING, RANGES, DomainValue, after, intervals, show, texts
from .symbol_table import Symbol, SymbolTable

FIRST_NOW, LAST_NOW = 946_684_800 * 10**9, 4_102_444_800 * 10**9  # of the years 2000 to 2100
_BLANK = "no NotBefore"
_MAY_LACK = ("zone", "scale_set", "fault_domain")  # facts that not every VM has


class EventField(Symbol):
    """A field of an event that is a text."""

    section = "event"

    def __init__(self, field: str) -> None:
        super().__init__(f"event.{field}", field, spoken=field, part="when" if field == "EventStatus" else "")
        self.rank = {"EventType": 0, "EventStatus": 1}.get(field, Symbol.rank)

    def values(self, table: SymbolTable) -> tuple[DomainValue, ...]:
        if not has_field(table.api_version, self.key):
            return (DomainValue("missing", MISSING),)
        return self._values(set(filter(self._can_be, table.use(self).texts)), table)

    def _values(self, literals: set[str], table: SymbolTable) -> tuple[DomainValue, ...]:
        if self.key in ("EventType", "EventStatus"):  # others are of claims alone, by parameters
            known = event_types(table.api_version) if self.key == "EventType" else EVENT_STATUSES
            return texts((*known, *table.extra.get(self.key, ())), literals, None, literal=False, other=False)
        usual = {"EventSource": EVENT_SOURCES, "ResourceType": RESOURCE_TYPES}.get(self.key)
        if usual is not None:
            return texts(usual, literals, False, literal=False, other=False)
        return texts((), literals, None if self.key == "EventId" else self.key == "Description")

    def _can_be(self, text: str) -> bool:
        """Return whether an event may have a text: events.py reads no other."""
        if self.key == "EventId":
            return bool(text.strip()) and len(text) <= MAX_ID_CHARACTERS
        if self.key in ("EventType", "EventStatus") and not text:
            return False
        return len(text) <= MAX_TEXT_CHARACTERS


class Duration(EventField):
    """DurationInSeconds: -1 if it is not known, nothing below that is valid (SE-19)."""

    kind = "int"
    bounds = frozenset((-1, 0))

    def __init__(self) -> None:
        super().__init__("DurationInSeconds")

    def values(self, table: SymbolTable) -> tuple[DomainValue, ...]:
        if not has_field(table.api_version, self.key):
            return (DomainValue("missing", MISSING),)
        values = intervals(self.kind, table.cuts_of(self), -1, INT_MAX, len(table.group(self.name)), True)
        values = tuple(value._replace(label="-1 (unknown)") if value.concrete == -1 else value for value in values)
        return (*values, DomainValue("missing", MISSING, False))

    def cuts(self, _table: SymbolTable) -> set[Any]:
        return {0}


class Time(Symbol):
    """``age`` or ``now``, which an expression reads by that name, and ``notice``."""

    def __init__(self, name: str, kind: str, low: int, high: int) -> None:
        super().__init__(name, part="when")
        self.kind = kind
        self.bounds = frozenset(() if kind == "timestamp" else (0,))
        self._low, self._high = low, high

    def values(self, table: SymbolTable) -> tuple[DomainValue, ...]:
        return intervals(self.kind, table.cuts_of(self), self._low, self._high, len(table.group(self.name)), fine=False)


class Notice(Time):
    """How far ahead NotBefore is; in differences to it also how long it has passed."""

    joint_cuts = frozenset((0, 1))  # past NotBefore, and once started, it is 0

    def __init__(self) -> None:
        super().__init__("notice", "duration", 0, LONGEST)

    def values(self, table: SymbolTable) -> tuple[DomainValue, ...]:
        low = -LONGEST if table.use(self).signed else 0
        values = intervals(self.kind, table.cuts_of(self), low, LONGEST, len(table.group(self.name)), fine=False)
        return (*values, DomainValue(_BLANK, MISSING, False))  # and normal once started, see Space

    def phrase(self, listed: Sequence[str]) -> str:
        return "NotBefore is blank" if listed == [_BLANK] else super().phrase(listed)


class VmFact(Symbol):
    """A fact about the VM, such as its zone; the name is a class of its own."""

    section = "vm"

    def __init__(self, fact: str) -> None:
        super().__init__(f"vm.{fact}", fact)

    def values(self, table: SymbolTable) -> tuple[DomainValue, ...]:
        return texts((), table.use(self).texts, self.key in _MAY_LACK)


class Flag(Symbol):
    """What has a few values, whatever is asked of it."""

    kind = "flag"
    choices: tuple[DomainValue, ...] = (DomainValue("yes", True), DomainValue("no", False))

    def values(self, _table: SymbolTable) -> tuple[DomainValue, ...]:
        return self.choices


class TagsKnown(Flag):
    """Whether the VM's tags are known."""

    choices = (DomainValue("known", True), DomainValue("not known", False, False))

    def __init__(self) -> None:
        super().__init__("vm.tags", "tags_known", title="Its tags", part="tags")

    def phrase(self, listed: Sequence[str]) -> str:
        return f"vm.tags are {listed[0]}" if len(listed) == 1 else super().phrase(listed)


class Tag(Symbol):
    """One tag of the VM."""

    section = "tags"

    def __init__(self, key: str) -> None:
        spoken = f"vm.tags.{key}" if key.isidentifier() else f"vm.tags[{key!r}]"
        super().__init__(f"tag:{key}", key, spoken=spoken, part="tags")

    def values(self, table: SymbolTable) -> tuple[DomainValue, ...]:
        return texts((), table.use(self).texts, True)


class Param(Symbol):
    """A parameter that varies; ``declaration`` as the artifact has it, perhaps with ``cuts`` and ``texts`` (limits)."""

    section = "params"

    def __init__(self, param: str, declaration: Json) -> None:
        super().__init__(f"params.{param}", param)
        self.declaration = declaration
        self.type: str = declaration["type"]
        self.closed = "enum" in declaration or self.type == "bool"
        self.kind = "flag" if self.closed else "text" if self.type == "string" else self.type

    def put(self, case: Case, value: Any) -> None:
        super().put(case, value)
        case.given[self.key] = as_json(self.type, value)

    def values(self, table: SymbolTable) -> tuple[DomainValue, ...]:
        if "enum" in self.declaration:
            found = [convert(item, self.type) for item in self.declaration["enum"]]
            return tuple(DomainValue(show(self.type, one), one) for one in found)
        if self.type == "bool":
            return (DomainValue("true", True), DomainValue("false", False))
        if self.type == "string":
            return texts((), {*table.use(self).texts, *self.declaration.get("texts", ())}, None)
        low, high = self._range()
        return intervals(self.type, table.cuts_of(self), low, high, len(table.group(self.name)), fine=True)

    def cuts(self, _table: SymbolTable) -> set[Any]:
        low, high = self._range()
        return {*self.declaration.get("cuts", ()), low, after(high)}

    def _range(self) -> tuple[Any, Any]:
        low, high = RANGES[self.type]
        if "min" in self.declaration:
            low = convert(self.declaration["min"], self.type)
        if "max" in self.declaration:
            high = convert(self.declaration["max"], self.type)
        return low, high


class Opaque(Flag):
    """An expression that is not understood: nothing about it may be relied upon.

    ``source`` is its text, ``atom`` evaluates it on a concrete event.
    """

    kind = "opaque"
    choices = (DomainValue("true", True), DomainValue("false", False))

    def __init__(self, number: int, source: str, atom: Any) -> None:
        super().__init__(f"opaque:{number}", title=source)
        self.source, self.atom = source, atom

    def put(self, case: Case, value: Any) -> None:
        """Leave a case as it is: what a class claims of such an expression is true by chance only."""

    def phrase(self, listed: Sequence[str]) -> str:
        label = listed[0]
        if not self.atom.is_test:  # it stands for whether there is a value
            return f"({self.source}) has {'a' if label == 'true' else 'no'} value"
        return f"({self.source}) is {label}"


NOTICE, AGE, NOW = Notice(), Time("age", "duration", 0, LONGEST), Time("now", "timestamp", FIRST_NOW, LAST_NOW)
DURATION, TAGS_KNOWN = Duration(), TagsKnown()
EVENT_TYPE, EVENT_STATUS = EventField("EventType"), EventField("EventStatus")
