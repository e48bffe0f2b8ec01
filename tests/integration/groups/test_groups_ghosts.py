# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every interleaving of VMs that wait for a slot behind others that are no longer there."""

from __future__ import annotations

from collections.abc import Collection

import pytest
from forewarn.runner.groups import semaphore
from forewarn.runner.groups.semaphore import TAKE, Semaphore, Want
from tools.models.ghost_model import GhostModel, Rules
from tools.models.group_model_vm import slot_names
from tools.models.model_checker import check

pytestmark = pytest.mark.in_turn(2)

THREE = ("a", "b", "c")


@pytest.mark.parametrize(
    ("events", "at_most", "ghost", "sleeper", "faults"),
    [
        (THREE, 1, "a", "", 0),
        (THREE, 1, "", "a", 1),
        (THREE, 1, "a", "b", 1),
        (("ab", "cd"), 2, "a", "", 0),
    ],
)
def test_whoever_is_left_is_served(
    events: tuple[str, ...], at_most: int, ghost: str, sleeper: str, faults: int
) -> None:
    found = check(GhostModel(events, at_most, ghost, sleeper, faults))
    print(f"{events}, ghost {ghost or 'none'}, sleeper {sleeper or 'none'}, faults {faults}: {found.states} states")
    assert found.broken is None, found.trace
    assert found.states > 1000


@pytest.mark.parametrize(
    ("events", "at_most", "ghost", "sleeper", "faults"),
    [
        (("a", "b"), 1, "a", "b", 1),
        pytest.param(("ab", "c"), 2, "a", "c", 0, marks=pytest.mark.full),
        pytest.param(("ab", "c"), 2, "ac", "", 0, marks=pytest.mark.full),
    ],
)
def test_nobody_loses_a_slot_that_it_needs(
    events: tuple[str, ...], at_most: int, ghost: str, sleeper: str, faults: int
) -> None:
    found = check(GhostModel(events, at_most, ghost, sleeper, faults, patient=False, person=True))
    print(f"{events}, ghost {ghost or 'none'}, sleeper {sleeper or 'none'}, faults {faults}: {found.states} states")
    assert found.broken is None, found.trace
    assert found.states > 1000


def frees_who_recovers(
    document: Semaphore, me: str, wants: list[Want], passed_over: Collection[str] = (), orphans: Collection[str] = ()
) -> Semaphore:
    for key in orphans:
        for name in slot_names(document, int(key)):
            document = semaphore.force_release(document, name, me, "", "", (key,))
    return semaphore.step(document, me, wants, passed_over, orphans)


def takes_its_turn_late(
    document: Semaphore, me: str, wants: list[Want], passed_over: Collection[str] = (), orphans: Collection[str] = ()
) -> Semaphore:
    """Take a slot for an event that waits, although others have taken what was free when its turn was."""
    late = [want._replace(at_most=9) if want.state == TAKE and want.key in document.waiting else want for want in wants]
    return semaphore.step(document, me, late, passed_over, orphans)


def frees_all_of_the_event(document: Semaphore, name: str, by: str, why: str, at: str) -> Semaphore:
    for key, slot in document.slots.items():
        for other in slot.names if name in slot.names else ():
            document = semaphore.force_release(document, other, by, why, at, (key,))
    return document


LOST = "has lost its slot, and is still disturbed"
TOO_MANY = "are disturbed by us, and only 1 may be"
STUCK = "nothing leads to the end from here"


@pytest.mark.parametrize(
    ("events", "at_most", "ghost", "sleeper", "rules", "promise"),
    [
        (("a", "b"), 1, "a", "", Rules(take=frees_who_recovers), LOST),
        (("a", "b"), 1, "a", "", Rules(in_time=False), LOST),
        (("a", "b"), 1, "a", "", Rules(in_time=False, gone_means_gone=False), LOST),
        (("a", "b"), 1, "a", "", Rules(person_looks=False), LOST),
        (("ab", "c"), 2, "a", "", Rules(freed=frees_all_of_the_event), LOST),
        (THREE, 1, "", "a", Rules(take=takes_its_turn_late), TOO_MANY),
        (THREE, 1, "", "a", Rules(passes_over=False), STUCK),
        (("a", "b"), 1, "a", "", Rules(frees_orphans=False), STUCK),
    ],
)
def test_a_broken_rule_is_found(
    events: tuple[str, ...], at_most: int, ghost: str, sleeper: str, rules: Rules, promise: str
) -> None:
    found = check(GhostModel(events, at_most, ghost, sleeper, rules=rules, person=ghost != ""))
    print(f"{found.states} states: {found.broken}", *found.trace, sep="\n  ")
    assert promise in str(found.broken)
