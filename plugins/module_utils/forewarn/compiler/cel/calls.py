# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks calls of functions and methods: most by their overloads, some by special rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ...policy.evaluation_error import EvaluationError
from ...policy.functions import formatting
from ...policy.functions import timevalues as tv
from ...policy.functions.overloads import FUNCTIONS, METHODS, Overload, Table
from ...policy.functions.patterns import PatternError, compile_pattern
from ...policy.functions.table import FUNCTIONS as RUNTIME
from ..wording import duration_hint, function_hint
from . import macros, operators, optionals
from . import types as t
from .aggregates import check_elements
from .context import Check, CheckContext
from .forms import TypedForm, call, typed_call, typed_form, unknown
from .guards import Present
from .name_hints import call_hint, method_hint
from .overloads import UNSUPPORTED, common_result_type, matching_overload, possible_overloads, result_type
from .syntax import MAX_SOURCE, SyntaxNode
from .types import Type, with_article

_PATTERN_HINT = r"write a backslash before a special character, as in r'\('"


def check_call(context: CheckContext, node: SyntaxNode, present: Present) -> TypedForm:
    """Check ``f(x, …)``."""
    if node.value == "has":
        return macros.check_has(context, node, present)
    special = _SPECIAL_FUNCTIONS.get(node.value)
    if special is not None:
        return special.check(context, node, present)
    return _check_overloaded(context, node, FUNCTIONS, present)


def check_method(context: CheckContext, node: SyntaxNode, present: Present) -> TypedForm:
    """Check ``x.f(y, …)``: a method, a loop, or a function whose name has a dot in it."""
    receiver = node.children[0]
    if receiver.kind == "name" and not context.is_variable(receiver.value):
        namespace = context.dotted_name(receiver)
        if namespace in _NAMESPACES:
            return _check_namespaced(context, node, f"{namespace}.{node.value}", present)
    if node.value in macros.LOOPS:
        return macros.check_loop(context, node, present)
    special = _SPECIAL_METHODS.get(node.value)
    if special is not None:
        return special.check(context, node, present)
    return _check_overloaded(context, node, METHODS, present)


# By overloads


def _check_overloaded(context: CheckContext, node: SyntaxNode, known: Table, present: Present) -> TypedForm:
    """Check a function or a method by its overloads."""
    arguments = context.check_all(node.children, present)
    overloads = known.get(node.value)
    if overloads is None:
        return _refuse_unknown_function(context, node)
    return _check_arguments(context, node, overloads, arguments)


def _check_arguments(
    context: CheckContext, node: SyntaxNode, overloads: list[Overload], arguments: list[TypedForm]
) -> TypedForm:
    types = [type_ for _form, type_ in arguments]
    if t.UNKNOWN in types:
        return unknown(node, common_result_type(overloads, types) or t.UNKNOWN)
    overload = matching_overload(overloads, types)
    if overload is not None:
        refused = _refuse_elements(context, node, overload, types)
        return refused or _call_overload(context, node, overload, arguments)
    fitting = possible_overloads(overloads, types) if t.DYN in types else []
    if fitting:
        dynamic = call(t.DYN, node, f"dyn {node.value}", *context.all_to_dyn(node.children, arguments))
        known = common_result_type(fitting, types)
        return TypedForm(dynamic, t.DYN) if known is None else typed_call(known, node, "dyn_value", dynamic)
    takes = " or ".join(dict.fromkeys(f"({', '.join(one.kinds)})" for one in overloads))
    message = f"{node.value}() takes {takes}; here it gets ({', '.join(map(str, types))})"
    return context.refuse(node, "type-mismatch", message, _arguments_hint(context, node, types))


def _arguments_hint(context: CheckContext, node: SyntaxNode, types: list[Type]) -> str:
    """Return what to write for a call whose arguments no overload takes."""
    if node.value == "contains" and types[0].kind in ("list", "map"):
        return "ask with in, as in 'value' in " + context.source_of(node.children[0])
    if node.value == "duration" and types == [t.INT]:
        argument = node.children[-1]
        if argument.kind == "literal":
            return f"write duration('{argument.value}s')"
        return f"write duration(string({context.source_of(argument)}) + 's')"
    return UNSUPPORTED.get(node.value, "")


def _refuse_elements(
    context: CheckContext, node: SyntaxNode, overload: Overload, types: list[Type]
) -> TypedForm | None:
    """Report elements that a function on lists does not take."""
    if types[0].kind != "list" or overload.name == "size":
        return None
    for type_ in types:
        if t.contains_kind(type_, "record"):
            message = f"{node.value}() does not take {with_article(type_)}"
            return context.refuse(node, "unsupported", message, "use a field")
    element = types[0].of[0]
    if overload.name in ("sort", "least", "greatest") and element.kind not in (*t.ORDERED, "dyn", "nothing"):
        message = f"{node.value}() takes elements that have an order, and these are {element}"
        return context.refuse(node, "type-mismatch", message)
    if overload.name.startswith("sets_"):
        if not t.comparable(*types):
            message = f"{node.value}() takes lists of one type, and these are {types[0]} and {types[1]}"
            return context.refuse(node, "type-mismatch", message)
        for child, other in zip(node.children, reversed(types), strict=True):
            operators.expect_value(context, child, other)
    return None


def _call_overload(
    context: CheckContext, node: SyntaxNode, overload: Overload, arguments: list[TypedForm]
) -> TypedForm:
    """Return a call. Evaluates a conversion of a literal, which may fail, so that no VM has to parse times."""
    forms, types = [form for form, _type in arguments], [type_ for _form, type_ in arguments]
    type_ = result_type(overload, types)
    if overload.name.startswith("sets_") and t.join(*types) is None:  # so that the elements can be compared
        lists = [context.to_dyn(node, argument) for argument in arguments]
        forms = [call(t.list_of(t.DYN), node, "dyn_elements", form) for form in lists]
    if overload.kinds == ("timestamp", "string") and arguments[1].is_literal:
        try:
            tv.zone(forms[1][4])
        except ValueError as error:
            context.report(node, "bad-literal", str(error), "write an offset such as '+02:00', or Europe/Berlin")
        if not context.declarations.named_zones and not tv.is_fixed_zone(forms[1][4]):
            message = f"Windows knows no time zone {forms[1][4]!r}: Python finds none by its name there"
            context.report(node, "wrong-system", message, "write 'UTC', or an offset such as '+02:00'")
    if len(arguments) == 1 and arguments[0].is_literal and "_to_" in overload.name:
        literal = forms[0][4]
        try:
            value = RUNTIME[overload.name](literal)
        except EvaluationError as error:
            hint = duration_hint(str(literal)) if type_.kind == "duration" else ""
            return context.refuse(node, "bad-literal", str(error), hint)
        if type_.kind in ("timestamp", "duration"):
            return typed_form("lit", type_, node, value)
    return typed_call(type_, node, overload.name, *forms)


def _refuse_unknown_function(context: CheckContext, node: SyntaxNode) -> TypedForm:
    if node.value in UNSUPPORTED:
        return context.refuse(node, "unsupported", f"{node.value}() is not supported", UNSUPPORTED[node.value])
    hint = _other_name(context, node)
    functions = {*FUNCTIONS, *_SPECIAL_FUNCTIONS}
    methods = {*METHODS, *_SPECIAL_METHODS, *macros.LOOPS}
    if node.value in (methods if node.kind == "call" else functions):
        style = f"x.{node.value}(…)" if node.kind == "call" else f"{node.value}(x, …)"
        return context.refuse(node, "unknown-function", f"call it as {style}", hint)
    known = {name for name in (*functions, *methods, "has") if "." not in name}
    hint = hint or function_hint(node.value, known)
    return context.refuse(node, "unknown-function", f"there is no function {node.value}()", hint)


def _other_name(context: CheckContext, node: SyntaxNode, namespaced: str = "") -> str:
    """Return what to write for the call of a function that does not exist, or an empty text if that is not clear.

    ``namespaced`` is its name if that has a dot in it.
    """
    quiet = context.fork()
    types = [quiet.check(child).type for child in node.children]
    written = [context.source_of(child) for child in node.children]
    if node.kind == "call":
        return call_hint(node.value, written, context.declarations.variables)
    if namespaced:
        return call_hint(namespaced, written[1:], {})
    first = node.children[1] if len(node.children) > 1 else None
    literal = first.value if first is not None and first.kind == "literal" else None
    return method_hint(node.value, written[0], types[0], written[1:], literal)


def _check_namespaced(context: CheckContext, node: SyntaxNode, name: str, present: Present) -> TypedForm:
    """Check a function whose name has a dot in it: ``math.abs(x)``."""
    special = _SPECIAL_NAMESPACED.get(name)
    if special is not None:
        if name in _NAMESPACED_MACROS and node.children[0].value.startswith("."):
            message = f"{name}() is a macro, which has no dot before it"
            return context.refuse(node, "bad-macro", message, "remove the dot")
        return special.check(context, node, present, name)
    overloads = FUNCTIONS.get(name)
    if overloads is None:
        namespace = name.partition(".")[0]
        known = [other for other in (*FUNCTIONS, *_SPECIAL_NAMESPACED) if other.startswith(f"{namespace}.")]
        hint = _other_name(context, node, name) or function_hint(name, known)
        return context.refuse(node, "unknown-function", f"there is no function {name}()", hint)
    qualified = SyntaxNode("call", node.start, node.end, name, node.children[1:])
    return _check_arguments(context, qualified, overloads, context.check_all(qualified.children, present))


# Functions with special rules


class _SpecialFunction(NamedTuple):
    """A function with a special check, and how many arguments it takes, a receiver or a namespace not counted."""

    check_arguments: Check
    least: int
    most: int

    def check(self, context: CheckContext, node: SyntaxNode, present: Present, name: str = "") -> TypedForm:
        """Count the arguments, then check the call. ``name`` is that of the function if it has a dot in it."""
        given = len(node.children) - (node.kind == "method")
        if self.least <= given <= self.most:
            return self.check_arguments(context, node, present)
        takes = "one argument" if self.least == 1 else f"{self.least or 'no'} arguments"
        return context.refuse(node, "type-mismatch", f"{name or node.value}() takes {takes}")


def _dyn(context: CheckContext, node: SyntaxNode, present: Present) -> TypedForm:
    value = context.check(node.children[0], present)
    return TypedForm(context.to_dyn(node, value), t.UNKNOWN if value.type == t.UNKNOWN else t.DYN)


def _type(context: CheckContext, node: SyntaxNode, present: Present) -> TypedForm:
    value = context.check(node.children[0], present)
    if value.type == t.UNKNOWN:
        return unknown(node)
    return typed_call(t.TYPE, node, "dyn_type", context.to_dyn(node, value))


def _join(context: CheckContext, node: SyntaxNode, present: Present) -> TypedForm:
    arguments = context.check_all(node.children, present)
    wanted = [t.list_of(t.STRING), t.STRING]
    for child, (_form, type_), want in zip(node.children, arguments, wanted):  # the separator is optional
        if t.join(type_, want) is None:
            context.report(child, "type-mismatch", f"join() takes {want} here, and this is {with_article(type_)}")
    return typed_call(t.STRING, node, "join", *(form for form, _type in arguments))


def _matches(context: CheckContext, node: SyntaxNode, present: Present) -> TypedForm:
    """Check ``matches``, and compile a literal pattern. One that is a parameter is compiled when it is known."""
    (text_form, text), (pattern_form, pattern) = context.check_all(node.children, present)
    literal = node.children[1]
    for child, type_ in zip(node.children, (text, pattern), strict=True):
        if t.join(type_, t.STRING) is None:
            context.report(child, "type-mismatch", f"matches() takes texts, and this is {with_article(type_)}")
            return unknown(node, t.BOOL)
    if pattern_form[0] == "field" and pattern_form[4][1] == "record(params)":
        return typed_call(t.BOOL, node, "matches", text_form, pattern_form)
    if literal.kind != "literal":
        message = "the pattern of matches() must be a literal or a parameter"
        context.report(literal, "unsupported", message, "write 'pattern', or params.NAME")
        return unknown(node, t.BOOL)
    try:
        program = compile_pattern(literal.value)
    except PatternError as error:
        message = f"bad pattern: {error} (at its character {error.position + 1})"
        context.report(literal, "bad-literal", message, _PATTERN_HINT)
        return unknown(node, t.BOOL)
    return typed_form("matches", t.BOOL, node, text_form, program)


def _format(context: CheckContext, node: SyntaxNode, present: Present) -> TypedForm:
    """Check ``format``, and that a literal format has a clause for each element of a literal list."""
    text, values = context.check_all(node.children, present)
    format_, arguments = node.children
    if t.UNKNOWN in (text.type, values.type):
        return unknown(node, t.STRING)
    if text.type != t.STRING or values.type.kind != "list" or t.contains_kind(values.type, "record"):
        message = f"format() takes a text and a list of values; here it gets ({text.type}, {values.type})"
        context.report(node, "type-mismatch", message, "write 'text %s'.format([value])")
        return unknown(node, t.STRING)
    if format_.kind == "literal":
        try:
            clauses = len(formatting.parse_clauses(format_.value)) - 1
        except ValueError as error:
            context.report(format_, "bad-literal", str(error))
            return unknown(node, t.STRING)
        if arguments.kind == "list" and len(arguments.children) != clauses:
            message = f"the format has {clauses} clauses, and the list {len(arguments.children)} elements"
            context.report(arguments, "bad-literal", message)
    return typed_call(t.STRING, node, "format", text.form, context.to_dyn(arguments, values))


def _flatten(context: CheckContext, node: SyntaxNode, present: Present) -> TypedForm:
    """Check ``flatten()``, which joins lists, and ``flatten(depth)``."""
    flattened = context.check(node.children[0], present)
    type_ = flattened.type
    depth = node.children[1] if len(node.children) > 1 else None
    if depth is not None and (depth.kind != "literal" or depth.type != t.INT or not 0 <= depth.value <= 8):
        return context.refuse(depth, "type-mismatch", "flatten() takes a literal number from 0 to 8")
    if type_ == t.UNKNOWN:
        return unknown(node)
    if type_.kind != "list" or type_.of[0].kind == "dyn":
        message = f"flatten() takes a list of lists, and this is {with_article(type_)}"
        return context.refuse(node.children[0], "type-mismatch", message)
    for _level in range(1 if depth is None else depth.value):
        if type_.of[0].kind != "list":
            break
        type_ = type_.of[0]
        flattened = typed_call(type_, node, "flatten", flattened.form)
    return flattened


def _extreme(context: CheckContext, node: SyntaxNode, present: Present) -> TypedForm:
    """Check ``math.greatest`` or ``math.least``, of a list or of several numbers."""
    children = node.children[1:]
    if len(children) == 1:
        form, type_ = context.check(children[0], present)
        if type_.kind in t.NUMERIC:
            return TypedForm(form, type_)
        element = type_.of[0] if type_.kind == "list" else type_
    else:
        forms, element = check_elements(context, children, present, "the numbers")
        form, type_ = typed_form("list", t.list_of(element), node, *forms)
    if element == t.UNKNOWN:
        return unknown(node)
    if element.kind not in t.NUMERIC and (type_.kind != "list" or element != t.DYN):
        given = with_article(type_) if children else "nothing"
        message = f"math.{node.value}() takes numbers, and this is {given}"
        return context.refuse(node, "type-mismatch", message)
    return typed_call(element, node, node.value, form)


def _bind(context: CheckContext, node: SyntaxNode, present: Present) -> TypedForm:
    """Check ``cel.bind(name, value, body)``."""
    name, value, body = node.children[1:]
    if not name.is_identifier:
        message = "cel.bind() takes a name, a value and an expression: cel.bind(x, 5, x * x)"
        return context.refuse(name, "bad-macro", message)
    return optionals.bind(context, node, name.value, context.check(value, present), body, present)


_ANY = MAX_SOURCE  # arguments, each of which has a character
_SPECIAL_FUNCTIONS: Mapping[str, _SpecialFunction] = {
    "dyn": _SpecialFunction(_dyn, 1, 1),
    "type": _SpecialFunction(_type, 1, 1),
    "matches": _SpecialFunction(_matches, 2, 2),
}
_SPECIAL_METHODS: Mapping[str, _SpecialFunction] = {
    "matches": _SpecialFunction(_matches, 1, 1),
    "join": _SpecialFunction(_join, 0, 1),
    "format": _SpecialFunction(_format, 1, 1),
    "flatten": _SpecialFunction(_flatten, 0, 1),
    "hasValue": _SpecialFunction(optionals.has_value, 0, 0),
    "value": _SpecialFunction(optionals.value, 0, 0),
    "or": _SpecialFunction(optionals.or_, 1, 1),
    "orValue": _SpecialFunction(optionals.or_value, 1, 1),
    "optMap": _SpecialFunction(optionals.map_value, 2, 2),
    "optFlatMap": _SpecialFunction(optionals.map_value, 2, 2),
}
_SPECIAL_NAMESPACED: Mapping[str, _SpecialFunction] = {
    "cel.bind": _SpecialFunction(_bind, 3, 3),
    "math.greatest": _SpecialFunction(_extreme, 0, _ANY),
    "math.least": _SpecialFunction(_extreme, 0, _ANY),
    "optional.of": _SpecialFunction(optionals.of, 1, 1),
    "optional.ofNonZeroValue": _SpecialFunction(optionals.of_non_zero, 1, 1),
    "optional.none": _SpecialFunction(optionals.none, 0, 0),
}
_NAMESPACED_MACROS = ("cel.bind", "math.greatest", "math.least")
_NAMESPACES = frozenset(name.partition(".")[0] for name in (*FUNCTIONS, *_SPECIAL_NAMESPACED) if "." in name)
