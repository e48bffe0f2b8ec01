# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sample workflows: their commands, taken from the files, run in a git repository on changes good and bad."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from tools.sites.commands import run_program
from tools.suite.sizes import in_turn

pytestmark = pytest.mark.in_turn(3)


class Step(NamedTuple):
    """A command of a workflow; ``reported``: where a failure is only a warning."""

    script: str
    reported: bool = False


def _github(data: dict[str, Any]) -> Iterator[Step]:
    assert data["defaults"]["run"]["shell"] == "bash"
    for step in data["jobs"]["policies"]["steps"]:
        if "run" in step:
            yield Step(step["run"])


def _gitlab(data: dict[str, Any]) -> Iterator[Step]:
    for script in data["policies"]["before_script"] + data["policies"]["script"]:
        yield Step(script)


def _azure(data: dict[str, Any]) -> Iterator[Step]:
    for step in data["steps"]:
        if "bash" in step:
            yield Step(step["bash"], step.get("continueOnError", False))


class System(NamedTuple):
    """A CI system: its file, its steps, and the variables that describe a change to main."""

    file: str
    steps: Callable[[dict[str, Any]], Iterator[Step]]
    environ: Mapping[str, str]
    labels: str | None  # the variable


SYSTEMS = [
    System("github.yml", _github, {"TARGET": "main", "GITHUB_STEP_SUMMARY": "../summary.md"}, "LABELS"),
    System("gitlab-ci.yml", _gitlab, {"CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main"}, "CI_MERGE_REQUEST_LABELS"),
    System("azure-pipelines.yml", _azure, {"SYSTEM_PULLREQUEST_TARGETBRANCH": "refs/heads/main"}, None),
]
CHANGES = {
    "none": ("Short freezes", "Freezes, if short,"),
    "a typo": ("event.DurationInSeconds < 9", "event.DurationInSecond < 9"),
    "a test that is not met": ("output: approve  # brief", "output: hold  # brief"),
    "an unknown duration": ("event.DurationInSeconds >= 0 && ", ""),
    "more is allowed": ("event.DurationInSeconds < 9", "event.DurationInSeconds < 20"),
}
POLICY = """\
name: web-tier
description: Short freezes pass.
rule:
  match:
    - id: brief-freeze
      condition: event.EventType == "Freeze" && event.DurationInSeconds >= 0 && event.DurationInSeconds < 9
      output: approve  # brief
    - id: anything-else
      output: hold
"""
TESTS = """\
section:
  - name: all
    tests:
      - name: brief
        input: {event: {EventType: Freeze, DurationInSeconds: 5}}
        output: approve
      - name: long
        input: {event: {EventType: Freeze, DurationInSeconds: 30}}
        output: hold
"""


@pytest.fixture(scope="module")
def environ(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    environ = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(tmp_path_factory.mktemp("home")),
        "LC_ALL": "C.UTF-8",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    people = {f"GIT_{role}_{what}": "ci@localhost" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    return environ | people


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory, environ: dict[str, str]) -> Path:
    """Return a repository with a branch main and, for each change, one that is named after it."""
    directory = tmp_path_factory.mktemp("origin")

    def git(*words: str) -> None:
        subprocess.run(["git", *words], cwd=directory, env=environ, check=True, capture_output=True)

    git("init", "--quiet", "--initial-branch=main")
    (directory / "policies").mkdir()
    policy = directory / "policies" / "web-tier.yml"
    policy.write_text(POLICY)
    policy.with_name("web-tier.test.yml").write_text(TESTS)
    git("add", "--all")
    git("commit", "--quiet", "--message=policies")
    for name, (old, new) in CHANGES.items():
        assert old in POLICY
        git("checkout", "--quiet", "-b", name.replace(" ", "-"), "main")
        policy.write_text(POLICY.replace(old, new))
        git("commit", "--quiet", "--all", f"--message={name}")
    git("checkout", "--quiet", "main")
    return directory


@pytest.fixture
def clone(origin: Path, environ: dict[str, str], tmp_path: Path) -> Callable[[str], Path]:
    def make(change: str) -> Path:
        directory = tmp_path / "clone"
        command = ["git", "clone", "--quiet", "--branch", change.replace(" ", "-"), str(origin), str(directory)]
        subprocess.run(command, env=environ, check=True)
        return directory

    return make


def scripts(repository: Path, system: System) -> list[Step]:
    """Return the steps of a sample, except those that install."""
    steps = list(system.steps(yaml.safe_load((repository / "docs" / "ci" / system.file).read_text())))
    left = [step for step in steps if "pip install" not in step.script and "ansible-galaxy" not in step.script]
    assert len(steps) > len(left) == 4
    return left


def do(step: Step, directory: Path, environ: Mapping[str, str]) -> tuple[int, str]:
    bash = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c"]
    process = run_program(*bash, step.script, cwd=directory, env=environ)
    return process.returncode, process.stdout + process.stderr


def test_all_samples_check_test_and_verify_alike(repository: Path) -> None:
    """They differ only in how they say what is wrong."""
    alike = [
        [re.sub(r" --format \w+( --output \S+)?", "", step.script) for step in scripts(repository, system)[:3]]
        for system in SYSTEMS
    ]
    assert [script.split()[2] for script in alike[0]] == ["check", "test", "verify"]
    assert alike == [alike[0]] * 3


@pytest.mark.parametrize("system", in_turn((system,) for system in SYSTEMS), ids=lambda system: system.file)
@pytest.mark.parametrize(
    ("change", "command", "says"),
    [
        ("none", None, ""),
        ("a typo", "check", "unknown-field"),
        ("a test that is not met", "test", "because   web-tier/brief-freeze"),
        ("an unknown duration", "verify", "unknown-duration-approved"),
    ],
)
def test_a_workflow_refuses_what_it_should(
    change: str,
    command: str | None,
    says: str,
    system: System,
    repository: Path,
    clone: Callable[[str], Path],
    environ: dict[str, str],
) -> None:
    directory = clone(change)
    for step in scripts(repository, system):
        code, output = do(step, directory, {**environ, **system.environ})
        assert (directory / "check.xml").exists() == (system.file != "github.yml")
        if command is not None and f"forewarn policy {command} " in step.script:
            assert (code, says in output) == (1, True), output  # not 2: the policies are at fault
            if system.file == "github.yml" and command != "test":
                assert re.search(rf"^::error file=policies/web-tier\.yml,line=\d,col=\d+,title={says}::", output, re.M)
            elif command != "test":
                assert says in (directory / f"{command}.xml").read_text()
            return
        assert code == 0, output
    assert command is None
    assert (directory / "test.xml").exists()


def test_every_result_that_is_written_is_published(repository: Path) -> None:
    for system in SYSTEMS:
        text = (repository / "docs" / "ci" / system.file).read_text()
        results = re.findall(r"(?:--junit|--output) (\S+)", text)
        data = yaml.safe_load(text)
        if system.file == "gitlab-ci.yml":
            named = data["policies"]["artifacts"]["reports"]["junit"]
        elif system.file == "azure-pipelines.yml":
            named = data["steps"][-1]["inputs"]["testResultsFiles"].split()
        else:
            named = [data["jobs"]["policies"]["steps"][-1]["with"]["path"]]
        assert named == results


@pytest.mark.parametrize("system", in_turn((system,) for system in SYSTEMS), ids=lambda system: system.file)
def test_a_change_that_allows_more_needs_a_word(
    system: System, repository: Path, clone: Callable[[str], Path], environ: dict[str, str]
) -> None:
    directory = clone("more is allowed")
    diff = scripts(repository, system)[-1]
    reported = {**environ, **system.environ}
    code, output = do(diff, directory, reported)
    assert code == 1, output
    assert "DurationInSeconds in 9..19" in output
    if system.labels is None:
        assert diff.reported
        return
    assert not diff.reported
    assert do(diff, directory, {**reported, system.labels: "not-more-permissive"})[0] == 1
    assert do(diff, directory, {**reported, system.labels: "policies,more-permissive"})[0] == 0
    if system.file == "github.yml":
        assert "more permissive" in (directory.parent / "summary.md").read_text()


def test_the_scripts_of_the_guide_refuse_too(
    repository: Path, clone: Callable[[str], Path], environ: dict[str, str]
) -> None:
    guide = (repository / "docs" / "guides" / "git-and-ci.md").read_text()
    tiers, hook = (Step(block.split("```")[0]) for block in guide.split("```sh\n")[1:])
    directory = clone("an unknown duration")
    assert do(hook, directory, environ)[0] == 1
    # Two tiers, which main has too. The first is changed, then the other.
    for name in ("a", "b"):
        (directory / "policies" / name).mkdir()
        (directory / "policies" / name / "web-tier.yml").write_text(POLICY)
    for words in ("add --all", "commit --quiet --message=tiers", "update-ref refs/remotes/origin/main HEAD"):
        subprocess.run(["git", *words.split()], cwd=directory, env=environ, check=True)
    assert do(tiers, directory, environ)[0] == 0
    for name, change, found in (
        ("b", "more is allowed", "hold → approve"),
        ("a", "an unknown duration", "unknown-duration-approved"),
    ):
        (directory / "policies" / name / "web-tier.yml").write_text(POLICY.replace(*CHANGES[change]))
        code, output = do(tiers, directory, environ)
        assert (code, found in output) == (1, True), output
