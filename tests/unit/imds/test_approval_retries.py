# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An approval rests on the document that was read last: it is sent once, within a second, or not at all (SE-31)."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from typing import Any

import pytest
from forewarn.imds import errors, transport
from forewarn.imds.approval_retries import approve_with_retries
from forewarn.imds.client import Client
from forewarn.imds.errors import LastingFault, PassingFault
from forewarn.texts import exact_text
from tools.fixtures.client_bench import EVENT, client_of
from tools.fixtures.clocks import ManualClocks
from tools.servers.scripted_imds import Answer, ScriptedServer, document, raw, status

OK = status(200).pieces[0]
# Where a service can end the connection under an approval: before and in the head of the answer, after it, in its body.
ENDS = {
    "at once": b"",
    "in the status line": OK[:9],
    "in the head": OK[:-8],
    "before the body": OK.replace(b"0\r\n\r\n", b"7\r\n\r\n"),
    "in the body": OK.replace(b"0\r\n\r\n", b"7\r\n\r\n") + b"acc",
}
LISTED = document({**EVENT, "EventId": "a"})


def posts(server: ScriptedServer) -> int:
    return [request.method for request in server.requests].count("POST")


def refused(client: Client, *given: Any) -> errors.Fault:
    with pytest.raises(errors.Fault) as info:
        client.approve(["a"], *given)
    return info.value


# Sent once


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("end", ["close", "reset"])
@pytest.mark.parametrize("place", ENDS)
def test_se31_unanswered_approval_is_not_resent(place: str, end: str, kept: bool) -> None:
    with ScriptedServer(LISTED, raw(ENDS[place], end), status(200)) as server, client_of(server) as client:
        client.read_once()
        if not kept:
            client.close()
        fault = refused(client)
        assert isinstance(fault, PassingFault)
        assert (fault.unsure, posts(server)) == (True, 1)
        assert fault.kind in (errors.CONNECTION, errors.GARBAGE)
        assert "not known" in fault.hint


def test_nor_is_one_that_times_out() -> None:
    with ScriptedServer(LISTED, status(200, delay=30)) as server, client_of(server, read_timeout=0.1) as client:
        client.read_once()
        fault = refused(client)
        assert (fault.kind, fault.unsure, posts(server)) == (errors.TIMEOUT, True, 1)


@pytest.mark.parametrize("code", range(300, 600))
def test_nor_is_one_that_is_answered_otherwise(code: int) -> None:
    sent: list[str] = []

    class Refusing(transport.Transport):
        def exchange(
            self, request: transport.ImdsRequest, timeout: float, admit: Callable[[], None]
        ) -> transport.Response:
            admit()
            sent.append(request.method)
            return transport.Response(code, "Reason", {}, b"", self.clock())

    client = Client("http://127.0.0.1:9", transport=Refusing("127.0.0.1", 9, 1.0))
    client._read_at = client._transport.clock()
    fault = refused(client)
    assert (sent, fault.unsure) == (["POST"], code >= 500)


def test_each_approval_takes_a_document_of_its_own() -> None:
    with ScriptedServer(LISTED, status(200)) as server, client_of(server) as client:
        assert refused(client).kind == errors.NOT_SENT, "there is none yet"
        client.read_once()
        client.approve(["a"])
        assert refused(client).kind == errors.NOT_SENT
        assert posts(server) == 1


def test_it_is_sent_in_one_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    """No service waits for the rest of a request that was begun in time."""
    pieces: list[bytes] = []

    def sendall(self: Any, data: bytes) -> None:
        pieces.append(data)
        socket.socket.sendall(self, data)

    monkeypatch.setattr(transport._BoundedSocket, "sendall", sendall, raising=False)
    with ScriptedServer(LISTED, status(200)) as server, client_of(server) as client:
        client.read_once()
        client.approve(["a"])
    assert [piece[:4] for piece in pieces] == [b"GET ", b"POST"]
    assert pieces[1].endswith(server.requests[1].body)


# Sent in time


class Ages(ManualClocks):
    """Clocks of a VM, with what may happen each time that the age of a document is looked at."""

    def client(self, server: ScriptedServer, **options: Any) -> Client:
        return client_of(server, clocks=self, wall=self.wall, age_clock=self.boottime, **options)


@pytest.mark.parametrize(("seconds", "sent"), [(0.0, True), (0.99, True), (1.01, False), (15.0, False)])
@pytest.mark.parametrize("slept", [True, False])
def test_approval_from_an_old_document_is_not_sent(seconds: float, sent: bool, slept: bool) -> None:
    clocks = Ages()
    with ScriptedServer(LISTED, status(200)) as server, clocks.client(server) as client:
        client.read_once()
        clocks.slept += seconds * slept
        clocks.now += seconds * (not slept)
        if sent:
            client.approve(["a"])
        else:
            fault = refused(client)
            said = f"not sent: the document is too old, {exact_text(seconds)}."
            assert (fault.kind, fault.unsure, str(fault)) == ("not-sent", False, said)
        assert posts(server) == sent


def test_the_time_to_connect_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = Ages()
    connect = transport._Connection.connect

    def slowly(self: Any) -> None:
        clocks.now += 4.0
        connect(self)

    with ScriptedServer(LISTED, status(200)) as server, clocks.client(server) as client:
        client.read_once()
        client.close()
        monkeypatch.setattr(transport._Connection, "connect", slowly)
        assert refused(client).kind == errors.NOT_SENT
        assert posts(server) == 0


def test_document_received_late_is_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process is stopped while it waits for the answer, which comes meanwhile."""
    clocks = Ages()
    receive = transport._BoundedSocket.recv_into

    def stopped(self: Any, *given: Any) -> int:
        server.wait_for_requests(1)
        clocks.slept += 30.0
        return receive(self, *given)

    with ScriptedServer(LISTED, status(200)) as server, clocks.client(server) as client:
        monkeypatch.setattr(transport._BoundedSocket, "recv_into", stopped)
        client.read_once()
        monkeypatch.undo()
        assert "too old, 30 s" in str(refused(client))
        client.read_once()


HALF = len(LISTED.pieces[0]) // 2


@pytest.mark.parametrize(
    "slow",  # a real wait: it is the kernel that knows when the answer came
    [
        Answer(LISTED.pieces, delay=1.3),
        Answer((LISTED.pieces[0][:HALF], LISTED.pieces[0][HALF:]), pause=1.3),
    ],
    ids=["late", "in two pieces"],
)
def test_slow_answer_counts_from_its_end(slow: Answer) -> None:
    """A service that takes its time: the document is from then, not from the question."""
    with ScriptedServer(slow, status(200)) as server, client_of(server) as client:
        client.read_once()
        client.approve(["a"])
        assert posts(server) == 1


@pytest.mark.parametrize(("left", "sent"), [(0.5, True), (0.0, False), (-3.4, False)])
def test_it_is_not_sent_after_not_before(left: float, sent: bool) -> None:
    clocks = Ages()
    with ScriptedServer(LISTED, status(200)) as server, clocks.client(server) as client:
        client.read_once()
        if sent:
            client.approve(["a"], 1, clocks.wall() + left)
        else:
            assert "NotBefore has passed" in str(refused(client, 1, clocks.wall() + left))
        assert posts(server) == sent


def test_it_does_not_wait_for_the_request_budget() -> None:
    clocks = Ages()
    with ScriptedServer(LISTED, status(200)) as server, clocks.client(server) as client:
        client.read_once()
        while client.limiter.take():
            pass
        assert "budget" in str(refused(client))
        assert (posts(server), clocks.pauses) == (0, [])


# Patiently: another document decides


def patiently(
    *answers: Answer, patience: float = 30.0, stop: Callable[[ManualClocks], None] = lambda _: None
) -> tuple[errors.Fault | None, list[Any], ManualClocks]:
    """Approve what the first answer lists; return the fault, the requests and the clocks."""
    clocks = Ages()
    fault = None
    with ScriptedServer(*answers) as server, clocks.client(server) as client:
        read = client.read()
        stop(clocks)
        try:
            approve_with_retries(client, read, read.events, patience)
        except errors.Fault as found:
            fault = found
    return fault, [_asked(one.body) for one in server.requests], clocks


def _asked(body: bytes) -> Any:
    return [each["EventId"] for each in json.loads(body)["StartRequests"]] if body else "GET"


TWO = document({**EVENT, "EventId": "a"}, {**EVENT, "EventId": "b"})
ONE_STARTED = document({**EVENT, "EventId": "a", "EventStatus": "Started", "NotBefore": ""}, {**EVENT, "EventId": "b"})
OTHER = document({**EVENT, "EventId": "a", "EventType": "Redeploy"})


@pytest.mark.parametrize("trouble", [raw(b"", "close"), raw(b"junk", "close"), status(503), status(429), status(404)])
def test_unchanged_event_is_approved_again(trouble: Answer) -> None:
    fault, asked, clocks = patiently(LISTED, trouble, LISTED, status(200))
    assert (fault, asked, len(clocks.pauses)) == (None, ["GET", ["a"], "GET", ["a"]], 1)


def test_what_has_started_meanwhile_is_not() -> None:
    fault, asked, _clocks = patiently(TWO, raw(b"", "close"), ONE_STARTED, status(200))
    assert (fault, asked) == (None, ["GET", ["a", "b"], "GET", ["b"]])


@pytest.mark.parametrize(("now", "said"), [(OTHER, "a has changed since"), (document(), "a is no longer listed since")])
@pytest.mark.parametrize(("first", "unsure"), [(status(503), True), (raw(b"", "reset"), True), (status(429), False)])
def test_what_has_changed_meanwhile_is_not(first: Answer, unsure: bool, now: Answer, said: str) -> None:
    fault, asked, _clocks = patiently(LISTED, first, now, status(200))
    assert fault is not None
    assert (said in str(fault), fault.unsure, asked) == (True, unsure, ["GET", ["a"], "GET"])


def test_refusal_after_a_passing_fault_is_unsure() -> None:
    fault, asked, _clocks = patiently(LISTED, status(503), LISTED, status(400))
    assert isinstance(fault, LastingFault)
    assert (fault.unsure, asked) == (True, ["GET", ["a"], "GET", ["a"]])


def test_so_it_may_when_no_document_follows() -> None:
    fault, _asked, _clocks = patiently(LISTED, status(503), status(403))
    assert fault is not None
    assert (fault.status, fault.unsure) == (403, True)


def test_outdated_document_is_read_again_at_once() -> None:
    def stop(clocks: ManualClocks) -> None:
        clocks.slept += 15.0

    fault, asked, clocks = patiently(LISTED, LISTED, status(200), stop=stop)
    assert (fault, asked, clocks.pauses) == (None, ["GET", "GET", ["a"]], [])


def test_patience_ends() -> None:
    fault, asked, _clocks = patiently(LISTED, status(503), patience=0.0)
    assert fault is not None
    assert (fault.status, asked) == (503, ["GET", ["a"]])


def test_without_patience_too() -> None:
    def stop(clocks: ManualClocks) -> None:
        clocks.slept += 15.0

    fault, asked, _clocks = patiently(LISTED, LISTED, status(200), stop=stop, patience=0.0)
    assert (fault, asked) == (None, ["GET", "GET", ["a"]])
