# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The hooks for pre-commit: installed as in anybody's repository, and run there on policies good and bad.

pre-commit makes an environment and has pip install this repository into it. A test has no network, so what the package
depends on, and what builds it, is that of the environment of the tests: it is on PYTHONPATH, and pip looks for nothing.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from tools.sites.commands import run_program

pytestmark = pytest.mark.in_turn(5, together=True)

HOOKS = ("check", "test", "fmt", "verify")
PACKAGED = ("LICENSE", "LICENSES", "README.md", "plugins/module_utils/forewarn", "pyproject.toml")
POLICY = """\
name: p
rule:
  match:
    - id: brief
      condition: event.EventType == "Freeze" && event.DurationInSeconds >= 0 && event.DurationInSeconds < 9
      output: approve
    - id: anything-else
      output: hold
"""
TESTS = """\
section:
  - name: s
    tests:
      - {name: t, input: {event: {EventType: Freeze, DurationInSeconds: 5}}, output: approve}
"""


class World(NamedTuple):
    """The environment of commands, and a repository that has the hooks, tagged v1."""

    environ: dict[str, str]
    hooks: Path


def git(directory: Path, *words: str) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@localhost"]
    subprocess.run(["git", *identity, *words], cwd=directory, check=True, capture_output=True)


def committed(directory: Path) -> None:
    git(directory, "init", "--quiet", "--initial-branch=main")
    git(directory, "add", "--all")
    git(directory, "commit", "--quiet", "--message=all")


@pytest.fixture(scope="module")
def world(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> World:
    directory = tmp_path_factory.mktemp("pre-commit")
    hooks, libraries = directory / "hooks", directory / "libraries"
    hooks.mkdir()
    for name in (".pre-commit-hooks.yaml", *PACKAGED):
        source, target = repository / name, hooks / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)
    committed(hooks)
    git(hooks, "tag", "v1")
    libraries.mkdir()
    for place in [Path(path) for path in sys.path if "site-packages" in path]:
        for entry in place.iterdir():
            # Not this package, which is to be installed, nor pip, which the new environment has.
            if not entry.name.startswith(("forewarn", "_editable", "pip")) and entry.suffix != ".pth":
                (libraries / entry.name).symlink_to(entry)
    environ = {
        **{name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ},
        "HOME": str(directory),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "PRE_COMMIT_HOME": str(directory / "cache"),
        "PYTHONPATH": str(libraries),
        "PIP_NO_INDEX": "1",
        "PIP_NO_DEPS": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # as pip reads it: without isolation
        "PIP_QUIET": "1",
    }
    return World(environ, hooks)


@pytest.fixture
def policies(world: World, tmp_path: Path) -> Path:
    """Return the policies of a repository with all of the hooks."""
    config = {
        "repos": [{"repo": str(world.hooks), "rev": "v1", "hooks": [{"id": f"forewarn-policy-{n}"} for n in HOOKS]}]
    }
    (tmp_path / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config))
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "p.yml").write_text(POLICY)
    (tmp_path / "policies" / "p.test.yml").write_text(TESTS)
    (tmp_path / "other.yml").write_text("not:   a policy\n")
    committed(tmp_path)
    return tmp_path / "policies"


def pre_commit(world: World, directory: Path, *arguments: str) -> tuple[int, str]:
    command = (sys.executable, "-m", "pre_commit", *arguments)
    process = run_program(*command, cwd=directory, env=world.environ, timeout=300)
    return process.returncode, process.stdout + process.stderr


def test_the_manifest(world: World, repository: Path) -> None:
    code, output = pre_commit(world, repository, "validate-manifest", ".pre-commit-hooks.yaml")
    assert code == 0, output
    hooks = yaml.safe_load((repository / ".pre-commit-hooks.yaml").read_text())
    assert [hook["id"] for hook in hooks] == [f"forewarn-policy-{name}" for name in HOOKS]
    assert {hook["language"] for hook in hooks} == {"python"}


def test_hooks_pass_where_all_is_well(world: World, policies: Path) -> None:
    code, output = pre_commit(world, policies.parent, "run", "--all-files")
    assert code == 0, output
    for name in HOOKS:
        assert f"forewarn policy {name}" in output
    assert output.count("Passed") == len(HOOKS)
    assert (policies.parent / "other.yml").read_text() == "not:   a policy\n"


@pytest.mark.parametrize(
    ("name", "old", "new", "says"),
    [
        ("check", "event.EventType", "event.EventTyp", "did you mean EventType?"),
        ("test", "output: approve", "output: hold", "expected  approve"),
        ("verify", "event.DurationInSeconds >= 0 && ", "", "unknown-duration-approved"),
        ("fmt", "name: p\n", "name: p  \n\n\n", "files were modified by this hook"),
    ],
)
def test_a_commit_is_refused_for_a_reason(
    name: str, old: str, new: str, says: str, world: World, policies: Path
) -> None:
    (policies / "p.yml").write_text(POLICY.replace(old, new, 1))
    git(policies, "add", "--all")
    code, output = pre_commit(world, policies.parent, "run", f"forewarn-policy-{name}")
    assert code == 1, output
    assert says in output
    if name == "fmt":
        assert (policies / "p.yml").read_text() == POLICY.replace("name: p\n", "name: p\n\n")
        git(policies, "add", "--all")
        assert pre_commit(world, policies.parent, "run", "forewarn-policy-fmt")[0] == 0


def test_unrelated_commit_runs_no_hook(world: World, policies: Path) -> None:
    (policies.parent / "other.yml").write_text("still: none\n")
    git(policies, "add", "--all")
    code, output = pre_commit(world, policies.parent, "run")
    assert code == 0, output
    assert output.count("(no files to check)Skipped") == len(HOOKS)


def test_what_pip_installs_is_complete(world: World, policies: Path) -> None:
    """Not only modules: schemas, templates of pages, and the workflows that policy init writes."""
    assert pre_commit(world, policies.parent, "install-hooks")[0] == 0
    (command,) = Path(world.environ["PRE_COMMIT_HOME"]).glob("repo*/py_env-*/bin/forewarn")
    for system in ("github", "gitlab", "azure"):
        process = run_program(command, "policy", "init", system, "--name", system, "--ci", system,
                              cwd=policies.parent, env=world.environ, stdin="")  # fmt: skip
        assert process.returncode == 0, process.stderr
        process = run_program(
            command, "policy", "verify", system, "--html", "-", cwd=policies.parent, env=world.environ
        )
        assert process.stdout.startswith("<!DOCTYPE html>"), process.stderr


def test_the_guide_shows_these_hooks(repository: Path) -> None:
    guide = (repository / "docs" / "guides" / "git-and-ci.md").read_text()
    (block,) = (one.partition("```")[0] for one in guide.split("```yaml\n") if one.startswith("# .pre-commit-config"))
    (repo,) = yaml.safe_load(block)["repos"]
    assert repo["repo"] == "https://github.com/forewarn/forewarn.azure"
    assert [hook["id"] for hook in repo["hooks"]] == [f"forewarn-policy-{name}" for name in HOOKS]
