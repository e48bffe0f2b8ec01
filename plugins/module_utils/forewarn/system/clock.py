# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The clock that runs since the machine was booted, and which boot that was."""

import sys

if sys.platform == "win32":
    from .windows.clock import boot_id, boot_seconds
else:
    from .posix.clock import boot_id, boot_seconds

__all__ = ["boot_id", "boot_seconds"]
