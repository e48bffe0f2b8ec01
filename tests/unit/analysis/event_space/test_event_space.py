# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The event space is right: what it says of a class is what the engine decides for every event in it."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from forewarn.analysis.event_space.domains import DomainValue
from forewarn.analysis.event_space.policies import Reading, read
from forewarn.analysis.event_space.regions import cubes
from forewarn.analysis.event_space.space import Space
from forewarn.analysis.event_space.symbol_table import Dimension
from forewarn.analysis.event_space.symbols import Param
from forewarn.analysis.report.decisions import SpaceDecisions
from forewarn.compiler.policies import load_policies
from forewarn.errors import InputError
from forewarn.policy.engine import PolicySet
from forewarn.policy.functions.timevalues import format_duration, format_timestamp
from forewarn.policy.view import DocumentView
from hypothesis import given
from hypothesis import strategies as st
from tools.fixtures.policy_files import HEAD, SHIPPED, loaded
from tools.generators.random_events import case
from tools.judges.class_agreement import agrees, approved, joint_decision
from tools.judges.event_classes import EventClasses
from tools.suite.sizes import NAME, SEED, examples

# Policies that use every construct which the space claims to understand, and some that it does not.
CONSTRUCTS = {
    "times": """
name: times
params:
  - {name: share, type: double, default: 0.5, min: 0.0, max: 1.0}
  - {name: enough, type: duration, default: 5m, min: 1m, max: 30m}
rule:
  variables:
    - {name: left, expression: event.NotBefore - now}
    - {name: needed, expression: "event.EventType == 'Preempt' ? duration('10s') : duration('3m')"}
  match:
    - {id: doubles, condition: params.share < 0.25 || params.share == 0.75, output: hold}
    - {id: passed, condition: has(event.NotBefore) && variables.left < duration('-1m'), output: hold}
    - {id: at, condition: notice == duration('42s'), output: approve}
    - {id: short, condition: notice < params.enough, output: hold, explanation: string(notice)}
    - {id: old, condition: age >= duration('1h') || age > notice, output: approve}
    - {id: needed, condition: notice <= variables.needed, output: hold}
    - {id: past, condition: event.NotBefore - duration('20m') <= now, output: approve}
    - {id: far, condition: event.NotBefore > now + duration('24h'), output: hold}
""",
    "resources": """
name: resources
rule:
  match:
    - {id: mine, condition: leader && size(event.Resources) > 2, output: hold}
    - {id: named, condition: "'db_1' in event.Resources && !('db_2' in event.Resources)", output: approve}
    - {id: vm, condition: "vm.name == 'db_1' || vm.location in ['westeurope', 'northeurope']", output: approve}
    - {id: tag, condition: "has(vm.tags.role) && vm.tags['role'] != 'x' || 'y' in vm.tags", output: hold}
    - {id: zone, condition: has(vm.zone) && vm.zone == '1', output: approve}
    - {id: mixed, condition: "affects_me ? vm.tags.role == 'x' : event.EventId == 'one'", output: approve}
""",
    "spellings": """
name: spellings
rule:
  match:
    - {id: alone, condition: "'DB_3' in event.Resources && affects_me && size(event.Resources) == 1", output: hold}
    - {id: another, condition: "vm.name != 'DB_3' && vm.name != 'Db_3' && affects_me", output: approve}
""",
    "tags": """
name: tags
rule:
  match:
    - {id: nameless, condition: "'' in vm.tags && vm.tags[''] == ''", output: hold}
    - {id: named, condition: "vm.tags[\\"it's a.b[0]\\"] != 'missing' && !('' in vm.tags)", output: approve}
    - {id: other, condition: "vm.tags['ROLE'] in ['any other', 'x in another case']", output: hold}
    - {id: case, condition: "vm.tags.role == 'x' && vm.tags['ROLE'] != 'x'", output: approve}
    - {id: zone, condition: vm.zone == 'x in another case', output: hold}
""",
    "literals": """
name: literals
rule:
  match:
    - {id: bytes, condition: "event.DurationInSeconds < 60 && size(b'a') == 2", output: hold}
    - {id: text, condition: "event.DurationInSeconds < 60 && size('61') == 2", output: approve}
    - {id: infinite, condition: event.EventType == 'Freeze' && 1.0 / 0.0 < 0.0, output: hold}
    - {id: negative, condition: event.EventType == 'Freeze' && 1.0 / -0.0 < 0.0, output: approve}
    - {id: one, condition: event.EventType == 'Reboot' && string(1) == 'true', output: hold}
    - {id: truth, condition: event.EventType == 'Reboot' && string(true) == 'true', output: approve}
    - {id: vm, condition: leader && vm.zone == '1' && event.EventSource == 'User', output: approve}
""",
    "logic": """
name: logic
params:
  - {name: careful, type: bool, default: true}
  - {name: kind, type: string, default: Freeze, enum: [Freeze, Reboot]}
  - {name: limits, type: list(int), default: [3, 5]}
  - {name: most, type: int, default: 9, min: 0}
rule:
  variables:
    - {name: user, expression: event.EventSource == 'User'}
    - {name: seconds, expression: event.DurationInSeconds}
  match:
    - {id: absorbed, condition: event.DurationInSeconds < 2 && variables.user, output: approve}
    - {id: either, condition: event.EventType == params.kind || event.DurationInSeconds == 77, output: hold}
    - {id: same, condition: (variables.user) == params.careful, output: approve}
    - id: differ
      condition: variables.user != (event.EventStatus == 'Started')
      output: hold
      explanation: string(variables.seconds)
    - {id: listed, condition: variables.seconds in params.limits, output: approve}
    - {id: text, condition: "event.EventType.startsWith('Re') && size(event.EventType) == 6", output: approve}
    - {id: any, condition: "['Preempt', 'Terminate'].exists(t, t == event.EventType)", output: hold}
    - id: nested
      condition: variables.seconds >= params.most
      rule:
        match:
          - {id: twice, condition: variables.seconds > 100, output: approve}
          - {id: status, condition: event.EventStatus == 'Started', output: hold}
    - id: grouped
      rule:
        match:
          - {id: described, condition: event.Description == 'x', output: approve}
    - {id: other-type, condition: event.ResourceType != 'VirtualMachine', output: hold}
    - {id: last, condition: has(event.EventSource), output: approve}
""",
    "not understood": """
name: free
extra_values: {EventType: [Hibernate], EventStatus: [Paused]}
rule:
  match:
    - {id: word, condition: event.Description.contains('host') && event.EventType == 'Hibernate', output: approve}
    - {id: sum, condition: event.DurationInSeconds + 5 > 12, output: hold}
    - id: pattern
      condition: event.Description.matches('^a')
      output: hold
      explanation: "'x'.substring(event.DurationInSeconds)"
    - {id: several, condition: size(events) > 1, output: approve}
    - {id: names, condition: "event.Resources.exists(r, r.startsWith('vm_'))", output: hold}
    - {id: hour, condition: now.getHours() < 6, output: approve}
    - {id: me, condition: vm.name in event.Resources, output: approve}
    - {id: paused, condition: event.EventStatus == 'Paused', output: hold}
""",
}


def as_json(kind: str, value: Any) -> Any:
    return {"duration": format_duration, "timestamp": format_timestamp}.get(kind, lambda one: one)(value)


class Engines:
    """The product's engine with given parameters."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.known: dict[str, PolicySet] = {}

    def __call__(self, params: Mapping[str, Any]) -> PolicySet:
        key = repr(sorted(params.items()))
        if key not in self.known:
            self.known[key] = PolicySet(self.reading.artifact, {**self.reading.fixed, **params})
        return self.known[key]


def every_class_agrees(reading: Reading, most: int = 40_000) -> int:
    engines, checked = Engines(reading), 0
    for space in reading.spaces():
        decided = SpaceDecisions(reading, space)
        assert sum(found.bit_count() for _regions, found in decided.regions()) == space.reachable.bit_count()
        understood = space.reachable
        assert not any(name.startswith("opaque:") for name in space.by_name)
        members = list(space.members(understood))
        for number in members if len(members) <= most else random.Random(SEED).sample(members, most):
            seen = space.witness(number)
            decision = engines(seen.params).decide(seen.document, seen.facts)[0]
            assert agrees(joint_decision(decided, number), decision), (space.values(number), decision)
            checked += 1
    return checked


def random_events_agree(reading: Reading, count: int) -> int:
    """Return how many of ``count`` random events near each slice of the space were found in it, and agree."""
    engines, inside = Engines(reading), 0
    types = {name: entry["type"] for name, entry in reading.symbols.params.items()}
    for space in reading.spaces():
        decided, chance, classes = SpaceDecisions(reading, space), random.Random(SEED), EventClasses(reading, space)
        for _ in range(count):
            event, document, facts, params = case(space, types, chance)
            policies = engines({name: as_json(types[name], value) for name, value in params.items()})
            bound = {entry["name"]: None for entry in policies.artifact.params}
            bound.update(policies._policies[0].params)
            roots = DocumentView(document, facts).roots(event, bound)
            number = classes.locate(event, facts, params, roots)
            if number is None:
                continue
            inside += 1
            decision = policies.decide(document, facts)[0]
            assert agrees(joint_decision(decided, number), decision), (space.values(number), decision)
    return inside


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_every_class_of_shipped_policies_matches_the_engine(path: Path) -> None:
    assert every_class_agrees(read(load_policies([path])), examples(4_000)) > 50


@pytest.mark.parametrize("name", ["times", "resources", "spellings", "logic"])
def test_every_class_of_constructs_matches_the_engine(name: str, tmp_path: Path) -> None:
    assert every_class_agrees(read(loaded(tmp_path, CONSTRUCTS[name])), examples(3_000)) > 200


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_random_events_decide_as_their_class(path: Path) -> None:
    count = examples(2_000) if NAME == "small" else 20_000
    assert random_events_agree(read(load_policies([path])), count) == count


@pytest.mark.parametrize("name", CONSTRUCTS)
def test_random_events_match_their_class(name: str, tmp_path: Path) -> None:
    assert random_events_agree(read(loaded(tmp_path, CONSTRUCTS[name])), examples(1_500)) >= examples(1_500)


@pytest.mark.parametrize("api_version", ["2017-03-01", "2019-04-01", "2019-08-01"])
def test_older_api_versions_have_fewer_classes(api_version: str, tmp_path: Path) -> None:
    text = (
        "name: old\nrule:\n  match:\n"
        "    - {condition: has(event.EventSource) && event.EventSource == 'User', output: approve}\n"
        "    - {condition: event.EventType == 'Reboot' && has(event.DurationInSeconds), output: hold}\n"
    )
    reading = read(loaded(tmp_path, text, api_version=api_version))
    (space,) = reading.spaces()
    assert len(space.by_name["event.DurationInSeconds"].values) == 1
    assert (len(space.by_name["event.EventSource"].values) == 1) == (api_version < "2019-08-01")
    assert every_class_agrees(reading) > 5
    assert random_events_agree(reading, examples(500)) == examples(500)


def test_policies_together(tmp_path: Path) -> None:
    reading = read(load_policies([SHIPPED[0], SHIPPED[3], SHIPPED[4]]))
    assert every_class_agrees(reading, examples(3_000)) > examples(1_000)
    assert random_events_agree(reading, examples(1_500)) == examples(1_500)


@pytest.fixture(scope="module")
def small() -> Space:
    sizes = {"a": 3, "b": 1, "c": 7, "d": 2, "e": 5}
    dimensions = [
        Dimension(Param(name, {"type": "int"}), tuple(DomainValue(str(place), place) for place in range(size)))
        for name, size in sizes.items()
    ]
    return Space(dimensions, "2020-07-01")


SETS = st.integers(0, (1 << 3 * 7 * 2 * 5) - 1) | st.sets(st.integers(0, 209)).map(
    lambda some: sum(1 << n for n in some)
)


@given(classes=SETS, names=st.sets(st.sampled_from("abcde")))
def test_sets_of_classes_are_what_their_members_say(small: Space, classes: int, names: set[str]) -> None:
    folded = [f"params.{name}" for name in sorted(names)]
    members = list(small.members(classes))
    assert sum(1 << number for number in members) == classes
    kept = [dimension.name for dimension in small.dimensions if dimension.name not in folded]
    seen = {tuple(small.place(name, number) for name in kept) for number in members}
    alike = (n for n in range(small.count) if tuple(small.place(name, n) for name in kept) in seen)
    assert small.fold(classes, folded) == sum(1 << number for number in alike)
    for dimension in small.dimensions:
        places = sorted({small.place(dimension.name, number) for number in members})
        assert small.places(dimension.name, classes) == places
        within = (n for n in range(small.count) if small.place(dimension.name, n) in places)
        assert small.mask_of(dimension.name, places) == sum(1 << number for number in within)


@given(classes=SETS, care=SETS)
def test_cubes_cover_exactly_the_given_set(small: Space, classes: int, care: int) -> None:
    found, rest = cubes(small, classes & care, 300, care)
    assert rest == 0
    held = 0
    for cube in found:
        inside = care
        for name, places in cube.chosen.items():
            inside &= small.mask_of(name, places)
        assert cube.classes == inside
        held |= inside
    assert held == classes & care


def test_a_large_space_is_looked_at_in_slices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reading = read(loaded(tmp_path, CONSTRUCTS["times"]))
    (whole,) = reading.spaces()
    decided = SpaceDecisions(reading, whole)
    monkeypatch.setattr("forewarn.analysis.event_space.space.MAX_CLASSES", whole.count // 3)
    parts = [SpaceDecisions(reading, space) for space in reading.spaces()]
    assert 3 <= len(parts) <= 6
    assert sum(approved(part).bit_count() for part in parts) == approved(decided).bit_count()
    assert sum(part.space.reachable.bit_count() for part in parts) == whole.reachable.bit_count()
    assert random_events_agree(reading, 40) >= 40


def test_a_given_parameter_is_fixed(tmp_path: Path) -> None:
    text = (
        "name: p\nparams: [{name: most, type: int, default: 9, min: 0}]\nrule:\n  match:\n"
        "    - {condition: event.DurationInSeconds < params.most, output: approve}\n"
    )
    artifact = loaded(tmp_path, text)
    (opaque,) = read(artifact).spaces()
    (fixed,) = read(artifact, {"most": 4}).spaces()
    assert "params.most" in opaque.by_name
    assert "params.most" not in fixed.by_name
    assert [v.label for v in fixed.by_name["event.DurationInSeconds"].values] == [
        "-1 (unknown)",
        "0..3",
        "4..",
        "missing",
    ]
    with pytest.raises(InputError, match="no policy declares a parameter least"):
        read(artifact, {"least": 1})


def test_a_space_that_is_too_large_is_reported(tmp_path: Path) -> None:
    lines = "".join(
        f"    - condition: event.DurationInSeconds == {number * 3} && vm.tags['t{number}'] == 'x'\n      output: hold\n"
        for number in range(20)
    )
    with pytest.raises(InputError, match="more than can be analysed"):
        list(read(loaded(tmp_path, HEAD + lines)).spaces())
