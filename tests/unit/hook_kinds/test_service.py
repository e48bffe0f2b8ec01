# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kind service, with a simulated service control manager: what was running before runs afterwards."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest
from forewarn.hook_kinds import service_control
from forewarn.hook_kinds.common import work
from forewarn.hook_kinds.common.process import PREPARE, RECOVER, perform
from forewarn.hook_kinds.common.work import HookFailedError
from hypothesis import given
from hypothesis import strategies as st
from tools.worlds.fake_services import FakeService, FakeServices


class Stage:
    """A service control manager, and hooks that stop services of it."""

    def __init__(self, directory: Path, *services: FakeService) -> None:
        self.directory = directory
        self.manager = FakeServices(*services)

    def hook(self, phase: str, name: str = "App", seconds: float = 60.0) -> None:
        """Run a hook. Raises HookFailedError."""
        clock = SimpleNamespace(monotonic=lambda: self.manager.now, sleep=self.manager.pause)
        with mock.patch.object(work, "time", clock), mock.patch.object(service_control, "services", self.manager):
            perform("service", phase, {"name": name}, {"EventId": "E"}, seconds, str(self.directory / f"{name}.json"))

    def failure(self, phase: str, name: str = "App", seconds: float = 60.0) -> str:
        """Return why a hook fails."""
        with pytest.raises(HookFailedError) as caught:
            self.hook(phase, name, seconds)
        return str(caught.value)


def test_dependents_stop_first_and_start_last(tmp_path: Path) -> None:
    services = (
        FakeService("App"),
        FakeService("Web", ("App",)),
        FakeService("Fax", ("App",)),
        FakeService("Ui", ("Web",)),
    )
    stage = Stage(tmp_path, *services, FakeService("Other"))
    stage.hook(PREPARE)
    stops = [name for _order, name in stage.manager.orders]
    assert set(stops[:2]) == {"Ui", "Fax"}  # at once: neither needs the other
    assert stops[2:] == ["Web", "App"]
    assert stage.manager.states() == {**dict.fromkeys(("App", "Web", "Fax", "Ui"), "stopped"), "Other": "running"}
    stage.hook(RECOVER)
    assert set(stage.manager.states().values()) == {"running"}
    assert next(name for order, name in stage.manager.orders if order == "start") == "App"


def test_service_that_was_stopped_stays_stopped(tmp_path: Path) -> None:
    stage = Stage(
        tmp_path, FakeService("App", state="stopped", exit_code=1077), FakeService("Web", ("App",), "stopped")
    )
    for phase in (PREPARE, PREPARE, RECOVER, RECOVER):
        stage.hook(phase)
    assert stage.manager.orders == []


def test_each_hook_may_run_twice(tmp_path: Path) -> None:
    stage = Stage(tmp_path, FakeService("App"), FakeService("Web", ("App",)))
    for phase in (PREPARE, PREPARE, RECOVER, RECOVER):
        stage.hook(phase)
    assert len(stage.manager.orders) == 4
    assert set(stage.manager.states().values()) == {"running"}


def test_manual_service_runs_again_after_a_reboot(tmp_path: Path) -> None:
    stage = Stage(tmp_path, FakeService("App", is_automatic=False), FakeService("Web", ("App",), is_automatic=False))
    stage.hook(PREPARE)
    stage.manager.reboot()
    assert set(stage.manager.states().values()) == {"stopped"}
    stage.hook(RECOVER)
    assert set(stage.manager.states().values()) == {"running"}


def test_service_that_stops_too_slowly_is_named(tmp_path: Path) -> None:
    stage = Stage(tmp_path, FakeService("App", stops_within=90.0), FakeService("Web", ("App",)))
    assert stage.failure(PREPARE, seconds=30.0).startswith("App is stop pending, after ")
    stage.hook(PREPARE, seconds=90.0)
    stage.hook(RECOVER)
    assert set(stage.manager.states().values()) == {"running"}


def test_service_that_cannot_be_stopped_fails_at_once(tmp_path: Path) -> None:
    stage = Stage(tmp_path, FakeService("App"), FakeService("Web", ("App",), refuses_stop=True))
    assert stage.failure(PREPARE) == "the service Web cannot be stopped: the control is not valid (error 1052)"
    assert stage.manager.now == 0
    stage.hook(RECOVER)
    assert set(stage.manager.states().values()) == {"running"}


def test_service_that_is_just_starting_is_stopped_later(tmp_path: Path) -> None:
    stage = Stage(tmp_path, FakeService("App", state="start pending", changes_at=3.0))
    stage.hook(PREPARE)
    assert stage.manager.states() == {"App": "stopped"}
    stage.hook(RECOVER)
    assert stage.manager.states() == {"App": "running"}


def test_service_that_was_ending_is_not_started(tmp_path: Path) -> None:
    stage = Stage(tmp_path, FakeService("App", state="stop pending", changes_at=3.0))
    stage.hook(PREPARE)
    stage.hook(RECOVER)
    assert stage.manager.states() == {"App": "stopped"}


def test_service_that_ends_after_its_start_is_named(tmp_path: Path) -> None:
    stage = Stage(tmp_path, app := FakeService("App"))
    stage.hook(PREPARE)
    app.breaks = True
    assert stage.failure(RECOVER) == "not as before: App has ended with exit code 1067: the event log System says why"
    app.breaks = False
    stage.hook(RECOVER)
    assert stage.manager.states() == {"App": "running"}


def test_service_disabled_meanwhile_is_said(tmp_path: Path) -> None:
    stage = Stage(tmp_path, app := FakeService("App"))
    stage.hook(PREPARE)
    app.is_disabled = True
    assert "App is disabled" in stage.failure(RECOVER)


def test_unknown_service_is_not_waited_for(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    assert stage.failure(PREPARE) == "there is no service App"
    assert stage.manager.now == 0


def test_hook_names_the_system_that_it_needs() -> None:
    with pytest.raises(HookFailedError, match="the kind service needs Windows"):
        perform("service", PREPARE, {"name": "App"}, {"EventId": "E"}, 60.0)


@pytest.mark.parametrize("name", ["", "a/b", "a\\b", "a\nb", "x" * 257])
def test_name_that_no_service_has_is_refused(name: str) -> None:
    with pytest.raises(HookFailedError, match="name must be"):
        perform("service", PREPARE, {"name": name}, {"EventId": "E"}, 60.0)


@contextmanager
def random_stage(data: st.DataObject) -> Iterator[Stage]:
    names = [f"s{number}" for number in range(data.draw(st.integers(1, 6)))]
    services: list[FakeService] = []
    for number, name in enumerate(names):
        needs = data.draw(st.sets(st.sampled_from(names[:number]))) if number else set()
        runs = all(one.state == "running" for one in services if one.name in needs) and data.draw(st.booleans())
        slow = data.draw(st.sampled_from([0.1, 2.0, 8.0]))
        services.append(FakeService(name, tuple(sorted(needs)), "running" if runs else "stopped", stops_within=slow))
    with tempfile.TemporaryDirectory() as directory:
        yield Stage(Path(directory), *services)


@given(st.data())
def test_interrupted_hooks_restore_every_service(data: st.DataObject) -> None:
    """Whatever needs what, and however often the hook runs out of time: afterwards all is as before."""
    with random_stage(data) as stage:
        before = stage.manager.states()
        for seconds in data.draw(st.lists(st.sampled_from([1.0, 3.0, 9.0]), max_size=4)):
            with suppress(HookFailedError):
                stage.hook(PREPARE, "s0", seconds)
        if data.draw(st.booleans()):
            stage.hook(PREPARE, "s0", 600.0)
            assert stage.manager.states()["s0"] == "stopped"
        stage.hook(RECOVER, "s0", 600.0)
        assert stage.manager.states() == before
