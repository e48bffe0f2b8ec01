# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``policy verify`` notes rules and parts of conditions that change nothing, and no others."""

from __future__ import annotations

from pathlib import Path

import pytest
from forewarn.analysis.verify.finding import CODES
from tools.fixtures.policy_files import HEAD, SHIPPED, verified

REBOOT, FREEZE = "event.EventType == 'Reboot'", "event.EventType == 'Freeze'"
REST = ("rest", None, "output: hold")


def rule(name: str, condition: str | None, does: str = "output: approve", indent: int = 4) -> str:
    given = f'condition: "{condition}", ' if condition else ""
    return " " * indent + f"- {{id: {name}, {given}{does}}}\n"


def group(name: str, condition: str | None, *inner: tuple[str, str | None, str]) -> str:
    given = f'      condition: "{condition}"\n' if condition else ""
    rules = "".join(rule(*one, indent=10) for one in inner)
    return f"    - id: {name}\n{given}      rule:\n        match:\n{rules}"


def notes(directory: Path, *rules: tuple[str, str | None, str] | str) -> list[str]:
    """Return the messages of the notes about a policy of rules."""
    text = HEAD + "".join(one if isinstance(one, str) else rule(*one) for one in rules)
    found = [one for one in verified(directory, text) if one.code in ("redundant-rule", "simpler-condition")]
    assert all(one.severity == "note" and one.code in CODES and one.certain for one in found)
    return [one.message for one in found]


def removable(*names: str) -> list[str]:
    """Return the beginnings of messages that rules can be removed."""
    return [f"removing rule {name} changes nothing but the rule that decisions name: " for name in names]


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_the_shipped_policies_get_none(path: Path, tmp_path: Path) -> None:
    codes = {one.code for one in verified(tmp_path, path.read_text())}
    assert not codes & {"redundant-rule", "simpler-condition"}


def test_a_rule_that_a_later_one_repeats(tmp_path: Path) -> None:
    found = notes(
        tmp_path, ("a", REBOOT, "output: approve"), ("b", "event.EventType != 'Freeze'", "output: approve"), REST
    )
    assert found == [removable("a")[0] + "rule b does the same"]


def test_a_rule_that_two_later_ones_repeat(tmp_path: Path) -> None:
    found = notes(
        tmp_path,
        ("a", f"size(event.Resources) > 1 && ({REBOOT} || {FREEZE})", "output: approve"),
        ("b", REBOOT, "output: approve"),
        ("c", FREEZE, "output: approve"),
        REST,
    )
    assert found == [removable("a")[0] + "rules b and c do the same"]


def test_mutually_redundant_rules_name_one(tmp_path: Path) -> None:
    found = notes(
        tmp_path,
        ("a", "event.DurationInSeconds in [1, 2]", "output: approve"),
        ("b", "event.DurationInSeconds in [1, 2, 3, 4]", "output: approve"),
        ("c", "event.DurationInSeconds in [3, 4, 5]", "output: approve"),
        REST,
    )
    assert found == [removable("a")[0] + "rule b does the same"]


@pytest.mark.parametrize(
    "other",
    [
        "output: hold",
        "output: approve, approver: any",
        "output: approve, prepare: [{run: [/bin/drain]}]",
        "output: approve, notify: [{run: [/bin/tell]}]",
        "output: approve, group: independent, prepare: [{run: [/bin/drain]}], on_failure: approve",
    ],
)
def test_a_rule_that_does_something_else_is_needed(other: str, tmp_path: Path) -> None:
    assert not notes(tmp_path, ("a", REBOOT, other), ("b", "event.EventType != 'Freeze'", "output: approve"), REST)
    (found,) = notes(tmp_path, ("a", REBOOT, other), ("b", f"{REBOOT} || {FREEZE}", other), REST)
    assert found == removable("a")[0] + "rule b does the same"


def test_rule_with_its_own_reason_is_needed(tmp_path: Path) -> None:
    why, other = "output: approve, explanation: \"'why'\"", "output: approve, explanation: \"'other'\""
    every = "event.EventType != 'Freeze'"
    assert not notes(tmp_path, ("a", REBOOT, why), ("b", every, "output: approve"), REST)
    assert not notes(tmp_path, ("a", REBOOT, why), ("b", every, other), REST)
    assert notes(tmp_path, ("a", REBOOT, why), ("b", every, why), REST) == [removable("a")[0] + "rule b does the same"]
    (found,) = notes(tmp_path, ("a", REBOOT, "output: approve"), ("b", every, other), REST)
    assert "nothing but the rule and the reason that decisions name" in found


def test_hold_repeated_by_the_default_is_needed(tmp_path: Path) -> None:
    assert not notes(tmp_path, ("a", REBOOT, "output: hold"), ("b", FREEZE, "output: approve"), REST)
    held = ("c", "event.EventType in ['Reboot', 'Preempt']", "output: hold")
    assert notes(tmp_path, ("a", REBOOT, "output: hold"), ("b", FREEZE, "output: approve"), held, REST) == [
        removable("a")[0] + "rule c does the same"
    ]


def test_hold_before_no_applicable_rule_is_needed(tmp_path: Path) -> None:
    assert not notes(tmp_path, ("a", FREEZE, "output: approve"), ("b", REBOOT, "output: hold"))
    assert not notes(tmp_path, ("a", FREEZE, "output: approve"), REST)


def test_an_error_is_not_a_hold(tmp_path: Path) -> None:
    role = "vm.tags['role'] == 'web'"
    broad = ("b", "event.EventType in ['Reboot', 'Freeze']", "output: approve")
    assert not notes(tmp_path, ("a", f"{REBOOT} && {role}", "output: approve"), broad, REST)
    assert notes(tmp_path, ("a", f"{REBOOT} && {role}", "output: approve"), ("b", role, "output: approve"), REST) == [
        removable("a")[0] + "rule b does the same"
    ]


def test_no_rule_relies_on_one_that_never_decides(tmp_path: Path) -> None:
    assert not notes(tmp_path, ("a", REBOOT, "output: approve"), ("b", REBOOT, "output: approve"), REST)


def test_a_group(tmp_path: Path) -> None:
    inner = (("x", "leader", "output: approve"), ("y", None, "output: hold"))
    same = (("x", f"{REBOOT} && leader", "output: approve"), ("y", REBOOT, "output: hold"))
    several = group("g", f"{REBOOT} && size(event.Resources) > 1", *inner)
    assert notes(tmp_path, several, *same, REST) == [removable("g")[0] + "rules x and y do the same"]
    assert not notes(tmp_path, group("g", REBOOT, *inner), same[1], REST)
    assert not notes(tmp_path, group("g", REBOOT, inner[0]), same[0], REST)  # then no rule applies to the others


def test_rules_of_a_group_and_what_follows_it(tmp_path: Path) -> None:
    inner = (("x", REBOOT, "output: approve"), ("y", "event.EventType == 'Preempt'", "output: hold"))
    assert notes(tmp_path, group("g", None, *inner), ("b", "event.EventType != 'Freeze'", "output: approve"), REST) == [
        removable("g.x")[0] + "rule b does the same"
    ]
    # After a group with a condition, no rule is tried.
    assert not notes(tmp_path, group("g", "leader", *inner), ("b", "event.EventType != 'Freeze'", "output: approve"))


def changes_nothing(name: str, **why: str) -> list[str]:
    """Return the message that parts of a condition change nothing."""
    parts = (f"`{part}` changes nothing: {reason}" for part, reason in why.items())
    return [f"in the condition of rule {name}, {'; '.join(parts)}"]


ALREADY = "the rest says so already"


@pytest.mark.parametrize(
    ("condition", "part"),
    [
        ("event.DurationInSeconds >= 0 && event.DurationInSeconds > 4", "event.DurationInSeconds >= 0"),
        ("event.DurationInSeconds >= -1 && event.DurationInSeconds < 4", "event.DurationInSeconds >= -1"),
        ("event.DurationInSeconds < 4 || event.DurationInSeconds < 9", "event.DurationInSeconds < 4"),
        ("affects_me && leader", "affects_me"),
        (f"leader && (leader || {REBOOT})", f"leader || {REBOOT}"),
        (f"leader && ({FREEZE} || {REBOOT} && {FREEZE})", f"{REBOOT} && {FREEZE}"),
        (f"{REBOOT} && leader && {REBOOT}", REBOOT),
        ("'a' in vm.tags && has(vm.tags.a)", "has(vm.tags.a)"),
        ("true && leader", "true"),
    ],
)
def test_a_part_that_changes_nothing(condition: str, part: str, tmp_path: Path) -> None:
    assert notes(tmp_path, ("a", condition, "output: approve"), REST) == changes_nothing("a", **{part: ALREADY})


@pytest.mark.parametrize(
    "condition",
    [
        "has(event.EventSource) && event.EventSource == 'User'",
        "!has(event.EventSource) || event.EventSource == 'User'",
        "has(vm.tags.a) && vm.tags.a == 'b'",
        "event.DurationInSeconds >= 0 && event.DurationInSeconds < 9",
        f"{REBOOT} || {FREEZE} && leader",
        "event.DurationInSeconds * event.DurationInSeconds >= 0 && leader",  # not understood
    ],
)
def test_a_part_that_matters(condition: str, tmp_path: Path) -> None:
    assert not notes(tmp_path, ("a", condition, "output: approve"), REST)


def test_a_part_that_rules_before_it_make_needless(tmp_path: Path) -> None:
    zero = ("zero", "event.DurationInSeconds < 0", "output: hold")
    brief = ("brief", "event.DurationInSeconds >= 0 && event.DurationInSeconds < 9", "output: approve")
    part = "event.DurationInSeconds >= 0"
    assert notes(tmp_path, zero, brief, REST) == changes_nothing("brief", **{part: "rule zero takes those"})
    outer = ("inner", f"{REBOOT} && leader", "output: approve"), ("other", None, "output: hold")
    assert notes(tmp_path, group("g", REBOOT, *outer), REST) == changes_nothing(
        "g.inner", **{REBOOT: "the rules and conditions before it say so already"}
    )


def test_a_group_keeps_its_condition(tmp_path: Path) -> None:
    inner = ("x", REBOOT, "output: approve")
    whole = notes(tmp_path, ("a", "leader || true", "output: approve"))
    assert whole == changes_nothing("a", leader=ALREADY)
    # With the condition true alone, it would be a group without condition, and b would be tried after it.
    assert not notes(tmp_path, group("g", "leader || true", inner), ("b", FREEZE, "output: approve"))


def test_all_notes_are_true_together(tmp_path: Path) -> None:
    """What makes a part needless is not itself removed."""
    found = notes(
        tmp_path,
        ("a", FREEZE, "output: hold"),
        ("b", "event.EventType != 'Freeze' && leader", "output: approve"),
        ("c", "event.EventType in ['Freeze', 'Preempt']", "output: hold"),
        REST,
    )
    assert len(found) == 1
    assert "rule a" in found[0]


def test_the_place_is_that_of_the_condition(tmp_path: Path) -> None:
    text = HEAD + f"    - id: a\n      condition: leader && affects_me\n      output: approve\n{rule(*REST)}"
    (found,) = [one for one in verified(tmp_path, text) if one.code == "simpler-condition"]
    assert (found.line, found.column, found.rule) == (5, 18, "a")


def test_a_note_can_be_suppressed(tmp_path: Path) -> None:
    text = HEAD + rule("a", "leader && affects_me") + rule(*REST)
    text += "suppress:\n  - {code: simpler-condition, rule: a, reason: it reads better}\n"
    (found,) = [one for one in verified(tmp_path, text) if one.code == "simpler-condition"]
    assert found.suppressed == "it reads better"
