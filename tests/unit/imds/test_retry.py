# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When the next attempt is due, and how it is reported."""

from __future__ import annotations

from itertools import pairwise

import pytest
from forewarn.imds import errors
from forewarn.imds.errors import Fault, LastingFault, PassingFault
from forewarn.imds.retry import (
    JITTER,
    LONGEST_DELAY_SECONDS,
    FaultLog,
    RetryPolicy,
)
from hypothesis import given
from hypothesis import strategies as st
from tools.fixtures.clocks import ManualClocks


def passing(retry_after: float | None = None, status: int = 503) -> PassingFault:
    return PassingFault(f"answered {status}.", kind=errors.HTTP, status=status, retry_after=retry_after)


LASTING = LastingFault("answered 403.", kind=errors.HTTP, status=403)


def test_delays_double_up_to_a_limit() -> None:
    policy = RetryPolicy(clock=ManualClocks().monotonic, chance=lambda: 0.0)
    delays = [policy.record_failure(passing()) - 1000 for _ in range(7)]
    assert delays == [1, 2, 4, 5, 5, 5, 5]
    assert policy.failures == 7


def test_success_starts_over() -> None:
    policy = RetryPolicy(clock=ManualClocks().monotonic, chance=lambda: 0.0)
    assert policy.next_attempt_at is None
    policy.record_failure(passing())
    policy.record_failure(passing())
    policy.record_success()
    assert (policy.failures, policy.next_attempt_at) == (0, None)
    assert policy.record_failure(passing()) == 1001


@given(st.lists(st.tuples(st.floats(0, 0.999), st.one_of(st.none(), st.floats(0, 1e9))), min_size=1, max_size=50))
def test_every_delay_is_within_its_bounds(failures: list[tuple[float, float | None]]) -> None:
    clocks = ManualClocks()
    draws = iter([chance for chance, _ in failures])
    policy = RetryPolicy(clock=clocks.monotonic, chance=lambda: next(draws))
    for _, retry_after in failures:
        due = policy.record_failure(passing(retry_after))
        assert due == policy.next_attempt_at
        asked = min(retry_after or 0, LONGEST_DELAY_SECONDS)
        assert max(1 - JITTER, asked) <= due - clocks.now + 1e-9
        assert due - clocks.now <= LONGEST_DELAY_SECONDS + 1e-9
        clocks.now = due


def test_a_day_of_failures_changes_nothing() -> None:
    policy = RetryPolicy(clock=ManualClocks().monotonic, chance=lambda: 0.0)
    for _ in range(20_000):
        due = policy.record_failure(passing())
    assert due == 1005


def test_lasting_fault_is_retried_but_given_up() -> None:
    policy = RetryPolicy(clock=ManualClocks().monotonic, chance=lambda: 0.0)
    assert policy.record_failure(LASTING) == 1000 + LONGEST_DELAY_SECONDS
    assert policy.is_exhausted(LASTING)


@pytest.mark.parametrize(("patience", "gives_up"), [(0.0, True), (0.9, True), (1.0, False), (60.0, False)])
def test_no_attempt_starts_after_the_deadline(patience: float, gives_up: bool) -> None:
    policy = RetryPolicy(1000 + patience, clock=ManualClocks().monotonic, chance=lambda: 0.0)
    fault = passing()
    policy.record_failure(fault)
    assert policy.is_exhausted(fault) is gives_up


def test_passing_fault_without_a_deadline_is_never_final() -> None:
    policy = RetryPolicy(clock=ManualClocks().monotonic)
    for _ in range(100):
        policy.record_failure(passing())
    assert not policy.is_exhausted(passing())


def test_log_has_a_line_per_changed_fault() -> None:
    lines: list[str] = []
    clocks = ManualClocks()

    def over(failures: int, seconds: float) -> None:
        lines.append(f"over after {failures} in {seconds:g} s")

    log = FaultLog(lambda fault: lines.append(str(fault)), over, clocks.monotonic)
    log.record_success()
    faults: list[Fault] = [passing(), passing(), passing(status=404), passing(status=404), passing(), LASTING, LASTING]
    for fault in faults:
        log.record_failure(fault)
        clocks.now += 10
    log.record_success()
    log.record_success()
    assert lines == [
        "answered 503.",
        "answered 404.",
        "answered 503.",
        "answered 403.",
        "over after 7 in 70 s",
    ]
    log.record_failure(passing())
    log.record_success()
    assert lines[-2:] == ["answered 503.", "over after 1 in 0 s"]
    assert all(one != other for one, other in pairwise(lines))
