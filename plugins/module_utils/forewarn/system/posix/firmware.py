# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the firmware says of this machine, in files of Linux."""

from __future__ import annotations

from pathlib import Path

ASSET_TAG = "/sys/class/dmi/id/chassis_asset_tag"


def asset_tag(path: str) -> str | None:
    """Return the chassis asset tag in a file such as ``ASSET_TAG``, or None if it cannot be read."""
    try:
        with Path(path).open("rb") as file:
            return file.read(256).decode("utf-8", "replace").strip()
    except OSError:
        return None
