# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every package that ``make venv`` installs has one version, and it is one that pyproject.toml allows."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest
import tomllib
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


@pytest.fixture(scope="module")
def pinned(repository: Path) -> dict[str, str]:
    lines = (repository / "constraints.txt").read_text().splitlines()
    pairs = [line.split("==") for line in lines if not line.startswith("#")]
    assert all(len(pair) == 2 for pair in pairs)
    return {canonicalize_name(name): version for name, version in pairs}


def test_what_pyproject_asks_for_is_pinned(repository: Path, pinned: dict[str, str]) -> None:
    pyproject = tomllib.loads((repository / "pyproject.toml").read_text())
    extras = pyproject["project"]["optional-dependencies"]
    wanted = [
        *pyproject["build-system"]["requires"],
        *pyproject["project"]["dependencies"],
        *(line for extra in ("ansible", "test", "lint") for line in extras[extra]),
    ]
    for requirement in map(Requirement, wanted):
        assert pinned.get(canonicalize_name(requirement.name), "no version") in requirement.specifier, requirement


def test_what_they_bring_along_is_pinned_too(pinned: dict[str, str]) -> None:
    loose = set()
    for name in pinned:
        try:
            requirements = [Requirement(line) for line in requires(name) or []]
        except PackageNotFoundError:  # pinned for another Python, or a change that is not installed yet
            continue
        loose |= {
            canonicalize_name(requirement.name)
            for requirement in requirements
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        }
    assert sorted(loose - pinned.keys() - {"pip", "setuptools"}) == []
