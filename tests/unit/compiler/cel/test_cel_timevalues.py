# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Timestamps, durations and time zones: round trips, ranges, and what Google's CEL makes of the same texts."""

# ruff: noqa: SIM905  # a list of short texts reads better as one
from __future__ import annotations

import zoneinfo
from datetime import datetime, timedelta, timezone
from random import Random

import pytest
from forewarn.compiler.cel import types as t
from forewarn.compiler.cel.types import Declarations
from forewarn.policy.functions import timevalues as tv
from hypothesis import given
from hypothesis import strategies as st
from tools.judges.cel_oracles import Google, Ours, strict

S = tv.SECOND
TIMES = Declarations({"time": t.TIMESTAMP, "span": t.DURATION, "text": t.STRING, "zone": t.STRING})
GOOGLE = Google(TIMES)
TIMESTAMPS = st.integers(tv.MIN_TIMESTAMP, tv.MAX_TIMESTAMP)
DURATIONS = st.integers(tv.MIN_DURATION, tv.MAX_DURATION)


@given(TIMESTAMPS)
def test_timestamp_survives_writing_and_reading(value: int) -> None:
    assert tv.parse_timestamp(tv.format_timestamp(value)) == value


@given(DURATIONS)
def test_duration_survives_writing_and_reading(value: int) -> None:
    assert tv.parse_duration(tv.format_duration(value)) == value


@given(
    st.datetimes(
        min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30), timezones=st.timezones() | st.just(timezone.utc)
    )
)
def test_datetime_becomes_the_same_moment(moment: datetime) -> None:
    value = tv.from_datetime(moment)
    if moment.astimezone(timezone.utc).year > 1:
        text = moment.astimezone(timezone.utc).replace(tzinfo=None).isoformat() + "Z"
        assert tv.parse_timestamp(text) == value


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("0", 0),
        ("-0", 0),
        ("0s", 0),
        ("90s", 90 * S),
        ("15m", 900 * S),
        ("1h30m", 5400 * S),
        ("1s1h", 3601 * S),
        ("1.5s", 1_500_000_000),
        ("-1.5s", -1_500_000_000),
        ("+.5s", 500_000_000),
        ("1.s", S),
        ("250ms", 250_000_000),
        ("1us", 1000),
        ("1ns", 1),
        ("0.000001us", None),  # finer than a nanosecond: engines cut at different places
        ("0.5ns0.5ns", None),
        ("0.000000001s", 1),
        ("9223372036854775807ns", 2**63 - 1),
        ("-9223372036854775808ns", None),  # the smallest value, but not written so
        ("-9223372036s854775808ns", -(2**63)),
        ("9223372036s854775808ns", None),
        ("2562047h", 2562047 * 3600 * S),
        ("2562048h", None),
        ("9223372036854775808ns", None),
        ("1µs", None),
        ("1d", None),
        ("1w", None),
        ("1", None),
        ("s", None),
        (".s", None),
        ("", None),
        (" 1s", None),
        ("1s ", None),
        ("1e3s", None),
        ("1h-1m", None),
        ("1H", None),
        ("inf", None),
        ("١s", None),
        ("9" * 200 + "s", None),
        ("1s\n", None),
    ],
)
def test_duration_texts(text: str, nanoseconds: int | None) -> None:
    if nanoseconds is None:
        with pytest.raises(ValueError, match=r"duration|finer than a nanosecond"):
            tv.parse_duration(text)
    else:
        assert tv.parse_duration(text) == nanoseconds


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-31",
        "2026-01-31T15:04:05",
        "2026-01-31 15:04:05Z",
        "2026-01-31t15:04:05z",
        "2026-1-31T15:04:05Z",
        "2026-02-30T15:04:05Z",
        "2026-01-31T24:00:00Z",
        "2026-01-31T23:59:60Z",
        "2026-01-31T15:04:05+24:00",
        "2026-01-31T15:04:05+0200",
        "2026-01-31T15:04:05+02:60",
        "2026-01-31T15:04:05.Z",
        "2026-01-31T15:04:05.1234567890Z",
        "0000-01-01T00:00:00Z",
        "10000-01-01T00:00:00Z",
        "0001-01-01T00:00:00+00:01",
        "9999-12-31T23:59:59-00:01",
        "Mon, 19 Sep 2016 18:29:47 GMT",  # SE-16: events.py reads it, CEL does not
        "2026-01-31T15:04:05Z\n",
        "２026-01-31T15:04:05Z",
        "",
    ],
)
def test_texts_that_are_no_timestamp(text: str) -> None:
    with pytest.raises(ValueError, match=r"RFC 3339|out of range|offset"):
        tv.parse_timestamp(text)


def test_ends_of_the_timestamp_range() -> None:
    assert tv.format_timestamp(tv.MIN_TIMESTAMP) == "0001-01-01T00:00:00Z"
    assert tv.format_timestamp(tv.MAX_TIMESTAMP) == "9999-12-31T23:59:59.999999999Z"
    assert tv.parse_timestamp("0001-01-01T00:00:00-00:01") == tv.MIN_TIMESTAMP + 60 * S
    for value in (tv.MIN_TIMESTAMP - 1, tv.MAX_TIMESTAMP + 1):
        with pytest.raises(ValueError, match="out of range"):
            tv.check_timestamp(value)
    for value in (tv.MIN_DURATION - 1, tv.MAX_DURATION + 1):
        with pytest.raises(ValueError, match="out of range"):
            tv.check_duration(value)


@pytest.mark.parametrize(
    "name",
    ["", "utc", "Z", "Local", "europe/berlin", "Europe/Nowhere", "Europe", "+1:00", "+0100", "+24:00", "-99:00",
     "+01:0", "../UTC", "/etc/localtime", "right/UTC", "posix/UTC",
     "a\0b", "\ud800", "x" * 5000, "UTC\n", "tzdata.zi"],
)  # fmt: skip
def test_unknown_zone_is_a_value_error(name: str) -> None:
    with pytest.raises(ValueError, match=r"zone|offset"):
        tv.zone(name)


DURATION_PIECES = "0 1 9 . 5 s m h ms us ns - + 30 1000000 9223372036854775807 d µs e".split()
DURATION_UNITS = "h m s ms us ns .5s .25m .001ms".split()
TIME_PIECES = "2026 0001 9999 - 01 12 31 29 02 T t 00 23 60 : .5 .123456789 .1234567890 Z + 14 99".split()


def _a_time(random: Random) -> str:
    low, high = random.choice(((0, 99), (1, 28)))
    day = f"{random.randint(1, 9999):04}-{random.randint(1, 12):02}-{random.randint(low, high):02}"
    clock = f"{random.randint(0, 24):02}:{random.randint(0, 60):02}:{random.randint(0, 61):02}"
    return f"{day}T{clock}{random.choice(('', '.5', '.123456789'))}{random.choice(('Z', '+02:00', '-23:59', '+00:60'))}"


def test_random_texts_are_read_as_by_google() -> None:
    random = Random(20260131)
    count = {"read": 0, "refused": 0}
    for function, pieces in (("duration", DURATION_PIECES), ("timestamp", TIME_PIECES)):
        ours = Ours(f"{function}(text)", TIMES)
        for _ in range(2500):
            text = "".join(random.choice(pieces) for _ in range(random.randint(1, 6)))
            if function == "duration" and random.random() < 0.5:
                text = "".join(f"{random.randint(0, 99)}{random.choice(DURATION_UNITS)}" for _ in range(3))
            if function == "timestamp":
                text = random.choice(
                    (text, _a_time(random), f"2026-01-31T{text}", f"2026-01-31T12:00:00{text}", f"{text}T12:00:00Z")
                )
            outcome = ours.run({"text": text})
            count["refused" if outcome.kind == "error" else "read"] += 1
            theirs = GOOGLE.run(ours.source, {"text": text}, ours.type)
            assert outcome.same(theirs) or strict(outcome, theirs), (text, outcome, theirs)
    assert count["read"] > 500
    assert count["refused"] > 500


ACCESSORS = [
    f"get{part}" for part in "FullYear Month Date DayOfMonth DayOfWeek DayOfYear Hours Minutes Seconds".split()
]
ACCESSORS.append("getMilliseconds")
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "America/Sao_Paulo", "Asia/Kolkata", "Asia/Kathmandu",
         "EST5EDT", "Australia/Lord_Howe", "Africa/Monrovia", "Pacific/Apia", "Europe/Dublin", "Antarctica/Troll",
         "GMT",         "+00:00", "-00:30", "+14:00", "-12:00", "05:45", "+23:59"]  # fmt: skip


def test_calendar_parts_in_every_zone_match_google() -> None:
    """From 1900 on, day-light saving and its changes included; before, zones of engines differ in local mean time."""
    random = Random(20260131)
    parts = [Ours(f"[{', '.join(f'time.{name}({zone})' for name in ACCESSORS)}]", TIMES) for zone in ("", "zone")]
    for _ in range(1500):
        time = random.randint(-2_208_988_800, 4_102_444_800) * S + random.choice((0, 1, 999_999_999)) // 1000 * 1000
        if random.random() < 0.5:  # around the hours of a change
            time = (1_774_746_000 + random.randint(-4, 4) * 1800 + random.randint(-1, 1)) * S
        values = {"time": time, "zone": random.choice(ZONES)}
        for ours in parts:
            theirs = GOOGLE.run(ours.source, values)
            assert ours.run(values).same(theirs), (values, ours.run(values), theirs)


def test_time_beyond_the_calendar_is_an_error() -> None:
    with pytest.raises(ValueError, match="out of range in that time zone"):
        tv.at_zone(tv.MIN_TIMESTAMP, timezone(timedelta(hours=-1)))
    with pytest.raises(ValueError, match="out of range in that time zone"):
        tv.at_zone(tv.MAX_TIMESTAMP, zoneinfo.ZoneInfo("Asia/Tokyo"))
