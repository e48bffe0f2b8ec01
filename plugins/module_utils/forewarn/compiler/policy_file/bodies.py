# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks the body of an http hook: a CEL map that becomes JSON.

CEL maps and lists hold values of one type, and most services want maps of several. So in the places that become JSON
as they are written (the values of the map, and of the maps and lists in it), the types may differ. Everywhere else the
checker's rules apply.
"""

from __future__ import annotations

from ..cel import types as t
from ..cel.checker import Checker
from ..cel.expression import Checked, checked
from ..cel.guards import Present, when_false, when_true
from ..cel.syntax import SyntaxNode
from ..cel.types import Declarations, ExpressionFinding, Type, Typed
from ..wording import with_article

_JSON = t.Type("json")  # of values that become JSON and may differ
_SCALARS = frozenset(("string", "int", "uint", "double", "bool", "null", "unknown", "nothing"))
_TEXTS = {"timestamp": "timestamp_to_string", "duration": "duration_to_string"}
_TIMES = ("now", "notice", "age")
_NOTIFY_ONLY = ("affects_me", "leader", "occasion", "event.EventStatus", "event.NotBefore")


def check_body(source: str, declarations: Declarations) -> Checked:
    """Check a body. Times in it become texts, as string() writes them."""
    result = checked(source, declarations, _body)
    return Checked(result.form, result.type, tuple(_with_hint(finding, source) for finding in result.findings))


def _body(checker: Checker, node: SyntaxNode) -> Typed:
    form, type_ = _value(checker, node, frozenset())
    if type_.kind not in ("map", "unknown"):
        hint = f'write {{"text": {checker.written(node)}}}' if type_.kind in _SCALARS else 'write {"NAME": …}'
        checker.report(node, "wrong-result-type", f"a body must be a map, and this is {with_article(type_)}", hint)
    return form, type_


def _value(checker: Checker, node: SyntaxNode, present: Present) -> Typed:
    """Return the form and the type of what becomes JSON."""
    if node.kind == "map":
        checker.cost += checker.turns
        return _map(checker, node, present)
    if node.kind == "list":
        checker.cost += checker.turns
        return checker.made(
            "list", t.list_of(_JSON), node, *(_value(checker, item, present)[0] for item in node.children)
        )
    if node.kind == "if":
        checker.cost += checker.turns
        return _if(checker, node, present)
    form, type_ = checker.check(node, present)
    if type_.kind in _TEXTS:
        return checker.made("call", t.STRING, node, _TEXTS[type_.kind], form)
    if t.contains_kind(type_, "dyn"):
        return checker.made("call", _JSON, node, "to_json", checker.boxed(node, form, type_))
    _expect_json(checker, node, type_)
    return form, type_


def _map(checker: Checker, node: SyntaxNode, present: Present) -> Typed:
    keys, key_type = checker.map_keys(node, present)
    if key_type.kind not in ("string", "unknown", "nothing"):
        message = f"the keys of JSON are texts, and these are {key_type}"
        checker.report(node.children[0], "not-json", message, f'write "{checker.written(node.children[0])}"')
    values = [_value(checker, value, present)[0] for value in node.children[1::2]]
    forms = [form for pair in zip(keys, values) for form in pair]
    return checker.made("map", t.map_of(t.STRING, _JSON), node, *forms)


def _if(checker: Checker, node: SyntaxNode, present: Present) -> Typed:
    condition, then, otherwise = node.children
    form, type_ = checker.check(condition, present)
    condition_form = checker.as_bool(condition, form, type_, "the condition of ?:")
    then_form, then_type = _value(checker, then, present | when_true(condition))
    else_form, else_type = _value(checker, otherwise, present | when_false(condition))
    joined = then_type if then_type.kind == else_type.kind == "map" else t.join(then_type, else_type) or _JSON
    return checker.made("if", joined, node, condition_form, then_form, else_form)


def _expect_json(checker: Checker, node: SyntaxNode, type_: Type) -> None:
    """Report a value that JSON does not have."""
    bad = _not_json(type_)
    if bad is None:
        return
    written = checker.written(node)
    if bad.kind == "record":
        hint = f"name its fields, as in {written}.{'name' if bad.name == 'vm' else 'EventType'}"
        if bad.name == "params":
            hint = f"name one of them, as in {written}.NAME"
    elif bad.kind == "map":
        hint = "write a map whose keys are texts"
    elif bad.kind == "bytes":
        hint = f"write string({written})" if type_ == bad else "write texts"
    else:
        hint = f"write {written}.map(x, string(x))" if type_ == t.list_of(bad) else "write texts, with string()"
    checker.report(node, "not-json", f"JSON has no {type_.name or type_}", hint)


def _not_json(type_: Type) -> Type | None:
    """Return the part of a type that JSON does not have, None if it has all."""
    if type_.kind in _SCALARS or type_ == _JSON:
        return None
    if type_.kind == "list":
        return _not_json(type_.of[0])
    if type_.kind == "map":
        return type_ if type_.of[0].kind not in ("string", "nothing", "unknown") else _not_json(type_.of[1])
    return type_


def _with_hint(finding: ExpressionFinding, source: str) -> ExpressionFinding:
    """Return a finding with a hint for what only bodies lack."""
    written = source[finding.start : finding.end]
    hint = finding.suggestion
    if finding.code == "mixed-types" and not hint:
        hint = "types may differ only in maps and lists that stand in the body as they are: write string(…) here"
    elif finding.code not in ("undeclared-name", "unknown-field"):
        return finding
    elif written in _TIMES:
        hint = "a body does not change by itself; write event.NotBefore, which notify hooks have"
    elif written == "events":
        hint = "a body tells of one event: write event"
    elif written.startswith("variables"):
        hint = "a body has no variables; write the expression itself"
    elif written in _NOTIFY_ONLY:
        hint = "only notify hooks have it: what prepares and recovers stays the same for one event"
    return ExpressionFinding(finding.code, finding.message, finding.start, finding.end, hint, finding.severity)
