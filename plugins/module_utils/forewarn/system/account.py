# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who this process is."""

import sys

if sys.platform == "win32":
    from .windows.account import ADMINISTRATOR, calling_user, home, is_administrator, owns, user_name
else:
    from .posix.account import ADMINISTRATOR, calling_user, home, is_administrator, owns, user_name

__all__ = ["ADMINISTRATOR", "calling_user", "home", "is_administrator", "owns", "user_name"]
