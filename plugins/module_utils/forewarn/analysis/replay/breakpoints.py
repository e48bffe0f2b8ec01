# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a decision may change while the same events are listed: the times that policies compare with."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any, NamedTuple

from ...events import Event
from ...policy.artifact import Artifact
from ...policy.forms import Literal, every_expression, read_form
from ...policy.params import bind
from ...policy.program import Match, Program
from ...policy.view import DocumentView
from ..artifacts import every_part

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_END = datetime.max.replace(tzinfo=timezone.utc)
_SECOND = timedelta(seconds=1)
_STEP_SECONDS = 30  # between instants; it divides a minute, so that minutes begin with a step
_MOST_STEPS = 240
_LONGEST = timedelta(days=1)  # of an event without NotBefore
_LATEST = 250_000_000_000  # seconds since 1970; datetime ends a little later


class MatchedRule(NamedTuple):
    """The answer of one policy to an event, without the reason: the match, and whether it could not be evaluated."""

    match: int | None
    failed: bool


class TimedAnswers(NamedTuple):
    """The answers of all policies that read the time; ``settled``: none changes as long as the document stays."""

    rules: tuple[MatchedRule, ...]
    settled: bool


class Clockwork:
    """The policies that read the time, to find when their answers change.

    ``durations`` and ``times`` are those that they name.
    """

    def __init__(self, artifact: Artifact, params: Mapping[str, Any]) -> None:
        self._policies: list[tuple[Program, dict[str, Any]]] = []  # whose answers may change
        found: dict[str, set[int]] = {"duration": set(), "timestamp": set()}
        for data in artifact.data["policies"]:
            program = Program(data)
            if not program.time_dependent:
                continue
            values = bind(data["params"], params, data["name"])
            self._policies.append((program, values))
            named = [(entry["type"], values[entry["name"]]) for entry in data["params"]]
            forms = [read_form(expression["form"]) for expression in every_expression(data["rule"])]
            literals = [(one.type, one.value) for form in forms for one in every_part(form) if isinstance(one, Literal)]
            for kind, value in (*named, *literals):
                if kind in found:
                    found[kind].add(value)
        self.time_dependent = bool(self._policies)
        self.durations = tuple(span for span in map(_span, found["duration"]) if span is not None)
        spans = [span for span in map(_span, found["timestamp"]) if span is not None]
        self.times = tuple(_EPOCH + span for span in spans if span.days >= 0)

    def answers(self, view: DocumentView, events: Sequence[Event]) -> TimedAnswers:
        """Return the answer of each policy that reads the time to each event of a document."""
        tried: list[bool] = []  # of each match that was tried, whether it reads the time

        def observe(match: Match, _met: object) -> None:
            tried.append(match.reads_time)

        rules = []
        for event in events:
            for program, params in self._policies:
                outcome = program.evaluate(view.roots(event, params), observe)
                rules.append(
                    MatchedRule(None if outcome.match is None else outcome.match.index, outcome.error is not None)
                )
        return TimedAnswers(tuple(rules), not any(tried))

    def instants(self, events: Sequence[Event], first_seen: Mapping[str, datetime]) -> list[datetime]:
        """Return when a comparison with a duration or a time that the policies name may turn, and a second later."""
        found = {*self.times}
        for event in events:
            starts = ((event.not_before, -1), (first_seen.get(event.key), 1))
            for start, sign in starts:
                if start is not None:
                    found.update(_moved(start, sign * duration) for duration in self.durations)
        return sorted(found | {_moved(moment, _SECOND) for moment in found})


def breakpoints(begin: datetime, end: datetime, instants: Sequence[datetime]) -> Iterator[datetime]:
    """Yield the times to decide again, in order: ``instants``, each half minute, and the end; all after ``begin``.

    Over a long time the steps are longer, so that there are never more than a few hundred beside ``instants``.
    """
    step = _STEP_SECONDS
    while (end - begin).total_seconds() > step * _MOST_STEPS:
        step *= 2
    place = bisect_right(instants, begin)
    moment = begin
    seconds = int((begin - _EPOCH).total_seconds())
    following = _moved(_EPOCH, timedelta(seconds=seconds - seconds % step + step))
    while moment < end:
        moment = min(following, end)
        if place < len(instants) and instants[place] <= moment:
            moment = instants[place]
            place += 1
        if moment == following:
            following = _moved(following, timedelta(seconds=step))
        yield moment


def horizon(begin: datetime, end: datetime, events: Sequence[Event]) -> datetime:
    """Return until when an approval of one of the events might still be sent, at most ``end``."""
    last = [_moved(begin, _LONGEST) if event.not_before is None else event.not_before for event in events]
    return min(end, max(last, default=begin))


def _span(nanoseconds: object) -> timedelta | None:
    if not isinstance(nanoseconds, int) or abs(nanoseconds) > _LATEST * 10**9:
        return None
    return timedelta(microseconds=nanoseconds // 1000)


def _moved(moment: datetime, by: timedelta) -> datetime:
    """Add to a time, but stay between 1970 and the end of the calendar."""
    try:
        return max(moment + by, _EPOCH)
    except OverflowError:
        return _END if by > timedelta(0) else _EPOCH
