# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What nested rules mean, case by case; ``test_nested_rules`` has random ones."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from forewarn.events import Document, Event, Vm
from forewarn.policy.decision import Decision, Facts
from forewarn.policy.engine import PolicySet
from tools.fixtures.events import GUID, event
from tools.fixtures.policy_data import policy, policy_set

NOW = datetime(2026, 1, 31, 12, tzinfo=timezone.utc)
FACTS = Facts(NOW, Vm(name="web_0", location="westeurope", tags={"role": "web"}))
FREEZE = event(GUID, not_before=NOW + timedelta(minutes=15), description="")
HOLD = {"output": "hold"}


def decide(policies: PolicySet, event: Event = FREEZE) -> Decision:
    (decision,) = policies.decide(Document(1, (event,)), FACTS)
    return decision


def when(condition: str, output: str, **more: Any) -> dict[str, Any]:
    return {"condition": condition, "output": output, **more}


def nested(condition: str | None, inner: list[dict[str, Any]]) -> Mapping[str, Any]:
    return policy(
        {"id": "outer", **({} if condition is None else {"condition": condition}), "rule": inner},
        {"id": "after", "output": "approve"},
    )


def test_nested_rule_decides_and_names_its_path() -> None:
    inner = [when("event.DurationInSeconds > 100", "hold", id="long"), {"id": "short", "output": "hold"}]
    decision = decide(policy_set(nested("event.EventType == 'Freeze'", inner)))
    assert (decision.output, decision.rule) == ("hold", "outer.short")


def test_conditional_nested_rule_without_match_ends_the_search() -> None:
    decision = decide(policy_set(nested("event.EventType == 'Freeze'", [when("false", "hold")])))
    assert [verdict.output for verdict in decision.verdicts] == ["abstain"]
    assert decision.output == "hold"


@pytest.mark.parametrize("condition", [None, "true"])
def test_unconditional_nested_rule_without_a_match_falls_through(condition: str | None) -> None:
    decision = decide(policy_set(nested(condition, [when("false", "hold")])))
    assert (decision.output, decision.rule) == ("approve", "after")


def test_nested_rule_with_a_false_condition_is_skipped() -> None:
    assert decide(policy_set(nested("event.EventType == 'Reboot'", [dict(HOLD)]))).rule == "after"


def test_error_in_a_nested_rule_has_its_path() -> None:
    decision = decide(policy_set(nested(None, [when("vm.zone == ''", "approve", id="zone")])))
    assert (decision.output, decision.rule) == ("hold", "outer.zone")


def test_nested_rules_inside_nested_rules() -> None:
    inner: list[dict[str, Any]] = [
        {"id": "b", "condition": "true", "rule": [when("false", "hold")]},
        {"id": "c", "output": "hold"},
    ]
    assert decide(policy_set(nested(None, inner))).rule == "outer.c"


def test_conditional_rule_without_match_ends_every_outer_search() -> None:
    """Neither its own siblings nor what follows an unconditional group around it are tried."""
    brief = {"id": "brief", "condition": "event.DurationInSeconds == 1", "output": "hold"}
    freezes = {"id": "freezes", "condition": "event.EventType == 'Freeze'", "rule": [brief]}
    sibling = {"id": "sibling", "output": "approve"}
    group: list[dict[str, Any]] = [freezes]
    policies = policy_set(policy({"id": "group", "rule": group}, {"id": "after", "output": "approve"}, name="nest"))
    decision = decide(policies)
    assert (decision.output, decision.policy, decision.rule) == ("hold", None, None)
    assert [verdict.output for verdict in decision.verdicts] == ["abstain"]
    (trace,) = policies.explain(FREEZE, Document(1, (FREEZE,)), FACTS)
    assert [(rule.rule, rule.result) for rule in trace.rules] == [
        ("group", "true"),
        ("group.freezes", "true"),
        ("group.freezes.brief", "false"),
        ("after", "not reached"),
    ]
    assert trace.verdict == decision.verdicts[0]
    assert decide(policies, FREEZE._replace(event_type="Reboot")).rule == "after"
    assert decide(policies, FREEZE._replace(duration_in_seconds=1)).rule == "group.freezes.brief"
    group.append(sibling)
    deep = {"id": "a", "rule": [{"id": "b", "condition": "true", "rule": group}, sibling]}
    assert [v.output for v in decide(policy_set(policy(deep, sibling))).verdicts] == ["abstain"]


def test_unconditional_rules_inside_a_conditional_end_the_search() -> None:
    inner = [{"id": "group", "rule": [when("false", "approve")]}]
    decision = decide(policy_set(nested("event.EventType == 'Freeze'", inner)))
    assert [verdict.output for verdict in decision.verdicts] == ["abstain"]


def test_variables_of_a_nested_rule() -> None:
    inner = ({"short": "variables.limit > event.DurationInSeconds"}, [when("variables.short", "approve")])
    data = policy({"rule": inner}, variables={"limit": "3 * 3"})
    assert decide(policy_set(data)).output == "approve"


def test_equal_variable_names_in_nested_rules_are_separate() -> None:
    first = ({"v": "event.DurationInSeconds > 100"}, [when("variables.v", "hold")])
    second = ({"v": "event.DurationInSeconds == 5", "w": "variables.v && !leader"}, [when("variables.w", "hold"),
              when("variables.v", "approve", id="right")])  # fmt: skip
    assert decide(policy_set(policy({"rule": first}, {"id": "b", "rule": second}))).rule == "b.right"
