# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Time zones from the machine's TZif files (RFC 8536), for Python 3.8, which has no ``zoneinfo``.

It converts from UTC to local times only, since policies need nothing else.
"""

from __future__ import annotations

import calendar
import re
import struct
from bisect import bisect_right
from datetime import date, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

# The directories that zoneinfo searches, too.
DIRECTORIES = ("/usr/share/zoneinfo", "/usr/lib/zoneinfo", "/usr/share/lib/zoneinfo", "/etc/zoneinfo")
_NAME = re.compile(r"[A-Za-z0-9_+-]+(?:/[A-Za-z0-9_+-]+)*")
_EPOCH = datetime(1970, 1, 1)
_HEADER = struct.Struct(">4sc15x6L")  # then: UT and standard indicators, leap seconds, times, types, characters
_TIME = r"([+-]?\d+(?::\d+){0,2})"
_DATE = rf"(J\d+|\d+|M\d+\.\d+\.\d+)(?:/{_TIME})?"
_NAMED_OFFSET = r"(?:[A-Za-z]{3,}|<[^>]+>)"
# The TZ variable of POSIX: EST5EDT,M3.2.0,M11.1.0 (section 3.3 of the RFC).
_RULE = re.compile(rf"{_NAMED_OFFSET}{_TIME}(?:{_NAMED_OFFSET}{_TIME}?,{_DATE},{_DATE})?", re.ASCII)


class _Summer(NamedTuple):
    """Daylight saving time: seconds east of UTC, and the day and second of the day when it begins and ends."""

    offset: int
    begin: tuple[str, int]
    end: tuple[str, int]


class ZoneFile(tzinfo):
    """A time zone, from the content of its file. Raises ValueError if that is not a TZif file."""

    def __init__(self, content: bytes) -> None:
        try:
            self._read(content)
        except (struct.error, IndexError, UnicodeDecodeError) as error:
            raise ValueError(f"not a TZif file: {error}") from error

    def _read(self, content: bytes) -> None:
        version, counts, start = _header(content, 0)
        wide = version >= b"2"
        if wide:  # the same again, with times of 64 bits
            version, counts, start = _header(content, start + _length(counts, 4))
        _ut, _standard, _leaps, times, types, _characters = counts
        width = 8 if wide else 4
        self._times: tuple[int, ...] = struct.unpack_from(f">{times}{'q' if wide else 'l'}", content, start)
        indexes = struct.unpack_from(f">{times}B", content, start + times * width)
        records = [
            struct.unpack_from(">l?B", content, start + times * (width + 1) + 6 * number) for number in range(types)
        ]
        self._offsets: list[int] = [records[index][0] for index in indexes]  # from each time on
        self._first_offset: int = next((offset for offset, summer, _name in records if not summer), records[0][0])
        after = content[start + _length(counts, width) :].strip(b"\n").decode("ascii") if wide else ""
        self._standard: int = (self._offsets or [self._first_offset])[-1]
        self._summer: _Summer | None = None
        if after:
            self._standard, self._summer = _rule(after)

    def fromutc(self, dt: datetime) -> datetime:
        """Return the moment, given as UTC, in the calendar of the zone. Raises OverflowError."""
        naive = dt.replace(tzinfo=None)
        offset = timedelta(seconds=self._offset(naive))
        return (naive + offset).replace(tzinfo=timezone(offset))

    # The results of fromutc have a fixed offset. The offset at a local time is unknown, which a tzinfo tells by None.

    def utcoffset(self, dt: datetime | None) -> None:
        """Return None: not known."""

    def dst(self, dt: datetime | None) -> None:
        """Return None: not known."""

    def tzname(self, dt: datetime | None) -> None:
        """Return None: not known."""

    def _offset(self, moment: datetime) -> int:
        seconds = (moment - _EPOCH) // timedelta(seconds=1)
        place = bisect_right(self._times, seconds)
        if place < len(self._times):
            return self._offsets[place - 1] if place else self._first_offset
        if self._summer is None:
            return self._standard
        begin = _seconds(moment.year, *self._summer.begin) - self._standard
        end = _seconds(moment.year, *self._summer.end) - self._summer.offset
        # On the southern half of the earth summer lasts over the end of the year.
        summer = begin <= seconds < end if begin < end else not end <= seconds < begin
        return self._summer.offset if summer else self._standard


@lru_cache(maxsize=None)
def load(name: str) -> ZoneFile:
    """Return the zone of an IANA name. Raises ValueError, or OSError, if this machine has none of that name."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name[:40]!r} is not a name of a time zone")
    paths = [Path(directory, name) for directory in DIRECTORIES]
    return ZoneFile(next((path for path in paths if path.exists()), paths[0]).read_bytes())


def _header(content: bytes, start: int) -> tuple[bytes, tuple[int, ...], int]:
    magic, version, *counts = _HEADER.unpack_from(content, start)
    if magic != b"TZif":
        raise ValueError("not a TZif file")
    return version, tuple(counts), start + _HEADER.size


def _length(counts: tuple[int, ...], width: int) -> int:
    """Return the bytes of a data block whose times have ``width`` bytes."""
    ut, standard, leaps, times, types, characters = counts
    return times * (width + 1) + types * 6 + characters + leaps * (width + 4) + standard + ut


def _rule(text: str) -> tuple[int, _Summer | None]:
    """Return the seconds east of UTC, and daylight saving time, of the rule at the end of a file."""
    match = _RULE.fullmatch(text)
    if match is None:
        raise ValueError(f"a rule that is not supported: {text[:80]!r}")
    standard, summer, begin, begin_time, end, end_time = match.groups()
    offset = -_clock(standard)
    if begin is None:
        return offset, None
    ahead = offset + 3600 if summer is None else -_clock(summer)
    return offset, _Summer(ahead, (begin, _clock(begin_time or "2")), (end, _clock(end_time or "2")))


def _clock(text: str) -> int:
    """Return the seconds of ``[+-]hours[:minutes[:seconds]]``."""
    hours, minutes, seconds = [*map(int, text.lstrip("+-").split(":")), 0, 0][:3]
    total = hours * 3600 + minutes * 60 + seconds
    return -total if text.startswith("-") else total


def _seconds(year: int, day: str, second: int) -> int:
    """Return the local time, in seconds since 1970, of ``second`` seconds (of any sign) after a day begins."""
    if day.startswith("M"):
        month, week, weekday = map(int, day[1:].split("."))
        first, length = calendar.monthrange(year, month)
        number = 1 + (weekday - 1 - first) % 7 + (week - 1) * 7  # 0 is Sunday; calendar begins with Monday
        days = date(year, month, number if number <= length else number - 7).toordinal()
    else:
        days = date(year, 1, 1).toordinal() + int(day.lstrip("J"))
        if day.startswith("J"):  # counted from 1, and never 29 February
            days -= 1 if not calendar.isleap(year) or int(day[1:]) < 60 else 0
    return (days - _EPOCH.toordinal()) * 86400 + second
