# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kinds of change that ``policy diff`` tells apart, and what a change means for approvals."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

# What a change means for approvals; as a verdict, what all changes together mean.
MORE, LESS, INCOMPARABLE, ALIKE, NO_CHANGE = "more-permissive", "less-permissive", "incomparable", "alike", "no-change"
UNPROVEN = "unproven"  # there may be changes that were not found
FEWER = "fewer-promises"  # what verify proves, and not what is decided

# Kinds of change in what happens to an event.
APPROVED, HELD, ABSTAINS, NO_LONGER_ABSTAINS = "approved", "held", "abstains", "no-longer-abstains"
PREPARATION_LOST, PREPARATION_ADDED = "preparation-lost", "preparation-added"
HOOKS_CHANGED, PREPARATION_FAILURE = "hooks-changed", "preparation-failure"
PREPARATION_TIME, PREPARATION_ORDER = "preparation-time", "preparation-order"
RECOVERY_CHANGED, NOTIFY_CHANGED = "recovery-changed", "notify-changed"
APPROVER, GROUP, LIMIT, RULE, EXPLANATION = "approver", "group", "limit", "rule", "explanation"
# Kinds of change in what policies declare.
INVARIANT_DELETED, INVARIANT_CHANGED, INVARIANT_ADDED = "invariant-deleted", "invariant-changed", "invariant-added"
SUPPRESSION_ADDED, SUPPRESSION_DELETED = "suppression-added", "suppression-deleted"
SUPPRESSION_CHANGED = "suppression-changed"
PARAMETER_RANGE, PARAMETER_DEFAULT, PARAMETER_TYPE = "parameter-range", "parameter-default", "parameter-type"
PARAMETER_ADDED, PARAMETER_DELETED = "parameter-added", "parameter-deleted"
EXTRA_VALUES, API_VERSION = "extra-values", "api-version"
POLICY_ADDED, POLICY_DELETED = "policy-added", "policy-deleted"


class Kind(NamedTuple):
    """A kind of change: its name, its meaning in a sentence, and the effects that it can have."""

    name: str
    means: str
    effects: tuple[str, ...]


KINDS = {
    name: Kind(name, means, tuple(effects))
    for name, means, *effects in (
        (APPROVED, "An event is approved that was held.", MORE),
        (HELD, "An event is held that was approved.", LESS),
        (ABSTAINS, "No rule applies to an event that a rule held. Another policy may approve it.", MORE),
        (NO_LONGER_ABSTAINS, "A rule holds an event that no rule applied to. No other policy can approve it.", LESS),
        (PREPARATION_LOST, "A prepare hook no longer runs.", MORE),
        (PREPARATION_ADDED, "A further prepare hook runs.", LESS),
        (HOOKS_CHANGED, "A prepare hook has other arguments, another credential, timeout or retry.", INCOMPARABLE),
        (PREPARATION_FAILURE, "`on_failure` differs: what happens if a prepare hook fails.", MORE, LESS, ALIKE),
        (PREPARATION_TIME, "`prepare_within` differs: when preparation begins.", MORE, LESS, ALIKE),
        (PREPARATION_ORDER, "Prepare hooks run in another order, or `parallel` differs.", ALIKE),
        (RECOVERY_CHANGED, "Other recover hooks run, or `recover_when` differs.", ALIKE),
        (NOTIFY_CHANGED, "Other notify hooks run.", ALIKE),
        (APPROVER, "Another VM sends the approval.", MORE, LESS, ALIKE),
        (GROUP, "`group` differs, for an event of several VMs.", MORE, LESS, ALIKE),
        (
            LIMIT,
            "`limit` differs: how many VMs, and of which group, may be disturbed at once.",
            *(MORE, LESS, INCOMPARABLE, ALIKE),
        ),
        (RULE, "Another rule decides, or the same one for another reason.", ALIKE),
        (EXPLANATION, "A rule explains its decision in other words.", ALIKE),
        (INVARIANT_DELETED, "An invariant is gone.", FEWER),
        (INVARIANT_CHANGED, "An invariant has another expression or name; it may promise less.", FEWER, ALIKE),
        (INVARIANT_ADDED, "A policy has a further invariant.", ALIKE),
        (SUPPRESSION_ADDED, "A further finding of `policy verify` is suppressed.", FEWER),
        (SUPPRESSION_DELETED, "A finding is no longer suppressed.", ALIKE),
        (SUPPRESSION_CHANGED, "A finding is suppressed for another reason.", ALIKE),
        (PARAMETER_RANGE, "`min`, `max` or `enum` allow other values of a parameter.", ALIKE),
        (PARAMETER_DEFAULT, "A parameter has another default, or one version has none.", ALIKE),
        (PARAMETER_TYPE, "A parameter has another type.", ALIKE),
        (PARAMETER_ADDED, "A policy has a further parameter.", ALIKE),
        (PARAMETER_DELETED, "A parameter is gone. Hosts that set it are refused if no policy declares it.", ALIKE),
        (EXTRA_VALUES, "`extra_values` differ: types and statuses that are known.", ALIKE),
        (API_VERSION, "The policies see events of another api-version.", ALIKE),
        (POLICY_ADDED, "There is a further policy.", ALIKE),
        (POLICY_DELETED, "A policy is gone.", ALIKE),
    )
}

# Beside kinds, the words of --fail-on: each with the effects at which it fails.
FAIL_ON = {
    MORE: (MORE, INCOMPARABLE),
    LESS: (LESS, INCOMPARABLE),
    FEWER: (FEWER,),
    "any": (MORE, LESS, INCOMPARABLE, FEWER, ALIKE),
    "none": (),
}


def joint_effect(effects: Iterable[str]) -> str:
    """Return the effect of several changes together; NO_CHANGE without any."""
    found = set(effects)
    if not found:
        return NO_CHANGE
    of_events = found & {MORE, LESS, INCOMPARABLE}
    if of_events:
        return of_events.pop() if len(of_events) == 1 else INCOMPARABLE
    return FEWER if FEWER in found else ALIKE


def fails(wanted: Collection[str], effect: str, kinds: Iterable[str]) -> bool:
    """Return whether a change fails the command. ``wanted``: keys of FAIL_ON and KINDS."""
    return any(effect in FAIL_ON.get(word, ()) or word in kinds for word in wanted)
