# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks calls: functions and methods by their overloads, ``matches`` and ``join``, and the loops."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..policy import timevalues as tv
from ..policy.functions import FUNCTIONS as RUNTIME
from ..policy.functions import EvaluationError
from . import types as t
from .checking import ASSUMED_ELEMENTS, Checking, Present, Typed
from .guards import when_true
from .overloads import LOOPS, UNSUPPORTED, Overload, find
from .patterns import PatternError, compile_pattern
from .syntax import Node
from .wording import duration_hint, function_hint, with_article

_PATTERN_HINT = r"a character that stands for itself has a backslash before it, as in r'\('"


class CallChecking(Checking):
    """The part of the checker for calls."""

    def _overloaded(
        self, node: Node, table: dict[str, list[Overload]], other: dict[str, list[Overload]], present: Present
    ) -> Typed:
        checked = [self.check(child, present) for child in node.children]
        types = [type_ for _form, type_ in checked]
        overloads = table.get(node.value)
        if overloads is None:
            self._no_such_function(node, table, other)
            return self._unknown(node)
        if t.UNKNOWN in types:
            results = {overload.result for overload in overloads}
            return self._unknown(node)[0], results.pop() if len(results) == 1 else t.UNKNOWN
        overload = find(overloads, types)
        if overload is None:
            if node.value in UNSUPPORTED:
                self.report(node, "unsupported", f"{node.value}() of {types[0]} is refused", UNSUPPORTED[node.value])
                return self._unknown(node)
            if node.value == "string" and types == [t.DOUBLE]:
                self.report(
                    node, "engines-disagree", "CEL engines write a double in different ways", "use int(…) first"
                )
                return self._unknown(node)[0], t.STRING
            takes = " or ".join(dict.fromkeys(f"({', '.join(one.kinds)})" for one in overloads))
            given = ", ".join(map(str, types))
            hint = ""
            if node.value == "contains" and types[0].kind in ("list", "map"):
                hint = "ask with in, as in 'value' in " + self.written(node.children[0])
            self.report(node, "type-mismatch", f"{node.value}() takes {takes}; here it gets ({given})", hint)
            return self._unknown(node)
        return self._literal_call(node, overload, [form for form, _type in checked])

    def _literal_call(self, node: Node, overload: Overload, forms: list[Any]) -> Typed:
        """Try now what can only fail for literals, and keep the value of times, which are dear to parse."""
        if overload.kinds == ("timestamp", "string") and forms[1][0] == "lit":
            try:
                tv.zone(forms[1][4])
            except ValueError as error:
                self.report(node, "bad-literal", str(error), "write an offset such as '+02:00', or Europe/Berlin")
        if len(forms) == 1 and forms[0][0] == "lit" and "_to_" in overload.name:
            try:
                value = RUNTIME[overload.name](forms[0][4])
            except EvaluationError as error:
                hint = duration_hint(str(forms[0][4])) if overload.result.kind == "duration" else ""
                self.report(node, "bad-literal", str(error), hint)
                return self._unknown(node)
            if overload.result.kind in ("timestamp", "duration"):
                return self._made("lit", overload.result, node, value)
        return self._made("call", overload.result, node, overload.name, *forms)

    def _no_such_function(self, node: Node, table: Iterable[str], other: Iterable[str]) -> None:
        if node.value in UNSUPPORTED:
            self.report(node, "unsupported", f"{node.value}() is not supported", UNSUPPORTED[node.value])
        elif node.value in other or node.value in LOOPS or node.value == "join":
            wanted = "x.NAME(…)" if node.kind == "call" else "NAME(x, …)"
            self.report(node, "unknown-function", f"call it as {wanted.replace('NAME', node.value)}")
        else:
            known = {*table, *other, *LOOPS, "has", "matches", "join"}
            hint = function_hint(node.value, known)
            self.report(node, "unknown-function", f"there is no function {node.value}()", hint)

    def _join_texts(self, node: Node, present: Present) -> Typed:
        checked = [self.check(child, present) for child in node.children]
        wanted = [t.list_of(t.STRING), t.STRING]
        for child, (_form, type_), want in zip(node.children, checked, wanted):  # the separator may lack
            if t.join(type_, want) is None:
                self.report(child, "type-mismatch", f"join() takes {want} here, and this is {with_article(type_)}")
        return self._made("call", t.STRING, node, "join", *(form for form, _type in checked))

    def _matches(self, node: Node, present: Present) -> Typed:
        (text_form, text), (_pattern_form, pattern) = (self.check(child, present) for child in node.children)
        literal = node.children[1]
        for child, type_ in zip(node.children, (text, pattern), strict=True):
            if t.join(type_, t.STRING) is None:
                self.report(child, "type-mismatch", f"matches() takes texts, and this is {with_article(type_)}")
                return self._unknown(node)[0], t.BOOL
        if literal.kind != "literal":
            self.report(literal, "unsupported", "the pattern of matches() must be a literal", "write 'pattern'")
            return self._unknown(node)[0], t.BOOL
        try:
            program = compile_pattern(literal.value)
        except PatternError as error:
            message = f"bad pattern: {error} (at character {error.position + 1} of it)"
            self.report(literal, "bad-literal", message, _PATTERN_HINT)
            return self._unknown(node)[0], t.BOOL
        return self._made("matches", t.BOOL, node, text_form, program)

    def _loop(self, node: Node, present: Present) -> Typed:
        range_node, *arguments = node.children
        counts = (2, 3) if node.value == "map" else (2,)
        if len(arguments) not in counts or arguments[0].kind != "name":
            self.report(node, "bad-macro", f"{node.value}() takes a name and an expression, as in x.{node.value}(e, …)")
            return self._unknown(node)
        if arguments[0].value == "__result__":
            self.report(arguments[0], "reserved-word", "CEL's loops keep __result__ for themselves", "call it another")
        range_form, range_type = self.check(range_node, present)
        if range_type.kind not in ("list", "map", "unknown"):
            given = with_article(range_type)
            self.report(range_node, "type-mismatch", f"{node.value}() goes through a list or a map, not {given}")
        element = range_type.of[0] if range_type.of else t.UNKNOWN
        number, turns = len(self.locals), self.turns
        self.turns *= len(range_node.children) if range_node.kind in ("list", "map") else ASSUMED_ELEMENTS
        self.locals.append((arguments[0].value, element, number))
        inside = frozenset(path for path in present if path.split(".")[0] != arguments[0].value)
        *predicates, last = arguments[1:]
        forms: list[Any] = []
        for predicate in predicates:
            form, type_ = self.check(predicate, inside)
            self._expect_bool(predicate, type_, "the filter of map()")
            forms.append(form)
            inside |= when_true(predicate)
        form, type_ = self.check(last, inside)
        self.locals.pop()
        self.turns = turns
        if node.value == "map":
            filter_form = forms[0] if forms else None
            return self._made("map_list", t.list_of(type_), node, number, range_form, filter_form, form)
        self._expect_bool(last, type_, f"{node.value}()")
        result = t.list_of(element) if node.value == "filter" else t.BOOL
        return self._made(node.value, result, node, number, range_form, form)
