# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the parts of an expression read: the accesses to symbols among them."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ...policy.forms import Call, Field, Form, Has, Literal, PolicyVariable, Variable
from ..artifacts import Json
from .resources import COUNT, PLACE, VM_NAME, ResourceListed
from .symbol_table import Leaf, Symbol
from .symbols import (
    AGE,
    DURATION,
    EVENT_STATUS,
    EVENT_TYPE,
    NOTICE,
    NOW,
    TAGS_KNOWN,
    EventField,
    Param,
    Tag,
    VmFact,
)


class Leaves:
    """Recognizes the leaves of one policy's expressions.

    ``fixed`` names parameters with one value, ``varying`` declares the others. Rules do not see events of unknown
    type or status.
    """

    def __init__(self, fixed: Collection[str], varying: Mapping[str, Json]) -> None:
        self.variables: dict[str, Form] = {}  # of the policy
        self._fixed = fixed
        self._varying = varying

    def resolved(self, form: Form) -> Form:
        """Return a form, or what the policy variable that it is stands for."""
        while isinstance(form, PolicyVariable):
            form = self.variables[form.name]
        return form

    def of(self, form: Form) -> Leaf | None:
        """Return what a form reads if it is one of the known accesses, None otherwise."""
        form = self.resolved(form)
        if isinstance(form, Variable):
            return _VARIABLES.get(form.name)
        if isinstance(form, Field) and form.record is not None:
            return self._field(form.record, form.name, form.type)
        if isinstance(form, Has):
            return _has(form)
        return self._call(form) if isinstance(form, Call) else None

    def _field(self, record: str, name: str, kind: str) -> Leaf | None:
        if record == "params":
            if name in self._fixed:
                return Leaf(kind, (), enumerable=True)
            if name not in self._varying:
                return None
            param = Param(name, self._varying[name])
            return Leaf("text" if kind == "string" else kind, (param,), param.closed)
        if name in ("Resources", "tags", "NotBefore"):
            return None
        symbol = _symbol_of(record, name)
        closed = symbol in (EVENT_TYPE, EVENT_STATUS)
        return Leaf("int" if symbol is DURATION else "text", (symbol,), closed)

    def _call(self, form: Call) -> Leaf | None:
        if not form.arguments:  # optional.none()
            return None
        name, (first, *others) = form.function, [self.resolved(argument) for argument in form.arguments]
        second = others[0] if others else None
        if name == "size" and is_field(first, "event", "Resources"):
            return Leaf("int", (COUNT,))
        if name == "index_map" and is_field(first, "vm", "tags") and isinstance(second, Literal):
            return Leaf("text", (Tag(second.value), TAGS_KNOWN))
        if name == "in" and isinstance(first, Literal):
            if is_field(second, "event", "Resources"):
                return Leaf("bool", (ResourceListed(first.value),), enumerable=True)
            if is_field(second, "vm", "tags"):
                return Leaf("bool", (Tag(first.value), TAGS_KNOWN), enumerable=True)
        if name == "diff_timestamp" and is_field(first, "event", "NotBefore") and is_variable(second, "now"):
            return Leaf("duration", (NOTICE,), signed=True)
        return None


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
