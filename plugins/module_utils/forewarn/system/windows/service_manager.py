# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The runner as a service of Windows: the service control manager starts, stops and reloads it."""

from __future__ import annotations

import ctypes
import time
from _thread import allocate_lock, start_new_thread
from collections.abc import Callable, MutableMapping
from contextlib import suppress

from ...errors import ForewarnError, InputError
from . import api
from .event_log import SOURCE, EventLog
from .service_states import TICK_SECONDS, ServiceStates, StatusReport
from .signals import StopSignals

# SERVICE_CONTROL_…
_STOPS = {1: "SERVICE_CONTROL_STOP", 5: "SERVICE_CONTROL_SHUTDOWN", 15: "SERVICE_CONTROL_PRESHUTDOWN"}
_INTERROGATE, _PARAMCHANGE = 4, 6
_SERVICE_WIN32_OWN_PROCESS = 0x10
_NO_ERROR = 0
_ERROR_FAILED_SERVICE_CONTROLLER_CONNECT, _ERROR_SERVICE_SPECIFIC_ERROR = 1063, 1066
_ERROR_CALL_NOT_IMPLEMENTED, _ERROR_SERVICE_REQUEST_TIMEOUT = 120, 1053
_CONNECT_SECONDS = 30.0  # as long as the manager waits for a process that it has started
_DEFECT = 70  # the exit code of forewarn


class _ServiceStatus(ctypes.Structure):
    _fields_ = tuple(
        (name, api.DWORD) for name in ("type", "state", "accepted", "exit_code", "own_code", "checkpoint", "hint")
    )


class _TableEntry(ctypes.Structure):
    _fields_ = (("name", api.TEXT), ("main", api.POINTER))


class ServiceConnection:
    """The connection of this process to the service control manager, in threads of its own.

    What it asks for goes to ``stop``. A process has one such connection at most.
    """

    def __init__(self, stop: StopSignals) -> None:
        self.states = ServiceStates(self._report, time.monotonic)
        self._stop = stop
        self._handle: int | None = None
        self._failure = _ERROR_SERVICE_REQUEST_TIMEOUT
        self._open, self._closed = allocate_lock(), allocate_lock()
        self._open.acquire()
        self._closed.acquire()
        # ctypes frees a callback that nobody keeps.
        self._main = ctypes.WINFUNCTYPE(None, api.DWORD, api.POINTER)(self._run)
        self._handler = ctypes.WINFUNCTYPE(api.DWORD, api.DWORD, api.DWORD, api.POINTER, api.POINTER)(self._on_control)
        entries = (_TableEntry(SOURCE, ctypes.cast(self._main, api.POINTER)), _TableEntry(None, None))
        self._table = (_TableEntry * 2)(*entries)

    def open(self) -> None:
        """Report that the start has begun. Raises InputError if the manager has not started this process."""
        start_new_thread(self._dispatch, ())
        if self._open.acquire(timeout=_CONNECT_SECONDS) and self._failure == _NO_ERROR:
            return
        if self._failure == _ERROR_FAILED_SERVICE_CONTROLLER_CONNECT:
            raise InputError(
                "--service is for the service control manager, which has not started this process.",
                f"Start the service with net start {SOURCE}, or leave the option out.",
            )
        raise InputError(
            f"the service control manager does not answer: {api.error(self._failure).strerror}",
            f"Start the service again: net start {SOURCE}",
        )

    def close(self, exit_code: int) -> None:
        """Report the end, which must be the last thing that the process does."""
        self.states.stopped(exit_code)
        self._closed.release()

    def _dispatch(self) -> None:
        """Carry out what the manager asks for, until the service has stopped."""
        if not api.advapi32.StartServiceCtrlDispatcherW(ctypes.byref(self._table)):
            self._failure = api.last_error()
            self._open.release()

    def _run(self, _count: int, _words: object) -> None:
        """Be the service, for its manager: its thread lasts as long as the service."""
        self._handle = api.advapi32.RegisterServiceCtrlHandlerExW(SOURCE, ctypes.cast(self._handler, api.POINTER), None)
        self._failure = _NO_ERROR if self._handle else api.last_error()
        if self._handle:
            self.states.starting()
        self._open.release()
        while self._handle and not self._closed.acquire(timeout=TICK_SECONDS):
            self.states.tick()

    def _on_control(self, control: int, _type: int, _data: object, _context: object) -> int:
        if control in _STOPS:
            self.states.stopping()
            self._stop.stop(_STOPS[control])
        elif control == _PARAMCHANGE:
            self._stop.request_reload()
        elif control != _INTERROGATE:  # which the manager answers itself, from the last report
            return _ERROR_CALL_NOT_IMPLEMENTED
        return _NO_ERROR

    def _report(self, report: StatusReport) -> None:
        status = _ServiceStatus(
            _SERVICE_WIN32_OWN_PROCESS,
            report.state,
            report.accepted,
            _ERROR_SERVICE_SPECIFIC_ERROR if report.exit_code else _NO_ERROR,
            report.exit_code,
            report.checkpoint,
            report.hint_milliseconds,
        )
        api.advapi32.SetServiceStatus(self._handle, ctypes.byref(status))


_connection: ServiceConnection | None = None


def is_service() -> bool:
    """Return whether this process is connected to the service control manager."""
    return _connection is not None


def as_service(work: Callable[[StopSignals], int]) -> int:
    """Do the work of a service and return its exit code; the manager hears of the start, and of the end.

    The manager's requests to stop and to reload reach the argument of ``work``. Nobody reads the standard error of a
    service: what ends it goes to the event log. Raises InputError if the manager has not started this process.
    """
    global _connection
    stop = StopSignals()
    connection = ServiceConnection(stop)
    connection.open()
    _connection = connection
    code = _DEFECT
    try:
        code = work(stop)
    except ForewarnError as error:
        code = error.exit_code
        _report_fault(str(error))
    except Exception:  # of any kind: nobody would see it
        import traceback  # here: hopefully nobody needs it

        _report_fault(f"This is a defect of forewarn. Please report it.\n{traceback.format_exc()}")
        raise
    finally:
        stop.close()
        connection.close(code)
    return code


def _report_fault(text: str) -> None:
    with suppress(OSError):  # the exit code still says it
        EventLog().write("error", "fault", text)


class ServiceNotifier:
    """Notifies the service control manager, if it has started this process.

    It shows neither a status nor that a reload is under way, and does not ask whether a service is alive.
    """

    def __init__(self, _environ: MutableMapping[str, str], _monotonic: Callable[[], float]) -> None:
        self._states = None if _connection is None else _connection.states

    @property
    def enabled(self) -> bool:
        """Whether somebody is to be notified of the status."""
        return False

    def ready(self, _status: str) -> None:
        """Notify that the start has ended."""
        if self._states is not None:
            self._states.running()

    def status(self, text: str) -> None:
        """Do nothing: nobody would see it."""

    def reloading(self) -> None:
        """Do nothing: a service that reloads is still a running one."""

    def stopping(self) -> None:
        """Notify that the stop has begun."""
        if self._states is not None:
            self._states.stopping()

    def watchdog(self) -> None:
        """Do nothing: nobody watches."""
