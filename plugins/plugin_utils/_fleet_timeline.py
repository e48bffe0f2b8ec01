# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When the events of a fleet were seen, approved, under way and gone, as a drawing: a lane of SVG for each host."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any, NamedTuple

from ansible_collections.forewarn.azure.plugins.plugin_utils._fleet import mapping, plain

Event = Mapping[str, Any]

STEPS = (("first_seen", "seen"), ("approved_at", "approved"), ("started_at", "started"), ("gone_at", "gone"))
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_DAY = timedelta(days=1)
_LONGEST = 10 * _DAY  # that is drawn of the time ahead
_LARGEST = 1e10
_ROW = 14  # pixels
_MOST_ROWS = 4


class _Bar(NamedTuple):
    """An event in time. ``end`` is when it was gone, or the time of the report; ``until`` NotBefore, if it is ahead."""

    begin: datetime
    end: datetime
    until: datetime | None
    event: Event


def timeline(events: Mapping[str, Sequence[Event]], made_at: str) -> str:
    """Return the drawing of events by host; nothing if there are none."""
    now = moment_of(made_at)
    if now is None:
        return ""
    lanes = {
        host: [span for event in found if (span := _bar_of(event, now)) is not None] for host, found in events.items()
    }
    bars = [span for lane in lanes.values() for span in lane]
    if not bars:
        return ""
    begin = min(span.begin for span in bars)
    end = max([now, *(span.until for span in bars if span.until is not None)])
    whole = max((end - begin).total_seconds(), 60.0)

    def at(moment: datetime) -> str:
        return f"{100 * max(0.0, min(1.0, (moment - begin).total_seconds() / whole)):.2f}%"

    drawn = "".join(
        f'<div class="lane"><span>{as_text(host)}</span>{_lane(lane, at, now)}</div>'
        for host, lane in lanes.items()
        if lane
    )
    middle = begin + (end - begin) / 2
    pattern = "%d %b %H:%M" if end - begin > _DAY else "%H:%M:%S"
    axis = "".join(f"<span>{moment.strftime(pattern)}</span>" for moment in (begin, middle, end))
    keys = (("m-wait", "waiting"), ("m-good", "approved"), ("m-bad", "under way"), ("m-calm", "called off"))
    key = "".join(
        f'<li><svg><line x1="4" x2="18" y1="6" y2="6" class="{mark}"/></svg>{text}</li>' for mark, text in keys
    )
    now_key = '<li><svg><line x1="8" x2="8" y1="0" y2="11" class="now"/></svg>now</li>'
    return f'<div class="card chart">{drawn}<div class="axis">{axis}</div><ul class="key">{key}{now_key}</ul></div>'


def _bar_of(event: Event, now: datetime) -> _Bar | None:
    begin = moment_of(event.get("first_seen"))
    if begin is None:
        return None
    left = seconds_left(event)
    until = now + timedelta(seconds=min(left, _LONGEST.total_seconds())) if left is not None and left > 0 else None
    end = (
        moment_of(event.get("gone_at")) or (moment_of(event.get("last_seen")) if event.get("outcome") else None) or now
    )
    return _Bar(begin, max(begin, end), until if event.get("open") is not False else None, event)


def _lane(lane: Sequence[_Bar], at: Callable[[datetime], str], now: datetime) -> str:
    rows: list[datetime] = []  # until when each row is taken
    marks = []
    for span in sorted(lane, key=lambda one: one.begin):
        free = (place for place, taken in enumerate(rows) if taken <= span.begin)
        row = next(free, len(rows) if len(rows) < _MOST_ROWS else _MOST_ROWS - 1)
        if row == len(rows):
            rows.append(_EPOCH)
        rows[row] = span.until or span.end
        marks.append(f"<g><title>{as_text(_bar_text(span))}</title>{''.join(_lines(span, at, row * _ROW + 8))}</g>")
    height = len(rows) * _ROW + 2
    marks.append(f'<line class="now" x1="{at(now)}" x2="{at(now)}" y1="0" y2="{height}"/>')
    told = "; ".join(_bar_text(span) for span in lane)
    return f'<svg height="{height}" role="img" aria-label="{as_text(told)}">{"".join(marks)}</svg>'


def _lines(span: _Bar, at: Callable[[datetime], str], height: int) -> Iterator[str]:
    started, approved = (moment_of(span.event.get(name)) for name in ("started_at", "approved_at"))
    waited = min(started or span.end, span.end)
    off = span.event.get("outcome") not in (None, "finished") and started is None
    spans = [(span.begin, waited, "m-calm" if off else "m-wait")]
    if approved is not None and span.begin <= approved <= waited:
        spans = [(span.begin, approved, "m-wait"), (approved, waited, "m-good")]
    if started is not None:
        spans.append((waited, span.end, "m-bad"))
    if span.until is not None:
        spans.append((span.end, span.until, "ahead"))
    for begin, end, mark in spans:
        yield f'<line class="{mark}" x1="{at(begin)}" x2="{at(end)}" y1="{height}" y2="{height}"/>'


def _bar_text(span: _Bar) -> str:
    kind = mapping(span.event.get("event")).get("EventType") or "event"
    steps = ", ".join(f"{word} {clock(span.event[name])}" for name, word in STEPS if span.event.get(name))
    return f"{kind} {span.event.get('outcome') or span.event.get('state')}: {steps}"


def moment_of(value: object) -> datetime | None:
    """Return a time that is written as ISO 8601 with its zone, in UTC; None for anything else."""
    try:
        moment = datetime.fromisoformat(str(value).replace("Z", "+00:00"))
        return moment.astimezone(timezone.utc) if moment.tzinfo is not None and moment >= _EPOCH else None
    except (ValueError, OverflowError):
        return None


def clock(value: object) -> str:
    """Return a time as people read it, in UTC; anything else as it is."""
    moment = moment_of(value)
    return str(value) if moment is None else moment.strftime("%Y-%m-%d %H:%M:%S")


def as_text(value: object) -> str:
    """Return anything as a text of HTML, in one line."""
    return html.escape(plain(value))


def number_of(value: object) -> float | None:
    """Return a number of such a size as spans of time have in seconds, None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not -_LARGEST < value < _LARGEST:
        return None
    return float(value)


def seconds_left(event: Event) -> float | None:
    """Return the time to NotBefore when the host was asked; None if there is none, or it has started."""
    started = event.get("started_at") or event.get("gone_at")
    return None if started else number_of(event.get("seconds_to_not_before"))
