# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What etcd is asked, at which endpoint, and what becomes of each answer that was measured, and of garbage."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest
from forewarn.imds.errors import GARBAGE
from forewarn.runner.groups.address import Address
from forewarn.runner.groups.etcd import Etcd
from forewarn.runner.groups.store import LOGIN, LOST_DATA, StoredValue, StoreFault
from hypothesis import given
from hypothesis import strategies as st
from tools.servers.listener_client import free_port
from tools.servers.scripted_imds import Answer, AnsweringServer, Request, ScriptedServer, raw, status

KEY, VALUE = "forewarn/web/slots", b"value"
PASSWORD, TOKEN = "pass-word-of-the-test", "token-of-the-test.1"
HEADER = {"cluster_id": "14841639068965178418", "member_id": "10276657743932975437", "revision": "7", "raft_term": "2"}


def b64(data: bytes | str) -> str:
    return base64.b64encode(data.encode() if isinstance(data, str) else data).decode()


def answer(code: int = 200, /, **body: Any) -> Answer:
    return status(code, json.dumps(body).encode())


def row(key: str = KEY, value: bytes = VALUE, **changed: Any) -> dict[str, Any]:
    return {
        "key": b64(key),
        "create_revision": "3",
        "mod_revision": "5",
        "version": "2",
        "value": b64(value),
        **changed,
    }


def found(*rows: Any, **changed: Any) -> Answer:
    body: dict[str, Any] = {"header": HEADER, "kvs": list(rows), "count": str(len(rows)), **changed}
    return answer(**{name: value for name, value in body.items() if value is not None})


NOTHING_FOUND = answer(header=HEADER)
SWAPPED = answer(header=HEADER, succeeded=True, responses=[{"response_put": {"header": {"revision": "7"}}}])
NOT_SWAPPED = answer(header=HEADER)
LOGGED_IN = answer(header=HEADER, token=TOKEN)
INVALID_TOKEN = answer(401, error="etcdserver: invalid auth token", message="etcdserver: invalid auth token", code=16)


def store(*servers: ScriptedServer | int, seconds: float = 2.0, user: bool = False) -> Etcd:
    ports = [server if isinstance(server, int) else server.port for server in servers]
    login: dict[str, Any] = {"user": "vm", "password": lambda: PASSWORD} if user else {}
    return Etcd([Address("127.0.0.1", port, False, "") for port in ports], timeout_seconds=seconds, **login)


def swap(etcd: Etcd) -> str | None:
    return etcd.swap(KEY, VALUE, "5")


def fault_of(request: Callable[[], object]) -> StoreFault:
    with pytest.raises(StoreFault) as caught:
        request()
    assert PASSWORD not in str(caught.value)
    assert TOKEN not in str(caught.value)
    return caught.value


def one_answer(given_answer: Answer, request: Callable[[Etcd], object]) -> Any:
    with ScriptedServer(given_answer) as server, closing(store(server)) as etcd:
        return request(etcd)


# What is sent


def test_requests() -> None:
    with ScriptedServer(NOT_SWAPPED) as server, closing(store(server)) as etcd:
        etcd.read(KEY)
        etcd.list("forewarn/")
        etcd.swap(KEY, VALUE, "")
        etcd.swap(KEY, None, "5")
        assert etcd.name == f"etcd at 127.0.0.1:{server.port}"
    read, listed, put, remove = (json.loads(request.body) for request in server.requests)
    assert read == {"key": b64(KEY)}
    assert listed == {"key": b64("forewarn/"), "range_end": b64("forewarn0"), "keys_only": True}
    compare = {"key": b64(KEY), "target": "MOD", "result": "EQUAL"}
    assert put == {
        "compare": [{**compare, "mod_revision": "0"}],
        "success": [{"request_put": {"key": b64(KEY), "value": b64(VALUE)}}],
    }
    assert remove == {
        "compare": [{**compare, "mod_revision": "5"}],
        "success": [{"request_delete_range": {"key": b64(KEY)}}],
    }
    assert [request.target for request in server.requests] == ["/v3/kv/range"] * 2 + ["/v3/kv/txn"] * 2
    assert {request.headers["accept"] for request in server.requests} == {"application/json"}
    assert server.connections == 1


# Answers


def test_answers_to_a_read() -> None:
    assert one_answer(found(row()), lambda etcd: etcd.read(KEY)) == StoredValue(VALUE, "5")
    assert one_answer(NOTHING_FOUND, lambda etcd: etcd.read(KEY)) == StoredValue(None, "")
    without_value = {name: part for name, part in row().items() if name != "value"}
    assert one_answer(found(without_value), lambda etcd: etcd.read(KEY)) == StoredValue(b"", "5")


def test_answers_to_a_list() -> None:
    rows = [row("forewarn/b"), row("forewarn/a")]
    assert one_answer(found(*rows), lambda etcd: etcd.list("forewarn/")) == ["forewarn/a", "forewarn/b"]
    assert one_answer(NOTHING_FOUND, lambda etcd: etcd.list("forewarn/")) == []


def test_answers_to_a_swap() -> None:
    assert one_answer(SWAPPED, swap) == "7"
    assert one_answer(NOT_SWAPPED, swap) is None
    removed = answer(header=HEADER, succeeded=True, responses=[{"response_delete_range": {"deleted": "1"}}])
    assert one_answer(removed, lambda etcd: etcd.swap(KEY, None, "5")) == ""


@pytest.mark.parametrize(
    ("garbage", "says"),
    [
        (status(200, b"<html>"), "is not JSON"),
        (status(200, b"[" * 100_000), "is not JSON"),
        (status(200, b"\xff\xfe"), "is not JSON"),
        (status(200, b"[]"), "is not an object"),
        (status(200, b"{}"), "has no header"),
        (found(row(), header={}), "has no cluster_id"),
        (found(row(), header={**HEADER, "revision": 7}), "has no revision"),
        (found(row(), header={**HEADER, "revision": "-7"}), "has no revision"),
        (found(row("forewarn/other")), "is about another key"),
        (found(row(), row()), "is about another key"),
        (found({**row(), "key": "!"}), "has a key that is not base64"),
        (found({**row(), "value": "!"}), "has a value that is not base64"),
        (found({**row(), "value": 5}), "has a value that is not base64"),
        (found({**row(), "key": b64(b"\xff")}), "has a key that is not ASCII"),
        (found(row(mod_revision="0")), "has no mod_revision"),
        (found(row(mod_revision=5)), "has no mod_revision"),
        (found("row"), "has no list of keys"),
        (found(kvs={}), "has no list of keys"),
        (found(row(), count="2"), "lacks some of the keys"),
        (found(kvs=None, count="1"), "lacks some of the keys"),
        (found(row(), more=True), "lacks some of the keys"),
    ],
)
def test_read_with_an_unusable_answer_is_a_fault(garbage: Answer, says: str) -> None:
    fault = one_answer(garbage, lambda etcd: fault_of(lambda: etcd.read(KEY)))
    assert says in str(fault)
    assert (fault.kind, fault.unsure, fault.lasting) == (GARBAGE, False, False)


@pytest.mark.parametrize(
    "garbage",
    [status(200, b"<html>"), status(200, b"{}"), answer(header=HEADER, succeeded="true"), answer(succeeded=True)],
)
def test_swap_with_an_unusable_answer_is_unsure(garbage: Answer) -> None:
    fault = one_answer(garbage, lambda etcd: fault_of(lambda: swap(etcd)))
    assert (fault.kind, fault.unsure) == (GARBAGE, True)


@pytest.mark.parametrize(
    ("code", "error", "unsure", "lasting", "says"),
    [
        (400, "etcdserver: user name is empty", False, True, "wants a user and a password"),
        (400, "etcdserver: something else", False, True, "answered 400"),
        (403, "etcdserver: permission denied", False, True, "does not let the user read or write this key"),
        (404, "Not Found", False, True, "Is this the client port of etcd"),
        (429, "etcdserver: mvcc: database space exceeded", False, False, "has no space left"),
        (302, "", True, True, "answered 302"),
        (408, "context canceled", True, False, "answered 408"),
        (500, "etcdserver: request timed out", True, False, "found no majority of the members in time"),
        (503, "etcdserver: no leader", True, False, "knows no leader"),
        (503, "rpc error: code = Unavailable", True, False, "answered 503"),
        (504, "", True, False, "answered 504"),
    ],
)
def test_errors(code: int, error: str, unsure: bool, lasting: bool, says: str) -> None:
    refused = answer(code, error=f"{error} {PASSWORD}", message=error, code=1)
    of_swap = one_answer(refused, lambda etcd: fault_of(lambda: swap(etcd)))
    of_read = one_answer(refused, lambda etcd: fault_of(lambda: etcd.read(KEY)))
    assert (of_swap.unsure, of_read.unsure) == (unsure, False)
    for fault in (of_swap, of_read):
        assert says in str(fault)
        assert (fault.status, fault.lasting) == (code, lasting)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["7", b64(KEY), ""]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["header", "kvs", "key", "value", "mod_revision", "count", "succeeded", "token", "revision"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
BODIES = st.one_of(
    st.binary(max_size=60),
    JSON.map(lambda value: json.dumps(value).encode()),
    st.builds(
        lambda value: json.dumps({"header": HEADER, **value}).encode(),
        st.dictionaries(
            st.sampled_from(["kvs", "count", "succeeded", "more", "responses"]), JSON | st.just([row()]), max_size=4
        ),
    ),
)


@given(st.sampled_from([200, 200, 200, 201, 302, 400, 401, 403, 404, 408, 409, 429, 500, 503]), BODIES, st.booleans())
def test_any_answer_is_a_value_or_fault(
    chaos: tuple[AnsweringServer, list[Answer]], code: int, body: bytes, user: bool
) -> None:
    server, answers = chaos
    answers[0] = status(code, body)
    for request in ("read", "list", "swap"):
        with closing(store(server, user=user)) as etcd:
            try:
                result: Any = {"read": lambda: etcd.read(KEY), "list": lambda: etcd.list("forewarn/")}.get(
                    request, lambda: swap(etcd)
                )()
            except StoreFault as fault:
                unsure = fault.unsure
                assert not (unsure and request != "swap")
                continue
        assert code == 200
        if request == "swap" and result is not None:
            assert json.loads(body)["succeeded"] is True
            assert result == HEADER["revision"] or result == json.loads(body)["header"]["revision"]
        if request == "read" and result.value is None:
            assert not json.loads(body).get("kvs")


# Which endpoint is asked


def test_read_switches_endpoints_and_stays() -> None:
    broken = answer(503, error="etcdserver: no leader")
    with (
        ScriptedServer(broken) as first,
        ScriptedServer(found(row())) as second,
        closing(store(free_port(), first, second)) as etcd,
    ):
        for _ in range(3):
            assert etcd.read(KEY).value == VALUE
    assert (len(first.requests), len(second.requests)) == (1, 3)


def test_unsent_swap_uses_the_next_endpoint() -> None:
    with ScriptedServer(SWAPPED) as server, closing(store(free_port(), server)) as etcd:
        assert swap(etcd) == "7"
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "lost",
    [
        raw(b"", end="close"),
        raw(b"", end="reset"),
        raw(b"", delay=9),
        raw(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{", end="close"),
        status(200, b"{}"),
        answer(500),
        answer(503, error="etcdserver: request timed out"),
    ],
)
def test_sent_swap_is_never_repeated(lost: Answer) -> None:
    with (
        ScriptedServer(lost) as first,
        ScriptedServer(SWAPPED) as second,
        closing(store(first, second, seconds=0.3)) as etcd,
    ):
        assert fault_of(lambda: swap(etcd)).unsure
        assert (len(first.requests), len(second.requests)) == (1, 0)
        assert swap(etcd) == "7", "the next request begins with the other endpoint"


def test_no_endpoint_answers() -> None:
    ports = [free_port(), free_port()]
    with closing(store(*ports)) as etcd:
        fault = fault_of(lambda: swap(etcd))
    assert str(fault) == "; ".join(f"127.0.0.1:{port} refused the connection" for port in ports) + "."
    assert (fault.unsure, fault.lasting) == (False, False)


def test_the_whole_request_is_bounded() -> None:
    silent = [ScriptedServer(raw(b"", delay=9)) for _ in range(4)]
    with silent[0], silent[1], silent[2], silent[3]:
        etcd = Etcd(
            [Address("127.0.0.1", server.port, False, "") for server in silent], timeout_seconds=0.2, whole_seconds=0.5
        )
        with closing(etcd):
            fault = fault_of(lambda: etcd.read(KEY))
    assert str(fault).count("took longer") == 3
    assert [len(server.requests) for server in silent] == [1, 1, 1, 0]


# Logins


def member(tokens: list[str], seen: list[str]) -> Callable[[Request], Answer]:
    """Return a member that knows the last of the tokens, and makes another at each login."""

    def choose(request: Request) -> Answer:
        seen.append(request.target)
        if request.target.endswith("authenticate"):
            assert json.loads(request.body) == {"name": "vm", "password": PASSWORD}
            assert "authorization" not in request.headers
            tokens.append(f"{TOKEN}.{len(tokens)}")
            return answer(header=HEADER, token=tokens[-1])
        if request.headers.get("authorization") != tokens[-1]:
            return INVALID_TOKEN
        return SWAPPED if request.target.endswith("txn") else found(row())

    return choose


LOGIN_TARGET, READ, WRITE = "/v3/auth/authenticate", "/v3/kv/range", "/v3/kv/txn"


def test_login_serves_many_requests_and_is_renewed() -> None:
    tokens: list[str] = []
    seen: list[str] = []
    with AnsweringServer(member(tokens, seen)) as server, closing(store(server, user=True)) as etcd:
        etcd.read(KEY)
        assert swap(etcd) == "7"
        tokens.append("another")  # so that the member no longer knows that token
        assert swap(etcd) == "7"
    assert seen == [LOGIN_TARGET, READ, WRITE, WRITE, LOGIN_TARGET, WRITE]


@pytest.mark.parametrize("code", [400, 401])
def test_refused_token_is_a_fault(code: int) -> None:
    invalid = answer(code, error="etcdserver: invalid auth token", code=16)
    with ScriptedServer(LOGGED_IN, invalid) as server, closing(store(server, user=True)) as etcd:
        fault = fault_of(lambda: swap(etcd))
    assert (fault.kind, fault.unsure, fault.lasting) == (LOGIN, False, False)
    assert len(server.requests) == 2


def test_each_endpoint_has_a_token_of_its_own() -> None:
    seen: list[str] = []
    first_tokens, second_tokens = ["first"], ["second"]
    first_server = AnsweringServer(member(first_tokens, seen))
    with (
        AnsweringServer(member(second_tokens, seen)) as second,
        first_server as first,
        closing(store(first, second, user=True)) as etcd,
    ):
        etcd.read(KEY)
        first.__exit__(None, None, None)
        etcd.read(KEY)
    assert seen == [LOGIN_TARGET, READ] * 2
    assert (len(first_tokens), len(second_tokens)) == (2, 2)


@pytest.mark.parametrize(
    ("refused", "lasting"),
    [
        (answer(400, error="etcdserver: authentication failed, invalid user ID or password", code=3), True),
        (answer(400, error="etcdserver: authentication is not enabled", code=9), True),
        (answer(503, error="etcdserver: request timed out"), False),
        (answer(header=HEADER, token=f"{TOKEN}\r\nX: y"), False),
        (answer(header=HEADER), False),
        (status(200, b"<html>"), False),
        (raw(b"", end="close"), False),
    ],
)
def test_a_login_that_fails_leaves_no_write_unsure(refused: Answer, lasting: bool) -> None:
    with ScriptedServer(refused) as server, closing(store(server, user=True)) as etcd:
        fault = fault_of(lambda: swap(etcd))
    assert (fault.unsure, fault.lasting) == (False, lasting)
    assert len(server.requests) == 1


def test_a_password_that_cannot_be_read() -> None:
    def password() -> str:
        raise StoreFault("there is no such file.", kind=LOGIN, lasting=True)

    with ScriptedServer(LOGGED_IN) as server:
        address = Address("127.0.0.1", server.port, False, "")
        with closing(Etcd([address], user="vm", password=password)) as etcd:
            fault = fault_of(lambda: swap(etcd))
        assert (str(fault), fault.unsure, server.requests) == ("there is no such file.", False, [])


# Lost data


@pytest.mark.parametrize("changed", [{"revision": "6"}, {"cluster_id": "1"}])
@pytest.mark.parametrize("succeeded", [True, False])
def test_a_store_that_lost_data(changed: dict[str, str], succeeded: bool) -> None:
    header = {**HEADER, **changed}
    later = [answer(header=header, succeeded=succeeded), found(row(), header=header), found(row())]
    with ScriptedServer(found(row()), *later) as server, closing(store(server)) as etcd:
        assert etcd.read(KEY).value == VALUE
        fault = fault_of(lambda: swap(etcd))
        assert (fault.kind, fault.unsure, fault.lasting) == (LOST_DATA, True, True)
        fault = fault_of(lambda: etcd.read(KEY))
        assert (fault.kind, fault.unsure, fault.lasting) == (LOST_DATA, False, True)
        assert etcd.read(KEY).value == VALUE, "the member has caught up"


def test_member_with_lost_data_is_skipped_by_reads() -> None:
    old = found(row(value=b"old"), header={**HEADER, "revision": "3"})
    with (
        ScriptedServer(found(row()), old) as first,
        ScriptedServer(found(row())) as second,
        closing(store(first, second)) as etcd,
    ):
        assert etcd.read(KEY).value == VALUE
        assert etcd.read(KEY).value == VALUE
    assert (len(first.requests), len(second.requests)) == (2, 1)
