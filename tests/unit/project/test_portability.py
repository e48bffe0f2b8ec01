# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Only ``system/`` names what differs between operating systems, and its two halves offer the same."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from tools.suite.portability import ALLOWED, SystemName, system_names, violations


@pytest.fixture(scope="module")
def names(package: Path) -> list[SystemName]:
    return system_names(package)


def test_only_the_seam_names_a_system(names: list[SystemName]) -> None:
    assert violations(names) == []


@pytest.mark.parametrize(
    "source",
    [
        "import fcntl",
        "import ctypes.wintypes",
        "from signal import SIGTERM",
        "from os import name",
        "def late():\n    import winreg",
        "import os\nif os.name == 'nt':\n    pass",
        "import sys\nprint(sys.platform)",
        "import os\nos.open('x', os.O_RDONLY)",
        "import os\nos.open('x', 0, dir_fd=3)",
        "import time\ntime.clock_gettime(time.CLOCK_BOOTTIME)",
        "open('/proc/1/stat')",
        "open('C:/x')\nopen('C:\\\\x')",
    ],
)
def test_name_of_one_system_is_found(tmp_path: Path, source: str) -> None:
    (tmp_path / "runner").mkdir()
    (tmp_path / "system").mkdir()
    (tmp_path / "system" / "clock.py").write_text(source)
    assert violations(system_names(tmp_path)) == []
    (tmp_path / "runner" / "clock.py").write_text(source)
    assert [found.partition(":")[0] for found in violations(system_names(tmp_path))] == ["runner/clock.py"]


def test_each_exception_is_needed(names: list[SystemName]) -> None:
    assert [part for part in ALLOWED if not violations(names, without=part)] == []


def test_both_systems_offer_what_is_imported(package: Path) -> None:
    facades = [path for path in (package / "system").glob("*.py") if "win32" in path.read_text()]
    assert len(facades) > 10, "the walk found them"
    for path in facades:
        branch = next(node for node in ast.parse(path.read_bytes()).body if isinstance(node, ast.If))
        names = [
            {alias.name for node in body for alias in getattr(node, "names", ())}
            for body in (branch.body, branch.orelse)
        ]
        assert names[0] == names[1], path.name
