# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values of dimensions as formulas: each value for the events that it is about, and for no others."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from forewarn.analysis.event_space.case import FURTHER_DOWN, LEADER, NOT_LISTED
from forewarn.analysis.event_space.domains import MISSING, DomainValue
from forewarn.analysis.event_space.resources import COUNT, OTHER_CASE, PLACE, VM_NAME, ResourceListed
from forewarn.analysis.event_space.symbol_table import Dimension, Symbol
from forewarn.analysis.event_space.symbols import DURATION, NOTICE, NOW, TAGS_KNOWN, EventField, Param, Tag, VmFact
from forewarn.analysis.smt.encode.cells import cell, number
from forewarn.analysis.smt.encode.inputs import Inputs
from forewarn.analysis.smt.encode.params import Params, exact
from forewarn.analysis.smt.encode.problem import Problem
from forewarn.analysis.smt.terms import Formula, conj, neg, same
from tools.judges.smt_facts import Facts

SECOND = 10**9


class Symbols(NamedTuple):
    """A problem with one parameter x."""

    inputs: Inputs
    params: Params

    def text(self, term: Any, text: str) -> Formula:
        return same(term, self.inputs.problem.texts.code(text))


def symbols(kind: str = "int", **declared: Any) -> Symbols:
    problem = Problem()
    inputs = Inputs(problem, "2020-07-01")
    entry = {"name": "x", "type": kind, "default": None, **declared}
    return Symbols(inputs, Params(problem, [[{"name": "p", "params": [entry]}]], {}))


def texts(symbol: Symbol) -> Dimension:
    """Return a dimension of a text that is a, b, any other one, or missing."""
    listed = (
        *(DomainValue(one, one) for one in "ab"),
        DomainValue("any other", "Other"),
        DomainValue("missing", MISSING),
    )
    return Dimension(symbol, listed)


def ranges(symbol: Symbol, *bounds: tuple[Any, Any]) -> Dimension:
    """Return an ordered dimension; bounds of None are no value at all."""
    return Dimension(
        symbol,
        tuple(
            DomainValue("missing", MISSING)
            if low is high is None
            else DomainValue(f"{low}..{high}", low, True, low, high)
            for low, high in bounds
        ),
    )


def met(given: Symbols, dimension: Dimension, *cases: Formula) -> list[list[bool]]:
    """Return, for each of some cases, which values of a dimension hold; each is certain or impossible."""
    formulas = [cell(given.inputs, given.params, dimension, value) for value in dimension.values]
    facts = Facts(given.inputs.problem, *given.inputs.facts())
    found = []
    for case in cases:
        assert facts.possible(case)
        found.append([facts.possible(case, one) for one in formulas])
        assert [facts.certain(one, case) for one in formulas] == found[-1]
    return found


ONE_OF_FOUR = [[number == place for number in range(4)] for place in range(4)]


@pytest.mark.parametrize("symbol", [EventField("Description"), VmFact("zone"), Tag("role")])
def test_a_text(symbol: Symbol) -> None:
    given = symbols()
    if isinstance(symbol, EventField):
        term, there = given.inputs.text("Description")
    elif isinstance(symbol, VmFact):
        term, there = given.inputs.vm_fact("zone")
    else:
        has, term = given.inputs.tags.tag("role")
        there = conj((given.inputs.tags.known, has))
    cases = [conj((there, given.text(term, one))) for one in ("a", "b", "c")]
    assert met(given, texts(symbol), *cases, neg(there)) == ONE_OF_FOUR


def test_tag_is_missing_without_tags() -> None:
    given = symbols()
    has, term = given.inputs.tags.tag("role")
    unknown = conj((neg(given.inputs.tags.known), has, given.text(term, "a")))
    assert met(given, texts(Tag("role")), unknown) == ONE_OF_FOUR[3:]


def test_whether_tags_are_known() -> None:
    given = symbols()
    dimension = Dimension(TAGS_KNOWN, (DomainValue("yes", True), DomainValue("no", False)))
    known = given.inputs.tags.known
    assert met(given, dimension, known, neg(known)) == [[True, False], [False, True]]


def test_a_name_in_another_case() -> None:
    given = symbols()
    other = f"vm{OTHER_CASE}"
    listed = (*(DomainValue(one, one) for one in ("vm", "VM")), DomainValue(other, "Vm"), DomainValue("any other", "x"))
    dimension = Dimension(VM_NAME, (*listed, DomainValue("missing", MISSING)))
    own, named = given.inputs.own_name, given.inputs.named
    cases = [conj((named, given.text(own, one))) for one in ("vm", "VM", "vM", "other")]
    found = met(given, dimension, *cases, conj((neg(named), given.text(own, "vM"))))
    assert found == [[place == number for number in range(5)] for place in range(5)]


def test_a_duration() -> None:
    given = symbols()
    term, there = given.inputs.event_field("DurationInSeconds")
    dimension = ranges(DURATION, (-1, -1), (0, 9), (10, 2**63 - 1), (None, None))
    for seconds, place in ((-1, 0), (0, 1), (9, 1), (10, 2), (2**63 - 1, 2)):
        given = symbols()
        term, there = given.inputs.event_field("DurationInSeconds")
        assert met(given, dimension, conj((there, term == seconds))) == [ONE_OF_FOUR[place]]
    given = symbols()
    term, there = given.inputs.event_field("DurationInSeconds")
    assert met(given, dimension, conj((neg(there), term == 5))) == [ONE_OF_FOUR[3]]
    assert number(given.inputs, given.params, DURATION) is term


def test_first_and_last_times_are_unbounded() -> None:
    given = symbols()
    now = given.inputs.now_us
    dimension = ranges(NOW, (10**15, 2 * 10**15 - 1), (2 * 10**15, 3 * 10**15 - 1), (3 * 10**15, 4 * 10**15))
    cases = [now == time for time in (0, 10**12, 2 * 10**12 - 1, 2 * 10**12, 3 * 10**12 - 1, 3 * 10**12, 10**13)]
    places = (0, 0, 0, 1, 1, 2, 2)
    assert met(given, dimension, *cases) == [[place == one for one in range(3)] for place in places]


def test_a_notice() -> None:
    """It is the time left, whether the event has started or not; before the first value there is none."""
    dimension = ranges(NOTICE, (0, 9 * SECOND), (10 * SECOND, 99 * SECOND), (100 * SECOND, 200 * SECOND), (None, None))
    given = symbols()
    left = given.inputs.not_before_us - given.inputs.now_us
    there = given.inputs.has_not_before
    cases = [conj((there, left == seconds * 10**6)) for seconds in (-5, 0, 9, 10, 99, 100, 10**6)]
    places = (0, 0, 0, 1, 1, 2, 2)
    assert met(given, dimension, *cases) == [ONE_OF_FOUR[place] for place in places]
    assert met(symbols(), dimension) == []
    given = symbols()
    assert met(given, dimension, neg(given.inputs.has_not_before)) == [ONE_OF_FOUR[3]]


def test_a_difference_to_not_before_may_be_negative() -> None:
    dimension = ranges(NOTICE, (-100 * SECOND, -SECOND), (0, 9 * SECOND), (10 * SECOND, 99 * SECOND))
    given = symbols()
    left, there = given.inputs.not_before_us - given.inputs.now_us, given.inputs.has_not_before
    cases = [conj((there, left == seconds * 10**6)) for seconds in (-200, -1, 0, 9, 10)]
    assert met(given, dimension, *cases) == [[place == one for one in range(3)] for place in (0, 0, 1, 1, 2)]


def test_the_number_of_names() -> None:
    given = symbols()
    count = given.inputs.resources.count
    dimension = ranges(COUNT, (1, 1), (2, 3), (4, 10**6))
    cases = [count == size for size in (1, 2, 3, 4, 1000)]
    assert met(given, dimension, *cases) == [[place == one for one in range(3)] for place in (0, 1, 1, 2, 2)]
    assert number(given.inputs, given.params, COUNT) is count


def test_the_place_of_this_vm() -> None:
    given = symbols()
    dimension = Dimension(PLACE, tuple(DomainValue(one, one) for one in (LEADER, FURTHER_DOWN, NOT_LISTED)))
    listed, leads, named = given.inputs.resources.affected(), given.inputs.resources.leads(), given.inputs.named
    cases = conj((named, listed, leads)), conj((named, listed, neg(leads))), conj((named, neg(listed)))
    assert met(given, dimension, *cases, neg(named)) == [
        *([place == one for one in range(3)] for place in range(3)),
        [True, False, False],  # without a name it is not known, and one value stands for all
    ]


def test_whether_resources_has_a_name() -> None:
    given = symbols()
    has = given.inputs.resources.has("vm_1")
    dimension = Dimension(ResourceListed("vm_1"), (DomainValue("yes", True), DomainValue("no", False)))
    assert met(given, dimension, has, neg(has)) == [[True, False], [False, True]]


@pytest.mark.parametrize("kind", ["int", "double"])
def test_a_parameter_that_is_a_number(kind: str) -> None:
    given = symbols(kind, default=1)
    term = given.params.varying()["x"][1]
    dimension = ranges(Param("x", {"type": kind}), (None, 1), (2, 2), (3, None))
    low, middle, high = dimension.values
    dimension = dimension._replace(values=(low._replace(concrete=0), middle, high))
    cases = [term == value for value in (0, 1, 2, 3, 4)]
    assert met(given, dimension, *cases) == [[place == one for one in range(3)] for place in (0, 0, 1, 2, 2)]
    assert number(given.inputs, given.params, dimension.symbol) is term


def test_a_parameter_that_is_cut_at_a_double() -> None:
    """At the double itself: 0.1 is a little more than a tenth."""
    given = symbols("double", default=1.0)
    term = given.params.varying()["x"][1]
    low, high = DomainValue("low", 0.0, True, None, 0.1), DomainValue("high", 1.0, True, 0.25, None)
    dimension = Dimension(Param("x", {"type": "double"}), (low, high))
    assert met(given, dimension, term == exact(given.inputs.problem, 0.1)) == [[True, False]]


def test_a_parameter_with_a_list_of_values() -> None:
    for kind, values in (("int", (1, 2)), ("double", (0.1, 0.5)), ("string", ("a", "b")), ("bool", (True, False))):
        given = symbols(kind, default=values[0])
        term = given.params.varying()["x"][1]
        declaration = {"type": kind, "enum": values}
        dimension = Dimension(Param("x", declaration), tuple(DomainValue(str(one), one) for one in values))
        terms = [
            given.text(term, one)
            if isinstance(one, str)
            else same(term, exact(given.inputs.problem, one) if kind == "double" else one)
            for one in values
        ]
        assert met(given, dimension, *terms) == [[True, False], [False, True]], kind


def test_a_parameter_that_is_given_has_its_value() -> None:
    problem = Problem()
    inputs = Inputs(problem, "2020-07-01")
    params = Params(problem, [[{"name": "p", "params": [{"name": "x", "type": "int", "default": 1}]}]], {"x": 5})
    dimension = ranges(Param("x", {"type": "int"}), (0, 9))
    assert cell(inputs, params, dimension, dimension.values[0]) is True
