# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The client against a scripted server: what it sends, and what it makes of every answer seen in the wild."""

from __future__ import annotations

import json
import socket
import time
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from typing import Any

import pytest
from forewarn.errors import InputError
from forewarn.imds import errors, transport
from forewarn.imds.client import Client
from forewarn.imds.errors import LastingFault, PassingFault
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tools.scripted_imds import Answer, ScriptedServer, document, instance, raw, status

EVENT = {
    "EventId": "C7061BAC-AFDC-4513-B24B-AA5F13A16123",
    "EventStatus": "Scheduled",
    "EventType": "Freeze",
    "ResourceType": "VirtualMachine",
    "Resources": ["WestNO_0", "WestNO_1"],
    "NotBefore": "Mon, 11 Apr 2022 22:26:58 GMT",
    "Description": "",
    "EventSource": "Platform",
    "DurationInSeconds": 5,
}


class Time:
    """A clock that moves only when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert seconds >= 0
        self.slept.append(seconds)
        self.now += seconds


def client_of(server: ScriptedServer, prefix: str = "", **options: Any) -> Client:
    moment = options.pop("time", Time())
    return Client(server.url + prefix, clock=moment.clock, sleep=moment.sleep, **options)


def fault_of(answer: Answer, **options: Any) -> errors.Fault:
    """Return what one read makes of an answer; it must be a fault, never a document."""
    with ScriptedServer(answer) as server, client_of(server, **options) as client, pytest.raises(errors.Fault) as info:
        client.read_once()
    return info.value


# What is sent


def test_se_01_se_02_a_read_names_the_api_version_and_carries_the_header() -> None:
    with ScriptedServer(document(EVENT)) as server, client_of(server) as client:
        result = client.read_once()
    assert [event.event_id for event in result.events] == [EVENT["EventId"]]
    (request,) = server.requests
    assert (request.method, request.target) == ("GET", "/metadata/scheduledevents?api-version=2020-07-01")
    assert request.headers["metadata"] == "true"
    assert request.headers["host"] == f"127.0.0.1:{server.port}"
    assert "x-forwarded-for" not in request.headers


def test_a_read_ahead_is_sent_at_once_and_answers_the_next_read() -> None:
    with ScriptedServer(document(EVENT), status(200)) as server, client_of(server) as client:
        client.read_ahead()
        server.wait_for_requests(1)
        assert client.limiter.tokens == client.limiter.capacity - 1
        result = client.read_once()
        client.approve([event.event_id for event in result.events])
    assert [request.method for request in server.requests] == ["GET", "POST"]
    assert server.requests[0].headers["metadata"] == "true"
    assert {request.connection for request in server.requests} == {0}


def test_a_read_ahead_that_nobody_took_cannot_answer_another_request() -> None:
    with ScriptedServer(document(EVENT), status(200), document()) as server, client_of(server) as client:
        client.read_ahead()
        server.wait_for_requests(1)
        client.approve(["C7061BAC-AFDC-4513-B24B-AA5F13A16123"])
        assert client.read_once().events == ()
    assert [request.method for request in server.requests] == ["GET", "POST", "GET"]


@pytest.mark.parametrize("end", ["close", "reset"])
def test_a_read_ahead_whose_connection_breaks_is_asked_again(end: str) -> None:
    with ScriptedServer(raw(b"", end=end), document(EVENT)) as server, client_of(server) as client:
        client.read_ahead()
        assert len(client.read_once().events) == 1
    assert len(server.requests) == 2


def test_a_read_ahead_without_a_service_says_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    client = Client(f"http://127.0.0.1:{port}")
    client.read_ahead()
    with pytest.raises(errors.PassingFault, match="refused"):
        client.read_once()


def test_se_02_every_request_carries_the_header_post_and_instance_too() -> None:
    with ScriptedServer(document(EVENT), status(200), instance("web_0")) as server, client_of(server) as client:
        client.read_once()
        client.approve([str(EVENT["EventId"])])
        client.instance()
    assert [request.headers.get("metadata") for request in server.requests] == ["true"] * 3
    assert [request.method for request in server.requests] == ["GET", "POST", "GET"]


def test_se_30_several_events_are_approved_in_one_request_spelled_as_given() -> None:
    with ScriptedServer(status(200)) as server, client_of(server) as client:
        client.approve(["C7061BAC", "b2"], incarnation=7)
    (request,) = server.requests
    assert request.target == "/metadata/scheduledevents?api-version=2020-07-01"
    assert request.headers["content-type"] == "application/json"
    assert json.loads(request.body) == {"StartRequests": [{"EventId": "C7061BAC"}, {"EventId": "b2"}]}


@pytest.mark.parametrize("incarnation", [7, "7"])
def test_se_30_the_versions_of_2017_get_the_incarnation_back(incarnation: int | str) -> None:
    with ScriptedServer(status(200)) as server, client_of(server, api_version="2017-11-01") as client:
        client.approve(["a"], incarnation)
        client.approve(["a"])
    assert json.loads(server.requests[0].body)["DocumentIncarnation"] == incarnation
    assert "DocumentIncarnation" not in json.loads(server.requests[1].body)


def test_approving_nothing_is_a_defect_of_the_caller() -> None:
    with (
        ScriptedServer(status(200)) as server,
        client_of(server) as client,
        pytest.raises(ValueError, match="no event"),
    ):
        client.approve([])
    assert server.requests == []


def test_a_path_prefix_precedes_every_path() -> None:
    with ScriptedServer(document(), instance("web_0")) as server, client_of(server, "/vm/web_0/") as client:
        client.read_once()
        client.instance()
    assert server.requests[0].target.startswith("/vm/web_0/metadata/scheduledevents?")
    assert server.requests[1].target == "/vm/web_0/metadata/instance?api-version=2021-02-01"


def test_se_07_a_proxy_in_the_environment_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    with ScriptedServer(document()) as server, client_of(server) as client:
        client.read_once()
    assert server.requests[0].target.startswith("/metadata/")


@pytest.mark.parametrize("version", ["", "{latest}", "2020-07-01&x=y", "2020-07-01\r\nX: y", "20200701"])
def test_a_malformed_api_version_is_refused_before_anything_is_sent(version: str) -> None:
    with pytest.raises(InputError, match="api-version"):
        Client("http://127.0.0.1:9", version)


# The connection


def test_one_connection_serves_many_requests() -> None:
    with ScriptedServer(document(), document(), status(200), document()) as server, client_of(server) as client:
        client.read_once()
        client.read_once()
        client.approve(["a"])
        client.read_once()
    assert [request.connection for request in server.requests] == [0, 0, 0, 0]


def test_an_error_answer_does_not_cost_the_connection() -> None:
    with ScriptedServer(status(404, b"gone for now"), document()) as server, client_of(server) as client:
        with pytest.raises(PassingFault):
            client.read_once()
        client.read_once()
    assert server.connections == 1


@pytest.mark.parametrize("end", ["close", "reset"])
def test_a_connection_closed_while_idle_is_replaced_unnoticed(end: str) -> None:
    with ScriptedServer(document(end=end), document(EVENT)) as server, client_of(server) as client:
        client.read_once()
        assert _comes_true(lambda: not client._transport._socket or not client._transport._socket.idle())
        assert len(client.read_once().events) == 1
    assert [request.connection for request in server.requests] == [0, 1]


@pytest.mark.parametrize("end", ["close", "reset"])
def test_se_31_a_connection_closed_under_a_request_is_replaced_once(end: str) -> None:
    """The server closes just as the request arrives: sent again, an approval too, for it may be sent twice."""
    with ScriptedServer(document(), raw(b"", end), status(200)) as server, client_of(server) as client:
        client.read_once()
        client.approve(["a"])
    assert [(request.method, request.connection) for request in server.requests] == [
        ("GET", 0),
        ("POST", 0),
        ("POST", 1),
    ]


@pytest.mark.parametrize("end", ["close", "reset"])
def test_a_new_connection_closed_without_an_answer_is_a_passing_fault(end: str) -> None:
    with ScriptedServer(raw(b"", end)) as server, client_of(server) as client:
        with pytest.raises(PassingFault) as info:
            client.read_once()
        assert info.value.kind == errors.CONNECTION
        assert len(server.requests) == 1


def test_what_a_server_sends_unasked_is_never_taken_for_an_answer() -> None:
    unasked = document(EVENT)
    both = Answer((document().pieces[0], unasked.pieces[0]), pause=0.05)
    with ScriptedServer(both, document()) as server, client_of(server) as client:
        client.read_once()
        assert _comes_true(lambda: client._transport._socket is None or not client._transport._socket.idle())
        assert client.read_once().events == ()


def _comes_true(condition: Any) -> bool:
    """Wait (seconds, not for luck: the condition is certain to come) for what the other side of a socket does."""
    end = time.monotonic() + 5
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.002)  # until the next look
    return True


def test_se_10_an_answer_that_says_the_same_is_the_same_document_and_only_that() -> None:
    answers = [document(EVENT), document(EVENT), document(), document(EVENT)]
    with ScriptedServer(*answers) as server, client_of(server) as client:
        first, same, empty, again = (client.read_once() for _ in answers)
    assert same is first
    assert [len(read.events) for read in (first, empty, again)] == [1, 0, 1]


# Answers that are no document


def test_an_empty_200_means_that_nothing_is_scheduled() -> None:
    with ScriptedServer(status(200)) as server, client_of(server) as client:
        result = client.read_once()
    assert (result.incarnation, result.events, result.problems) == (None, (), ())


def test_an_empty_chunked_200_means_that_nothing_is_scheduled() -> None:
    answer = raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
    with ScriptedServer(answer) as server, client_of(server) as client:
        assert client.read_once().events == ()


def test_a_chunked_document_is_read_and_its_connection_kept() -> None:
    body = b'{"DocumentIncarnation": 3, "Events": []}'
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:7], body[7:]))
    answer = raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n")
    with ScriptedServer(answer) as server, client_of(server) as client:
        assert client.read_once().incarnation == 3
        assert client.read_once().incarnation == 3
    assert server.connections == 1


def test_a_document_whose_end_is_the_end_of_the_connection_is_read() -> None:
    answer = raw(b'HTTP/1.0 200 OK\r\n\r\n{"DocumentIncarnation": 3, "Events": []}', "close")
    with ScriptedServer(answer) as server, client_of(server) as client:
        assert client.read_once().incarnation == 3
        assert client.read_once().incarnation == 3
    assert server.connections == 2


OK = b"HTTP/1.1 200 OK\r\n"
UNREADABLE = {
    "cut short": raw(OK + b'Content-Length: 100\r\n\r\n{"DocumentIncarnation": 1, "Events": []}', "close"),
    "cut to nothing": raw(OK + b"Content-Length: 100\r\n\r\n", "close"),
    "cut by a reset": raw(OK + b'Content-Length: 100\r\n\r\n{"Docu', "reset"),
    "nothing, unannounced": raw(OK + b"\r\n", "close"),
    "no end of the headers": raw(OK + b"Content-Len", "close"),
    "no end of the chunks": raw(OK + b"Transfer-Encoding: chunked\r\n\r\n4\r\n    \r\n", "close"),
    "no chunk": raw(OK + b"Transfer-Encoding: chunked\r\n\r\n", "close"),
    "a chunk cut short": raw(OK + b"Transfer-Encoding: chunked\r\n\r\nff\r\n{}", "close"),
    "a chunk of no size": raw(OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}", "close"),
    "a chunk of negative size": raw(OK + b"Transfer-Encoding: chunked\r\n\r\n-5\r\n{}", "close"),
    "an unknown transfer coding": raw(OK + b"Transfer-Encoding: gzip\r\n\r\n", "close"),
    "a negative length": raw(OK + b"Content-Length: -1\r\n\r\n", "close"),
    "a length that is no number": raw(OK + b"Content-Length: ten\r\n\r\n", "close"),
    "two transfer codings": raw(OK + b"Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n", "close"),
    "two lengths, the greater first": raw(OK + b"Content-Length: 40\r\nContent-Length: 0\r\n\r\n", "close"),
    "two lengths": raw(OK + b"Content-Length: 0\r\nContent-Length: 40\r\n\r\n" + b" " * 40, "close"),
    "a longer integer than Python reads": raw(OK + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n", "close"),
    "not HTTP": raw(b"SSH-2.0-OpenSSH_9.2\r\n", "close"),
    "a status that is no number": raw(b"HTTP/1.1 abc\r\n\r\n", "close"),
    "too many headers": raw(OK + b"X: y\r\n" * 200 + b"\r\n", "close"),
    "an endless header": raw(OK + b"X: " + b"y" * 70000 + b"\r\n\r\n", "close"),
    "HTML": status(200, b"<html>It works!</html>"),
    "not UTF-8": status(200, b"\xff\xfe{}"),
    "JSON, but an array": status(200, b"[]"),
    "JSON without events": status(200, b"{}"),
    "deep nesting": status(200, b"[" * 100000),
    "compressed": status(200, b"\x1f\x8b\x08\x00\x00", {"Content-Encoding": "gzip"}),
    "another success": status(204),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_an_unreadable_answer_is_a_fault_and_never_no_events(name: str) -> None:
    fault = fault_of(UNREADABLE[name])
    if name == "another success":
        assert isinstance(fault, LastingFault)
    else:
        assert isinstance(fault, PassingFault)
        assert fault.kind in (errors.GARBAGE, errors.CONNECTION)
        assert len(str(fault)) < 300
        assert str(fault).isprintable()


@pytest.mark.parametrize("name", UNREADABLE)
def test_the_client_recovers_from_an_unreadable_answer(name: str) -> None:
    with ScriptedServer(UNREADABLE[name], document(EVENT)) as server, client_of(server) as client:
        with pytest.raises(errors.Fault):
            client.read_once()
        assert len(client.read_once().events) == 1


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.one_of(
        st.binary(max_size=200),
        st.binary(max_size=200).map(lambda data: b"HTTP/1.1 200 OK\r\n" + data),
        st.binary(max_size=200).map(lambda data: OK + b"Transfer-Encoding: chunked\r\n\r\n" + data),
        st.binary(max_size=100).map(lambda data: OK + b"Content-Length: 50\r\n\r\n" + data),
        st.binary(max_size=100).map(lambda data: OK + b"Content-Length: %d\r\n\r\n" % len(data) + b"{" + data),
    )
)
def test_whatever_arrives_ends_in_a_document_or_a_fault(data: bytes) -> None:
    with ScriptedServer(raw(data, "close")) as server, client_of(server, first_read_timeout=5) as client:
        try:
            result = client.read_once()
        except errors.Fault:
            return
    assert result.events == ()
    assert b"200" in data


def test_an_announced_size_beyond_the_cap_is_refused_unread() -> None:
    size = transport.MAX_BODY_BYTES + 1
    fault = fault_of(raw(OK + b"Content-Length: %d\r\n\r\n" % size))
    assert (type(fault), fault.kind) == (PassingFault, errors.GARBAGE)
    assert str(transport.MAX_BODY_BYTES) in str(fault)


@pytest.mark.parametrize("head", [OK + b"\r\n", OK + b"Transfer-Encoding: chunked\r\n\r\nfffffff\r\n"])
def test_an_unannounced_size_beyond_the_cap_is_refused(head: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "MAX_BODY_BYTES", 100_000)
    fault = fault_of(raw(head + b" " * 300_000, "close"))
    assert (type(fault), fault.kind) == (PassingFault, errors.GARBAGE)
    assert "more than 100000 bytes" in str(fault)


CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("head", "endless"),
    [
        (CHUNKED + b"-1\r\n", b" "),  # http.client reads that to the end, however far it is
        (CHUNKED + b"0\r\n", b"X: y\r\n"),
        (CHUNKED, b"1\r\n \r\n"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    ],
)
def test_no_answer_is_read_without_an_end(head: bytes, endless: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "MAX_BODY_BYTES", 100_000)
    monkeypatch.setattr(transport, "_MAX_OVERHEAD_BYTES", 100_000)
    fault = fault_of(raw(head + endless * (400_000 // len(endless)), "close"))
    assert (type(fault), fault.kind) == (PassingFault, errors.GARBAGE)
    assert "too long" in str(fault)


# Error statuses


@pytest.mark.parametrize("code", [404, 408, 410, 429, 500, 502, 503, 504])
def test_statuses_that_pass(code: int) -> None:
    fault = fault_of(status(code, b"busy\n with \x1b something"))
    assert (type(fault), fault.kind, fault.status) == (PassingFault, errors.HTTP, code)
    assert str(code) in str(fault)
    assert "busy with" in str(fault)


@pytest.mark.parametrize("code", [400, 401, 403, 405])
def test_statuses_that_last(code: int) -> None:
    fault = fault_of(status(code))
    assert (type(fault), fault.kind, fault.status) == (LastingFault, errors.HTTP, code)


@pytest.mark.parametrize(
    ("code", "body"),
    [
        (400, b'{"error": "Bad request. api-version is invalid or was not specified in the request."}'),
        (400, b" " * 300 + b'{"error": "Bad request", "newest-versions": ["2020-07-01"]}'),
        (404, b"The API version 2035-01-01 is not supported."),
    ],
)
def test_se_03_an_unknown_api_version_does_not_pass(code: int, body: bytes) -> None:
    fault = fault_of(status(code, body), api_version="2035-01-01")
    assert (type(fault), fault.kind, fault.status) == (LastingFault, errors.API_VERSION, code)
    assert "2035-01-01" in fault.hint


@pytest.mark.parametrize(
    "body",
    [
        b"/metadata/scheduledevents?api-version=2020-07-01 was not found",
        b"Invalid path: %2Fmetadata%2Fscheduledevents%3Fapi-version%3D2020-07-01",
        b"no resource of api-version '2020-07-01' at this moment",
    ],
)
def test_a_404_that_repeats_the_url_still_passes(body: bytes) -> None:
    fault = fault_of(status(404, body))
    assert (type(fault), fault.kind) == (PassingFault, errors.HTTP)


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_a_redirect_is_shown_and_not_followed(code: int) -> None:
    with ScriptedServer(document(EVENT)) as elsewhere:
        fault = fault_of(status(code, b"", {"Location": elsewhere.url + "/metadata/scheduledevents"}))
        assert elsewhere.requests == []
    assert (type(fault), fault.kind, fault.status) == (LastingFault, errors.REDIRECT, code)
    assert elsewhere.url in str(fault)


def test_an_approval_is_not_redirected_either() -> None:
    with ScriptedServer(status(307, b"", {"Location": "http://127.0.0.1:9/"})) as server, client_of(server) as client:
        with pytest.raises(LastingFault, match="not followed"):
            client.approve(["a"], patience_seconds=60)
        assert len(server.requests) == 1


@pytest.mark.parametrize(("value", "expected"), [("7", 7.0), (" 0 ", 0.0), ("soon", None), ("-5", None), ("", None)])
def test_retry_after_in_seconds(value: str, expected: float | None) -> None:
    assert fault_of(status(429, headers={"Retry-After": value})).retry_after == expected


def test_retry_after_as_a_date() -> None:
    at = datetime.now(timezone.utc) + timedelta(seconds=40)
    fault = fault_of(status(503, headers={"Retry-After": format_datetime(at, usegmt=True)}))
    assert fault.retry_after is not None
    assert 35 < fault.retry_after <= 40


# Time


def test_a_refused_connection_passes() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with Client(f"http://127.0.0.1:{port}") as client, pytest.raises(PassingFault) as info:
        client.read_once()
    assert info.value.kind == errors.REFUSED


def test_an_answer_that_does_not_come_is_a_timeout() -> None:
    fault = fault_of(document(delay=30), first_read_timeout=0.1, read_timeout=0.1)
    assert (type(fault), fault.kind) == (PassingFault, errors.TIMEOUT)
    assert "0.1 s" in str(fault)


def test_an_answer_that_trickles_in_is_a_timeout_too() -> None:
    trickle = Answer((OK, *[b"X: y\r\n"] * 90), pause=0.05)
    began = time.monotonic()
    fault = fault_of(trickle, first_read_timeout=0.3, read_timeout=0.3)
    assert fault.kind == errors.TIMEOUT
    assert time.monotonic() - began < 2


def test_se_05_the_first_answer_may_be_slow_later_ones_not() -> None:
    """2 minutes and 10 seconds, a hundred times faster."""
    with ScriptedServer(document(delay=0.5), document(delay=0.5)) as server:
        client = client_of(server, first_read_timeout=1.2, read_timeout=0.1)
        assert not client.answered
        client.read_once()
        assert client.answered
        with pytest.raises(PassingFault) as info:
            client.read_once()
        client.close()
    assert info.value.kind == errors.TIMEOUT


def test_se_05_a_slow_first_answer_is_waited_for_even_without_patience() -> None:
    with ScriptedServer(document(delay=0.3)) as server:
        with client_of(server, first_read_timeout=5, read_timeout=0.05) as client:
            client.read(patience_seconds=0)
        assert len(server.requests) == 1


def test_an_approval_that_times_out_says_that_its_fate_is_unknown() -> None:
    silent = ScriptedServer(status(200, delay=30))
    client = client_of(silent, first_read_timeout=0.1, read_timeout=0.1)
    with silent, client, pytest.raises(PassingFault) as info:
        client.approve(["a"])
    assert "not known" in info.value.hint


# Patience


def test_passing_faults_are_tried_again_until_one_answer_is_good() -> None:
    faults = [
        status(404),
        status(410),
        status(429),
        status(500),
        status(503),
        status(200, b"<html>"),
        raw(b"", "close"),
    ]
    moment = Time()
    log: list[str] = []
    with ScriptedServer(*faults, document(EVENT)) as server, client_of(server, time=moment, log=log.append) as client:
        assert len(client.read(patience_seconds=120).events) == 1
    assert len(server.requests) == 8
    assert len(log) == 7  # the last fault was a kept connection that had to be replaced
    assert "after 6 failures" in log[-1]
    assert all(0.75 <= pause <= 10 for pause in moment.slept)


def test_patience_ends() -> None:
    moment = Time()
    server = ScriptedServer(status(503))
    with server, client_of(server, time=moment) as client, pytest.raises(PassingFault):
        client.read(patience_seconds=30)
    assert 15 < moment.now - 1000 <= 30
    assert 4 <= len(server.requests) <= 8


def test_without_patience_there_is_one_attempt() -> None:
    with ScriptedServer(status(503)) as server, client_of(server) as client, pytest.raises(PassingFault):
        client.read(patience_seconds=0)
    assert len(server.requests) == 1


def test_a_lasting_fault_ends_patience_at_once() -> None:
    moment = Time()
    with ScriptedServer(status(403)) as server, client_of(server, time=moment) as client, pytest.raises(LastingFault):
        client.read(patience_seconds=120)
    assert (len(server.requests), moment.slept) == (1, [])


def test_retry_after_is_honoured_between_attempts() -> None:
    moment = Time()
    server = ScriptedServer(status(429, headers={"Retry-After": "20"}), document())
    with server, client_of(server, time=moment) as client:
        client.read(patience_seconds=120)
    assert moment.slept == [20]


def test_the_same_fault_is_logged_once() -> None:
    log: list[str] = []
    server = ScriptedServer(*[status(503, b"id %d" % i) for i in range(5)], document())
    with server, client_of(server, log=log.append) as client:
        client.read(patience_seconds=120)
    assert len(log) == 2


def test_an_approval_is_tried_again_within_its_patience() -> None:
    with ScriptedServer(status(503), status(200)) as server, client_of(server) as client:
        client.approve(["a"], patience_seconds=30)
    assert [request.method for request in server.requests] == ["POST", "POST"]


# The request budget


def test_no_burst_exceeds_the_budget_and_an_approval_need_not_wait_behind_reads() -> None:
    moment = Time()
    with ScriptedServer(document()) as server, client_of(server, time=moment) as client:
        for _ in range(4):
            client.read_once()
        assert moment.slept == []
        assert client.read_delay() == pytest.approx(1)
        client.approve(["a"])
        assert moment.slept == []
        client.read_once()
        assert sum(moment.slept) == pytest.approx(2)


def test_a_request_sent_again_is_paid_for_again() -> None:
    with ScriptedServer(document(), raw(b"", "close"), document()) as server, client_of(server) as client:
        client.read_once()
        client.read_once()
        assert len(server.requests) == 3
        assert client.limiter.tokens == pytest.approx(2)


# Identity


def test_se_14_the_identity_of_the_vm() -> None:
    answer = instance(
        "web_0",
        location="westeurope",
        zone="",
        vmSize="Standard_D2s_v5",
        vmScaleSetName="web",
        platformFaultDomain="2",
        tagsList=[{"name": "team", "value": "blue"}, {"name": "a;b", "value": "c:d"}, {"name": 1}, "x"],
    )
    with ScriptedServer(answer) as server, client_of(server) as client:
        vm = client.instance()
    assert (vm.name, vm.location, vm.zone, vm.size) == ("web_0", "westeurope", None, "Standard_D2s_v5")
    assert (vm.scale_set, vm.fault_domain, vm.tags) == ("web", "2", {"team": "blue", "a;b": "c:d"})


def test_an_unknown_identity_is_unknown_and_not_an_error() -> None:
    server = ScriptedServer(status(200, b'{"compute": {"name": 5, "zone": null, "tagsList": {}}}'))
    with server, client_of(server) as client:
        vm = client.instance()
    assert (vm.name, vm.zone, vm.tags) == ("5", None, None)


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"\xff"])
def test_an_unreadable_identity_is_a_passing_fault(body: bytes) -> None:
    with ScriptedServer(status(200, body)) as server, client_of(server) as client, pytest.raises(PassingFault) as info:
        client.instance()
    assert info.value.kind == errors.GARBAGE
