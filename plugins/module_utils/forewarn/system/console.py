# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How what programs print becomes text."""

import sys

if sys.platform == "win32":
    from .windows.console import decode, decode_ends
else:
    from .posix.console import decode, decode_ends

__all__ = ["decode", "decode_ends"]
