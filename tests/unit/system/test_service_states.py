# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import itertools

import pytest
from forewarn.system.windows import service_states
from forewarn.system.windows.service_states import (
    RUNNING,
    START_PENDING,
    STOP_PENDING,
    STOPPED,
    ServiceStates,
    StatusReport,
)
from tools.fixtures.clocks import ManualClocks

STEPS = ("starting", "running", "stopping", "stopped", "tick")
STOP, SHUTDOWN, PARAMCHANGE, PRESHUTDOWN = 0x1, 0x4, 0x8, 0x100


class ServiceManager:
    """Hears what the service control manager would, and judges it by the rules of SetServiceStatus."""

    def __init__(self) -> None:
        self.clocks = ManualClocks(1000.0)
        self.heard: list[StatusReport] = []
        self.states = ServiceStates(self._hear, self.clocks.monotonic)

    def _hear(self, report: StatusReport) -> None:
        if self.heard:
            before = self.heard[-1]
            order = (START_PENDING, RUNNING, STOP_PENDING, STOPPED)
            assert order.index(report.state) >= order.index(before.state)
            if report.state == before.state:
                assert report.checkpoint > before.checkpoint
        pending = report.state in (START_PENDING, STOP_PENDING)
        assert (report.checkpoint > 0) == (report.hint_milliseconds > 0) == pending
        assert (report.accepted != 0) == (report.state == RUNNING)
        self.heard.append(report)

    def take(self, step: str) -> None:
        if step == "stopped":
            self.states.stopped(0)
        else:
            getattr(self.states, step)()


@pytest.mark.parametrize("steps", [*itertools.permutations(STEPS)], ids=" ".join)
def test_no_order_of_steps_goes_back(steps: tuple[str, ...]) -> None:
    manager = ServiceManager()
    for step in steps:
        manager.take(step)
    assert manager.heard[-1].state == STOPPED


def test_service_reports_from_start_to_end() -> None:
    manager = ServiceManager()
    for step in ("starting", "tick", "tick", "running", "tick", "running", "stopping", "tick", "stopping", "stopped"):
        manager.take(step)
    seen = [(report.state, report.checkpoint) for report in manager.heard]
    pending = [(START_PENDING, number) for number in (1, 2, 3)]
    assert seen == [*pending, (RUNNING, 0), (STOP_PENDING, 1), (STOP_PENDING, 2), (STOPPED, 0)]


def test_running_service_takes_stop_reload_and_shutdown() -> None:
    manager = ServiceManager()
    manager.take("starting")
    manager.take("running")
    assert manager.heard[-1].accepted == STOP | SHUTDOWN | PARAMCHANGE | PRESHUTDOWN


def test_stop_during_the_start_is_final() -> None:
    manager = ServiceManager()
    for step in ("starting", "stopping", "running", "tick"):
        manager.take(step)
    assert [report.state for report in manager.heard] == [START_PENDING, STOP_PENDING, STOP_PENDING]


@pytest.mark.parametrize("code", [0, 2, 70])
def test_the_end_has_the_exit_code(code: int) -> None:
    manager = ServiceManager()
    manager.states.starting()
    manager.states.stopped(code)
    assert manager.heard[-1] == StatusReport(STOPPED, exit_code=code)


@pytest.mark.parametrize(("step", "seconds"), [("starting", 240), ("stopping", 30)])
def test_hanging_service_is_not_called_alive(step: str, seconds: int) -> None:
    manager = ServiceManager()
    manager.take(step)
    for _ in range(1000):
        manager.clocks.now += service_states.TICK_SECONDS
        manager.take("tick")
    assert len(manager.heard) - 1 == seconds / service_states.TICK_SECONDS - 1
