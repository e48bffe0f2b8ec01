# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Services of Windows, as its service control manager knows them."""

import sys

from .common.service_status import ServiceStatus

if sys.platform == "win32":
    from .windows.services import query, running_dependents, start, stop
else:
    from .posix.services import query, running_dependents, start, stop

__all__ = ["ServiceStatus", "query", "running_dependents", "start", "stop"]
