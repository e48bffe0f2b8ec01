# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Typed forms: what JSON stands for, and what is refused where."""

from __future__ import annotations

from typing import Any

import pytest
from forewarn.policy.forms import Call, Field, Literal, read_form

EVENT = ["var", "record(event)", 0, 5, "event"]
FIELD = ["field", "string", 0, 12, EVENT, "EventId"]
LITERAL = ["lit", "string", 16, 19, "x"]
EQUAL = ["call", "bool", 0, 19, "eq", FIELD, LITERAL]


def test_a_form_has_named_parts() -> None:
    form = read_form(EQUAL)
    assert isinstance(form, Call)
    assert (form.function, form.type, form.start, form.end) == ("eq", "bool", 0, 19)
    field, literal = form.arguments
    assert isinstance(field, Field)
    assert (field.record, field.name) == ("event", "EventId")
    assert isinstance(literal, Literal)
    assert literal.value == "x"
    assert form.parts == (field, literal)


def test_a_variable_that_is_known_becomes_a_literal() -> None:
    form = read_form(["var", "string", 0, 8, "decision"], variables={"decision": "hold"})
    assert isinstance(form, Literal)
    assert (form.value, form.type, form.end) == ("hold", "string", 8)


@pytest.mark.parametrize(
    ("form", "message"),
    [
        (None, "x is not a form"),
        (["lit", "bool", 0], "x is not a form"),
        (["__init__", "bool", 0, 1], "x is not a form"),
        (["lit", "bool", True, 1, True], "x is not a form with a type and its place in the source"),
        (["lit", "bool", 0, 1], "x is not a form lit with its operands"),
        (["lit", "bool", 0, 1, []], r"x\[4\] is not a literal"),
        (["call", "bool", 0, 1], "x is not a form call with its operands"),
        ([*EQUAL[:5], FIELD, ["local", "string", 0, 1, "0"]], r"x\[6\]\[4\] is not of type int"),
        ([*FIELD[:4], LITERAL, 5], r"x\[5\] is not of type str"),
        (["map_list", "list(int)", 0, 1, 0, FIELD, "filter", LITERAL], r"x\[6\] is not a form"),
        (["bytes", "bytes", 0, 1, "xyz"], "hexadecimal"),
    ],
)
def test_invalid_form_is_refused_with_its_place(form: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_form(form, "x")
