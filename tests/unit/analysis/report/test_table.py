# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of a page has for every class the engine's decision of the example that the page shows."""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from forewarn.analysis.event_space import space
from forewarn.analysis.event_space.policies import read_together
from forewarn.analysis.report.decision_diagram import DecisionDiagrams
from forewarn.analysis.report.table import difference_table, verification_table
from forewarn.compiler.policies import load_policies
from forewarn.events import Vm, parse_document
from forewarn.policy.artifact import Artifact
from forewarn.policy.decision import Decision, Facts
from forewarn.policy.engine import PolicySet
from tools.fixtures.policy_files import DIRECTORY, SHIPPED, loaded
from tools.suite.sizes import SEED, examples

CATEGORIES = {"approve": "approve", "prepared": "approve", **dict.fromkeys(("hold", "in-doubt", "uncovered"), "hold")}
TRICKY = """name: tricky
params:
  - {name: loud, type: bool, default: true}
  - {name: wait, type: duration, default: 10m}
rule:
  variables:
    - {name: mine, expression: "'web_0' in event.Resources"}
  match:
    - {id: soon, condition: event.NotBefore - now < params.wait, output: approve,
       explanation: "'at ' + string(event.NotBefore) + ' or so, in ' + string(notice)"}
    - {id: old, condition: age > duration('1h') && variables.mine, output: hold,
       explanation: "'seen ' + string(age) + ' ago, of ' + string(size(event.Resources))"}
    - {id: tag, condition: "vm.tags['tier'] == 'gold' && params.loud && leader", output: approve,
       prepare: [{run: [/bin/drain]}], explanation: "vm.tags['tier'] + event.Description"}
    - {id: zone, condition: vm.zone == '1' || event.EventSource == 'User', output: approve}
"""


def leaf_at(table: Mapping[str, Any], root: int, places: list[int]) -> int:
    while root < 0:
        dimension, children = table["nodes"][-1 - root]
        root = children[places[dimension]]
    return root


def example(table: Mapping[str, Any], places: list[int]) -> dict[str, Any]:
    """Put an example together as the page's script does."""
    case: dict[str, Any] = json.loads(json.dumps(table["base"]))
    for group in table["groups"]:
        at = 0
        for dimension in group["dims"]:
            at = at * len(table["dims"][dimension]["values"]) + places[dimension]
        for name, value in table["deltas"][group["parts"][at]].items():
            if isinstance(value, dict):
                case[name] = {k: v for k, v in {**case[name], **value}.items() if v is not None}
            else:
                case[name] = value
    return case


def reason(region: Mapping[str, Any], places: list[int]) -> str:
    if "reasons" in region:
        return str(region["reasons"][",".join(str(places[dimension]) for dimension in region["dims"])])
    return str(region["reason"])


def decide(artifact: Artifact, params: Mapping[str, Any], case: Mapping[str, Any]) -> Decision:
    declared = {entry["name"] for data in artifact.data["policies"] for entry in data["params"]}
    given = {name: value for name, value in {**params, **case["params"]}.items() if name in declared}
    engine = PolicySet(artifact, given)
    body = json.dumps({"DocumentIncarnation": 1, "Events": [case["event"]]})
    document = parse_document(body, artifact.api_version)
    now, seen = (datetime.fromisoformat(case[name].replace("Z", "+00:00")) for name in ("now", "first_seen"))
    facts = Facts(now, Vm(**case["vm"]), {event.key: seen for event in document.events})
    return engine.decide(document, facts)[0]


def cases(table: Mapping[str, Any], most: int = 400) -> Iterator[list[int]]:
    """Yield classes of a table as places of values: all of them, or some by chance where they are many."""
    sizes = [len(dimension["values"]) for dimension in table["dims"]]
    if math.prod(sizes) <= most:
        yield from (list(places) for places in itertools.product(*map(range, sizes)))
    chance = random.Random(SEED)
    for _ in range(most if math.prod(sizes) > most else 0):
        yield [chance.randrange(size) for size in sizes]


def as_understood(table: Mapping[str, Any], places: list[int], decisions: list[Decision]) -> list[int]:
    """Return the class whose opaque terms have the values that the engine found, if there are any."""
    opaque_terms = [place for place, dimension in enumerate(table["dims"]) if dimension["opaque"]]
    for values in itertools.product((0, 1), repeat=len(opaque_terms)):
        candidate = [dict(zip(opaque_terms, values)).get(place, value) for place, value in enumerate(places)]
        regions = [
            (policy["regions"][leaf_at(table, policy["root"], candidate) - 1], verdict)
            for side, decision in zip(table["sides"], decisions)
            for policy, verdict in zip(side["policies"], decision.verdicts)
        ]
        if all((one["output"], one["rule"]) == (verdict.output, verdict.rule) for one, verdict in regions):
            return candidate
    return places


def assert_as_decided(table: Mapping[str, Any], artifacts: list[Artifact], most: int = 400) -> int:
    """Compare every view with the engine's decisions of the page's own examples; return how many were."""
    compared = 0
    for places in cases(table, most):
        if not leaf_at(table, table["views"][0]["root"], places):
            continue
        case = example(table, places)
        decisions = [decide(artifact, table["params"], case) for artifact in artifacts]
        places = as_understood(table, places, decisions)
        for side, decision in zip(table["sides"], decisions):
            for policy, verdict in zip(side["policies"], decision.verdicts):
                region = policy["regions"][leaf_at(table, policy["root"], places) - 1]
                assert (region["output"], region["rule"]) == (verdict.output, verdict.rule), case
                assert reason(region, places) == verdict.reason, case
        for view in table["views"]:
            leaf = view["leaves"][leaf_at(table, view["root"], places) - 1]
            if table["kind"] == "diff":
                reported = list(zip(leaf["decisions"], leaf["by"], table["sides"], decisions))
                assert (leaf["category"] == "same") == (leaf["what"] == "")
            elif view["title"] == "all policies together" or len(decisions[0].verdicts) == 1:
                reported = [(leaf["category"], leaf["by"][0], table["sides"][0], decisions[0])]
            else:
                continue
            for category, by, side, decision in reported:
                assert CATEGORIES[category] == decision.output, case
                assert (category == "prepared") == (decision.output == "approve" and bool(decision.prepare))
                if by is not None and decision.policy is not None:
                    policy = side["policies"][by[0]]
                    assert (policy["name"], policy["regions"][by[1]]["rule"]) == (decision.policy, decision.rule)
        compared += 1
    return compared


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_every_shipped_cell_matches_the_engine(path: Path) -> None:
    artifact = load_policies([path])
    assert assert_as_decided(verification_table(artifact), [artifact], examples(700)) > examples(60)


def test_policies_together(tmp_path: Path) -> None:
    artifact = load_policies(SHIPPED)
    table = verification_table(artifact)
    assert [view["title"] for view in table["views"]] == ["all policies together", *(path.stem for path in SHIPPED)]
    assert assert_as_decided(table, [artifact], examples(600)) > examples(60)


@pytest.mark.parametrize("api_version", ["2017-03-01", "2019-01-01", "2020-07-01"])
def test_reasons_that_read_times_tags_and_resources(api_version: str, tmp_path: Path) -> None:
    text = TRICKY if api_version == "2020-07-01" else TRICKY.replace(" || event.EventSource == 'User'", "")
    text = text if api_version > "2019-04" else text.replace(" + event.Description", "")
    artifact = loaded(tmp_path, text, api_version=api_version)
    assert assert_as_decided(verification_table(artifact), [artifact], examples(3000)) > examples(200)


def test_a_difference_has_both_sides(tmp_path: Path) -> None:
    old = load_policies([DIRECTORY / "web-tier.yml"])
    text = (DIRECTORY / "web-tier.yml").read_text().replace("default: 9", "default: 15")
    new = loaded(tmp_path, text)
    table = difference_table(old, new)
    assert assert_as_decided(table, [old, new], examples(2000)) > examples(200)
    assert {leaf["category"] for leaf in table["views"][0]["leaves"]} == {"same", "preparation-lost"}


def test_slices_are_one_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    artifact = load_policies([DIRECTORY / "web-tier.yml", DIRECTORY / "spot-worker.yml"])
    whole = verification_table(artifact)
    monkeypatch.setattr(space, "MAX_CLASSES", 700)
    sliced = verification_table(artifact)
    assert len(list(read_together([artifact])[0].spaces())) > 1
    for places in cases(whole, examples(1000)):
        for one, other in zip(whole["views"], sliced["views"]):
            leaves = [leaf_at(table, view["root"], places) for table, view in ((whole, one), (sliced, other))]
            shown = [view["leaves"][leaf - 1] if leaf else None for view, leaf in zip((one, other), leaves)]
            decided = [leaf and (leaf["category"], leaf["usual"]) for leaf in shown]
            assert decided[0] == decided[1]
    assert assert_as_decided(sliced, [artifact]) > 40


def test_no_class_is_lost_and_none_is_invented() -> None:
    artifact = load_policies([DIRECTORY / "azure-sample.yml"])
    table = verification_table(artifact)
    found = [leaf_at(table, table["views"][0]["root"], places) for places in cases(table, 10**6)]
    (reading,) = read_together([artifact])
    (everything,) = reading.spaces()
    assert sum(map(bool, found)) == everything.reachable.bit_count()
    usual = [leaf for leaf in found if leaf and table["views"][0]["leaves"][leaf - 1]["usual"]]
    assert len(usual) == (everything.reachable & everything.normal).bit_count()


def test_duration_is_at_its_default_and_switch_varies(tmp_path: Path) -> None:
    table = verification_table(loaded(tmp_path, TRICKY))
    assert table["params"] == {"wait": "10m"}
    (switch,) = [dimension for dimension in table["dims"] if dimension["name"] == "params.loud"]
    assert switch["values"][switch["start"]]["label"] == "true"
    fixed = verification_table(loaded(tmp_path, TRICKY), {"loud": False, "wait": "5m"})
    assert "params.loud" not in [dimension["name"] for dimension in fixed["dims"]]
    assert fixed["params"] == {"loud": False, "wait": "5m"}


@pytest.mark.parametrize("default", ["Web", "web", "missing", "a b"])
def test_enum_starts_at_its_default(default: str, tmp_path: Path) -> None:
    text = (
        f"name: p\nparams: [{{name: kind, type: string, default: {default}, enum: [Web, web, missing, a b]}}]\n"
        "rule: {match: [{id: a, condition: vm.tags.kind == params.kind, output: approve}, {id: b, output: hold}]}\n"
    )
    (kind,) = [one for one in verification_table(loaded(tmp_path, text))["dims"] if one["name"] == "params.kind"]
    assert [one["label"] for one in kind["values"]] == ["Web", "web", "'missing'", "'a b'"]
    assert kind["values"][kind["start"]]["label"].strip("'") == default


def test_the_table_is_the_same_twice_and_small() -> None:
    first, second = (json.dumps(verification_table(load_policies(SHIPPED))) for _ in range(2))
    assert first == second
    assert len(first) < 100_000


def test_sets_that_overlap_are_refused() -> None:
    (reading,) = read_together([load_policies([DIRECTORY / "azure-sample.yml"])])
    (everything,) = reading.spaces()
    diagrams = DecisionDiagrams(everything.dimensions)
    one = diagrams.build(everything, [(1, everything.mask("event.EventType", 0))])
    with pytest.raises(ValueError, match="in common"):
        diagrams.union(one, one)
