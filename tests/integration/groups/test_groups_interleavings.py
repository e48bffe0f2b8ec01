# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every interleaving of VMs that share barriers and a semaphore, with faults, to the end of the reachable states."""

from __future__ import annotations

from typing import Any

import pytest
from forewarn.runner.groups import barrier, semaphore
from forewarn.runner.groups.barrier import Barrier, Closure, Statement
from forewarn.runner.groups.semaphore import RECOVER, RELEASE, Semaphore, Want
from tools.models.group_model import GroupModel
from tools.models.group_model_vm import Group, Rules
from tools.models.model_checker import check

pytestmark = pytest.mark.in_turn(2)

TWO = ("ab", "c")  # an event that a and b have to be ready for, and one of c alone


def named(group: Group) -> str:
    late = ", late lists" if group.late else ""
    return f"{' and '.join(group.events)}, limit {group.at_most}, nothing to prepare {group.easy or 'nobody'}{late}"


def large(*values: object) -> Any:
    """Return parameters with too many states for size small; there the broken rules below are found all the same."""
    return pytest.param(*values, marks=pytest.mark.full)


@pytest.mark.parametrize(
    ("group", "faults", "silent"),
    [
        large(Group(TWO, 2), 1, ""),
        large(Group(TWO, 2), 1, "b"),
        large(Group(TWO, 2, easy="a"), 0, ""),
        large(Group(TWO, 2, late=True), 0, ""),
        (Group(TWO, 1), 0, ""),
        large(Group(("abc",), 2), 0, ""),
        (Group(TWO, 2), 0, ""),
        (Group(("a", "b"), 1), 1, ""),
        (Group(("ab",), 2), 2, ""),
        (Group(("ab",), 2, late=True), 1, ""),
    ],
)
def test_every_promise_holds(group: Group, faults: int, silent: str) -> None:
    found = check(GroupModel(group, faults, silent))
    print(f"{named(group)}, faults {faults}, silent {silent or 'nobody'}: {found.states} states")
    assert found.broken is None, found.trace
    assert found.states > 1000


@pytest.mark.parametrize(
    ("group", "faults", "dies"),
    [
        (Group(("ab",), 2), 1, False),
        (Group(("ab",), 2), 1, True),
        large(Group(TWO, 2), 2, False),
        large(Group(TWO, 2), 1, True),
        large(Group(("ab", "bc"), 2), 1, False),
        large(Group(("ab", "bc"), 2, late=True), 0, False),
        large(Group(("abc",), 3), 1, False),
    ],
)
def test_patient_vms_get_every_event_approved(group: Group, faults: int, dies: bool) -> None:
    found = check(GroupModel(group, faults, patient=True, dies=dies))
    print(f"{named(group)}, faults {faults}, {'one may die' if dies else 'nobody dies'}: {found.states} states")
    assert found.broken is None, found.trace
    assert found.states > 1000


def closes_alone(document: Barrier, me: str, own: Statement | None, _names: tuple[str, ...]) -> Barrier:
    return barrier.step(document, me, own, (me,))


def closes_for_any_content(document: Barrier, me: str, own: Statement | None, names: tuple[str, ...]) -> Barrier:
    after = barrier.step(document, me, own, names)
    ready = [name for name, said in after.members.items() if said.state == barrier.READY]
    return after._replace(closed=Closure(own.content, me)) if own is not None and len(ready) == len(names) else after


def one_too_many(document: Semaphore, me: str, wants: list[Want]) -> Semaphore:
    return semaphore.step(document, me, [want._replace(at_most=want.at_most + 1) for want in wants])


def free_while_recovering(document: Semaphore, me: str, wants: list[Want]) -> Semaphore:
    ends = [want._replace(state=RELEASE) if want.state == RECOVER else want for want in wants]
    return semaphore.step(document, me, ends)


UNPREPARED = "an approval was sent, and"
CLOSED = "is not prepared, and the barrier is closed"
TOO_MANY = "a, b, c are disturbed by us, and only 2 may be"
PARTLY = "event 0 has some of its slots, and not all"
STUCK = "nothing leads to the end from here"


@pytest.mark.parametrize(
    ("events", "faults", "rules", "promise"),
    [
        (TWO, 0, Rules(waits_for_closed=False), UNPREPARED),
        (TWO, 0, Rules(tell=closes_alone), CLOSED),
        (("ab",), 1, Rules(tell=closes_for_any_content), CLOSED),
        (TWO, 0, Rules(ready_when_prepared=False), CLOSED),
        (("ab",), 1, Rules(ready_again=False), CLOSED),
        (("ab",), 2, Rules(takes_back_first=False), CLOSED),
        (TWO, 0, Rules(stays_prepared=False), CLOSED),
        (("ab",), 1, Rules(notes_before=False), STUCK),
        (TWO, 0, Rules(waits_for_slot=False), TOO_MANY),
        (TWO, 0, Rules(forced_holds=False), TOO_MANY),
        (TWO, 0, Rules(recovers_first=False), TOO_MANY),
        (TWO, 0, Rules(take=one_too_many), TOO_MANY),
        (TWO, 0, Rules(take=free_while_recovering), TOO_MANY),
        (("abc",), 0, Rules(refuses_impossible=False), TOO_MANY),
        (TWO, 1, Rules(checks_version=False), TOO_MANY),
        (TWO, 1, Rules(keeps_on_restart=False), PARTLY),
        (TWO, 0, Rules(takes_all=False), PARTLY),
        (("ab",), 1, Rules(fences=False), STUCK),
    ],
)
def test_a_broken_rule_is_found(events: tuple[str, ...], faults: int, rules: Rules, promise: str) -> None:
    found = check(GroupModel(Group(events, 2, rules=rules), faults))
    print(f"{found.states} states: {found.broken}", *found.trace, sep="\n  ")
    assert promise in str(found.broken)


def test_an_approval_for_another_content_is_found() -> None:
    """By a VM that has nothing to prepare: another one that prepares again opens the barrier before."""
    found = check(GroupModel(Group(("ab",), 2, easy="a", rules=Rules(this_content=False)), 1))
    print(f"{found.states} states: {found.broken}", *found.trace, sep="\n  ")
    assert UNPREPARED in str(found.broken)


def test_an_approval_beyond_the_limit_is_found() -> None:
    group = Group(("ab",), 1, easy="ab", rules=Rules(refuses_impossible=False))
    found = check(GroupModel(group, 0))
    print(f"{found.states} states: {found.broken}", *found.trace, sep="\n  ")
    assert found.broken == "an event was approved that needs more slots than there are"
