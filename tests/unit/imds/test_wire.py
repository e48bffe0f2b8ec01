# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""HTTP on one connection: where an answer ends, and that http.client reads the same out of it."""

from __future__ import annotations

import http.client
import socket
from contextlib import closing

import pytest
from forewarn.imds.wire import AnswerError, ClosedError, Response, Wire
from hypothesis import given, settings
from hypothesis import strategies as st

OK = b"HTTP/1.1 200 OK\r\n"
EMPTY = OK + b"Content-Length: 0\r\n\r\n"


def answer_to(data: bytes, keep_open: bool = False) -> tuple[Response, Wire]:
    """Let a wire read these bytes as the answer to a request."""
    ours, theirs = socket.socketpair()
    with closing(theirs):
        theirs.sendall(data)
        if not keep_open:
            theirs.shutdown(socket.SHUT_WR)
        wire = Wire(ours)
        try:
            return wire.exchange(b"request", 5.0), wire
        finally:
            wire.close()


@pytest.mark.parametrize(
    ("data", "usable"),
    [
        (EMPTY, True),
        (b"HTTP/1.1 204 No Content\r\n\r\n", True),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n2;x=y\r\n{}\r\n0\r\nX: y\r\n\r\n", True),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", False),
        (OK + b"Connection: Upgrade, Close\r\nContent-Length: 0\r\n\r\n", False),
        (OK + b"Transfer-Encoding: chunked\r\nContent-Length: 9\r\n\r\n0\r\n\r\n", False),
        (EMPTY + b"HTTP/1.1 200 OK\r\n", False),
    ],
)
def test_whether_the_connection_can_serve_again(data: bytes, usable: bool) -> None:
    response, wire = answer_to(data, keep_open=True)
    assert response.status in (200, 204)
    assert wire.usable is usable


def test_an_interim_answer_is_passed_over() -> None:
    response, wire = answer_to(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nX: y\r\n\r\n" + EMPTY)
    assert (response.status, dict(response.headers), wire.usable) == (200, {"content-length": "0"}, True)


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 100 Continue\r\n\r\n" * 50,
        b"HTTP/2 200 OK\r\n\r\n",
        b"HTTP/1.1 99 Low\r\n\r\n",
        b"HTTP/1.1 2000 High\r\n\r\n",
        OK + b"X: a\r\n b\r\nContent-Length: 0\r\n\r\n",
        OK + b"Content-Length : 0\r\n\r\n",
        OK + b"no colon\r\n\r\n",
        OK + b"Content-Length: +0\r\n\r\n",
        OK + b"Content-Length: 0x0\r\n\r\n",
        OK + "Content-Length: ²\r\n\r\n".encode("latin-1"),
        OK + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n{}\r\n0\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n0x2\r\n{}\r\n0\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{}\r\n0\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\nffffffff\r\n{}",
    ],
)
def test_no_doubt_about_the_end_of_an_answer_is_settled_by_guessing(data: bytes) -> None:
    with pytest.raises(AnswerError):
        answer_to(data)


def test_nothing_at_all_is_told_apart_from_half_an_answer() -> None:
    with pytest.raises(ClosedError):
        answer_to(b"")
    with pytest.raises(AnswerError):
        answer_to(b"H")


BODIES = st.binary(max_size=300)
WELL_FORMED = st.one_of(
    BODIES.map(lambda body: OK + b"Content-Length: %d\r\n\r\n" % len(body) + body),
    st.lists(st.binary(min_size=1, max_size=40), max_size=5).map(
        lambda parts: (
            OK
            + b"Transfer-Encoding: Chunked\r\n\r\n"
            + b"".join(b"%X\r\n%s\r\n" % (len(part), part) for part in parts)
            + b"0\r\n\r\n"
        )
    ),
    st.binary(min_size=1, max_size=300).map(lambda body: b"HTTP/1.0 200\r\nServer: x\r\n\r\n" + body),
)
PARTS = [
    b"HTTP/1.1 200 OK",
    b"\r\n",
    b"\n",
    b"Content-Length: 3",
    b"Transfer-Encoding: chunked",
    b"3",
    b"0",
    b"abc",
    b" ",
]


@settings(deadline=None)
@given(WELL_FORMED)
def test_a_well_formed_answer_is_read_as_http_client_reads_it(data: bytes) -> None:
    assert answer_to(data)[0].body == _oracle(data)


@settings(deadline=None)
@given(st.one_of(st.lists(st.sampled_from(PARTS), max_size=15).map(b"".join), WELL_FORMED.map(lambda data: data[:-1])))
def test_whatever_is_accepted_http_client_reads_alike(data: bytes) -> None:
    try:
        response, _ = answer_to(data)
    except (AnswerError, ClosedError):
        return
    assert response.body == _oracle(data)


def _oracle(data: bytes) -> bytes:
    ours, theirs = socket.socketpair()
    with closing(ours), closing(theirs):
        theirs.sendall(data)
        theirs.shutdown(socket.SHUT_WR)
        response = http.client.HTTPResponse(ours)
        response.begin()
        return response.read()


class SlowSocket:
    """Sends a byte at a time, each of them after ``pause`` seconds of a clock that only it moves."""

    def __init__(self, pause: float) -> None:
        self.pause = pause
        self.now = 0.0
        self.timeouts: list[float] = []

    def settimeout(self, seconds: float) -> None:
        self.timeouts.append(seconds)

    def sendall(self, data: bytes) -> None:
        pass

    def recv(self, size: int) -> bytes:
        self.now += self.pause
        return b"H"


def test_all_reads_of_an_answer_share_one_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = SlowSocket(pause=4)
    monkeypatch.setattr("forewarn.imds.wire.time.monotonic", lambda: slow.now)
    with pytest.raises(socket.timeout):
        Wire(slow).exchange(b"request", 10)  # type: ignore[arg-type]  # all that Wire uses of a socket
    assert slow.timeouts == [10, 10, 6, 2]
