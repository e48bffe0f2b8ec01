# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values of the dimensions of the event space: a short list that stands for all that policies distinguish.

Ordered values (numbers, durations, times) are cut where an expression compares them, so that no comparison
distinguishes two values of one interval. Where expressions compare dimensions with each other, each interval offers as
many representatives as there are such dimensions: every order of them then occurs.
"""

from __future__ import annotations

import itertools
import math
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ...policy.functions.standard import INT_MAX, INT_MIN
from ...policy.functions.timevalues import (
    MAX_DURATION,
    MAX_TIMESTAMP,
    MIN_DURATION,
    MIN_TIMESTAMP,
    SECOND,
    format_duration,
    format_timestamp,
)

MICROSECOND = 1_000  # ns; finer than that no time reaches an expression
LONGEST = 100 * 365 * 24 * 3600 * SECOND  # of a notice or an age: longer ones are not analysed
MAX_DOUBLE = sys.float_info.max  # no parameter is infinite, or NaN
ORDERED = ("int", "double", "duration", "timestamp")
_WORD = re.compile(r"[\w.:/@+-]+")
RANGES: Mapping[str, tuple[Any, Any]] = {
    "int": (INT_MIN, INT_MAX),
    "double": (-MAX_DOUBLE, MAX_DOUBLE),
    "duration": (MIN_DURATION, MAX_DURATION),
    "timestamp": (MIN_TIMESTAMP, MAX_TIMESTAMP),
}
_ENDS = {**RANGES, "duration": (-LONGEST, LONGEST)}  # which are not written


class _Missing:
    def __repr__(self) -> str:
        return "missing"


MISSING: Any = _Missing()  # a field, tag or fact that is not there


class DomainValue(NamedTuple):
    """One representative. ``concrete`` is what the evaluator sees, MISSING for nothing; ``label`` is for people.

    Of ordered dimensions, ``low`` and ``high`` are the interval, both included, None for no bound. ``normal`` is False
    for what the service, by its documentation, does not send, though such an event is not refused.
    """

    label: str
    concrete: Any
    normal: bool = True
    low: Any = None
    high: Any = None

    @property
    def interval(self) -> bool:
        """Whether the value stands for an interval of more than one."""
        return self.low is None or self.high is None or self.low != self.high


def texts(
    known: Iterable[str],
    literals: Iterable[str],
    missing: bool | None,
    literal: bool = True,
    other: bool = True,
    name: str = "Other",
) -> tuple[DomainValue, ...]:
    """Return the values of a text: the known ones, those compared with, any other one, and MISSING.

    ``missing`` is whether its absence is normal, None if it cannot be absent; ``literal`` and ``other`` likewise.
    ``name`` is the text of any other one.
    """
    known = tuple(known)
    values = [DomainValue(quoted(text), text) for text in known]
    further = sorted(set(literals) - set(known))
    values += [DomainValue(quoted(text), text, literal) for text in further]
    taken = {text.lower() for text in (*known, *further)}
    further_one = next(one for one in _others(name) if one.lower() not in taken)
    values.append(DomainValue("any other", further_one, other))
    if missing is not None:
        values.append(DomainValue("missing", MISSING, missing))
    return tuple(values)


def quoted(text: str) -> str:
    """Write a text as people do: in quotes where it could be taken for our own words."""
    return text if _WORD.fullmatch(text) and text != "missing" else repr(text)


def _others(name: str) -> Iterator[str]:
    yield name
    for number in itertools.count(2):
        yield f"{name}{number}"


def after(value: Any) -> Any:
    """Return the next value: where an interval begins that a comparison with ``value`` ends."""
    return math.nextafter(value, math.inf) if isinstance(value, float) else value + 1


def _before(value: Any) -> Any:
    return math.nextafter(value, -math.inf) if isinstance(value, float) else value - 1


def intervals(kind: str, cuts: Iterable[Any], low: Any, high: Any, slots: int, fine: bool) -> tuple[DomainValue, ...]:
    """Return the values of an ordered dimension between ``low`` and ``high`` (None: no bound).

    A cut is where a new interval begins. ``slots`` is how many dimensions are compared with each other; ``fine`` says
    that the dimension may have any value, not only whole microseconds (a parameter of type duration).
    """
    starts = sorted(cut for cut in set(cuts) if (low is None or cut > low) and (high is None or cut <= high))
    values = []
    for start, following in zip([low, *starts], [*starts, None]):
        end = high if following is None else _before(following)
        found = _pick(kind, start, end, slots)
        if not found and fine:
            found = [start]
        label = _range(kind, start, end)
        for one in found:
            shown = label if len(found) == 1 else f"{label} ({show(kind, one)})"
            values.append(DomainValue(shown, one, True, start, end))
    return tuple(values)


def show(kind: str, value: Any) -> str:
    """Write a value as people do."""
    if kind == "string":
        return quoted(value)
    if kind == "duration":
        return duration_text(value)
    return format_timestamp(value) if kind == "timestamp" else str(value)


def duration_text(value: int) -> str:
    """Write a duration with the units that people use: ``1h30m``, ``-5s``, ``0s``."""
    seconds, rest = divmod(abs(value), SECOND)
    if rest or not seconds:
        return format_duration(value)
    parts = ((seconds // 3600, "h"), (seconds // 60 % 60, "m"), (seconds % 60, "s"))
    return ("-" if value < 0 else "") + "".join(f"{count}{unit}" for count, unit in parts if count)


def _range(kind: str, low: Any, high: Any) -> str:
    if low is not None and low == high:
        return show(kind, low)
    first, last = _ENDS.get(kind, (None, None))
    low, high = None if low == first else low, None if high == last else high
    if kind in ("duration", "timestamp"):
        return _span(kind, low, high)
    if high is None:
        return "any" if low is None else f"{show(kind, low)}.."
    return f"..{show(kind, high)}" if low is None else f"{show(kind, low)}..{show(kind, high)}"


def _span(kind: str, low: Any, high: Any) -> str:
    """Write bounds in round numbers: below 5m, not up to 299.999999999 s."""
    words = []
    if low is not None and not (kind == "duration" and low == 0 and high is not None):
        words.append(f"above {show(kind, low - 1)}" if low % SECOND == 1 else f"{show(kind, low)} or more")
    if high is not None:
        words.append(f"below {show(kind, high + 1)}" if high % SECOND == SECOND - 1 else f"at most {show(kind, high)}")
    return " and ".join(words) or "any"


def merged_range(kind: str, values: Sequence[DomainValue]) -> str:
    """Return adjacent intervals, in order, as one."""
    return _range(kind, values[0].low, values[-1].high)


def _pick(kind: str, low: Any, high: Any, count: int) -> list[Any]:
    """Return up to ``count`` values of an interval, in ascending order, that are easy to read."""
    low = None if low == _ENDS[kind][0] else low
    if kind == "double":
        return _pick_doubles(low, None if high == MAX_DOUBLE else high, count)
    steps = [1]
    if kind in ("duration", "timestamp"):
        steps = [60 * SECOND, SECOND, SECOND // 10, SECOND // 1000, MICROSECOND]
    found: list[Any] = []
    for step in steps:
        if low is None:
            top = 0 if high is None else high // step * step
            found = [top - step * place for place in range(count)][::-1]
        else:
            first = -(-low // step) * step
            if count == 1 and kind == "int" and low == 0:
                first = 5  # for example seconds: 0 means no interruption and would be a poor example
            if count == 1 and kind == "duration" and low == 0 and (high is None or high > step):
                first = step
            found = [first + step * place for place in range(count)]
            while first > low and found and high is not None and found[-1] > high:
                first -= step
                found = [value - step for value in found]
            found = [value for value in found if value >= low and (high is None or value <= high)]
        if len(found) == count:
            break
    return found


def _pick_doubles(low: Any, high: Any, count: int) -> list[Any]:
    if low is None and high is None:
        return [float(place) for place in range(count)]
    if low is None:
        return [high - place for place in range(count)][::-1]
    if high is None:
        return [low + place for place in range(count)]
    found = sorted({low + (high - low) * place / count for place in range(count)})
    return [value for value in found if low <= value <= high]
