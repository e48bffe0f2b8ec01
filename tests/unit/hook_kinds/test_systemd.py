# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kind systemd, with random units that trigger and require each other: nothing that it did remains."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from forewarn.cli.main import main
from forewarn.hook_kinds import systemd, systemd_blocks
from forewarn.hook_kinds.common import work
from forewarn.hook_kinds.common.process import PREPARE, RECOVER, perform
from forewarn.hook_kinds.common.work import HookFailedError, ProgramResult
from hypothesis import given
from hypothesis import strategies as st
from tools.worlds.fake_systemd import FakeSystemd, FakeUnit, ProcessKilled

SOCKET, SERVICE = "app.socket", "app.service"
NEEDS = (("user", SERVICE), ("report", "user.service"), ("reader", SOCKET))  # a service, and what it requires


class Stage:
    """A systemd, and hooks that stop units of it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        (directory / "run").mkdir()
        self.systemd = FakeSystemd(directory / "run")

    def hook(self, phase: str, unit: str = SERVICE, seconds: float = 60.0, **options: Any) -> None:
        """Run a hook. Raises HookFailedError, ProcessKilled."""
        memory = str(self.directory / f"{unit}.json")
        perform("systemd", phase, {"unit": unit, **options}, {"EventId": "E"}, seconds, memory)

    def failure(self, phase: str, unit: str = SERVICE, seconds: float = 60.0) -> str:
        """Return why a hook fails."""
        with pytest.raises(HookFailedError) as caught:
            self.hook(phase, unit, seconds)
        return str(caught.value)

    def drop_ins(self) -> list[str]:
        """Return all that hooks have written for systemd."""
        return [path.name for path in (self.directory / "run").iterdir()]


@contextmanager
def staged() -> Iterator[Stage]:
    with tempfile.TemporaryDirectory() as name:
        stage = Stage(Path(name))
        clock = SimpleNamespace(monotonic=lambda: stage.systemd.now, sleep=stage.systemd.pause)

        def run(_work: work.Work, *words: str) -> ProgramResult:
            return stage.systemd.run(*words)

        with (
            mock.patch.object(work, "time", clock),
            mock.patch.object(systemd, "time", clock),
            mock.patch.object(systemd_blocks, "DROP_INS", str(stage.systemd.drop_ins)),
            mock.patch.object(work.Work, "run", run),
        ):
            yield stage


@pytest.fixture
def stage() -> Iterator[Stage]:
    with staged() as one:
        yield one


def activated(**values: Any) -> tuple[FakeUnit, FakeUnit]:
    """Return a service that does not run without its socket, and the socket; both are active."""
    service = FakeUnit(SERVICE, needs_socket=SOCKET, state="active", **values)
    return FakeUnit(SOCKET, triggers=SERVICE, enabled=True, state="active"), service


def test_connection_during_an_event_starts_nothing(stage: Stage) -> None:
    stage.systemd.add(*activated())
    stage.hook(PREPARE)
    stage.systemd.asked = True
    stage.systemd.pause(3)
    assert stage.systemd.states() == {SOCKET: "inactive", SERVICE: "inactive"}
    stage.hook(RECOVER)
    assert stage.systemd.states() == {SOCKET: "active", SERVICE: "active"}
    assert stage.systemd.storms == []


def test_inactive_socket_stays_inactive_and_is_blocked(stage: Stage) -> None:
    socket, service = activated(enabled=True)
    socket.state, socket.enabled, service.needs_socket = "inactive", False, ""
    stage.systemd.add(socket, service)
    stage.hook(PREPARE)
    assert not stage.systemd.start(SOCKET)
    stage.hook(RECOVER)
    assert stage.systemd.states() == {SOCKET: "inactive", SERVICE: "active"}


def test_units_are_reloaded_once_per_change(stage: Stage) -> None:
    socket, service = activated()
    service.stops_within = 20.0
    stage.systemd.add(socket, service)
    stage.hook(PREPARE)
    assert stage.systemd.reloads == 2
    stage.hook(RECOVER)
    assert stage.systemd.reloads == 3


def test_service_that_fails_after_its_start_is_named(stage: Stage) -> None:
    socket, service = activated()
    stage.systemd.add(socket, service)
    stage.hook(PREPARE)
    service.breaks = True
    assert stage.failure(RECOVER) == (
        "not as before: app.service is failed (exit-code): journalctl --unit=app.service says why"
    )
    service.breaks = False
    stage.hook(RECOVER)
    assert stage.systemd.states() == {SOCKET: "active", SERVICE: "active"}


def test_service_must_run_some_seconds_to_count(stage: Stage) -> None:
    stage.systemd.add(*activated())
    stage.hook(PREPARE)
    began = stage.systemd.now
    stage.hook(RECOVER)
    assert 5 <= stage.systemd.now - began < 7
    stage.hook(PREPARE)
    stage.systemd.reboot()
    assert stage.systemd.start(SERVICE)  # as a client does
    stage.systemd.pause(60)
    began = stage.systemd.now
    stage.hook(RECOVER)
    assert stage.systemd.now - began < 1, "one that has run since the boot is not waited for"


def test_a_service_that_never_settles_is_the_reason(stage: Stage) -> None:
    stage.systemd.add(*activated())
    stage.hook(PREPARE)
    assert "app.service is active, and has to stay so for 5 s" in stage.failure(RECOVER, seconds=4)


@pytest.mark.parametrize("type_", ["simple", "oneshot"])
def test_triggered_service_may_end_with_success(stage: Stage, type_: str) -> None:
    path, service = FakeUnit("app.path", triggers=SERVICE, state="active"), FakeUnit(SERVICE, type=type_)
    service.state = "active"
    stage.systemd.add(path, service)
    stage.hook(PREPARE)
    service.lives = 1.0
    stage.hook(RECOVER)
    stage.systemd.pause(5)
    assert stage.systemd.states() == {"app.path": "active", SERVICE: "inactive"}


def test_untriggered_service_must_not_end(stage: Stage) -> None:
    service = FakeUnit(SERVICE, state="active")
    stage.systemd.add(service)
    stage.hook(PREPARE)
    service.lives = 1.0
    assert "app.service is inactive (success)" in stage.failure(RECOVER)


def test_a_unit_that_is_gone_is_named(stage: Stage) -> None:
    user = FakeUnit("user.service", requires=(SERVICE,), state="active")
    stage.systemd.add(*activated(), user)
    stage.hook(PREPARE)
    del stage.systemd.units["user.service"]
    assert stage.failure(RECOVER) == "systemctl failed: Unit user.service not found."


def test_dependent_units_are_restarted(stage: Stage) -> None:
    users = [FakeUnit(f"{name}.service", requires=(needs,), state="active") for name, needs in NEEDS]
    stage.systemd.add(*activated(), *users, FakeUnit("idle.service", requires=(SERVICE,)))
    stage.hook(PREPARE)
    assert set(stage.systemd.states().values()) == {"inactive"}
    stage.hook(RECOVER)
    assert [name for name, state in stage.systemd.states().items() if state != "active"] == ["idle.service"]


def test_second_attempt_restarts_forgotten_units_in_order(stage: Stage) -> None:
    socket = FakeUnit("app@1.socket", triggers=SERVICE, state="active")  # an instance has no file of its own
    service = FakeUnit(SERVICE, needs_socket=socket.name, state="active")
    stage.systemd.add(socket, service, FakeUnit("user.service", requires=(SERVICE,), state="active"))
    stage.hook(PREPARE)
    stage.systemd.add(FakeUnit("late.service", requires=(SERVICE,), state="failed"))
    stage.hook(PREPARE)
    stage.hook(RECOVER)
    states = stage.systemd.states()
    assert states.pop("late.service") == "failed"
    assert set(states.values()) == {"active"}
    assert stage.systemd.failed == []


def test_two_units_are_tried_at_a_time(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(stage.directory))
    stage.systemd.add(FakeUnit("a.service", state="active"), FakeUnit("b.service", state="active"))
    for unit, phase in (("a", "prepare"), ("b", "prepare"), ("a", "recover")):
        assert main(["hook", "try", "systemd", f"unit={unit}.service", f"--{phase}"]) == 0
    assert stage.systemd.states() == {"a.service": "active", "b.service": "inactive"}
    assert capsys.readouterr().out.splitlines()[-1] == "a.service is active"


def test_without_block_what_triggers_a_unit_goes_on(stage: Stage) -> None:
    stage.systemd.add(*activated())
    stage.hook(PREPARE, block=False)
    assert stage.systemd.states() == {SOCKET: "active", SERVICE: "inactive"}
    assert stage.drop_ins() == []
    stage.hook(RECOVER, block=False)
    assert stage.systemd.states() == {SOCKET: "active", SERVICE: "active"}


@pytest.mark.parametrize("state", ["active", "inactive"])
def test_an_older_runner_has_prepared(stage: Stage, state: str) -> None:
    _socket, service = activated()
    service.needs_socket = ""
    stage.systemd.add(service)
    stage.hook(PREPARE)
    (drop_in,) = (stage.directory / "run").glob("*/*.conf")
    drop_in.write_text(f"[Unit]\nAssertPathExists=!{drop_in}\n")
    (stage.directory / f"{SERVICE}.json").write_text(json.dumps({"was_active": state == "active"}))
    stage.hook(RECOVER)
    assert stage.systemd.states() == {SERVICE: state}
    assert stage.drop_ins() == []


@pytest.mark.parametrize("state", ["active", "inactive"])
def test_lost_memory_is_restored_from_the_drop_in(stage: Stage, state: str) -> None:
    socket, service = activated()
    service.state = state
    stage.systemd.add(socket, service)
    stage.hook(PREPARE)
    (stage.directory / f"{SERVICE}.json").unlink()
    stage.hook(RECOVER)
    assert stage.systemd.states() == {SOCKET: "active", SERVICE: state}
    assert stage.drop_ins() == []


@pytest.mark.parametrize("units", [(SOCKET, SERVICE), (SERVICE, SOCKET)])
def test_a_policy_may_name_the_socket_too(stage: Stage, units: tuple[str, str]) -> None:
    stage.systemd.add(*activated())
    for unit in units:
        stage.hook(PREPARE, unit)
    for unit in reversed(units):
        stage.hook(RECOVER, unit)
    assert stage.systemd.states() == {SOCKET: "active", SERVICE: "active"}
    assert stage.drop_ins() == []


@st.composite
def machines(draw: st.DrawFn) -> list[FakeUnit]:
    """Draw units around app.service: what triggers it, what requires it, what triggers and requires those."""
    services = [FakeUnit(SERVICE)]
    units = [*services]
    for number in range(draw(st.integers(0, 3))):
        requires = draw(st.sampled_from(services)).name
        services.append(FakeUnit(f"user{number}.service", requires=(requires,)))
    units = [*services]
    for service in services:
        for kind in draw(st.sets(st.sampled_from(["socket", "path", "timer"]), max_size=2)):
            stem = service.name.partition(".")[0] + draw(st.sampled_from(["", "-other"]))
            trigger = FakeUnit(f"{stem}.{kind}", triggers=service.name)
            units.append(trigger)
            if kind == "socket" and draw(st.booleans()):
                service.needs_socket = trigger.name
            if draw(st.booleans()):
                service.requires += (trigger.name,)
            if draw(st.booleans()):
                units.append(FakeUnit(f"{stem}-{kind}.path", triggers=trigger.name))
    for unit in units:
        unit.enabled = draw(st.booleans())
        unit.type = draw(st.sampled_from(["simple", "simple", "notify"]))
    return units


@given(
    machines(),
    st.sets(st.integers(0, 12)),
    st.lists(st.integers(1, 12), max_size=3),
    st.lists(st.integers(1, 12), max_size=3),
    st.booleans(),
    st.booleans(),
    st.data(),
)
def test_all_that_was_active_is_active_again(
    units: list[FakeUnit],
    started: set[int],
    kills_preparing: list[int],
    kills_recovering: list[int],
    reboots: bool,
    asked: bool,
    data: st.DataObject,
) -> None:
    with staged() as stage:
        fake = stage.systemd
        fake.add(*units)
        for number in started:
            fake.start(units[number % len(units)].name)
        fake.pause(2)
        before = {name for name, state in fake.states().items() if state == "active"}
        fake.asked = asked

        def run(phase: str, kills: list[int]) -> None:
            for calls in kills:
                fake.killed_at = fake.calls + calls
                with suppress(ProcessKilled):
                    stage.hook(phase)
                fake.killed_at = -1
                fake.pause(0.5)
                if phase == RECOVER and not (stage.directory / f"{SERVICE}.json").exists():
                    return  # it was done before it could be killed
            stage.hook(phase)

        fake.asked = asked and not kills_preparing
        run(PREPARE, kills_preparing)
        fake.asked = asked
        for name in data.draw(st.permutations(sorted(fake.units))):
            fake.start(name)  # somebody, or something
            fake.pause(0.2)
        assert fake.units[SERVICE].state != "active"
        if reboots:
            fake.asked = False
            fake.reboot()
        run(RECOVER, kills_recovering)
        fake.pause(1)
        after = {name for name, state in fake.states().items() if state == "active"}
        assert before <= after
        assert stage.drop_ins() == []
        # A socket of what needs the unit, which somebody starts only meanwhile, is not known to the hook.
        known = {*before, *(unit.name for unit in units if unit.triggers in (SERVICE, SOCKET))}
        assert not known.intersection(fake.storms)
        if not (reboots or asked):
            # A unit that had failed, while others that require it went on, is started with them.
            started_anew = after - before - required(fake, before)
            assert not started_anew.intersection({SERVICE, *fake.units[SERVICE].requires})


def required(fake: FakeSystemd, names: set[str]) -> set[str]:
    """Return all that units require, and what that requires."""
    found = {other for name in names for other in fake.units[name].requires}
    return found if found <= names else found | required(fake, names | found)


def test_failed_unit_is_restarted_with_its_dependents(stage: Stage) -> None:
    socket, service = activated()
    socket.state = service.state = "inactive"
    stage.systemd.add(service, socket, FakeUnit("user.service", requires=(SERVICE,)))
    for name in ("user.service", SOCKET):
        stage.systemd.start(name)
    stage.systemd.pause(2)
    before = {SOCKET: "active", SERVICE: "failed", "user.service": "active"}
    assert stage.systemd.states() == before
    stage.hook(PREPARE)
    stage.hook(RECOVER)
    assert stage.systemd.states() == {**before, SERVICE: "active"}
