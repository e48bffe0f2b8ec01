# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``make release`` in a clone: what it writes, commits, tags and builds, and when it leaves everything as it is."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import yaml
from tools.suite.sizes import in_turn

pytestmark = pytest.mark.in_turn(5, together=True)

VERSION = "7.8.9"
# What users of the collection get: everything else at the root of the repository is for its contributors.
COLLECTION = {
    *("FILES.json", "MANIFEST.json", "LICENSE", "LICENSES", "REUSE.toml", ".ansible-lint", ".yamllint"),
    *("README.md", "CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "MAINTAINERS.md", "changelogs", "docs"),
    *("extensions", "meta", "playbooks", "plugins", "policies", "pyproject.toml", "roles", "tests"),
}


class Clone:
    """A repository with all that would be committed here, and the command in it."""

    def __init__(self, directory: Path, home: Path, tree: Path | None = None) -> None:
        self.directory = directory
        self.environ = {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(home),
            "LC_ALL": "C.UTF-8",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        for role in ("AUTHOR", "COMMITTER"):
            self.environ |= {f"GIT_{role}_{what}": "ci@localhost" for what in ("NAME", "EMAIL")}
        if tree is not None:
            subprocess.run([tree / "tests" / "tools" / "copy-tree.sh", directory], check=True)
            self.git("init", "--quiet", "--initial-branch=main")
            (directory / "changelogs" / "fragments" / "of-the-test.yml").write_text("bugfixes: [of the test.]\n")
            self.commit("all")

    def run(self, *command: str | Path, check: bool = False) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=self.directory, env=self.environ, capture_output=True, text=True, timeout=300, check=check
        )

    def git(self, *words: str) -> str:
        return self.run("git", *words, check=True).stdout.strip()

    def commit(self, message: str) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", f"--message={message}")

    def release(self, version: str) -> subprocess.CompletedProcess[str]:
        return self.run(self.directory / ".ci" / "release", version)

    def state(self) -> list[str]:
        return [self.git(*words.split()) for words in ("rev-parse HEAD", "tag", "status --porcelain", "branch")]


@pytest.fixture(scope="module")
def clone(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Clone:
    directory = tmp_path_factory.mktemp("release")
    (directory / "home").mkdir()
    return Clone(directory / "clone", directory / "home", repository)


@pytest.fixture(scope="module")
def released(clone: Clone, tmp_path_factory: pytest.TempPathFactory) -> Clone:
    directory = tmp_path_factory.mktemp("released") / "clone"
    clone.git("clone", "--quiet", str(clone.directory), str(directory))
    found = Clone(directory, Path(clone.environ["HOME"]))
    # Ignored by git, but not by Galaxy's build.
    (directory / ".coverage").touch()
    process = found.release(VERSION)
    assert process.returncode == 0, process.stdout + process.stderr
    assert f"git push --atomic origin main v{VERSION}" in process.stdout
    return found


@pytest.fixture
def another(released: Clone, tmp_path: Path) -> Clone:
    """Return a copy of what was released, with a fragment for another release."""
    directory = shutil.copytree(released.directory, tmp_path / "clone")
    shutil.rmtree(directory / "dist")
    found = Clone(directory, Path(released.environ["HOME"]))
    (directory / "changelogs" / "fragments" / "another.yml").write_text("bugfixes: [another.]\n")
    found.commit("another")
    return found


def test_release_is_one_commit_and_a_tag(released: Clone, clone: Clone) -> None:
    assert released.git("log", "--format=%s", f"{clone.git('rev-parse', 'HEAD')}..") == f"Release {VERSION}"
    assert released.git("cat-file", "-t", f"v{VERSION}") == "tag"
    assert released.git("rev-parse", f"v{VERSION}^{{commit}}") == released.git("rev-parse", "HEAD")
    assert released.git("status", "--porcelain") == ""


def test_the_changelog_has_what_the_fragments_said(released: Clone) -> None:
    changelogs = released.directory / "changelogs"
    assert [path.name for path in (changelogs / "fragments").iterdir()] == [".keep"]
    assert list(yaml.safe_load((changelogs / "changelog.yaml").read_text())["releases"]) == [VERSION]
    assert "of the test" in (released.directory / "CHANGELOG.md").read_text()


def test_the_versions_agree_and_links_lead_somewhere(released: Clone) -> None:
    """By the tests of the released tree, which find its package through PYTHONPATH."""
    package = released.directory / "plugins" / "module_utils"
    tests = ["tests/unit/project/test_version.py", "tests/unit/project/test_docs.py"]
    pytest_command = [sys.executable, "-m", "pytest", "-n0", "-p", "no:cacheprovider", *tests]
    process = released.run("env", f"PYTHONPATH={package}", *pytest_command)
    assert process.returncode == 0, process.stdout + process.stderr


def test_collection_contains_exactly_what_users_need(released: Clone) -> None:
    with tarfile.open(released.directory / "dist" / f"forewarn-azure-{VERSION}.tar.gz") as tarball:
        names = tarball.getnames()
        manifest = tarball.extractfile("MANIFEST.json")
        assert manifest is not None
        assert json.load(manifest)["collection_info"]["version"] == VERSION
    assert {name.partition("/")[0] for name in names} == COLLECTION
    assert {name for name in names if name.startswith("tests/")} == {"tests/config.yml"}
    tracked = set(released.git("ls-files").splitlines())
    assert {name for name in names if "." in Path(name).name} <= tracked | {"FILES.json", "MANIFEST.json"}
    parts = ("plugins", "roles", "playbooks", "policies", "meta", "docs", "changelogs")
    assert {name for name in tracked if name.startswith(parts)} <= set(names)


def test_the_wheel_has_the_package(released: Clone) -> None:
    with zipfile.ZipFile(released.directory / "dist" / f"forewarn-{VERSION}-py3-none-any.whl") as wheel:
        names = set(wheel.namelist())
    package = released.directory / "plugins" / "module_utils"
    tracked = released.git("ls-files", "plugins/module_utils/forewarn").splitlines()
    assert {str((released.directory / name).relative_to(package)) for name in tracked} <= names
    assert {name.partition("/")[0] for name in names} == {"forewarn", f"forewarn-{VERSION}.dist-info"}


@pytest.mark.parametrize(
    ("version", "reason"),
    in_turn(
        [
            ("", "say which: make release VERSION=1.2.3"),
            ("7.9", "say which: make release VERSION=1.2.3"),
            ("v7.9.0", "say which: make release VERSION=1.2.3"),
            ("7.9.0-rc.1", "say which: make release VERSION=1.2.3"),
            (VERSION, f"there is a tag v{VERSION} already"),
            ("7.8.10 ", "say which: make release VERSION=1.2.3"),
            ("7.8.8", f"7.8.8 is older than {VERSION}"),
            ("0.10.0", f"0.10.0 is older than {VERSION}"),
        ],
        3,
    ),
)
def test_a_version_that_cannot_be_is_refused(another: Clone, version: str, reason: str) -> None:
    assert_refused(another, version, reason)


def test_a_release_without_fragments_is_refused(another: Clone) -> None:
    another.git("reset", "--quiet", "--hard", f"v{VERSION}")
    assert_refused(another, "7.9.0", "there is no fragment")


@pytest.mark.parametrize("name", ["README.md", "new.txt"])
def test_changes_that_are_not_committed_are_refused(another: Clone, name: str) -> None:
    (another.directory / name).write_text("changed")
    assert_refused(another, "7.9.0", "there are changes that are not committed")


def test_another_branch_is_refused(another: Clone) -> None:
    another.git("checkout", "--quiet", "-b", "feature")
    assert_refused(another, "7.9.0", "main is not checked out")


@pytest.mark.parametrize("program", in_turn(["antsibull-changelog", "git-commit", "ansible-galaxy", "python"]))
def test_a_step_that_fails_leaves_nothing_behind(another: Clone, tmp_path: Path, program: str) -> None:
    if program == "git-commit":
        hook = another.directory / ".git" / "hooks" / "pre-commit"
    else:
        hook = tmp_path / "bin" / program
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 3\n")
    hook.chmod(0o755)
    another.environ["PATH"] = f"{tmp_path / 'bin'}:{another.environ['PATH']}"
    assert_refused(another, "7.9.0", "a step failed, and the checkout is again as it was")


def assert_refused(clone: Clone, version: str, reason: str) -> None:
    before = clone.state()
    process = clone.release(version)
    assert process.returncode != 0, process.stdout
    assert f"no release: {reason}" in process.stderr
    assert clone.state() == before
    assert not (clone.directory / "dist").exists()
