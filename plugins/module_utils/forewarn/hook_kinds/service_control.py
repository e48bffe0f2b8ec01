# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Services by the service control manager, whose refusals are failures of the hook."""

from __future__ import annotations

from typing import Callable, TypeVar

from ..errors import InputError
from ..system import services
from ..system.common.service_status import STOPPED, ServiceStatus
from .common.work import HookFailedError

Answer = TypeVar("Answer")


def query(name: str) -> ServiceStatus:
    """Return the status of a service. Raises HookFailedError."""
    return _asked(services.query, name)


def running_dependents(name: str) -> list[ServiceStatus]:
    """Return the active services that need this one. Raises HookFailedError."""
    return _asked(services.running_dependents, name)


def stop(name: str) -> None:
    """Ask a service to stop. Raises HookFailedError."""
    _asked(services.stop, name)


def start(name: str) -> None:
    """Start a service. Raises HookFailedError."""
    _asked(services.start, name)


def services_up(name: str) -> list[ServiceStatus]:
    """Return a service and what needs it, unless they are stopped, in the order in which they can be stopped."""
    found: dict[str, ServiceStatus] = {}

    def visit(status: ServiceStatus) -> None:
        for dependent in running_dependents(status.name):
            if dependent.name not in found:
                visit(dependent)
        found[status.name] = status

    visit(query(name))
    return [status for status in found.values() if status.state != STOPPED]


def _asked(question: Callable[[str], Answer], name: str) -> Answer:
    try:
        return question(name)
    except InputError as error:
        raise HookFailedError(str(error)) from error
