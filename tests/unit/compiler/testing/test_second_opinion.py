# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""cel-python checks every rule; a wrong answer of either engine is reported, its known differences are not."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from forewarn.compiler.paths import find_tests
from forewarn.compiler.policies import load_policies
from forewarn.compiler.requirements import MissingLibraryError
from forewarn.compiler.testing.cel_python import CelPython
from forewarn.compiler.testing.outcome import Outcome
from forewarn.compiler.testing.policytest import PolicyTestRun, run_tests
from forewarn.compiler.testing.second_opinion import (
    ALWAYS,
    EXEMPTIONS,
    IT_FAILS,
    WE_FAIL,
    EngineDifference,
    SecondOpinion,
)
from forewarn.events import Vm, parse_document
from forewarn.policy import builder
from forewarn.policy.builder import Builder
from forewarn.policy.decision import Facts
from forewarn.policy.forms import Form, Or
from forewarn.policy.functions import standard, table
from tools.fixtures.events import listed
from tools.fixtures.policy_files import loaded
from tools.generators.cel_calls import Call, overload_calls

NOW = datetime(2026, 1, 1, tzinfo=timezone.utc)
EVENT = listed("A", NotBefore="2026-01-01T00:15:00Z")
POLICY = """\
name: p
params:
  - {name: limit, type: int, default: 9}
rule:
  variables:
    - {name: brief, expression: event.DurationInSeconds < params.limit}
  match:
    - id: first
      condition: affects_me && variables.brief
      output: approve
      explanation: "'a freeze of ' + string(event.DurationInSeconds) + ' s'"
"""
Evaluate = Callable[..., Outcome]


def differences(directory: Path, policy: str, *rules: str, event: Mapping[str, Any] = EVENT) -> list[EngineDifference]:
    opinion = SecondOpinion(loaded(directory, policy))
    document = parse_document(json.dumps({"DocumentIncarnation": 1, "Events": [event]}), "2020-07-01")
    facts = Facts(NOW, Vm("web_0", tags={"role": "db"}), {})
    return list(opinion.differences("p", rules or ("first",), document.events[0], document, facts, {"limit": 7}))


def condition(text: str) -> str:
    return f"name: p\nrule:\n  match:\n    - {{id: first, condition: {json.dumps(text)}, output: approve}}\n"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Outcome]]:
    """What cel-python is asked, and says."""
    seen: list[tuple[str, Outcome]] = []
    evaluate: Evaluate = CelPython.evaluate

    def watched(engine: CelPython, source: str, *rest: Any) -> Outcome:
        seen.append((source, evaluate(engine, source, *rest)))
        return seen[-1][1]

    monkeypatch.setattr(CelPython, "evaluate", watched)
    return seen


def wrong(monkeypatch: pytest.MonkeyPatch, source: str, outcome: Outcome) -> None:
    """Have cel-python say something of one expression."""
    evaluate: Evaluate = CelPython.evaluate
    monkeypatch.setattr(
        CelPython, "evaluate", lambda engine, text, *rest: outcome if text == source else evaluate(engine, text, *rest)
    )


class TestAgreement:
    def test_condition_variable_and_explanation_are_asked_about(
        self, tmp_path: Path, asked: list[tuple[str, Outcome]]
    ) -> None:
        assert differences(tmp_path, POLICY) == []
        assert asked == [
            ("event.DurationInSeconds < params.limit", Outcome("value", True)),
            ("affects_me && variables.brief", Outcome("value", True)),
            ("'a freeze of ' + string(event.DurationInSeconds) + ' s'", Outcome("value", "a freeze of 5 s")),
        ]

    def test_missing_value_is_missing_in_cel_python(self, tmp_path: Path, asked: list[tuple[str, Outcome]]) -> None:
        event = {name: value for name, value in EVENT.items() if name != "DurationInSeconds"}
        assert differences(tmp_path, POLICY, event=event) == []
        assert [outcome.kind for _source, outcome in asked] == ["error", "error"]

    def test_a_question_is_asked_once(self, tmp_path: Path, asked: list[tuple[str, Outcome]]) -> None:
        more = "    - {id: second, condition: variables.brief, output: hold}\n"
        assert differences(tmp_path, POLICY + more, "first", "second") == []
        assert [source for source, _outcome in asked].count("event.DurationInSeconds < params.limit") == 1

    def test_every_rule_of_the_shipped_policies(self, repository: Path, asked: list[tuple[str, Outcome]]) -> None:
        """Their tests reach all of their expressions, and cel-python answers each."""
        run = run_tests(find_tests([repository / "policies"]))
        assert run.findings == []
        assert not [answer for answer in asked if answer[1].kind == "broken"]
        policies = [path for path in (repository / "policies").glob("*.yml") if not path.name.endswith(".test.yml")]
        sources = json.dumps(load_policies(sorted(policies)).data)
        assert len({source for source, _outcome in asked}) > 30
        assert all(json.dumps(source) in sources for source, _outcome in asked)

    def test_nesting_up_to_the_compilers_limit(self, tmp_path: Path, asked: list[tuple[str, Outcome]]) -> None:
        limit = sys.getrecursionlimit()
        assert differences(tmp_path, condition("(" * 60 + "affects_me" + ")" * 60)) == []
        assert [outcome for _source, outcome in asked] == [Outcome("value", True)]
        assert sys.getrecursionlimit() == limit, "cel-python's own Environment would change it for good"


class TestDifference:
    def test_difference_names_expression_and_both_answers(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        wrong(monkeypatch, "affects_me && variables.brief", Outcome("value", False))
        (found,) = differences(tmp_path, POLICY)
        assert (found.rule, found.expression["line"], found.expression["column"]) == ("first", 9, 18)
        assert found.message == (
            "forewarn and cel-python differ on affects_me && variables.brief: forewarn says true, cel-python says false"
        )

    def test_variable_is_reported_only_at_its_place(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        wrong(monkeypatch, "event.DurationInSeconds < params.limit", Outcome("error", "no such overload"))
        (found,) = differences(tmp_path, POLICY)
        assert (found.expression["line"], found.expression["column"]) == (6, 33)
        assert "forewarn says true, cel-python says it has no value (no such overload)" in found.message

    @pytest.mark.parametrize("other", [30, 1.0, "true", None])
    def test_value_like_a_bool_is_a_difference(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: Any
    ) -> None:
        wrong(monkeypatch, "affects_me && variables.brief", Outcome("value", other))
        assert len(differences(tmp_path, POLICY)) == 1

    def test_our_own_evaluator_may_be_the_wrong_one(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(standard.FUNCTIONS, "lt", lambda a, b: a <= b)
        event = {**EVENT, "DurationInSeconds": 7}
        messages = [found.message for found in differences(tmp_path, POLICY, event=event)]
        assert messages == [
            "forewarn and cel-python differ on event.DurationInSeconds < params.limit: "
            "forewarn says true, cel-python says false"
        ]

    def test_an_error_of_one_engine_is_a_difference(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def strict(builder: Builder, form: Form) -> Any:
            operands = [builder.build(operand) for operand in form.parts]
            return lambda env: True in [operand(env) for operand in operands]

        monkeypatch.setitem(builder._METHODS, Or, strict)  # which absorbs errors
        policy = condition("event.Resources.size() / (event.DurationInSeconds - 5) > 1 || affects_me")
        assert "forewarn says it has no value (division by zero), cel-python says true" in (
            differences(tmp_path, policy)[0].message
        )


class TestSkipped:
    @pytest.mark.parametrize(
        ("text", "feature"),
        [
            ("1 == 1.5", "number_eq"),
            ("[1, 'a'] == [event.EventType]", "types"),
            ("type(now) == type(age)", "types"),
            ("string(1.5) == '1.5'", "double_to_string"),
            ("event.Resources.map(r, r != '', r) == []", "map with a condition"),
            ("string(affects_me) == 'true'", "bool_to_string"),
            ("string(now) == ''", "timestamp_to_string"),
            ("notice > duration('1.0000001s')", "nanoseconds"),
            ("now > timestamp(3)", "int_to_timestamp"),
            (r"event.Description == '\?'", "escapes"),
        ],
    )
    def test_cel_python_is_not_asked(
        self, tmp_path: Path, asked: list[tuple[str, Outcome]], text: str, feature: str
    ) -> None:
        assert differences(tmp_path, condition(text)) == []
        assert asked == []
        (skip,) = [skip for skip in EXEMPTIONS if feature in skip.features]
        assert (skip.when, bool(skip.reason)) == (ALWAYS, True)

    @pytest.mark.parametrize(
        "text",
        [
            "event.Description.lowerAscii() == ''",
            "event.?DurationInSeconds.orValue(-1) == 5",
            "event.Resources[?0] == event.Resources[?0]",
            "[?event.?EventType] == ['Freeze']",
            "event.`EventType` == 'Freeze'",
            ".affects_me",
            "event.Resources.exists(i, r, i == 0)",
            "event.Resources.existsOne(r, r != '')",
            "cel.bind(x, affects_me, x && x)",
            "'%s'.format([event.EventType]) == 'Freeze'",
            "math.greatest(event.DurationInSeconds, 3) == 5",
            "event.Resources.distinct().size() == 1",
        ],
    )
    def test_what_cel_python_lacks_is_not_compared(
        self, tmp_path: Path, asked: list[tuple[str, Outcome]], text: str
    ) -> None:
        """It would fail where it should not, or read the expression in its own way."""
        assert differences(tmp_path, condition(text)) == []
        assert {outcome.kind for _source, outcome in asked} <= {"broken"}

    @pytest.mark.parametrize(
        ("text", "answer"),
        [
            ("has(vm.tags.role) && event.Resources[-1] == 'web_1'", Outcome("value", True)),
            ("event.Resources.exists(r, (r + 'x').contains('x'))", Outcome("error", "no such overload")),
        ],
    )
    def test_a_known_error_of_one_engine_is_none(
        self, tmp_path: Path, asked: list[tuple[str, Outcome]], text: str, answer: Outcome
    ) -> None:
        assert differences(tmp_path, condition(text)) == []
        assert asked == [(text, answer)]

    def test_another_value_is_a_difference_all_the_same(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        text = "event.Resources[0] + 'x' == 'web_0x'"
        wrong(monkeypatch, text, Outcome("value", False))
        assert len(differences(tmp_path, condition(text))) == 1

    def test_an_engine_that_breaks_down_has_no_opinion(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        wrong(monkeypatch, "affects_me && variables.brief", Outcome("broken", "IndexError: pop from empty list"))
        assert differences(tmp_path, POLICY) == []

    def test_skipped_feature_exists_and_has_a_reason(self) -> None:
        operations = {"has", "map", "map_list", "filter", "exists_one"}
        known = {*table.FUNCTIONS, *operations, "escapes", "nanoseconds", "types", "map with a condition"}
        for skip in EXEMPTIONS:
            assert skip.when in (ALWAYS, WE_FAIL, IT_FAILS)
            assert skip.reason.startswith("cel-python")
            assert set(skip.features) <= known


class TestPolicyTests:
    TEST = "section: [{name: s, tests: [{name: t, input: {event: {EventType: Freeze, DurationInSeconds: 5}}, "
    TEST += "output: approve}]}]\n"

    def run(self, directory: Path, policy: str) -> PolicyTestRun:
        (directory / "p.yml").write_text(policy)
        (directory / "p.test.yml").write_text(self.TEST)
        return run_tests([directory / "p.test.yml"])

    def test_a_difference_is_a_finding_at_the_expression(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        assert self.run(tmp_path, POLICY).findings == []
        wrong(monkeypatch, "affects_me && variables.brief", Outcome("value", False))
        run = self.run(tmp_path, POLICY)
        (finding,) = run.findings
        assert (finding.where, finding.code) == (f"{tmp_path / 'p.yml'}:9:18", "engines-differ")
        assert finding.severity == "error"
        assert finding.source_line[finding.column - 1 : finding.end_column - 1] == "affects_me && variables.brief"
        assert "forewarn says true, cel-python says false; event {" in finding.message
        assert '"DurationInSeconds": 5' in finding.message
        assert finding.message.endswith(f"of the test at {tmp_path / 'p.test.yml'}:1")
        assert "rewrite the expression" in finding.suggestion
        assert not run.failed, "the test itself passes"

    @pytest.mark.parametrize(("rule", "count"), [("", 0), ("rule: first, ", 0), ("rule: other, ", 1)])
    def test_a_suppression_goes_for_tests_too(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rule: str, count: int
    ) -> None:
        wrong(monkeypatch, "affects_me && variables.brief", Outcome("value", False))
        suppress = f"suppress: [{{code: engines-differ, {rule}reason: cel-python is wrong}}]\n"
        policy = POLICY + "    - {id: other, output: hold}\n" + suppress
        assert len(self.run(tmp_path, policy).findings) == count


_VALUES = {
    "bool": True,
    "int": 0,
    "uint": 1,
    "double": 1.5,
    "string": "a",
    "bytes": b"a",
    "timestamp": 0,
    "duration": 0,
    "list(string)": ["a"],
    "list(int)": [0],
    "list(double)": [1.5],
    "list(list(string))": [["a"]],
    "list(map(string, int))": [{"a": 0}],
    "map(string, int)": {"a": 0},
    "map(string, list(string))": {"a": ["a"]},
}


@pytest.mark.parametrize("call", overload_calls(), ids=lambda call: f"{call.source} {' '.join(map(str, call.types))}")
def test_cel_python_gets_only_what_it_supports(call: Call) -> None:
    """The extensions have functions with the names of its own: sets.contains beside contains of a text."""
    types = {name: str(type_) for name, type_ in call.variables.items()}
    values = {name: _VALUES[type_] for name, type_ in types.items()}
    found = CelPython({}).evaluate(call.source, values, types)
    assert found.kind == "value" or not re.search("undeclared|unbound", str(found.detail)), found


def test_without_cel_python_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    artifact = loaded(tmp_path, POLICY)
    monkeypatch.delitem(sys.modules, "forewarn.compiler.testing.cel_python")
    monkeypatch.setitem(sys.modules, "celpy", None)  # its own dependency is missing
    with pytest.raises(MissingLibraryError, match="cel-python") as caught:
        SecondOpinion(artifact)
    assert f"{sys.executable} -m pip install" in caught.value.hint
