# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Functions on lists and loops with two variables, judged by Python's own lists and sorting.

cel-expr-python has none of them, so no engine judges them. The judge knows values as Python has them: numbers are equal
where they are the same on the number line, and nothing is equal to a value of another type.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import pytest
from forewarn.compiler.cel.expression import ExpressionError, compile_expression
from forewarn.policy.evaluation_error import EvaluationError, LimitError
from forewarn.policy.functions.dynamic import to_plain
from hypothesis import given
from hypothesis import strategies as st

INTS = st.integers(-3, 3)
DOUBLES = st.sampled_from((-2.5, -1.0, -0.0, 0.0, 0.5, 1.0, 3.0, math.inf, -math.inf))
TEXTS = st.text("abÄ𝕏'\\", max_size=3)
BOOLS = st.booleans()
SCALARS = (INTS, DOUBLES, TEXTS, BOOLS)
OF_ONE_TYPE = st.one_of(*(st.lists(kind, max_size=5) for kind in SCALARS))
MIXED = st.lists(st.one_of(*SCALARS, st.none(), st.lists(INTS, max_size=2)), max_size=5)
NUMBERS = st.lists(st.one_of(INTS, DOUBLES), min_size=1, max_size=5)


def written(value: Any) -> str:
    """Return a value as a literal of CEL."""
    if value is None:
        return "null"
    if isinstance(value, list):
        return f"[{', '.join(map(written, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{written(key)}: {written(item)}" for key, item in value.items()) + "}"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, float) and not math.isfinite(value):
        return f'double("{value}")'
    return json.dumps(value)


def evaluated(source: str) -> Any:
    """Return the value of an expression; None where it has an error. No expression here has null as its value."""
    try:
        return to_plain(compile_expression(source, {})({}))
    except EvaluationError:
        return None


def compiles(source: str) -> bool:
    """Return whether the compiler takes an expression."""
    try:
        compile_expression(source, {})
    except ExpressionError:
        return False
    return True


def same(one: Any, other: Any) -> bool:
    """Return whether CEL calls two values equal."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        return one == other
    return type(one) is type(other) and one == other


def distinct(values: list[Any]) -> list[Any]:
    """Return the first of the elements that are equal."""
    return [value for number, value in enumerate(values) if not any(same(value, other) for other in values[:number])]


def among(values: list[Any], others: list[Any]) -> Iterator[bool]:
    """Yield whether each value is among others."""
    return (any(same(value, other) for other in others) for value in values)


@given(st.one_of(OF_ONE_TYPE, MIXED))
def test_distinct(values: list[Any]) -> None:
    assert repr(evaluated(f"{written(values)}.distinct()")) == repr(distinct(values))


@given(OF_ONE_TYPE, OF_ONE_TYPE | MIXED, st.booleans())
def test_sets(values: list[Any], others: list[Any], related: bool) -> None:
    """A relation of two lists holds for some of those that have to do with each other."""
    others = values[1:] + others[:1] if related else others
    one, other = written(values), written(others)
    for source, wanted in (
        (f"sets.contains({one}, {other})", all(among(others, values))),
        (f"sets.intersects({one}, {other})", any(among(values, others))),
        (f"sets.equivalent({one}, {other})", all(among(values, others)) and all(among(others, values))),
    ):
        if compiles(source):
            assert evaluated(source) is wanted, source
        else:  # lists that can have nothing in common are a mistake of types
            assert bool(values and others) > any(among(values, others)), source


@given(OF_ONE_TYPE, st.integers(-1, 6), st.integers(-1, 6))
def test_slice(values: list[Any], start: int, end: int) -> None:
    wanted = values[start:end] if 0 <= start <= end <= len(values) else None
    assert repr(evaluated(f"{written(values)}.slice({start}, {end})")) == repr(wanted)


@given(st.lists(st.lists(st.lists(INTS, max_size=2), max_size=2), max_size=3), st.integers(0, 3))
def test_flatten(values: list[Any], depth: int) -> None:
    wanted = values
    for _level in range(depth):
        wanted = [item for one in wanted for item in (one if isinstance(one, list) else [one])]
    typed = f"({written(values)} + [[[1]]].slice(0, 0))"  # [] alone is a list of anything
    assert evaluated(f"{typed}.flatten({depth})") == wanted
    if depth == 1:
        assert evaluated(f"{typed}.flatten()") == wanted


@given(OF_ONE_TYPE)
def test_sort_reverse_and_the_ends(values: list[Any]) -> None:
    source = written(values)
    ordered = sorted(values)
    assert evaluated(f"{source}.sort()") == ordered
    assert repr(evaluated(f"{source}.reverse()")) == repr(values[::-1])
    assert evaluated(f"{source}.min()") == (ordered[0] if values else None)
    assert evaluated(f"{source}.max()") == (ordered[-1] if values else None)


@given(st.lists(st.tuples(INTS, TEXTS), max_size=6))
def test_sort_by_keeps_the_order_of_equal_keys(pairs: list[tuple[int, str]]) -> None:
    values = [text * (number + 4) for number, text in pairs]
    wanted = sorted(values, key=len)
    assert evaluated(f"{written(values)}.sortBy(e, size(e))") == wanted


@given(NUMBERS)
def test_numbers_of_several_types(numbers: list[Any]) -> None:
    arguments = ", ".join(map(written, numbers))
    assert evaluated(f"math.greatest({arguments})") == max(numbers)
    assert evaluated(f"math.least({arguments})") == min(numbers)
    assert evaluated(f"math.greatest([{arguments}])") == max(numbers)


@pytest.mark.parametrize("name", ["least", "greatest"])
def test_extreme_of_equal_numbers_is_the_first(name: str) -> None:
    assert evaluated(f"type(math.{name}(1, 1.0)) == int")
    assert evaluated(f"type(math.{name}(1.0, 1)) == double")


@given(NUMBERS)
def test_numbers_compare_by_value_across_types(numbers: list[Any]) -> None:
    one, other = numbers[0], numbers[-1]
    for symbol, holds in (("<", one < other), ("<=", one <= other), ("==", one == other), ("!=", one != other)):
        assert evaluated(f"{written(one)} {symbol} {written(other)}") is holds
    for first, second in ((one, other), (other, one)):
        order = (first > second) - (first < second)
        assert evaluated(f"dyn({written(first)}) > dyn({written(second)})") is (order > 0)


@given(st.lists(INTS, max_size=4), INTS)
def test_loops_with_two_variables_over_a_list(values: list[int], wanted: int) -> None:
    source, pairs = written(values), list(enumerate(values))
    holds = [index + value == wanted for index, value in pairs]
    condition = f"i + v == {wanted}"
    assert evaluated(f"{source}.all(i, v, {condition})") is all(holds)
    assert evaluated(f"{source}.exists(i, v, {condition})") is any(holds)
    assert evaluated(f"{source}.existsOne(i, v, {condition})") is (sum(holds) == 1)
    assert evaluated(f"{source}.exists_one(i, v, {condition})") is (sum(holds) == 1)
    assert evaluated(f"{source}.transformList(i, v, i * v)") == [index * value for index, value in pairs]
    assert evaluated(f"{source}.transformList(i, v, {condition}, v)") == [v for v, yes in zip(values, holds) if yes]
    assert evaluated(f"{source}.transformMap(i, v, v * 2)") == {index: value * 2 for index, value in pairs}
    chosen = {index: value for (index, value), yes in zip(pairs, holds) if yes}
    assert evaluated(f"{source}.transformMap(i, v, {condition}, v)") == chosen


@given(st.dictionaries(TEXTS, INTS, max_size=4), INTS)
def test_loops_with_two_variables_over_a_map(values: dict[str, int], wanted: int) -> None:
    source = written(values)
    holds = [len(key) + value == wanted for key, value in values.items()]
    condition = f"size(k) + v == {wanted}"
    assert evaluated(f"{source}.all(k, v, {condition})") is all(holds)
    assert evaluated(f"{source}.exists(k, v, {condition})") is any(holds)
    assert evaluated(f"{source}.existsOne(k, v, {condition})") is (sum(holds) == 1)
    assert evaluated(f"{source}.transformMap(k, v, v + 1)") == {key: value + 1 for key, value in values.items()}
    turned: dict[int, str] = {value: key for key, value in values.items()}
    found = evaluated(f"{source}.transformMapEntry(k, v, {{v: k}})")
    assert found == (turned if len(turned) == len(values) else None), "a key that comes twice is an error"
    if len(values) < 2:  # the keys of a map have no order
        assert evaluated(f"{source}.transformList(k, v, k)") == list(values)
    else:
        assert evaluated(f"{source}.transformList(k, v, k)") is None


@given(st.integers(-2, 9))
def test_range(count: int) -> None:
    assert evaluated(f"lists.range({count})") == list(range(count))


def test_one_call_makes_no_list_beyond_the_limit() -> None:
    with pytest.raises(EvaluationError, match="more than 10000"):
        compile_expression("lists.range(10001)", {})({})


def test_comparisons_of_elements_take_steps() -> None:
    """Otherwise a function in a loop could keep a VM from polling for hours."""
    source = (
        "lists.range(20).all(i, sets.contains(lists.range(1000), [i]) && lists.range(300).distinct().size() == 300)"
    )
    assert evaluated(source) is True
    with pytest.raises(LimitError):
        compile_expression(source.replace("range(20)", "range(30)"), {})({})
    dynamic = (
        "lists.range(30).all(i, dyn(lists.range(300)).distinct().size() == 300 && sets.contains([dyn(1), i], [i]))"
    )
    with pytest.raises(LimitError):
        compile_expression(dynamic, {})({})


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("[1].sort(2)", "sort() takes (list); here it gets (list(int), int)"),
        ("[[1]].sort()", "sort() takes elements that have an order, and these are list(int)"),
        ("['a', null].max()", None),  # known only when it runs
        ("[1].flatten()", None),
        ("[1].flatten(-1)", "flatten() takes a literal number from 0 to 8"),
        ("'a'.flatten()", "flatten() takes a list of lists, and this is a string"),
        (
            "sets.contains([1], ['a'])",
            "sets.contains() takes lists of one type, and these are list(int) and list(string)",
        ),
        ("sets.contain([1], [1])", "there is no function sets.contain()"),
        ("math.greatest('a')", "math.greatest() takes numbers, and this is a string"),
        ("math.greatest()", "math.greatest() takes numbers, and this is nothing"),
        ("{'a': 1}.sortBy(k, k)", "sortBy() takes a list and keys that have an order, not a map"),
        ("[1].sortBy(e, [e])", "sortBy() takes a list and keys that have an order, not keys of list(int)"),
        ("[1].transformMapEntry(i, v, v)", "transformMapEntry() takes a map, as in {k: v}, and this is an int"),
        (
            "[1].transformList(v, v)",
            "transformList() takes two names and an expression, as in x.transformList(k, v, …)",
        ),
        ("[1].exists(1, v, true)", "exists() takes a name and an expression, as in x.exists(e, …)"),
    ],
)
def test_what_is_refused_says_what_is_wanted(source: str, message: str | None) -> None:
    if message is None:
        compile_expression(source, {})
        return
    with pytest.raises(ExpressionError) as caught:
        compile_expression(source, {})
    assert message in [finding.message for finding in caught.value.findings]
