# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The request budget: what no order of requests and waits may break, on a clock of the test's own."""

from __future__ import annotations

import pytest
from forewarn.imds.limiter import CAPACITY, READ_RESERVE, REFILL_PER_SECOND, Limiter
from hypothesis import given
from hypothesis import strategies as st
from tools.fixtures.clocks import ManualClocks

# What a caller can do: wait, try to send a read or an approval, or wait exactly for the given delay and then send.
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["read", "approve", "patient read", "patient approve"]),
        st.one_of(st.just(0.0), st.floats(0, 3), st.floats(0, 100)),
    ),
    max_size=60,
)


def sent_at(steps: list[tuple[str, float]]) -> list[float]:
    """Follow the steps and return when requests were sent."""
    clocks = ManualClocks()
    limiter = Limiter(clock=clocks.monotonic)
    times = []
    for what, wait in steps:
        clocks.now += wait
        reserve = READ_RESERVE if what.endswith("read") else 0.0
        if what.startswith("patient"):
            clocks.now += limiter.delay(reserve=reserve)
            assert limiter.take(reserve=reserve), "who waited as long as told is let through"
            times.append(clocks.now)
        elif limiter.take(reserve=reserve):
            times.append(clocks.now)
    return times


@given(STEPS)
def test_rate_allows_five_then_one_per_second(steps: list[tuple[str, float]]) -> None:
    times = sent_at(steps)
    for first, begin in enumerate(times):
        for last in range(first, len(times)):
            count = last - first + 1
            span = times[last] - begin
            assert count <= CAPACITY + REFILL_PER_SECOND * span + 1e-6
            if span < 1 - 1e-6:
                assert count <= 5


@given(STEPS)
def test_reads_always_leave_a_token_for_an_approval(steps: list[tuple[str, float]]) -> None:
    clocks = ManualClocks()
    limiter = Limiter(clock=clocks.monotonic)
    for _, wait in steps:
        clocks.now += wait
        limiter.take(reserve=READ_RESERVE)
        assert limiter.delay() == 0


@given(STEPS)
def test_the_delay_is_no_longer_than_needed(steps: list[tuple[str, float]]) -> None:
    clocks = ManualClocks()
    limiter = Limiter(clock=clocks.monotonic)
    for _, wait in steps:
        clocks.now += wait
        delay = limiter.delay(reserve=READ_RESERVE)
        assert 0 <= delay <= 2 / REFILL_PER_SECOND
        if delay > 1e-6:
            clocks.now += delay * 0.99
            assert not limiter.take(reserve=READ_RESERVE)
        limiter.take(reserve=READ_RESERVE)


def test_full_bucket_allows_a_burst() -> None:
    clocks = ManualClocks()
    limiter = Limiter(clock=clocks.monotonic)
    assert [limiter.take() for _ in range(6)] == [True] * 5 + [False]
    assert limiter.delay() == pytest.approx(1)
    clocks.now += 1
    assert [limiter.take(), limiter.take()] == [True, False]


def test_polling_once_a_second_never_waits() -> None:
    clocks = ManualClocks()
    limiter = Limiter(clock=clocks.monotonic)
    for _ in range(1000):
        assert limiter.take(reserve=READ_RESERVE)
        clocks.now += 1


def test_a_token_comes_back_in_a_second() -> None:
    clocks = ManualClocks()
    limiter = Limiter(clock=clocks.monotonic)
    assert limiter.tokens == limiter.capacity
    limiter.take()
    assert limiter.tokens == limiter.capacity - 1
    clocks.now += 0.5
    assert limiter.tokens < limiter.capacity
    clocks.now += 0.6
    assert limiter.tokens == limiter.capacity


def test_a_clock_that_steps_back_gives_nothing_away() -> None:
    clocks = ManualClocks()
    limiter = Limiter(clock=clocks.monotonic)
    for _ in range(5):
        limiter.take()
    clocks.now -= 100
    assert limiter.delay() == pytest.approx(1)
