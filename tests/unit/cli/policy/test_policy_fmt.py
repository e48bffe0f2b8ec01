# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn policy fmt``: files, standard input, what it says, and what it refuses."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from forewarn.cli.policy import fmt as policy_fmt
from hypothesis import given
from hypothesis import strategies as st
from tools.sites.commands import FOREWARN, in_process

fmt = partial(in_process, "policy", "fmt")
UNTIDY = "name: p   \nrule:\n    match:\n    - output: hold  # ünï\n"
TIDY = "name: p\nrule:\n  match:\n    - output: hold  # ünï\n"
TESTS = "section:\n- name: s\n  tests:\n  - {name: t, input: {event: {EventType: Reboot}}, output: hold}\n"
TIDY_TESTS = "section:\n  - name: s\n    tests:\n      - {name: t, input: {event: {EventType: Reboot}}, output: hold}\n"


@pytest.fixture
def policies(tmp_path: Path) -> Path:
    """Return a directory with a policy and its tests, both untidy, and a policy that is not."""
    directory = tmp_path / "policies"
    directory.mkdir()
    (directory / "p.yml").write_text(UNTIDY)
    (directory / "p.test.yml").write_text(TESTS)
    (directory / "tidy.yml").write_text(TIDY.replace("name: p", "name: q"))
    return directory


def test_files_and_directories(policies: Path) -> None:
    (policies / "p.yml").chmod(0o640)
    result = fmt("policies", "policies/p.yml", cwd=policies.parent)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == (
        "formatted: policies/p.test.yml\nformatted: policies/p.yml\n2 files formatted, 1 file already formatted\n"
    )
    assert ((policies / "p.yml").read_text(), (policies / "p.test.yml").read_text()) == (TIDY, TIDY_TESTS)
    assert (policies / "p.yml").stat().st_mode & 0o777 == 0o640
    again = fmt("policies", cwd=policies.parent)
    assert (again.returncode, again.stdout) == (0, "3 files already formatted\n")


def test_check_writes_nothing(policies: Path) -> None:
    result = fmt("--check", policies)
    assert result.returncode == 1
    assert result.stdout.endswith("2 files would change, 1 file already formatted\n")
    assert result.stdout.startswith(f"would change: {policies}/p.test.yml\n")
    assert (policies / "p.yml").read_text() == UNTIDY
    assert fmt("--check", policies / "tidy.yml").returncode == 0


def test_diff_writes_nothing_but_what_would_change(policies: Path) -> None:
    for options, code in ((("--diff",), 0), (("--diff", "--check"), 1)):
        result = fmt(*options, "p.yml", cwd=policies)
        assert result.returncode == code
        assert result.stdout == (
            "--- p.yml\n+++ p.yml\n@@ -1,4 +1,4 @@\n-name: p   \n+name: p\n rule:\n-    match:\n"
            "+  match:\n     - output: hold  # ünï\n"
        )
    assert (policies / "p.yml").read_text() == UNTIDY
    coloured = fmt("--diff", policies / "p.yml", FORCE_COLOR="1").stdout
    assert "\x1b[32m+name: p\x1b[0m\n" in coloured
    assert "\x1b[31m-name: p   \x1b[0m\n" in coloured


def test_line_ends_and_a_byte_order_mark(policies: Path) -> None:
    path = policies / "p.yml"
    path.write_bytes(b"\xef\xbb\xbf" + TIDY.replace("\n", "\r\n").encode())
    shown = fmt("--diff", path).stdout
    assert r"-\ufeffname: p\r" in shown
    assert fmt(path).returncode == 0
    assert path.read_bytes() == TIDY.encode()
    path.write_bytes(TIDY.rstrip("\n").encode())
    assert "\\ No newline at end of file\n" in fmt("--diff", path).stdout


def test_standard_input() -> None:
    for text, tidy in ((UNTIDY, TIDY), (TESTS, TIDY_TESTS), (TIDY, TIDY)):
        result = fmt("-", stdin=text)
        assert (result.returncode, result.stdout, result.stderr) == (0, tidy, "")
        assert fmt("-", "--check", stdin=text).returncode == int(text != tidy)
    assert fmt("-", "--diff", stdin=UNTIDY).stdout.startswith("--- <stdin>\n")


def test_standard_output_is_utf8_in_every_locale() -> None:
    environ = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONPATH": ":".join(sys.path)}
    command = [*FOREWARN, "policy", "fmt", "-"]
    process = subprocess.run(command, input=UNTIDY.encode(), capture_output=True, env=environ, check=True)
    assert process.stdout == TIDY.encode()


def test_a_link_stays_one(policies: Path) -> None:
    (policies / "link.yml").symlink_to("p.yml")
    assert fmt(policies / "link.yml").returncode == 0
    assert (policies / "link.yml").is_symlink()
    assert (policies / "p.yml").read_text() == TIDY


def test_a_policy_with_mistakes_is_formatted_too(policies: Path) -> None:
    path = policies / "p.yml"
    path.write_text(UNTIDY.replace("hold", "hld").replace("name", "nmae"))
    assert fmt(path).returncode == 0
    assert path.read_text() == TIDY.replace("hold", "hld").replace("name", "nmae")


@pytest.mark.parametrize(
    ("text", "place", "code"),
    [
        (b"name: p\n\trule: x\n", "2:1", "tab"),
        (b"a: [b\n", "2:1", "yaml-syntax"),
        (b"a: 1\na: 2\n", "2:1", "duplicate-key"),
        (b"a: 1\n---\nb: 1\n", "2:1", "several-documents"),
        (b"a: !x 1\n", "1:4", "yaml-tag"),
        (b"a: \xff\n", "1:4", "encoding"),
        (b"# nothing\n", "1:1", "empty-file"),
        (b"a: \x00\n", "1:4", "encoding"),
        (b"a: " + b"x" * 2_000_000, "1:1", "too-large"),
        (b"a: " + b"[" * 100, "1:67", "too-large"),
    ],
)
def test_unreadable_file_is_kept_with_its_place(text: bytes, place: str, code: str, policies: Path) -> None:
    """And nothing else is written either."""
    (policies / "p.yml").write_bytes(text)
    result = fmt("policies", cwd=policies.parent)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("error: 1 mistake, and nothing was formatted:\n")
    assert f"policies/p.yml:{place}: error {code} " in result.stderr
    assert ((policies / "p.yml").read_bytes(), (policies / "p.test.yml").read_text()) == (text, TESTS)
    result = fmt("-", stdin=text)
    assert (result.returncode, result.stdout) == (2, "")
    assert f"<stdin>:{place}: error {code} " in result.stderr


PARTS = ("\n", "  ", " ", "- ", ": ", "a", "#", "|", ">", "'", '"', "{", "}", "[", "]", ",", "&a ", "*a", "!", "?", "%")
FURTHER = (
    "---",
    "\t",
    "\r\n",
    "\\",
    "ü",
    "\ufeff",
    "1",
    "\x85",
    "a: ",
    "a:\n  ",
    "- a\n",
    " # b\n",
    "+",
    "a: |\n  a\n\n",
)
YAML_LIKE = st.lists(st.sampled_from(PARTS + FURTHER), max_size=20).map("".join)


@given(st.binary() | YAML_LIKE.map(str.encode))
def test_any_input_is_formatted_or_an_error(content: bytes) -> None:
    result = fmt("-", stdin=content)
    assert result.returncode in (0, 2), result.stderr
    assert (result.stderr == "") == (result.returncode == 0)
    if result.returncode == 0:
        again = fmt("-", stdin=result.stdout)
        assert (again.returncode, again.stdout) == (0, result.stdout)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["none.yml"], "none.yml: no such file or directory"),
        (["empty"], "empty: no policy or test files there"),
        (["-", "policies"], "'-' stands alone"),
        ([], "PATH"),
    ],
)
def test_bad_usage(arguments: list[str], says: str, policies: Path) -> None:
    (policies.parent / "empty").mkdir()
    result = fmt(*arguments, cwd=policies.parent)
    assert (result.returncode, result.stdout) == (2, "")
    assert says in result.stderr


@pytest.mark.parametrize(
    "wrong",
    [
        TIDY.replace("hold", "approve"),  # says something else
        TIDY.replace("  # ünï", ""),  # lacks the comment
    ],
)
def test_formatting_that_changes_the_meaning_is_refused(
    wrong: str, policies: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policy_fmt, "format_yaml", lambda _text: wrong)
    result = fmt("p.yml", cwd=policies)
    assert (result.returncode, result.stdout) == (70, "")
    assert "internal error: p.yml would not mean the same if it was formatted. Nothing was written." in result.stderr
    assert (policies / "p.yml").read_text() == UNTIDY


def test_the_artifact_is_compared_as_well(policies: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy_fmt, "format_yaml", lambda _text: TIDY.replace("hold", "approve"))
    monkeypatch.setattr(policy_fmt, "has_same_content", lambda _one, _other: True)
    assert fmt(policies / "p.yml").returncode == 70
    assert (policies / "p.yml").read_text() == UNTIDY
