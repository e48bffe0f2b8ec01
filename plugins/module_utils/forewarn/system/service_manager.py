# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The service manager that started this process, if one did: systemd, or the service control manager of Windows."""

import sys

if sys.platform == "win32":
    from .windows.service_manager import ServiceNotifier, as_service
else:
    from .posix.service_manager import ServiceNotifier, as_service

__all__ = ["ServiceNotifier", "as_service"]
