# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The type checker: it turns a syntax tree into a typed form by declarations, and reports every mistake.

It refuses what it cannot check. An operand with a mistake has the type ``unknown``, which fits everything, so that a
mistake is reported once.
"""

from __future__ import annotations

from typing import NoReturn

from . import aggregates, calls, names, operators, optionals
from . import types as t
from .context import CheckContext
from .forms import TypedForm, typed_form
from .guards import Present, access_path, when_false, when_true
from .syntax import SyntaxNode
from .types import Declarations


def new_context(declarations: Declarations, source: str) -> CheckContext:
    """Return a context for the check of one expression."""
    return CheckContext(declarations, source, check_node)


def check_node(context: CheckContext, node: SyntaxNode, present: Present) -> TypedForm:
    """Return the form and the type of a node, by the check of its kind."""
    kind = node.kind
    if kind == "literal":
        return _check_literal(node)
    if kind == "name":
        return names.check_name(context, node)
    if kind == "select":
        return _check_select(context, node, present)
    if kind == "optional_select":
        return optionals.select(context, node, context.check(node.children[0], present))
    if kind == "index" or kind == "optional_index":
        container, key = context.check_all(node.children, present)
        if kind == "optional_index" or container.type.kind == "optional":
            return optionals.index(context, node, container, key)
        return operators.index(context, node, container, key)
    if kind == "call":
        return calls.check_call(context, node, present)
    if kind == "method":
        return calls.check_method(context, node, present)
    if kind == "operator":
        return operators.check(context, node, present)
    if kind == "and" or kind == "or":
        return _check_logic(context, node, present)
    if kind == "if":
        return _check_conditional(context, node, present)
    if kind == "list":
        return aggregates.check_list(context, node, present)
    if kind == "map":
        return aggregates.check_map(context, node, present)
    if kind == "optional_element":
        message = "CEL allows ? only before an element of a list or map"
        return context.refuse(node, "syntax", message, "remove the ?")
    return _assert_never(kind)


def _assert_never(kind: NoReturn) -> NoReturn:
    """Make mypy report a kind of node that ``check_node`` lacks. (Python has it in typing since 3.11.)"""
    raise AssertionError(f"no check of {kind}")


def _check_literal(node: SyntaxNode) -> TypedForm:
    type_ = node.type or t.UNKNOWN
    if type_ == t.BYTES:
        return typed_form("bytes", type_, node, node.value.hex())
    return typed_form("lit", type_, node, node.value)


def _check_select(context: CheckContext, node: SyntaxNode, present: Present) -> TypedForm:
    name = names.qualified_name(context, node)
    if name is not None:
        return name
    operand = context.check(node.children[0], present)
    if operand.type.kind == "optional":
        return optionals.select(context, node, operand)
    return names.select_field(context, node, operand, guarded=access_path(node) in present)


def _check_logic(context: CheckContext, node: SyntaxNode, present: Present) -> TypedForm:
    """Check ``&&`` or ``||``. An operand may rely on the others' guards: a failed guard decides the result."""
    guards, operator = (when_true, "&&") if node.kind == "and" else (when_false, "||")
    forms = []
    for operand in node.children:
        guarded = present.union(*(guards(other) for other in node.children if other is not operand))
        value = context.check(operand, guarded)
        forms.append(context.to_bool(operand, value, operator, _list_hint(context, node, operand)))
    return typed_form(node.kind, t.BOOL, node, *forms)


def _list_hint(context: CheckContext, node: SyntaxNode, operand: SyntaxNode) -> str:
    """Return a hint for ``x == 'a' || 'b'``, and an empty text for anything else."""
    before = node.children[max(node.children.index(operand) - 1, 0)]
    if node.kind != "or" or operand.kind != "literal" or before.kind != "operator" or before.value != "==":
        return ""
    name, first = map(context.source_of, before.children)
    return f"write {name} in [{first}, {context.source_of(operand)}]" if before.children[1].kind == "literal" else ""


def _check_conditional(context: CheckContext, node: SyntaxNode, present: Present) -> TypedForm:
    condition, then, otherwise = node.children
    form = context.to_bool(condition, context.check(condition, present), "the condition of ?:")
    first = context.check(then, present | when_true(condition))
    second = context.check(otherwise, present | when_false(condition))
    return optionals.choice(context, node, form, first, second)
