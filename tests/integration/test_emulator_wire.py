# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The emulator at the wire: HTTP as clients speak it, and the control API."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
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
from tools.scripted_imds import ScriptedServer, raw
from tools.waiting import wait_until

TARGET = "/metadata/scheduledevents?api-version=2020-07-01"
VMS = (VmSpec("web_0", fault_domain="0"), VmSpec("web_1", fault_domain="1"))


@pytest.fixture
def server() -> Iterator[EmulatorServer]:
    """Time stands still: only ``advance`` moves it."""
    settings = Settings(requests_per_second=0, start_delay=0.0)
    with EmulatorServer(vms=VMS, settings=settings, time_scale=0) as server:
        yield server


@pytest.fixture
def client(server: EmulatorServer) -> Iterator[EmulatorClient]:
    with EmulatorClient(server.url) as client:
        yield client


@contextlib.contextmanager
def connected(server: EmulatorServer) -> Iterator[http.client.HTTPConnection]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    try:
        yield connection
    finally:
        connection.close()


def get(endpoint: str, **headers: str) -> requests.Response:
    return requests.get(endpoint + TARGET, headers={"Metadata": "true", **headers}, timeout=10)


def approve(endpoint: str, *events: str) -> int:
    body = json.dumps({"StartRequests": [{"EventId": event} for event in events]})
    return requests.post(endpoint + TARGET, data=body, headers={"Metadata": "true"}, timeout=10).status_code


def statuses(endpoint: str) -> list[str]:
    return [event["EventStatus"] for event in get(endpoint).json()["Events"]]


# -- the service -------------------------------------------------------------------------------------------------------


def test_se20_se31_the_life_of_an_event_between_two_vms(server: EmulatorServer, client: EmulatorClient) -> None:
    leader, second = server.vm_endpoint("web_0"), client.vm_endpoint("web_1")
    assert get(leader).json() == {"DocumentIncarnation": 1, "Events": []}
    event = client.schedule("Freeze", ["web_0", "web_1"], duration_seconds=5)
    assert get(leader).json() == get(second).json() == get(server.url).json()
    assert get(leader).json()["DocumentIncarnation"] == 2
    assert approve(leader, event) == 200
    assert approve(second, event) == 200
    assert get(second).json()["DocumentIncarnation"] == 3
    assert get(second).json()["Events"][0]["NotBefore"] == ""
    client.advance(600)
    assert get(second).json() == {"DocumentIncarnation": 4, "Events": []}
    assert approve(leader, event) == 400


def test_se02_se03_se07_refusals(server: EmulatorServer) -> None:
    url = server.url + TARGET
    assert requests.get(url, timeout=10).status_code == 400
    assert get(server.url, **{"X-Forwarded-For": "10.0.0.1"}).status_code == 400
    headers = {"Metadata": "true"}
    assert requests.get(url.replace("2020-07-01", "2020-07-02"), headers=headers, timeout=10).status_code == 400
    assert requests.put(url, headers=headers, timeout=10).status_code == 405
    assert requests.head(url, headers=headers, timeout=10).status_code == 405
    assert requests.get(server.url + "/metadata", headers=headers, timeout=10).status_code == 404
    assert requests.post(url, data="{", headers=headers, timeout=10).status_code == 400


def test_se16_not_before_is_real_time_also_when_time_runs_fast() -> None:
    with EmulatorServer(time_scale=600) as server, EmulatorClient(server.url) as client:
        client.schedule("Reboot")  # 15 minutes: 1.5 real seconds
        text = get(server.url).json()["Events"][0]["NotBefore"]
        not_before = parsedate_to_datetime(text).timestamp()
        assert 1.0 < not_before - time.time() <= 2.5
        event_id = client.state()["events"][0]["event_id"]
        wait_until(lambda: client.event(event_id)["status"] != "Scheduled")
        assert time.time() >= not_before
        started = client.state()["events"][0]["started"]["wall"]
        assert not_before - 0.001 <= started < not_before + 0.1


def test_se05_a_slow_first_call_holds_no_other_vm_up() -> None:
    vms = (VmSpec("a", group="one"), VmSpec("b", group="two"))
    with (
        EmulatorServer(vms=vms, settings=Settings(first_response=60.0), time_scale=0) as server,
        EmulatorClient(server.url) as client,
    ):
        answers: list[int] = []
        threads = [
            threading.Thread(target=lambda vm=vm: answers.append(get(server.vm_endpoint(vm)).status_code))
            for vm in ("a", "b")
        ]
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + 10
        while len(client.requests()) < 2 or len(client.state()["transitions"]) < 2:
            assert time.monotonic() < deadline
        assert answers == []
        client.advance(60)
        for thread in threads:
            thread.join(10)
        assert answers == [200, 200]


def test_keep_alive_survives_refused_and_unread_bodies(server: EmulatorServer) -> None:
    with connected(server) as connection:
        for method, target, body, status in (
            ("POST", "/nowhere", b"x" * 5000, 404),
            ("PUT", TARGET, b"y" * 5000, 405),
            ("GET", TARGET, b"a body nobody asked for", 200),
            ("HEAD", TARGET, None, 405),
            ("POST", TARGET, b"{}", 400),
            ("GET", TARGET, None, 200),
        ):
            connection.request(method, target, body, {"Metadata": "true"})
            first = connection.sock
            response = connection.getresponse()
            response.read()
            assert response.status == status
            assert connection.sock is first is not None, "the connection was kept"
        assert response.version == 11


def test_an_answer_leaves_at_once(server: EmulatorServer) -> None:
    """Head and body in one piece, and no waiting for an acknowledgement: 40 ms each would show."""
    with connected(server) as connection:
        connection.connect()
        durations = []
        for _ in range(50):
            started = time.monotonic()
            connection.request("GET", TARGET, headers={"Metadata": "true"})
            connection.getresponse().read()
            durations.append(time.monotonic() - started)
        assert sorted(durations)[10] < 0.03


def test_bodies_whose_end_cannot_be_told(server: EmulatorServer) -> None:
    for header, status in (
        ("Transfer-Encoding: gzip, chunked", 501),
        ("Transfer-Encoding: chunked\r\nContent-Length: 5", 400),
        ("Content-Length: many", 400),
        ("Content-Length: -1", 400),
        ("Content-Length: 99999999", 413),
    ):
        with socket.create_connection(("127.0.0.1", server.port), 10) as raw:
            raw.sendall(f"POST {TARGET} HTTP/1.1\r\nHost: x\r\nMetadata: true\r\n{header}\r\n\r\n".encode())
            answer = raw.makefile("rb").read()  # to the end: the connection is closed
            assert answer.startswith(f"HTTP/1.1 {status} ".encode())


def test_an_approval_in_chunks(server: EmulatorServer, client: EmulatorClient) -> None:
    """As clients send it that make the body while they send it; the connection is kept."""
    get(server.url)
    event = client.schedule("Reboot")
    body = json.dumps({"StartRequests": [{"EventId": event}]}).encode()
    with connected(server) as connection:
        for pieces in (iter([body[:7], body[7:]]), iter([body])):
            connection.request("POST", TARGET, body=pieces, headers={"Metadata": "true"})
            response = connection.getresponse()
            assert (response.status, response.read()) == (200, b"")
        connection.request("GET", TARGET, headers={"Metadata": "true"})
        assert b'"Started"' in connection.getresponse().read()
    assert [entry["event_ids"] for entry in client.requests()] == [[], [event], [event], []]


@pytest.mark.parametrize(
    ("chunks", "status"),
    [
        (b"2\r\n{}\r\n0\r\n\r\n", 400),  # read, and without StartRequests
        (b"2;name=value\r\n{}\r\n0\r\nTrailer: x\r\n\r\n", 400),
        (b"two\r\n{}\r\n0\r\n\r\n", 400),
        (b"-2\r\n{}\r\n0\r\n\r\n", 400),
        (b"0x2\r\n{}\r\n0\r\n\r\n", 400),
        (b"1\r\n{}\r\n0\r\n\r\n", 400),
        (b"f4241\r\n", 413),
        (b"ffffffff\r\n", 413),
        (b"1" * 5000, 400),
        (b"1;" + b"x" * 5000 + b"\r\n", 400),
        (b"80000\r\n" + b" " * 0x80000 + b"\r\n80000\r\n", 413),
        (b"0\r\n" + b"Trailer: x\r\n" * 200, 400),
    ],
)
def test_chunks_have_bounds(server: EmulatorServer, chunks: bytes, status: int) -> None:
    head = f"POST {TARGET} HTTP/1.1\r\nHost: x\r\nMetadata: true\r\nTransfer-Encoding: chunked\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.port), 10) as raw:
        raw.sendall(head.encode() + chunks)
        raw.shutdown(socket.SHUT_WR)
        assert raw.makefile("rb").readline().startswith(f"HTTP/1.1 {status} ".encode())


def test_304_has_no_body(server: EmulatorServer) -> None:
    tag = get(server.url).headers["ETag"]
    with connected(server) as connection:
        for _ in range(2):
            connection.request("GET", TARGET, headers={"Metadata": "true", "If-None-Match": tag})
            response = connection.getresponse()
            assert (response.status, response.read()) == (304, b"")


def test_a_vm_with_a_port_of_its_own() -> None:
    listeners = {"web_1": ("127.0.0.1", 0)}
    with EmulatorServer(vms=VMS, listeners=listeners, time_scale=0) as server, EmulatorClient(server.url) as client:
        client.schedule("Terminate", "web_1")
        own = server.vm_endpoint("WEB_1")
        assert own != server.url
        assert "/vm/" not in own
        assert len(statuses(own)) == 1
        assert statuses(server.url) == []
        with pytest.raises(InputError):
            server.vm_endpoint("nobody")


def test_429_beyond_five_requests_a_second() -> None:
    with EmulatorServer(settings=Settings(requests_per_second=5)) as server, requests.Session() as session:
        started = time.monotonic()
        answers = [
            session.get(server.url + TARGET, headers={"Metadata": "true"}, timeout=10).status_code for _ in range(6)
        ]
        if time.monotonic() - started < 1:
            assert answers == [200] * 5 + [429]


def test_many_clients_at_once(server: EmulatorServer, client: EmulatorClient) -> None:
    """50 events approved from 8 threads, each exactly once started, none lost."""
    get(server.url)  # the service is on, so each event is a change
    events = [client.schedule("Reboot", "web_0") for _ in range(50)]
    results: list[int] = []

    def work(number: int) -> None:
        for event in events[number % 4 :: 4]:  # two threads for each event
            results.append(approve(server.url, event))
            get(server.url)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert results == [200] * 100
    assert statuses(server.url) == ["Started"] * 50
    assert get(server.url).json()["DocumentIncarnation"] == 101
    assert [len(event["approvals"]) for event in client.state()["events"]] == [2] * 50


# -- faults at the wire ------------------------------------------------------------------------------------------------


def test_a_dropped_connection_and_one_cut_off(server: EmulatorServer, client: EmulatorClient) -> None:
    client.schedule("Reboot")
    client.inject_fault("drop", times=1)
    with connected(server) as connection:
        connection.request("GET", TARGET, headers={"Metadata": "true"})
        with pytest.raises(http.client.RemoteDisconnected):
            connection.getresponse()
    client.inject_fault("cut_off", times=1)
    with connected(server) as connection:
        connection.request("GET", TARGET, headers={"Metadata": "true"})
        with pytest.raises(http.client.IncompleteRead):
            connection.getresponse().read()
    assert [(entry["fault"], entry["status"]) for entry in client.requests()] == [("drop", None), ("cut_off", 200)]


def test_latency_outlasts_a_client(client: EmulatorClient, server: EmulatorServer) -> None:
    client.inject_fault("latency", latency_seconds=30, times=1, requests="get", vms="web_0")
    with pytest.raises(requests.ReadTimeout):
        requests.get(server.url + TARGET, headers={"Metadata": "true"}, timeout=0.05)
    assert get(server.vm_endpoint("web_1")).status_code == 200
    assert get(server.url).status_code == 200


def test_a_status_for_a_while(client: EmulatorClient, server: EmulatorServer) -> None:
    client.inject_fault(429, for_seconds=60, retry_after_seconds=30)
    response = get(server.url)
    assert (response.status_code, response.headers["Retry-After"]) == (429, "30")
    client.advance(60)
    assert get(server.url).status_code == 200
    client.inject_fault("503")
    assert get(server.url).status_code == 503
    client.clear_faults()
    assert get(server.url).status_code == 200
    client.inject_fault("empty", times=1)
    assert (get(server.url).content, get(server.url).status_code) == (b"", 200)


# -- the control API ---------------------------------------------------------------------------------------------------


def test_everything_a_client_can_do(server: EmulatorServer, client: EmulatorClient) -> None:
    get(server.url)
    first = client.schedule("Reboot", ["web_0"], name="one", source="User", notice_seconds=60, description="why not")
    client.start("one")
    client.secondary_impact("one", 5)
    assert client.state()["vms"][0]["impacted_by"] == [first]
    client.finish(first)
    client.cancel(client.schedule("Freeze", fields={"Description": None}))
    crash = client.hardware_failure("web_1", impact="4m")
    roll = client.schedule_fault_domains({"type": "Reboot", "resources": ["web_0", "web_1"]}, 30)
    state = client.state()
    assert [event["status"] for event in state["events"]] == ["Finished", "Cancelled", "Started", "Scheduled"]
    assert state["vms"][0]["listed"] == [crash, roll]
    assert client.event(crash.lower())["started_by"] == "hardware failure"
    client.switch_off()
    assert client.state()["vms"][0]["incarnation"] == 1
    client.reset()
    assert client.state()["events"] == client.requests() == []


def test_how_late_a_client_was_can_be_measured(server: EmulatorServer, client: EmulatorClient) -> None:
    get(server.url)
    before = time.monotonic()
    event = client.schedule("Reboot")
    get(server.url)
    assert approve(server.url, event) == 200
    after = time.monotonic()
    life = client.event(event)
    log = client.requests(since=1)
    visible = life["visible_since"]["web_0"]["monotonic"]
    seen, approved = (entry["received"]["monotonic"] for entry in log)
    assert before <= visible <= seen <= approved <= life["approvals"][0]["at"]["monotonic"] <= after
    assert [entry["event_ids"] for entry in log] == [[], [event]]
    client.clear_requests()
    assert client.requests() == []


def test_time_can_be_advanced_and_scaled(server: EmulatorServer, client: EmulatorClient) -> None:
    get(server.url)
    client.schedule("Preempt")
    client.advance(29.9)
    assert statuses(server.url) == ["Scheduled"]
    client.advance(0.1)
    assert statuses(server.url) == ["Started"]
    client.set_time_scale(10_000)  # gone 10 minutes later: 60 ms
    deadline = time.monotonic() + 10
    while statuses(server.url):
        assert time.monotonic() < deadline
    for bad in (-1, float("nan"), 1e9):
        with pytest.raises(InputError):
            client.set_time_scale(bad)
    with pytest.raises(InputError):
        client.advance(-1)


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
    server: EmulatorServer, client: EmulatorClient, method: str, path: str, body: Any, status: int
) -> None:
    response = requests.request(method, f"{server.url}/emulator/v1/{path}", json=body, timeout=10)
    assert response.status_code == status
    assert response.json()["error"]
    assert client.state()["events"] == []


def test_the_control_api_wants_json_by_name(server: EmulatorServer, client: EmulatorClient) -> None:
    """A web page can make a browser send a form or plain text to a local port, but not this type."""
    event = client.schedule("Reboot")
    url = f"{server.url}/emulator/v1/events"
    for headers in ({}, {"Content-Type": "text/plain"}):
        assert requests.post(f"{url}/{event}/cancel", headers=headers, timeout=10).status_code == 400
        assert requests.post(url, data='{"type": "Reboot"}', headers=headers, timeout=10).status_code == 400
    headers = {"Content-Type": "application/json; charset=utf-8"}
    assert requests.post(url, data="{", headers=headers, timeout=10).status_code == 400
    client.cancel(event)
    with pytest.raises(InputError, match="Cancelled, not Scheduled"):
        client.cancel(event)
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
    server: EmulatorServer, client: EmulatorClient, headers: dict[str, str]
) -> None:
    """A web page whose name has come to mean 127.0.0.1 neither creates events nor reads anything."""
    event = client.schedule("Reboot")
    url = f"{server.url}/emulator/v1"
    answers = [
        requests.post(f"{url}/events", json={"type": "Reboot"}, headers=headers, timeout=10),
        requests.post(f"{url}/events/{event}/start", json={}, headers=headers, timeout=10),
        requests.get(f"{url}/state", headers=headers, timeout=10),
        requests.delete(f"{url}/requests", headers=headers, timeout=10),
    ]
    assert [answer.status_code for answer in answers] == [403] * 4
    assert all("--allow-host" in answer.json()["error"] for answer in answers)
    assert [(life["event_id"], life["status"]) for life in client.state()["events"]] == [(event, "Scheduled")]


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
def test_the_control_api_takes_loopback_s_names_and_those_that_are_listed(headers: dict[str, str]) -> None:
    with EmulatorServer(allowed_hosts=["emulator.test", "192.0.2.9"]) as server:
        answer = requests.get(f"{server.url}/emulator/v1/state", headers=headers, timeout=10)
        assert answer.status_code == 200


def test_a_request_without_host_does_not_reach_the_control_api(server: EmulatorServer) -> None:
    with socket.create_connection(("127.0.0.1", server.port), 10) as raw:
        raw.sendall(b"GET /emulator/v1/state HTTP/1.0\r\n\r\n")
        assert raw.makefile("rb").read().startswith(b"HTTP/1.1 403 ")


def test_a_name_to_allow_that_is_none() -> None:
    with pytest.raises(InputError, match="without scheme and port"):
        EmulatorServer(allowed_hosts=["http://emulator.test"])


def test_a_client_of_nothing() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        with pytest.raises(ServiceError, match="does not answer: is it running"):
            EmulatorClient(f"http://127.0.0.1:{free.getsockname()[1]}").state()


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


def test_an_unknown_event_is_told_with_those_there_are(client: EmulatorClient) -> None:
    with pytest.raises(InputError, match="None has been scheduled yet"):
        client.cancel("x")
    event = client.schedule("Reboot", name="one")
    with pytest.raises(InputError, match=rf"there is no event 'x'. The newest are {event} \(one\)\."):
        client.cancel("x")


def test_control_requests_are_not_in_the_log(server: EmulatorServer, client: EmulatorClient) -> None:
    client.state()
    get(server.url)
    assert [entry["path"] for entry in client.requests()] == ["/metadata/scheduledevents"]


# -- starting and stopping ---------------------------------------------------------------------------------------------


def test_closing_ends_connections_and_waiting_requests() -> None:
    settings = Settings(first_response=1e6)
    with EmulatorServer(settings=settings) as server:
        port = server.port
        idle = socket.create_connection(("127.0.0.1", port), 10)
        waiting = threading.Thread(target=_try, args=(port,))
        waiting.start()
        with EmulatorClient(server.url) as client:
            deadline = time.monotonic() + 10
            while not client.requests():
                assert time.monotonic() < deadline
        started = time.monotonic()
    assert time.monotonic() - started < 5
    waiting.join(10)
    assert not waiting.is_alive()
    assert idle.recv(1) == b""
    idle.close()
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", port), 10)


def _try(port: int) -> None:
    with contextlib.suppress(requests.RequestException):
        get(f"http://127.0.0.1:{port}")


def test_a_port_that_is_taken(server: EmulatorServer) -> None:
    with pytest.raises(ServiceError, match=r"cannot listen on 127\.0\.0\.1"):
        EmulatorServer(port=server.port)
    with pytest.raises(ServiceError):
        EmulatorServer(port=70000)
