# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Timestamps and durations of CEL, as integers: nanoseconds since 1970-01-01T00:00:00Z, or nanoseconds.

Timestamps range from year 1 to 9999, durations over an int64 of nanoseconds as in cel-go (about 292 years).
"""

from __future__ import annotations

import re
import sys
from datetime import datetime, timedelta, timezone, tzinfo

SECOND = 1_000_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
MIN_TIMESTAMP = -62_135_596_800 * SECOND
MAX_TIMESTAMP = 253_402_300_800 * SECOND - 1
MAX_DURATION = 2**63 - 1
MIN_DURATION = -(2**63)

_RFC3339 = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?(?:Z|([+-])(\d{2}):(\d{2}))", re.ASCII
)
# Without µs, which no engine but cel-go has.
UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": SECOND, "m": 60 * SECOND, "h": 3600 * SECOND}
_DURATION = re.compile(r"([+-]?)((?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|ms|s|m|h))+)", re.ASCII)
_DURATION_PART = re.compile(r"(\d*)(?:\.(\d*))?(ns|us|ms|s|m|h)", re.ASCII)
# Files beside those of the zones, whose content depends on the machine.
_NO_ZONES = frozenset(("localtime", "posixrules", "Factory"))
_FIXED_ZONE = re.compile(r"([+-]?)(\d{2}):(\d{2})", re.ASCII)


def from_datetime(moment: datetime) -> int:
    """Return an aware datetime as nanoseconds since the epoch."""
    delta = moment - _EPOCH
    return (delta.days * 86400 + delta.seconds) * SECOND + delta.microseconds * 1000


def parse_timestamp(text: str) -> int:
    """Read RFC 3339, as CEL's ``timestamp()`` does. Raises ValueError with a reason."""
    match = _RFC3339.fullmatch(text)
    if not match:
        raise ValueError(f"{text[:40]!r} is not an RFC 3339 time such as 2026-01-31T15:04:05Z")
    year, month, day, hour, minute, second = (int(part) for part in match.group(1, 2, 3, 4, 5, 6))
    try:
        moment = datetime(year, month, day, hour, minute, second, tzinfo=timezone.utc)
    except ValueError as error:
        raise ValueError(f"{text[:40]!r} is out of range: {error}") from error
    value = from_datetime(moment) + int((match.group(7) or "0").ljust(9, "0"))
    if match.group(8):
        hours, minutes = int(match.group(9)), int(match.group(10))
        if hours > 23 or minutes > 59:
            raise ValueError(f"{text[:40]!r} has an offset from UTC that does not exist")
        offset = (hours * 60 + minutes) * 60 * SECOND
        value += -offset if match.group(8) == "+" else offset
    return check_timestamp(value)


def check_timestamp(value: int) -> int:
    """Return the value, or raise ValueError if it lies outside the years 1 to 9999."""
    if not MIN_TIMESTAMP <= value <= MAX_TIMESTAMP:
        raise ValueError("timestamp out of range")
    return value


def check_duration(value: int) -> int:
    """Return the value, or raise ValueError if it is longer than an int64 of nanoseconds."""
    if not MIN_DURATION <= value <= MAX_DURATION:
        raise ValueError("duration out of range")
    return value


def format_timestamp(value: int) -> str:
    """Write RFC 3339 in UTC, the fraction in 0, 3, 6 or 9 digits as protobuf's JSON has it."""
    seconds, fraction = divmod(value, SECOND)
    text = (_EPOCH + timedelta(seconds=seconds)).replace(tzinfo=None).isoformat()
    return text + _fraction(fraction) + "Z"


def parse_duration(text: str) -> int:
    """Read a duration such as ``1h30m`` or ``-1.5s``, as CEL's ``duration()`` does. Raises ValueError with a reason."""
    if text in ("0", "+0", "-0"):
        return 0
    match = _DURATION.fullmatch(text) if len(text) <= 100 else None
    if not match:
        raise ValueError(f"{text[:40]!r} is not a duration such as 90s, 15m or 1h30m")
    total = 0
    for whole, fraction, unit in _DURATION_PART.findall(match.group(2)):
        if int(whole or "0") > MAX_DURATION:  # even if the sum fits: some engines parse the digits as an int64 first
            raise ValueError("duration out of range")
        total += int(whole or "0") * UNITS[unit]
        nanoseconds, rest = divmod(int(fraction or "0") * UNITS[unit], 10 ** len(fraction))
        if rest:  # engines truncate at different digits
            raise ValueError(f"{text[:40]!r} is finer than a nanosecond")
        total += nanoseconds
    return check_duration(-total if match.group(1) == "-" else total)


def format_duration(value: int) -> str:
    """Write the seconds and an ``s``, the fraction in 0, 3, 6 or 9 digits as protobuf's JSON has it: ``-1.500s``."""
    seconds, fraction = divmod(abs(value), SECOND)
    text = f"{seconds}{_fraction(fraction)}s" if fraction else f"{seconds}s"
    return "-" + text if value < 0 else text


def _fraction(nanoseconds: int) -> str:
    if not nanoseconds:
        return ""
    digits = f".{nanoseconds:09d}"
    while digits.endswith("000"):
        digits = digits[:-3]
    return digits


def is_fixed_zone(name: str) -> bool:
    """Return whether a time zone is known everywhere: by an offset, or UTC."""
    return name == "UTC" or _FIXED_ZONE.fullmatch(name) is not None


def zone(name: str) -> tzinfo:
    """Return a time zone by fixed offset (``+02:00``) or IANA name. Raises ValueError if it is not known here."""
    match = _FIXED_ZONE.fullmatch(name)
    if match:
        offset = timedelta(hours=int(match.group(2)), minutes=int(match.group(3)))
        if offset >= timedelta(hours=24):
            raise ValueError(f"there is no offset {name}")
        return timezone(-offset if match.group(1) == "-" else offset)
    if name == "UTC":
        return timezone.utc
    try:
        # right/ counts leap seconds, which neither CEL nor Python does
        if name.startswith(("right/", "posix/")) or name in _NO_ZONES:
            raise ValueError(name)
        return _load_zone(name)
    except (ValueError, OSError, KeyError) as error:
        raise ValueError(f"this machine knows no time zone {name[:40]!r}") from error


def _load_zone(name: str) -> tzinfo:
    # Imported here, since few policies name a zone.
    if sys.version_info < (3, 9):
        from .tzfile import load

        return load(name)
    from zoneinfo import ZoneInfo

    return ZoneInfo(name)


def at_zone(value: int, where: tzinfo = timezone.utc) -> datetime:
    """Return a timestamp as a datetime in a zone, in whole seconds. Raises ValueError beyond the years 1 to 9999."""
    try:
        return (_EPOCH + timedelta(seconds=value // SECOND)).astimezone(where)
    except OverflowError as error:
        raise ValueError("timestamp out of range in that time zone") from error
