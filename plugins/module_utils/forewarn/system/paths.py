# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the files of the service are, and where its hooks look for programs."""

import sys

if sys.platform == "win32":
    from .windows.paths import (
        CONFIG,
        CREDENTIALS,
        SERVICE_STATE,
        STATE_DEFAULT,
        credentials_directory,
        memory_directory,
        state_directory,
    )
else:
    from .posix.paths import (
        CONFIG,
        CREDENTIALS,
        SERVICE_STATE,
        STATE_DEFAULT,
        credentials_directory,
        memory_directory,
        state_directory,
    )

__all__ = [
    "CONFIG",
    "CREDENTIALS",
    "SERVICE_STATE",
    "STATE_DEFAULT",
    "credentials_directory",
    "memory_directory",
    "state_directory",
]
