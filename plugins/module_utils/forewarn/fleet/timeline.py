# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A drawing of when the events of a fleet were seen, approved, under way and gone: a lane for each host."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import NamedTuple

from .status import Event, mapping

STEPS = (("first_seen", "seen"), ("approved_at", "approved"), ("started_at", "started"), ("gone_at", "gone"))
_KEY = (("m-wait", "waiting"), ("m-good", "approved"), ("m-bad", "under way"), ("m-calm", "called off"))
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_DAY = timedelta(days=1)
_LONGEST = 10 * _DAY  # of the time ahead that is drawn
_LARGEST = 1e10
_ROW = 14  # pixels
_MOST_ROWS = 4


class _Span(NamedTuple):
    """An event in time. ``end`` is when it was gone, or the time of the report; ``until`` is NotBefore if ahead."""

    begin: datetime
    end: datetime
    until: datetime | None
    event: Event


class Bar(NamedTuple):
    """An event as it is drawn: each of ``lines`` has its class in the style sheet, its begin and its end.

    Begin and end are percentages of the width; ``y`` is in pixels.
    """

    text: str
    y: int
    lines: Sequence[tuple[str, str, str]]


class Lane(NamedTuple):
    """The events of a host; ``height`` in pixels, ``now`` a percentage."""

    host: str
    height: int
    now: str
    bars: Sequence[Bar]


class Timeline(NamedTuple):
    """A drawing: ``axis`` is the times at both ends and in the middle, ``key`` the legend."""

    lanes: Sequence[Lane]
    axis: Sequence[str]
    key: Sequence[tuple[str, str]] = _KEY


def timeline(events: Mapping[str, Sequence[Event]], made_at: str) -> Timeline | None:
    """Return the drawing of events by host, or None without events."""
    now = moment_of(made_at)
    if now is None:
        return None
    lanes = {
        host: [span for event in found if (span := _span_of(event, now)) is not None] for host, found in events.items()
    }
    spans = [span for lane in lanes.values() for span in lane]
    if not spans:
        return None
    begin = min(span.begin for span in spans)
    end = max([now, *(span.until for span in spans if span.until is not None)])
    whole = max((end - begin).total_seconds(), 60.0)

    def at(moment: datetime) -> str:
        return f"{100 * max(0.0, min(1.0, (moment - begin).total_seconds() / whole)):.2f}%"

    pattern = "%d %b %H:%M" if end - begin > _DAY else "%H:%M:%S"
    return Timeline(
        [_lane(host, lane, at, at(now)) for host, lane in lanes.items() if lane],
        [moment.strftime(pattern) for moment in (begin, begin + (end - begin) / 2, end)],
    )


def _span_of(event: Event, now: datetime) -> _Span | None:
    begin = moment_of(event.get("first_seen"))
    if begin is None:
        return None
    left = seconds_left(event)
    until = now + timedelta(seconds=min(left, _LONGEST.total_seconds())) if left is not None and left > 0 else None
    end = (
        moment_of(event.get("gone_at")) or (moment_of(event.get("last_seen")) if event.get("outcome") else None) or now
    )
    return _Span(begin, max(begin, end), until if event.get("open") is not False else None, event)


def _lane(host: str, lane: Sequence[_Span], at: Callable[[datetime], str], now: str) -> Lane:
    rows: list[datetime] = []  # when each row becomes free
    bars = []
    for span in sorted(lane, key=lambda one: one.begin):
        free = (place for place, taken in enumerate(rows) if taken <= span.begin)
        row = next(free, len(rows) if len(rows) < _MOST_ROWS else _MOST_ROWS - 1)
        if row == len(rows):
            rows.append(_EPOCH)
        rows[row] = span.until or span.end
        lines = [(mark, at(begin), at(end)) for begin, end, mark in _lines(span)]
        bars.append(Bar(_text(span.event), row * _ROW + 8, lines))
    return Lane(host, len(rows) * _ROW + 2, now, bars)


def _lines(span: _Span) -> Iterator[tuple[datetime, datetime, str]]:
    started, approved = (moment_of(span.event.get(name)) for name in ("started_at", "approved_at"))
    waited = min(started or span.end, span.end)
    if approved is not None and span.begin <= approved <= waited:
        yield span.begin, approved, "m-wait"
        yield approved, waited, "m-good"
    else:
        off = span.event.get("outcome") not in (None, "finished") and started is None
        yield span.begin, waited, "m-calm" if off else "m-wait"
    if started is not None:
        yield waited, span.end, "m-bad"
    if span.until is not None:
        yield span.end, span.until, "ahead"


def _text(event: Event) -> str:
    kind = mapping(event.get("event")).get("EventType") or "event"
    steps = ", ".join(f"{word} {clock(event[name])}" for name, word in STEPS if event.get(name))
    return f"{kind} {event.get('outcome') or event.get('state')}: {steps}"


def moment_of(value: object) -> datetime | None:
    """Return in UTC a time written as ISO 8601 with its zone, or None for anything else."""
    try:
        moment = datetime.fromisoformat(str(value).replace("Z", "+00:00"))
        return moment.astimezone(timezone.utc) if moment.tzinfo is not None and moment >= _EPOCH else None
    except (ValueError, OverflowError):
        return None


def clock(value: object) -> str:
    """Return a time for people, in UTC, and anything else unchanged."""
    moment = moment_of(value)
    return str(value) if moment is None else moment.strftime("%Y-%m-%d %H:%M:%S")


def number_of(value: object) -> float | None:
    """Return a number that can be a span of time in seconds, or None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not -_LARGEST < value < _LARGEST:
        return None
    return float(value)


def seconds_left(event: Event) -> float | None:
    """Return the seconds to NotBefore when the host was asked, or None if unknown or the event has started."""
    started = event.get("started_at") or event.get("gone_at")
    return None if started else number_of(event.get("seconds_to_not_before"))
