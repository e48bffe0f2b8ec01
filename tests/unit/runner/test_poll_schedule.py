# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from forewarn.imds.limiter import Limiter
from forewarn.runner.poll_schedule import STRETCH, PollSchedule
from hypothesis import given
from hypothesis import strategies as st
from tools.fixtures.clocks import ManualClocks


def _schedule(clocks: ManualClocks, limiter: Limiter | None = None) -> PollSchedule:
    return PollSchedule(1.0, limiter or Limiter(clock=clocks.monotonic), clocks.monotonic)


def _next_at(clocks: ManualClocks, schedule: PollSchedule) -> float:
    return clocks.now + schedule.due_in()


def test_the_first_poll_is_at_once(clocks: ManualClocks) -> None:
    assert _schedule(clocks).due_in() == 0


@given(st.lists(st.floats(0.0, 0.9), min_size=1, max_size=50))
def test_ticks_do_not_drift_whatever_a_poll_takes(durations: list[float]) -> None:
    clocks = ManualClocks()
    schedule = _schedule(clocks)
    for number, duration in enumerate(durations, 1):
        clocks.now = _next_at(clocks, schedule) + duration  # no request: the budget stays full
        schedule.request_done()
        assert _next_at(clocks, schedule) == pytest.approx(1000 + number)


@pytest.mark.parametrize(("late", "following"), [(1.0, 1002), (2.3, 1003), (3600.0, 4601), (3599.999, 4600)])
def test_missed_ticks_are_skipped_not_bunched(clocks: ManualClocks, late: float, following: float) -> None:
    schedule = _schedule(clocks)
    clocks.now += late
    schedule.request_done()
    assert _next_at(clocks, schedule) == pytest.approx(following)
    assert 0 < schedule.due_in() <= 1


@pytest.mark.parametrize("soon_first", [True, False])
def test_poll_follows_the_request_in_flight(clocks: ManualClocks, soon_first: bool) -> None:
    limiter = Limiter(clock=clocks.monotonic)
    schedule = _schedule(clocks, limiter)
    while limiter.take():
        pass
    for note in (schedule.poll_soon, schedule.request_done)[:: 1 if soon_first else -1]:
        note()
    assert schedule.due_in() == pytest.approx(limiter.delay())
    schedule.request_done()
    assert _next_at(clocks, schedule) > clocks.now + 1, "soon once only"


def _poll(clocks: ManualClocks, schedule: PollSchedule, limiter: Limiter, requests: int = 1) -> None:
    """Poll with ``requests`` requests, a millisecond after the tick, as in record."""
    clocks.now = _next_at(clocks, schedule) + 0.001
    for _ in range(requests):
        assert limiter.take()
    clocks.now += 0.003
    schedule.request_done()


def test_ticks_stretch_after_an_approval_within_the_budget(clocks: ManualClocks) -> None:
    limiter = Limiter(clock=clocks.monotonic)
    schedule = _schedule(clocks, limiter)
    starts = []
    for number in range(200):
        starts.append(_next_at(clocks, schedule))
        _poll(clocks, schedule, limiter, 3 if number == 10 else 1)
    gaps = [later - earlier for earlier, later in zip(starts, starts[1:])]
    assert gaps[:10] == pytest.approx([1.0] * 10)
    assert gaps[10] == pytest.approx(STRETCH)
    assert max(gaps) <= STRETCH + 1e-6
    stretched = [gap for gap in gaps if gap > 1.01]
    assert len(stretched) == pytest.approx(2 / (STRETCH - 1), abs=4)
    assert gaps[-1] == pytest.approx(1.0)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=100))
def test_the_average_is_kept_whatever_is_approved(approvals: list[int]) -> None:
    clocks = ManualClocks()
    limiter = Limiter(clock=clocks.monotonic)
    schedule = _schedule(clocks, limiter)
    sent = 0
    for wanted in approvals:
        clocks.now = _next_at(clocks, schedule)
        sent += limiter.take(reserve=1)
        sent += sum(limiter.take() for _ in range(wanted))
        schedule.request_done()
        assert sent <= 5 + (clocks.now - 1000.0) + 1e-6
