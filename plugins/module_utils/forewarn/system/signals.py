# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What stops and reloads the runner: signals, or the events of a console."""

import sys

if sys.platform == "win32":
    from .windows.signals import StopSignals, block_signals
else:
    from .posix.signals import StopSignals, block_signals

__all__ = ["StopSignals", "block_signals"]
