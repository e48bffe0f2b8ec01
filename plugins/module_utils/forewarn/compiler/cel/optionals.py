# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks optional values: ``event.?NotBefore``, ``tags[?'role']``, ``optional.of(x)``, and their methods.

The source is the optional values extension of CEL (cel-spec, proposal 246). The forms have two parts as long as
possible (``forms.OptionalParts``). Only where an optional value is kept, in a list or a variable, is it one value at
run time.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from . import operators
from . import types as t
from .context import CheckContext
from .forms import (
    Form,
    OptionalParts,
    TypedForm,
    as_form,
    bool_literal,
    call,
    conditional,
    conjunction,
    parts_of,
    typed_form,
    unknown,
)
from .guards import Present, without_name
from .names import has_field, select_field
from .syntax import SyntaxNode
from .types import LocalVariable, Type, with_article


def _optional(value_type: Type, present: Form, value: Any) -> TypedForm:
    """Return an optional value by its parts."""
    return TypedForm(OptionalParts(present, as_form(value)), t.optional_of(value_type))


def _value(optional: TypedForm) -> TypedForm:
    """Return what an optional value has inside."""
    return TypedForm(parts_of(optional).value, optional.type.of[0])


# Fields and elements


def select(context: CheckContext, node: SyntaxNode, operand: TypedForm) -> TypedForm:
    """Check ``x.?field``, and ``x.field`` of an optional x."""
    if operand.type.kind == "optional":
        inner = select(context, node, _value(operand))
        return inner if inner.type == t.UNKNOWN else _nested(node, operand, inner)
    present = has_field(context, node, node, operand)
    if present is None:
        return unknown(node)
    field = select_field(context, node, operand, guarded=True)
    return _optional(field.type, present.form, field.form)


def _nested(node: SyntaxNode, outer: TypedForm, inner: TypedForm) -> TypedForm:
    """Return an optional value of an optional value: present if both are."""
    parts = parts_of(inner)
    return _optional(inner.type.of[0], conjunction(node, parts_of(outer).present, parts.present), parts.value)


def index(context: CheckContext, node: SyntaxNode, container: TypedForm, key: TypedForm) -> TypedForm:
    """Check ``x[?key]``, and ``x[key]`` of an optional x."""
    type_ = container.type
    if t.UNKNOWN in (type_, key.type):
        return unknown(node)
    if type_.kind == "optional":
        if type_.of[0].kind in ("list", "dyn") and node.kind == "index":
            message = "CEL engines differ on an optional list that does not have this element"
            hint = f"write [?{context.source_of(node.children[1])}]"
            return context.refuse(node, "engines-disagree", message, hint)
        inner = index(context, node, _value(container), key)
        if inner.type == t.UNKNOWN:
            return inner
        (present, value), value_type = _nested(node, container, inner)
        if not key.is_literal:  # a key without a value is an error, also where there is nothing to look into
            present = conjunction(node, call(t.BOOL, node, "defined", key.form), present)
        return _optional(value_type.of[0], present, value)
    element = operators.index(context, node, container, key)
    if element.type == t.UNKNOWN:
        return element
    if type_.kind == "list" and key.type == t.INT:
        size = call(t.INT, node, "size", container.form)
        above = call(t.BOOL, node, "ge", key.form, ["lit", "int", node.start, node.end, 0])
        # The list is evaluated first: its error is the error of all.
        present = conjunction(node, call(t.BOOL, node, "lt", key.form, size), above)
    elif type_.kind == "map" and t.DYN not in (type_.of[0], key.type):
        present = call(t.BOOL, node, "in", key.form, container.form)
    else:
        present = call(t.BOOL, node, "dyn_has_index", *context.all_to_dyn(node.children, (container, key)))
    return _optional(element.type, present, element.form)


# Conditions and variables


def choice(
    context: CheckContext, node: SyntaxNode, condition: Form, then: TypedForm, otherwise: TypedForm
) -> TypedForm:
    """Return the form of one of two values, which must be of one type."""
    joined = t.join(then.type, otherwise.type)
    if joined is None and t.DYN in (then.type, otherwise.type):
        return typed_form("if", t.DYN, node, condition, *context.all_to_dyn((node, node), (then, otherwise)))
    if joined is None:
        both = f"{with_article(then.type)} or {with_article(otherwise.type)}"
        return context.refuse(node, "type-mismatch", f"?: gives {both}; both must be of one type")
    if joined.kind != "optional":
        return typed_form("if", joined, node, condition, then.form, otherwise.form)
    first, second = (parts_of(TypedForm(one.form, joined)) for one in (then, otherwise))
    present = conditional(t.BOOL, node, condition, first.present, second.present)
    return _optional(joined.of[0], present, conditional(joined.of[0], node, condition, first.value, second.value))


def bind(
    context: CheckContext, node: SyntaxNode, name: str, value: TypedForm, body: SyntaxNode, present: Present
) -> TypedForm:
    """Check an expression in which a name stands for a value, which is evaluated when it is first read."""
    number = len(context.locals)
    context.locals.append(LocalVariable(name, value.type, number, "bound"))
    form, type_ = context.check(body, without_name(present, name))
    context.locals.pop()
    if isinstance(form, OptionalParts):
        parts = (typed_form("bind", t.UNKNOWN, node, number, value.form, part).form for part in form)
        return TypedForm(OptionalParts(*parts), type_)
    return typed_form("bind", type_, node, number, value.form, form)


# Functions


def of(context: CheckContext, node: SyntaxNode, present: Present) -> TypedForm:
    """Check ``optional.of(x)``."""
    value = context.check(node.children[1], present)
    if value.type == t.UNKNOWN:
        return unknown(node)
    exists = bool_literal(node, True) if value.is_literal else call(t.BOOL, node, "defined", value.form)
    return _optional(value.type, exists, value.form)


def of_non_zero(context: CheckContext, node: SyntaxNode, present: Present) -> TypedForm:
    """Check ``optional.ofNonZeroValue(x)``."""
    form, type_ = context.check(node.children[1], present)
    if type_.kind in ("timestamp", "dyn", "record", "optional", "type"):
        return context.refuse(node, "unsupported", f"it is not defined what the zero of {with_article(type_)} is")
    return _optional(type_, call(t.BOOL, node, "non_zero", form), form)


def none(_context: CheckContext, node: SyntaxNode, _present: Present) -> TypedForm:
    """Check ``optional.none()``."""
    return _optional(t.NOTHING, bool_literal(node, False), _value_of_none(node, t.NOTHING))


def _value_of_none(node: SyntaxNode, type_: Type) -> Form:
    """Return the form of the value of nothing, which is an error."""
    return call(type_, node, "value_of", call(t.optional_of(type_), node, "none"))


# Methods


def _receiver(context: CheckContext, node: SyntaxNode, present: Present) -> TypedForm | None:
    """Check the receiver of a method. Return None, with a finding, if it is not an optional value."""
    receiver = node.children[0]
    optional = context.check(receiver, present)
    if optional.type.kind == "optional":
        return optional
    if optional.type != t.UNKNOWN:
        hint = ""
        if receiver.kind == "select":
            hint = f"write {context.source_of(receiver.children[0])}.?{receiver.value}"
        elif receiver.kind == "index":
            container, key = map(context.source_of, receiver.children)
            hint = f"write {container}[?{key}]"
        message = f"{node.value}() is asked of an optional value, and this is {with_article(optional.type)}"
        context.report(receiver, "type-mismatch", message, hint)
    return None


def has_value(context: CheckContext, node: SyntaxNode, present: Present) -> TypedForm:
    """Check ``x.hasValue()``."""
    optional = _receiver(context, node, present)
    return unknown(node) if optional is None else TypedForm(parts_of(optional).present, t.BOOL)


def value(context: CheckContext, node: SyntaxNode, present: Present) -> TypedForm:
    """Check ``x.value()``."""
    optional = _receiver(context, node, present)
    if optional is None:
        return unknown(node)
    exists, inner = parts_of(optional)
    type_ = optional.type.of[0]
    return typed_form("if", type_, node, exists, inner, _value_of_none(node, type_))


def or_value(context: CheckContext, node: SyntaxNode, present: Present) -> TypedForm:
    """Check ``x.orValue(y)``."""
    optional = _receiver(context, node, present)
    other = context.check(node.children[1], present)
    if optional is None or other.type == t.UNKNOWN:
        return unknown(node)
    wanted = optional.type.of[0]
    if not _is_alternative(context, node, wanted, other.type):
        return unknown(node)
    form, joined = choice(context, node, parts_of(optional).present, _value(optional), other)
    literal = node.children[1]
    if wanted.values is not None and literal.kind == "literal":  # one more text that this can be
        joined = replace(joined, values=(*wanted.values, literal.value))
    return TypedForm(form, joined)


def or_(context: CheckContext, node: SyntaxNode, present: Present) -> TypedForm:
    """Check ``x.or(y)``."""
    optional = _receiver(context, node, present)
    other = context.check(node.children[1], present)
    if optional is None or other.type == t.UNKNOWN or not _is_alternative(context, node, optional.type, other.type):
        return unknown(node)
    if other.type.kind != "optional":  # an element of [], which fits every type
        other = TypedForm(other.form, optional.type)
    exists = parts_of(optional).present
    either = conditional(t.BOOL, node, exists, bool_literal(node, True), parts_of(other).present)
    chosen = choice(context, node, exists, _value(optional), _value(other))
    return _optional(chosen.type, either, chosen.form)


def _is_alternative(context: CheckContext, node: SyntaxNode, wanted: Type, given: Type) -> bool:
    """Return whether an alternative has a type that fits. Reports one of another type."""
    if t.join(wanted, given) is not None or (t.DYN in (wanted, given) and wanted.kind != "optional"):
        return True
    message = f"{node.value}() takes {with_article(wanted)} here, and this is {with_article(given)}"
    context.report(node.children[1], "type-mismatch", message)
    return False


def map_value(context: CheckContext, node: SyntaxNode, present: Present) -> TypedForm:
    """Check ``x.optMap(v, f(v))`` and ``x.optFlatMap(v, g(v))``."""
    optional = _receiver(context, node, present)
    name, body = node.children[1:]
    if not name.is_identifier:
        message = f"{node.value}() takes a name and an expression, as in x.{node.value}(v, …)"
        context.report(name, "bad-macro", message)
        return unknown(node)
    if optional is None:
        return unknown(node)
    result = bind(context, node, name.value, _value(optional), body, present)
    if result.type == t.UNKNOWN:
        return unknown(node)
    if node.value == "optMap":
        defined = call(t.BOOL, node, "defined", result.form)
        return _optional(result.type, conjunction(node, parts_of(optional).present, defined), result.form)
    if result.type.kind != "optional":
        message = f"optFlatMap() takes an optional value, and this is {with_article(result.type)}"
        context.report(body, "type-mismatch", message, "write optMap")
        return unknown(node)
    return _nested(node, optional, result)
