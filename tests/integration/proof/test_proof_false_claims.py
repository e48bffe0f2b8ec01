# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ``policy verify`` and ``policy diff`` have said, and an event refutes. Each test first shows the event."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from forewarn.events import LATEST_API_VERSION, Vm
from tools.generators.drawn_policies import of
from tools.judges.claim_judge import VerifyJudge
from tools.judges.claim_results import Results
from tools.judges.claims import (
    INCOMPARABLE,
    MORE,
    Proof,
    case,
    compiled,
    decide,
    diff,
    shown,
    strict_exit,
    verify,
)

pytestmark = pytest.mark.in_turn(4)

POLICIES = Path(__file__).parents[3] / "policies"
NEVER = "decision == hold"
SATURDAY, THURSDAY = "2026-06-13T12:00:00Z", "2026-06-18T12:00:00Z"
WEEKEND = "now.getDayOfWeek() == 0 || now.getDayOfWeek() == 6"
DURATIONS = (
    "{name: a, type: duration, default: 5m, min: 1m, max: 10m}, "
    "{name: b, type: duration, default: 5m, min: 1m, max: 10m}"
)


def policy(
    condition: str,
    output: str = "approve",
    rest: str = "hold",
    *,
    params: str = "",
    invariant: str = "",
    name: str = "p",
    more: str = "",
) -> str:
    """Return a policy whose rule ``some`` has a condition, and whose rule ``rest`` takes what is left; "": none does.

    ``params`` are declarations in a flow list, ``more`` are further keys of the rule ``some``, one a line.
    """
    lines = [f"name: {name}", f"params: [{params}]", "rule:", "  match:"]
    lines += ["    - id: some", f"      condition: {json.dumps(condition)}", f"      output: {output}"]
    lines += [f"      {line}" for line in more.splitlines()]
    lines += [f"    - {{id: rest, output: {rest}}}"] if rest else []
    lines += ["invariants:", f"  - {{name: claim, expression: {json.dumps(invariant)}}}"] if invariant else []
    return "\n".join(lines) + "\n"


def rule_of(text: str, **given: Any) -> tuple[str, str | None]:
    """Return the engine's output for an event, and the rule that decides."""
    decision = decide(text, case(**given))
    assert decision is not None
    return decision.output, decision.rule


@cache
def verified(*texts: str, invariants: str = "") -> Proof:
    """Return what verify says of policies, written as ``shows`` needs them. Several functions ask for the same."""
    return verify(*of(map(yaml.safe_load, texts), LATEST_API_VERSION).texts, invariants=invariants)


def dead(text: str) -> set[str]:
    """Return what is found against the life of the rule ``some``."""
    proof = verified(text)
    assert proof.answered, proof.problem
    return proof.codes("some") & {"unsatisfiable-rule", "shadowed-rule"}


def violated(*texts: str, invariants: str = "") -> None:
    """Demand that the invariants of policies are not proven: violated, with an event that shows it, or not known."""
    proof = verified(*texts, invariants=invariants)
    violations = proof.having("invariant-violated")
    assert violations or proof.having("invariant-not-proven"), proof
    assert proof.code == 1, proof
    if violations and not invariants:
        shows(*texts)


def shows(*texts: str) -> None:
    """Demand that the event of each certain finding shows what the finding says, and that there are such events."""
    policies, results = of(map(yaml.safe_load, texts), LATEST_API_VERSION), Results()
    proof = verified(*texts)
    assert proof.answered, proof.problem
    VerifyJudge(policies, compiled(*policies.texts), proof, results).static()
    assert not results.contradictions, str(results.contradictions[0])


# Slices of what is not understood

NO_TERMINATE = "!(decision == approve && event.EventType == 'Terminate')"


def at_weekends(invariant: str = "", times: str = WEEKEND) -> str:
    """Return a policy that holds at weekends, and says nothing otherwise."""
    return policy(times, "hold", "", name="weekend", invariant=invariant)


def test_invariant_that_fails_on_thursday_is_refuted() -> None:
    """Another policy reads the day of the week."""
    web = (POLICIES / "web-tier.yml").read_text()
    texts = (web, at_weekends(NO_TERMINATE))
    terminate = case(now=THURSDAY, EventType="Terminate", NotBefore="2026-06-18T12:10:00Z")
    decision = decide(texts, terminate)
    assert decision is not None
    assert decision.output == "approve"
    violated(*texts)
    assert strict_exit(*texts) == 1


@pytest.mark.parametrize("count", [2, 8])
def test_opaque_conditions_make_no_rule_dead(count: int) -> None:
    # So many classes that they are looked at in parts.
    times = " || ".join(
        f"now.getDayOfWeek() == {day} && now.getHours() < {day + 3} && event.DurationInSeconds == {day + 10}"
        for day in range(count)
    )
    web = (POLICIES / "web-tier.yml").read_text()
    texts = (web, at_weekends(NO_TERMINATE, times))
    proof = verify(*texts)
    if proof.code != 2:  # "too many classes" claims nothing
        assert "invariant-violated" in proof.codes()
        assert not proof.having("shadowed-rule", "unsatisfiable-rule")


def test_less_preparation_is_more_permissive() -> None:
    web = (POLICIES / "web-tier.yml").read_text()
    undrained = web.replace(
        "    - id: drain\n",
        "    - {id: now, condition: event.EventType == 'Terminate', output: approve}\n    - id: drain\n",
    )
    assert undrained != web
    found = diff([web, at_weekends()], [undrained, at_weekends()])
    assert found.verdict in (MORE, INCOMPARABLE)


# Names in Resources

LONG = {"DurationInSeconds": 900}
ALONE = '"db_0" in event.Resources && size(event.Resources) == 1'


@pytest.mark.parametrize(
    ("condition", "event"),
    [
        ('!("vm_1" in event.Resources)', {"Resources": ["vm_0"], "vm": Vm(name="vm_0")}),
        ('affects_me && "web_0" in event.Resources && size(event.Resources) == 1', {}),
        ('affects_me && "web_0" in event.Resources && vm.name == "WEB_0"', {"vm": Vm(name="WEB_0")}),
        ('leader && "WEB_0" in event.Resources && vm.name != "WEB_0"', {"Resources": ["WEB_0"]}),
        ('"web_0" in event.Resources && !affects_me', {"vm": Vm(name="db_0")}),
        ('"a" in event.Resources && "b" in event.Resources && !leader', {"Resources": ["a", "b"]}),
        ('vm.name == "vm_1" && !leader', {"vm": Vm(name="vm_1")}),
        (
            'vm.name == "VM_1" && affects_me && !("VM_1" in event.Resources)',
            {"vm": Vm(name="VM_1"), "Resources": ["vm_1"]},
        ),
        ('event.Resources[0] == "web_0" && leader', {}),
        ('event.Resources.exists(one, one == "web_0") && !("web_1" in event.Resources)', {}),
        ('event.Resources.all(one, one.startsWith("web"))', {}),
        ('!event.Resources.exists(one, one.startsWith("web")) && affects_me', {"vm": Vm(name="a"), "Resources": ["a"]}),
        ('size(event.Resources) > 20 && !("a" in event.Resources)', {"Resources": [f"vm_{n}" for n in range(21)]}),
        ('"a" in event.Resources && "A" in event.Resources', {"Resources": ["a", "A"]}),
        ('!("7" in event.Resources) && vm.name == "7"', {"vm": Vm(name="7")}),
        ('"a" in event.Resources && event.DurationInSeconds > size(event.Resources)', {"Resources": ["a"], **LONG}),
    ],
)
def test_rule_about_names_that_decides_is_alive(condition: str, event: dict[str, Any]) -> None:
    text = policy(condition, invariant=NEVER)
    assert rule_of(text, **event) == ("approve", "some")
    assert not dead(text)
    violated(text)


def test_a_claim_about_a_vm_on_its_own() -> None:
    text = policy("affects_me", invariant=f"!(decision == approve && {ALONE})")
    assert rule_of(text, Resources=["db_0"], vm=Vm(name="db_0"))[0] == "approve"
    violated(text)


# Parameters: over their declared range, and over every value where none is declared

UNTIL = "{{name: until, type: timestamp, default: '2026-01-01T00:00:00Z'{}}}"
ANY_UNTIL = [UNTIL.format(limits) for limits in ("", ", max: '2030-01-01T00:00:00Z'", ", min: '2020-01-01T00:00:00Z'")]
MOST = "{{name: most, type: int, default: {}{}}}"


@pytest.mark.parametrize("params", ANY_UNTIL, ids=["no limits", "max", "min"])
@pytest.mark.parametrize("claim", ["alive", "diff"])
def test_a_rule_about_a_time_to_come(params: str, claim: str) -> None:
    text = policy("now < params.until", "hold", "approve", params=params)
    until = {"params": {"until": "2029-01-01T00:00:00Z"}}
    assert rule_of(text, **until) == ("hold", "some")
    without = policy("false && now < params.until", "hold", "approve", params=params)
    assert rule_of(without, **until) == ("approve", "rest")
    if claim == "diff":
        assert diff(text, without).verdict in (MORE, INCOMPARABLE)
    else:
        assert not dead(text)


@pytest.mark.parametrize(
    ("default", "limits"), [(3, ""), (1, ""), (1, ", max: 9"), (1, ", min: 0"), (3, ", min: 2, max: 3")]
)
@pytest.mark.parametrize("claim", ["alive", "diff"])
def test_a_rule_about_the_number_of_resources(default: int, limits: str, claim: str) -> None:
    params = MOST.format(default, limits)
    text, other = (
        policy("size(event.Resources) < params.most", one, "approve", params=params) for one in ("hold", "approve")
    )
    assert rule_of(text, params={"most": 3}) == ("hold", "some")
    if claim == "diff":
        assert diff(text, other).verdict in (MORE, INCOMPARABLE)
    else:
        assert not dead(text)


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        ("{name: x, type: int, default: 9}", 10),
        ("{name: x, type: string, default: a}", "b"),
        ("{name: x, type: double, default: 0.5}", 0.75),
        ("{name: x, type: duration, default: 5m}", "6m"),
        ("{name: x, type: timestamp, default: '2026-01-01T00:00:00Z'}", "2027-01-01T00:00:00Z"),
        ("{name: x, type: list(string), default: [a]}", ["b"]),
        ("{name: x, type: list(int), default: [1]}", []),
        ("{name: x, type: 'map(string, string)', default: {a: b}}", {}),
    ],
    ids=lambda value: str(value).split("type: ")[-1].split(",")[0] if isinstance(value, str) else "",
)
def test_a_parameter_without_limits_has_every_value(declared: str, value: Any) -> None:
    default = declared.partition("default: ")[2].removesuffix("}")
    quoted = {"5m": "duration('5m')", "a": "'a'", "{a: b}": "{'a': 'b'}", "[a]": "['a']"}.get(default, default)
    quoted = f"timestamp({quoted})" if "T00" in quoted else quoted
    text = policy(f"params.x != {quoted}", params=declared, invariant=NEVER)
    assert rule_of(text, params={"x": value}) == ("approve", "some")
    assert not dead(text)
    violated(text)


# Arithmetic

CANNOT_SHOW = (
    'age + duration("5m") > notice',
    'age + duration("5m") > notice || event.DurationInSeconds < 5',
    "event.DurationInSeconds * 2 > 60",
    "60 / event.DurationInSeconds > 5",
    'event.NotBefore - now < duration("5m")',
    "params.b - params.a < params.a",
    'timestamp("2350-01-01T00:00:00Z") - now > duration("1h")',
    'event.NotBefore + duration("5m") > now',
    'now - duration("876000h") < now',
)


@pytest.mark.parametrize("condition", CANNOT_SHOW)
def test_the_event_of_a_certain_finding_shows_it(condition: str) -> None:
    shows(policy(condition, params=DURATIONS))


@pytest.mark.parametrize(
    ("condition", "given"),
    [
        ("params.b - params.a == duration('1ns')", {"params": {"a": "5m", "b": "5m0.000000001s"}}),
        (
            "params.a < params.b && params.b - params.a < duration('1us')",
            {"params": {"a": "5m", "b": "5m0.000000001s"}},
        ),
        (
            "notice > params.a && notice < params.b && params.b - params.a < duration('10us')",
            {"params": {"a": "5m", "b": "5m0.000002s"}, "NotBefore": "2026-06-15T12:05:00.000001Z"},
        ),
        ("timestamp('2350-01-01T00:00:00Z') - now > duration('1h')", {"now": "2059-06-15T12:00:00Z"}),
        ("now - (event.NotBefore - event.NotBefore) < timestamp('2050-01-01T00:00:00Z')", {}),
        ("event.NotBefore > event.NotBefore + (now - timestamp('2050-01-01T00:00:00Z'))", {}),
        ("event.EventId == 'b'", {"EventId": "b"}),
        ("event.EventId != ''", {}),
        ("now.getDate() == 31", {"now": "2026-07-31T12:00:00Z"}),
        ("now.getMinutes() == 7", {"now": "2026-07-31T12:07:00Z"}),
        ("now.getDayOfYear() == 200", {"now": "2026-07-20T12:07:00Z"}),
        ("now.getFullYear() == 2031", {"now": "2031-07-20T12:07:00Z"}),
        ("now.getHours('Europe/Berlin') == 14", {}),
        ("event.Description.matches('^a+b$')", {"Description": "aab"}),
        ("event.Description.contains('host') && event.Description.startsWith('The')", {"Description": "The host"}),
        ("event.DurationInSeconds * event.DurationInSeconds == 49", {"DurationInSeconds": 7}),
        ("event.DurationInSeconds % 7 == 3 && event.DurationInSeconds > 100", {"DurationInSeconds": 101}),
        (
            "events.exists(one, one.EventType == 'Reboot') && event.EventType == 'Freeze'",
            {"others": [{"EventId": "z", "EventType": "Reboot", "EventStatus": "Scheduled", "Resources": ["a"]}]},
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_rule_that_decides_is_alive_and_refutes(condition: str, given: dict[str, Any]) -> None:
    text = policy(condition, params=DURATIONS, invariant=NEVER)
    assert rule_of(text, **given) == ("approve", "some")
    assert not dead(text)
    violated(text)


# What is not known


@pytest.mark.parametrize(
    "times",
    [
        WEEKEND,
        "now.getDayOfWeek() in [0, 6]",
        "now.getDayOfWeek() != 4",
        "now.getDate() != 18",
        "now.getDayOfYear() != 168",
    ],
)
def test_what_is_not_known_does_not_pass(times: str) -> None:
    text = policy(times, "hold", "approve", invariant=NEVER)
    assert rule_of(text, now=THURSDAY) == ("approve", "rest")
    violated(text)


# Diff


# Several files

DEFAULTS = [
    policy("event.EventType == 'Freeze'", name=name, params=f"{{name: n, type: int, default: {value}}}")
    for name, value in (("one", 5), ("two", 9))
]


@pytest.mark.parametrize("claim", ["params.n == 5", "params.n == 9", "params.n < 10"])
def test_the_order_of_files_does_not_matter(claim: str) -> None:
    invariants = f"- {{name: claim, expression: {claim}}}\n"
    answers = [
        (
            proof.code,
            sorted((one.code, one.severity) for one in proof.having("invariant-violated", "invariant-can-fail")),
        )
        for proof in (verify(*texts, invariants=invariants) for texts in (DEFAULTS, DEFAULTS[::-1]))
    ]
    assert answers[0] == answers[1]
    assert answers[0][0] in (1, 2)  # the parameter may have any value


# Found by tools.suite.claim_fuzz, and made shorter by tools.generators.claim_shrink

LIMITED = "{name: e, type: duration, default: 30m, min: 1s}"
FOUND = (
    policy("true", rest="", invariant="decision == hold || now.getDayOfWeek() != 1"),
    policy("true", rest="", invariant="size(event.Description) < 12"),
    policy("(event.DurationInSeconds + event.DurationInSeconds) % 2 == 0", "hold"),
    policy("events.all(one, one.EventId != 'z')"),
    policy("event.Resources.exists(one, one.lowerAscii() == vm.name.lowerAscii())"),
    policy("int(event.Description) > 5"),
    policy("vm.tags['ROLE'] == 'role'", rest="", invariant="vm.tags.exists(key, key == '')"),
    policy("true", "hold", "", invariant="events.map(one, one.EventType) == ['Reboot']"),
    policy("true", "hold", "", invariant="events.exists(one, one.DurationInSeconds > 0)"),
    policy("true", "hold", "", invariant="events.filter(one, one.EventType == event.EventType).size() == 0"),
    policy("true", rest="", params=LIMITED, invariant="notice >= params.e + duration('0m')"),
    policy("true", rest="", more="approver: any"),
    policy("true", rest="", more="approver: witness"),
    policy("true", rest="", more='explanation: "string(60 / event.DurationInSeconds)"'),
)


@pytest.mark.parametrize("text", FOUND)
def test_the_event_of_a_finding_shows_it(text: str) -> None:
    shows(text)


@pytest.mark.parametrize(
    ("text", "given"),
    [
        (
            policy("event.EventType == 'Freeze'", more='explanation: "string(60 / event.DurationInSeconds)"'),
            {"DurationInSeconds": 0},
        ),
        (policy("event.EventType == 'Freeze' ? [12, 0][2] == 12 : false"), {}),
    ],
)
def test_rule_failing_for_usual_events_is_no_note(text: str, given: dict[str, Any]) -> None:
    decision = decide(text, case(vm=Vm(name="web_0", tags={}), **given))
    assert decision is not None
    assert decision.verdicts[0].error is not None
    found = verify(text).having("rule-can-fail")
    assert [one for one in found if one.severity != "note" or not one.certain]


def test_rule_after_an_unlimited_parameter_is_alive() -> None:
    params = "{name: s, type: string, default: web}"
    text = policy("params.s != 'WEB'", "hold", "approve", params=params)
    assert rule_of(text, params={"s": "WEB"}) == ("approve", "rest")
    assert "shadowed-rule" not in verify(text).codes("rest")
    text = policy("params.s != 'WEB' || event.Description == 'x'", "hold", "", params=params)
    decision = decide(text, case(params={"s": "WEB"}, Description=None))
    assert decision is not None
    assert decision.verdicts[0].error is not None
    assert "rule-can-fail" in verify(text).codes("some")
    assert "uncovered-events" in verify(text).codes()


def test_unknown_duration_read_by_an_exists_is_noticed() -> None:
    text = policy("events.exists(one, one.DurationInSeconds > 2)", "hold", "approve")
    assert [rule_of(text, DurationInSeconds=seconds)[0] for seconds in (-1, 10**6)] == ["approve", "hold"]
    assert "unknown-duration-approved" in verify(text).codes()


@pytest.mark.parametrize("day", [1, 3, 5])
def test_the_event_of_a_change_shows_it(day: int) -> None:
    old, new = (policy(f"now.getDayOfWeek() == {day}", output, rest="hold") for output in ("hold", "approve"))
    parts = [part for change in diff(old, new).changes for part in change["events"] if part["certain"]]
    assert parts
    for part in parts:
        for text, side in ((old, "old"), (new, "new")):
            decision = decide(text, shown(part["case"]))
            assert decision is not None
            assert (decision.output, decision.rule) == (part[side]["output"], part[side]["rule"])


def test_what_no_longer_fails_lets_others_approve() -> None:
    old, new = policy("int(event.Description) > 5", rest=""), policy("affects_me && false", rest="")
    others = policy("affects_me", name="others")
    decisions = [decide([one, others], case(Description="x")) for one in (old, new)]
    assert [one and one.output for one in decisions] == ["hold", "approve"]
    assert diff(old, new).verdict in (MORE, INCOMPARABLE)
