# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the log of a service goes: systemd's journal, or the Application event log of Windows and a file."""

import sys

if sys.platform == "win32":
    from .windows.log_destination import LogDestination
else:
    from .posix.log_destination import LogDestination

__all__ = ["LogDestination"]
