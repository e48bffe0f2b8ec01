# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Calendar fields as integer arithmetic, against the functions that the engine evaluates."""

from __future__ import annotations

from calendar import isleap
from datetime import date, datetime, timezone
from typing import Any

import pytest
import z3  # type: ignore[import-untyped]  # has no types
from forewarn.analysis.smt.encode.problem import Problem
from forewarn.analysis.smt.encode.times import ACCESSORS, accessor, duration_field, transitions
from forewarn.analysis.smt.terms import conj, disj, is_constant, neg, same
from forewarn.policy.evaluation_error import EvaluationError
from forewarn.policy.functions.table import FUNCTIONS
from forewarn.policy.functions.timevalues import MAX_TIMESTAMP, MIN_TIMESTAMP, SECOND
from hypothesis import given
from hypothesis import strategies as st
from tools.judges.smt_facts import Facts
from tools.suite.sizes import enough

HOUR, DAY = 3600 * SECOND, 86_400 * SECOND
ZONES = ("Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Pacific/Apia", "Australia/Lord_Howe")
OFFSETS = ("+14:00", "-12:00", "+00:01")


def moment(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=timezone.utc).timestamp()) * SECOND


FIRST, LAST = moment("2000-01-01"), moment("2100-01-01")  # between them zones are exact
DAYS = [
    moment(f"{year:04}-{day}")
    for year in (1, 4, 99, 100, 400, 1600, 1700, 1900, 1970, 1999, 2000, 2001, 2004, 2023, 2026, 2100, 2399, 2400, 9999)
    for day in ("01-01", "01-31", "02-28", "03-01", "04-30", "06-15", "10-31", "12-30", "12-31")
] + [moment(f"{year:04}-02-29") for year in (4, 400, 1600, 1972, 2000, 2024, 2400)]
TIMES = sorted(
    min(max(day + step, MIN_TIMESTAMP), MAX_TIMESTAMP)
    for day in (*DAYS, MIN_TIMESTAMP, MAX_TIMESTAMP)
    for step in (0, -1, 1, 13 * HOUR + 59 * 60 * SECOND + 59 * SECOND + 987_654_321, DAY - 1)
)


def evaluated(function: str, *values: Any) -> Any:
    """Return the engine's value, None if there is none."""
    try:
        return FUNCTIONS[function](*values)
    except EvaluationError:
        return None


@pytest.mark.parametrize("function", sorted(ACCESSORS))
def test_a_field_of_a_time(function: str) -> None:
    problem = Problem()
    for zone in (None, "UTC", *OFFSETS):
        for time in (*TIMES, *(range(moment("1600-01-01"), moment("2001-01-01"), 97 * DAY) if zone is None else ())):
            found = accessor(problem, function, time, zone)
            expected = evaluated(function, time) if zone is None else evaluated(function, time, zone)
            assert (None if found.error else found.value) == expected, (time, zone)


def test_the_day_of_the_year_of_every_day() -> None:
    problem, first = Problem(), datetime(1970, 1, 1, tzinfo=timezone.utc).toordinal()
    every = enough(1) > 0  # of all years; otherwise of 400, after which the calendar repeats, and a few of the others
    for year in range(1, 10_000):
        begin = date(year, 1, 1).toordinal()
        days = 366 if isleap(year) else 365
        for day in range(days) if every or 1900 <= year < 2300 else (0, 31, 58, 59, 60, days - 1):
            found = accessor(problem, "day_of_year", (begin + day - first) * DAY, None)
            assert found == (day, False), (year, day)


@pytest.mark.parametrize("zone", ZONES)
def test_a_field_of_a_local_time(zone: str) -> None:
    problem = Problem()
    changes = [seconds * SECOND for seconds, _offset in transitions(zone)[:: max(1, len(transitions(zone)) // 20)]]
    times = {*TIMES, FIRST, LAST - 1, *changes, *(one - 1 for one in changes[1:]), *(one + 1 for one in changes)}
    for function in ("hours", "minutes", "day_of_month", "day_of_year"):
        for time in times:
            found = accessor(problem, function, time, zone)
            if FIRST <= time < LAST:
                assert (found.value, found.error) == (evaluated(function, time, zone), False), time
            else:
                assert not is_constant(found.value), time


@pytest.mark.parametrize("zone", [*ZONES, "Africa/Casablanca"])
def test_an_offset_changes_when_the_zone_says_so(zone: str) -> None:
    changes = transitions(zone)
    assert changes[0][0] * SECOND == FIRST
    for (before, offset), (seconds, other) in zip(changes, changes[1:]):
        assert before < seconds
        assert offset != other
        for time, expected in ((seconds - 1, offset), (seconds, other)):
            hours = evaluated("hours", time * SECOND, zone)
            assert hours == (time + expected) % 86_400 // 3600, (zone, time)


def test_local_time_outside_exact_years_is_free() -> None:
    problem = Problem()
    for time, may_fail in (
        *((MIN_TIMESTAMP, True), (MIN_TIMESTAMP + 2 * DAY - 1, True), (MIN_TIMESTAMP + 2 * DAY, False)),
        *((FIRST - 1, False), (LAST, False), (MAX_TIMESTAMP // SECOND * SECOND - 2 * DAY, False)),
        *((MAX_TIMESTAMP // SECOND * SECOND - 2 * DAY + SECOND, True), (MAX_TIMESTAMP, True)),
    ):
        found = accessor(problem, "hours", time, "Europe/Berlin")
        assert z3.is_const(found.value), time
        assert (found.error is not False) is may_fail, time
    assert "a time before 2000 or after 2099 in Europe/Berlin" in problem.opaque


def test_unknown_time_has_a_value_in_each_zone() -> None:
    problem = Problem()
    now = problem.integer("now")
    solver = z3.SimpleSolver(ctx=problem.context)
    solver.add(now == moment("2026-07-01"))
    for zone, expected in (("Europe/Berlin", 2), ("America/New_York", 20), ("UTC", 0), ("+05:30", 5)):
        found = accessor(problem, "hours", now, zone)
        solver.add(problem.facts)
        assert found.error is False or solver.check(found.error) == z3.unsat
        assert solver.check(found.value != expected) == z3.unsat, zone


@pytest.mark.parametrize(
    ("low", "high", "exact"),
    [
        (FIRST, LAST - 1, True),
        (FIRST - 1, LAST - 1, False),
        (FIRST, LAST, False),
        (moment("2020-01-01"), moment("2060-01-01"), True),
    ],
)
def test_time_within_exact_years_has_exact_values(low: int, high: int, exact: bool) -> None:
    problem = Problem()
    time = problem.integer("time", low, high)
    problem.note_range(time, low, high)
    for zone in ("Europe/Berlin", "America/New_York"):
        found = accessor(problem, "hours", time, zone)
        assert (not problem.opaque) is exact
        facts = Facts(problem)
        for one in (low, (low + high) // 2, high) if exact else ():
            assert facts.certain(conj((neg(found.error), found.value == evaluated("hours", one, zone))), time == one)


@pytest.mark.parametrize("zone", [None, "-12:00", "Europe/Berlin", "Australia/Lord_Howe"])
@given(st.data())
def test_unknown_time_has_the_evaluators_fields(zone: str | None, data: st.DataObject) -> None:
    """Whatever range is known of it: a narrow one makes constants of divisions."""
    first, last = (FIRST, LAST - 1) if zone in ZONES else (MIN_TIMESTAMP + 2 * DAY, MAX_TIMESTAMP - 2 * DAY)
    times = st.integers(first, last) | st.sampled_from([time for time in TIMES if first <= time <= last])
    begin = data.draw(times)
    steps = st.sampled_from([0, 1, SECOND, HOUR, DAY, 40 * DAY, 4000 * DAY, 40_000 * DAY, last])
    found = sorted({begin, min(last, begin + data.draw(steps)), min(last, begin + data.draw(steps))})
    problem = Problem()
    time = problem.integer("time", found[0], found[-1])
    problem.note_range(time, found[0], found[-1])
    fields = {function: accessor(problem, function, time, zone) for function in sorted(ACCESSORS)}
    solver = z3.SimpleSolver(ctx=problem.context)
    solver.add(problem.facts)
    for one in found:
        solver.push()
        solver.add(time == one)
        assert solver.check() == z3.sat
        for function, (value, error) in fields.items():
            expected = evaluated(function, one) if zone is None else evaluated(function, one, zone)
            wrong = disj((error, neg(same(value, expected))))
            assert wrong is False or solver.check(wrong) == z3.unsat, (function, one)
        solver.pop()


def test_unknown_zone_is_an_error() -> None:
    for function in ACCESSORS:
        assert accessor(Problem(), function, 0, "Europe/Nowhere").error is True


@pytest.mark.parametrize("function", ["duration_hours", "duration_minutes", "duration_seconds"])
def test_a_field_of_a_duration(function: str) -> None:
    for value in (0, 1, SECOND - 1, SECOND, 61 * SECOND, HOUR - 1, HOUR, 25 * HOUR + 1):
        for duration in (value, -value):
            found = duration_field(function, duration)
            assert (found.value, found.error) == (FUNCTIONS[function](duration), False), duration


@pytest.mark.parametrize(("time", "may_fail"), [(MIN_TIMESTAMP, True), (MAX_TIMESTAMP, True), (FIRST - 1, False)])
def test_extreme_local_time_may_fail(time: int, may_fail: bool) -> None:
    problem = Problem()
    found = accessor(problem, "hours", problem.integer("time"), "Europe/Berlin")
    facts = Facts(problem)
    here = problem.integer("time") == time
    assert facts.possible(here, found.error) == may_fail
    assert facts.possible(here, neg(found.error))
