# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Calendar fields of a time, by integer arithmetic.

The date of a day number is by the algorithm of Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms"
(civil_from_days). Zones are exact in the years 2000 to 2100; a time outside may be anything there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Any

from ....policy.functions import timevalues as tv
from ..terms import conj, disj, floor_div, ite
from .problem import Encoding, Problem

_DAY = 86_400
_BEGIN, _END = tv.MIN_TIMESTAMP // tv.SECOND, tv.MAX_TIMESTAMP // tv.SECOND
_FIRST = int(datetime(2000, 1, 1, tzinfo=timezone.utc).timestamp())
_LAST = int(datetime(2100, 1, 1, tzinfo=timezone.utc).timestamp())


def accessor(problem: Problem, function: str, moment: Any, zone: str | None) -> Encoding:
    """Return a calendar field of a time in nanoseconds, by the name of its function in ``functions.FUNCTIONS``."""
    seconds, rest = problem.divide(moment, tv.SECOND)

    def field(local: Any) -> Any:
        return floor_div(rest, 1_000_000) if function == "milliseconds" else _FIELDS[function](problem, local)

    if zone is None or zone == "UTC":
        return Encoding(field(seconds))
    try:
        where = tv.zone(zone)
    except ValueError:
        return Encoding(0, True)
    if isinstance(where, timezone):
        offset = int(where.utcoffset(None).total_seconds())  # beyond the years 1 to 9999 there is no value
        local = problem.plus(seconds, offset, offset, offset)
        return Encoding(field(local), disj((local < _BEGIN, local > _END)))
    local = problem.memo(f"local time in {zone}", seconds, lambda: _local(problem, seconds, zone))
    low, high = problem.range_of(seconds) or (_BEGIN, _END)
    if low >= _FIRST and high < _LAST:
        return Encoding(field(local))
    inside = ite(seconds >= _FIRST, seconds < _LAST, False)
    other = problem.fresh_value(
        f"{function} of {moment} in {zone}", f"a time before 2000 or after 2099 in {zone}", "int"
    )
    edge = disj((seconds < _BEGIN + 2 * _DAY, seconds > _END - 2 * _DAY))  # there are no local times beyond
    return Encoding(ite(inside, field(local), other.value), conj((edge, other.error)))


def duration_field(function: str, value: Any) -> Encoding:
    """Return the whole hours, minutes or seconds of a duration in nanoseconds, cut towards zero."""
    unit = {"duration_hours": 3600, "duration_minutes": 60, "duration_seconds": 1}[function] * tv.SECOND
    return Encoding(ite(value >= 0, floor_div(value, unit), -floor_div(-value, unit)))


@lru_cache(maxsize=32)
def transitions(zone: str) -> tuple[tuple[int, int], ...]:
    """Return when the offset of a zone changes from 2000 to 2100: seconds since 1970, and the offset from then on."""
    where = tv.zone(zone)
    found = [(_FIRST, _utcoffset(where, _FIRST))]
    for day in range(_FIRST, _LAST, 7 * _DAY):
        low, high = day, min(day + 7 * _DAY, _LAST - 1)
        while _utcoffset(where, high) != found[-1][1]:
            before, after = low, high
            while after - before > 1:
                middle = (before + after) // 2
                if _utcoffset(where, middle) == found[-1][1]:
                    before = middle
                else:
                    after = middle
            found.append((after, _utcoffset(where, after)))
            low = after
    return tuple(found)


def _utcoffset(where: tzinfo, seconds: int) -> int:
    moment = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=seconds)
    offset = moment.astimezone(where).utcoffset()
    return 0 if offset is None else int(offset.total_seconds())


def _local(problem: Problem, seconds: Any, zone: str) -> Any:
    """Return the local time, in seconds; it is exact from 2000 to 2100."""
    changes = transitions(zone)
    low, high = problem.range_of(seconds) or (_FIRST, _LAST)
    first = max((number for number, (begin, _offset) in enumerate(changes) if begin <= low), default=0)
    found = [change for number, change in enumerate(changes) if number >= first and (change[0] <= high or number == 0)]
    offsets = [offset for _begin, offset in found]
    return problem.plus(seconds, _offset(found, seconds), min(offsets), max(offsets))


def _offset(changes: Sequence[tuple[int, int]], seconds: Any) -> Any:
    """Return the offset at a time: a balanced tree over the times at which it changes."""
    if len(changes) == 1:
        return changes[0][1]
    half = len(changes) // 2
    return ite(seconds < changes[half][0], _offset(changes[:half], seconds), _offset(changes[half:], seconds))


def _days(problem: Problem, seconds: Any) -> Any:
    return problem.divide(seconds, _DAY)[0]


def _hour(problem: Problem, seconds: Any) -> tuple[Any, Any]:
    """Return the hour of the day, and the seconds of the hour."""
    return problem.divide(problem.divide(seconds, _DAY)[1], 3600)


def _minute(problem: Problem, seconds: Any) -> tuple[Any, Any]:
    """Return the minute of the hour, and the second."""
    return problem.divide(_hour(problem, seconds)[1], 60)


def _march_year(problem: Problem, seconds: Any) -> tuple[Any, Any, Any]:
    """Return the first of 400 years, how many years after it, from 0, and the day of that year, from 0: the years
    begin in March, so that a leap day is the last of its year.
    """
    era, of_era = problem.divide(problem.plus(_days(problem, seconds), 719_468), 146_097)

    def part(days: int) -> Any:
        return problem.divide(of_era, days)[0]

    leap_days = part(36_524) - part(1460) - part(146_096)
    years = floor_div(of_era + leap_days, 365)
    return era * 400, years, of_era - (365 * years + floor_div(years, 4) - floor_div(years, 100))


def _civil(problem: Problem, seconds: Any) -> tuple[Any, Any, Any]:
    """Return the year, the month from 1 and the day from 1."""
    first, years, of_year = _march_year(problem, seconds)
    month = floor_div(5 * of_year + 2, 153)
    day = of_year - floor_div(153 * month + 2, 5) + 1
    month = ite(month < 10, month + 3, month - 9)
    year = years + first
    return ite(month <= 2, year + 1, year), month, day


def _day_of_year(problem: Problem, seconds: Any) -> Any:
    """Return the day of the year, from 0. It divides the year no further, which costs a solver much."""
    _first, years, of_year = _march_year(problem, seconds)
    leap = conj((years % 4 == 0, disj((years % 100 != 0, years == 0))))
    return ite(of_year >= 306, of_year - 306, of_year + 59 + ite(leap, 1, 0))


_FIELDS: Mapping[str, Callable[[Problem, Any], Any]] = {
    "full_year": lambda problem, seconds: _civil(problem, seconds)[0],
    "month": lambda problem, seconds: _civil(problem, seconds)[1] - 1,
    "date": lambda problem, seconds: _civil(problem, seconds)[2],
    "day_of_month": lambda problem, seconds: _civil(problem, seconds)[2] - 1,
    "day_of_week": lambda problem, seconds: problem.divide(_days(problem, seconds) + 4, 7)[1],
    "day_of_year": _day_of_year,
    "hours": lambda problem, seconds: _hour(problem, seconds)[0],
    "minutes": lambda problem, seconds: _minute(problem, seconds)[0],
    "seconds": lambda problem, seconds: _minute(problem, seconds)[1],
}
ACCESSORS = frozenset((*_FIELDS, "milliseconds"))
