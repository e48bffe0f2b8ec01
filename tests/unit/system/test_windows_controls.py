# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the service control manager asks of the service, and what it hears, with functions in place of Windows'."""

from __future__ import annotations

import ctypes
from ctypes import wintypes
from types import SimpleNamespace
from typing import Any

import pytest
from forewarn.errors import InputError
from forewarn.system.windows import api, service_manager
from forewarn.system.windows.service_manager import ServiceConnection
from forewarn.system.windows.signals import StopSignals

START_PENDING, STOP_PENDING, RUNNING, STOPPED = 2, 3, 4, 1


class Manager:
    """Keeps the status that a service has set: SERVICE_STATUS, as a tuple."""

    def __init__(self) -> None:
        self.heard: list[tuple[int, ...]] = []

    def hear(self, _handle: int, status: Any) -> int:
        self.heard.append(tuple((wintypes.DWORD * 7).from_buffer_copy(status._obj)))
        return 1


@pytest.fixture
def manager(monkeypatch: pytest.MonkeyPatch) -> Manager:
    monkeypatch.setattr(ctypes, "WINFUNCTYPE", ctypes.CFUNCTYPE, raising=False)
    manager = Manager()
    monkeypatch.setattr(api, "advapi32", SimpleNamespace(SetServiceStatus=manager.hear))
    monkeypatch.setattr(service_manager, "_connection", None)
    return manager


@pytest.fixture
def stop() -> Any:
    signals = StopSignals()
    yield signals
    signals.close()


@pytest.mark.parametrize("control", [(1, "STOP"), (5, "SHUTDOWN"), (15, "PRESHUTDOWN")])
def test_each_stop_is_pending_at_once(manager: Manager, stop: StopSignals, control: tuple[int, str]) -> None:
    number, name = control
    connection = ServiceConnection(stop)
    connection.states.starting()
    connection.states.running()
    assert manager.heard[-1][:3] == (0x10, RUNNING, 0x1 | 0x4 | 0x8 | 0x100)
    assert connection._on_control(number, 0, None, None) == 0
    assert stop.received == f"SERVICE_CONTROL_{name}"
    assert manager.heard[-1][1] == STOP_PENDING


def test_changed_parameters_are_a_reload(manager: Manager, stop: StopSignals) -> None:
    assert ServiceConnection(stop)._on_control(6, 0, None, None) == 0
    assert (stop.reload, stop.received) == (True, None)


def test_other_controls_do_nothing(manager: Manager, stop: StopSignals) -> None:
    connection = ServiceConnection(stop)
    assert connection._on_control(4, 0, None, None) == 0  # SERVICE_CONTROL_INTERROGATE
    assert connection._on_control(13, 0, None, None) == 120  # ERROR_CALL_NOT_IMPLEMENTED
    assert (stop.reload, stop.received, manager.heard) == (False, None, [])


@pytest.mark.parametrize(("code", "set_codes"), [(0, (0, 0)), (70, (1066, 70))])
def test_fault_is_an_exit_code_of_its_own(
    manager: Manager, stop: StopSignals, code: int, set_codes: tuple[int, int]
) -> None:
    """ERROR_SERVICE_SPECIFIC_ERROR, for which the manager starts it again."""
    ServiceConnection(stop).states.stopped(code)
    assert (manager.heard[-1][1], *manager.heard[-1][3:5]) == (STOPPED, *set_codes)


@pytest.mark.parametrize(
    ("error", "says", "code"),
    [
        (InputError("there is no policy", "Name one."), "there is no policy. Name one.", 2),
        (KeyError("x"), "defect", 70),
    ],
)
def test_what_ends_a_service_is_an_event(
    manager: Manager, monkeypatch: pytest.MonkeyPatch, error: Exception, says: str, code: int
) -> None:
    events: list[tuple[str, str, str]] = []
    log = SimpleNamespace(write=lambda *event: events.append(event))
    monkeypatch.setattr(service_manager, "EventLog", lambda: log)
    monkeypatch.setattr(ServiceConnection, "open", lambda _self: None)

    def work(_stop: StopSignals) -> int:
        raise error

    if isinstance(error, InputError):
        assert service_manager.as_service(work) == code
    else:
        with pytest.raises(KeyError):
            service_manager.as_service(work)
    assert manager.heard[-1][1:5] == (STOPPED, 0, 1066, code)
    ((level, name, text),) = events
    assert (level, name) == ("error", "fault")
    assert says in text
