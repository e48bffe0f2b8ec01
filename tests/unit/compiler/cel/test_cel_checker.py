# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the compiler reports: every code at its place, all mistakes at once and each once, and what it must accept."""

from __future__ import annotations

import pytest
from forewarn.compiler.cel import types as t
from forewarn.compiler.cel.environment import invariant_declarations, policy_declarations
from forewarn.compiler.cel.expression import CODES, check, compile_expression
from forewarn.compiler.cel.types import Declarations, Type
from forewarn.events import API_VERSIONS, FIELD_SINCE
from forewarn.policy.evaluation_error import EvaluationError

PARAMS = {"limit": t.INT, "ratio": t.DOUBLE, "wait": t.DURATION, "names": t.list_of(t.STRING), "flag": t.BOOL}
VARIABLES = {"short": t.BOOL, "counted": t.INT}
LATEST = policy_declarations("2020-07-01", PARAMS, VARIABLES, {})
OLD = policy_declarations("2017-08-01", PARAMS, VARIABLES, {})


def reported(source: str, declarations: Declarations = LATEST, expect: Type | None = None) -> list[tuple[str, str]]:
    """Return the code of each finding and the text that it points at."""
    findings = check(source, declarations, expect).findings
    return [(finding.code, source[finding.start : finding.end]) for finding in findings]


# One expression for each code, and the text it must point at.
EXAMPLES = {
    "syntax": ("affects_me and leader", "and"),
    "too-long": ("'" + "a" * 10_000 + "' == ''", "'"),
    "too-deep": ("!" * 70 + "leader", None),
    "too-costly": ("events.all(a, events.all(b, events.all(c, a.EventId != b.EventId)))", None),
    "literal-newline": ("event.EventId == '''a\nb'''", "\n"),
    "engines-disagree": ("has(events[0].NotBefore)", "events[0]"),
    "bad-escape": (r"event.EventId == 'a\d'", r"\d"),
    "bad-number": ("event.DurationInSeconds < 99999999999999999999", "99999999999999999999"),
    "bad-literal": ("notice < duration('5 minutes')", "duration('5 minutes')"),
    "reserved-word": ("event.EventId == namespace", "namespace"),
    "undeclared-name": ("evnt.EventType == 'Freeze' || leader", "evnt"),
    "unknown-field": ("leader && event.Duration < 9", "event.Duration"),
    "unknown-value": ("event.EventType == 'freeze'", "'freeze'"),
    "unknown-function": ("event.EventId.startswith('a')", "event.EventId.startswith('a')"),
    "field-not-in-api-version": ("leader && event.DurationInSeconds < 9", "event.DurationInSeconds"),
    "value-not-in-api-version": ("leader || event.EventType in ['Freeze', 'Preempt']", "'Preempt'"),
    "case-sensitive": ("leader || vm.name in event.Resources", "vm.name in event.Resources"),
    "type-mismatch": ("leader && event.DurationInSeconds < '9'", "event.DurationInSeconds < '9'"),
    "mixed-types": ("[1, event] == []", "event"),
    "bad-macro": ("leader && has(event)", "has(event)"),
    "unsupported": ("event.EventId.matches(vm.name)", "vm.name"),
    "wrong-result-type": ("event.EventId", "event.EventId"),
}


def test_every_code_has_an_example() -> None:
    only_in_bodies = {"not-json"}  # tests/unit/compiler/policy_file/test_hook_bodies.py has its examples
    assert EXAMPLES.keys() | only_in_bodies == CODES.keys()


@pytest.mark.parametrize("code", EXAMPLES)
def test_code_is_reported_alone_and_at_its_place(code: str) -> None:
    source, text = EXAMPLES[code]
    declarations = OLD if code.endswith("-not-in-api-version") else LATEST
    found = reported(source, declarations, t.BOOL)
    assert [found_code for found_code, _text in found] == [code]
    if text is not None:
        assert found[0][1] == text


def test_all_mistakes_are_reported_at_once_in_order() -> None:
    source = "evnt.X == 1 && event.EventTyp == 'a' && event.EventStatus == 'Begun' && 1 + 'a' == 2 && 5 && leader"
    assert reported(source) == [
        ("undeclared-name", "evnt"),
        ("unknown-field", "event.EventTyp"),
        ("unknown-value", "'Begun'"),
        ("type-mismatch", "1 + 'a'"),
        ("type-mismatch", "5"),
    ]


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("evnt.A.b.size() + 1 == 2 && evnt2", [("undeclared-name", "evnt"), ("undeclared-name", "evnt2")]),
        ("size(nobody) > 'a'", [("type-mismatch", "size(nobody) > 'a'"), ("undeclared-name", "nobody")]),
        ("string(nobody) + 1 == 'a'", [("type-mismatch", "string(nobody) + 1"), ("undeclared-name", "nobody")]),
        ("bytes(string(timestamp('x') + notice)) == b''", [("bad-literal", "timestamp('x')")]),
        ("nobody.all(x, x == 1 && x == 'a')", [("undeclared-name", "nobody")]),
        ("[nobody, 1].exists(x, x == 'a')", [("undeclared-name", "nobody"), ("type-mismatch", "x == 'a'")]),
        ("nobody ? 1 : 'a'", [("undeclared-name", "nobody"), ("type-mismatch", "nobody ? 1 : 'a'")]),
        ("!nobody && -nobody == 1", [("undeclared-name", "nobody"), ("undeclared-name", "nobody")]),
        ("{nobody: 1}[5] == 1", [("undeclared-name", "nobody")]),
        ("variables.shrt", [("undeclared-name", "variables.shrt")]),
        ("variables == 1", [("type-mismatch", "variables")]),
        ("event == events[0]", [("type-mismatch", "event == events[0]")]),
        ("event in events", [("type-mismatch", "event in events")]),
        ("event['EventId'] == ''", [("type-mismatch", "event['EventId']")]),
        ("event.EventId.foo == ''", [("type-mismatch", "event.EventId.foo")]),
        ("event.DurationInSeconds == null", [("type-mismatch", "event.DurationInSeconds == null")]),
        ("event.DurationInSeconds < 30.5", []),
        ("event.DurationInSeconds == 30u", []),
        ("event.DurationInSeconds + 30.5 > 1.0", [("type-mismatch", "event.DurationInSeconds + 30.5")]),
        ("event.EventId in ['a', 1]", [("type-mismatch", "event.EventId in ['a', 1]")]),
        ("event.DurationInSeconds && true", [("type-mismatch", "event.DurationInSeconds")]),
        ("event.NotBefore < '2026-01-01T00:00:00Z'", [("type-mismatch", "event.NotBefore < '2026-01-01T00:00:00Z'")]),
        ("notice < 300", [("type-mismatch", "notice < 300")]),
        ("events < events", [("type-mismatch", "events < events")]),
        ("1 / 0 == 1", [("bad-literal", "1 / 0")]),
        ("{'a': 1, 'a': 2}.a == 1", [("bad-literal", "'a'")]),
        ("timestamp('2026-02-30T00:00:00Z') < now", [("bad-literal", "timestamp('2026-02-30T00:00:00Z')")]),
        ("now.getHours('Europe/Belin') == 1", [("bad-literal", "now.getHours('Europe/Belin')")]),
        ("event.EventId.matches('(?=a)')", [("bad-literal", "'(?=a)'")]),
        ("event.EventId.matches(vm.name)", [("unsupported", "vm.name")]),
        ("type(1) == int", []),
        ("'%s'.format([1]) == ''", []),
        ("'%s %s'.format([1]) == ''", [("bad-literal", "[1]")]),
        ("'%y'.format([1]) == ''", [("bad-literal", "'%y'")]),
        ("notice.getMilliseconds() == 1", [("type-mismatch", "notice.getMilliseconds()")]),
        ("matches('a')", [("type-mismatch", "matches('a')")]),
        ("startsWith(vm.name, 'a')", [("unknown-function", "startsWith(vm.name, 'a')")]),
        ("'a'.int() == 1", [("unknown-function", "'a'.int()")]),
        ("has(vm.tags.a.b)", [("type-mismatch", "vm.tags.a.b")]),
        ("has(event.EventTyp)", [("unknown-field", "event.EventTyp")]),
        ("has(events[0].NotBefore)", [("engines-disagree", "events[0]")]),
        ("has({'a': {'b': 1}}.a.b)", [("engines-disagree", "{'a': {'b': 1}}.a")]),
        ("[1].all(1, true)", [("bad-macro", "[1].all(1, true)")]),
        ("[1].all(x)", [("bad-macro", "[1].all(x)")]),
        ("[1].exists(x, y, true)", []),
        ("[1].exists(x, 1, true)", [("bad-macro", "[1].exists(x, 1, true)")]),
        ("[1].transformList(x, x)", [("bad-macro", "[1].transformList(x, x)")]),
        ("vm.name.all(c, c == 'a')", [("type-mismatch", "vm.name")]),
        ("[1].all(x, x)", [("type-mismatch", "x")]),
        ("[1].map(x, x, x) == []", [("type-mismatch", "x")]),
        ("[1].exists(x, true) && x == 1", [("undeclared-name", "x")]),
        ("[[], [1], ['a']] == []", []),
        ("{1: 1, 'a': 1} == {}", []),
        ("{1.5: 1} == {}", [("type-mismatch", "1.5")]),
        ("vm.tags in {}", [("type-mismatch", "vm.tags in {}")]),
        ("event.Resources in {}", [("type-mismatch", "event.Resources in {}")]),
        ("null in {} || 1.0 in {}", [("type-mismatch", "null in {}"), ("type-mismatch", "1.0 in {}")]),
        ("{}[event.Resources] == 1", [("type-mismatch", "{}[event.Resources]")]),
    ],
)
def test_findings_of_an_expression(source: str, found: list[tuple[str, str]]) -> None:
    assert reported(source) == found


@pytest.mark.parametrize(
    ("source", "suggestion"),
    [
        ("evnt.EventType == ''", "did you mean event?"),
        ("affectsme", "did you mean affects_me?"),
        ("event.DurationInSeconds < params.nothing", "declare it in params: {name: nothing, type: …, default: …}"),
        ("now.age > 5", "ask it with a function: getFullYear(), getDayOfWeek(), getHours() …"),
        ("notice < duration('2d')", "there are no days in CEL: write 48h"),
        ("notice < duration('90')", "say in which unit, as in 90s"),
        ("event.eventtype == ''", "did you mean EventType?"),
        ("event.EventStatus == 'started'", "did you mean Started?"),
        ("event.EventType == 'SpotRebalanceRecommendation'", "declare it in extra_values if the service has it"),
        ("event.EventId.StartsWith('a')", "did you mean startsWith?"),
        ("event['EventId'] == ''", "write .EventId"),
    ],
)  # fmt: skip
def test_suggestion(source: str, suggestion: str) -> None:
    assert suggestion in [finding.suggestion for finding in check(source, LATEST).findings]


# Fields and api-versions


@pytest.mark.parametrize("version", API_VERSIONS)
@pytest.mark.parametrize("name", FIELD_SINCE)
def test_field_of_each_api_version(version: str, name: str) -> None:
    """SE-03: a field that a version lacks is reported with the version that added it, unless has() guards it."""
    declarations = policy_declarations(version, {}, {}, {})
    unguarded = check(f"event.{name} == event.{name}", declarations, t.BOOL)
    if FIELD_SINCE[name] <= version:
        assert unguarded.findings == ()
    else:
        assert [finding.code for finding in unguarded.findings] == ["field-not-in-api-version"] * 2
        finding = unguarded.findings[0]
        assert finding.message == f"event has no {name} in api-version {version}; it came with {FIELD_SINCE[name]}"
        assert finding.suggestion == f"guard it: has(event.{name}) && …; in a rule that holds, !has(event.{name}) || …"
    assert check(f"has(event.{name}) && event.{name} == event.{name}", declarations, t.BOOL).findings == ()


GUARDED = [
    "has(event.DurationInSeconds) && event.DurationInSeconds < 9",
    "event.DurationInSeconds < 9 && has(event.DurationInSeconds)",  # && absorbs, so the side does not matter
    "leader && has(event.DurationInSeconds) && event.DurationInSeconds < 9",
    "has(event.DurationInSeconds) && (leader || event.DurationInSeconds < 9)",
    "!has(event.DurationInSeconds) || event.DurationInSeconds < 9",
    "event.DurationInSeconds < 9 || !has(event.DurationInSeconds)",
    "!(has(event.DurationInSeconds) && leader) || event.DurationInSeconds < 9",
    "!(!has(event.DurationInSeconds) || leader) && event.DurationInSeconds < 9",
    "has(event.DurationInSeconds) ? event.DurationInSeconds < 9 : leader",
    "!has(event.DurationInSeconds) ? leader : event.DurationInSeconds < 9",
    "(has(event.DurationInSeconds) && leader) ? event.DurationInSeconds < 9 : leader",
    "(!has(event.DurationInSeconds) || leader) ? leader : event.DurationInSeconds < 9",
    "has(event.DurationInSeconds) && [1].all(x, event.DurationInSeconds < x)",
    "has(event.DurationInSeconds) && [event].all(x, event.DurationInSeconds < 9)",
    "events.all(e, has(e.DurationInSeconds) && e.DurationInSeconds < 9)",
    "events.map(e, has(e.DurationInSeconds), e.DurationInSeconds) == [9]",
    "has(event.DurationInSeconds) && leader && has(event.EventSource) == leader && event.DurationInSeconds < 9",
]  # fmt: skip
UNGUARDED = [
    "has(event.DurationInSeconds) || event.DurationInSeconds < 9",
    "!has(event.DurationInSeconds) && event.DurationInSeconds < 9",
    "(has(event.DurationInSeconds) || leader) && event.DurationInSeconds < 9",
    "!(has(event.DurationInSeconds) && leader) && event.DurationInSeconds < 9",
    "has(event.DurationInSeconds) ? leader : event.DurationInSeconds < 9",
    "(has(event.DurationInSeconds) || leader) ? event.DurationInSeconds < 9 : leader",
    "has(event.Description) && event.DurationInSeconds < 9",
    "has(event.DurationInSeconds) == true && event.DurationInSeconds < 9",
    "events.all(e, has(e.DurationInSeconds)) && events.all(e, e.DurationInSeconds < 9)",
    "has(event.DurationInSeconds) && events.all(event, event.DurationInSeconds < 9)",  # another event by that name
    "events.all(e, has(event.DurationInSeconds) && e.DurationInSeconds < 9)",
    "events.exists(e, has(e.DurationInSeconds) && events.exists(e, e.DurationInSeconds < 9))",
    "events.filter(e, has(e.DurationInSeconds)).all(e, e.DurationInSeconds < 9)",
    "[has(event.DurationInSeconds)][0] && event.DurationInSeconds < 9",
]


@pytest.mark.parametrize("source", GUARDED)
def test_guarded_field_is_accepted(source: str) -> None:
    assert reported(source, OLD) == []


@pytest.mark.parametrize("source", UNGUARDED)
def test_guard_that_guards_nothing(source: str) -> None:
    codes = {code for code, _text in reported(source, OLD)}
    assert codes == {"field-not-in-api-version"}


def test_extra_values_are_known() -> None:
    declarations = policy_declarations("2020-07-01", {}, {}, {"EventType": ("Spot",), "EventStatus": ("Done",)})
    assert reported("event.EventType in ['Spot', 'Freeze'] && event.EventStatus != 'Done'", declarations) == []
    assert reported("event.EventStatus == 'Spot'", declarations) == [("unknown-value", "'Spot'")]


def test_values_are_followed_through_conditions_lists_and_loops() -> None:
    for source in (
        "(leader ? event.EventType : event.EventType) == 'x'",
        "'x' == event.EventSource",
        "event.EventSource in ['User', 'x']",
        "'x' in [event.EventSource]",
        "events.all(e, e.EventType != 'x')",
        "events.map(e, e.EventType).exists(k, k == 'x')",
        "events.map(e, e.EventType)[0] == 'x'",
        "{'Preempt': 1, 'x': 2}[event.EventType] == 1",
        "event.EventType in {'x': 1}",
        "[event.EventType] == ['x']",
        "(leader ? 'x' : 'Freeze') == event.EventType",
        "event.EventType in [leader ? 'Freeze' : 'x']",
        "event.?EventType.orValue('none') == 'x'",
        "event.?EventType.value() == 'x'",
        "event.?EventType == optional.of('x')",
        "event.?EventType.optMap(t, t == 'x').orValue(false)",
        "cel.bind(t, event.EventType, t == 'x')",
        "[event.EventType].distinct()[0] == 'x'",
        "events.map(e, e.EventType).sort().slice(0, 1)[0] == 'x'",
        "{'x': 1}[?event.EventType].hasValue()",
        "sets.contains(['Freeze', 'x'], [event.EventType])",
        "sets.intersects([event.EventType], ['x'])",
    ):
        assert reported(source) == [("unknown-value", "'x'")], source
    for source in (
        "(leader ? event.EventType : vm.name) == 'x'",
        "event.EventType + '' == 'x'",
        "event.EventType.startsWith('x')",
        "vm.name == 'x'",
        "['x'].exists(one, one == event.EventType)",  # a loop's variable is not known to be a literal
        "{'x': 1}[vm.name] == 1",
        "[vm.name, event.EventType] == ['x', 'x']",
        "event.?EventType.orValue('x') == 'x'",
        "event.?EventType.orValue(vm.name) == 'x'",
        "dyn(event.EventType) == 'x'",
    ):
        assert reported(source) == [], source


def test_names_of_invariants() -> None:
    declarations = invariant_declarations(policy_declarations("2020-07-01", {}, {}, {}))
    assert reported("!(decision == approve && event.DurationInSeconds == -1)", declarations, t.BOOL) == []
    assert reported("decision == 'aprove'", declarations) == [("unknown-value", "'aprove'")]
    assert reported("decision == approve")[0] == ("undeclared-name", "decision")


@pytest.mark.parametrize("expect", [t.BOOL, t.STRING, t.INT, None])
def test_expected_type(expect: Type | None) -> None:
    checked = check("event.EventId", LATEST, expect)
    assert (checked.form is not None) == (expect in (t.STRING, None))
    assert reported("[][0]", LATEST, expect) == []  # fits every type, and always fails


@pytest.mark.parametrize(
    "source",
    [
        "event.EventType == 'Freeze' && event.DurationInSeconds >= 0 && event.DurationInSeconds < params.limit",
        "event.EventType in ['Reboot', 'Redeploy', 'Preempt', 'Terminate'] && affects_me",
        "notice < duration('5m') || age > params.wait",
        "has(event.NotBefore) && event.NotBefore - now > duration('1h')",
        "events.exists(e, e.EventStatus == 'Started' && e.EventId != event.EventId)",
        "event.Resources.exists_one(r, r == 'web_0') && event.Resources.size() <= 2",
        "vm.tags['role'] == 'web' || (has(vm.tags.role) && vm.tags.role.startsWith('web'))",
        "'role' in vm.tags && vm.tags.role in params.names",
        "now.getDayOfWeek('Europe/Berlin') in [0, 6] || now.getHours() < 6",
        "variables.short && variables.counted % 2 == 0",
        "event.Description.lowerAscii().contains('live migration')",
        "vm.name.matches('^web_[0-9]+$')",
        "event.Resources.map(r, r.split('_')[0]).all(p, p == vm.name.split('_')[0])",
        "(leader ? duration('1m') : duration('2m')) < notice",
        "double(event.DurationInSeconds) / 2.0 < params.ratio",
        "[] == params.names || {} == vm.tags || [[]] == [[1]]",
        "int(vm.fault_domain) + 1 > 0 && string(1u) == '1' && bool('true')",
        "null == null",
    ],
)
def test_expression_of_a_policy_is_accepted(source: str) -> None:
    assert reported(source, LATEST, t.BOOL) == []


def test_cost_counts_loops_in_loops() -> None:
    assert reported("events.all(a, events.all(b, a.EventId != b.EventId))") == []
    assert reported("[1, 2].all(a, [1, 2].all(b, [1, 2].all(c, [1, 2].all(d, a + b + c + d > 0))))") == []
    assert reported("events.all(a, [1, 2].all(b, events.all(c, a.EventId != c.EventId)))") == []
    assert reported("events.all(a, a.Resources.all(r, event.Resources.all(s, r != s)))")[0][0] == "too-costly"


def test_wrong_condition_and_bad_pattern_have_suggestions() -> None:
    (finding,) = check("event.DurationInSeconds", LATEST, t.BOOL).findings
    assert (finding.code, finding.suggestion) == ("wrong-result-type", "compare it, as in … == 0")
    (finding,) = check("event.EventId.matches('(')", LATEST).findings
    assert "a backslash before" in finding.suggestion


@pytest.mark.parametrize(
    "source",
    [
        "[1 / size(s)][?-1].hasValue()",
        "optional.none().or({'a': [1]}.?b)[?1 / size(s)].hasValue()",
        "{'a': {'b': 1}}.?c[?s + string(1 / size(s))].orValue(0) == 0",
        "{s: 1}[?string(1 / size(s))].hasValue()",
    ],
)
def test_optional_index_evaluates_both_operands(source: str) -> None:
    """Also where the answer is known without it: CEL evaluates both first."""
    expression = compile_expression(source, {"s": t.STRING})
    with pytest.raises(EvaluationError, match="division by zero"):
        expression({"s": ""})


def test_element_of_nothing_fits_every_type() -> None:
    assert compile_expression("optional.of(1).or([][0]).value()", {})({}) == 1
    with pytest.raises(EvaluationError, match="out of range"):
        compile_expression("optional.none().or([][0]).hasValue()", {})({})
