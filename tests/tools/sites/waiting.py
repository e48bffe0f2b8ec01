# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waiting in real time for another process: until a condition holds, never for a fixed time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")
# It ends when the condition holds: a limit that a starved machine can reach only makes tests fail now and then.
PATIENCE_SECONDS = 180.0


def wait_until(
    condition: Callable[[], _T],
    seconds: float = PATIENCE_SECONDS,
    pause: float = 0.01,
    what: str = "it did not come to this",
) -> _T:
    """Wait until ``condition`` returns something true, and return that. Raises AssertionError with ``what``."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, f"{what}, within {seconds:g} s"
        time.sleep(pause)  # until the next look
    return found
