# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reports documents, decisions, and the end of events in the log, the journal and the metrics."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ..events import Document
from ..policy.approval import GROUP, NO_SLOT, Eligibility
from ..policy.decision import Decision
from .event_record import EventRecord
from .shadow import Disagreement
from .telemetry.log import shortened
from .telemetry.recorder import Recorder
from .tracker import TrackedEvent


class DecisionReporter:
    """Reports the events of one source. ``drill``: they are those of the drills."""

    def __init__(self, recorder: Recorder, drill: bool) -> None:
        self._journal, self._log, self._metrics = recorder
        self._drill = drill

    def report_document(self, document: Document) -> None:
        """Report a document that differs from the one before."""
        incarnation, problems, drill = document.incarnation, list(document.problems) or None, self._drill or None
        write = self._log.warning if problems else self._log.info
        write("document", incarnation=incarnation, events=len(document.events), problems=problems, drill=drill)
        content = {"DocumentIncarnation": incarnation, "Events": [event.as_dict() for event in document.events]}
        self._journal.note("document", None, incarnation=incarnation, document=content, problems=problems, drill=drill)
        if not self._drill:
            self._metrics.count("forewarn_documents_total")

    def report_disagreement(self, found: Disagreement, record: EventRecord) -> None:
        """Report what the shadow would have decided differently."""
        answers = {"live": found.live.output, "other": found.other.output}
        fields = {"event_id": found.event.event_id, **answers}
        self._log.warning("shadow", **fields, reason=found.what)
        self._journal.note("shadow", record.identifier, **fields, what=found.what)
        self._metrics.count("forewarn_shadow_disagreements_total", **answers)

    def report_decision(self, decision: Decision, where: Eligibility, tracked: TrackedEvent, now: datetime) -> bool:
        """Report and save a decision about an event if it has changed; return whether the policies' answer is new.

        Other numbers in the reason are no change.
        """
        event = decision.event
        record = tracked.record
        news = (where.code, decision.output, decision.policy, decision.rule, event.event_status, event.not_before)
        if tracked.last_logged == news:
            known = record.decision
            if where.code in (GROUP, NO_SLOT) and known is not None and known["eligibility_reason"] != where.reason:
                record.decision = {**known, "eligibility_reason": where.reason}  # whom it waits for now
                self._journal.save(record.as_row())
            return False
        tracked.last_logged = news
        notice = event.notice_seconds(now)
        error = next((verdict.error for verdict in decision.verdicts if verdict.error), None)
        answer = {"output": decision.output, "policy": decision.policy, "rule": decision.rule}
        fields: dict[str, Any] = {
            "event_id": event.event_id,
            "type": event.event_type,
            "status": event.event_status,
            "source": event.event_source,
            "resources": list(event.resources),
            "seconds_to_not_before": None if notice is None else round(notice, 3),
            **answer,
            "values": {value.expression: value.value for value in decision.values} or None,
            "error": error,
            "drill": self._drill or None,
        }
        write = self._log.warning if error or event.problems else self._log.info
        policy_reason = decision.reason if decision.reason != where.reason else None
        description = shortened(event.description)  # the last field: of any length, and for people
        shown = {**fields, "description": description}
        write("decision", eligibility=where.code, reason=where.reason, policy_reason=policy_reason, **shown)
        details = {
            "reason": decision.reason,
            "eligibility": where.code,
            "eligibility_reason": where.reason,
            "wait_seconds": where.wait_seconds,  # until it may change by itself
        }
        self._journal.note("decision", record.identifier, **fields, **details)
        anew = record.decision is None or any(record.decision[key] != value for key, value in answer.items())
        record.decision = {**details, **answer}
        self._journal.save(record.as_row())
        if anew:
            self._metrics.count("forewarn_decisions_total", drill=self._drill, **answer)
        return anew

    def report_gone(self, record: EventRecord, outcome: str, listed_seconds: float) -> None:
        """Report that an event has left the list."""
        event = record.event
        fields = {"outcome": outcome, "listed_seconds": round(listed_seconds, 3)}
        drill = self._drill or None
        self._log.info("event-gone", event_id=event.event_id, type=event.event_type, **fields, drill=drill)
        self._journal.note("event-gone", record.identifier, **fields)
