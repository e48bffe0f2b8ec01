# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The client against a scripted server: what it sends, over which connection, how often; and who the VM is."""

from __future__ import annotations

import json

import pytest
from forewarn.errors import InputError
from forewarn.imds import errors
from forewarn.imds.client import Client
from forewarn.imds.errors import PassingFault
from forewarn.imds.limiter import READ_RESERVE
from tools.fixtures.client_bench import EVENT, client_of
from tools.fixtures.clocks import ManualClocks
from tools.servers.listener_client import free_port
from tools.servers.scripted_imds import Answer, ScriptedServer, document, instance, raw, status
from tools.sites.waiting import wait_until

# What is sent


def test_se01_se02_read_has_api_version_and_header() -> None:
    with ScriptedServer(document(EVENT)) as server, client_of(server) as client:
        result = client.read_once()
    assert [event.event_id for event in result.events] == [EVENT["EventId"]]
    (request,) = server.requests
    assert (request.method, request.target) == ("GET", "/metadata/scheduledevents?api-version=2020-07-01")
    assert request.headers["metadata"] == "true"
    assert request.headers["host"] == f"127.0.0.1:{server.port}"
    assert "x-forwarded-for" not in request.headers


def test_read_ahead_is_sent_at_once() -> None:
    with ScriptedServer(document(EVENT), status(200)) as server, client_of(server) as client:
        client.read_ahead()
        server.wait_for_requests(1)
        assert client.limiter.tokens == client.limiter.capacity - 1
        result = client.read_once()
        client.approve([event.event_id for event in result.events])
    assert [request.method for request in server.requests] == ["GET", "POST"]
    assert server.requests[0].headers["metadata"] == "true"
    assert {request.connection for request in server.requests} == {0}


def test_read_ahead_answers_only_a_read() -> None:
    with ScriptedServer(document(EVENT), instance("web_0"), document()) as server, client_of(server) as client:
        client.read_ahead()
        server.wait_for_requests(1)
        assert client.read_instance().name == "web_0"
        assert client.read_once().events == ()
    assert [request.connection for request in server.requests] == [0, 1, 1]


@pytest.mark.parametrize("end", ["close", "reset"])
def test_broken_read_ahead_is_sent_again(end: str) -> None:
    with ScriptedServer(raw(b"", end=end), document(EVENT)) as server, client_of(server) as client:
        client.read_ahead()
        assert len(client.read_once().events) == 1
    assert len(server.requests) == 2


def test_a_read_ahead_without_a_service_says_nothing() -> None:
    client = Client(f"http://127.0.0.1:{free_port()}")
    client.read_ahead()
    with pytest.raises(errors.PassingFault, match="refused"):
        client.read_once()


def test_se02_every_request_has_the_metadata_header() -> None:
    with ScriptedServer(document(EVENT), status(200), instance("web_0")) as server, client_of(server) as client:
        client.read_once()
        client.approve([str(EVENT["EventId"])])
        client.read_instance()
    assert [request.headers.get("metadata") for request in server.requests] == ["true"] * 3
    assert [request.method for request in server.requests] == ["GET", "POST", "GET"]


def test_se30_several_ids_are_sent_as_given() -> None:
    with ScriptedServer(document(), status(200)) as server, client_of(server) as client:
        client.read_once()
        client.approve(["C7061BAC", "b2"], incarnation=7)
    request = server.requests[-1]
    assert request.target == "/metadata/scheduledevents?api-version=2020-07-01"
    assert request.headers["content-type"] == "application/json"
    assert json.loads(request.body) == {"StartRequests": [{"EventId": "C7061BAC"}, {"EventId": "b2"}]}


@pytest.mark.parametrize("incarnation", [7, "7"])
def test_se30_api_versions_of_2017_get_the_incarnation(incarnation: int | str) -> None:
    answers = (document(), status(200))
    with ScriptedServer(*answers, *answers) as server, client_of(server, api_version="2017-11-01") as client:
        client.read_once()
        client.approve(["a"], incarnation)
        client.read_once()
        client.approve(["a"])
    assert json.loads(server.requests[1].body)["DocumentIncarnation"] == incarnation
    assert "DocumentIncarnation" not in json.loads(server.requests[3].body)


def test_empty_approval_is_a_defect() -> None:
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
        client.read_instance()
    assert server.requests[0].target.startswith("/vm/web_0/metadata/scheduledevents?")
    assert server.requests[1].target == "/vm/web_0/metadata/instance?api-version=2021-02-01"


def test_se07_proxy_in_the_environment_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    with ScriptedServer(document()) as server, client_of(server) as client:
        client.read_once()
    assert server.requests[0].target.startswith("/metadata/")


@pytest.mark.parametrize("version", ["", "{latest}", "2020-07-01&x=y", "2020-07-01\r\nX: y", "20200701"])
def test_malformed_api_version_is_refused(version: str) -> None:
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
        wait_until(lambda: not _is_kept(client), seconds=5, pause=0.002)
        assert len(client.read_once().events) == 1
    assert [request.connection for request in server.requests] == [0, 1]


@pytest.mark.parametrize("end", ["close", "reset"])
def test_closed_connection_is_replaced_once_for_a_read(end: str) -> None:
    with ScriptedServer(document(), raw(b"", end), document(EVENT)) as server, client_of(server) as client:
        client.read_once()
        assert len(client.read_once().events) == 1
    assert [request.connection for request in server.requests] == [0, 0, 1]


@pytest.mark.parametrize("end", ["close", "reset"])
def test_new_connection_without_an_answer_is_passing(end: str) -> None:
    with ScriptedServer(raw(b"", end)) as server, client_of(server) as client:
        with pytest.raises(PassingFault) as info:
            client.read_once()
        assert info.value.kind == errors.CONNECTION
        assert len(server.requests) == 1


def test_unsolicited_bytes_are_no_answer() -> None:
    unasked = document(EVENT)
    both = Answer((document().pieces[0], unasked.pieces[0]), pause=0.05)
    with ScriptedServer(both, document()) as server, client_of(server) as client:
        client.read_once()
        wait_until(lambda: not _is_kept(client), seconds=5, pause=0.002)
        assert client.read_once().events == ()


def _is_kept(client: Client) -> bool:
    connected = client._transport._connection.sock
    return connected is not None and connected.is_idle()


def test_se10_equal_answer_is_the_same_document() -> None:
    answers = [document(EVENT), document(EVENT), document(), document(EVENT)]
    with ScriptedServer(*answers) as server, client_of(server) as client:
        first, same, empty, again = (client.read_once() for _ in answers)
    assert same is first
    assert [len(read.events) for read in (first, empty, again)] == [1, 0, 1]


# The request budget


def test_budget_limits_bursts_and_reserves_an_approval() -> None:
    clocks = ManualClocks()
    with ScriptedServer(document()) as server, client_of(server, clocks=clocks) as client:
        for _ in range(4):
            client.read_once()
        assert clocks.pauses == []
        assert client.limiter.delay(READ_RESERVE) == pytest.approx(1)
        client.approve(["a"])
        assert clocks.pauses == []
        client.read_once()
        assert sum(clocks.pauses) == pytest.approx(2)


def test_a_request_sent_again_is_paid_for_again() -> None:
    with ScriptedServer(document(), raw(b"", "close"), document()) as server, client_of(server) as client:
        client.read_once()
        client.read_once()
        assert len(server.requests) == 3
        assert client.limiter.tokens == pytest.approx(2)


# Identity


def test_se14_the_identity_of_the_vm() -> None:
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
        vm = client.read_instance()
    assert (vm.name, vm.location, vm.zone, vm.size) == ("web_0", "westeurope", None, "Standard_D2s_v5")
    assert (vm.scale_set, vm.fault_domain, vm.tags) == ("web", "2", {"team": "blue", "a;b": "c:d"})


def test_unknown_identity_is_no_error() -> None:
    server = ScriptedServer(status(200, b'{"compute": {"name": 5, "zone": null, "tagsList": {}}}'))
    with server, client_of(server) as client:
        vm = client.read_instance()
    assert (vm.name, vm.zone, vm.tags) == ("5", None, None)


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"\xff"])
def test_an_unreadable_identity_is_a_passing_fault(body: bytes) -> None:
    with ScriptedServer(status(200, body)) as server, client_of(server) as client, pytest.raises(PassingFault) as info:
        client.read_instance()
    assert info.value.kind == errors.GARBAGE
