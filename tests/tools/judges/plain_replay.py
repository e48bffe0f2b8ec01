# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Replay by the slow and plain way: a document is parsed from its text, and every half minute is looked at."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from io import BufferedIOBase

from forewarn.analysis.replay.breakpoints import Clockwork, MatchedRule, breakpoints, horizon
from forewarn.analysis.replay.recordings import LONGEST_LINE, RecordedDocument, Report, _lines, _parse_line, _words
from forewarn.analysis.replay.replay import _NO_TIME, _SECOND, ReplayedEvent, _content, _decided
from forewarn.events import Document, DocumentError, Event, Vm, parse_document
from forewarn.policy.approval import eligibility
from forewarn.policy.decision import APPROVE, Decision, Facts
from forewarn.policy.engine import PolicySet
from forewarn.policy.view import DocumentView

Rules = tuple[MatchedRule, ...]


def read_lines(
    stream: BufferedIOBase, name: str, api_version: str, report: Report, *, timed: bool = False
) -> Iterator[RecordedDocument]:
    """Yield a record for each line of JSON, as ``recordings.read_lines`` does."""
    before = ""
    document: Document | None = None
    for number, line in enumerate(_lines(stream), 1):
        if line is not None and not line.strip():
            continue
        try:
            if line is None:
                raise ValueError(f"the line is longer than {LONGEST_LINE // 2**20} MiB")
            data, at, vm = _parse_line(line)
            if timed and at is None:
                raise ValueError("the line has no 'time', and the policies decide by the time")
            body = json.dumps(data)
            if document is None or body != before:
                document, before = parse_document(body, api_version), body
        except (ValueError, RecursionError, DocumentError) as error:
            report(f"{name}:{number}", _words(error))
            continue
        yield RecordedDocument(at, document, vm)


class Stream:
    """What one VM gets from the service; every answer is asked for, and everything for it is made anew."""

    def __init__(self, policies: PolicySet, clockwork: Clockwork) -> None:
        self.at: datetime | None = None
        self._policies = policies
        self._clockwork = clockwork
        self._vm = Vm()
        self._document = Document()
        self._listed: dict[str, ReplayedEvent] = {}
        self._instants: list[datetime] = []  # at which answers may change, by the times that policies name
        self._answers: Rules = ()

    def feed(self, record: RecordedDocument, vm: Vm) -> Iterator[ReplayedEvent]:
        if record.at is not None:
            self._pass_time(record.at)
        document = record.document
        moved = vm != self._vm
        self._vm = vm
        if document is not None and (moved or (document is not self._document and document != self._document)):
            yield from self._update(document, record.at)
            self._decide(record.at)
            self._instants = self._clockwork.instants(self._scheduled(), self._first_seen())
        for listed in self._listed.values():
            listed.last_seen = record.at or listed.last_seen
        self.at = record.at or self.at
        for past in record.decisions:
            if past.event in self._listed:
                self._listed[past.event].then.decisions.append(past)
        for key, at in record.approved:
            if key in self._listed:
                self._listed[key].then.approve(at)

    def end(self, until: datetime | None) -> Iterator[ReplayedEvent]:
        if until is not None:
            self._pass_time(until)
        yield from self._listed.values()
        self._listed.clear()

    def _update(self, document: Document, at: datetime | None) -> Iterator[ReplayedEvent]:
        self._document = document
        keys = {event.key for event in document.events}
        if not document.problems:  # an entry that cannot be read may be any event
            for key in [key for key in self._listed if key not in keys]:
                yield self._listed.pop(key)
        for event in document.events:
            listed = self._listed.get(event.key)
            if listed is None:
                listed = self._listed[event.key] = ReplayedEvent(event, self._vm.name, at)
            listed.event = event
            listed.not_before = event.not_before or listed.not_before

    # Time

    def _pass_time(self, until: datetime) -> None:
        """Decide again whenever, until then, the same document may be decided otherwise."""
        begin = self.at
        scheduled = self._scheduled()
        if begin is None or not scheduled or until <= begin:
            return
        if not self._clockwork.time_dependent:
            self._wait(begin, until)
            return
        waits = [listed.waits_until for listed in self._listed.values() if listed.waits_until is not None]
        end = horizon(begin, until, scheduled)
        before = begin
        for moment in breakpoints(begin, end, sorted([*self._instants, *waits])):
            self._look(before, moment)
            before = moment

    def _look(self, before: datetime, moment: datetime) -> None:
        """Decide at the second at which the answers change, and when a wait is over."""
        while self._answer(moment) != self._answers:
            early, late = before, moment
            while late - early > _SECOND:
                middle = early + (late - early) / 2
                early, late = (middle, late) if self._answer(middle) == self._answers else (early, middle)
            self._wait(before, late)
            self._decide(late)
            before = late
            if late >= moment:
                return
        self._wait(before, moment)

    def _wait(self, before: datetime, until: datetime) -> None:
        ends = (listed.waits_until for listed in self._listed.values())
        for moment in sorted(end for end in ends if end is not None and before < end <= until):
            self._decide(moment)

    def _answer(self, moment: datetime) -> Rules:
        return self._answers_at(self._facts(moment))

    def _answers_at(self, facts: Facts) -> Rules:
        return self._clockwork.answers(DocumentView(self._document, facts), self._scheduled()).rules

    # Decisions

    def _scheduled(self) -> list[Event]:
        """Return the events that may still be approved."""
        return [event for event in self._document.events if event.event_status != "Started" and not event.problems]

    def _first_seen(self) -> dict[str, datetime]:
        seen = ((key, listed.first_seen) for key, listed in self._listed.items())
        return {key: moment for key, moment in seen if moment is not None}

    def _facts(self, now: datetime) -> Facts:
        return Facts(now, self._vm, self._first_seen())

    def _decide(self, at: datetime | None) -> None:
        if not self._document.events:
            return
        now = at or _NO_TIME
        facts = self._facts(now)
        for decision in self._policies.decide(self._document, facts):
            self._note(self._listed[decision.event.key], decision, now, at)
        if self._clockwork.time_dependent:
            self._answers = self._answers_at(facts)

    def _note(self, listed: ReplayedEvent, decision: Decision, now: datetime, at: datetime | None) -> None:
        if decision.output == APPROVE:
            listed.approvable_since = listed.approvable_since or now
        else:
            listed.approvable_since = None
        since = listed.approvable_since or now
        where = eligibility(decision, self._vm.name, now, (now - since).total_seconds())
        waits = where.wait_seconds is not None and at is not None
        listed.waits_until = now + timedelta(seconds=where.wait_seconds or 0) if waits else None
        if where.send:
            listed.now.approve(at)
        decided, before = _decided(decision, where, at), listed.now.decisions
        if not before or _content(before[-1]) != _content(decided):
            before.append(decided)
