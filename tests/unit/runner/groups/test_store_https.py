# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests to a store's server: bounded in time and size, never repeated, with faults that say what is wrong."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, suppress

import pytest
from forewarn.imds.errors import CONNECTION, GARBAGE, REFUSED, TIMEOUT
from forewarn.runner.groups import https
from forewarn.runner.groups.connection import MAX_BODY_BYTES
from forewarn.runner.groups.https import StoreReply
from forewarn.runner.groups.store import TOO_LARGE, StoreFault
from hypothesis import given
from hypothesis import strategies as st
from tools.servers.kept_connections import ask, fault_of, to
from tools.servers.listener_client import free_port
from tools.servers.scripted_imds import Answer, AnsweringServer, ScriptedServer, raw, status

# The connection


def test_it_is_kept_between_requests() -> None:
    with ScriptedServer(status(200, b"a", {"X-B": "c"}), status(500, b"d")) as server:
        with closing(to(server.port)) as connection:
            assert ask(connection) == StoreReply(200, {"content-length": "1", "x-b": "c"}, b"a")
            assert ask(connection).status == 500
        assert server.connections == 1
    assert server.requests[0].headers["x-one"] == "1"


def test_connection_closed_by_the_server_is_reopened() -> None:
    with ScriptedServer(status(200, b"a", end="close"), status(200, b"b")) as server:
        with closing(to(server.port)) as connection:
            ask(connection)
            time.sleep(0.05)  # until the end of the connection has arrived
            assert ask(connection).body == b"b"
        assert (server.connections, len(server.requests)) == (2, 2)


def test_idle_connection_is_reopened(monkeypatch: pytest.MonkeyPatch) -> None:
    with ScriptedServer(status(200)) as server, closing(to(server.port)) as connection:
        ask(connection)
        monkeypatch.setattr(https, "_MAX_IDLE_SECONDS", 0.0)
        ask(connection)
        assert server.connections == 2


def test_answer_of_another_request_is_not_used() -> None:
    interim = raw(b"HTTP/1.1 102 Wait\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na")
    with ScriptedServer(interim, status(200, b"b")) as server, closing(to(server.port)) as connection:
        with pytest.raises(StoreFault):
            ask(connection)
        assert ask(connection).body == b"b"


@pytest.mark.parametrize("answer", [raw(b"", end="close"), raw(b"", end="reset"), raw(b"HTTP/1.1 200", end="reset")])
def test_a_request_without_an_answer_is_not_repeated(answer: Answer) -> None:
    with ScriptedServer(status(200), answer) as server, closing(to(server.port)) as connection:
        ask(connection)
        fault = fault_of(connection)
    assert fault.kind in (CONNECTION, GARBAGE)
    assert fault.unsure
    assert len(server.requests) == 2


def test_nobody_listens() -> None:
    port = free_port()
    fault = fault_of(to(port))
    assert (str(fault), fault.kind, fault.unsure) == (f"127.0.0.1:{port} refused the connection.", REFUSED, False)


@pytest.mark.parametrize(
    "answer",
    [
        raw(b"", delay=9.0),
        raw(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"),
        Answer((b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n", *[b"x"] * 9), pause=0.1),
        Answer(tuple(bytes([byte]) for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n"), pause=0.1),
    ],
    ids=["silent", "no body", "a slow body", "a slow head"],
)
def test_time_is_bounded(answer: Answer) -> None:
    with ScriptedServer(answer) as server:
        started = time.monotonic()
        fault = fault_of(to(server.port), 0.3)
        assert time.monotonic() - started < 8
    assert (fault.kind, fault.unsure) == (TIMEOUT, True)
    assert "took longer than 0.3 s answering" in str(fault)


def test_time_that_is_over_before_it_begins() -> None:
    with ScriptedServer(status(200)) as server:
        fault = fault_of(to(server.port), -1)
        assert server.connections == 0
    assert (fault.kind, fault.unsure) == (TIMEOUT, False)


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (status(200, b"", {"Content-Length": str(MAX_BODY_BYTES + 1)}), TOO_LARGE),
        (raw(CHUNKED + b"fffffff\r\n" + bytes(MAX_BODY_BYTES + 9)), TOO_LARGE),
        (raw(b"HTTP/1.1 100 Continue\r\n\r\n" * 60_000), TOO_LARGE),
        (raw(b"HTTP/1.1 200 OK\r\n" + b"X-A: b\r\n" * 101), GARBAGE),
        (raw(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", end="close"), GARBAGE),
        (raw(CHUNKED + b"9\r\nabc", end="close"), GARBAGE),
        (raw(CHUNKED + b"-9\r\nabc", end="close"), GARBAGE),
        (raw(b"HTTP/1.1 200 OK\r\n\r\nabc", end="close"), GARBAGE),
        (raw(b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\nabc", end="close"), GARBAGE),
        (raw(b"SSH-2.0-OpenSSH_9.2\r\n", end="close"), GARBAGE),
    ],
)
def test_answers_that_cannot_be_used(answer: Answer, kind: str) -> None:
    with ScriptedServer(answer) as server:
        fault = fault_of(to(server.port), 1)
    assert fault.unsure
    assert fault.kind == kind


def test_a_chunked_answer() -> None:
    with (
        ScriptedServer(raw(CHUNKED + b"2\r\nab\r\n1\r\nc\r\n0\r\n\r\n")) as server,
        closing(to(server.port)) as connection,
    ):
        assert ask(connection).body == b"abc"
        assert ask(connection).body == b"abc"
        assert server.connections == 1


def test_a_status_without_a_body() -> None:
    with ScriptedServer(raw(b"HTTP/1.1 204 No Content\r\n\r\n")) as server, closing(to(server.port)) as connection:
        assert ask(connection).body == b""


@pytest.fixture(scope="module")
def chaos() -> Iterator[tuple[AnsweringServer, list[bytes]]]:
    """Return a server that answers with what the list has, and closes the connection."""
    content = [b""]
    server = AnsweringServer(lambda _request: raw(content[0], end="close"))
    with server:
        yield server, content


PIECES = st.sampled_from(
    [
        *(b"HTTP/1.1 200 OK\r\n", b"Content-Length: 3\r\n", b"Transfer-Encoding: chunked\r\n", b"\r\n", b"abc"),
        *(b"3\r\nabc\r\n", b"0\r\n\r\n", b"Content-Length: -1\r\n", b"HTTP/1.1 ", b"1", b" ", b":", b"\x00", b"\xff"),
        b"Connection: keep-alive\r\n",
    ]
)


@given(st.one_of(st.binary(max_size=300), st.lists(PIECES, max_size=12).map(b"".join)))
def test_any_answer_is_a_response_or_fault(chaos: tuple[AnsweringServer, list[bytes]], content: bytes) -> None:
    server, answer = chaos
    answer[0] = content
    with closing(to(server.port)) as connection, suppress(StoreFault):
        assert ask(connection).status >= 200
