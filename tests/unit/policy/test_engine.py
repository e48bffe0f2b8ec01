# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What policies mean together, rule by rule: first match, abstention, one hold outweighs, every doubt is a hold."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from forewarn.errors import InputError
from forewarn.events import Document, Event, Vm, parse_document
from forewarn.policy.decision import APPROVERS, GROUPS, Decision, Facts
from forewarn.policy.engine import PolicySet
from forewarn.policy.environment import MAX_STEPS
from forewarn.policy.functions.standard import FUNCTIONS
from tools.fixtures.events import GUID, event
from tools.fixtures.policy_data import policy, policy_set

NOW = datetime(2026, 1, 31, 12, tzinfo=timezone.utc)
FACTS = Facts(NOW, Vm(name="web_0", location="westeurope", tags={"role": "web"}))
FREEZE = event(GUID, not_before=NOW + timedelta(minutes=15), description="")
APPROVE = {"output": "approve"}
HOLD = {"output": "hold"}


def decide(policies: PolicySet, event: Event = FREEZE, facts: Facts = FACTS) -> Decision:
    (decision,) = policies.decide(Document(1, (event,)), facts)
    return decision


def when(condition: str, output: str, **more: Any) -> dict[str, Any]:
    return {"condition": condition, "output": output, **more}


# First match, abstention, several policies


def test_first_match_wins() -> None:
    rules = (when("event.EventType == 'Freeze'", "hold", id="a"), when("true", "approve", id="b"))
    decision = decide(policy_set(policy(*rules)))
    assert (decision.output, decision.policy, decision.rule) == ("hold", "web", "a")
    assert (decide(policy_set(policy(*rules)), FREEZE._replace(event_type="Reboot")).rule) == "b"


def test_match_without_condition_always_applies() -> None:
    decision = decide(policy_set(policy(APPROVE)))
    assert (decision.output, decision.rule, decision.reason) == ("approve", "match-1", "rule match-1 applies")


def test_event_without_a_match_is_held() -> None:
    decision = decide(policy_set(policy(when("event.EventType == 'Reboot'", "approve"))))
    assert (decision.output, decision.policy, decision.rule) == ("hold", None, None)
    assert decision.reason == "no rule of any policy applies to this event"
    assert [verdict.output for verdict in decision.verdicts] == ["abstain"]


def test_no_policy_at_all_holds() -> None:
    assert decide(policy_set()).output == "hold"


def test_abstention_leaves_the_decision_to_the_others() -> None:
    silent = policy(when("false", "hold"), name="silent")
    decision = decide(policy_set(silent, policy(APPROVE)))
    assert (decision.output, decision.policy) == ("approve", "web")


@pytest.mark.parametrize("order", [0, 1])
def test_one_hold_outweighs_every_approve(order: int) -> None:
    policies = [policy(APPROVE, name=f"yes-{n}") for n in range(3)]
    policies.insert(order * 3, policy(HOLD, name="no"))
    decision = decide(policy_set(*policies))
    assert (decision.output, decision.policy) == ("hold", "no")
    assert [verdict.output for verdict in decision.verdicts].count("approve") == 3


def test_events_are_decided_separately_and_in_order() -> None:
    events = tuple(FREEZE._replace(event_id=f"e{n}", duration_in_seconds=n) for n in range(4))
    decisions = policy_set(policy(when("event.DurationInSeconds < 2", "approve"))).decide(Document(1, events), FACTS)
    assert [decision.event for decision in decisions] == list(events)
    assert [decision.output for decision in decisions] == ["approve", "approve", "hold", "hold"]


# Doubt


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        ("event.Description.size() > 0", "event.Description: there is no Description"),
        ("event.DurationInSeconds < 9", "event.DurationInSeconds"),
        ("event.DurationInSeconds in [1, 2]", "event.DurationInSeconds: there is no DurationInSeconds"),
        ("events[7].EventType == 'Freeze'", "events[7]: index out of range: 7"),
        ("vm.zone == '1'", "vm.zone: this fact about the VM is not known"),
        ("vm.tags.owner == 'me'", "vm.tags.owner: no such key: 'owner'"),
        ("int(event.EventId) == 1", "int(event.EventId): 'C7061BAC-AFDC-4513-B24B-AA5F13A16123' is not an int"),
        ("1 / (event.Resources.size() - 2) == 1", "division by zero"),
        ("event.EventSource == 'User' || event.Description == ''", "there is no Description"),
        ("!(event.DurationInSeconds == -1)", "there is no DurationInSeconds"),
    ],
)
def test_error_in_a_reached_rule_holds(condition: str, text: str) -> None:
    event = FREEZE._replace(description=None, duration_in_seconds=None)
    data = policy(when("false", "hold"), when(condition, "approve", id="fails"), APPROVE)
    decision = decide(policy_set(data), event)
    line = data["rule"]["match"][1]["condition"]["line"]
    assert (decision.output, decision.policy, decision.rule) == ("hold", "web", "fails")
    assert decision.reason.startswith(f"rule fails could not be evaluated (web.yml:{line}): ")
    assert text in decision.reason
    assert decision.verdicts[0].error is not None
    assert any("error: " in value.value for value in decision.values)


def test_error_that_is_absorbed_is_none() -> None:
    event = FREEZE._replace(description=None)
    assert decide(policy_set(policy(when("event.Description == '' || true", "approve"))), event).output == "approve"
    assert (
        decide(policy_set(policy(when("event.Description == '' && false", "hold"), APPROVE)), event).output == "approve"
    )


@pytest.mark.parametrize("condition", ["has(vm.tags.role)", "!has(vm.tags.role)", "!('role' in vm.tags)"])
def test_tags_that_are_not_known_are_not_absent(condition: str) -> None:
    data = policy(when(condition, "approve", id="tag"), APPROVE)
    decision = decide(policy_set(data), facts=Facts(NOW, Vm(name="web_0")))
    assert (decision.output, decision.rule) == ("hold", "tag")
    assert decision.reason.endswith("vm.tags: this fact about the VM is not known")
    assert decide(policy_set(data), facts=Facts(NOW, Vm(name="web_0", tags={}))).output == "approve"


@pytest.mark.parametrize("failure", [MemoryError("all"), RecursionError("deep"), OverflowError("far"), OSError("disk")])
def test_any_exception_in_an_evaluation_holds(failure: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_arguments: Any) -> bool:
        raise failure

    monkeypatch.setitem(FUNCTIONS, "starts_with", fails)
    condition = "event.EventId.startsWith('C') || true"
    for data in (
        policy(when(condition, "approve"), APPROVE),
        policy({"explanation": f"string({condition})", **APPROVE}),
    ):
        policies = policy_set(data)
        decision = decide(policies)
        assert (decision.output, decision.rule) == ("hold", "match-1")
        assert f"internal error ({type(failure).__name__}: {failure})" in decision.reason
        assert policies.explain(FREEZE, Document(1, (FREEZE,)), FACTS)[0].verdict == decision.verdicts[0]


def test_rule_behind_the_match_is_never_reached() -> None:
    rules = (when("event.EventType == 'Freeze'", "approve"), when("events[9].EventId == ''", "hold"))
    assert decide(policy_set(policy(*rules))).output == "approve"


def test_error_in_one_policy_outweighs_an_approval() -> None:
    broken = policy(when("vm.zone == '1'", "approve"), name="broken")
    decision = decide(policy_set(policy(APPROVE), broken))
    assert (decision.output, decision.policy) == ("hold", "broken")


def test_error_in_the_explanation_holds() -> None:
    data = policy({**APPROVE, "id": "explained", "explanation": "'in zone ' + vm.zone"})
    decision = decide(policy_set(data))
    assert (decision.output, decision.rule) == ("hold", "explained")
    assert "vm.zone: this fact about the VM is not known" in decision.reason


def test_explanation_is_the_reason() -> None:
    data = policy(when("true", "approve", explanation="'for ' + string(event.DurationInSeconds) + ' s'"))
    assert decide(policy_set(data)).reason == "for 5 s"


def test_error_in_a_variable_has_the_variables_place() -> None:
    data = policy(when("variables.zoned", "approve"), variables={"zoned": "vm.zone == '1'"})
    line = data["rule"]["variables"][0]["expr"]["line"]
    assert f"(web.yml:{line}): vm.zone: this fact about the VM is not known" in decide(policy_set(data)).reason


def test_variable_that_nothing_asks_for_cannot_fail() -> None:
    data = policy(when("true || variables.zoned", "approve"), variables={"zoned": "vm.zone == '1'"})
    assert decide(policy_set(data)).output == "approve"


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"event_type": "SpotRebalanceRecommendation"}, "unknown EventType SpotRebalanceRecommendation"),
        ({"event_type": "freeze"}, "unknown EventType freeze"),
        ({"event_status": "Completed"}, "unknown EventStatus Completed"),
        ({"event_type": None}, "unknown EventType None"),
    ],
)
def test_unknown_type_or_status_holds(change: dict[str, Any], text: str) -> None:
    decision = decide(policy_set(policy(APPROVE)), FREEZE._replace(**change))
    assert decision.output == "hold"
    assert text in decision.reason


def test_declared_extra_value_is_known() -> None:
    name = "SpotRebalanceRecommendation"
    data = policy(when(f"event.EventType == '{name}'", "approve"), extra_values={"EventType": [name]})
    event = FREEZE._replace(event_type=name)
    assert decide(policy_set(data), event).output == "approve"
    assert decide(policy_set(data, policy(APPROVE, name="unaware")), event).policy == "unaware"
    assert decide(policy_set(data), event._replace(event_status="Done")).output == "hold"


def test_event_with_problems_holds_whatever_the_policies_say() -> None:
    event = FREEZE._replace(problems=("NotBefore 'soon' is not a time",))
    decision = decide(policy_set(policy({**APPROVE, "prepare": [{"run": ["/bin/true"]}]})), event)
    assert (decision.output, decision.prepare) == ("hold", ())
    assert "NotBefore 'soon' is not a time" in decision.reason


@pytest.mark.parametrize("name", ["affects_me", "leader"])
def test_unknown_vm_name_makes_rules_about_it_fail(name: str) -> None:
    decision = decide(policy_set(policy(when(name, "approve"))), facts=Facts(NOW))
    assert decision.output == "hold"
    assert f"{name} is not known" in decision.reason


def test_fields_that_the_api_version_lacks_are_absent() -> None:
    body = {"Events": [{"EventId": "e", "EventType": "Freeze", "EventStatus": "Scheduled", "Resources": ["web_0"],
                        "DurationInSeconds": 5, "EventSource": "User"}], "DocumentIncarnation": 1}  # fmt: skip
    document = parse_document(json.dumps(body), "2019-04-01")
    rules = policy_set(policy(when("has(event.DurationInSeconds) || has(event.EventSource)", "approve"), HOLD))
    assert rules.decide(document, FACTS)[0].rule == "match-2"


# What rules see


@pytest.mark.parametrize(
    ("expression", "event"),
    [
        ("notice == duration('15m') && event.NotBefore - now == notice", {}),
        ("notice == duration('0s')", {"event_status": "Started", "not_before": None}),
        ("notice == duration('0s')", {"not_before": NOW - timedelta(hours=1)}),
        ("!has(event.NotBefore) && (notice < duration('1s') || true)", {"not_before": None}),
        ("age == duration('90s')", {}),
        ("age == duration('0s')", {"event_id": "never-seen"}),
        ("affects_me && leader", {}),
        ("affects_me && !leader", {"resources": ("other", "WEB_0")}),  # SE-14: whole names, ignoring case
        ("!affects_me && !leader", {"resources": ("web_01",)}),
        ("vm.name == 'web_0' && vm.location == 'westeurope' && vm.tags.role == 'web'", {}),
        ("now == timestamp('2026-01-31T12:00:00Z')", {}),
        ("events.size() == 1 && events[0].EventId == event.EventId", {}),
        ("event.Resources == ['web_0', 'web_1'] && event.DurationInSeconds == 5", {}),
        ("notice > duration('2000000h')", {"not_before": datetime(9999, 12, 31, tzinfo=timezone.utc)}),
    ],
)
def test_variables_of_rules(expression: str, event: dict[str, Any]) -> None:
    facts = FACTS._replace(first_seen={FREEZE.key: NOW - timedelta(seconds=90)})
    decision = decide(policy_set(policy(when(expression, "approve"))), FREEZE._replace(**event), facts)
    assert decision.output == "approve", decision.reason


def test_notice_without_not_before_is_unknown() -> None:
    """SE-16: a blank NotBefore of an event that has not started is not «now»."""
    decision = decide(policy_set(policy(when("notice < duration('1h')", "approve"))), FREEZE._replace(not_before=None))
    assert decision.output == "hold"
    assert "notice is not known" in decision.reason


def test_event_is_looked_at_as_it_was_given() -> None:
    """The parser makes no two events of one id; were they made by hand, each is decided by its own fields."""
    rules = policy_set(policy(when("event.DurationInSeconds < 9", "approve")))
    short, long = FREEZE, FREEZE._replace(event_id=FREEZE.event_id.lower(), duration_in_seconds=600)
    outputs = [decision.output for decision in rules.decide(Document(1, (short, long)), FACTS)]
    assert outputs == ["approve", "hold"]
    assert rules.explain(long, Document(1, (short,)), FACTS)[0].verdict.output == "abstain"


# Hooks, approver, group


def test_hooks_of_acting_policies_add_up_in_order() -> None:
    def hooks(name: str) -> dict[str, Any]:
        return {kind: [{"run": [f"/{kind}/{name}"]}] for kind in ("prepare", "recover", "notify")}

    policies = policy_set(
        policy({**APPROVE, **hooks("a")}, name="a"),
        policy(when("false", "approve", **hooks("b")), name="b"),
        policy({**HOLD, **hooks("c")}, name="c"),
    )
    decision = decide(policies)
    assert [hook["run"] for hook in decision.prepare] == [["/prepare/a"], ["/prepare/c"]]
    assert [hook["run"] for hook in decision.recover] == [["/recover/a"], ["/recover/c"]]
    assert [hook["run"] for hook in decision.notify] == [["/notify/a"], ["/notify/c"]]
    assert len(list(policies.every_hook())) == 9
    assert not list(policy_set(policy(APPROVE)).every_hook())


@pytest.mark.parametrize("first", APPROVERS)
@pytest.mark.parametrize("second", APPROVERS)
def test_the_most_careful_approver_counts(first: str, second: str) -> None:
    decision = decide(
        policy_set(
            policy({**APPROVE, "approver": first}, name="a"),
            policy({**APPROVE, "approver": second}, name="b"),
            policy(when("false", "approve", approver="leader"), name="abstains"),
        )
    )
    assert decision.approver == min(first, second, key=APPROVERS.index)


@pytest.mark.parametrize("prepares", [True, False])
@pytest.mark.parametrize("second", GROUPS)
@pytest.mark.parametrize("first", GROUPS)
def test_the_most_careful_group_counts(first: str, second: str, prepares: bool) -> None:
    """Where nothing is prepared, hold approves at once: then ready is the most careful one."""
    hooks = {"prepare": [{"run": ["/bin/true"]}]} if prepares else {}
    decision = decide(
        policy_set(
            policy({**APPROVE, "group": first, **hooks}, name="a"),
            policy({**APPROVE, "group": second}, name="b"),
            policy(when("false", "approve", group="hold", **hooks), name="abstains"),
        )
    )
    order = ("hold", "ready", "independent") if prepares else ("ready", "hold", "independent")
    assert decision.group == min(first, second, key=order.index)


def test_defaults_are_the_careful_ones() -> None:
    decision = decide(policy_set(policy(APPROVE)))
    assert (decision.approver, decision.group, decision.limits) == ("leader", "hold", ())


# Parameters, time


def test_time_dependence() -> None:
    assert policy_set(policy(when("notice > duration('1m')", "hold"))).time_dependent
    assert policy_set(policy(when("variables.v", "hold"), variables={"v": "age > duration('1m')"})).time_dependent
    assert policy_set(policy({"rule": [when("[1].all(x, now > event.NotBefore)", "hold")]})).time_dependent
    assert policy_set(policy({**HOLD, "explanation": "string(now)"})).time_dependent
    assert not policy_set(policy(when("[1].all(now, now > 0)", "hold"))).time_dependent
    assert not policy_set(policy(when("event.NotBefore > timestamp(0)", "hold"))).time_dependent


def test_params_reach_every_policy_that_declares_them() -> None:
    params = [{"name": "limit", "type": "int", "default": 3}]
    rules = [policy(when("event.DurationInSeconds < params.limit", "approve"), name=n, params=params) for n in "ab"]
    assert decide(policy_set(*rules)).output == "hold"
    assert decide(policy_set(*rules, params={"limit": 9})).output == "approve"
    with pytest.raises(InputError, match="no policy declares a parameter limits"):
        policy_set(*rules, params={"limits": 9})


# Limits, threads


def test_step_limit_holds_and_nothing_absorbs_it() -> None:
    busy = "event.Resources.all(a, event.Resources.all(b, a + b != ''))"
    event = FREEZE._replace(resources=tuple(f"vm{n}" for n in range(MAX_STEPS // 100)))
    for condition in (busy, f"{busy} || true", f"{busy} && false", f"[1].exists(x, {busy})", f"variables.v || {busy}"):
        decision = decide(policy_set(policy(when(condition, "approve"), variables={"v": "false"})), event)
        assert decision.output == "hold", condition
        assert f"more than {MAX_STEPS} steps" in decision.reason


def test_step_limit_covers_all_rules_of_a_policy() -> None:
    size = MAX_STEPS // 3
    event = FREEZE._replace(resources=tuple(f"vm{n}" for n in range(size)))
    rule = when("event.Resources.all(a, a == 'x' || a != 'y') && false", "hold")
    policies = policy_set(policy(rule, rule, rule, {**rule, "id": "last"}, APPROVE))
    decision = decide(policies, event)
    assert (decision.output, decision.rule) == ("hold", "last")
    (trace,) = policies.explain(event, Document(1, (event,)), FACTS)
    assert [rule.result for rule in trace.rules] == ["false", "false", "false", "error", "not reached"]
    assert trace.verdict.rule == "last"


def test_large_document() -> None:
    events = tuple(FREEZE._replace(event_id=f"e{n}", resources=tuple(f"vm{i}" for i in range(100))) for n in range(100))
    rules = policy_set(policy(when("events.exists(e, e.EventId == 'e99') && 'vm99' in event.Resources", "approve")))
    decisions = rules.decide(Document(1, events), FACTS)
    assert {decision.output for decision in decisions} == {"approve"}


def test_threads_decide_as_one_does() -> None:
    """8 threads over one PolicySet: nothing is shared (cel-python's compiled runner gave wrong approvals here)."""
    rules = policy_set(
        policy(
            when("variables.many && event.Resources.exists(r, r == vm.name)", "hold", explanation="string(now)"),
            when("event.Resources.map(r, r + 'x').exists(r, r.startsWith(event.EventId))", "hold"),
            when("event.DurationInSeconds % 3 == 0", "approve", explanation="event.EventId + ' ' + string(notice)"),
            when("event.DurationInSeconds % 3 == 1", "hold"),
            when("event.Description.size() > 0", "approve"),
            variables={"many": "events.exists_one(e, e.DurationInSeconds == event.DurationInSeconds * 7 % 11)"},
        )
    )
    documents = []
    for n in range(40):
        events = [
            FREEZE._replace(
                event_id=f"e{n}-{i}",
                duration_in_seconds=n * i % 13,
                resources=tuple(f"web_{(n + k) % 5}" for k in range(i)),
                description=None if i % 4 == 0 else "x",
            )
            for i in range(5)
        ]
        documents.append((Document(n, tuple(events)), FACTS._replace(now=NOW + timedelta(seconds=n))))
    expected = [rules.decide(*document) for document in documents]
    assert {decision.output for decisions in expected for decision in decisions} == {"approve", "hold"}

    def work(start: int) -> list[bool]:
        return [
            rules.decide(*documents[(start + i) % len(documents)]) == expected[(start + i) % len(documents)]
            for i in range(120)
        ]

    with ThreadPoolExecutor(8) as pool:
        assert all(all(results) for results in pool.map(work, range(0, 40, 5)))
