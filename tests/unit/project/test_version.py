# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One version: of the collection, of the package as it runs, of the wheel."""

from __future__ import annotations

import re
from pathlib import Path

import forewarn
import tomllib
import yaml


def test_the_package_has_the_version_of_the_collection(repository: Path) -> None:
    galaxy = yaml.safe_load((repository / "galaxy.yml").read_text())
    assert forewarn.__version__ == galaxy["version"]


def test_the_wheel_takes_the_version_of_the_collection(repository: Path) -> None:
    hatch = tomllib.loads((repository / "pyproject.toml").read_text())["tool"]["hatch"]["version"]
    match = re.search(hatch["pattern"], (repository / hatch["path"]).read_text())
    assert match is not None
    assert match["version"] == forewarn.__version__
