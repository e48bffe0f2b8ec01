# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How two behaviours differ: every difference has its kind, its effect on approvals (see kinds) and its words."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import NamedTuple, Union

from ...policy.decision import APPROVE, APPROVERS, GROUPS, HOLD
from ..limits import at_least_as_strict
from ..policy_outcome import REFUSED
from . import kinds
from .behaviour import Behaviour, Hook, PrepareTerms, Reason, RecoverTerms, list_text
from .kinds import ALIKE, INCOMPARABLE, LESS, MORE
from .meaning import arrow

_HOLD, _READY, _INDEPENDENT = GROUPS
_Terms = Union[PrepareTerms, RecoverTerms]


class Aspect(NamedTuple):
    """One difference: its kind, its effect, and its words, which are empty where another's say it too."""

    kind: str
    effect: str
    text: str


class Description(NamedTuple):
    """All differences of two behaviours: words, joint effect, and kinds with the most important one first."""

    what: str
    effect: str
    kinds: tuple[str, ...]


def describe(old: Behaviour, new: Behaviour) -> Description:
    """Return what differs between two unequal behaviours."""
    found = differences(old, new)
    effect = kinds.joint_effect(one.effect for one in found)
    order = list(kinds.KINDS)
    names = sorted({one.kind for one in found}, key=order.index)
    return Description("; ".join(one.text for one in found if one.text), effect, tuple(names))


def differences(old: Behaviour, new: Behaviour) -> list[Aspect]:
    """Return each difference; none only if the two are equal."""
    if old == new:
        return []
    if old.output == new.output and REFUSED in (old.reason.how, new.reason.how):
        return [_reason(old, new)]  # one version does not run, so what else it would do matters little
    hooks = _preparing(old, new)
    if old.recover != new.recover:
        hooks.append(Aspect(kinds.RECOVERY_CHANGED, ALIKE, _arrow("recover", old.recover, new.recover)))
    if old.notify != new.notify:
        text = f"notify: {list_text(old.notify)} → {list_text(new.notify)}"
        hooks.append(Aspect(kinds.NOTIFY_CHANGED, ALIKE, text))
    if old.output != new.output:  # outweighs all else
        kind, effect = (kinds.APPROVED, MORE) if new.output == APPROVE else (kinds.HELD, LESS)
        texts = [f"{old.output} → {new.output}", *(one.text for one in hooks if one.text)]
        return [Aspect(kind, effect, "; ".join(texts))]
    who = [
        *_ranked(kinds.APPROVER, APPROVERS, old.approver, new.approver, counts=old.output == APPROVE),
        *_group(old, new),
        *_limits(old, new),
    ]
    found = [*hooks, *who]
    if new.abstains and not old.abstains:
        text = f"held {_by(old.reason)} → no rule applies (another policy may approve)"
        return [Aspect(kinds.ABSTAINS, MORE, text), *found]
    if old.abstains and not new.abstains:
        text = f"no rule applies → held {_by(new.reason)} (no other policy can approve)"
        return [Aspect(kinds.NO_LONGER_ABSTAINS, LESS, text), *found]
    if old.reason != new.reason:
        text = f"decided by {old.reason.text} → {new.reason.text}"
        return [*found, Aspect(kinds.RULE, ALIKE, text) if found else _reason(old, new)]
    if old.explanation != new.explanation:
        text = f"explanation: {arrow(old.explanation, new.explanation)}"
        return found or [Aspect(kinds.EXPLANATION, ALIKE, text)]  # declarations report it, with or without others
    return found


def _preparing(old: Behaviour, new: Behaviour) -> list[Aspect]:
    """Return what differs in preparation. Only the first has words, for all of it."""
    if old.preparing == new.preparing:
        return []
    found = [*_hooks(old, new), *_failure(old, new), *_time(old, new)]
    if not found or _order(old, new) != _order(new, old):
        found.append((kinds.PREPARATION_ORDER, ALIKE))
    words = _arrow("prepare", old.preparing, new.preparing)
    return [Aspect(kind, effect, "" if place else words) for place, (kind, effect) in enumerate(found)]


def _hooks(old: Behaviour, new: Behaviour) -> list[tuple[str, str]]:
    """Return the kinds and effects of prepare hooks that only one of the two has.

    Hooks of the same action are one hook that has changed.
    """
    before = [one.action for one in dict.fromkeys(old.hooks) if one not in new.hooks]
    after = [one.action for one in dict.fromkeys(new.hooks) if one not in old.hooks]
    lost, added = Counter(before) - Counter(after), Counter(after) - Counter(before)
    changed = Counter(before) & Counter(after)
    possible = (
        (kinds.PREPARATION_LOST, MORE, lost),
        (kinds.PREPARATION_ADDED, LESS, added),
        (kinds.HOOKS_CHANGED, INCOMPARABLE, changed),
    )
    return [(kind, effect) for kind, effect, actions in possible if actions]


def _failure(old: Behaviour, new: Behaviour) -> list[tuple[str, str]]:
    """Return the difference in what may fail, of the hooks that both have."""
    both = set(old.hooks) & set(new.hooks)
    before, after = (_must_succeed(one) & both for one in (old, new))
    if before == after:
        settings = [[entry.on_failure for entry in one.preparing] for one in (old, new)]
        alike = len(settings[0]) != len(settings[1]) or settings[0] == settings[1]
        return [] if alike else [(kinds.PREPARATION_FAILURE, ALIKE)]
    if old.output != APPROVE:  # never approved, with or without it
        return [(kinds.PREPARATION_FAILURE, ALIKE)]
    effect = MORE if before > after else LESS if before < after else INCOMPARABLE
    return [(kinds.PREPARATION_FAILURE, effect)]


def _must_succeed(one: Behaviour) -> set[Hook]:
    return {hook for entry in one.preparing if entry.on_failure == HOLD for hook in entry.hooks}


def _time(old: Behaviour, new: Behaviour) -> list[tuple[str, str]]:
    """Return the difference in when preparation begins, where both prepare: an approval comes after it."""
    times = [[entry.within for entry in one.preparing] for one in (old, new)]
    begins = [min((math.inf if one is None else one for one in some), default=math.inf) for some in times]
    if not old.hooks or not new.hooks or old.output != APPROVE or begins[0] == begins[1]:
        alike = len(times[0]) != len(times[1]) or times[0] == times[1]
        return [] if alike else [(kinds.PREPARATION_TIME, ALIKE)]
    return [(kinds.PREPARATION_TIME, MORE if begins[1] > begins[0] else LESS)]


def _order(one: Behaviour, other: Behaviour) -> tuple[Hashable, ...]:
    """Return the order of the hooks that another has too, and which run in parallel."""
    shared = tuple(hook for hook in dict.fromkeys(one.hooks) if hook in other.hooks)
    alike = len(one.preparing) == len(other.preparing)
    return shared, tuple(entry.parallel for entry in one.preparing) if alike else ()


def _ranked(kind: str, ranks: Sequence[str], old: str, new: str, *, counts: bool) -> list[Aspect]:
    """Return a difference in a setting of which the later of ``ranks`` are less careful."""
    if old == new:
        return []
    effect = MORE if ranks.index(new) > ranks.index(old) else LESS
    return [Aspect(kind, effect if counts else ALIKE, f"{kind}: {old} → {new}")]


def _group(old: Behaviour, new: Behaviour) -> list[Aspect]:
    """Return the difference in what happens to an event of several VMs."""
    if old.group == new.group:
        return []
    counts = old.output == APPROVE
    before, after = old.group, new.group
    if _READY in (before, after):  # hold approves at once where nothing is prepared
        before, after = (_INDEPENDENT if one.group == _HOLD and not one.hooks else one.group for one in (old, new))
    else:
        counts = counts and bool(old.hooks and new.hooks)
    effect = MORE if GROUPS.index(after) > GROUPS.index(before) else LESS if before != after else ALIKE
    return [Aspect(kinds.GROUP, effect if counts else ALIKE, f"{kinds.GROUP}: {old.group} → {new.group}")]


def _limits(old: Behaviour, new: Behaviour) -> list[Aspect]:
    """Return the difference in how many VMs may be disturbed at once."""
    if old.limits == new.limits:
        return []
    words = [" + ".join(one.text for one in side.limits) or "none" for side in (old, new)]
    stricter = at_least_as_strict(new.limits, old.limits)
    laxer = at_least_as_strict(old.limits, new.limits)
    effect = ALIKE if stricter and laxer else LESS if stricter else MORE if laxer else INCOMPARABLE
    text = f"{kinds.LIMIT}: {' → '.join(words)}"
    return [Aspect(kinds.LIMIT, effect if old.output == APPROVE else ALIKE, text)]


def _reason(old: Behaviour, new: Behaviour) -> Aspect:
    """Return the difference between two behaviours that differ only in what decided, or of which one is refused."""
    refused = REFUSED in (old.reason.how, new.reason.how)  # which rule decides instead matters little
    texts = ["the rules" if refused and one.reason.how != REFUSED else one.reason.text for one in (old, new)]
    return Aspect(kinds.RULE, ALIKE, f"{old.output}, for another reason: {' → '.join(texts)}")


def _by(reason: Reason) -> str:
    return f"for {reason.text}" if reason.policy is None else f"by {reason.text}"


def _arrow(phase: str, old: Sequence[_Terms], new: Sequence[_Terms]) -> str:
    before, after = (" + ".join(one.text for one in side) or "nothing" for side in (old, new))
    return f"{phase}: {before} → {after}"
