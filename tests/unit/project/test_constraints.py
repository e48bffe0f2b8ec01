# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every package that ``make venv`` installs has one version, and it is one that pyproject.toml allows."""

from __future__ import annotations

import shutil
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest
import tomllib
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tools.sites import install
from tools.sites.commands import run_program
from tools.suite import pins


@pytest.fixture(scope="module")
def pinned() -> dict[str, str]:
    return pins.pinned()


def test_what_pyproject_asks_for_is_pinned(repository: Path, pinned: dict[str, str]) -> None:
    pyproject = tomllib.loads((repository / "pyproject.toml").read_text())
    extras = pyproject["project"]["optional-dependencies"]
    wanted = [
        *pyproject["build-system"]["requires"],
        *pyproject["project"]["dependencies"],
        *(line for extra in ("ansible", "test", "lint", "docs") for line in extras[extra]),
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


def test_pinned_versions_exist_for_every_promised_python(pinned: dict[str, str]) -> None:
    assert pins.promised()[0] == "3.11.0"
    assert pins.refused(pinned, pins.required(), pins.promised()) == []


def test_a_version_for_later_patch_releases_is_refused() -> None:
    requires = {("soupsieve", "4.1.2"): ">=3.11.5", ("soupsieve", "2.10"): ">=3.10", ("old", "1"): ""}
    (sentence,) = pins.refused({"soupsieve": "4.1.2", "old": "1", "missing": "1"}, requires, pins.promised())
    assert sentence.startswith("soupsieve 4.1.2 needs Python >=3.11.5, which leaves out 3.11.0")
    assert pins.refused({"soupsieve": "2.10"}, requires, pins.promised()) == []


def test_what_cannot_be_installed_keeps_nothing_else(repository: Path, tmp_path: Path) -> None:
    """The demo, the tests, the static checks and the documentation: make with a Python that cannot install one."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(repository / name, tmp_path)
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "pyvenv.cfg").touch()
    python = tmp_path / ".venv" / "bin" / "python"
    python.write_text('#!/bin/sh\necho "$2" >>asked\ntest "$2" != lint\n')
    python.chmod(0o755)
    process = run_program("make", "venv", cwd=tmp_path)
    assert process.returncode != 0
    assert (tmp_path / "asked").read_text().split() == list(install.PURPOSES)
    stamps = {path.name for path in (tmp_path / ".venv").glob(".installed*")}
    assert stamps == {".installed", ".installed-test", ".installed-docs"}


def test_each_purpose_asks_only_for_its_own(repository: Path) -> None:
    extras = tomllib.loads((repository / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for purpose in ("test", "lint", "docs"):
        assert set(install.requirements(purpose)) == {*extras["ansible"], *extras[purpose]}
    assert install.requirements("demo") == ["--editable", f"{repository}[ansible]"]
