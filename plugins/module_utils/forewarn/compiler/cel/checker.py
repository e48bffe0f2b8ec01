# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The type checker: a syntax tree and declarations in, the typed form out, and every mistake on the way.

It refuses by name whatever it cannot vouch for. An operand that is already reported has the type ``unknown``, which
fits everything, so that a mistake is reported once.
"""

from __future__ import annotations

from typing import Any

from ...policy.functions.overloads import FUNCTIONS, METHODS
from ..wording import did_you_mean, with_article
from . import calls, macros, operators, optionals
from . import types as t
from .guards import Present, access_path, when_false, when_true
from .name_hints import field_hint, name_hint
from .syntax import SyntaxNode
from .type_hints import Operand, bool_hint
from .types import Declarations, ExpressionFinding, LocalVariable, Severity, Type, Typed

# The names of types, which are values of CEL, and what type() returns.
TYPE_NAMES = frozenset(
    (
        *("bool", "int", "uint", "double", "string", "bytes", "list", "map", "null_type", "type", "optional_type"),
        *("google.protobuf.Timestamp", "google.protobuf.Duration"),
    )
)


class Checker:
    """Checks one expression. ``findings`` grows; the form is usable only if there are no errors among them.

    The modules operators, calls, macros and optionals check what their names say.
    """

    def __init__(self, declarations: Declarations, source: str = "") -> None:
        self.declarations = declarations
        self.source = source
        self.findings: list[ExpressionFinding] = []
        self.locals: list[LocalVariable] = []
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
        middle = self.written(node.children[-1]) if node.kind == "operator" else ""
        return Operand(node, type_, self.written(node), middle)

    def check(self, node: SyntaxNode, present: Present = frozenset()) -> Typed:
        """Return the form and the type of a node."""
        self.cost += self.turns
        form, type_ = getattr(self, "_" + node.kind)(node, present)
        return form, type_

    # Forms

    def made(self, op: str, type_: Type, node: SyntaxNode, *rest: Any) -> Typed:
        """Return a form of a type, and the type."""
        operands = (optionals.whole(one) if isinstance(one, optionals.Parts) else one for one in rest)
        return [op, str(type_), node.start, node.end, *operands], type_

    def called(self, type_: Type, node: SyntaxNode, function: str, *arguments: Any) -> list[Any]:
        """Return the form of a call."""
        return self.made("call", type_, node, function, *arguments)[0]

    def unknown(self, node: SyntaxNode) -> Typed:
        """Return the form and type of a node that has a mistake."""
        return self.made("unknown", t.UNKNOWN, node)

    def boxed(self, node: SyntaxNode, form: Any, type_: Type) -> Any:
        """Return the form of a value that carries its type when the expression runs."""
        if type_ in (t.DYN, t.UNKNOWN):
            return form
        if t.contains_kind(type_, "record"):
            self.report(node, "mixed-types", f"{with_article(type_)} cannot stand among values of other types")
            return form
        return self.made("dyn", t.DYN, node, form)[0]

    def unboxed(self, node: SyntaxNode, form: Any, type_: Type) -> Typed:
        """Return the form of a value that carries its type, if that can only be one."""
        return self.made("call", type_, node, "dyn_value", form)

    def as_bool(self, node: SyntaxNode, form: Any, type_: Type, where: str, hint: str = "") -> Any:
        """Return the form of a bool. Reports a node that is none; ``where`` is what needs one."""
        if type_ == t.DYN:
            return self.called(t.BOOL, node, "dyn_truth", form)
        if type_ not in (t.BOOL, t.UNKNOWN):
            message = f"{where} takes bool, and this is {with_article(type_)}"
            self.report(node, "type-mismatch", message, hint or bool_hint(self.operand(node, type_)))
        return form

    # Names and fields

    def _literal(self, node: SyntaxNode, _present: Present) -> Typed:
        type_ = node.type or t.UNKNOWN
        if type_ == t.BYTES:
            return self.made("bytes", type_, node, node.value.hex())
        return self.made("lit", type_, node, node.value)

    def _name(self, node: SyntaxNode, _present: Present) -> Typed:
        local = self.local(node.value)
        if local is not None:
            return self._local(node, local)
        found = self._global(node, node.value.lstrip("."))
        if found is not None:
            return found
        if node.value == "variables":
            self.report(node, "type-mismatch", "variables is not a value; name one, as in variables.NAME")
        else:
            message = f"there is no variable {node.value}"
            hint = name_hint(node.value, self.declarations, [local.name for local in self.locals])
            self.report(node, "undeclared-name", message, hint)
        return self.unknown(node)

    def local(self, name: str) -> LocalVariable | None:
        """Return the innermost variable of a loop or cel.bind() with a name."""
        return next((local for local in reversed(self.locals) if local.name == name), None)

    def _local(self, node: SyntaxNode, local: LocalVariable) -> Typed:
        if local.read in ("local", "bound"):
            return self.made(local.read, local.type, node, local.number)
        pair = self.made("local", macros.PAIR, node, local.number)[0]  # of a loop with two variables
        return self.made("call", local.type, node, local.read, pair)

    def _global(self, node: SyntaxNode, name: str) -> Typed | None:
        """Return the variable or the type of a name, which may have dots in it."""
        declared = self.declarations.variables.get(name)
        if declared is not None:
            return self.made("var", declared, node, name)
        return self.made("lit", t.TYPE, node, name) if name in TYPE_NAMES else None

    def dotted(self, node: SyntaxNode) -> str | None:
        """Return a name with dots in it that begins with no variable of a loop; None for anything else."""
        path = access_path(node)
        return None if path is None or self.local(path.split(".", maxsplit=1)[0]) else path.lstrip(".")

    def _select(self, node: SyntaxNode, present: Present) -> Typed:
        path = self.dotted(node)
        found = None if path is None else self._global(node, path)
        if found is not None:
            return found
        operand = node.children[0]
        if operand.kind == "name" and operand.value == "variables" and not self._is_variable("variables"):
            return self._policy_variable(node)
        return self.selected(node, *self.check(operand, present), present)

    def selected(self, node: SyntaxNode, form: Any, type_: Type, present: Present) -> Typed:
        """Check the selection of a field from an operand."""
        if type_.kind == "optional":
            return optionals.select(self, node, form, type_)
        if type_.kind == "record":
            return self._record_field(node, form, type_, present)
        name = ["lit", "string", 0, 0, node.value]
        if type_ == t.DYN:
            return self.made("call", t.DYN, node, "dyn_index", form, self.boxed(node, name, t.STRING))
        if type_.kind == "map":
            if type_.of[0] == t.DYN:
                name = self.boxed(node, name, t.STRING)
            elif type_.of[0] not in (t.STRING, t.NOTHING):
                self.report(node, "type-mismatch", f"the keys of this map are {type_.of[0]}, not texts")
            return self.made("call", type_.of[1], node, "index_map", form, name)
        if type_ != t.UNKNOWN:
            hint = field_hint(type_, node.value, self.written(node.children[0]))
            self.report(node, "type-mismatch", f"{with_article(type_)} has no fields", hint)
        return self.unknown(node)

    def _is_variable(self, name: str) -> bool:
        return name in self.declarations.variables or self.local(name) is not None

    def _policy_variable(self, node: SyntaxNode) -> Typed:
        type_ = self.declarations.policy_variables.get(node.value)
        if type_ is None:
            message = f"no variable {node.value} is declared above"
            hint = did_you_mean(node.value, self.declarations.policy_variables)
            self.report(node, "undeclared-name", message, hint)
            return self.unknown(node)
        if type_ == t.UNKNOWN:
            return self.unknown(node)
        return self.made("variable", type_, node, self.declarations.inner_names.get(node.value, node.value))

    def _record_field(self, node: SyntaxNode, form: Any, record: Type, present: Present) -> Typed:
        field = self.declared_field(node, record)
        if field is None:
            return self.unknown(node)
        if field.lacking and node.kind == "select" and access_path(node) not in present:
            path = access_path(node) or node.value
            hint = f"guard it: has({path}) && …; in a rule that holds, !has({path}) || …"
            self.report(node, "field-not-in-api-version", field.lacking, hint)
        return self.made("field", field.type, node, form, node.value)

    def declared_field(self, node: SyntaxNode, record: Type) -> t.RecordField | None:
        """Return the field of a record that a node selects; None, and a finding, if there is none."""
        fields = self.declarations.records[record.name]
        field = fields.get(node.value)
        if field is None:
            message = f"{record.name} has no field {node.value}"
            hint = did_you_mean(node.value, fields)
            if not hint and record.name == "params":
                hint = f"declare it in params: {{name: {node.value}, type: …, default: …}}"
            if not hint and record.name == "vm":
                hint = f"a tag of the VM is vm.tags.{node.value}"
            self.report(node, "unknown-field", message, hint)
        return field

    def _has(self, node: SyntaxNode, present: Present) -> Typed:
        if len(node.children) != 1 or node.children[0].kind != "select":
            inside = node.children[0] if len(node.children) == 1 else node
            hint = "write has(event.NotBefore), for example"
            if inside.kind == "literal" and isinstance(inside.value, str) and "." in inside.value:
                hint = f"remove the quotes: has({inside.value})"
            elif inside.kind == "index":
                container, key = map(self.written, inside.children)
                hint = f"write {key} in {container}"
            self.report(node, "bad-macro", "has() takes one field access, as in has(event.NotBefore)", hint)
            return self.unknown(node)
        select = node.children[0]
        operand = select.children[0]
        form, type_ = self.check(operand, present)
        found = self.has_field(node, select, form, type_)
        if found is None:
            return self.unknown(node)
        if type_.kind in ("record", "map") and not self._sure(operand, present):
            message = "where this has no value, some CEL engines make has() false and others fail"
            self.report(operand, "engines-disagree", message, self._asking(operand, type_, select.value))
        return found

    def has_field(self, node: SyntaxNode, select: SyntaxNode, form: Any, type_: Type) -> Typed | None:
        """Return whether an operand has the field that is selected; None, and a finding, if it has none at all.

        ``node`` is what asks.
        """
        if type_.kind == "optional":
            return optionals.parts_of(*optionals.select(self, select, form, type_)).present, t.BOOL
        if type_ == t.DYN or (type_.kind == "map" and type_.of[0] == t.DYN):
            name = ["lit", "string", 0, 0, select.value]
            return self.made("call", t.BOOL, node, "dyn_has", self.boxed(select, form, type_), name)
        if type_.kind == "record":
            if self.declared_field(select, type_) is None:
                return None
        elif type_.kind != "map" or type_.of[0] not in (t.STRING, t.NOTHING):
            if type_ != t.UNKNOWN:
                self.report(select, "type-mismatch", f"{with_article(type_)} has no fields that has() could ask for")
            return None
        return self.made("has", t.BOOL, node, form, select.value)

    def _asking(self, operand: SyntaxNode, type_: Type, name: str) -> str:
        """Return a hint for an operand that ``has()`` does not take."""
        if type_.kind == "map":
            return f"write '{name}' in {self.written(operand)}"
        path = access_path(operand)
        if path is None:
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
            return True  # or an error, which it is in every engine that has variables
        _form, record = self.quiet().check(operand, present)
        field = self.declarations.records.get(record.name, {}).get(node.value)
        return field is not None and field.sure and self._sure(operand, present)

    def quiet(self) -> Checker:
        """Return a checker that sees the same variables, and whose findings nobody reads."""
        quiet = Checker(self.declarations, self.source)
        quiet.locals = list(self.locals)
        return quiet

    def _optional_select(self, node: SyntaxNode, present: Present) -> Typed:
        return optionals.select(self, node, *self.check(node.children[0], present))

    def _optional_index(self, node: SyntaxNode, present: Present) -> Typed:
        operand, key = (self.check(child, present) for child in node.children)
        return optionals.index(self, node, operand, key)

    # Logic

    def _logic(self, node: SyntaxNode, present: Present) -> Typed:
        """Check ``&&`` or ``||``. An operand may rely on the others' guards: a failed guard decides the result."""
        guards = when_true if node.kind == "and" else when_false
        forms = []
        for operand in node.children:
            guarded = present.union(*(guards(other) for other in node.children if other is not operand))
            form, type_ = self.check(operand, guarded)
            listed = self._listed(node, operand)
            forms.append(self.as_bool(operand, form, type_, "&&" if node.kind == "and" else "||", listed))
        return self.made(node.kind, t.BOOL, node, *forms)

    _and = _or = _logic

    def _listed(self, node: SyntaxNode, operand: SyntaxNode) -> str:
        """Return a hint for ``x == 'a' || 'b'``, and an empty text for anything else."""
        before = node.children[max(node.children.index(operand) - 1, 0)]
        if node.kind != "or" or operand.kind != "literal" or before.kind != "operator" or before.value != "==":
            return ""
        name, first = map(self.written, before.children)
        return f"write {name} in [{first}, {self.written(operand)}]" if before.children[1].kind == "literal" else ""

    def _if(self, node: SyntaxNode, present: Present) -> Typed:
        condition, then, otherwise = node.children
        form, type_ = self.check(condition, present)
        condition_form = self.as_bool(condition, form, type_, "the condition of ?:")
        then_form, then_type = self.check(then, present | when_true(condition))
        else_form, else_type = self.check(otherwise, present | when_false(condition))
        return self.choice(node, condition_form, (then_form, then_type), (else_form, else_type))

    def choice(self, node: SyntaxNode, condition: Any, then: Typed, otherwise: Typed) -> Typed:
        """Return the form of one of two values, which must be of one type."""
        joined = t.join(then[1], otherwise[1])
        if joined is None and t.DYN in (then[1], otherwise[1]):
            forms = (self.boxed(node, *one) for one in (then, otherwise))
            return self.made("if", t.DYN, node, condition, *forms)
        if joined is None:
            both = f"{with_article(then[1])} or {with_article(otherwise[1])}"
            self.report(node, "type-mismatch", f"?: gives {both}; both must be of one type")
            return self.unknown(node)
        if joined.kind == "optional":
            return optionals.choice(self, node, condition, (then[0], joined), (otherwise[0], joined))
        return self.made("if", joined, node, condition, then[0], otherwise[0])

    def with_bound(self, node: SyntaxNode, name: str, value: Typed, body: SyntaxNode, present: Present) -> Typed:
        """Check an expression in which a name stands for a value, which is evaluated when it is first read."""
        number = len(self.locals)
        self.locals.append(LocalVariable(name, value[1], number, "bound"))
        inside = frozenset(path for path in present if path.split(".")[0] != name)
        form, type_ = self.check(body, inside)
        self.locals.pop()
        if isinstance(form, optionals.Parts):
            return optionals.Parts(
                *(self.made("bind", t.UNKNOWN, node, number, value[0], one)[0] for one in form)
            ), type_
        return self.made("bind", type_, node, number, value[0], form)

    # Operators, in a module of their own

    def _operator(self, node: SyntaxNode, present: Present) -> Typed:
        return operators.check(self, node, present)

    def _index(self, node: SyntaxNode, present: Present) -> Typed:
        operand, key = (self.check(child, present) for child in node.children)
        check = optionals.index if operand[1].kind == "optional" else operators.index
        return check(self, node, operand, key)

    # Literals of lists and maps

    def _list(self, node: SyntaxNode, present: Present) -> Typed:
        if any(child.kind == "optional_element" for child in node.children):
            return optionals.list_of_some(self, node, present)
        forms, element = self.uniform(node.children, present, "the elements of a list")
        return self.made("list", t.list_of(element), node, *forms)

    def uniform(self, children: list[SyntaxNode], present: Present, what: str) -> tuple[list[Any], Type]:
        """Return the forms of values, and their type: dyn for values of several types."""
        checked = [self.check(child, present) for child in children]
        joined: Type | None = t.NOTHING
        for _form, type_ in checked:
            joined = None if joined is None else t.join(joined, type_)
        if joined is not None:
            return [form for form, _type in checked], joined
        for child, (_form, type_) in zip(children, checked, strict=True):
            if t.contains_kind(type_, "record"):
                message = f"{what} must be of one type: {with_article(type_)} cannot stand among others"
                self.report(child, "mixed-types", message)
                return [form for form, _type in checked], t.UNKNOWN
        return [self.boxed(child, *one) for child, one in zip(children, checked, strict=True)], t.DYN

    def _map(self, node: SyntaxNode, present: Present) -> Typed:
        if any(child.kind == "optional_element" for child in node.children):
            return optionals.map_of_some(self, node, present)
        key_forms, key = self.map_keys(node, present)
        value_forms, value = self.uniform(node.children[1::2], present, "the values of a map")
        forms = [form for pair in zip(key_forms, value_forms) for form in pair]
        return self.made("map", t.map_of(key, value), node, *forms)

    def map_keys(self, node: SyntaxNode, present: Present) -> tuple[list[Any], Type]:
        """Check the keys of a literal map; return their forms and their type."""
        keys = node.children[::2]
        forms, key = self.uniform(keys, present, "the keys of a map")
        for child in keys:
            type_ = child.type if child.kind == "literal" else None
            if type_ is not None and type_.kind not in t.KEYS:
                self.report(child, "type-mismatch", f"a map cannot have keys of {type_}")
        if key == t.DYN:
            forms = [self.called(t.DYN, child, "dyn_key", form) for child, form in zip(keys, forms, strict=True)]
        elif not operators.is_key(key) and not any(child.kind == "literal" for child in keys):
            self.report(node, "type-mismatch", f"a map cannot have keys of {key}")
        literals = [(child.type == t.BOOL, child.value) for child in keys if child.kind == "literal"]
        for child in keys:
            if child.kind == "literal" and literals.count((child.type == t.BOOL, child.value)) > 1:
                self.report(child, "bad-literal", f"the key {child.value!r} is given more than once")
                break
        return forms, key

    def _optional_element(self, node: SyntaxNode, _present: Present) -> Typed:
        self.report(node, "syntax", "CEL allows ? only before an element of a list or map", "remove the ?")
        return self.unknown(node)

    # Calls

    def _call(self, node: SyntaxNode, present: Present) -> Typed:
        if node.value == "has":
            return self._has(node, present)
        special = calls.FUNCTIONS.get(node.value)
        if special is not None:
            return special(self, node, present)
        return calls.overloaded(self, node, FUNCTIONS, METHODS, present)

    def _method(self, node: SyntaxNode, present: Present) -> Typed:
        receiver = node.children[0]
        space = self.dotted(receiver) if receiver.kind == "name" and not self._is_variable(receiver.value) else None
        if space in calls.NAMESPACES:
            return calls.in_namespace(self, node, space, present)
        if node.value in macros.MACROS:
            return macros.check(self, node, present)
        special = calls.METHODS.get(node.value)
        if special is not None:
            return special(self, node, present)
        return calls.overloaded(self, node, METHODS, FUNCTIONS, present)
