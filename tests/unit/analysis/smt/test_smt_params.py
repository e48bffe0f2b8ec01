# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parameters as terms: what a host may give, what a policy reads then, and which versions run."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from forewarn.analysis.policy_outcome import ERROR, RULE
from forewarn.analysis.proof import Example, Proof
from forewarn.analysis.smt.encode.params import Params, exact
from forewarn.analysis.smt.encode.problem import OpaqueValue, Problem, TextList
from forewarn.analysis.smt.solver import SolverAnswer
from forewarn.analysis.smt.terms import conj, disj, neg, same
from forewarn.analysis.witness import as_json
from forewarn.errors import InputError
from forewarn.policy.evaluation_error import EvaluationError
from forewarn.policy.functions.standard import INT_MAX, INT_MIN
from forewarn.policy.functions.table import FUNCTIONS
from forewarn.policy.functions.timevalues import MAX_DURATION, MIN_DURATION, from_datetime
from tools.fixtures.policy_files import loaded
from tools.judges.smt_facts import Facts

MINUTE, DAY = 60 * 10**9, 24 * 3600 * 10**9


def declared(type_: str, name: str = "x", **keys: Any) -> dict[str, Any]:
    return {"name": name, "type": type_, **keys}


def params(
    *versions: Sequence[Mapping[str, Any]], fixed: Mapping[str, Any] | None = None, names: Sequence[str] = "pqr"
) -> tuple[Problem, Params]:
    """Return parameters of versions, each the declarations of x by one policy after another."""
    problem = Problem()
    policies = [[{"name": name, "params": [entry]} for name, entry in zip(names, version)] for version in versions]
    return problem, Params(problem, policies, fixed or {})


def allowed(problem: Problem, made: Params, values: Sequence[Any], *versions: int) -> list[Any]:
    """Return the values with which all of some versions run."""
    term = made.varying()["x"][1]
    texts = problem.texts
    equal = {
        value: same(
            term,
            texts.code(value)
            if isinstance(value, str)
            else exact(problem, value)
            if isinstance(value, float)
            else value,
        )
        for value in values
    }
    facts = Facts(problem)
    return [value for value in values if facts.possible(equal[value], *map(made.accepted, versions))]


@pytest.mark.parametrize(
    ("entry", "values", "right"),
    [
        (declared("int", default=1), (INT_MIN - 1, INT_MIN, 0, INT_MAX, INT_MAX + 1), [INT_MIN, 0, INT_MAX]),
        (declared("int", default=1, min=0), (-1, 0, 1), [0, 1]),
        (declared("int", default=1, max=2), (1, 2, 3), [1, 2]),
        (declared("int", default=1, min=1, max=2), (0, 1, 2, 3), [1, 2]),
        (declared("int", default=1, enum=[1, 4]), (0, 1, 2, 4), [1, 4]),
        (
            declared("duration", default="1m", max="2m"),
            (MIN_DURATION - 1, MIN_DURATION, 2 * MINUTE, 2 * MINUTE + 1),
            [MIN_DURATION, 2 * MINUTE],
        ),
        (
            declared("duration", default="1m", min="1m"),
            (MINUTE - 1, MINUTE, MAX_DURATION, MAX_DURATION + 1),
            [MINUTE, MAX_DURATION],
        ),
        (declared("double", default=0.5, min=0.25, max=0.5), (0.1, 0.25, 0.5, 0.75), [0.25, 0.5]),
        (declared("double", default=0.5, enum=[0.5, 0.1]), (0.1, 0.25, 0.5), [0.1, 0.5]),
        (
            declared("double", default=0.5),
            (-sys.float_info.max, sys.float_info.max),
            [-sys.float_info.max, sys.float_info.max],
        ),
        (declared("string", default="a", enum=["a", "b"]), ("a", "b", "c"), ["a", "b"]),
        (declared("string", default="a"), ("a", "b"), ["a", "b"]),
        (declared("bool", default=True), (True, False), [True, False]),
        (declared("bool", default=True, enum=[True]), (True, False), [True]),
    ],
)
def test_a_declaration_allows(entry: Mapping[str, Any], values: Sequence[Any], right: list[Any]) -> None:
    problem, made = params([entry])
    assert allowed(problem, made, values, 0) == right


def test_a_double_is_finite() -> None:
    problem, made = params([declared("double", default=0.5)])
    largest, term = exact(problem, sys.float_info.max), made.varying()["x"][1]
    assert not Facts(problem).possible(term > largest)
    problem, made = params([declared("double", default=0.5)])
    largest, term = exact(problem, sys.float_info.max), made.varying()["x"][1]
    assert not Facts(problem).possible(term < -largest)


def test_policies_of_a_version_run_together() -> None:
    problem, made = params([declared("int", default=1, max=5), declared("int", default=1, min=3)])
    assert allowed(problem, made, (2, 3, 5, 6), 0) == [3, 5]


def test_some_version_runs() -> None:
    versions = [declared("int", default=1, max=5)], [declared("int", default=1, min=3)]
    problem, made = params(*versions)
    assert allowed(problem, made, (2, 3, 5, 6)) == [2, 3, 5, 6]
    for version, right in ((0, [2, 3, 5]), (1, [3, 5, 6])):
        problem, made = params(*versions)
        assert allowed(problem, made, (2, 3, 5, 6), version) == right
    problem, made = params([declared("int", default=1, max=1)], [declared("int", default=1, max=2)])
    assert allowed(problem, made, (1, 2, 3)) == [1, 2]


def test_a_parameter_with_one_default_is_always_given() -> None:
    _problem, made = params([declared("int", default=1), declared("int", default=1)])
    kind, term, given = made.varying()["x"]
    assert (kind, given) == ("int", True)
    assert made.value(0, "p", "x").value is term
    assert made.owners(0, "x") == ["p"]


def test_missing_value_is_each_policys_default() -> None:
    problem, made = params([declared("int", default=1), declared("int", default=2), declared("int", default=1)])
    _kind, term, given = made.varying()["x"]
    values = {policy: made.value(0, policy, "x").value for policy in "pqr"}
    anybody = made.value(0, None, "x").value
    facts = Facts(problem)
    for policy, default in (("p", 1), ("q", 2), ("r", 1)):
        assert facts.certain(values[policy] == default, neg(given))
        assert facts.certain(values[policy] == term, given)
    assert facts.certain(anybody == 1, neg(given))
    assert made.owners(0, "x") == ["p", "q"]
    assert made.owners(1, "x") == []


def test_each_version_reads_its_own_default() -> None:
    problem, made = params([declared("string", default="a")], [declared("string", default="b")])
    given = made.varying()["x"][2]
    values = [made.value(version, "p", "x").value for version in (0, 1)]
    right = [same(value, problem.texts.code(text)) for value, text in zip(values, "ab")]
    assert Facts(problem).certain(conj(right), neg(given))


def test_version_without_a_default_needs_a_value() -> None:
    problem, made = params([declared("int", default=1, max=5)], [declared("int", min=3)], [declared("int", default=2)])
    _kind, term, given = made.varying()["x"]
    facts = Facts(problem)
    assert facts.possible(neg(given), made.accepted(0))
    assert not facts.possible(neg(given), made.accepted(1))
    assert facts.certain(made.accepted(0), neg(given), term == 9)  # what is not given is within no limits
    assert facts.certain(neg(made.accepted(0)), given, term == 9)
    assert made.value(1, "p", "x").value is term


def test_what_the_command_gives_is_a_constant() -> None:
    _problem, made = params([declared("duration", default="1m", max="2m")], fixed={"x": "90s"})
    assert made.varying() == {}
    assert made.value(0, "p", "x").value == 90 * 10**9
    assert made.accepted(0) is True
    assert made.owners(0, "x") == ["p"]
    assert made.assumptions == ["params.x is 90s, as given"]
    _problem, refused = params([declared("int", default=1, max=2)], [declared("int", default=1)], fixed={"x": 3})
    assert (refused.accepted(0), refused.accepted(1)) == (False, True)
    with pytest.raises(InputError, match="y"):
        params([declared("int", default=1)], fixed={"y": 1})


@pytest.mark.parametrize(
    "entries",
    [
        [declared("list(int)", default=[1])],
        [declared("map(string, int)", default={})],
        [declared("int", default=1), declared("string", default="a")],
    ],
)
def test_what_the_solver_has_no_values_for(entries: Sequence[Mapping[str, Any]]) -> None:
    _problem, made = params(entries)
    assert isinstance(made.value(0, "p", "x").value, OpaqueValue)
    assert made.accepted(0) is True
    assert not [given for _kind, term, given in made.varying().values() if term is not None]
    words = " or ".join(sorted(entry["type"] for entry in entries))
    assert made.assumptions == [f"params.x is any {words}"]
    with pytest.raises(InputError, match="x has no default"):
        params([{key: value for key, value in entry.items() if key != "default"} for entry in entries])


WORDS = ("a", "b", "c", "")
LISTS = tuple(list(some) for size in range(5) for some in itertools.combinations(WORDS, size))


def has_all(has: Callable[[str], Any], words: Sequence[str]) -> list[Any]:
    """Return that a list has some words, and none of the others."""
    return [has(word) if word in words else neg(has(word)) for word in WORDS]


def test_a_list_of_texts_has_any_texts() -> None:
    problem, made = params([declared("list(string)", default=["a"])])
    assert made.assumptions == ["params.x is any list(string)"]
    read = made.value(0, "p", "x").value
    assert isinstance(read, TextList)
    term = problem.texts.variable("text", lambda _text: True)
    has_term, known = read.has(term), [has_all(read.has, words) for words in LISTS]
    equal = {word: same(term, problem.texts.code(word)) for word in WORDS}
    facts = Facts(problem)
    for words, formulas in zip(LISTS, known):
        assert facts.possible(*formulas)
        for word in WORDS:
            assert facts.certain(has_term if word in words else neg(has_term), equal[word], *formulas)
    assert facts.possible(has_term, *known[0])  # it may be another text


@pytest.mark.parametrize("later", [True, False], ids=["asked later", "asked before"])
def test_string_list_is_limited_by_its_declaration(later: bool) -> None:
    entries = declared("list(string)", default=["a"], each=["a", "b"]), declared("list(string)", default=["a"])
    problem, made = params([entries[1]], [entries[0]]) if later else params([entries[0]], [entries[1]])
    limited, free = (1, 0) if later else (0, 1)
    known = [has_all(made.value(0, "p", "x").value.has, words) for words in LISTS]
    facts = Facts(problem)
    assert made.accepted(free) is True
    for words, formulas in zip(LISTS, known):
        allowed_there = set(words) <= {"a", "b"}
        assert facts.possible(made.accepted(limited), *formulas) == allowed_there
        assert facts.possible(neg(made.accepted(limited)), *formulas)  # it may have texts that nobody asks for


def test_missing_string_list_is_each_versions_default() -> None:
    problem, made = params([declared("list(string)", default=["a"])], [declared("list(string)", default=["b", "c"])])
    _members, given, defaults = made.lists()["x"]
    assert list(defaults) == [["a"], ["b", "c"]]
    first, second = (has_all(made.value(version, "p", "x").value.has, ()) for version in (0, 1))
    right = [
        conj(one if word not in default else neg(one) for word, one in zip(WORDS, found))
        for default, found in zip(defaults, (first, second))
    ]
    facts = Facts(problem)
    assert facts.certain(conj(right), neg(given))
    assert facts.certain(conj(same(one, other) for one, other in zip(first, second)), given)


def test_a_list_of_texts_is_the_usual_one() -> None:
    problem, made = params([declared("list(string)", default=["a"])])
    has = made.value(0, "p", "x").value.has
    a, b, usual, other = has("a"), has("b"), made.usual({}), made.usual({"x": ["b"]})
    facts = Facts(problem)
    assert facts.certain(conj((a, neg(b))), *usual)
    assert facts.certain(conj((b, neg(a))), *other)


@pytest.mark.parametrize(
    ("condition", "right"),
    [
        ("event.EventType in params.x && event.EventType == 'Freeze'", lambda x: "Freeze" in x),
        ("!('a' in params.x)", lambda x: "a" not in x),
        ("event.EventType.lowerAscii() in params.x && !('freeze' in params.x)", lambda x: len(x) > 0),
        ("event.Resources.all(r, r in params.x) && size(event.Resources) == 3", lambda x: len(x) > 2),
        ("event.Resources.filter(r, r in params.x).size() == 2 && size(event.Resources) == 9", lambda x: len(x) > 1),
        ("event.Resources.exists(r, !(r in params.x)) && vm.name in params.x", lambda x: len(x) > 0),
    ],
)
def test_the_event_of_a_list_of_texts(condition: str, right: Callable[[list[str]], bool], tmp_path: Path) -> None:
    text = f"""
name: p
params: [{{name: x, type: list(string), default: [a]}}]
rule:
  match:
    - {{id: r, output: approve, condition: {json.dumps(condition)}}}
"""
    proof = Proof([loaded(tmp_path, text)])
    assert not proof.not_understood
    for usual in (True, False):
        shown = proof.shows(proof.decisions[0].approved, usual=usual)
        assert isinstance(shown, Example), shown
        assert right(shown.witness.params.get("x", ["a"])), shown.witness.params
        assert [one.output for one in shown.decisions] == ["approve"]


def test_lists_are_equal_if_their_defaults_are() -> None:
    _problem, made = params(
        [declared("list(int)", default=[1])], [declared("list(int)", default=[1])], [declared("list(int)", default=[2])]
    )
    values = [made.value(version, "p", "x").value for version in range(3)]
    assert values[0] == values[1] != values[2]
    _problem, made = params([declared("list(int)", default=[1])], [])
    assert isinstance(made.value(1, "p", "x").value, OpaqueValue)


@pytest.mark.parametrize(
    ("type_", "values", "right"),
    [
        ("int", (-(10**6) - 1, -(10**6), 10**6, 10**6 + 1), [-(10**6), 10**6]),
        ("duration", (-365 * DAY, 365 * DAY, 365 * DAY + 10**9, 1, 10**9), [-365 * DAY, 365 * DAY, 10**9]),
        (
            "timestamp",
            (0, 29 * 365 * DAY, 30 * 365 * DAY, 130 * 365 * DAY, 130 * 365 * DAY + 10**9, 40 * 365 * DAY + 1),
            [30 * 365 * DAY, 130 * 365 * DAY],
        ),
        ("bool", (True, False), [True, False]),
    ],
)
def test_values_that_people_give(type_: str, values: Sequence[Any], right: list[Any]) -> None:
    problem, made = params([declared(type_)])
    term, modest = made.varying()["x"][1], made.modest()
    facts = Facts(problem)
    assert [value for value in values if facts.possible(*modest, same(term, value))] == right


def test_what_is_not_given_need_not_be_modest() -> None:
    problem, made = params([declared("int", default=1)], [declared("int", default=2)])
    _kind, term, given = made.varying()["x"]
    modest = made.modest()
    assert Facts(problem).possible(*modest, neg(given), term == 10**9)


def test_values_as_json_has_them() -> None:
    assert as_json("int", 1) == 1
    assert as_json("duration", 90 * 10**9) == "90s"
    assert as_json("timestamp", 0) == "1970-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("versions", "words"),
    [
        ([[declared("int", default=1)]], "anything that its declaration allows: any int"),
        ([[declared("int", default=1, min=0)]], "anything that its declaration allows: at least 0"),
        (
            [[declared("int", default=1, min=0, max=5)]],
            "anything that its declaration allows: at least 0 and at most 5",
        ),
        ([[declared("int", default=1, enum=[1, 2])]], "anything that its declaration allows: 1, 2"),
        ([[declared("bool", default=True)]], "anything that its declaration allows: true or false"),
        (
            [[declared("int", default=1, max=5), declared("int", default=1, max=6)]],
            "anything that all of its declarations allow: at most 5; at most 6",
        ),
        (
            [[declared("int", default=1, max=5)], [declared("int", default=1, max=6)]],
            "anything that its declarations allow: at most 5 before, at most 6 after; with what one of them "
            "refuses, it approves nothing",
        ),
        (
            [[declared("int", default=1)], [declared("int")]],
            "anything that its declaration allows: any int; where it is not given, its default is 1 or none",
        ),
        (
            [[declared("int", default=1)], [declared("int", default=2)]],
            "anything that its declaration allows: any int; where it is not given, its default is 1 or 2",
        ),
    ],
)
def test_assumptions_in_words(versions: Sequence[Sequence[Mapping[str, Any]]], words: str) -> None:
    assert params(*versions)[1].assumptions == [f"params.x is {words}"]


def test_usual_value_is_the_default_or_given() -> None:
    problem, made = params([declared("int", default=3)])
    term = made.varying()["x"][1]
    facts = Facts(problem)
    assert facts.certain(term == 3, *made.usual({}))
    assert facts.certain(term == 5, *made.usual({"x": 5}))
    _problem, without = params([declared("int")])
    assert without.usual({}) == []


def test_a_given_parameter_has_one_owner() -> None:
    versions = [declared("int", default=1), declared("int", default=2)]
    assert params(versions)[1].owners(0, "x") == ["p", "q"]
    assert params(versions, fixed={"x": 3})[1].owners(0, "x") == ["p"]


def test_a_list_that_is_not_given_is_allowed() -> None:
    problem, made = params([declared("list(string)", default=["a"])])
    assert Facts(problem).possible(made.accepted(0))


def test_limits_may_change_type_between_versions() -> None:
    number, time = declared("int", default=1, max=9), declared("duration", default="1m", min="1m", max="2m")
    problem, made = params([number], [time])
    facts = Facts(problem)
    assert facts.possible(made.accepted(0), made.accepted(1))
    assert isinstance(made.value(0, "p", "x").value, OpaqueValue)


@pytest.mark.parametrize(
    ("versions", "choices"),
    [
        ([[declared("string", default="a", enum=["a", "b"])]], "ab"),
        ([[declared("string", enum=["a", "b"])]], "ab"),
        ([[declared("string", default="a")]], ""),
        ([[declared("string", default="a", enum=["a", "b"]), declared("string", default="b", enum=["b", "c"])]], "abc"),
        ([[declared("string", default="a", enum=["a", "b"]), declared("string", default="b")]], ""),
        ([[declared("string", default="a", enum=["a", "b"])], [declared("string", default="c", enum=["c"])]], "abc"),
        ([[declared("string", default="a", enum=["a"])], [declared("string", enum=["b"])]], "ab"),
        ([[declared("string", default="a", enum=["a", "b"])], [declared("string", default="a")]], ""),
        ([[declared("string", default="a", enum=["a", "b"])], []], ""),
    ],
)
def test_string_is_in_the_enum_of_all_versions(versions: Sequence[Sequence[Mapping[str, Any]]], choices: str) -> None:
    problem, made = params(*versions)
    texts = problem.texts
    values = [made.value(0, policy, "x").value for policy, _entry in zip("pqr", versions[0])]
    codes = [texts.code(one) for one in choices]
    facts = Facts(problem)
    for value in values:
        assert sorted(problem.choices(value)) == list(choices)
        if codes:
            assert facts.certain(disj(same(value, code) for code in codes))


ZONES = ("UTC", "Europe/Berlin", "America/New_York", "+05:30", "Nowhere")


@pytest.mark.parametrize("function", ["getHours", "getDayOfWeek", "getDayOfYear", "getMilliseconds"])
def test_time_field_in_a_parameter_zone_is_exact(tmp_path: Path, function: str) -> None:
    field = {"getHours": "hours", "getDayOfWeek": "day_of_week", "getDayOfYear": "day_of_year"}.get(
        function, "milliseconds"
    )
    text = f"""name: p
params: [{{name: zone, type: string, default: UTC, enum: {list(ZONES)}}}, {{name: n, type: int, default: 0}}]
rule: {{match: [{{id: some, condition: "now.{function}(params.zone) == params.n", output: approve}}]}}
"""
    proof = Proof([loaded(tmp_path, text)])
    assert proof.not_understood == ()
    terms = {name: term for name, (_kind, term, _given) in proof.params.varying().items()}
    code = {zone: proof.problem.texts.code(zone) for zone in ZONES}
    matched, failed = (
        next(one.when for one in proof.decisions[0].policies[0].outcomes if one.how == how) for how in (RULE, ERROR)
    )
    for time in (datetime(2026, 3, 8, 7, tzinfo=timezone.utc), datetime(2059, 12, 31, 23, 30, tzinfo=timezone.utc)):
        moment = from_datetime(time)
        for zone in ZONES:
            given = [proof.inputs.now_us == moment // 1000, same(terms["zone"], code[zone])]
            try:
                value = FUNCTIONS[field](moment, zone)
            except EvaluationError:
                assert proof.ask(*given, neg(failed), proof.normal) is SolverAnswer.NEVER
                continue
            assert proof.ask(*given, failed) is SolverAnswer.NEVER
            assert proof.ask(*given, matched, terms["n"] == value) is SolverAnswer.POSSIBLE
            assert proof.ask(*given, matched, terms["n"] != value) is SolverAnswer.NEVER
