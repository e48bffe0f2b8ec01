# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Logic of expressions: ``&&`` and ``||``, which absorb errors, the choice between two values, and optional values."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple, Tuple

from ....policy import forms as f
from ....policy.forms import Form, Or
from ..terms import Formula, conj, disj, ite, neg, same
from .form_encoder import FormEncoder
from .problem import SORTS, Encoding, OpaqueValue, OptionalValue, failure

Place = Tuple[int, int]  # where a part begins and ends in the source of its expression


class ConditionPart(NamedTuple):
    """A condition, or an operand of one. ``inner`` are its own operands, none if it is neither ``&&`` nor ``||``."""

    form: Form
    value: Encoding
    inner: tuple[ConditionPart, ...] = ()

    @property
    def place(self) -> Place:
        """Where it is; no two parts of a condition share a place."""
        return self.form.start, self.form.end

    def pairs(self) -> Iterator[tuple[ConditionPart, ConditionPart]]:
        """Yield each operand below this one, after the operand that it belongs to: outer ones and last ones first."""
        for one in reversed(self.inner):
            yield self, one
            yield from one.pairs()

    def without(self, dropped: Collection[Place]) -> tuple[Formula, Formula]:
        """Return where this is true and where it is false, if operands at some places were not there.

        One operand of each ``&&`` and ``||`` has to be left.
        """
        if not self.inner:
            value, error = self.value
            return conj((neg(error), value)), conj((neg(error), neg(value)))
        true, false = zip(*(one.without(dropped) for one in self.inner if one.place not in dropped))
        return (disj(true), conj(false)) if isinstance(self.form, Or) else (conj(true), disj(false))


OPTIONAL = frozenset(("none", "some", "has_value", "value_of", "defined"))


def logic(encoder: FormEncoder, form: f.And | f.Or) -> Encoding:
    """Return the encoding of ``&&`` or ``||``."""
    return condition_part(encoder, form).value


def condition_part(encoder: FormEncoder, form: Form) -> ConditionPart:
    """Return a form whose value is a bool, with its operands."""
    if not isinstance(form, (f.And, f.Or)):
        return ConditionPart(form, encoder.encode_bool(form))
    inner = tuple(condition_part(encoder, part) for part in form.parts)
    return ConditionPart(form, joined([one.value for one in inner], deciding=isinstance(form, f.Or)), inner)


def joined(parts: Sequence[Encoding], *, deciding: bool) -> Encoding:
    """Return the encoding of ``&&`` or ``||``: one part that is ``deciding`` decides, whatever errors others have."""
    decided = disj(conj((neg(one.error), same(one.value, deciding))) for one in parts)
    failed = disj(one.error for one in parts)
    return Encoding(decided if deciding else neg(decided), conj((neg(decided), failed)))


def choice(encoder: FormEncoder, form: f.If) -> Encoding:
    """Return the encoding of ``condition ? then : otherwise``."""
    condition = encoder.encode_bool(form.condition)
    if isinstance(condition.value, bool):
        chosen = encoder.encode(form.then if condition.value else form.otherwise)
        return Encoding(chosen.value, disj((condition.error, chosen.error)))
    then, otherwise = (encoder.plain(encoder.encode(part)) for part in (form.then, form.otherwise))
    error = disj((condition.error, ite(condition.value, then.error, otherwise.error)))
    for part, other in ((then, otherwise), (otherwise, then)):
        if other.error is True:  # as in event.?X.value(): where there is a value, it is that of the other part
            return Encoding(part.value, error)
    if isinstance(then.value, OptionalValue) and isinstance(otherwise.value, OptionalValue):
        present = ite(condition.value, then.value.present, otherwise.value.present)
        value = _optional_choice(encoder, form, condition.value, then.value, otherwise.value)
        return Encoding(OptionalValue(present, value), error)
    if form.type not in SORTS or isinstance(then.value, OpaqueValue) or isinstance(otherwise.value, OpaqueValue):
        is_variable = form.type in SORTS and form.type != "string"
        return Encoding(encoder.fresh(form).value if is_variable else OpaqueValue(encoder.key(form)), error)
    return Encoding(_either(encoder, condition.value, then.value, otherwise.value), error)


def _optional_choice(
    encoder: FormEncoder, form: f.If, condition: Formula, then: OptionalValue, otherwise: OptionalValue
) -> Any:
    """Return the value of one of two optional values; what is not there may be anything."""
    if then.present is False or otherwise.present is False:
        return otherwise.value if then.present is False else then.value
    values = [then.value, otherwise.value]
    if form.type[len("optional(") : -1] not in SORTS or any(isinstance(one, OpaqueValue) for one in values):
        return OpaqueValue(encoder.key(form))
    return _either(encoder, condition, *values)


def _either(encoder: FormEncoder, condition: Formula, then: Any, otherwise: Any) -> Any:
    """Return one of two values of a sort."""
    if isinstance(then, str) and isinstance(otherwise, str) and then == otherwise:
        return then
    code = encoder.problem.texts.code
    return ite(condition, code(then), code(otherwise))


def optional(encoder: FormEncoder, form: f.Call) -> Encoding:
    """Return the encoding of a call in OPTIONAL, which makes an optional value or asks for its value."""
    if form.function == "none":
        return Encoding(OptionalValue(False, OpaqueValue("nothing")))
    operand = encoder.encode(form.arguments[0])
    if form.function in ("some", "defined"):
        plain = encoder.plain(operand)
        return Encoding(True if form.function == "defined" else OptionalValue(True, plain.value), plain.error)
    if not isinstance(operand.value, OptionalValue):
        return encoder.fresh(form)
    if form.function == "has_value":
        return Encoding(operand.value.present, operand.error)
    error = disj((operand.error, neg(operand.value.present)))
    if isinstance(operand.value.value, OpaqueValue) and form.type in SORTS:
        known = failure(form.type) if error is True else encoder.fresh(form)
        return Encoding(known.value, error)
    return Encoding(operand.value.value, error)
