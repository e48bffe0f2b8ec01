# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Services of Windows, which are nowhere else: every question about one is refused."""

from __future__ import annotations

from typing import Callable, NoReturn

from ...errors import InputError
from ..common.service_status import ServiceStatus


def _refuse(name: str) -> NoReturn:
    message = f"there is no service {name}: the kind service needs Windows"
    raise InputError(message, "On Linux the kind systemd stops a unit.")


query: Callable[[str], ServiceStatus] = _refuse
running_dependents: Callable[[str], list[ServiceStatus]] = _refuse
stop: Callable[[str], None] = _refuse
start: Callable[[str], None] = _refuse
