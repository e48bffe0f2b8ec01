# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Following a hint gives what was meant: it compiles without a finding, and is true where it should be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from forewarn.compiler.cel import types as t
from forewarn.compiler.cel.environment import policy_declarations
from forewarn.compiler.cel.expression import check
from forewarn.compiler.cel.types import Declarations
from forewarn.events import API_VERSIONS, EVENT_TYPE_SINCE
from forewarn.policy.builder import Builder
from forewarn.policy.environment import Scope
from forewarn.policy.evaluation_error import EvaluationError
from forewarn.policy.forms import read_form
from forewarn.policy.functions.timevalues import SECOND

NOW = 1_769_860_800 * SECOND
VARIABLES = {"tags": t.map_of(t.STRING, t.STRING), "first": t.Type("record", name="event")}
PARAMS = {"ratio": t.DOUBLE, "wait": t.DURATION, "limit": t.INT, "label": t.STRING}
DECLARATIONS: Declarations = policy_declarations("2020-07-01", PARAMS, VARIABLES, {})
EVENT: Mapping[str, Any] = {
    "EventId": "e",
    "EventType": "Freeze",
    "EventStatus": "Scheduled",
    "Resources": ["web_0"],
    "NotBefore": NOW + 900 * SECOND,
    "EventSource": "Platform",
    "DurationInSeconds": 30,
}
ROOTS: Mapping[str, Any] = {
    "event": EVENT,
    "events": [EVENT],
    "notice": 900 * SECOND,
    "age": 0,
    "now": NOW,
    "affects_me": True,
    "leader": True,
    "vm": {"name": "web_0", "fault_domain": "1", "tags": {"role": "web"}},
    "params": {"ratio": 1.5, "wait": 60 * SECOND, "limit": 9, "label": "9"},
}


def evaluate(source: str, roots: Mapping[str, Any] = ROOTS) -> Any:
    """Return the value of an expression that has no finding; variables.tags are the VM's, variables.first the event."""
    checked = check(source, DECLARATIONS)
    assert checked.findings == (), source
    assert checked.form is not None
    scope = Scope(tuple(DECLARATIONS.variables))
    for name, form in (("tags", "vm.tags"), ("first", "events[0]")):
        expression = check(form, DECLARATIONS).form
        assert expression is not None
        closure = Builder(scope, {"source": form, "line": 1, "column": 1}).build(read_form(expression))
        scope.add(f"variables.{name}")
        scope.variable_closures[name] = closure
    closure = Builder(scope, {"source": source, "line": 1, "column": 1}).build(read_form(checked.form))
    env = scope.environment(roots)
    env[scope.slots["variables.tags"]] = ROOTS["vm"]["tags"]
    env[scope.slots["variables.first"]] = roots["event"]
    return closure(env)


@pytest.mark.parametrize(
    ("source", "suggestion", "followed", "value"),
    [
        # quotes around what is not text: as text, "30" < "9"
        ('"9" > event.DurationInSeconds', "remove the quotes: 9", "9 > event.DurationInSeconds", False),
        ('event.DurationInSeconds == "-1"', "remove the quotes: -1", "event.DurationInSeconds == -1", False),
        ('leader != "False"', "remove the quotes: false", "leader != false", True),
        ('params.ratio < "2"', "remove the quotes: 2.0", "params.ratio < 2.0", True),
        ('params.ratio < "1.25"', "remove the quotes: 1.25", "params.ratio < 1.25", False),
        (
            'event.DurationInSeconds in ["9", "30"]',
            "remove the quotes: [9, 30]",
            "event.DurationInSeconds in [9, 30]",
            True,
        ),
        (
            'event.DurationInSeconds + "9" > 1',
            "remove the quotes: 9; or, to join texts, write string(event.DurationInSeconds)",
            "event.DurationInSeconds + 9 > 1",
            True,
        ),
        ('affects_me && "true"', "remove the quotes: true", "affects_me && true", True),
        ('!"false"', "remove the quotes: false", "!false", True),
        # texts that are to be something else
        (
            "event.DurationInSeconds < params.label",
            "write int(params.label)",
            "event.DurationInSeconds < int(params.label)",
            False,
        ),
        ("params.ratio < params.label", "write double(params.label)", "params.ratio < double(params.label)", True),
        ("vm.fault_domain == 1", "write '1', in quotes", "vm.fault_domain == '1'", True),
        ("vm.fault_domain == true", "write 'true', in quotes", "vm.fault_domain == 'true'", False),
        ("vm.fault_domain < 2", "write int(vm.fault_domain)", "int(vm.fault_domain) < 2", True),
        ("vm.fault_domain in [1, 2]", "write ['1', '2'], in quotes", "vm.fault_domain in ['1', '2']", True),
        ("0 == affects_me", "write false", "false == affects_me", False),
        # times and durations
        ('notice < "20m"', "write duration('20m')", "notice < duration('20m')", True),
        ('notice < "300"', "say in which unit, as in 300s", "notice < duration('300s')", False),
        ("notice < 300", "say in which unit, as in duration('300s')", "notice < duration('300s')", False),
        (
            "event.DurationInSeconds < duration('9s')",
            "write 9 if event.DurationInSeconds counts seconds",
            "event.DurationInSeconds < 9",
            False,
        ),
        (
            "event.DurationInSeconds < params.wait",
            "write duration(string(event.DurationInSeconds) + 's') if it counts seconds",
            "duration(string(event.DurationInSeconds) + 's') < params.wait",
            True,
        ),
        (
            "event.NotBefore < '2026-01-01T00:00:00Z'",
            "write timestamp('2026-01-01T00:00:00Z')",
            "event.NotBefore < timestamp('2026-01-01T00:00:00Z')",
            False,
        ),
        (
            "event.NotBefore < duration('20m')",
            "write event.NotBefore - now for the time until then",
            "event.NotBefore - now < duration('20m')",
            True,
        ),
        (
            "now + 300 < event.NotBefore",
            "say in which unit, as in duration('300s')",
            "now + duration('300s') < event.NotBefore",
            True,
        ),
        (
            "now + '5m' < event.NotBefore",
            "write duration('5m'); or, to join texts, write string(now)",
            "now + duration('5m') < event.NotBefore",
            True,
        ),
        ("event.NotBefore - '5m' > now", "write duration('5m')", "event.NotBefore - duration('5m') > now", True),
        ("event.NotBefore != ''", "no time is ever blank; write has(event.NotBefore)", "has(event.NotBefore)", True),
        # numbers
        (
            "event.DurationInSeconds * 1.5 > 40.0",
            "write double(event.DurationInSeconds)",
            "double(event.DurationInSeconds) * 1.5 > 40.0",
            True,
        ),
        # absence
        (
            "null != event.EventSource",
            "nothing here is null; write has(event.EventSource)",
            "has(event.EventSource)",
            True,
        ),
        (
            "has(events[0].NotBefore)",
            "write [events[0]].all(x, has(x.NotBefore))",
            "[events[0]].all(x, has(x.NotBefore))",
            True,
        ),
        # membership
        (
            "event.EventType == ['Freeze', 'Reboot']",
            "write event.EventType in ['Freeze', 'Reboot']",
            "event.EventType in ['Freeze', 'Reboot']",
            True,
        ),
        (
            "event.EventType != ['Freeze', 'Reboot']",
            "write !(event.EventType in ['Freeze', 'Reboot'])",
            "!(event.EventType in ['Freeze', 'Reboot'])",
            False,
        ),
        ("event.Resources == 'web_1'", "write 'web_1' in event.Resources", "'web_1' in event.Resources", False),
        (
            "event.EventType in 'Freeze'",
            "write in ['Freeze']; contains() finds a part of a text",
            "event.EventType in ['Freeze']",
            True,
        ),
        ("'web' in vm.name", "write vm.name.contains('web')", "vm.name.contains('web')", True),
        ("'NotBefore' in event", "write has(event.NotBefore)", "has(event.NotBefore)", True),
        (
            "event.Resources.contains('web_0')",
            "ask with in, as in 'value' in event.Resources",
            "'web_0' in event.Resources",
            True,
        ),
        ("vm.tags.contains('role')", "ask with in, as in 'value' in vm.tags", "'role' in vm.tags", True),
        # texts of explanations
        (
            "'at ' + event.NotBefore == 'x'",
            "write string(event.NotBefore)",
            "'at ' + string(event.NotBefore) == 'x'",
            False,
        ),
        (
            "'for ' + params.ratio == 'for 1'",
            "write string(int(params.ratio))",
            "'for ' + string(int(params.ratio)) == 'for 1'",
            True,
        ),
        (
            "'of ' + event.Resources == 'of web_0'",
            "write event.Resources.join(', ')",
            "'of ' + event.Resources.join(', ') == 'of web_0'",
            True,
        ),
        # names of VMs
        ("vm.name in event.Resources", "write affects_me", "affects_me", True),
        ("event.Resources[0] == vm.name", "write leader", "leader", True),
        ("vm.name != event.Resources[0]", "write !leader", "!leader", False),
        (
            "[vm.name] == event.Resources",
            "write (affects_me && size(event.Resources) == 1)",
            "(affects_me && size(event.Resources) == 1)",
            True,
        ),
        (
            "events.exists(e, vm.name in e.Resources)",
            "write e.Resources.exists(r, r.lowerAscii() == vm.name.lowerAscii())",
            "events.exists(e, e.Resources.exists(r, r.lowerAscii() == vm.name.lowerAscii()))",
            True,
        ),
        (
            "event.Resources.exists(r, r == vm.name)",
            "write lowerAscii() behind both",
            "event.Resources.exists(r, r.lowerAscii() == vm.name.lowerAscii())",
            True,
        ),
        # conditions
        ("event.DurationInSeconds && true", "compare it, as in … == 0", "event.DurationInSeconds == 0 && true", False),
        ("!event.DurationInSeconds", "compare it, as in … == 0", "event.DurationInSeconds == 0", False),
    ],
)
def test_following_a_hint_gives_what_was_meant(source: str, suggestion: str, followed: str, value: bool) -> None:
    assert suggestion in [finding.suggestion for finding in check(source, DECLARATIONS, t.BOOL).findings]
    assert evaluate(followed) is value


@pytest.mark.parametrize(
    ("source", "expect", "suggestion"),
    [
        ("event.NotBefore", t.STRING, "write string(event.NotBefore)"),
        ("notice", t.STRING, "write string(notice)"),
        ("event.DurationInSeconds", t.STRING, "write string(event.DurationInSeconds)"),
        ("event.Resources", t.STRING, "write event.Resources.join(', ')"),
        ("params.ratio", t.STRING, "write string(int(params.ratio))"),
        ("'true'", t.BOOL, "remove the quotes: true"),
    ],
)
def test_followed_hint_has_the_expected_type(source: str, expect: t.Type, suggestion: str) -> None:
    (finding,) = check(source, DECLARATIONS, expect).findings
    assert (finding.code, finding.suggestion) == ("wrong-result-type", suggestion)
    followed = suggestion.removeprefix("write ").removeprefix("remove the quotes: ")
    assert check(followed, DECLARATIONS, expect).findings == ()


@pytest.mark.parametrize(
    "source",
    [
        "event.DurationInSeconds < 'nine'",
        "affects_me == 'yes'",
        "notice * 2 > notice",
        "vm.tags.role == null",
        "events[0].NotBefore == null",
        "notice == null",
        "event.EventSource == 'Plattfrom'",
        "event.EventSource == 'Azure'",
        "event.ResourceType == 'ScaleSet'",
    ],
)
def test_no_hint_suggests_impossible_conversions_or_declarations(source: str) -> None:
    for finding in check(source, DECLARATIONS).findings:
        assert "string(" not in finding.suggestion
        assert "extra_values" not in finding.suggestion


def test_a_text_of_a_number_would_have_approved() -> None:
    """Why no hint says so: 30 is less than 9 as a text."""
    assert evaluate("string(event.DurationInSeconds) < '9'") is True
    assert evaluate("event.DurationInSeconds < 9") is False


def test_text_that_is_no_number_fails_to_convert() -> None:
    roots = {**ROOTS, "params": {**ROOTS["params"], "label": "nine"}}
    with pytest.raises(EvaluationError):
        evaluate("event.DurationInSeconds < int(params.label)", roots)


@pytest.mark.parametrize("source", ["vm.name in event.Resources", "event.Resources[0] == vm.name"])
def test_case_sensitive_name_is_a_warning(source: str) -> None:
    checked = check(source, DECLARATIONS, t.BOOL)
    assert [(finding.code, finding.severity) for finding in checked.findings] == [("case-sensitive", "warning")]
    assert checked.form is not None


@pytest.mark.parametrize(
    "source",
    [
        "'web_0' in event.Resources",
        "vm.name == 'web_0'",
        "vm.name in ['web_0', 'web_1']",
        "event.Resources[0] == 'web_0'",
        "vm.scale_set in event.Resources",
        "event.Resources.exists(r, r.startsWith(vm.name))",
    ],
)
def test_other_comparisons_of_names_are_not_warned_of(source: str) -> None:
    assert check(source, DECLARATIONS, t.BOOL).findings == ()


@pytest.mark.parametrize("version", API_VERSIONS)
@pytest.mark.parametrize("value", EVENT_TYPE_SINCE)
def test_a_value_that_the_api_version_never_sends(version: str, value: str) -> None:
    sent = EVENT_TYPE_SINCE[value] <= version
    for source in (f"event.EventType == '{value}'", f"'{value}' != event.EventType",
                   f"event.EventType in ['Freeze', '{value}']", f"events.exists(e, e.EventType == '{value}')",
                   f"'{value}' in [event.EventType]"):  # fmt: skip
        checked = check(source, policy_declarations(version, {}, {}, {}), t.BOOL)
        assert checked.form is not None
        if sent:
            assert checked.findings == (), source
            continue
        (finding,) = checked.findings
        assert (finding.code, finding.severity) == ("value-not-in-api-version", "warning")
        assert source[finding.start : finding.end] == f"'{value}'"
        assert EVENT_TYPE_SINCE[value] in finding.message
        declared = policy_declarations(version, {}, {}, {"EventType": (value,)})
        assert check(source, declarations=declared, expect=t.BOOL).findings == ()
