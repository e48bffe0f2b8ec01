# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The endpoint of a VM without 169.254.169.254 (SE-04): DHCP option 245, as this system's DHCP client keeps it."""

import sys

if sys.platform == "win32":
    from .windows.discovery import discover_endpoint
else:
    from .posix.discovery import discover_endpoint

__all__ = ["discover_endpoint"]
