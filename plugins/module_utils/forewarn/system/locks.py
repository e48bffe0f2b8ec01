# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Locks that end with the process, however it ends: of a directory, and of a name on this machine."""

import sys

from .common.lock_held import LockHeldError

if sys.platform == "win32":
    from .windows.locks import NamedLock, is_locked, lock, open_lock
else:
    from .posix.locks import NamedLock, is_locked, lock, open_lock

__all__ = ["LockHeldError", "NamedLock", "is_locked", "lock", "open_lock"]
