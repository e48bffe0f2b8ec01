# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table in CONTRIBUTING.md names tests for every package, and every test for something. What pre-commit runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml


class Row(NamedTuple):
    """What changes, and the words that make unit and make integration take for PACKAGE."""

    places: list[str]
    unit: list[str]
    integration: list[str]


@pytest.fixture(scope="module")
def rows(repository: Path) -> list[Row]:
    text = (repository / "CONTRIBUTING.md").read_text().split("## Which tests to run")[1].split("\n## ")[0]
    lines = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("|")][2:]
    found = []
    for cells in lines:
        places, unit, integration = (re.findall("`([^`]+)`", cell) for cell in cells)
        assert integration[1:] in ([], ["make lab"])
        found.append(Row(places, " ".join(unit).split(), " ".join(integration[:1]).split()))
    return found


def matches(directory: Path, word: str) -> set[Path]:
    """Return the files that PACKAGE=word selects."""
    return {directory / word} if (directory / word).exists() else set(directory.rglob(f"test_{word}*.py"))


def test_every_package_has_a_row(repository: Path, package: Path, rows: list[Row]) -> None:
    wanted = {f"{path.relative_to(repository)}/" for path in package.iterdir() if (path / "__init__.py").exists()}
    wanted |= {f"plugins/{path.name}/" for path in (repository / "plugins").iterdir() if path.name != "module_utils"}
    wanted |= {str(path.relative_to(repository)) for path in package.parent.glob("*.py")}
    wanted |= {f"roles/{path.name}/" for path in (repository / "roles").iterdir()}
    wanted |= {"policies/", "playbooks/", "demo/"}
    named = {place for row in rows for place in row.places}
    assert len(wanted) > 15
    assert sorted(wanted - named) == []


def test_each_place_exists(repository: Path, package: Path, rows: list[Row]) -> None:
    for place in (place for row in rows for place in row.places):
        assert (repository / place).exists() or (package / place).exists(), place


@pytest.mark.parametrize("kind", ["unit", "integration"])
def test_table_names_each_test_and_nothing_else(kind: str, repository: Path, rows: list[Row]) -> None:
    directory = repository / "tests" / kind
    named: set[Path] = set()
    for word in (word for row in rows for word in getattr(row, kind)):
        found = matches(directory, word)
        assert found, word
        named |= found
    tests = {path for path in directory.iterdir() if path.name.startswith("test_") or any(path.glob("test_*.py"))}
    assert sorted(path.name for path in tests - named) == []


def test_pre_commit_runs_commands_of_make_lint(repository: Path) -> None:
    makefile = (repository / "Makefile").read_text()
    config = yaml.safe_load((repository / ".pre-commit-config.yaml").read_text())
    (local,) = config["repos"]
    assert len(local["hooks"]) >= 5
    for hook in local["hooks"]:
        assert hook["language"] == "system"  # with the version that constraints.txt says
        command = hook["entry"].removeprefix(".venv/bin/").removesuffix(" --fix --force-exclude")
        assert f"\t{command.removesuffix(' --force-exclude')}" in makefile
