# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes: how one is started, identified and ended, with all that it has started."""

import sys

if sys.platform == "win32":
    from .windows.children.process_identity import exists
    from .windows.children.stop_event import exit_at_request
    from .windows.leftovers import LeftoverProcess
    from .windows.processes import KILL_IGNORED, REQUEST_IGNORED, ChildProcess, describe_exit, why_not_started
else:
    from .posix.leftovers import LeftoverProcess
    from .posix.process_groups import exists
    from .posix.processes import (
        KILL_IGNORED,
        REQUEST_IGNORED,
        ChildProcess,
        describe_exit,
        exit_at_request,
        why_not_started,
    )

__all__ = [
    "KILL_IGNORED",
    "REQUEST_IGNORED",
    "ChildProcess",
    "LeftoverProcess",
    "describe_exit",
    "exists",
    "exit_at_request",
    "why_not_started",
]
