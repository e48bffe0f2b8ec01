# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random nested policies on random events: engine, explanation and analysis mean what the documentation says.

The reference is written from docs/policies.md, *Nested rules*, and evaluates its conditions by functions of its own.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from typing import Any, NamedTuple, NoReturn

from forewarn.analysis.event_space.policies import read
from forewarn.analysis.report.decisions import SpaceDecisions
from forewarn.events import Document, Event, Vm, parse_document
from forewarn.policy.decision import Facts
from forewarn.policy.engine import PolicySet, PolicyTrace
from forewarn.policy.view import DocumentView
from hypothesis import given, settings
from hypothesis import strategies as st
from tools.fixtures.policy_data import artifact, policy
from tools.judges.class_agreement import joint_decision
from tools.judges.event_classes import EventClasses
from tools.suite.sizes import enough, examples

NOW = datetime(2026, 1, 31, 12, tzinfo=timezone.utc)
MAX_DEPTH = 4
EXAMPLES = examples(400)


class NoValueError(Exception):
    """A condition has no value, by the reference."""


class Case(NamedTuple):
    """An event as the service writes it, and the VM's name."""

    fields: Mapping[str, Any]
    vm_name: str | None


Meaning = Callable[[Case], bool]


def _field(name: str) -> Callable[[Case], Any]:
    def read_field(case: Case) -> Any:
        if name not in case.fields:
            raise NoValueError(name)
        return case.fields[name]

    return read_field


def _place(case: Case) -> int:
    if case.vm_name is None:
        raise NoValueError("vm.name")
    names = [name.lower() for name in case.fields["Resources"]]
    return names.index(case.vm_name.lower()) if case.vm_name.lower() in names else -1


def _tried(meaning: Meaning, case: Case) -> bool | None:
    try:
        return meaning(case)
    except NoValueError:
        return None


def _never(case: Case) -> NoReturn:
    raise NoValueError(case)


SECONDS, SOURCE, TEXT = _field("DurationInSeconds"), _field("EventSource"), _field("Description")
# Conditions, and what they mean.
CONDITIONS: Mapping[str, Meaning] = {
    "event.EventType == 'Freeze'": lambda case: bool(case.fields["EventType"] == "Freeze"),
    "event.EventType in ['Reboot', 'Freeze']": lambda case: case.fields["EventType"] in ("Reboot", "Freeze"),
    "event.EventStatus != 'Started'": lambda case: bool(case.fields["EventStatus"] != "Started"),
    "event.DurationInSeconds == 1": lambda case: bool(SECONDS(case) == 1),
    "event.DurationInSeconds < 9": lambda case: bool(SECONDS(case) < 9),
    "event.EventSource == 'User'": lambda case: bool(SOURCE(case) == "User"),
    "has(event.EventSource)": lambda case: "EventSource" in case.fields,
    "!has(event.DurationInSeconds)": lambda case: "DurationInSeconds" not in case.fields,
    "affects_me": lambda case: _place(case) >= 0,
    "leader": lambda case: _place(case) == 0,
    "vm.zone == '1'": _never,
    "event.Description.matches('^a')": lambda case: bool(TEXT(case).startswith("a")),
}
LITERALS: Mapping[str, Meaning] = {"true": lambda _case: True, "false": lambda _case: False}


def _either(first: Meaning, second: Meaning) -> Meaning:
    """Return what ``||`` means: one true side decides, whatever the other is."""

    def combined(case: Case) -> bool:
        answers = (_tried(first, case), _tried(second, case))
        if True in answers:
            return True
        if None in answers:
            raise NoValueError
        return False

    return combined


class Rules(NamedTuple):
    """A random rule: as ``policy_data.policy`` takes it, and the meaning of each condition by its rule's path."""

    variables: dict[str, str]
    matches: list[dict[str, Any]]


@st.composite
def blocks(
    draw: st.DrawFn, meanings: dict[str, Meaning], prefix: str = "", depth: int = 0, known: Mapping[str, Meaning] = {}
) -> Rules:
    """Draw a block of matches, with variables now and then, and note what each condition means in ``meanings``."""
    variables: dict[str, str] = {}
    visible = dict(known)
    if draw(st.integers(0, 3)) == 0:
        name = f"v{depth}_{len(meanings)}"
        variables[name] = draw(st.sampled_from(sorted(CONDITIONS)))
        visible[f"variables.{name}"] = CONDITIONS[variables[name]]
    matches: list[dict[str, Any]] = []
    for number in range(draw(st.integers(1, 3))):
        match: dict[str, Any] = {"id": f"m{number}"}
        path = prefix + match["id"]
        source, meanings[path] = draw(conditions(visible))
        if source is not None:
            match["condition"] = source
        if depth < MAX_DEPTH and draw(st.booleans()):
            inner = draw(blocks(meanings, path + ".", depth + 1, visible))
            match["rule"] = (inner.variables, inner.matches)
        else:
            match["output"] = draw(st.sampled_from(("approve", "hold")))
            if draw(st.integers(0, 5)) == 0:
                match["explanation"] = "'by ' + event.EventSource"
        matches.append(match)
    return Rules(variables, matches)


@st.composite
def conditions(draw: st.DrawFn, visible: Mapping[str, Meaning]) -> tuple[str | None, Meaning]:
    """Draw a condition, or None for a match without one, and its meaning."""
    kind = draw(st.integers(0, 9))
    if kind < 3:
        return None, LITERALS["true"]
    if kind == 3:
        source = draw(st.sampled_from(sorted(LITERALS)))
        return source, LITERALS[source]
    source = draw(st.sampled_from(sorted(CONDITIONS)))
    if not visible or kind < 7:
        return source, CONDITIONS[source]
    name = draw(st.sampled_from(sorted(visible)))
    if kind < 9:
        return name, visible[name]
    return f"{name} || {source}", _either(visible[name], CONDITIONS[source])


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw an event that the service may send."""
    status = draw(st.sampled_from(("Scheduled", "Scheduled", "Started")))
    fields: dict[str, Any] = {
        "EventId": "A",
        "EventType": draw(st.sampled_from(("Freeze", "Freeze", "Reboot", "Preempt"))),
        "EventStatus": status,
        "ResourceType": "VirtualMachine",
        "Resources": draw(st.sampled_from((["web_0", "web_1"], ["WEB_1", "web_0"], ["other"]))),
        "NotBefore": "Sat, 31 Jan 2026 12:15:00 GMT" if status == "Scheduled" else "",
    }
    optional = {"EventSource": ("User", "Platform"), "DurationInSeconds": (-1, 1, 5, 30), "Description": ("ab", "b")}
    for name, values in optional.items():
        if draw(st.booleans()):
            fields[name] = draw(st.sampled_from(values))
    return Case(fields, draw(st.sampled_from(("web_0", "web_1", None))))


class EndError(Exception):
    """The reference has decided: ``answer`` is (output, rule)."""

    def __init__(self, output: str, rule: str | None) -> None:
        super().__init__(output, rule)
        self.answer = (output, rule)


class Reference:
    """Reads the matches of a policy from top to bottom, as the documentation says, and notes what it has tried."""

    def __init__(self, meanings: Mapping[str, Meaning], case: Case) -> None:
        self.meanings = meanings
        self.case = case
        self.tried: dict[str, str] = {}

    def answer(self, matches: list[dict[str, Any]]) -> tuple[str, str | None]:
        """Return the policy's decision, and its rule."""
        try:
            self._read(matches, "")
        except EndError as end:
            return end.answer
        return "abstain", None

    def _read(self, matches: list[dict[str, Any]], prefix: str) -> None:
        for match in matches:
            rule = prefix + match["id"]
            met = _tried(self.meanings[rule], self.case)
            self.tried[rule] = "error" if met is None else str(met).lower()
            if met is None:
                raise EndError("hold", rule)
            if met and "rule" in match:
                self._read(match["rule"][1], rule + ".")
                if match.get("condition", "true") != "true":
                    raise EndError("abstain", None)
            elif met:
                unexplained = "explanation" in match and "EventSource" not in self.case.fields
                raise EndError("hold" if unexplained else match["output"], rule)


def _last(trace: PolicyTrace) -> str | None:
    """Return the last rule that an explanation calls reached."""
    reached = [one.rule for one in trace.rules if one.result != "not reached"]
    return reached[-1] if reached else None


def test_nested_policies_mean_what_the_documentation_says() -> None:
    count: Counter[str] = Counter()

    @settings(max_examples=EXAMPLES, deadline=None)
    @given(st.data())
    def random_policies(data: st.DataObject) -> None:
        meanings: dict[str, Meaning] = {}
        made = data.draw(blocks(meanings))
        compiled = artifact(policy(*made.matches, name="nest", variables=made.variables))
        policies = PolicySet(compiled)
        reading = read(compiled)
        decideds = [(SpaceDecisions(reading, one), EventClasses(reading, one)) for one in reading.spaces()]
        for case in data.draw(st.lists(cases(), min_size=4, max_size=8)):
            document = parse_document(json.dumps({"DocumentIncarnation": 1, "Events": [case.fields]}))
            _compare(made, Reference(meanings, case), policies, document, Facts(NOW, Vm(name=case.vm_name)), count)
            _compare_classes(made, Reference(meanings, case), decideds, document, Facts(NOW, Vm(name=case.vm_name)))

    random_policies()
    print(f"nested policies: {dict(count)}")
    assert min(count[what] for what in ("approve", "hold", "nested")) > EXAMPLES // 20, count
    assert min(count[what] for what in ("abstain", "ended within a group")) >= enough(20), count


def _compare(
    made: Rules, reference: Reference, policies: PolicySet, document: Document, facts: Facts, count: Counter[str]
) -> None:
    (event,) = document.events
    output, rule = reference.answer(made.matches)
    (decision,) = policies.decide(document, facts)
    (verdict,) = decision.verdicts
    assert (verdict.output, verdict.rule) == (output, rule)
    assert decision.output == ("approve" if output == "approve" else "hold")
    (trace,) = policies.explain(event, document, facts)
    assert {one.rule: one.result for one in trace.rules if one.result != "not reached"} == reference.tried
    assert [one.rule for one in trace.rules] == list(reference.meanings)
    assert trace.verdict == verdict
    if rule is not None:
        assert _last(trace) == rule
    count[output] += 1
    count["nested"] += rule is not None and "." in rule
    count["ended within a group"] += output == "abstain" and _last(trace) != list(reference.meanings)[-1]


def _compare_classes(
    made: Rules,
    reference: Reference,
    decideds: list[tuple[SpaceDecisions, EventClasses]],
    document: Document,
    facts: Facts,
) -> None:
    event: Event = document.events[0]
    view = DocumentView(document, facts)
    found = [
        joint_decision(decided, number)
        for decided, classes in decideds
        if (number := classes.locate(event, facts, {}, view.roots(event, {}))) is not None
    ]
    assert [outcome.rules for outcome in found] == [(("nest", *reference.answer(made.matches)),)]
