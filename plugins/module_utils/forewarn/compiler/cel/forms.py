# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The typed forms that the checker builds, and optional values in two parts.

A form is a list as the artifact has it: ``[op, type, start, end, operand…]`` (policy/forms.py). The place is that of a
node of the syntax tree.
"""

from __future__ import annotations

from typing import Any, List, NamedTuple

from .syntax import SyntaxNode
from .types import BOOL, DYN, UNKNOWN, Type

Form = List[Any]


class OptionalParts(NamedTuple):
    """An optional value in two parts: forms of whether there is a value, and of the value.

    The value may be read only where there is one. So ``event.?X.orValue(d)`` becomes ``has(event.X) ? event.X : d``,
    which is fast, and which the solver understands.
    """

    present: Form
    value: Form


class TypedForm(NamedTuple):
    """A form and its type. The type of OptionalParts is that of the optional value."""

    form: Any  # a Form or OptionalParts; Any, because most callers know from the type which of them it is
    type: Type

    @property
    def is_literal(self) -> bool:
        """Whether the form is a constant."""
        return is_literal(self.form)


def typed_form(op: str, type_: Type, node: SyntaxNode, *operands: Any) -> TypedForm:
    """Return a form and its type. Operands that are OptionalParts become forms."""
    return TypedForm([op, str(type_), node.start, node.end, *map(as_form, operands)], type_)


def typed_call(type_: Type, node: SyntaxNode, function: str, *arguments: Any) -> TypedForm:
    """Return the form of a call, and its type."""
    return typed_form("call", type_, node, function, *arguments)


def call(type_: Type, node: SyntaxNode, function: str, *arguments: Any) -> Form:
    """Return the form of a call."""
    return ["call", str(type_), node.start, node.end, function, *map(as_form, arguments)]


def conditional(type_: Type, node: SyntaxNode, condition: Form, then: Any, otherwise: Any) -> Form:
    """Return the form of ``condition ? then : otherwise``."""
    return ["if", str(type_), node.start, node.end, *map(as_form, (condition, then, otherwise))]


def conjunction(node: SyntaxNode, first: Form, second: Form) -> Form:
    """Return the form of whether both hold. Unlike ``&&`` in CEL, it fails where the first one fails."""
    if is_literal(first) and first[4]:
        return second
    return conditional(BOOL, node, first, second, bool_literal(node, False))


def dyn(node: SyntaxNode, value: Any) -> Form:
    """Return the form of a value that carries its type at run time."""
    return ["dyn", str(DYN), node.start, node.end, as_form(value)]


def bool_literal(node: SyntaxNode, value: bool) -> Form:
    """Return the form of true or false."""
    return ["lit", "bool", node.start, node.end, value]


def text_literal(text: str) -> Form:
    """Return the form of a text that is not a literal of the source, such as a field's name as key of a map."""
    return ["lit", "string", 0, 0, text]


def unknown(node: SyntaxNode, type_: Type = UNKNOWN) -> TypedForm:
    """Return the form of a node that has a mistake. ``type_`` is the type that it would have in any case."""
    return TypedForm(["unknown", str(UNKNOWN), node.start, node.end], type_)


def is_literal(form: Form | OptionalParts) -> bool:
    """Return whether a form is a constant."""
    return form[0] == "lit"


def as_form(operand: Any) -> Any:
    """Return the one form of an optional value in parts: what a list or a variable holds. Return others unchanged."""
    if not isinstance(operand, OptionalParts):
        return operand
    _op, type_, start, end, *_operands = operand.value
    optional = f"optional({type_})"
    none = ["call", optional, start, end, "none"]
    some = ["call", optional, start, end, "some", operand.value]
    if is_literal(operand.present):
        return some if operand.present[4] else none
    return ["if", optional, start, end, operand.present, some, none]


def parts_of(optional: TypedForm) -> OptionalParts:
    """Return the parts of an optional value."""
    form, type_ = optional
    if isinstance(form, OptionalParts):
        return form
    start, end = form[2:4]
    value_type = str(type_.of[0]) if type_.of else "unknown"
    return OptionalParts(
        ["call", "bool", start, end, "has_value", form], ["call", value_type, start, end, "value_of", form]
    )
