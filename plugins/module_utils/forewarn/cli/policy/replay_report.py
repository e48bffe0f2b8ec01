# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ``forewarn policy replay`` writes: one JSON object, or a page for people."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from ...analysis.replay.recordings import RecordedDecision
from ...analysis.replay.replay import APPROVED, NOT_SENT, STARTED, D, DecisionCourse, ReplayedEvent, TimedDecision
from ...analysis.replay.statistics import OUTCOMES, Statistics, by
from ...events import format_time
from ...texts import exact_text
from ..output.console import Console
from ..output.page import Page, resources_text
from .common import plural

_SHOWN_CHANGES = 10
_WORDS = {APPROVED: "approved", NOT_SENT: "not sent", "held": "held", STARTED: "started when first seen"}
_COLOURS = {"approve": "green", "hold": "yellow"}


def as_dict(replayed: ReplayedEvent) -> dict[str, Any]:
    """Return the decisions about an event, then and now, for ``--json``."""
    return {
        "event": replayed.event.as_dict(),
        "vm": replayed.vm,
        "first_seen": time_text(replayed.first_seen),
        "last_seen": time_text(replayed.last_seen),
        "not_before": time_text(replayed.not_before),
        "changed": replayed.changed,
        "then": _course_dict(replayed, replayed.then) if replayed.then.known else None,
        "now": _course_dict(replayed, replayed.now),
    }


def _course_dict(replayed: ReplayedEvent, course: DecisionCourse[D]) -> dict[str, Any]:
    return {
        "outcome": course.outcome,
        "approved_at": time_text(course.approved_at),
        "latency_seconds": replayed.latency_seconds(course),
        "ahead_seconds": replayed.ahead_seconds(course),
        "decisions": [{**one._asdict(), "at": time_text(one.at)} for one in course.decisions],
    }


def time_text(moment: datetime | None) -> str | None:
    """Return a time in the format of a document."""
    return None if moment is None else format_time(moment)


def show(
    pairs: Iterable[tuple[str, ReplayedEvent]], summary: Callable[[], dict[str, Any]], statistics: Statistics
) -> None:
    """Write the report, event by event."""
    console = Console(sys.stdout)
    page = Page(console)
    for _source, event in pairs:
        _show_event(page, event)
    _show_summary(console, page, summary(), statistics)


def _show_event(page: Page, replayed: ReplayedEvent) -> None:
    event = replayed.event
    seen = "" if replayed.first_seen is None else f"{_second(replayed.first_seen)}  "
    page.segments(
        (f"{seen}{event.event_type or 'event'}", ("bold",)),
        (event.event_id, ("bold",)),
        (f"affects {resources_text(event.resources)}", ()),
        *([("CHANGED", ("bold", "yellow"))] if replayed.changed else []),
    )
    _show_decisions(page, "then", replayed, replayed.then)
    _show_decisions(page, "now", replayed, replayed.now)
    page.line()


def _show_decisions(page: Page, label: str, replayed: ReplayedEvent, course: DecisionCourse[D]) -> None:
    """Write each new decision, with the time since the event was first seen, and whether an approval was sent."""
    before: tuple[object, ...] = ()
    for decision in course.decisions:
        if decision.status == "Started":
            continue
        news = (decision.output, decision.policy, decision.rule)
        if news != before:
            since = ""
            if replayed.first_seen is not None and decision.at is not None and before:
                since = f"after {exact_text((decision.at - replayed.first_seen).total_seconds())}: "
            reason = f": {decision.reason}" if decision.reason else ""
            lead = f"  {'' if before else label:<5} "
            page.hanging(lead, f"{since}{_by(decision)}{reason}", _COLOURS.get(decision.output, "bold"))
            before = news
    if not before:
        if course.decisions:
            page.hanging(f"  {label:<5} ", "it had already started when it was first seen")
        return
    if course.approved:
        sent = _sent(course.approved_at, replayed.latency_seconds(course), replayed.ahead_seconds(course))
        page.hanging(" " * 8, sent)
    elif label == "now" and course.outcome == NOT_SENT:
        last = [
            decided for decided in replayed.now.decisions if decided.status != "Started" and decided.output == "approve"
        ][-1]
        page.hanging(" " * 8, f"not sent by this VM: {last.eligibility_reason}")
    if label == "now" and course.approved:
        hooks = max(decided.hooks for decided in replayed.now.decisions)
        if hooks:
            page.hanging(" " * 8, f"and after {plural(hooks, 'prepare hook')}, which took no time here")


def _by(decision: RecordedDecision | TimedDecision) -> str:
    name = by(decision)
    return decision.output if name is None else f"{decision.output} by {name}"


def _sent(at: datetime | None, latency: float | None, ahead: float | None) -> str:
    if at is None:  # the recording has no times
        return "approved"
    parts = [f"approved at {_second(at)}"]
    parts += [] if latency is None else [f"{exact_text(max(0.0, latency))} after it was first seen"]
    parts += [] if ahead is None else [f"{exact_text(max(0.0, ahead))} before NotBefore"]
    return ", ".join(parts)


def _second(moment: datetime) -> str:
    return format_time(moment.replace(microsecond=0))


def _show_summary(console: Console, page: Page, numbers: dict[str, Any], statistics: Statistics) -> None:
    parts = [plural(numbers["documents"], "document"), plural(numbers["events"], "event")]
    parts += [f"{numbers['unreadable']:,} lines that cannot be read"] if numbers["unreadable"] else []
    spans = f", {numbers['first'][:19]}Z to {numbers['last'][:19]}Z" if numbers["first"] else ""
    page.line(f"{', '.join(parts)}{spans}", "bold")
    sides = [statistics.then, statistics.now] if statistics.compared else [statistics.now]
    rows = [[_WORDS[outcome], *(f"{side.outcomes[outcome]:,}" for side in sides)] for outcome in OUTCOMES]
    for words, spans_of, share in (
        ("approval after first sight, median", "latency", 0.5),
        ("  longest", "latency", 1.0),
        ("approval before NotBefore, median", "ahead", 0.5),
        ("  shortest", "ahead", 0.0),
    ):
        found = [getattr(side, spans_of).quantile(share) for side in sides]
        if any(value is not None for value in found):
            rows.append([words, *("-" if value is None else exact_text(max(0.0, value)) for value in found)])
    console.table(["", *(["THEN", "NOW"] if statistics.compared else ["NOW"])], rows)
    if not statistics.compared:
        return
    styles = ("bold", "yellow") if statistics.changed else ()
    page.line(f"{statistics.changed:,} of {statistics.compared:,} decided differently now", *styles)
    for change, count in statistics.changes.most_common(_SHOWN_CHANGES):
        then = change.then_output + (f" by {change.then_by}" if change.then_by else "")
        now = change.now_output + (f" by {change.now_by}" if change.now_by else "")
        page.hanging(f"  {count:>7,}  ", f"{then}, but more than a minute apart" if then == now else f"{then} -> {now}")
    if len(statistics.changes) > _SHOWN_CHANGES:
        page.line(f"  and {len(statistics.changes) - _SHOWN_CHANGES} more kinds: see --json")
