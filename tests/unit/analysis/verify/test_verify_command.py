# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command ``policy verify``: its text and JSON, the cases that it shows, suppressions, and reports of defects."""

from __future__ import annotations

import io
import json
import shlex
from pathlib import Path

import pytest
import yaml
from forewarn.analysis.engine import Engine
from forewarn.analysis.event_space.policies import read
from forewarn.analysis.proof import AnalysisError, Proof
from forewarn.analysis.report.decisions import SpaceDecisions
from forewarn.analysis.verify.verify import verify
from forewarn.cli.main import main
from forewarn.compiler.policies import load_policies
from tools.fixtures.policy_files import DIRECTORY, HEAD, SHIPPED, written
from tools.judges.class_agreement import joint_decision

CLASSIC = (
    HEAD + "    - id: brief\n      condition: event.EventType == 'Freeze' && event.DurationInSeconds < 9\n"
    "      output: approve\n    - id: rest\n      output: hold\n"
)


def test_the_shipped_policies_verify_without_warnings(capsys: pytest.CaptureFixture[str]) -> None:
    for path in (*SHIPPED, DIRECTORY):
        assert main(["policy", "verify", "--strict", str(path)]) == 0, capsys.readouterr().out


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    (path,) = written(tmp_path, CLASSIC)
    assert main(["policy", "verify", str(path)]) == 1
    out = capsys.readouterr().out
    assert f"{path}:4:7: error unknown-duration-approved" in out
    echo, event, pipe, *repeat = shlex.split(out.partition("  repeat: ")[2].partition("\n")[0])
    assert (echo, pipe) == ("echo", "|")
    assert event == out.partition("  event: ")[2].partition("\n")[0]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(event.encode())))
    assert main([*repeat[1:], "--json"]) == 0
    (explained,) = json.loads(capsys.readouterr().out)["explanations"]
    assert (explained["decision"]["output"], explained["decision"]["rule"]) == ("approve", "brief")


def test_cases_are_tests(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "p.yml"
    text = CLASSIC + "    - {id: tag, condition: \"vm.tags['x'] == 'y' && notice < age\", output: approve}\n"
    path.write_text(text.replace("    - id: rest\n      output: hold\n", ""))
    main(["policy", "verify", str(path), "--json"])
    findings = json.loads(capsys.readouterr().out)["findings"]
    tests = [one["case"]["test"] for one in findings if one["case"]]
    assert len(tests) >= 3
    for number, test in enumerate(tests):
        test["name"] += f" {number}"
    (tmp_path / "p.test.yml").write_text(json.dumps({"section": [{"name": "found", "tests": tests}]}))
    assert main(["policy", "test", str(path)]) == 0, capsys.readouterr().out


def test_json_strict_and_invariants_of_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (path,) = written(tmp_path, HEAD + "    - {id: a, condition: \"event.EventType == 'Freeze'\", output: hold}\n")
    assert main(["policy", "verify", str(path)]) == 0
    assert main(["policy", "verify", str(path), "--strict"]) == 1
    capsys.readouterr()
    claims = tmp_path / "claims.yaml"
    claims.write_text(
        "invariants:\n  - {name: held, expression: decision == hold}\n  - {name: no, expression: decision == approve}\n"
    )
    assert main(["policy", "verify", str(path), "--invariants", str(claims), "--json"]) == 1
    data = json.loads(capsys.readouterr().out)
    (violated,) = [one for one in data["findings"] if one["code"] == "invariant-violated"]
    assert (violated["path"], violated["line"]) == (str(claims), 3)
    claims.write_text("- {name: x, expression: decison == hold}\n")
    assert main(["policy", "verify", str(path), "--invariants", str(claims)]) == 2
    assert "decison" in capsys.readouterr().err


def test_disagreement_with_the_engine_is_an_internal_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (path,) = written(tmp_path, CLASSIC)
    other = Engine(load_policies([DIRECTORY / "observe-only.yml"]), {})
    real = Engine.decide
    monkeypatch.chdir(tmp_path)  # for its report
    monkeypatch.setattr(Engine, "decide", lambda _self, witness: real(other, witness))
    with pytest.raises(AnalysisError, match="disagrees with itself"):
        verify(load_policies([path]))
    assert main(["policy", "verify", str(path)]) not in (0, 1)
    captured = capsys.readouterr()
    assert "internal error" in captured.err
    assert "unknown-duration" not in captured.out


@pytest.mark.parametrize(
    "command",
    [
        ["verify", "p.yml"],
        ["query", "p.yml", "decision == approve"],
        ["implies", "p.yml", "other.yml"],
        ["diff", "other.yml", "p.yml"],
        ["test", "p.yml", "--coverage"],
    ],
    ids=lambda command: command[0],
)
def test_a_defect_leaves_a_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    """It has what it takes to repeat it, and never replaces another."""
    monkeypatch.chdir(tmp_path)
    Path("p.yml").write_text(CLASSIC)
    Path("other.yml").write_text((DIRECTORY / "observe-only.yml").read_text())
    Path("p.test.yml").write_text(
        "section: [{name: s, tests: [{name: t, input: {event: {EventType: Unheard}}, output: hold}]}]\n"
    )
    monkeypatch.setattr(Proof, "_agrees", lambda *_arguments: False)
    assert main(["policy", *command]) == 70
    (path,) = tmp_path.glob("forewarn-defect-*.json")
    said = capsys.readouterr().err
    assert str(path) in said
    assert "no events or credentials" in said
    assert "/issues" in said
    report = json.loads(path.read_text())
    assert report["forewarn"] == {"schema": "defect-report", "version": 1}
    assert {"forewarn", "python", "platform", "z3-solver", "cel-python"} == report["versions"].keys()
    assert report["case"]["event"]["EventType"]
    assert report["solver"]
    assert report["engine"]
    assert report["asked"].get("expression") == ("decision == approve" if command[0] == "query" else None)
    artifact = {"policies": report["policies"][0]["policies"], "version": report["policies"][0]["version"]}
    assert artifact["policies"][0]["rule"]["match"]
    assert path.stat().st_mode & 0o777 == 0o600
    before = path.read_text()
    main(["policy", *command])
    assert len(list(tmp_path.glob("forewarn-defect-*.json"))) == 2
    assert path.read_text() == before


def test_unwritable_report_is_no_further_defect(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (path,) = written(tmp_path, CLASSIC)
    monkeypatch.setattr(Proof, "_agrees", lambda *_arguments: False)
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(other))
    monkeypatch.setattr(Path, "cwd", lambda: tmp_path / "gone")
    assert main(["policy", "verify", str(path)]) == 70
    assert len(list(other.iterdir())) == 1
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone as well"))
    assert main(["policy", "verify", str(path)]) == 70
    assert "report it with the policies" in capsys.readouterr().err


def test_witnesses_are_inputs_of_tests(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = DIRECTORY / "postgres-patroni.yml"
    reading = read(load_policies([path]))
    (space,) = reading.spaces()
    decided = SpaceDecisions(reading, space)
    cases = []
    for number in list(space.members(space.reachable))[:: space.count // 300]:
        outcome = joint_decision(decided, number)
        cases.append({"name": f"n{number}", "input": space.witness(number).as_test_input(), "output": outcome.output})
        if outcome.rule:
            cases[-1]["rule"] = outcome.rule
    (tmp_path / "p.yml").write_text(path.read_text())
    (tmp_path / "p.test.yml").write_text(yaml.safe_dump({"section": [{"name": "s", "tests": cases}]}))
    assert main(["policy", "test", str(tmp_path / "p.yml")]) == 0, capsys.readouterr().out


def test_a_finding_is_suppressed_with_a_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "p.yml"
    path.write_text(CLASSIC + "suppress:\n  - {code: unknown-duration-approved, rule: brief, reason: nobody minds}\n")
    assert main(["policy", "verify", str(path)]) == 0
    assert "suppressed: unknown-duration-approved" in capsys.readouterr().out
    path.write_text(CLASSIC + "suppress:\n  - {code: unknown-duration-approved, rule: rest, reason: wrong rule}\n")
    assert main(["policy", "verify", str(path), "--json"]) == 1
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert {one["code"] for one in findings if one["severity"] != "note"} == {
        "unknown-duration-approved",
        "unused-suppression",
    }
    path.write_text(CLASSIC + "suppress:\n  - {code: rule-can-fail}\n")
    assert main(["policy", "verify", str(path)]) == 2  # no reason


_TYPES = ("Freeze", "Reboot", "Redeploy", "Terminate", "Preempt")
_RULES = """
    - {{id: brief-{type}, condition: event.EventType == "{type}" && event.DurationInSeconds < 5, output: hold}}
    - {{id: other-{type}, condition: event.EventType == "{type}" && !affects_me, output: hold}}
"""


@pytest.mark.parametrize("types", [_TYPES[:1], _TYPES[:2], _TYPES])
@pytest.mark.parametrize("names", [["a"], ["a", "b", "c"]])
def test_notes_of_one_cause_are_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], types: tuple[str, ...], names: list[str]
) -> None:
    for name in names:
        rules = "".join(_RULES.format(type=one) for one in types)
        (tmp_path / f"{name}.yml").write_text(f"name: {name}\nrule:\n  match:{rules}    - {{id: rest, output: hold}}\n")
    count = len(types) * len(names)
    assert main(["policy", "verify", str(tmp_path)]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if "note rule-can-fail" in line]
    known = [f"an event without DurationInSeconds is held, by {count} rules: a/brief-Freeze, "] if count > 1 else []
    known += [f"an event is held where affects_me is not known, by {count} rules: a/other-Freeze, "] if known else []
    assert [text for text in known if not any(text in line for line in lines)] == []
    assert len(lines) == 2
    assert main(["policy", "verify", "--verbose", str(tmp_path)]) == 0
    assert capsys.readouterr().out.count(": note rule-can-fail") == 2 * count
    suppressed = "suppress: [{code: rule-can-fail, reason: what cannot be judged is held}]\n"
    for name in names:
        path = tmp_path / f"{name}.yml"
        path.write_text(path.read_text() + suppressed)
    assert main(["policy", "verify", str(tmp_path)]) == 0
    assert "rule-can-fail" not in capsys.readouterr().out
    assert main(["policy", "verify", "--verbose", str(tmp_path)]) == 0
    assert capsys.readouterr().out.count("suppressed: rule-can-fail") == 2 * count
