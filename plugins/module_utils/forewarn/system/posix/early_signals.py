# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a service does before it imports anything else: a signal may come at any moment of its start."""

from __future__ import annotations

import signal
import sys

_BRIEF = frozenset(("--once", "--check-config"))  # which somebody waits for, at a terminal that may be closed


def keep_reloads() -> None:
    """Let SIGHUP wait until the runner reloads (``signals``), which by default would kill it; SIGINT ends it.

    For the process of ``forewarn run`` as a service; does nothing in that of another command.
    """
    if sys.argv[1:2] == ["run"] and _BRIEF.isdisjoint(sys.argv):
        signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGHUP,))
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # as SIGTERM does: KeyboardInterrupt has a traceback
