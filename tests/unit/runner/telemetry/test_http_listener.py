# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the probe and the metrics have in common, at the wire: what is refused, and that no client hinders another."""

from __future__ import annotations

import selectors
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from typing import NoReturn

import pytest
from forewarn.errors import InputError
from forewarn.runner.telemetry.http_listener import MOST_CONNECTIONS, HttpListener
from forewarn.runner.telemetry.metrics_server import MetricsServer
from forewarn.runner.telemetry.probe_server import ProbeServer
from tools.servers.listener_client import TIMEOUT, ListenerClient

PATIENCE_SECONDS = 3 * TIMEOUT  # so a client that hinders another would be seen: that one gives up sooner
Make = Callable[..., HttpListener]


def probe(address: str = "127.0.0.1:0", healthy: Callable[[], bool] = lambda: True) -> HttpListener:
    return ProbeServer(address, healthy, healthy)


def metrics(address: str = "127.0.0.1:0", healthy: Callable[[], bool] = lambda: True) -> HttpListener:
    return MetricsServer(address, lambda: "", lambda: (healthy(), "the service answers"))


@pytest.fixture(params=[probe, metrics])
def make(request: pytest.FixtureRequest) -> Make:
    made: Make = request.param
    return made


@pytest.fixture
def served(make: Make) -> Iterator[ListenerClient]:
    it = ListenerClient(make())
    yield it
    it.server.close()


def test_head_has_the_length_and_no_body(served: ListenerClient) -> None:
    length = len(served.ask("/healthz")[1])
    head = served.raw(b"HEAD /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert f"\r\nContent-Length: {length}\r\n".encode() in head
    assert head.endswith(b"\r\n\r\n")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 404),
        ("GET", "/healthz/", 404),
        ("GET", "/%68ealthz", 404),
        ("POST", "/", 404),
        ("POST", "/healthz", 405),
        ("DELETE", "/healthz", 405),
        ("OPTIONS", "*", 404),
    ],
)
def test_there_is_nothing_else(served: ListenerClient, method: str, path: str, status: int) -> None:
    answered, body, headers = served.ask(path, method)
    assert answered == status
    assert headers["Allow"] == ("GET, HEAD" if status == 405 else None)
    assert headers["Content-Type"].startswith("text/plain")
    assert len(body.split()) == 1


@pytest.mark.parametrize(
    "request_bytes",
    [
        *(b"\r\n\r\n", b"GET /healthz\r\n\r\n", b"GET /healthz HTTP/2.0\r\n\r\n"),
        *(b"\x16\x03\x01\n\n", b"\x16\x03\x01\x02\x00\n\n", b"get / HTTP/1.1\n\n"),
    ],
)
def test_what_is_no_request_is_refused(served: ListenerClient, request_bytes: bytes) -> None:
    assert served.raw(request_bytes).startswith(b"HTTP/1.1 400 Bad Request\r\n")


def test_old_clients_and_bare_line_ends_are_served(served: ListenerClient) -> None:
    body = served.ask("/healthz")[1].encode()
    assert served.raw(b"GET /healthz HTTP/1.0\n\n").endswith(b"\r\n\r\n" + body)


def test_a_request_in_pieces_is_put_together(served: ListenerClient) -> None:
    with served.connect() as connection:
        for piece in (b"GET /hea", b"lthz HTTP/1.1\r\nHo", b"st: lb\r\n\r", b"\n"):
            connection.sendall(piece)
            time.sleep(0.02)  # they arrive in pieces, unless the machine is busy
        assert connection.recv(4096).startswith(b"HTTP/1.1 200 ")


def test_one_connection_has_one_answer(served: ListenerClient) -> None:
    asked = b"GET /healthz HTTP/1.1\r\nHost: lb\r\n\r\n"
    assert served.raw(asked + asked).count(b"HTTP/1.1") == 1


def test_a_head_that_is_too_long_is_refused(served: ListenerClient) -> None:
    filler = b"X-Filler: " + b"x" * served.server.longest_head + b"\r\n\r\n"
    assert served.raw(b"GET /healthz HTTP/1.1\r\n" + filler).startswith(b"HTTP/1.1 431 ")


def test_a_body_does_not_take_the_answer_back(served: ListenerClient) -> None:
    """Closed at once, with bytes unread, a connection is reset, and the client may never see what was answered."""
    body = b"POST /healthz HTTP/1.1\r\nContent-Length: 200000\r\n\r\n" + b"x" * 200_000
    assert served.raw(body).startswith(b"HTTP/1.1 405 ")


def test_a_client_without_end_is_cut_off(served: ListenerClient) -> None:
    served.server.patience_seconds = 0.4
    line = b"X-Filler: " + b"x" * 1000 + b"\r\n"
    with served.connect() as connection, pytest.raises(OSError, match=r"reset|pipe|abort"):
        connection.sendall(line * 20_000)


def test_clients_that_say_nothing_hinder_nobody(served: ListenerClient) -> None:
    """Twice as many as there is room for."""
    served.server.patience_seconds = PATIENCE_SECONDS
    with ExitStack() as stack:
        for _ in range(2 * MOST_CONNECTIONS):
            stack.enter_context(served.connect())
        assert served.ask("/healthz")[0] == 200


def test_clients_that_drip_hinder_nobody(served: ListenerClient) -> None:
    served.server.patience_seconds = PATIENCE_SECONDS
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
                assert served.ask("/healthz")[0] == 200
        finally:
            stop.set()
            thread.join()


def test_a_client_that_drips_is_cut_off(served: ListenerClient) -> None:
    served.server.patience_seconds = 1.0

    def drip() -> None:
        while time.monotonic() - begun < TIMEOUT:
            slow.sendall(b"G")
            time.sleep(0.05)  # each byte comes well within the time

    with served.connect() as slow:
        begun = time.monotonic()
        with pytest.raises(OSError, match=r"reset|pipe|abort"):
            drip()
        assert 0.9 < time.monotonic() - begun < TIMEOUT / 2


def test_a_silent_client_is_disconnected(served: ListenerClient) -> None:
    served.server.patience_seconds = 0.2
    with served.connect() as connection:
        assert connection.recv(1) == b""


def test_clients_that_go_away_do_no_harm(served: ListenerClient) -> None:
    for request in (b"", b"GET /hea", b"GET /healthz HTTP/1.1\r\n\r\n"):
        for end in (b"\0\0\0\0\0\0\0\0", b"\1\0\0\0\0\0\0\0"):  # the second one ends by a reset
            with served.connect() as connection:
                connection.sendall(request)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, end)
    assert served.ask("/healthz")[0] == 200


def test_the_thread_takes_no_signals(make: Make) -> None:
    masks = []

    def healthy() -> bool:
        masks.append(signal.pthread_sigmask(signal.SIG_BLOCK, []))
        return True

    served = ListenerClient(make(healthy=healthy))
    assert served.ask("/healthz")[0] == 200
    served.server.close()
    assert {signal.SIGTERM, signal.SIGINT, signal.SIGALRM, signal.SIGHUP} <= masks[0]
    assert signal.SIGTERM not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_being_out_of_descriptors_does_not_spin(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    class Listener(socket.socket):
        def accept(self) -> NoReturn:
            raise OSError(24, "Too many open files")

    monkeypatch.setattr(time, "sleep", pauses.append)
    with Listener() as listener, selectors.DefaultSelector() as selector:
        for _ in range(3):
            make()._accept(listener, selector)
    assert pauses == [1.0, 1.0, 1.0]


def test_closed_listener_frees_its_port(make: Make) -> None:
    before = threading.active_count()
    first = ListenerClient(make())
    with first.connect():  # one that is under way keeps nothing open
        assert first.ask("/healthz")[0] == 200
        port = first.server.port
        first.server.close()
        first.server.close()
    assert threading.active_count() == before
    with pytest.raises(ConnectionRefusedError):
        first.connect()
    second = make(f"127.0.0.1:{port}")
    second.start()
    second.close()


@pytest.mark.parametrize(("make", "purpose"), [(probe, "probes"), (metrics, "metrics")])
def test_occupied_port_is_reported_with_a_remedy(make: Make, purpose: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        second = make(address)
        with pytest.raises(InputError) as raised:
            second.start()
    assert raised.value.message == f"Cannot listen on {address} for {purpose}: Address already in use."
    assert f"sport = :{second.port}" in raised.value.hint
    second.close()


@pytest.mark.parametrize(
    ("make", "address"),
    [
        *((probe, address) for address in ("0.0.0.0:0", "127.0.0.53:0", "localhost:0", "[::1]:0", "[::]:0")),
        *((metrics, address) for address in ("127.0.0.1:0", "127.0.0.53:0", "localhost:0", "[::1]:0")),
    ],
)
def test_any_address_of_this_machine(make: Make, address: str) -> None:
    """Of metrics, any loopback address."""
    if "::" in address:
        try:
            socket.create_server(("::1", 0), family=socket.AF_INET6).close()
        except OSError:
            pytest.skip("this machine has no IPv6")
    served = ListenerClient(make(address))
    try:
        host = {"[::1]:0": "::1", "127.0.0.53:0": "127.0.0.53"}.get(address, "127.0.0.1")  # [::] has both
        assert served.ask("/healthz", host=host)[0] == 200
    finally:
        served.server.close()
