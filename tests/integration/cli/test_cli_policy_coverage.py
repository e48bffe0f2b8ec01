# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn policy test --coverage`` and ``--suggest`` as commands: output, files written, exit codes."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest
from tools.sites.commands import in_process

POLICY = """\
name: web
rule:
  match:
    - {id: brief, condition: event.DurationInSeconds < 9, output: approve}
    - {id: mine, condition: affects_me, output: hold}
"""
TESTS = """\
section:
  - name: freezes
    tests:
      - {name: brief, input: {event: {EventType: Freeze, DurationInSeconds: 5}}, output: approve, rule: brief}
"""


run = partial(in_process, "policy", "test")


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    (tmp_path / "web.test.yml").write_text(TESTS)
    path = tmp_path / "web.yml"
    path.write_text(POLICY)
    return path


def test_coverage_gap_is_reported_with_its_place(policy: Path) -> None:
    result = run(policy, "--coverage")
    assert (result.returncode, result.stderr) == (0, "")
    assert f"  {policy}:4: no test in which brief does not apply\n" in result.stdout
    assert "  no test with hold by web/mine: Freeze, Reboot, Redeploy, Preempt, Terminate\n" in result.stdout
    assert "tests would cover them: --suggest" in result.stdout
    assert "outcomes" not in run(policy).stdout


def test_require_coverage_fails_on_a_gap(policy: Path) -> None:
    assert run(policy, "--coverage", "--require-coverage").returncode == 1
    assert run(policy, "--suggest", policy.with_name("web.test.yml")).returncode == 0
    result = run(policy, "--coverage", "--require-coverage")
    assert result.returncode == 0
    assert "26 of 26 outcomes covered\n" in result.stdout
    assert "no test" not in result.stdout
    again = run(policy, "--suggest", policy.with_name("web.test.yml"))
    assert (again.returncode, again.stderr) == (0, "")


def test_for_programs(policy: Path) -> None:
    data = json.loads(run(policy, "--coverage", "--json").stdout)
    none = {"false": 0, "error": 0, "explanation": 0, "limit": 0}
    assert data["coverage"][0]["rules"][0]["results"] == {"true": 1, **none}
    (found,) = data["gaps"]
    assert (found["covered"], found["unproven"], found["trouble"]) == (3, [], None)
    assert len(found["gaps"]) == found["possible"] - found["covered"]
    assert found["impossible"] > 0
    assert {gap["test"] for gap in found["gaps"]} == {test["name"] for test in found["suggestions"]}
    assert "gaps" not in json.loads(run(policy, "--json").stdout)


def test_suggestion_on_standard_output_can_be_pasted(policy: Path) -> None:
    result = run(policy, "--suggest")
    assert result.returncode == 0
    path = policy.with_name("web.test.yml")
    assert result.stdout.startswith(f"# To add to {path}, under 'section':\n  - name: suggested\n    tests:\n")
    path.write_text(TESTS + result.stdout)
    assert run(policy, "--coverage", "--require-coverage").returncode == 0


def test_a_policy_gets_its_first_tests(policy: Path) -> None:
    path = policy.with_name("web.test.yml")
    path.unlink()
    assert run(policy).returncode == 2
    assert "name: suggested" in run(policy, "--suggest").stdout
    result = run(policy, "--suggest", path)
    assert result.returncode == 0
    assert f"added to {path}" in result.stderr
    assert run(policy, "--coverage", "--require-coverage").returncode == 0
    assert "policies:" not in path.read_text()


def test_suggested_file_elsewhere_names_its_policies(policy: Path, tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    assert run(policy, "--suggest", tmp_path / "more" / "new.test.yml").returncode == 0
    assert "policies: [../web.yml]" in (tmp_path / "more" / "new.test.yml").read_text().replace('"', "")
    assert run(tmp_path / "more" / "new.test.yml", "--require-coverage").returncode == 0


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("web.yml", None, "not the name of a test file"),
        ("other.test.yml", TESTS, "not clear which tests"),
        ("none/web.test.yml", None, "No such file"),
        ("web.test.yml", TESTS + "name: last\n", "cannot be added at its end"),
    ],
)
def test_files_that_are_left_alone(policy: Path, tmp_path: Path, name: str, content: str | None, said: str) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    before = {path: path.read_text() for path in tmp_path.iterdir()}
    result = run(policy, "--suggest", tmp_path / name)
    assert result.returncode == 2
    assert said in result.stderr
    assert {path: path.read_text() for path in tmp_path.iterdir()} == before


def test_mistakes_of_an_untested_policy_are_reported(policy: Path) -> None:
    policy.with_name("web.test.yml").unlink()
    policy.write_text("name: web\n")
    assert run(policy, "--suggest", "--json").returncode == 1


def test_missing_test_of_an_approval_comes_first(policy: Path) -> None:
    policy.with_name("web.test.yml").write_text(
        TESTS.replace("DurationInSeconds: 5", "DurationInSeconds: 9").replace(
            "output: approve, rule: brief", "output: hold, rule: mine"
        )
    )
    result = run(policy, "--coverage")
    lines = result.stdout.splitlines()
    (count,) = [number for number, line in enumerate(lines) if "outcomes covered" in line]
    assert lines[count + 1] == "  no test in which an event is approved"


def test_coverage_without_z3_is_unavailable_and_tests_run(policy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forewarn.analysis.smt.terms.z3", None)
    assert run(policy).returncode == 0
    result = run(policy, "--coverage")
    assert (result.returncode, result.stderr) == (0, "")
    assert "1 test in 1 file, none failed\n\ncoverage needs the Python package z3-solver" in result.stdout
    assert result.stdout.count("z3") == 2  # and how to install it
    assert run(policy, "--coverage", "--require-coverage").returncode == 1
    data = json.loads(run(policy, "--coverage", "--json").stdout)
    assert "z3-solver" in data["trouble"]
    assert data["gaps"] == []
    before = policy.with_name("web.test.yml").read_text()
    result = run(policy, "--suggest", policy.with_name("web.test.yml"))
    assert (result.returncode, policy.with_name("web.test.yml").read_text()) == (2, before)
    assert "z3-solver" in result.stderr


def test_what_cannot_be_analysed_is_not_covered(policy: Path) -> None:
    text = POLICY.replace("rule:", "params: [{name: names, type: list(string)}]\nrule:", 1)
    policy.write_text(text)
    tests = TESTS.replace("DurationInSeconds: 5}", "DurationInSeconds: 5}, params: {names: [a]}")
    policy.with_name("web.test.yml").write_text(tests)
    result = run(policy, "--coverage", "--require-coverage")
    assert result.returncode == 1
    assert "coverage is not known: parameter names has no default" in result.stdout
    policy.with_name("web.test.yml").write_text("input: {params: {names: [a]}}\n" + TESTS)
    assert run(policy, "--suggest", policy.with_name("web.test.yml")).returncode == 0
    assert run(policy, "--coverage", "--require-coverage").returncode == 0
