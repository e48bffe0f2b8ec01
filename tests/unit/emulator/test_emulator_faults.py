# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the service answers, without sockets: the instance, faults, the log."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from forewarn.emulator.faults import InjectedFault
from tools.servers.emulator_site import Site


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    site.ask()
    yield site
    site.emulation.close()


# -- instance ----------------------------------------------------------------------------------------------------------


def instance(site: Site, path: str = "", query: str = "?api-version=2021-02-01") -> Any:
    response = site.ask("/metadata/instance" + path + query)
    assert response.status == 200
    return json.loads(response.body)


def test_se14_the_instance_says_who_the_vm_is(site: Site) -> None:
    compute = instance(site)["compute"]
    expected = {
        "name": "web_0",
        "location": "westeurope",
        "zone": "2",
        "vmSize": "Standard_D2s_v5",
        "vmScaleSetName": "web",
        "platformFaultDomain": "1",
        "tags": "env:test;role:front",
        "tagsList": [{"name": "env", "value": "test"}, {"name": "role", "value": "front"}],
    }
    assert {name: compute[name] for name in expected} == expected
    assert json.loads(site.ask("/vm/web_1/metadata/instance?api-version=2021-02-01").body)["compute"]["name"] == "web_1"


def test_parts_of_the_instance(site: Site) -> None:
    assert instance(site, "/compute")["zone"] == "2"
    assert instance(site, "/compute/name") == "web_0"
    response = site.ask("/metadata/instance/compute/name?api-version=2021-02-01&format=text")
    assert response.body == b"web_0"
    assert site.ask("/metadata/instance/compute?api-version=2021-02-01&format=text").status == 400
    assert site.ask("/metadata/instance/compute/nothing?api-version=2021-02-01").status == 404
    assert "tagsList" not in instance(site, "/compute", "?api-version=2017-12-01")


@pytest.mark.parametrize("query", ["", "?api-version=latest", "?api-version=2016-01-01"])
def test_the_instance_wants_header_version_and_get(site: Site, query: str) -> None:
    assert site.ask("/metadata/instance" + query).status == 400
    assert site.ask("/metadata/instance?api-version=2021-02-01", headers={}).status == 400
    assert site.ask("/metadata/instance?api-version=2021-02-01", "POST").status == 405


# -- faults ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [403, 404, 410, 429, 500, 502, 503, 504])
def test_a_fault_of_any_status_for_n_requests(site: Site, status: int) -> None:
    site.emulation.faults.add(InjectedFault("status", status=status, left=2, retry_after=7.0))
    answers = [site.ask() for _ in range(3)]
    assert [answer.status for answer in answers] == [status, status, 200]
    assert answers[0].headers["Retry-After"] == "7"


def test_fault_is_limited_to_time_vm_and_method(site: Site) -> None:
    event = site.schedule()
    fault = InjectedFault("status", until=10.0, vms=("WEB_0",), requests=("post",))
    site.emulation.faults.add(fault)
    assert site.ask().status == 200
    assert site.ask("/metadata/instance?api-version=2021-02-01").status == 200
    body = {"StartRequests": [{"EventId": event}]}
    assert site.ask(method="POST", body=body).status == 503
    assert site.events()[0]["EventStatus"] == "Scheduled", "a refused approval has no effect"
    site.clock.advance(10)
    assert site.ask(method="POST", body=body).status == 200


def test_approval_with_a_lost_answer_takes_effect(site: Site) -> None:
    event = site.schedule()
    site.emulation.faults.add(InjectedFault("drop", left=1, processed=True))
    assert site.ask(method="POST", body={"StartRequests": [{"EventId": event}]}).lost
    assert site.events()[0]["EventStatus"] == "Started"
    assert site.approve(event) == 200


def test_faults_of_the_body(site: Site) -> None:
    site.schedule()
    whole = site.ask().body
    bodies = {}
    for kind in ("empty", "truncated", "garbage", "wrong_json"):
        site.emulation.faults.add(InjectedFault(kind, left=1))
        response = site.ask()
        assert (response.status, "ETag" in response.headers) == (200, False)
        bodies[kind] = response.body
    assert bodies["empty"] == b""
    assert whole.startswith(bodies["truncated"])
    assert 0 < len(bodies["truncated"]) < len(whole)
    for kind in ("truncated", "garbage"):
        with pytest.raises(ValueError, match=r"."):
            json.loads(bodies[kind])
    assert isinstance(json.loads(bodies["wrong_json"]), list)
    site.emulation.faults.add(InjectedFault("cut_off", left=1))
    assert site.ask().fault == "cut_off"


def test_latencies_add_up_and_go_with_another_fault(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    for fault in (
        InjectedFault("latency", latency=3.0),
        InjectedFault("latency", latency=4.0),
        InjectedFault("status"),
        InjectedFault("drop"),
    ):
        site.emulation.faults.add(fault)
    assert site.emulation.faults.take("web_0", "get", 0.0)[0] == 7.0
    waits: list[float] = []
    monkeypatch.setattr(site.emulation, "wait_until", waits.append)
    assert site.ask().status == 503
    assert waits == [7.0]
    site.emulation.faults.clear()
    assert site.ask().status == 200


# -- the log -----------------------------------------------------------------------------------------------------------


def test_log_has_times_requests_and_answers(site: Site) -> None:
    site.clock.advance(5)
    event = site.schedule()
    site.clock.advance(2)
    site.events()
    site.clock.advance(3)
    assert site.approve(event) == 200
    site.ask("/nowhere", headers={"user-agent": "curl"})
    _first, get, post, lost = site.emulation.log.since()
    assert (get.method, get.vm, get.status, get.incarnation, get.api_version) == ("GET", "web_0", 200, 2, "2020-07-01")
    assert (get.received.emulated, get.received.monotonic, get.received.wall) == (7.0, 7.0, 1_800_000_007.0)
    assert (post.event_ids, post.status, post.received.emulated) == ([event], 200, 10.0)
    assert (lost.status, lost.user_agent, lost.path) == (404, "curl", "/nowhere")
    found = site.emulation.model.find(event)
    assert found.visible_since["web_0"].emulated == 5.0
    assert found.approvals[0].at.emulated == 10.0
