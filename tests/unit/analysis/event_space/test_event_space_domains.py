# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values of the dimensions of the event space: intervals, the values that stand for them, and their words."""

from __future__ import annotations

import math
import sys
from typing import Any

import pytest
from forewarn.analysis.event_space.domains import (
    LONGEST,
    MISSING,
    after,
    duration_text,
    intervals,
    merged_range,
    quoted,
    show,
    texts,
)

SECOND = 10**9
MAX_DOUBLE = sys.float_info.max
MINUTE, HOUR = 60 * SECOND, 3600 * SECOND


@pytest.mark.parametrize(
    ("kind", "cuts", "low", "high", "expected"),
    [
        ("int", [], 0, 9, [(0, 9)]),
        ("int", [5], 0, 9, [(0, 4), (5, 9)]),
        ("int", [5, 6, 5], 0, 9, [(0, 4), (5, 5), (6, 9)]),
        ("int", [0, 10, -1], 0, 9, [(0, 9)]),
        ("int", [9], 0, 9, [(0, 8), (9, 9)]),
        ("int", [5], None, None, [(None, 4), (5, None)]),
        ("double", [0.5], 0.0, 1.0, [(0.0, math.nextafter(0.5, 0.0)), (0.5, 1.0)]),
    ],
)
def test_intervals_have_no_gaps(kind: str, cuts: list[Any], low: Any, high: Any, expected: list[Any]) -> None:
    found = intervals(kind, cuts, low, high, 1, fine=True)
    assert [(value.low, value.high) for value in found] == expected
    for value in found:
        assert value.low is None or value.low <= value.concrete
        assert value.high is None or value.concrete <= value.high


@pytest.mark.parametrize("kind", ["int", "double", "duration", "timestamp"])
@pytest.mark.parametrize(("low", "high"), [(0, 10**6), (3, 5), (None, 0), (None, 7), (7, None), (None, None), (-9, -2)])
def test_interval_has_as_many_values_as_slots(kind: str, low: Any, high: Any) -> None:
    scale: Any = {"int": 1, "double": 1.0}.get(kind, SECOND)
    low, high = (None if one is None else one * scale for one in (low, high))
    for slots in (1, 2, 3):
        found = [value.concrete for value in intervals(kind, [], low, high, slots, fine=True)]
        assert found == sorted(set(found))
        assert len(found) == slots
        assert all((low is None or low <= one) and (high is None or one <= high) for one in found)


@pytest.mark.parametrize(
    ("kind", "low", "high", "expected"),
    [
        ("duration", 1_200_000, 3_900_000, 2_000_000),
        ("duration", 0, HOUR, MINUTE),
        ("duration", SECOND // 8, SECOND // 4, SECOND // 5),
        ("int", 0, 9, 5),
        ("double", -MAX_DOUBLE, 0.5, 0.5),
        ("double", -MAX_DOUBLE, MAX_DOUBLE, 0.0),
    ],
)
def test_a_value_is_easy_to_read(kind: str, low: Any, high: Any, expected: Any) -> None:
    (found,) = intervals(kind, [], low, high, 1, fine=True)
    assert found.concrete == expected


def test_fewer_values_where_an_interval_has_no_more() -> None:
    assert [value.concrete for value in intervals("int", [], 3, 4, 3, fine=True)] == [3, 4]
    assert [value.concrete for value in intervals("duration", [], 1, 2, 1, fine=True)] == [1]
    assert intervals("duration", [], 1, 2, 1, fine=False) == ()
    assert [value.concrete for value in intervals("duration", [], 2500, 3500, 1, fine=True)] == [3000]


def test_values_that_are_easy_to_read() -> None:
    assert [value.concrete for value in intervals("int", [], 0, 100, 1, fine=True)] == [5]
    assert [value.concrete for value in intervals("duration", [], 0, HOUR, 1, fine=True)] == [MINUTE]
    assert [value.concrete for value in intervals("duration", [], 1, HOUR, 2, fine=True)] == [MINUTE, 2 * MINUTE]
    assert [value.concrete for value in intervals("duration", [], 61 * SECOND, 90 * SECOND, 1, fine=True)] == [
        61 * SECOND
    ]


@pytest.mark.parametrize(
    ("kind", "low", "high", "words"),
    [
        ("int", 3, 3, "3"),
        ("int", 3, 9, "3..9"),
        ("int", None, 9, "..9"),
        ("int", 3, 2**63 - 1, "3.."),
        ("int", -(2**63), 2**63 - 1, "any"),
        ("duration", 0, 5 * MINUTE - 1, "below 5m"),
        ("duration", 0, 5 * MINUTE, "at most 5m"),
        ("duration", 5 * MINUTE, LONGEST, "5m or more"),
        ("duration", 5 * MINUTE + 1, LONGEST, "above 5m"),
        ("duration", MINUTE, 5 * MINUTE - 1, "1m or more and below 5m"),
        ("duration", 0, LONGEST, "0s or more"),
        ("duration", -LONGEST, LONGEST, "any"),
        ("timestamp", 0, SECOND - 1, "1970-01-01T00:00:00Z or more and below 1970-01-01T00:00:01Z"),
    ],
)
def test_an_interval_in_words(kind: str, low: Any, high: Any, words: str) -> None:
    (value,) = intervals(kind, [], low, high, 1, fine=True)
    assert value.label == words
    assert merged_range(kind, [value]) == words
    assert value.interval is (low != high)


def test_several_values_of_an_interval_in_words() -> None:
    assert [value.label for value in intervals("int", [], 0, 9, 2, fine=True)] == ["0..9 (0)", "0..9 (1)"]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0, "0s"),
        (5 * SECOND, "5s"),
        (-90 * SECOND, "-1m30s"),
        (HOUR, "1h"),
        (HOUR + MINUTE + SECOND, "1h1m1s"),
        (2 * HOUR + 5 * SECOND, "2h5s"),
        (1, "0.000000001s"),
    ],
)
def test_a_duration_in_words(value: int, words: str) -> None:
    assert duration_text(value) == words
    assert show("duration", value) == words


def test_values_of_a_text() -> None:
    found = texts(["a", "b"], ["b", "c"], True, literal=False, other=False)
    assert [(value.label, value.concrete, value.normal) for value in found] == [
        *(("a", "a", True), ("b", "b", True), ("c", "c", False)),
        *(("any other", "Other", False), ("missing", MISSING, True)),
    ]
    assert [value.label for value in texts([], [], None)] == ["any other"]
    assert texts([], ["other"], None)[-1].concrete == "Other2"
    assert [value.normal for value in texts([], [], False)] == [True, False]


def test_the_next_value() -> None:
    assert after(1) == 2
    assert after(0.5) == math.nextafter(0.5, 1.0)


def test_texts_in_quotes() -> None:
    assert [quoted(text) for text in ("a-1", "missing", "a b", "")] == ["a-1", "'missing'", "'a b'", "''"]
    assert show("string", "a b") == "'a b'"
    assert show("int", 3) == "3"
