# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What expressions read: the parts of a form that are symbols, and what is asked of each.

Filled while expressions are read, then turned into dimensions. A dimension that nothing reads does not exist, but for
EventType and EventStatus, of which the engine itself wants to know.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from ...policy.forms import Call, Field, Form, Has, Literal, Variable
from .domains import after
from .resources import COUNT, PLACE, VM_NAME, Named
from .symbols import (
    AGE,
    DURATION,
    EVENT_STATUS,
    EVENT_TYPE,
    NOTICE,
    NOW,
    TAGS_KNOWN,
    Asked,
    Dimension,
    EventField,
    Opaque,
    Param,
    Symbol,
    Tag,
    VmFact,
)


class Leaf(NamedTuple):
    """A part of an expression that reads symbols; ``main``, the first of them, is cut by comparing it.

    ``enumerable``: each value of the symbols stands for itself, so that any function of them is exact.
    """

    kind: str
    symbols: tuple[Symbol, ...]
    enumerable: bool = False
    signed: bool = False  # a difference to NotBefore may be negative, a notice cannot

    @property
    def main(self) -> Symbol:
        """The symbol that is compared."""
        return self.symbols[0]

    @property
    def dims(self) -> frozenset[str]:
        """The names of the symbols."""
        return frozenset(symbol.name for symbol in self.symbols)


class SymbolTable:
    """The dimensions of a set of policies. ``params`` has the declarations of parameters that vary, by name."""

    def __init__(
        self, api_version: str, params: Mapping[str, Mapping[str, Any]], extra: Mapping[str, tuple[str, ...]]
    ) -> None:
        self.api_version = api_version
        self.params = params
        self.extra = extra
        self.specs: dict[str, Asked] = {}
        self.opaque_terms: dict[str, Opaque] = {}
        self._opaque_keys: dict[Any, str] = {}
        self._groups: dict[str, frozenset[str]] = {}
        for symbol in (EVENT_TYPE, EVENT_STATUS):
            self.asked(symbol)

    # Reading

    def leaf(self, form: Form, reader: Any) -> Leaf | None:
        """Return what a form reads if it is one of the known accesses, None otherwise."""
        if isinstance(form, Variable):
            return _VARIABLES.get(form.name)
        if isinstance(form, Field) and form.record is not None:
            return self._field(form.record, form.name, form.type, reader)
        if isinstance(form, Has):
            return _has(form)
        return self._call(form, reader) if isinstance(form, Call) else None

    def _field(self, record: str, name: str, kind: str, reader: Any) -> Leaf | None:
        if record == "params":
            if name in reader.params:
                return Leaf(kind, (), enumerable=True)
            if name not in self.params:
                return None
            param = Param(name, self.params[name])
            return Leaf("text" if kind == "string" else kind, (param,), param.closed)
        if name in ("Resources", "tags", "NotBefore"):
            return None
        symbol = _symbol_of(record, name)
        closed = symbol in (EVENT_TYPE, EVENT_STATUS) and not reader.invariants
        return Leaf("int" if symbol is DURATION else "text", (symbol,), closed)

    def _call(self, form: Call, reader: Any) -> Leaf | None:
        name, (first, *others) = form.function, [reader.resolved(argument) for argument in form.arguments]
        second = others[0] if others else None
        if name == "size" and is_field(first, "event", "Resources"):
            return Leaf("int", (COUNT,))
        if name == "index_map" and is_field(first, "vm", "tags") and isinstance(second, Literal):
            return Leaf("text", (Tag(second.value), TAGS_KNOWN))
        if name == "in" and isinstance(first, Literal):
            if is_field(second, "event", "Resources"):
                return Leaf("bool", (Named(first.value),), enumerable=True)
            if is_field(second, "vm", "tags"):
                return Leaf("bool", (Tag(first.value), TAGS_KNOWN), enumerable=True)
        if name == "diff_timestamp" and is_field(first, "event", "NotBefore") and is_variable(second, "now"):
            return Leaf("duration", (NOTICE,), signed=True)
        return None

    def want(self, leaf: Leaf) -> None:
        """Have the dimensions of a leaf."""
        for symbol in leaf.symbols:
            self.asked(symbol)
        if leaf.signed:
            self.asked(NOTICE).signed = True

    def cut(self, leaf: Leaf, op: str, values: Collection[Any]) -> None:
        """Let the classes distinguish ``leaf OP value`` for each of some values."""
        self.want(leaf)
        asked = self.asked(leaf.main)
        if leaf.kind == "text":
            asked.texts.update(values)
            return
        if op not in ("le", "gt"):
            asked.cuts.update(values)
        if op not in ("lt", "ge"):
            asked.cuts.update(map(after, values))

    def join(self, first: Leaf, second: Leaf) -> frozenset[str] | None:
        """Let the classes distinguish two ordered leaves; None for texts."""
        if "text" in (first.kind, second.kind):
            return None
        self.want(first)
        self.want(second)
        both = self.group(first.main.name) | self.group(second.main.name)
        self._groups.update(dict.fromkeys(both, both))
        if NOTICE.name in both:  # past NotBefore, and once started, it is 0
            self.asked(NOTICE).cuts |= {0, 1}
        return first.dims | second.dims

    def group(self, name: str) -> frozenset[str]:
        """Return the dimensions that a dimension is compared with, itself included."""
        return self._groups.get(name, frozenset((name,)))

    def opaque(self, key: Any, source: str, atom: Any, reads: frozenset[str]) -> str:
        """Return the dimension of an expression that is not understood."""
        if key not in self._opaque_keys:
            term = Opaque(len(self.opaque_terms) + 1, source, atom, reads)
            self._opaque_keys[key] = term.name
            self.opaque_terms[term.name] = term
            self.asked(term)
        return self._opaque_keys[key]

    def asked(self, symbol: Symbol) -> Asked:
        """Return what is asked of a symbol, which has a dimension from now on."""
        if symbol.name not in self.specs:
            self.specs[symbol.name] = Asked(symbol)
            if symbol is PLACE:
                self.asked(VM_NAME)
        return self.specs[symbol.name]

    def named(self) -> list[Named]:
        """Return the names that Resources is asked for."""
        return [one.symbol for one in self.specs.values() if isinstance(one.symbol, Named)]

    def cuts_of(self, symbol: Symbol) -> set[Any]:
        """Return where the values of an ordered symbol are cut, with all that it is compared with, and their bounds."""
        found: set[Any] = set()
        for name in self.group(symbol.name):
            peer = self.specs[name]
            found |= peer.cuts | peer.symbol.cuts(self)
            if peer.symbol is not symbol:
                found |= peer.symbol.bounds
        return found

    # Dimensions

    def dimensions(self) -> tuple[Dimension, ...]:
        """Return all dimensions; the first vary slowest in the order of classes."""
        first = (EVENT_TYPE.name, EVENT_STATUS.name)
        return tuple(map(self.dimension, (*first, *sorted(self.specs.keys() - set(first)))))

    def dimension(self, name: str) -> Dimension:
        """Return one dimension as far as it is known by now."""
        asked = self.specs[name]
        return Dimension(asked.symbol, asked.symbol.values(self), tuple(sorted(self.group(name))))


def _symbol_of(record: str, field: str) -> Symbol:
    """Return the symbol of a field of ``event`` or ``vm``."""
    known: tuple[Symbol, ...] = (EVENT_TYPE, EVENT_STATUS, DURATION, VM_NAME)
    made = EventField(field) if record == "event" else VmFact(field)
    return next((symbol for symbol in known if symbol.name == made.name), made)


def _has(form: Has) -> Leaf | None:
    symbols: tuple[Symbol, ...] | None = None
    if form.record == "event":
        given = {"Resources": (), "NotBefore": (NOTICE,)}  # the parser requires Resources
        symbols = given[form.name] if form.name in given else (_symbol_of("event", form.name),)
    elif form.record == "vm":
        symbols = (TAGS_KNOWN if form.name == "tags" else _symbol_of("vm", form.name),)
    elif is_field(form.operand, "vm", "tags"):
        symbols = (Tag(form.name), TAGS_KNOWN)
    return None if symbols is None else Leaf("bool", symbols, enumerable=True)


def is_variable(form: Form | None, name: str) -> bool:
    """Return whether a form is a declared variable."""
    return isinstance(form, Variable) and form.name == name


def is_field(form: Form | None, record: str, name: str) -> bool:
    """Return whether a form is a field of a declared variable."""
    return isinstance(form, Field) and (form.record, form.name) == (record, name)


_VARIABLES: Mapping[str, Leaf] = {
    "notice": Leaf("duration", (NOTICE, EVENT_STATUS)),
    "age": Leaf("duration", (AGE,)),
    "now": Leaf("timestamp", (NOW,)),
    "affects_me": Leaf("bool", (PLACE, VM_NAME), enumerable=True),
    "leader": Leaf("bool", (PLACE, VM_NAME), enumerable=True),
}
