# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks operators: arithmetic, comparisons, ``in`` and indexing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...policy.functions.overloads import OPERATORS
from ..wording import did_you_mean, with_article
from . import types as t
from .environment import EXTENSIBLE, RESOURCES, VM_NAME
from .guards import Present
from .overloads import COMPARISONS, find, possible, result
from .syntax import SyntaxNode
from .type_hints import Operand, comparison_hint, membership_hint, operator_hint
from .types import Type, Typed

if TYPE_CHECKING:
    from .checker import Checker


def check(checker: Checker, node: SyntaxNode, present: Present) -> Typed:
    """Check an operator with its operands."""
    checked = [checker.check(child, present) for child in node.children]
    forms, types = [form for form, _type in checked], [type_ for _form, type_ in checked]
    if t.UNKNOWN in types:
        return _unknown_of(checker, node)
    if node.value in COMPARISONS:
        return _comparison(checker, node, forms, types)
    if node.value == "in":
        return _membership(checker, node, forms, types)
    if node.value == "+" and types[0].kind == types[1].kind == "list":
        joined = t.join(types[0], types[1])
        if joined is not None:
            return checker.made("call", joined, node, "add_list", *forms)
    overloads = OPERATORS[node.value]
    overload = find(overloads, types)
    if overload is not None:
        right = node.children[-1]
        if node.value in "/%" and types[1].kind in ("int", "uint") and right.kind == "literal" and right.value == 0:
            checker.report(node, "bad-literal", "this divides by zero")
        return checker.made("call", result(overload, types), node, overload.name, *forms)
    lists = node.value == "+" and all(type_.kind in ("list", "dyn") for type_ in types)
    if lists or (t.DYN in types and possible(overloads, types)):
        boxes = [checker.boxed(child, *one) for child, one in zip(node.children, checked, strict=True)]
        made = checker.called(t.DYN, node, f"dyn {node.value}", *boxes)
        return checker.unboxed(node, made, t.list_of(t.DYN)) if lists and t.DYN not in types else (made, t.DYN)
    symbol = "-" if node.value == "negate" else node.value
    hint = operator_hint(node.value, _operands(checker, node.children, types))
    return _mismatch(checker, node, f"{symbol} cannot be applied to", types, hint)


def _unknown_of(checker: Checker, node: SyntaxNode) -> Typed:
    form, _type = checker.unknown(node)
    return form, (t.BOOL if node.value in COMPARISONS or node.value in ("in", "!") else t.UNKNOWN)


def _operands(checker: Checker, nodes: list[SyntaxNode], types: list[Type]) -> list[Operand]:
    return [checker.operand(node, type_) for node, type_ in zip(nodes, types, strict=True)]


def _mismatch(checker: Checker, node: SyntaxNode, verb: str, types: list[Type], hint: str) -> Typed:
    if any(type_.kind == "optional" for type_ in types):
        hint = "remove the ?, or say what holds without a value, as in x.orValue(…)"
    checker.report(node, "type-mismatch", f"{verb} {' and '.join(map(str, types))}", hint)
    return _unknown_of(checker, node)


# Comparisons


def _comparison(checker: Checker, node: SyntaxNode, forms: list[Any], types: list[Type]) -> Typed:
    name = COMPARISONS[node.value]
    equality = name in ("eq", "ne")
    joined = t.join(types[0], types[1])
    if joined is None and types[0].kind in t.NUMERIC and types[1].kind in t.NUMERIC:
        return checker.made("call", t.BOOL, node, f"number_{name}", *forms)
    dynamic = any(t.contains_kind(type_, "dyn") for type_ in types) or (equality and joined is None)
    allowed = joined is None if equality else all(one.kind in (*t.ORDERED, "dyn") for one in types)
    if dynamic and t.comparable(*types) and allowed:
        boxes = (checker.boxed(child, *one) for child, *one in zip(node.children, forms, types, strict=True))
        return checker.made("call", t.BOOL, node, f"dyn_{name}", *boxes)
    if joined is None or t.contains_kind(joined, "record") or not (equality or joined.kind in t.ORDERED):
        hint = comparison_hint(node.value, *_operands(checker, node.children, types))
        return _mismatch(checker, node, f"{node.value} does not compare", types, hint)
    if equality:
        for child, other in ((0, types[1]), (1, types[0])):
            expect_value(checker, node.children[child], other)
        _expect_no_case(checker, node, types)
        if joined.of and (t.contains_kind(joined, "double") or dynamic):
            name += "_deep"
    return checker.made("call", t.BOOL, node, name, *forms)


def _membership(checker: Checker, node: SyntaxNode, forms: list[Any], types: list[Type]) -> Typed:
    element, container = types
    listed = node.children[1]
    never = node.children[0].kind != "literal" and _never_among(listed, element)
    dynamic = t.DYN in types or (container.of and container.of[0] == t.DYN and not never)
    if dynamic and container.kind in ("list", "map", "dyn") and not t.contains_kind(container, "record"):
        boxes = (checker.boxed(child, *one) for child, *one in zip(node.children, forms, types, strict=True))
        return checker.made("call", t.BOOL, node, "dyn_in", *boxes)
    joined = t.join(element, container.of[0]) if container.kind in ("list", "map") else None
    no_key = container.kind == "map" and not is_key(element)
    if joined is None or t.contains_kind(joined, "record") or no_key:
        items = listed.children if listed.kind == "list" else []
        of = container.of[0] if container.of else t.UNKNOWN
        looked_for, looked_in = _operands(checker, node.children, types)
        hint = membership_hint(looked_for, looked_in, [checker.operand(item, item.type or of) for item in items])
        return _mismatch(checker, node, "in does not look for", types, hint)
    _expect_no_case(checker, node, types)
    for item in listed.children if listed.kind == "list" else _keys(listed):
        expect_value(checker, item, element)
    expect_value(checker, node.children[0], container.of[0])
    deep = container.kind == "list" and t.contains_kind(joined, "double")
    return checker.made("call", t.BOOL, node, "in_deep" if deep else "in", *forms)


def _never_among(listed: SyntaxNode, element: Type) -> bool:
    """Return whether a literal in a list of several types can never be what is looked for: a mistake in a policy."""
    literals = [item for item in listed.children if item.kind == "literal" and item.type is not None]
    return listed.kind == "list" and any(not t.comparable(item.type or element, element) for item in literals)


def expect_value(checker: Checker, node: SyntaxNode, other: Type) -> None:
    """Report a literal text that the other side can never equal, also in a list or as a result of ``?:``."""
    if node.kind == "list" and other.kind == "list":
        for item in node.children:
            expect_value(checker, item, other.of[0])
    if node.kind == "method" and node.value == "of" and other.kind == "optional":
        expect_value(checker, node.children[1], other.of[0])
    if node.kind == "if":
        for outcome in node.children[1:]:
            expect_value(checker, outcome, other)
    if node.kind != "literal" or other.values is None:
        return
    since = dict(other.later).get(node.value)
    if since is not None:
        message = f'no event is of {other.label} "{node.value}" in this api-version: it came with {since}'
        hint = f"compile for {since} or later, or declare it in extra_values"
        checker.report(node, "value-not-in-api-version", message, hint, "warning")
    if node.value in other.values:
        return
    known = ", ".join(f'"{value}"' for value in other.values)
    message = f'"{node.value}" is not among the values of {other.label or "this"}: {known}'
    declare = "declare it in extra_values if the service has it" if other.label in EXTENSIBLE else ""
    checker.report(node, "unknown-value", message, did_you_mean(node.value, other.values) or declare)


def _expect_no_case(checker: Checker, node: SyntaxNode, types: list[Type]) -> None:
    """Warn about a search for the VM's name in Resources: case may differ, which affects_me takes into account."""
    nodes = {_label(type_): child for type_, child in zip(types, node.children, strict=True)}
    if nodes.keys() != {RESOURCES, VM_NAME}:
        return
    names = nodes[RESOURCES]
    own = checker.dotted(names.children[0] if names.kind == "index" else names) == "event.Resources"
    negated = "!" if node.value == "!=" else ""
    if own and node.value == "in":
        hint = "write affects_me"
    elif own and names.kind == "index" and names.children[1].value == 0:
        hint = f"write {negated}leader"
    elif own and types[0].kind == "list":
        hint = f"write {negated}(affects_me && size(event.Resources) == 1)"
    elif node.value == "in":
        hint = f"write {checker.written(names)}.exists(r, r.lowerAscii() == vm.name.lowerAscii())"
    else:
        hint = "write lowerAscii() behind both"
    message = "Resources may spell this VM's name in another case, and then this does not find it"
    checker.report(node, "case-sensitive", message, hint, "warning")


# Elements


def index(checker: Checker, node: SyntaxNode, container: Typed, index_: Typed) -> Typed:
    """Check the access to an element of a list or map, which is not optional."""
    (operand_form, operand), (key_form, key) = container, index_
    if t.UNKNOWN in (operand, key):
        return checker.unknown(node)
    if operand == t.DYN or (key == t.DYN and operand.kind in ("list", "map")):
        boxes = (checker.boxed(child, *one) for child, one in zip(node.children, (container, index_), strict=True))
        made = checker.called(t.DYN, node, "dyn_index", *boxes)
        known = operand.of[-1] if operand.of else t.DYN
        return (made, t.DYN) if known == t.DYN else checker.unboxed(node, made, known)
    if operand.kind == "list" and key == t.INT:
        return checker.made("call", operand.of[0], node, "index_list", operand_form, key_form)
    if operand.kind == "map" and operand.of[0] == t.DYN:
        return checker.made(
            "call", operand.of[1], node, "index_map", operand_form, checker.boxed(node.children[1], *index_)
        )
    if operand.kind == "map" and t.join(operand.of[0], key) is not None and is_key(key):
        for literal in _keys(node.children[0]):
            expect_value(checker, literal, key)
        return checker.made("call", operand.of[1], node, "index_map", operand_form, key_form)
    hint = f"write .{node.children[1].value}" if operand.kind == "record" and key == t.STRING else ""
    message = f"{with_article(operand)} cannot be indexed by {with_article(key)}"
    checker.report(node, "type-mismatch", message, hint)
    return checker.unknown(node)


def is_key(type_: Type) -> bool:
    """Return whether a map can have keys of a type; ``{}`` alone leaves it open."""
    return type_.kind in (*t.KEYS, "nothing", "unknown")


def _keys(node: SyntaxNode) -> list[SyntaxNode]:
    """Return the keys of a literal map, or an empty list."""
    return node.children[::2] if node.kind == "map" else []


def _label(type_: Type) -> str:
    """Return the label of the texts that a value is, or consists of."""
    return type_.label or (_label(type_.of[0]) if type_.kind == "list" else "")
