# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A service control manager for tests of the kind service, in time that the test lets pass: ``system.services``.

It answers as the Windows API reference says, and refuses to stop a service that another one needs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from forewarn.errors import InputError
from forewarn.system.common.service_status import RUNNING, START_PENDING, STOP_PENDING, STOPPED, ServiceStatus

_NEVER_STARTED = 1077


@dataclass
class FakeService:
    """``needs``: what has to run before it. ``refuses_stop``: it accepts no stop.

    ``breaks``: after its next starts it ends by itself within a second, with an exit code of its own.
    """

    name: str
    needs: tuple[str, ...] = ()
    state: str = RUNNING
    starts_within: float = 0.3
    stops_within: float = 0.3
    refuses_stop: bool = False
    is_disabled: bool = False
    is_automatic: bool = True
    breaks: bool = False
    exit_code: int = 0
    pid: int = 0
    changes_at: float = float("inf")  # when it leaves a pending state


class FakeServices:
    """``step`` is called at each request. ``orders`` are the stops and starts that were carried out."""

    def __init__(self, *services: FakeService) -> None:
        self.services = {service.name.lower(): service for service in services}
        self.now = 0.0
        self.orders: list[tuple[str, str]] = []
        self.step: Callable[[], None] = lambda: None
        self._pids = 1000
        for service in services:
            if service.state != STOPPED:
                service.pid = self._new_pid()

    def states(self) -> dict[str, str]:
        """Return the state of each service."""
        self._catch_up()
        return {service.name: service.state for service in self.services.values()}

    def pause(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds

    def reboot(self) -> None:
        """Start again: automatic services run."""
        for service in self.services.values():
            service.state = RUNNING if service.is_automatic else STOPPED
            service.exit_code = 0 if service.is_automatic else _NEVER_STARTED
            service.pid = self._new_pid() if service.is_automatic else 0

    # What the kind asks

    def query(self, name: str) -> ServiceStatus:
        return self._shown(self._found(name))

    def running_dependents(self, name: str) -> list[ServiceStatus]:
        """Return all that need it, directly or not, the last started first."""
        service = self._found(name)
        found = [one for one in reversed(self.services.values()) if self._needs(one, service) and one.state != STOPPED]
        return [self._shown(one) for one in found]

    def stop(self, name: str) -> None:
        service = self._found(name)
        if service.refuses_stop:
            raise InputError(f"the service {service.name} cannot be stopped: the control is not valid (error 1052)")
        if service.state == RUNNING and not self.running_dependents(name):
            self._change(service, STOP_PENDING, service.stops_within)

    def start(self, name: str) -> None:
        service = self._found(name)
        if service.is_disabled:
            raise InputError(f"the service {service.name} is disabled, or one that it needs")
        for needed in service.needs:
            self.start(needed)
        if service.state == STOPPED:
            service.pid, service.exit_code = self._new_pid(), 0
            self._change(service, START_PENDING, service.starts_within)

    # Inside

    def _change(self, service: FakeService, state: str, seconds: float) -> None:
        self.orders.append((state.partition(" ")[0], service.name))
        service.state, service.changes_at = state, self.now + seconds

    def _found(self, name: str) -> FakeService:
        self.step()
        self._catch_up()
        if name.lower() not in self.services:
            raise InputError(f"there is no service {name}")
        return self.services[name.lower()]

    def _catch_up(self) -> None:
        for service in self.services.values():
            if self.now < service.changes_at:
                continue
            service.changes_at = float("inf")
            if service.state == START_PENDING:
                service.state = RUNNING
                service.changes_at = self.now + 1.0 if service.breaks else float("inf")
            else:
                service.exit_code = 1067 if service.state == RUNNING else 0  # it has terminated unexpectedly
                service.state, service.pid = STOPPED, 0

    def _needs(self, one: FakeService, other: FakeService) -> bool:
        needed = [self.services[name.lower()] for name in one.needs]
        return any(service is other or self._needs(service, other) for service in needed)

    def _shown(self, service: FakeService) -> ServiceStatus:
        return ServiceStatus(service.name, service.state, service.exit_code, service.pid)

    def _new_pid(self) -> int:
        self._pids += 4
        return self._pids
