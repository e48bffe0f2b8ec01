# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Services of Windows, with functions in place of advapi32 that answer as the Windows API reference says.

It shows what is asked and what is made of the answers, not that Windows answers so.
"""

from __future__ import annotations

import ctypes
from typing import Any

import pytest
from forewarn.errors import InputError
from forewarn.system.windows import api, services

MORE_DATA = 234


FUNCTIONS = {
    "OpenSCManagerW": "open_manager",
    "OpenServiceW": "open_service",
    "CloseServiceHandle": "close",
    "QueryServiceStatusEx": "query",
    "EnumDependentServicesW": "dependents_of",
    "ControlService": "control",
    "StartServiceW": "start",
}


class FakeLibrary:
    """advapi32 with one service, W3SVC, and what needs it. ``failures`` maps a function to the code that it leaves."""

    def __init__(self) -> None:
        self.state, self.exit_code, self.specific_code, self.pid = 4, 0, 0, 42
        self.dependents: list[str] = []
        self.texts: list[Any] = []  # to which entries point
        self.failures: dict[str, int] = {}
        self.calls: list[tuple[Any, ...]] = []
        self.code = 0
        self.open = 0

    def __getattr__(self, function: str) -> Any:
        return getattr(self, FUNCTIONS[function])

    def _answer(self, function: str, *arguments: Any) -> int:
        self.calls.append((function, *arguments))
        self.code = self.failures.get(function, 0)
        return int(self.code == 0)

    def open_manager(self, machine: None, database: None, access: int) -> int:
        self.open += 1
        return self._answer("OpenSCManagerW", machine, database, access)

    def open_service(self, _manager: int, name: str, access: int) -> int:
        opened = self._answer("OpenServiceW", name, access)
        self.open += opened
        return opened

    def close(self, _handle: int) -> int:
        self.open -= 1
        return 1

    def query(self, _service: int, level: int, place: Any, size: int, _needed: Any) -> int:
        assert (level, size) == (0, 36)  # SC_STATUS_PROCESS_INFO; nine DWORDs
        words = (16, self.state, 1, self.exit_code, self.specific_code, 0, 0, self.pid, 0)
        ctypes.memmove(place, (ctypes.c_uint32 * 9)(*words), size)
        return self._answer("QueryServiceStatusEx")

    def dependents_of(self, _s: int, state: int, buffer: Any, size: int, needed: Any, count: Any) -> int:
        width = 48  # of an ENUM_SERVICE_STATUSW: two pointers, seven DWORDs, and what fills it up
        needed._obj.value = width * len(self.dependents)
        count._obj.value = 0
        if size < needed._obj.value:
            self.code = MORE_DATA
            return 0
        for number, name in enumerate(self.dependents):
            self.texts += [
                ctypes.create_unicode_buffer(name),
                ctypes.create_unicode_buffer(f"{name}, as people see it"),
            ]
            pointers = (ctypes.c_uint64 * 2).from_buffer(buffer, number * width)
            pointers[:] = [ctypes.addressof(text) for text in self.texts[-2:]]
            (ctypes.c_uint32 * 2).from_buffer(buffer, number * width + 16)[:] = [16, 4]  # its type, SERVICE_RUNNING
        count._obj.value = len(self.dependents)
        return self._answer("EnumDependentServicesW", state)

    def control(self, _service: int, control: int, _status: Any) -> int:
        return self._answer("ControlService", control)

    def start(self, _service: int, count: int, arguments: None) -> int:
        return self._answer("StartServiceW", count, arguments)


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> FakeLibrary:
    fake = FakeLibrary()
    monkeypatch.setattr(services, "advapi32", fake)
    monkeypatch.setattr(api, "last_error", lambda: fake.code)
    monkeypatch.setattr(api, "error", lambda code=0: OSError(code, "a text of Windows"))
    return fake


def test_status_has_state_process_and_exit_code(library: FakeLibrary) -> None:
    assert services.query("W3SVC") == ("W3SVC", "running", 0, 42)
    library.state, library.exit_code, library.pid = 1, 1067, 0
    assert services.query("W3SVC") == ("W3SVC", "stopped", 1067, 0)
    library.exit_code, library.specific_code = 1066, 7  # ERROR_SERVICE_SPECIFIC_ERROR
    assert services.query("W3SVC").exit_code == 7
    assert library.open == 0


def test_dependents_are_listed_in_their_order(library: FakeLibrary) -> None:
    assert services.running_dependents("W3SVC") == []
    library.dependents = ["Ui", "Web"]
    assert services.running_dependents("W3SVC") == [("Ui", "running", 0, 0), ("Web", "running", 0, 0)]
    assert library.calls[-1] == ("EnumDependentServicesW", 1)  # SERVICE_ACTIVE
    assert library.open == 0


def test_orders_ask_for_no_more_than_their_right(library: FakeLibrary) -> None:
    services.stop("W3SVC")
    services.start("W3SVC")
    assert [call for call in library.calls if call[0] != "OpenSCManagerW"] == [
        ("OpenServiceW", "W3SVC", 0x20),  # SERVICE_STOP
        ("ControlService", 1),  # SERVICE_CONTROL_STOP
        ("OpenServiceW", "W3SVC", 0x10),  # SERVICE_START
        ("StartServiceW", 0, None),
    ]
    assert library.open == 0


@pytest.mark.parametrize("code", [1051, 1055, 1061, 1062])
def test_stop_that_may_succeed_later_is_no_error(library: FakeLibrary, code: int) -> None:
    library.failures = {"ControlService": code}
    services.stop("W3SVC")
    assert library.open == 0


@pytest.mark.parametrize("code", [1055, 1056])
def test_start_of_a_running_service_is_no_error(library: FakeLibrary, code: int) -> None:
    library.failures = {"StartServiceW": code}
    services.start("W3SVC")
    assert library.open == 0


@pytest.mark.parametrize(
    ("function", "code", "ask", "says"),
    [
        ("OpenServiceW", 1060, services.query, "there is no service W3SVC. Get-Service lists"),
        ("OpenServiceW", 5, services.stop, "W3SVC cannot be opened: a text of Windows (error 5). The runner needs"),
        ("OpenSCManagerW", 1722, services.query, "manager cannot be reached: a text of Windows"),
        ("QueryServiceStatusEx", 87, services.query, "W3SVC cannot be asked for its status"),
        ("EnumDependentServicesW", 87, services.running_dependents, "cannot be asked for the services that need it"),
        ("ControlService", 1052, services.stop, "W3SVC cannot be stopped: a text of Windows (error 1052)"),
        ("StartServiceW", 1058, services.start, "W3SVC is disabled, or one that it needs. sc.exe config W3SVC"),
        ("StartServiceW", 1069, services.start, "W3SVC cannot be started: a text of Windows (error 1069)"),
    ],
)
def test_failure_is_said_with_its_code(library: FakeLibrary, function: str, code: int, ask: Any, says: str) -> None:
    library.failures = {function: code}
    with pytest.raises(InputError) as caught:
        ask("W3SVC")
    assert says in str(caught.value)
    assert library.open == (function == "OpenSCManagerW")  # this was not opened
