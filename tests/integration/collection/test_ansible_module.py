# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module ``scheduled_events`` through the real ``ansible`` command, against the emulator."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from forewarn.emulator.client import EmulatorClient
from forewarn.emulator.server import EmulatorServer
from forewarn.events import parse_time
from tools.servers.scripted_imds import Answer, ScriptedServer, document, instance, status
from tools.sites.adhoc import MODULE, AdHoc
from tools.sites.ansible_cores import ansible
from tools.sites.commands import run_program
from tools.sites.pythons import python
from tools.suite.sizes import in_turn

pytestmark = pytest.mark.in_turn(4)

UNLISTED = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
def adhoc(tmp_path: Path, collections_path: Path) -> AdHoc:
    return AdHoc(tmp_path, collections_path)


@pytest.fixture
def emulator() -> Iterator[EmulatorClient]:
    with EmulatorServer(vms=["web_0", "web_1", "db_0"]) as server, EmulatorClient(server.url) as client:
        yield client


def approvals(emulator: EmulatorClient) -> list[dict[str, object]]:
    return [request for request in emulator.requests() if request["method"] == "POST"]


@pytest.mark.in_turn(1)
def test_each_vm_knows_its_role_in_an_event(adhoc: AdHoc, emulator: EmulatorClient) -> None:
    """SE-14, SE-16, SE-32: resource names, not host names, decide who is affected and who leads."""
    event_id = emulator.schedule("Freeze", ["web_0", "web_1"], duration_seconds=5, notice_seconds=900)
    hosts = {name: {"endpoint": emulator.vm_endpoint(name)} for name in ("web_0", "web_1", "db_0")}
    outcome = adhoc.run(hosts, {"endpoint": "{{ endpoint }}"})
    assert outcome.status == dict.fromkeys(hosts, "SUCCESS")
    places = {}
    for name, result in outcome.results.items():
        (event,) = result["events"]
        places[name] = (event["affects_me"], event["leader"])
        assert result["vm"]["name"] == name
        assert result["msg"] == f"1 event: Freeze Scheduled {event_id}"
        assert (result["problems"], result["vm_problems"], result["approved"]) == ([], [], [])
    assert places == {"web_0": (True, True), "web_1": (True, False), "db_0": (False, False)}
    result = outcome.results["web_0"]
    (event,) = result["events"]
    assert {name: event[name] for name in ("event_id", "event_type", "event_status", "duration_in_seconds")} == {
        "event_id": event_id,
        "event_type": "Freeze",
        "event_status": "Scheduled",
        "duration_in_seconds": 5,
    }
    left = (parse_time(event["not_before"]) - parse_time(result["read_at"])).total_seconds()
    assert 800 < left < 901
    assert event["notice_seconds"] == pytest.approx(left)


def test_se30_approval_ignores_case_and_started_events(adhoc: AdHoc, emulator: EmulatorClient) -> None:
    """An id is approved in either case, and once; an event that has started is not approved again."""
    event_id = emulator.schedule("Reboot", ["web_0"], start_delay_seconds=0)
    rehearsal = adhoc.vm(emulator.vm_endpoint("web_0"), {"approve": [event_id.lower()]}, "--check")
    assert rehearsal.status == {"vm": "CHANGED"}
    assert (rehearsal.only()["msg"], rehearsal.only()["approved"]) == (f"would approve {event_id}", [event_id])
    assert approvals(emulator) == []
    real = adhoc.vm(emulator.vm_endpoint("web_0"), {"approve": [event_id.lower(), event_id.upper()]})
    assert real.status == {"vm": "CHANGED"}
    assert (real.only()["msg"], real.only()["approved"]) == (f"approved {event_id}", [event_id])
    assert len(approvals(emulator)) == 1
    assert emulator.event(event_id)["status"] == "Started"
    again = adhoc.vm(emulator.vm_endpoint("web_0"), {"approve": event_id})
    assert again.status == {"vm": "SUCCESS"}
    assert (again.only()["msg"], again.only()["approved"]) == (f"already started: {event_id}", [])
    assert len(approvals(emulator)) == 1


def test_approves_nothing_where_one_id_is_not_listed(adhoc: AdHoc, emulator: EmulatorClient) -> None:
    event_id = emulator.schedule("Reboot", ["web_0"])
    outcome = adhoc.vm(emulator.vm_endpoint("web_0"), {"approve": [event_id, UNLISTED]})
    assert (outcome.code, outcome.status) == (2, {"vm": "FAILED"})
    assert outcome.only()["msg"] == (
        f"Not listed: {UNLISTED}. Nothing was approved. Listed: {event_id}. "
        "An event that has ended or was cancelled is no longer listed."
    )
    assert approvals(emulator) == []


def test_se10_changed_document_prevents_an_approval(adhoc: AdHoc, emulator: EmulatorClient) -> None:
    event_id = emulator.schedule("Reboot", ["web_0"])
    outcome = adhoc.vm(emulator.vm_endpoint("web_0"), {"approve": [event_id], "document_incarnation": "4711"})
    assert outcome.status == {"vm": "FAILED"}
    assert outcome.only()["superseded"] is True
    assert "no longer 4711. Nothing was approved." in outcome.only()["msg"]
    assert approvals(emulator) == []


def test_approves_nothing_of_events_that_have_changed(adhoc: AdHoc) -> None:
    event = {"EventId": "a1", "EventType": "Freeze", "EventStatus": "Scheduled", "Resources": ["web_0"]}
    seen, now = ([{**event, "EventType": name}] for name in ("Freeze", "Redeploy"))

    def bare(events: list[dict[str, Any]]) -> Answer:
        return status(200, json.dumps({"Events": events}).encode())

    with ScriptedServer(bare(seen), instance("web_0"), bare(now), instance("web_0"), status(200)) as server:
        digest = adhoc.vm(server.url, {}).only()["events_digest"]
        for basis in ({"events_digest": digest}, {"document_incarnation": "None"}):
            server.answers[:] = [bare(now), instance("web_0"), status(200)]
            outcome = adhoc.vm(server.url, {"approve": ["a1"], **basis})
            assert outcome.status == {"vm": "FAILED"}
            assert outcome.only()["superseded"] is True
            assert "Nothing was approved" in outcome.only()["msg"]
        assert "POST" not in [request.method for request in server.requests]
        server.answers[:] = [bare(seen), instance("web_0"), status(200)]
        assert adhoc.vm(server.url, {"approve": ["a1"], "events_digest": digest}).only()["approved"] == ["a1"]


def test_event_in_doubt_is_shown_and_approved_manually(adhoc: AdHoc) -> None:
    doubtful = {"EventId": "a1", "EventType": "Freeze", "EventStatus": "Scheduled", "Resources": "web_0"}
    with ScriptedServer(document(doubtful)) as server:
        outcome = adhoc.vm(server.url, {"approve": ["a1"], "vm_name": "web_0"}, "--check")
    (event,) = outcome.only()["events"]
    assert event["problems"] == ["Resources is 'web_0', not a list of names"]
    assert event["affects_me"] is False
    assert "event a1: Resources is 'web_0', not a list of names; approving it anyway" in " ".join(
        outcome.stderr.split()
    )


def test_without_a_name_nobody_is_affected_for_sure(adhoc: AdHoc, emulator: EmulatorClient) -> None:
    emulator.schedule("Freeze", ["web_0"])
    emulator.inject_fault(404, requests=["instance"])
    result = adhoc.vm(emulator.vm_endpoint("web_0"), {}).only()
    assert result["vm"]["name"] is None
    assert (result["events"][0]["affects_me"], result["events"][0]["leader"]) == (None, None)
    assert "answered 404" in result["vm_problems"][0]
    assert "set vm_name" in result["vm_problems"][1]


def test_permanent_fault_fails_at_once_with_a_hint(adhoc: AdHoc, emulator: EmulatorClient) -> None:
    emulator.inject_fault(403)
    outcome = adhoc.vm(emulator.vm_endpoint("web_0"), {"patience": 60})
    assert outcome.status == {"vm": "FAILED"}
    assert outcome.only()["fault"] == {"kind": "http", "status": 403, "passing": False}
    assert "answered 403" in outcome.only()["msg"]
    assert "a host firewall" in outcome.only()["msg"]
    assert "metadata security policy (proxyAgentSettings: allow this request, " in outcome.only()["msg"]
    assert len(emulator.requests()) == 1


def test_a_fault_that_passes_is_waited_for(adhoc: AdHoc, emulator: EmulatorClient) -> None:
    """410 comes for minutes while a host is updated."""
    emulator.inject_fault(410, times=2)
    assert adhoc.vm(emulator.vm_endpoint("web_0"), {"patience": 60}).only()["msg"] == "nothing is scheduled"


@pytest.mark.parametrize("code", in_turn([404, 410]))
def test_a_fault_that_passes_is_named_as_one(adhoc: AdHoc, emulator: EmulatorClient, code: int) -> None:
    emulator.inject_fault(code, times=1)
    failed = adhoc.vm(emulator.vm_endpoint("web_0"), {"patience": 0}).only()
    assert failed["fault"] == {"kind": "http", "status": code, "passing": True}
    assert "Usual for some minutes while the host is updated" in failed["msg"]
    assert failed["msg"].endswith("Tried for 0 s. Run it again in some minutes, or raise patience.")


def test_endpoint_without_an_answer_may_be_no_vm(adhoc: AdHoc) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        outcome = adhoc.vm(f"http://127.0.0.1:{silent.getsockname()[1]}", {"timeout": 1})
    assert outcome.status == {"vm": "FAILED"}
    assert outcome.only()["msg"].endswith("Is this host a VM in Azure? Outside Azure nobody answers.")


def test_one_line_output_begins_with_pending_events(adhoc: AdHoc, emulator: EmulatorClient) -> None:
    emulator.schedule("Freeze", ["web_0"], notice_seconds=1018)
    hosts = {name: {"endpoint": emulator.vm_endpoint(name)} for name in ("web_0", "web_1")}
    lines = adhoc.run(hosts, {"endpoint": "{{ endpoint }}"}, "--one-line").stdout.splitlines()
    assert {line[:62] for line in lines} == {
        'web_0 | SUCCESS => {"ahead": "Freeze in 17 min, here","api_ver',
        'web_1 | SUCCESS => {"ahead": "Freeze in 17 min, elsewhere","ap',
    }


def test_diff_mode_shows_what_an_approval_changes(adhoc: AdHoc, emulator: EmulatorClient) -> None:
    event_id = emulator.schedule("Reboot", ["web_0"])
    outcome = adhoc.vm(emulator.vm_endpoint("web_0"), {"approve": [event_id]}, "--check", "--diff")
    shown = outcome.stdout.splitlines()
    assert f"-{event_id}: Reboot Scheduled" in shown
    assert f"+{event_id}: Reboot approved" in shown
    assert "+++" not in adhoc.vm(emulator.vm_endpoint("web_0"), {}, "--diff").stdout


def test_async_runs_the_module_but_refuses_policies(adhoc: AdHoc, emulator: EmulatorClient) -> None:
    event_id = emulator.schedule("Reboot", ["web_0"])
    environ = {"ANSIBLE_ASYNC_DIR": str(adhoc.directory / "async")}
    polled = adhoc.vm(emulator.vm_endpoint("web_0"), {}, "-B", "60", "-P", "1", environ=environ)
    assert polled.code == 0, polled.stdout
    assert f'"msg": "1 event: Reboot Scheduled {event_id}"' in polled.stdout
    refused = adhoc.vm(emulator.vm_endpoint("web_0"), {"policies": "nowhere.yml"}, "-B", "60", environ=environ)
    assert refused.status == {"vm": "FAILED"}
    assert "async and policies exclude each other: policies are decided here" in refused.only()["msg"]


def test_wrong_options_are_refused_before_anything_is_asked(adhoc: AdHoc) -> None:
    right = {"endpoint": "http://127.0.0.1:9", "api_version": "2020-07-01", "timeout": 1, "patience": 0}
    wrong: dict[str, tuple[dict[str, object], str]] = {
        "version": ({"api_version": "2016-01-01"}, "value of api_version must be one of: 2017-03-01, "),
        "https": ({"endpoint": "https://127.0.0.1"}, "the service speaks http only, not https"),
        "timeout": ({"timeout": 0}, "timeout must be at least 1 second"),
        "patience": ({"patience": -1}, "patience must not be negative"),
    }
    hosts = {name: {"my_" + key: value for key, value in {**right, **its}.items()} for name, (its, _) in wrong.items()}
    outcome = adhoc.run(hosts, {name: f"{{{{ my_{name} }}}}" for name in right})
    assert outcome.status == dict.fromkeys(wrong, "FAILED")
    for name, (_, message) in wrong.items():
        assert message in outcome.results[name]["msg"]


def test_the_oldest_python_of_a_vm_suffices(adhoc: AdHoc, emulator: EmulatorClient) -> None:
    event_id = emulator.schedule("Freeze", ["web_0"])
    outcome = adhoc.vm(emulator.vm_endpoint("web_0"), {"approve": [event_id]}, python=python("3.9"))
    assert outcome.status == {"vm": "CHANGED"}, outcome.stderr
    assert len(approvals(emulator)) == 1


def test_vm_receives_only_the_client(adhoc: AdHoc, emulator: EmulatorClient) -> None:
    """Policies are decided on the control node: neither they nor their libraries travel."""
    outcome = adhoc.vm(emulator.vm_endpoint("web_0"), {}, environ={"ANSIBLE_KEEP_REMOTE_FILES": "1"})
    assert outcome.status == {"vm": "SUCCESS"}
    (shipped,) = (adhoc.directory / "remote").rglob("AnsiballZ_*.py")
    subprocess.run([sys.executable, str(shipped), "explode"], check=True, capture_output=True, timeout=60)
    (root,) = (adhoc.directory / "remote").rglob("ansible_collections/forewarn/azure")
    files = {path.relative_to(root).as_posix() for path in root.rglob("*.py")}
    ours = {name.removeprefix("plugins/module_utils/forewarn/") for name in files if "module_utils/forewarn/" in name}
    packages = {name.partition("/")[0] for name in ours}
    assert packages == {"__init__.py", "adhoc", "errors.py", "events.py", "imds", "policy", "system", "texts.py"}
    assert {name for name in ours if name.startswith("adhoc/")} == {"adhoc/__init__.py", "adhoc/task.py"}
    assert {"imds/client.py", "system/discovery.py", "system/posix/discovery.py", "imds/transport.py"} <= ours
    others = files - {f"plugins/module_utils/forewarn/{name}" for name in ours}
    assert {name for name in others if not name.endswith("__init__.py")} == {"plugins/modules/scheduled_events.py"}


def test_short_name_works_with_the_documented_settings(
    adhoc: AdHoc, emulator: EmulatorClient, collections_path: Path, repository: Path
) -> None:
    """With other settings, Ansible does not find the module."""
    emulator.schedule("Freeze", ["web_0"])
    documented = (repository / "docs/adhoc.md").read_text().partition("```ini\n")[2].partition("```")[0]
    settings = documented.replace("~/.ansible/collections", str(collections_path))
    (adhoc.directory / "ansible.cfg").write_text(settings)
    environ = {"ANSIBLE_COLLECTIONS_PATH": None}
    outcome = adhoc.vm(emulator.vm_endpoint("web_0"), {}, module="scheduled_events", environ=environ)
    assert outcome.status == {"vm": "SUCCESS"}, outcome.stderr
    assert outcome.only()["events"][0]["event_type"] == "Freeze"
    (adhoc.directory / "ansible.cfg").write_text("[defaults]\n")
    assert adhoc.vm(emulator.vm_endpoint("web_0"), {}, module="scheduled_events").code != 0


def test_module_without_its_action_plugin_refuses_policies(adhoc: AdHoc, repository: Path) -> None:
    """ANSIBLE_LIBRARY finds only the module: it must not look as if a policy had decided."""
    shutil.copytree(repository / "plugins/modules", adhoc.directory / "library")
    outcome = adhoc.run(
        {"vm": {}},
        {"endpoint": "http://127.0.0.1:9", "policies": ["web-tier.yml"], "apply": True},
        module="scheduled_events",
        environ={"ANSIBLE_LIBRARY": str(adhoc.directory / "library")},
    )
    assert outcome.status == {"vm": "FAILED"}
    assert outcome.only()["msg"].startswith("Nothing was decided: policies, params and apply are for the control node")


def test_the_documentation_renders(adhoc: AdHoc) -> None:
    shown = run_program(ansible("ansible-doc"), "--json", MODULE, env=adhoc.environ).stdout
    described = json.loads(shown)[MODULE]
    assert described["doc"]["has_action"] is True
    assert {"decisions", "events", "vm", "approved"} <= set(described["return"])
