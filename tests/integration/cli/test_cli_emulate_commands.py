# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands that drive an emulator, against one that serves on loopback."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import requests
from forewarn.cli import main as cli
from forewarn.emulator.client import EmulatorClient
from forewarn.emulator.server import EmulatorServer
from forewarn.emulator.service import json_response
from forewarn.emulator.spec import Settings, VmSpec

TARGET = "/metadata/scheduledevents?api-version=2020-07-01"
EVENT = "49871F13-3B97-4705-98A3-6406751AC1DF"
Emulate = Callable[..., str]


@pytest.fixture
def server() -> Iterator[EmulatorServer]:
    """Time stands still: only ``advance`` moves it."""
    vms = (VmSpec("web_0", fault_domain="0"), VmSpec("web_1", fault_domain="1"))
    with EmulatorServer(vms=vms, settings=Settings(start_delay=0.0), time_scale=0) as server:
        yield server


@pytest.fixture
def emulate(server: EmulatorServer, capsys: pytest.CaptureFixture[str]) -> Emulate:
    """Return a function that runs ``forewarn emulate``; it returns what was written, to standard error if it failed."""

    def run(*arguments: str, code: int = 0) -> str:
        assert cli.main(["emulate", *arguments, "--control", server.url]) == code
        shown = capsys.readouterr()
        assert (shown.err, shown.out)[code != 0] == ""
        return shown.err if code else shown.out

    return run


def content(text: str, schema: str) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(text)
    assert made.pop("forewarn") == {"schema": f"emulate-{schema}", "version": 1}
    return made


def listed(server: EmulatorServer, vm: str = "web_0") -> list[dict[str, Any]]:
    """Ask the service, as a VM does."""
    answer = requests.get(server.vm_endpoint(vm) + TARGET, headers={"Metadata": "true"}, timeout=10)
    events: list[dict[str, Any]] = answer.json()["Events"]
    return events


def test_an_event_from_its_announcement_to_its_end(server: EmulatorServer, emulate: Emulate) -> None:
    listed(server)
    output = emulate(
        *("publish", "--type", "Freeze", "--resources", "web_0,web_1", "--notice", "15m", "--duration", "8"),
        *("--source", "User", "--description", "a pause", "--name", "pause", "--event-id", EVENT),
    )
    start = r"NotBefore 20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ \(in 15 min\)"
    assert re.fullmatch(rf"published: {EVENT} \(pause, Freeze of web_0, web_1\), {start}\n", output)
    (event,) = listed(server)
    assert event.pop("NotBefore").endswith(" GMT")
    assert event == {
        "EventId": EVENT,
        "EventStatus": "Scheduled",
        "EventType": "Freeze",
        "ResourceType": "VirtualMachine",
        "Resources": ["web_0", "web_1"],
        "Description": "a pause",
        "EventSource": "User",
        "DurationInSeconds": 8,
    }
    assert emulate("start", "pause") == f"started: {EVENT} (pause, Freeze of web_0, web_1)\n"
    assert emulate("impact", EVENT.lower(), "--duration", "30s").startswith("affected for another 30 s: ")
    assert [event["EventStatus"] for event in listed(server)] == ["Started"]
    assert emulate("finish", "pause") == f"finished: {EVENT} (pause, Freeze of web_0, web_1)\n"
    assert listed(server) == []
    header, row, *history = emulate("status", "pause").splitlines()
    assert header.split() == ["TYPE", "STATUS", "NOT", "BEFORE", "SOURCE", "RESOURCES", "NAME", "EVENT", "ID"]
    assert row.split()[:2] == ["Freeze", "Finished"]
    assert [line.split("Z  ")[1] for line in history] == [
        *("scheduled", "shown to web_0", "shown to web_1", "started by control", "finished")
    ]


def test_every_option_of_an_event_arrives(server: EmulatorServer, emulator: EmulatorClient, emulate: Emulate) -> None:
    listed(server)
    output = emulate(
        *("publish", "--type", "Reboot", "--resources", "web_1", "web_0", "--impact", "1m", "--gone-after", "2m"),
        *("--start-on", "all_approvals", "--start-delay", "0", "--seen-by", "resources", "--duration", "-1"),
        *("--notice", "90", "--fields", '{"EventSource": null, "Extra": 1}', "--json"),
    )
    event = content(output, "event")["event"]
    assert event == emulator.event(event["event_id"])
    (shown,) = listed(server)
    assert (shown["Resources"], shown["DurationInSeconds"], shown["Extra"]) == (["web_1", "web_0"], -1, 1)
    assert "EventSource" not in shown
    for vm, status in (("web_0", "Scheduled"), ("web_1", "Started")):
        body = {"StartRequests": [{"EventId": event["event_id"]}]}
        requests.post(server.vm_endpoint(vm) + TARGET, json=body, headers={"Metadata": "true"}, timeout=10)
        assert emulator.event(event["event_id"])["status"] == status
    (impact,) = emulator.event(event["event_id"])["impacts"]
    assert impact["until"] - impact["from"] == 60
    assert emulator.event(event["event_id"])["gone_at"] == impact["from"] + 120
    assert "approved by web_1" in emulate("status", event["event_id"])


def test_failed_hardware_and_fault_domains(emulator: EmulatorClient, emulate: Emulate) -> None:
    output = emulate("publish", "--hardware-failure", "--event-id", EVENT)
    assert output == f"published: {EVENT} (Reboot of web_0), started by hardware failure\n"
    output = emulate(
        *("publish", "--fault-domains", "--type", "Redeploy", "--resources", "web_0,web_1", "--pause", "5s"),
        *("--name", "round"),
    )
    assert "(round, Redeploy of web_0)" in output
    emulate("start", "round")
    emulate("finish", "round")
    assert (
        emulate("time", "--advance", "5s")
        == "5 s of emulated time since the start; it stands still until it is advanced.\n"
    )
    assert emulator.event("round-2")["resources"] == ["web_1"]


def test_what_the_emulator_refuses_is_reported(server: EmulatorServer, emulate: Emulate) -> None:
    assert emulate("cancel", "x", code=2) == "error: there is no event 'x'. None has been scheduled yet.\n"
    emulate("publish", "--type", "Reboot", "--event-id", EVENT, "--name", "one")
    assert emulate("cancel", "x", code=2) == f"error: there is no event 'x'. The newest are {EVENT} (one).\n"
    assert emulate("cancel", "one").startswith("cancelled: ")
    assert emulate("finish", "one", code=2) == "error: event one is Cancelled, not Started.\n"
    output = emulate("publish", "--type", "Reboot", "--resources", "web_7", code=2)
    assert output == "error: there is no VM 'web_7'. The VMs are web_0, web_1.\n"
    assert "event.resources[0]: 'a b'" in emulate("publish", "--type", "Reboot", "--resources", "a b", code=2)
    assert "event.name: 'a b'" in emulate("publish", "--type", "Reboot", "--name", "a b", code=2)
    assert "is taken" in emulate("publish", "--type", "Reboot", "--event-id", EVENT, code=2)
    assert "out of range" in emulate("time", "--scale", "-1", code=2)
    assert "cannot be sent" in emulate("time", "--scale", "nan", code=2)
    assert "there is no VM 'x'" in emulate("fail", "503", "--vm", "x", code=2)
    assert [event["status"] for event in server.emulation.state()["events"]] == ["Cancelled"]


def test_faults_are_met_shown_and_ended(server: EmulatorServer, emulate: Emulate) -> None:
    assert emulate("fail", "429", "--times", "2", "--for", "1m", "--retry-after", "30s", "--request", "get") == (
        "fault: status 429, Retry-After 30 s, requests get, for another 1 min, times left: 2\n"
    )
    url = server.url + TARGET
    assert requests.get(url, headers={"Metadata": "true"}, timeout=10).status_code == 429
    output = emulate("fail", "drop", "--vm", "web_1", "--request", "post", "--request", "instance", "--processed")
    assert output.splitlines()[1] == "fault: drop, processed anyway, requests post, instance, of web_1"
    state = content(emulate("fail", "latency", "--latency", "3s", "--json"), "state")
    assert [fault["kind"] for fault in state["faults"]] == ["status", "drop", "latency"]
    assert "fault: latency, 3 s late" in emulate("status")
    assert emulate("fail", "--clear") == "No request fails.\n"
    assert requests.get(url, headers={"Metadata": "true"}, timeout=10).status_code == 200


def test_the_log_shows_requests_and_their_answers(server: EmulatorServer, emulate: Emulate) -> None:
    assert emulate("log") == "No requests.\n"
    emulate("publish", "--type", "Reboot", "--event-id", EVENT)
    listed(server, "web_1")
    body = {"StartRequests": [{"EventId": EVENT}]}
    requests.post(server.url + TARGET, json=body, headers={"Metadata": "true"}, timeout=10)
    requests.get(server.url + TARGET, timeout=10)
    header, *lines = emulate("log").splitlines()
    rows = [re.split(r" {2,}", line) for line in lines]
    assert [row[2:8] for row in rows] == [
        ["web_1", "GET", "/metadata/scheduledevents", "2020-07-01", "200", "2"],
        ["web_0", "POST", "/metadata/scheduledevents", "2020-07-01", "200", "-"],
        ["web_0", "GET", "/metadata/scheduledevents", "2020-07-01", "400", "-"],
    ]
    assert header.split()[:3] == ["NUMBER", "RECEIVED", "VM"]
    assert all(row[8].endswith(" ms") for row in rows)
    assert [row[9:] for row in rows] == [[], [f"approves {EVENT}"], ["The header 'Metadata: true' is missing."]]
    entries = content(emulate("log", "--since", "1", "--json"), "log")["requests"]
    assert [(entry["number"], entry["method"]) for entry in entries] == [(2, "POST"), (3, "GET")]
    assert emulate("log", "--since", "3") == "No requests after number 3.\n"
    assert emulate("log", "--clear") == "No requests.\n"


def test_status_shows_everything(server: EmulatorServer, emulate: Emulate) -> None:
    listed(server)
    emulate("publish", "--hardware-failure", "--event-id", EVENT)
    lines = emulate("status").splitlines()
    assert lines[0] == "0 s of emulated time since the start; it stands still until it is advanced."
    assert lines[3].split() == ["web_0", "default", "0", "2", "1", EVENT]
    assert lines[4].split() == ["web_1", "default", "1", "2", "1", "-"]
    assert lines[7].split()[:2] == ["Reboot", "Started"]
    assert lines[-1] == "No request fails."
    state = content(emulate("status", "--json"), "state")
    served = json.loads(json_response(200, server.emulation.state()).body)
    assert {**state, "now": None} == {**served, "now": None}
    assert content(emulate("status", EVENT, "--json"), "event")["event"]["event_id"] == EVENT


def test_time_switch_off_and_reset(server: EmulatorServer, emulate: Emulate) -> None:
    listed(server)
    emulate("publish", "--type", "Reboot")
    assert len(listed(server)) == 1
    assert "The next request switches it on again." in emulate("switch-off")
    assert server.emulation.state()["vms"][0]["incarnation"] == 1
    state = content(emulate("time", "--advance", "1h", "--json"), "state")
    assert (state["elapsed"], state["time_scale"]) == (3600, 0)
    assert "it runs 60 times as fast as real time." in emulate("time", "--scale", "60")
    assert "it runs as real time does." in emulate("time", "--scale", "1")
    assert "begins again" in emulate("reset")
    assert "No events." in emulate("status")
    assert content(emulate("reset", "--json"), "state")["events"] == []


def test_an_emulator_that_does_not_run_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        assert cli.main(["emulate", "status", "--control", url]) == 3
    shown = capsys.readouterr()
    assert (shown.out, shown.err.splitlines()[0]) == (
        "",
        f"error: the emulator at {url} does not answer: is it running?",
    )
    assert "Start it with 'forewarn emulate'" in shown.err
