# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import http.client
import selectors
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import NoReturn

import pytest
from forewarn.errors import InputError
from forewarn.runner.telemetry.metrics import CONTENT_TYPE, Metrics
from forewarn.runner.telemetry.metrics_server import MetricsServer
from tools.exposition import lint, parse
from tools.waiting import wait_until

TIMEOUT = 20.0  # only a defect takes so long


class Served:
    """A listener on a free port, and what it is to say."""

    def __init__(self) -> None:
        self.render: Callable[[], str] = lambda: "a 1\n"
        self.healthy: Callable[[], tuple[bool, str]] = lambda: (True, "the service answers")
        self.server = MetricsServer("127.0.0.1:0", lambda: self.render(), lambda: self.healthy())
        self.server.start()

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.server.port), timeout=TIMEOUT)

    def raw(self, request: bytes) -> bytes:
        """Return all of the answer, until the connection is closed."""
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


def test_metrics_are_served_as_prometheus_asks_for_them(served: Served) -> None:
    served.render = Metrics().render
    status, text, headers = served.ask("/metrics?name[]=forewarn_polls_total")
    assert (status, headers["Content-Type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert headers["Content-Type"] == CONTENT_TYPE
    assert headers["Connection"] == "close"
    assert lint(parse(text)) == []


def test_head_has_the_length_and_no_body(served: Served) -> None:
    head = served.raw(b"HEAD /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert b"\r\nContent-Length: 4\r\n" in head
    assert head.endswith(b"\r\n\r\n")


def test_health_is_told_by_status_and_sentence(served: Served) -> None:
    assert served.ask("/healthz")[:2] == (200, "ok: the service answers\n")
    served.healthy = lambda: (False, "no answer for 300 s")
    assert served.ask("/healthz")[:2] == (503, "no answer for 300 s\n")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 404),
        ("GET", "/metrics/", 404),
        ("GET", "/%6detrics", 404),
        ("POST", "/", 404),
        ("POST", "/metrics", 405),
        ("DELETE", "/healthz", 405),
        ("OPTIONS", "*", 404),
    ],
)
def test_there_is_nothing_else(served: Served, method: str, path: str, status: int) -> None:
    answered, _, headers = served.ask(path, method)
    assert answered == status
    assert headers["Allow"] == ("GET, HEAD" if status == 405 else None)
    assert headers["Content-Type"].startswith("text/plain")


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"\r\n\r\n",
        b"GET /metrics\r\n\r\n",
        b"GET /metrics HTTP/2.0\r\n\r\n",
        b"\x16\x03\x01\x02\x00\n\n",
        b"get / HTTP/1.1\n\n",
    ],
)
def test_what_is_no_request_is_refused(served: Served, request_bytes: bytes) -> None:
    assert served.raw(request_bytes).startswith(b"HTTP/1.1 400 Bad Request\r\n")


def test_old_clients_and_bare_line_ends_are_served(served: Served) -> None:
    assert served.raw(b"GET /metrics HTTP/1.0\n\n").endswith(b"\r\n\r\na 1\n")


def test_an_endless_head_is_cut_off(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MetricsServer, "patience_seconds", 0.4)
    line = b"X-Filler: " + b"x" * 1000 + b"\r\n"
    with served.connect() as connection, pytest.raises(OSError, match=r"reset|pipe|abort"):
        connection.sendall(line * 20_000)


def test_a_client_that_drips_is_cut_off_and_the_next_one_served(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MetricsServer, "patience_seconds", 2.0)
    with served.connect() as slow:
        begun = time.monotonic()
        stop = threading.Event()
        cut_off: list[float] = []

        def drip() -> None:
            try:
                while not stop.wait(0.05):  # each byte well within the time
                    slow.sendall(b"G")
            except OSError:
                cut_off.append(time.monotonic() - begun)

        thread = threading.Thread(target=drip)
        thread.start()
        try:
            assert served.ask("/healthz")[0] == 200
            assert time.monotonic() - begun < 1.9, "nobody waits for the slow one"
            thread.join(TIMEOUT)
        finally:
            stop.set()
            thread.join()
    assert 1.9 < cut_off[0] < TIMEOUT / 2


def test_a_client_that_takes_no_answer_is_cut_off(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MetricsServer, "patience_seconds", 2.0)
    served.render = lambda: "x" * 20_000_000  # more than the system buffers
    with served.connect() as slow:
        slow.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        assert served.ask("/healthz")[0] == 200
        wait_until(lambda: not served.server._connections, TIMEOUT, what="the slow one is still connected")


def test_an_answer_that_the_system_has_no_room_for_is_sent_as_it_is_taken(served: Served) -> None:
    served.render = lambda: "x" * 20_000_000
    assert len(served.ask("/metrics")[1]) == 20_000_000


def test_clients_that_go_away_do_no_harm(served: Served) -> None:
    for request in (b"", b"GET /metr", b"GET /metrics HTTP/1.1\r\n\r\n"):
        for _ in range(2):
            with served.connect() as connection:
                connection.sendall(request)
    assert served.ask("/metrics")[:2] == (200, "a 1\n")


def test_a_defect_is_told_to_who_asks_and_does_not_end_the_listener(served: Served) -> None:
    def fail() -> str:
        raise KeyError("a defect")

    served.render = fail
    assert served.ask("/metrics")[:2] == (500, "KeyError: 'a defect'\n")
    served.render = lambda: "größer \ud800\n"
    assert served.ask("/metrics")[:2] == (200, "größer ?\n")


def test_the_thread_takes_no_signals(served: Served) -> None:
    masks = []

    def render() -> str:
        masks.append(signal.pthread_sigmask(signal.SIG_BLOCK, []))
        return ""

    served.render = render
    served.ask("/metrics")
    assert {signal.SIGTERM, signal.SIGINT, signal.SIGALRM, signal.SIGHUP} <= masks[0]
    assert signal.SIGTERM not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_being_out_of_descriptors_does_not_spin(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    class Listener(socket.socket):
        def accept(self) -> NoReturn:
            raise OSError(24, "Too many open files")

    server = MetricsServer("127.0.0.1:0", lambda: "", lambda: (True, ""))
    monkeypatch.setattr(time, "sleep", pauses.append)
    with Listener() as listener, selectors.DefaultSelector() as selector:
        for _ in range(3):
            server._accept(listener, selector)
    assert pauses == [1.0, 1.0, 1.0]


def test_after_the_close_nobody_listens_and_the_port_is_free() -> None:
    before = threading.active_count()
    first = Served()
    assert first.ask("/metrics")[0] == 200
    port = first.server.port
    first.server.close()
    first.server.close()
    assert threading.active_count() == before
    with pytest.raises(ConnectionRefusedError):
        first.connect()
    second = MetricsServer(f"127.0.0.1:{port}", lambda: "", lambda: (True, ""))
    second.start()
    second.close()


def test_a_port_that_is_taken_is_told_with_what_to_do(served: Served) -> None:
    second = MetricsServer(f"127.0.0.1:{served.server.port}", lambda: "", lambda: (True, ""))
    with pytest.raises(InputError) as raised:
        second.start()
    assert (
        raised.value.message == f"Cannot listen on 127.0.0.1:{served.server.port} for metrics: Address already in use."
    )
    assert f"sport = :{served.server.port}" in raised.value.hint
    second.close()


@pytest.mark.parametrize("address", ["127.0.0.1:0", "127.0.0.53:0", "localhost:0", "[::1]:0"])
def test_loopback_in_every_spelling(address: str) -> None:
    if "::1" in address:
        try:
            socket.create_server(("::1", 0), family=socket.AF_INET6).close()
        except OSError:
            pytest.skip("this machine has no IPv6")
    server = MetricsServer(address, lambda: "", lambda: (True, ""))
    server.start()
    assert server.port > 0
    server.close()


@pytest.mark.parametrize(
    "address",
    [
        *("0.0.0.0:9750", "10.0.0.4:9750", "169.254.169.254:80", "[::]:9750", "[fe80::1]:9750", "[::ffff:127.0.0.1]:1"),
        *("example.com:9750", "127.1:9750", "", ":9750", "9750", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536"),
        *("127.0.0.1:http", "127.0.0.1:-1", "::1:9750", "[127.0.0.1]:9750", "127.0.0.1\0:9750", "127.0.0.1:９７５０"),
        "[7f00::1]:9750",  # its first byte is 127
    ],
)
def test_other_addresses_are_refused(address: str) -> None:
    with pytest.raises(InputError) as raised:
        MetricsServer(address, lambda: "", lambda: (True, ""))
    assert repr(address) in raised.value.message
    assert "127.0.0.1:9750" in raised.value.hint
