# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Single expressions as terms of z3: one test for each mistake that random expressions have shown."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest
from forewarn.analysis.smt.encode.expressions import ExpressionEncoder
from forewarn.analysis.smt.encode.inputs import Inputs
from forewarn.analysis.smt.encode.problem import NOTHING, Encoding, Problem
from forewarn.analysis.smt.terms import conj, neg
from forewarn.compiler.cel.environment import policy_declarations
from forewarn.compiler.cel.expression import check
from forewarn.compiler.cel.types import INT
from forewarn.policy.functions.timevalues import MAX_DURATION, UNITS, parse_duration
from tools.generators.cel_variables import PARAMS
from tools.generators.fixed_inputs import SCALAR_PARAMS, case
from tools.judges.expression_judge import Expression, judged
from tools.judges.smt_facts import Facts
from tools.judges.translated import FAILS, Agreement, Question
from tools.suite.sizes import SIZE


def agreement(source: str, outcome: Any, **params: Any) -> Agreement:
    """Return what z3 says of an outcome where some parameters have a value and all else is open."""
    judge = Question()
    terms = {name: judge.free(f"params.{name}", type_) for name, type_ in SCALAR_PARAMS.items()}
    known = {name: Encoding(term) for name, term in terms.items()}
    form = check(source, policy_declarations("2020-07-01", PARAMS, {}, {})).form
    assert form is not None, source
    judge.translate(source, form, parameter=known.__getitem__)
    return judge.agreement([judge.equals(terms[name], value) for name, value in params.items()], outcome)


@pytest.mark.parametrize(
    ("source", "params", "outcome"),
    [
        # A list that a function makes of a text was taken for a list of terms.
        ("params.label.split(',').exists(x, x == 'b')", {"label": "a,b"}, True),
        ("params.label.split(',').all(x, x == 'b')", {"label": "b,b"}, True),
        ("({'a': []})[params.label].exists(x, params.flag)", {"label": "b", "flag": True}, FAILS),
        # An element that z3 does not have was taken to differ from all others.
        ("'ab' in [params.label + params.zone]", {"label": "a", "zone": "b"}, True),
        ("params.label in [params.label + params.zone]", {"label": "a", "zone": ""}, True),
        ("[params.ratio * 2.0] == [1.0]", {"ratio": 0.5}, True),
        # Elements that z3 does not have were taken to be the same one.
        ("[params.label + params.zone, params.zone + params.label].exists_one(x, x.startsWith('a'))", {}, True),
        ("[params.ratio * 2.0, params.ratio * 3.0].exists_one(x, int(x) == 6)", {}, True),
        ("[[params.label], [params.zone]].map(x, x + x).exists_one(x, 'a' in x)", {}, True),
        (
            "[({'a': []})[params.label], ({'a': []})[params.zone]].exists_one(x, x.map(y, 1) == [])",
            {"label": "a", "zone": "a"},
            False,
        ),
    ],
)
def test_what_is_not_translated_may_be_anything(source: str, params: dict[str, Any], outcome: Any) -> None:
    assert agreement(source, outcome, **params) is Agreement.OPEN


@pytest.mark.parametrize(
    ("source", "params", "outcome"),
    [
        # A constant beside an element that may fail.
        ("[params.label.charAt(1), 'web_1'][1].matches('^$')", {"label": "ab"}, False),
        ("[params.label.charAt(1), 'web_1'][1].matches('^$')", {"label": ""}, FAILS),
        ("[params.label.charAt(1), 'ab'][1].startsWith('a')", {"label": "ab"}, True),
        ("[params.label.charAt(1), 'ab'][1].startsWith('a')", {"label": ""}, FAILS),
        ("int([params.label.charAt(1), 'ab'][1]) > 0", {"label": "ab"}, FAILS),
        ("size([params.label.charAt(1), 'ab'][1])", {"label": "ab"}, 2),
        # The places of a list begin with 0.
        ("[params.label.charAt(0), 'x'][0] == 'a'", {"label": "ab"}, True),
        ("[params.label.charAt(0), 'x'][2] == 'a'", {"label": "ab"}, FAILS),
        ("[params.label.charAt(0), 'x'][-1] == 'a'", {"label": "ab"}, FAILS),
        # A list made of a text: whether there is one differs from text to text.
        ("size([({'a': []})[params.label]]) == 1", {"label": "a"}, True),
        ("size([({'a': []})[params.label]]) == 1", {"label": "b"}, FAILS),
        ("size([({'a': []})[params.label], ({'a': []})[params.zone]])", {"label": "a", "zone": "a"}, 2),
        (
            "size([({'a': []})[params.label]]) == 1 && size([({'a': []})[params.zone]]) == 2",
            {"label": "b", "zone": "a"},
            False,
        ),
    ],
)
def test_a_value_and_no_other(source: str, params: dict[str, Any], outcome: Any) -> None:
    assert agreement(source, outcome, **params) is Agreement.EXACT


@pytest.mark.parametrize(
    ("source", "right"),
    [
        ("params.ratio < 0.5", (-1.5, 0.1)),
        ("params.ratio <= 0.5", (-1.5, 0.1, 0.5)),
        ("0.5 > params.ratio", (-1.5, 0.1)),
        ("params.ratio > 0.1", (0.5, 1e308)),
        ("params.ratio >= 0.1", (0.1, 0.5, 1e308)),
        ("params.ratio == 0.1", (0.1,)),
        ("params.ratio != 0.1", (-1.5, 0.5, 1e308)),
        ("params.ratio in [0.1, 1e308]", (0.1, 1e308)),
        ("[params.ratio, 1.0] == [0.5, 1.0]", (0.5,)),
        ("[params.ratio, 1.0] != [0.5, 1.0]", (-1.5, 0.1, 1e308)),
        ("[params.ratio, 1.0] == [0.5, 2.0]", ()),
        ("[params.ratio] == [0.5, 1.0]", ()),
        ("[params.ratio] != [0.5, 1.0]", (-1.5, 0.1, 0.5, 1e308)),
        ("[params.ratio] == [double('nan')]", ()),
        ("params.ratio < double('inf')", (-1.5, 0.1, 0.5, 1e308)),
        ("params.ratio <= double('-inf')", ()),
        ("double('inf') <= params.ratio", ()),
        ("double('-inf') < params.ratio", (-1.5, 0.1, 0.5, 1e308)),
        ("params.ratio != double('nan')", (-1.5, 0.1, 0.5, 1e308)),
        ("params.ratio < double('nan')", ()),
    ],
)
def test_doubles_are_compared_as_they_are(source: str, right: tuple[float, ...]) -> None:
    for ratio in (-1.5, 0.1, 0.5, 1e308):
        assert agreement(source, ratio in right, ratio=ratio) is Agreement.EXACT, ratio


@pytest.mark.parametrize(
    ("source", "params", "outcome"),
    [
        ("params.label in {'a': 1, 'b': 2}", {"label": "b"}, True),
        ("params.label in {'a': 1, 'b': 2}", {"label": "c"}, False),
        ("params.n in {1: 'a', 3: 'b'}", {"n": 3}, True),
        ("params.n in {1: 'a', 3: 'b'}", {"n": 2}, False),
        ("params.n in [params.n]", {}, True),
        ("params.n in []", {}, False),
        ("params.flag == !params.flag", {}, False),
        ("params.flag in [true]", {"flag": False}, False),
        ("[params.n, 2].exists_one(x, x == 2)", {"n": 2}, False),
        ("[params.n, 2].exists_one(x, x == 2)", {"n": 3}, True),
        ("[1, 2].exists_one(x, x == params.n)", {"n": 3}, False),
        ("['a', 'b'].exists(x, x == params.label)", {"label": "b"}, True),
        ("['a', 'b'].all(x, x != params.label)", {"label": "b"}, False),
        ("{'a': 1}.all(x, x == params.label)", {"label": "a"}, True),
        ("[1, 2].all(x, x / params.n > 0)", {"n": 0}, FAILS),
        ("size([params.n, params.n])", {}, 2),
        ("[params.n, 5][1]", {}, 5),
        ("[params.n, 5][0]", {"n": 3}, 3),
        ("[params.n, 5][2]", {}, FAILS),
        ("[params.n, 5][-1]", {}, FAILS),
        ("event.Resources[-1]", {}, FAILS),
        ("[0, 1].exists(x, params.n / x > 0)", {"n": 5}, True),
        ("[0, 1].exists(x, params.n / x > 0)", {"n": -5}, FAILS),
        ("[0, -1].exists(x, params.n % x == 0)", {"n": -(2**63)}, FAILS),
        ("[params.n, 1 / params.n][0] == 1", {"n": 1}, True),
        ("{'a': params.n}['a']", {"n": 2}, None),
    ],
)
def test_lists_and_maps_of_terms(source: str, params: dict[str, Any], outcome: Any) -> None:
    """An outcome of None: it is not known."""
    if outcome is None:
        assert agreement(source, FAILS, **params) is Agreement.OPEN
    else:
        assert agreement(source, outcome, **params) is Agreement.EXACT


@pytest.mark.parametrize(
    "source",
    [
        "vm.name in event.Resources",
        "'web_0' in event.Resources",
        "params.label in event.Resources",
        "event.Resources[0] == vm.name",
        "event.Resources[0].startsWith('web')",
        "size(event.Resources) > 1",
        "event.Resources.all(x, x.startsWith('web'))",
        "event.Resources.exists(x, x == vm.name)",
        "event.Resources.exists(x, x.charAt(3) == '_')",
        "event.Resources.all(x, x.charAt(3) == '_' || x in event.Resources)",
        "event.Resources.exists(x, x != vm.name && size(x) == size(vm.name))",
        "affects_me",
        "leader",
        "affects_me && !leader",
        "'role' in vm.tags",
        "has(vm.tags.role)",
        "vm.tags.role",
        "vm.tags[''] == vm.tags['role']",
        "size(vm.tags)",
        "has(vm.zone) ? vm.zone : vm.location",
        "event.EventType == 'Freeze' ? 1 : event.DurationInSeconds",
        "event.EventType in ['Freeze', 'Reboot']",
        "event.EventType < 'G'",
        "event.Description.size() % 3",
        "[event.DurationInSeconds, 1][0]",
        "event.DurationInSeconds / -7",
        "event.DurationInSeconds % -7",
        "params.n / 7",
        "params.n / -7",
        "params.n % 7",
        "params.n % -7",
        "params.n / -1",
        "params.n % -1",
        "-params.n",
        "params.n + event.DurationInSeconds",
        "params.n - event.DurationInSeconds",
        "params.n * 2",
        "-2 * params.n",
        "uint(params.n) * 2u",
        "uint(params.n) - 7u",
        "uint(params.n) / 7u",
        "uint(params.n) % 7u",
        "int(uint(params.n)) + 1",
        "timestamp(params.n)",
        "int(now)",
        "notice < duration('5m')",
        "notice + age",
        "now - event.NotBefore",
        "now + params.wait",
        "now - params.wait",
        "params.since - now",
        "params.since.getMilliseconds('Asia/Kathmandu')",
        "params.wait.getHours() + params.wait.getMinutes()",
        "params.wait.getSeconds()",
        "params.wait + params.wait",
        "params.wait - duration('2562047h')",
        "now.getHours('Asia/Kathmandu')",
        "event.NotBefore.getDayOfWeek('America/New_York')",
        "now.getFullYear('+14:00')",
        "now.getDayOfYear('-12:00')",
        "now.getDate() + now.getDayOfMonth() + now.getMonth()",
        "(params.flag ? vm.name : params.label).upperAscii().startsWith('WEB')",
        "(params.flag ? params.label.lowerAscii() : 'a').contains('b')",
        "[params.label.trim(), 'x'][0] == 'a'",
        "(params.flag ? 'ab' : 'ab').endsWith('b')",
        "(leader ? 'é' : event.EventId).endsWith('b') || (leader ? vm.name : '1') == '1'",
        "(params.flag ? optional.of('ab') : optional.of('ab')).value().endsWith('b')",
        "event.Resources.exists(r, (params.flag ? r : 'a').endsWith('1')) && 'a' in event.Resources",
        "event.?DurationInSeconds.value()",
        "(1 > 2 ? optional.of(true) : optional.none()).value() ? affects_me : true",  # which never has a value
        "(params.flag ? vm.?zone : optional.none()).value()",
        "[vm.?zone, vm.?location][0].value() == 'a'",
        "[params.flag ? event.?DurationInSeconds : optional.none(), optional.of(3)][0].value()",
        "[params.flag ? vm.?tags : optional.none()][0].hasValue()",
        "event.?NotBefore.value() > now",
        "event.?EventSource.value().contains('l')",
        "vm.tags.?role.value() == 'web'",
        "event.?DurationInSeconds.optMap(d, params.flag ? d : d - 5).value() < 8",
        "duration(string(event.DurationInSeconds) + 's')",
        "duration(string(params.n) + 's')",
        "duration(string(params.n) + 'ns')",
        "duration(string(params.n) + 'h')",
        "duration(string(uint(params.n)) + 'us')",
        "event.Resources.filter(r, r != vm.name).size() > 0",
        "event.Resources.filter(r, r.startsWith('web') && vm.zone == '1') == []",
        "0 == size(event.Resources.filter(r, r == params.label))",
        "1 <= size(event.Resources.filter(r, r.contains('_')))",
        "[] != event.Resources.filter(r, r in params.names)",
        "[params.n, event.DurationInSeconds].filter(n, n > 5).size()",
        "[params.n, event.DurationInSeconds - 60].filter(n, n + 9223372036854775800 > 5) == []",
        "params.names.filter(n, n == params.label).size() < 1",
        "event.Resources.filter(r, r.startsWith('web')).size() > 1",
        "event.Resources.filter(r, r.startsWith('web')).size() - size(event.Resources.filter(r, r.contains('_')))",
        "2 > size(event.Resources.filter(r, r in params.names || r == vm.name))",
        "event.Resources.filter(r, r.charAt(3) == '_').size() == 1",
        "event.Resources.exists_one(r, r.startsWith('web'))",
        "event.Resources.exists_one(r, r.charAt(3) == '_')",
        "event.Resources.distinct().size() == size(event.Resources)",
        "event.Resources.distinct().distinct().size() > 2 && event.Resources.distinct()[0] == vm.name",
        "event.Resources.distinct().exists(r, r.endsWith('1')) || vm.name in event.Resources.distinct()",
    ],
)
def test_an_input_is_translated_exactly(source: str) -> None:
    counts: Counter[str] = Counter()
    expression, chance = Expression(source, {}), Random(source)
    assert expression.form is not None
    assert judged(expression, [case(chance) for _ in range(SIZE.expression_cases)], counts) == []
    if "get" in source and "'A" in source:  # a zone is exact in the years 2000 to 2099
        assert counts["EXACT"] >= SIZE.expression_cases // 2
    else:
        assert counts["EXACT"] == SIZE.expression_cases


def value(inputs: Inputs, source: str, **variables: str) -> Any:
    """Return the value of an expression as a term, with variables of the policy."""
    translation = ExpressionEncoder(inputs, lambda _name: Encoding(NOTHING))
    for name, variable in variables.items():
        form = check(variable, policy_declarations("2020-07-01", {}, {}, {})).form
        translation.declare(name, {"source": variable, "form": form})
    types = dict.fromkeys(variables, INT)
    form = check(source, policy_declarations("2020-07-01", {}, types, {})).form
    assert form is not None, source
    return translation.value({"source": source, "form": form}).value


def term(inputs: Inputs, source: str, **variables: str) -> str:
    """Return the term for an expression as a text."""
    return str(value(inputs, source, **variables).sexpr())


@pytest.mark.parametrize("unit", ["ns", "us", "ms", "s", "m", "h", "d", "", " s"])
def test_a_duration_of_a_number_and_a_unit(unit: str) -> None:
    source, factor = f"duration(string(params.n) + '{unit}')", {**UNITS, "": 0}.get(unit)
    edge = MAX_DURATION // (factor or 1)
    for number in (0, -1, 1, edge, edge + 1, -edge, -edge - 1, MAX_DURATION, -MAX_DURATION, -MAX_DURATION - 1):
        if not -(2**63) <= number < 2**63:
            continue
        try:
            outcome: Any = parse_duration(f"{number}{unit}")
        except ValueError:
            outcome = FAILS
        expected = Agreement.EXACT if factor else Agreement.OPEN
        assert agreement(source, outcome, n=number) is expected, (unit, number)


def test_a_variable_stands_for_its_expression() -> None:
    inputs = Inputs(Problem(), "2020-07-01")
    source = "events.exists(e, size(e.Resources) == {})"
    assert term(inputs, source.format("variables.n"), n="1 + 1") == term(inputs, source.format("(1 + 1)"))
    assert term(inputs, source.format("variables.n"), n="1 + 2") != term(
        inputs, source.format("variables.n"), n="1 + 1"
    )


def test_opaque_terms_of_two_events_may_differ() -> None:
    inputs = Inputs(Problem(), "2020-07-01")
    beside = inputs.variant(["DurationInSeconds"], same_document=True)
    product, document = "event.DurationInSeconds * event.DurationInSeconds > 4", "size(events.filter(e, true)) > 4"
    assert term(inputs, product) == term(inputs, product)
    assert term(inputs, product) != term(beside, product)
    assert term(inputs, document) == term(beside, document)


def test_values_bound_around_two_loops_are_distinct() -> None:
    inputs = Inputs(Problem(), "2020-07-01")
    timed, lasting = inputs.has_not_before, inputs.event_field("DurationInSeconds")[1]
    first, second = (
        value(inputs, f"cel.bind(x, has(event.{field}), event.Resources.exists(r, {body}))")
        for field, body in (("NotBefore", "x && r != ''"), ("DurationInSeconds", "!x && r != ''"))
    )
    facts = Facts(inputs.problem, *inputs.facts())
    assert facts.certain(conj((first, neg(second))), timed, lasting)
    assert facts.certain(conj((neg(first), neg(second))), neg(timed), lasting)
    assert facts.certain(conj((neg(first), second)), neg(timed), neg(lasting))
    assert not inputs.problem.opaque


@pytest.mark.parametrize("source", ["vm.tags.role", "vm.tags['role']", "has(vm.tags.role)", "'role' in vm.tags"])
def test_tags_are_understood(source: str) -> None:
    inputs = Inputs(Problem(), "2020-07-01")
    term(inputs, source)
    assert inputs.problem.opaque == {}
    assert list(inputs.tags.read) == ["role"]


def test_nested_loop_over_names_is_opaque() -> None:
    inputs = Inputs(Problem(), "2020-07-01")
    inner = "event.Resources.exists(b, a != b)"
    term(inputs, f"event.Resources.all(a, {inner})")
    assert list(inputs.problem.opaque) == [inner]


def test_opaque_terms_of_two_elements_may_differ() -> None:
    inputs = Inputs(Problem(), "2020-07-01")
    term(inputs, "['a', 'b'].exists_one(x, event.EventId.replace(x, vm.zone) == 'b')")
    assert len(inputs.problem.opaque) == 1
    one, other = (
        term(inputs, f"[{text!r}].exists(x, event.EventId.replace(x, vm.zone) == 'b')") for text in ("a", "b")
    )
    assert one != other


def test_pattern_matches_the_result_of_a_function() -> None:
    inputs = Inputs(Problem(), "2020-07-01")
    sources = [f"event.Description{function}.matches('^a$')" for function in ("", ".lowerAscii()", ".upperAscii()")]
    assert len({term(inputs, source) for source in sources}) == 3
    for source in sources:
        assert term(inputs, source) == term(inputs, source)


def test_tag_has_no_value_without_known_tags() -> None:
    inputs = Inputs(Problem(), "2020-07-01")
    form = check("vm.tags.role", policy_declarations("2020-07-01", {}, {}, {})).form
    role = ExpressionEncoder(inputs, lambda _name: Encoding(NOTHING)).value({"source": "vm.tags.role", "form": form})
    facts = Facts(inputs.problem, *inputs.facts())
    assert facts.certain(role.error, neg(inputs.tags.known))
    assert facts.possible(inputs.tags.known, neg(role.error))
    assert facts.possible(inputs.tags.known, role.error)
