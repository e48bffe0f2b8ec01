# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How far a proof is, for those who wait for it."""

from __future__ import annotations

from typing import Callable

# Called with what is being proven, how much of it is done, and of how much (0: not known).
Progress = Callable[[str, int, int], None]


def silent(what: str, done: int, total: int) -> None:
    """Tell nobody."""
