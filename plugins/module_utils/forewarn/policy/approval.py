# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether this VM sends an approval for a decided event, now: one answer for the runner and for the ad-hoc action."""

from __future__ import annotations

import hashlib
import math
from datetime import datetime
from typing import NamedTuple

from .decision import APPROVE, Decision

TAKE_OVER_SECONDS = 30.0  # per place in Resources, after which the next VM stands in for a silent leader (SE-25)
WITNESS_SPREAD_SECONDS = 60.0  # each witness waits a different time, less than this

# Codes of Eligibility, for programs.
SEND = "approve"
REFUSED = "refused-by-policy"
NOT_OURS = "not-ours"
NOT_LEADER = "not-the-leader"
NO_TIME = "no-time-left"
STARTED = "started"
GROUP = "group-not-ready"
NO_SLOT = "no-slot"


class Eligibility(NamedTuple):
    """``code`` is one of this module's constants; ``reason`` is for people; ``wait_seconds`` is the time until the
    answer may change to ``approve`` by itself, None if it will not.
    """

    code: str
    reason: str
    wait_seconds: float | None = None

    @property
    def send(self) -> bool:
        """Whether an approval is to be sent now."""
        return self.code == SEND


def eligibility(decision: Decision, vm_name: str | None, now: datetime, approvable_for: float = 0.0) -> Eligibility:
    """Return whether the VM named ``vm_name`` approves the decided event at ``now``.

    ``approvable_for`` is the time in seconds for which this VM has seen ``approve`` decided without a break: a VM
    further down in Resources waits 30 s a place for those before it (SE-25, SE-32), and a witness that is not among
    them its ``witness_delay``.
    """
    event = decision.event
    if event.event_status == "Started":
        return Eligibility(STARTED, "the event has started")
    if event.problems:
        return Eligibility(REFUSED, f"the event is in doubt: {'; '.join(event.problems)}")
    if decision.output != APPROVE:
        return Eligibility(REFUSED, decision.reason)
    place = event.place_of(vm_name)
    if place is None and decision.approver != "witness":
        if vm_name is None:
            return Eligibility(NOT_OURS, "the name of this VM is not known, so neither is whether the event affects it")
        return Eligibility(NOT_OURS, f"{vm_name} is not among the event's resources")
    if event.not_before is not None and now >= event.not_before:
        return Eligibility(NO_TIME, "NotBefore has passed by this VM's clock: the event starts without an approval")
    if decision.prepare and decision.group == "hold" and len(event.resources) > 1:
        return Eligibility(
            GROUP, f"one approval would end the time that the other {len(event.resources) - 1} have to prepare"
        )
    if decision.group == "ready" and len(event.resources) > 1:
        return Eligibility(GROUP, "nothing here knows whether the event's other VMs are prepared")
    if decision.limits:
        return Eligibility(NO_SLOT, "nothing here knows how many VMs of the group are disturbed")
    if place is None and (wait := witness_delay(event.key, vm_name) - approvable_for) > 0:
        left = math.ceil(wait)
        reason = f"this VM is a witness, and approves in {left} s unless another has by then"
        return Eligibility(NOT_LEADER, reason, wait)
    if decision.approver == "leader" and place:
        wait = place * TAKE_OVER_SECONDS - approvable_for
        if wait > 0:
            left = math.ceil(wait)
            return Eligibility(
                NOT_LEADER, f"{event.resources[0]} leads; this VM, at place {place}, takes over in {left} s", wait
            )
    return Eligibility(SEND, decision.reason)


def witness_delay(event_key: str, vm_name: str | None) -> float:
    """Return the seconds, 0 to 60, that a witness waits before it approves the event of this ``Event.key``.

    A hash of the names decides: no witness needs to know the others, yet two hardly ever send at once. When the first
    has approved, the others see the event started. A VM without a name counts as one with an empty name.
    """
    digest = hashlib.sha256(f"{event_key}\0{(vm_name or '').lower()}".encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48 * WITNESS_SPREAD_SECONDS
