# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn policy init``: whatever the answers are, its files are checked, tested and proven; it overwrites none."""

from __future__ import annotations

import itertools
import os
import pty
import re
import select
import subprocess
import time
from functools import partial
from pathlib import Path

import pytest
import yaml
from forewarn import hook_kinds
from forewarn.cli.policy_init_answers import KINDS, LONGEST_FREEZE, QUESTIONS
from forewarn.cli.policy_init_files import CI_FILES, workflow_text
from forewarn.compiler.schema import load as load_schema
from hypothesis import given
from hypothesis import strategies as st
from tools.commands import FOREWARN, in_process

policy = partial(in_process, "policy")
init = partial(in_process, "policy", "init")
FREEZES = ("hold", "1", "9", str(LONGEST_FREEZE))
REBOOTS = ("hold", "approve")
PREPARATIONS = ("none", *KINDS, "app@1:x.service", "/usr/local/bin/drain+1")


def files(directory: Path) -> list[str]:
    return sorted(path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file())


@pytest.mark.parametrize("prepare", PREPARATIONS)
def test_every_combination_of_answers(prepare: str, tmp_path: Path) -> None:
    """It is checked, tested, proven and formatted, without a finding that anybody would have to look at."""
    for freeze, reboot in itertools.product(FREEZES, REBOOTS):
        directory = tmp_path / f"{freeze}-{reboot}"
        result = init(directory, "--freeze", freeze, "--reboot", reboot, "--prepare", prepare)
        assert (result.returncode, result.stderr) == (0, "")
        assert files(directory) == ["maintenance.test.yml", "maintenance.yml"]
        for command in (("check",), ("test", "--require-coverage"), ("verify", "--strict"), ("fmt", "--check")):
            done = policy(*command, directory)
            assert done.returncode == 0, done.stdout
        text = (directory / "maintenance.yml").read_text()
        assert (f"default: {freeze}\n" in text) == (freeze != "hold")
        assert (prepare in text) == (prepare != "none")
        assert len(re.findall(r"output: approve", text)) == (freeze != "hold") + (reboot == "approve")
        assert policy("fmt", "--check", directory).returncode == 0


def test_the_kinds_are_those_that_need_no_options() -> None:
    needing = {kind.name for kind in hook_kinds.available() if kind.one_of or any(one.required for one in kind.options)}
    assert {kind.name for kind in hook_kinds.available()} - set(KINDS) <= needing
    assert needing & set(KINDS) == {"haproxy"}  # whose options have the values of an ordinary installation


def test_what_it_writes_names_its_schema(tmp_path: Path) -> None:
    assert init(tmp_path / "p").returncode == 0
    for name, schema in (("maintenance.yml", "policy"), ("maintenance.test.yml", "policy-test")):
        line = (tmp_path / "p" / name).read_text().splitlines()[0]
        assert line == f"# yaml-language-server: $schema={load_schema(f'{schema}.schema.json')['$id']}"


def test_without_a_terminal_the_defaults_are_careful(tmp_path: Path) -> None:
    result = init(cwd=tmp_path, stdin="approve\n" * 9)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == (
        "written: policies/maintenance.yml\nwritten: policies/maintenance.test.yml\n"
        "next: forewarn policy test policies, forewarn policy verify policies\n"
    )
    text = (tmp_path / "policies" / "maintenance.yml").read_text()
    assert "output: approve" not in text
    assert "name: nothing is approved\n    expression: decision == hold\n" in text


@pytest.mark.parametrize("name", ["web-tier", "12", "true", "1e5", "no", "0x1f", "a_b"])
def test_any_name_is_a_text(name: str, tmp_path: Path) -> None:
    assert init(tmp_path / "p", "--name", name).returncode == 0
    assert files(tmp_path / "p") == [f"{name}.test.yml", f"{name}.yml"]
    assert yaml.safe_load((tmp_path / "p" / f"{name}.yml").read_text())["name"] == name
    assert policy("test", tmp_path / "p").returncode == 0


class TestWorkflow:
    @pytest.mark.parametrize("system", CI_FILES)
    def test_it_is_in_the_root_of_the_repository(self, system: str, tmp_path: Path) -> None:
        (tmp_path / ".git").mkdir()
        (tmp_path / "ops").mkdir()
        result = init("rules/web", "--ci", system, cwd=tmp_path / "ops")
        assert result.returncode == 0, result.stderr
        path = CI_FILES[system][0]
        assert files(tmp_path) == sorted(["ops/rules/web/maintenance.test.yml", "ops/rules/web/maintenance.yml", path])
        text = (tmp_path / path).read_text()
        assert yaml.safe_load(text)
        assert "forewarn policy check ops/rules/web --format" in text
        assert "@" not in re.sub(r"uses: .*|[A-Za-z]+Version@0|PublishTestResults@2", "", text)
        assert "SPDX" not in text, "it is the user's own file"

    @pytest.mark.parametrize("system", CI_FILES)
    def test_the_samples_are_the_same(self, system: str, repository: Path) -> None:
        sample = (repository / "docs" / "ci" / CI_FILES[system][1]).read_text()
        assert sample.partition("---\n")[2] == workflow_text(system, "policies").partition("---\n")[2]

    def test_without_a_repository_it_is_in_the_working_directory(self, tmp_path: Path) -> None:
        assert init("a/b", "--ci", "gitlab", cwd=tmp_path).returncode == 0
        assert files(tmp_path) == [".gitlab-ci.yml", "a/b/maintenance.test.yml", "a/b/maintenance.yml"]

    def test_elsewhere_it_is_above_the_directory(self, tmp_path: Path) -> None:
        (tmp_path / "here").mkdir()
        assert init(tmp_path / "there" / "policies", "--ci", "azure", cwd=tmp_path / "here").returncode == 0
        assert "check policies " in (tmp_path / "there" / "azure-pipelines.yml").read_text()

    @pytest.mark.parametrize("directory", [".", "a b", "$(x)", 'a"b', "-x", "ä"])
    def test_directories_that_it_cannot_name(self, directory: str, tmp_path: Path) -> None:
        result = init("--ci", "github", "--", directory, cwd=tmp_path)
        assert (result.returncode, result.stdout) == (2, "")
        assert "workflow" in result.stderr
        assert files(tmp_path) == []
        assert init("--", directory, cwd=tmp_path).returncode == 0


class TestNothingIsOverwritten:
    @pytest.mark.parametrize(
        "existing", ["policies/maintenance.yml", "policies/maintenance.test.yml", ".gitlab-ci.yml"]
    )
    @pytest.mark.parametrize("dangling", [False, True])
    def test_one_file_is_enough(self, existing: str, dangling: bool, tmp_path: Path) -> None:
        path = tmp_path / existing
        path.parent.mkdir(exist_ok=True)
        if dangling:
            path.symlink_to("nowhere")
        else:
            path.write_text("mine")
        before = files(tmp_path)
        result = init("--ci", "gitlab", cwd=tmp_path)
        assert (result.returncode, result.stdout) == (2, "")
        assert existing in result.stderr
        assert "is there already, and nothing was written" in result.stderr
        assert files(tmp_path) == before
        assert dangling or path.read_text() == "mine"

    def test_all_of_them_are_listed(self, tmp_path: Path) -> None:
        assert init("--ci", "github", cwd=tmp_path).returncode == 0
        before = {name: (tmp_path / name).read_bytes() for name in files(tmp_path)}
        result = init("--ci", "github", "--freeze", "9", cwd=tmp_path)
        assert result.returncode == 2
        for name in before:
            assert name in result.stderr
        assert {name: (tmp_path / name).read_bytes() for name in files(tmp_path)} == before

    def test_a_file_under_another_suffix(self, tmp_path: Path) -> None:
        (tmp_path / "policies").mkdir()
        (tmp_path / "policies" / "maintenance.yaml").write_text("mine")
        assert init(cwd=tmp_path).returncode == 2

    def test_what_cannot_be_written_leaves_nothing(self, tmp_path: Path) -> None:
        (tmp_path / ".github").write_text("a file, not a directory")
        result = init("a/b", "--ci", "github", cwd=tmp_path)
        assert result.returncode == 2
        assert ".github/workflows" in result.stderr
        assert "Nothing was written" in result.stderr
        assert [path.name for path in tmp_path.iterdir()] == [".github"]

    def test_a_file_that_is_in_the_way(self, tmp_path: Path) -> None:
        (tmp_path / "policies").write_text("mine")
        result = init(cwd=tmp_path)
        assert (result.returncode, (tmp_path / "policies").read_text()) == (2, "mine")
        assert "Traceback" not in result.stderr


GARBAGE = st.text(st.characters(exclude_categories=["Cs"]), max_size=12).filter(lambda text: text.strip())


@given(st.sampled_from([question.option for question in QUESTIONS]), GARBAGE)
def test_an_answer_is_accepted_or_refused_with_what_to_write(option: str, text: str) -> None:
    (question,) = (one for one in QUESTIONS if one.option == option)
    refused = ""
    try:
        text = question.check(text.strip())
    except ValueError as error:
        refused = str(error)
    assert refused or question.check(text) == text


@pytest.mark.parametrize(
    ("option", "answers"),
    [
        ("freeze", ["0", "-1", "601", "9.5", "nine", "9 m", "approve", "1e2", "९", "9\n10"]),
        ("reboot", ["yes", "1", "aprove", "approve hold"]),
        ("prepare", ["drain", "haproxy:web", "app", "bin/drain", "/", "//x", "/a b", "/a/../b", "/$(x)", "x.service y",
                     "checkpoint", "systemd", "/a,b", "a]b.service", "/é"]),
        ("name", ["", "a b", "-a", "a.b", "tests", "a/b", "x" * 64, "é"]),
        ("ci", ["jenkins"]),
    ],
)  # fmt: skip
def test_garbage_is_refused_before_anything_is_written(option: str, answers: list[str], tmp_path: Path) -> None:
    for answer in answers:
        result = init(f"--{option}={answer}", cwd=tmp_path)
        assert (result.returncode, result.stdout) == (2, ""), answer
        assert option in result.stderr
        assert files(tmp_path) == []


def test_a_directory_of_tests_is_none_of_policies(tmp_path: Path) -> None:
    result = init("tests", cwd=tmp_path)
    assert (result.returncode, files(tmp_path)) == (2, [])
    assert "files in a directory of this name are tests" in result.stderr


class Terminal:
    """A command whose standard input and error are a terminal."""

    def __init__(self, *arguments: str, cwd: Path) -> None:
        self._controller, terminal = pty.openpty()
        self._process = subprocess.Popen(
            [*FOREWARN, "policy", "init", *arguments],
            cwd=cwd,
            stdin=terminal,
            stdout=subprocess.PIPE,
            stderr=terminal,
            env={**os.environ, "TERM": "dumb"},
        )
        os.close(terminal)
        self.shown = ""

    def answers(self, *texts: str) -> tuple[int, str]:
        """Answer each prompt in turn; return the exit code and the standard output."""
        for text in texts:
            self._read_until(lambda: self.shown.rstrip(" ").endswith("]"))
            self.shown += "\n"
            os.write(self._controller, text.encode())
        self._read_until(lambda: False)
        assert self._process.stdout is not None
        output = self._process.stdout.read().decode()
        self._process.stdout.close()
        os.close(self._controller)
        return self._process.wait(20), output

    def _read_until(self, enough: object) -> None:
        """Read what is shown until it is enough, or the command has ended."""
        deadline = time.monotonic() + 20
        assert callable(enough)
        while not enough():
            assert time.monotonic() < deadline, self.shown
            if not select.select([self._controller], [], [], 0.1)[0]:
                continue
            try:
                read = os.read(self._controller, 4096)
            except OSError:  # the other end is closed
                return
            if not read:
                return
            self.shown += read.decode()


class TestTerminal:
    def test_three_questions(self, tmp_path: Path) -> None:
        terminal = Terminal(cwd=tmp_path)
        code, output = terminal.answers("9 s\n", "Approve\n", "\n")
        assert code == 0, terminal.shown
        assert output.startswith("written: policies/maintenance.yml\n")
        for question in QUESTIONS:
            assert question.text in terminal.shown
        text = (tmp_path / "policies" / "maintenance.yml").read_text()
        assert "default: 9\n" in text
        assert "output: approve\n      explanation: \"'approved at once: ' + event.EventType\"" in text

    def test_a_wrong_answer_is_asked_again(self, tmp_path: Path) -> None:
        terminal = Terminal(cwd=tmp_path)
        assert terminal.answers("short\n", "5\n", "\n", "patroni\n")[0] == 0
        assert "Please answer hold, or a number of seconds from 1 to 600." in terminal.shown
        assert "default: 5\n" in (tmp_path / "policies" / "maintenance.yml").read_text()

    def test_only_what_no_option_answers_is_asked(self, tmp_path: Path) -> None:
        terminal = Terminal("--freeze", "9", "--prepare", "none", cwd=tmp_path)
        assert terminal.answers("hold\n")[0] == 0
        assert "Freeze?" not in terminal.shown
        terminal = Terminal("other", "--freeze", "9", "--prepare", "none", "--reboot", "hold", cwd=tmp_path)
        assert terminal.answers()[0] == 0
        assert terminal.shown == ""

    @pytest.mark.parametrize("given_up", [("x\n", "y\n", "z\n"), ("\x04",), ("9\n", "\x04")])
    def test_without_an_answer_nothing_is_written(self, given_up: tuple[str, ...], tmp_path: Path) -> None:
        terminal = Terminal(cwd=tmp_path)
        code, output = terminal.answers(*given_up)
        assert (code, output) == (2, "")
        assert "nothing was written" in terminal.shown
        assert files(tmp_path) == []
        assert "Traceback" not in terminal.shown

    def test_nothing_is_asked_that_would_be_in_vain(self, tmp_path: Path) -> None:
        (tmp_path / "policies").mkdir()
        (tmp_path / "policies" / "maintenance.yml").write_text("mine")
        terminal = Terminal("--prepare", "nonsense", cwd=tmp_path)
        assert terminal.answers()[0] == 2
        assert "Freeze" not in terminal.shown
