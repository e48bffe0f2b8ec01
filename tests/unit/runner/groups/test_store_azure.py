# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Azure Blob Storage is asked, what becomes of its answers and of garbage, and how logins are renewed."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest
from forewarn.errors import InputError
from forewarn.imds.errors import GARBAGE
from forewarn.runner.groups.address import Address
from forewarn.runner.groups.azure_blob import AzureBlob
from forewarn.runner.groups.azure_login import AzureLogin, IdentityLogin, SasLogin
from forewarn.runner.groups.store import LOGIN, TOO_LARGE, StoredValue, StoreFault
from forewarn.runner.groups.tls import TlsFiles
from hypothesis import given
from hypothesis import strategies as st
from tools.servers.scripted_imds import Answer, AnsweringServer, Request, ScriptedServer, raw, status

KEY, VALUE, ETAG = "forewarn/web/slots", b"value", '"0x8D1"'
SAS = "sv=2021-12-02&sr=c&sp=rcwdl&sig=SecretSignatureOfTheTest%3D"
TOKEN = "token.of-the-test"
FOUND = status(200, VALUE, {"ETag": ETAG})
CREATED = status(201, b"", {"ETag": ETAG})


def error(code: int, name: str, body: bytes = b"<Error/>") -> Answer:
    return status(code, body, {"x-ms-error-code": name})


def listing(*names: str, marker: str = "") -> Answer:
    blobs = "".join(f"<Blob><Name>{name}</Name><Properties><Etag>x</Etag></Properties></Blob>" for name in names)
    text = f'\ufeff<?xml version="1.0" encoding="utf-8"?><EnumerationResults ServiceEndpoint="x"><Blobs>{blobs}</Blobs>'
    return status(200, f"{text}<NextMarker>{marker}</NextMarker></EnumerationResults>".encode())


def store(server: ScriptedServer, login: AzureLogin | None = None, seconds: float = 2.0) -> AzureBlob:
    container = Address("127.0.0.1", server.port, False, "/lab1/group")
    return AzureBlob(container, TlsFiles(), login or SasLogin(lambda: SAS), timeout_seconds=seconds)


def fault_of(request: Callable[[], object]) -> StoreFault:
    with pytest.raises(StoreFault) as caught:
        request()
    for secret in (SAS, "SecretSignature", TOKEN):
        assert secret not in str(caught.value)
    return caught.value


def one_answer(given_answer: Answer, request: Callable[[AzureBlob], object]) -> Any:
    with ScriptedServer(given_answer) as server, closing(store(server)) as blobs:
        return request(blobs)


def swap(blobs: AzureBlob) -> str | None:
    return blobs.swap(KEY, VALUE, ETAG)


def remove(blobs: AzureBlob) -> str | None:
    return blobs.swap(KEY, None, ETAG)


# What is sent


def test_requests() -> None:
    with ScriptedServer(FOUND, CREATED, CREATED, status(202), listing()) as server, closing(store(server)) as blobs:
        assert blobs.read(KEY) == StoredValue(VALUE, ETAG)
        assert blobs.swap(KEY, VALUE, "") == ETAG
        assert swap(blobs) == ETAG
        assert remove(blobs) == ""
        assert blobs.list("forewarn/") == []
        assert blobs.name == f"Azure Blob at 127.0.0.1:{server.port}/lab1/group"
    read, create, change, removal, listed = server.requests
    assert [request.method for request in server.requests] == ["GET", "PUT", "PUT", "DELETE", "GET"]
    assert {request.target for request in server.requests[:4]} == {f"/lab1/group/{KEY}?{SAS}"}
    assert listed.target == f"/lab1/group?restype=container&comp=list&prefix=forewarn%2F&{SAS}"
    assert (create.headers["if-none-match"], create.headers.get("if-match")) == ("*", None)
    assert create.headers["x-ms-blob-type"] == "BlockBlob"
    for request in (change, removal):
        assert (request.headers.get("if-none-match"), request.headers["if-match"]) == (None, ETAG)
    assert (create.body, read.body, removal.body) == (VALUE, b"", b"")
    for request in server.requests:
        assert request.headers["x-ms-version"] == "2021-12-02"
        assert request.headers["x-ms-date"].endswith(" GMT")
    assert server.connections == 1


def test_the_name_of_an_account() -> None:
    address = Address("web.blob.core.windows.net", 443, True, "/group")
    assert AzureBlob(address, TlsFiles(), SasLogin(str)).name == "Azure Blob at web.blob.core.windows.net/group"


# Answers


def test_nothing_is_there() -> None:
    assert one_answer(error(404, "BlobNotFound"), lambda blobs: blobs.read(KEY)) == StoredValue(None, "")


@pytest.mark.parametrize(
    "changed", [error(409, "BlobAlreadyExists"), error(412, "ConditionNotMet"), error(404, "BlobNotFound")]
)
def test_somebody_else_has_changed_it(changed: Answer) -> None:
    assert one_answer(changed, swap) is None
    assert one_answer(changed, remove) is None


@pytest.mark.parametrize(
    ("refused", "unsure", "lasting", "says"),
    [
        (error(403, "AuthenticationFailed"), False, True, "the login is not accepted"),
        (error(403, "AuthorizationPermissionMismatch"), False, True, "the login may not do this. The SAS must"),
        (error(403, "UnauthorizedBlobOverwrite"), False, True, "the login may not replace a blob"),
        (error(404, "ContainerNotFound"), False, True, "there is no such container"),
        (error(404, ""), False, True, "answered 404."),
        (error(409, "ContainerBeingDeleted"), False, False, "the container is being deleted"),
        (error(412, "LeaseIdMissing"), False, False, "somebody holds a lease"),
        (error(400, SAS), False, True, "answered 400."),
        (error(302, ""), True, True, "answered 302."),
        (error(500, "InternalError"), True, False, "answered 500."),
        (error(503, "ServerBusy"), True, False, "it is too busy"),
    ],
)
def test_errors(refused: Answer, unsure: bool, lasting: bool, says: str) -> None:
    for request in (swap, remove, lambda blobs: blobs.read(KEY), lambda blobs: blobs.list("forewarn/")):
        fault = one_answer(refused, lambda blobs, request=request: fault_of(lambda: request(blobs)))  # type: ignore[misc]  # of a lambda
        assert says in str(fault)
        assert fault.lasting == lasting
        assert fault.unsure == (unsure and request in (swap, remove))


@pytest.mark.parametrize("etag", ["", "0x8D1", 'W/"0x8D1"', '"0x8\u00e4"', "*"])
def test_an_etag_that_cannot_be_used(etag: str) -> None:
    headers = {"ETag": etag} if etag else {}
    fault = one_answer(status(200, VALUE, headers), lambda blobs: fault_of(lambda: blobs.read(KEY)))
    assert (fault.kind, fault.unsure) == (GARBAGE, False)
    fault = one_answer(status(201, b"", headers), lambda blobs: fault_of(lambda: swap(blobs)))
    assert (fault.kind, fault.unsure) == (GARBAGE, True)


@pytest.mark.parametrize(
    "lost", [raw(b"", end="close"), raw(b"", end="reset"), raw(b"", delay=9), status(200), status(500)]
)
@pytest.mark.parametrize("request_made", [swap, remove])
def test_sent_write_is_never_repeated(lost: Answer, request_made: Callable[[AzureBlob], object]) -> None:
    with ScriptedServer(lost) as server, closing(store(server, seconds=0.3)) as blobs:
        assert fault_of(lambda: request_made(blobs)).unsure
    assert len(server.requests) == 1


# Lists


def test_a_list_in_parts() -> None:
    parts = [listing("forewarn/c", "forewarn/a", marker="2!next/="), listing("forewarn/b")]
    with ScriptedServer(*parts) as server, closing(store(server)) as blobs:
        assert blobs.list("forewarn/") == ["forewarn/a", "forewarn/b", "forewarn/c"]
    assert server.requests[1].target.endswith(f"&prefix=forewarn%2F&marker=2%21next%2F%3D&{SAS}")


def test_a_list_without_an_end_is_bounded() -> None:
    with ScriptedServer(listing(marker="again")) as server:
        address = Address("127.0.0.1", server.port, False, "/group")
        with closing(AzureBlob(address, TlsFiles(), SasLogin(lambda: SAS), whole_seconds=0.3)) as blobs:
            started = time.monotonic()
            assert "took longer" in str(fault_of(lambda: blobs.list("forewarn/")))
            assert time.monotonic() - started < 8


def test_endless_list_is_too_large() -> None:
    names = [f"forewarn/{number:030}" for number in range(6000)]
    fault = one_answer(listing(*names, marker="again"), lambda blobs: fault_of(lambda: blobs.list("forewarn/")))
    assert fault.kind == TOO_LARGE


BOMB = b'<!DOCTYPE a [<!ENTITY b "bbbbbbbbbb"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]><EnumerationResults>&c;'


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"<a/>",
        b"<EnumerationResults/>",
        b"\xff",
        BOMB,
        BOMB.decode().encode("utf-16"),
        b"<EnumerationResults>" + b"<a>" * 100_000,
        b"<a>" * 100_000 + b"</a>" * 100_000,
    ],
)
def test_a_list_that_cannot_be_read(body: bytes) -> None:
    fault = one_answer(status(200, body), lambda blobs: fault_of(lambda: blobs.list("forewarn/")))
    assert (fault.kind, fault.lasting) == (GARBAGE, False)


def test_a_list_of_other_blobs() -> None:
    assert "other blobs" in str(one_answer(listing("x"), lambda blobs: fault_of(lambda: blobs.list("forewarn/"))))


WORDS = """
    <EnumerationResults> </EnumerationResults> <Blobs> </Blobs> <Blob> </Blob> <Blobs/> <Name>forewarn/a</Name> <Name/>
    <NextMarker/> <!-- --> &amp; &x; <![CDATA[ ]]> a
"""
XML = st.lists(st.sampled_from(WORDS.split()), max_size=10).map(lambda words: "".join(words).encode())
CODES = st.sampled_from(["BlobNotFound", "ConditionNotMet", "BlobAlreadyExists", "ContainerNotFound", "x", SAS])


@given(
    st.sampled_from([200, 201, 202, 206, 302, 400, 401, 403, 404, 408, 409, 412, 429, 500, 503]),
    st.binary(max_size=40) | XML,
    st.none() | CODES,
    st.sampled_from([None, ETAG, "x"]),
)
def test_any_answer_is_a_value_or_fault(
    chaos: tuple[AnsweringServer, list[Answer]], code: int, body: bytes, name: str | None, etag: str | None
) -> None:
    server, answers = chaos
    headers = {"x-ms-error-code": name, "ETag": etag}
    answers[0] = status(code, body, {key: value for key, value in headers.items() if value is not None})
    requests: dict[str, Callable[[AzureBlob], object]] = {
        "read": lambda blobs: blobs.read(KEY),
        "list": lambda blobs: blobs.list("forewarn/"),
        "swap": swap,
        "remove": remove,
    }
    for what, request in requests.items():
        with closing(store(server)) as blobs:
            try:
                result: Any = request(blobs)
            except StoreFault as fault:
                text, unsure = str(fault), fault.unsure
                assert not (unsure and what in ("read", "list"))
                assert "Secret" not in text
                continue
        if what == "read":
            assert result in (StoredValue(body, ETAG), StoredValue(None, ""))
            assert code == (200 if result.version else 404)
        elif what == "list":
            assert code == 200
        elif result is None:
            assert name in ("BlobNotFound", "ConditionNotMet", "BlobAlreadyExists")
            assert code in (404, 409, 412)
        else:
            assert (code, result) == ((201, ETAG) if what == "swap" else (202, ""))


# Logins


def test_sas_is_read_again_when_refused() -> None:
    texts = [SAS, f"?{SAS}x\n".strip(), f"{SAS}x"]
    refused = error(403, "AuthenticationFailed")
    server = ScriptedServer(refused, CREATED, refused)
    with server, closing(store(server, SasLogin(lambda: texts.pop(0)))) as blobs:
        assert swap(blobs) == ETAG
        fault = fault_of(lambda: swap(blobs))
    assert [request.target[-2:] for request in server.requests] == ["3D", "Dx", "Dx"], "the same is not tried again"
    assert (fault.kind, fault.status, fault.lasting, fault.unsure) == (LOGIN, 403, True, False)


@pytest.mark.parametrize("text", ["", "sv=1&sr=c", f"{SAS} x", f"{SAS}#x", f"{SAS}\u00e4", f"https://a.b/c?{SAS}"])
def test_a_text_that_is_no_sas(text: str) -> None:
    with ScriptedServer(FOUND) as server, closing(store(server, SasLogin(lambda: text))) as blobs:
        fault = fault_of(lambda: swap(blobs))
        assert "the secret is not a SAS" in str(fault)
    assert (fault.lasting, fault.unsure, server.requests) == (True, False, [])


class Identity:
    """The endpoint of an identity, and a container that takes the last of its tokens."""

    def __init__(self, **changed: Any) -> None:
        self.tokens: list[str] = []
        self.fields: dict[str, Any] = {"expires_in": "86399", "expires_on": str(int(time.time()) + 86_399), **changed}
        self.broken: Answer | None = None
        self.endpoint = AnsweringServer(self._give)
        self.container = AnsweringServer(self._take)

    def _give(self, request: Request) -> Answer:
        assert request.headers["metadata"] == "true"
        if self.broken is not None:
            return self.broken
        self.tokens.append(f"{TOKEN}.{len(self.tokens)}")
        return status(200, json.dumps({"access_token": self.tokens[-1], **self.fields}).encode())

    def _take(self, request: Request) -> Answer:
        if request.headers["authorization"] != f"Bearer {self.tokens[-1]}":
            return error(401, "InvalidAuthenticationInfo")
        return CREATED if request.method == "PUT" else FOUND

    def __enter__(self) -> Identity:
        self.endpoint.__enter__()
        self.container.__enter__()
        self.blobs = store(self.container, IdentityLogin(f"{self.endpoint.url}/vm/web_0", "id&1"))
        return self

    def __exit__(self, *_: object) -> None:
        self.blobs.close()
        self.endpoint.__exit__(None, None, None)
        self.container.__exit__(None, None, None)


def test_a_token_is_kept_until_it_is_refused() -> None:
    with Identity() as identity:
        for _ in range(3):
            assert identity.blobs.read(KEY).value == VALUE
        assert len(identity.tokens) == 1
        identity.tokens.append("another")  # so that the container no longer takes that token
        assert swap(identity.blobs) == ETAG
    assert len(identity.tokens) == 3
    assert identity.endpoint.requests[0].target == (
        "/vm/web_0/metadata/identity/oauth2/token?api-version=2018-02-01"
        "&resource=https%3A%2F%2Fstorage.azure.com%2F&client_id=id%261"
    )
    assert identity.endpoint.connections == 1


@pytest.mark.parametrize(
    ("changed", "logins"),
    [
        ({"expires_in": "3600"}, 1),
        ({"expires_on": "1000"}, 3),
        ({"expires_in": "0"}, 3),
        ({"expires_in": 3600, "expires_on": None}, 1),
        ({"expires_in": "", "expires_on": str(int(time.time()) + 9999)}, 1),
    ],
)
def test_a_token_is_renewed_before_its_end(changed: dict[str, Any], logins: int) -> None:
    with Identity(**changed) as identity:
        for _ in range(3):
            identity.blobs.read(KEY)
    assert len(identity.tokens) == logins


def test_token_is_used_while_it_cannot_be_renewed(monkeypatch: pytest.MonkeyPatch) -> None:
    with Identity(expires_in="1000") as identity:
        identity.blobs.read(KEY)
        identity.broken = status(500)
        for later, works in ((600, True), (900, True), (1100, False)):
            now = time.monotonic()
            with monkeypatch.context() as patch:
                patch.setattr(
                    "forewarn.runner.groups.azure_login.time.monotonic", lambda now=now, later=later: now + later
                )
                identity.blobs._whole_seconds = identity.blobs._attempt_seconds = later + 5.0  # its clock is ahead, too
                if works:
                    assert identity.blobs.read(KEY).value == VALUE
                else:
                    assert "gave no token" in str(fault_of(lambda: identity.blobs.read(KEY)))
        assert len(identity.endpoint.requests) == 3, "none at first, then one each"


@pytest.mark.parametrize(
    ("broken", "lasting"),
    [
        (status(400, b'{"error": "invalid_request", "error_description": "Identity not found"}'), True),
        (status(404), False),
        (status(429), False),
        (status(200, b"<html>"), False),
        (status(200, b"[]"), False),
        (status(200, b'{"access_token": 5, "expires_in": "5"}'), False),
        (status(200, b'{"access_token": "a\\nb", "expires_in": "5"}'), False),
        (status(200, b'{"access_token": "token.of-the-test"}'), False),
        (raw(b"", end="close"), False),
    ],
)
def test_no_token(broken: Answer, lasting: bool) -> None:
    with Identity() as identity:
        identity.broken = broken
        fault = fault_of(lambda: swap(identity.blobs))
    assert (fault.unsure, fault.lasting) == (False, lasting)
    assert identity.container.requests == []


def test_an_endpoint_that_is_not_well_formed() -> None:
    with pytest.raises(InputError, match="https"):
        IdentityLogin("https://127.0.0.1")
