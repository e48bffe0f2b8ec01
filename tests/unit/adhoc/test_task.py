# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The control node decides on exactly what a VM reads; nothing is lost on the way, least of all a doubt."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from forewarn.adhoc import task
from forewarn.adhoc.decisions import assess, decide_and_approve, read, summary
from forewarn.compiler.policies import load_policies
from forewarn.errors import InputError
from forewarn.events import Document, Event, Vm, format_time, parse_document
from forewarn.imds import azure
from forewarn.policy.approval import SEND, Eligibility
from forewarn.policy.decision import Decision, Facts
from forewarn.policy.engine import PolicySet
from hypothesis import given, settings
from hypothesis import strategies as st
from tools.servers.scripted_imds import ScriptedServer, document, instance, raw, status
from tools.suite.sizes import examples

_NOW = datetime(2026, 1, 31, 15, 4, 5, 123456, timezone.utc)
_NAMES = st.sampled_from(["web_0", "WEB_0", "web_1", "_db", "ünïcode", ""])
_ANYTHING = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=8))
_FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "EventId": st.sampled_from(["a1", "A1", "b2", "C7061BAC-AFDC-4513-B24B-AA5F13A16123"]),
    "EventType": st.sampled_from(["Freeze", "Terminate", "SpotRebalanceRecommendation", ""]),
    "EventStatus": st.sampled_from(["Scheduled", "Started", "Completed"]),
    "ResourceType": st.just("VirtualMachine"),
    "Resources": st.lists(_NAMES, max_size=3),
    "NotBefore": st.sampled_from(
        ["", "Mon, 19 Sep 2016 18:29:47 GMT", "2026-01-31T15:19:05.5+01:00", "9999-12-31T23:59:59Z", "soon"]
    ),
    "Description": st.text(max_size=8),
    "EventSource": st.sampled_from(["Platform", "User", "Nobody"]),
    "DurationInSeconds": st.sampled_from([-1, 0, 9, "5", 5.5, 2**70]),
    "Later": _ANYTHING,
}
_EVENTS = st.lists(
    st.fixed_dictionaries({}, optional={name: st.one_of(usual, _ANYTHING) for name, usual in _FIELDS.items()}),
    max_size=3,
)
_DOCUMENTS = st.fixed_dictionaries({"DocumentIncarnation": _ANYTHING, "Events": _EVENTS})


@settings(deadline=None, max_examples=examples(300))
@given(content=_DOCUMENTS, name=st.sampled_from([None, "web_0"]), version=st.sampled_from(["2017-03-01", "2020-07-01"]))
def test_control_node_reads_what_the_vm_read(content: dict[str, Any], name: str | None, version: str) -> None:
    document = parse_document(json.dumps(content), version)
    vm = Vm(name=name, tags={"tier": "web"})
    result = {
        "api_version": version,
        "read_at": format_time(_NOW),
        "document_incarnation": document.incarnation,
        "events": [task.describe_event(event, vm.name, _NOW) for event in document.events],
        "vm": vm._asdict(),
        "problems": list(document.problems),
    }
    reading = read(json.loads(json.dumps(result)))
    assert reading.document == document._replace(events=tuple(event._replace(extra={}) for event in document.events))
    assert reading.facts == Facts(now=_NOW, vm=vm)


def test_what_is_approved_is_what_was_decided_on(tmp_path: Path) -> None:
    """A document that has changed meanwhile is decided on again, three times at most."""
    (tmp_path / "all.yml").write_text("name: all\ndescription: All.\nrule: {match: [{id: a, output: approve}]}\n")
    policies = PolicySet(load_policies([tmp_path / "all.yml"]))
    item = {"EventId": "a", "EventType": "Freeze", "EventStatus": "Scheduled", "Resources": ["web_0"]}
    events = parse_document(json.dumps({"Events": [item]})).events
    listed = [task.describe_event(event, "web_0", _NOW) for event in events]
    answer: dict[str, Any] = {"api_version": "2020-07-01", "read_at": format_time(_NOW), "events": listed}
    answer |= {"document_incarnation": 7, "events_digest": "d", "vm": {"name": "web_0"}, "problems": [], "approved": []}

    def ask(*approvals: dict[str, Any]) -> tuple[list[Any], Callable[[Mapping[str, Any]], dict[str, Any]]]:
        asked: list[Any] = []
        left = iter(approvals)

        def answered(more: Mapping[str, Any]) -> dict[str, Any]:
            asked.append(dict(more))
            return {**answer, **next(left)} if more else dict(answer)

        return asked, answered

    approval = {"approve": ["a"], "events_digest": "d", "document_incarnation": "7"}
    superseded = {"failed": True, "superseded": True}
    asked, answered = ask(superseded, {"approved": ["a"]})
    result = decide_and_approve(policies, answered, True, False)
    assert asked == [{}, approval, {}, approval]
    assert result["msg"].startswith("Freeze a: approved by all")
    asked, answered = ask(superseded, superseded, superseded)
    result = decide_and_approve(policies, answered, True, False)
    assert (result["failed"], asked) == (True, [{}, approval] * 3)
    assert "The document changed 3 times between deciding and approving. Nothing was approved." in result["msg"]
    asked, answered = ask()
    assert decide_and_approve(policies, answered, False, False)["decisions"][0]["output"] == "approve"
    assert asked == [{}], "without apply nothing is approved"


def test_prepare_hooks_are_left_to_the_runner() -> None:
    """Otherwise an approval without a drain would be the most common mistake."""
    event = Event("a1", "Reboot", resources=("web_0",), event_status="Scheduled")
    plain = Decision(event, "approve", "web", "drain", "because")
    facts = Facts(now=_NOW, vm=Vm(name="web_0"))
    assert assess(plain, facts).send
    hooked = assess(plain._replace(prepare=({"run": ["/bin/true"]},)), facts)
    assert (hooked.send, hooked.code) == (False, "needs-runner")
    assert hooked.reason == "rule drain has hooks to run before the approval, which only the runner on the VM does"
    started = plain._replace(event=event._replace(event_status="Started"), prepare=({"run": ["/bin/true"]},))
    assert assess(started, facts).code == "started"


def test_the_summary_stays_one_short_line() -> None:
    events = [Event(f"id{number}", "Freeze", event_status="Scheduled") for number in range(5)]
    decisions = [Decision(event, "hold", "web", "calm", "not now") for event in events]
    eligibilities = [Eligibility("refused-by-policy", "not now")] * 5
    assert summary(decisions, eligibilities, [], False) == (
        "Freeze id0: hold by web, rule calm (not now); Freeze id1: hold by web, rule calm (not now); "
        "Freeze id2: hold by web, rule calm (not now); and 2 more"
    )
    assert summary([], [], [], False) == "nothing is scheduled"


def test_the_summary_names_a_rule_once() -> None:
    """Without an explanation of its own a rule's reason begins with its name."""
    event = Event(event_id="a", event_type="Freeze")
    reason = "rule brief applies: event.DurationInSeconds < 9"
    decision = Decision(event, "approve", "web", "brief", reason)
    its = Eligibility(SEND, reason)
    text = summary([decision], [its], ["a"], False)
    assert text == f"Freeze a: approved by web ({reason})"


def test_ids_ignore_case_and_keep_the_services_spelling() -> None:
    """SE-11."""
    document = Document(2, (Event("AB"), Event("cd")))
    events, unknown = task.select(document, ["CD", " ab ", "Ab", "ef"])
    assert [event.event_id for event in events] == ["cd", "AB"]
    assert unknown == ["ef"]


def test_doubts_name_problems_and_unknown_status() -> None:
    event = Event("a1", "Freeze", event_status="Completed", problems=("NotBefore is odd",))
    assert event.doubts == ["NotBefore is odd", "EventStatus 'Completed' is not known"]
    assert Event("a1", event_status="Scheduled").doubts == []


def test_an_approval_without_an_answer_may_have_arrived() -> None:
    params = {name: option.get("default") for name, option in task.ARGUMENTS.items()}
    listed = document({"EventId": "a1", "EventType": "Freeze", "EventStatus": "Scheduled", "Resources": ["web_0"]})
    gone = [raw(b"", "close"), listed, status(503), document()]
    for answers, known in ((gone, False), ([raw(b"", "close"), listed, status(400)], False), ([status(400)], True)):
        with ScriptedServer(listed, instance("web_0"), *answers) as server:
            asked = {**params, "endpoint": server.url, "approve": ["a1"], "patience": 30}
            result = task.perform(asked, False, print)
        assert result["failed"]
        assert len(server.requests) == 2 + len(answers)
        assert ("not known whether the approval of a1 arrived" in result["msg"]) != known


def test_decided_approval_ends_at_not_before() -> None:
    """A person who names an event has the last word."""
    params = {name: option.get("default") for name, option in task.ARGUMENTS.items()}
    passed = {"EventId": "a1", "EventStatus": "Scheduled", "NotBefore": "Mon, 19 Sep 2016 18:29:47 GMT"}
    started = {**passed, "EventStatus": "Started"}
    with ScriptedServer(document(passed), instance("web_0")) as server:
        digest = task.perform({**params, "endpoint": server.url}, False, print)["events_digest"]
    for decided in (False, True):
        answers = [document(passed), document(started)] if decided else [status(200)]
        with ScriptedServer(document(passed), instance("web_0"), *answers) as server:
            asked = {**params, "endpoint": server.url, "approve": ["a1"], "events_digest": digest if decided else None}
            result = task.perform(asked, False, print)
        posts = [request.method for request in server.requests].count("POST")
        assert (posts, "failed" in result) == ((0, True) if decided else (1, False))
        assert ("NotBefore has passed" in result["msg"]) == decided


@pytest.mark.parametrize(("seconds", "events", "warned"), [(95.0, 0, True), (95.0, 1, False), (0.2, 0, False)])
def test_slow_empty_answer_is_warned_about(seconds: float, events: int, warned: bool) -> None:
    """SE-05: the request that switches the service on is answered late, and lists nothing yet."""
    times = iter([0.0, 0.0, *[seconds] * 10])
    warnings: list[str] = []
    params = {name: option.get("default") for name, option in task.ARGUMENTS.items()}
    listed = [{"EventId": "a1", "EventType": "Freeze", "EventStatus": "Scheduled", "Resources": ["web_0"]}] * events
    with ScriptedServer(document(*listed), instance("web_0")) as server:
        params["endpoint"] = server.url
        result = task.perform(params, False, warnings.append, monotonic=lambda: next(times))
    assert "failed" not in result
    assert len(warnings) == warned
    assert all("1 min 35 s" in text and "five minutes" in text for text in warnings)


@pytest.mark.parametrize(
    ("endpoint", "environ", "tag", "warned"),
    [
        (None, {}, "No Asset Tag", True),
        (None, {}, None, True),
        (None, {}, "7783-7084-3265-9085-8269-3286-77", False),
        (None, {"FOREWARN_PLATFORM": "azure"}, None, False),
        (None, {"FOREWARN_ENDPOINT": "http://127.0.0.1:9"}, None, False),
        ("http://127.0.0.1:9", {}, None, False),
    ],
)
def test_unrecognised_platform_is_warned_about(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    endpoint: str | None,
    environ: dict[str, str],
    tag: str | None,
    warned: bool,
) -> None:
    """It goes on all the same. The client is a stub: nobody is asked."""
    asked: list[str] = []

    def client(url: str, *_args: object, **_options: object) -> None:
        asked.append(url)
        raise InputError("nobody is asked")

    monkeypatch.setattr(task, "Client", client)
    monkeypatch.setattr(azure, "ASSET_TAG_PATH", str(tmp_path / "tag"))
    if tag is not None:
        (tmp_path / "tag").write_text(f"{tag}\n")
    warnings: list[str] = []
    params = {name: option.get("default") for name, option in task.ARGUMENTS.items()}
    result = task.perform({**params, "endpoint": endpoint}, False, warnings.append, environ)
    assert result["msg"] == "nobody is asked"
    assert asked == [endpoint or environ.get("FOREWARN_ENDPOINT") or "http://169.254.169.254"]
    assert len(warnings) == warned
    for text in warnings:
        assert "http://169.254.169.254 is asked anyway" in text
        assert "FOREWARN_PLATFORM=azure" in text


def test_unreadable_document_is_not_nothing_ahead() -> None:
    params = {name: option.get("default") for name, option in task.ARGUMENTS.items()}
    event = {"EventId": "a1", "EventType": "Freeze", "EventStatus": "Started", "Resources": ["web_0"]}
    problem = "the document cannot be read in full: Events[0] has no usable EventId: skipped"
    for listed, ahead, msg in (
        ([{}], "unknown: the document cannot be read in full", f"nothing is scheduled that can be read; {problem}"),
        ([{}, event], "Freeze under way, here; and what cannot be read", f"1 event: Freeze Started a1; {problem}"),
    ):
        with ScriptedServer(document(*listed), instance("web_0")) as server:
            result = task.perform({**params, "endpoint": server.url}, False, print)
        assert (result["ahead"], result["msg"]) == (ahead, msg)
    assert summary([], [], [], False, ["x"]) == (
        "nothing is scheduled that can be read; the document cannot be read in full: x"
    )


def test_message_says_when_where_and_what_is_decided() -> None:
    document = {
        "DocumentIncarnation": 2,
        "Events": [
            {"EventId": "a", "EventType": "Freeze", "EventStatus": "Scheduled", "Resources": ["web_0"],
             "NotBefore": "2026-01-31T15:18:05Z"},
            {"EventId": "b", "EventType": "Reboot", "EventStatus": "Started", "Resources": ["web_1"], "NotBefore": ""},
            {"EventId": "c", "EventType": "Redeploy", "EventStatus": "Scheduled", "Resources": ["web_0"],
             "NotBefore": "2026-01-31T15:04:34Z"},
            {"EventId": "d", "EventType": "Terminate", "EventStatus": "Scheduled", "Resources": ["web_0"],
             "NotBefore": "2026-01-31T15:00:00Z"},
        ],
    }  # fmt: skip
    events = parse_document(json.dumps(document)).events
    shown = [task.describe_event(event, "web_0", _NOW) for event in events]
    assert task.ahead(shown) == (
        "Freeze in 14 min, here; Reboot under way, elsewhere; Redeploy in 29 s, here; and 1 more"
    )
    assert task.ahead(shown[3:], ["hold"]) == "Terminate any moment, here: hold"
    unnamed = task.describe_event(events[0], None, _NOW)
    assert task.ahead([unnamed], ["approve, not-ours"]) == "Freeze in 14 min, here?: approve, not-ours"
    assert task.ahead([]) == "nothing"
    assert min("ahead", "ansible_facts", "api_version", "approved", "changed") == "ahead", "the key is printed first"
