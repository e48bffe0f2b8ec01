# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The probe listener at the wire: what it answers, that it says no more, and that no client hinders another."""

from __future__ import annotations

import http.client
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress

import pytest
from forewarn.errors import InputError
from forewarn.runner.telemetry.http_listener import MOST_CONNECTIONS
from forewarn.runner.telemetry.probe import ProbeServer

TIMEOUT = 20.0  # only a defect takes so long
SOON = 1.0  # less than the patience with a client that hinders


class Served:
    """A listener on a free port, and what it is to say."""

    def __init__(self) -> None:
        self.alive = True
        self.ready = True
        self.server = ProbeServer("127.0.0.1:0", lambda: self.alive, lambda: self.ready)
        self.server.start()

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.server.port), timeout=TIMEOUT)

    def raw(self, request: bytes) -> bytes:
        """Return all of the answer, until the listener has ended it."""
        with self.connect() as connection:
            connection.sendall(request)
            answer = b""
            while part := connection.recv(65536):
                answer += part
            return answer

    def ask(self, path: str, method: str = "GET") -> tuple[int, str, http.client.HTTPMessage]:
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=TIMEOUT)
        with closing(connection):
            connection.request(method, path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode(), answer.headers


@pytest.fixture
def served() -> Iterator[Served]:
    it = Served()
    yield it
    it.server.close()


def test_both_say_a_status_and_a_word(served: Served) -> None:
    assert [served.ask(path)[:2] for path in ("/healthz", "/readyz")] == [(200, "ok\n"), (200, "ok\n")]
    served.ready = False
    assert [served.ask(path)[:2] for path in ("/healthz", "/readyz")] == [(200, "ok\n"), (503, "unavailable\n")]
    served.alive, served.ready = False, True
    assert [served.ask(path)[:2] for path in ("/healthz", "/readyz")] == [(503, "unavailable\n"), (200, "ok\n")]


def test_the_answer_has_nothing_else(served: Served) -> None:
    assert served.raw(b"GET /readyz?x=1 HTTP/1.1\r\nHost: lb\r\nConnection: keep-alive\r\n\r\n").split(b"\r\n") == [
        b"HTTP/1.1 200 OK",
        b"Content-Type: text/plain",
        b"Content-Length: 3",
        b"Cache-Control: no-store",
        b"Connection: close",
        b"",
        b"ok\n",
    ]


def test_head_has_the_length_and_no_body(served: Served) -> None:
    head = served.raw(b"HEAD /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert b"\r\nContent-Length: 3\r\n" in head
    assert head.endswith(b"\r\n\r\n")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 404),
        ("GET", "/metrics", 404),
        ("GET", "/readyz/", 404),
        ("GET", "/%72eadyz", 404),
        ("POST", "/", 404),
        ("POST", "/readyz", 405),
        ("DELETE", "/healthz", 405),
        ("OPTIONS", "*", 404),
    ],
)
def test_there_is_nothing_else(served: Served, method: str, path: str, status: int) -> None:
    answered, body, headers = served.ask(path, method)
    assert answered == status
    assert headers["Allow"] == ("GET, HEAD" if status == 405 else None)
    assert len(body.split()) == 1


@pytest.mark.parametrize(
    "request_bytes",
    [b"\r\n\r\n", b"GET /readyz\r\n\r\n", b"GET /readyz HTTP/2.0\r\n\r\n", b"\x16\x03\x01\n\n", b"get / HTTP/1.1\n\n"],
)
def test_what_is_no_request_is_refused(served: Served, request_bytes: bytes) -> None:
    assert served.raw(request_bytes).startswith(b"HTTP/1.1 400 Bad Request\r\n")


def test_old_clients_and_bare_line_ends_are_served(served: Served) -> None:
    assert served.raw(b"GET /readyz HTTP/1.0\n\n").endswith(b"\r\n\r\nok\n")


def test_a_request_in_pieces_is_put_together(served: Served) -> None:
    with served.connect() as connection:
        for piece in (b"GET /rea", b"dyz HTTP/1.1\r\nHo", b"st: lb\r\n\r", b"\n"):
            connection.sendall(piece)
            time.sleep(0.02)  # they arrive in pieces, unless the machine is busy
        assert connection.recv(4096).startswith(b"HTTP/1.1 200 ")


def test_a_head_that_is_too_long_is_refused(served: Served) -> None:
    filler = b"X-Filler: " + b"x" * ProbeServer.longest_head + b"\r\n\r\n"
    assert served.raw(b"GET /readyz HTTP/1.1\r\n" + filler).startswith(b"HTTP/1.1 431 ")


def test_a_body_does_not_take_the_answer_back(served: Served) -> None:
    """Closed at once, with bytes unread, a connection is reset, and the client may never see what was answered."""
    body = b"POST /readyz HTTP/1.1\r\nContent-Length: 200000\r\n\r\n" + b"x" * 200_000
    assert served.raw(body).startswith(b"HTTP/1.1 405 ")


def test_a_client_without_end_is_cut_off(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProbeServer, "patience_seconds", 0.4)
    line = b"X-Filler: " + b"x" * 1000 + b"\r\n"
    with served.connect() as connection, pytest.raises(OSError, match=r"reset|pipe|abort"):
        connection.sendall(line * 20_000)


def test_clients_that_say_nothing_hinder_nobody(served: Served) -> None:
    """Twice as many as there is room for."""
    with ExitStack() as stack:
        for _ in range(2 * MOST_CONNECTIONS):
            stack.enter_context(served.connect())
        begun = time.monotonic()
        assert served.ask("/readyz")[:2] == (200, "ok\n")
        assert time.monotonic() - begun < SOON


def test_clients_that_drip_hinder_nobody(served: Served) -> None:
    stop = threading.Event()
    with ExitStack() as stack:
        slow = [stack.enter_context(served.connect()) for _ in range(MOST_CONNECTIONS)]

        def drip() -> None:
            while not stop.wait(0.02):
                for connection in slow:
                    with suppress(OSError):  # it was disconnected
                        connection.send(b"G")

        thread = threading.Thread(target=drip)
        thread.start()
        try:
            for _ in range(10):
                begun = time.monotonic()
                assert served.ask("/healthz")[0] == 200
                assert time.monotonic() - begun < SOON
        finally:
            stop.set()
            thread.join()


def test_a_silent_client_is_disconnected(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProbeServer, "patience_seconds", 0.2)
    with served.connect() as connection:
        assert connection.recv(1) == b""


def test_one_connection_has_one_answer(served: Served) -> None:
    asked = b"GET /readyz HTTP/1.1\r\nHost: lb\r\n\r\n"
    assert served.raw(asked + asked).count(b"HTTP/1.1") == 1


def test_clients_that_go_away_do_no_harm(served: Served) -> None:
    for request in (b"", b"GET /rea", b"GET /readyz HTTP/1.1\r\n\r\n"):
        for _ in range(2):
            with served.connect() as connection:
                connection.sendall(request)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # ends by a reset
    assert served.ask("/readyz")[:2] == (200, "ok\n")


def test_a_defect_is_told_to_who_asks_and_does_not_end_the_listener() -> None:
    answers = iter([True])
    server = ProbeServer("127.0.0.1:0", lambda: True, lambda: next(answers))
    server.start()
    try:
        statuses = []
        for _ in range(2):
            with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=TIMEOUT)) as connection:
                connection.request("GET", "/readyz")
                answer = connection.getresponse()
                statuses.append((answer.status, answer.read()))
        assert statuses == [(200, b"ok\n"), (500, b"error\n")]
    finally:
        server.close()


def test_the_thread_takes_no_signals() -> None:
    masks = []

    def ready() -> bool:
        masks.append(signal.pthread_sigmask(signal.SIG_BLOCK, []))
        return True

    server = ProbeServer("127.0.0.1:0", ready, ready)
    server.start()
    try:
        with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=TIMEOUT)) as connection:
            connection.request("GET", "/readyz")
            connection.getresponse()
    finally:
        server.close()
    assert {signal.SIGTERM, signal.SIGINT, signal.SIGALRM, signal.SIGHUP} <= masks[0]


def test_after_the_close_nobody_listens_and_the_port_is_free() -> None:
    before = threading.active_count()
    first = Served()
    with first.connect():  # one that is under way keeps nothing open
        assert first.ask("/readyz")[0] == 200
        port = first.server.port
        first.server.close()
        first.server.close()
    assert threading.active_count() == before
    with pytest.raises(ConnectionRefusedError):
        first.connect()
    second = ProbeServer(f"127.0.0.1:{port}", lambda: True, lambda: True)
    second.start()
    second.close()


def test_a_port_that_is_taken_is_told_with_what_to_do(served: Served) -> None:
    second = ProbeServer(f"127.0.0.1:{served.server.port}", lambda: True, lambda: True)
    with pytest.raises(InputError) as raised:
        second.start()
    assert (
        raised.value.message == f"Cannot listen on 127.0.0.1:{served.server.port} for probes: Address already in use."
    )
    assert f"sport = :{served.server.port}" in raised.value.hint
    second.close()


@pytest.mark.parametrize("address", ["0.0.0.0:0", "127.0.0.53:0", "localhost:0", "[::1]:0", "[::]:0"])
def test_any_address_of_this_machine(address: str) -> None:
    if "::" in address:
        try:
            socket.create_server(("::1", 0), family=socket.AF_INET6).close()
        except OSError:
            pytest.skip("this machine has no IPv6")
    server = ProbeServer(address, lambda: True, lambda: True)
    server.start()
    try:
        host = {"[::1]:0": "::1", "127.0.0.53:0": "127.0.0.53"}.get(address, "127.0.0.1")  # [::] has both
        with closing(http.client.HTTPConnection(host, server.port, timeout=TIMEOUT)) as connection:
            connection.request("GET", "/readyz")
            assert connection.getresponse().status == 200
    finally:
        server.close()


@pytest.mark.parametrize(
    "address",
    [
        *("example.com:9780", "127.1:9780", "", ":9780", "9780", "0.0.0.0", "0.0.0.0:", "0.0.0.0:65536", "*:9780"),
        *("0.0.0.0:http", "0.0.0.0:-1", "::1:9780", "[127.0.0.1]:9780", "0.0.0.0\0:9780", "0.0.0.0:９７８０"),
    ],
)
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(InputError) as raised:
        ProbeServer(address, lambda: True, lambda: True)
    assert repr(address) in raised.value.message
    assert "0.0.0.0:9780" in raised.value.hint
