# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The type checker: a syntax tree and declarations in, the typed form out, and every mistake on the way.

What it cannot vouch for, it refuses by name. An operand that is already reported has the type ``unknown``, which fits
everything, so that one mistake is told once.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

from ..policy import timevalues as tv
from ..policy.functions import FUNCTIONS as RUNTIME
from ..policy.functions import EvaluationError
from . import types as t
from .guards import access_path, when_false, when_true
from .overloads import COMPARISONS, FUNCTIONS, LOOPS, METHODS, OPERATORS, UNSUPPORTED, Overload
from .patterns import PatternError, compile_pattern
from .syntax import Node
from .types import Declarations, ExpressionFinding, Type

Typed = tuple[list[Any], Type]
Present = frozenset[str]  # the access paths that are known to be there, as ``event.NotBefore``

MAX_COST = 1_000_000  # steps, were every list of unknown length to have this many elements:
ASSUMED_ELEMENTS = 100


class Checker:
    """Checks one expression. ``findings`` grows; the form is worth something only if it stays empty of errors."""

    def __init__(self, declarations: Declarations) -> None:
        self.declarations = declarations
        self.findings: list[ExpressionFinding] = []
        self.locals: list[tuple[str, Type, int]] = []
        self.cost = 0
        self.turns = 1

    def report(self, node: Node, code: str, message: str, suggestion: str = "") -> None:
        """Add a finding at a node."""
        self.findings.append(ExpressionFinding(code, message, node.start, node.end, suggestion))

    def check(self, node: Node, present: Present = frozenset()) -> Typed:
        """Return the form and the type of a node."""
        self.cost += self.turns
        form, type_ = getattr(self, "_" + node.kind)(node, present)
        return form, type_

    def _made(self, op: str, type_: Type, node: Node, *rest: Any) -> Typed:
        return [op, str(type_), node.start, node.end, *rest], type_

    def _unknown(self, node: Node) -> Typed:
        return self._made("unknown", t.UNKNOWN, node)

    # Names and fields

    def _literal(self, node: Node, _present: Present) -> Typed:
        type_ = node.type or t.UNKNOWN
        if type_ == t.BYTES:
            return self._made("bytes", type_, node, node.value.hex())
        return self._made("lit", type_, node, node.value)

    def _name(self, node: Node, _present: Present) -> Typed:
        for name, type_, number in reversed(self.locals):
            if name == node.value:
                return self._made("local", type_, node, number)
        declared = self.declarations.variables.get(node.value)
        if declared is not None:
            return self._made("var", declared, node, node.value)
        known = [*self.declarations.variables, *(name for name, _type, _number in self.locals)]
        if node.value == "variables":
            self.report(node, "type-mismatch", "variables is no value; name one, as in variables.NAME")
        else:
            self.report(node, "undeclared-name", f"there is no variable {node.value}", _did_you_mean(node.value, known))
        return self._unknown(node)

    def _select(self, node: Node, present: Present) -> Typed:
        operand = node.children[0]
        if operand.kind == "name" and operand.value == "variables" and not self._is_variable("variables"):
            return self._policy_variable(node)
        form, type_ = self.check(operand, present)
        if type_.kind == "record":
            return self._record_field(node, form, type_, present)
        if type_.kind == "map":
            if type_.of[0] not in (t.STRING, t.NOTHING):
                self.report(node, "type-mismatch", f"the keys of this map are {type_.of[0]}, not texts")
            return self._made("call", type_.of[1], node, "index_map", form, ["lit", "string", 0, 0, node.value])
        if type_ != t.UNKNOWN:
            self.report(node, "type-mismatch", f"{_an(type_)} has no fields", f"remove .{node.value}")
        return self._unknown(node)

    def _is_variable(self, name: str) -> bool:
        return name in self.declarations.variables or any(local == name for local, _type, _number in self.locals)

    def _policy_variable(self, node: Node) -> Typed:
        type_ = self.declarations.policy_variables.get(node.value)
        if type_ is None:
            self.report(
                node,
                "undeclared-name",
                f"no variable {node.value} is declared above",
                _did_you_mean(node.value, self.declarations.policy_variables),
            )
            return self._unknown(node)
        if type_ == t.UNKNOWN:
            return self._unknown(node)
        return self._made("variable", type_, node, node.value)

    def _record_field(self, node: Node, form: list[Any], record: Type, present: Present) -> Typed:
        field = self._declared_field(node, record)
        if field is None:
            return self._unknown(node)
        if field.lacking and access_path(node) not in present:
            path = access_path(node) or node.value
            self.report(node, "field-not-in-api-version", field.lacking, f"guard it: has({path}) && …")
        return self._made("field", field.type, node, form, node.value)

    def _declared_field(self, node: Node, record: Type) -> t.Field | None:
        fields = self.declarations.records[record.name]
        field = fields.get(node.value)
        if field is None:
            message = f"{record.name} has no field {node.value}"
            self.report(node, "unknown-field", message, _did_you_mean(node.value, fields))
        return field

    def _has(self, node: Node, present: Present) -> Typed:
        if len(node.children) != 1 or node.children[0].kind != "select":
            self.report(node, "bad-macro", "has() takes one field access, as in has(event.NotBefore)")
            return self._unknown(node)
        select = node.children[0]
        operand = select.children[0]
        form, type_ = self.check(operand, present)
        if type_.kind == "record":
            if self._declared_field(select, type_) is None:
                return self._unknown(node)
        elif type_.kind != "map" or type_.of[0] not in (t.STRING, t.NOTHING):
            if type_ != t.UNKNOWN:
                self.report(select, "type-mismatch", f"{_an(type_)} has no fields to ask has() for")
            return self._unknown(node)
        if not self._sure(operand, present):
            self.report(
                operand,
                "engines-disagree",
                "where this has no value, some CEL engines make has() false and others fail",
                f"ask for it first: has({access_path(operand)}) && …"
                if access_path(operand)
                else "name it by all(x, …)",
            )
        return self._made("has", t.BOOL, node, form, select.value)

    def _sure(self, node: Node, present: Present) -> bool:
        """Tell whether a node always has a value."""
        if node.kind == "map":
            return all(child.kind == "literal" for child in node.children)
        if node.kind == "name":
            return True
        if node.kind != "select":
            return False
        if access_path(node) in present:
            return True
        operand = node.children[0]
        if operand.kind == "name" and operand.value == "variables" and not self._is_variable("variables"):
            return False
        quiet = Checker(self.declarations)
        quiet.locals = self.locals
        _form, record = quiet.check(operand, present)
        field = self.declarations.records.get(record.name, {}).get(node.value)
        return field is not None and field.sure and self._sure(operand, present)

    # Logic

    def _and(self, node: Node, present: Present) -> Typed:
        return self._logic(node, present, when_true)

    def _or(self, node: Node, present: Present) -> Typed:
        return self._logic(node, present, when_false)

    def _logic(self, node: Node, present: Present, guards: Any) -> Typed:
        """An operand counts on what the others guard: a guard that fails decides the result, on either side."""
        forms = []
        for operand in node.children:
            guarded = present.union(*(guards(other) for other in node.children if other is not operand))
            form, type_ = self.check(operand, guarded)
            self._expect_bool(operand, type_, "&&" if node.kind == "and" else "||")
            forms.append(form)
        return self._made(node.kind, t.BOOL, node, *forms)

    def _expect_bool(self, node: Node, type_: Type, where: str) -> None:
        if type_ not in (t.BOOL, t.UNKNOWN):
            hint = f"compare it, as in … {'!= 0' if type_ == t.INT else '== …'}"
            self.report(node, "type-mismatch", f"{where} takes bool, and this is {_an(type_)}", hint)

    def _if(self, node: Node, present: Present) -> Typed:
        condition, then, otherwise = node.children
        condition_form, type_ = self.check(condition, present)
        self._expect_bool(condition, type_, "the condition of ?:")
        then_form, then_type = self.check(then, present | when_true(condition))
        else_form, else_type = self.check(otherwise, present | when_false(condition))
        joined = t.join(then_type, else_type)
        if joined is None:
            self.report(
                node, "type-mismatch", f"?: gives {_an(then_type)} or {_an(else_type)}; both must be of one type"
            )
            return self._unknown(node)
        return self._made("if", joined, node, condition_form, then_form, else_form)

    # Operators

    def _operator(self, node: Node, present: Present) -> Typed:
        checked = [self.check(child, present) for child in node.children]
        forms, types = [form for form, _type in checked], [type_ for _form, type_ in checked]
        if t.UNKNOWN in types:
            return self._unknown_of(node)
        if node.value in COMPARISONS:
            return self._comparison(node, forms, types)
        if node.value == "in":
            return self._membership(node, forms, types)
        if node.value == "+" and types[0].kind == types[1].kind == "list":
            joined = t.join(types[0], types[1])
            if joined is not None:
                return self._made("call", joined, node, "add_list", *forms)
        overload = _find(OPERATORS[node.value], types)
        if overload is None:
            symbol = "-" if node.value == "negate" else node.value
            return self._mismatch(node, f"{symbol} cannot be applied to", types)
        right = node.children[-1]
        if node.value in "/%" and types[1].kind in ("int", "uint") and right.kind == "literal" and right.value == 0:
            self.report(node, "bad-literal", "this divides by zero")
        return self._made("call", overload.result, node, overload.name, *forms)

    def _unknown_of(self, node: Node) -> Typed:
        form, _type = self._unknown(node)
        return form, (t.BOOL if node.value in COMPARISONS or node.value in ("in", "!") else t.UNKNOWN)

    def _mismatch(self, node: Node, verb: str, types: list[Type]) -> Typed:
        self.report(node, "type-mismatch", f"{verb} {' and '.join(map(str, types))}", _conversion_hint(types))
        return self._unknown_of(node)

    def _comparison(self, node: Node, forms: list[Any], types: list[Type]) -> Typed:
        name = COMPARISONS[node.value]
        joined = t.join(types[0], types[1])
        equality = name in ("eq", "ne")
        if joined is None or t.contains_kind(joined, "record") or not (equality or joined.kind in t.ORDERED):
            return self._mismatch(node, f"{node.value} does not compare", types)
        if equality:
            for child, other in ((0, types[1]), (1, types[0])):
                self._expect_value(node.children[child], other)
            if joined.of and t.contains_kind(joined, "double"):
                name += "_deep"
        return self._made("call", t.BOOL, node, name, *forms)

    def _membership(self, node: Node, forms: list[Any], types: list[Type]) -> Typed:
        element, container = types
        if container.kind not in ("list", "map"):
            return self._mismatch(node, "in does not look for", types)
        joined = t.join(element, container.of[0])
        if joined is None or t.contains_kind(joined, "record"):
            return self._mismatch(node, "in does not look for", types)
        if node.children[1].kind == "list":
            for item in node.children[1].children:
                self._expect_value(item, element)
        self._expect_value(node.children[0], container.of[0])
        deep = container.kind == "list" and t.contains_kind(joined, "double")
        return self._made("call", t.BOOL, node, "in_deep" if deep else "in", *forms)

    def _expect_value(self, node: Node, other: Type) -> None:
        """Report a literal text that the other side can never be."""
        if node.kind != "literal" or other.values is None or node.value in other.values:
            return
        known = ", ".join(f'"{value}"' for value in other.values)
        self.report(
            node,
            "unknown-value",
            f'"{node.value}" is not among the values of {other.label or "this"}: {known}',
            _did_you_mean(node.value, other.values) or "declare it in extra_values if the service has it",
        )

    def _index(self, node: Node, present: Present) -> Typed:
        (operand_form, operand), (key_form, key) = (self.check(child, present) for child in node.children)
        if t.UNKNOWN in (operand, key):
            return self._unknown(node)
        if operand.kind == "list" and key == t.INT:
            return self._made("call", operand.of[0], node, "index_list", operand_form, key_form)
        if operand.kind == "map" and t.join(operand.of[0], key) is not None:
            return self._made("call", operand.of[1], node, "index_map", operand_form, key_form)
        hint = f"write .{node.children[1].value}" if operand.kind == "record" and key == t.STRING else ""
        self.report(node, "type-mismatch", f"{_an(operand)} cannot be indexed by {_an(key)}", hint)
        return self._unknown(node)

    # Literals of lists and maps

    def _list(self, node: Node, present: Present) -> Typed:
        forms, element = self._uniform(node.children, present, "the elements of a list")
        return self._made("list", t.list_of(element), node, *forms)

    def _uniform(self, children: list[Node], present: Present, what: str) -> tuple[list[Any], Type]:
        forms, joined = [], t.NOTHING
        for child in children:
            form, type_ = self.check(child, present)
            forms.append(form)
            both = t.join(joined, type_)
            if both is None:
                self.report(child, "mixed-types", f"{what} must be of one type: {joined} before, {type_} here")
                return forms, t.UNKNOWN
            joined = both
        return forms, joined

    def _map(self, node: Node, present: Present) -> Typed:
        key_forms, key = self._uniform(node.children[::2], present, "the keys of a map")
        value_forms, value = self._uniform(node.children[1::2], present, "the values of a map")
        if key.kind not in (*t.KEYS, "nothing", "unknown"):
            self.report(node, "type-mismatch", f"a map cannot have keys of {key}")
        literals = [child.value for child in node.children[::2] if child.kind == "literal"]
        for child in node.children[::2]:
            if child.kind == "literal" and literals.count(child.value) > 1:
                self.report(child, "bad-literal", f"the key {child.value!r} is given more than once")
                break
        forms = [form for pair in zip(key_forms, value_forms) for form in pair]
        return self._made("map", t.map_of(key, value), node, *forms)

    # Calls

    def _call(self, node: Node, present: Present) -> Typed:
        if node.value == "has":
            return self._has(node, present)
        if node.value == "matches" and len(node.children) == 2:
            return self._matches(node, present)
        return self._overloaded(node, FUNCTIONS, METHODS, present)

    def _method(self, node: Node, present: Present) -> Typed:
        if node.value == "matches" and len(node.children) == 2:
            return self._matches(node, present)
        if node.value in LOOPS:
            return self._loop(node, present)
        if node.value == "join" and len(node.children) <= 2:
            return self._join_texts(node, present)
        return self._overloaded(node, METHODS, FUNCTIONS, present)

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
        overload = _find(overloads, types)
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
            self.report(node, "type-mismatch", f"{node.value}() takes {takes}; here it gets ({given})")
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
                self.report(node, "bad-literal", str(error))
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
            hint = _did_you_mean(node.value, known)
            self.report(node, "unknown-function", f"there is no function {node.value}()", hint)

    def _join_texts(self, node: Node, present: Present) -> Typed:
        checked = [self.check(child, present) for child in node.children]
        wanted = [t.list_of(t.STRING), t.STRING]
        for child, (_form, type_), want in zip(node.children, checked, wanted):  # the separator may lack
            if t.join(type_, want) is None:
                self.report(child, "type-mismatch", f"join() takes {want} here, and this is {_an(type_)}")
        return self._made("call", t.STRING, node, "join", *(form for form, _type in checked))

    def _matches(self, node: Node, present: Present) -> Typed:
        (text_form, text), (_pattern_form, pattern) = (self.check(child, present) for child in node.children)
        literal = node.children[1]
        for child, type_ in zip(node.children, (text, pattern), strict=True):
            if t.join(type_, t.STRING) is None:
                self.report(child, "type-mismatch", f"matches() takes texts, and this is {_an(type_)}")
                return self._unknown(node)[0], t.BOOL
        if literal.kind != "literal":
            self.report(literal, "unsupported", "the pattern of matches() must be a literal", "write 'pattern'")
            return self._unknown(node)[0], t.BOOL
        try:
            program = compile_pattern(literal.value)
        except PatternError as error:
            self.report(literal, "bad-literal", f"bad pattern: {error} (at character {error.position + 1} of it)")
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
            self.report(
                range_node, "type-mismatch", f"{node.value}() goes through a list or a map, not {_an(range_type)}"
            )
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


def _find(overloads: list[Overload], types: list[Type]) -> Overload | None:
    for overload in overloads:
        if len(overload.kinds) == len(types) and all(
            type_.kind in (kind, "nothing") for kind, type_ in zip(overload.kinds, types, strict=True)
        ):
            return overload
    return None


def _an(type_: Type) -> str:
    text = str(type_) if type_.kind != "record" else type_.name
    return ("an " if text[:1] in "aeio" else "a ") + text


def _did_you_mean(name: str, known: Iterable[str]) -> str:
    candidates = list(known)
    lowered = {candidate.lower(): candidate for candidate in candidates}
    close = difflib.get_close_matches(name.lower(), lowered, n=1, cutoff=0.6)
    return f"did you mean {lowered[close[0]]}?" if close else ""


def _conversion_hint(types: list[Type]) -> str:
    kinds = {type_.kind for type_ in types}
    if "null" in kinds:
        return "nothing here is null; ask has(…) whether it is there"
    if kinds == {"int", "double"}:
        return "CEL engines do not agree on this; write a whole number, or convert with double(…)"
    if kinds == {"int", "uint"}:
        return "leave out the u, or convert with int(…)"
    if kinds == {"duration", "int"}:
        return "write the duration as duration('9s')"
    if "timestamp" in kinds and "string" in kinds:
        return "convert with timestamp(…)"
    if "string" in kinds and kinds & {"int", "double", "bool", "uint"}:
        return "convert with string(…), or compare with a value of the same type"
    return ""
