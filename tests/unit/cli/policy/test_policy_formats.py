# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``policy check`` and ``policy verify`` in the formats of code hosts and CI systems."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

import jsonschema
import pytest
from forewarn.analysis.verify.finding import CODES as PROOF_CODES
from forewarn.cli.policy.output.formats import github_command
from forewarn.compiler.cel.expression import CODES as EXPRESSION_CODES
from forewarn.compiler.findings import CODES
from hypothesis import given
from hypothesis import strategies as st
from tools.judges.sarif import SARIF
from tools.sites.commands import in_process

policy = partial(in_process, "policy")
GOOD = "name: p\nrule:\n  match:\n    - output: hold\n"
BAD = """\
name: p
rule:
  match:
    - id: a
      condition: event.EventTyp == "Freeze"
      output: approve
    - output: hold
      approver: any
"""
# An error, and findings that are suppressed, warnings and notes.
DOUBTFUL = """\
name: p
suppress:
  - {code: approved-unprepared, rule: reboot, reason: "none, is needed: here"}
rule:
  match:
    - id: brief
      condition: event.EventType == "Freeze" && event.DurationInSeconds < 9
      output: approve
    - id: drain
      condition: event.EventType == "Reboot" && event.EventSource == "User"
      prepare: [{run: [/bin/drain]}]
      recover: [{run: [/bin/undrain]}]
      output: approve
    - id: reboot
      condition: event.EventType == "Reboot"
      output: approve
"""
FORMATS = ("text", "json", "sarif", "github", "junit")
# What the schema of Jenkins for JUnit's XML (junit-10.xsd) requires and allows. Beyond it, a testcase has a file and a
# line: GitLab and others lead to them, and Jenkins ignores them.
REQUIRED = {"testsuite": {"name", "tests", "failures", "errors"}, "testcase": {"name"}}
ALLOWED = {
    "testsuites": {"name", "time", "tests", "failures", "errors", "skipped"},
    "testsuite": {"name", "tests", "failures", "errors", "skipped", "time", "file"},
    "testcase": {"name", "time", "classname", "file", "line"},
    "failure": {"type", "message"},
    "error": {"type", "message"},
    "skipped": {"type", "message"},
    "system-out": set[str](),
}
CHILDREN = {
    "testsuites": {"testsuite"},
    "testsuite": {"testcase"},
    "testcase": {"failure", "error", "skipped", "system-out"},
}


def written(directory: Path, **texts: str) -> Path:
    (directory / "policies").mkdir()
    for name, text in texts.items():
        (directory / "policies" / f"{name}.yml").write_text(text)
    return directory / "policies"


def elements(root: ElementTree.Element) -> Iterator[ElementTree.Element]:
    """Yield the elements of a JUnit document, each as the schema allows it."""
    assert ALLOWED[root.tag] >= set(root.attrib) >= REQUIRED.get(root.tag, set())
    assert {child.tag for child in root} <= CHILDREN.get(root.tag, set())
    if "tests" in root.attrib:
        cases = list(root.iter("testcase"))
        failed = [case for case in cases if case.find("failure") is not None]
        assert (root.get("tests"), root.get("failures")) == (str(len(cases)), str(len(failed)))
        assert re.fullmatch(r"\d+\.\d+", root.get("time", ""))
    yield root
    for child in root:
        yield from elements(child)


def junit(text: str) -> list[ElementTree.Element]:
    """Return the test cases of a JUnit document."""
    return [element for element in elements(ElementTree.fromstring(text)) if element.tag == "testcase"]


def sarif(text: str) -> Any:
    """Return the run of a SARIF log."""
    log = json.loads(text)
    jsonschema.Draft202012Validator(SARIF, format_checker=jsonschema.FormatChecker()).validate(log)
    (run,) = log["runs"]
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
    return run


class TestCheck:
    def test_sarif(self, tmp_path: Path, repository: Path) -> None:
        written(tmp_path, p=BAD, q=GOOD.replace("name: p", "name: q"))
        result = policy("check", "policies", "--format", "sarif", cwd=tmp_path)
        assert result.returncode == 1
        run = sarif(result.stdout)
        error, warning = run["results"]
        assert (error["ruleId"], error["level"], warning["level"]) == ("unknown-field", "error", "warning")
        assert error["message"]["text"] == "event has no field EventTyp\nhint: did you mean EventType?"
        assert error["locations"] == [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": "policies/p.yml"},
                    "region": {"startLine": 5, "startColumn": 18, "endColumn": 32},
                }
            }
        ]
        rules = run["tool"]["driver"]["rules"]
        assert [rule["id"] for rule in rules] == list({**CODES, **EXPRESSION_CODES})
        (page,) = {rule["helpUri"] for rule in rules}
        assert (repository / page.partition("/blob/main/")[2]).is_file()

    def test_places_are_relative_to_the_repository(self, tmp_path: Path) -> None:
        directory = written(tmp_path, **{"p 100%": BAD})
        (tmp_path / ".git").mkdir()
        for place in (".", "p 100%.yml", "../policies", str(directory)):
            run = sarif(policy("check", place, "--format", "sarif", cwd=directory).stdout)
            uri = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
            assert (uri, unquote(uri)) == ("policies/p%20100%25.yml", "policies/p 100%.yml")
            first = policy("check", place, "--format", "github", cwd=directory).stdout.splitlines()[0]
            assert first.startswith("::error file=policies/p 100%25.yml,line=5,col=18,title=unknown-field::")

    def test_github(self, tmp_path: Path) -> None:
        written(tmp_path, p=BAD)
        result = policy("check", "policies", "--format", "github", cwd=tmp_path)
        assert result.returncode == 1
        error, warning, summary = result.stdout.splitlines()
        assert error == (
            "::error file=policies/p.yml,line=5,col=18,title=unknown-field::"
            "event has no field EventTyp%0Ahint: did you mean EventType?"
        )
        assert warning.startswith("::warning file=policies/p.yml,line=8,col=7,title=no-effect::")
        assert summary == "1 error, 1 warning"

    def test_junit(self, tmp_path: Path) -> None:
        written(tmp_path, p=BAD, q=GOOD.replace("name: p", "name: q"))
        error, warning, passed = junit(policy("check", "policies", "--format", "junit", cwd=tmp_path).stdout)
        assert (error.get("name"), error.get("classname")) == ("5:18 unknown-field", "policy-check.p")
        assert (error.get("file"), error.get("line")) == ("policies/p.yml", "5")
        failure = error.find("failure")
        assert failure is not None
        assert failure.attrib == {"type": "unknown-field", "message": "event has no field EventTyp"}
        assert failure.text is not None
        assert failure.text.endswith("^^^^^^^^^^^^^^\n  hint: did you mean EventType?")
        assert warning.find("failure") is not None, "a warning fails the command"
        assert (passed.get("file"), len(passed)) == ("policies/q.yml", 0)

    @pytest.mark.parametrize("style", FORMATS)
    def test_nothing_found(self, style: str, tmp_path: Path) -> None:
        result = policy("check", written(tmp_path, p=GOOD), "--format", style)
        assert result.returncode == 0
        if style == "sarif":
            assert sarif(result.stdout)["results"] == []
        elif style == "junit":
            (case,) = junit(result.stdout)
            assert len(case) == 0
        elif style == "json":
            assert json.loads(result.stdout)["findings"] == []
        else:
            assert result.stdout == "1 policy checked, nothing found\n"

    @pytest.mark.parametrize("style", FORMATS)
    def test_output_file_has_the_format_stdout_the_text(self, style: str, tmp_path: Path) -> None:
        directory = written(tmp_path, p=BAD)
        alone = policy("check", directory, "--format", style)
        result = policy("check", directory, "--format", style, "--output", tmp_path / "found")
        assert result.returncode == 1
        assert result.stdout == policy("check", directory).stdout
        assert (tmp_path / "found").read_text() == alone.stdout

    def test_json_is_short_for_its_format(self, tmp_path: Path) -> None:
        directory = written(tmp_path, p=BAD)
        assert policy("check", directory, "--json").stdout == policy("check", directory, "--format", "json").stdout

    def test_a_file_that_cannot_be_written(self, tmp_path: Path) -> None:
        directory = written(tmp_path, p=BAD)
        result = policy("check", directory, "--format", "junit", "--output", tmp_path / "none" / "x.xml")
        assert (result.returncode, result.stdout) == (2, "")
        assert "x.xml cannot be written: No such file or directory" in result.stderr

    def test_a_policy_is_not_overwritten(self, tmp_path: Path) -> None:
        directory = written(tmp_path, p=BAD)
        result = policy("check", directory, "--format", "junit", "--output", directory / "p.yml")
        assert (result.returncode, (directory / "p.yml").read_text()) == (2, BAD)
        assert "p.yml is a policy: it would be overwritten" in result.stderr

    def test_names_and_texts_that_are_not_obeyed(self, tmp_path: Path) -> None:
        """A name of a file, or a text in it, ends no line, no attribute and no element."""
        name = "a\n::error::b,c=%0A\x1b]]>&"
        directory = written(tmp_path, **{name: 'name: p\nrule: {match: [{output: "h\\u009b\\n::x::<&]]>"}]}\n'})
        commands = policy("check", directory, "--format", "github", cwd=tmp_path).stdout.splitlines()
        assert len(commands) == 2
        assert commands[0].startswith("::error file=policies/a%0A%3A%3Aerror%3A%3Ab%2Cc=%250A\\x1b]]>&.yml,line=2,col=")
        (case,) = junit(policy("check", directory, "--format", "junit", cwd=tmp_path).stdout)
        failure = case.find("failure")
        assert failure is not None
        assert "::x::<&]]>" in failure.attrib["message"]
        (result,) = sarif(policy("check", directory, "--format", "sarif", cwd=tmp_path).stdout)["results"]
        uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        assert unquote(uri) == f"policies/{name}.yml"


@pytest.fixture(scope="module")
def doubtful(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("doubtful")
    written(directory, p=DOUBTFUL)
    return directory


class TestVerify:
    def test_all_formats_have_the_same_findings(self, doubtful: Path, repository: Path) -> None:
        outputs = {}
        for style in FORMATS:
            result = policy("verify", "policies", "--format", style, cwd=doubtful)
            assert result.returncode == 1, result.stderr
            outputs[style] = result.stdout
        found = [(one["code"], one["severity"], one["suppressed"]) for one in json.loads(outputs["json"])["findings"]]
        levels = {severity for _code, severity, suppressed in found if suppressed is None}
        assert {"error", "warning"} <= levels
        assert ("approved-unprepared", "none, is needed: here") in {(code, why) for code, _severity, why in found}

        run = sarif(outputs["sarif"])
        results = [
            (one["ruleId"], one["level"], one["suppressions"][0]["justification"] if "suppressions" in one else None)
            for one in run["results"]
        ]
        assert results == found
        rules = run["tool"]["driver"]["rules"]
        assert [rule["id"] for rule in rules] == list(PROOF_CODES)
        for rule in rules:
            assert (repository / rule["helpUri"].partition("/blob/main/")[2]).is_file()

        *commands, summary = outputs["github"].splitlines()
        words = {"error": "error", "warning": "warning", "note": "notice"}
        assert [re.sub(r"^::(\w+) .*title=([\w-]+)::.*", r"\2 \1", line) for line in commands] == [
            f"{code} {words[severity]}" for code, severity, suppressed in found if suppressed is None
        ]
        assert summary == outputs["text"].splitlines()[-1]

        cases = junit(outputs["junit"])
        assert [(case.get("name") or "").partition(" ")[2] for case in cases] == [code for code, *_rest in found]
        for case, (_code, severity, suppressed) in zip(cases, found):
            kind = "skipped" if suppressed else "failure" if severity == "error" else "system-out"
            assert [child.tag for child in case] == [kind]
        failures = [case.findtext("failure") or "" for case in cases if case.find("failure") is not None]
        assert all("  repeat: echo " in text and "forewarn policy explain" in text for text in failures)

    def test_strict_makes_failures_of_warnings(self, doubtful: Path) -> None:
        cases = junit(policy("verify", "policies", "--strict", "--format", "junit", cwd=doubtful).stdout)
        data = json.loads(policy("verify", "policies", "--strict", "--json", cwd=doubtful).stdout)
        kinds = [
            "skipped" if one["suppressed"] else "failure" if one["severity"] != "note" else "system-out"
            for one in data["findings"]
        ]
        assert [case[0].tag for case in cases] == kinds

    def test_an_output_beside_the_page(self, doubtful: Path, tmp_path: Path) -> None:
        page, found = tmp_path / "page.html", tmp_path / "found.sarif"
        result = policy("verify", "policies", "--format", "sarif", "--output", found, "--html", page, cwd=doubtful)
        assert "1 policy verified for every event: " in result.stdout
        assert sarif(found.read_text())["results"]
        assert page.read_text().startswith("<!DOCTYPE html>")


@given(st.text(), st.text(), st.text())
def test_workflow_command_is_one_reversible_line(path: str, title: str, message: str) -> None:
    """As GitHub's runner reads it: up to the second pair of colons, at commas, at the first equals sign."""
    line = github_command("note", f"/x/{path}", 3, 4, title, message)
    assert len(line.splitlines()) == 1
    match = re.fullmatch(r"::notice (.*?)::(.*)", line, re.DOTALL)
    assert match is not None
    properties = dict(one.split("=", 1) for one in match[1].split(","))
    assert (list(properties), properties["line"], properties["col"]) == (["file", "line", "col", "title"], "3", "4")
    assert "%" not in re.sub("%(25|0D|0A|3A|2C)", "", match[1] + match[2])


def test_every_format_has_findings_for_a_target(tmp_path: Path) -> None:
    policies = written(tmp_path, p=GOOD + "      prepare: [{unit: app.service, action: stop}]\n")
    for style, said in (("text", "hint: write service:"), ("json", "wrong-system"), ("sarif", "wrong-system")):
        assert policy("check", policies, "--format", style).returncode == 0
        result = policy("check", policies, "--format", style, "--target", "windows")
        assert result.returncode == 1
        assert said in result.stdout
    assert policy("check", policies, "--target", "beos").returncode == 2
