# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from forewarn.system.windows import api
from forewarn.system.windows.firmware import asset_tag, chassis_asset_tag

TAG = "7783-7084-3265-9085-8269-3286-77"


def structure(kind: int, formatted: bytes, *strings: str) -> bytes:
    texts = b"".join(text.encode() + b"\0" for text in strings) or b"\0"
    return bytes((kind, 4 + len(formatted), 1, 0)) + formatted + texts + b"\0"


BIOS = structure(0, bytes(20), "American Megatrends", "1.0")
END = structure(127, b"")


def chassis(asset_tag: int, *strings: str) -> bytes:
    return structure(3, bytes((1, 3, 2, 0, asset_tag, 3)), *strings)


@pytest.mark.parametrize(
    ("table", "tag"),
    [
        (BIOS + chassis(4, "Microsoft", "7.0", "0000", TAG) + END, TAG),
        (chassis(1, TAG) + chassis(1, "other") + END, TAG),
        (BIOS + chassis(0, "Microsoft") + END, None),
        (BIOS + chassis(9, "Microsoft") + END, None),
        (BIOS + structure(3, b"\1", "short") + END, None),
        (BIOS + END + chassis(1, TAG), None),
        (BIOS, None),
        (b"", None),
        (bytes(64), None),
    ],
)
def test_asset_tag_of_the_chassis(table: bytes, tag: str | None) -> None:
    assert chassis_asset_tag(table) == tag


def test_table_may_be_cut_off_anywhere() -> None:
    table = BIOS + chassis(1, TAG) + END
    found = {chassis_asset_tag(table[:size]) for size in range(len(table))}
    assert found <= {None, TAG}


@pytest.mark.parametrize("there", [True, False])
def test_table_follows_a_header(monkeypatch: pytest.MonkeyPatch, there: bool) -> None:
    """RawSMBIOSData: four bytes of versions, the length, the structures. No firmware is no table."""
    table = BIOS + chassis(1, TAG) + END
    raw = bytes((0, 3, 1, 0)) + len(table).to_bytes(4, "little") + table if there else b""

    def get(provider: int, table_id: int, place: Any, size: int) -> int:
        assert (provider.to_bytes(4, "big"), table_id) == (b"RSMB", 0)
        if size and place is not None:
            place.raw = raw[:size]
        return len(raw)

    monkeypatch.setattr(api, "kernel32", SimpleNamespace(GetSystemFirmwareTable=get))
    assert asset_tag("") == (TAG if there else None)
