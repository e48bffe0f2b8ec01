# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks calls: functions and methods by their overloads, ``matches`` and ``join``, and the loops."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ..policy import timevalues as tv
from ..policy.functions import FUNCTIONS as RUNTIME
from ..policy.functions import EvaluationError
from . import types as t
from .guards import Present, when_true
from .overloads import LOOPS, UNSUPPORTED, Overload, find
from .patterns import PatternError, compile_pattern
from .syntax import SyntaxNode
from .types import Typed
from .wording import duration_hint, function_hint, with_article

if TYPE_CHECKING:
    from .checker import Checker

ASSUMED_ELEMENTS = 100  # in a list of unknown length, to estimate the cost of a loop

_PATTERN_HINT = r"write a backslash before a special character, as in r'\('"


def overloaded(
    checker: Checker,
    node: SyntaxNode,
    table: dict[str, list[Overload]],
    other: dict[str, list[Overload]],
    present: Present,
) -> Typed:
    """Check a function or a method by its overloads; ``other`` is the table of the other calling style."""
    checked = [checker.check(child, present) for child in node.children]
    types = [type_ for _form, type_ in checked]
    overloads = table.get(node.value)
    if overloads is None:
        _no_such_function(checker, node, table, other)
        return checker.unknown(node)
    if t.UNKNOWN in types:
        results = {overload.result for overload in overloads}
        return checker.unknown(node)[0], results.pop() if len(results) == 1 else t.UNKNOWN
    overload = find(overloads, types)
    if overload is None:
        if node.value in UNSUPPORTED:
            checker.report(node, "unsupported", f"{node.value}() of {types[0]} is refused", UNSUPPORTED[node.value])
            return checker.unknown(node)
        if node.value == "string" and types == [t.DOUBLE]:
            checker.report(node, "engines-disagree", "CEL engines write a double in different ways", "use int(…) first")
            return checker.unknown(node)[0], t.STRING
        takes = " or ".join(dict.fromkeys(f"({', '.join(one.kinds)})" for one in overloads))
        given = ", ".join(map(str, types))
        hint = ""
        if node.value == "contains" and types[0].kind in ("list", "map"):
            hint = "ask with in, as in 'value' in " + checker.written(node.children[0])
        checker.report(node, "type-mismatch", f"{node.value}() takes {takes}; here it gets ({given})", hint)
        return checker.unknown(node)
    return _literal_call(checker, node, overload, [form for form, _type in checked])


def _literal_call(checker: Checker, node: SyntaxNode, overload: Overload, forms: list[Any]) -> Typed:
    """Evaluate a conversion of a literal now: it may fail, and times are costly to parse for each event."""
    if overload.kinds == ("timestamp", "string") and forms[1][0] == "lit":
        try:
            tv.zone(forms[1][4])
        except ValueError as error:
            checker.report(node, "bad-literal", str(error), "write an offset such as '+02:00', or Europe/Berlin")
    if len(forms) == 1 and forms[0][0] == "lit" and "_to_" in overload.name:
        try:
            value = RUNTIME[overload.name](forms[0][4])
        except EvaluationError as error:
            hint = duration_hint(str(forms[0][4])) if overload.result.kind == "duration" else ""
            checker.report(node, "bad-literal", str(error), hint)
            return checker.unknown(node)
        if overload.result.kind in ("timestamp", "duration"):
            return checker.made("lit", overload.result, node, value)
    return checker.made("call", overload.result, node, overload.name, *forms)


def _no_such_function(checker: Checker, node: SyntaxNode, table: Iterable[str], other: Iterable[str]) -> None:
    if node.value in UNSUPPORTED:
        checker.report(node, "unsupported", f"{node.value}() is not supported", UNSUPPORTED[node.value])
    elif node.value in other or node.value in LOOPS or node.value == "join":
        wanted = "x.NAME(…)" if node.kind == "call" else "NAME(x, …)"
        checker.report(node, "unknown-function", f"call it as {wanted.replace('NAME', node.value)}")
    else:
        known = {*table, *other, *LOOPS, "has", "matches", "join"}
        hint = function_hint(node.value, known)
        checker.report(node, "unknown-function", f"there is no function {node.value}()", hint)


def join_texts(checker: Checker, node: SyntaxNode, present: Present) -> Typed:
    """Check ``join``."""
    checked = [checker.check(child, present) for child in node.children]
    wanted = [t.list_of(t.STRING), t.STRING]
    for child, (_form, type_), want in zip(node.children, checked, wanted):  # the separator is optional
        if t.join(type_, want) is None:
            checker.report(child, "type-mismatch", f"join() takes {want} here, and this is {with_article(type_)}")
    return checker.made("call", t.STRING, node, "join", *(form for form, _type in checked))


def matches(checker: Checker, node: SyntaxNode, present: Present) -> Typed:
    """Check ``matches``, and compile its pattern."""
    (text_form, text), (_pattern_form, pattern) = (checker.check(child, present) for child in node.children)
    literal = node.children[1]
    for child, type_ in zip(node.children, (text, pattern), strict=True):
        if t.join(type_, t.STRING) is None:
            checker.report(child, "type-mismatch", f"matches() takes texts, and this is {with_article(type_)}")
            return checker.unknown(node)[0], t.BOOL
    if literal.kind != "literal":
        checker.report(literal, "unsupported", "the pattern of matches() must be a literal", "write 'pattern'")
        return checker.unknown(node)[0], t.BOOL
    try:
        program = compile_pattern(literal.value)
    except PatternError as error:
        message = f"bad pattern: {error} (at its character {error.position + 1})"
        checker.report(literal, "bad-literal", message, _PATTERN_HINT)
        return checker.unknown(node)[0], t.BOOL
    return checker.made("matches", t.BOOL, node, text_form, program)


def loop(checker: Checker, node: SyntaxNode, present: Present) -> Typed:
    """Check a loop."""
    range_node, *arguments = node.children
    counts = (2, 3) if node.value == "map" else (2,)
    if len(arguments) not in counts or arguments[0].kind != "name":
        checker.report(node, "bad-macro", f"{node.value}() takes a name and an expression, as in x.{node.value}(e, …)")
        return checker.unknown(node)
    if arguments[0].value == "__result__":
        checker.report(arguments[0], "reserved-word", "CEL's loops reserve __result__", "choose another name")
    range_form, range_type = checker.check(range_node, present)
    if range_type.kind not in ("list", "map", "unknown"):
        given = with_article(range_type)
        checker.report(range_node, "type-mismatch", f"{node.value}() takes a list or a map, not {given}")
    element = range_type.of[0] if range_type.of else t.UNKNOWN
    number, turns = len(checker.locals), checker.turns
    checker.turns *= len(range_node.children) if range_node.kind in ("list", "map") else ASSUMED_ELEMENTS
    checker.locals.append((arguments[0].value, element, number))
    inside = frozenset(path for path in present if path.split(".")[0] != arguments[0].value)
    *predicates, last = arguments[1:]
    forms: list[Any] = []
    for predicate in predicates:
        form, type_ = checker.check(predicate, inside)
        checker.expect_bool(predicate, type_, "the filter of map()")
        forms.append(form)
        inside |= when_true(predicate)
    form, type_ = checker.check(last, inside)
    checker.locals.pop()
    checker.turns = turns
    if node.value == "map":
        filter_form = forms[0] if forms else None
        return checker.made("map_list", t.list_of(type_), node, number, range_form, filter_form, form)
    checker.expect_bool(last, type_, f"{node.value}()")
    result = t.list_of(element) if node.value == "filter" else t.BOOL
    return checker.made(node.value, result, node, number, range_form, form)
