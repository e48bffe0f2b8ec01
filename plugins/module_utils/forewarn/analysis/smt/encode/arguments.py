# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The arguments of a call of a CEL function, and what is known of their values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ....policy.forms import Call
from ..terms import Formula, disj, is_constant
from .inputs import Tags
from .problem import Encoding, OpaqueValue, Problem
from .resources import Distinct, Resources
from .text_functions import TextFunction

# Functions that have a value wherever their arguments have one: no text reaches the evaluator's limit (CONSTRAINTS).
TOTAL = frozenset(
    (
        *("eq", "ne", "lt", "le", "gt", "ge", "eq_deep", "ne_deep", "in", "in_deep", "not", "same", "size"),
        *("add_double", "sub_double", "mul_double", "div_double", "neg_double", "to_double"),
        *("add_string", "add_bytes", "add_list", "contains", "starts_with", "ends_with", "matches", "replace", "join"),
        *("lower_ascii", "upper_ascii", "trim", "reverse", "quote", "defined", "non_zero"),
        *("number_eq", "number_ne", "number_lt", "number_le", "number_gt", "number_ge"),
        *("ceil", "floor", "round", "trunc", "is_nan", "is_inf", "is_finite", "sqrt", "abs_double", "sign_double"),
        *("sign_int", "sign_uint", "bit_and", "bit_or", "bit_xor", "bit_not_int", "bit_not_uint"),
        *("integer_to_string", "bool_to_string", "timestamp_to_string", "duration_to_string"),
    )
)


class Arguments(NamedTuple):
    """The arguments of a call. ``plain`` makes a term of a value; ``fresh`` is the call's value as fresh variables."""

    problem: Problem
    form: Call
    values: tuple[Encoding, ...]
    plain: Callable[[Encoding], Encoding]
    fresh: Callable[[], Encoding]

    @property
    def value(self) -> Any:
        """The fresh variable of the call's value."""
        return self.fresh().value

    @property
    def error(self) -> Formula:
        """The formula that holds iff an argument has no value."""
        return disj(one.error for one in self.values)

    def type_of(self, place: int) -> str:
        """Return the type of an argument."""
        return self.form.arguments[place].type


def is_python(one: Encoding) -> bool:
    """Return whether the value of an encoding is a known value of Python."""
    symbolic = (OpaqueValue, TextFunction, tuple, Tags, Resources, Distinct)  # an OptionalValue is a tuple, too
    return one.error is False and not isinstance(one.value, symbolic) and is_constant(one.value)
