# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that are opened, written and replaced in ways that differ between systems."""

import sys

if sys.platform == "win32":
    from .windows.files import (
        create_private_directory,
        create_subdirectory,
        open_to_read,
        open_to_write,
        read_from_start,
        replace,
        share_for_reading,
        sync_data,
        wait_until_writable,
        write_from_start,
        write_in_directory,
    )
else:
    from .posix.files import (
        create_private_directory,
        create_subdirectory,
        open_to_read,
        open_to_write,
        read_from_start,
        replace,
        share_for_reading,
        sync_data,
        wait_until_writable,
        write_from_start,
        write_in_directory,
    )

__all__ = [
    "create_private_directory",
    "create_subdirectory",
    "open_to_read",
    "open_to_write",
    "read_from_start",
    "replace",
    "share_for_reading",
    "sync_data",
    "wait_until_writable",
    "write_from_start",
    "write_in_directory",
]
