# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Any difference in what happens to an event has its kind, its effect and its words, alone and beside any other."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import pytest
from forewarn.analysis.diff import kinds
from forewarn.analysis.diff.behaviour import Behaviour
from forewarn.analysis.diff.behaviour import behaviour as product_behaviour
from forewarn.analysis.diff.behaviour_change import Description, describe, differences
from forewarn.analysis.diff.kinds import ALIKE, INCOMPARABLE, KINDS, LESS, MORE, joint_effect
from forewarn.analysis.policy_outcome import DOUBT, REFUSED, PolicyMatch, PolicyOutcome


class Does(NamedTuple):
    """What one policy does with an event."""

    data: Mapping[str, Any] = {}
    output: str = "approve"
    rule: str | None = "r"
    how: str = "rule"
    policy: str = "p"
    limit_group: str | None = None

    @property
    def outcome(self) -> PolicyOutcome[Any]:
        match = PolicyMatch[Any]({}, self.rule or "", self.data, 0, True, self.limit_group, None)
        return PolicyOutcome(self.policy, self.how, self.output, None if self.rule is None else match)


def behaviour(outcomes: Sequence[Does]) -> Behaviour:
    return product_behaviour([one.outcome for one in outcomes])


NOTHING = Does({}, "abstain", None, "no-rule")
DRAIN, SYNC, STOP = {"run": ["/bin/drain"]}, {"run": ["/bin/sync"]}, {"unit": "a.service", "action": "stop"}
FULL: Mapping[str, Any] = {
    "prepare": [DRAIN, SYNC],
    "prepare_within_seconds": 600.0,
    "recover": [{"run": ["/bin/undrain"]}],
    "notify": [{"http": "https://a.example"}],
    "approver": "any",
    "group": "independent",
    "limit": {"at_most": 2},
    "explanation": {"source": "'why'"},
}


def slow(hook: Mapping[str, Any]) -> dict[str, Any]:
    return {**hook, "timeout_seconds": 600.0}


# Each changes one thing about FULL: (kind, effect, change of the data, change of the rest).
CHANGES: dict[str, tuple[str, Callable[[dict[str, Any]], Any], dict[str, str]]] = {
    kinds.PREPARATION_LOST: (MORE, lambda data: data["prepare"].remove(SYNC), {}),
    kinds.PREPARATION_ADDED: (LESS, lambda data: data["prepare"].append(STOP), {}),
    kinds.HOOKS_CHANGED: (INCOMPARABLE, lambda data: data["prepare"].__setitem__(0, slow(DRAIN)), {}),
    kinds.PREPARATION_FAILURE: (MORE, lambda data: data.update(on_failure="approve"), {}),
    kinds.PREPARATION_TIME: (MORE, lambda data: data.update(prepare_within_seconds=900.0), {}),
    kinds.PREPARATION_ORDER: (ALIKE, lambda data: data.update(parallel=True), {}),
    kinds.RECOVERY_CHANGED: (ALIKE, lambda data: data.update(recover_when="started"), {}),
    kinds.NOTIFY_CHANGED: (ALIKE, lambda data: data.update(notify=[]), {}),
    kinds.APPROVER: (MORE, lambda data: data.update(approver="witness"), {}),
    kinds.GROUP: (LESS, lambda data: data.update(group="hold"), {}),
    kinds.LIMIT: (MORE, lambda data: data.update(limit={"at_most": 3}), {}),
    kinds.RULE: (ALIKE, lambda data: None, {"rule": "s"}),
    kinds.EXPLANATION: (ALIKE, lambda data: data.update(explanation={"source": "'because'"}), {}),
}


def full() -> dict[str, Any]:
    return {**FULL, "prepare": list(FULL["prepare"])}


def changed(*names: str, output: str = "approve") -> Behaviour:
    """Return the behaviour of FULL with some changes."""
    data, rest = full(), {}
    for name in names:
        _effect, change, more = CHANGES[name]
        change(data)
        rest.update(more)
    return behaviour([Does(data, output, **rest)])


def described(old: Does, new: Does) -> Description:
    return describe(behaviour([old]), behaviour([new]))


@pytest.mark.parametrize("kind", CHANGES)
def test_each_change_alone_has_its_kind_and_effect(kind: str) -> None:
    for one, other, turned in ((changed(), changed(kind), False), (changed(kind), changed(), True)):
        found = describe(one, other)
        opposite = {
            kinds.PREPARATION_LOST: kinds.PREPARATION_ADDED,
            kinds.PREPARATION_ADDED: kinds.PREPARATION_LOST,
        }
        effect = CHANGES[kind][0]
        assert found.kinds == (opposite.get(kind, kind) if turned else kind,)
        assert found.effect == ({MORE: LESS, LESS: MORE}.get(effect, effect) if turned else effect)
        before, after = found.what.split(" → ")
        assert before.split(": ", 1)[-1] != after


@pytest.mark.parametrize(("one", "other"), list(itertools.combinations(CHANGES, 2)))
def test_two_changes_together_have_both_kinds(one: str, other: str) -> None:
    found = describe(changed(), changed(one, other))
    # The declarations report an explanation: events do so only where nothing else differs.
    expected = {one, other} - {kinds.EXPLANATION} if found.kinds != (kinds.EXPLANATION,) else {kinds.EXPLANATION}
    assert set(found.kinds) == expected
    assert found.effect == joint_effect({CHANGES[name][0] for name in expected})
    single = {describe(changed(), changed(name)).what for name in (one, other)}
    assert found.what not in single or kinds.EXPLANATION in (one, other)
    assert found.kinds == tuple(name for name in KINDS if name in expected), "the most important one is first"


@pytest.mark.parametrize("kind", CHANGES)
@pytest.mark.parametrize(
    ("old", "new", "main", "effect"),
    [("hold", "approve", kinds.APPROVED, MORE), ("approve", "hold", kinds.HELD, LESS)],
)
def test_another_output_outweighs_any_other_change(kind: str, old: str, new: str, main: str, effect: str) -> None:
    found = describe(changed(output=old), changed(kind, output=new))
    assert (found.kinds, found.effect) == ((main,), effect)
    assert found.what.startswith(f"{old} → {new}")


@pytest.mark.parametrize("kind", CHANGES)
def test_change_of_a_held_event_has_its_kind(kind: str) -> None:
    found = describe(changed(output="hold"), changed(kind, output="hold"))
    # Less done before the event starts is more permissive, whoever starts it. Nobody approves it, before or after.
    does = (kinds.PREPARATION_LOST, kinds.PREPARATION_ADDED, kinds.HOOKS_CHANGED)
    assert (found.kinds, found.effect) == ((kind,), CHANGES[kind][0] if kind in does else ALIKE)


@pytest.mark.parametrize(
    ("data", "more"),
    [
        ({}, set()),
        ({"prepare": [DRAIN]}, {kinds.PREPARATION_LOST}),
        ({"recover": [DRAIN], "recover_when": "started"}, {kinds.RECOVERY_CHANGED}),
        ({"notify": [DRAIN]}, {kinds.NOTIFY_CHANGED}),
        ({"explanation": {"source": "'why'"}}, set()),
    ],
)
def test_a_rule_that_held_and_no_longer_applies(data: dict[str, Any], more: set[str]) -> None:
    held = Does(data, "hold", "rest")
    found = described(held, NOTHING)
    assert found.what.startswith("held by p/rest → no rule applies (another policy may approve)")
    assert (set(found.kinds), found.effect) == ({kinds.ABSTAINS, *more}, MORE)
    back = described(NOTHING, held)
    assert back.what.startswith("no rule applies → held by p/rest (no other policy can approve)")
    assert (back.kinds[0], back.effect) == (kinds.NO_LONGER_ABSTAINS, LESS)


@pytest.mark.parametrize(
    ("old", "words"),
    [
        (Does({}, "hold", None, DOUBT), "held for unknown EventType or EventStatus"),
        (Does({}, "hold", "r", "error"), "held by p/r (no value)"),
        (Does({}, "hold", "r", "explanation"), "held by p/r (explanation without value)"),
        (Does({}, "hold", "r", "limit"), "held by p/r (limit without a group)"),
    ],
)
def test_event_held_without_a_rule_has_words(old: Does, words: str) -> None:
    found = described(old, NOTHING)
    assert found == Description(f"{words} → no rule applies (another policy may approve)", MORE, (kinds.ABSTAINS,))


def test_an_approval_that_no_longer_applies_is_held() -> None:
    found = described(Does(), NOTHING)
    assert (found.what, found.kinds, found.effect) == ("approve → hold", (kinds.HELD,), LESS)


def test_a_hold_of_another_policy_remains() -> None:
    other = Does({}, "hold", "x", policy="q")
    old, new = behaviour([Does({}, "hold"), other]), behaviour([NOTHING, other])
    assert describe(old, new) == Description("hold, for another reason: p/r → q/x", ALIKE, (kinds.RULE,))


@pytest.mark.parametrize("new", [NOTHING, Does(full(), "hold")])
def test_a_value_that_only_one_version_refuses(new: Does) -> None:
    refused = Does({}, "hold", None, REFUSED)
    what = "hold, for another reason: a parameter that is refused → the rules"
    assert described(refused, new) == Description(what, ALIKE, (kinds.RULE,))
    assert described(refused, Does()).kinds == (kinds.APPROVED,)


@pytest.mark.parametrize(
    ("old", "new", "found", "effect"),
    [
        ([DRAIN], [STOP], (kinds.PREPARATION_LOST, kinds.PREPARATION_ADDED), INCOMPARABLE),
        ([{"run": ["/a", "--fast --now"]}], [{"run": ["/a", "--fast", "--now"]}], (kinds.HOOKS_CHANGED,), INCOMPARABLE),
        ([{"run": ["/a", "1"]}, {"run": ["/a", "2"]}], [{"run": ["/a", "2"]}], (kinds.PREPARATION_LOST,), MORE),
        ([{**STOP, "action": "start"}], [STOP], (kinds.PREPARATION_LOST, kinds.PREPARATION_ADDED), INCOMPARABLE),
        ([{"http": "https://a"}], [{"http": "https://a?b"}], (kinds.HOOKS_CHANGED,), INCOMPARABLE),
        ([DRAIN, STOP], [STOP, DRAIN], (kinds.PREPARATION_ORDER,), ALIKE),
        ([DRAIN, DRAIN], [DRAIN], (kinds.PREPARATION_ORDER,), ALIKE),
        ([DRAIN], [], (kinds.PREPARATION_LOST,), MORE),
    ],
)
def test_prepare_hooks(old: list[Any], new: list[Any], found: tuple[str, ...], effect: str) -> None:
    change = described(Does({"prepare": old}), Does({"prepare": new}))
    assert (change.kinds, change.effect) == (found, effect)


def test_hooks_of_two_policies_differ_from_one() -> None:
    one = behaviour([Does({"prepare": [DRAIN, SYNC], "parallel": True})])
    two = behaviour([Does({"prepare": [DRAIN]}), Does({"prepare": [SYNC], "parallel": True}, policy="q", rule="s")])
    assert describe(one, two).kinds == (kinds.PREPARATION_ORDER,)
    before, after = describe(one, two).what.removeprefix("prepare: ").split(" → ")
    assert before != after


def test_hook_required_by_one_policy_is_required() -> None:
    lenient, strict = Does({"prepare": [DRAIN], "on_failure": "approve"}), Does({"prepare": [DRAIN]}, policy="q")
    old, new = behaviour([lenient, strict]), behaviour([lenient, strict._replace(data={})])
    assert describe(old, new).effect == MORE
    assert describe(old, new).kinds == (kinds.PREPARATION_FAILURE,)


@pytest.mark.parametrize(("old", "new"), [(None, 900.0), (900.0, None), (600.0, 900.0)])
def test_preparation_that_begins_later_is_less_permissive(old: float | None, new: float | None) -> None:
    data = [{"prepare": [DRAIN], **({} if one is None else {"prepare_within_seconds": one})} for one in (old, new)]
    found = described(Does(data[0]), Does(data[1]))
    earlier = new is None or (old is not None and new > old)
    assert (found.kinds, found.effect) == ((kinds.PREPARATION_TIME,), MORE if earlier else LESS)


@pytest.mark.parametrize(
    ("old", "new", "prepares", "effect"),
    [
        ("hold", "ready", True, MORE),
        ("ready", "independent", True, MORE),
        ("hold", "independent", True, MORE),
        ("hold", "ready", False, LESS),  # where nothing is prepared, hold approves at once
        ("ready", "independent", False, MORE),
        ("hold", "independent", False, ALIKE),
    ],
)
def test_a_group_that_waits_longer_is_less_permissive(old: str, new: str, prepares: bool, effect: str) -> None:
    data = {"prepare": [DRAIN]} if prepares else {}
    one, other = Does({**data, "group": old}), Does({**data, "group": new})
    assert described(one, other) == Description(f"group: {old} → {new}", effect, (kinds.GROUP,))
    assert described(other, one).effect == {MORE: LESS, LESS: MORE}.get(effect, effect)
    assert described(one._replace(output="hold"), other._replace(output="hold")).effect == ALIKE


def test_ready_counts_beside_a_policy_that_prepares_nothing() -> None:
    plain, ready = Does({}, policy="q"), Does({"group": "ready"})
    assert behaviour([plain, ready]).group == "ready"
    assert behaviour([plain, Does({"group": "ready", "prepare": [DRAIN]})]).group == "hold"


ROLE = {"source": "vm.zone"}


@pytest.mark.parametrize(
    ("old", "new", "effect", "words"),
    [
        (None, {"at_most": 1}, LESS, "none → 1"),
        ({"at_most": 1}, {"at_most": 2}, MORE, "1 → 2"),
        ({"percent": 10}, {"percent": 25}, MORE, "10% → 25%"),
        ({"percent": 25}, {"at_most": 1}, INCOMPARABLE, "25% → 1"),
        ({"at_most": 1}, {"at_most": 1, "group": ROLE}, INCOMPARABLE, "1 → 1 of vm.zone"),
        (
            {"at_most": 2, "group": ROLE},
            {"at_most": 1, "group": ROLE},
            LESS,
            "2 of vm.zone → 1 of vm.zone",
        ),
    ],
)
def test_a_higher_limit_is_more_permissive(
    old: dict[str, Any] | None, new: dict[str, Any], effect: str, words: str
) -> None:
    one, other = (Does({} if limit is None else {"limit": limit}, limit_group="role") for limit in (old, new))
    assert described(one, other) == Description(f"limit: {words}", effect, (kinds.LIMIT,))
    assert described(other, one).effect == {MORE: LESS, LESS: MORE}.get(effect, effect)
    assert described(one._replace(output="hold"), other._replace(output="hold")).effect == ALIKE


def test_groups_are_alike_if_their_names_are() -> None:
    written = [{"limit": {"at_most": 1, "group": {"source": source}}} for source in ("vm.name", " vm.name ")]
    assert behaviour([Does(written[0], limit_group="a")]) == behaviour([Does(written[1], limit_group="a")])
    found = described(Does(written[0], limit_group="a"), Does(written[0], limit_group="b"))
    assert (found.kinds, found.effect) == ((kinds.LIMIT,), INCOMPARABLE)


def test_the_limits_of_policies_add_up() -> None:
    tight, loose = Does({"limit": {"at_most": 1}}), Does({"limit": {"at_most": 9}}, policy="q")
    both = behaviour([tight, loose])
    assert describe(both, behaviour([tight, loose._replace(data={})])).effect == ALIKE
    assert describe(both, behaviour([tight._replace(data={}), loose])).effect == MORE
    assert behaviour([tight, tight._replace(policy="q")]).limits == behaviour([tight]).limits


def test_settings_without_hooks_count_too() -> None:
    for setting in (
        {"on_failure": "approve"},
        {"parallel": True},
        {"prepare_within_seconds": 1.0},
        {"group": "independent"},
    ):
        assert behaviour([Does(setting)]) != behaviour([Does()])
        assert described(Does(), Does(setting)).effect == ALIKE


def test_equal_behaviours_have_no_differences() -> None:
    every = {name: changed(name) for name in CHANGES} | {"": changed(), "hold": changed(output="hold")}
    every |= {"none": behaviour([NOTHING]), "doubt": behaviour([Does({}, "hold", None, DOUBT)])}
    for (one, old), (other, new) in itertools.product(every.items(), repeat=2):
        assert (old == new) == (one == other)
        assert bool(differences(old, new)) == (one != other)
