# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parameters: a value of the wrong type or beyond its limits is an error that names policy and parameter."""

from __future__ import annotations

from typing import Any

import pytest
from forewarn.errors import InputError
from forewarn.policy.functions import timevalues as tv
from forewarn.policy.params import TYPES, bind, convert, parse_text
from hypothesis import given, settings
from hypothesis import strategies as st
from tools.suite.sizes import examples

RIGHT: dict[str, list[tuple[Any, Any]]] = {
    "bool": [(True, True), (False, False)],
    "int": [(0, 0), (-(2**63), -(2**63)), (2**63 - 1, 2**63 - 1)],
    "double": [(1.5, 1.5), (2, 2.0), (-0.0, -0.0)],
    "string": [("", ""), ("é😀", "é😀"), ("5m", "5m")],
    "duration": [("5m", 300 * tv.SECOND), ("-1.5s", -1_500_000_000), ("0", 0)],
    "timestamp": [("1970-01-01T00:00:01Z", tv.SECOND), ("1970-01-01T01:00:00+01:00", 0)],
    "list(string)": [([], []), (["a"], ["a"]), (("a", "b"), ["a", "b"])],
    "list(int)": [([], []), ([1, -2], [1, -2])],
    "map(string, string)": [({}, {}), ({"a": "b"}, {"a": "b"})],
}
WRONG: dict[str, list[Any]] = {
    "bool": [0, 1, "true", None, [], 0.0],
    "int": [True, 1.0, "1", None, 2**63, -(2**63) - 1, [1], float("nan")],
    "double": [True, "1.5", None, float("nan"), float("inf"), -float("inf"), 10**400, [1.5]],
    "string": [1, None, True, ["a"], {"a": 1}, "half \ud800"],
    "duration": [5, "5", "1d", "", None, 5.0, "9223372037s", True],
    "timestamp": ["2026-01-31", 5, None, "", "Mon, 19 Sep 2016 18:29:47 GMT"],
    "list(string)": ["a", [1], [None], None, {"a": "b"}, [["a"]]],
    "list(int)": ["1", [1.0], [True], ["1"], 1, None],
    "map(string, string)": [[], {"a": 1}, {1: "a"}, None, "a", {"a": None}],
}


def test_every_type_is_tested() -> None:
    assert set(RIGHT) == set(WRONG) == set(TYPES)


@pytest.mark.parametrize(("type_name", "given_value", "value"), [(k, *pair) for k in RIGHT for pair in RIGHT[k]])
def test_value_of_the_type_is_taken(type_name: str, given_value: Any, value: Any) -> None:
    converted = convert(given_value, type_name)
    assert converted == value
    assert type(converted) is type(value)
    assert bind([{"name": "p", "type": type_name}], {"p": given_value}, "web") == {"p": value}


@pytest.mark.parametrize(("type_name", "value"), [(k, value) for k in WRONG for value in WRONG[k]])
def test_value_of_another_type_is_refused(type_name: str, value: Any) -> None:
    with pytest.raises(InputError, match="parameter p of policy web: "):
        bind([{"name": "p", "type": type_name, "default": RIGHT[type_name][0][0]}], {"p": value}, "web")
    with pytest.raises(InputError, match="parameter p of policy web: "):  # the default is not trusted either
        bind([{"name": "p", "type": type_name, "default": value}], {}, "web")


def test_given_value_overrides_the_default() -> None:
    entry = {"name": "p", "type": "int", "default": 1}
    assert bind([entry], {}, "web") == {"p": 1}
    assert bind([entry], {"p": 2, "other": 3}, "web") == {"p": 2}
    with pytest.raises(InputError, match="parameter p of policy web has no default"):
        bind([{"name": "p", "type": "int"}], {}, "web")


@pytest.mark.parametrize(
    ("limits", "right", "wrong"),
    [
        ({"type": "int", "min": 1, "max": 3}, [1, 3], [0, 4]),
        ({"type": "double", "min": 0.5}, [0.5, 1], [0.4]),
        ({"type": "duration", "min": "1s", "max": "1m"}, ["1s", "60s"], ["0s", "61s", "-1s"]),
        ({"type": "timestamp", "max": "2026-01-01T00:00:00Z"}, ["2026-01-01T00:00:00Z"], ["2026-01-01T00:00:01Z"]),
        ({"type": "string", "enum": ["a", "b"]}, ["a", "b"], ["c", ""]),
        ({"type": "duration", "enum": ["60s"]}, ["1m"], ["2m"]),
        ({"type": "list(string)", "enum": [["a"], []]}, [["a"], []], [["b"]]),
    ],
)
def test_limits(limits: dict[str, Any], right: list[Any], wrong: list[Any]) -> None:
    for value in right:
        bind([{"name": "p", **limits}], {"p": value}, "web")
    for value in wrong:
        with pytest.raises(InputError, match=r"parameter p of policy web: is (less|more|not one of)"):
            bind([{"name": "p", **limits}], {"p": value}, "web")


def test_pattern_is_checked_before_it_is_used() -> None:
    declaration = {"name": "p", "type": "string", "pattern": True}
    assert bind([declaration], {"p": "web-[0-9]+"}, "web") == {"p": "web-[0-9]+"}
    with pytest.raises(InputError, match="parameter p of policy web: is not a pattern"):
        bind([declaration], {"p": "web-("}, "web")
    assert bind([{**declaration, "pattern": False}], {"p": "web-("}, "web") == {"p": "web-("}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@given(st.sampled_from(TYPES), JSON, JSON, JSON, st.lists(JSON, max_size=2) | st.none())
@settings(max_examples=examples(400), deadline=None)
def test_no_declaration_and_no_value_raises_anything_else(
    type_name: str, value: Any, low: Any, high: Any, enum: Any
) -> None:
    declaration = {"name": "p", "type": type_name, "min": low, "max": high, "enum": enum}
    for limits in ((), ("min",), ("max",), ("enum",)):
        kept = {key: item for key, item in declaration.items() if key in ("name", "type") or key in limits}
        try:
            bound = bind([kept], {"p": value}, "web")
        except InputError:
            continue
        assert bound["p"] == convert(value, type_name)


def test_texts_of_a_command_line() -> None:
    assert parse_text("5m", "duration") == "5m"
    assert parse_text("5", "string") == "5"
    assert parse_text("5", "int") == 5
    assert parse_text('["a"]', "list(string)") == ["a"]
    for text in ("", "{", "a", "1" * 5000, "[" * 100_000):
        with pytest.raises(ValueError, match="is not of type int; write it as JSON"):
            parse_text(text, "int")
