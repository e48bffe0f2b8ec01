# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""z3 and the few operations on its terms that the translation needs.

A formula is a Python bool where its value is known, otherwise a Bool of z3; an integer is a Python int or an Int of z3.
So what is constant is never given to the solver.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...errors import InputError

try:
    import z3  # type: ignore[import-untyped]  # has no types
except ImportError:  # a machine without a wheel of z3-solver: everything else works
    z3 = None

Formula = Any  # bool, or a Bool of z3
Number = Any  # int, or an Int of z3


def require() -> Any:
    """Return the module z3. Raises InputError where it is not installed."""
    if z3 is None:
        raise InputError(
            "the Python package z3-solver is not installed, so nothing can be proven",
            "Run 'pip install z3-solver'. It has wheels for Linux (x86-64: glibc 2.27; aarch64: glibc 2.38), macOS "
            "and Windows.",
        )
    return z3


def conj(parts: Iterable[Formula]) -> Formula:
    """Return a formula that holds iff all parts hold."""
    return _junction(parts, False)


def disj(parts: Iterable[Formula]) -> Formula:
    """Return a formula that holds iff some part holds."""
    return _junction(parts, True)


def _junction(parts: Iterable[Formula], decisive: bool) -> Formula:
    """Return ``or`` if a part that is true decides it, ``and`` if one that is false does."""
    terms = []
    for part in parts:
        if part is decisive:
            return decisive
        if not isinstance(part, bool):
            terms.append(part)
    if len(terms) < 2:
        return terms[0] if terms else not decisive
    return z3.Or(terms) if decisive else z3.And(terms)


def neg(part: Formula) -> Formula:
    """Return a formula that holds iff a part does not."""
    return not part if isinstance(part, bool) else z3.Not(part)


def implies(first: Formula, second: Formula) -> Formula:
    """Return a formula that holds iff the second does or the first does not."""
    return disj((neg(first), second))


def ite(condition: Formula, then: Any, otherwise: Any) -> Any:
    """Return the term whose value in every model is that of one of two terms of a sort."""
    if isinstance(condition, bool):
        return then if condition else otherwise
    if then is otherwise:
        return then
    if isinstance(then, bool) or isinstance(otherwise, bool) or _is_bool(then):
        return disj((conj((condition, then)), conj((neg(condition), otherwise))))
    return z3.If(condition, then, otherwise)


def same(one: Any, other: Any) -> Formula:
    """Return a formula that holds iff two terms of a sort are equal."""
    if isinstance(one, bool) and not isinstance(other, bool):
        return other if one else neg(other)
    if isinstance(other, bool) and not isinstance(one, bool):
        return one if other else neg(one)
    return one == other


def between(low: Any, value: Any, high: Any) -> Formula:
    """Return a formula that holds iff a number lies in a range, both ends included; None is no end."""
    return conj((True if low is None else value >= low, True if high is None else value <= high))


def floor_div(value: Number, by: int) -> Number:
    """Divide by a positive constant, rounding down: SMT-LIB's ``div``."""
    return value // by if isinstance(value, int) else value / by


def is_constant(value: Any) -> bool:
    """Return whether a term is a value of Python."""
    return z3 is None or not z3.is_expr(value)


def _is_bool(term: Any) -> bool:
    return bool(z3.is_bool(term))
