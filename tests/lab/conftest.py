# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures: a lab of three hosts for a file of tests, or a fresh one for a test.

The guard of all tests stays as it is: this process talks to loopback only. Hosts are reached by the SSH that it starts.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest
from tools.sites.requirements import lacking
from tools.sites.waiting import PATIENCE_SECONDS

from . import machine
from .images import SUITES
from .lab import HOSTS, SETTINGS, Lab, Start


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs hosts."""
    for item in items:
        if {"start_lab", "lab"} & {*getattr(item, "fixturenames", ())}:
            item.add_marker("lab")


@pytest.fixture(scope="session")
def lab_machine() -> None:
    """Skip where a machine cannot run a lab."""
    reason = machine.missing()
    if reason is not None:
        lacking("hosts", reason)


@pytest.fixture(scope="module")
def lab(lab_machine: None, request: pytest.FixtureRequest) -> Iterator[Lab]:
    """Three hosts, one of each Debian release, or the file's LAB_HOSTS, for all tests of a file, in their order."""
    with Lab(getattr(request.module, "LAB_HOSTS", HOSTS)) as started:
        yield started


@pytest.fixture
def start_lab(lab_machine: None) -> Iterator[Start]:
    """Return a function that starts a lab for this test: ``start_lab({"web_0": "trixie"}, joined=False)``."""
    with ExitStack() as stack:

        def start(hosts: Mapping[str, str] = HOSTS, *, joined: bool = False, image: Path | None = None) -> Lab:
            return stack.enter_context(Lab(hosts, SETTINGS, joined=joined, image=image))

        yield start


@pytest.fixture(params=SUITES)
def suite(request: pytest.FixtureRequest) -> str:
    """Return each Debian release in turn."""
    return str(request.param)


@pytest.fixture(scope="session")
def installed_collection(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory for ANSIBLE_COLLECTIONS_PATH into which the collection was built and installed."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base  # by the workers of a run
    directory = shared / "installed"
    with (shared / "installed.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not directory.exists():
            draft = tmp_path_factory.mktemp("installed")
            _install_collection(repository, draft)
            draft.rename(directory)
    return directory


def _install_collection(repository: Path, directory: Path) -> None:
    environ = {**os.environ, "ANSIBLE_HOME": str(directory / "home")}

    def galaxy(*arguments: str | Path) -> None:
        command = [Path(sys.executable).parent / "ansible-galaxy", "collection", *arguments]
        subprocess.run(command, env=environ, check=True, capture_output=True, timeout=PATIENCE_SECONDS)

    galaxy("build", "--output-path", directory, repository)
    (tarball,) = directory.glob("*.tar.gz")
    galaxy("install", "--offline", "--force", "--collections-path", directory, tarball)


@pytest.fixture
def inventory(lab: Lab, tmp_path: Path) -> Path:
    """Return an Ansible inventory of the lab."""
    path = tmp_path / "inventory.yml"
    path.write_text(lab.inventory(), encoding="utf-8")
    return path
