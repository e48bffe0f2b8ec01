# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the client reads every answer seen in the wild."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from email.utils import format_datetime

import pytest
from forewarn.imds import errors, transport
from forewarn.imds.errors import LastingFault, PassingFault
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tools.fixtures.client_bench import EVENT, OK, client_of, fault_of
from tools.servers.scripted_imds import ScriptedServer, document, raw, status
from tools.suite.sizes import examples

# Answers that are not documents


def test_an_empty_200_means_that_nothing_is_scheduled() -> None:
    with ScriptedServer(status(200)) as server, client_of(server) as client:
        result = client.read_once()
    assert (result.incarnation, result.events, result.problems) == (None, (), ())


def test_empty_chunked_200_means_no_events() -> None:
    answer = raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
    with ScriptedServer(answer) as server, client_of(server) as client:
        assert client.read_once().events == ()


def test_chunked_document_keeps_the_connection() -> None:
    body = b'{"DocumentIncarnation": 3, "Events": []}'
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:7], body[7:]))
    answer = raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n")
    with ScriptedServer(answer) as server, client_of(server) as client:
        assert client.read_once().incarnation == 3
        assert client.read_once().incarnation == 3
    assert server.connections == 1


def test_document_ended_by_the_connection_is_read() -> None:
    answer = raw(b'HTTP/1.0 200 OK\r\n\r\n{"DocumentIncarnation": 3, "Events": []}', "close")
    with ScriptedServer(answer) as server, client_of(server) as client:
        assert client.read_once().incarnation == 3
        assert client.read_once().incarnation == 3
    assert server.connections == 2


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
    "a length that is not a number": raw(OK + b"Content-Length: ten\r\n\r\n", "close"),
    "two transfer codings": raw(OK + b"Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n", "close"),
    "two lengths, the greater first": raw(OK + b"Content-Length: 40\r\nContent-Length: 0\r\n\r\n", "close"),
    "two lengths": raw(OK + b"Content-Length: 0\r\nContent-Length: 40\r\n\r\n" + b" " * 40, "close"),
    "a longer integer than Python reads": raw(OK + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n", "close"),
    "not HTTP": raw(b"SSH-2.0-OpenSSH_9.2\r\n", "close"),
    "a status that is not a number": raw(b"HTTP/1.1 abc\r\n\r\n", "close"),
    "too many headers": raw(OK + b"X: y\r\n" * 200 + b"\r\n", "close"),
    "no answer yet": raw(b"HTTP/1.1 102 Processing\r\n\r\n", "close"),
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
def test_unreadable_answer_is_a_fault(name: str) -> None:
    fault = fault_of(UNREADABLE[name])
    assert isinstance(fault, PassingFault)
    if name != "another success":
        assert fault.kind in (errors.GARBAGE, errors.CONNECTION)
        assert len(str(fault)) < 300
        assert str(fault).isprintable()


@pytest.mark.parametrize("name", UNREADABLE)
def test_the_client_recovers_from_an_unreadable_answer(name: str) -> None:
    with ScriptedServer(UNREADABLE[name], document(EVENT)) as server, client_of(server) as client:
        with pytest.raises(errors.Fault):
            client.read_once()
        assert len(client.read_once().events) == 1


@settings(
    max_examples=examples(150),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(
    st.one_of(
        st.binary(max_size=200),
        st.binary(max_size=200).map(lambda data: b"HTTP/1.1 200 OK\r\n" + data),
        st.binary(max_size=200).map(lambda data: OK + b"Transfer-Encoding: chunked\r\n\r\n" + data),
        st.binary(max_size=100).map(lambda data: OK + b"Content-Length: 50\r\n\r\n" + data),
        st.binary(max_size=100).map(lambda data: OK + b"Content-Length: %d\r\n\r\n" % len(data) + b"{" + data),
    )
)
def test_any_answer_is_a_document_or_fault(data: bytes) -> None:
    with ScriptedServer(raw(data, "close")) as server, client_of(server, first_read_timeout=5) as client:
        try:
            result = client.read_once()
        except errors.Fault:
            return
    assert result.events == ()
    assert b"200" in data


def test_announced_size_beyond_the_cap_is_refused() -> None:
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


@pytest.mark.parametrize("code", [206, 404, 408, 409, 410, 425, 429, 499, 500, 502, 503, 504])
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
def test_se03_unknown_api_version_is_a_lasting_fault(code: int, body: bytes) -> None:
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


@pytest.mark.parametrize("head", ["302 Found\r\nLocation: http://x/", "400 Bad Request", "403 Forbidden"])
def test_status_without_body_and_length_counts(head: str) -> None:
    bare = raw(f"HTTP/1.1 {head}\r\nConnection: close\r\n\r\n".encode(), "close")
    fault = fault_of(bare)
    assert (type(fault), fault.status) == (LastingFault, int(head[:3]))
    with ScriptedServer(document(), bare) as server, client_of(server) as client:
        client.read_once()
        with pytest.raises(LastingFault) as info:
            client.approve(["a"])
        assert info.value.status == fault.status


def test_status_204_accepts_an_approval() -> None:
    """RFC 9110, 8.6: it must not have a Content-Length."""
    no_content = raw(b"HTTP/1.1 204 No Content\r\n\r\n")
    with ScriptedServer(document(), no_content, document(), no_content) as server, client_of(server) as client:
        for event_id in ("a", "b"):
            client.read_once()
            client.approve([event_id])
    assert server.connections == 1


def test_retry_after_counts_without_a_body() -> None:
    fault = fault_of(raw(b"HTTP/1.1 429 Too Many\r\nRetry-After: 30\r\nConnection: close\r\n\r\n", "close"))
    assert (type(fault), fault.status, fault.retry_after) == (PassingFault, 429, 30.0)


def test_an_approval_is_not_redirected_either() -> None:
    elsewhere = status(307, b"", {"Location": "http://127.0.0.1:9/"})
    with ScriptedServer(document(), elsewhere) as server, client_of(server) as client:
        client.read_once()
        with pytest.raises(LastingFault, match="not followed"):
            client.approve(["a"])
        assert len(server.requests) == 2


@pytest.mark.parametrize(("value", "expected"), [("7", 7.0), (" 0 ", 0.0), ("soon", None), ("-5", None), ("", None)])
def test_retry_after_in_seconds(value: str, expected: float | None) -> None:
    assert fault_of(status(429, headers={"Retry-After": value})).retry_after == expected


def test_retry_after_as_a_date() -> None:
    at = datetime.now(timezone.utc) + timedelta(seconds=40)
    fault = fault_of(status(503, headers={"Retry-After": format_datetime(at, usegmt=True)}))
    assert fault.retry_after is not None
    assert 35 < fault.retry_after <= 40
