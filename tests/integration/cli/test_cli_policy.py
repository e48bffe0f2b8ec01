# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn policy …`` as a process: exit codes, texts for people, JSON for programs, files written."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import textwrap
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from forewarn.compiler.testing import outcome
from forewarn.compiler.testing.cel_python import CelPython
from tools.fixtures.events import MIGRATION
from tools.sites.commands import forewarn, in_process

GOOD = "name: p\nrule:\n  match:\n    - output: hold\n"
BAD = """\
nmae: web
params:
  - {name: limit, type: int, default: nine}
extra_values: {EventTypes: [X]}
rule:
  match:
    - id: first rule
      condition: evnt.EventStatus == "Started"
      output: hold
    - condition: >-
        event.EventType == "Freeze" // brief
        && event.DurationInSecond < 9
      output: aprove
    - output: hold
    - condition: '!affects_me'
      prepare:
        - {run: [/usr/local/bin/drain], timeout: 1d}
      limit: 0
      output: approve
"""


policy = partial(in_process, "policy")


def written(directory: Path, text: str, name: str = "p.yml") -> Path:
    path = directory / name
    path.write_text(textwrap.dedent(text))
    return path


class TestCheck:
    def test_check_reports_all_mistakes_with_their_places(self, tmp_path: Path) -> None:
        written(tmp_path, BAD)
        result = forewarn("policy", "check", "p.yml", cwd=tmp_path)
        assert result.returncode == 1
        assert result.stderr == ""
        assert re.findall(r"^p\.yml:(\d+:\d+): error (\S+) ", result.stdout, re.MULTILINE) == [
            ("1:1", "unknown-key"),
            ("3:39", "param-value"),
            ("4:16", "unknown-key"),
            ("7:11", "malformed"),
            ("8:18", "undeclared-name"),
            ("12:12", "unknown-field"),
            ("13:15", "wrong-value"),
            ("15:7", "unreachable"),
            ("17:50", "malformed"),
            ("18:14", "out-of-range"),
        ]
        assert "  |         && event.DurationInSecond < 9\n  |            ^^^^^^^^^^^^^^^^^^^^^^\n" in result.stdout
        assert "hint: did you mean 'name'?" in result.stdout
        assert result.stdout.endswith("10 errors\n")

    def test_json_says_the_same(self, tmp_path: Path) -> None:
        path = written(tmp_path, BAD)
        result = policy("check", path, "--json")
        data = json.loads(result.stdout)
        assert result.returncode == 1
        assert data["forewarn"] == {"schema": "findings", "version": 1}
        assert data["files"] == [str(path)]
        assert len(data["findings"]) == 10
        assert data["findings"][4] == {
            "path": str(path),
            "line": 8,
            "column": 18,
            "end_column": 22,
            "severity": "error",
            "code": "undeclared-name",
            "message": "there is no variable evnt",
            "suggestion": "did you mean event?",
            "source_line": '      condition: evnt.EventStatus == "Started"',
            "source_column": 1,
        }

    def test_nothing_found(self, tmp_path: Path) -> None:
        result = policy("check", written(tmp_path, GOOD))
        assert (result.returncode, result.stdout) == (0, "1 policy checked, nothing found\n")
        data = json.loads(policy("check", tmp_path, "--json").stdout)
        assert data["findings"] == []

    def test_a_warning_counts(self, tmp_path: Path) -> None:
        result = policy("check", written(tmp_path, GOOD + "      approver: any\n"))
        assert result.returncode == 1
        assert result.stdout.endswith("1 warning\n")

    @pytest.mark.parametrize("arguments", [["none.yml"], [], ["p.yml", "--api-version", "2018"], ["."]])
    def test_bad_usage(self, tmp_path: Path, arguments: list[str]) -> None:
        result = policy("check", *arguments, cwd=tmp_path)
        assert (result.returncode, result.stdout) == (2, "")
        assert "error" in result.stderr
        assert "Traceback" not in result.stderr

    def test_colour_where_it_is_wanted_and_nothing_obeyed(self, tmp_path: Path) -> None:
        path = written(tmp_path, 'name: p\nrule: {match: [{output: "h\\u009bold"}]}\n')
        assert "\x1b[" not in policy("check", path).stdout
        coloured = policy("check", path, FORCE_COLOR="1").stdout
        assert "\x1b[1;31merror\x1b[0m" in coloured
        assert "\x9b" not in coloured


class TestCompile:
    def test_writes_an_artifact_that_loads(self, tmp_path: Path) -> None:
        from forewarn.policy.artifact import load

        target = tmp_path / "policy.json"
        target.write_text("old")
        target.chmod(0o640)
        result = forewarn("policy", "compile", written(tmp_path, GOOD), "-o", target, cwd=tmp_path)
        assert (result.returncode, result.stderr) == (0, "")
        artifact = load(target.read_bytes())
        assert result.stdout == f"{target}: 1 policy, {artifact.digest}\n"
        assert target.stat().st_mode & 0o777 == 0o640
        assert sorted(path.name for path in tmp_path.iterdir()) == ["p.yml", "policy.json"]
        again = policy("compile", tmp_path, "-o", "-", cwd=tmp_path)
        assert again.stdout.encode() == target.read_bytes()

    def test_mistakes_leave_the_old_artifact(self, tmp_path: Path) -> None:
        target = tmp_path / "policy.json"
        target.write_text("old")
        result = policy("compile", written(tmp_path, BAD), "-o", target)
        assert (result.returncode, result.stdout, target.read_text()) == (1, "", "old")
        assert "10 errors" in result.stderr

    def test_warnings_are_reported_and_do_not_stop_it(self, tmp_path: Path) -> None:
        result = policy("compile", written(tmp_path, GOOD + "      approver: any\n"), "-o", tmp_path / "policy.json")
        assert result.returncode == 0
        assert "1 warning" in result.stderr
        assert (tmp_path / "policy.json").exists()

    def test_a_place_that_cannot_be_written(self, tmp_path: Path) -> None:
        result = policy("compile", written(tmp_path, GOOD), "-o", tmp_path / "none" / "policy.json")
        assert result.returncode == 2
        assert "cannot be written" in result.stderr

    def test_a_link_stays_a_link(self, tmp_path: Path) -> None:
        (tmp_path / "target.json").write_text("old")
        (tmp_path / "policy.json").symlink_to("target.json")
        assert policy("compile", written(tmp_path, GOOD), "-o", tmp_path / "policy.json").returncode == 0
        assert (tmp_path / "policy.json").is_symlink()
        assert '"format"' in (tmp_path / "target.json").read_text()

    def test_compile_output_replaces_only_regular_files(self, tmp_path: Path) -> None:
        """As root, that would be the end of /dev/null."""
        path = written(tmp_path, GOOD)
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        try:
            assert policy("compile", path, "-o", pipe).returncode == 0
            assert b'"format"' in os.read(reader, 65536)
        finally:
            os.close(reader)
        assert pipe.is_fifo()
        result = policy("compile", path, "-o", tmp_path)
        assert (result.returncode, "Is a directory" in result.stderr) == (2, True)

    def test_a_working_directory_that_is_gone(self, tmp_path: Path) -> None:
        path = written(tmp_path, GOOD)
        command = (
            f"mkdir gone; cd gone; rmdir ../gone; exec {sys.executable} -m forewarn.cli.main policy compile {path} -o x"
        )
        result = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (result.returncode, "cannot be written" in result.stderr) == (2, True)

    def test_the_policy_itself_is_not_overwritten(self, tmp_path: Path) -> None:
        path = written(tmp_path, GOOD)
        result = policy("compile", tmp_path, "-o", "p.yml", cwd=tmp_path)
        assert (result.returncode, path.read_text()) == (2, GOOD)
        assert "p.yml is a policy: it would be overwritten" in result.stderr


TESTS = """\
section:
  - name: s
    tests:
      - {name: right, input: {event: {EventType: Reboot}}, output: hold}
      - {name: wrong, input: {event: {EventType: Reboot}}, output: approve}
"""


class TestTest:
    def test_the_policies_of_the_repository(self, repository: Path) -> None:
        """Every rule decides in some test."""
        result = forewarn("policy", "test", "policies", "--require-coverage", cwd=repository)
        assert result.returncode == 0, result.stdout
        assert "none failed" in result.stdout
        assert policy("check", "policies", cwd=repository).returncode == 0

    def test_a_wrong_decision_is_reported_with_its_line(self, tmp_path: Path) -> None:
        written(tmp_path, GOOD)
        written(tmp_path, TESTS, "p.test.yml")
        result = policy("test", "p.yml", "--junit", "junit.xml", cwd=tmp_path)
        assert result.returncode == 1
        assert result.stdout == textwrap.dedent(
            """\
            FAIL  p.test.yml:5  s / wrong
                  p.test.yml:5: output
                    expected  approve
                    got       hold
                    because   p/match-1: rule match-1 applies


            POLICY  RULES  DECIDED    NEVER DECIDED
            p       1      1 (100 %)  -

            2 tests in 1 file, 1 failed
            """
        )
        root = ElementTree.parse(tmp_path / "junit.xml").getroot()
        assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("2", "1", "0")
        wrong = root.findall("./testsuite/testcase")[1]
        assert (wrong.get("name"), wrong.get("file"), wrong.get("line")) == ("wrong", "p.test.yml", "5")
        failure = wrong.find("failure")
        assert failure is not None
        assert failure.get("message") == "output: expected approve, got hold"

    def test_json(self, tmp_path: Path) -> None:
        written(tmp_path, GOOD)
        written(tmp_path, TESTS, "p.test.yml")
        data = json.loads(policy("test", tmp_path, "--json").stdout)
        assert data["forewarn"] == {"schema": "policy-test", "version": 1}
        assert [test["passed"] for test in data["tests"]] == [True, False]
        assert data["coverage"][0]["rules"][0]["decided"] == 2

    def test_coverage_can_be_required(self, tmp_path: Path) -> None:
        written(tmp_path, "name: p\nrule: {match: [{condition: leader, output: approve}, {output: hold}]}\n")
        written(tmp_path, TESTS.replace("output: hold", "output: approve"), "p.test.yml")
        assert policy("test", tmp_path).returncode == 0
        result = policy("test", tmp_path, "--require-coverage")
        assert result.returncode == 1
        assert "match-2 (never tried)" in result.stdout

    def test_mistake_in_a_test_file_has_its_place(self, tmp_path: Path) -> None:
        written(tmp_path, GOOD)
        written(tmp_path, TESTS.replace("EventType: Reboot", "EvenType: Reboot", 1), "p.test.yml")
        result = policy("test", "p.yml", "--junit", "junit.xml", cwd=tmp_path)
        assert result.returncode == 1
        assert "p.test.yml:4:39: error unknown-key 'EvenType' is an unknown key" in result.stdout
        assert ElementTree.parse(tmp_path / "junit.xml").getroot().get("errors") == "1"

    def test_bad_usage(self, tmp_path: Path) -> None:
        for path in (tmp_path, tmp_path / "none.yml", written(tmp_path, GOOD)):
            result = policy("test", path)
            assert (result.returncode, result.stdout) == (2, "")

    def test_a_second_engine_that_says_something_else(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        condition = "event.DurationInSeconds < 9"
        written(tmp_path, f"name: p\nrule:\n  match:\n    - {{id: a, condition: {condition}, output: approve}}\n")
        test = "{name: t, input: {event: {EventType: Freeze, DurationInSeconds: 5}}, output: approve}"
        written(tmp_path, f"section: [{{name: s, tests: [{test}]}}]\n", "p.test.yml")
        assert policy("test", "p.yml", cwd=tmp_path).returncode == 0
        monkeypatch.setattr(CelPython, "evaluate", lambda *_arguments: outcome.Outcome("error", "no such overload"))
        result = policy("test", "p.yml", "--junit", "junit.xml", cwd=tmp_path)
        assert result.returncode == 1
        assert result.stdout.startswith(
            f"p.yml:4:26: error engines-differ forewarn and cel-python differ on {condition}: forewarn says true, "
            'cel-python says it has no value (no such overload); event {"EventId": '
        )
        assert f"  |                          {'^' * len(condition)}\n  hint: rewrite the expression" in result.stdout
        assert ElementTree.parse(tmp_path / "junit.xml").getroot().get("errors") == "1"
        data = json.loads(policy("test", "p.yml", "--json", cwd=tmp_path).stdout)
        assert data["forewarn"] == {"schema": "policy-test", "version": 1}
        assert [(one["code"], one["line"], one["column"]) for one in data["findings"]] == [("engines-differ", 4, 26)]


class TestExplain:
    SAMPLE = "policies/azure-sample.yml"

    def explained(self, repository: Path, event: Any, *more: str) -> subprocess.CompletedProcess[str]:
        return policy(
            "explain", "--policy", self.SAMPLE, "--event", "-", "--now", "2022-04-11T22:20:00Z", *more,
            cwd=repository, stdin=event if isinstance(event, str) else json.dumps(event),
        )  # fmt: skip

    def test_every_rule_tried_with_values_and_who_approves(self, repository: Path) -> None:
        result = self.explained(repository, MIGRATION, "--vm-name", "westno_1")
        assert result.returncode == 0
        for line in (
            'false       started         event.EventStatus == "Started"',
            'event.EventStatus = "Scheduled"',
            'true        brief-freeze    event.EventType == "Freeze"',
            "event.DurationInSeconds = 5",
            "not reached otherwise       always",
            "decision  approve by azure-sample/brief-freeze",
            "reason    a freeze of 5 s",
            "approval  not this VM now (not-the-leader): WestNO_0 leads",
        ):
            assert line in result.stdout, result.stdout

    def test_an_event_a_list_and_a_document(self, repository: Path) -> None:
        other = {**MIGRATION, "EventId": "B", "EventSource": "User"}
        for given in (MIGRATION, [MIGRATION], {"DocumentIncarnation": 2, "Events": [MIGRATION]}):
            data = json.loads(self.explained(repository, given, "--vm", "name=WestNO_0", "--json").stdout)
            (explanation,) = data["explanations"]
            assert explanation["decision"]["output"] == "approve"
            assert explanation["approval"]["code"] == "approve"
            assert [rule["result"] for rule in explanation["policies"][0]["rules"]] == [
                "false", "false", "false", "false", "true", "not reached",
            ]  # fmt: skip
        document = {"DocumentIncarnation": 2, "Events": [MIGRATION, other]}
        both = json.loads(self.explained(repository, document, "--json").stdout)
        assert [item["decision"]["rule"] for item in both["explanations"]] == ["brief-freeze", "user"]
        one = json.loads(self.explained(repository, document, "--json", "--event-id", "b").stdout)
        assert [item["event"]["EventId"] for item in one["explanations"]] == ["B"]

    def test_what_forewarn_events_writes(self, repository: Path) -> None:
        listed = [{"event": MIGRATION, "problems": []}]
        for events, code in ((listed, 0), ([], 2), (None, 2), (5, 2), ([5], 2)):
            given = {"forewarn": {"schema": "events", "version": 1}, "events": events}
            result = self.explained(repository, given, "--vm-name", "WestNO_0")
            assert result.returncode == code, result.stderr
            assert ("decision  approve by azure-sample/brief-freeze" in result.stdout) == (code == 0)

    def test_facts_and_parameters(self, repository: Path) -> None:
        arguments = (
            "--policy", "policies/postgres-patroni.yml", "--vm-name", "WestNO_0",
            "--param", "max_pause=9", "--param", "failover_takes=10m",
        )  # fmt: skip
        brief = self.explained(repository, MIGRATION, *arguments).stdout
        assert "decision  approve by postgres-patroni/brief-freeze" in brief
        late = self.explained(repository, {**MIGRATION, "DurationInSeconds": 9}, *arguments).stdout
        assert "decision  hold by postgres-patroni/too-late" in late
        in_time = self.explained(repository, {**MIGRATION, "DurationInSeconds": 9}, *arguments[:-2]).stdout
        assert "prepare   patroni, again after 5 s, pauses of at most 30 s, from 15m before" in in_time

    @pytest.mark.parametrize(
        ("event", "more", "says"),
        [
            ("nonsense", [], "not JSON"),
            ("5", [], "not a"),
            ("[]", [], "no event"),
            ("{}", [], "Events[0] has no usable EventId"),
            (MIGRATION, ["--event-id", "x"], "no event x"),
            (MIGRATION, ["--now", "today"], "--now today"),
            (MIGRATION, ["--vm", "nam=x"], "no such fact"),
            (MIGRATION, ["--vm", "name"], "NAME=VALUE"),
            (MIGRATION, ["--vm", "tags=role"], 'tags={"KEY": "VALUE"}'),
            (MIGRATION, ["--vm", 'tags={"role": 1}'], "1 is not of type string"),
            (MIGRATION, ["--param", "limit=5"], "no policy declares"),
        ],
    )
    def test_bad_usage(self, repository: Path, event: Any, more: list[str], says: str) -> None:
        result = self.explained(repository, event, *more)
        assert (result.returncode, result.stdout) == (2, "")
        assert says in result.stderr

    def test_hooks_with_when_and_how_often_they_run(self, tmp_path: Path) -> None:
        text = (
            "name: p\nrule:\n  match:\n    - id: drain\n      output: approve\n      approver: witness\n"
            "      group: independent\n"
            "      prepare:\n        - {run: [/bin/drain], retry: never}\n      prepare_within: 15m\n"
            "      recover:\n        - {run: [/bin/undrain], retry: {attempts: 3, delay: 2s}}\n"
            "      recover_when: started\n      notify:\n        - {run: [/bin/tell]}\n"
        )
        arguments = ("explain", "--policy", written(tmp_path, text), "--event", "-", "--now", "2022-04-11T22:20:00Z")
        shown = policy(*arguments, "--vm-name", "other", stdin=json.dumps(MIGRATION)).stdout
        for line in (
            "prepare   run /bin/drain, once, from 15m before NotBefore\n",
            "recover   run /bin/undrain, at most 3 times, again after 2 s, also where it started without preparation\n",
            "notify    run /bin/tell\n",
            "approval  not this VM now (not-the-leader): this VM is a witness, and approves in ",
        ):
            assert line in shown, shown
        affected = policy(*arguments, "--vm-name", "WestNO_0", stdin=json.dumps(MIGRATION)).stdout
        assert "approval  this VM, once it is prepared\n" in affected
        (explained,) = json.loads(policy(*arguments, "--json", stdin=json.dumps(MIGRATION)).stdout)["explanations"]
        assert explained["decision"]["prepare"][0]["retry"] == {"attempts": 1}
        (one,) = explained["policies"]
        assert (one["prepare_within_seconds"], one["recover_when"]) == (900.0, "started")

    def test_what_an_approval_of_several_vms_waits_for(self, tmp_path: Path) -> None:
        text = (
            "name: p\nrule:\n  match:\n    - id: drain\n      output: approve\n      group: ready\n"
            "      limit: {at_most: 25%, group: vm.scale_set}\n      prepare: [{run: [/bin/drain]}]\n"
        )
        arguments = (
            *("explain", "--policy", written(tmp_path, text), "--event", "-", "--now", "2022-04-11T22:20:00Z"),
            *("--vm-name", "WestNO_0"),
        )
        unknown = policy(*arguments, stdin=json.dumps(MIGRATION)).stdout
        assert "decision  hold by p/drain\n" in unknown
        assert "reason    rule drain could not be evaluated (p.yml:7): vm.scale_set: " in unknown
        known = policy(*arguments, "--vm", "scale_set=web", stdin=json.dumps(MIGRATION)).stdout
        assert "limit     at most 25% of group web at once\n" in known
        shown = policy(*arguments, "--vm", "scale_set=web", "--json", stdin=json.dumps(MIGRATION)).stdout
        (explained,) = json.loads(shown)["explanations"]
        limit = {"group": "web", "at_most": None, "percent": 25}
        assert (explained["decision"]["group"], explained["decision"]["limits"]) == ("ready", [limit])
        assert explained["policies"][0]["limit"] == limit

    def test_the_body_of_a_hook_on_each_occasion(self, tmp_path: Path) -> None:
        text = (
            "name: p\nrule:\n  match:\n    - output: approve\n"
            "      prepare: [{http: 'https://a/', body: '{\"for\": vm.name}'}]\n"
            "      notify: [{http: 'https://b/', body: '{\"on\": occasion, \"mine\": affects_me}'}]\n"
        )
        arguments = ("explain", "--policy", written(tmp_path, text), "--event", "-")
        shown = policy(*arguments, "--vm-name", "other", stdin=json.dumps(MIGRATION)).stdout
        assert 'prepare   http https://a/\n            body: {"for": "other"}\n' in shown
        assert 'notify    http https://b/\n            decided: {"on": "decided", "mine": false}\n' in shown
        assert '            cancelled: {"on": "cancelled", "mine": false}\n' in shown
        shown = policy(*arguments, stdin=json.dumps(MIGRATION)).stdout
        assert "prepare   http https://a/\n            the body has no value: vm.name: " in shown
        assert "            ended: the body has no value: affects_me: " in shown

    def test_mistakes_in_the_policy_are_all_reported(self, tmp_path: Path) -> None:
        result = policy("explain", "--policy", written(tmp_path, BAD), "--event", "-", stdin=json.dumps(MIGRATION))
        assert result.returncode == 2
        assert result.stderr.count(": error ") == 10
