# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the outcome of a class of events is what the engine decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from forewarn.analysis.report.decisions import Region, SpaceDecisions
from forewarn.policy.decision import ABSTAIN, APPROVE, APPROVERS, GROUPS, HOLD, PHASES, Decision, strictest_group
from forewarn.policy.hook_program import has_expressions


class JointDecision(NamedTuple):
    """The joint decision of all policies for a class, like the engine's Decision."""

    output: str
    policy: str | None
    rule: str | None
    how: str | None
    approver: str
    group: str
    prepare: tuple[Mapping[str, Any], ...]
    recover: tuple[Mapping[str, Any], ...]
    notify: tuple[Mapping[str, Any], ...]
    rules: tuple[tuple[str, str, str | None], ...]  # of every policy: its name, output and rule


def joint_decision(decided: SpaceDecisions, number: int) -> JointDecision:
    """Return the joint decision for a class."""
    bit = 1 << number
    return combine([next(one for one in regions if one.classes & bit) for regions in decided.policies])


def approved(decided: SpaceDecisions) -> int:
    """Return the classes that all policies together approve."""
    return sum(classes for regions, classes in decided.regions() if combine(regions).output == APPROVE)


def combine(regions: Sequence[Region]) -> JointDecision:
    """Combine the policies' regions of one class, by the rule of policy.engine."""
    acting = [one for one in regions if one.output != ABSTAIN]
    deciding = next((one for one in regions if one.output == HOLD), None)
    if deciding is None:
        deciding = next((one for one in regions if one.output == APPROVE), None)
    data = [one.data for one in acting]
    hooks = {kind: tuple(hook for entry in data for hook in entry.get(kind, ())) for kind in PHASES}
    groups = [entry.get("group", GROUPS[0]) for entry in data]
    return JointDecision(
        HOLD if deciding is None else deciding.output,
        None if deciding is None else deciding.policy,
        None if deciding is None else deciding.rule,
        None if deciding is None else deciding.how,
        min((entry.get("approver", APPROVERS[0]) for entry in data), key=APPROVERS.index, default=APPROVERS[0]),
        strictest_group(groups, prepares=bool(hooks["prepare"])),
        hooks["prepare"],
        hooks["recover"],
        hooks["notify"],
        tuple((one.policy, one.output, one.rule) for one in regions),
    )


def agrees(outcome: JointDecision, decision: Decision) -> bool:
    """Return whether a class's outcome is the engine's decision."""
    verdicts: Any = tuple((one.policy, one.output, one.rule) for one in decision.verdicts)
    return (
        outcome.rules == verdicts
        and (outcome.output, outcome.policy, outcome.rule) == (decision.output, decision.policy, decision.rule)
        and (outcome.approver, outcome.group) == (decision.approver, decision.group)
        and alike(outcome.prepare, decision.prepare)
        and alike(outcome.recover, decision.recover)
        and outcome.notify == decision.notify
    )


def alike(written: Sequence[Mapping[str, Any]], asked: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether the engine asks for the hooks that a policy has, with their values where they hold some.

    A hook whose values are not known is not recovered.
    """
    left = list(asked)
    for hook in written:
        if left and _same(hook, left[0]):
            left.pop(0)
        elif not _has_expressions(hook):
            return False
    return not left


def _same(written: Mapping[str, Any], asked: Mapping[str, Any]) -> bool:
    if not _has_expressions(written):
        return written == asked
    fixed = {name: value for name, value in written["options"].items() if not has_expressions(value)}
    others = {key: value for key, value in written.items() if key != "options"}
    return (
        fixed.items() <= asked.get("options", {}).items()
        and written["options"].keys() == asked["options"].keys()
        and others == {key: value for key, value in asked.items() if key not in ("options", "problem")}
    )


def _has_expressions(hook: Mapping[str, Any]) -> bool:
    return any(has_expressions(value) for value in hook.get("options", {}).values())
