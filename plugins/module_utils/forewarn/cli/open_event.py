# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Describes what an open event waits for, and what a dry run would do, from the runner's record of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ..policy import approval
from ..runner.clocks import Clocks
from ..runner.journal.reader import JournalEntry, JournalReader
from ..runner.journal.schema import EventRow
from ..texts import duration_text
from .failing_recoveries import FailingRecoveries, tried
from .runner_state import hook_text, list_of, number_of, object_of, plan_of, reason_of, stamp_of, text_of

WOULD = ("would-run", "would-approve")
_WAITS = "waits for "  # how the reasons of a group begin that name whom an event waits for
_ENTRIES = 100  # the newest of an event, which include those of running hooks


class Waiting:
    """Describes events. ``journal`` has the times at which hooks started."""

    def __init__(self, journal: JournalReader, clocks: Clocks, dry_run: bool, recoveries: FailingRecoveries) -> None:
        self._journal = journal
        self._clocks = clocks
        self._dry_run = dry_run
        self._recoveries = recoveries

    def for_what(self, record: EventRow) -> str:
        """Return what an open event waits for."""
        if record.state == "recovering":
            running = self._hooks(record, "prepare", running_only=True)
            if record.data.get("nameless") is True and not (running or self._hooks(record, "recover")):
                return "the name of this VM, not yet known from the instance metadata: what is recovered depends on it"
            return running or self._recovery(record)
        if record.state == "started":
            return "the event to end"
        approved = stamp_of(record.data, "approved_at")
        since = "" if approved is None else f", approved {duration_text(self._clocks.since(approved))} ago"
        if record.state == "approved":
            return f"its start{since}"
        if record.state == "preparing":
            return self._hooks(record, "prepare") or "the runner"
        if record.state == "failed":
            why = failure(record) or self.why_failed(record)
            why = why or "a prepare hook failed"
            return f"nothing: it is not approved, as {why}" if approved is None else f"its start{since}; but {why}"
        if record.state in ("seen", "held", "prepared"):
            return self._by_decision(record)
        return f"something unknown: this version does not know the state {record.state!r}"

    def why_failed(self, record: EventRow) -> str:
        """Return why a listed event is in state ``failed``, or "" in another state."""
        if record.state != "failed":
            return ""
        steps = self._journal.entries(record_id=record.id, kinds=("state",), limit=_ENTRIES, newest_first=True)
        latest = next((entry for entry in steps if text_of(entry.fields, "to") == "failed"), None)
        reason = "" if latest is None else text_of(latest.fields, "why")
        return reason or text_of(object_of(record.data, "decision"), "eligibility_reason") or "its preparation failed"

    def would(self, record: EventRow) -> list[str]:
        """Return what a dry run would have done for an event so far, in order."""
        if not self._dry_run:
            return []
        entries = self._journal.entries(record_id=record.id, kinds=WOULD, limit=_ENTRIES, newest_first=True)
        return list(dict.fromkeys(text for entry in reversed(list(entries)) for text in would_texts(entry)))

    def _by_decision(self, record: EventRow) -> str:
        decision = object_of(record.data, "decision")
        eligibility, why = text_of(decision, "eligibility"), text_of(decision, "eligibility_reason")
        if not decision:
            return "its decision"
        if eligibility == approval.STARTED:
            return "the event to end"
        if eligibility == approval.REFUSED:
            prepared = "NotBefore: prepared, and" if record.state == "prepared" else "nothing:"
            reason = reason_of(decision)
            return f"{prepared} held{_rule(decision)}{': ' if reason else ''}{reason}"
        if eligibility == approval.NOT_OURS:
            return f"nothing here: {why}"
        if eligibility == approval.NOT_LEADER:
            return self._leader(record, decision)
        if eligibility in (approval.GROUP, approval.NO_SLOT) and why.startswith(_WAITS):
            return why[len(_WAITS) :]
        if eligibility in (approval.NO_TIME, approval.GROUP, approval.NO_SLOT):
            return f"NotBefore: {why}"
        if eligibility == approval.PAUSED:
            return f"the end of the pause: {why}"
        if eligibility == approval.SEND:
            return self._approval(record)
        if eligibility == "preparing":  # none runs yet: too many others do, or one undoes what this hook does
            following = "its approval, with the next document" if record.state == "prepared" else why
            return self._hooks(record, "prepare") or following
        return f"{eligibility or 'the runner'}: {why}" if why else eligibility or "the runner"

    def _leader(self, record: EventRow, decision: Mapping[str, Any]) -> str:
        """Describe the VM that this VM waits for: the first in Resources, or, for a witness, another witness."""
        before = f"the leader {next(iter(list_of(object_of(record.data, 'event'), 'Resources')), 'another VM')}"
        if "witness" in text_of(decision, "eligibility_reason"):
            before = "another witness"
        wait = number_of(decision, "wait_seconds")
        decided = self._newest(record, "decision")
        if wait is None or decided is None:
            return f"{before}; this VM takes over if it stays silent"
        left = max(0.0, wait - self._clocks.since(decided.stamp))
        return f"{before}; this VM takes over in {duration_text(math.ceil(left))}"

    def _approval(self, record: EventRow) -> str:
        if self._dry_run:
            return "NotBefore: a dry run approves nothing"
        if record.data.get("drill") is True:
            return "its approval, which is only simulated"
        latest = self._newest(record, "approval-sending", "approved", "approval-failed")
        if latest is None or latest.kind != "approval-failed":
            return "its approval to be sent"
        ago = duration_text(self._clocks.since(latest.stamp))
        return f"its approval, which failed {ago} ago: {text_of(latest.fields, 'reason')}"

    def _hooks(self, record: EventRow, phase: str, running_only: bool = False) -> str:
        """Describe the hooks of a phase: those that run, else the next one."""
        runs = [run for run in plan_of(record) if run.get("phase") == phase]
        running = [run for run in runs if run.get("status") == "running"]
        if running:
            started = self._newest_starts(record)
            return " and ".join(self._running(run, started) for run in running)
        following = next((run for run in runs if run.get("status") == "waiting"), None)
        if following is None or running_only:
            return ""
        attempts = int(number_of(following, "attempts") or 0)
        text = f"{phase} hook {hook_text(following)}"
        if not attempts:
            return f"{text} to be started"
        why = text_of(following, "reason")  # empty if the runner ended while the hook ran
        return f"{text} to be tried again; attempt {attempts} {f'failed: {why}' if why else 'was interrupted'}"

    def _recovery(self, record: EventRow) -> str:
        """Describe the recover hooks: those that run, else those that failed, else the next one."""
        running = self._hooks(record, "recover", running_only=True)
        failed = next((run for run in tried(record) if run.failures), None)
        if running or failed is None:
            return running or self._hooks(record, "recover") or "the runner"
        text = f"recover hook {hook_text({'hook': failed.hook})}"
        if failed.exhausted:
            return f"a person: {text} failed, and is not tried again: {failed.reason}"
        _when, seconds = self._recoveries.next_attempt(record, failed)
        when = f" in {duration_text(math.ceil(seconds))}" if seconds else ""
        attempt = f"attempt {failed.attempts}" if failed.attempts else "the last attempt"
        return f"{text} to be tried again{when}; {attempt} failed: {failed.reason}"

    def _running(self, run: Mapping[str, Any], started: Mapping[tuple[object, ...], JournalEntry]) -> str:
        phase, hook, attempt = text_of(run, "phase"), hook_text(run), number_of(run, "attempts")
        text = f"{phase} hook {hook}"
        entry = started.get((phase, hook, attempt))
        most = number_of(object_of(run, "hook"), "timeout_seconds")
        if entry is not None:
            text += f", for {duration_text(self._clocks.since(entry.stamp))}"
            cut_short = number_of(entry.fields, "timeout_seconds")  # by NotBefore
            most = most if cut_short is None else cut_short
        if most is not None:
            text += f", at most {duration_text(most)}"
        return text + (f", attempt {attempt:g}" if attempt is not None and attempt > 1 else "")

    def _newest_starts(self, record: EventRow) -> dict[tuple[object, ...], JournalEntry]:
        entries = self._journal.entries(record_id=record.id, kinds=("hook-started",), limit=_ENTRIES, newest_first=True)
        newest: dict[tuple[object, ...], JournalEntry] = {}
        for entry in entries:
            key = (text_of(entry.fields, "phase"), text_of(entry.fields, "hook"), number_of(entry.fields, "attempt"))
            newest.setdefault(key, entry)
        return newest

    def _newest(self, record: EventRow, *kinds: str) -> JournalEntry | None:
        return next(self._journal.entries(record_id=record.id, kinds=kinds, limit=1, newest_first=True), None)


def would_texts(entry: JournalEntry) -> list[str]:
    """Return the actions that a dry run would have taken, by its entry."""
    if entry.kind == "would-approve":
        return ["approve it"]
    phase = text_of(entry.fields, "phase")
    return [f"run {phase} hook {hook}" for hook in list_of(entry.fields, "hooks")]


def failure(record: EventRow, phase: str | None = None) -> str:
    """Return the final failure of an event's preparation or recovery, or ""; ``phase`` None means either."""
    for run in plan_of(record):
        counts = run.get("phase") == "recover" or run.get("on_failure") != "approve"
        if run.get("status") == "failed" and counts and phase in (None, run.get("phase")):
            return (
                f"{text_of(run, 'phase')} hook {hook_text(run)} failed: {text_of(run, 'reason') or 'no reason given'}"
            )
    return ""


def _rule(decision: Mapping[str, Any]) -> str:
    policy, rule = text_of(decision, "policy"), text_of(decision, "rule")
    if policy and rule:
        return f" by {policy}, rule {rule}"
    return f" by policy {policy}" if policy else ""  # nobody approved, or the event is in doubt
