# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn policy …`` with policies that import: every command names the library where something is from there."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest
from forewarn.compiler.testing import outcome
from forewarn.compiler.testing.cel_python import CelPython
from tools.sites.commands import in_process

BRIEF = "event.DurationInSeconds >= 0 && event.DurationInSeconds < params.limit"
LIBRARY = f"""\
name: shared
library: true
params:
  - {{name: limit, type: int, default: 9}}
variables:
  - {{name: brief, expression: {BRIEF}}}
  - {{name: third, expression: "event.Resources[2] == 'c'"}}
invariants:
  - {{name: no evictions, expression: "!(decision == approve && event.EventType == 'Preempt')"}}
"""
POLICY = """\
name: web
imports:
  - path: ../shared/lib.yml
rule:
  match:
    - {id: brief, condition: event.EventType == "Freeze" && variables.brief, output: approve}
    - {id: third, condition: event.EventType == "Reboot" && variables.third, output: approve}
    - output: hold
"""
EVENT = {"EventId": "1", "EventType": "Freeze", "EventStatus": "Scheduled", "Resources": ["a"], "DurationInSeconds": 5}

policy = partial(in_process, "policy")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return a directory with a policy and a library beside it."""
    for name, text in (("policies/web.yml", POLICY), ("shared/lib.yml", LIBRARY)):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    return tmp_path


def test_check_checks_libraries_too(home: Path) -> None:
    for paths, said in (
        (["policies"], "1 policy checked, nothing found"),
        (["policies/web.yml"], "1 policy checked, nothing found"),
        (["shared"], "1 library checked, nothing found"),
        (["shared/lib.yml", "policies"], "1 policy and 1 library checked, nothing found"),
        (["."], "1 policy and 1 library checked, nothing found"),
    ):
        result = policy("check", *paths, cwd=home)
        assert (result.returncode, result.stdout.strip()) == (0, said)
    assert json.loads(policy("check", ".", "--json", cwd=home).stdout)["files"] == [
        "policies/web.yml",
        "shared/lib.yml",
    ]
    (home / "shared" / "lib.yml").write_text(LIBRARY.replace("params.limit", "params.limt"))
    for path in ("policies", "policies/web.yml", "shared", "."):
        result = policy("check", path, cwd=home)
        assert result.returncode == 1
        assert result.stdout.startswith("shared/lib.yml:6:89: error unknown-field params has no field limt\n")
        assert result.stdout.endswith("\n1 error\n")


def test_other_commands_take_no_library(home: Path) -> None:
    (home / "event.json").write_text(json.dumps(EVENT))
    result = policy("test", "shared/lib.yml", cwd=home)
    assert (result.returncode, "a library, not a policy" in result.stderr) == (2, True)
    (home / "shared" / "lib.test.yml").write_text(
        "section: [{name: s, tests: [{name: t, input: {event: {EventType: Freeze}}, output: hold}]}]\n"
    )
    for path, said in (("shared/lib.yml", "a library, not a policy"), ("shared", "only libraries")):
        for arguments in (
            ("compile", path, "-o", "out.json"),
            ("verify", path),
            ("query", path, "true"),
            ("replay", path, "--from", "event.json"),
            ("diff", path, "policies"),
            ("implies", path, "policies"),
            ("explain", "--policy", path, "--event", "event.json"),
        ):
            result = policy(*arguments, cwd=home)
            assert result.returncode == 2, arguments
            assert said in result.stderr, arguments
            assert "'forewarn policy check' checks a library by itself" in result.stderr
    result = policy("test", "shared/lib.yml", cwd=home)
    assert result.returncode == 2
    assert "a library, not a policy" in result.stderr
    assert not (home / "out.json").exists()


def test_compile_overwrites_no_library(home: Path) -> None:
    result = policy("compile", "policies", "-o", "shared/lib.yml", cwd=home)
    assert (result.returncode, "it would be overwritten" in result.stderr) == (2, True)
    assert (home / "shared" / "lib.yml").read_text() == LIBRARY


def test_the_same_artifact_wherever_the_command_is_started(home: Path) -> None:
    texts = []
    for cwd, path in ((home, "policies"), (home / "policies", "."), (home / "shared", "../policies/")):
        texts.append(policy("compile", path, "-o", "-", cwd=cwd).stdout)
    assert texts[0] == texts[1] == texts[2] != ""


def test_explain_shows_where_things_are_from(home: Path) -> None:
    def explained(event: dict[str, object], *options: str) -> str:
        arguments = ("--policy", "policies", "--event", "-", "--vm-name", "a", *options)
        result = policy("explain", *arguments, cwd=home, stdin=json.dumps(event))
        assert result.returncode == 0
        return result.stdout

    text = explained(EVENT)
    assert "params.limit = 9  (from ../shared/lib.yml)\n" in text
    assert "variables.brief = true  (from ../shared/lib.yml:6)\n" in text
    (found,) = json.loads(explained(EVENT, "--json"))["explanations"]
    values = {one["expression"]: one.get("from") for one in found["policies"][0]["rules"][0]["values"]}
    assert (values["variables.brief"], values["params.limit"]) == ("../shared/lib.yml:6", "../shared/lib.yml")
    assert values["event.EventType"] is None
    failing = {**EVENT, "EventType": "Reboot"}
    text = explained(failing)
    assert "error: index out of range: 2 (../shared/lib.yml:7)\n" in text
    assert "rule third could not be evaluated (../shared/lib.yml:7): event.Resources[2]: index out of range" in text
    (found,) = json.loads(explained(failing, "--json"))["explanations"]
    assert [rule.get("failed_in") for rule in found["policies"][0]["rules"]] == [None, "../shared/lib.yml:7", None]


def test_verify_finding_names_the_library(home: Path) -> None:
    text = POLICY.replace("    - output: hold", "    - {condition: event.EventType == 'Preempt', output: approve}")
    (home / "policies" / "web.yml").write_text(text)
    result = policy("verify", "policies", cwd=home)
    assert result.returncode == 1
    assert (
        "shared/lib.yml:9:39: error invariant-violated 'no evictions', which web imports, does not hold"
        in result.stdout
    )
    assert "forewarn policy explain --policy policies --event -" in result.stdout
    (found,) = [
        one
        for one in json.loads(policy("verify", "policies", "--json", cwd=home).stdout)["findings"]
        if one["code"] == "invariant-violated"
    ]
    assert (found["path"], found["policy"], found["line"]) == ("shared/lib.yml", "web", 9)


def test_engines_differ_finding_is_placed_in_the_library(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = "{name: t, input: {event: {EventType: Freeze, DurationInSeconds: 5}}, output: approve}"
    (home / "policies" / "web.test.yml").write_text(f"section: [{{name: s, tests: [{case}]}}]\n")
    (home / "policies" / "other.yml").write_text("name: other\nrule: {match: [{output: approve}]}\n")
    evaluate = CelPython.evaluate

    def wrong(engine: CelPython, source: str, *rest: object) -> outcome.Outcome:
        found: outcome.Outcome = evaluate(engine, source, *rest)  # type: ignore[arg-type]  # as they came
        return outcome.Outcome("value", not found.detail) if source == BRIEF and found.kind == "value" else found

    assert policy("test", "policies/web.yml", cwd=home).returncode == 0
    monkeypatch.setattr(CelPython, "evaluate", wrong)
    for command in (("test", "policies/web.yml"), ("verify", "policies/web.yml"), ("verify", "policies")):
        result = policy(*command, cwd=home)
        assert result.returncode == 1
        assert f"shared/lib.yml:6:31: error engines-differ forewarn and cel-python differ on {BRIEF}" in result.stdout
    repeat = result.stdout.partition("engines-differ")[2].partition("repeat:")[2].splitlines()[0]
    assert "forewarn policy explain --policy policies/web.yml --event -" in repeat
    assert f"  |                               {'^' * len(BRIEF)}" in policy("test", "policies", cwd=home).stdout


@pytest.mark.root(reason="only root needs to trust the files of policies")
def test_root_runner_refuses_a_library_others_can_write(home: Path) -> None:
    (home / "shared" / "lib.yml").chmod(0o666)
    arguments = ("--policy", "policies", "--check-config", "--state", str(home / "state"))
    result = in_process("run", *arguments, cwd=home)
    assert result.returncode != 0
    assert "shared/lib.yml" in result.stdout + result.stderr
