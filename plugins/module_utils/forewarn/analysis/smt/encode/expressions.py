# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CEL expressions as terms: the typed form of an expression, encoded part by part.

The encoding has the meaning of ``policy.builder``: a part has a value, or an error that ``&&``, ``||``, ``all`` and
``exists`` may absorb. A part that cannot be encoded exactly may have any value or error, the same wherever it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ....policy import forms as f
from ....policy.forms import Form, read_form
from ....policy.functions.dynamic import Dyn
from ...artifacts import Json
from ..effort import Subexpression
from ..terms import Formula, neg
from .calls import function_call, list_of, map_of, matches
from .form_encoder import FormEncoder, FormScope, is_python
from .inputs import Tags
from .logic import ConditionPart, choice, condition_part, logic
from .loops import exists_one, filter_counted_by, filter_tested_by, quantifier
from .problem import SORTS, Encoding, OpaqueValue, failure
from .text_functions import TextFunction

_LIGHT = frozenset(  # functions that cost nothing beside what their arguments do
    ("eq", "ne", "lt", "le", "gt", "ge", "not", "same", "size", "index_map", "index_list", "in", "eq_deep", "ne_deep")
)


class ExpressionEncoder(FormEncoder):
    """Encodes expressions of an artifact."""

    def declare(self, name: str, expression: Json) -> None:
        """Have a variable of the policy."""
        form = read_form(expression["form"])
        with self.within(FormScope(expression)):
            self.variables[name] = self.key(form), self.encode(form)

    def value(self, expression: Json) -> Encoding:
        """Return the encoding of an expression whose value in every model is a term's."""
        with self.within(FormScope(expression)):
            return self.plain(self.encode(read_form(expression["form"])))

    def condition(self, expression: Json) -> ConditionPart:
        """Return an expression whose value is a bool, with its operands."""
        with self.within(FormScope(expression)):
            return condition_part(self, read_form(expression["form"]))

    def error(self, expression: Json) -> Formula:
        """Return the formula that holds iff an expression has no value."""
        with self.within(FormScope(expression)):
            found = self.encode(read_form(expression["form"]))
            if isinstance(found.value, TextFunction) and found.value.total:
                return found.error
            return self.plain(found).error

    def expression_key(self, expression: Json) -> str:
        """Return a text that is the same for expressions that have the same value."""
        return self.key(read_form(expression["form"]))

    def encode(self, form: Form) -> Encoding:
        is_loop = _is_loop(form)
        is_light = not isinstance(form, (f.Matches, f.Call)) or (isinstance(form, f.Call) and form.function in _LIGHT)
        if (is_light and not is_loop) or self.scope.locals or form.type not in SORTS:
            return _ENCODERS[type(form)](self, form)
        source = self.source_of(form)
        if source in self.problem.effort.aside:
            return self.fresh(form)
        found = _ENCODERS[type(form)](self, form)
        if source not in self.problem.subexpressions:
            place, divisions = self.place_of(form), self.problem.divisions
            self.problem.subexpressions[source] = Subexpression(source, place, found.value, is_loop, divisions)
        return found


def _is_loop(form: Form) -> bool:
    if isinstance(form, f.Call):
        return filter_tested_by(form) is not None or filter_counted_by(form) is not None
    return isinstance(form, (f.All, f.Exists, f.ExistsOne))


def _literal(_encoder: FormEncoder, form: f.Literal) -> Encoding:
    """Return the encoding of a literal."""
    return Encoding(form.value)


def _variable(encoder: FormEncoder, form: f.Variable) -> Encoding:
    """Return the encoding of a variable that every expression may read; records are read by their fields."""
    if form.name in encoder.known:
        return encoder.known[form.name]
    encoder.problem.inputs_read.add(form.name)
    if form.name in ("notice", "age", "now", "affects_me", "leader"):
        return encoder.inputs.variable(form.name)
    return encoder.fresh(form)


def _policy_variable(encoder: FormEncoder, form: f.PolicyVariable) -> Encoding:
    """Return the encoding of a variable of the policy."""
    return encoder.variables[form.name][1]


def _local(encoder: FormEncoder, form: f.Local) -> Encoding:
    """Return the encoding of the element of a loop."""
    return encoder.scope.locals.get(form.number) or Encoding(OpaqueValue(encoder.key(form)))


def _bind(encoder: FormEncoder, form: f.Bind) -> Encoding:
    """Return the encoding of a call of cel.bind()."""
    value = encoder.key(form.value), encoder.encode(form.value)
    with encoder.within(encoder.scope._replace(bound={**encoder.scope.bound, form.number: value})):
        return encoder.encode(form.body)


def _bound(encoder: FormEncoder, form: f.Bound) -> Encoding:
    """Return the encoding of the variable of a call of cel.bind()."""
    values = encoder.scope.bound
    return values[form.number][1] if form.number in values else encoder.fresh(form)


def _dynamic(encoder: FormEncoder, form: f.Dynamic) -> Encoding:
    """Return the encoding of a value whose type is known only when the expression runs."""
    operand = encoder.encode(form.operand)
    if is_python(operand):
        return Encoding(Dyn(form.operand.type, operand.value))
    return Encoding(OpaqueValue(encoder.key(form)), encoder.plain(operand).error)


def _field(encoder: FormEncoder, form: f.Field) -> Encoding:
    """Return the encoding of a field."""
    if form.record == "params":
        return encoder.parameter(form.name)
    if form.record in ("event", "vm"):
        value, there = _input(encoder, form)
        return failure(form.type) if there is False else Encoding(value, neg(there))
    return encoder.fresh(form)


def _has(encoder: FormEncoder, form: f.Has) -> Encoding:
    """Return the encoding of whether a field is there."""
    if form.record in ("event", "vm"):
        return Encoding(_input(encoder, form)[1])
    operand = encoder.encode(form.operand)
    if isinstance(operand.value, Tags):
        return Encoding(operand.value.tag(form.name)[0], operand.error)
    if isinstance(operand.value, dict) and is_python(operand):
        return Encoding(form.name in operand.value)
    return Encoding(True) if form.record == "params" else encoder.fresh(form)


def _input(encoder: FormEncoder, form: f.Access) -> tuple[Any, Any]:
    if form.record == "vm":
        return encoder.inputs.vm_fact(form.name)
    encoder.problem.inputs_read.add(form.name)
    return encoder.inputs.event_field(form.name)


_ENCODERS: Mapping[type[Form], Callable[[FormEncoder, Any], Encoding]] = {
    f.Literal: _literal,
    f.List: list_of,
    f.Map: map_of,
    f.Variable: _variable,
    f.PolicyVariable: _policy_variable,
    f.Local: _local,
    f.Bind: _bind,
    f.Bound: _bound,
    f.Dynamic: _dynamic,
    f.Field: _field,
    f.Has: _has,
    f.And: logic,
    f.Or: logic,
    f.If: choice,
    f.Call: function_call,
    f.Matches: matches,
    f.All: quantifier,
    f.Exists: quantifier,
    f.ExistsOne: exists_one,
    f.MapList: FormEncoder.fresh,
    f.Filter: FormEncoder.fresh,
}
