# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the service answers, without sockets: versions, headers, validation, approvals."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator

import pytest
from forewarn.emulator.clock import ManualClock
from forewarn.emulator.emulation import Emulation, Scenario
from forewarn.emulator.service import HttpRequest, HttpResponse, Service
from forewarn.emulator.spec import EventSpec, VmSpec
from forewarn.events import API_VERSIONS, FIELD_SINCE, parse_document
from tools.servers.emulator_site import GUID, HEADERS, Site


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    site.ask()
    yield site
    site.emulation.close()


# -- versions ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", API_VERSIONS)
def test_each_version_has_its_fields_and_types(site: Site, version: str) -> None:
    """SE-03, "What each version added"."""
    for event_type in ("Freeze", "Preempt", "Terminate"):
        site.schedule(event_type, resources=("web_0",))
    found = {event["EventType"]: event for event in site.events(version)}
    expected = {"Freeze"}
    expected |= {"Preempt"} if version >= "2017-11-01" else set()
    expected |= {"Terminate"} if version >= "2019-01-01" else set()
    assert set(found) == expected
    assert set(found["Freeze"]) == {name for name, since in FIELD_SINCE.items() if since <= version}
    assert found["Freeze"]["Resources"] == (["_web_0"] if version == "2017-03-01" else ["web_0"])


@pytest.mark.parametrize("version", API_VERSIONS)
def test_own_parser_finds_no_problem_in_any_version(site: Site, version: str) -> None:
    site.schedule("Freeze")
    site.clock.advance(1000)
    site.schedule("Freeze", source="User", description="")
    document = parse_document(site.ask(f"/metadata/scheduledevents?api-version={version}").body, version)
    assert document.problems == ()
    assert [event.problems for event in document.events] == [(), ()]
    assert document.events[0].not_before is None
    assert [event.resources for event in document.events] == [("web_0", "web_1")] * 2


def test_only_names_of_iaas_resources_have_the_underscore(site: Site) -> None:
    """And only in 2017-03-01; a role instance of a classic cloud service is not an IaaS resource."""
    scenario = Scenario((VmSpec("web_0"), VmSpec("role_IN_0", cloud_service=True)))
    emulation = Emulation(scenario, site.clock)
    service = Service(emulation)
    emulation.model.schedule(EventSpec("Reboot", ("web_0", "role_IN_0")))
    for version in API_VERSIONS:
        body = service.handle(HttpRequest("GET", f"/metadata/scheduledevents?api-version={version}", HEADERS)).body
        first = "_web_0" if version == "2017-03-01" else "web_0"
        assert json.loads(body)["Events"][0]["Resources"] == [first, "role_IN_0"]
        (event,) = parse_document(body, version).events
        assert [event.place_of(name) for name in ("web_0", "role_IN_0", "_web_0")] == [0, 1, None]
    emulation.close()


def test_the_recorded_document() -> None:
    """The document of the recorded sequence, field by field and in that order."""
    site = Site()
    site.clock = site.emulation.clock = ManualClock(1649715118.0)
    site.emulation.model.clock = site.clock
    site.ask()
    site.schedule("Freeze", event_id=GUID, notice=900.0, duration=5)
    assert site.ask().body.decode() == (
        '{"DocumentIncarnation": 2, "Events": [{"EventId": "C7061BAC-AFDC-4513-B24B-AA5F13A16123", '
        '"EventStatus": "Scheduled", "EventType": "Freeze", "ResourceType": "VirtualMachine", '
        '"Resources": ["web_0", "web_1"], "NotBefore": "Mon, 11 Apr 2022 22:26:58 GMT", "Description": '
        '"Virtual machine is being paused because of a memory-preserving Live Migration operation.", '
        '"EventSource": "Platform", "DurationInSeconds": 5}]}'
    )


@pytest.mark.parametrize("version", API_VERSIONS)
def test_se16_not_before_as_each_version_spells_it(site: Site, version: str) -> None:
    site.schedule()
    expected = "2027-01-15T08:15:00Z" if version == "2017-03-01" else "Fri, 15 Jan 2027 08:15:00 GMT"
    assert site.events(version)[0]["NotBefore"] == expected
    site.clock.advance(900)
    assert site.events(version)[0]["NotBefore"] == ""


def test_se10_incarnation_follows_each_versions_own_array(site: Site) -> None:
    def look() -> dict[str, tuple[int, object]]:
        answers = {}
        for version in API_VERSIONS:
            body = json.loads(site.ask(f"/metadata/scheduledevents?api-version={version}").body)
            answers[version] = (body["DocumentIncarnation"], body["Events"])
        return answers

    def risen(before: dict[str, tuple[int, object]], after: dict[str, tuple[int, object]]) -> set[str]:
        for version in API_VERSIONS:
            same_array = before[version][1] == after[version][1]
            assert (before[version][0] == after[version][0]) is same_array
            assert before[version][0] <= after[version][0]
        return {version for version in API_VERSIONS if before[version][0] < after[version][0]}

    started = look()
    site.schedule("Terminate", resources=("web_0",))
    terminating = look()
    assert risen(started, terminating) == {"2019-01-01", "2019-04-01", "2019-08-01", "2020-07-01"}
    site.schedule("Preempt", resources=("web_0",), notice=200.0)
    evicting = look()
    assert risen(terminating, evicting) == set(API_VERSIONS) - {"2017-03-01", "2017-08-01"}
    site.schedule("SpotRebalanceRecommendation")
    recommended = look()
    assert risen(evicting, recommended) == {"2020-07-01"}
    site.schedule("Reboot", notice=100.0)
    rebooting = look()
    assert risen(recommended, rebooting) == set(API_VERSIONS)
    site.clock.advance(100)
    started_to_reboot = look()
    assert risen(rebooting, started_to_reboot) == set(API_VERSIONS)
    site.clock.advance(100)
    evicted = look()
    assert risen(started_to_reboot, evicted) == set(API_VERSIONS) - {"2017-03-01", "2017-08-01"}
    assert evicted["2017-03-01"][0] == 3


def test_se10_incarnation_ignores_overridden_changes(site: Site) -> None:
    """For example a status that a wrong service never changes: the array is the same, and so is its number."""
    site.schedule("Reboot", notice=10.0, fields={"EventStatus": "Scheduled", "NotBefore": None})
    before = site.ask().body
    site.clock.advance(10)
    assert site.ask().body == before


def test_se16_both_spellings_of_not_before() -> None:
    for spelling, text in (("rfc1123", "Fri, 15 Jan 2027 08:15:00 GMT"), ("iso8601", "2027-01-15T08:15:00Z")):
        site = Site(not_before_format=spelling)
        site.schedule()
        assert [site.events(version)[0]["NotBefore"] for version in API_VERSIONS] == [text] * len(API_VERSIONS)
        site.clock.advance(900)
        assert site.events()[0]["NotBefore"] == ""


def test_fields_can_be_made_wrong(site: Site) -> None:
    site.schedule(fields={"DurationInSeconds": "30", "Description": None, "Shiny": [1]})
    (event,) = site.events()
    assert event["DurationInSeconds"] == "30"
    assert "Description" not in event
    assert event["Shiny"] == [1]


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("headers", [{}, {"metadata": ""}, {"metadata": "false"}, {"metadata": "1"}])
def test_se02_without_the_header_400(site: Site, method: str, headers: dict[str, str]) -> None:
    event = site.schedule()
    body = {"StartRequests": [{"EventId": event}]}
    assert site.ask(method=method, headers=headers, body=body).status == 400
    assert site.events()[0]["EventStatus"] == "Scheduled"


def test_se02_preview_version_needs_no_header(site: Site) -> None:
    assert site.ask("/metadata/scheduledevents?api-version=2017-03-01", headers={}).status == 200
    assert site.ask("/metadata/scheduledevents?api-version=2017-08-01", headers={}).status == 400
    assert site.ask(headers={"metadata": "True"}).status == 200


@pytest.mark.parametrize(
    "query",
    [
        "",
        "?",
        "?api-version=",
        "?api-version={latest}",
        "?api-version=2021-01-01",
        "?api-version=2020-07-01&api-version=2020-07-01",
        "?API-VERSION=2020-07-01",
    ],
)
def test_se03_invalid_api_version_is_400(site: Site, query: str) -> None:
    response = site.ask("/metadata/scheduledevents" + query)
    assert response.status == 400
    assert "api-version" in json.loads(response.body)["error"]


def test_an_unknown_api_version_can_be_404() -> None:
    site = Site(unknown_version_status=404)
    assert site.ask("/metadata/scheduledevents?api-version=2031-01-01").status == 404
    assert site.ask("/metadata/scheduledevents").status == 400


def test_se07_x_forwarded_for_is_refused(site: Site) -> None:
    forwarded = {**HEADERS, "x-forwarded-for": "10.0.0.1"}
    for target in ("/metadata/scheduledevents?api-version=2020-07-01", "/metadata/instance?api-version=2021-02-01"):
        assert site.ask(target, headers=forwarded).status == 400


@pytest.mark.parametrize(
    "path", ["/", "/metadata", "/metadata/scheduledevents/", "/metadata/scheduledevent", "/vm", "/vm/web_0", "//["]
)
def test_other_paths_404(site: Site, path: str) -> None:
    assert site.ask(path + "?api-version=2020-07-01").status == 404


@pytest.mark.parametrize("method", ["PUT", "DELETE", "HEAD", "PATCH", "OPTIONS"])
def test_other_methods_405(site: Site, method: str) -> None:
    response = site.ask(method=method)
    assert (response.status, response.headers["Allow"]) == (405, "GET, POST")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff",
        b"[]",
        b"null",
        b"{}",
        b'{"StartRequests": []}',
        b'{"StartRequests": {}}',
        b'{"StartRequests": ["x"]}',
        b'{"StartRequests": [{}]}',
        b'{"StartRequests": [{"EventId": 1}]}',
        b'{"StartRequests": [{"EventId": ""}]}',
        b'{"startRequests": [{"EventId": "%s"}]}' % GUID.encode(),
        b'{"DocumentIncarnation": null, "StartRequests": [{"EventId": "%s"}]}' % GUID.encode(),
        b"[" * 100_000,
    ],
)
def test_se31_a_malformed_body_400(site: Site, body: bytes) -> None:
    site.schedule(event_id=GUID)
    assert site.ask(method="POST", body=body).status == 400
    assert site.events()[0]["EventStatus"] == "Scheduled"


# -- approving ---------------------------------------------------------------------------------------------------------


def test_se31_unknown_event_id_is_400(site: Site) -> None:
    event = site.schedule()
    assert site.approve(event, GUID) == 400
    assert site.events()[0]["EventStatus"] == "Scheduled"
    site.emulation.model.cancel(event)
    assert site.approve(event) == 400


@pytest.mark.parametrize("incarnation", [2, "2", 99, "an old one"])
def test_se30_incarnation_in_a_body_is_ignored(site: Site, incarnation: object) -> None:
    assert site.approve(site.schedule(), DocumentIncarnation=incarnation) == 200
    assert site.events()[0]["EventStatus"] == "Started"


@pytest.mark.parametrize("content_type", ["application/json", "application/x-www-form-urlencoded", "nonsense", None])
def test_se30_any_content_type(site: Site, content_type: str | None) -> None:
    event = site.schedule()
    headers = HEADERS if content_type is None else {**HEADERS, "content-type": content_type}
    body = {"StartRequests": [{"EventId": event.lower()}, {"EventId": event}]}
    assert site.ask(method="POST", body=body, headers=headers).status == 200
    assert len(site.emulation.model.find(event).approvals) == 1


# -- who asks ----------------------------------------------------------------------------------------------------------


def test_the_path_or_the_port_identifies_the_vm(site: Site) -> None:
    event = site.schedule("Terminate", resources=("web_1",))
    query = "/metadata/scheduledevents?api-version=2020-07-01"
    assert site.events() == []
    assert len(site.events(prefix="/vm/web_1")) == 1
    assert len(site.events(prefix="/vm/WEB%5F1")) == 1
    assert len(json.loads(site.ask(query, vm="web_1").body)["Events"]) == 1
    assert site.ask("/vm/web_9" + query).status == 404
    body = {"StartRequests": [{"EventId": event}]}
    assert site.ask(query, "POST", body).status == 400
    assert site.ask("/vm/web_1" + query, "POST", body).status == 200


# -- etag, rate, first call --------------------------------------------------------------------------------------------


def test_if_none_match_304(site: Site) -> None:
    tag = site.ask().headers["ETag"]
    for header in (tag, f'"x", W/{tag}', "*"):
        response = site.ask(headers={**HEADERS, "if-none-match": header})
        assert (response.status, response.body) == (304, b"")
    site.schedule()
    response = site.ask(headers={**HEADERS, "if-none-match": tag})
    assert response.status == 200
    assert response.headers["ETag"] != tag


def test_the_etag_distinguishes_documents_of_one_number(site: Site) -> None:
    """A day of silence resets DocumentIncarnation: the same number then means another content."""
    event = site.schedule()
    site.emulation.model.switch_off()
    first = site.ask()
    site.emulation.model.cancel(event)
    site.emulation.model.switch_off()
    site.schedule()
    second = site.ask()
    assert json.loads(first.body)["DocumentIncarnation"] == json.loads(second.body)["DocumentIncarnation"] == 2
    assert first.headers["ETag"] != second.headers["ETag"]
    assert "ETag" not in Site(etag=False).ask().headers


def test_more_than_five_requests_a_second_429() -> None:
    site = Site(requests_per_second=5)
    assert [site.ask().status for _ in range(6)] == [200] * 5 + [429]
    assert site.ask("/vm/web_1/metadata/scheduledevents?api-version=2020-07-01").status == 200, "each VM has its own"
    assert site.ask("/metadata/instance?api-version=2021-02-01").status == 429, "shared with all other metadata"
    site.real = 0.999
    assert site.ask().status == 429
    site.real = 1.0
    assert site.ask().status == 200
    assert [entry.status for entry in site.emulation.log.since()].count(429) == 3


def test_se05_the_first_answer_takes_its_time() -> None:
    site = Site(first_response=120.0, first_events=300.0)
    answers: list[HttpResponse] = []
    thread = threading.Thread(target=lambda: answers.append(site.ask()))
    thread.start()
    while not site.emulation.model.transitions:  # enabled
        thread.join(0.001)
    assert answers == []
    with site.emulation.lock:
        site.clock.advance(120)
        site.emulation.lock.notify_all()
    thread.join(10)
    assert [answer.status for answer in answers] == [200]
    site.schedule()
    assert site.events() == []
    site.clock.advance(180)
    assert len(site.events()) == 1
