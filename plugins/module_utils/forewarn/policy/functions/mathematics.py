# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CEL's mathematical functions (cel-go's extension math). Integers are of 64 bits, and never wrap around."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Callable

from ..evaluation_error import EvaluationError

_BITS = 64
_MASK = 2**_BITS - 1


def _signed(bits: int) -> int:
    return bits - 2**64 if bits >= 2**63 else bits


def _abs_int(value: int) -> int:
    if value == -(2**63):
        raise EvaluationError("integer overflow")
    return abs(value)


def _rounding(function: Callable[[float], float]) -> Callable[[float], float]:
    """Return a rounding function of Python for doubles: the result is a double, NaN and infinities stay as they are."""
    return lambda value: math.copysign(function(value), value) if math.isfinite(value) else value


def _round(value: float) -> float:
    """Round half away from zero."""
    return math.copysign(math.floor(abs(value) + 0.5) if abs(value) < 2**52 else abs(value), value)


def _sign_double(value: float) -> float:
    return value if math.isnan(value) else float((value > 0) - (value < 0))


def _sqrt(value: float) -> float:
    return math.sqrt(value) if value >= 0 else math.nan


def _shift(way: Callable[[int, int], int], name: str, signed: bool) -> Callable[[int, int], int]:
    def shift(value: int, by: int) -> int:
        if by < 0:
            raise EvaluationError(f"math.{name}() invalid negative shift: {by}")
        bits = 0 if by >= _BITS else way(value & _MASK, by) & _MASK
        return _signed(bits) if signed else bits

    return shift


def _left(bits: int, by: int) -> int:
    return bits << by


def _right(bits: int, by: int) -> int:
    return bits >> by


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "ceil": _rounding(math.ceil),
    "floor": _rounding(math.floor),
    "trunc": _rounding(math.trunc),
    "round": _rounding(_round),
    "is_nan": math.isnan,
    "is_inf": math.isinf,
    "is_finite": math.isfinite,
    "sqrt": _sqrt,
    "abs_int": _abs_int,
    "abs_double": abs,
    "sign_int": lambda value: (value > 0) - (value < 0),
    "sign_uint": lambda value: int(value > 0),
    "sign_double": _sign_double,
    "bit_and": lambda one, other: one & other,
    "bit_or": lambda one, other: one | other,
    "bit_xor": lambda one, other: one ^ other,
    "bit_not_int": lambda value: ~value,
    "bit_not_uint": lambda value: ~value & _MASK,
    "shift_left_int": _shift(_left, "bitShiftLeft", signed=True),
    "shift_left_uint": _shift(_left, "bitShiftLeft", signed=False),
    "shift_right_int": _shift(_right, "bitShiftRight", signed=True),
    "shift_right_uint": _shift(_right, "bitShiftRight", signed=False),
}
