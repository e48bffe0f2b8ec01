# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the firmware says of this machine."""

import sys

if sys.platform == "win32":
    from .windows.firmware import ASSET_TAG, asset_tag
else:
    from .posix.firmware import ASSET_TAG, asset_tag

__all__ = ["ASSET_TAG", "asset_tag"]
