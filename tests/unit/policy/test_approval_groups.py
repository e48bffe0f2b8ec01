# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Without a store nothing is approved that depends on other VMs."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest
from forewarn.events import Event
from forewarn.policy import approval
from forewarn.policy.decision import APPROVE, APPROVERS, Decision, Limit

NOW = datetime(2026, 1, 1, tzinfo=timezone.utc)


def event(*resources: str) -> Event:
    return Event(event_id="e", event_type="Reboot", resources=resources, event_status="Scheduled")


@pytest.mark.parametrize("approver", APPROVERS)
@pytest.mark.parametrize("vm_name", ["a", "b", "elsewhere"])
def test_nobody_approves_where_all_have_to_be_ready(approver: str, vm_name: str) -> None:
    decision = Decision(event("a", "b"), APPROVE, "p", "r", "why", approver=approver, group="ready")
    found = approval.eligibility(decision, vm_name, NOW, approvable_for=1e6)
    assert not found.send
    if vm_name != "elsewhere" or approver == "witness":
        assert found.code == approval.GROUP


def test_one_vm_alone_is_ready() -> None:
    decision = Decision(event("a"), APPROVE, "p", "r", "why", group="ready")
    assert approval.eligibility(decision, "a", NOW).send


@pytest.mark.parametrize("approver", APPROVERS)
@pytest.mark.parametrize("limit", [Limit(None, 1, None), Limit("web", None, 25)])
def test_nobody_approves_under_a_limit(approver: str, limit: Limit) -> None:
    decision = Decision(event("a"), APPROVE, "p", "r", "why", approver=approver, limits=(limit,))
    found = approval.eligibility(decision, "a", NOW, approvable_for=1e6)
    assert (found.send, found.code) == (False, approval.NO_SLOT)


@pytest.mark.parametrize(("vm_name", "turn"), [("A", 0), ("b", 1), ("c", 2), ("elsewhere", 3), (None, 3)])
def test_vms_take_over_in_turn_from_the_approver(vm_name: str | None, turn: int) -> None:
    """The first VM of the event, too: who took the slots approves. Witnesses come last, each after its own delay."""
    decision = Decision(event("a", "b", "c"), APPROVE, "p", "r", "why", approver="witness", group="ready")
    wait = (turn + 1) * approval.TAKE_OVER_SECONDS
    if turn == 3:
        wait += approval.witness_delay(decision.event.key, vm_name)

    def found(approver: str, known_for: float) -> approval.Eligibility:
        agreement = approval.Agreement(None, None, approver, known_for)
        return approval.eligibility(decision, vm_name, NOW, approvable_for=1e6, agreement=agreement)

    assert not found("x", wait - 0.5).send
    assert found("x", wait - 0.5).wait_seconds == pytest.approx(0.5)
    assert "x approves it; this VM takes over in 1 s" in found("x", wait - 0.5).reason
    assert found("x", wait + 0.001).send
    if vm_name is not None:
        assert found(vm_name.swapcase(), 0).send
