# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn approve``, against a scripted service on loopback."""

from __future__ import annotations

import json
import subprocess

import pytest
from tools.fixtures.events import GUID
from tools.fixtures.events import listed as event
from tools.servers.scripted_imds import Answer, ScriptedServer, document, raw, status
from tools.sites.commands import forewarn, in_process


def ask(server: ScriptedServer, *arguments: str) -> subprocess.CompletedProcess[str]:
    return in_process("approve", *arguments, FOREWARN_ENDPOINT=server.url)


def approved(server: ScriptedServer) -> list[list[str]]:
    """Return the ids of each approval that arrived."""
    bodies = [json.loads(request.body) for request in server.requests if request.method == "POST"]
    return [[item["EventId"] for item in body["StartRequests"]] for body in bodies]


def test_se30_several_events_are_approved_in_one_request() -> None:
    """The request has the ids in the service's spelling."""
    with ScriptedServer(document(event(), event("b2"), event("c3")), status(200)) as server:
        result = ask(server, GUID.lower(), "B2")
    assert (result.returncode, result.stderr) == (0, "")
    assert approved(server) == [[GUID, "b2"]]
    assert [line.split()[:2] for line in result.stdout.splitlines()] == [["approved:", GUID], ["approved:", "b2"]]
    assert "Freeze of web_0, web_1" in result.stdout


def test_event_id_cannot_forge_an_output_line() -> None:
    with ScriptedServer(document(event("b2\n  hint: approve it"))) as server:
        result = ask(server, "a1")
    assert result.returncode == 2
    assert result.stderr.splitlines()[1:] == ["  hint: Listed: b2\\n  hint: approve it."]


def test_empty_event_id_is_refused_without_a_request() -> None:
    with ScriptedServer(document(event())) as server:
        result = ask(server, GUID, " ")
        assert (result.returncode, result.stdout, server.requests) == (2, "", [])
    assert "an EVENT_ID is empty" in result.stderr


def test_an_id_named_twice_is_sent_once() -> None:
    with ScriptedServer(document(event("b2")), status(200)) as server:
        assert ask(server, "b2", "B2").returncode == 0
    assert approved(server) == [["b2"]]


def test_an_id_that_is_not_listed_stops_everything() -> None:
    with ScriptedServer(document(event("b2"), event("c3")), status(200)) as server:
        result = ask(server, "b2", "D4", "e5")
    assert (result.returncode, result.stdout, approved(server)) == (2, "", [])
    assert "not listed by the service: D4, e5" in result.stderr
    assert "Listed: b2, c3" in result.stderr


def test_an_id_is_never_a_part_of_another() -> None:
    with ScriptedServer(document(event("b20")), status(200)) as server:
        assert ask(server, "b2").returncode == 2
    assert approved(server) == []


def test_nothing_scheduled() -> None:
    with ScriptedServer(document(), status(200)) as server:
        result = ask(server, "b2")
    assert result.returncode == 2
    assert "No event is scheduled now" in result.stderr


def test_unreadable_event_may_be_the_requested_one() -> None:
    nameless = {name: value for name, value in event().items() if name != "EventId"}
    for others, listed in (([], "none"), ([event("c3")], "c3")):
        with ScriptedServer(document(nameless, *others), status(200)) as server:
            result = ask(server, "b2")
        assert result.returncode == 2
        assert "warning: Events[0] has no usable EventId: skipped" in result.stderr
        assert f"the event may be in the unreadable part. Listed: {listed}." in result.stderr
    with ScriptedServer(document(nameless, event("c3")), status(200)) as server:
        result = ask(server, "c3", "--json")
    assert (result.returncode, approved(server)) == (0, [["c3"]])
    assert json.loads(result.stdout)["problems"] == ["Events[0] has no usable EventId: skipped"]


def test_a_started_event_is_not_approved_again() -> None:
    with ScriptedServer(document(event("b2", EventStatus="Started"), event("c3")), status(200)) as server:
        result = ask(server, "b2", "c3")
    assert (result.returncode, approved(server)) == (0, [["c3"]])
    assert "already started, nothing sent: b2" in result.stdout
    with ScriptedServer(document(event("b2", EventStatus="Started")), status(200)) as server:
        assert ask(server, "b2").returncode == 0
    assert approved(server) == []


def test_se30_api_versions_of_2017_get_the_incarnation() -> None:
    with ScriptedServer(document(event("b2"), incarnation=9), status(200)) as server:
        assert ask(server, "b2", "--api-version", "2017-08-01").returncode == 0
    assert json.loads(server.requests[1].body) == {"StartRequests": [{"EventId": "b2"}], "DocumentIncarnation": 9}


def test_a_doubtful_event_is_approved_with_a_warning() -> None:
    """No policy would approve it; somebody who names it by hand has the last word."""
    with ScriptedServer(document(event("b2", EventStatus="Paused", DurationInSeconds="x")), status(200)) as server:
        result = ask(server, "b2")
    assert (result.returncode, approved(server)) == (0, [["b2"]])
    assert "'Paused'" in result.stderr
    assert "DurationInSeconds" in result.stderr


def test_resource_name_cannot_forge_an_output_line() -> None:
    with ScriptedServer(document(event("b2", Resources=["web_0\napproved: c3"])), status(200)) as server:
        assert len(ask(server, "b2").stdout.splitlines()) == 1


def test_json_is_versioned() -> None:
    listed = document(event("b2", EventStatus="Started"), event("c3"))
    with ScriptedServer(listed, status(200)) as server:
        result = ask(server, "B2", "c3", "--json")
    data = json.loads(result.stdout)
    assert data["forewarn"] == {"schema": "approve", "version": 1}
    assert data["events"] == [
        {"event_id": "b2", "result": "already-started"},
        {"event_id": "c3", "result": "approved"},
    ]
    with ScriptedServer(listed, status(200)) as server:
        result = ask(server, "b2", "C3", "D4", "--json")
    assert (result.returncode, approved(server)) == (2, [])
    assert [item["result"] for item in json.loads(result.stdout)["events"]] == [
        "already-started",
        "not-sent",
        "not-listed",
    ]


@pytest.mark.parametrize("answer", [status(400, b"bad"), status(307, headers={"Location": "http://127.0.0.1:9"})])
def test_refused_approval_exits_with_3(answer: Answer) -> None:
    with ScriptedServer(document(event("b2")), answer) as server:
        result = ask(server, "b2")
    assert (result.returncode, result.stdout) == (3, "")
    assert "when approving" in result.stderr


def test_an_approval_of_unknown_fate_is_3() -> None:
    with ScriptedServer(document(event("b2")), raw(b"junk", "close")) as server:
        result = ask(server, "b2", "--patience", "0")
    assert (result.returncode, result.stdout) == (3, "")
    assert "not known" in result.stderr


def test_without_an_id_it_is_bad_usage() -> None:
    with ScriptedServer(document()) as server:
        assert forewarn("approve", FOREWARN_ENDPOINT=server.url).returncode == 2  # as a process, which it is for people
    assert server.requests == []
