# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The reader of time zones for Python 3.8: what zoneinfo says, on the files of this machine and on others."""

from __future__ import annotations

import io
import json
import struct
import sys
import zoneinfo
from datetime import datetime, timedelta, timezone
from pathlib import Path
from random import Random

import pytest
from forewarn.policy.functions.tzfile import ZoneFile, load
from tools.sites.commands import run_program
from tools.suite.sizes import in_turn

# Of given moments, and of those around each change between them, which it looks for.
LOCAL_TIME = """
import json, sys, time

def offset(at):
    return time.localtime(at).tm_gmtoff

moments = json.load(sys.stdin)
found = list(moments)
for first, last in zip(moments, moments[1:]):
    if offset(first) != offset(last):
        before, after = first, last
        while after - before > 1:
            middle = (before + after) // 2
            before, after = (middle, after) if offset(middle) == offset(first) else (before, middle)
        found += [first + 1, before - 3600, before, after, after + 3600, last - 1]
print(json.dumps([[at, *time.localtime(at)[:6], offset(at)] for at in found]))
"""
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
YEAR = 31_556_952
ZONES = sorted(
    name for name in zoneinfo.available_timezones() if Path("/usr/share/zoneinfo", name).exists() and name != "Factory"
)
needs_zones = pytest.mark.skipif(not ZONES, reason="this machine has no time zones: install tzdata")


def _area(name: str) -> str:
    """Return the part of the world of a zone, as ``Europe``."""
    return name.rpartition("/")[0]


def _shown(moment: datetime) -> tuple[str, timedelta | None]:
    return moment.strftime("%Y-%m-%dT%H:%M:%S"), moment.utcoffset()


def _moments(random: Random, content: bytes) -> list[int]:
    """Return seconds since 1970: far apart, around each kind of change, and where only the file's last line tells."""
    return [
        *(random.randint(-150 * YEAR, 400 * YEAR) for _ in range(20)),
        *(random.randint(0, 100 * YEAR) for _ in range(20)),
        # around the Sundays of 2026 to 2070, at whole hours, and a second before
        *(random.randint(3000, 5200) * 7 * 86400 + 3 * 86400 + random.randint(-4, 28) * 3600 - random.randint(0, 1)
          for _ in range(60)),
        *(time + delta for time in _changes(content)[-40:] for delta in (-1, 0, 1)),
    ]  # fmt: skip


def _changes(content: bytes) -> tuple[int, ...]:
    """Return the times of a TZif file's second block."""
    *_rest, leaps, times, types, characters = struct.unpack_from(">6L", content, 20)
    ut, standard = _rest
    start = 44 + times * 5 + types * 6 + characters + leaps * 8 + ut + standard
    return struct.unpack_from(f">{struct.unpack_from('>6L', content, start + 20)[3]}q", content, start + 44)


@needs_zones
@pytest.mark.parametrize("area", in_turn(sorted({_area(name) for name in ZONES}), 5))
def test_it_says_what_zoneinfo_says(area: str) -> None:
    for name in ZONES:
        if _area(name) != area:
            continue
        content = Path("/usr/share/zoneinfo", name).read_bytes()
        theirs = zoneinfo.ZoneInfo.from_file(io.BytesIO(content))
        ours = ZoneFile(content)
        for seconds in _moments(Random(name), content):
            moment = EPOCH + timedelta(seconds=seconds)
            assert _shown(moment.astimezone(ours)) == _shown(moment.astimezone(theirs)), (name, seconds)


def _file(rule: str, offset: int = 0) -> bytes:
    """Return a file without changes, only with a rule."""
    block = struct.pack(">l?B", offset, False, 0) + b"XXX\0"
    header = struct.pack(">4sc15x6L", b"TZif", b"2", 0, 0, 0, 0, 1, 4)
    return header + block + header + block + f"\n{rule}\n".encode()


@pytest.mark.parametrize(
    "rule",
    [
        "UTC0",
        "EST5",
        "<+0330>-3:30",
        "<-0112>1:12:13",
        "CET-1CEST,M3.5.0,M10.5.0/3",
        "EST5EDT,M3.2.0,M11.1.0",
        "IST-1GMT0,M10.5.0,M3.5.0/1",
        "<-02>2<-01>,M3.5.0/-1,M10.5.0/0",
        "NZST-12NZDT,M9.5.0,M4.1.0/3",
        "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0",
        "AAA-2BBB,J60/2,J300/26",
        "AAA3BBB-1:30,59/0:30:15,J365/23",
        "AAA3BBB,0/0,59",
    ],
)
def test_posix_rules_are_read_as_by_libc(rule: str) -> None:
    ours = ZoneFile(_file(rule))
    random = Random(rule)
    moments = sorted(
        (datetime(year, 1, 1, tzinfo=timezone.utc) - EPOCH) // timedelta(seconds=1)
        + hours * 3600 + random.choice((-1, 0, 1799, 1800))
        for year in (1999, 2000, 2024, 2026, 2027, 2100)
        for hours in (*range(0, 366 * 24, 60), *(random.randint(0, 8760) for _ in range(200)))
    )  # fmt: skip
    done = run_program(sys.executable, "-c", LOCAL_TIME, stdin=json.dumps(moments), env={"TZ": rule})
    found = json.loads(done.stdout)
    assert len(found) >= len(moments) + (2 * 6 * 6 if "," in rule else 0)
    for seconds, *theirs, offset in found:
        moment = (EPOCH + timedelta(seconds=seconds)).astimezone(ours)
        assert [*moment.timetuple()[:6]] == theirs, (rule, moment)
        assert moment.utcoffset() == timedelta(seconds=offset)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"TZif",
        b"# tzdata",
        _file("UTC0")[:60],
        _file("UTC0")[:46],
        _file("EST5EDT"),
        _file("EST5EDT,M3.2.0"),
        _file("nonsense"),
        _file("UTC0").replace(b"UTC", b"\xff\xfe\xfd"),
    ],
)
def test_no_time_zone_is_a_value_error(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"not a TZif file|rule that is not supported"):
        ZoneFile(content)


@pytest.mark.parametrize("name", ["", ".", "..", "../UTC", "/etc/localtime", "Europe/../UTC", "a\0b", "UTC\n", "x//y"])
def test_only_names_of_zones_are_looked_up(name: str) -> None:
    with pytest.raises(ValueError, match="not a name"):
        load(name)


@pytest.mark.parametrize("name", ["Europe", "Europe/Nowhere", "x" * 5000])
def test_a_zone_that_is_not_there(name: str) -> None:
    with pytest.raises(OSError, match=r"Europe|xxx"):
        load(name)
