# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks calls of functions and methods: most by their overloads, some by rules of their own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Callable

from ...policy.evaluation_error import EvaluationError
from ...policy.functions import formatting
from ...policy.functions import overloads as table
from ...policy.functions import timevalues as tv
from ...policy.functions.patterns import PatternError, compile_pattern
from ...policy.functions.table import FUNCTIONS as RUNTIME
from ..wording import duration_hint, function_hint, with_article
from . import operators, optionals
from . import types as t
from .guards import Present
from .macros import MACROS
from .name_hints import call_hint, method_hint
from .overloads import UNSUPPORTED, find, possible, result
from .syntax import SyntaxNode
from .types import Type, Typed

if TYPE_CHECKING:
    from .checker import Checker

_PATTERN_HINT = r"write a backslash before a special character, as in r'\('"


def overloaded(
    checker: Checker, node: SyntaxNode, table_: table.Table, other: Iterable[str], present: Present
) -> Typed:
    """Check a function or a method by its overloads; ``other`` are the names of the other calling style."""
    checked = [checker.check(child, present) for child in node.children]
    overloads = table_.get(node.value)
    if overloads is None:
        _no_such_function(checker, node, table_, other)
        return checker.unknown(node)
    return _resolved(checker, node, overloads, checked)


def _resolved(checker: Checker, node: SyntaxNode, overloads: list[table.Overload], checked: list[Typed]) -> Typed:
    types = [type_ for _form, type_ in checked]
    if t.UNKNOWN in types:
        results = {overload.result for overload in overloads}
        known = len(results) == 1 and "E" not in "".join(results)
        return checker.unknown(node)[0], result(overloads[0], types) if known else t.UNKNOWN
    overload = find(overloads, types)
    if overload is not None:
        refused = _refused(checker, node, overload, types)
        return refused or _literal_call(checker, node, overload, [form for form, _type in checked], types)
    fitting = possible(overloads, types) if t.DYN in types else []
    if fitting:
        arguments = node.children[-len(checked) :]
        boxes = [checker.boxed(child, *one) for child, one in zip(arguments, checked, strict=True)]
        made = checker.called(t.DYN, node, f"dyn {node.value}", *boxes)
        results = {one.result for one in fitting}
        known = len(results) == 1 and "E" not in "".join(results)
        return checker.unboxed(node, made, result(fitting[0], types)) if known else (made, t.DYN)
    takes = " or ".join(dict.fromkeys(f"({', '.join(one.kinds)})" for one in overloads))
    hint = ""
    if node.value == "contains" and types[0].kind in ("list", "map"):
        hint = "ask with in, as in 'value' in " + checker.written(node.children[0])
    elif node.value in UNSUPPORTED:
        hint = UNSUPPORTED[node.value]
    elif node.value == "duration" and types == [t.INT]:
        argument = node.children[-1]
        number = argument.value if argument.kind == "literal" else None
        written = checker.written(argument)
        hint = f"write duration('{number}s')" if number is not None else f"write duration(string({written}) + 's')"
    given = ", ".join(map(str, types))
    checker.report(node, "type-mismatch", f"{node.value}() takes {takes}; here it gets ({given})", hint)
    return checker.unknown(node)


def _refused(checker: Checker, node: SyntaxNode, overload: table.Overload, types: list[Type]) -> Typed | None:
    """Report elements that a function on lists does not take."""
    if types[0].kind != "list" or overload.name == "size":
        return None
    for type_ in types:
        if t.contains_kind(type_, "record"):
            checker.report(node, "unsupported", f"{node.value}() does not take {with_article(type_)}", "use a field")
            return checker.unknown(node)
    element = types[0].of[0]
    if overload.name in ("sort", "least", "greatest") and element.kind not in (*t.ORDERED, "dyn", "nothing"):
        message = f"{node.value}() takes elements that have an order, and these are {element}"
        checker.report(node, "type-mismatch", message)
        return checker.unknown(node)
    if overload.name.startswith("sets_") and not t.comparable(*types):
        message = f"{node.value}() takes lists of one type, and these are {types[0]} and {types[1]}"
        checker.report(node, "type-mismatch", message)
        return checker.unknown(node)
    if overload.name.startswith("sets_"):
        for child, other in zip(node.children, reversed(types), strict=True):
            operators.expect_value(checker, child, other)
    return None


def _literal_call(
    checker: Checker, node: SyntaxNode, overload: table.Overload, forms: list[Any], types: list[Type]
) -> Typed:
    """Evaluate a conversion of a literal now: it may fail, and times are costly to parse for each event."""
    type_ = result(overload, types)
    if overload.name.startswith("sets_") and t.join(*types) is None:  # so that the elements can be compared
        forms = [checker.called(t.list_of(t.DYN), node, "dyn_elements", checker.boxed(node, *one))
                 for one in zip(forms, types, strict=True)]  # fmt: skip
    if overload.kinds == ("timestamp", "string") and forms[1][0] == "lit":
        try:
            tv.zone(forms[1][4])
        except ValueError as error:
            checker.report(node, "bad-literal", str(error), "write an offset such as '+02:00', or Europe/Berlin")
    if len(forms) == 1 and forms[0][0] == "lit" and "_to_" in overload.name:
        try:
            value = RUNTIME[overload.name](forms[0][4])
        except EvaluationError as error:
            hint = duration_hint(str(forms[0][4])) if type_.kind == "duration" else ""
            checker.report(node, "bad-literal", str(error), hint)
            return checker.unknown(node)
        if type_.kind in ("timestamp", "duration"):
            return checker.made("lit", type_, node, value)
    return checker.made("call", type_, node, overload.name, *forms)


def _no_such_function(checker: Checker, node: SyntaxNode, own: Iterable[str], other: Iterable[str]) -> None:
    if node.value in UNSUPPORTED:
        checker.report(node, "unsupported", f"{node.value}() is not supported", UNSUPPORTED[node.value])
        return
    hint = _other_name(checker, node)
    other_style = METHODS if node.kind == "call" else FUNCTIONS
    if node.value in other or node.value in other_style or (node.kind == "call" and node.value in MACROS):
        wanted = "x.NAME(…)" if node.kind == "call" else "NAME(x, …)"
        checker.report(node, "unknown-function", f"call it as {wanted.replace('NAME', node.value)}", hint)
        return
    known = {name for name in (*own, *other, *FUNCTIONS, *METHODS, *MACROS, "has") if "." not in name}
    hint = hint or function_hint(node.value, known)
    checker.report(node, "unknown-function", f"there is no function {node.value}()", hint)


def _other_name(checker: Checker, node: SyntaxNode, space: str = "") -> str:
    """Return what to write for the call of a function that does not exist, if that is clear; ``space`` is before it."""
    quiet = checker.quiet()
    types = [quiet.check(child)[1] for child in node.children]
    written = [checker.written(child) for child in node.children]
    if node.kind == "call":
        return call_hint(node.value, written, checker.declarations.variables)
    if space:
        return call_hint(f"{space}.{node.value}", written[1:], {})
    first = node.children[1] if len(node.children) > 1 else None
    literal = first.value if first is not None and first.kind == "literal" else None
    return method_hint(node.value, written[0], types[0], written[1:], literal)


def in_namespace(checker: Checker, node: SyntaxNode, space: str, present: Present) -> Typed:
    """Check a function whose name has a dot in it: ``math.abs(x)``."""
    name = f"{space}.{node.value}"
    special = _NAMESPACED.get(name)
    if special is not None:
        arguments, check = special
        if name in _MACROS and node.children[0].value.startswith("."):
            checker.report(node, "bad-macro", f"{name}() is a macro, which has no dot before it", "remove the dot")
            return checker.unknown(node)
        if arguments is not None and len(node.children) - 1 != arguments:
            checker.report(node, "type-mismatch", f"{name}() takes {_count(arguments)}")
            return checker.unknown(node)
        return check(checker, node, present)
    overloads = table.FUNCTIONS.get(name)
    if overloads is None:
        known = [other for other in (*table.FUNCTIONS, *_NAMESPACED) if other.startswith(f"{space}.")]
        hint = _other_name(checker, node, space) or function_hint(name, known)
        checker.report(node, "unknown-function", f"there is no function {name}()", hint)
        return checker.unknown(node)
    qualified = SyntaxNode("call", node.start, node.end, name, node.children[1:])
    return _resolved(checker, qualified, overloads, [checker.check(child, present) for child in node.children[1:]])


def _count(arguments: int) -> str:
    return "one argument" if arguments == 1 else f"{arguments or 'no'} arguments"


# Functions with rules of their own


def _dyn(checker: Checker, node: SyntaxNode, present: Present) -> Typed:
    form, type_ = checker.check(node.children[0], present)
    return checker.boxed(node, form, type_), t.UNKNOWN if type_ == t.UNKNOWN else t.DYN


def _type(checker: Checker, node: SyntaxNode, present: Present) -> Typed:
    form, type_ = checker.check(node.children[0], present)
    if type_ == t.UNKNOWN:
        return checker.unknown(node)
    return checker.made("call", t.TYPE, node, "dyn_type", checker.boxed(node, form, type_))


def _join(checker: Checker, node: SyntaxNode, present: Present) -> Typed:
    checked = [checker.check(child, present) for child in node.children]
    wanted = [t.list_of(t.STRING), t.STRING]
    for child, (_form, type_), want in zip(node.children, checked, wanted):  # the separator is optional
        if t.join(type_, want) is None:
            checker.report(child, "type-mismatch", f"join() takes {want} here, and this is {with_article(type_)}")
    return checker.made("call", t.STRING, node, "join", *(form for form, _type in checked))


def _matches(checker: Checker, node: SyntaxNode, present: Present) -> Typed:
    """Check ``matches``, and compile a literal pattern. One that is a parameter is compiled when it is known."""
    (text_form, text), (pattern_form, pattern) = (checker.check(child, present) for child in node.children)
    literal = node.children[1]
    for child, type_ in zip(node.children, (text, pattern), strict=True):
        if t.join(type_, t.STRING) is None:
            checker.report(child, "type-mismatch", f"matches() takes texts, and this is {with_article(type_)}")
            return checker.unknown(node)[0], t.BOOL
    if pattern_form[0] == "field" and pattern_form[4][1] == "record(params)":
        return checker.made("call", t.BOOL, node, "matches", text_form, pattern_form)
    if literal.kind != "literal":
        message = "the pattern of matches() must be a literal or a parameter"
        checker.report(literal, "unsupported", message, "write 'pattern', or params.NAME")
        return checker.unknown(node)[0], t.BOOL
    try:
        program = compile_pattern(literal.value)
    except PatternError as error:
        message = f"bad pattern: {error} (at its character {error.position + 1})"
        checker.report(literal, "bad-literal", message, _PATTERN_HINT)
        return checker.unknown(node)[0], t.BOOL
    return checker.made("matches", t.BOOL, node, text_form, program)


def _format(checker: Checker, node: SyntaxNode, present: Present) -> Typed:
    """Check ``format``, and that a literal format has a clause for each element of a literal list."""
    (text_form, text), (list_form, given) = (checker.check(child, present) for child in node.children)
    format_, arguments = node.children
    if t.UNKNOWN in (text, given):
        return checker.unknown(node)[0], t.STRING
    if text != t.STRING or given.kind != "list" or t.contains_kind(given, "record"):
        message = f"format() takes a text and a list of values; here it gets ({text}, {given})"
        checker.report(node, "type-mismatch", message, "write 'text %s'.format([value])")
        return checker.unknown(node)[0], t.STRING
    if format_.kind == "literal":
        try:
            clauses = len(formatting.clauses(format_.value)) - 1
        except ValueError as error:
            checker.report(format_, "bad-literal", str(error))
            return checker.unknown(node)[0], t.STRING
        if arguments.kind == "list" and len(arguments.children) != clauses:
            message = f"the format has {clauses} clauses, and the list {len(arguments.children)} elements"
            checker.report(arguments, "bad-literal", message)
    return checker.made("call", t.STRING, node, "format", text_form, checker.boxed(arguments, list_form, given))


def _flatten(checker: Checker, node: SyntaxNode, present: Present) -> Typed:
    """Check ``flatten()``, which joins lists, and ``flatten(depth)``."""
    form, type_ = checker.check(node.children[0], present)
    depth = node.children[1] if len(node.children) > 1 else None
    if depth is not None and (depth.kind != "literal" or depth.type != t.INT or not 0 <= depth.value <= 8):
        checker.report(depth, "type-mismatch", "flatten() takes a literal number from 0 to 8")
        return checker.unknown(node)
    if type_.kind != "list" or type_.of[0].kind == "dyn":
        if type_ != t.UNKNOWN:
            message = f"flatten() takes a list of lists, and this is {with_article(type_)}"
            checker.report(node.children[0], "type-mismatch", message)
        return checker.unknown(node)
    for _level in range(1 if depth is None else depth.value):
        if type_.of[0].kind != "list":
            break
        type_ = type_.of[0]
        form = checker.called(type_, node, "flatten", form)
    return form, type_


def _extreme(function: str) -> Callable[[Checker, SyntaxNode, Present], Typed]:
    """Return the check of math.greatest() or math.least(), of a list or of several numbers."""

    def check(checker: Checker, node: SyntaxNode, present: Present) -> Typed:
        children = node.children[1:]
        if len(children) == 1:
            form, type_ = checker.check(children[0], present)
            if type_.kind in t.NUMERIC:
                return form, type_
            element = type_.of[0] if type_.kind == "list" else type_
        else:
            forms, element = checker.uniform(children, present, "the numbers")
            form = checker.made("list", t.list_of(element), node, *forms)[0]
            type_ = t.list_of(element)
        if element.kind not in t.NUMERIC and (type_.kind != "list" or element != t.DYN):
            if element != t.UNKNOWN:
                given = f"{with_article(type_)}" if children else "nothing"
                checker.report(node, "type-mismatch", f"math.{node.value}() takes numbers, and this is {given}")
            return checker.unknown(node)
        return checker.made("call", element, node, function, form)

    return check


def _bind(checker: Checker, node: SyntaxNode, present: Present) -> Typed:
    """Check ``cel.bind(name, value, body)``."""
    name, value, body = node.children[1:]
    if not name.is_identifier:
        checker.report(name, "bad-macro", "cel.bind() takes a name, a value and an expression: cel.bind(x, 5, x * x)")
        return checker.unknown(node)
    form, type_ = checker.check(value, present)
    return checker.with_bound(node, name.value, (form, type_), body, present)


_Check = Callable[["Checker", SyntaxNode, Present], Typed]


def _with(least: int, most: int, check: _Check) -> _Check:
    """Return a check that first counts the arguments, the receiver among them."""

    def counted(checker: Checker, node: SyntaxNode, present: Present) -> Typed:
        if least <= len(node.children) <= most:
            return check(checker, node, present)
        own = least - (node.kind == "method")
        checker.report(node, "type-mismatch", f"{node.value}() takes {_count(own)}")
        return checker.unknown(node)

    return counted


FUNCTIONS: Mapping[str, _Check] = {
    "dyn": _with(1, 1, _dyn),
    "type": _with(1, 1, _type),
    "matches": _with(2, 2, _matches),
}
METHODS: Mapping[str, _Check] = {
    "matches": _with(2, 2, _matches),
    "join": _with(1, 2, _join),
    "format": _with(2, 2, _format),
    "flatten": _with(1, 2, _flatten),
    "hasValue": _with(1, 1, optionals.has_value),
    "value": _with(1, 1, optionals.value),
    "or": _with(2, 2, optionals.or_),
    "orValue": _with(2, 2, optionals.or_value),
    "optMap": _with(3, 3, optionals.mapped),
    "optFlatMap": _with(3, 3, optionals.mapped),
}
_NAMESPACED: Mapping[str, tuple[int | None, _Check]] = {
    "cel.bind": (3, _bind),
    "math.greatest": (None, _extreme("greatest")),
    "math.least": (None, _extreme("least")),
    "optional.of": (1, optionals.of),
    "optional.ofNonZeroValue": (1, optionals.of_non_zero),
    "optional.none": (0, optionals.none),
}
_MACROS = ("cel.bind", "math.greatest", "math.least")
NAMESPACES = frozenset(name.partition(".")[0] for name in (*table.FUNCTIONS, *_NAMESPACED) if "." in name)
