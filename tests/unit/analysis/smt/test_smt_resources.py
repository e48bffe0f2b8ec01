# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The list of an event's names as formulas: what has to be true of every list."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

import pytest
from forewarn.analysis.smt.decode.resource_names import loops_allow
from forewarn.analysis.smt.encode.problem import Encoding, Problem
from forewarn.analysis.smt.encode.resources import NameCount, Resources
from forewarn.analysis.smt.terms import Formula, conj, disj, neg, same
from forewarn.events import MAX_NAME_CHARACTERS
from tools.judges.smt_facts import Facts
from tools.suite.sizes import SEED


class Asked:
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


def test_a_list_has_at_least_the_names_that_are_in_it() -> None:
    asked = Asked()
    a, b = asked.names.has("a"), asked.names.has("b")
    facts = Facts(asked.problem, *asked.names.facts())
    assert facts.possible(a, b, asked.names.count == 2)
    assert not facts.possible(a, b, asked.names.count == 1)
    assert facts.possible(a, neg(b), asked.names.count == 1)
    assert facts.possible(neg(a), neg(b), asked.names.count == 1)
    assert not facts.possible(asked.names.count == 0)


@pytest.mark.parametrize(
    ("api_version", "most"), [("2020-07-01", MAX_NAME_CHARACTERS), ("2017-03-01", MAX_NAME_CHARACTERS - 1)]
)
def test_what_can_be_a_name(api_version: str, most: int) -> None:
    names = Asked(api_version).names
    assert names.can_be("a" * most)
    assert not names.can_be("a" * (most + 1))
    assert not names.can_be("")
    assert names.has("") is False
    assert names.has("a" * (most + 1)) is False


def test_a_text_that_is_in_the_list_can_be_a_name() -> None:
    asked = Asked()
    zone = asked.problem.texts.variable("vm.zone", lambda _text: True)
    empty, has = asked.is_text(zone, ""), asked.names.has(zone)
    facts = Facts(asked.problem, *asked.names.facts())
    assert facts.possible(has)
    assert facts.possible(empty)
    assert not facts.possible(empty, has)


def test_the_first_name_is_in_the_list() -> None:
    asked = Asked()
    first, a = asked.names.leader(), asked.names.has("a")
    is_a = asked.is_text(first, "a")
    facts = Facts(asked.problem, *asked.names.facts())
    assert not facts.possible(is_a, neg(a))
    assert facts.possible(neg(is_a), a)
    assert not facts.possible(neg(is_a), a, asked.names.count == 1)
    assert asked.names.leader() is first


def test_this_vm_is_in_the_list_in_any_case() -> None:
    asked = Asked()
    affected, leads = asked.names.affected(), asked.names.leads()
    upper, lower = asked.names.has("VM"), asked.names.has("vm")
    own = asked.is_text(asked.own, "vm")
    assert asked.names.affected() is affected
    facts = Facts(asked.problem, *asked.names.facts())
    assert facts.certain(affected, own, upper)
    assert facts.certain(affected, own, lower)
    assert facts.possible(own, affected, neg(upper), neg(lower))  # as Vm
    assert facts.possible(own, neg(affected))
    assert facts.certain(affected, leads)
    assert facts.possible(affected, neg(leads))
    assert not facts.possible(affected, neg(leads), asked.names.count == 1)


def test_each_vm_is_listed_once_where_the_service_does_as_it_says() -> None:
    asked = Asked()
    upper, lower, once = asked.names.has("VM"), asked.names.has("vm"), asked.names.each_once
    facts = Facts(asked.problem, *asked.names.facts())
    assert facts.possible(upper, lower)
    assert not facts.possible(upper, lower, once)


def test_a_loop_is_decided_by_a_name() -> None:
    for deciding in (True, False):
        asked = Asked()
        loop = asked.loop("a", deciding=deciding)
        a, b = asked.names.has("a"), asked.names.has("b")
        assert asked.loop("a", deciding=deciding) is loop
        facts = Facts(asked.problem, *asked.names.facts())
        assert facts.certain(loop.decides, a) is True
        assert not facts.possible(loop.decides, neg(a))
        assert facts.certain(neg(loop.decides), b, asked.names.count == 1)
        assert not facts.possible(loop.fails)


def test_a_loop_fails_for_a_name() -> None:
    asked = Asked()
    loop = asked.loop("a", deciding=True, fails="b")
    a, b = asked.names.has("a"), asked.names.has("b")
    facts = Facts(asked.problem, *asked.names.facts())
    assert facts.certain(loop.fails, b)
    assert not facts.possible(loop.fails, neg(b))
    assert facts.possible(loop.fails, loop.decides, a)


def test_a_name_that_fails_decides_nothing() -> None:
    asked = Asked()
    loop = asked.loop("a", deciding=True, fails="a")
    a = asked.names.has("a")
    facts = Facts(asked.problem, *asked.names.facts())
    assert facts.certain(loop.fails, a)
    assert not facts.possible(loop.decides)


def test_a_loop_goes_over_names_that_nothing_else_reads() -> None:
    asked = Asked()
    loop = asked.loop("a", deciding=True)
    other = asked.loop("b", deciding=False)
    facts = Facts(asked.problem, *asked.names.facts())
    assert facts.possible(loop.decides, other.decides, asked.names.count == 2)
    assert not facts.possible(loop.decides, other.decides, asked.names.count == 1)
    assert facts.possible(neg(loop.decides), neg(other.decides), asked.names.count == 9)


def test_which_names_a_model_allows() -> None:
    asked = Asked()
    loop = asked.loop("a", deciding=True, fails="b")
    for decided in (True, False):
        for failed in (True, False):

            def truth(formula: Formula, decided: bool = decided, failed: bool = failed) -> bool:
                given = {loop.decides: decided, loop.fails: failed}
                return formula if isinstance(formula, bool) else given[formula]

            assert loops_allow(asked.names, truth, "a") is decided
            assert loops_allow(asked.names, truth, "b") is failed
            assert loops_allow(asked.names, truth, "c")


def test_names_are_added_once() -> None:
    asked = Asked()
    zone = asked.problem.texts.variable("vm.zone", lambda _text: True)
    for name in ("a", zone, "a", zone):
        asked.names.has(name)
    assert len(asked.names.names) == 2


def test_if_each_name_is_there_once_a_loop_says_what_two_names_are() -> None:
    asked = Asked()
    code = asked.problem.texts.code
    loop = asked.names.loop("all are a", lambda name: Encoding(same(code(name), code("a"))), deciding=False)
    every = neg(loop.decides)
    listed = asked.names.has("a")
    facts = Facts(asked.problem, *asked.names.facts())
    two = asked.names.count == 2
    assert facts.possible(every, listed, asked.names.count == 1, asked.names.each_once)
    assert facts.possible(every, listed, two)
    assert not facts.possible(every, listed, two, asked.names.each_once)
    assert facts.possible(loop.decides, listed, two, asked.names.each_once)
    assert facts.possible(loop.decides, listed, asked.names.count == 3, asked.names.each_once)
    assert facts.possible(loop.decides, neg(listed), asked.names.count == 3, asked.names.each_once)


def test_a_name_in_other_letters_may_be_there_in_its_place() -> None:
    asked = Asked()
    code = asked.problem.texts.code
    loop = asked.names.loop("all are A", lambda name: Encoding(same(code(name), code("A"))), deciding=False)
    lower = asked.names.has("a")
    facts = Facts(asked.problem, *asked.names.facts())
    every = neg(loop.decides)
    assert facts.possible(every, neg(lower), asked.names.count == 1, asked.names.each_once)
    assert not facts.possible(every, lower)


POOL = ("a", "A", "b", "ab", "c", "web-1")
Predicates = Sequence[Mapping[str, bool | None]]  # whether a name has it, None where there is no value


def counted(asked: Asked, predicates: Predicates) -> list[NameCount]:
    """Return how many names have each predicate. A name that it does not have is not counted."""

    def asks(has: Mapping[str, bool | None]) -> Callable[[Any], Encoding]:
        def predicate(name: Any) -> Encoding:
            code = asked.problem.texts.code
            of = {
                outcome: disj(same(code(name), code(one)) for one in POOL if has[one] is outcome)
                for outcome in (True, None)
            }
            return Encoding(of[True], of[None])

        return predicate

    return [asked.names.count_of(str(place), asks(has)) for place, has in enumerate(predicates)]


def is_the_list(asked: Asked, names: Sequence[str]) -> list[Formula]:
    """Return that the list has some names of the pool, and no others."""
    return [asked.names.has(one) if one in names else neg(asked.names.has(one)) for one in POOL]


@pytest.mark.parametrize("part", range(12))
def test_names_are_counted_as_they_are_in_each_list(part: int) -> None:
    chance = Random(f"{SEED} {part}")
    predicates = [{one: chance.choice((True, False, False, None)) for one in POOL} for _ in range(chance.randint(1, 2))]
    asked = Asked()
    counts, distinct = counted(asked, predicates), asked.names.without_repetitions().count
    lists = [[chance.choice(POOL) for _ in range(chance.randint(1, 5))] for _ in range(20)]
    known = [is_the_list(asked, names) for names in lists]
    facts = Facts(asked.problem, *asked.names.facts())
    for names, listed in zip(lists, known):
        listed += [asked.names.count == len(names), neg(asked.names.each_once)]
        sizes = [one.number == sum(has[name] is True for name in names) for one, has in zip(counts, predicates)]
        fails = [any(has[name] is None for name in names) for has in predicates]
        right = conj((distinct == len(set(names)), *(size for size, failed in zip(sizes, fails) if not failed)))
        failing = conj(same(one.fails, failed) for one, failed in zip(counts, fails))
        assert facts.possible(*listed, right, failing), names
        assert facts.certain(failing, *listed), names
        if len(set(names)) == len(names):
            assert facts.certain(right, *listed), names


def test_what_is_counted_are_different_names_where_each_is_listed_once() -> None:
    asked = Asked()
    (one,) = counted(asked, [dict.fromkeys(POOL, False) | {"a": True, "A": True, "b": True}])
    once, count = asked.names.each_once, asked.names.count
    facts = Facts(asked.problem, *asked.names.facts())
    assert facts.possible(one.number == 2, once)
    assert facts.possible(one.number == 2, neg(once), count == 2)
    assert not facts.possible(one.number == 2, count == 1)


def test_a_list_without_repetitions_has_as_many_names_as_the_service_lists() -> None:
    asked = Asked()
    distinct, once, count = asked.names.without_repetitions(), asked.names.each_once, asked.names.count
    assert asked.names.without_repetitions() is distinct
    a, b = asked.names.has("a"), asked.names.has("A")
    facts = Facts(asked.problem, *asked.names.facts())
    assert facts.certain(distinct.count == count, once)
    assert facts.possible(distinct.count == 1, count == 3)
    assert not facts.possible(distinct.count > count)
    assert not facts.possible(distinct.count == 1, a, b)
    assert facts.possible(distinct.count == 2, a, b, neg(once))
