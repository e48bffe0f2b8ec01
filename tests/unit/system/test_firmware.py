# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from forewarn.system.windows.firmware import chassis_asset_tag

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
