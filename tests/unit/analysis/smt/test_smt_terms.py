# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The operations on terms, with values of Python and with terms of z3: both have the same meaning."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import z3  # type: ignore[import-untyped]  # has no types
from forewarn.analysis.smt.terms import between, conj, disj, floor_div, implies, is_constant, ite, neg, same

CONTEXT = z3.Context()
BOOLS = (False, True)


def spellings(value: Any) -> Iterator[Any]:
    """Yield a value as one of Python and as a term."""
    yield value
    if isinstance(value, bool):
        yield z3.BoolVal(value, CONTEXT)
    elif isinstance(value, int):
        yield z3.IntVal(value, CONTEXT)


def value_of(term: Any) -> Any:
    """Return the value of a term without variables."""
    if is_constant(term):
        return term
    found = z3.simplify(term)
    return z3.is_true(found) if z3.is_bool(found) else found.as_long()


def judge(operation: Callable[..., Any], meaning: Callable[..., Any], *values: Any) -> None:
    """Compare an operation with its meaning for all spellings of its arguments."""
    for given in itertools.product(*map(spellings, values)):
        found = operation(*given)
        assert value_of(found) == meaning(*values), given
        if all(map(is_constant, given)):
            assert is_constant(found), given


@pytest.mark.parametrize("size", [0, 1, 2, 3])
def test_all_and_some(size: int) -> None:
    for values in itertools.product(BOOLS, repeat=size):
        judge(lambda *parts: conj(parts), lambda *parts: all(parts), *values)
        judge(lambda *parts: disj(parts), lambda *parts: any(parts), *values)


def test_what_is_decided_is_no_term() -> None:
    open_ = z3.Bool("open", CONTEXT)
    assert conj((open_, False)) is False
    assert disj((open_, True)) is True
    assert conj((True, open_)) is open_
    assert disj((False, open_)) is open_
    assert implies(False, open_) is True
    assert ite(True, open_, False) is open_
    assert ite(False, 1, open_) is open_
    assert ite(open_, open_, open_) is open_


def test_logic() -> None:
    for one, other in itertools.product(BOOLS, repeat=2):
        judge(neg, lambda value: not value, one)
        judge(implies, lambda first, second: second if first else True, one, other)
        judge(same, lambda first, second: first == second, one, other)
        for third in BOOLS:
            judge(ite, lambda condition, then, otherwise: then if condition else otherwise, one, other, third)


def test_numbers() -> None:
    for value in range(-3, 4):
        judge(lambda number: floor_div(number, 2), lambda number: number // 2, value)
        for other in range(-3, 4):
            judge(same, lambda first, second: first == second, value, other)
            for condition in BOOLS:
                judge(ite, lambda asked, then, otherwise: then if asked else otherwise, condition, value, other)


@pytest.mark.parametrize(("low", "high"), [(0, 2), (None, 2), (0, None), (None, None), (1, 1), (2, 0)])
def test_a_range_includes_its_ends(low: int | None, high: int | None) -> None:
    for value in range(-1, 4):
        inside = (low is None or low <= value) and (high is None or value <= high)
        judge(lambda number: between(low, number, high), lambda _number, inside=inside: inside, value)
