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

    def release(self, version: str, **environ: str) -> subprocess.CompletedProcess[str]:
        variables = [f"{name}={value}" for name, value in environ.items()]
        return self.run("env", *variables, self.directory / ".ci" / "release", version)

    def state(self) -> list[str]:
        return [self.git(*words.split()) for words in ("rev-parse HEAD", "tag", "status --porcelain", "branch")]


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the private key of a maintainer; its public key is beside it."""
    return make_key(tmp_path_factory.mktemp("keys") / "maintainer")


@pytest.fixture(scope="module")
def clone(repository: Path, key: Path, tmp_path_factory: pytest.TempPathFactory) -> Clone:
    directory = tmp_path_factory.mktemp("release")
    (directory / "home").mkdir()
    found = Clone(directory / "clone", directory / "home", repository)
    with (found.directory / "allowed_signers").open("a") as allowed:
        allowed.write(f'release@forewarn namespaces="forewarn-release" {key.with_suffix(".pub").read_text()}')
    found.commit("a maintainer")
    return found


@pytest.fixture(scope="module")
def released(clone: Clone, key: Path, tmp_path_factory: pytest.TempPathFactory) -> Clone:
    """Return a clone with a release that the maintainer has signed."""
    directory = tmp_path_factory.mktemp("released") / "clone"
    clone.git("clone", "--quiet", str(clone.directory), str(directory))
    found = Clone(directory, Path(clone.environ["HOME"]))
    # Ignored by git, but not by Galaxy's build.
    (directory / ".coverage").touch()
    process = found.release(VERSION, SIGNING_KEY=str(key))
    assert process.returncode == 0, process.stdout + process.stderr
    assert f"git push --atomic origin main v{VERSION}" in process.stdout
    assert "not signed" not in process.stderr
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


@pytest.fixture
def download(released: Clone, tmp_path: Path) -> Path:
    """Return a directory with what a user has: the files of the release, and allowed_signers of the repository."""
    directory = shutil.copytree(released.directory / "dist", tmp_path / "download")
    shutil.copy(released.directory / "allowed_signers", directory)
    return directory


def make_key(path: Path) -> Path:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "of the test", "-f", path], check=True)
    return path


def documented_checks() -> list[str]:
    """Return the commands with which users check a release, as the documentation has them."""
    content = (Path(__file__).parents[3] / "docs" / "SECURITY.md").read_text()
    block = content.partition("## Checking a release")[2].partition("```console\n")[2].partition("```")[0]
    return [line.removeprefix("$ ") for line in block.splitlines()]


def checked(download: Path) -> list[bool]:
    """Return whether the documented checks succeed: that of the signature, and that of the files."""
    return [subprocess.run(["sh", "-c", command], cwd=download).returncode == 0 for command in documented_checks()]


def sign(key: Path, namespace: str, sums: Path) -> None:
    sums.with_name("SHA256SUMS.sig").unlink()
    subprocess.run(["ssh-keygen", "-Y", "sign", "-n", namespace, "-f", key, sums], check=True)


def test_documented_checks_accept_a_signed_release(download: Path) -> None:
    assert checked(download) == [True, True]
    named = {line.split()[1] for line in (download / "SHA256SUMS").read_text().splitlines()}
    assert named == {f"forewarn-azure-{VERSION}.tar.gz", f"forewarn-{VERSION}-py3-none-any.whl"}
    (download / f"forewarn-{VERSION}-py3-none-any.whl").unlink()  # whoever needs only the collection
    assert checked(download) == [True, True]


def test_a_changed_file_or_sum_is_refused(download: Path) -> None:
    archive, sums = download / f"forewarn-azure-{VERSION}.tar.gz", download / "SHA256SUMS"
    archive.write_bytes(archive.read_bytes() + b"\0")
    assert checked(download) == [True, False]
    subprocess.run("sha256sum *.tar.gz *.whl > SHA256SUMS", cwd=download, shell=True, check=True)
    assert checked(download) == [False, True]
    sums.write_text(sums.read_text() + "\n")
    assert checked(download)[0] is False


def test_signature_for_anything_else_is_refused(download: Path, key: Path, tmp_path: Path) -> None:
    sums = download / "SHA256SUMS"
    sign(key, "git", sums)
    assert checked(download) == [False, True]
    sign(make_key(tmp_path / "stranger"), "forewarn-release", sums)
    assert checked(download) == [False, True]
    sign(key, "forewarn-release", sums)
    assert checked(download) == [True, True]


def test_key_in_an_agent_signs_a_release(another: Clone, key: Path, tmp_path: Path) -> None:
    public = tmp_path / "maintainer.pub"
    shutil.copy(key.with_suffix(".pub"), public)
    assert_refused(another, "7.9.0", "a step failed", SIGNING_KEY=str(public))
    socket = tmp_path / "agent"
    with subprocess.Popen(["ssh-agent", "-D", "-a", socket], stdout=subprocess.PIPE) as agent:
        try:
            assert agent.stdout is not None
            agent.stdout.readline()  # written when the socket is there
            environ = {"SSH_AUTH_SOCK": str(socket)}
            subprocess.run(["ssh-add", "-q", key], env={**another.environ, **environ}, check=True)
            process = another.release("7.9.0", SIGNING_KEY=str(public), **environ)
        finally:
            agent.kill()
    assert process.returncode == 0, process.stdout + process.stderr
    shutil.copy(another.directory / "allowed_signers", another.directory / "dist")
    assert checked(another.directory / "dist") == [True, True]


def test_unsigned_release_warns_and_keeps_no_signature(another: Clone) -> None:
    earlier = another.directory / "dist" / "SHA256SUMS.sig"
    earlier.parent.mkdir()
    earlier.write_text("of an earlier release")
    process = another.release("7.9.0")
    assert process.returncode == 0, process.stdout + process.stderr
    assert "WARNING: this release is not signed." in process.stderr
    assert not earlier.exists()
    assert "SHA256SUMS.sig" not in process.stdout
    assert "forewarn-azure-7.9.0.tar.gz" in earlier.with_suffix("").read_text()


@pytest.mark.parametrize("name", ["", "/nowhere/id_ed25519", "~/id_ed25519"])
def test_a_signing_key_without_file_is_refused(another: Clone, name: str) -> None:
    found = name.replace("~", another.environ["HOME"])
    assert_refused(another, "7.9.0", f"SIGNING_KEY names no file: '{found}'", SIGNING_KEY=name)


def test_key_that_nobody_allows_is_refused(another: Clone, tmp_path: Path) -> None:
    stranger = make_key(tmp_path / "stranger")
    assert_refused(another, "7.9.0", "nobody could check it: allowed_signers", SIGNING_KEY=str(stranger))


def assert_refused(clone: Clone, version: str, reason: str, **environ: str) -> None:
    before = clone.state()
    process = clone.release(version, **environ)
    assert process.returncode != 0, process.stdout
    assert f"no release: {reason}" in process.stderr
    assert clone.state() == before
    assert not (clone.directory / "dist").exists()
