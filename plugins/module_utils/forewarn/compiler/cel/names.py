# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks names, and fields of values that are not optional."""

from __future__ import annotations

from ..wording import did_you_mean
from . import types as t
from .context import CheckContext
from .forms import TypedForm, dyn, text_literal, typed_call, typed_form, unknown
from .guards import access_path
from .name_hints import field_hint, name_hint
from .syntax import SyntaxNode
from .types import RecordField, Type, with_article

# The names of types, which are values of CEL, and what type() returns.
TYPE_NAMES = frozenset(
    (
        *("bool", "int", "uint", "double", "string", "bytes", "list", "map", "null_type", "type", "optional_type"),
        *("google.protobuf.Timestamp", "google.protobuf.Duration"),
    )
)


def check_name(context: CheckContext, node: SyntaxNode) -> TypedForm:
    """Check a name without dots in it."""
    local = context.local(node.value)
    if local is not None and local.access in ("local", "bound"):
        return typed_form(local.access, local.type, node, local.number)
    if local is not None:  # of a loop with two variables
        pair = typed_form("local", t.PAIR, node, local.number).form
        return typed_call(local.type, node, local.access, pair)
    found = _global(context, node, node.value.lstrip("."))
    if found is not None:
        return found
    if node.value == "variables":
        message = "variables is not a value; name one, as in variables.NAME"
        return context.refuse(node, "type-mismatch", message)
    hint = name_hint(node.value, context.declarations, [local.name for local in context.locals])
    return context.refuse(node, "undeclared-name", f"there is no variable {node.value}", hint)


def qualified_name(context: CheckContext, node: SyntaxNode) -> TypedForm | None:
    """Check a selection that is a name with dots in it: of a variable, of a type, or of a policy's variable.

    Return None for the selection of a field.
    """
    path = context.dotted_name(node)
    found = None if path is None else _global(context, node, path)
    if found is not None or not context.is_policy_variables(node.children[0]):
        return found
    variables = context.declarations.policy_variables
    type_ = variables.get(node.value)
    if type_ is None:
        message = f"no variable {node.value} is declared above"
        return context.refuse(node, "undeclared-name", message, did_you_mean(node.value, variables))
    if type_ == t.UNKNOWN:
        return unknown(node)
    return typed_form("variable", type_, node, context.declarations.inner_names.get(node.value, node.value))


def _global(context: CheckContext, node: SyntaxNode, name: str) -> TypedForm | None:
    """Return the form of a declared variable or of a type; the name may have dots in it."""
    declared = context.declarations.variables.get(name)
    if declared is not None:
        return typed_form("var", declared, node, name)
    return typed_form("lit", t.TYPE, node, name) if name in TYPE_NAMES else None


# Fields


def select_field(context: CheckContext, node: SyntaxNode, operand: TypedForm, guarded: bool) -> TypedForm:
    """Check ``operand.field``. A field that is ``guarded`` may be one that the api-version lacks."""
    form, type_ = operand
    if type_.kind == "record":
        return _select_record_field(context, node, operand, guarded)
    name = text_literal(node.value)
    if type_ == t.DYN:
        return typed_call(t.DYN, node, "dyn_index", form, dyn(node, name))
    if type_.kind == "map":
        key, value = type_.of
        if key not in (t.DYN, t.STRING, t.NOTHING):
            context.report(node, "type-mismatch", f"the keys of this map are {key}, not texts")
        return typed_call(value, node, "index_map", form, dyn(node, name) if key == t.DYN else name)
    if type_ == t.UNKNOWN:
        return unknown(node)
    hint = field_hint(type_, node.value, context.source_of(node.children[0]))
    return context.refuse(node, "type-mismatch", f"{with_article(type_)} has no fields", hint)


def _select_record_field(context: CheckContext, node: SyntaxNode, record: TypedForm, guarded: bool) -> TypedForm:
    field = _declared_field(context, node, record.type)
    if field is None:
        return unknown(node)
    if field.missing_reason and not guarded:
        path = access_path(node) or node.value
        hint = f"guard it: has({path}) && …; in a rule that holds, !has({path}) || …"
        context.report(node, "field-not-in-api-version", field.missing_reason, hint)
    return typed_form("field", field.type, node, record.form, node.value)


def _declared_field(context: CheckContext, node: SyntaxNode, record: Type) -> RecordField | None:
    """Return the field of a record that a node selects; None, and a finding, if there is none."""
    fields = context.declarations.records[record.name]
    field = fields.get(node.value)
    if field is None:
        hint = did_you_mean(node.value, fields)
        if not hint and record.name == "params":
            hint = f"declare it in params: {{name: {node.value}, type: …, default: …}}"
        if not hint and record.name == "vm":
            hint = f"a tag of the VM is vm.tags.{node.value}"
        context.report(node, "unknown-field", f"{record.name} has no field {node.value}", hint)
    return field


def has_field(context: CheckContext, node: SyntaxNode, select: SyntaxNode, operand: TypedForm) -> TypedForm | None:
    """Check whether ``operand`` has the field that ``select`` names; ``node`` is the question.

    Return None, with a finding, for an operand that never has such a field.
    """
    form, type_ = operand
    if type_ == t.DYN or (type_.kind == "map" and type_.of[0] == t.DYN):
        return typed_call(t.BOOL, node, "dyn_has", context.to_dyn(select, operand), text_literal(select.value))
    if type_.kind == "record":
        if _declared_field(context, select, type_) is None:
            return None
    elif type_.kind != "map" or type_.of[0] not in (t.STRING, t.NOTHING):
        if type_ != t.UNKNOWN:
            message = f"{with_article(type_)} has no fields that has() could ask for"
            context.report(select, "type-mismatch", message)
        return None
    return typed_form("has", t.BOOL, node, form, select.value)
