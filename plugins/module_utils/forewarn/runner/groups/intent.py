# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The statement of this VM about an event, and the slots that it wants, by its decision and its hooks. Pure."""

from __future__ import annotations

from typing import NamedTuple

from ...events import Event
from ...policy.approval import NO_SLOT, NOT_PREPARED, PREPARING, Eligibility
from ...policy.decision import APPROVE, Decision, Limit
from . import barrier
from .barrier import Statement
from .semaphore import Want
from .settings import GroupSettings


class Need(NamedTuple):
    """The slots that an event takes of ``group``: those of ``names``, in lower case, of ``at_most`` that there are.

    ``impossible`` is why it never gets them, "" if it may.
    """

    group: str
    at_most: int
    names: tuple[str, ...]
    impossible: str = ""


class Intent(NamedTuple):
    """What this VM publishes about one event. ``event_id`` and ``record``, its number, are for people.

    It makes its ``statement``, unless None, in the document ``barrier``, where ``names`` have to be ready: nobody, for
    an approval that only one witness sends. It wants ``want``, unless None, of ``group``. ``slot``: it may get a slot
    there, be it from another VM of the event. ``fresh``: as far as this VM is concerned, the event may be approved now.
    ``recovering``: the event has left the list.
    """

    event_id: str
    record: int
    barrier: str = ""
    statement: Statement | None = None
    names: tuple[str, ...] = ()
    group: str = ""
    want: Want | None = None
    slot: bool = False
    fresh: bool = False
    recovering: bool = False


def need_of(decision: Decision, vm_name: str, settings: GroupSettings) -> Need | None:
    """Return which slots the event needs before its VMs may be disturbed, None if its policies limit nothing."""
    if not decision.limits:
        return None
    groups = {limit.group or settings.name for limit in decision.limits}
    group = min(groups)
    members = settings.members if group == settings.name else ()
    event = decision.event
    names = {name.lower() for name in event.resources if not members or name.lower() in members}
    if event.place_of(vm_name) is not None:
        names.add(vm_name.lower())
    need = Need(group, 1, tuple(sorted(names)))
    if len(groups) > 1:
        return need._replace(impossible=f"its rules limit several groups, {', '.join(sorted(groups))}: one is possible")
    found = [_at_most(limit, members) for limit in decision.limits]
    known = [at_most for at_most in found if at_most is not None]
    if len(known) < len(found):
        return need._replace(impossible=f"how many VMs {group} has is not configured, and its limit is a share")
    at_most = min(known)
    if len(names) > at_most:
        text = f"it names {len(names)} VMs of {group}, and at most {at_most} may be disturbed at once"
        return need._replace(at_most=at_most, impossible=text)
    return need._replace(at_most=at_most)


def _at_most(limit: Limit, members: tuple[str, ...]) -> int | None:
    """Return the number of slots, at least 1; None for a share of a group whose size nobody knows."""
    if limit.at_most is not None:
        return limit.at_most
    return max(1, len(members) * (limit.percent or 0) // 100) if members else None


def statement_of(decision: Decision, content: str, blocked: Eligibility | None) -> Statement:
    """Return this VM's statement about its preparation. ``blocked`` is what keeps it from approving, or None."""
    if decision.output != APPROVE:
        return Statement(content, barrier.HELD, decision.reason)
    if decision.group != "ready" and decision.approver != "witness":
        return Statement(content, barrier.HELD, "its policies do not say group: ready")
    if blocked is None:
        return Statement(content, barrier.READY)
    states = {PREPARING: barrier.PREPARING, NO_SLOT: barrier.PREPARING, NOT_PREPARED: barrier.FAILED}
    return Statement(content, states.get(blocked.code, barrier.HELD), blocked.reason)


def event_label(event: Event) -> str:
    """Return the event in a few words, for people who read the store."""
    return f"{event.event_type or 'event'} {event.event_id}"[:120]
