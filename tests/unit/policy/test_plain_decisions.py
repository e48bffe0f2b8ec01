# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the engine keeps between decisions changes none: output, reason and values are those of the plain way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from forewarn.errors import ForewarnError, InputError
from forewarn.events import API_VERSIONS, Document, Vm
from forewarn.policy.artifact import Artifact
from forewarn.policy.decision import Decision, Facts
from forewarn.policy.engine import PolicySet
from hypothesis import given, settings
from hypothesis import strategies as st
from tools.fixtures.policy_files import SHIPPED, loaded
from tools.generators import drawn_events
from tools.generators.drawn_policies import drawn
from tools.judges.plain_decisions import decisions
from tools.suite.sizes import examples

# What the drawn policies do not have: optional values, hooks that hold values, a long value, a failing group.
OPTIONAL = """
name: optional
params:
  - {name: seconds, type: int, default: 9}
  - {name: roles, type: "map(string, string)", default: {role: web}}
rule:
  variables:
    - {name: lasts, expression: "event.?DurationInSeconds.orValue(params.seconds)"}
    - {name: quotient, expression: "60 / event.DurationInSeconds"}
  match:
    - id: brief
      condition: variables.lasts < 61 && vm.?tags.?role.orValue("none") != params.roles[?"role"].orValue("")
      explanation: "'for ' + string(variables.lasts) + ' s, ' + vm.?zone.orValue('?') + ' ' + event.Description"
      output: approve
      limit: {at_most: 2, group: "vm.?scale_set.orValue('') + string(size(event.Resources) / variables.quotient)"}
      prepare:
        - haproxy: {socket: "lb:9999", server: "web/${vm.name}"}
      notify:
        - http: https://example.com/a
          body: "{'event': event.EventId, 'role': vm.tags['role'], 'mine': affects_me}"
    - id: inner
      condition: has(event.NotBefore) && event.NotBefore - now < duration("20m1.5s") || leader
      rule:
        match:
          - id: many
            condition: >-
              (event.Resources + event.Resources + event.Resources).map(one, one + "ab").exists(one, one > "x")
              || event.Resources.map(one, one + one).size() > 1 && event.Resources.filter(one, one != "") != []
            output: hold
          - id: late
            condition: >-
              age > duration("1m") && events.size() != 2 && events.all(one, one.EventType != "Terminate")
              && now > event.NotBefore
            output: approve
    - id: rest
      condition: variables.quotient > 1 || event.Description.contains("é") || vm.tags["role"].matches("^w")
      output: hold
"""
# Beside it: the most careful of each counts, and the same limit counts once.
BESIDE = """
name: beside
rule:
  match:
    - condition: size(event.Resources) > 1
      output: approve
      approver: any
      limit: {at_most: 2, group: "vm.?scale_set.orValue('') + '0'"}
"""


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("policies")


@pytest.fixture(scope="module")
def optional(directory: Path) -> Artifact:
    return loaded(directory, OPTIONAL, BESIDE)


def moments(chance: Random, document: Document, facts: Facts) -> Iterator[tuple[Document, Facts]]:
    """Yield a document as a runner asks about it: the same one as time passes, as another VM, and a copy of it."""
    vm = facts.vm
    yield document, facts
    yield document, facts._replace(now=facts.now + timedelta(seconds=chance.choice((0, 1, 600))))
    yield document, facts._replace(vm=Vm(chance.choice((None, "web_0", "db_0")), zone="1", tags=None))
    yield document._replace(), facts._replace(vm=vm, first_seen={})
    events = document.events[::-1] * chance.choice((1, 2))
    yield document._replace(events=events), facts._replace(now=facts.now - timedelta(days=1))
    yield document, facts


def told(found: tuple[Decision, ...]) -> Any:
    """Return decisions with everything that they have spelled out, so that 1 and True are not the same."""
    return [
        (repr(one), repr(tuple(one.values)), [repr(tuple(verdict.values)) for verdict in one.verdicts]) for one in found
    ]


def compare(artifact: Artifact, params: dict[str, Any], chance: Random, count: int) -> int:
    """Compare the decisions about some documents; return how many there were."""
    try:
        policies = PolicySet(artifact, params)
    except InputError:  # a parameter has no value, or one that its limits forbid
        return 0
    compared = 0
    for seen in drawn_events.pool(chance, artifact.api_version, count):
        document = seen.document
        if chance.random() < 0.1:
            document = document._replace(problems=("Events[9] is 1, not an object: skipped",))
        if chance.random() < 0.1:
            first = document.events[0]._replace(resources=(), problems=("Resources is missing, not a list of names",))
            document = document._replace(events=(first, *document.events[1:]))
        for listed, facts in moments(chance, document, seen.facts):
            assert told(policies.decide(listed, facts)) == told(decisions(artifact, params, listed, facts))
            compared += 1
    return compared


@given(seed=st.integers(0, 2**32), api_version=st.sampled_from(API_VERSIONS))
@settings(max_examples=examples(30), deadline=None)
def test_drawn_policies_decide_as_the_plain_way_does(seed: int, api_version: str, directory: Path) -> None:
    chance = Random(seed)
    policies = drawn(chance, api_version)
    with suppress(ForewarnError):  # the compiler refuses some, for example a rule that is never reached
        artifact = loaded(directory, *policies.texts, api_version=api_version)
        names = sorted(policies.params())
        for params in drawn_events.several(chance, names, 2, policies.required()):
            compare(artifact, params, chance, 3)


@given(seed=st.integers(0, 2**32))
@settings(max_examples=examples(40), deadline=None)
def test_optional_values_and_hooks_with_values_too(seed: int, optional: Artifact) -> None:
    chance = Random(seed)
    params = chance.choice(({}, {"seconds": 8}, {"seconds": 10, "roles": {}}))
    assert compare(optional, params, chance, 3)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_so_do_the_policies_that_are_shipped(path: Path, directory: Path) -> None:
    assert compare(loaded(directory, path.read_text()), {}, Random(path.stem), 10)
