# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the firmware says of this machine: its SMBIOS (DSP0134, System Management BIOS)."""

from __future__ import annotations

import ctypes

from . import api

ASSET_TAG = "the SMBIOS"
_RSMB = int.from_bytes(b"RSMB", "big")
_HEADER = 8  # bytes of RawSMBIOSData before the structures
_CHASSIS, _END = 3, 127  # types of structures
_ASSET_TAG_OFFSET = 8  # of the number of the string, in a chassis


def asset_tag(_place: str) -> str | None:
    """Return the chassis asset tag, or None if there is none."""
    size = api.kernel32.GetSystemFirmwareTable(_RSMB, 0, None, 0)
    content = ctypes.create_string_buffer(size)
    written = api.kernel32.GetSystemFirmwareTable(_RSMB, 0, content, size)
    return chassis_asset_tag(content.raw[_HEADER : min(written, size)])


def chassis_asset_tag(table: bytes) -> str | None:
    """Return the asset tag of the first chassis in a table of structures; None without one, or if it is cut off."""
    place = 0
    while place + 4 <= len(table) and table[place] != _END:
        kind, length = table[place], table[place + 1]
        end = table.find(b"\0\0", place + length)
        if length < 4 or end < 0:
            return None
        if kind == _CHASSIS and length > _ASSET_TAG_OFFSET:
            number = table[place + _ASSET_TAG_OFFSET]
            strings = table[place + length : end].split(b"\0")
            return strings[number - 1].decode("utf-8", "replace").strip() if 0 < number <= len(strings) else None
        place = end + 2
    return None
