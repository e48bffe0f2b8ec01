# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The versions that docs/support.md promises are those that CI tests with."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import tomllib
import yaml
from forewarn.bundle import OLDEST_PYTHON
from packaging.requirements import Requirement
from tools.sites.ansible_cores import SUPPORTED as CORES
from tools.sites.pythons import SUPPORTED


class Promise(NamedTuple):
    """The section "Tested with"."""

    cores: list[str]
    commands: list[str]
    vms: list[str]


def _from_to(first: str, last: str) -> list[str]:
    return [f"3.{minor}" for minor in range(int(first[2:]), int(last[2:]) + 1)]


@pytest.fixture(scope="module")
def promise(repository: Path) -> Promise:
    found = re.search(
        r"^- ansible-core ([\d., and]+) on the control node;"
        r" the command with Python (\S+) to (\S+), what VMs run with (\S+) to (\S+)\.$",
        (repository / "docs" / "support.md").read_text(),
        re.MULTILINE,
    )
    assert found is not None
    cores, *pythons = found.groups()
    return Promise(re.findall(r"[\d.]+", cores), _from_to(*pythons[:2]), _from_to(*pythons[2:]))


@pytest.fixture(scope="module")
def job(repository: Path) -> dict[str, Any]:
    workflow = yaml.safe_load((repository / ".github" / "workflows" / "ci.yml").read_text())
    found: dict[str, Any] = workflow["jobs"]["ci"]
    return found


def test_ci_runs_each_python_of_the_command(job: dict[str, Any], promise: Promise) -> None:
    assert job["strategy"]["matrix"]["python"] == promise.commands


def test_each_run_has_the_pythons_of_vms(job: dict[str, Any], promise: Promise) -> None:
    (pythons,) = (step["with"] for step in job["steps"] if step.get("uses", "").startswith("actions/setup-python"))
    *vms, oldest = pythons["python-version"].splitlines()
    assert vms == promise.vms == list(SUPPORTED)
    assert oldest == "${{ matrix.python }}.0"  # the last one is the first on the PATH


def test_each_run_uses_the_acceptance_script(job: dict[str, Any], repository: Path) -> None:
    (step,) = (step for step in job["steps"] if "run" in step)
    assert step["run"].split()[-1] == ".ci/run"
    assert '"PYTHON=$PYTHON"' in step["run"]
    assert step["env"] == {"PYTHON": "python${{ matrix.python }}"}
    assert (repository / ".ci" / "run").stat().st_mode & 0o111


def test_make_takes_these_pythons_and_no_other(repository: Path, promise: Promise) -> None:
    makefile = (repository / "Makefile").read_text()
    choice = makefile[makefile.index("PYTHON ?=") :].split("\n\n")[0].split("heading")[0]
    assert sorted(re.findall(r"\bpython(3\.\d+)", choice)) == promise.commands
    tuples = re.findall(r"\((3), (\d+)\)", choice)
    assert [".".join(pair) for pair in tuples] == [promise.commands[0], promise.commands[-1]]
    pyproject = tomllib.loads((repository / "pyproject.toml").read_text())
    assert pyproject["project"]["requires-python"] == f">={promise.commands[0]}"


def test_the_development_container_has_one_of_them(repository: Path, promise: Promise) -> None:
    found = re.search(r'"image": "python:([\d.]+)"', (repository / ".devcontainer" / "devcontainer.json").read_text())
    assert found is not None
    assert found[1] in promise.commands


def test_each_ansible_core_is_tested_with(repository: Path, promise: Promise) -> None:
    assert list(CORES) == promise.cores
    pyproject = tomllib.loads((repository / "pyproject.toml").read_text())
    (requirement,) = map(Requirement, pyproject["project"]["optional-dependencies"]["ansible"])
    assert [core for core in promise.cores if requirement.specifier.contains(f"{core}.1")] == ["2.19"]
    runtime = yaml.safe_load((repository / "meta" / "runtime.yml").read_text())
    assert runtime["requires_ansible"] == f">={promise.cores[0]}.0"
    others = [core for core in promise.cores if core != "2.19"]
    script = (repository / ".ci" / "run").read_text()
    assert f'make test-ansible CORES="${{FOREWARN_CORES:-{others[0]}}}"' in script
    (job,) = yaml.safe_load((repository / ".github" / "workflows" / "ci.yml").read_text())["jobs"].values()
    assert f'FOREWARN_REQUIRED=versions FOREWARN_CORES="{" ".join(others)}" .ci/run' in job["steps"][-1]["run"]


def test_the_page_on_support_has_the_same_versions(repository: Path, promise: Promise) -> None:
    """The Pythons of a control node are those that the tests look for, and "tested with" names one that they use."""
    text = (repository / "docs" / "support.md").read_text()
    rows = re.findall(r"^\| (2\.\d+) \| (3\.\d+) to (3\.\d+) \| ([^|]+) \|", text, re.MULTILINE)
    assert [core for core, *_pythons, how in rows if not how.startswith("not tested")] == promise.cores
    for core, first, last, how in rows:
        if core in CORES:
            assert sorted(CORES[core], key=lambda python: int(python[2:])) == _from_to(first, last)
            assert how in (CORES[core][0], f"{first} to {last}")
    assert f"Python {promise.vms[0]} or newer" in text
    assert ", ".join(promise.vms[:-1]) + f" and {promise.vms[-1]}" in text


def test_oldest_python_of_vms_is_consistent(repository: Path, promise: Promise) -> None:
    oldest = promise.vms[0]
    assert ".".join(map(str, OLDEST_PYTHON)) == oldest
    modules = yaml.safe_load((repository / "tests" / "config.yml").read_text())["modules"]
    assert modules["python_requires"] == f">= {oldest}"
    pyproject = tomllib.loads((repository / "pyproject.toml").read_text())
    assert pyproject["tool"]["ruff"]["target-version"] == f"py{oldest.replace('.', '')}"
    for page in ("docs/support.md", "docs/adhoc.md", "docs/operations.md"):
        assert f"Python {oldest} or newer" in (repository / page).read_text()
    assert f"Linux with Python {oldest} and systemd " in (repository / "README.md").read_text()
