# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Texts as codes: what the solver knows of them, and the texts that are found for a model."""

from __future__ import annotations

import itertools
from random import Random
from typing import Any

import pytest
import z3  # type: ignore[import-untyped]  # has no types
from forewarn.analysis.smt.decode.model_texts import BlockingClause, FoundTexts, Lemma, ModelTexts
from forewarn.analysis.smt.decode.model_values import ModelValues
from forewarn.analysis.smt.encode.problem import Problem
from forewarn.analysis.smt.encode.text_functions import TextFunction
from forewarn.analysis.smt.terms import Formula, neg
from forewarn.policy.evaluation_error import EvaluationError, LimitError
from forewarn.policy.functions.patterns import compile_pattern
from tools.judges.smt_facts import Facts, facts_of
from tools.suite.sizes import SEED


def anything(problem: Problem, name: str = "text") -> Any:
    return problem.texts.variable(name, lambda _text: True)


def mapped(
    term: Any, name: str, function: Any, type_: str = "bool", *, total: bool = True, relation: Any = None
) -> TextFunction:
    return TextFunction(term, name, function, type_, (), relation, total)


def first(text: str) -> str:
    if not text:
        raise EvaluationError("no letter")
    return text[0]


def test_each_text_has_a_code() -> None:
    texts = Problem().texts
    assert [texts.code(text) for text in ("a", "b", "a")] == [0, 1, 0]
    term = anything(Problem())
    assert texts.code(term) is term


def test_text_is_known_or_another() -> None:
    problem = Problem()
    text = anything(problem)
    for known in "ab":
        problem.texts.code(known)
    facts = Facts(problem)
    assert [code for code in range(-2, 4) if facts.possible(text == code)] == [-2, -1, 0, 1]
    assert facts.certain(problem.texts.is_unknown(text), text == -1)
    assert facts.certain(neg(problem.texts.is_unknown(text)), text == 0)


def test_a_text_is_allowed() -> None:
    problem = Problem()
    text = problem.texts.variable("text", lambda text: text != "b")
    for known in "ab":
        problem.texts.code(known)
    facts = Facts(problem)
    assert facts.possible(text == 0)
    assert not facts.possible(text == 1)
    assert facts.possible(text == -1)
    assert problem.texts.variable("text", bool) is text


def test_what_a_function_makes_of_a_known_text() -> None:
    problem = Problem()
    text = anything(problem)
    codes = {known: problem.texts.code(known) for known in ("", "ab", "b")}
    size, size_error = problem.texts.apply(mapped(text, "size", len, "int"))
    letter, letter_error = problem.texts.apply(mapped(text, "first", first, "string", total=False))
    ends, _error = problem.texts.apply(mapped(text, "ends", lambda text: text.endswith("b")))
    facts = Facts(problem)
    code = problem.texts.code
    assert size_error is False
    for known, number in codes.items():
        assert facts.certain(size == len(known), text == number)
        assert facts.certain(ends if known.endswith("b") else neg(ends), text == number)
    assert facts.certain(letter_error, text == codes[""])
    assert facts.certain(neg(letter_error), text == codes["ab"])
    assert facts.certain(letter == code("a"), text == codes["ab"])  # which nothing mentions
    assert facts.certain(letter == codes["b"], text == codes["b"])
    assert not facts.possible(text == -1, letter == 99)  # it is a known text, or another
    for value in (0, 1, 7):
        assert facts.possible(text == -1, size == value)


def test_function_beyond_its_limit_is_unknown() -> None:
    def function(_text: str) -> bool:
        raise LimitError("too long")

    problem = Problem()
    text = anything(problem)
    problem.texts.code("a")
    value, error = problem.texts.apply(mapped(text, "limit", function, total=False))
    facts = Facts(problem)
    assert facts.possible(text == 0, value, neg(error))
    assert facts.possible(text == 0, neg(value), neg(error))


def test_texts_are_exact_unless_a_function_makes_others() -> None:
    problem = Problem()
    text = anything(problem)
    problem.texts.apply(mapped(text, "size", len, "int"))
    assert problem.texts.exact
    problem.texts.apply(mapped(text, "lower", str.lower, "string"))
    assert not problem.texts.exact


def test_texts_that_are_the_same_but_for_case() -> None:
    problem = Problem()
    text = anything(problem)
    codes = {known: problem.texts.code(known) for known in ("vm", "VM", "db", "7")}
    fold = problem.texts.fold
    assert fold("vm") == fold("VM") != fold("db")
    folded = fold(text)
    facts = Facts(problem)
    for known, code in codes.items():
        assert facts.certain(folded == fold(known), text == code)
    assert facts.possible(folded == fold("vm"), text == -1)  # Vm
    assert not facts.possible(folded == fold("7"), text == -1)  # there is no other
    assert facts.certain(text == codes["7"], folded == fold("7"))


def test_facts_are_given_once() -> None:
    problem = Problem()
    text = anything(problem)
    problem.texts.code("a")
    problem.texts.apply(mapped(text, "size", len, "int"))
    assert problem.texts.new_facts()
    assert all("size" not in str(fact) for fact in problem.texts.new_facts())
    before = problem.extent
    problem.texts.code("b")
    assert problem.extent != before
    assert any("size" in str(fact) for fact in problem.texts.new_facts())


def read(problem: Problem, terms: dict[str, Any], *formulas: Formula, names: tuple[str, ...] = ()) -> Any:
    """Return the texts of a model of some formulas."""
    solver = z3.SimpleSolver(ctx=problem.context)
    solver.add(facts_of(problem))
    solver.add(list(formulas))
    assert solver.check() == z3.sat
    return texts_of(problem, solver.model(), terms, names)


def texts_of(problem: Problem, model: Any, terms: dict[str, Any], names: tuple[str, ...] = ()) -> Any:
    texts = ModelTexts(problem.texts, ModelValues(model), problem.effort.spend)
    plain = [term for name, term in terms.items() if name not in names]
    found = texts.find(plain, [terms[name] for name in names])
    return {name: found.of(term) for name, term in terms.items()} if isinstance(found, FoundTexts) else found


def test_the_texts_of_a_model() -> None:
    problem = Problem()
    one, other = anything(problem, "one"), anything(problem, "other")
    starts, _error = problem.texts.apply(
        mapped(one, "starts", lambda text: text.startswith("x"), relation=("starts_with", "x"))
    )
    code = problem.texts.code("known")
    found = read(problem, {"one": one, "other": other}, one == -1, starts, other == code)
    assert isinstance(found, dict)
    assert found["other"] == "known"
    assert found["one"].startswith("x")


def test_a_known_text_is_no_other() -> None:
    problem = Problem()
    text = anything(problem)
    code = problem.texts.code("")
    problem.texts.apply(mapped(text, "size", len, "int"))
    assert read(problem, {"text": text}, text == code) == {"text": ""}


def test_a_text_that_was_found_is_allowed() -> None:
    problem = Problem()
    text = problem.texts.variable("text", lambda text: text == "z9")
    assert read(problem, {"text": text}, text == -1) == {"text": "z9"}


def test_text_created_late_is_known_or_another() -> None:
    problem = Problem()
    problem.texts.code("a")
    problem.add_text_facts()
    late = anything(problem)
    solver = z3.SimpleSolver(ctx=problem.context)
    solver.add(late == 7)
    assert solver.check() == z3.sat
    found = texts_of(problem, solver.model(), {"late": late})
    facts = z3.SimpleSolver(ctx=problem.context)
    facts.add(found.formula)
    assert [code for code in (-1, 0, 1, 7) if facts.check(late == code) == z3.sat] == [-1, 0]


def test_texts_that_were_asked_for_too_late() -> None:
    problem = Problem()
    problem.texts.code("a")
    problem.add_text_facts()
    one, other = anything(problem, "one"), anything(problem, "other")
    solver = z3.SimpleSolver(ctx=problem.context)
    solver.add(one == 7, other == 8)
    assert solver.check() == z3.sat
    found = texts_of(problem, solver.model(), {"one": one, "other": other})
    facts = z3.SimpleSolver(ctx=problem.context)
    facts.add(found.formula)
    assert facts.check(one == 7) == z3.unsat
    assert facts.check(other == 8) == z3.unsat


@pytest.mark.parametrize("result", ["a", "b"])
def test_function_of_a_found_text_is_known(result: str) -> None:
    problem = Problem()
    text = anything(problem)
    codes = {known: problem.texts.code(known) for known in "ab"}
    letter, error = problem.texts.apply(mapped(text, "first", first, "string", total=False))
    found = read(problem, {"text": text}, text == -1, letter == codes[result], neg(error))
    assert found["text"][0] == result
    assert found["text"] not in codes


def test_the_same_code_is_the_same_text() -> None:
    problem = Problem()
    one, other, further = (anything(problem, name) for name in "abc")
    found = read(problem, {"a": one, "b": other, "c": further}, one == -1, other == -1, further == -2)
    assert found["a"] == found["b"] != found["c"]


def test_a_name_of_a_model() -> None:
    problem = Problem()
    name = anything(problem, "name")
    code = problem.texts.code("VM")
    folded = problem.texts.fold(name)
    found = read(problem, {"name": name}, name == -1, folded == problem.texts.fold("VM"), names=("name",))
    assert code == 0
    assert found["name"].lower() == "vm"
    assert found["name"] != "VM"


def test_missing_text_yields_its_reasons() -> None:
    problem = Problem()
    text = anything(problem)
    long, _error = problem.texts.apply(
        mapped(text, "web", lambda text: text.startswith("web"), relation=("starts_with", "web"))
    )
    other, _error = problem.texts.apply(
        mapped(text, "db", lambda text: text.startswith("db"), relation=("matches", compile_pattern("^db")))
    )
    found = read(problem, {"text": text}, text == -1, long, other)
    assert isinstance(found, Lemma)
    facts = z3.SimpleSolver(ctx=problem.context)
    facts.add(found.formula)
    assert facts.check(text == -1, long, other) == z3.unsat
    for possible in ((long, neg(other)), (neg(long), other), (neg(long), neg(other))):
        assert facts.check(text == -1, *possible) == z3.sat


@pytest.mark.parametrize("total", [True, False])
def test_failed_search_tries_another_result(total: bool) -> None:
    problem = Problem()
    text = anything(problem)
    even, error = problem.texts.apply(mapped(text, "never", lambda _text: False, total=total))
    found = read(problem, {"text": text}, text == -1, even, neg(error))
    assert isinstance(found, BlockingClause)
    facts = z3.SimpleSolver(ctx=problem.context)
    facts.add(found.formula)
    assert facts.check(text == -1, even, neg(error)) == z3.unsat
    assert facts.check(text == -1, neg(even), neg(error)) == z3.sat


PARTS = ("a", "aa", "b", "bb", "ab", "ba", "aba")
RELATION = {"starts_with": str.startswith, "ends_with": str.endswith, "contains": str.__contains__}
TEXTS = ["".join(letters) for size in range(6) for letters in itertools.product("abc", repeat=size)]


@pytest.mark.parametrize("later", [False, True], ids=["all at once", "one after another"])
@pytest.mark.parametrize("part", range(8))
def test_a_text_has_relations_that_some_text_has(part: int, later: bool) -> None:
    """Of a text that no policy mentions: what no text has two at a time is excluded, and nothing that some text has."""
    chance = Random(f"{SEED} {part}")
    problem = Problem()
    text = problem.texts.variable("text", lambda _text: True)
    chosen = chance.sample([(kind, some) for kind in sorted(RELATION) for some in PARTS], 6)
    known: dict[tuple[str, str], Formula] = {}
    for kind, some in chosen:

        def function(one: str, kind: str = kind, some: str = some) -> bool:
            return RELATION[kind](one, some)

        relation = mapped(text, f"{kind} {some}", function, relation=(kind, some))
        known[kind, some], _error = problem.texts.apply(relation)
        if later:
            problem.add_text_facts()
    facts = Facts(problem, text == -1)
    for one in TEXTS:
        has = [of if RELATION[kind](one, some) else neg(of) for (kind, some), of in known.items()]
        assert facts.possible(*has), (one, chosen)
    for first, second in itertools.combinations(chosen, 2):
        together = any(all(RELATION[kind](one, some) for kind, some in (first, second)) for one in TEXTS)
        alike = first[0] == second[0] != "contains"
        assert not alike or facts.possible(known[first], known[second]) == together
