# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``policy verify`` finds slots that nobody gives back."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from forewarn.analysis.verify.finding import ProofFinding
from tools.fixtures.policy_files import HEAD, verified

PAGE = Path(__file__).resolve().parents[4] / "docs/findings/slot-not-freed.md"
LIMITED = "output: approve, limit: 1"
TERMINATE = "event.EventType == 'Terminate'"
DELETED = "{id: gone, condition: \"event.EventType in ['Terminate', 'Preempt']\", output: hold}"


def found(directory: Path, *matches: str, other: str = "") -> list[ProofFinding]:
    text = HEAD + "".join(f"    - {match}\n" for match in matches)
    return [one for one in verified(directory, text, *filter(None, [other])) if one.code == "slot-not-freed"]


def test_limit_on_every_event_loses_slots(tmp_path: Path) -> None:
    (finding,) = found(tmp_path, f"{{id: a, {LIMITED}}}")
    assert (finding.rule, finding.severity, finding.certain) == ("a", "warning", True)
    assert "takes a slot for a Preempt" in finding.message
    assert finding.message.endswith("likewise for Terminate")
    assert finding.case is not None
    assert finding.case["event"]["EventType"] in ("Terminate", "Preempt")
    assert finding.case["decision"]["output"] == "approve"


def test_only_the_rule_with_the_limit_is_named(tmp_path: Path) -> None:
    rules = f"{{id: a, condition: {TERMINATE}, {LIMITED}}}", "{id: b, output: approve}"
    (finding,) = found(tmp_path, *rules)
    assert finding.rule == "a"
    assert "a Terminate" in finding.message
    assert "Preempt" not in finding.message


@pytest.mark.parametrize(
    "matches",
    [
        ("{id: a, output: approve}",),
        (f"{{id: a, condition: event.EventType == 'Freeze', {LIMITED}}}",),
        (f"{{id: a, condition: event.EventStatus == 'Started', {LIMITED}}}",),
        (f"{{id: a, condition: '!affects_me', {LIMITED}}}",),
        (DELETED, f"{{id: b, {LIMITED}}}"),
    ],
)
def test_no_finding(matches: tuple[str, ...], tmp_path: Path) -> None:
    assert not found(tmp_path, *matches)


def test_what_another_policy_holds_takes_no_slot(tmp_path: Path) -> None:
    brake = f"name: brake\nrule:\n  match:\n    - {DELETED}\n"
    assert not found(tmp_path, f"{{id: a, {LIMITED}}}", other=brake)


def test_the_advice_of_the_page_mends_its_example(tmp_path: Path) -> None:
    example, advice = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert [one.rule for one in verified(tmp_path, HEAD + example) if one.code == "slot-not-freed"] == ["one-by-one"]
    assert not [one for one in verified(tmp_path, HEAD + advice + example) if one.code == "slot-not-freed"]


SCALE_SET = "{id: b, output: approve, limit: {at_most: 2, group: vm.scale_set}}"


def several(directory: Path, first: str, second: str) -> list[ProofFinding]:
    """Return what is found where one policy has the first match, and another the second."""
    other = f"name: other\nrule:\n  match:\n    - {second}\n"
    found = verified(directory, f"{HEAD}    - {first}\n", other)
    return [one for one in found if one.code == "several-groups"]


def test_limits_of_different_groups_are_found(tmp_path: Path) -> None:
    (finding,) = several(tmp_path, f"{{id: a, {LIMITED}}}", SCALE_SET)
    assert (finding.rule, finding.severity, finding.certain) == ("a", "warning", True)
    assert "limit different groups, the VM's own and vm.scale_set" in finding.message
    assert finding.case is not None
    assert finding.case["decision"]["output"] == "approve"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (f"{{id: a, {LIMITED}}}", "{id: b, output: approve, limit: 2}"),
        (SCALE_SET, "{id: b, output: approve, limit: {at_most: 1, group: vm.scale_set}}"),
        (f"{{id: a, condition: event.EventType == 'Freeze', {LIMITED}}}", SCALE_SET.replace(
            "{id: b,", "{id: b, condition: event.EventType == 'Reboot',")),
        (f"{{id: a, {LIMITED}}}", SCALE_SET.replace("approve", "hold")),
        (f"{{id: a, {LIMITED}}}", "{id: b, output: approve}"),
    ],
)  # fmt: skip
def test_limits_that_never_meet_are_not(first: str, second: str, tmp_path: Path) -> None:
    assert not several(tmp_path, first, second)
