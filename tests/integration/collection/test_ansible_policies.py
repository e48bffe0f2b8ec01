# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``scheduled_events`` with policies, through the real ``ansible`` command: VMs read, the control node decides."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from forewarn.compiler.policies import load_policies
from forewarn.emulator.client import EmulatorClient
from forewarn.emulator.server import EmulatorServer
from tools.servers.scripted_imds import ScriptedServer, document, instance, status
from tools.sites.adhoc import AdHoc
from tools.sites.ansible_cores import CORE

pytestmark = pytest.mark.in_turn(4)

POLICY = """\
name: web-tier
description: Short freezes pass.
params:
  - {name: tolerable_freeze, type: int, default: 9}
rule:
  match:
    - id: under-way
      condition: event.EventStatus == "Started"
      output: hold
    - id: admin-action
      condition: event.EventSource == "User"
      output: approve
    - id: brief-freeze
      condition: event.EventType == "Freeze" && event.DurationInSeconds in [0, 5] && 5 < params.tolerable_freeze
      output: approve
      explanation: "'a freeze of ' + string(event.DurationInSeconds) + ' s goes unnoticed here'"
"""
# Hides the compiler's libraries from a process and its children, as on a control node that has only ansible.
HIDE_LIBRARIES = """\
import importlib.machinery
found = importlib.machinery.PathFinder.find_spec
def find_spec(name, path=None, target=None):
    return None if name.partition(".")[0] in ("celpy", "lark", "jsonschema") else found(name, path, target)
importlib.machinery.PathFinder.find_spec = find_spec
"""


@pytest.fixture
def adhoc(tmp_path: Path, collections_path: Path) -> AdHoc:
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "web-tier.yml").write_text(POLICY)
    return AdHoc(tmp_path, collections_path)


@pytest.fixture
def emulator() -> Iterator[EmulatorClient]:
    with EmulatorServer(vms=["web_0", "web_1", "db_0"]) as server, EmulatorClient(server.url) as client:
        yield client


def senders(emulator: EmulatorClient) -> list[object]:
    """Return which VMs sent an approval."""
    return [request["vm"] for request in emulator.requests() if request["method"] == "POST"]


def test_control_node_decides_and_the_leader_approves(adhoc: AdHoc, emulator: EmulatorClient) -> None:
    """SE-32: an approval is for all resources, so one VM sends it."""
    event_id = emulator.schedule("Freeze", ["web_0", "web_1"], duration_seconds=5)
    hosts = {name: {"endpoint": emulator.vm_endpoint(name)} for name in ("web_0", "web_1", "db_0")}
    args = {"endpoint": "{{ endpoint }}", "policies": "web-tier.yml"}
    asked = adhoc.run(hosts, args)
    assert asked.status == dict.fromkeys(hosts, "SUCCESS"), asked.stderr
    assert asked.results["web_0"]["policy_paths"] == [str(adhoc.directory / "policies" / "web-tier.yml")]
    (decision,) = asked.results["web_0"]["decisions"]
    reason = "a freeze of 5 s goes unnoticed here"
    values = decision.pop("evaluated")
    assert (values["event.DurationInSeconds"], values["params.tolerable_freeze"]) == ("5", "9")
    (verdict,) = decision.pop("verdicts")
    assert decision == {
        "event_id": event_id,
        "event_type": "Freeze",
        "output": "approve",
        "policy": "web-tier",
        "rule": "brief-freeze",
        "reason": reason,
        "approver": "leader",
        "eligibility": {"code": "approve", "reason": reason},
    }
    assert (verdict["where"], verdict["error"]) == ("web-tier.yml:13:7", None)
    codes = {name: result["decisions"][0]["eligibility"]["code"] for name, result in asked.results.items()}
    assert codes == {"web_0": "approve", "web_1": "not-the-leader", "db_0": "not-ours"}
    said = f"Freeze {event_id}: approve by web-tier, rule brief-freeze ({reason})"
    assert asked.results["web_0"]["msg"] == said
    assert asked.results["db_0"]["msg"] == f"{said}, not sent (db_0 is not among the event's resources)"

    rehearsed = adhoc.run(hosts, {**args, "apply": True}, "--check")
    assert rehearsed.status == {"web_0": "CHANGED", "web_1": "SUCCESS", "db_0": "SUCCESS"}
    assert rehearsed.results["web_0"]["msg"] == said.replace(": approve by", ": would be approved by")
    assert senders(emulator) == []

    done = adhoc.run(hosts, {**args, "apply": True}, "--forks", "1")
    assert done.status == {"web_0": "CHANGED", "web_1": "SUCCESS", "db_0": "SUCCESS"}
    assert done.results["web_0"]["approved"] == [event_id]
    assert done.results["web_0"]["msg"] == said.replace(": approve by", ": approved by")
    assert senders(emulator) == ["web_0"]


def test_event_in_doubt_is_held(adhoc: AdHoc) -> None:
    doubtful = {
        "EventId": "a1",
        "EventType": "Freeze",
        "EventStatus": "Scheduled",
        "Resources": ["web_0"],
        "NotBefore": "soon",
        "EventSource": "User",
    }
    with ScriptedServer(document(doubtful), instance("web_0"), status(200)) as server:
        outcome = adhoc.vm(server.url, {"policies": "web-tier.yml", "apply": True})
    (decision,) = outcome.only()["decisions"]
    assert decision["output"] == "hold"
    assert decision["reason"].startswith("the event is in doubt: NotBefore 'soon' is not a time")
    assert [request.method for request in server.requests] == ["GET", "GET"]


@pytest.mark.in_turn(1)
def test_se10_changed_document_is_decided_again(adhoc: AdHoc) -> None:
    event = {"EventId": "a1", "EventType": "Freeze", "EventStatus": "Scheduled", "Resources": ["web_0"]}
    first, then = {**event, "EventSource": "User"}, {**event, "EventSource": "Platform", "DurationInSeconds": 30}
    documents = [document(first, incarnation=2), *[document(then, incarnation=3)] * 2]
    answers = [answer for listed in documents for answer in (listed, instance("web_0"))]
    with ScriptedServer(*answers, status(200)) as server:
        outcome = adhoc.vm(server.url, {"policies": "web-tier.yml", "apply": True})
    assert outcome.status == {"vm": "SUCCESS"}
    assert outcome.only()["decisions"][0]["reason"] == "no rule of any policy applies to this event"
    assert [request.method for request in server.requests] == ["GET"] * 6


def test_parameters_are_typed(adhoc: AdHoc, emulator: EmulatorClient) -> None:
    emulator.schedule("Freeze", ["web_0"], duration_seconds=5)
    hosts: dict[str, dict[str, Any]] = {
        "strict": {"my_params": {"tolerable_freeze": 4}},
        "text": {"my_params": {"tolerable_freeze": "4"}},
        "unknown": {"my_params": {"tolerable_frieze": 4}},
    }
    args = {"endpoint": emulator.vm_endpoint("web_0"), "policies": "web-tier.yml", "params": "{{ my_params }}"}
    results = adhoc.run(hosts, args).results
    assert results["strict"]["decisions"][0]["reason"] == "no rule of any policy applies to this event"
    assert results["text"]["msg"] == "parameter tolerable_freeze of policy web-tier: '4' is not of type int"
    assert results["unknown"]["msg"].startswith("no policy declares a parameter tolerable_frieze. The policies ")


def test_policy_mistakes_are_reported_without_a_request(adhoc: AdHoc, emulator: EmulatorClient) -> None:
    broken = POLICY.replace("event.EventSource", "event.EventSourc").replace("output: hold", "output: wait")
    (adhoc.directory / "policies" / "web-tier.yml").write_text(broken)
    outcome = adhoc.vm(emulator.vm_endpoint("web_0"), {"policies": "web-tier.yml"})
    assert outcome.status == {"vm": "FAILED"}
    assert [(finding["line"], finding["code"]) for finding in outcome.only()["findings"]][-1] == (11, "unknown-field")
    assert len(outcome.only()["findings"]) == 2
    path = adhoc.directory / "policies" / "web-tier.yml"
    # Not only in the JSON, where a line break is two characters; but ansible-core before 2.19 shows nothing else.
    lines = (outcome.only()["msg"] if CORE in ("2.16", "2.18") else outcome.stdout).splitlines()
    assert f"{path}:11:18: error unknown-field event has no field EventSourc" in lines
    assert f"  |                  {'^' * len('event.EventSourc')}" in lines
    assert any(line.endswith(outcome.only()["findings"][0]["message"]) for line in lines)
    assert emulator.requests() == []


def test_artifact_needs_no_library_and_yaml_does(adhoc: AdHoc, emulator: EmulatorClient) -> None:
    """The error message for YAML names the missing library."""
    emulator.schedule("Freeze", ["web_0"], source="User")
    simple = adhoc.directory / "simple.yml"
    simple.write_text("name: simple\ndescription: Passes.\nrule: {match: [{id: always, output: approve}]}\n")
    artifact = load_policies([simple], "2019-08-01")
    (adhoc.directory / "policy.json").write_text(json.dumps(artifact.data))
    hiding = adhoc.directory / "hiding"
    hiding.mkdir()
    (hiding / "sitecustomize.py").write_text(HIDE_LIBRARIES)
    hosts = {"compiled": {"my_policies": "policy.json"}, "yaml": {"my_policies": "web-tier.yml"}}
    args = {"endpoint": emulator.vm_endpoint("web_0"), "policies": "{{ my_policies }}"}
    outcome = adhoc.run(hosts, args, environ={"PYTHONPATH": str(hiding)})
    assert outcome.status == {"compiled": "SUCCESS", "yaml": "FAILED"}
    assert outcome.results["compiled"]["decisions"][0]["rule"] == "always"
    assert outcome.results["compiled"]["api_version"] == "2019-08-01"
    message = outcome.results["yaml"]["msg"]
    assert "\n" not in message
    assert "Python package cel-python" in message or "needs cel-python" in message
    assert "forewarn policy compile" in message


def test_what_makes_no_sense_together_is_refused(adhoc: AdHoc, emulator: EmulatorClient) -> None:
    artifact = load_policies([adhoc.directory / "policies"])
    (adhoc.directory / "policy.json").write_text(json.dumps(artifact.data))
    (adhoc.directory / "edited.json").write_text(json.dumps({**artifact.data, "forewarn": "9.9.9"}))
    wrong: dict[str, tuple[dict[str, Any], str]] = {
        "apply": ({"apply": True}, "apply can be used only with policies"),
        "params": ({"params": {"a": 1}}, "params can be used only with policies"),
        "both": ({"policies": "web-tier.yml", "approve": ["a1"]}, "approve and policies exclude each other"),
        "mixed": ({"policies": ["policy.json", "web-tier.yml"]}, "is an artifact, which has all its policies in it"),
        "version": (
            {"policies": "policy.json", "api_version": "2019-08-01"},
            "was compiled for api-version 2020-07-01",
        ),
        "edited": ({"policies": "edited.json"}, "edited.json: the artifact's digest does not match its content"),
        "missing": ({"policies": "nowhere.yml"}, "nowhere.yml"),
        "empty": ({"policies": "", "apply": True}, "a path of policies is empty"),
    }
    names = ("apply", "params", "policies", "approve", "api_version")
    hosts = {host: {f"my_{name}": value for name, value in args.items()} for host, (args, _) in wrong.items()}
    outcome = adhoc.run(
        hosts,
        {"endpoint": emulator.base_url, **{name: f"{{{{ my_{name} | default(omit) }}}}" for name in names}},
    )
    assert outcome.status == dict.fromkeys(wrong, "FAILED")
    for host, (_, message) in wrong.items():
        assert message in outcome.results[host]["msg"]
    assert emulator.requests() == []
