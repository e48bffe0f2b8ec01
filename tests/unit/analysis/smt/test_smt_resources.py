# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The list of an event's names as formulas: what has to be true of every list."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from forewarn.analysis.smt.decode.resource_names import loops_allow
from forewarn.analysis.smt.encode.problem import Encoding, Problem
from forewarn.analysis.smt.encode.resources import NameCount, Resources
from forewarn.analysis.smt.terms import Formula, conj, disj, neg, same
from forewarn.events import MAX_NAME_CHARACTERS
from tools.fixtures.policy_files import HEAD, verified
from tools.judges.smt_facts import Facts
from tools.suite.sizes import SEED


class SymbolicList:
    """A list of names."""

    def __init__(self, api_version: str = "2020-07-01") -> None:
        self.problem = Problem()
        self.own = self.problem.texts.variable("vm.name", bool)
        self.names = Resources(self.problem, api_version, self.own)

    def is_text(self, term: Any, text: str) -> Formula:
        return same(term, self.problem.texts.code(text))

    def loop(self, text: str, *, deciding: bool, fails: str = "") -> Any:
        """Return a loop that asks of each name whether it is a text, and has no value for another."""

        def predicate(name: Any) -> Encoding:
            code = self.problem.texts.code
            is_so = same(code(name), code(text))
            error = same(code(name), code(fails)) if fails else False
            return Encoding(is_so if deciding else neg(is_so), error)

        return self.names.loop(f"{text} {deciding} {fails}", predicate, deciding=deciding)


def test_count_includes_every_listed_name() -> None:
    symbolic = SymbolicList()
    a, b = symbolic.names.has("a"), symbolic.names.has("b")
    facts = Facts(symbolic.problem, *symbolic.names.facts())
    assert facts.possible(a, b, symbolic.names.count == 2)
    assert not facts.possible(a, b, symbolic.names.count == 1)
    assert facts.possible(a, neg(b), symbolic.names.count == 1)
    assert facts.possible(neg(a), neg(b), symbolic.names.count == 1)
    assert not facts.possible(symbolic.names.count == 0)


@pytest.mark.parametrize(
    ("api_version", "most"), [("2020-07-01", MAX_NAME_CHARACTERS), ("2017-03-01", MAX_NAME_CHARACTERS - 1)]
)
def test_what_can_be_a_name(api_version: str, most: int) -> None:
    names = SymbolicList(api_version).names
    assert names.can_be("a" * most)
    assert not names.can_be("a" * (most + 1))
    assert not names.can_be("")
    assert names.has("") is False
    assert names.has("a" * (most + 1)) is False


def test_listed_text_can_be_a_name() -> None:
    symbolic = SymbolicList()
    zone = symbolic.problem.texts.variable("vm.zone", lambda _text: True)
    empty, has = symbolic.is_text(zone, ""), symbolic.names.has(zone)
    facts = Facts(symbolic.problem, *symbolic.names.facts())
    assert facts.possible(has)
    assert facts.possible(empty)
    assert not facts.possible(empty, has)


def test_the_first_name_is_in_the_list() -> None:
    symbolic = SymbolicList()
    first, a = symbolic.names.leader(), symbolic.names.has("a")
    is_a = symbolic.is_text(first, "a")
    facts = Facts(symbolic.problem, *symbolic.names.facts())
    assert not facts.possible(is_a, neg(a))
    assert facts.possible(neg(is_a), a)
    assert not facts.possible(neg(is_a), a, symbolic.names.count == 1)
    assert symbolic.names.leader() is first


def test_own_vm_is_listed_in_any_case() -> None:
    symbolic = SymbolicList()
    affected, leads = symbolic.names.affected(), symbolic.names.leads()
    upper, lower = symbolic.names.has("VM"), symbolic.names.has("vm")
    own = symbolic.is_text(symbolic.own, "vm")
    assert symbolic.names.affected() is affected
    facts = Facts(symbolic.problem, *symbolic.names.facts())
    assert facts.certain(affected, own, upper)
    assert facts.certain(affected, own, lower)
    assert facts.possible(own, affected, neg(upper), neg(lower))  # as Vm
    assert facts.possible(own, neg(affected))
    assert facts.certain(affected, leads)
    assert facts.possible(affected, neg(leads))
    assert not facts.possible(affected, neg(leads), symbolic.names.count == 1)


def test_normal_list_has_each_vm_once() -> None:
    symbolic = SymbolicList()
    upper, lower, once = symbolic.names.has("VM"), symbolic.names.has("vm"), symbolic.names.each_once
    facts = Facts(symbolic.problem, *symbolic.names.facts())
    assert facts.possible(upper, lower)
    assert not facts.possible(upper, lower, once)


def test_a_loop_is_decided_by_a_name() -> None:
    for deciding in (True, False):
        symbolic = SymbolicList()
        loop = symbolic.loop("a", deciding=deciding)
        a, b = symbolic.names.has("a"), symbolic.names.has("b")
        assert symbolic.loop("a", deciding=deciding) is loop
        facts = Facts(symbolic.problem, *symbolic.names.facts())
        assert facts.certain(loop.decides, a) is True
        assert not facts.possible(loop.decides, neg(a))
        assert facts.certain(neg(loop.decides), b, symbolic.names.count == 1)
        assert not facts.possible(loop.fails)


def test_a_loop_fails_for_a_name() -> None:
    symbolic = SymbolicList()
    loop = symbolic.loop("a", deciding=True, fails="b")
    a, b = symbolic.names.has("a"), symbolic.names.has("b")
    facts = Facts(symbolic.problem, *symbolic.names.facts())
    assert facts.certain(loop.fails, b)
    assert not facts.possible(loop.fails, neg(b))
    assert facts.possible(loop.fails, loop.decides, a)


def test_a_name_that_fails_decides_nothing() -> None:
    symbolic = SymbolicList()
    loop = symbolic.loop("a", deciding=True, fails="a")
    a = symbolic.names.has("a")
    facts = Facts(symbolic.problem, *symbolic.names.facts())
    assert facts.certain(loop.fails, a)
    assert not facts.possible(loop.decides)


def test_loop_covers_names_that_nothing_else_reads() -> None:
    symbolic = SymbolicList()
    loop = symbolic.loop("a", deciding=True)
    other = symbolic.loop("b", deciding=False)
    facts = Facts(symbolic.problem, *symbolic.names.facts())
    assert facts.possible(loop.decides, other.decides, symbolic.names.count == 2)
    assert not facts.possible(loop.decides, other.decides, symbolic.names.count == 1)
    assert facts.possible(neg(loop.decides), neg(other.decides), symbolic.names.count == 9)


def test_which_names_a_model_allows() -> None:
    symbolic = SymbolicList()
    loop = symbolic.loop("a", deciding=True, fails="b")
    for decided in (True, False):
        for failed in (True, False):

            def truth(formula: Formula, decided: bool = decided, failed: bool = failed) -> bool:
                given = {loop.decides: decided, loop.fails: failed}
                return formula if isinstance(formula, bool) else given[formula]

            assert loops_allow(symbolic.names, truth, "a") is decided
            assert loops_allow(symbolic.names, truth, "b") is failed
            assert loops_allow(symbolic.names, truth, "c")


def test_names_are_added_once() -> None:
    symbolic = SymbolicList()
    zone = symbolic.problem.texts.variable("vm.zone", lambda _text: True)
    for name in ("a", zone, "a", zone):
        symbolic.names.has(name)
    assert len(symbolic.names.names) == 2


def test_distinct_names_limit_what_a_loop_finds() -> None:
    symbolic = SymbolicList()
    code = symbolic.problem.texts.code
    loop = symbolic.names.loop("all are a", lambda name: Encoding(same(code(name), code("a"))), deciding=False)
    every = neg(loop.decides)
    listed = symbolic.names.has("a")
    facts = Facts(symbolic.problem, *symbolic.names.facts())
    two = symbolic.names.count == 2
    assert facts.possible(every, listed, symbolic.names.count == 1, symbolic.names.each_once)
    assert facts.possible(every, listed, two)
    assert not facts.possible(every, listed, two, symbolic.names.each_once)
    assert facts.possible(loop.decides, listed, two, symbolic.names.each_once)
    assert facts.possible(loop.decides, listed, symbolic.names.count == 3, symbolic.names.each_once)
    assert facts.possible(loop.decides, neg(listed), symbolic.names.count == 3, symbolic.names.each_once)


def test_case_variant_of_a_name_excludes_the_name() -> None:
    symbolic = SymbolicList()
    code = symbolic.problem.texts.code
    loop = symbolic.names.loop("all are A", lambda name: Encoding(same(code(name), code("A"))), deciding=False)
    lower = symbolic.names.has("a")
    facts = Facts(symbolic.problem, *symbolic.names.facts())
    every = neg(loop.decides)
    assert facts.possible(every, neg(lower), symbolic.names.count == 1, symbolic.names.each_once)
    assert not facts.possible(every, lower)


POOL = ("a", "A", "b", "ab", "c", "web-1")
Predicates = Sequence[Mapping[str, bool | None]]  # whether a name has it, None where there is no value


def counted(symbolic: SymbolicList, predicates: Predicates) -> list[NameCount]:
    """Return how many names have each predicate. A name that it does not have is not counted."""

    def asks(has: Mapping[str, bool | None]) -> Callable[[Any], Encoding]:
        def predicate(name: Any) -> Encoding:
            code = symbolic.problem.texts.code
            of = {
                outcome: disj(same(code(name), code(one)) for one in POOL if has[one] is outcome)
                for outcome in (True, None)
            }
            return Encoding(of[True], of[None])

        return predicate

    return [symbolic.names.count_of(str(place), asks(has)) for place, has in enumerate(predicates)]


def is_the_list(symbolic: SymbolicList, names: Sequence[str]) -> list[Formula]:
    """Return that the list has some names of the pool, and no others."""
    return [symbolic.names.has(one) if one in names else neg(symbolic.names.has(one)) for one in POOL]


@pytest.mark.parametrize("part", range(12))
def test_counts_match_each_list(part: int) -> None:
    chance = Random(f"{SEED} {part}")
    predicates = [{one: chance.choice((True, False, False, None)) for one in POOL} for _ in range(chance.randint(1, 2))]
    symbolic = SymbolicList()
    counts, distinct = counted(symbolic, predicates), symbolic.names.without_repetitions().count
    lists = [[chance.choice(POOL) for _ in range(chance.randint(1, 5))] for _ in range(20)]
    known = [is_the_list(symbolic, names) for names in lists]
    facts = Facts(symbolic.problem, *symbolic.names.facts())
    for names, listed in zip(lists, known):
        listed += [symbolic.names.count == len(names), neg(symbolic.names.each_once)]
        sizes = [one.number == sum(has[name] is True for name in names) for one, has in zip(counts, predicates)]
        fails = [any(has[name] is None for name in names) for has in predicates]
        right = conj((distinct == len(set(names)), *(size for size, failed in zip(sizes, fails) if not failed)))
        failing = conj(same(one.fails, failed) for one, failed in zip(counts, fails))
        assert facts.possible(*listed, right, failing), names
        assert facts.certain(failing, *listed), names
        if len(set(names)) == len(names):
            assert facts.certain(right, *listed), names


def test_counted_names_differ_if_each_is_unique() -> None:
    symbolic = SymbolicList()
    (one,) = counted(symbolic, [dict.fromkeys(POOL, False) | {"a": True, "A": True, "b": True}])
    once, count = symbolic.names.each_once, symbolic.names.count
    facts = Facts(symbolic.problem, *symbolic.names.facts())
    assert facts.possible(one.number == 2, once)
    assert facts.possible(one.number == 2, neg(once), count == 2)
    assert not facts.possible(one.number == 2, count == 1)


def test_name_of_one_count_is_in_others(tmp_path: Path) -> None:
    """The second of these counts is never less than the first."""
    some, more = (
        f"event.Resources.filter(r, {one}).size()"
        for one in ("r.startsWith('a')", "r.startsWith('a') || r.endsWith('b')")
    )
    for condition, is_possible in ((f"{more} + 2 == {some}", False), (f"{more} == {some} + 2", True)):
        match = f'    - {{id: one, output: hold, condition: "{some} == 2 && {condition}"}}\n'
        codes = [one.code for one in verified(tmp_path, HEAD + match)]
        assert ("unsatisfiable-rule" not in codes) is is_possible, condition


def test_distinct_count_equals_count_of_a_normal_list() -> None:
    symbolic = SymbolicList()
    distinct, once, count = symbolic.names.without_repetitions(), symbolic.names.each_once, symbolic.names.count
    assert symbolic.names.without_repetitions() is distinct
    a, b = symbolic.names.has("a"), symbolic.names.has("A")
    facts = Facts(symbolic.problem, *symbolic.names.facts())
    assert facts.certain(distinct.count == count, once)
    assert facts.possible(distinct.count == 1, count == 3)
    assert not facts.possible(distinct.count > count)
    assert not facts.possible(distinct.count == 1, a, b)
    assert facts.possible(distinct.count == 2, a, b, neg(once))
