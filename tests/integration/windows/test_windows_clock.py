# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which boot this is: the same for all programs of a Windows, and another one on another Windows."""

from __future__ import annotations

from pathlib import Path

import tools
from tools.sites.wine import Wine, wine
from tools.sites.wine_modules import program, provide_modules

PROGRAM = """
from forewarn.system.clock import boot_id, boot_seconds
print(boot_id(), boot_seconds())
"""


def clock(windows: Wine) -> tuple[str, float]:
    boot, seconds = windows.run(*program(PROGRAM)).stdout.split()
    return boot, float(seconds)


def test_boot_is_known_to_all_its_programs(booted: Wine, package: Path, tmp_path: Path) -> None:
    (boot, first), (again, second) = clock(booted), clock(booted)
    assert boot == again
    assert boot.startswith("booted-")
    assert 0 < first <= second
    with wine(tmp_path / "prefix") as other:
        provide_modules(other, package, Path(tools.__path__[0]))
        assert clock(other)[0] != boot
