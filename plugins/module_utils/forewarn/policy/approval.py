# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether this VM approves a decided event now. The runner and the ad-hoc task share this answer."""

from __future__ import annotations

import hashlib
import math
from datetime import datetime
from typing import NamedTuple

from ..texts import duration_text
from .decision import APPROVE, Decision

TAKE_OVER_SECONDS = 30.0  # per place in Resources, until the next VM approves instead of a silent leader (SE-25)
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
# Those that only the runner has.
PREPARING = "preparing"
NOT_PREPARED = "preparation-failed"
NO_JOURNAL = "journal-trouble"
NEEDS_RUNNER = "needs-runner"
PAUSED = "paused"  # by an operator, see ``pause``
IN_DOUBT = "in-doubt"  # the event's record is damaged or missing, so nobody knows what was done for it


class Eligibility(NamedTuple):
    """Whether an approval may be sent: ``code`` is one of this module's constants, ``reason`` is for people.

    ``wait_seconds`` is the time until ``code`` may become ``approve`` by itself, None if it cannot.
    """

    code: str
    reason: str
    wait_seconds: float | None = None

    @property
    def send(self) -> bool:
        """Whether an approval is to be sent now."""
        return self.code == SEND


class Agreement(NamedTuple):
    """The agreement of the VMs of a group on an event, as this VM has just read it from their store.

    ``not_ready`` says why not all VMs of the event are known to be prepared, None if they are. ``no_slot`` says why
    they may not be disturbed now, None if they may. ``approver`` is the VM that approves the event, None if there is
    none yet; ``approver_seconds`` is the time for which this VM has known the approver.
    """

    not_ready: str | None
    no_slot: str | None
    approver: str | None = None
    approver_seconds: float = 0.0


def needs_barrier(decision: Decision) -> bool:
    """Return whether all VMs of the event must report that they are prepared before one of them approves it."""
    return decision.group == "ready" and len(decision.event.resources) > 1


def eligibility(
    decision: Decision,
    vm_name: str | None,
    now: datetime,
    approvable_for: float = 0.0,
    agreement: Agreement | None = None,
) -> Eligibility:
    """Return whether the VM named ``vm_name`` approves the decided event at ``now``.

    ``approvable_for`` is the time in seconds for which the decision on this VM has been ``approve`` without a break. A
    VM further down in Resources waits for those before it, 30 s for each (SE-25, SE-32); a witness, which is not in
    Resources, waits its ``witness_delay``. ``now`` is an aware time. ``agreement`` is None without a group.
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
    if needs_barrier(decision):
        if agreement is None:
            return Eligibility(GROUP, "nothing here knows whether the event's other VMs are prepared")
        if agreement.not_ready is not None:
            return Eligibility(GROUP, agreement.not_ready)
    if decision.limits:
        if agreement is None:
            return Eligibility(NO_SLOT, "nothing here knows how many VMs of the group are disturbed")
        if agreement.no_slot is not None:
            return Eligibility(NO_SLOT, agreement.no_slot)
    if agreement is not None and agreement.approver is not None:
        return _eligibility_with_approver(decision, vm_name, place, agreement.approver, agreement.approver_seconds)
    if place is None and (wait := witness_delay(event.key, vm_name) - approvable_for) > 0:
        left = math.ceil(wait)
        reason = f"this VM is a witness, and approves in {duration_text(left)} unless another has by then"
        return Eligibility(NOT_LEADER, reason, wait)
    if decision.approver == "leader" and place:
        wait = place * TAKE_OVER_SECONDS - approvable_for
        if wait > 0:
            left = math.ceil(wait)
            return Eligibility(
                NOT_LEADER,
                f"{event.resources[0]} leads; this VM, at place {place}, takes over in {duration_text(left)}",
                wait,
            )
    return Eligibility(SEND, decision.reason)


def _eligibility_with_approver(
    decision: Decision, vm_name: str | None, place: int | None, approver: str, known_for: float
) -> Eligibility:
    """Return whether this VM approves an event with an approver: if it is that VM, or if that VM stays silent."""
    if vm_name is not None and approver.lower() == vm_name.lower():
        return Eligibility(SEND, decision.reason)
    event = decision.event
    wait = ((len(event.resources) if place is None else place) + 1) * TAKE_OVER_SECONDS - known_for
    if place is None:
        wait += witness_delay(event.key, vm_name)
    if wait <= 0:
        return Eligibility(SEND, decision.reason)
    return Eligibility(
        NOT_LEADER, f"{approver} approves it; this VM takes over in {duration_text(math.ceil(wait))}", wait
    )


def witness_delay(event_key: str, vm_name: str | None) -> float:
    """Return the seconds, 0 to 60, that a witness waits before it approves the event of this ``Event.key``.

    It is a hash of the event and the name: witnesses need not know each other, and yet two hardly ever approve at the
    same time. After the first approval, the others see that the event has started. No name counts as an empty one.
    """
    digest = hashlib.sha256(f"{event_key}\0{(vm_name or '').lower()}".encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48 * WITNESS_SPREAD_SECONDS
