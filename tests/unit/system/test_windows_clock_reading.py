# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which boot this is, from what Windows says: its own time of the boot moves when somebody sets the clock."""

from __future__ import annotations

import struct
from types import SimpleNamespace
from typing import Any

import pytest
from forewarn.system.windows import clock

BOOTED = 134_000_000_000_000_000  # in 100 ns since 1601


def boot(monkeypatch: pytest.MonkeyPatch, booted: int, set_by: int, status: int = 0) -> str:
    """Return the boot's id where the clock was set by so much since a boot (SYSTEM_TIMEOFDAY_INFORMATION)."""

    def query(kind: int, place: Any, size: int, _returned: None) -> int:
        assert kind == 3
        answer = struct.pack("<qqqLLQQ", booted, booted + 7, 0, 0, 0, set_by & 0xFFFF_FFFF_FFFF_FFFF, 0)
        place.raw = answer[:size]
        return status

    monkeypatch.setattr(clock, "ntdll", SimpleNamespace(NtQuerySystemInformation=query))
    return clock.boot_id()


@pytest.mark.parametrize("step", [36_000_000_000, -36_000_000_000, 1])
def test_setting_the_clock_is_no_boot(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    assert boot(monkeypatch, BOOTED + step, step) == boot(monkeypatch, BOOTED, 0)
    assert boot(monkeypatch, BOOTED + step, 0) != boot(monkeypatch, BOOTED, 0)


def test_boot_that_windows_does_not_tell_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    assert boot(monkeypatch, BOOTED, 0, status=-1) == ""
