# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The versions that the README promises are those that CI tests with."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import tomllib
import yaml
from packaging.requirements import Requirement
from tools.pythons import SUPPORTED


class Promise(NamedTuple):
    """The README's section "Tested with"."""

    cores: list[str]
    commands: list[str]
    vms: list[str]


def _from_to(first: str, last: str) -> list[str]:
    return [f"3.{minor}" for minor in range(int(first[2:]), int(last[2:]) + 1)]


@pytest.fixture(scope="module")
def promise(repository: Path) -> Promise:
    found = re.search(
        r"^- ansible-core (\S+) and (\S+) on the control node, .*;"
        r" the command with (\S+) to (\S+), what VMs run with (\S+) to (\S+)\.$",
        (repository / "README.md").read_text(),
        re.MULTILINE,
    )
    assert found is not None
    old, new, *pythons = found.groups()
    return Promise([old, new], _from_to(*pythons[:2]), _from_to(*pythons[2:]))


@pytest.fixture(scope="module")
def job(repository: Path) -> dict[str, Any]:
    workflow = yaml.safe_load((repository / ".github" / "workflows" / "ci.yml").read_text())
    found: dict[str, Any] = workflow["jobs"]["ci"]
    return found


def test_ci_has_a_run_for_each_python_of_the_command(job: dict[str, Any], promise: Promise) -> None:
    assert job["strategy"]["matrix"]["python"] == promise.commands


def test_each_run_has_the_pythons_of_vms(job: dict[str, Any], promise: Promise) -> None:
    (pythons,) = (step["with"] for step in job["steps"] if step.get("uses", "").startswith("actions/setup-python"))
    assert pythons["python-version"].split() == promise.vms == list(SUPPORTED)


def test_each_run_does_what_is_done_before_a_change_is_accepted(job: dict[str, Any], repository: Path) -> None:
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


def test_both_ansible_cores_are_tested_with(repository: Path, promise: Promise) -> None:
    old, new = promise.cores
    pyproject = tomllib.loads((repository / "pyproject.toml").read_text())
    (requirement,) = map(Requirement, pyproject["project"]["optional-dependencies"]["ansible"])
    minor = int(old.partition(".")[2])
    assert requirement.specifier == Requirement(f"ansible-core>={old},<2.{minor + 1}").specifier
    assert f"--core {new} " in (repository / "Makefile").read_text()
    assert f'VERSION = "{new}"\n' in (repository / "tests" / "integration" / "test_ansible_next.py").read_text()
