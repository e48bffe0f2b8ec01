# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Forms that stand for a value as they are: literals, variables, and fields of the event, the VM and the parameters."""

from __future__ import annotations

from typing import Any

from ....policy import forms as f
from ....policy.functions.dynamic import Dyn
from ..terms import neg
from .form_encoder import FormEncoder, is_python
from .inputs import Tags
from .problem import Encoding, OpaqueValue, failure


def literal(_encoder: FormEncoder, form: f.Literal) -> Encoding:
    """Return the encoding of a literal."""
    return Encoding(form.value)


def variable(encoder: FormEncoder, form: f.Variable) -> Encoding:
    """Return the encoding of a variable that every expression may read; records are read by their fields."""
    if form.name in encoder.known:
        return encoder.known[form.name]
    encoder.problem.inputs_read.add(form.name)
    if form.name in ("notice", "age", "now", "affects_me", "leader"):
        return encoder.inputs.variable(form.name)
    return encoder.fresh(form)


def policy_variable(encoder: FormEncoder, form: f.PolicyVariable) -> Encoding:
    """Return the encoding of a variable of the policy."""
    return encoder.variables[form.name][1]


def local(encoder: FormEncoder, form: f.Local) -> Encoding:
    """Return the encoding of the element of a loop."""
    return encoder.scope.locals.get(form.number) or Encoding(OpaqueValue(encoder.key(form)))


def bind(encoder: FormEncoder, form: f.Bind) -> Encoding:
    """Return the encoding of a call of cel.bind()."""
    value = encoder.key(form.value), encoder.encode(form.value)
    with encoder.within(encoder.scope._replace(bound={**encoder.scope.bound, form.number: value})):
        return encoder.encode(form.body)


def bound(encoder: FormEncoder, form: f.Bound) -> Encoding:
    """Return the encoding of the variable of a call of cel.bind()."""
    values = encoder.scope.bound
    return values[form.number][1] if form.number in values else encoder.fresh(form)


def dynamic(encoder: FormEncoder, form: f.Dynamic) -> Encoding:
    """Return the encoding of a value whose type is known only when the expression runs."""
    operand = encoder.encode(form.operand)
    if is_python(operand):
        return Encoding(Dyn(form.operand.type, operand.value))
    return Encoding(OpaqueValue(encoder.key(form)), encoder.plain(operand).error)


def field(encoder: FormEncoder, form: f.Field) -> Encoding:
    """Return the encoding of a field."""
    if form.record == "params":
        return encoder.parameter(form.name)
    if form.record in ("event", "vm"):
        value, there = _input(encoder, form)
        return failure(form.type) if there is False else Encoding(value, neg(there))
    return encoder.fresh(form)


def has(encoder: FormEncoder, form: f.Has) -> Encoding:
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
