# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks optional values: ``event.?NotBefore``, ``tags[?'role']``, ``optional.of(x)``, and what is asked of them.

The compiler keeps an optional value in two ``Parts``: whether there is a value, and the value, which may be read only
if there is one. So ``event.?X.orValue(d)`` becomes ``has(event.X) ? event.X : d``, which is fast, and which the solver
understands. Only where an optional value is kept, in a list or a variable, is it one when the expression runs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ..wording import with_article
from . import operators
from . import types as t
from .guards import Present
from .syntax import SyntaxNode
from .types import Type, Typed

if TYPE_CHECKING:
    from .checker import Checker


class Parts(NamedTuple):
    """An optional value: forms of whether there is a value, and of the value."""

    present: Any
    value: Any


def whole(parts: Parts) -> list[Any]:
    """Return the form of an optional value that is kept."""
    _op, type_, start, end, *_rest = parts.value
    kept = f"optional({type_})"
    if parts.present[0] == "lit" and not parts.present[4]:
        return ["call", kept, start, end, "none"]
    some = ["call", kept, start, end, "some", parts.value]
    if parts.present[0] == "lit":
        return some
    return ["if", kept, start, end, parts.present, some, ["call", kept, start, end, "none"]]


def parts_of(form: Any, type_: Type) -> Parts:
    """Return the parts of an optional value."""
    if isinstance(form, Parts):
        return form
    start, end = form[2:4]
    value_type = str(type_.of[0]) if type_.of else "unknown"
    return Parts(["call", "bool", start, end, "has_value", form], ["call", value_type, start, end, "value_of", form])


def _truth(node: SyntaxNode, value: bool) -> list[Any]:
    return ["lit", "bool", node.start, node.end, value]


def _both(checker: Checker, node: SyntaxNode, first: Any, second: Any) -> Any:
    """Return whether both hold. Unlike &&, it fails where the first one does."""
    if first[0] == "lit" and first[4]:
        return second
    return checker.made("if", t.BOOL, node, first, second, _truth(node, False))[0]


def _made(type_: Type, present: Any, value: Any) -> tuple[Any, Type]:
    return Parts(present, whole(value) if isinstance(value, Parts) else value), t.optional_of(type_)


def choice(checker: Checker, node: SyntaxNode, condition: Any, then: Typed, otherwise: Typed) -> Typed:
    """Return one of two optional values of a type."""
    first, second = parts_of(*then), parts_of(*otherwise)
    type_ = then[1].of[0]
    present = checker.made("if", t.BOOL, node, condition, first.present, second.present)[0]
    return _made(type_, present, checker.made("if", type_, node, condition, first.value, second.value)[0])


# Fields and elements


def select(checker: Checker, node: SyntaxNode, form: Any, type_: Type) -> Typed:
    """Check ``x.?field``, and ``x.field`` of an optional x."""
    if type_.kind != "optional":
        present = checker.has_field(node, node, form, type_)
        if present is None:
            return checker.unknown(node)
        value, field = checker.selected(_required(node), form, type_, frozenset())
        return _made(field, present[0], value)
    outer = parts_of(form, type_)
    inner = select(checker, node, outer.value, type_.of[0])
    if inner[1] == t.UNKNOWN:
        return inner
    parts = parts_of(*inner)
    return _made(inner[1].of[0], _both(checker, node, outer.present, parts.present), parts.value)


def _required(node: SyntaxNode) -> SyntaxNode:
    """Return the node of ``x.?field`` as one that nobody asks for the field's presence: that was done."""
    return SyntaxNode("optional_select", node.start, node.end, node.value, node.children)


def index(checker: Checker, node: SyntaxNode, container: Typed, key: Typed) -> Typed:
    """Check ``x[?key]``, and ``x[key]`` of an optional x."""
    if t.UNKNOWN in (container[1], key[1]):
        return checker.unknown(node)
    form, type_ = container
    if type_.kind == "optional":
        if type_.of[0].kind in ("list", "dyn") and node.kind == "index":
            message = "CEL engines differ on an optional list that does not have this element"
            checker.report(node, "engines-disagree", message, f"write [?{checker.written(node.children[1])}]")
            return checker.unknown(node)
        outer = parts_of(form, type_)
        inner = index(checker, node, (outer.value, type_.of[0]), key)
        if inner[1] == t.UNKNOWN:
            return inner
        parts = parts_of(*inner)
        present = _both(checker, node, outer.present, parts.present)
        if key[0][0] != "lit":  # a key without a value is an error, also where there is nothing to look into
            present = _both(checker, node, checker.called(t.BOOL, node, "defined", key[0]), present)
        return _made(inner[1].of[0], present, parts.value)
    value, element = operators.index(checker, node, container, key)
    if element == t.UNKNOWN:
        return checker.unknown(node)
    if type_.kind == "list" and key[1] == t.INT:
        size = checker.called(t.INT, node, "size", form)
        above = checker.called(t.BOOL, node, "ge", key[0], ["lit", "int", node.start, node.end, 0])
        # The list is looked at in any case: where it has no value, this has none.
        present = _both(checker, node, checker.called(t.BOOL, node, "lt", key[0], size), above)
    elif type_.kind == "map" and t.DYN not in (type_.of[0], key[1]):
        present = checker.called(t.BOOL, node, "in", key[0], form)
    else:
        boxes = [checker.boxed(child, *one) for child, one in zip(node.children, (container, key), strict=True)]
        present = checker.called(t.BOOL, node, "dyn_has_index", *boxes)
    return _made(element, present, value)


# Functions


def of(checker: Checker, node: SyntaxNode, present: Present) -> Typed:
    """Check ``optional.of(x)``."""
    form, type_ = checker.check(node.children[1], present)
    if type_ == t.UNKNOWN:
        return checker.unknown(node)
    sure = form[0] == "lit" if isinstance(form, list) else False
    return _made(type_, _truth(node, True) if sure else checker.called(t.BOOL, node, "defined", form), form)


def of_non_zero(checker: Checker, node: SyntaxNode, present: Present) -> Typed:
    """Check ``optional.ofNonZeroValue(x)``."""
    form, type_ = checker.check(node.children[1], present)
    if type_.kind in ("timestamp", "dyn", "record", "optional", "type"):
        checker.report(node, "unsupported", f"it is not defined what the zero of {with_article(type_)} is")
        return checker.unknown(node)
    return _made(type_, checker.called(t.BOOL, node, "non_zero", form), form)


def none(checker: Checker, node: SyntaxNode, _present: Present) -> Typed:
    """Check ``optional.none()``."""
    return _made(t.NOTHING, _truth(node, False), _dereferenced(checker, node, t.NOTHING))


def _dereferenced(checker: Checker, node: SyntaxNode, type_: Type) -> Any:
    """Return the form of the value of nothing, which is an error."""
    return checker.called(type_, node, "value_of", ["call", f"optional({type_})", node.start, node.end, "none"])


def _receiver(checker: Checker, node: SyntaxNode, present: Present) -> tuple[Parts, Type] | None:
    form, type_ = checker.check(node.children[0], present)
    if type_.kind != "optional":
        if type_ != t.UNKNOWN:
            message = f"{node.value}() is asked of an optional value, and this is {with_article(type_)}"
            checker.report(node.children[0], "type-mismatch", message, _optional_hint(checker, node.children[0]))
        return None
    return parts_of(form, type_), type_.of[0]


def _optional_hint(checker: Checker, node: SyntaxNode) -> str:
    """Return how to make an optional value of a part of the expression."""
    if node.kind == "select":
        return f"write {checker.written(node.children[0])}.?{node.value}"
    if node.kind == "index":
        return f"write {checker.written(node.children[0])}[?{checker.written(node.children[1])}]"
    return ""


def has_value(checker: Checker, node: SyntaxNode, present: Present) -> Typed:
    """Check ``x.hasValue()``."""
    found = _receiver(checker, node, present)
    return checker.unknown(node) if found is None else (found[0].present, t.BOOL)


def value(checker: Checker, node: SyntaxNode, present: Present) -> Typed:
    """Check ``x.value()``."""
    found = _receiver(checker, node, present)
    if found is None:
        return checker.unknown(node)
    parts, type_ = found
    return checker.made("if", type_, node, parts.present, parts.value, _dereferenced(checker, node, type_))


def or_value(checker: Checker, node: SyntaxNode, present: Present) -> Typed:
    """Check ``x.orValue(y)``."""
    found = _receiver(checker, node, present)
    other = checker.check(node.children[1], present)
    if found is None or other[1] == t.UNKNOWN:
        return checker.unknown(node)
    parts, type_ = found
    refused = _alternative(checker, node, type_, other[1])
    if refused is not None:
        return refused
    form, joined = checker.choice(node, parts.present, (parts.value, type_), other)
    literal = node.children[1]
    if type_.values is not None and literal.kind == "literal":  # one more text that this can be
        joined = replace(type_, values=(*type_.values, literal.value))
    return form, joined


def or_(checker: Checker, node: SyntaxNode, present: Present) -> Typed:
    """Check ``x.or(y)``."""
    found = _receiver(checker, node, present)
    form, other = checker.check(node.children[1], present)
    if found is None or other == t.UNKNOWN:
        return checker.unknown(node)
    parts, type_ = found
    refused = _alternative(checker, node, t.optional_of(type_), other)
    if refused is not None:
        return refused
    second = parts_of(form, other)
    either = checker.made("if", t.BOOL, node, parts.present, _truth(node, True), second.present)[0]
    chosen = checker.choice(node, parts.present, (parts.value, type_), (second.value, other.of[0]))
    return _made(chosen[1], either, chosen[0])


def _alternative(checker: Checker, node: SyntaxNode, wanted: Type, given: Type) -> Typed | None:
    """Report an alternative of another type."""
    if t.join(wanted, given) is not None or (t.DYN in (wanted, given) and wanted.kind != "optional"):
        return None
    message = f"{node.value}() takes {with_article(wanted)} here, and this is {with_article(given)}"
    checker.report(node.children[1], "type-mismatch", message)
    return checker.unknown(node)


def mapped(checker: Checker, node: SyntaxNode, present: Present) -> Typed:
    """Check ``x.optMap(v, f(v))`` and ``x.optFlatMap(v, g(v))``."""
    found = _receiver(checker, node, present)
    name, body = node.children[1:]
    if not name.is_identifier:
        checker.report(name, "bad-macro", f"{node.value}() takes a name and an expression, as in x.{node.value}(v, …)")
        return checker.unknown(node)
    if found is None:
        return checker.unknown(node)
    parts, type_ = found
    form, made = checker.with_bound(node, name.value, (parts.value, type_), body, present)
    if made == t.UNKNOWN:
        return checker.unknown(node)
    if node.value == "optMap":
        defined = checker.called(t.BOOL, node, "defined", form)
        return _made(made, _both(checker, node, parts.present, defined), form)
    if made.kind != "optional":
        message = f"optFlatMap() takes an optional value, and this is {with_article(made)}"
        checker.report(body, "type-mismatch", message, "write optMap")
        return checker.unknown(node)
    inner = parts_of(form, made)
    return _made(made.of[0], _both(checker, node, parts.present, inner.present), inner.value)


# In lists and maps


def list_of_some(checker: Checker, node: SyntaxNode, present: Present) -> Typed:
    """Check a list with optional elements: ``[?x, y]``."""
    elements, types = [], []
    for child in node.children:
        if child.kind != "optional_element":
            form, type_ = checker.check(child, present)
            elements.append((None, form))
        else:
            form, outer = checker.check(child.children[0], present)
            if outer.kind != "optional":
                if outer != t.UNKNOWN:
                    message = f"? stands before an optional value, and this is {with_article(outer)}"
                    checker.report(child, "type-mismatch", message, "remove the ?")
                return checker.unknown(node)
            parts, type_ = parts_of(form, outer), outer.of[0]
            elements.append((parts.present, parts.value))
        types.append(type_)
    joined: Type | None = t.NOTHING
    for type_ in types:
        joined = None if joined is None else t.join(joined, type_)
    element = t.DYN if joined is None else joined
    whole_form: Any = None
    for (there, form), type_ in zip(elements, types, strict=True):
        item = checker.boxed(node, form, type_) if joined is None else form
        part = checker.made("list", t.list_of(element), node, item)[0]
        if there is not None:
            part = checker.made("if", t.list_of(element), node, there, part, _empty(node, element))[0]
        whole_form = (
            part if whole_form is None else checker.called(t.list_of(element), node, "add_list", whole_form, part)
        )
    return whole_form, t.list_of(element)


def _empty(node: SyntaxNode, element: Type) -> list[Any]:
    return ["list", f"list({element})", node.start, node.end]


def map_of_some(checker: Checker, node: SyntaxNode, _present: Present) -> Typed:
    """Refuse a map with optional entries: ``{?k: x}``."""
    checker.report(node, "unsupported", "optional entries of maps are not supported", "write cond ? {…} : {…}")
    return checker.unknown(node)
