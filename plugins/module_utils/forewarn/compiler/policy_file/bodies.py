# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks the body of an http hook: a CEL map that becomes JSON.

CEL maps and lists hold values of one type, and most services want maps of several. So in the places that become JSON
as they are written (the values of the map, and of the maps and lists in it), the types may differ. Everywhere else the
checker's rules apply.
"""

from __future__ import annotations

from dataclasses import replace

from ..cel import types as t
from ..cel.aggregates import map_keys
from ..cel.context import CheckContext
from ..cel.expression import CheckResult, check_with
from ..cel.forms import TypedForm, typed_call, typed_form
from ..cel.guards import Present, when_false, when_true
from ..cel.syntax import SyntaxNode
from ..cel.types import Declarations, ExpressionFinding, Type, with_article

_JSON = t.Type("json")  # of values that become JSON and may differ
_SCALARS = frozenset(("string", "int", "uint", "double", "bool", "null", "unknown", "nothing"))
_TEXTS = {"timestamp": "timestamp_to_string", "duration": "duration_to_string"}
_TIMES = ("now", "notice", "age")
_NOTIFY_ONLY = ("affects_me", "leader", "occasion", "event.EventStatus", "event.NotBefore")


def check_body(source: str, declarations: Declarations) -> CheckResult:
    """Check a body. Times in it become texts, as string() writes them."""
    result = check_with(source, declarations, _check_body)
    return replace(result, findings=tuple(_with_hint(finding, source) for finding in result.findings))


def _check_body(context: CheckContext, node: SyntaxNode) -> TypedForm:
    body = _check_value(context, node, frozenset())
    if body.type.kind not in ("map", "unknown"):
        message = f"a body must be a map, and this is {with_article(body.type)}"
        hint = f'write {{"text": {context.source_of(node)}}}' if body.type.kind in _SCALARS else 'write {"NAME": …}'
        context.report(node, "wrong-result-type", message, hint)
    return body


def _check_value(context: CheckContext, node: SyntaxNode, present: Present) -> TypedForm:
    """Return the form and the type of what becomes JSON."""
    if node.kind == "map":
        context.count_node()
        return _check_map(context, node, present)
    if node.kind == "list":
        context.count_node()
        items = (_check_value(context, item, present).form for item in node.children)
        return typed_form("list", t.list_of(_JSON), node, *items)
    if node.kind == "if":
        context.count_node()
        return _check_conditional(context, node, present)
    value = context.check(node, present)
    if value.type.kind in _TEXTS:
        return typed_call(t.STRING, node, _TEXTS[value.type.kind], value.form)
    if t.contains_kind(value.type, "dyn"):
        return typed_call(_JSON, node, "to_json", context.to_dyn(node, value))
    _expect_json(context, node, value.type)
    return value


def _check_map(context: CheckContext, node: SyntaxNode, present: Present) -> TypedForm:
    keys, key_type = map_keys(context, node, present)
    if key_type.kind not in ("string", "unknown", "nothing"):
        message = f"the keys of JSON are texts, and these are {key_type}"
        first = node.children[0]
        context.report(first, "not-json", message, f'write "{context.source_of(first)}"')
    values = [_check_value(context, value, present).form for value in node.children[1::2]]
    forms = [form for pair in zip(keys, values) for form in pair]
    return typed_form("map", t.map_of(t.STRING, _JSON), node, *forms)


def _check_conditional(context: CheckContext, node: SyntaxNode, present: Present) -> TypedForm:
    condition, then, otherwise = node.children
    form = context.to_bool(condition, context.check(condition, present), "the condition of ?:")
    first = _check_value(context, then, present | when_true(condition))
    second = _check_value(context, otherwise, present | when_false(condition))
    maps = first.type.kind == second.type.kind == "map"
    joined = first.type if maps else t.join(first.type, second.type) or _JSON
    return typed_form("if", joined, node, form, first.form, second.form)


def _expect_json(context: CheckContext, node: SyntaxNode, type_: Type) -> None:
    """Report a value that JSON does not have."""
    bad = _not_json(type_)
    if bad is None:
        return
    source = context.source_of(node)
    if bad.kind == "record":
        field = {"vm": "name", "params": "NAME"}.get(bad.name, "EventType")
        hint = f"name {'one of them' if bad.name == 'params' else 'its fields'}, as in {source}.{field}"
    elif bad.kind == "map":
        hint = "write a map whose keys are texts"
    elif bad.kind == "bytes":
        hint = f"write string({source})" if type_ == bad else "write texts"
    else:
        hint = f"write {source}.map(x, string(x))" if type_ == t.list_of(bad) else "write texts, with string()"
    context.report(node, "not-json", f"JSON has no {type_.name or type_}", hint)


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
    return replace(finding, suggestion=hint)
