# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What people are told by the templates of http hooks, and what the services accept."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from forewarn.events import Event
from forewarn.policy.decision import HTTP_TEMPLATES
from forewarn.runner.hooks import commands, webhook
from forewarn.runner.hooks.commands import HookContext, HookSettings
from forewarn.runner.hooks.templates import TEMPLATES, event_message, render
from hypothesis import given
from hypothesis import strategies as st
from tools.servers.webhooks import Webhook

NOW = datetime(2026, 5, 4, 11, 50, tzinfo=timezone.utc)
EVENT = {
    "EventId": "C7061BAC",
    "EventType": "Reboot",
    "Resources": ["web_0", "web_1"],
    "NotBefore": "2026-05-04T12:00:00Z",
    "EventSource": "Platform",
    "Description": "Virtual machine is <rebooted>",
    "DurationInSeconds": -1,
}
DECISION = {"output": "hold", "policy": "web", "rule": "office", "reason": "it is office time"}
CONTENT: dict[str, Any] = {
    "phase": "notify",
    "occasion": "decided",
    "attempt": 1,
    "drill": False,
    "event": EVENT,
    "vm_name": "web_0",
    "decision": DECISION,
    "outcome": None,
    "seconds_left": 600.0,
}
OCCASIONS = ["decided", "started", "ended", "cancelled"]


def body(template: str, **content: Any) -> Any:
    return render(template, {**CONTENT, **content}, NOW, "web-host")


def test_every_template_of_a_policy_can_be_rendered() -> None:
    assert tuple(TEMPLATES) == HTTP_TEMPLATES


def test_message_has_what_an_operator_needs() -> None:
    message = event_message(CONTENT)
    assert message.headline == "Reboot of web_0, web_1 is held"
    assert dict(message.facts) == {
        "VM": "web_0",
        "Not before": "2026-05-04T12:00:00Z",
        "Decision": "hold by rule office of policy web",
        "Reason": "it is office time",
        "Source": "Platform",
        "Description": "Virtual machine is <rebooted>",
        "Event": "C7061BAC",
    }


@pytest.mark.parametrize(
    ("content", "headline"),
    [
        ({"occasion": "started"}, "Reboot of web_0, web_1 has started"),
        ({"occasion": "ended", "drill": True}, "[DRILL] Reboot of web_0, web_1 is over"),
        ({"occasion": "cancelled", "event": {"EventId": "E"}}, "event of unknown type was cancelled"),
        ({"decision": {**DECISION, "output": "approve"}}, "Reboot of web_0, web_1 is approved"),
        ({"event": {**EVENT, "Resources": list("abcde")}}, "Reboot of a, b, c and 2 more is held"),
        ({"phase": "prepare", "occasion": None}, "Reboot of web_0, web_1 is being prepared for"),
        ({"phase": "recover", "occasion": None}, "Reboot of web_0, web_1 is over: what was prepared is undone"),
    ],
)
def test_the_headline_says_what_has_happened(content: dict[str, Any], headline: str) -> None:
    assert event_message({**CONTENT, **content}).headline == headline


def test_slack_text_is_escaped_and_mentions_nobody() -> None:
    message = body("slack", event={**EVENT, "EventType": "<!channel> & co"})
    assert message["text"] == "&lt;!channel&gt; &amp; co of web_0, web_1 is held"
    assert message["blocks"][0]["text"]["text"] == "<!channel> & co of web_0, web_1 is held"
    assert {block["text"]["type"] for block in message["blocks"][:1]} == {"plain_text"}
    assert {"type": "plain_text", "text": "VM\nweb_0", "emoji": False} in message["blocks"][1]["fields"]


def test_teams_gets_an_adaptive_card() -> None:
    message = body("teams")
    (attachment,) = message["attachments"]
    assert message["type"] == "message"
    assert attachment["contentType"] == "application/vnd.microsoft.card.adaptive"
    card = attachment["content"]
    assert (card["type"], card["body"][0]["text"]) == ("AdaptiveCard", "Reboot of web_0, web_1 is held")
    assert {"title": "Reason", "value": "it is office time"} in card["body"][1]["facts"]


def test_discord_gets_an_embed_that_calls_nobody() -> None:
    message = body("discord")
    assert message["allowed_mentions"] == {"parse": []}
    (embed,) = message["embeds"]
    assert embed["title"] == "Reboot of web_0, web_1 is held"
    assert embed["timestamp"] == "2026-05-04T11:50:00+00:00"


def test_pagerduty_opens_and_resolves_one_incident() -> None:
    messages = [body("pagerduty", occasion=occasion) for occasion in OCCASIONS]
    assert [message["event_action"] for message in messages] == ["trigger", "trigger", "resolve", "resolve"]
    assert {message["dedup_key"] for message in messages} == {"C7061BAC"}
    payload = messages[0]["payload"]
    assert (payload["source"], payload["severity"]) == ("web_0", "warning")
    assert payload["summary"] == "Reboot of web_0, web_1 is held"
    assert body("pagerduty", drill=True, vm_name=None)["payload"]["source"] == "web-host"
    assert body("pagerduty", drill=True)["payload"]["severity"] == "info"


def test_alert_keeps_its_labels_until_it_ends() -> None:
    alerts = [body("alertmanager", occasion=occasion, vm_name=None)[0] for occasion in OCCASIONS]
    assert len({json.dumps(alert["labels"]) for alert in (*alerts, body("alertmanager")[0])}) == 1
    assert [alert["endsAt"] for alert in alerts] == ["2026-05-05T12:00:00Z"] * 2 + ["2026-05-04T11:50:00Z"] * 2
    assert "Reason: it is office time" in alerts[0]["annotations"]["description"]


_TEXTS = st.text(max_size=8000)


@given(
    st.sampled_from(OCCASIONS),
    st.fixed_dictionaries(
        {"EventId": st.text(min_size=1, max_size=256)},
        optional={
            "EventType": _TEXTS,
            "Resources": st.lists(_TEXTS, max_size=5),
            "Description": _TEXTS,
            "DurationInSeconds": st.integers(),
        },
    ),
    st.none() | _TEXTS,
)
def test_nothing_is_longer_than_a_service_accepts(occasion: str, event: dict[str, Any], reason: str | None) -> None:
    content = {"occasion": occasion, "event": event, "decision": {**DECISION, "reason": reason}}
    slack = body("slack", **content)
    assert len(slack["blocks"][0]["text"]["text"]) <= 150
    fields = [field["text"] for block in slack["blocks"][1:] for field in block["fields"]]
    assert len(fields) <= 10
    assert all(0 < len(text) <= 2000 for text in fields)
    (embed,) = body("discord", **content)["embeds"]
    assert len(embed["title"]) <= 256
    assert all(0 < len(field["value"]) <= 1024 for field in embed["fields"])
    assert len(embed["title"]) + sum(len(field["name"] + field["value"]) for field in embed["fields"]) <= 6000
    assert len(json.dumps(body("teams", **content), ensure_ascii=False).encode("utf-8", "replace")) <= 64 * 1024
    pagerduty = body("pagerduty", **content)
    assert len(pagerduty["dedup_key"]) <= 255
    assert len(pagerduty.get("payload", {}).get("summary", "")) <= 1024
    assert "\n" not in slack["text"]


def test_the_routing_key_is_in_the_body_alone(tmp_path: Path) -> None:
    secret = tmp_path / "key"
    secret.write_text("0123456789abcdef0123456789abcdef\n")
    secret.chmod(0o600)
    with Webhook() as server:
        hook = {"http": server.url, "template": "pagerduty", "bearer": {"file": str(secret)}}
        event = Event("C7061BAC", event_type="Reboot")
        why = HookContext("notify", "decided", 1, False, event, "web_0", {"output": "hold"}, None, None, 0)
        command = commands.command(hook, why, HookSettings(), 5.0)
        assert b"0123456789abcdef" not in command.stdin
        settings, _line, content = command.stdin.partition(b"\n")
        assert webhook.deliver(json.loads(settings), content) == (1, "answered 200", None)
        (request,) = server.requests
    assert "authorization" not in request.headers
    found = json.loads(request.body)
    assert found["routing_key"] == "0123456789abcdef0123456789abcdef"
    assert (found["event_action"], found["dedup_key"]) == ("trigger", "C7061BAC")
