# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits: how many VMs of which group may be disturbed at once, as verdicts and decisions have it."""

from __future__ import annotations

import copy
from datetime import datetime, timezone
from typing import Any

import pytest
from forewarn.errors import InputError
from forewarn.events import Document, Vm
from forewarn.policy.artifact import load
from forewarn.policy.decision import Decision, Facts, Limit, Value
from forewarn.policy.engine import PolicySet
from tools.fixtures.events import GUID, event
from tools.fixtures.policy_data import artifact_data, policy, policy_set

APPROVE, HOLD = {"output": "approve"}, {"output": "hold"}


def decide(policies: PolicySet, vm: Vm) -> Decision:
    facts = Facts(datetime(2026, 1, 31, 12, tzinfo=timezone.utc), vm)
    (decision,) = policies.decide(Document(1, (event(GUID),)), facts)
    return decision


def when(condition: str, output: str, **more: Any) -> dict[str, Any]:
    return {"condition": condition, "output": output, **more}


SCALE_SET = Limit("blue", 1, None)


def limited(name: str = "web", **limit: Any) -> dict[str, Any]:
    return policy({**APPROVE, "id": "drain", "limit": limit}, name=name)


def test_limit_is_part_of_verdict_and_decision() -> None:
    vm = Vm(name="web_0", scale_set="blue", tags={"role": "web"})
    for limit, expected in (
        ({"at_most": 1}, Limit(None, 1, None)),
        ({"percent": 25}, Limit(None, None, 25)),
        ({"at_most": 1, "group": "vm.scale_set"}, SCALE_SET),
        ({"percent": 1, "group": "vm.tags['role'] + '/' + event.EventType"}, Limit("web/Freeze", None, 1)),
    ):
        decision = decide(policy_set(limited(**limit)), vm)
        assert decision.output == "approve"
        assert decision.verdicts[0].limit == expected
        assert decision.limits == (expected,)


def test_limits_of_acting_policies_count_once_in_order() -> None:
    policies = policy_set(
        limited("a", percent=25),
        limited("b", at_most=1, group="'blue'"),
        policy(when("false", "approve", limit={"at_most": 9}), APPROVE, name="c"),
        policy(when("false", "approve", limit={"at_most": 8}), name="abstains"),
        limited("d", at_most=1, group="vm.scale_set"),
        policy({**HOLD, "limit": {"at_most": 2}}, name="e"),
    )
    decision = decide(policies, Vm(name="web_0", scale_set="blue"))
    assert decision.output == "hold"
    assert decision.limits == (Limit(None, None, 25), SCALE_SET, Limit(None, 2, None))


@pytest.mark.parametrize(
    ("group", "says"),
    [
        ("vm.scale_set", "web.yml:4): vm.scale_set: "),
        ("vm.tags['role']", "web.yml:4): vm.tags: "),
        ("''", "web.yml:4): '': it is empty, and names no group"),
        ("vm.name.substring(5)", "web.yml:4): vm.name.substring(5): it is empty, and names no group"),
    ],
)
def test_a_group_without_a_name_holds(group: str, says: str) -> None:
    decision = decide(policy_set(limited(at_most=1, group=group)), Vm(name="web_0"))
    assert (decision.output, decision.rule, decision.limits) == ("hold", "drain", ())
    assert decision.reason.startswith("rule drain could not be evaluated (")
    assert says in decision.reason
    assert decision.verdicts[0].error is not None


def test_group_of_a_limit_is_an_expression() -> None:
    policies = policy_set(
        policy(
            {**APPROVE, "limit": {"at_most": 1, "group": "variables.role + string(params.n)"}},
            variables={"role": "vm.tags['role']"},
            params=[{"name": "n", "type": "int", "default": 7}],
        )
    )
    decision = decide(policies, Vm(name="web_0", tags={"role": "web"}))
    assert decision.limits == (Limit("web7", 1, None),)
    assert Value("variables.role", '"web"') in list(decision.values)
    assert not policies.time_dependent
    assert policy_set(limited(at_most=1, group="string(now)")).time_dependent


GROUP = policy({**APPROVE, "limit": {"at_most": 1, "group": "vm.name"}})["rule"]["match"][0]["limit"]["group"]


@pytest.mark.parametrize(
    ("limit", "says"),
    [
        ({"at_most": 1}, None),
        ({"percent": 100}, None),
        ({"at_most": 100_000, "group": GROUP}, None),
        ({}, "must have exactly one of at_most and percent"),
        ({"at_most": 1, "percent": 1}, "must have exactly one of at_most and percent"),
        ({"group": GROUP}, "must have exactly one of at_most and percent"),
        ({"at_most": 0}, "at_most is not between 1 and 100000"),
        ({"at_most": 100_001}, "at_most is not between 1 and 100000"),
        ({"at_most": True}, "at_most is not of type int"),
        ({"at_most": 1.0}, "at_most is not of type int"),
        ({"percent": 0}, "percent is not between 1 and 100"),
        ({"percent": 101}, "percent is not between 1 and 100"),
        ({"percent": "25%"}, "percent is not of type int"),
        ({"at_most": 1, "group": None}, "limit.group is not an object"),
        ({"at_most": 1, "group": "web"}, "limit.group is not an object"),
        ({"at_most": 1, "group": {**GROUP, "form": []}}, "limit.group.form is not a form"),
        ({"at_most": 1, "unless": GROUP}, "has unless, which this forewarn does not know"),
        (None, "limit is not an object"),
        (1, "limit is not an object"),
    ],
)
def test_limit_of_another_shape_is_refused(limit: object, says: str | None) -> None:
    data = policy(APPROVE)
    data["rule"]["match"][0]["limit"] = copy.deepcopy(limit)
    if says is None:
        assert load(artifact_data(data)).data["policies"] == [data]
    else:
        with pytest.raises(InputError, match=says):
            load(artifact_data(data))
