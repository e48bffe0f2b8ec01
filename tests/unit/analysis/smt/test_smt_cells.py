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


class Asked(NamedTuple):
    """A problem with one parameter x."""

    inputs: Inputs
    params: Params

    def text(self, term: Any, text: str) -> Formula:
        return same(term, self.inputs.problem.texts.code(text))


def asked(kind: str = "int", **declared: Any) -> Asked:
    problem = Problem()
    inputs = Inputs(problem, "2020-07-01")
    entry = {"name": "x", "type": kind, "default": None, **declared}
    return Asked(inputs, Params(problem, [[{"name": "p", "params": [entry]}]], {}))


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


def met(made: Asked, dimension: Dimension, *cases: Formula) -> list[list[bool]]:
    """Return, for each of some cases, which values of a dimension hold; each is certain or impossible."""
    formulas = [cell(made.inputs, made.params, dimension, value) for value in dimension.values]
    facts = Facts(made.inputs.problem, *made.inputs.facts())
    found = []
    for case in cases:
        assert facts.possible(case)
        found.append([facts.possible(case, one) for one in formulas])
        assert [facts.certain(one, case) for one in formulas] == found[-1]
    return found


ONE_OF_FOUR = [[number == place for number in range(4)] for place in range(4)]


@pytest.mark.parametrize("symbol", [EventField("Description"), VmFact("zone"), Tag("role")])
def test_a_text(symbol: Symbol) -> None:
    made = asked()
    if isinstance(symbol, EventField):
        term, there = made.inputs.text("Description")
    elif isinstance(symbol, VmFact):
        term, there = made.inputs.vm_fact("zone")
    else:
        has, term = made.inputs.tags.tag("role")
        there = conj((made.inputs.tags.known, has))
    cases = [conj((there, made.text(term, one))) for one in ("a", "b", "c")]
    assert met(made, texts(symbol), *cases, neg(there)) == ONE_OF_FOUR


def test_a_tag_is_missing_where_no_tags_are_known() -> None:
    made = asked()
    has, term = made.inputs.tags.tag("role")
    unknown = conj((neg(made.inputs.tags.known), has, made.text(term, "a")))
    assert met(made, texts(Tag("role")), unknown) == ONE_OF_FOUR[3:]


def test_whether_tags_are_known() -> None:
    made = asked()
    dimension = Dimension(TAGS_KNOWN, (DomainValue("yes", True), DomainValue("no", False)))
    known = made.inputs.tags.known
    assert met(made, dimension, known, neg(known)) == [[True, False], [False, True]]


def test_a_name_in_another_case() -> None:
    made = asked()
    other = f"vm{OTHER_CASE}"
    listed = (*(DomainValue(one, one) for one in ("vm", "VM")), DomainValue(other, "Vm"), DomainValue("any other", "x"))
    dimension = Dimension(VM_NAME, (*listed, DomainValue("missing", MISSING)))
    own, named = made.inputs.own_name, made.inputs.named
    cases = [conj((named, made.text(own, one))) for one in ("vm", "VM", "vM", "other")]
    found = met(made, dimension, *cases, conj((neg(named), made.text(own, "vM"))))
    assert found == [[place == number for number in range(5)] for place in range(5)]


def test_a_duration() -> None:
    made = asked()
    term, there = made.inputs.event_field("DurationInSeconds")
    dimension = ranges(DURATION, (-1, -1), (0, 9), (10, 2**63 - 1), (None, None))
    for seconds, place in ((-1, 0), (0, 1), (9, 1), (10, 2), (2**63 - 1, 2)):
        made = asked()
        term, there = made.inputs.event_field("DurationInSeconds")
        assert met(made, dimension, conj((there, term == seconds))) == [ONE_OF_FOUR[place]]
    made = asked()
    term, there = made.inputs.event_field("DurationInSeconds")
    assert met(made, dimension, conj((neg(there), term == 5))) == [ONE_OF_FOUR[3]]
    assert number(made.inputs, made.params, DURATION) is term


def test_a_time_has_no_first_and_no_last_value() -> None:
    made = asked()
    now = made.inputs.now_us
    dimension = ranges(NOW, (10**15, 2 * 10**15 - 1), (2 * 10**15, 3 * 10**15 - 1), (3 * 10**15, 4 * 10**15))
    cases = [now == time for time in (0, 10**12, 2 * 10**12 - 1, 2 * 10**12, 3 * 10**12 - 1, 3 * 10**12, 10**13)]
    places = (0, 0, 0, 1, 1, 2, 2)
    assert met(made, dimension, *cases) == [[place == one for one in range(3)] for place in places]


def test_a_notice() -> None:
    """It is the time left, whether the event has started or not; before the first value there is none."""
    dimension = ranges(NOTICE, (0, 9 * SECOND), (10 * SECOND, 99 * SECOND), (100 * SECOND, 200 * SECOND), (None, None))
    made = asked()
    left = made.inputs.not_before_us - made.inputs.now_us
    there = made.inputs.has_not_before
    cases = [conj((there, left == seconds * 10**6)) for seconds in (-5, 0, 9, 10, 99, 100, 10**6)]
    places = (0, 0, 0, 1, 1, 2, 2)
    assert met(made, dimension, *cases) == [ONE_OF_FOUR[place] for place in places]
    assert met(asked(), dimension) == []
    made = asked()
    assert met(made, dimension, neg(made.inputs.has_not_before)) == [ONE_OF_FOUR[3]]


def test_a_difference_to_not_before_may_be_negative() -> None:
    dimension = ranges(NOTICE, (-100 * SECOND, -SECOND), (0, 9 * SECOND), (10 * SECOND, 99 * SECOND))
    made = asked()
    left, there = made.inputs.not_before_us - made.inputs.now_us, made.inputs.has_not_before
    cases = [conj((there, left == seconds * 10**6)) for seconds in (-200, -1, 0, 9, 10)]
    assert met(made, dimension, *cases) == [[place == one for one in range(3)] for place in (0, 0, 1, 1, 2)]


def test_the_number_of_names() -> None:
    made = asked()
    count = made.inputs.resources.count
    dimension = ranges(COUNT, (1, 1), (2, 3), (4, 10**6))
    cases = [count == size for size in (1, 2, 3, 4, 1000)]
    assert met(made, dimension, *cases) == [[place == one for one in range(3)] for place in (0, 1, 1, 2, 2)]
    assert number(made.inputs, made.params, COUNT) is count


def test_the_place_of_this_vm() -> None:
    made = asked()
    dimension = Dimension(PLACE, tuple(DomainValue(one, one) for one in (LEADER, FURTHER_DOWN, NOT_LISTED)))
    listed, leads, named = made.inputs.resources.affected(), made.inputs.resources.leads(), made.inputs.named
    cases = conj((named, listed, leads)), conj((named, listed, neg(leads))), conj((named, neg(listed)))
    assert met(made, dimension, *cases, neg(named)) == [
        *([place == one for one in range(3)] for place in range(3)),
        [True, False, False],  # without a name it is not known, and one value stands for all
    ]


def test_whether_resources_has_a_name() -> None:
    made = asked()
    has = made.inputs.resources.has("vm_1")
    dimension = Dimension(ResourceListed("vm_1"), (DomainValue("yes", True), DomainValue("no", False)))
    assert met(made, dimension, has, neg(has)) == [[True, False], [False, True]]


@pytest.mark.parametrize("kind", ["int", "double"])
def test_a_parameter_that_is_a_number(kind: str) -> None:
    made = asked(kind, default=1)
    term = made.params.varying()["x"][1]
    dimension = ranges(Param("x", {"type": kind}), (None, 1), (2, 2), (3, None))
    low, middle, high = dimension.values
    dimension = dimension._replace(values=(low._replace(concrete=0), middle, high))
    cases = [term == value for value in (0, 1, 2, 3, 4)]
    assert met(made, dimension, *cases) == [[place == one for one in range(3)] for place in (0, 0, 1, 2, 2)]
    assert number(made.inputs, made.params, dimension.symbol) is term


def test_a_parameter_that_is_cut_at_a_double() -> None:
    """At the double itself: 0.1 is a little more than a tenth."""
    made = asked("double", default=1.0)
    term = made.params.varying()["x"][1]
    low, high = DomainValue("low", 0.0, True, None, 0.1), DomainValue("high", 1.0, True, 0.25, None)
    dimension = Dimension(Param("x", {"type": "double"}), (low, high))
    assert met(made, dimension, term == exact(made.inputs.problem, 0.1)) == [[True, False]]


def test_a_parameter_with_a_list_of_values() -> None:
    for kind, values in (("int", (1, 2)), ("double", (0.1, 0.5)), ("string", ("a", "b")), ("bool", (True, False))):
        made = asked(kind, default=values[0])
        term = made.params.varying()["x"][1]
        declaration = {"type": kind, "enum": values}
        dimension = Dimension(Param("x", declaration), tuple(DomainValue(str(one), one) for one in values))
        terms = [
            made.text(term, one)
            if isinstance(one, str)
            else same(term, exact(made.inputs.problem, one) if kind == "double" else one)
            for one in values
        ]
        assert met(made, dimension, *terms) == [[True, False], [False, True]], kind


def test_a_parameter_that_is_given_has_its_value() -> None:
    problem = Problem()
    inputs = Inputs(problem, "2020-07-01")
    params = Params(problem, [[{"name": "p", "params": [{"name": "x", "type": "int", "default": 1}]}]], {"x": 5})
    dimension = ranges(Param("x", {"type": "int"}), (0, 9))
    assert cell(inputs, params, dimension, dimension.values[0]) is True
