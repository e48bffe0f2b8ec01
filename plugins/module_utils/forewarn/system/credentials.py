# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Credentials: secrets that the runner has, how they are read, and how a hook gets those that it names."""

import sys

if sys.platform == "win32":
    from .windows.credentials import PROVIDE, hand_over, protect, read, remove_leftovers, take_back
else:
    from .posix.credentials import PROVIDE, hand_over, protect, read, remove_leftovers, take_back

__all__ = ["PROVIDE", "hand_over", "protect", "read", "remove_leftovers", "take_back"]
