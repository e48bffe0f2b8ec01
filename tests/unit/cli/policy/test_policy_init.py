# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn policy init``: answers good and bad, where the files are, and that none is overwritten."""

from __future__ import annotations

import io
import re
from functools import partial
from pathlib import Path

import pytest
import yaml
from forewarn import hook_kinds
from forewarn.cli.output.console import Console
from forewarn.cli.policy.init.files import CI_FILES, workflow_text
from forewarn.cli.policy.init.questions import KINDS, QUESTIONS, ask
from forewarn.compiler.yaml.schema import load as load_schema
from forewarn.errors import InputError
from hypothesis import given
from hypothesis import strategies as st
from tools.sites.commands import in_process

policy = partial(in_process, "policy")
init = partial(in_process, "policy", "init")


def files(directory: Path) -> list[str]:
    return sorted(path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file())


def test_the_kinds_are_those_that_need_no_options() -> None:
    needing = {kind.name for kind in hook_kinds.available() if kind.one_of or any(one.required for one in kind.options)}
    assert {kind.name for kind in hook_kinds.available()} - set(KINDS) <= needing
    assert needing & set(KINDS) == {"haproxy"}  # whose options have the values of an ordinary installation


def test_questions_are_asked_until_there_is_an_answer() -> None:
    freeze, _reboot, prepare = QUESTIONS
    shown = io.StringIO()
    assert ask(freeze, io.StringIO("\n"), Console(shown, {})) == freeze.default
    assert freeze.text in shown.getvalue()
    assert ask(freeze, io.StringIO("soon\n9s\n9\n"), Console(shown, {})) == "9"
    assert "'9s' is no answer. Please answer hold, or" in shown.getvalue()
    assert ask(prepare, io.StringIO("Patroni"), Console(shown, {})) == "patroni"
    for text, says in (("", "there was no answer"), ("x\n" * 9, "no answer after 3 tries")):
        with pytest.raises(InputError, match=says):
            ask(freeze, io.StringIO(text), Console(shown, {}))


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

    def test_directory_without_a_repository_gets_all_files(self, tmp_path: Path) -> None:
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


_SPACE = st.sampled_from(["", " ", "  ", "\t", "\u00a0", "\u200b"])
_NUMBERS = st.tuples(
    _SPACE,
    st.sampled_from(["", "0", "00", "+", "-"]),
    st.integers(0, 700).map(str),
    st.sampled_from(["", "s", " s", ".0"]),
    _SPACE,
)


@given(_NUMBERS)
def test_a_number_is_its_digits_and_nothing_else(parts: tuple[str, ...]) -> None:
    """A person is asked again, and is told what is wrong."""
    text, meant = "".join(parts), parts[2]
    valid = text == meant and 1 <= int(meant) <= 600
    shown = io.StringIO()
    assert ask(QUESTIONS[0], io.StringIO(f"{text}\n77\n"), Console(shown, {})) == (meant if valid else "77")
    assert (f"  {text!r} " in shown.getvalue()) == (not valid)


@given(
    _SPACE,
    st.sampled_from(["", "app", "app-1", "a:b", "-a", ".a"]),
    st.sampled_from(["", "@", "@1", "@x:y", "@@"]),
    st.sampled_from(["", ".service", ".timer", ".socket", ".path", ".target", ".Service", ".service.d"]),
    _SPACE,
)
def test_a_service_is_one_that_can_be_stopped(before: str, name: str, instance: str, suffix: str, after: str) -> None:
    text = before + name + instance + suffix + after
    named = name in ("app", "app-1", "a:b") and instance in ("", "@1", "@x:y") and suffix == ".service"
    valid = named and not before and not after
    shown = io.StringIO()
    asked_again = ask(QUESTIONS[2], io.StringIO(f"{text}\npatroni\n"), Console(shown, {}))
    assert asked_again == (text if valid else "patroni" if text else "none")
    assert ("Please answer" in shown.getvalue()) == bool(text and not valid)


@given(st.sampled_from([question.option for question in QUESTIONS]), GARBAGE)
def test_any_answer_is_accepted_or_refused(option: str, text: str) -> None:
    (question,) = (one for one in QUESTIONS if one.option == option)
    answer = question.check(text.strip())
    assert answer is None or question.check(answer) == answer


@pytest.mark.parametrize(
    ("option", "answers"),
    [
        ("freeze", ["0", "-1", "601", "9.5", "009", "9s", " 9 ", "nine", "9 m", "approve", "1e2", "९", "9\n10"]),
        ("reboot", ["yes", "1", "aprove", "approve hold"]),
        ("prepare", ["drain", "haproxy:web", "app", "bin/drain", "/", "//x", "/a b", "/a/../b", "/$(x)", "x.service y",
                     "checkpoint", "systemd", "@x.service", "x@.service", "foo.timer", "/a,b", "a]b.service", "/é",
                     "C:\\a.sh", "C:a.exe", "\\\\x\\a.exe", "C:\\a%b.cmd", "C:\\..\\a.exe"]),
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


def test_program_of_windows_passes_every_check(tmp_path: Path) -> None:
    program = r"C:\Program Files\Forewarn\hooks\drain.cmd"
    assert init("web", "--freeze=9", "--reboot=approve", f"--prepare={program}", cwd=tmp_path).returncode == 0
    for command in (["check", "--target=windows"], ["test"], ["verify", "--strict"]):
        done = policy(*command, tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
    assert policy("check", "--target=linux", tmp_path).returncode == 1
