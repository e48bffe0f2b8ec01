# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every interleaving of VMs that share a barrier or a semaphore, to the end of the reachable states."""

from __future__ import annotations

import pytest
from forewarn.runner.groups import semaphore
from forewarn.runner.groups.semaphore import Semaphore, Want
from tools.models import barrier_model
from tools.models.barrier_model import BarrierModel
from tools.models.model_checker import check
from tools.models.semaphore_model import Rules, SemaphoreModel

pytestmark = pytest.mark.in_turn(3)


@pytest.mark.parametrize(
    ("events", "at_most", "faults"), [(("a", "b"), 1, 1), (("ab", "c"), 2, 0), (("ab", "c"), 1, 0)]
)
def test_never_too_many_and_nothing_is_lost(events: tuple[str, ...], at_most: int, faults: int) -> None:
    found = check(SemaphoreModel(events, at_most, faults))
    print(f"{' and '.join(events)}, limit {at_most}, faults {faults}: {found.states} states")
    assert found.broken is None, found.trace
    assert found.states > 5000


def one_too_many(document: Semaphore, me: str, wants: list[Want]) -> Semaphore:
    return semaphore.step(document, me, [want._replace(at_most=want.at_most + 1) for want in wants])


@pytest.mark.parametrize(
    "rules",
    [
        Rules(checks_version=False),
        Rules(fences=False),
        Rules(notes_before=False),
        Rules(releases_on_restart=True),
        Rules(releases_when_gone=True),
        Rules(waits_for_grant=False),
        Rules(forced_approves=True),
        Rules(step=one_too_many),
    ],
)
def test_a_broken_rule_is_found(rules: Rules) -> None:
    found = check(SemaphoreModel(("a", "b"), 1, 1, rules))
    print(found.broken, *found.trace, sep="\n  ")
    assert found.broken is not None


@pytest.mark.parametrize(
    ("names", "faults", "ends"),
    [("ab", 1, True), ("ab", 1, False), pytest.param("abc", 0, True, marks=pytest.mark.full)],
)
def test_approved_vms_are_exactly_the_prepared_ones(names: str, faults: int, ends: bool) -> None:
    found = check(BarrierModel(names, faults, ends=ends))
    print(f"{', '.join(names)}, faults {faults}: {found.states} states")
    assert found.broken is None, found.trace
    assert found.states > 1000


@pytest.mark.parametrize(
    "rules",
    [
        barrier_model.Rules(checks_version=False),
        barrier_model.Rules(waits_for_closed=False),
        barrier_model.Rules(ready_before_prepared=True),
        barrier_model.Rules(step=barrier_model.failing),
        barrier_model.Rules(step=barrier_model.any_content),
    ],
)
def test_a_broken_rule_of_a_barrier_is_found(rules: barrier_model.Rules) -> None:
    found = check(BarrierModel("ab", 1, rules))
    print(found.broken, *found.trace, sep="\n  ")
    assert found.broken is not None
