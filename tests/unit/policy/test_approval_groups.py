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
