# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The bodies of an http hook for services with their own formats: its ``template``, see docs/notifications.md.

Each function turns the JSON of a hook (``commands``) into the body for one service. Lengths are those that the services
accept.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from types import MappingProxyType
from typing import Any, Callable, NamedTuple

from ...events import format_time
from ...texts import exact_text

_ENDED = ("ended", "cancelled")  # occasions
# Alertmanager ends an alert by itself at this time after NotBefore: nothing repeats it.
_ALERT_SECONDS = 86400.0
_RED, _YELLOW, _GREEN, _GREY = 0xC0392B, 0xF1C40F, 0x2ECC71, 0x95A5A6


class EventMessage(NamedTuple):
    """A message as people read it. ``headline`` is one line; ``facts`` are names and texts, none of them empty."""

    headline: str
    facts: tuple[tuple[str, str], ...]
    ended: bool


def render(template: str, content: Mapping[str, Any], now: datetime, host: str) -> Any:
    """Return the body as a JSON value. ``content`` is what a hook reads, ``host`` the name of the machine."""
    return TEMPLATES[template](content, event_message(content), now, host)


def event_message(content: Mapping[str, Any]) -> EventMessage:
    """Return the message about an event."""
    event, decision = content["event"], content["decision"]
    ended = content["occasion"] in _ENDED or content["phase"] == "recover"
    resources = [str(name) for name in event.get("Resources") or ()]
    affected = _listed(resources)
    type_ = event.get("EventType") or "event of unknown type"
    headline = f"{type_}{f' of {affected}' if affected else ''} {_verb(content)}"
    if content["drill"]:
        headline = f"[DRILL] {headline}"
    facts = [
        ("VM", content["vm_name"] or ""),
        ("Not before", "" if ended else event.get("NotBefore") or ""),
        ("Lasts", _duration(event.get("DurationInSeconds"))),
        ("Decision", "" if ended else _decision(decision)),
        ("Reason", "" if ended else decision["reason"] or ""),
        ("Source", event.get("EventSource") or ""),
        ("Description", event.get("Description") or ""),
        ("Event", event.get("EventId") or ""),
    ]
    lines = ((name, _line(str(text))) for name, text in facts)
    return EventMessage(_line(headline), tuple((name, text) for name, text in lines if text), ended)


def _verb(content: Mapping[str, Any]) -> str:
    output = content["decision"]["output"]
    if content["phase"] == "prepare":
        return "is being prepared for"
    if content["phase"] == "recover":
        return "is over: what was prepared is undone"
    if content["occasion"] == "decided":
        return {"approve": "is approved", "hold": "is held"}.get(output, "is scheduled")
    return {"started": "has started", "ended": "is over", "cancelled": "was cancelled"}[content["occasion"]]


def _decision(decision: Mapping[str, Any]) -> str:
    if not decision["output"]:
        return ""
    rule = f" by rule {decision['rule']} of policy {decision['policy']}" if decision["rule"] else ""
    return f"{decision['output']}{rule}"


def _listed(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _duration(seconds: Any) -> str:
    if not isinstance(seconds, (int, float)) or seconds < 0:
        return ""
    return exact_text(seconds)


def _line(text: str) -> str:
    return " ".join(text.split())


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _slack(_content: Mapping[str, Any], message: EventMessage, _now: datetime, _host: str) -> Any:
    """An incoming webhook: https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks."""
    text = message.headline
    for sign, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):  # otherwise <!channel> calls everybody
        text = text.replace(sign, entity)
    fields = [
        {"type": "plain_text", "text": _cut(f"{name}\n{value}", 2000), "emoji": False} for name, value in message.facts
    ]
    blocks: list[dict[str, Any]] = [
        {"type": "header", "text": {"type": "plain_text", "text": _cut(message.headline, 150), "emoji": False}}
    ]
    if fields:
        blocks.append({"type": "section", "fields": fields})  # 10 at most
    return {"text": _cut(text, 3000), "blocks": blocks}


def _teams(_content: Mapping[str, Any], message: EventMessage, _now: datetime, _host: str) -> Any:
    """A workflow that posts what its webhook receives, as an Adaptive Card."""
    color = "good" if message.ended else "attention"
    facts = [{"title": name, "value": _cut(value, 2000)} for name, value in message.facts]
    headline = {
        "type": "TextBlock",
        "text": _cut(message.headline, 500),
        "weight": "bolder",
        "wrap": True,
        "color": color,
    }
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": [headline, {"type": "FactSet", "facts": facts}],
    }
    attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": None, "content": card}
    return {"type": "message", "attachments": [attachment]}


def _discord(content: Mapping[str, Any], message: EventMessage, now: datetime, _host: str) -> Any:
    """A webhook: https://discord.com/developers/docs/resources/webhook#execute-webhook."""
    color = _GREEN if message.ended else _RED if content["occasion"] == "started" else _YELLOW
    # 6000 characters in an embed at most: eight facts and the title.
    fields = [{"name": name, "value": _cut(value, 600), "inline": len(value) < 40} for name, value in message.facts]
    embed = {
        "title": _cut(message.headline, 256),
        "color": _GREY if content["drill"] else color,
        "fields": fields,
        "timestamp": now.astimezone(timezone.utc).isoformat(timespec="seconds"),
    }
    return {"embeds": [embed], "allowed_mentions": {"parse": []}}  # no text of an event calls anybody


def _pagerduty(content: Mapping[str, Any], message: EventMessage, now: datetime, host: str) -> Any:
    """An event of the Events API v2. ``webhook`` adds the routing key, which is a secret."""
    event = content["event"]
    # One incident for an event, whichever of its VMs tells of it, and another one for a drill.
    action = {"event_action": "resolve" if message.ended else "trigger", "dedup_key": _cut(event["EventId"], 255)}
    if message.ended:
        return action
    payload = {
        "summary": _cut(message.headline, 1024),
        "source": content["vm_name"] or host,
        "severity": "info" if content["drill"] else "warning",
        "timestamp": now.astimezone(timezone.utc).isoformat(timespec="milliseconds"),
        "class": event.get("EventType") or "unknown",
        "custom_details": {name: _cut(value, 4000) for name, value in message.facts},
    }
    return {**action, "client": "Forewarn", "payload": payload}


def _alertmanager(content: Mapping[str, Any], message: EventMessage, now: datetime, host: str) -> Any:
    """The alerts of ``POST /api/v2/alerts``. Labels are the alert's identity: what may change is an annotation."""
    event = content["event"]
    labels = {
        "alertname": "ScheduledEvent",
        "severity": "info" if content["drill"] else "warning",
        "instance": host,
        "event_id": event["EventId"],
        "event_type": event.get("EventType") or "unknown",
        "drill": "true" if content["drill"] else "false",
    }
    description = "\n".join(f"{name}: {text}" for name, text in message.facts)
    annotations = {"summary": message.headline, "description": description}
    alert: dict[str, Any] = {"labels": labels, "annotations": annotations}
    if message.ended:
        alert["endsAt"] = format_time(now)
    else:
        left = content["seconds_left"]
        alert["endsAt"] = format_time(now + timedelta(seconds=max(0.0, left or 0.0) + _ALERT_SECONDS))
    return [alert]


TEMPLATES: Mapping[str, Callable[[Mapping[str, Any], EventMessage, datetime, str], Any]] = MappingProxyType(
    {
        "slack": _slack,
        "teams": _teams,
        "discord": _discord,
        "pagerduty": _pagerduty,
        "alertmanager": _alertmanager,
    }
)
