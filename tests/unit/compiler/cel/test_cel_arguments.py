# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""No function ignores an argument: of each one some value changes the answer, and an error in it is an error."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from forewarn.compiler.cel import types as t
from forewarn.compiler.cel.expression import compile_expression
from forewarn.compiler.cel.types import Type
from forewarn.policy.evaluation_error import EvaluationError
from forewarn.policy.functions.overloads import METHODS
from forewarn.policy.functions.timevalues import SECOND
from tools.generators.cel_calls import Call, overload_calls

TEXTS = ["aba", "a", "b", "", "1", "true", "Europe/Berlin", "+05:45", "No/Zone", "2026-01-31T12:00:00Z", "9s"]
LIST, TABLE = t.list_of(t.STRING), t.map_of(t.STRING, t.INT)
SAMPLES: Mapping[Type, Sequence[Any]] = {
    t.BOOL: [True, False],
    t.INT: [0, 1, 2, -1, 2**63 - 1],
    t.UINT: [0, 1, 2, 2**64 - 1],
    t.DOUBLE: [0.0, 1.5, -2.0, float("inf"), float("nan")],
    t.STRING: TEXTS,
    t.BYTES: [b"", b"a", b"\xff"],
    t.TIMESTAMP: [0, 1_769_860_800 * SECOND + 123_456_789, -1, 1_782_900_000 * SECOND],
    t.DURATION: [0, 5400 * SECOND, -1, 2**63 - 1],
    LIST: [[], ["a"], ["a", "b"]],
    TABLE: [{}, {"a": 1}, {"a": 2, "b": 1}],
}
MORE_CALLS = [
    Call("x0 in x1", (t.STRING, LIST)),
    Call("x0 in x1", (LIST, t.list_of(LIST))),
    Call("x0 in x1", (t.STRING, TABLE)),
    Call("x0[x1]", (LIST, t.INT)),
    Call("x0[x1]", (TABLE, t.STRING)),
    Call("x0 + x1", (LIST, LIST)),
    Call("x0.join(x1)", (LIST, t.STRING)),
    Call("x0.join()", (LIST,)),
    Call("x0 ? x1 : x2", (t.BOOL, t.INT, t.INT)),
]


def _samples(type_: Type) -> Sequence[Any]:
    if type_ in SAMPLES:
        return SAMPLES[type_]
    inner = _samples(type_.of[-1])
    return [[], *([item] for item in inner)] if type_.kind == "list" else [{}, *({"a": item} for item in inner)]


@pytest.mark.parametrize(
    "call", [*overload_calls(), *MORE_CALLS], ids=lambda call: f"{call.source}-{'-'.join(map(str, call.types))}"
)
def test_no_argument_is_ignored(call: Call) -> None:
    expression = compile_expression(call.source, call.variables)
    answers: dict[tuple[int, ...], str] = {}
    for places in itertools.product(*(range(len(_samples(type_))) for type_ in call.types)):
        values = {name: _samples(type_)[place] for (name, type_), place in zip(call.variables.items(), places)}
        try:
            answers[places] = repr(expression(values))
        except EvaluationError:
            answers[places] = "error"
    for argument in range(len(call.types)):
        others: dict[tuple[int, ...], set[str]] = {}
        for places, answer in answers.items():
            others.setdefault(places[:argument] + places[argument + 1 :], set()).add(answer)
        assert any(len(found) > 1 for found in others.values()), f"argument {argument} of {call.source} changes nothing"


@pytest.mark.parametrize("accessor", [name for name in METHODS if name.startswith("get")])
@pytest.mark.parametrize("zone", ["", "Nowhere/Land", "europe/berlin", "+25:00", "+24:00", "2:00", "localtime", "Z"])
def test_unknown_zone_is_an_error_of_every_accessor(accessor: str, zone: str) -> None:
    expression = compile_expression(f"now.{accessor}(zone) >= 0", {"now": t.TIMESTAMP, "zone": t.STRING}, t.BOOL)
    with pytest.raises(EvaluationError, match=r"zone|offset"):
        expression({"now": 1_769_860_800 * SECOND, "zone": zone})
    assert expression({"now": 1_769_860_800 * SECOND, "zone": "Europe/Berlin"}) is True


@pytest.mark.parametrize("accessor", [name for name in METHODS if name.startswith("get")])
def test_zone_beyond_the_calendar_is_an_error(accessor: str) -> None:
    """Every accessor refuses a time that the zone's offset moves out of range."""
    expression = compile_expression(f"now.{accessor}('-08:00') >= 0", {"now": t.TIMESTAMP})
    with pytest.raises(EvaluationError, match="out of range"):
        expression({"now": -62_135_596_800 * SECOND})
