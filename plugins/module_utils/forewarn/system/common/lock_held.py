# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is known of a lock that another process has."""

from __future__ import annotations


class LockHeldError(Exception):
    """Another process has the lock. ``pid`` is 0 if the system does not say which."""

    def __init__(self, pid: int) -> None:
        super().__init__(f"process {pid} has the lock")
        self.pid = pid
