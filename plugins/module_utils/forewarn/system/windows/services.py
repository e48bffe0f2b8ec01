# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Services by the service control manager (Windows API reference, Services).

Nothing here waits for a service: ``query`` shows what has become of an order.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

from ...errors import InputError
from ..common.service_status import STATES, ServiceStatus
from . import api
from .api import DWORD, advapi32

_CONNECT = 1  # SC_MANAGER_CONNECT
_QUERY_STATUS, _ENUMERATE_DEPENDENTS, _START, _STOP = 0x4, 0x8, 0x10, 0x20  # rights
_CONTROL_STOP = 1
_ACTIVE = 1  # SERVICE_ACTIVE: neither stopped nor about to have been
_MORE_DATA = 234
_SPECIFIC_ERROR = 1066  # the service has an exit code of its own
_NO_SUCH_SERVICE, _DISABLED = 1060, 1058
_ALREADY_RUNNING, _NOT_ACTIVE = 1056, 1062
# Codes after which the same order may succeed later: a dependent runs, the service is pending, the manager is busy.
_LATER = (1051, 1055, 1061)


class _Status(ctypes.Structure):
    """SERVICE_STATUS."""

    _fields_ = tuple(
        (name, ctypes.c_uint32)
        for name in ("type", "state", "accepted", "exit_code", "specific_code", "check_point", "hint")
    )


class _ProcessStatus(ctypes.Structure):
    """SERVICE_STATUS_PROCESS."""

    _fields_ = (("status", _Status), ("pid", ctypes.c_uint32), ("flags", ctypes.c_uint32))


class _DependentService(ctypes.Structure):
    """ENUM_SERVICE_STATUSW."""

    _fields_ = (("name", ctypes.c_wchar_p), ("display_name", ctypes.c_wchar_p), ("status", _Status))


def query(name: str) -> ServiceStatus:
    """Return the status of a service. Raises InputError if there is none of this name, or the rights for it."""
    with _opened(name, _QUERY_STATUS) as service:
        found, needed = _ProcessStatus(), DWORD()
        size = ctypes.sizeof(found)
        if not advapi32.QueryServiceStatusEx(service, 0, ctypes.byref(found), size, ctypes.byref(needed)):
            raise _failure(name, "cannot be asked for its status")
        return _status(name, found.status, found.pid)


def running_dependents(name: str) -> list[ServiceStatus]:
    """Return the active services that need this one, in the order in which they can be stopped. Raises InputError."""
    with _opened(name, _ENUMERATE_DEPENDENTS) as service:
        size, needed, count = 0, DWORD(), DWORD()
        while True:
            buffer = ctypes.create_string_buffer(size)
            places = ctypes.byref(needed), ctypes.byref(count)
            if advapi32.EnumDependentServicesW(service, _ACTIVE, buffer, size, *places):
                break
            if api.last_error() != _MORE_DATA:
                raise _failure(name, "cannot be asked for the services that need it")
            size = needed.value
        entries = (_DependentService * count.value).from_buffer(buffer) if count.value else ()
        return [_status(entry.name, entry.status) for entry in entries]


def stop(name: str) -> None:
    """Ask a service to stop; it may be stopped already. Raises InputError if it cannot be stopped."""
    with _opened(name, _STOP) as service:
        asked = advapi32.ControlService(service, _CONTROL_STOP, ctypes.byref(_Status()))
        if not asked and api.last_error() not in (_NOT_ACTIVE, *_LATER):
            raise _failure(name, "cannot be stopped")


def start(name: str) -> None:
    """Start a service and what it needs; it may run already. Raises InputError if it cannot be started."""
    with _opened(name, _START) as service:
        started = advapi32.StartServiceW(service, 0, None)
        if not started and api.last_error() not in (_ALREADY_RUNNING, *_LATER):
            raise _failure(name, "cannot be started")


@contextmanager
def _opened(name: str, access: int) -> Iterator[int]:
    """Give a handle of a service. Raises InputError."""
    manager = advapi32.OpenSCManagerW(None, None, _CONNECT)
    if not manager:
        raise InputError(f"the service control manager cannot be reached: {api.error().strerror}")
    try:
        service = advapi32.OpenServiceW(manager, name, access)
        if not service:
            raise _failure(name, "cannot be opened")
        try:
            yield service
        finally:
            advapi32.CloseServiceHandle(service)
    finally:
        advapi32.CloseServiceHandle(manager)


def _status(name: str, status: _Status, pid: int = 0) -> ServiceStatus:
    code = status.specific_code if status.exit_code == _SPECIFIC_ERROR else status.exit_code
    return ServiceStatus(name, STATES[status.state - 1], code, pid)


def _failure(name: str, what: str) -> InputError:
    """Return the error for the last failure in this thread."""
    code = api.last_error()
    if code == _NO_SUCH_SERVICE:
        hint = "Get-Service lists services by the names that count, which are not those that services.msc displays."
        return InputError(f"there is no service {name}", hint)
    if code == _DISABLED:
        what = f"the service {name} is disabled, or one that it needs"
        return InputError(what, f"sc.exe config {name} start= demand allows to start it.")
    hint = "The runner needs the right to do that: see sc.exe sdshow." if code == api.ERROR_ACCESS_DENIED else ""
    return InputError(f"the service {name} {what}: {api.error(code).strerror} (error {code})", hint)
