# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why this VM withholds an approval that its policies give."""

from __future__ import annotations

from datetime import datetime

from ..policy import approval
from ..policy.approval import Agreement, Eligibility
from ..policy.decision import Decision
from ..texts import duration_text
from . import event_record as states
from .event_record import EventRecord
from .hooks import commands
from .hooks.open_records import RESUMING
from .hooks.run import FAILED, SUCCEEDED, WAITING
from .hooks.scheduler import HookScheduler
from .journal.writer import Journal
from .operator_pause import OperatorPause
from .options import Mode


class ApprovalGate:
    """Finds what keeps this VM from approving an event. For the main thread alone."""

    def __init__(self, scheduler: HookScheduler, journal: Journal, mode: Mode, operator_pause: OperatorPause) -> None:
        self._preparation = scheduler.preparation
        self._journal = journal
        self._mode = mode
        self._operator_pause = operator_pause
        self._pause: Eligibility | None = None

    def read_pause(self) -> None:
        """Find out whether an operator has paused approvals, for the calls of ``blocker`` that follow."""
        self._pause = self._operator_pause.blocker()

    def blocker(self, decision: Decision, record: EventRecord, now: datetime) -> Eligibility | None:
        """Return what keeps this VM from approving, whatever the policies decide, or None."""
        return self._unready(decision, record, now) or self._pause

    def eligibility(
        self,
        decision: Decision,
        blocker: Eligibility | None,
        vm_name: str | None,
        now: datetime,
        approvable_seconds: float,
        agreement: Agreement | None,
    ) -> Eligibility:
        """Return whether this VM approves the event now. The ``blocker`` says why not, unless the policies do."""
        found = approval.eligibility(decision, vm_name, now, approvable_seconds, agreement)
        overridden = found.send or found.code in (approval.NOT_LEADER, approval.GROUP, approval.NO_SLOT)
        return blocker if blocker is not None and overridden else found

    def _unready(self, decision: Decision, record: EventRecord, now: datetime) -> Eligibility | None:
        """Return what is still to be done, or known, before this VM may approve, or None."""
        if record.state == states.STARTED and decision.event.event_status != "Started":
            return Eligibility(approval.STARTED, "it has started before, and an event starts only once")
        doubt = self._journal.doubt(record.event.key)
        if doubt is not None:
            return Eligibility(approval.IN_DOUBT, doubt)
        if self._mode.dry_run:
            return _early(decision, now)
        if not (decision.prepare or record.plan.runs):
            return None
        if self._mode.once:
            return Eligibility(approval.NEEDS_RUNNER, "its hooks need a running service: --once has no time for them")
        if self._journal.trouble is not None:
            return Eligibility(approval.NO_JOURNAL, f"nobody could promise its recovery: {self._journal.trouble}")
        if self._journal.late_records:
            return Eligibility(approval.NO_JOURNAL, RESUMING)
        if decision.prepare and not record.plan.wanted_stages():
            return Eligibility(approval.PREPARING, "its hooks are not planned")
        late = self._preparation.is_late(record)  # of the document as it is now: NotBefore may have been postponed
        state, run = record.plan.preparation(late)
        if state == SUCCEEDED:
            return None
        text = "" if run is None else commands.describe(run.hook)
        if state == FAILED:
            return Eligibility(
                approval.NOT_PREPARED, f"a prepare hook failed: {text}: {'' if run is None else run.reason}"
            )
        if late and state == WAITING:
            return Eligibility(approval.NOT_PREPARED, record.obstacle or f"there was no time left for {text}")
        if record.group_blocker is not None and state == WAITING:
            return record.group_blocker
        pause = self._preparation.begins_in(record)
        if pause and state == WAITING and not record.plan.has_begun():
            return Eligibility(approval.PREPARING, f"its preparation, {text}, begins in {duration_text(round(pause))}")
        if run is not None and run.failures:
            return Eligibility(
                approval.NOT_PREPARED, f"a prepare hook failed, and is tried again: {text}: {run.reason}"
            )
        return Eligibility(
            approval.PREPARING, f"waits for {text}" + (f": {record.obstacle}" if record.obstacle else "")
        )


def _early(decision: Decision, now: datetime) -> Eligibility | None:
    """Return what keeps a dry run from approving: a preparation whose time has not come, or None."""
    notice = decision.event.notice_seconds(now)
    withins = [verdict.prepare_within_seconds for verdict in decision.verdicts if verdict.prepare]
    waits = [notice - within for within in withins if notice is not None and within is not None]
    wait = max(waits, default=0.0)
    if wait <= 0.0:
        return None
    return Eligibility(approval.PREPARING, f"its preparation would begin in {duration_text(round(wait))}")
