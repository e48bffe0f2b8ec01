# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every interleaving of three VMs with a barrier and a semaphore, to the end of the reachable states."""

from __future__ import annotations

import pytest
from forewarn.runner.groups import barrier, semaphore
from forewarn.runner.groups.barrier import Barrier, Closed, Statement
from forewarn.runner.groups.semaphore import Semaphore, Want
from tools.joint_model import JointModel, Rules
from tools.model_checker import check


@pytest.mark.parametrize(("faults", "silent", "events"), [(0, "", 2), (0, "b", 2), (1, "", 1), (1, "b", 1)])
def test_two_documents_keep_every_promise(faults: int, silent: str, events: int) -> None:
    found = check(JointModel(faults, silent=silent, events=events))
    print(f"events {events}, faults {faults}, silent {silent or 'nobody'}: {found.states} states")
    assert found.broken is None, found.trace
    assert found.states > 1000


def one_too_many(document: Semaphore, me: str, wants: list[Want]) -> Semaphore:
    return semaphore.step(document, me, [want._replace(at_most=want.at_most + 1) for want in wants])


def closes_alone(document: Barrier, me: str, own: Statement | None, _names: tuple[str, ...]) -> Barrier:
    return barrier.step(document, me, own, (me,))


def closes_at_once(document: Barrier, me: str, own: Statement | None, names: tuple[str, ...]) -> Barrier:
    after = barrier.step(document, me, own, names)
    return after if own is None else after._replace(closed=after.closed or Closed(own.content, me))


@pytest.mark.parametrize(
    ("faults", "rules", "promise"),
    [
        (0, Rules(waits_for_closed=False), "was not prepared"),
        (0, Rules(ready_early=True), "is not prepared, and the barrier is closed"),
        (0, Rules(tell=closes_alone), "is not prepared, and the barrier is closed"),
        (0, Rules(tell=closes_at_once), "is not prepared, and the barrier is closed"),
        (0, Rules(undoes=True), "is not prepared, and the barrier is closed"),
        (1, Rules(any_content=True), "was not prepared"),
        (0, Rules(step=one_too_many), "are disturbed by us"),
        (0, Rules(waits_for_slot=False), "are disturbed by us"),
        (0, Rules(own_slot_only=True), ""),
        (0, Rules(forced_approves=True), "are disturbed by us"),
        (0, Rules(releases_when_gone=True), "are disturbed by us"),
        (1, Rules(checks_version=False), ""),
    ],
)
def test_a_broken_rule_is_found(faults: int, rules: Rules, promise: str) -> None:
    found = check(JointModel(faults, rules, events=1 if faults else 2))  # with more of both there are too many states
    print(found.broken, *found.trace, sep="\n  ")
    assert found.broken is not None
    assert promise in found.broken
