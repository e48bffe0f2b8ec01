# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The type checker: a syntax tree and declarations in, the typed form out, and every mistake on the way.

It refuses by name whatever it cannot vouch for. An operand that is already reported has the type ``unknown``, which
fits everything, so that a mistake is reported once.
"""

from __future__ import annotations

from typing import Any

from . import calls
from . import types as t
from .environment import EXTENSIBLE, RESOURCES, VM_NAME
from .guards import Present, access_path, when_false, when_true
from .hints import Operand, bool_hint, comparison_hint, membership_hint, operator_hint
from .overloads import COMPARISONS, FUNCTIONS, LOOPS, METHODS, OPERATORS, find
from .syntax import SyntaxNode
from .types import Declarations, ExpressionFinding, Severity, Type, Typed
from .wording import did_you_mean, with_article


class Checker:
    """Checks one expression. ``findings`` grows; the form is usable only if there are no errors among them.

    The module calls checks the calls.
    """

    def __init__(self, declarations: Declarations, source: str = "") -> None:
        self.declarations = declarations
        self.source = source
        self.findings: list[ExpressionFinding] = []
        self.locals: list[tuple[str, Type, int]] = []
        self.cost = 0
        self.turns = 1

    def report(
        self, node: SyntaxNode, code: str, message: str, suggestion: str = "", severity: Severity = "error"
    ) -> None:
        """Add a finding at a node."""
        self.findings.append(ExpressionFinding(code, message, node.start, node.end, suggestion, severity))

    def written(self, node: SyntaxNode) -> str:
        """Return the source text of a part of the expression."""
        return " ".join(self.source[node.start : node.end].split())

    def operand(self, node: SyntaxNode, type_: Type) -> Operand:
        """Return the operand that hints are made from."""
        return Operand(node, type_, self.written(node))

    def check(self, node: SyntaxNode, present: Present = frozenset()) -> Typed:
        """Return the form and the type of a node."""
        self.cost += self.turns
        form, type_ = getattr(self, "_" + node.kind)(node, present)
        return form, type_

    def made(self, op: str, type_: Type, node: SyntaxNode, *rest: Any) -> Typed:
        """Return a form of a type, and the type."""
        return [op, str(type_), node.start, node.end, *rest], type_

    def unknown(self, node: SyntaxNode) -> Typed:
        """Return the form and type of a node that has a mistake."""
        return self.made("unknown", t.UNKNOWN, node)

    def expect_bool(self, node: SyntaxNode, type_: Type, where: str) -> None:
        """Report a node that is not a bool; ``where`` is what needs one."""
        if type_ not in (t.BOOL, t.UNKNOWN):
            message = f"{where} takes bool, and this is {with_article(type_)}"
            self.report(node, "type-mismatch", message, bool_hint(self.operand(node, type_)))

    # Names and fields

    def _literal(self, node: SyntaxNode, _present: Present) -> Typed:
        type_ = node.type or t.UNKNOWN
        if type_ == t.BYTES:
            return self.made("bytes", type_, node, node.value.hex())
        return self.made("lit", type_, node, node.value)

    def _name(self, node: SyntaxNode, _present: Present) -> Typed:
        for name, type_, number in reversed(self.locals):
            if name == node.value:
                return self.made("local", type_, node, number)
        declared = self.declarations.variables.get(node.value)
        if declared is not None:
            return self.made("var", declared, node, node.value)
        known = [*self.declarations.variables, *(name for name, _type, _number in self.locals)]
        if node.value == "variables":
            self.report(node, "type-mismatch", "variables is not a value; name one, as in variables.NAME")
        else:
            message = f"there is no variable {node.value}"
            self.report(node, "undeclared-name", message, self._quoted(node.value) or did_you_mean(node.value, known))
        return self.unknown(node)

    def _quoted(self, name: str) -> str:
        """Return a hint for an unquoted EventType or other value, which must be a text."""
        fields = [field for record in self.declarations.records.values() for field in record.values()]
        return f'put it in quotes: "{name}"' if any(name in (field.type.values or ()) for field in fields) else ""

    def _select(self, node: SyntaxNode, present: Present) -> Typed:
        operand = node.children[0]
        if operand.kind == "name" and operand.value == "variables" and not self._is_variable("variables"):
            return self._policy_variable(node)
        form, type_ = self.check(operand, present)
        if type_.kind == "record":
            return self._record_field(node, form, type_, present)
        if type_.kind == "map":
            if type_.of[0] not in (t.STRING, t.NOTHING):
                self.report(node, "type-mismatch", f"the keys of this map are {type_.of[0]}, not texts")
            return self.made("call", type_.of[1], node, "index_map", form, ["lit", "string", 0, 0, node.value])
        if type_ != t.UNKNOWN:
            hint = f"remove .{node.value}"
            if type_ == t.TIMESTAMP:
                hint = "ask it with a function: getFullYear(), getDayOfWeek(), getHours() …"
            self.report(node, "type-mismatch", f"{with_article(type_)} has no fields", hint)
        return self.unknown(node)

    def _is_variable(self, name: str) -> bool:
        return name in self.declarations.variables or any(local == name for local, _type, _number in self.locals)

    def _policy_variable(self, node: SyntaxNode) -> Typed:
        type_ = self.declarations.policy_variables.get(node.value)
        if type_ is None:
            message = f"no variable {node.value} is declared above"
            hint = did_you_mean(node.value, self.declarations.policy_variables)
            self.report(node, "undeclared-name", message, hint)
            return self.unknown(node)
        if type_ == t.UNKNOWN:
            return self.unknown(node)
        return self.made("variable", type_, node, node.value)

    def _record_field(self, node: SyntaxNode, form: list[Any], record: Type, present: Present) -> Typed:
        field = self._declared_field(node, record)
        if field is None:
            return self.unknown(node)
        if field.lacking and access_path(node) not in present:
            path = access_path(node) or node.value
            hint = f"guard it: has({path}) && …; in a rule that holds, !has({path}) || …"
            self.report(node, "field-not-in-api-version", field.lacking, hint)
        return self.made("field", field.type, node, form, node.value)

    def _declared_field(self, node: SyntaxNode, record: Type) -> t.RecordField | None:
        fields = self.declarations.records[record.name]
        field = fields.get(node.value)
        if field is None:
            message = f"{record.name} has no field {node.value}"
            hint = did_you_mean(node.value, fields)
            if not hint and record.name == "params":
                hint = f"declare it in params: {{name: {node.value}, type: …, default: …}}"
            self.report(node, "unknown-field", message, hint)
        return field

    def _has(self, node: SyntaxNode, present: Present) -> Typed:
        if len(node.children) != 1 or node.children[0].kind != "select":
            self.report(node, "bad-macro", "has() takes one field access, as in has(event.NotBefore)")
            return self.unknown(node)
        select = node.children[0]
        operand = select.children[0]
        form, type_ = self.check(operand, present)
        if type_.kind == "record":
            if self._declared_field(select, type_) is None:
                return self.unknown(node)
        elif type_.kind != "map" or type_.of[0] not in (t.STRING, t.NOTHING):
            if type_ != t.UNKNOWN:
                self.report(select, "type-mismatch", f"{with_article(type_)} has no fields that has() could ask for")
            return self.unknown(node)
        if not self._sure(operand, present):
            message = "where this has no value, some CEL engines make has() false and others fail"
            self.report(operand, "engines-disagree", message, self._asking(operand, type_, select.value))
        return self.made("has", t.BOOL, node, form, select.value)

    def _asking(self, operand: SyntaxNode, type_: Type, name: str) -> str:
        """Return a hint for an operand that ``has()`` does not take."""
        if type_.kind == "map":
            return f"write '{name}' in {self.written(operand)}"
        path = access_path(operand)
        if path is None or path.startswith("variables."):
            return f"write [{self.written(operand)}].all(x, has(x.{name}))"
        return f"ask for it first: has({path}) && …"

    def _sure(self, node: SyntaxNode, present: Present) -> bool:
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
        if operand.kind == "name" and operand.value == "variables" and not self._is_variable("variables"):
            return False
        quiet = Checker(self.declarations, self.source)
        quiet.locals = self.locals
        _form, record = quiet.check(operand, present)
        field = self.declarations.records.get(record.name, {}).get(node.value)
        return field is not None and field.sure and self._sure(operand, present)

    # Logic

    def _logic(self, node: SyntaxNode, present: Present) -> Typed:
        """Check ``&&`` or ``||``. An operand may rely on the others' guards: a failed guard decides the result."""
        guards = when_true if node.kind == "and" else when_false
        forms = []
        for operand in node.children:
            guarded = present.union(*(guards(other) for other in node.children if other is not operand))
            form, type_ = self.check(operand, guarded)
            self.expect_bool(operand, type_, "&&" if node.kind == "and" else "||")
            forms.append(form)
        return self.made(node.kind, t.BOOL, node, *forms)

    _and = _or = _logic

    def _if(self, node: SyntaxNode, present: Present) -> Typed:
        condition, then, otherwise = node.children
        condition_form, type_ = self.check(condition, present)
        self.expect_bool(condition, type_, "the condition of ?:")
        then_form, then_type = self.check(then, present | when_true(condition))
        else_form, else_type = self.check(otherwise, present | when_false(condition))
        joined = t.join(then_type, else_type)
        if joined is None:
            both = f"{with_article(then_type)} or {with_article(else_type)}"
            self.report(node, "type-mismatch", f"?: gives {both}; both must be of one type")
            return self.unknown(node)
        return self.made("if", joined, node, condition_form, then_form, else_form)

    # Operators

    def _operator(self, node: SyntaxNode, present: Present) -> Typed:
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
                return self.made("call", joined, node, "add_list", *forms)
        overload = find(OPERATORS[node.value], types)
        if overload is None:
            symbol = "-" if node.value == "negate" else node.value
            hint = operator_hint(node.value, self._operands(node.children, types))
            return self._mismatch(node, f"{symbol} cannot be applied to", types, hint)
        right = node.children[-1]
        if node.value in "/%" and types[1].kind in ("int", "uint") and right.kind == "literal" and right.value == 0:
            self.report(node, "bad-literal", "this divides by zero")
        return self.made("call", overload.result, node, overload.name, *forms)

    def _unknown_of(self, node: SyntaxNode) -> Typed:
        form, _type = self.unknown(node)
        return form, (t.BOOL if node.value in COMPARISONS or node.value in ("in", "!") else t.UNKNOWN)

    def _operands(self, nodes: list[SyntaxNode], types: list[Type]) -> list[Operand]:
        return [self.operand(node, type_) for node, type_ in zip(nodes, types, strict=True)]

    def _mismatch(self, node: SyntaxNode, verb: str, types: list[Type], hint: str) -> Typed:
        self.report(node, "type-mismatch", f"{verb} {' and '.join(map(str, types))}", hint)
        return self._unknown_of(node)

    def _comparison(self, node: SyntaxNode, forms: list[Any], types: list[Type]) -> Typed:
        name = COMPARISONS[node.value]
        joined = t.join(types[0], types[1])
        equality = name in ("eq", "ne")
        if joined is None or t.contains_kind(joined, "record") or not (equality or joined.kind in t.ORDERED):
            hint = comparison_hint(node.value, *self._operands(node.children, types))
            return self._mismatch(node, f"{node.value} does not compare", types, hint)
        if equality:
            for child, other in ((0, types[1]), (1, types[0])):
                self._expect_value(node.children[child], other)
            self._expect_no_case(node, types)
            if joined.of and t.contains_kind(joined, "double"):
                name += "_deep"
        return self.made("call", t.BOOL, node, name, *forms)

    def _membership(self, node: SyntaxNode, forms: list[Any], types: list[Type]) -> Typed:
        element, container = types
        joined = t.join(element, container.of[0]) if container.kind in ("list", "map") else None
        no_key = container.kind == "map" and not _is_key(element)
        if joined is None or t.contains_kind(joined, "record") or no_key:
            items = node.children[1].children if node.children[1].kind == "list" else []
            of = container.of[0] if container.of else t.UNKNOWN
            looked_for, looked_in = self._operands(node.children, types)
            hint = membership_hint(looked_for, looked_in, [self.operand(item, of) for item in items])
            return self._mismatch(node, "in does not look for", types, hint)
        self._expect_no_case(node, types)
        listed = node.children[1]
        for item in listed.children if listed.kind == "list" else _keys(listed):
            self._expect_value(item, element)
        self._expect_value(node.children[0], container.of[0])
        deep = container.kind == "list" and t.contains_kind(joined, "double")
        return self.made("call", t.BOOL, node, "in_deep" if deep else "in", *forms)

    def _expect_value(self, node: SyntaxNode, other: Type) -> None:
        """Report a literal text that the other side can never equal, also in a list or as a result of ``?:``."""
        if node.kind == "list" and other.kind == "list":
            for item in node.children:
                self._expect_value(item, other.of[0])
        if node.kind == "if":
            for outcome in node.children[1:]:
                self._expect_value(outcome, other)
        if node.kind != "literal" or other.values is None:
            return
        since = dict(other.later).get(node.value)
        if since is not None:
            message = f'no event is of {other.label} "{node.value}" in this api-version: it came with {since}'
            hint = f"compile for {since} or later, or declare it in extra_values"
            self.report(node, "value-not-in-api-version", message, hint, "warning")
        if node.value in other.values:
            return
        known = ", ".join(f'"{value}"' for value in other.values)
        message = f'"{node.value}" is not among the values of {other.label or "this"}: {known}'
        declare = "declare it in extra_values if the service has it" if other.label in EXTENSIBLE else ""
        self.report(node, "unknown-value", message, did_you_mean(node.value, other.values) or declare)

    def _expect_no_case(self, node: SyntaxNode, types: list[Type]) -> None:
        """Warn about a search for the VM's name in Resources: case may differ, which affects_me takes into account."""
        nodes = {_label(type_): child for type_, child in zip(types, node.children, strict=True)}
        if nodes.keys() != {RESOURCES, VM_NAME}:
            return
        names = nodes[RESOURCES]
        place = access_path(names.children[0] if names.kind == "index" else names)
        own = place == "event.Resources" and not any(local == "event" for local, _type, _number in self.locals)
        negated = "!" if node.value == "!=" else ""
        if own and node.value == "in":
            hint = "write affects_me"
        elif own and names.kind == "index" and names.children[1].value == 0:
            hint = f"write {negated}leader"
        elif own and types[0].kind == "list":
            hint = f"write {negated}(affects_me && size(event.Resources) == 1)"
        elif node.value == "in":
            hint = f"write {self.written(names)}.exists(r, r.lowerAscii() == vm.name.lowerAscii())"
        else:
            hint = "write lowerAscii() behind both"
        message = "Resources may spell this VM's name in another case, and then this does not find it"
        self.report(node, "case-sensitive", message, hint, "warning")

    def _index(self, node: SyntaxNode, present: Present) -> Typed:
        (operand_form, operand), (key_form, key) = (self.check(child, present) for child in node.children)
        if t.UNKNOWN in (operand, key):
            return self.unknown(node)
        if operand.kind == "list" and key == t.INT:
            return self.made("call", operand.of[0], node, "index_list", operand_form, key_form)
        if operand.kind == "map" and t.join(operand.of[0], key) is not None and _is_key(key):
            for literal in _keys(node.children[0]):
                self._expect_value(literal, key)
            return self.made("call", operand.of[1], node, "index_map", operand_form, key_form)
        hint = f"write .{node.children[1].value}" if operand.kind == "record" and key == t.STRING else ""
        self.report(node, "type-mismatch", f"{with_article(operand)} cannot be indexed by {with_article(key)}", hint)
        return self.unknown(node)

    # Literals of lists and maps

    def _list(self, node: SyntaxNode, present: Present) -> Typed:
        forms, element = self._uniform(node.children, present, "the elements of a list")
        return self.made("list", t.list_of(element), node, *forms)

    def _uniform(self, children: list[SyntaxNode], present: Present, what: str) -> tuple[list[Any], Type]:
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

    def _map(self, node: SyntaxNode, present: Present) -> Typed:
        key_forms, key = self.map_keys(node, present)
        value_forms, value = self._uniform(node.children[1::2], present, "the values of a map")
        forms = [form for pair in zip(key_forms, value_forms) for form in pair]
        return self.made("map", t.map_of(key, value), node, *forms)

    def map_keys(self, node: SyntaxNode, present: Present) -> tuple[list[Any], Type]:
        """Check the keys of a literal map; return their forms and their type."""
        forms, key = self._uniform(node.children[::2], present, "the keys of a map")
        if not _is_key(key):
            self.report(node, "type-mismatch", f"a map cannot have keys of {key}")
        literals = [child.value for child in node.children[::2] if child.kind == "literal"]
        for child in node.children[::2]:
            if child.kind == "literal" and literals.count(child.value) > 1:
                self.report(child, "bad-literal", f"the key {child.value!r} is given more than once")
                break
        return forms, key

    # Calls

    def _call(self, node: SyntaxNode, present: Present) -> Typed:
        if node.value == "has":
            return self._has(node, present)
        if node.value == "matches" and len(node.children) == 2:
            return calls.matches(self, node, present)
        return calls.overloaded(self, node, FUNCTIONS, METHODS, present)

    def _method(self, node: SyntaxNode, present: Present) -> Typed:
        if node.value == "matches" and len(node.children) == 2:
            return calls.matches(self, node, present)
        if node.value in LOOPS:
            return calls.loop(self, node, present)
        if node.value == "join" and len(node.children) <= 2:
            return calls.join_texts(self, node, present)
        return calls.overloaded(self, node, METHODS, FUNCTIONS, present)


def _is_key(type_: Type) -> bool:
    """Return whether a map can have keys of a type; ``{}`` alone leaves it open."""
    return type_.kind in (*t.KEYS, "nothing", "unknown")


def _keys(node: SyntaxNode) -> list[SyntaxNode]:
    """Return the keys of a literal map, or an empty list."""
    return node.children[::2] if node.kind == "map" else []


def _label(type_: Type) -> str:
    """Return the label of the texts that a value is, or consists of."""
    return type_.label or (_label(type_.of[0]) if type_.kind == "list" else "")
