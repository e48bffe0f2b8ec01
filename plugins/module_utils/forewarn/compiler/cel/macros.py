# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks loops: ``all``, ``exists``, ``exists_one``, ``map``, ``filter``, ``sortBy``, and those with two variables.

The first five are macros of the CEL language definition, the others extensions.

A loop with two variables goes over the entries of a list or map, which are pairs, with a loop of one variable.
"""

from __future__ import annotations

from . import types as t
from .context import CheckContext
from .forms import Form, TypedForm, call, typed_call, typed_form
from .guards import Present, when_true, without_name
from .syntax import SyntaxNode
from .types import LocalAccess, LocalVariable, Type, with_article

ASSUMED_ELEMENTS = 100  # in a list of unknown length, to estimate the cost of a loop
_QUANTIFIERS = {"all": "all", "exists": "exists", "exists_one": "exists_one", "existsOne": "exists_one"}
_TRANSFORMS = ("transformList", "transformMap", "transformMapEntry")  # loops that always have two variables
MACROS = frozenset((*_QUANTIFIERS, "map", "filter", "sortBy", *_TRANSFORMS))


def check(context: CheckContext, node: SyntaxNode, present: Present) -> TypedForm:
    """Check a loop."""
    items, *arguments = node.children
    transform = node.value in _TRANSFORMS
    two_variables = transform or (node.value in _QUANTIFIERS and len(arguments) == 3)
    names = arguments[: 2 if two_variables else 1]
    rest = arguments[len(names) :]
    counts = (1, 2) if transform or node.value == "map" else (1,)
    if len(rest) not in counts or not all(name.is_identifier for name in names):
        wanted, example = ("two names", "k, v") if transform else ("a name", "e")
        message = f"{node.value}() takes {wanted} and an expression, as in x.{node.value}({example}, …)"
        hint = f"write {context.source_of(items)}.{node.value}({example}, …)"
        return context.refuse(node, "bad-macro", message, hint)
    for name in names:
        if name.value == "__result__":
            context.report(name, "reserved-word", "CEL's loops reserve __result__", "choose another name")
    form, type_ = context.check(items, present)
    if type_ == t.DYN:
        function = "dyn_elements" if node.value in _QUANTIFIERS else "dyn_ordered"
        form, type_ = typed_call(t.list_of(t.DYN), items, function, form)
    if type_.kind not in ("list", "map", "unknown"):
        message = f"{node.value}() takes a list or a map, not {with_article(type_)}"
        context.report(items, "type-mismatch", message)
    loop = _Loop(context, node, form, type_, present)
    if two_variables:
        loop.declare_entry(names[0].value, names[1].value)
    else:
        loop.declare_element(names[0].value)
    result = _check_transform(loop, rest) if transform else _check_body(loop, rest)
    loop.close()
    return result


class _Loop:
    """A loop that is being checked, with its variables in place until ``close``."""

    def __init__(self, context: CheckContext, node: SyntaxNode, form: Form, type_: Type, present: Present) -> None:
        self.context, self.node, self.form, self.type = context, node, form, type_
        self.number, self._iterations = len(context.locals), context.iterations
        self._present = present
        items = node.children[0]
        context.iterations *= len(items.children) if items.kind in ("list", "map") else ASSUMED_ELEMENTS

    @property
    def element(self) -> Type:
        """The type of what a loop with one variable goes over."""
        return self.type.of[0] if self.type.of else t.UNKNOWN

    def declare_element(self, name: str) -> None:
        """Declare the variable of a loop over elements."""
        self._declare(name, self.element, "local")

    def declare_entry(self, first: str, second: str) -> None:
        """Declare the two variables of a loop over entries."""
        if self.type.of and t.contains_kind(self.type, "record"):
            self.context.report(self.node, "unsupported", f"a loop over {self.type} has one variable")
        self._declare(first, t.INT if self.type.kind == "list" else self.element, "first")
        self._declare(second, self.type.of[-1] if self.type.of else t.UNKNOWN, "second")
        if self.type.kind in ("list", "map"):
            self.form = call(Type(self.type.kind, (t.PAIR, t.PAIR)), self.node, "entries", self.form)

    def _declare(self, name: str, type_: Type, access: LocalAccess) -> None:
        self.context.locals.append(LocalVariable(name, type_, self.number, access))
        self._present = without_name(self._present, name)

    def check_condition(self, node: SyntaxNode, where: str) -> Form:
        """Return the form of a condition, on which what is checked after it may rely."""
        value = self.context.check(node, self._present)
        self._present |= when_true(node)
        return self.context.to_bool(node, value, where)

    def check_value(self, node: SyntaxNode) -> TypedForm:
        """Return the form and the type of what the loop makes of an element."""
        return self.context.check(node, self._present)

    def mapped(self, items: Form, condition: Form | None, value: TypedForm) -> TypedForm:
        """Return the list of the values that the loop makes of the items for which the condition holds."""
        return typed_form("map_list", t.list_of(value.type), self.node, self.number, items, condition, value.form)

    def close(self) -> None:
        """Remove the variables."""
        del self.context.locals[self.number :]
        self.context.iterations = self._iterations


def _check_body(loop: _Loop, rest: list[SyntaxNode]) -> TypedForm:
    """Check the body of a quantifier, ``map``, ``filter`` or ``sortBy``."""
    node = loop.node
    if node.value in ("map", "sortBy"):
        condition = loop.check_condition(rest[0], "the filter of map()") if len(rest) == 2 else None
        mapped = loop.mapped(loop.form, condition, loop.check_value(rest[-1]))
        return mapped if node.value == "map" else _sorted(loop, mapped)
    predicate = loop.check_condition(rest[0], f"{node.value}()")
    if node.value == "filter":
        return typed_form("filter", t.list_of(loop.element), node, loop.number, loop.form, predicate)
    return typed_form(_QUANTIFIERS[node.value], t.BOOL, node, loop.number, loop.form, predicate)


def _sorted(loop: _Loop, keys: TypedForm) -> TypedForm:
    """Return a list in the order of its elements' keys."""
    key = keys.type.of[0]
    if loop.type.kind == "map" or key.kind not in (*t.ORDERED, "dyn", "nothing", "unknown"):
        given = "a map" if loop.type.kind == "map" else f"keys of {key}"
        message = f"sortBy() takes a list and keys that have an order, not {given}"
        loop.context.report(loop.node, "type-mismatch", message)
    return typed_call(t.list_of(loop.element), loop.node, "sort_by", loop.form, keys.form)


def _check_transform(loop: _Loop, rest: list[SyntaxNode]) -> TypedForm:
    """Check the body of ``transformList``, ``transformMap`` or ``transformMapEntry``."""
    node = loop.node
    condition = loop.check_condition(rest[0], f"the filter of {node.value}()") if len(rest) == 2 else None
    value = loop.check_value(rest[-1])
    if node.value == "transformList":
        return loop.mapped(loop.form, condition, value)
    unordered = call(t.list_of(t.PAIR), node, "listed", loop.form)  # the result is a map, which has no order
    if node.value == "transformMap":
        key = loop.context.locals[loop.number].type
        pair = typed_form("local", t.PAIR, node, loop.number).form
        entry = typed_call(t.PAIR, node, "entry", call(key, node, "first", pair), value.form)
        pairs = loop.mapped(unordered, condition, entry)
        return typed_call(t.map_of(key, value.type), node, "map_of", pairs.form)
    if value.type.kind not in ("map", "unknown"):
        message = f"transformMapEntry() takes a map, as in {{k: v}}, and this is {with_article(value.type)}"
        return loop.context.refuse(rest[-1], "type-mismatch", message)
    return typed_call(value.type, node, "merged", loop.mapped(unordered, condition, value).form)
