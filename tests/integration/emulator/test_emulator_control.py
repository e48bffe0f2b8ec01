# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The control API of the emulator, at the wire."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from typing import Any

import pytest
import requests
from forewarn.emulator.client import EmulatorClient
from forewarn.emulator.server import EmulatorServer
from forewarn.emulator.spec import Settings, VmSpec
from forewarn.errors import InputError, ServiceError
from tools.servers.scripted_imds import ScriptedServer, raw
from tools.servers.wire import approve, get, statuses

VMS = (VmSpec("web_0", fault_domain="0"), VmSpec("web_1", fault_domain="1"))


@pytest.fixture
def server() -> Iterator[EmulatorServer]:
    """Time stands still: only ``advance`` moves it."""
    settings = Settings(requests_per_second=0, start_delay=0.0)
    with EmulatorServer(vms=VMS, settings=settings, time_scale=0) as server:
        yield server


def test_everything_a_client_can_do(server: EmulatorServer, emulator: EmulatorClient) -> None:
    get(server.url)
    first = emulator.schedule("Reboot", ["web_0"], name="one", source="User", notice_seconds=60, description="why not")
    emulator.start("one")
    emulator.secondary_impact("one", 5)
    assert emulator.state()["vms"][0]["impacted_by"] == [first]
    emulator.finish(first)
    emulator.cancel(emulator.schedule("Freeze", fields={"Description": None}))
    crash = emulator.hardware_failure("web_1", impact="4m")
    roll = emulator.schedule_fault_domains({"type": "Reboot", "resources": ["web_0", "web_1"]}, 30)
    state = emulator.state()
    assert [event["status"] for event in state["events"]] == ["Finished", "Cancelled", "Started", "Scheduled"]
    assert state["vms"][0]["listed"] == [crash, roll]
    assert emulator.event(crash.lower())["started_by"] == "hardware failure"
    emulator.switch_off()
    assert emulator.state()["vms"][0]["incarnation"] == 1
    emulator.reset()
    assert emulator.state()["events"] == emulator.requests() == []


def test_how_late_a_client_was_can_be_measured(server: EmulatorServer, emulator: EmulatorClient) -> None:
    get(server.url)
    before = time.monotonic()
    event = emulator.schedule("Reboot")
    get(server.url)
    assert approve(server.url, event) == 200
    after = time.monotonic()
    data = emulator.event(event)
    log = emulator.requests(since=1)
    visible = data["visible_since"]["web_0"]["monotonic"]
    seen, approved = (entry["received"]["monotonic"] for entry in log)
    assert before <= visible <= seen <= approved <= data["approvals"][0]["at"]["monotonic"] <= after
    assert [entry["event_ids"] for entry in log] == [[], [event]]
    emulator.clear_requests()
    assert emulator.requests() == []


def test_time_can_be_advanced_and_scaled(server: EmulatorServer, emulator: EmulatorClient) -> None:
    get(server.url)
    emulator.schedule("Preempt")
    emulator.advance(29.9)
    assert statuses(server.url) == ["Scheduled"]
    emulator.advance(0.1)
    assert statuses(server.url) == ["Started"]
    emulator.set_time_scale(10_000)  # gone 10 minutes later: 60 ms
    deadline = time.monotonic() + 10
    while statuses(server.url):
        assert time.monotonic() < deadline
    for bad in (-1, float("nan"), 1e9):
        with pytest.raises(InputError):
            emulator.set_time_scale(bad)
    with pytest.raises(InputError):
        emulator.advance(-1)


def test_advancing_running_time_brings_not_before_closer() -> None:
    with EmulatorServer() as server, EmulatorClient(server.url) as client:
        get(server.url)
        event = client.schedule("Reboot")
        client.advance(600)
        document = get(server.url).json()
        assert document["DocumentIncarnation"] == 3
        left = parsedate_to_datetime(document["Events"][0]["NotBefore"]).timestamp() - time.time()
        assert 290 < left <= 301
        before = time.monotonic()
        client.advance(302)
        assert statuses(server.url) == ["Started"]
        assert client.event(event)["started"]["monotonic"] >= before, "for the real world it began at the jump"


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "nothing", None, 404),
        ("GET", "events/none", None, 404),
        ("GET", "requests?since=x", None, 400),
        ("PUT", "state", None, 405),
        ("DELETE", "state", None, 404),
        ("POST", "nothing", {}, 404),
        ("POST", "events", {}, 400),
        ("POST", "events", {"type": "Reboot", "resorces": []}, 400),
        ("POST", "events", {"type": "Reboot", "resources": ["nobody"]}, 404),
        ("POST", "events", {"type": "Reboot", "notice": 10**400}, 400),
        ("POST", "events", [], 400),
        ("POST", "events/none/cancel", {}, 404),
        ("POST", "events/none/impacts", {"duration": "x"}, 400),
        ("POST", "faults", {"kind": "boredom"}, 400),
        ("POST", "faults", {"kind": "latency"}, 400),
        ("POST", "time", {}, 400),
        ("POST", "time", {"advance": True}, 400),
        ("POST", "time", {"advance": 10**400}, 400),
        ("POST", "time", {"speed": 1}, 400),
    ],
)
def test_the_control_api_refuses(
    server: EmulatorServer, emulator: EmulatorClient, method: str, path: str, body: Any, status: int
) -> None:
    response = requests.request(method, f"{server.url}/emulator/v1/{path}", json=body, timeout=10)
    assert response.status_code == status
    assert response.json()["error"]
    assert emulator.state()["events"] == []


def test_the_control_api_wants_json_by_name(server: EmulatorServer, emulator: EmulatorClient) -> None:
    """A web page can make a browser send a form or plain text to a local port, but not JSON."""
    event = emulator.schedule("Reboot")
    url = f"{server.url}/emulator/v1/events"
    for headers in ({}, {"Content-Type": "text/plain"}):
        assert requests.post(f"{url}/{event}/cancel", headers=headers, timeout=10).status_code == 400
        assert requests.post(url, data='{"type": "Reboot"}', headers=headers, timeout=10).status_code == 400
    headers = {"Content-Type": "application/json; charset=utf-8"}
    assert requests.post(url, data="{", headers=headers, timeout=10).status_code == 400
    emulator.cancel(event)
    with pytest.raises(InputError, match="Cancelled, not Scheduled"):
        emulator.cancel(event)
    assert requests.post(f"{url}/{event}/cancel", json={}, timeout=10).status_code == 409


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "attacker.example"},
        {"Host": "attacker.example:8254"},
        {"Host": "localhost.attacker.example"},
        {"Host": "127.0.0.1.attacker.example"},
        {"Host": "attacker-localhost"},
        {"Host": "localhost@attacker.example"},
        {"Host": "192.0.2.7"},
        {"Host": ""},
        {"Host": "localhost:port"},
        {"Host": "127.0.0.1", "Origin": "http://attacker.example"},
        {"Host": "127.0.0.1", "Origin": "null"},
    ],
    ids=str,
)
def test_the_control_api_refuses_the_names_of_others(
    server: EmulatorServer, emulator: EmulatorClient, headers: dict[str, str]
) -> None:
    """A web page whose name has come to mean 127.0.0.1 neither creates events nor reads anything."""
    event = emulator.schedule("Reboot")
    url = f"{server.url}/emulator/v1"
    answers = [
        requests.post(f"{url}/events", json={"type": "Reboot"}, headers=headers, timeout=10),
        requests.post(f"{url}/events/{event}/start", json={}, headers=headers, timeout=10),
        requests.get(f"{url}/state", headers=headers, timeout=10),
        requests.delete(f"{url}/requests", headers=headers, timeout=10),
    ]
    assert [answer.status_code for answer in answers] == [403] * 4
    assert all("--allow-host" in answer.json()["error"] for answer in answers)
    assert [(data["event_id"], data["status"]) for data in emulator.state()["events"]] == [(event, "Scheduled")]


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "localhost"},
        {"Host": "LOCALHOST.:8254"},
        {"Host": "emulator.localhost"},
        {"Host": "127.0.0.2:8254"},
        {"Host": "[::1]:8254"},
        {"Host": "Emulator.Test:1"},
        {"Host": "192.0.2.9"},
        {"Host": "127.0.0.1", "Origin": "http://localhost:3000"},
    ],
    ids=str,
)
def test_control_api_accepts_loopback_and_allowed_hosts(headers: dict[str, str]) -> None:
    with EmulatorServer(allowed_hosts=["emulator.test", "192.0.2.9"]) as server:
        answer = requests.get(f"{server.url}/emulator/v1/state", headers=headers, timeout=10)
        assert answer.status_code == 200


def test_request_without_host_is_refused(server: EmulatorServer) -> None:
    with socket.create_connection(("127.0.0.1", server.port), 10) as raw:
        raw.sendall(b"GET /emulator/v1/state HTTP/1.0\r\n\r\n")
        assert raw.makefile("rb").read().startswith(b"HTTP/1.1 403 ")


def test_a_name_to_allow_that_is_none() -> None:
    with pytest.raises(InputError, match="without scheme and port"):
        EmulatorServer(allowed_hosts=["http://emulator.test"])


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]",
        b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhtml",
    ],
    ids=["redirect", "404", "list", "text"],
)
def test_a_client_of_another_server(answer: bytes) -> None:
    """It says so, and follows no redirect."""
    with ScriptedServer(raw(answer)) as other, EmulatorClient(other.url) as client:
        with pytest.raises(ServiceError, match="not as an emulator does: is it one"):
            client.state()
        assert len(other.requests) == 1


def test_control_requests_are_not_in_the_log(server: EmulatorServer, emulator: EmulatorClient) -> None:
    emulator.state()
    get(server.url)
    assert [entry["path"] for entry in emulator.requests()] == ["/metadata/scheduledevents"]
