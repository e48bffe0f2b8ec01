# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The request to end, for the child processes that are a Python of ours: an event, whose name they are given."""

from __future__ import annotations

import os
import threading

from .. import api

STOP_EVENT = "FOREWARN_STOP_EVENT"  # the variable with the name of the event
_SYNCHRONIZE, _FOREVER = 0x0010_0000, 0xFFFF_FFFF
_EXIT_CODE = 1


def exit_at_request() -> None:
    """End this process when it is asked to, from now on."""
    handle = api.kernel32.OpenEventW(_SYNCHRONIZE, False, os.environ.get(STOP_EVENT) or None)
    if handle:
        threading.Thread(target=_exit_at, args=(handle,), daemon=True).start()


def _exit_at(event: int) -> None:
    if api.kernel32.WaitForSingleObject(event, _FOREVER) == 0:
        os._exit(_EXIT_CODE)  # at once, as SIGTERM does on Linux
