# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks the literals of lists and maps, which the CEL language definition calls aggregates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import types as t
from .context import CheckContext
from .forms import Form, TypedForm, call, conditional, parts_of, typed_form, unknown
from .guards import Present
from .operators import is_key
from .syntax import SyntaxNode
from .types import Type, with_article


def check_list(context: CheckContext, node: SyntaxNode, present: Present) -> TypedForm:
    """Check a list: ``[x, y]``, or ``[?x, y]`` with optional elements."""
    if any(child.kind == "optional_element" for child in node.children):
        return _list_with_optional_elements(context, node, present)
    forms, element = check_elements(context, node.children, present, "the elements of a list")
    return typed_form("list", t.list_of(element), node, *forms)


def check_elements(
    context: CheckContext, nodes: Sequence[SyntaxNode], present: Present, what: str
) -> tuple[list[Form], Type]:
    """Check values; return their forms, and their common type: dyn for values of several types."""
    checked = context.check_all(nodes, present)
    joined = t.join_all(type_ for _form, type_ in checked)
    if joined is not None:
        return [form for form, _type in checked], joined
    for node, (_form, type_) in zip(nodes, checked, strict=True):
        if t.contains_kind(type_, "record"):
            message = f"{what} must be of one type: {with_article(type_)} cannot stand among others"
            context.report(node, "mixed-types", message)
            return [form for form, _type in checked], t.UNKNOWN
    return context.all_to_dyn(nodes, checked), t.DYN


def _list_with_optional_elements(context: CheckContext, node: SyntaxNode, present: Present) -> TypedForm:
    """Check ``[?x, y]``: the sum of a list for each element, which is empty for one without a value."""
    checked: list[tuple[Form | None, TypedForm]] = []  # whether there is an element, and the element
    for child in node.children:
        if child.kind != "optional_element":
            checked.append((None, context.check(child, present)))
            continue
        optional = context.check(child.children[0], present)
        if optional.type == t.UNKNOWN:
            return unknown(node)
        if optional.type.kind != "optional":
            message = f"? stands before an optional value, and this is {with_article(optional.type)}"
            context.report(child, "type-mismatch", message, "remove the ?")
            return unknown(node)
        parts = parts_of(optional)
        checked.append((parts.present, TypedForm(parts.value, optional.type.of[0])))
    joined = t.join_all(element.type for _exists, element in checked)
    list_type = t.list_of(t.DYN if joined is None else joined)
    whole: Any = None
    for exists, element in checked:
        item = context.to_dyn(node, element) if joined is None else element.form
        part = typed_form("list", list_type, node, item).form
        if exists is not None:
            part = conditional(list_type, node, exists, part, typed_form("list", list_type, node).form)
        whole = part if whole is None else call(list_type, node, "add_list", whole, part)
    return TypedForm(whole, list_type)


def check_map(context: CheckContext, node: SyntaxNode, present: Present) -> TypedForm:
    """Check a map: ``{k: x}``. Reports optional entries: ``{?k: x}``."""
    if any(child.kind == "optional_element" for child in node.children):
        message = "optional entries of maps are not supported"
        return context.refuse(node, "unsupported", message, "write cond ? {…} : {…}")
    key_forms, key = map_keys(context, node, present)
    value_forms, value = check_elements(context, node.children[1::2], present, "the values of a map")
    forms = [form for pair in zip(key_forms, value_forms) for form in pair]
    return typed_form("map", t.map_of(key, value), node, *forms)


def map_keys(context: CheckContext, node: SyntaxNode, present: Present) -> tuple[list[Form], Type]:
    """Check the keys of a literal map; return their forms and their type."""
    keys = node.children[::2]
    forms, key = check_elements(context, keys, present, "the keys of a map")
    literals = [child for child in keys if child.kind == "literal"]
    for child in literals:
        if child.type is not None and child.type.kind not in t.KEYS:
            context.report(child, "type-mismatch", f"a map cannot have keys of {child.type}")
    if key == t.DYN:
        forms = [call(t.DYN, child, "dyn_key", form) for child, form in zip(keys, forms, strict=True)]
    elif not is_key(key) and not literals:
        context.report(node, "type-mismatch", f"a map cannot have keys of {key}")
    values = [(child.type == t.BOOL, child.value) for child in literals]
    for child, value in zip(literals, values, strict=True):
        if values.count(value) > 1:
            context.report(child, "bad-literal", f"the key {child.value!r} is given more than once")
            break
    return forms, key
