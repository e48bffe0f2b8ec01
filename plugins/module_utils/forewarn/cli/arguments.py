# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values of options, for argparse. Each function raises argparse.ArgumentTypeError for a text that it cannot read."""

from __future__ import annotations

import argparse
import re
from typing import NamedTuple

from ..events import parse_time
from ..policy.functions.timevalues import SECOND, parse_duration

_SPAN = re.compile(r"(\d{1,6})([smhd])", re.ASCII)
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_TIME = re.compile(r"(\d{4}-\d{2}-\d{2})(?:T(\d{2}:\d{2})(:\d{2})?(Z|[+-]\d{2}:\d{2})?)?", re.ASCII)


class Since(NamedTuple):
    """The begin of a time that ends now: ``back`` seconds ago, or the ``moment``, in seconds since 1970."""

    back: float | None
    moment: float | None

    def start(self, now: float) -> float:
        """Return the begin, in seconds since 1970; ``now`` is likewise."""
        return now - (self.back or 0.0) if self.moment is None else self.moment


def since(text: str) -> Since:
    """Read a span (90m, 2h, 3d), or a time in UTC (2026-11-01, 2026-11-01T10:00Z)."""
    span = _SPAN.fullmatch(text)
    if span:
        return Since(int(span.group(1)) * _UNITS[span.group(2)], None)
    time = _TIME.fullmatch(text)
    try:
        if time is None:
            raise ValueError
        date, minutes, seconds, zone = time.groups()
        moment = parse_time(f"{date}T{minutes or '00:00'}{seconds or ':00'}{zone or 'Z'}")
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither a span (90m, 2h, 3d) nor a time (2026-11-01, 2026-11-01T10:00Z)"
        ) from None
    return Since(None, moment.timestamp())


def duration(text: str) -> float:
    """Read a duration such as 1h30m, in the syntax of CEL; return seconds, 0 or more."""
    try:
        seconds = parse_duration(text) / SECOND
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    if seconds < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is negative")
    return seconds


def count(text: str) -> int:
    """Read a whole number from 1 up."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 on")
    return int(text)
