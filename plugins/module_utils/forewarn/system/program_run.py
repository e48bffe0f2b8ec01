# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that are run to their end, or ended with all that they have started."""

import sys

if sys.platform == "win32":
    from .windows.program_run import run_program
else:
    from .posix.program_run import run_program

__all__ = ["run_program"]
