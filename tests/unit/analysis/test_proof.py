# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the prover must not call impossible: texts that z3 reads differently, letters, rules switched off."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from forewarn.analysis.coverage.coverage import find_gaps
from forewarn.analysis.diff.diff import compare
from forewarn.analysis.diff.kinds import MORE
from forewarn.analysis.proof import Proof
from forewarn.analysis.query.implies import IMPLIES, exceptions
from forewarn.analysis.query.query import query
from forewarn.analysis.verify.finding import ProofFinding
from forewarn.analysis.verify.search import Search
from forewarn.analysis.verify.verify import verify
from forewarn.analysis.wording import Wording
from forewarn.cli.main import main
from forewarn.compiler.testing.policytest import run_tests
from forewarn.fleet.cache import Cache
from forewarn.fleet.proofs import warnings
from tools.fixtures.policy_files import loaded

RULES = "name: p\nrule:\n  match:\n{}    - {{id: rest, output: hold}}\n"


def rule(condition: str, name: str = "some") -> str:
    return f"    - {{id: {name}, condition: {json.dumps(condition, ensure_ascii=False)}, output: approve}}\n"


def dead(directory: Path, rules: str) -> set[str | None]:
    found = verify(loaded(directory, RULES.format(rules))).findings
    return {one.rule for one in found if one.code in ("shadowed-rule", "unsatisfiable-rule")}


def approved(directory: Path, text: str, event: dict[str, Any], vm: str, capsys: pytest.CaptureFixture[str]) -> bool:
    """Return whether the engine approves an event."""
    (directory / "p.yml").write_text(text)
    (directory / "event.json").write_text(json.dumps(event))
    files = ["--policy", str(directory / "p.yml"), "--event", str(directory / "event.json")]
    main(["policy", "explain", *files, "--vm-name", vm, "--json"])
    (explained,) = json.loads(capsys.readouterr().out)["explanations"]
    return bool(explained["decision"]["output"] == "approve")


EVENT = {"EventId": "a", "EventType": "Freeze", "EventStatus": "Scheduled", "Resources": ["vm_0"]}


@pytest.mark.parametrize("off", ["false", "1 == 2"])
def test_rules_after_a_disabled_group_are_alive(tmp_path: Path, off: str) -> None:
    group = f"    - id: off\n      condition: {off}\n      rule: {{match: [{{id: all, output: hold}}]}}\n"
    assert "some" not in dead(tmp_path, group + rule("event.EventType == 'Freeze'"))


@pytest.mark.parametrize(
    "condition",
    [
        "event.Description.substring(3).matches('^a{2}b$') && event.Description.matches('^[xy]z~a')",
        "event.Description.replace('~~', 'a').matches('^aab{3}$') && !event.Description.matches('^a')",
        "vm.tags.role.lowerAscii().matches('^db$') && !vm.tags.role.matches('^db$')",
    ],
)
def test_pattern_of_a_function_is_not_the_texts(tmp_path: Path, condition: str) -> None:
    assert "some" not in dead(tmp_path, rule(condition))


def test_a_pattern_that_no_text_matches(tmp_path: Path) -> None:
    assert "some" in dead(tmp_path, rule(r"event.Description.matches(r'a[^\x00-\x{10FFFF}]')"))


@pytest.mark.parametrize(("begin", "without"), [(r"\u{41}", "A"), ("\U00030000", "}")])
def test_text_that_z3_escapes_is_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], begin: str, without: str
) -> None:
    fillings = (without, begin + begin[0], "x", "0", "_", "A", "-", " ", "z9", "é")
    excluded = "".join(f" && !event.Description.contains({cel(one)})" for one in fillings)
    text = rule(f"event.Description.startsWith({cel(begin)}) && event.Description != {cel(begin)}{excluded}")
    event = {**EVENT, "Description": begin + "w"}
    assert approved(tmp_path, RULES.format(text), event, "vm_0", capsys)
    assert "some" not in dead(tmp_path, text)


def cel(text: str) -> str:
    return '"' + text.replace("\\", "\\\\") + '"'


def test_letters_that_are_not_ascii_have_case_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = rule('"É" in event.Resources && size(event.Resources) == 1 && affects_me && vm.name != "É"')
    assert approved(tmp_path, RULES.format(text), {**EVENT, "Resources": ["É"]}, "é", capsys)
    assert "some" not in dead(tmp_path, text)


def test_change_with_wrong_words_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = (loaded(tmp_path, RULES.format(rule(f"event.EventType == '{one}'"))) for one in ("Freeze", "Reboot"))
    monkeypatch.setattr(Wording, "parts", lambda *_: ([("never", False)], True))
    found = compare(old, new)
    assert MORE in [change.effect for change in found.changes]
    assert all(change.parts and change.parts[0].case for change in found.changes)


def test_failure_elsewhere_does_not_confirm_a_difference(tmp_path: Path) -> None:
    policy = """name: p
params: [{{name: numbers, type: list(int), default: [1, 5]}}]
rule:
  match:
    - {{id: some, condition: "{condition}", output: approve, explanation: string(60 / event.DurationInSeconds)}}
"""
    # The proof does not understand it: it may have no value for all that it knows.
    unknown = "params.numbers.sort() == params.numbers"
    old, new = (
        loaded(tmp_path, policy.format(condition=condition))
        for condition in (unknown, f"{unknown} || event.EventType == 'Terminate'")
    )
    found = [change for change in compare(old, new).changes if change.what.startswith("hold, for another reason")]
    (part,) = [part for change in found for part in change.parts]
    assert (part.certain, part.case, part.old, part.new) == (False, None, None, None)
    assert "params.numbers.sort()" in part.why


def test_failing_condition_and_explanation_are_two_findings(tmp_path: Path) -> None:
    match = ["id: some", "condition: notice < duration('1m')", "output: hold", "explanation: vm.tags['role']"]
    text = f"    - {chr(10).join(match)}\n".replace("\n", "\n      ").rstrip(" ")
    found = [one for one in verify(loaded(tmp_path, RULES.format(text))).findings if one.code == "rule-can-fail"]
    assert [(one.line, one.message.split(" of ")[0]) for one in found] == [(4, "the condition"), (7, "the explanation")]


@pytest.mark.parametrize("claim", ["decision == hold", "decision == hold || vm.tags['role'] == 'web'"])
def test_claim_without_a_counterexample_is_not_proven(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, claim: str
) -> None:
    text = RULES.format(rule("event.EventType == 'Freeze'"))
    artifact = loaded(tmp_path, f'{text}invariants:\n  - {{name: claimed, expression: "{claim}"}}\n')
    assert {"invariant-violated", "invariant-can-fail"} & {one.code for one in verify(artifact).findings}

    def perhaps(_search: Search, finding: ProofFinding, *_formulas: Any, **_more: Any) -> Iterator[ProofFinding]:
        yield replace(finding, severity="note", certain=False)

    monkeypatch.setattr(Search, "shown", perhaps)
    (error,) = {one.code for one in verify(artifact).findings if one.severity == "error"}
    assert error == "invariant-not-proven"


_COMING = "notice > duration('1s') && notice <= duration('1h') && event.NotBefore >= timestamp('2060-01-01T{}:00:00Z')"
_ASSUMED = "now lies between 2020-01-01 and 2060-01-01 (UTC)"


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("now < timestamp('2020-01-01T00:00:00Z')", ""),
        ("now <= timestamp('2020-01-01T00:00:00Z')", "2020-01-01T00:00:00Z"),
        ("now >= timestamp('2060-01-01T00:00:00Z')", ""),
        ("now > timestamp('2059-12-31T23:59:59.999998Z')", "2059-12-31T23:59:59.999999Z"),
        ("now.getHours('Europe/Berlin') > 23", ""),
        ("(now - duration('24h')).getDayOfYear('America/New_York') > 365", ""),
        ("now.getHours('Europe/Berlin') == now.getHours() + 3", ""),
        ("now.getFullYear('Asia/Kathmandu') > 2060", ""),
        ("now.getFullYear('Asia/Kathmandu') == 2060", "2059-12-31T"),
        (_COMING.format("01"), ""),
        (_COMING.format("00"), "2059-12-31T23:"),
    ],
)
def test_now_is_a_time_at_which_forewarn_runs(tmp_path: Path, condition: str, found: str) -> None:
    text = RULES.format(rule(condition)) + "invariants:\n  - {name: never, expression: decision == hold}\n"
    verified = verify(loaded(tmp_path, text))
    assert (verified.assumptions, verified.not_understood) == ((_ASSUMED,), ())
    violations = [one for one in verified.findings if one.code == "invariant-violated"]
    assert ["unsatisfiable-rule" in {one.code for one in verified.findings}] == [not found]
    assert [str(one.case and one.case["now"])[: len(found)] for one in violations] == ([found] if found else [])


@pytest.mark.parametrize(
    ("condition", "assumed"),
    [
        ("event.EventType == 'Freeze'", False),
        ("notice < duration('1h')", False),
        ("age > duration('1h')", False),
        ("event.NotBefore.getFullYear() == 2070", False),
        ("event.NotBefore.getHours('Europe/Berlin') == 2", False),
        ("notice < duration('1h') && event.NotBefore.getHours() == 2", True),
        ("event.NotBefore - now < duration('1h')", True),
        ("event.Resources.exists(one, one == 'a' && now.getHours() > 2)", True),
    ],
)
def test_assumption_about_now_is_reported_where_relevant(tmp_path: Path, condition: str, assumed: bool) -> None:
    text = RULES.format(rule(condition))
    other, one = loaded(tmp_path, RULES.format("")), loaded(tmp_path, text)
    tests = "section: [{name: s, tests: [{name: t, input: {event: {EventType: Reboot}}, output: hold}]}]"
    (tmp_path / "p.test.yml").write_text(tests)
    said = [
        verify(one).assumptions,
        compare(other, one).assumptions,
        query([one], "decision == approve").assumptions,
        query([other], f"decision == approve || ({condition})").assumptions,
        exceptions(IMPLIES, one, other)[0].assumptions,
        find_gaps(run_tests([tmp_path / "p.test.yml"]).tested)[0].assumptions,
    ]
    assert said == [(_ASSUMED,) if assumed else ()] * len(said)


def test_times_of_the_event_itself_may_be_any(tmp_path: Path) -> None:
    some = rule("event.NotBefore > timestamp('2070-01-01T00:00:00Z') && notice > duration('87600h')")
    assert "some" not in dead(tmp_path, some)
    assert "some" not in dead(tmp_path, rule("event.NotBefore < timestamp('1950-01-01T00:00:00Z')"))


def test_nothing_is_translated_after_the_first_question(tmp_path: Path) -> None:
    proof = Proof([loaded(tmp_path, RULES.format(""))])
    proof.ask(proof.normal)
    with pytest.raises(RuntimeError, match="after the first question"):
        proof.decided(proof.inputs)
    with pytest.raises(RuntimeError, match="after the first question"):
        proof.problem.define("a truth", proof.normal)


def test_conditions_alone_have_the_same_answers(tmp_path: Path) -> None:
    never = "event.DurationInSeconds > 9 && event.DurationInSeconds < 10"
    proof = Proof([loaded(tmp_path, RULES.format(rule("event.EventType == 'Freeze'", "one") + rule(never, "two")))])
    for match in proof.decisions[0].policies[0].every():
        for formula in (match.holds, match.fails):
            assert proof.conditions_solver().ask(formula).answer is proof.ask(formula)


def test_that_a_proof_failed_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    artifact = loaded(tmp_path, RULES.format(rule("event.EventType == 'Freeze' && event.DurationInSeconds < 9")))
    cache = Cache(tmp_path / "cache", tmp_path)
    with monkeypatch.context() as without:
        without.setattr("forewarn.analysis.smt.terms.z3", None)
        (warning,) = warnings(artifact, {}, cache)
    assert "z3-solver is not installed" in warning
    assert any("unknown-duration-approved" in one for one in warnings(artifact, {}, cache))
