# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks the macros of the CEL language definition: ``has()``, and the loops ``all exists exists_one map filter``.

Beside them are the loops of extensions: ``sortBy``, and those with two variables.

Its form is a loop with one variable, over the entries of a list or map, which are pairs.
"""

from __future__ import annotations

from . import optionals
from . import types as t
from .context import CheckContext
from .forms import Form, TypedForm, call, parts_of, typed_call, typed_form, unknown
from .guards import Present, access_path, when_true, without_name
from .names import has_field
from .syntax import SyntaxNode
from .types import LocalAccess, LocalVariable, Type, with_article

ASSUMED_ELEMENTS = 100  # in a list of unknown length, to estimate the cost of a loop
_QUANTIFIERS = {"all": "all", "exists": "exists", "exists_one": "exists_one", "existsOne": "exists_one"}
_TRANSFORMS = ("transformList", "transformMap", "transformMapEntry")  # loops that always have two variables
LOOPS = frozenset((*_QUANTIFIERS, "map", "filter", "sortBy", *_TRANSFORMS))


# has()


def check_has(context: CheckContext, node: SyntaxNode, present: Present) -> TypedForm:
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
    record = context.fork().check(operand, present).type
    field = context.declarations.records.get(record.name, {}).get(node.value)
    return field is not None and field.always_exists and _always_exists(context, operand, present)


# Loops


def check_loop(context: CheckContext, node: SyntaxNode, present: Present) -> TypedForm:
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
        """The type of the variable of a loop with one variable."""
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
        """Return the form of a condition. The fields that it guards exist in what is checked after it."""
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
