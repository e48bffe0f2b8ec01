# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Single functions with values that are known, as terms, against the functions that the engine evaluates."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import z3  # type: ignore[import-untyped]  # has no types
from forewarn.analysis.smt.encode.comparisons import compared
from forewarn.analysis.smt.encode.form_encoder import TOTAL, Arguments
from forewarn.analysis.smt.encode.functions import call
from forewarn.analysis.smt.encode.inputs import Inputs
from forewarn.analysis.smt.encode.problem import NOTHING, Encoding, Problem
from forewarn.analysis.smt.encode.text_functions import TextFunction
from forewarn.analysis.smt.terms import neg
from forewarn.policy.evaluation_error import EvaluationError
from forewarn.policy.forms import Call, Literal
from forewarn.policy.functions.standard import INT_MAX, INT_MIN, UINT_MAX
from forewarn.policy.functions.table import FUNCTIONS
from forewarn.policy.functions.timevalues import MAX_DURATION, MAX_TIMESTAMP, MIN_DURATION, MIN_TIMESTAMP, SECOND

VALUES = {
    "int": (0, 1, -1, 2, 7, -7, 8, -2, INT_MAX, INT_MIN, INT_MAX // 2, INT_MIN // 2 - 1, INT_MAX // 2 + 1),
    "uint": (0, 1, 2, 7, 8, UINT_MAX, UINT_MAX // 2, UINT_MAX // 2 + 1),
    "duration": (0, 1, -1, SECOND, MAX_DURATION, MIN_DURATION, MAX_DURATION - 1, MIN_DURATION // 2),
    "timestamp": (0, 1, -1, SECOND, -SECOND - 1, MAX_TIMESTAMP, MIN_TIMESTAMP, MAX_TIMESTAMP - SECOND),
}
PROBLEM = Problem()
EVERY_SECOND = (
    MAX_TIMESTAMP // SECOND,
    MAX_TIMESTAMP // SECOND + 1,
    MIN_TIMESTAMP // SECOND,
    MIN_TIMESTAMP // SECOND - 1,
)


def called(function: str, result: str, types: tuple[str, ...], values: tuple[Any, ...]) -> Encoding | None:
    """Translate a call. No argument is called a constant, so nothing but the translation evaluates it."""
    arguments = tuple(Literal((type_, 0, 0), value) for type_, value in zip(types, values))
    form = Call((result, 0, 0), function, *arguments)
    given = tuple(map(Encoding, values))
    return call(Arguments(PROBLEM, form, given, lambda one: one, lambda: Encoding(PROBLEM.integer("anything"))))


@pytest.mark.parametrize(
    ("function", "types", "result"),
    [
        *((f"{name}_int", ("int", "int"), "int") for name in ("add", "sub", "mul", "div", "mod")),
        *((f"{name}_uint", ("uint", "uint"), "uint") for name in ("add", "sub", "mul", "div", "mod")),
        *((f"{name}_timestamp", ("timestamp", "duration"), "timestamp") for name in ("add", "sub")),
        *((f"{name}_duration", ("duration", "duration"), "duration") for name in ("add", "sub")),
        *((name, (type_, type_), "bool") for name in ("eq", "ne", "lt", "le", "gt", "ge") for type_ in VALUES),
        ("diff_timestamp", ("timestamp", "timestamp"), "duration"),
        ("neg_int", ("int",), "int"),
        ("neg_duration", ("duration",), "duration"),
        ("timestamp_to_int", ("timestamp",), "int"),
        ("int_to_timestamp", ("int",), "timestamp"),
        ("uint_to_int", ("uint",), "int"),
        ("int_to_uint", ("int",), "uint"),
        ("same", ("int",), "int"),
        ("not", ("bool",), "bool"),
    ],
)
def test_a_function_of_numbers(function: str, types: tuple[str, ...], result: str) -> None:
    values = {**VALUES, "bool": (True, False)}
    if function == "int_to_timestamp":
        values["int"] = (*values["int"], *EVERY_SECOND)
    for given in itertools.product(*(values[type_] for type_ in types)):
        found = called(function, result, types, given)
        assert found is not None, given
        try:
            expected = FUNCTIONS[function](*given)
        except EvaluationError:
            assert found.error is True, given
        else:
            assert (found.value, found.error) == (expected, False), given


@pytest.mark.parametrize(
    ("function", "types", "given", "expected"),
    [
        ("size", ("list(int)",), ((Encoding(1), Encoding(2)),), 2),
        ("index_list", ("list(int)", "int"), ((Encoding(1), Encoding(2)), 0), 1),
        ("index_list", ("list(int)", "int"), ((Encoding(1), Encoding(2)), 1), 2),
        ("index_list", ("list(int)", "int"), ((Encoding(1), Encoding(2)), 2), None),
        ("index_list", ("list(int)", "int"), ((Encoding(1), Encoding(2)), -1), None),
        ("in", ("int", "list(int)"), (2, (Encoding(1), Encoding(2))), True),
        ("in", ("int", "list(int)"), (3, (Encoding(1), Encoding(2))), False),
        ("in", ("int", "list(int)"), (3, [1, 3]), True),
        ("in", ("int", "map(int, int)"), (3, {1: 3}), False),
        ("in", ("int", "map(int, int)"), (1, {1: 3}), True),
        *(
            (name, ("list(int)", "list(int)"), (one, other), (one == other) is (name == "eq_deep"))
            for name in ("eq_deep", "ne_deep")
            for one in ([], [1], [1, 2])
            for other in ([], [1], [2], [1, 3], [1, 2])
        ),
    ],
)
def test_a_function_of_a_list(function: str, types: tuple[str, ...], given: tuple[Any, ...], expected: Any) -> None:
    """An expected value of None: there is none."""
    found = called(function, "bool" if isinstance(expected, bool) else "int", types, given)
    assert found is not None
    assert (None if found.error is True else found.value) == expected


@pytest.mark.parametrize(
    ("function", "types", "given"),
    [
        ("in", ("list(int)", "list(list(int))"), ([1], [[1]])),
        ("eq_deep", ("map(int, int)", "map(int, int)"), ({}, {})),
        ("eq_deep", ("list(list(int))", "list(list(int))"), ([[1]], [[1]])),
        ("size", ("map(int, int)",), ({},)),
        ("lt", ("string", "string"), ("a", "b")),
        ("lt", ("bool", "bool"), (False, True)),
        ("index_map", ("map(int, int)", "int"), ({}, 1)),
        ("add_double", ("double", "double"), (1.0, 2.0)),
    ],
)
def test_what_is_not_translated(function: str, types: tuple[str, ...], given: tuple[Any, ...]) -> None:
    assert called(function, "bool", types, given) is None


NUMBERS = {
    "int": (0, 1, -3, 2**53, -(2**53), 2**53 + 1, -(2**53) - 1, INT_MAX, INT_MIN),
    "uint": (0, 1, 2**53, 2**53 + 1, UINT_MAX),
    "double": (0.0, 1.0, -3.0, 0.5, 2.0**53, 2.0**63),
}


@pytest.mark.parametrize("name", ["eq", "ne", "lt", "le", "gt", "ge"])
@pytest.mark.parametrize("types", [pair for pair in itertools.product(NUMBERS, repeat=2) if pair[0] != pair[1]])
def test_numbers_of_different_types(name: str, types: tuple[str, str]) -> None:
    """Beside a double, an integer beyond 2^53 is rounded to one, which is not translated."""
    for given in itertools.product(*(NUMBERS[type_] for type_ in types)):
        found = called(f"number_{name}", "bool", types, given)
        if "double" in types and any(type_ != "double" and abs(one) > 2**53 for type_, one in zip(types, given)):
            assert found is None, given
        else:
            assert found is not None
            value = found.value if isinstance(found.value, bool) else z3.is_true(z3.simplify(found.value))
            assert (value, found.error) == (FUNCTIONS[f"number_{name}"](*given), False), given


@pytest.mark.parametrize("place", [0, 1])
def test_nothing_is_made_of_what_is_not_translated(place: int) -> None:
    values: list[Any] = [1, 1]
    values[place] = NOTHING
    assert called("add_int", "int", ("int", "int"), tuple(values)) is None
    for name in ("eq", "lt"):
        one, other = map(Encoding, values)
        assert compared(Problem(), name, "int", one, other) is None


@pytest.mark.parametrize("name", ["eq", "ne"])
def test_a_comparison_fails_where_an_argument_does(name: str) -> None:
    problem = Problem()
    for type_, value in (("int", 1), ("string", "a"), ("bool", True), ("double", 1.5), ("double", float("nan"))):
        for errors in itertools.product((False, True), repeat=2):
            one, other = (Encoding(value, error) for error in errors)
            found = compared(problem, name, type_, one, other)
            assert found is not None
            assert found.error is any(errors), (type_, errors)


@pytest.mark.parametrize("name", sorted(name for name in ("eq", "ne", "lt", "le", "gt", "ge")))
def test_doubles_that_are_not_numbers(name: str) -> None:
    inf, nan = float("inf"), float("nan")
    for special in (inf, -inf, nan):
        for given in ((special, 1.5), (1.5, special), (special, inf), (nan, special)):
            if given[0] == given[1]:
                continue  # both are constant: nothing asks for it
            one, other = map(Encoding, given)
            found = compared(Problem(), name, "double", one, other)
            assert found is not None
            if sum(value in (inf, -inf) or value != value for value in given) == 1:
                assert (found.value, found.error) == (FUNCTIONS[name](*given), False), given


def text_called(function: str, result: str, types: tuple[str, ...], *values: Any) -> Encoding | None:
    """Translate a call in which one text is a term, whose value is None among the values."""
    term = PROBLEM.texts.variable("a text", lambda _text: True)
    given = tuple(Encoding(term if value is None else value) for value in values)
    form = Call((result, 0, 0), function, *(Literal((type_, 0, 0), "") for type_ in types))
    return call(Arguments(PROBLEM, form, given, lambda one: one, lambda: Encoding(NOTHING)))


def test_what_a_function_makes_of_a_text() -> None:
    found = text_called("contains", "string", ("string", "string"), None, "b")
    assert found is not None
    mapped = found.value
    assert isinstance(mapped, TextFunction)
    assert mapped.relation == ("contains", "b")
    assert mapped.total
    assert mapped.constants == ("b",)
    assert (mapped.function("abc"), mapped.function("ac")) == (True, False)
    other = text_called("contains", "string", ("string", "string"), "abc", None)
    assert other is not None
    assert other.value.relation is None  # it is about the other text
    assert (other.value.function("b"), other.value.function("x")) == (True, False)
    assert other.value.key != mapped.key
    partial = text_called("string_to_int", "int", ("string",), None)
    assert partial is not None
    assert not partial.value.total


def test_what_a_function_makes_of_what_another_makes() -> None:
    inner = text_called("lower_ascii", "string", ("string",), None)
    assert inner is not None
    outer = text_called("add_string", "string", ("string", "string"), inner.value, "!")
    assert outer is not None
    assert outer.value.function("AB") == "ab!"
    assert outer.value.total
    assert outer.value.term is inner.value.term
    assert inner.value.key in outer.value.key
    further = text_called("starts_with", "string", ("string", "string"), inner.value, "a")
    assert further is not None
    assert further.value.relation == ("matches", [["a", "^"], ["c", [65, 66, 97, 98]], ["m"]])
    assert outer.value.relation is None
    failing = text_called("char_at", "string", ("string", "int"), inner.value, 1)
    assert failing is not None
    assert not failing.value.total
    total = text_called("lower_ascii", "string", ("string",), failing.value)
    assert total is not None
    assert not total.value.total


def test_comparing_texts_is_left_to_codes() -> None:
    found = text_called("eq", "bool", ("string", "string"), None, "b")
    assert found is not None
    assert not isinstance(found.value, TextFunction)


def test_names_and_tags() -> None:
    inputs = Inputs(Problem(), "2020-07-01")
    resources, tags = inputs.resources, inputs.tags

    def value(function: str, *values: Any) -> Encoding | None:
        types = (
            "list(string)" if one is resources else "map(string, string)" if one is tags else "string" for one in values
        )
        form = Call(("int", 0, 0), function, *(Literal((type_, 0, 0), "") for type_ in types))
        given = tuple(map(Encoding, values))
        return call(Arguments(inputs.problem, form, given, lambda one: one, lambda: Encoding(NOTHING)))

    assert value("size", resources) == Encoding(resources.count, False)
    assert value("size", tags) == Encoding(tags.count, False)
    assert value("index_list", resources, 0) == Encoding(resources.leader(), False)
    assert value("index_list", resources, -1) == Encoding(0, True)
    assert value("index_list", resources, 1) is None
    assert value("in", "vm_1", resources) == Encoding(resources.has("vm_1"), False)
    there, tag = tags.tag("role")
    assert value("in", "role", tags) == Encoding(there, False)
    assert value("index_map", tags, "role") == Encoding(tag, neg(there))
    name = inputs.own_name
    assert value("in", name, tags) is None
    assert value("index_map", tags, name) is None


def test_a_product_of_two_terms_is_not_translated() -> None:
    one, other = PROBLEM.integer("one"), PROBLEM.integer("other")
    assert called("mul_int", "int", ("int", "int"), (one, other)) is None
    for values in ((one, 2), (2, one)):
        found = called("mul_int", "int", ("int", "int"), values)
        assert found is not None
        assert found.value.num_args() == 2


@pytest.mark.parametrize("function", ["div_int", "mod_int", "div_uint", "mod_uint"])
def test_unknown_divisor_may_be_zero_or_not(function: str) -> None:
    problem = Problem()
    type_ = function.partition("_")[2]
    divisor = problem.integer("divisor")
    form = Call((type_, 0, 0), function, Literal((type_, 0, 0), 0), Literal((type_, 0, 0), 0))

    for dividend, by, fails in (
        *((1, 0, True), (1, 1, False), (1, -1, False), (INT_MIN, 1, False)),
        *((INT_MIN, -1, type_ == "int"), (INT_MIN + 1, -1, False)),
    ):
        given = (Encoding(dividend), Encoding(divisor))
        found = call(Arguments(problem, form, given, lambda one: one, lambda: Encoding(problem.integer("any"))))
        assert found is not None
        solver = z3.SimpleSolver(ctx=problem.context)
        solver.add(divisor == by)
        assert (solver.check(found.error) == z3.sat) is fails, (dividend, by)
        assert solver.check(found.value == 12345) == z3.sat


def test_functions_that_always_have_a_value() -> None:
    """No function of which some arguments have no value is called total."""
    assert not TOTAL & {name for name in FUNCTIONS if name.startswith(("add_int", "sub_int", "div_int", "index_"))}
    assert not TOTAL & {"string_to_int", "string_to_double", "string_to_duration", "string_to_timestamp", "substring"}
