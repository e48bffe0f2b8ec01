# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``policy verify`` asks cel-python about each way that a rule can go, and refuses a policy on which it differs."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from forewarn.analysis.verify.finding import ProofFinding
from forewarn.cli.main import main
from forewarn.compiler.testing.cel_python import CelPython
from forewarn.compiler.testing.outcome import Outcome
from tools.fixtures.policy_files import verified

BRIEF = "event.EventType == 'Freeze' && event.DurationInSeconds in [3, 4]"
POLICY = f"""\
name: p
rule:
  match:
    - id: brief
      condition: {BRIEF}
      output: approve
    - output: hold
"""
OTHER = "name: other\nrule:\n  match:\n    - {id: mine, condition: affects_me, output: approve}\n"
SUPPRESS = "suppress:\n  - {code: engines-differ, rule: brief, reason: cel-python is wrong about lists}\n"


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> Counter[tuple[str, str, Any]]:
    """Count the questions to cel-python and its answers."""
    counts: Counter[tuple[str, str, Any]] = Counter()
    evaluate = CelPython.evaluate

    def watched(engine: CelPython, source: str, *rest: Any) -> Outcome:
        outcome = evaluate(engine, source, *rest)
        counts[source, outcome.kind, outcome.detail if outcome.kind == "value" else None] += 1
        return outcome

    monkeypatch.setattr(CelPython, "evaluate", watched)
    return counts


@pytest.fixture
def wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have cel-python take the opposite of BRIEF for true."""
    evaluate = CelPython.evaluate

    def opposite(engine: CelPython, source: str, *rest: Any) -> Outcome:
        outcome = evaluate(engine, source, *rest)
        return Outcome("value", not outcome.detail) if (source, outcome.kind) == (BRIEF, "value") else outcome

    monkeypatch.setattr(CelPython, "evaluate", opposite)


def findings(directory: Path, *texts: str) -> list[ProofFinding]:
    return [one for one in verified(directory, *texts) if one.code == "engines-differ"]


def test_each_branch_of_a_rule_is_compared(tmp_path: Path, said: Counter[tuple[str, str, Any]]) -> None:
    assert findings(tmp_path, POLICY) == []
    # That the rule can fail is a finding, whose event is asked about as well.
    assert said == {(BRIEF, "value", True): 1, (BRIEF, "value", False): 1, (BRIEF, "error", None): 2}


def test_rule_deciding_a_findings_event_is_compared(
    tmp_path: Path, said: Counter[tuple[str, str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside the events of each way that a rule can go: here nothing but the finding's event asks about it."""
    monkeypatch.setattr("forewarn.analysis.verify.verify.rule_differences", lambda *_arguments: [])
    found = verified(tmp_path, POLICY + "invariants: [{name: held, expression: decision == hold}]\n")
    assert [one.code for one in found if one.code == "invariant-violated"]
    assert said[BRIEF, "value", True] >= 1


@pytest.mark.usefixtures("wrong")
def test_event_that_cel_python_decides_differently_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forewarn.analysis.verify.verify.rule_differences", lambda *_arguments: [])
    text = POLICY + "invariants: [{name: held, expression: decision == hold}]\n"
    (found,) = findings(tmp_path, text)
    assert found.rule == "brief"
    (found,) = findings(tmp_path, text, OTHER)
    assert found.rule == "brief"


def test_each_question_is_asked_once(tmp_path: Path, said: Counter[tuple[str, str, Any]]) -> None:
    assert findings(tmp_path, POLICY) == []
    assert len(said) == 3
    assert sum(said.values()) == 4


def test_opaque_rule_is_compared_at_several_times(tmp_path: Path, said: Counter[tuple[str, str, Any]]) -> None:
    night = "now.getHours('Europe/Berlin') < 5"
    assert findings(tmp_path, POLICY.replace(BRIEF, night)) == []
    assert said[night, "value", True] > 0
    assert said[night, "value", False] > 0


def test_finding_has_place_event_and_both_answers(tmp_path: Path, wrong: None) -> None:
    (finding,) = findings(tmp_path, POLICY)
    assert (finding.severity, finding.policy, finding.rule) == ("error", "p", "brief")
    assert (finding.source, finding.line, finding.column) == ("p.yml", 5, 18)
    assert finding.message == (f"forewarn and cel-python differ on {BRIEF}: forewarn says true, cel-python says false")
    assert finding.case is not None
    assert finding.case["event"]["EventType"] == "Freeze"
    assert finding.case["event"]["DurationInSeconds"] in (3, 4)
    assert finding.case["decision"]["output"] == "approve"
    assert "report the difference to forewarn" in finding.suggestion


def test_of_several_policies_the_one_is_named(tmp_path: Path, wrong: None) -> None:
    assert [(one.policy, one.rule) for one in findings(tmp_path, OTHER, POLICY)] == [("p", "brief")]


@pytest.mark.usefixtures("wrong")
def test_the_command_refuses_the_policy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "p.yml"
    path.write_text(POLICY)
    assert main(["policy", "verify", str(path)]) == 1
    output = capsys.readouterr().out
    assert f"{path}:5:18: error engines-differ forewarn and cel-python differ on {BRIEF}" in output
    assert '  event: {"EventId"' in output
    assert "  repeat: echo" in output
    assert "  hint: rewrite the expression" in output
    assert main(["policy", "verify", str(path), "--json"]) == 1
    data = json.loads(capsys.readouterr().out)
    assert data["forewarn"] == {"schema": "verification", "version": 1}
    (finding,) = [one for one in data["findings"] if one["code"] == "engines-differ"]
    assert (finding["path"], finding["line"], finding["column"]) == (str(path), 5, 18)
    assert finding["case"]["event"]["EventType"] == "Freeze"


def test_a_suppression_is_heeded_and_never_unused(tmp_path: Path, wrong: None, monkeypatch: pytest.MonkeyPatch) -> None:
    (finding,) = findings(tmp_path, POLICY + SUPPRESS)
    assert finding.suppressed == "cel-python is wrong about lists"
    monkeypatch.undo()
    codes = [one.code for one in verified(tmp_path, POLICY + SUPPRESS)]
    assert codes == ["rule-can-fail"], "of events that only the tests have, verify knows nothing"


def test_differences_below_a_microsecond_are_not_compared(tmp_path: Path) -> None:
    params = "params:\n  - {name: d, type: duration, default: 5m}\n  - {name: e, type: duration, default: 5m}\n"
    condition = "params.e - params.d < duration('1us') && params.e > params.d"
    rules = f'rule:\n  match:\n    - {{id: close, condition: "{condition}", output: approve}}\n    - output: hold\n'
    found = verified(tmp_path, f"name: p\n{params}{rules}")
    assert "engines-differ" not in {one.code for one in found}
