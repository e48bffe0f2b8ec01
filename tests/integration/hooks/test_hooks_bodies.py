# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``body`` of http hooks at a real receiver: it gets what CEL says, and a runner sends it on each occasion."""

from __future__ import annotations

import io
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from forewarn.compiler.cel.environment import notification_declarations, policy_declarations
from forewarn.compiler.cel.types import STRING
from forewarn.compiler.policies import compile_policies
from forewarn.compiler.testing.cel_python import IMPORT_ERROR, CelPython
from forewarn.emulator.client import EmulatorClient
from forewarn.events import LATEST_API_VERSION, Vm, parse_document
from forewarn.policy.artifact import load
from forewarn.policy.decision import OCCASIONS, Facts
from forewarn.policy.engine import PolicySet
from forewarn.policy.view import event_view
from forewarn.runner.hooks import webhook
from forewarn.runner.hooks.commands import HookContext, HookSettings, command
from hypothesis import given, settings
from hypothesis import strategies as st
from tools.fixtures.events import NOW, listed
from tools.servers.webhooks import Answer, Webhook
from tools.sites.runner_process import Start, compiled

CHANNEL = "#ops"
PARAMS = f'params: [{{name: channel, type: string, default: "{CHANNEL}"}}]\n'
VM = Vm("web_0", location="westeurope", tags={"tier": "web", "größe": '4 "x"'})
# Expressions, and how CEL alone writes what they become: a body makes texts of times.
LEAVES = [
    *(
        "event.EventType",
        "event.EventId",
        "vm.name",
        "params.channel",
        "occasion",
        '"é \\"<@U1>\\" \\n"',
        "null",
        "true",
    ),
    *("affects_me", "leader", "event.DurationInSeconds", "size(event.Resources)", "-9007199254740993", "1.5", "7u"),
    *("vm.tags", "event.Resources", "has(event.NotBefore)", "event.Resources.map(r, {'name': r, 'of': vm.name})"),
    *(
        "event.Resources[0].startsWith('web')",
        "event.EventType + ' of ' + vm.name + ' has ' + occasion",
        "vm.tags['tier']",
    ),
    *("[]", "{}", "event.Description.size() > 3", "event.Resources.exists(r, r.endsWith('_1'))", "string(1 + 2)"),
]
PAIRS = [(leaf, leaf) for leaf in LEAVES] + [
    (time, f"string({time})") for time in ("event.NotBefore", "duration('90s')", "timestamp('2026-01-31T12:00:00Z')")
]
CONDITIONS = [
    "leader",
    "occasion == 'started'",
    "occasion in ['ended', 'cancelled']",
    "!affects_me",
    "has(event.NotBefore)",
]
KEYS = st.lists(st.text(st.sampled_from("ab é\U0001f600"), max_size=3), unique=True, max_size=4)
Pair = tuple[str, str]


def many(values: list[Pair], write: str) -> Pair:
    ours, theirs = (write.format(", ".join(one[side] for one in values)) for side in (0, 1))
    return ours, theirs


def mapped(keys: list[str], values: list[Pair]) -> Pair:
    pairs = [tuple(f"{json.dumps(key, ensure_ascii=False)}: {one}" for one in pair) for key, pair in zip(keys, values)]
    return many([(ours, theirs) for ours, theirs in pairs], "{{{}}}")


def maps(values: st.SearchStrategy[Pair]) -> st.SearchStrategy[Pair]:
    def of(keys: list[str]) -> st.SearchStrategy[Pair]:
        return st.lists(values, min_size=len(keys), max_size=len(keys)).map(lambda found: mapped(keys, found))

    return KEYS.flatmap(of)


def nested(values: st.SearchStrategy[Pair]) -> st.SearchStrategy[Pair]:
    lists = st.lists(values, max_size=3).map(lambda found: many(found, "[{}]"))
    choices = st.builds(
        lambda condition, one, other: (
            f"({condition} ? {one[0]} : {other[0]})",
            f"({condition} ? {one[1]} : {other[1]})",
        ),
        st.sampled_from(CONDITIONS),
        values,
        values,
    )
    return st.one_of(lists, maps(values), choices)


BODIES = maps(st.recursive(st.sampled_from(PAIRS), nested, max_leaves=12))


def occasion_of(occasion: str, event: Any) -> HookContext:
    decision = {"output": "hold", "policy": "p", "rule": "r", "reason": "why"}
    return HookContext("notify", occasion, 1, False, event, "web_0", decision, None, 600.0, 0)


@pytest.mark.skipif(IMPORT_ERROR is not None, reason="cel-python is not installed")
@settings(max_examples=120, deadline=None)
@given(BODIES, st.sampled_from(OCCASIONS), st.booleans())
def test_what_arrives_is_what_cel_says(body: Pair, occasion: str, first: bool) -> None:
    ours, theirs = body
    resources = ["web_0", "web_1"] if first else ["web_1", "web_0"]
    content = json.dumps({"DocumentIncarnation": 1, "Events": [listed(Resources=resources)]}).encode()
    document = parse_document(content)
    with tempfile.TemporaryDirectory() as directory, Webhook() as server:
        path = Path(directory) / "p.yml"
        hook = json.dumps({"http": server.url, "body": ours}, ensure_ascii=False)
        path.write_text(f"name: p\n{PARAMS}rule: {{match: [{{id: r, output: hold, notify: [{hook}]}}]}}\n")
        compilation = compile_policies([path])
        assert compilation.findings == []
        (decision,) = PolicySet(load(compilation.artifact or {})).decide(document, Facts(NOW, VM))
        event = decision.event
        request = command(decision.notify[0], occasion_of(occasion, event), HookSettings(), 20.0)
        assert webhook.main(io.BytesIO(request.stdin), io.StringIO()) == 0
        (arrived,) = server.requests
    declarations = notification_declarations(policy_declarations(LATEST_API_VERSION, {"channel": STRING}, {}, {}))
    values = {
        "event": event_view(event),
        "vm": VM.as_dict(),
        "params": {"channel": CHANNEL},
        "affects_me": True,
        "leader": first,
        "occasion": occasion,
    }
    types = {name: str(type_) for name, type_ in declarations.variables.items()}
    said = CelPython(declarations.records).evaluate(theirs, values, types)
    assert said.kind == "value", said
    assert arrived.headers["content-type"] == "application/json"
    assert json.loads(arrived.body) == said.detail
    assert repr(json.loads(arrived.body)) == repr(said.detail)  # True is not 1


POLICY = """
name: p
rule:
  match:
    - id: told
      output: approve
      notify:
        - http: URL
          body: >-
            {"text": event.EventType + " of " + vm.name + " has " + occasion, "status": event.EventStatus,
             "until": has(event.NotBefore) ? event.NotBefore : null, "nested": {"mine": affects_me, "n": 1}}
        - http: URL/missing
          body: '{"until": event.NotBefore, "on": occasion == "ended" ? vm.tags["none"] : occasion}'
"""


def test_a_runner_sends_it_on_each_occasion(start: Start, emulator: EmulatorClient, tmp_path: Path) -> None:
    with Webhook(Answer(200)) as server:
        artifact = compiled(tmp_path, POLICY.replace("URL", server.url))
        runner = start("--artifact", str(artifact))
        event_id = emulator.schedule(
            "Freeze", ["web_0"], duration_seconds=5, notice_seconds=900, impact_seconds=0.1, gone_after_seconds=2
        )
        lines = {}
        for occasion in ("decided", "started", "ended"):
            for hook in (server.url, f"{server.url}/missing"):
                lines[hook, occasion] = runner.wait_for("notified", occasion=occasion, hook=f"http {hook}")
        runner.stop()
    assert {line["event_id"] for line in lines.values()} == {event_id}
    bodies = [json.loads(request.body) for request in server.requests if request.target == "/x"]
    assert [body.pop("text") for body in bodies] == [
        f"Freeze of web_0 has {occasion}" for occasion in ("decided", "started", "ended")
    ]
    assert bodies[0].pop("until").endswith("Z")
    assert [body.pop("until") for body in bodies[1:]] == [None, None]  # blank once it has started
    assert [body.pop("status") for body in bodies] == ["Scheduled", "Started", "Started"]
    assert bodies == [{"nested": {"mine": True, "n": 1}}] * 3
    # A body without a value is not sent, nothing else is sent instead, and it is not tried again.
    assert [json.loads(request.body)["on"] for request in server.requests if request.target == "/x/missing"] == [
        "decided"
    ]
    for occasion in ("started", "ended"):
        line = lines[f"{server.url}/missing", occasion]
        assert line["result"] == "not-started"
        assert line["reason"].startswith("the body has no value: event.NotBefore: ")
        assert line.get("retry_seconds") is None


def test_event_that_ended_without_a_runner_is_reported(start: Start, emulator: EmulatorClient, tmp_path: Path) -> None:
    """The body has the event as it was last seen."""
    with Webhook(Answer(200)) as server:
        artifact = compiled(tmp_path, POLICY.replace("approve", "hold").replace("URL", server.url))
        runner = start("--artifact", str(artifact))
        event_id = emulator.schedule("Freeze", ["web_0"], duration_seconds=5, notice_seconds=900)
        runner.wait_for("notified", occasion="decided", hook=f"http {server.url}")
        runner.stop()
        emulator.cancel(event_id)
        again = start("--artifact", str(artifact))
        line = again.wait_for("notified", hook=f"http {server.url}")
        again.stop()
    assert line["occasion"] in ("ended", "cancelled")
    *_earlier, body = [json.loads(request.body) for request in server.requests if request.target == "/x"]
    assert body["text"] == f"Freeze of web_0 has {line['occasion']}"
    assert body["status"] == "Scheduled"
