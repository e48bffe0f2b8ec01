# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every mistake in a policy file is found at once, each at its place, with what to do about it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from forewarn.compiler.findings import Finding, render
from forewarn.compiler.policies import PolicyError, compile_policies, load_policies
from forewarn.errors import InputError
from forewarn.policy.artifact import digest_of
from forewarn.policy.artifact import load as load_artifact
from tools.fixtures.policy_files import HEAD, compiled

HOLD = "    - output: hold\n"


def found(directory: Path, *texts: str) -> list[tuple[str, int, int]]:
    return [(finding.code, finding.line, finding.column) for finding in compiled(directory, *texts).findings]


def only(directory: Path, *texts: str) -> Finding:
    (finding,) = compiled(directory, *texts).findings
    return finding


def with_param(*fields: str) -> str:
    return "name: p\nparams:\n  - {name: a, " + ", ".join(fields) + "}\nrule:\n  match:\n" + HOLD


@pytest.mark.parametrize(
    ("text", "code", "place", "says"),
    [
        ("nam: p\n" + HEAD[8:] + HOLD, "unknown-key", (1, 1), "did you mean 'name'"),
        (HEAD + "    - when: 'true'\n      output: hold\n", "unknown-key", (4, 7), "did you mean 'condition'"),
        (HEAD + HOLD + "includes: []\n", "unknown-key", (5, 1), "the keys here are name, description"),
        ("name: p\n", "missing-key", (1, 1), "'rule' is missing"),
        (HEAD + "    - condition: 'true'\n", "missing-key", (4, 7), "'output' or 'rule' is missing"),
        (HEAD + HOLD + "      rule: {match: [{output: hold}]}\n", "alternatives", (5, 7), "exclude each other"),
        (
            HEAD + "    - rule: {match: [{output: hold}]}\n      explanation: \"'x'\"\n",
            "not-here",
            (5, 7),
            "no place beside 'rule'",
        ),
        ("name: 5\n" + HEAD[8:] + HOLD, "wrong-type", (1, 7), 'in quotes: "5"'),
        ("name: p\nrule:\n  match: hold\n", "wrong-type", (3, 10), "'match' must be a list"),
        ("name: p\nrule:\n  match: []\n", "too-short", (3, 3), "'match' is empty"),
        ("name: p\nrule:\n  match:\n    output: hold\n", "wrong-type", (4, 5), "begin each item with '- '"),
        ("- name: p\n", "wrong-type", (1, 1), "the file must be a mapping"),
        ("name: p\ndescription:\nrule:\n  match:\n" + HOLD, "missing-value", (2, 1), "'description' has no value"),
        (HEAD + "    - output: Approve\n", "wrong-value", (4, 15), "did you mean approve"),
        (HEAD + "    - output: true\n", "wrong-value", (4, 15), "one of approve, hold"),
        ('name: "p\\n"\n' + HEAD[8:] + HOLD, "malformed", (1, 7), "letters, digits"),
        (HEAD + '    - {output: hold, prepare: [{run: [x], timeout: "5m\\n"}]}\n', "malformed", (4, 52), "a duration"),
        (HEAD + "    - {id: a b, output: hold}\n", "malformed", (4, 12), "letters, digits"),
        (HEAD + "    - {output: approve, prepare: [{run: [x]}], parallel: yes}\n", "wrong-type", (4, 58), "write true"),
        (HEAD + "    - {output: hold, prepare: [{run: [x], timeout: 30}]}\n", "wrong-type", (4, 52), "30s"),
        (HEAD + "    - {output: hold, prepare: [{run: [x], timeout: 1d}]}\n", "malformed", (4, 52), "24h"),
        (HEAD + "    - {output: hold, prepare: [{run: [x], timeout: 2min}]}\n", "malformed", (4, 52), "2m"),
        (HEAD + "    - {output: hold, prepare: [{run: [x], timeout: 25h}]}\n", "timeout-range", (4, 52), "24h"),
        (
            HEAD + "    - {output: hold, prepare: [{run: [x], timeout: 0s}]}\n",
            "timeout-range",
            (4, 52),
            "fails at once",
        ),
        (
            HEAD + "    - {output: hold, prepare: [{run: [x], timeout: 99999999999h}]}\n",
            "timeout-range",
            (4, 52),
            "24h",
        ),
        (HEAD + "    - {output: hold, prepare: [{run: a b}]}\n", "wrong-type", (4, 38), "write [a, b]"),
        (HEAD + "    - {output: hold, prepare: [{run: [a b]}]}\n", "command", (4, 39), "no shell"),
        (HEAD + "    - {output: hold, prepare: [{run: ['']}]}\n", "command", (4, 39), "no name"),
        (HEAD + "    - {output: hold, prepare: [{unit: x.service}]}\n", "missing-key", (4, 32), "'action' is missing"),
        (HEAD + "    - {output: hold, prepare: [{unit: x, action: stop}]}\n", "malformed", (4, 39), "haproxy.service"),
        (HEAD + "    - {output: hold, notify: [{http: example.com}]}\n", "malformed", (4, 38), "http://"),
        (HEAD + "    - {output: hold, notify: [{timeout: 5s}]}\n", "missing-key", (4, 31), "'run' or 'unit' or 'http'"),
        (
            HEAD + "    - {output: hold, notify: [{run: [x], http: 'http://x'}]}\n",
            "alternatives",
            (4, 42),
            "exclude each other",
        ),
        (HEAD + "    - {output: approve, group: hold}\n", "no-effect", (4, 25), "nothing is prepared"),
        (HEAD + "    - {output: approve, group: independent}\n", "no-effect", (4, 25), "nothing is prepared"),
        (HEAD + "    - {output: hold, approver: any}\n", "no-effect", (4, 22), "never approved"),
        (HEAD + "    - {output: hold, group: ready}\n", "no-effect", (4, 22), "never approved"),
        (HEAD + HOLD + HOLD, "unreachable", (5, 7), "match-1 before it always decides"),
        (HEAD + "    - condition: true\n      output: hold\n" + HOLD, "unreachable", (6, 7), "always decides"),
        (HEAD + "    - rule: {match: [{output: hold}]}\n" + HOLD, "unreachable", (5, 7), "match-1 before it"),
        (HEAD + "    - {condition: 'false', output: hold}\n", "never-applies", (4, 19), "its condition is false"),
        (
            HEAD + "    - {id: a, condition: affects_me, output: hold}\n    - {id: a, output: hold}\n",
            "duplicate-id",
            (5, 12),
            "line 4",
        ),
        (
            HEAD + "    - {id: match-2, condition: affects_me, output: hold}\n" + HOLD,
            "duplicate-id",
            (5, 7),
            "match-2 is at line 4",
        ),
        (with_param("type: int", "default: nine"), "param-value", (3, 35), 'a whole number, not "nine"'),
        (with_param("type: int", "default: 010"), "param-value", (3, 35), '"010"'),
        (with_param("type: string", "default: 5"), "param-value", (3, 38), 'in quotes: "5"'),
        (with_param("type: duration", "default: 5"), "param-value", (3, 40), "5s"),
        (with_param("type: duration", "default: 1d"), "param-value", (3, 40), "is not a duration"),
        (with_param("type: timestamp", "default: 2026-01-01"), "param-value", (3, 41), "not an RFC 3339 time"),
        (with_param("type: bool", "default: on"), "param-value", (3, 36), "true or false"),
        (with_param("type: list(int)", "default: [1, b]"), "param-value", (3, 41), "a list of whole numbers"),
        (with_param("type: int", "default: 5", "min: 6"), "param-value", (3, 35), "less than 6"),
        (with_param("type: duration", "default: 5m", "max: 90s"), "param-value", (3, 40), "more than 90s"),
        (with_param("type: int", "enum: [1, 90]", "max: 5"), "param-value", (3, 36), "allowed value 90 is more than 5"),
        (with_param("type: duration", "enum: [1m, 2h]", "min: 90s"), "param-value", (3, 38), 'value "1m" is less'),
        (with_param("type: int", "min: 6", "max: 5"), "param-value", (3, 31), "swap"),
        (with_param("type: string", "min: a"), "param-value", (3, 29), "a string has no 'min'"),
        (with_param("type: string", "default: c", "enum: [a, b]"), "param-value", (3, 38), "not one of a, b"),
        (with_param("type: integer", "default: 5"), "wrong-value", (3, 21), "did you mean int"),
        (with_param("type: int", "default: 9223372036854775808"), "param-value", (3, 35), "a whole number"),
        (HEAD + HOLD + "extra_values: {EventType: [Freeze]}\n", "known-value", (5, 28), "known already"),
        (HEAD + HOLD + "extra_values: {EventType: [freeze]}\n", "known-value", (5, 28), "case"),
        (HEAD + HOLD + "extra_values: {EventType: [X, X]}\n", "known-value", (5, 31), "twice"),
        (HEAD + HOLD + "extra_values: {EventSource: [X]}\n", "unknown-key", (5, 16), "did you mean 'EventStatus'"),
        (
            HEAD + HOLD + "invariants: [{name: a, expression: decision == aprove}]\n",
            "undeclared-name",
            (5, 48),
            "approve",
        ),
    ],
)
def test_each_mistake_has_code_place_and_remedy(
    tmp_path: Path, text: str, code: str, place: tuple[int, int], says: str
) -> None:
    finding = only(tmp_path, text)
    assert (finding.code, (finding.line, finding.column)) == (code, place)
    assert says in f"{finding.message} {finding.suggestion}"


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("variables: [{name: a, expression: '1'}, {name: a, expression: '2'}]", [("duplicate-name", 3, 50)]),
        ("variables: [{name: true, expression: '1'}]", [("wrong-type", 3, 22)]),
        ("variables: [{name: while, expression: '1'}]", [("reserved-word", 3, 22)]),
        ("variables: [{name: a-b, expression: '1'}]", [("malformed", 3, 22)]),
        ("variables: [{name: a, expression: variables.b}, {name: b, expression: '2'}]", [("undeclared-name", 3, 37)]),
        (
            "variables: [{name: a, expression: evnt}, {name: b, expression: '!variables.a'}]",
            [("undeclared-name", 3, 37)],
        ),
    ],
)
def test_variables(tmp_path: Path, text: str, places: list[tuple[str, int, int]]) -> None:
    """One mistake is reported once: uses of a variable without a type are not reported again."""
    assert found(tmp_path, f"name: p\nrule:\n  {text}\n  match:\n{HOLD}") == places


@pytest.mark.parametrize("style", ["plain", "single", "double", "literal", "folded", "escaped"])
def test_expression_mistake_has_its_place_in_any_style(tmp_path: Path, style: str) -> None:
    written = {
        "plain": "event.EventStatus == 'Started' && evnt.X\n",
        "single": "'event.EventStatus == ''Started'' && evnt.X'\n",
        "double": "\"event.EventStatus == 'Started' && evnt.X\"\n",
        "escaped": '"event.EventStatus == \\"Start\\u0065d\\" \\\n         && evnt.X"\n',
        "literal": "|-\n        event.EventStatus == 'Started'\n\n          && evnt.X\n",
        "folded": ">\n        event.EventStatus == 'Started' // why\n        && evnt.X\n\n",
    }[style]
    text = HEAD + f"    - condition: {written}      output: hold\n"
    before = text[: text.index("evnt")]
    finding = only(tmp_path, text)
    assert (finding.code, finding.line) == ("undeclared-name", before.count("\n") + 1)
    assert finding.column == len(before) - before.rfind("\n")
    assert finding.source_line[finding.column - 1 : finding.end_column - 1] == "evnt"


def test_findings_are_in_file_order(tmp_path: Path) -> None:
    second = HEAD + "    - {condition: evnt, output: hold}\n"
    first = "name: q\nrule:\n  match:\n    - {output: hold, id: a b, conditon: x}\n    - output: nothing\n"
    codes = [(Path(f.path).name, f.line, f.code) for f in compiled(tmp_path, first, second).findings]
    assert codes == [
        ("p.yml", 4, "malformed"),
        ("p.yml", 4, "unknown-key"),
        ("p.yml", 5, "unreachable"),
        ("p.yml", 5, "wrong-value"),
        ("p1.yml", 4, "undeclared-name"),
    ]


def test_finding_is_rendered_with_line_and_caret() -> None:
    finding = Finding("p.yml", 3, 8, 12, "error", "some-code", "it is wrong", "do it right", "\tx: 字字 evnt")
    assert render(finding) == [
        "p.yml:3:8: error some-code it is wrong",
        "  | \tx: 字字 evnt",
        "  | \t        ^^^^",
        "  hint: do it right",
    ]


def test_policies_with_equal_names_or_conflicting_parameters(tmp_path: Path) -> None:
    one = "name: p\nparams: [{name: a, type: int, default: 5}]\nrule: {match: [{output: hold}]}\n"
    two = "name: p\nparams: [{name: a, type: string, default: x}]\nrule: {match: [{output: hold}]}\n"
    assert found(tmp_path, one, two) == [("duplicate-policy", 1, 7), ("param-conflict", 2, 26)]
    assert found(tmp_path, one, one.replace("name: p", "name: q")) == []


def test_warning_does_not_prevent_compilation(tmp_path: Path) -> None:
    compilation = compiled(tmp_path, HEAD + "    - {output: hold, approver: any}\n")
    assert [finding.severity for finding in compilation.findings] == ["warning"]
    assert compilation.artifact is not None


def test_nested_rules_are_named_by_their_path(tmp_path: Path) -> None:
    """By the CEL policy format a nested rule without a condition lets the next match be tried."""
    text = HEAD + (
        "    - id: night\n      rule:\n        match:\n"
        "          - {id: x, condition: affects_me, output: hold}\n"
        "          - {condition: leader, output: hold}\n"
        "    - {id: x, condition: affects_me, rule: {match: [{output: approve}]}}\n" + HOLD
    )
    compilation = compiled(tmp_path, text)
    assert compilation.findings == []
    assert compilation.artifact is not None
    outer = compilation.artifact["policies"][0]["rule"]["match"]
    assert [match["id"] for match in outer] == ["night", "x", "match-3"]
    assert [match["id"] for match in outer[0]["rule"]["match"]] == ["x", "match-2"]


def test_duplicate_variable_of_a_rule_is_a_finding(tmp_path: Path) -> None:
    text = (
        "name: p\nrule:\n  variables: [{name: a, expression: '1'}, {name: a, expression: '2'}]\n  match:\n"
        "    - {condition: variables.a == 2, output: hold}\n"
    )
    assert found(tmp_path, text) == [("duplicate-name", 3, 50)]


def test_the_artifact(tmp_path: Path) -> None:
    text = (
        "name: p\ndescription: D\nparams: [{name: a, type: duration, default: 5m, min: 1m}]\n"
        "extra_values: {EventType: [SpotRebalanceRecommendation]}\n"
        "rule:\n  variables: [{name: soon, expression: notice < params.a}]\n  match:\n"
        "    - condition: variables.soon\n      output: approve\n      approver: any\n      group: independent\n"
        "      on_failure: approve\n      parallel: true\n      explanation: \"'why'\"\n"
        "      prepare: [{run: [sleep, 010, 5, 1.50], timeout: 1m30s}, {unit: x.service, action: stop}]\n"
        "      notify: [{http: 'https://example.com/x', timeout: 500ms}]\n" + HOLD
    )
    artifact = compiled(tmp_path, text).artifact
    assert artifact is not None
    assert artifact["digest"] == digest_of(artifact)
    assert artifact["sources"][0]["path"] == "p.yml"
    (policy,) = artifact["policies"]
    assert policy["params"] == [{"name": "a", "type": "duration", "min": "1m", "default": "5m"}]
    assert policy["extra_values"] == {"EventType": ["SpotRebalanceRecommendation"]}
    assert policy["time_dependent"] is True
    first, second = policy["rule"]["match"]
    assert (first["id"], first["line"], first["column"]) == ("match-1", 8, 7)
    assert (first["condition"]["source"], first["condition"]["line"], first["condition"]["column"]) == (
        "variables.soon",
        8,
        18,
    )
    assert first["explanation"]["column"] == 21  # within the quotes
    assert first["prepare"] == [
        {"run": ["sleep", "010", "5", "1.50"], "timeout_seconds": 90.0},
        {"unit": "x.service", "action": "stop", "timeout_seconds": 60.0},
    ]
    assert first["notify"] == [{"http": "https://example.com/x", "timeout_seconds": 0.5}]
    assert {key: first[key] for key in ("approver", "group", "on_failure", "parallel")} == {
        "approver": "any",
        "group": "independent",
        "on_failure": "approve",
        "parallel": True,
    }
    assert {key: second[key] for key in ("condition", "approver", "group", "on_failure", "parallel", "prepare")} == {
        "condition": None,
        "approver": "leader",
        "group": "hold",
        "on_failure": "hold",
        "parallel": False,
        "prepare": [],
    }


def test_load_policies_lists_every_finding(tmp_path: Path) -> None:
    path = tmp_path / "p.yml"
    path.write_text(HEAD + "    - {condition: evnt, output: nothing}\n")
    with pytest.raises(PolicyError) as error:
        load_policies([path])
    assert [finding.code for finding in error.value.findings] == ["undeclared-name", "wrong-value"]
    assert f"{path}:4:19: error undeclared-name" in str(error.value)
    path.write_text(HEAD + HOLD)
    assert load_policies([path]).api_version == "2020-07-01"


def test_value_outside_the_api_version_is_a_warning(tmp_path: Path) -> None:
    text = """\
name: old
rule:
  match:
    - {id: evicted, condition: event.EventType == "Preempt", output: approve}
    - {id: listed, condition: 'event.EventType in ["Reboot", "Terminate"]', output: approve}
"""
    compilation = compiled(tmp_path, text, api_version="2017-08-01")
    assert compilation.artifact is not None
    assert [(one.severity, one.code, one.line) for one in compilation.findings] == [
        ("warning", "value-not-in-api-version", 4),
        ("warning", "value-not-in-api-version", 5),
    ]
    declared = "extra_values: {EventType: [Preempt, Terminate]}\n" + text
    again = compiled(tmp_path, declared, api_version="2017-08-01")
    assert again.artifact is not None
    assert again.findings == []


def test_an_old_api_version_lacks_fields(tmp_path: Path) -> None:
    text = HEAD + "    - {condition: event.DurationInSeconds < 9, output: hold}\n"
    assert [finding.code for finding in compiled(tmp_path, text, api_version="2019-08-01").findings] == [
        "field-not-in-api-version"
    ]
    with pytest.raises(InputError, match="api-version 2018"):
        compiled(tmp_path, text, api_version="2018")


def test_an_artifact_survives_json(repository: Path) -> None:
    artifact = compile_policies([repository / "policies"]).artifact
    assert artifact is not None
    assert load_artifact(json.dumps(artifact)).digest == artifact["digest"]
