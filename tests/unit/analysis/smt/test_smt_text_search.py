# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Texts of which functions have given results: those that are found have them, and none is denied that there is."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from forewarn.analysis.smt.decode.text_search import Conflict, TextConstraint, find_texts, images
from forewarn.analysis.smt.encode.text_functions import TextFunction, follows, has_spellings
from forewarn.policy.evaluation_error import EvaluationError
from forewarn.policy.functions.patterns import compile_pattern
from forewarn.policy.functions.regex import compile_program
from hypothesis import given
from hypothesis import strategies as st

FUNCTIONS: dict[str, Callable[[str, str], bool]] = {
    "starts_with": str.startswith,
    "ends_with": str.endswith,
    "contains": lambda text, part: part in text,
}


def relation(kind: str, part: str) -> TextFunction:
    return TextFunction(
        None, f"{kind}({part!r})", lambda text: FUNCTIONS[kind](text, part), "bool", (part,), (kind, part), True
    )


def size() -> TextFunction:
    return TextFunction(None, "size", len, "int", total=True)


def number() -> TextFunction:
    def function(text: str) -> int:
        if not text.isdigit():
            raise EvaluationError("no number")
        return int(text)

    return TextFunction(None, "int", function, "int")


def lower() -> TextFunction:
    return TextFunction(None, "lower", str.lower, "string", total=True)


def wanted(
    *results: tuple[TextFunction, Any], name: bool = False, allowed: Callable[[str], bool] | None = None, **group: Any
) -> TextConstraint:
    """Return what has certain results; FAILS for none."""
    given = {mapped.key: (mapped, value is FAILS, None if value is FAILS else value) for mapped, value in results}
    return TextConstraint(name, [] if allowed is None else [allowed], given, **group)


FAILS = object()


def one(asked: TextConstraint, known: Sequence[str] = ()) -> str | Conflict:
    found = find_texts({-1: asked}, known)
    return found if isinstance(found, Conflict) else found[-1]


@pytest.mark.parametrize(
    ("results", "right"),
    [
        ([], lambda _text: True),
        ([(relation("starts_with", "web"), True)], lambda text: text.startswith("web")),
        (
            [(relation("starts_with", "web"), True), (relation("ends_with", "bad"), True)],
            lambda text: text[:3] == "web" and text[-3:] == "bad",
        ),
        ([(relation("contains", "b"), True), (relation("starts_with", "b"), False)], lambda text: "b" in text[1:]),
        ([(size(), 0)], lambda text: text == ""),
        ([(size(), 7)], lambda text: len(text) == 7),
        (
            [(size(), 7), (relation("starts_with", "web"), True), (relation("ends_with", "x"), True)],
            lambda text: len(text) == 7,
        ),
        ([(size(), 4096)], lambda text: len(text) == 4096),
        ([(number(), 42)], lambda text: int(text) == 42),
        ([(number(), FAILS), (size(), 1)], lambda text: not text.isdigit() and len(text) == 1),
    ],
)
def test_a_text_has_the_results(results: list[tuple[TextFunction, Any]], right: Callable[[str], bool]) -> None:
    found = one(wanted(*results))
    assert isinstance(found, str)
    assert right(found)


def test_found_text_differs_from_known_in_any_case() -> None:
    first = one(wanted())
    assert isinstance(first, str)
    second = one(wanted(), [first.upper()])
    assert isinstance(second, str)
    assert second.lower() != first.lower()


def test_a_text_is_allowed() -> None:
    assert one(wanted(allowed=lambda text: text == "z9")) == "z9"
    assert one(wanted(name=True)) == "vm_0"
    assert one(wanted(name=True), ["VM_0"]) == "vm_1"


def test_missing_text_is_proven_by_excluding_results() -> None:
    long, short, other = relation("starts_with", "web"), relation("starts_with", "we"), relation("contains", "q")
    found = one(wanted((long, True), (short, False), (other, True)))
    assert isinstance(found, Conflict)
    assert {(mapped.key, result) for mapped, _fails, result in found.core} == {
        (long.key, True),
        (short.key, False),
    }
    assert found.code == -1


@pytest.mark.parametrize(
    "results",
    [
        [(relation("starts_with", "\\u{41}"), True), (relation("contains", "\\u"), False)],
        [(relation("starts_with", "a\U00030000"), True), (relation("starts_with", "a"), False)],
        [(size(), -1)],
        [(number(), -5)],
    ],
)
def test_that_no_text_was_found_proves_nothing(results: list[tuple[TextFunction, Any]]) -> None:
    found = one(wanted(*results))
    assert isinstance(found, Conflict)
    assert found.core == ()


@pytest.mark.parametrize("other", [(size(), 5), (number(), FAILS)])
def test_proof_uses_only_results_known_to_z3(other: tuple[TextFunction, Any]) -> None:
    long, short = relation("starts_with", "web"), relation("starts_with", "we")
    found = one(wanted((long, True), other, (short, False)))
    assert isinstance(found, Conflict)
    assert {mapped.key for mapped, _fails, _result in found.core} == {long.key, short.key}


def test_last_failed_condition_is_checked_first() -> None:
    looked: list[str] = []

    def seen(key: str, fits: Callable[[str], bool]) -> TextFunction:
        def function(text: str) -> bool:
            looked.append(key)
            return fits(text)

        return TextFunction(None, key, function, "bool", total=True)

    one_, other = seen("any", lambda text: True), seen("short", lambda text: len(text) < 3)
    text = wanted((one_, True), (other, True))
    assert [text.fits(each) for each in ("long", "longer", "ab")] == [False, False, True]
    assert looked == ["any", "short", "short", "short", "any"]


def test_z3_finds_what_no_candidate_is() -> None:
    excluded = [relation("contains", text) for text in ("x", "0", "_", "A", "-", " ", "z9", "é", "other", "ba")]
    found = one(wanted((relation("starts_with", "ab"), True), *((mapped, False) for mapped in excluded)), ["ab"])
    assert isinstance(found, str)
    assert found.startswith("ab")
    assert found != "ab"
    assert not any(FUNCTIONS["contains"](found, text) for text in ("x", "0", "_", "A", "-", " ", "z9", "é"))


def test_texts_are_as_different_as_their_numbers() -> None:
    found = find_texts({number: wanted() for number in (-1, -2, -3)}, ["other"])
    assert isinstance(found, dict)
    assert len({text.lower() for text in (*found.values(), "other")}) == 4


@pytest.mark.parametrize("name", ["vm", "VM", "É", "straße", "a1"])
def test_a_name_in_another_case(name: str) -> None:
    found = one(wanted(name=True, group=7, like=name), [name])
    assert isinstance(found, str)
    assert found != name
    assert found.lower() == name.lower()
    assert has_spellings(name)


@pytest.mark.parametrize("name", ["7", "_", "", "1-2"])
def test_a_name_that_has_no_other_case(name: str) -> None:
    assert not has_spellings(name)
    found = one(wanted(name=True, group=7, like=name), [name])
    assert isinstance(found, Conflict)
    assert found.core == ()


def test_every_spelling_of_a_name_is_tried() -> None:
    assert one(wanted(name=True, group=7, like="ab"), ["ab", "AB", "Ab"]) == "aB"


def test_names_of_one_group_differ_in_case_only() -> None:
    found = find_texts(
        {-1: wanted(name=True, group=1), -2: wanted(name=True, group=1), -3: wanted(name=True, group=2)}, []
    )
    assert isinstance(found, dict)
    assert found[-1] != found[-2]
    assert found[-1].lower() == found[-2].lower() != found[-3].lower()


def test_new_name_resembles_no_known_name() -> None:
    found = find_texts({-1: wanted(name=True, group=1)}, ["VM_0"])
    assert isinstance(found, dict)
    assert found[-1].lower() != "vm_0"


def test_texts_that_functions_make_of_others() -> None:
    found = find_texts({-1: wanted(), -2: wanted()}, [], {-1: [(lower(), -2)]})
    assert isinstance(found, dict)
    assert found[-2] == found[-1].lower() != found[-1]
    itself = find_texts({-1: wanted()}, [], {-1: [(lower(), -1)]})
    assert isinstance(itself, dict)
    assert itself[-1] == itself[-1].lower()


def test_arguments_are_found_before_their_results() -> None:
    longer = TextFunction(None, "longer", lambda text: text + "!", "string", total=True)
    for makes, made in ((-1, -2), (-2, -1)):
        found = find_texts({-1: wanted(), -2: wanted()}, [], {makes: [(longer, made)]})
        assert isinstance(found, dict)
        assert found[made] == found[makes] + "!"


def test_result_of_a_text_has_its_own_conditions() -> None:
    made = {-1: [(lower(), -2)]}
    found = find_texts({-1: wanted(), -2: wanted((relation("starts_with", "X"), True))}, [], made)
    assert isinstance(found, Conflict)
    assert found.core == ()
    assert found.code == -2
    both = find_texts({-1: wanted(), -2: wanted(), -3: wanted()}, [], {-1: [(lower(), -3)], -2: [(lower(), -3)]})
    if isinstance(both, dict):
        assert both[-1] != both[-2]
        assert both[-1].lower() == both[-2].lower() == both[-3]


def test_what_a_function_makes() -> None:
    found = images(lower(), ["The Host"])
    assert "the host" in found
    assert all(text == text.lower() for text in found)
    fails = TextFunction(None, "first", lambda text: _first(text), "string", ("ab",))
    assert "a" in images(fails, [])


def _first(text: str) -> str:
    if not text:
        raise EvaluationError("no letter")
    return text[0]


@pytest.mark.parametrize("members", [2, 5, 14, 40])
def test_many_names_may_differ_in_case_only(members: int) -> None:
    names = {-number: TextConstraint(True, group=1) for number in range(1, members + 1)}
    found = find_texts(names, ["web"])
    assert not isinstance(found, Conflict)
    assert len(set(found.values())) == members
    assert len({text.lower() for text in found.values()}) == 1


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("value", [-7, 0, 12, 2**63 - 1])
def test_text_with_a_numeric_part_is_found(place: int, value: int) -> None:
    def function(text: str) -> int:
        try:
            return int(text.split("_")[place])
        except (ValueError, IndexError) as error:
            raise EvaluationError("no number") from error

    text = one(wanted((TextFunction(None, "int", function, "int", ("_",)), value), name=True))
    assert isinstance(text, str)
    assert function(text) == value


PARTS = st.text("ab", max_size=3)
RELATIONS = st.builds(relation, st.sampled_from(sorted(FUNCTIONS)), PARTS)
TEXTS = ["".join(letters) for size in range(7) for letters in itertools.product("abc", repeat=size)]


@given(RELATIONS, RELATIONS)
def test_implied_relation_has_no_counterexample(first: TextFunction, second: TextFunction) -> None:
    """Among texts of six letters, and one that no part has, there is a counterexample wherever there is any."""
    never_otherwise = all(second.function(text) for text in TEXTS if first.function(text))
    assert never_otherwise or not follows(first, second)
    if first.relation and first.relation[1] and never_otherwise and second.relation and second.relation[1]:
        assert follows(first, second)


def pattern(text: str) -> TextFunction:
    program = compile_pattern(text)
    return TextFunction(None, text, compile_program(program), "bool", (), ("matches", program), True)


def test_a_search_costs_what_z3_spends_on_it() -> None:
    spent: list[float] = []
    asked = wanted(*((pattern(f"^[a-f]{{3,{n + 3}}}[0-9]$"), n > 3) for n in range(8)))
    found = find_texts({-1: asked}, [], spend=spent.append)
    assert isinstance(found, dict)
    assert re.fullmatch("[a-f]{7}[0-9]", found[-1])
    assert 10_000 < sum(spent) < 4_000_000
