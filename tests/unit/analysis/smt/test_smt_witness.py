# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Events of models: what a text may be limits where it may stand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from forewarn.analysis.proof import Example, NoProof, Proof
from tools.fixtures.policy_files import loaded

_POLICY = """
name: p
params: [{name: label, type: string, default: a}]
rule:
  match:
    - id: r
      output: approve
      condition: """


@pytest.mark.parametrize(
    "condition",
    [
        "params.label in event.Resources",
        "params.label == '' && !(params.label in event.Resources)",
        "vm.zone.substring(1) in event.Resources",
        "vm.zone.substring(1) in event.Resources || size(vm.zone) == 1",
        "vm.zone.lowerAscii() in event.Resources && vm.zone != vm.zone.lowerAscii()",
        "vm.zone.trim() in event.Resources && affects_me",
        "event.Resources.exists(x, size(x) < 1) || params.label == 'b'",
        "event.Resources[0].trim() == '' || params.label == 'b'",
        "event.EventId.trim() == ' ' || size(event.EventId) < 2",
        "params.label.lowerAscii() == vm.zone.lowerAscii()",
        "vm.zone.lowerAscii() != vm.zone",
        "vm.name.lowerAscii() in event.Resources",
    ],
)
def test_a_text_that_is_a_name(condition: str, tmp_path: Path) -> None:
    proof = Proof([loaded(tmp_path, _POLICY + json.dumps(condition))])
    for one in proof.decisions[0].policies[0].outcomes:
        shown = proof.shows(one.when, usual=False)
        assert shown is None or isinstance(shown, Example), (one.how, shown)


@pytest.mark.parametrize(
    "condition",
    [
        "params.label == '' && params.label in event.Resources",
        "vm.zone.substring(1) == '' && vm.zone.substring(1) in event.Resources",
        "size(vm.zone.substring(1)) == 0 && vm.zone.substring(1) in event.Resources",
    ],
)
def test_a_text_that_is_no_name(condition: str, tmp_path: Path) -> None:
    proof = Proof([loaded(tmp_path, _POLICY + json.dumps(condition))])
    approved = next(one for one in proof.decisions[0].policies[0].outcomes if one.output == "approve")
    assert not isinstance(proof.shows(approved.when, usual=False), Example)


def test_unrequested_tags_are_not_missing_ones(tmp_path: Path) -> None:
    condition = "size(vm.tags) == 2 && !('other' in vm.tags) && !('other1' in vm.tags)"
    proof = Proof([loaded(tmp_path, _POLICY + json.dumps(condition))])
    shown = proof.shows(proof.decisions[0].approved)
    assert isinstance(shown, Example)
    assert len(shown.witness.facts.vm.tags or ()) == 2


@pytest.mark.parametrize("number", [3, 1000])
def test_the_service_lists_each_vm_once(number: int, tmp_path: Path) -> None:
    condition = f"size(event.Resources) == {number} && event.Resources.all(name, name.startsWith('db'))"
    proof = Proof([loaded(tmp_path, _POLICY + json.dumps(condition))])
    for usual in (True, False):
        shown = proof.shows(proof.decisions[0].approved, usual=usual)
        if number > 3 and usual and isinstance(shown, NoProof):
            continue  # too many names to make up
        assert isinstance(shown, Example)
        names = shown.witness.event["Resources"]
        assert len(names) == number
        assert len({name.lower() for name in names}) == number or not usual


@pytest.mark.parametrize(
    "condition",
    [
        "event.Resources.filter(r, r.startsWith('web')).size() > 1",
        "event.Resources.filter(r, r.startsWith('web')).size() == 7 && size(event.Resources) == 9",
        "event.Resources.filter(r, r.endsWith('-a')).size() == 5",
        "event.Resources.filter(r, r in ['a', 'b', 'c']).size() > 1",
        "event.Resources.filter(r, r in ['a', 'b', 'c']).size() > 2 || params.label == 'never'",
        "event.Resources.filter(r, r.startsWith('a')).size() == event.Resources.filter(r, r.endsWith('z')).size()",
        "event.Resources.filter(r, r.startsWith('a')).size() - event.Resources.filter(r, r.endsWith('z')).size() > 2",
        "event.Resources.filter(r, r != vm.name).size() > 2 && leader",
        "event.Resources.exists_one(r, r.matches('^db-[0-9]+$')) && size(event.Resources) > 3",
        "event.Resources.filter(r, r == vm.name).size() == 0 && size(event.Resources) > 6",
        "event.Resources.filter(r, r != vm.zone && r != vm.name).size() == 4",
        "!event.Resources.exists(r, r == vm.name) && size(event.Resources) == 3",
        "event.Resources.all(r, r != vm.zone && r != vm.name) && size(event.Resources) == 5",
        "event.Resources.distinct().size() == 3",
        "event.Resources.distinct().size() == 3 && event.Resources.filter(r, r.startsWith('a')).size() == 2",
    ],
)
def test_names_that_are_counted(condition: str, tmp_path: Path) -> None:
    proof = Proof([loaded(tmp_path, _POLICY + json.dumps(condition))])
    for one in proof.decisions[0].policies[0].outcomes:
        for usual in (False, True):
            shown = proof.shows(one.when, usual=usual)
            assert shown is None or isinstance(shown, Example), (one.how, shown)
            assert shown is not None or one.how == "error", one.how


@pytest.mark.parametrize(
    "condition",
    [
        "event.Resources.distinct().size() > 1 && size(event.Resources) == 1",
        "event.Resources.filter(r, r.startsWith('web')).size() > size(event.Resources)",
        "event.Resources.filter(r, r.startsWith('web')).size() == 2 && event.Resources.all(r, r.startsWith('db'))",
        "event.Resources.filter(r, r.startsWith('a')).size() == 1 && !event.Resources.exists(r, r.startsWith('a'))",
        "event.Resources.filter(r, r.startsWith('a')).size() == 2 && event.Resources.exists_one(r, r.startsWith('a'))",
    ],
)
def test_impossible_counts_of_names_have_no_witness(condition: str, tmp_path: Path) -> None:
    proof = Proof([loaded(tmp_path, _POLICY + json.dumps(condition))])
    assert proof.shows(proof.decisions[0].approved) is None


def test_names_that_are_listed_twice_are_counted_twice(tmp_path: Path) -> None:
    condition = "event.Resources.distinct().size() == 2 && event.Resources.filter(r, r.startsWith('a')).size() == 4"
    proof = Proof([loaded(tmp_path, _POLICY + json.dumps(condition))])
    shown = proof.shows(proof.decisions[0].approved)
    assert isinstance(shown, Example)
    assert len(set(shown.witness.event["Resources"])) == 2


@pytest.mark.parametrize(
    ("condition", "first"),
    [
        ("leader && size(event.Resources) == 5", "own"),
        ("event.Resources[0] == 'db' && size(event.Resources) == 5", "db"),
        ("!leader && affects_me && size(event.Resources) == 5", "other"),
    ],
)
@pytest.mark.parametrize("api_version", ["2017-03-01", "2020-07-01"])
def test_the_first_name_leads(condition: str, first: str, api_version: str, tmp_path: Path) -> None:
    proof = Proof([loaded(tmp_path, _POLICY + json.dumps(condition), api_version=api_version)])
    shown = proof.shows(proof.decisions[0].approved)
    assert isinstance(shown, Example)
    (event,), own = shown.witness.document.events, shown.witness.facts.vm.name or ""
    assert len({name.lower() for name in event.resources}) == 5
    assert (event.resources[0] == "db") == (first == "db")
    assert (event.resources[0].lower() == own.lower()) == (first == "own")
    written = shown.witness.event["Resources"]
    assert written == [f"_{name}" if api_version == "2017-03-01" else name for name in event.resources]
