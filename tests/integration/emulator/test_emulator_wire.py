# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The emulator at the wire: HTTP as clients speak it."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from email.utils import parsedate_to_datetime

import pytest
import requests
from forewarn.emulator.client import EmulatorClient
from forewarn.emulator.server import EmulatorServer
from forewarn.emulator.spec import Settings, VmSpec
from forewarn.errors import ServiceError
from tools.servers.wire import TARGET, approve, get, statuses
from tools.sites.waiting import wait_until

# Seconds by which the wall clock, which NTP slews, and the monotonic one part in a few seconds.
SLEW = 0.01
VMS = (VmSpec("web_0", fault_domain="0"), VmSpec("web_1", fault_domain="1"))


@pytest.fixture
def server() -> Iterator[EmulatorServer]:
    """Time stands still: only ``advance`` moves it."""
    settings = Settings(requests_per_second=0, start_delay=0.0)
    with EmulatorServer(vms=VMS, settings=settings, time_scale=0) as server:
        yield server


@contextlib.contextmanager
def connected(server: EmulatorServer) -> Iterator[http.client.HTTPConnection]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    try:
        yield connection
    finally:
        connection.close()


# -- the service -------------------------------------------------------------------------------------------------------


def test_se20_se31_event_lifecycle_between_two_vms(server: EmulatorServer, emulator: EmulatorClient) -> None:
    leader, second = server.vm_endpoint("web_0"), emulator.vm_endpoint("web_1")
    assert get(leader).json() == {"DocumentIncarnation": 1, "Events": []}
    event = emulator.schedule("Freeze", ["web_0", "web_1"], duration_seconds=5)
    assert get(leader).json() == get(second).json() == get(server.url).json()
    assert get(leader).json()["DocumentIncarnation"] == 2
    assert approve(leader, event) == 200
    assert approve(second, event) == 200
    assert get(second).json()["DocumentIncarnation"] == 3
    assert get(second).json()["Events"][0]["NotBefore"] == ""
    emulator.advance(600)
    assert get(second).json() == {"DocumentIncarnation": 4, "Events": []}
    assert approve(leader, event) == 400


def test_se16_not_before_is_real_time_when_scaled() -> None:
    with EmulatorServer(time_scale=300) as server, EmulatorClient(server.url) as client:
        before = time.time()
        client.schedule("Reboot")  # 15 minutes: three real seconds, in which a busy machine can ask for it
        after = time.time()
        text = get(server.url).json()["Events"][0]["NotBefore"]
        not_before = parsedate_to_datetime(text).timestamp()
        assert before + 2.0 < not_before <= after + 4.0
        event_id = client.state()["events"][0]["event_id"]
        wait_until(lambda: client.event(event_id)["status"] != "Scheduled")
        assert time.time() >= not_before
        started = client.state()["events"][0]["started"]["wall"]
        assert not_before - SLEW <= started < not_before + 0.1


def test_se05_slow_first_call_delays_no_other_vm() -> None:
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


def test_bodies_whose_end_is_not_known(server: EmulatorServer) -> None:
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


def test_an_approval_in_chunks(server: EmulatorServer, emulator: EmulatorClient) -> None:
    """As sent by clients that produce the body while they send it; the connection is kept."""
    get(server.url)
    event = emulator.schedule("Reboot")
    body = json.dumps({"StartRequests": [{"EventId": event}]}).encode()
    with connected(server) as connection:
        for pieces in (iter([body[:7], body[7:]]), iter([body])):
            connection.request("POST", TARGET, body=pieces, headers={"Metadata": "true"})
            response = connection.getresponse()
            assert (response.status, response.read()) == (200, b"")
        connection.request("GET", TARGET, headers={"Metadata": "true"})
        assert b'"Started"' in connection.getresponse().read()
    assert [entry["event_ids"] for entry in emulator.requests()] == [[], [event], [event], []]


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


def test_many_clients_at_once(server: EmulatorServer, emulator: EmulatorClient) -> None:
    """Eight threads approve 50 events; each starts exactly once."""
    get(server.url)  # the service is on, so each event is a change
    events = [emulator.schedule("Reboot", "web_0") for _ in range(50)]
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
    assert [len(event["approvals"]) for event in emulator.state()["events"]] == [2] * 50


# -- faults at the wire ------------------------------------------------------------------------------------------------


def test_a_dropped_connection_and_one_cut_off(server: EmulatorServer, emulator: EmulatorClient) -> None:
    emulator.schedule("Reboot")
    emulator.inject_fault("drop", times=1)
    with connected(server) as connection:
        connection.request("GET", TARGET, headers={"Metadata": "true"})
        with pytest.raises(http.client.RemoteDisconnected):
            connection.getresponse()
    emulator.inject_fault("reset", times=1)
    with connected(server) as connection:
        connection.request("GET", TARGET, headers={"Metadata": "true"})
        with pytest.raises(ConnectionResetError):
            connection.getresponse()
    emulator.inject_fault("cut_head", times=1)
    with connected(server) as connection:
        connection.request("GET", TARGET, headers={"Metadata": "true"})
        response = connection.getresponse()
        assert (response.status, dict(response.headers), response.read()) == (200, {}, b"")
    emulator.inject_fault("cut_off", times=1)
    with connected(server) as connection:
        connection.request("GET", TARGET, headers={"Metadata": "true"})
        with pytest.raises(http.client.IncompleteRead):
            connection.getresponse().read()
    expected = [("drop", None), ("reset", None), ("cut_head", 200), ("cut_off", 200)]
    assert [(entry["fault"], entry["status"]) for entry in emulator.requests()] == expected


def test_latency_outlasts_a_client(emulator: EmulatorClient, server: EmulatorServer) -> None:
    emulator.inject_fault("latency", latency_seconds=30, times=1, requests="get", vms="web_0")
    with pytest.raises(requests.ReadTimeout):
        requests.get(server.url + TARGET, headers={"Metadata": "true"}, timeout=0.05)
    assert get(server.vm_endpoint("web_1")).status_code == 200
    assert get(server.url).status_code == 200


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
