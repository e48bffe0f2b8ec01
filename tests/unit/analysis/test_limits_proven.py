# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits and groups that wait, for every event: what a change of them means, and where a limit names no group."""

from __future__ import annotations

from pathlib import Path

import pytest
from forewarn.analysis.diff import kinds
from forewarn.analysis.diff.diff import Difference, compare
from forewarn.analysis.diff.kinds import ALIKE, INCOMPARABLE, LESS, MORE, NO_CHANGE
from forewarn.analysis.engine import Engine
from forewarn.analysis.event_space.policies import read
from forewarn.analysis.report.decisions import SpaceDecisions
from forewarn.analysis.report.table import verification_table
from tools.fixtures.policy_files import HEAD, loaded, verified
from tools.judges.class_agreement import agrees, combine

RULE = "    - {{id: a, condition: affects_me, output: {output}{more}}}\n    - {{id: rest, output: hold}}\n"
DRAIN = ", prepare: [{run: [/bin/drain]}], recover: [{run: [/bin/undrain]}]"


def text(more: str, output: str = "approve", head: str = HEAD) -> str:
    return head + RULE.format(output=output, more=f", {more}" if more else "")


def difference(directory: Path, old: str, new: str) -> Difference:
    return compare(loaded(directory, old), loaded(directory, new))


@pytest.mark.parametrize(
    ("old", "new", "verdict"),
    [
        ("", "limit: 1", LESS),
        ("limit: 1", "limit: 2", MORE),
        ("limit: 25%", "limit: 10%", LESS),
        ("limit: 25%", "limit: 10", INCOMPARABLE),
        ("limit: 1", "limit: {at_most: 1}", NO_CHANGE),
        ("limit: 1", "limit: {at_most: 1, group: vm.zone}", INCOMPARABLE),
        ("limit: {at_most: 1, group: vm.zone}", "limit: {at_most: 1, group: ' vm.zone  '}", NO_CHANGE),
        ("limit: {at_most: 1, group: vm.zone}", "limit: {at_most: 1, group: 'true ? vm.zone : vm.name'}", NO_CHANGE),
        ("limit: {at_most: 1, group: vm.zone}", "limit: {at_most: 2, group: vm.zone}", MORE),
    ],
)
def test_a_change_of_a_limit(tmp_path: Path, old: str, new: str, verdict: str) -> None:
    found = difference(tmp_path, text(old), text(new))
    assert found.verdict == verdict
    assert set(found.kinds) - {kinds.HELD} == (set() if verdict == NO_CHANGE else {kinds.LIMIT})


def test_a_limit_of_an_event_that_nobody_approves(tmp_path: Path) -> None:
    found = difference(tmp_path, *(text(f"limit: {most}{DRAIN}", "hold") for most in (1, 2)))
    assert (found.verdict, found.kinds) == (ALIKE, (kinds.LIMIT,))


def test_renamed_group_is_shown_by_an_event(tmp_path: Path) -> None:
    found = difference(tmp_path, *(text(f"limit: {{at_most: 1, group: {group}}}") for group in ("vm.zone", "vm.name")))
    (change,) = [one for one in found.changes if kinds.LIMIT in one.kinds]
    assert change.what == "limit: 1 of vm.zone → 1 of vm.name"
    for part in change.parts:
        assert part.certain
        assert part.case
        assert part.case["vm"]["zone"] != part.case["vm"]["name"]


def test_a_variable_that_names_the_group_counts(tmp_path: Path) -> None:
    heads = [
        f'name: p\nrule:\n  variables: [{{name: role, expression: "{value}"}}]\n  match:\n' for value in ("'a'", "'b'")
    ]
    found = difference(tmp_path, *(text("limit: {at_most: 1, group: variables.role}", head=head) for head in heads))
    assert (found.verdict, found.kinds) == (INCOMPARABLE, (kinds.LIMIT,))


@pytest.mark.parametrize(
    ("group", "fails", "case"),
    [
        ("'web'", False, None),
        ("vm.name", False, None),  # affects_me has no value where the name is not known
        ("'zone ' + vm.zone", True, "zone"),
        ("vm.zone", True, "zone"),
        ("has(vm.zone) ? vm.zone : 'none'", True, "zone"),  # it may be empty
        ("has(vm.zone) && vm.zone != '' ? vm.zone : 'none'", False, None),
    ],
)
def test_a_limit_that_may_name_no_group(tmp_path: Path, group: str, fails: bool, case: str | None) -> None:
    findings = verified(tmp_path, text(f'limit: {{at_most: 1, group: "{group}"}}'))
    found = [one for one in findings if one.code == "rule-can-fail" and "the limit of rule a" in one.message]
    assert bool(found) == fails
    for one in found:
        assert "names no group" in one.message
        assert (one.line, one.column) == (
            4,
            text("").splitlines()[3].index("}") + len(", limit: {at_most: 1, group: ") + 2,
        )
        assert one.case is not None
        assert one.case["decision"]["output"] == "hold"
        assert not one.case["vm"].get(case)


def test_each_class_is_decided_as_the_engine_does(tmp_path: Path) -> None:
    policies = loaded(
        tmp_path,
        text("limit: {at_most: 1, group: vm.zone}, group: ready"),
        text("limit: 25%, group: ready" + DRAIN).replace("name: p", "name: q"),
    )
    reading = read(policies)
    decided_alike = 0
    engine = Engine(policies, {})
    for space in reading.spaces():
        decided = SpaceDecisions(reading, space)
        for regions, classes in decided.regions():
            decision = engine.decide(space.witness(space.first(classes)))
            assert agrees(combine(regions), decision), decision
            decided_alike += 1
    assert decided_alike > 4


def test_a_page_shows_limits_and_what_waits(tmp_path: Path) -> None:
    table = verification_table(loaded(tmp_path, text("limit: {at_most: 25%, group: vm.zone}, group: ready")))
    regions = table["sides"][0]["policies"][0]["regions"]
    (shown,) = [one for one in regions if one["rule"] == "a" and one["how"] == "rule"]
    assert (shown["group"], shown["limit"]) == ("ready", "at most 25% of the group vm.zone at once")
    assert {one["how"] for one in regions if one["rule"] == "a"} == {"rule", "error", "limit"}
