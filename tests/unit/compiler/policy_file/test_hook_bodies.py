# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``body`` of http hooks: checked where it stands, and evaluated by the engine for each verdict."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from forewarn.compiler.findings import Finding
from forewarn.errors import InputError
from forewarn.events import Vm, parse_document
from forewarn.policy.artifact import digest_of, load
from forewarn.policy.decision import OCCASIONS, Decision, Facts
from forewarn.policy.engine import PolicySet
from forewarn.policy.hook_body import MAX_BYTES, with_body_source
from tools.fixtures.events import NOW, listed
from tools.fixtures.policy_files import compiled

POLICY = """
name: p
params:
  - {name: channel, type: string, default: ops}
rule:
  variables: [{name: v, expression: "1"}]
  match:
    - output: approve
      PHASE:
        - http: http://127.0.0.1:9/x
          body: BODY
"""
VM = Vm("web_0", tags={"tier": "web"})


def policy(body: str, phase: str = "notify") -> str:
    return POLICY.replace("PHASE", phase).replace("BODY", json.dumps(body))


def findings_of(directory: Path, body: str, phase: str = "notify") -> list[Finding]:
    return compiled(directory, policy(body, phase)).findings


def decide(directory: Path, body: str, phase: str = "notify", vm: Vm = VM, **fields: Any) -> Decision:
    compilation = compiled(directory, policy(body, phase))
    assert compilation.findings == []
    document = json.dumps({"DocumentIncarnation": 1, "Events": [listed(Resources=["web_0", "web_1"], **fields)]})
    (decision,) = PolicySet(load(compilation.artifact or {})).decide(parse_document(document.encode()), Facts(NOW, vm))
    assert decision.output == "approve"
    return decision


def content_of(directory: Path, body: str, **fields: Any) -> dict[str, Any]:
    """Return the content of a notify hook with that body."""
    (hook,) = decide(directory, body, **fields).notify
    content = hook["content"]
    assert isinstance(content, dict)
    return content


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ('{"a": "é", "b": 1, "c": 1.5, "d": true, "e": null}', {"a": "é", "b": 1, "c": 1.5, "d": True, "e": None}),
        ('{"a": 18446744073709551615u, "b": -9223372036854775808}', {"a": 2**64 - 1, "b": -(2**63)}),
        ('{"a": {"b": {"c": [1, "x", [], {}]}}}', {"a": {"b": {"c": [1, "x", [], {}]}}}),
        (
            '{"at": timestamp("2026-01-31T12:00:00Z"), "for": [duration("90s")]}',
            {"at": "2026-01-31T12:00:00Z", "for": ["90s"]},
        ),
        ('{"a": true ? timestamp("2026-01-31T12:00:00Z") : "x"}', {"a": "2026-01-31T12:00:00Z"}),
        ('{"a": leader ? {"x": 1} : {"y": "b"}}', {"a": {"x": 1}}),
        ('leader ? {"x": 1} : {"y": "b"}', {"x": 1}),
        ("vm.tags", {"tier": "web"}),
        ('{"a": event.Resources.map(r, {"name": r})}', {"a": [{"name": "web_0"}, {"name": "web_1"}]}),
        ('{"a": has(event.NotBefore) ? event.NotBefore : null}', {"a": "2026-01-31T12:10:00Z"}),
        ('{"a": event.EventType + " " + params.channel, "b": affects_me}', {"a": "Reboot ops", "b": True}),
        ('{"a": [1].map(x, {"a": x, "b": "x"})}', {"a": [{"a": 1, "b": "x"}]}),
        ('{"a": dyn({"b": [event.NotBefore, duration("90s")]})}', {"a": {"b": ["2026-01-31T12:10:00Z", "90s"]}}),
        ("{}", {}),
    ],
)
def test_the_value_is_what_cel_says(tmp_path: Path, source: str, value: object) -> None:
    fields = {"EventType": "Reboot", "NotBefore": "Sat, 31 Jan 2026 12:10:00 GMT"}
    assert content_of(tmp_path, source, **fields) == {"json": value}


def test_each_occasion_has_its_own_value(tmp_path: Path) -> None:
    content = content_of(tmp_path, '{"text": "has " + occasion, "over": occasion in ["ended", "cancelled"]}')
    assert content == {
        "occasions": {one: {"json": {"text": f"has {one}", "over": one in OCCASIONS[2:]}} for one in OCCASIONS}
    }


def test_missing_value_affects_one_occasion(tmp_path: Path) -> None:
    occasions = content_of(tmp_path, '{"x": occasion == "ended" ? vm.tags["none"] : "fine"}')["occasions"]
    assert occasions["decided"] == {"json": {"x": "fine"}}
    assert occasions["ended"]["problem"].startswith('the body has no value: vm.tags["none"]: ')


@pytest.mark.parametrize(
    ("source", "vm", "problem"),
    [
        ('{"a": vm.location}', VM, "the body has no value: vm.location: "),
        ('{"a": affects_me}', Vm(), "affects_me is not known"),
        ('{"a": 1 / size(vm.tags)}', Vm("web_0", tags={}), "the body has no value: 1 / size(vm.tags): "),
        ('{"a": 1e308 * 10.0}', VM, "a number that JSON does not have"),
        ('{"a": [double("nan")]}', VM, "a number that JSON does not have"),
        ('{"a": dyn([b"x"])}', VM, "JSON has no bytes"),
        ('{"a": dyn({1: 2})}', VM, "the keys of JSON are texts"),
        ('{"a": dyn(type(1))}', VM, "JSON has no type"),
    ],
)
def test_a_body_without_a_value(tmp_path: Path, source: str, vm: Vm, problem: str) -> None:
    (hook,) = decide(tmp_path, source, vm=vm).notify
    assert problem in hook["content"]["problem"]
    assert "problem" not in hook  # it still has its place among the notify hooks


def test_a_body_is_at_most_64_kib_long(tmp_path: Path) -> None:
    room = MAX_BYTES - len('{"a": ""}')
    for length, fits in ((room, True), (room + 1, False)):
        content = content_of(tmp_path, "vm.tags", vm=Vm("web_0", tags={"a": "x" * length}))
        assert ("json" in content) == fits
    assert content == {"problem": "the body has 65537 bytes, and at most 65536 are sent: leave something out"}


def test_prepare_hook_without_its_body_does_not_run(tmp_path: Path) -> None:
    (hook,) = decide(tmp_path, '{"a": vm.location}', "prepare").prepare
    assert hook["problem"].startswith("the body has no value: vm.location: ")
    assert "content" not in hook


def test_prepare_hook_stays_equal_while_listed(tmp_path: Path) -> None:
    body = '{"text": event.EventType + " of " + vm.name, "id": event.EventId}'
    one = decide(tmp_path, body, "prepare", NotBefore="Sat, 31 Jan 2026 12:10:00 GMT")
    later = decide(tmp_path, body, "prepare", NotBefore="Sat, 31 Jan 2026 13:00:00 GMT")
    assert one.prepare == later.prepare
    assert one.prepare[0]["content"]["json"]["text"].endswith(" of web_0")


@pytest.mark.parametrize(
    ("source", "code", "at", "says"),
    [
        ('"x"', "wrong-result-type", '"', 'write {"text": "x"}'),
        ("[1]", "wrong-result-type", "[1]", "a body must be a map"),
        ('leader ? {"a": 1} : 1', "wrong-result-type", "leader", "a body must be a map"),
        ("{1: 2}", "not-json", "1: 2", "the keys of JSON are texts"),
        ('{"a": {true: 1}}', "not-json", "true: 1", "the keys of JSON are texts"),
        ('{"a": event}', "not-json", "event}", "event.EventType"),
        ('{"a": [vm]}', "not-json", "vm]", "vm.name"),
        ('{"a": b"x"}', "not-json", "b", "JSON has no bytes"),
        ('{"a": [event.NotBefore].filter(x, true)}', "not-json", "[event.N", ".filter(x, true).map(x, string(x))"),
        ('{"a": now}', "undeclared-name", "now", "a body does not change by itself"),
        ('{"a": notice}', "undeclared-name", "notice", "a body does not change by itself"),
        ('{"a": events}', "undeclared-name", "events", "write event"),
        ('{"a": variables.v}', "undeclared-name", "variables.v", "a body has no variables"),
        ('{"a": occasion == "begun"}', "unknown-value", None, '"decided", "started"'),
        ('{"a": 1, "a": "x"}', "bad-literal", None, "more than once"),
        ('{"a": event.EventTyp}', "unknown-field", "event.EventTyp", "did you mean EventType"),
        ('{"a": 1 + "x"}', "type-mismatch", "1 + ", "cannot be applied"),
        ('{"a": 1 ? 2 : "x"}', "type-mismatch", "1 ?", "takes bool"),
        ('{"a": ', "syntax", None, ""),
    ],
)
def test_a_body_that_is_refused(tmp_path: Path, source: str, code: str, at: str | None, says: str) -> None:
    (finding,) = findings_of(tmp_path, source)
    assert (finding.code, finding.line, finding.severity) == (code, 11, "error")
    assert says in f"{finding.message} {finding.suggestion}"
    if at is not None:
        assert finding.source_line[finding.column - 1 :].replace("\\", "").startswith(at)


@pytest.mark.parametrize("phase", ["prepare", "recover_when: started\n      recover"])
@pytest.mark.parametrize("source", ["event.EventStatus", "event.NotBefore", "affects_me", "leader", "occasion", "now"])
def test_what_changes_is_refused_where_something_is_prepared(tmp_path: Path, source: str, phase: str) -> None:
    (finding,) = findings_of(tmp_path, f'{{"a": {source}}}', phase)
    assert finding.code in ("undeclared-name", "unknown-field")
    assert "only notify hooks have it" in finding.suggestion or source == "now"


@pytest.mark.parametrize(
    ("keys", "code", "says"),
    [
        ("http: http://x/, body: '{}', template: slack", "alternatives", "'body' and 'template' exclude each other"),
        ("run: [/x], body: '{}'", "missing-key", "'http' is missing beside 'body'"),
        ('http: http://x/, body: {"text": event.EventType}', "wrong-type", "put it in quotes"),
        ("http: http://x/, body:", "missing-value", "'body' has no value"),
    ],
)
def test_the_keys_beside_a_body(tmp_path: Path, keys: str, code: str, says: str) -> None:
    text = f"name: p\nrule:\n  match:\n    - {{output: hold, notify: [{{{keys}}}]}}\n"
    (finding,) = compiled(tmp_path, text).findings
    assert finding.code == code
    assert says in f"{finding.message} {finding.suggestion}"


def hook_in(artifact: dict[str, Any]) -> dict[str, Any]:
    (hook,) = artifact["policies"][0]["rule"]["match"][0]["notify"]
    assert isinstance(hook, dict)
    return hook


@pytest.mark.parametrize(
    "change",
    [
        {"template": "slack"},
        {"body": "{}"},
        {"body": {"source": "{}", "line": 1, "column": 1}},
        {"body": {"source": "{}", "line": 1, "column": 1, "form": ["var", "timestamp", 0, 0, "now"]}},
        {"body": {"source": "{}", "line": 1, "column": 1, "form": ["call", "map", 0, 0, "no-such-function"]}},
        {"content": {"json": {}}},
        {"problem": "none"},
    ],
)
def test_a_damaged_body_is_not_loaded(tmp_path: Path, change: dict[str, Any]) -> None:
    artifact = copy.deepcopy(compiled(tmp_path, policy("{}")).artifact)
    assert artifact is not None
    load(artifact)
    hook_in(artifact).update(change)
    artifact["digest"] = digest_of(artifact)
    with pytest.raises(InputError, match="damaged"):
        load(artifact)


def test_hook_identity_uses_the_body_source(tmp_path: Path) -> None:
    artifact = compiled(tmp_path, policy('{"a": event.EventId, "b": occasion}')).artifact
    assert artifact is not None
    decided = [decide(tmp_path, '{"a": event.EventId, "b": occasion}', EventId=name).notify[0] for name in "AB"]
    assert decided[0] != decided[1]
    assert with_body_source(decided[0]) == with_body_source(decided[1]) == with_body_source(hook_in(artifact))
