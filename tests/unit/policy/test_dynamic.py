# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Maps and lists whose type is known only when an expression runs, judged by pairs of Python's own values.

CEL's language definition, "Equality" and "Numeric values": a number is found as a key by the same number of any type,
and no value by one of another type. What cannot be a key is an error.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from forewarn.compiler.cel.expression import compile_expression
from forewarn.policy.evaluation_error import EvaluationError
from forewarn.policy.functions.dynamic import to_plain
from hypothesis import given
from hypothesis import strategies as st

INTS = st.integers(-2, 3)
TEXTS = st.sampled_from(("", "a", "1", "true"))
# As pairs: Python's own dict takes True and 1 for one key.
MAPS = st.one_of(
    *(
        st.lists(st.tuples(keys, st.integers(10, 99)), min_size=1, max_size=4, unique_by=lambda pair: repr(pair[0]))
        for keys in (INTS, TEXTS, st.booleans(), st.one_of(INTS, TEXTS, st.booleans()))
    )
)
KEYS = st.one_of(INTS, TEXTS, st.booleans(), st.sampled_from((-1.0, 0.0, 0.5, 1.0, 2.5)))
# A text may look like a number.
SCALARS = st.one_of(KEYS, st.sampled_from(("0.5", "1.0", "-1", "nan", None)))
NO_KEYS = st.sampled_from(("null", "[1]", "b'a'", "{1: 1}", "duration('1s')"))


def literal(value: Any) -> str:
    return json.dumps(value)


def literal_map(pairs: list[tuple[Any, int]]) -> str:
    return "{" + ", ".join(f"{literal(key)}: {item}" for key, item in pairs) + "}"


def evaluated(source: str) -> Any:
    return to_plain(compile_expression(source, {})({}))


def are_equal(one: Any, other: Any) -> bool:
    return isinstance(one, bool) is isinstance(other, bool) and one == other


@given(SCALARS, SCALARS)
def test_scalars_compare_within_their_kind(one: Any, other: Any) -> None:
    """Numbers of any type are of one kind."""
    kinds = [float if type(value) is int else type(value) for value in (one, other)]
    left, right = literal(one), literal(other)
    for equal in (f"dyn({left}) == dyn({right})", f"dyn({left}) == {right}", f"{left} == dyn({right})"):
        assert evaluated(equal) is (kinds[0] is kinds[1] and one == other), equal
    if kinds[0] is kinds[1] and one is not None:
        assert evaluated(f"dyn({left}) < dyn({right})") is (one < other)
    else:
        with pytest.raises(EvaluationError, match="no such overload"):
            evaluated(f"dyn({left}) < dyn({right})")


@given(MAPS, KEYS)
def test_map_key_is_found_by_an_equal_value(pairs: list[tuple[Any, int]], key: Any) -> None:
    found = [item for other, item in pairs if are_equal(key, other)]
    mapping = f"dyn({literal_map(pairs)})"
    assert evaluated(f"dyn({literal(key)}) in {mapping}") is bool(found)
    assert evaluated(f"{mapping}[?dyn({literal(key)})].orValue(0)") == (found[0] if found else 0)
    if found:
        assert evaluated(f"{mapping}[dyn({literal(key)})]") == found[0]
    else:
        with pytest.raises(EvaluationError, match="no such key"):
            evaluated(f"{mapping}[dyn({literal(key)})]")


@given(MAPS, NO_KEYS)
def test_what_cannot_be_a_key_is_an_error(pairs: list[tuple[Any, int]], key: str) -> None:
    for source in (f"dyn({key}) in dyn({literal_map(pairs)})", f"dyn({literal_map(pairs)})[dyn({key})]"):
        with pytest.raises(EvaluationError):
            evaluated(source)


@given(st.lists(st.integers(10, 99), max_size=3), st.sampled_from((-1, 0, 1, 2, 3, 0.0, 0.5, 1.0)))
def test_list_index_is_any_whole_number(items: list[int], place: float) -> None:
    there = place in range(len(items))
    expected = items[int(place)] if there else 0
    assert evaluated(f"dyn({items})[?dyn({place})].orValue(0)") == expected


@pytest.mark.parametrize(
    "source", ["dyn([1])[?dyn('a')]", "dyn([1])[?dyn(true)]", "dyn(1)[?dyn(0)]", "dyn('a')[?dyn(0)]"]
)
def test_only_lists_and_maps_have_optional_places(source: str) -> None:
    with pytest.raises(EvaluationError, match="no such overload"):
        evaluated(f"{source}.orValue(1) == 1")


@pytest.mark.parametrize("operator", ["-", "*", "/", "%"])
def test_only_plus_joins_lists(operator: str) -> None:
    assert evaluated("dyn([1]) + dyn(['a'])") == [1, "a"]
    with pytest.raises(EvaluationError, match="no such overload"):
        evaluated(f"dyn([1]) {operator} dyn([2]) == dyn([1])")
