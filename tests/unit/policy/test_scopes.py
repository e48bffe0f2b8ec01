# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Variables of loops and policies that meet in one evaluation, and documents that could be read only in part."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest
from forewarn.compiler.cel.environment import policy_declarations
from forewarn.compiler.cel.expression import check, compile_expression
from forewarn.compiler.cel.types import BOOL, INT, Declarations, list_of
from forewarn.events import Vm, parse_document
from forewarn.policy.builder import Builder
from forewarn.policy.decision import Facts
from forewarn.policy.environment import UNSET, Scope
from forewarn.policy.evaluation_error import EvaluationError
from forewarn.policy.forms import read_form
from forewarn.policy.view import DocumentView

NOW = datetime(2026, 1, 31, 12, tzinfo=timezone.utc)


def test_policy_variable_with_a_loop_keeps_the_outer() -> None:
    """The variable is evaluated in the middle of the loop that first asks for it."""
    scope = Scope(("numbers",))
    numbers = {"numbers": list_of(INT)}

    def build(source: str, variables: dict[str, Any]) -> Any:
        checked = check(source, Declarations(numbers, policy_variables=variables), BOOL)
        assert checked.form is not None, checked.findings
        return Builder(scope, {"source": source, "line": 1, "column": 1}).build(read_form(checked.form))

    scope.variable_closures["has_nine"] = build("numbers.exists(n, n == 9)", {})
    scope.add("variables.has_nine")
    closure = build("numbers.exists(n, variables.has_nine && n == 1)", {"has_nine": BOOL})
    env = [10_000, None, [1, 9], *[UNSET] * (scope.size - 3)]
    assert closure(env) is True


def test_loop_variable_called_variables_hides_the_policy_variables() -> None:
    expression = compile_expression("[{'a': 1}].all(variables, variables.a == 1)", {})
    assert expression({}) is True


def _events_variable(body: str) -> Any:
    document = parse_document(body)
    return document, DocumentView(document, Facts(NOW, Vm(name="a")))


def test_rule_over_an_incomplete_list_fails() -> None:
    """The skipped event may be the very one the rule looks for, so the rule must not read an incomplete list."""
    declarations = policy_declarations("2020-07-01", {}, {}, {})
    form = check("events.exists(e, e.EventType == 'Reboot')", declarations, BOOL).form
    assert form is not None
    document, view = _events_variable(
        '{"DocumentIncarnation": 1, "Events": [{"EventType": "Reboot"}, {"EventId": "x", "EventType": "Freeze", '
        '"EventStatus": "Scheduled", "Resources": ["a"]}]}'
    )
    assert len(document.events) == 1
    scope = Scope(("event", "events"))
    closure = Builder(scope, {"source": "", "line": 1, "column": 1}).build(read_form(form))
    roots = view.roots(document.events[0], {})
    with pytest.raises(EvaluationError, match="events is not known"):
        closure([10_000, None, *roots[:2], *[None] * scope.size])


def test_unreadable_resources_are_absent_not_empty() -> None:
    document, view = _events_variable(
        '{"DocumentIncarnation": 1, "Events": [{"EventId": "x", "EventType": "Freeze", "EventStatus": "Scheduled", '
        '"Resources": "a,b"}, {"EventId": "y", "EventType": "Freeze", "EventStatus": "Scheduled", "Resources": []}]}'
    )
    assert document.events[0].problems
    unread, empty = (view.roots(event, {})[0] for event in document.events)
    assert "Resources" not in unread
    assert empty["Resources"] == []
