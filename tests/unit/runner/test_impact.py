# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cost of pauses and reboots, by our own clocks."""

from __future__ import annotations

import pytest
from forewarn.runner.clocks import Clocks, Stamp
from forewarn.runner.impact import THRESHOLD_SECONDS, downtime, paused_seconds
from forewarn.runner.telemetry.heartbeat import Beat
from hypothesis import given
from hypothesis import strategies as st
from tools.fixtures.clocks import ManualClocks


def waited(clocks: ManualClocks, asked: float, ran: float, slept: float = 0.0, step: float = 0.0) -> float | None:
    def wait(seconds: float) -> None:
        assert seconds == max(0.0, asked)
        clocks.now += ran
        clocks.slept += slept
        clocks.wall_offset += step

    return paused_seconds(clocks, wait, asked)


LATE = THRESHOLD_SECONDS + 0.01


@pytest.mark.parametrize(
    ("asked", "changes", "pause"),
    [
        (1.0, {"ran": 1.0}, None),
        (1.0, {"ran": 1.0 + THRESHOLD_SECONDS - 0.01}, None),
        (1.0, {"ran": 5.8}, 4.8),
        (1.0, {"ran": 1.0 + LATE}, LATE),
        (60.0, {"ran": 0.2}, None),  # it ended early
        # Suspended: the boot clock shows it. The timer of the wait may have run on, so that it ended at once.
        (1.0, {"ran": 1.0, "slept": 4.8}, 4.8),
        (10.0, {"ran": 3.0, "slept": 7.0}, 7.0),
        (10.0, {"ran": 0.5, "slept": 5.0}, 5.0),
        # Both
        (1.0, {"ran": 3.0, "slept": 3.0}, 5.0),
        (1.0, {"ran": 1.3, "slept": 0.3}, 0.6),
        # A wall clock that is set is no pause.
        (1.0, {"ran": 1.0, "step": 3600.0}, None),
        (1.0, {"ran": 5.8, "step": -3600.0}, 4.8),
        # A tick that is overdue needs no wait.
        (-3.0, {"ran": 0.0}, None),
        (-3.0, {"ran": 2.0}, 2.0),
    ],
    ids=str,
)
def test_pause_is_the_time_beyond_the_wait(
    clocks: ManualClocks, asked: float, changes: dict[str, float], pause: float | None
) -> None:
    assert waited(clocks, asked, **changes) == (None if pause is None else pytest.approx(pause))


class CoarseClocks(ManualClocks):
    """Clocks that tick."""

    def __init__(self, granularity: float) -> None:
        self.granularity = granularity
        super().__init__()

    def monotonic(self) -> float:
        return self.now - self.now % self.granularity

    def boottime(self) -> float:
        return super().boottime() - super().boottime() % self.granularity


@given(
    granularity=st.sampled_from([0.001, 0.004, 0.0156, 0.1]),
    start=st.floats(0, 1000),
    asked=st.floats(0, 60),
    pause=st.floats(0, 100),
)
def test_coarse_clocks_make_no_pause_and_hide_none(
    granularity: float, start: float, asked: float, pause: float
) -> None:
    clocks = CoarseClocks(granularity)
    clocks.now += start
    found = waited(clocks, asked, asked + pause)
    if pause <= THRESHOLD_SECONDS - granularity - 0.001:
        assert found is None
    if pause >= THRESHOLD_SECONDS + granularity + 0.001:
        assert found == pytest.approx(pause, abs=granularity + 0.001)


def test_real_clocks_show_no_pause() -> None:
    assert paused_seconds(Clocks(), lambda _seconds: None, 0.0) is None


# Down


def beat(clocks: ManualClocks) -> Beat:
    return Beat(clocks.stamp(), {})


def test_a_reboot_is_measured_from_the_last_beat(clocks: ManualClocks) -> None:
    last = beat(clocks)
    clocks.now += 0.7
    clocks.reboot(down=61.3, up=30.0)
    assert downtime(last, clocks) == pytest.approx(92.0)


def test_a_restart_of_the_runner_is_no_downtime(clocks: ManualClocks) -> None:
    last = beat(clocks)
    clocks.now += 500.0
    assert downtime(last, clocks) is None


def test_wall_clock_step_is_no_downtime(clocks: ManualClocks) -> None:
    last = beat(clocks)
    clocks.wall_offset += 3600.0
    assert downtime(last, clocks) is None


def test_downtime_after_a_clock_step_is_since_boot(clocks: ManualClocks) -> None:
    last = beat(clocks)
    clocks.reboot(down=60.0, up=30.0)
    clocks.wall_offset -= 3600.0
    assert downtime(last, clocks) == 30.0


def test_what_cannot_be_known_is_no_downtime(clocks: ManualClocks) -> None:
    assert downtime(None, clocks) is None
    assert downtime(Beat(Stamp(0.0, 0.0, ""), {}), clocks) is None
    last = beat(clocks)
    clocks.boot_id = ""
    assert downtime(last, clocks) is None
