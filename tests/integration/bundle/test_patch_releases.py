# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Distributions keep the patch release of Python that they began with: nothing of ours needs a later one.

Debian 12 has 3.11.2, Ubuntu 22.04 began with 3.10.4 and RHEL 8 with 3.8.0. A table says what later ones brought, and
where this machine has two releases of one version, so do these.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
from tools.sites.commands import run_program
from tools.sites.pythons import RUNNING, SUPPORTED, patch_releases, python
from tools.suite.patch_releases import ADDED, File, additions


@pytest.fixture(scope="module")
def files(repository: Path) -> list[File]:
    """Return what runs with the Python of a distribution."""
    places = ("plugins", "extensions", "roles", "demo")
    return [File(path) for place in places for path in sorted((repository / place).rglob("*.py"))]


def test_nothing_of_the_table_is_used(files: list[File]) -> None:
    assert len(files) > 300
    assert [found for file in files for found in file.uses(ADDED)] == []


def test_newer_patch_release_adds_nothing_that_we_use(files: list[File]) -> None:
    several = [releases for releases in map(patch_releases, SUPPORTED) if len(releases) > 1]
    if not several:
        pytest.skip("this machine has one release of each Python")
    modules = set().union(*(file.standard_modules() for file in files))
    for releases in several:
        found = additions(releases[min(releases)], releases[max(releases)], modules)
        assert [offence for file in files for offence in file.uses(found)] == []


def test_the_table_has_what_two_releases_differ_in() -> None:
    """Where Debian's Python is here too, the table agrees with it: a judge that nobody of ours wrote."""
    releases = patch_releases("3.11")
    if not releases or not (min(releases) < (3, 11, 4) <= max(releases) < (3, 11, 9)):
        pytest.skip("this machine has no two releases of Python 3.11 before and after 3.11.4")
    found = additions(releases[min(releases)], releases[max(releases)], {"tarfile", "shutil", "email.utils", "sys"})
    listed = [name for name, came in ADDED.items() if "3.11.4" in came.split()]
    assert len(listed) > 10
    assert sorted(set(found) & ADDED.keys()) == sorted(listed)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("import tarfile\ntarfile.open(name).extractall(place, filter='data')", ["tarfile.TarFile.extractall(filter)"]),
        ("from tarfile import data_filter", ["tarfile.data_filter"]),
        ("import xml.etree.ElementTree as ET\nparser.flush()", ["xml.etree.ElementTree.XMLParser.flush"]),
        ("from urllib import parse\nparse.parse_qsl(query, separator='&')", ["urllib.parse.parse_qsl(separator)"]),
        ("file.flush()\ntext.replace('a', 'b')\nextractall(filter='data')", []),
        ("import tarfile\ntarfile.open(name).extractall(place)", []),
    ],
)
def test_an_offence_is_found(tmp_path: Path, line: str, found: list[str]) -> None:
    path = tmp_path / "some.py"
    path.write_text(line)
    names = [name for name in ADDED if not name.startswith("xml.etree.ElementTree.XMLPullParser")]
    assert [each.partition(": ")[2] for each in File(path).uses(names)] == found


def test_oldest_patch_release_runs_policy_diff(repository: Path, package: Path, tmp_path: Path) -> None:
    """As the guides and the sample workflows do, with Debian's own Python where it is here."""
    policies = tmp_path / "policies"
    policies.mkdir()
    shutil.copy(repository / "policies" / "web-tier.yml", policies)
    author = ("-c", "user.name=T", "-c", "user.email=t@example.com")
    for command in (("init", "-q"), ("add", "."), (*author, "commit", "-q", "-m", "one")):
        run_program("git", *command, cwd=tmp_path).check_returncode()
    libraries = [path for path in sys.path if Path(path).name == "site-packages"]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(package.parent), *libraries])}
    program = "import sys; from forewarn.cli.main import main; sys.exit(main())"
    diff = [python(RUNNING), "-S", "-B", "-c", program, "policy", "diff", "git:HEAD:policies", "policies"]
    same = run_program(*diff, "--fail-on", "any", cwd=tmp_path, env=environ)
    assert (same.returncode, same.stderr) == (0, ""), same.stdout
    (policies / "web-tier.yml").write_text("name: web-tier\nrule: {match: [{id: all, output: approve}]}\n")
    assert run_program(*diff, cwd=tmp_path, env=environ).returncode == 1
