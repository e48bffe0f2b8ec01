# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks the macro ``has()`` of the CEL language definition, which asks for a field."""

from __future__ import annotations

from . import optionals
from . import types as t
from .context import CheckContext
from .forms import TypedForm, parts_of, unknown
from .guards import Present, access_path
from .names import has_field
from .syntax import SyntaxNode
from .types import Type


def check(context: CheckContext, node: SyntaxNode, present: Present) -> TypedForm:
    """Check ``has(x.field)``."""
    select = node.children[0] if len(node.children) == 1 else node
    if select.kind != "select":
        message = "has() takes one field access, as in has(event.NotBefore)"
        return context.refuse(node, "bad-macro", message, _argument_hint(context, select))
    operand = select.children[0]
    value = context.check(operand, present)
    if value.type.kind == "optional":
        selected = optionals.select(context, select, value)
        return TypedForm(parts_of(selected).present, t.BOOL)
    found = has_field(context, node, select, value)
    if found is None:
        return unknown(node)
    if value.type.kind in ("record", "map") and not _always_exists(context, operand, present):
        message = "where this has no value, some CEL engines make has() false and others fail"
        context.report(operand, "engines-disagree", message, _guard_hint(context, operand, value.type, select.value))
    return found


def _argument_hint(context: CheckContext, argument: SyntaxNode) -> str:
    """Return what to write instead of an argument that is not a field access."""
    if argument.kind == "literal" and isinstance(argument.value, str) and "." in argument.value:
        return f"remove the quotes: has({argument.value})"
    if argument.kind == "index":
        container, key = map(context.source_of, argument.children)
        return f"write {key} in {container}"
    return "write has(event.NotBefore), for example"


def _guard_hint(context: CheckContext, operand: SyntaxNode, type_: Type, field: str) -> str:
    """Return how to ask for a field of an operand that may have no value itself."""
    if type_.kind == "map":
        return f"write '{field}' in {context.source_of(operand)}"
    path = access_path(operand)
    if path is None:
        return f"write [{context.source_of(operand)}].all(x, has(x.{field}))"
    return f"ask for it first: has({path}) && …"


def _always_exists(context: CheckContext, node: SyntaxNode, present: Present) -> bool:
    """Return whether a node always has a value."""
    if node.kind == "map":
        return all(child.kind == "literal" for child in node.children)
    if node.kind == "name":
        return True
    if node.kind != "select":
        return False
    if access_path(node) in present:
        return True
    operand = node.children[0]
    if context.is_policy_variables(operand):
        return True  # or an error, which it is in every engine that has variables
    record = context.quiet().check(operand, present).type
    field = context.declarations.records.get(record.name, {}).get(node.value)
    return field is not None and field.sure and _always_exists(context, operand, present)
