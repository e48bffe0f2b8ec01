# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks loops: ``all``, ``exists``, ``exists_one``, ``map``, ``filter``, ``sortBy``, and those with two variables.

A loop with two variables goes over the entries of a list or map, which are pairs, with a loop of one variable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..wording import with_article
from . import types as t
from .guards import Present, when_true
from .syntax import SyntaxNode
from .types import LocalVariable, Type, Typed

if TYPE_CHECKING:
    from .checker import Checker

ASSUMED_ELEMENTS = 100  # in a list of unknown length, to estimate the cost of a loop
PAIR = Type("pair")  # of a list's place and element, or of a map's key and value
_QUANTIFIERS = {"all": "all", "exists": "exists", "exists_one": "exists_one", "existsOne": "exists_one"}
_OF_TWO = ("transformList", "transformMap", "transformMapEntry")
MACROS = frozenset((*_QUANTIFIERS, "map", "filter", "sortBy", *_OF_TWO))


def check(checker: Checker, node: SyntaxNode, present: Present) -> Typed:
    """Check a loop."""
    items, *arguments = node.children
    of_two = node.value in _OF_TWO or (node.value in _QUANTIFIERS and len(arguments) == 3)
    names = arguments[: 2 if of_two else 1]
    rest = arguments[len(names) :]
    counts = (1, 2) if node.value in (*_OF_TWO, "map") else (1,)
    if len(rest) not in counts or not all(name.is_identifier for name in names):
        wanted = "two names" if node.value in _OF_TWO else "a name"
        example = "x.{}(k, v, …)" if node.value in _OF_TWO else "x.{}(e, …)"
        message = f"{node.value}() takes {wanted} and an expression, as in {example.format(node.value)}"
        receiver = checker.written(items)
        hint = f"write {receiver}.{node.value}({'k, v' if node.value in _OF_TWO else 'e'}, …)"
        checker.report(node, "bad-macro", message, hint)
        return checker.unknown(node)
    for name in names:
        if name.value == "__result__":
            checker.report(name, "reserved-word", "CEL's loops reserve __result__", "choose another name")
    form, type_ = checker.check(items, present)
    if type_ == t.DYN:
        whole = "dyn_elements" if node.value in _QUANTIFIERS else "dyn_ordered"
        form, type_ = checker.called(t.list_of(t.DYN), items, whole, form), t.list_of(t.DYN)
    if type_.kind not in ("list", "map", "unknown"):
        given = with_article(type_)
        checker.report(items, "type-mismatch", f"{node.value}() takes a list or a map, not {given}")
    loop = _Loop(checker, node, form, type_, present)
    if of_two:
        loop.over_entries(names[0].value, names[1].value)
    else:
        loop.over_elements(names[0].value)
    made = _of_two(loop, rest) if node.value in _OF_TWO else _of_one(loop, rest)
    loop.close()
    return made


class _Loop:
    """A loop that is being checked, with its variables in place until ``close``."""

    def __init__(self, checker: Checker, node: SyntaxNode, form: Any, type_: Type, present: Present) -> None:
        self.checker, self.node, self.form, self.type = checker, node, form, type_
        self.number, self._turns = len(checker.locals), checker.turns
        self._present = present
        items = node.children[0]
        checker.turns *= len(items.children) if items.kind in ("list", "map") else ASSUMED_ELEMENTS

    @property
    def element(self) -> Type:
        """The type of what a loop with one variable goes over."""
        return self.type.of[0] if self.type.of else t.UNKNOWN

    def over_elements(self, name: str) -> None:
        """Declare the variable."""
        self._declare((name, self.element, "local"))

    def over_entries(self, first: str, second: str) -> None:
        """Declare the two variables."""
        if self.type.of and t.contains_kind(self.type, "record"):
            self.checker.report(self.node, "unsupported", f"a loop over {self.type} has one variable")
        self._declare(
            (first, t.INT if self.type.kind == "list" else self.element, "first"),
            (second, self.type.of[-1] if self.type.of else t.UNKNOWN, "second"),
        )
        if self.type.kind in ("list", "map"):
            self.form = self.checker.called(Type(self.type.kind, (PAIR, PAIR)), self.node, "entries", self.form)

    def _declare(self, *variables: tuple[str, Type, str]) -> None:
        for name, type_, read in variables:
            self.checker.locals.append(LocalVariable(name, type_, self.number, read))
            self._present = frozenset(path for path in self._present if path.split(".")[0] != name)

    def condition(self, node: SyntaxNode, where: str) -> Any:
        """Return the form of a condition, on which what is checked after it may rely."""
        form, type_ = self.checker.check(node, self._present)
        self._present |= when_true(node)
        return self.checker.as_bool(node, form, type_, where)

    def value(self, node: SyntaxNode) -> Typed:
        """Return the form and the type of what the loop makes of an element."""
        return self.checker.check(node, self._present)

    def close(self) -> None:
        """Forget the variables."""
        del self.checker.locals[self.number :]
        self.checker.turns = self._turns


def _of_one(loop: _Loop, rest: list[SyntaxNode]) -> Typed:
    checker, node = loop.checker, loop.node
    if node.value in ("map", "sortBy"):
        condition = loop.condition(rest[0], "the filter of map()") if len(rest) == 2 else None
        form, type_ = loop.value(rest[-1])
        mapped = checker.made("map_list", t.list_of(type_), node, loop.number, loop.form, condition, form)
        return mapped if node.value == "map" else _sorted(loop, *mapped)
    predicate = loop.condition(rest[0], f"{node.value}()")
    if node.value == "filter":
        return checker.made("filter", t.list_of(loop.element), node, loop.number, loop.form, predicate)
    return checker.made(_QUANTIFIERS[node.value], t.BOOL, node, loop.number, loop.form, predicate)


def _sorted(loop: _Loop, keys: Any, type_: Type) -> Typed:
    """Return a list in the order of its elements' keys."""
    key = type_.of[0]
    if loop.type.kind == "map" or key.kind not in (*t.ORDERED, "dyn", "nothing", "unknown"):
        given = "a map" if loop.type.kind == "map" else f"keys of {key}"
        loop.checker.report(
            loop.node, "type-mismatch", f"sortBy() takes a list and keys that have an order, not {given}"
        )
    return loop.checker.made("call", t.list_of(loop.element), loop.node, "sort_by", loop.form, keys)


def _of_two(loop: _Loop, rest: list[SyntaxNode]) -> Typed:
    checker, node = loop.checker, loop.node
    condition = loop.condition(rest[0], f"the filter of {node.value}()") if len(rest) == 2 else None
    form, type_ = loop.value(rest[-1])
    if node.value == "transformList":
        return checker.made("map_list", t.list_of(type_), node, loop.number, loop.form, condition, form)
    unordered = checker.called(t.list_of(PAIR), node, "listed", loop.form)  # the order of a map's entries is all one
    if node.value == "transformMap":
        key, value = loop.checker.locals[loop.number].type, type_
        pair = checker.made("local", PAIR, node, loop.number)[0]
        entry = checker.called(PAIR, node, "entry", checker.called(key, node, "first", pair), form)
        pairs = checker.made("map_list", t.list_of(PAIR), node, loop.number, unordered, condition, entry)[0]
        return checker.made("call", t.map_of(key, value), node, "map_of", pairs)
    if type_.kind not in ("map", "unknown"):
        message = f"transformMapEntry() takes a map, as in {{k: v}}, and this is {with_article(type_)}"
        checker.report(rest[-1], "type-mismatch", message)
        return checker.unknown(node)
    maps = checker.made("map_list", t.list_of(type_), node, loop.number, unordered, condition, form)[0]
    return checker.made("call", type_, node, "merged", maps)
