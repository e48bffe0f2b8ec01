# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Calendar fields of a time, by integer arithmetic.

The date of a day number is by the algorithm of Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms"
(civil_from_days). Zones are exact in the years 2000 to 2100; a time outside may be anything there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Any

from ...policy import timevalues as tv
from .problem import Problem, Translated
from .terms import conj, disj, floor_div, ite

_DAY = 86_400
_BEGIN, _END = tv.MIN_TIMESTAMP // tv.SECOND, tv.MAX_TIMESTAMP // tv.SECOND
_FIRST = int(datetime(2000, 1, 1, tzinfo=timezone.utc).timestamp())
_LAST = int(datetime(2100, 1, 1, tzinfo=timezone.utc).timestamp())


def accessor(problem: Problem, function: str, moment: Any, zone: str | None) -> Translated:
    """Return a calendar field of a time in nanoseconds, by the name of its function in ``functions.FUNCTIONS``."""
    seconds = floor_div(moment, tv.SECOND)

    def field(local: Any) -> Any:
        return floor_div(moment % tv.SECOND, 1_000_000) if function == "milliseconds" else _FIELDS[function](local)

    if zone is None or zone == "UTC":
        return Translated(field(seconds))
    try:
        where = tv.zone(zone)
    except ValueError:
        return Translated(0, True)
    if isinstance(where, timezone):
        offset = int(where.utcoffset(None).total_seconds())  # beyond the years 1 to 9999 there is no value
        local = seconds + offset
        return Translated(field(local), disj((local < _BEGIN, local > _END)))
    local = seconds + _offset(transitions(zone), seconds)
    known = problem.range_of(moment)
    if known is not None and known[0] >= _FIRST * tv.SECOND and known[1] < _LAST * tv.SECOND:
        return Translated(field(local))
    inside = ite(seconds >= _FIRST, seconds < _LAST, False)
    other = problem.anything(f"{function} of {moment} in {zone}", f"a time before 2000 or after 2099 in {zone}", "int")
    edge = disj((seconds < _BEGIN + 2 * _DAY, seconds > _END - 2 * _DAY))  # there are no local times beyond
    return Translated(ite(inside, field(local), other.value), conj((edge, other.error)))


def duration_field(function: str, value: Any) -> Translated:
    """Return the whole hours, minutes or seconds of a duration in nanoseconds, cut towards zero."""
    unit = {"duration_hours": 3600, "duration_minutes": 60, "duration_seconds": 1}[function] * tv.SECOND
    return Translated(ite(value >= 0, floor_div(value, unit), -floor_div(-value, unit)))


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


def _offset(changes: tuple[tuple[int, int], ...], seconds: Any) -> Any:
    """Return the offset at a time: a balanced tree over the times at which it changes."""
    if len(changes) == 1:
        return changes[0][1]
    half = len(changes) // 2
    return ite(seconds < changes[half][0], _offset(changes[:half], seconds), _offset(changes[half:], seconds))


def _days(seconds: Any) -> Any:
    return floor_div(seconds, _DAY)


def _march_year(seconds: Any) -> tuple[Any, Any, Any]:
    """Return the first of 400 years, how many years after it, from 0, and the day of that year, from 0: the years
    begin in March, so that a leap day is the last of its year.
    """
    shifted = _days(seconds) + 719_468
    era = floor_div(shifted, 146_097)
    of_era = shifted - era * 146_097
    years = floor_div(of_era - floor_div(of_era, 1460) + floor_div(of_era, 36_524) - floor_div(of_era, 146_096), 365)
    return era * 400, years, of_era - (365 * years + floor_div(years, 4) - floor_div(years, 100))


def _civil(seconds: Any) -> tuple[Any, Any, Any]:
    """Return the year, the month from 1 and the day from 1."""
    first, years, of_year = _march_year(seconds)
    month = floor_div(5 * of_year + 2, 153)
    day = of_year - floor_div(153 * month + 2, 5) + 1
    month = ite(month < 10, month + 3, month - 9)
    year = years + first
    return ite(month <= 2, year + 1, year), month, day


def _day_of_year(seconds: Any) -> Any:
    """Return the day of the year, from 0. It divides the year no further, which costs a solver much."""
    _first, years, of_year = _march_year(seconds)
    leap = conj((years % 4 == 0, disj((years % 100 != 0, years == 0))))
    return ite(of_year >= 306, of_year - 306, of_year + 59 + ite(leap, 1, 0))


_FIELDS: Mapping[str, Callable[[Any], Any]] = {
    "full_year": lambda seconds: _civil(seconds)[0],
    "month": lambda seconds: _civil(seconds)[1] - 1,
    "date": lambda seconds: _civil(seconds)[2],
    "day_of_month": lambda seconds: _civil(seconds)[2] - 1,
    "day_of_week": lambda seconds: (_days(seconds) + 4) % 7,
    "day_of_year": _day_of_year,
    "hours": lambda seconds: floor_div(seconds % _DAY, 3600),
    "minutes": lambda seconds: floor_div(seconds % 3600, 60),
    "seconds": lambda seconds: seconds % 60,
}
ACCESSORS = frozenset((*_FIELDS, "milliseconds"))
