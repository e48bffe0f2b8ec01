# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What changes the code on purpose fits the code as it is: the modules, and the changes that make no difference."""

from __future__ import annotations

import pytest
from tools.suite.mutants import PACKAGES, equivalent, mutants


def test_each_equivalent_change_can_be_made() -> None:
    """Otherwise a renamed line takes its reason away, and the next run reports a survivor that is none."""
    names = {mutant.name() for package in PACKAGES for mutant in mutants(package)}
    assert [name for name in equivalent() if name not in names] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_each_pattern_names_modules(package: str) -> None:
    root, patterns = PACKAGES[package].root, PACKAGES[package].files
    assert [pattern for pattern in patterns if not list(root.glob(pattern))] == []
