# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The machine that the checks of ``forewarn doctor`` look at, and those of its system alone."""

import sys

if sys.platform == "win32":
    from .windows.checks import DEFAULT_SERVICE, SERVICE_HELP, credentials, full_name, of_service, orders, own_pids
    from .windows.clock import clock
    from .windows.handlers import handlers
    from .windows.machine import WindowsMachine as Machine
else:
    from .linux.checks import DEFAULT_SERVICE, SERVICE_HELP, credentials, full_name, of_service, orders, own_pids
    from .linux.handlers import handlers
    from .linux.machine import Machine
    from .linux.unit import clock

__all__ = [
    "DEFAULT_SERVICE",
    "SERVICE_HELP",
    "Machine",
    "clock",
    "credentials",
    "full_name",
    "handlers",
    "of_service",
    "orders",
    "own_pids",
]
