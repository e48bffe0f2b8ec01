# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether others than administrators and the runner's user can change a file or what leads to it."""

import sys

from .common.untrusted import UntrustedError

if sys.platform == "win32":
    from .windows.trust import check_directory, check_file, check_program, check_secret, is_private_directory
else:
    from .posix.trust import check_directory, check_file, check_program, check_secret, is_private_directory

__all__ = [
    "UntrustedError",
    "check_directory",
    "check_file",
    "check_program",
    "check_secret",
    "is_private_directory",
]
