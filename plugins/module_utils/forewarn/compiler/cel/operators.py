# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks operators: arithmetic, comparisons, ``in`` and indexing."""

from __future__ import annotations

from ...policy.functions.overloads import OPERATORS
from ..wording import did_you_mean
from . import types as t
from .context import CheckContext
from .environment import EXTENSIBLE, RESOURCES, VM_NAME
from .forms import TypedForm, call, typed_call, unknown
from .guards import Present
from .overloads import COMPARISONS, matching_overload, possible_overloads, result_type
from .syntax import SyntaxNode
from .type_hints import comparison_hint, membership_hint, operator_hint
from .types import Type, with_article


def check(context: CheckContext, node: SyntaxNode, present: Present) -> TypedForm:
    """Check an operator with its operands."""
    operands = context.check_all(node.children, present)
    forms, types = [form for form, _type in operands], [type_ for _form, type_ in operands]
    if t.UNKNOWN in types:
        return unknown(node, _type_in_any_case(node))
    if node.value in COMPARISONS:
        return _comparison(context, node, operands)
    if node.value == "in":
        return _membership(context, node, operands)
    if node.value == "+" and types[0].kind == types[1].kind == "list":
        joined = t.join(types[0], types[1])
        if joined is not None:
            return typed_call(joined, node, "add_list", *forms)
    overloads = OPERATORS[node.value]
    overload = matching_overload(overloads, types)
    if overload is not None:
        right = node.children[-1]
        if node.value in "/%" and types[1].kind in ("int", "uint") and right.kind == "literal" and right.value == 0:
            context.report(node, "bad-literal", "this divides by zero")
        return typed_call(result_type(overload, types), node, overload.name, *forms)
    lists = node.value == "+" and all(type_.kind in ("list", "dyn") for type_ in types)
    if lists or (t.DYN in types and possible_overloads(overloads, types)):
        dynamic = typed_call(t.DYN, node, f"dyn {node.value}", *context.all_to_dyn(node.children, operands))
        return dynamic if t.DYN in types else typed_call(t.list_of(t.DYN), node, "dyn_value", dynamic.form)
    symbol = "-" if node.value == "negate" else node.value
    hint = operator_hint(node.value, context.operands(node.children, types))
    return _mismatch(context, node, f"{symbol} cannot be applied to", types, hint)


def _type_in_any_case(node: SyntaxNode) -> Type:
    """Return the type that an operator has even if its operands have mistakes."""
    return t.BOOL if node.value in COMPARISONS or node.value in ("in", "!") else t.UNKNOWN


def _mismatch(context: CheckContext, node: SyntaxNode, verb: str, types: list[Type], hint: str) -> TypedForm:
    if any(type_.kind == "optional" for type_ in types):
        hint = "remove the ?, or say what holds without a value, as in x.orValue(…)"
    context.report(node, "type-mismatch", f"{verb} {' and '.join(map(str, types))}", hint)
    return unknown(node, _type_in_any_case(node))


# Comparisons


def _comparison(context: CheckContext, node: SyntaxNode, operands: list[TypedForm]) -> TypedForm:
    (left, left_type), (right, right_type) = operands
    types = [left_type, right_type]
    name = COMPARISONS[node.value]
    equality = name in ("eq", "ne")
    joined = t.join(left_type, right_type)
    if joined is None and left_type.kind in t.NUMERIC and right_type.kind in t.NUMERIC:
        return typed_call(t.BOOL, node, f"number_{name}", left, right)
    dynamic = any(t.contains_kind(type_, "dyn") for type_ in types) or (equality and joined is None)
    allowed = joined is None if equality else all(one.kind in (*t.ORDERED, "dyn") for one in types)
    if dynamic and t.comparable(left_type, right_type) and allowed:
        return typed_call(t.BOOL, node, f"dyn_{name}", *context.all_to_dyn(node.children, operands))
    if joined is None or t.contains_kind(joined, "record") or not (equality or joined.kind in t.ORDERED):
        hint = comparison_hint(node.value, *context.operands(node.children, types))
        return _mismatch(context, node, f"{node.value} does not compare", types, hint)
    if equality:
        expect_value(context, node.children[0], right_type)
        expect_value(context, node.children[1], left_type)
        _expect_no_case(context, node, types)
        if joined.of and (t.contains_kind(joined, "double") or dynamic):
            name += "_deep"
    return typed_call(t.BOOL, node, name, left, right)


def _membership(context: CheckContext, node: SyntaxNode, operands: list[TypedForm]) -> TypedForm:
    (element_form, element), (container_form, container) = operands
    types = [element, container]
    listed = node.children[1]
    never = node.children[0].kind != "literal" and _never_among(listed, element)
    dynamic = t.DYN in types or (container.of and container.of[0] == t.DYN and not never)
    if dynamic and container.kind in ("list", "map", "dyn") and not t.contains_kind(container, "record"):
        return typed_call(t.BOOL, node, "dyn_in", *context.all_to_dyn(node.children, operands))
    joined = t.join(element, container.of[0]) if container.kind in ("list", "map") else None
    no_key = container.kind == "map" and not is_key(element)
    if joined is None or t.contains_kind(joined, "record") or no_key:
        items = listed.children if listed.kind == "list" else []
        of = container.of[0] if container.of else t.UNKNOWN
        literals = [context.operand(item, item.type or of) for item in items]
        looked_for, looked_in = context.operands(node.children, types)
        hint = membership_hint(looked_for, looked_in, literals)
        return _mismatch(context, node, "in does not look for", types, hint)
    _expect_no_case(context, node, types)
    for item in listed.children if listed.kind == "list" else _keys(listed):
        expect_value(context, item, element)
    expect_value(context, node.children[0], container.of[0])
    deep = container.kind == "list" and t.contains_kind(joined, "double")
    return typed_call(t.BOOL, node, "in_deep" if deep else "in", element_form, container_form)


def _never_among(listed: SyntaxNode, element: Type) -> bool:
    """Return whether a literal in a list of several types can never equal the element: a mistake in a policy."""
    literals = [item for item in listed.children if item.kind == "literal" and item.type is not None]
    return listed.kind == "list" and any(not t.comparable(item.type or element, element) for item in literals)


def expect_value(context: CheckContext, node: SyntaxNode, other: Type) -> None:
    """Report a literal text that the other side can never equal, also in a list or as a result of ``?:``."""
    if node.kind == "list" and other.kind == "list":
        for item in node.children:
            expect_value(context, item, other.of[0])
    if node.kind == "method" and node.value == "of" and other.kind == "optional":
        expect_value(context, node.children[1], other.of[0])
    if node.kind == "if":
        for outcome in node.children[1:]:
            expect_value(context, outcome, other)
    if node.kind != "literal" or other.values is None:
        return
    since = dict(other.later).get(node.value)
    if since is not None:
        message = f'no event is of {other.label} "{node.value}" in this api-version: it came with {since}'
        hint = f"compile for {since} or later, or declare it in extra_values"
        context.report(node, "value-not-in-api-version", message, hint, "warning")
    if node.value in other.values:
        return
    known = ", ".join(f'"{value}"' for value in other.values)
    message = f'"{node.value}" is not among the values of {other.label or "this"}: {known}'
    declare = "declare it in extra_values if the service has it" if other.label in EXTENSIBLE else ""
    context.report(node, "unknown-value", message, did_you_mean(node.value, other.values) or declare)


def _expect_no_case(context: CheckContext, node: SyntaxNode, types: list[Type]) -> None:
    """Warn about a search for the VM's name in Resources: case may differ, which affects_me takes into account."""
    nodes = {_label(type_): child for type_, child in zip(types, node.children, strict=True)}
    if nodes.keys() != {RESOURCES, VM_NAME}:
        return
    names = nodes[RESOURCES]
    own = context.dotted_name(names.children[0] if names.kind == "index" else names) == "event.Resources"
    negated = "!" if node.value == "!=" else ""
    if own and node.value == "in":
        hint = "write affects_me"
    elif own and names.kind == "index" and names.children[1].value == 0:
        hint = f"write {negated}leader"
    elif own and types[0].kind == "list":
        hint = f"write {negated}(affects_me && size(event.Resources) == 1)"
    elif node.value == "in":
        hint = f"write {context.source_of(names)}.exists(r, r.lowerAscii() == vm.name.lowerAscii())"
    else:
        hint = "write lowerAscii() behind both"
    message = "Resources may spell this VM's name in another case, and then this does not find it"
    context.report(node, "case-sensitive", message, hint, "warning")


# Elements


def index(context: CheckContext, node: SyntaxNode, container: TypedForm, key: TypedForm) -> TypedForm:
    """Check the access to an element of a list or map, which is not optional."""
    type_ = container.type
    if t.UNKNOWN in (type_, key.type):
        return unknown(node)
    if type_ == t.DYN or (key.type == t.DYN and type_.kind in ("list", "map")):
        element = call(t.DYN, node, "dyn_index", *context.all_to_dyn(node.children, (container, key)))
        known = type_.of[-1] if type_.of else t.DYN
        return TypedForm(element, t.DYN) if known == t.DYN else typed_call(known, node, "dyn_value", element)
    if type_.kind == "list" and key.type == t.INT:
        return typed_call(type_.of[0], node, "index_list", container.form, key.form)
    if type_.kind == "map" and type_.of[0] == t.DYN:
        dynamic = context.to_dyn(node.children[1], key)
        return typed_call(type_.of[1], node, "index_map", container.form, dynamic)
    if type_.kind == "map" and t.join(type_.of[0], key.type) is not None and is_key(key.type):
        for literal in _keys(node.children[0]):
            expect_value(context, literal, key.type)
        return typed_call(type_.of[1], node, "index_map", container.form, key.form)
    hint = f"write .{node.children[1].value}" if type_.kind == "record" and key.type == t.STRING else ""
    message = f"{with_article(type_)} cannot be indexed by {with_article(key.type)}"
    return context.refuse(node, "type-mismatch", message, hint)


def is_key(type_: Type) -> bool:
    """Return whether a map can have keys of a type; ``{}`` alone leaves it open."""
    return type_.kind in (*t.KEYS, "nothing", "unknown")


def _keys(node: SyntaxNode) -> list[SyntaxNode]:
    """Return the keys of a literal map, or an empty list."""
    return node.children[::2] if node.kind == "map" else []


def _label(type_: Type) -> str:
    """Return the label of the texts that a value is, or consists of."""
    return type_.label or (_label(type_.of[0]) if type_.kind == "list" else "")
